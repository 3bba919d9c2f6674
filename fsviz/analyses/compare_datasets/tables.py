"""A comparison as tables and as JSON, its command, and the suite of published benchmarks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fsviz import features
from fsviz.analyses.compare_datasets.measuring import (
    SETTINGS,
    ComparisonSpec,
    DatasetComparison,
    DatasetSplit,
    common_backbone,
    dataset_splits,
)
from fsviz.analyses.compare_datasets.sentences import headline, notes
from fsviz.analyses.compare_datasets.significance import differences, direction, title
from fsviz.datasets.published import PAPERS, benchmark_title, published_results
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.settings import SHAPE, Settings, Value, to_args
from fsviz.studies import support_sets
from fsviz.tables import Column, Table

# As tables ---------------------------------------------------------------------------------------------------------


FACTS = Table(
    "Datasets",
    Column("side", "Name"),
    Column("title", "Dataset"),
    Column("n_classes", "Classes", kind="count"),
    Column("n_images", "Images", kind="count"),
    Column("images_median", "Images per class (quartiles)", kind="count", interval=("images_low", "images_high")),
    Column(
        "own_coarsity",
        "Coarsity (own taxonomy)",
        digits=1,
        kind="number",
        help="Median coarsity on its own taxonomy, as on other pages. Not comparable between datasets: it depends on "
        "the number of classes.",
    ),
    Column("has", "Has"),
)
NUMBERS = Table(
    "All values",
    Column("title", "Measure", width=170),
    Column("side", "Name"),
    Column("side_title", "Dataset", width=160),
    Column("mean", "Mean", kind="number", interval="ci95"),
    Column("median", "Median (quartiles)", kind="number", interval=("q1", "q3")),
    Column("n_tasks", "Tasks", kind="count"),
    Column("over", "95% CI over"),
    Column("higher_is", "Higher is"),
    Column("first_is", "First is"),
    Column("here", "On these classes only"),
    Column("difference", "Difference", kind="number", interval="difference_ci95"),
    Column("why", "Not available because", width=220),
)
VERDICT_WORDS = {"noise": "not significant"}
SUITE = Table(
    "Support sets",
    Column("title", "Dataset"),
    Column("cost", "Cost of hard supports", kind="points", help="By FastDiffSel, as in the published benchmarks."),
    *(
        Column(name, name.capitalize(), kind="percent", interval=f"{name}_ci95", help=f"With {name} supports.")
        for name in support_sets.SETS
    ),
    Column("n_tasks", "Tasks", kind="count"),
)
PUBLISHED_SUITE = Table(
    "Published by Basu et al. (2023)",
    Column("title", "Benchmark"),
    Column("method", "Method"),
    Column("setting", "Setting"),
    *(
        Column(name, name.capitalize(), kind="percent", interval=(f"{name}_low", f"{name}_high"))
        for name in ("hard", "random")
    ),
    Column("n_backbones", "Backbones", kind="count"),
    Column("source", "Source"),
)


def number_rows(measures: pd.DataFrame | Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of `measure_table` with its verdicts in words."""
    rows = pd.DataFrame(measures)
    return rows.assign(**{name: rows[name].replace(VERDICT_WORDS) for name in ("first_is", "here")})


def facts(comparison: DatasetComparison) -> pd.DataFrame:
    """Facts per dataset: classes, images per class, capabilities, coarsity on its own taxonomy."""
    rows = []
    for side in comparison.sides:
        counts = side.dataset.classes.loc[side.class_ids, "n_images"].dropna().to_numpy(dtype=float)
        low, middle, high = np.quantile(counts, [0.25, 0.5, 0.75]) if len(counts) else (np.nan,) * 3
        own = comparison.own.get(side.name)
        rows.append(
            {
                "side": side.name,
                "title": side.title,
                "n_classes": len(side.class_ids),
                "n_images": int(counts.sum()) if len(counts) else pd.NA,
                "own_coarsity": float(np.median(own)) if own is not None else float("nan"),
                "images_low": float(low),
                "images_median": float(middle),
                "images_high": float(high),
                "has": ", ".join(side.dataset.capabilities),
            }
        )
    return pd.DataFrame(rows).astype({"n_images": "Int64"})


def measure_table(comparison: DatasetComparison, first: str = "") -> pd.DataFrame:
    """A row per measure and dataset: mean with 95% CI, quartiles, and the verdict on the first dataset.

    first_is is "harder", "easier", "noise" or "unknown", here the same on these classes only; effect is the difference
    in standard deviations of tasks, positive if the first dataset is harder.
    """
    first = first or comparison.sides[0].name
    verdicts = {(d.measure, d.second): d for d in differences(comparison, first)}
    rows = []
    for measure in comparison.requested:
        for side in comparison.sides:
            d = verdicts.get((measure, side.name))
            estimate = comparison.numbers.get(measure, {}).get(side.name)
            row: dict[str, Any] = {
                "measure": measure,
                "title": title(measure, comparison.spec),
                "higher_is": direction(measure),
                "side": side.name,
                "side_title": side.title,
                "n_tasks": len(estimate.values) if estimate else 0,
                "mean": estimate.estimate.mean if estimate else np.nan,
                "ci95": estimate.estimate.ci95 if estimate else np.nan,
                "over": estimate.ci_unit if estimate else "",
                **dict(zip(("q1", "median", "q3"), estimate.quartiles if estimate else (np.nan,) * 3, strict=True)),
                "first_is": d.verdict if d else "",
                "here": d.here if d else "",
                "difference": d.estimate.mean if d and d.estimate else np.nan,
                "difference_ci95": d.estimate.ci95 if d and d.estimate else np.nan,
                "effect": d.effect if d else np.nan,
                "effect_ci95": d.effect_ci95 if d else np.nan,
                "why": d.why if d else comparison.unknown.get(measure, {}).get(side.name, ""),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def comparison_dict(comparison: DatasetComparison) -> dict[str, Any]:
    """The result as plain numbers and words."""
    return {
        "spec": dict(comparison.spec),
        "backbone": comparison.backbone,
        "sides": _records(facts(comparison)),
        "measures": _records(measure_table(comparison)),
        "in_words": [headline(comparison, side.name) for side in comparison.sides[1:]],
        "notes": notes(comparison),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, None for missing values."""
    return [{name: None if pd.isna(v) else v for name, v in row.items()} for row in table.to_dict("records")]


def command(spec: Settings, suite: bool = False) -> str:
    """The command with the same results."""
    present = {name: spec[name] for name in SETTINGS if name in spec}
    changed = {name: value for name, value in present.items() if name in SHAPE or value != SETTINGS[name].default}
    more = ["--suite"] if suite else []
    return shlex.join(["fsviz", "compare-datasets", *spec["sides"], *to_args(changed, SETTINGS), *more])


# The suite: hard, random and easy support sets over several datasets -----------------------------------------------


def suite_specs(spec: ComparisonSpec) -> tuple[dict[str, support_sets.SupportSpec], dict[str, str]]:
    """Specs of the study `support_sets` by dataset, and the reason for each dataset that has none."""
    sides = dataset_splits(spec["sides"])
    backbone = common_backbone(sides, str(spec["backbone"]))
    specs, without = {}, {}
    for side in sides:
        available = features.available(side.dataset)
        if not backbone or backbone not in available:
            without[side.name] = (
                f"{side.dataset.title} has no {title_of(backbone)} features." if backbone else "No features."
            )
            continue
        settings: dict[str, Value] = {name: spec[name] for name in ("n_way", "n_shot", "n_query", "n_tasks", "seed")}
        try:
            specs[side.name] = support_sets.check(
                {
                    **settings,
                    "dataset": side.dataset.name,
                    "backbone": backbone,
                    "split": side.split,
                    "classifier": spec["method"],
                    "search": "fastdiffsel",  # the search of the published benchmarks
                }
            )
        except FsvizError as error:
            without[side.name] = str(error)
    return specs, without


def suite_row(side: DatasetSplit, summary: support_sets.SupportSummary) -> dict[str, Any]:
    """A row of the suite from the summary of a search for support sets."""
    return {
        "title": side.title,
        "published": False,
        **{name: summary["accuracy"][name] for name in support_sets.SETS},
        **{f"{name}_ci95": summary["ci95"][name] for name in support_sets.SETS},
        "n_tasks": summary["n_tasks"],
    }


def published_suite() -> pd.DataFrame:
    """Accuracies that Basu et al. 2023 print with hard support sets, and with random ones where they do.

    A row per benchmark and method: title, method, setting, source, n_backbones, and for hard and random the median
    over backbones with the lowest and the highest (hard, hard_low, hard_high, random, ...; NaN where not printed).
    """
    table = published_results()
    table = table[(table["paper"] == "basu2023") & (table["metric"] == "top1") & (table["quartile"] == "")]
    table = table[table["method"].isin(["ProtoNet", "ProtoNet meta-trained", "FastDiffSel proto loss"])]
    rows = []
    pairs = {"MD": ("random", "Meta-Dataset"), "Hard-MD": ("hard", "Meta-Dataset")}
    kinds_and_titles = table["benchmark"].map(lambda name: pairs.get(name, ("hard", _benchmark(name))))
    table = table.assign(kind=kinds_and_titles.str[0], title=kinds_and_titles.str[1])
    for (name, method, source), part in table.groupby(["title", "method", "table"], sort=False):
        row: dict[str, Any] = {"title": name, "published": True, "method": method, "setting": part["setting"].iloc[0]}
        row |= {"source": f"{PAPERS['basu2023']}, {source}", "n_backbones": part["backbone"].nunique()}
        for kind in ("hard", "random"):
            values = part.loc[part["kind"] == kind, "value"]
            row[kind] = float(values.median()) if len(values) else float("nan")
            row[f"{kind}_low"] = float(values.min()) if len(values) else float("nan")
            row[f"{kind}_high"] = float(values.max()) if len(values) else float("nan")
        rows.append(row)
    return pd.DataFrame(rows)


def _benchmark(name: str) -> str:
    return benchmark_title(name.removeprefix("Hard-MD++ ").removeprefix("Hard-MD "))
