"""contexts: which concept is seen in which context, how much one gives the other away, and what a change costs."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, aligned, engine, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import context_shift as shift


def register(commands: argparse._SubParsersAction) -> None:
    what = "count concepts against contexts, and how they are tied"
    parser = add_command(commands, "contexts", run_contexts, show_contexts, what, study="context_shift")
    sampler_flags.add_dataset(parser)
    question = shift.QUESTION.with_(choices={"table": "The table", **shift.QUESTION.choices}, default="table")
    add_flags(parser, {**shift.TASKS, **shift.OWN, "question": question}.values())
    engine.add_engine(parser)


def run_contexts(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.analyses import contexts as study

    if args.question not in (None, "table"):
        asked = from_args(args, {**shift.TASKS, **shift.OWN}.values())
        spec = {"study": "context_shift", "dataset": args.dataset, **asked}
        sampler_flags.say_fit(shift.fit(study.load_with_images(spec), asked))
        run = jobs.run_in_foreground(spec, report_progress, engine=engine.chosen(args))
        return jobs.results(run.id) | {"run": run.id}
    return study.summary(datasets.load(args.dataset), args.split or "")


def _show_shift(result: dict[str, Any]) -> str:
    rows = []
    for row in result["rows"]:
        told = {name: _mean(one) for name, one in row["accuracy"].items()}
        lost = {f"{name} loses": _with_classes(one) for name, one in row["loss"].items()}
        rows.append({"method": row["title"], "family": row["family"], result["question"]: row["value"], **told, **lost})
    columns = [c for c in rows[0] if rows[0][c] != ""]
    return "\n".join(
        [
            aligned(rows, columns),
            "",
            f"Accuracy in percent over {result['rows'][0]['n_tasks']:,} tasks of the same classes and queries; 95% "
            "intervals over tasks of these images, in brackets over classes.",
            *result["left_out"],
        ]
    )


def _mean(one: shift.Mean) -> str:
    return f"{one['mean']:.1f}" + (f" ± {one['ci95']:.1f}" if one["ci95"] is not None else "")


def _with_classes(one: shift.Mean) -> str:
    wider = one.get("ci95_classes")
    return _mean(one) + (f" ({wider:.1f})" if wider is not None else "")


def show_contexts(result: dict[str, Any]) -> str:
    if "rows" in result:
        return _show_shift(result)
    found = result["association"]
    lines = [
        f"{result['n_images']:,} images of {result['n_concepts']:,} concepts in {result['n_contexts']:,} contexts "
        f"(split {result['split']}); {result['n_without_context']:,} more have no context.",
        "Cramer's V cannot be told: it needs two concepts and two contexts."
        if found["v"] is None
        else f"Cramer's V {found['v']:.3f} ({found['low']:.3f} to {found['high']:.3f} over images), by chance below "
        f"{found['chance']:.3f}.",
        f"{result['usual_context_share']:.0%} of the images are in the usual context of their concept.",
        *(f"{name}: seen in one context only." for name in result["single_context"]),
        "",
        "Most tied, of cells with 5 images or more:",
        aligned([c for c in result["cells"] if c["n_images"] >= 5][:15], ["concept", "context", "n_images", "bits"]),
    ]
    return "\n".join([*lines, *result["notes"]])
