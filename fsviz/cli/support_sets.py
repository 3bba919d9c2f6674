"""Commands hard (search for hard support sets) and stress (classify them with other classifiers)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from fsviz.analyses import support_attributes
from fsviz.cli import add_command, engine, report_progress, sampler_flags
from fsviz.errors import FsvizError
from fsviz.settings import Setting, Value, add_flags, from_args
from fsviz.studies import stress_test as stress_study
from fsviz.studies import support_sets as study
from fsviz.tables import to_text
from fsviz.tasks import draw


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Search for support sets that make a classifier fail."
    hard = add_command(commands, "hard", run_hard, show_hard, help_line, study="support_sets", result_of=result_of)
    sampler_flags.add_dataset(hard)
    sampler_flags.add_backbone(hard)
    _add_tasks(hard)
    add_flags(hard, study.SEARCH_SETTINGS.values())
    hard.add_argument("--reasons", action="store_true", help="Also measure which attribute shifts explain it.")
    engine.add_engine(hard)

    help_line = "Test whether hard tasks transfer to other classifiers."
    stress = add_command(commands, "stress", run_stress, show_stress, help_line, study="stress_test")
    sampler_flags.add_dataset(stress)
    add_flags(stress, (stress_study.SOURCES, stress_study.BACKBONES, stress_study.ADAPTED))
    stress.add_argument(
        "--full-finetuning", action="store_true", help="Also fine-tune the whole backbone on every task."
    )
    add_flags(stress, stress_study.FINETUNING.values())
    _add_tasks(stress)
    add_flags(stress, stress_study.SEARCH_SETTINGS)
    engine.add_engine(stress)


def _add_tasks(parser: argparse.ArgumentParser) -> None:
    sampler_flags.add_flags(parser, study.TASK_SETTINGS, **study.TASK_DEFAULTS)


def requested_settings(args: argparse.Namespace, searched: Iterable[Setting]) -> dict[str, Value]:
    """The settings of tasks and search from the command line; reports those of tasks without effect."""
    from fsviz import datasets

    tasks, search = sampler_flags.requested(args, study.TASK_SETTINGS), from_args(args, searched)
    dataset = datasets.load(args.dataset)
    names = [name for flag in ("sources", "backbones") for name in getattr(args, flag, None) or []]
    searched_with = next(filter(None, [getattr(args, "backbone", None), *names]), None)
    backbone = searched_with or draw.default_backbone(dataset)
    fits = sampler_flags.say_fit(study.fit(dataset, backbone, {**search, **tasks}))
    sampler_flags.name_unused(tasks, draw.recipe_for(dataset, **{**study.TASK_DEFAULTS, **fits, **tasks}))
    return tasks | search


def run_hard(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs

    spec = {
        "study": "support_sets",
        "dataset": args.dataset,
        "backbone": sampler_flags.backbone(args),
        **requested_settings(args, study.SEARCH_SETTINGS.values()),
    }
    run = jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
    result = result_of(run)
    if args.reasons:
        sets = jobs.result(run.id)
        result["reasons"] = _reasons(
            sets, support_attributes.explain(sets, datasets.load(args.dataset), report_progress)
        )
    return result


def result_of(run: Any) -> dict[str, Any]:
    """The result of the command for a finished run."""
    from fsviz import datasets, jobs

    summary: study.SupportSummary = jobs.results(run.id)
    names = ["accuracy", "n_tasks", "testbed", "ci95", "drop", "drop_ci95", "failed"]
    names += ["spearman_loss_accuracy", "spearman_ci95", "spearman_over"]
    try:
        sets: study.SupportSets = jobs.result(run.id)
        lower_bound_note = study.lower_bound_note(sets.spec, sets.tasks["random"], datasets.load(sets.spec["dataset"]))
    except FsvizError:  # the dataset or its features may be gone since
        lower_bound_note = ""
    return {name: summary.get(name) for name in names} | {"run": run.id, "understated": lower_bound_note}


def _reasons(sets: study.SupportSets, explained: support_attributes.AttributeEffects | None) -> dict[str, Any]:
    """Costs of attribute shifts, the share of tasks each explains, and the hardest task as text."""
    if explained is None:
        return {
            "costs": [],
            "hardest": "The images have no attributes, so support and queries cannot be compared.",
        }
    hardest = int(np.argmin(sets.accuracy("hard")))
    reasons = [reason.words for reason in explained.reasons(hardest)]
    costs = explained.costs.assign(explains=explained.real.mean(axis=0))
    columns = ["attribute", "kind", "cost", "ci95", "p_holm", "explains"]
    rows = costs[columns].astype(object).where(costs[columns].notna(), None).to_dict("records")
    words = " ".join([*reasons, support_attributes.describe_effects(sets, explained, hardest)])
    return {"costs": rows, "hardest": f"Task {hardest}: {words}"}


def show_hard(result: dict[str, Any]) -> str:
    return (
        to_text(study.ACCURACIES.without("n_tasks"), study.accuracy_rows(result))
        + f"\n\nHard supports cost {result['drop']:.1f} points vs random ({result['n_tasks']} tasks, same queries).\n"
        + "".join(f"{note}\n" for note in (result["failed"], result["understated"]) if note)
        + f"Saved as testbed {result['testbed']}."
        + (_show_reasons(result["reasons"]) if "reasons" in result else "")
    )


def _show_reasons(reasons: dict[str, Any]) -> str:
    costs = f"\n\n{to_text(support_attributes.COSTS, reasons['costs'])}" if reasons["costs"] else ""
    return f"{costs}\n\n{reasons['hardest']}"


def run_stress(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs

    own = (stress_study.SOURCES, stress_study.BACKBONES, stress_study.ADAPTED, *stress_study.FINETUNING.values())
    searched = requested_settings(args, stress_study.SEARCH_SETTINGS)
    spec = {"study": "stress_test", "dataset": args.dataset, **from_args(args, own), **searched}
    if args.full_finetuning:
        spec["adaptations"] = [*(args.adaptations or stress_study.ADAPTED.default), stress_study.FULL]
    run = jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
    return jobs.results(run.id) | {"run": run.id}


def show_stress(result: dict[str, Any]) -> str:
    summary = cast(stress_study.StressSummary, result)
    lines = [
        to_text(stress_study.MATRIX, [dict(row) for row in summary["matrix"]]),
        "",
        "Hard for: the backbone that the hard tasks were searched with.",
    ]
    for entry in summary["agreement"]:
        if entry["accuracy"] is not None:
            lines.append(
                f"Rank correlation of accuracies, {entry['source']} with {entry['backbone']}, random and hard tasks: "
                + study.describe_correlation(entry["accuracy"], entry["accuracy_ci95"], entry["accuracy_over"])
                + "."
            )
    return "\n".join([*lines, *([summary["understated"]] if summary.get("understated") else [])])
