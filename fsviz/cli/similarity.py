"""similarity: are images closer to the text of their class or of their context?"""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, sampler_flags
from fsviz.settings import add_flags, from_args


def register(commands: argparse._SubParsersAction) -> None:
    from fsviz.analyses import image_text as study

    parser = add_command(
        commands, "similarity", run_similarity, show_similarity, "Compare images with class and context texts."
    )
    sampler_flags.add_dataset(parser)
    add_flags(parser, study.SETTINGS.values())


def run_similarity(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.analyses import image_text as study
    from fsviz.tasks import draw

    similarity = study.measure({"dataset": args.dataset, **from_args(args, study.SETTINGS.values())})
    dataset = datasets.load(args.dataset)
    names = dataset.classes["class_name"]
    classes = study.by_class(similarity)
    rows = classes.assign(class_name=classes["class_id"].map(names)).to_dict("records")
    against = study.against_accuracy(similarity, draw.default_backbone(dataset)).summary
    return study.summary(similarity) | {"classes": rows, "against_accuracy": dict(against)}


def show_similarity(result: dict[str, Any]) -> str:
    def mean_text(mean: dict[str, Any] | None, factor: float = 1.0, unit: str = "") -> str:
        if mean is None:
            return "not tested by this prompt"
        half = f" ± {factor * mean['ci95']:.2g}" if mean["ci95"] is not None else ""
        wider = f" ({factor * mean['ci95_classes']:.2g})" if mean["ci95_classes"] is not None else ""
        return f"{factor * mean['mean']:.3g}{half}{wider}{unit}"

    against = result["against_accuracy"]
    accuracy = (
        []
        if against["low"] is None
        else [
            f"correlation of task accuracy with the M_context of the queries: {against['pearson']:.2f} "
            f"({against['low']:.2f} to {against['high']:.2f} over {against['over']}; {against['n_tasks']:,} uniform "
            f"tasks, ProtoNet on {against['backbone']})"
        ]
    )
    return "\n".join(
        [
            f"{result['n_images']:,} images of split {result['split']}, model {result['model']}; 95% CI over "
            "images, in brackets over classes",
            f"M_concept {mean_text(result['m_concept'])}, M_context {mean_text(result['m_context'])}",
            f"closer to the context text than to the class text: {mean_text(result['nearer_to_context'], 100, '%')}",
            f"zero-shot accuracy: class {mean_text(result['zero_shot_concept'], 100, '%')} (chance level "
            f"{100 * result['chance']['concept']:.1f}%), context {mean_text(result['zero_shot_context'], 100, '%')} "
            f"(chance level {100 * result['chance']['context']:.1f}%)",
            *accuracy,
        ]
    )
