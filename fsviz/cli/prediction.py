"""predict: predict accuracy from measures without query labels."""

from __future__ import annotations

import argparse
from typing import Any, cast

from fsviz.cli import add_command, engine, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import prediction as study
from fsviz.studies.prediction import POLICIES
from fsviz.studies.prediction.measured import describe_intervals, outcome_name
from fsviz.studies.prediction.spread import describe_components
from fsviz.tables import Column, Table, to_text
from fsviz.tasks import draw

CORRELATIONS = Table(
    "Correlations",
    Column("title", "Measure"),
    Column("pearson", "Pearson's r", digits=2, interval=("low", "high"), kind="number"),
    Column("spearman", "Spearman's ρ", digits=2, kind="number"),
    Column("why", "Note"),
)
SPREAD = Table(
    "Spread of the accuracy",
    Column("cause", "Tasks"),
    Column("std", "Standard deviation", kind="share", digits=2, interval="ci95"),
)
HARD = Table(
    "Hard-task detection",
    Column("title", "Measure"),
    Column("area", "Area under the curve", digits=2, interval=("low", "high"), kind="number"),
    Column("threshold", "Threshold", kind="number"),
    *(
        Column(f"{half}_{kind}", f"{kind.capitalize()} predicted hard, {half} half", kind="share")
        for half in ("first", "second")
        for kind in ("hard", "easy")
    ),
)
LABELLING = Table(
    "Accuracy after labelling queries",
    Column("budget", "Labelled", kind="count"),
    *(
        Column(f"{group}_{policy}", f"{policy.capitalize()}, {title}", kind="share")
        for group, title in (("rest", "unlabelled images"), ("all", "all images"))
        for policy in POLICIES
    ),
)


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Predict accuracy from measures without query labels."
    parser = add_command(commands, "predict", run_predict, show_predict, help_line, study="prediction")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_backbone(parser)
    sampler_flags.add_flags(parser, study.TASK_SETTINGS, **study.TASK_DEFAULTS)
    add_flags(parser, study.OWN_SETTINGS.values())
    engine.add_engine(parser)


def run_predict(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs

    tasks = sampler_flags.requested(args, study.TASK_SETTINGS)
    dataset, backbone = datasets.load(args.dataset), sampler_flags.backbone(args)
    fits = sampler_flags.say_fit(study.fit(dataset, backbone, tasks))
    sampler_flags.name_unused(tasks, draw.recipe_for(dataset, **{**study.TASK_DEFAULTS, **fits, **tasks}))
    spec = {
        "study": "prediction",
        "dataset": args.dataset,
        "backbone": backbone,
        **tasks,
        **from_args(args, study.OWN_SETTINGS.values()),
    }
    run = jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
    return jobs.results(run.id) | {"run": run.id}


def show_predict(result: dict[str, Any]) -> str:
    """Text of a result, by its question."""
    return {
        "spread": _show_spread,
        "hard": _show_detection,
        "labelling": _show_labelling,
    }.get(result["question"], _show_correlations)(cast(study.PredictionSummary, result))


def _show_correlations(result: study.PredictionSummary) -> str:
    from fsviz.difficulty.measures import title

    rows = [{"title": title(name), **correlation} for name, correlation in result["correlations"].items()]
    outcome = outcome_name(result)
    lines = [
        to_text(CORRELATIONS, rows),
        "",
        f"Correlation with the {outcome} of {result['n_tasks']:,} tasks (mean {result['outcome']:.3f}); "
        f"{describe_intervals(result['correlations'].values())}.",
    ]
    if "predicted_accuracy" in result:
        correlation = result["predicted_accuracy"]
        lines.append(
            f"Prediction error of the mean confidence: {100 * correlation['error']:.1f} points (predicting the mean: "
            f"{100 * correlation['constant']:.1f})."
        )
    if result.get("best") is not None:
        lines.append(
            f"Best eigenvalue: number {result['best']} (r = {result['best_pearson']:.2f}), selected among many on the "
            "same tasks."
        )
    if "n_unlabelled" in result:
        lines.append(study.describe_unlabelled(result))
    return "\n".join(lines)


def _show_spread(result: study.PredictionSummary) -> str:
    components = describe_components(result["parts"]) if "parts" in result else result["why"]
    return f"{to_text(SPREAD, result['spread'])}\n\n{components}"


def _show_detection(result: study.PredictionSummary) -> str:
    from fsviz.difficulty.measures import MEASURES, title

    thresholds = {name: result["thresholds"][name] for name in MEASURES if name in result["thresholds"]}
    rows = [
        {"title": title(name), **row}
        | {f"{half}_{kind}": row[half][kind] for half in ("first", "second") for kind in ("hard", "easy")}
        for name, row in thresholds.items()
        if row["area"] is not None
    ]
    why = next((row["why"] for row in thresholds.values() if row["why"]), "")
    return (
        (to_text(HARD, rows) if rows else why)
        + "\n\n"
        + "\n\n".join(
            f"{str(half['value']).capitalize()} of the classes\n" + _show_correlations({**result, **half})
            for half in result["halves"]
        )
    )


def _show_labelling(result: study.PredictionSummary) -> str:
    policies = {"rest": result["rest"], "all": result["all"]}
    rows = [
        {"budget": budget}
        | {f"{group}_{policy}": curves[policy]["mean"][i] for group, curves in policies.items() for policy in POLICIES}
        for i, budget in enumerate(result["budgets"])
    ]
    return f"{to_text(LABELLING, rows)}\n\nMean accuracy over {result['n_tasks']:,} tasks."
