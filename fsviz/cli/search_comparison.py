"""Commands searches, filtered, restricted and steps: search methods, rarity, restricted queries, gradient steps."""

from __future__ import annotations

import argparse
from typing import Any, cast

from fsviz.analyses import attribute_shifts
from fsviz.cli import add_command, engine, report_progress, sampler_flags
from fsviz.cli.support_sets import requested_settings
from fsviz.settings import Setting, add_flags, from_args
from fsviz.studies import search_comparison, support_sets
from fsviz.tables import to_text

ONE_SEARCH = [s for s in support_sets.SEARCH_SETTINGS.values() if s is not support_sets.OBJECTIVE]  # saves no testbed
ALL_SEARCHES = [s for s in ONE_SEARCH if s is not support_sets.SEARCH]


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Compare search methods for hard support sets."
    compare = add_command(
        commands, "searches", run_searches, show_searches, help_line, study="search_comparison", result_of=result_of
    )
    search_comparison.SEARCHES.add_flag(compare)
    engine.add_engine(compare)
    _add(compare, ALL_SEARCHES, n_tasks=search_comparison.DEFAULT_TASKS)
    filtered = add_command(
        commands, "filtered", run_filtered, show_filtered, "Estimate how many random tasks yield one this hard."
    )
    search_comparison.N_RANDOM.add_flag(filtered)
    _add(filtered, ONE_SEARCH)
    restricted = add_command(
        commands,
        "restricted",
        run_restricted,
        show_restricted,
        "Search support sets for queries with given attributes.",
    )
    restricted.add_argument("--attribute", required=True, help="Attribute of the images, such as context.")
    restricted.add_argument(
        "--value", required=True, action="append", help="Value that queries must have; repeat for several."
    )
    _add(restricted, ONE_SEARCH)
    steps = add_command(commands, "steps", run_steps, show_steps, "Vary the number of FastDiffSel gradient steps.")
    _add(steps, [s for s in ALL_SEARCHES if s not in (support_sets.N_STEPS, support_sets.N_SWEEPS)], n_tasks=100)


def _add(parser: argparse.ArgumentParser, settings: list[Setting], **defaults: Any) -> None:
    sampler_flags.add_dataset(parser)
    sampler_flags.add_backbone(parser)
    sampler_flags.add_flags(parser, support_sets.TASK_SETTINGS, **{**support_sets.TASK_DEFAULTS, **defaults})
    add_flags(parser, settings)
    parser.set_defaults(settings=settings, own_defaults=defaults)


def _spec(args: argparse.Namespace) -> dict[str, Any]:
    own = {**args.own_defaults, **requested_settings(args, args.settings)}
    return {"dataset": args.dataset, "backbone": sampler_flags.backbone(args), **own}


def run_searches(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs

    spec = {"study": "search_comparison", **_spec(args), **from_args(args, [search_comparison.SEARCHES])}
    return result_of(jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args)))


def result_of(run: Any) -> dict[str, Any]:
    """The result of the command for a finished run."""
    from fsviz import jobs

    summary: search_comparison.SearchSummary = jobs.results(run.id)
    return {**summary, "words": search_comparison.describe_comparison(summary["rows"]), "run": run.id}


def show_searches(result: dict[str, Any]) -> str:
    summary = cast(search_comparison.SearchSummary, result)
    table = to_text(search_comparison.COMPARED, search_comparison.compared_rows(summary["rows"]))
    return f"{table}\n\n{summary['n_tasks']:,} tasks, the same for all. {result['words']}"


def run_filtered(args: argparse.Namespace) -> dict[str, Any]:
    spec = {**_spec(args), **from_args(args, [search_comparison.N_RANDOM])}
    comparison = search_comparison.filtered_tasks(spec, _report_sometimes)
    means = comparison.means.to_dict("records")
    return {
        "as_hard": vars(comparison.as_hard),
        "means": means,
        "words": search_comparison.describe_rarity(comparison),
    }


def _report_sometimes(done: int, total: int, message: str) -> None:
    if done % 1000 == 0 or done == total:
        report_progress(done, total, message)


def show_filtered(result: dict[str, Any]) -> str:
    return f"{to_text(search_comparison.MEANS, result['means'])}\n\n{result['words']}"


def run_restricted(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets

    sets = attribute_shifts.restricted_sets(
        {**_spec(args), "attribute": args.attribute, "values": args.value}, report_progress
    )
    numbers = dict(support_sets.summary(sets))
    dataset = datasets.load(args.dataset)
    shared = attribute_shifts.shared_values(sets, dataset, args.attribute, args.value)
    result: dict[str, Any] = {
        name: numbers[name] for name in ("accuracy", "ci95", "drop", "drop_ci95", "n_tasks", "failed")
    }
    result |= {"n_query": sets.spec["n_query"], "shared": shared, "words": attribute_shifts.describe_shared(shared)}
    return result | {"shares": attribute_shifts.share_table(sets, dataset, args.attribute).to_dict("records")}


def show_restricted(result: dict[str, Any]) -> str:
    shares = attribute_shifts.share_rows(result["shares"])
    return (
        f"{to_text(support_sets.ACCURACIES.without('n_tasks'), support_sets.accuracy_rows(result))}\n\n"
        f"{to_text(attribute_shifts.SHARES, shares)}\n\n{result['n_tasks']:,} tasks of random "
        f"classes, {result['n_query']} queries per class. {result['words']}"
        + (f"\n{result['failed']}" if result["failed"] else "")
    )


def run_steps(args: argparse.Namespace) -> dict[str, Any]:
    steps = search_comparison.by_number_of_steps(_spec(args), progress=report_progress)
    return {"steps": steps.to_dict("records"), "words": search_comparison.describe_steps(steps)}


def show_steps(result: dict[str, Any]) -> str:
    return f"{to_text(search_comparison.STEPS, result['steps'])}\n\n{result['words']}"
