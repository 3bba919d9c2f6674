"""compare-datasets: is one dataset or split harder than others, and in what?"""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.analyses.compare_datasets import MAX_SPLITS, SETTINGS
from fsviz.cli import add_command, aligned, progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import support_sets

VERDICTS = {"noise": "not beyond noise"}


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
        "compare-datasets",
        run_compare_datasets,
        show_compare_datasets,
        "the same measures for two or more datasets or splits side by side; runs: compare",
    )
    parser.add_argument(
        "sides",
        nargs="+",
        metavar="DATASET[:SPLIT]",
        help=f"2 to {MAX_SPLITS} datasets, by their split test or the one that is named; the first is held against "
        "the others",
    )
    add_flags(parser, SETTINGS.values())
    parser.add_argument(
        "--suite", action="store_true", help="accuracy with hard, random and easy supports, beside published numbers"
    )


def run_compare_datasets(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs
    from fsviz.analyses import compare_datasets as study
    from fsviz.studies import support_sets

    asked = from_args(args, SETTINGS.values())
    spec = study.check({"sides": args.sides, **asked})
    sampler_flags.say_fit(study.fit(study.dataset_splits(spec["sides"]), asked))
    if args.suite:
        specs, without = study.suite_specs(spec)
        rows = []
        for side in study.dataset_splits(list(specs)):
            progress(f"Searching hard and easy supports of {side.title}")
            sets = jobs.compute({"study": "support_sets", **specs[side.name]})
            rows.append(study.suite_row(side, support_sets.summary(sets)))
        return {"suite": rows, "left_out": without, "published": study.published_suite().to_dict("records")}
    seen: list[str] = []

    def tell(done: int, total: int, message: str) -> None:
        side = message.partition(":")[0]
        if side not in seen:
            seen.append(side)
            progress(f"Measuring tasks of {side}")

    return study.comparison_dict(study.compare(spec, tell))


def show_compare_datasets(result: dict[str, Any]) -> str:
    if "suite" in result:
        return _show_suite(result)
    rows = []
    for row in result["measures"]:
        known = row["n_tasks"] > 0
        rows.append(
            {
                "measure": row["title"],
                "side": row["side"],
                "mean": f"{row['mean']:.3g} ± {row['ci95']:.2g}" if known else "-",
                "median (quartiles)": f"{row['median']:.3g} ({row['q1']:.3g} to {row['q3']:.3g})" if known else "-",
                "higher is": row["higher_is"],
                "first is": VERDICTS.get(row["first_is"], row["first_is"]),
                "of these very classes": VERDICTS.get(row["here"], row["here"]),
            }
        )
    facts = [
        {
            **side,
            "classes": side["n_classes"],
            "images": side["n_images"],
            "images per class": side["images_median"],
            "own coarsity": side["own_coarsity"],
        }
        for side in result["sides"]
    ]
    return "\n".join(
        [
            aligned(facts, ["side", "title", "classes", "images", "images per class", "own coarsity", "has"]),
            "",
            aligned(
                rows,
                ["measure", "side", "mean", "median (quartiles)", "higher is", "first is", "of these very classes"],
            ),
            "",
            *result["in_words"],
            "",
            *result["notes"],
            "95% intervals over classes: what tasks of other classes of the same kind would give. Of these very "
            "classes: over tasks.",
        ]
    )


def _show_suite(result: dict[str, Any]) -> str:
    sets = support_sets.SETS
    rows = [
        {"side": row["title"], "tasks": row["n_tasks"]}
        | {name: f"{row[name]:.1f} ± {row[f'{name}_ci95']:.1f}" for name in sets}
        for row in result["suite"]
    ]
    theirs = [
        {"benchmark": row["title"], "setting": row["setting"], "source": row["source"]}
        | {
            name: f"{row[name]:.1f} ({row[f'{name}_low']:.1f} to {row[f'{name}_high']:.1f})"
            for name in ("hard", "random")
            if row[name] == row[name]
        }
        for row in result["published"]
    ]
    return "\n".join(
        [
            "Computed here, accuracy in percent with 95% intervals over tasks of these images:",
            aligned(rows, ["side", "tasks", *sets]),
            *(f"{name} is left out: {why}" for name, why in result["left_out"].items()),
            "",
            "Published, not computed here (the middle and the range over backbones); other tasks and backbones, so "
            "only what hard supports cost can be compared:",
            aligned(theirs, ["benchmark", "setting", "hard", "random", "source"]),
        ]
    )
