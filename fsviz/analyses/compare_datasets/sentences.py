"""A comparison in words: the verdict, the details, and notes on what the datasets share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsviz.analyses.compare_datasets.measuring import (
    ACCURACY,
    DatasetComparison,
    DatasetSplit,
    other_distance,
)
from fsviz.analyses.compare_datasets.significance import (
    MeasureDifference,
    _difference_of,
    difference,
    differences,
    format_value,
)
from fsviz.difficulty.measures import MEASURES
from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.taxonomy import DISTANCES

MAX_NAMED = 4  # measures that a sentence names with their numbers


# In words ----------------------------------------------------------------------------------------------------------


def verdict(comparison: DatasetComparison, second: str, first: str = "") -> tuple[str, str]:
    """One sentence on whether the first dataset is harder than the second, and an addition.

    Accuracy decides if it is available for both, else the measures do.
    """
    first = first or comparison.sides[0].name
    pair = f"{comparison.side(first).title} and {comparison.side(second).title}"
    rows = [d for d in differences(comparison, first) if d.second == second]
    available = [d for d in rows if d.verdict != "unknown"]
    if not available:
        reason = next((d.why for d in rows), "No measure is available.")
        return f"{pair} cannot be compared: {reason.rstrip('.')}.", ""
    significant = [d for d in available if d.verdict in ("harder", "easier")]
    accuracy = next((d for d in available if d.measure == ACCURACY), None)
    if accuracy in significant or (accuracy is None and len({d.verdict for d in significant}) == 1):
        clearest = accuracy or max(significant, key=lambda d: abs(d.effect))
        sentence = (
            f"{comparison.side(first).title} is {clearest.verdict} than {comparison.side(second).title}: "
            f"{_means(comparison, clearest)}."
        )
    elif not significant:
        sentence = f"No significant difference between {pair}."
    elif accuracy is not None:
        sentence = f"No significant difference in accuracy between {pair}."
    else:
        sentence = f"{comparison.side(first).title} is neither harder nor easier than {comparison.side(second).title}."
    more = []
    if accuracy is not None and accuracy not in significant:
        more.append(f"{_means(comparison, accuracy)}.")
    if accuracy is None:
        more.append("Accuracy is not available.")
    if significant:
        more.append(f"Significantly {_tally(significant)} of {len(available)} measures.")
    elif here := [d for d in available if d.here != "noise"]:
        more.append(f"On these classes only: {_tally(here)} of {len(available)} measures.")
    return sentence, " ".join(more)


def describe_setting(comparison: DatasetComparison) -> str:
    """The tasks and features of the accuracies in a sentence; "" if there are none."""
    if ACCURACY not in comparison.numbers:
        return ""
    shape = f"{comparison.spec['n_way']}-way {comparison.spec['n_shot']}-shot"
    return f"{shape} tasks, {title_of(comparison.backbone)} features."


def details(comparison: DatasetComparison, second: str, first: str = "") -> list[str]:
    """Sentences on all measures: significant ones with numbers, those on these classes only, the others by reason."""
    first = first or comparison.sides[0].name
    rows = [d for d in differences(comparison, first) if d.second == second]
    significant = [d for d in rows if d.verdict in ("harder", "easier")]
    here = [d for d in rows if d.verdict == "noise" and d.here != "noise"]
    noise = [_name(comparison, d) for d in rows if d.verdict == d.here == "noise"]
    sentences = [f"Significant: {_by_verdict(comparison, significant)}."] if significant else []
    sentences += [f"On these classes only: {_by_verdict(comparison, here)}."] if here else []
    sentences += [f"Not significant: {_listed(noise)}."] if noise else []
    reasons: dict[str, list[str]] = {}
    for d in rows:
        if d.verdict == "unknown":
            reasons.setdefault(d.why, []).append(_name(comparison, d))
    sentences += [f"Not available: {_some(names)}. {why.rstrip('.')}." for why, names in reasons.items()]
    return [*sentences, *distance_checked(comparison, first, second)]


def headline(comparison: DatasetComparison, second: str, first: str = "") -> str:
    """The verdict and the details in one paragraph."""
    return " ".join([*filter(None, verdict(comparison, second, first)), *details(comparison, second, first)])


def distance_checked(comparison: DatasetComparison, first: str, second: str) -> list[str]:
    """A sentence if another semantic distance changes the verdict on coarsity."""
    available = set(comparison.check) & set(comparison.numbers.get("coarsity", {}))
    if not {first, second} <= available:
        return []
    by = difference(comparison, "coarsity", first, second)
    again = _difference_of("coarsity", first, second, comparison.check[first], comparison.check[second])
    if by.verdict == again.verdict:
        return []
    words = {"harder": "harder", "easier": "easier", "noise": "not significantly different"}
    kind = DISTANCES[other_distance(comparison.spec["distance"])].title
    return [f"Coarsity depends on the distance: with {kind}, {comparison.side(first).title} is {words[again.verdict]}."]


def _tally(rows: Sequence[MeasureDifference]) -> str:
    """The number of measures by which the first dataset is harder and easier."""
    verdicts = [d.verdict if d.verdict != "noise" else d.here for d in rows]
    parts = [f"{word} on {verdicts.count(word)}" for word in ("harder", "easier") if word in verdicts]
    return ", ".join(parts)


def _by_verdict(comparison: DatasetComparison, rows: Sequence[MeasureDifference]) -> str:
    """Measures by which the first dataset is harder or easier: accuracy first, then the largest differences."""
    rows = sorted(rows, key=lambda d: (d.measure != ACCURACY, -abs(d.effect)))
    parts: list[str] = []
    for word in dict.fromkeys(d.here for d in rows):
        of_word = [d for d in rows if d.here == word]
        more = f" and {len(of_word) - MAX_NAMED} more" if len(of_word) > MAX_NAMED else ""
        parts.append(f"{word} by {_listed([_means(comparison, d, True) for d in of_word[:MAX_NAMED]])}{more}")
    return "; ".join(parts)


def _means(comparison: DatasetComparison, d: MeasureDifference, in_brackets: bool = False) -> str:
    """A measure with the means of both datasets: "coarsity 95 vs 99"."""
    numbers = comparison.numbers[d.measure]
    both = " vs ".join(format_value(numbers[name].estimate.mean, d.measure) for name in (d.first, d.second))
    return f"{_name(comparison, d)} ({both})" if in_brackets else f"{_name(comparison, d)} {both}"


def _name(comparison: DatasetComparison, d: MeasureDifference) -> str:
    if d.measure == ACCURACY:
        return f"{METHODS[comparison.spec['method']].title} accuracy"
    name = MEASURES[d.measure].title
    return name if name[:2].isupper() or "-" in name.split()[0] else name[0].lower() + name[1:]


def _some(names: Sequence[str]) -> str:
    return _listed(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def notes(comparison: DatasetComparison) -> list[str]:
    """Notes to read before comparing datasets."""
    sentences = []
    joined = list(comparison.numbers.get("coarsity", {}))
    if len(joined) > 1:
        total = len({node for name in joined for node in _nodes(comparison.side(name))})
        sentences.append(
            f"Semantic distances are in one graph of all {total:,} classes. Coarsity on a dataset's own taxonomy, as "
            "on other pages, depends on its number of classes and is not comparable."
        )
    if shared := _shared(comparison.sides):
        sentences.append(f"{shared} This makes differences smaller.")
    if comparison.backbone:
        sentences.append(
            f"All other measures use {title_of(comparison.backbone)} features. Values of different backbones, or of "
            "different numbers of classes per task, are not comparable."
        )
    return sentences


def _nodes(side: DatasetSplit) -> list[str]:
    return side.dataset.classes.loc[side.class_ids, "node"].astype(str).tolist()


def _shared(sides: Sequence[DatasetSplit]) -> str:
    """A sentence if two splits of one dataset have classes in common."""
    for i, side in enumerate(sides):
        for later in sides[i + 1 :]:
            if side.dataset.name != later.dataset.name:
                continue
            if n := len(np.intersect1d(side.class_ids, later.class_ids)):
                return f"{side.title} and {later.title} have {n:,} classes in common."
    return ""
