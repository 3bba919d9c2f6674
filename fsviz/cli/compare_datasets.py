"""compare-datasets: is one dataset or split harder than others, and by which measures?"""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.analyses.compare_datasets import MAX_SPLITS, SETTINGS
from fsviz.cli import add_command, progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.tables import to_text


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
        "compare-datasets",
        run_compare_datasets,
        show_compare_datasets,
        "Compare measures of two or more datasets or splits.",
    )
    parser.add_argument(
        "sides",
        nargs="+",
        metavar="DATASET[:SPLIT]",
        help=f"2 to {MAX_SPLITS} datasets, each with its split (default: test). The first is the reference.",
    )
    add_flags(parser, SETTINGS.values())
    parser.add_argument(
        "--suite",
        action="store_true",
        help="Compare accuracy with hard, random and easy supports, and published numbers.",
    )


def run_compare_datasets(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs
    from fsviz.analyses import compare_datasets as study
    from fsviz.studies import support_sets

    settings = from_args(args, SETTINGS.values())
    spec = study.check({"sides": args.sides, **settings})
    sampler_flags.say_fit(study.fit(study.dataset_splits(spec["sides"]), settings))
    if args.suite:
        specs, without = study.suite_specs(spec)
        rows = []
        for side in study.dataset_splits(list(specs)):
            progress(f"Searching supports of {side.title}")
            sets = jobs.compute({"study": "support_sets", **specs[side.name]})
            rows.append(study.suite_row(side, support_sets.summary(sets)))
        return {"suite": rows, "excluded": without, "published": study.published_suite().to_dict("records")}
    announced: list[str] = []

    def announce(done: int, total: int, message: str) -> None:
        side = message.partition(":")[0]
        if side not in announced:
            announced.append(side)
            progress(f"Measuring tasks of {side}")

    return study.comparison_dict(study.compare(spec, announce))


def show_compare_datasets(result: dict[str, Any]) -> str:
    from fsviz.analyses import compare_datasets as study

    if "suite" in result:
        return _show_suite(result)
    return "\n".join(
        [
            to_text(study.FACTS, result["sides"]),
            "",
            to_text(study.NUMBERS.without("side_title", "why"), study.number_rows(result["measures"])),
            "",
            *result["in_words"],
            "",
            *result["notes"],
            "95% CI over classes: holds for other classes of the same kind. On these classes only: 95% CI over tasks.",
        ]
    )


def _show_suite(result: dict[str, Any]) -> str:
    from fsviz.analyses import compare_datasets as study

    return "\n".join(
        [
            "Computed here, with 95% CI over tasks:",
            to_text(study.SUITE, result["suite"]),
            *(f"{name} is excluded: {why}" for name, why in result["excluded"].items()),
            "",
            "Published (median and range over backbones). Tasks and backbones differ: compare costs, not levels.",
            to_text(study.PUBLISHED_SUITE, result["published"]),
        ]
    )
