"""contexts: class–context association, and the cost of a context change."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, engine, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import context_shift as shift
from fsviz.tables import Column, Table, to_text


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Measure class-context association and context shift."
    parser = add_command(commands, "contexts", run_contexts, show_contexts, help_line, study="context_shift")
    sampler_flags.add_dataset(parser)
    question = shift.QUESTION.with_(choices={"table": "Class–context table", **shift.QUESTION.choices}, default="table")
    add_flags(parser, {**shift.TASKS, **shift.OWN, "question": question}.values())
    engine.add_engine(parser)


def run_contexts(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.analyses import contexts as study

    if args.question not in (None, "table"):
        settings = from_args(args, {**shift.TASKS, **shift.OWN}.values())
        spec = {"study": "context_shift", "dataset": args.dataset, **settings}
        sampler_flags.say_fit(shift.fit(datasets.load_with_contexts(args.dataset), settings))
        run = jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
        return jobs.results(run.id) | {"run": run.id}
    return study.summary(datasets.load(args.dataset), args.split or "")


def _show_shift(result: dict[str, Any]) -> str:
    return "\n".join(
        [
            to_text(_shift_table(result), [_shift_row(row) for row in result["rows"]]),
            "",
            f"{result['rows'][0]['n_tasks']:,} tasks with the same classes and queries; 95% CI over tasks.",
            *result["left_out"],
        ]
    )


def _shift_table(result: dict[str, Any]) -> Table:
    """A row per method: accuracy by support, and loss relative to the first support."""
    first = result["rows"][0]
    columns = [Column("title", "Method"), Column("family", "Family")]
    for name in first["accuracy"]:
        columns.append(Column(f"accuracy_{name}", name, kind="percent", interval=f"accuracy_{name}_ci95"))
    for name in first["loss"]:
        columns.append(Column(f"loss_{name}", f"Loss, {name}", kind="points", interval=f"loss_{name}_ci95"))
        columns.append(Column(f"loss_{name}_ci95_classes", f"± over classes, {name}", "points", 1, kind="number"))
    return Table("Accuracy by support", *tuple(columns))


def _shift_row(row: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {name: row[name] for name in ("title", "family")}
    for kind in ("accuracy", "loss"):
        for name, mean in row[kind].items():
            values[f"{kind}_{name}"] = mean["mean"]
            values |= {f"{kind}_{name}_{end}": mean.get(end) for end in ("ci95", "ci95_classes")}
    return values


def show_contexts(result: dict[str, Any]) -> str:
    from fsviz.analyses.contexts import CELLS

    if "rows" in result:
        return _show_shift(result)
    association = result["association"]
    lines = [
        f"{result['n_images']:,} images of {result['n_concepts']:,} classes in {result['n_contexts']:,} contexts "
        f"(split {result['split']}); {result['n_without_context']:,} more have no context.",
        "Cramér's V is not available: it needs at least two classes and two contexts."
        if association["v"] is None
        else f"Class-context association: Cramér's V {association['v']:.3f} "
        f"({association['low']:.3f} to {association['high']:.3f} over "
        f"images), expected by chance below {association['chance']:.3f}.",
        f"{result['usual_context_share']:.0%} of the images are in the most common context of their class.",
        *(f"{name}: one context only." for name in result["single_context"]),
        "",
        "Strongest association (cells with at least 5 images):",
        to_text(CELLS, [c for c in result["cells"] if c["n_images"] >= 5][:15]),
    ]
    return "\n".join([*lines, *result["notes"]])
