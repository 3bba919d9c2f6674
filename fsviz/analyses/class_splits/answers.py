"""The answer of every section of the page Train–test distance: a bold sentence, and its setting or baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fsviz.analyses.class_splits.held_out import N_RANDOM, HeldOutSide, swaps
from fsviz.analyses.class_splits.search import RANDOM, THIS, SplitResult
from fsviz.text import percent


def distance_answer(
    result: SplitResult,
    at_random: tuple[float, float],
    test_sides: tuple[HeldOutSide, HeldOutSide] | None = None,
    backbone: str = "",
) -> tuple[str, str]:
    """The distance of the test classes from the training classes, compared with random splits.

    at_random   the range of 95% of random splits
    test_sides  the test side, and that of random splits, if they are computed
    backbone    title of the frozen backbone
    """
    split, (low, high) = result.split, at_random
    sentence = f"Test classes are {result.nearest:.2f} from their nearest training class ({_random(low, high)})."
    if split.requested is not None and split.reached is not None:
        sentence += f" Divergence reached: {split.reached:.2f} of {split.requested:g}."
    return sentence, "" if test_sides is None else describe_test_side(*test_sides, backbone)


def describe_test_side(side: HeldOutSide, at_random: HeldOutSide, backbone: str) -> str:
    """The test side by itself, compared with random splits; takes the title of the frozen backbone."""
    at = f"{at_random.inside_low:.2f} to {at_random.inside_high:.2f}"
    apart = f"Distance inside test: {side.inside:.2f} (random: {at})."
    if side.accuracy is None or side.high is None or at_random.accuracy is None:
        return apart
    accuracy = f"{side.accuracy:.1f} ± {side.high - side.accuracy:.1f}%"
    return f"Frozen {backbone}: {accuracy} on test ({side.setting}; {_accuracy_at_random(at_random)}). {apart}"


def _accuracy_at_random(at_random: HeldOutSide) -> str:
    return f"{N_RANDOM} random splits: {at_random.low:.0f} to {at_random.high:.0f}%"


def few_answer(title: str, table: pd.DataFrame, least: int) -> tuple[str, str]:
    """The mean distance to the nearest class, if classes are too few to split; takes rows of `nearest_classes`."""
    return (
        f"The classes of {title} are {table['distance'].mean():.2f} from their nearest class on average.",
        f"A split needs at least {least} classes with features; there are {len(table):,}.",
    )


def sweep_answer(
    results: Sequence[SplitResult], sides: Sequence[HeldOutSide], at_random: HeldOutSide, backbone: str
) -> tuple[str, str]:
    """The accuracy of the frozen backbone over the targets, next to the distance inside test, and where sides swap.

    at_random  test sides of random splits
    backbone   title of the frozen backbone
    """
    swapped = [f"between R = {first:g} and {second:g}" for first, second in swaps(results)]
    more = f"Sides swap {' and '.join(swapped)}." if swapped else ""
    first, last = results[0], results[-1]
    accuracy = [side.accuracy for side in sides if side.accuracy is not None]
    inside = [side.inside for side in sides]
    if len(accuracy) < len(sides) or at_random.accuracy is None:
        return (
            f"From target {first.split.requested:g} to {last.split.requested:g}, the distance to the nearest training "
            f"class goes from {first.nearest:.2f} to {last.nearest:.2f}.",
            more,
        )
    sentence = (
        f"Frozen {backbone}, trained on neither side, gets {min(accuracy):.0f} to {max(accuracy):.0f}% on these test "
        f"sides ({at_random.setting}; {_accuracy_at_random(at_random)})."
    )
    reached = [result.split.reached or 0.0 for result in results]
    if np.ptp(accuracy) > 0 and np.ptp(inside) > 0 and np.ptp(reached) > 0:
        r_inside, r_reached = (float(np.corrcoef(values, accuracy)[0, 1]) for values in (inside, reached))
        more = (
            f"Correlation: {r_inside:.2f} with the distance inside test, {r_reached:.2f} with the divergence. {more}"
        ).rstrip()
    return sentence, more


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
