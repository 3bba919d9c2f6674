"""similarity: are images closer to the word for the thing or to the word for its background?"""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, sampler_flags
from fsviz.settings import add_flags, from_args


def register(commands: argparse._SubParsersAction) -> None:
    from fsviz.analyses import image_text as study

    parser = add_command(
        commands, "similarity", run_similarity, show_similarity, "compare images with the words for concept and context"
    )
    sampler_flags.add_dataset(parser)
    add_flags(parser, study.SETTINGS.values())


def run_similarity(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.analyses import image_text as study
    from fsviz.tasks import draw

    found = study.measure({"dataset": args.dataset, **from_args(args, study.SETTINGS.values())})
    dataset = datasets.load(args.dataset)
    names = dataset.classes["class_name"]
    classes = study.by_class(found)
    rows = classes.assign(class_name=classes["class_id"].map(names)).to_dict("records")
    against = study.against_accuracy(found, draw.default_backbone(dataset)).summary
    return study.summary(found) | {"classes": rows, "against_accuracy": dict(against)}


def show_similarity(result: dict[str, Any]) -> str:
    def told(one: dict[str, Any] | None, times: float = 1.0, unit: str = "") -> str:
        if one is None:
            return "not asked by this prompt"
        half = f" ± {times * one['ci95']:.2g}" if one["ci95"] is not None else ""
        wider = f" ({times * one['ci95_classes']:.2g})" if one["ci95_classes"] is not None else ""
        return f"{times * one['mean']:.3g}{half}{wider}{unit}"

    against = result["against_accuracy"]
    worse = (
        []
        if against["low"] is None
        else [
            f"accuracy of tasks against the M_context of their queries: Pearson {against['pearson']:.2f} "
            f"({against['low']:.2f} to {against['high']:.2f} over {against['over']}; {against['n_tasks']:,} uniform "
            f"tasks, ProtoNet on {against['backbone']})"
        ]
    )
    return "\n".join(
        [
            f"{result['n_images']:,} images of split {result['split']}, model {result['model']}; 95% intervals over "
            "images, in brackets over classes",
            f"M_concept {told(result['m_concept'])}, M_context {told(result['m_context'])}",
            f"nearer to their context than to their concept: {told(result['nearer_to_context'], 100, '%')}",
            f"zero-shot: concept {told(result['zero_shot_concept'], 100, '%')} (chance "
            f"{100 * result['chance']['concept']:.1f}%), context {told(result['zero_shot_context'], 100, '%')} "
            f"(chance {100 * result['chance']['context']:.1f}%)",
            *worse,
        ]
    )
