"""The answer of every section of the page Train–test distance: a bold sentence, and its setting or baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fsviz.analyses.class_splits.search import RANDOM, THIS, SplitResult
from fsviz.analyses.class_splits.stability import SplitAgreement
from fsviz.records import SIDES
from fsviz.text import percent


def distance_answer(
    result: SplitResult, at_random: tuple[float, float], alike: SplitAgreement | None = None
) -> tuple[str, str]:
    """The distance of the test classes from the training classes, compared with random splits.

    at_random  the range of 95% of random splits
    alike      how far other seeds find the same split, if it is computed
    """
    split, (low, high) = result.split, at_random
    sentence = f"Test classes are {result.nearest:.2f} from their nearest training class ({_random(low, high)})."
    if split.requested is not None and split.reached is not None:
        sentence += f" Divergence reached: {split.reached:.2f} of {split.requested:g}."
    sizes = " / ".join(f"{len(split.parts[side]):,}" for side in SIDES)
    more = f"{sizes} train, val and test classes."
    if alike is not None:
        more += f" Two seeds agree on {percent(alike.value)} of classes ({percent(alike.chance)} expected by chance)."
    return sentence, more


def few_answer(title: str, table: pd.DataFrame, least: int) -> tuple[str, str]:
    """The mean distance to the nearest class, if classes are too few to split; takes rows of `nearest_classes`."""
    return (
        f"The classes of {title} are {table['distance'].mean():.2f} from their nearest class on average.",
        f"A split needs at least {least} classes with features; there are {len(table):,}.",
    )


def sweep_answer(results: Sequence[SplitResult], at_random: tuple[float, float]) -> tuple[str, str]:
    """The distance to the nearest training class at the lowest and at the highest target."""
    first, last = results[0], results[-1]
    return (
        f"From target {first.split.requested:g} to {last.split.requested:g}, the distance to the nearest training "
        f"class goes from {first.nearest:.2f} to {last.nearest:.2f}.",
        f"{_random(*at_random).capitalize()}.",
    )


def stability_answer(table: pd.DataFrame, dims: int) -> tuple[str, str]:
    """The test classes that two seeds share with all dimensions, and with the chosen number of them."""
    last = table.iloc[-1]
    sentence = (
        f"With all {int(last['dims']):,} dimensions two seeds share {percent(last['on_test'])} of test classes "
        f"({percent(last['chance_on_test'])} expected by chance)."
    )
    row = table[table["dims"] == dims]
    if row.empty or dims == last["dims"]:
        return sentence, ""
    return sentence, f"With {dims:,} dimensions they share {percent(row.iloc[0]['on_test'])}."


def comparison_answer(table: pd.DataFrame, at_random: tuple[float, float]) -> tuple[str, str]:
    """The split whose test classes are farthest from the training classes, compared with random splits."""
    nearest = table.set_index("split")["nearest"]
    farthest = str(nearest.idxmax())
    words = {THIS: "this split", RANDOM: "a random split"}.get(farthest, f"the split “{farthest}”")
    this = "" if farthest == THIS else f"This split: {nearest[THIS]:.2f}. "
    sentence = f"Test classes are farthest from training classes in {words}: {nearest.max():.2f}."
    return sentence, f"{this}{_random(*at_random)}."


def tree_answer(row: Mapping[str, Any], first: str, second: str) -> tuple[str, str]:
    """The difference between paths in two trees; takes a row of `hop_table`, and the titles of the two trees."""
    return (
        f"Paths between two classes differ by {row['hops']:.1f} edges between the trees of {first} and {second}.",
        f"Normalised {row['normalised']:.2f}; {row['chance']:.2f} expected by chance.",
    )


def _random(low: float, high: float) -> str:
    return f"95% of random splits: {low:.2f} to {high:.2f}"
