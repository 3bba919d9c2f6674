"""predict: can the accuracy of tasks be known before their queries have labels?"""

from __future__ import annotations

import argparse
from typing import Any, cast

from fsviz.cli import add_command, aligned, engine, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import prediction as study
from fsviz.studies.prediction.measured import intervals_in_words, outcome_name
from fsviz.studies.prediction.spread import parts_in_words
from fsviz.tasks import draw


def register(commands: argparse._SubParsersAction) -> None:
    what = "correlate measures of tasks with the accuracy they predict"
    parser = add_command(commands, "predict", run_predict, show_predict, what, study="prediction")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_backbone(parser, "measured and classified")
    sampler_flags.add_flags(parser, study.TASK_SETTINGS, **study.TASK_DEFAULTS)
    add_flags(parser, study.OWN_SETTINGS.values())
    engine.add_engine(parser)


def run_predict(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs

    tasks = sampler_flags.asked(args, study.TASK_SETTINGS)
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
    run = jobs.run_in_foreground(spec, report_progress, engine=engine.chosen(args))
    return jobs.results(run.id) | {"run": run.id}


def show_predict(result: dict[str, Any]) -> str:
    """The answer to the question that was asked, for a person."""
    return {
        "correlations": _show_correlations,
        "spread": _show_spread,
        "hard": _show_halves,
        "labelling": _show_labelling,
    }.get(result["question"], _show_cells)(cast(study.Summary, result))


def _show_correlations(result: study.Summary) -> str:
    from fsviz.difficulty.measures import title

    rows = [
        {"measure": title(name), **{k: found[k] for k in ("pearson", "low", "high", "spearman")}, "note": found["why"]}
        for name, found in result["correlations"].items()
    ]
    what = outcome_name(result)
    lines = [
        aligned(rows, ["measure", "pearson", "low", "high", "spearman", "note"]),
        "",
        f"Correlation with the {what} of {result['n_tasks']:,} tasks (mean {result['outcome']:.3f}); "
        f"{intervals_in_words(result['correlations'].values())}.",
    ]
    if "predicted_accuracy" in result:
        found = result["predicted_accuracy"]
        lines.append(
            f"The mean confidence misses the accuracy by {100 * found['error']:.1f} points, a constant by "
            f"{100 * found['constant']:.1f}."
        )
    return "\n".join(lines)


def _show_cells(result: study.Summary) -> str:
    from fsviz.difficulty.measures import MEASURES, title

    names = {name: title(name) for name in MEASURES if name in result["cells"][0]["correlations"]}
    what = outcome_name(result)
    rows = [
        {"value": row["value"], "tasks": row["n_tasks"], what: row["outcome"], "best eigenvalue": row.get("best")}
        | {titled: row["correlations"].get(name, {}).get("pearson") for name, titled in names.items()}
        for row in result["cells"]
    ]
    best = ["best eigenvalue"] if any(row["best eigenvalue"] is not None for row in rows) else []
    asked = study.QUESTION.choices[result["question"]]
    room = f"\n\n{study.unlabelled_in_words(result)}" if "n_unlabelled" in result else ""
    table = aligned(rows, ["value", "tasks", what, *names.values(), *best])
    return f"{asked}: Pearson's correlation of each measure with the {what} (intervals: --json).\n\n{table}{room}"


def _show_spread(result: study.Summary) -> str:
    rows = [
        {"tasks": row["cause"], "standard deviation %": _percent(row["std"]), "± 95%": _percent(row["ci95"])}
        for row in result["spread"]
    ]
    parts = parts_in_words(result["parts"]) if "parts" in result else result["why"]
    return f"{aligned(rows, ['tasks', 'standard deviation %', '± 95%'])}\n\n{parts}"


def _show_halves(result: study.Summary) -> str:
    from fsviz.difficulty.measures import MEASURES, title

    found = {name: result["thresholds"][name] for name in MEASURES if name in result["thresholds"]}
    rows = [
        {"measure": title(name), "area": row["area"], "threshold": row["threshold"]}
        | {f"{kind} called hard, {half}": row[half][kind] for half in ("first", "second") for kind in ("hard", "easy")}
        for name, row in found.items()
        if row["area"] is not None
    ]
    why = next((row["why"] for row in found.values() if row["why"]), "")
    thresholds = aligned(rows, list(rows[0])) if rows else why
    return (
        thresholds
        + "\n\n"
        + "\n\n".join(
            f"{str(half['value']).capitalize()} of the classes\n" + _show_correlations({**result, **half})
            for half in result["halves"]
        )
    )


def _show_labelling(result: study.Summary) -> str:
    kinds = {"of the unlabelled %": result["rest"], "of all %": result["all"]}
    rows = [
        {"labelled": budget}
        | {
            f"{policy}, {words}": 100 * of[policy]["mean"][i]
            for words, of in kinds.items()
            for policy in ("least confident", "random")
        }
        for i, budget in enumerate(result["budgets"])
    ]
    return (
        aligned(rows, list(rows[0])) + f"\n\nAccuracy after labelling some queries, over {result['n_tasks']:,} tasks."
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
