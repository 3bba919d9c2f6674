"""A comparison in words: the headline, and notes on what the datasets share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsviz.analyses.compare_datasets.measuring import (
    ACCURACY,
    DatasetComparison,
    DatasetSplit,
    is_semantic,
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


def headline(comparison: DatasetComparison, other: str, first: str = "") -> str:
    """Is the first side harder than the other one, in what, in what not, and what is not known."""
    first = first or comparison.sides[0].name
    rows = [d for d in differences(comparison, first) if d.other == other]
    mine, theirs = comparison.side(first).title, comparison.side(other).title
    firm = [d for d in rows if d.verdict in ("harder", "easier")]
    here = [d for d in rows if d.verdict == "noise" and d.here != "noise"]
    noise = [_name(comparison, d) for d in rows if d.verdict == d.here == "noise"]
    more = []
    if firm:
        sentence = f"{mine} is {_parted(comparison, firm, f' than {theirs}')}"
    elif here:
        sentence = f"Nothing parts {mine} from {theirs} beyond what other classes of the same kind could overturn"
    elif noise:
        sentence = f"Nothing that is known of both parts {mine} from {theirs} beyond noise"
    else:
        sentence = f"Nothing is known of both {mine} and {theirs} that could be compared"
    if here:
        more.append(
            f"For these very classes it is {_parted(comparison, here)}"
            + (", which other classes of the same kind could overturn." if firm else ".")
        )
    more += [f"Not beyond noise: {_listed(noise)}."] if noise else []
    reasons: dict[str, list[str]] = {}
    for d in rows:
        if d.verdict == "unknown":
            reasons.setdefault(d.why, []).append(_name(comparison, d))
    more += [f"Unknown: {_some(names)}. {why.rstrip('.')}." for why, names in reasons.items()]
    return " ".join([f"{sentence}.", *more, *meaning_checked(comparison, first, other)])


def meaning_checked(comparison: DatasetComparison, first: str, other: str) -> list[str]:
    """Whether another distance says the same of coarsity: a sentence, where it does not."""
    if not {first, other} <= set(comparison.check) or not {first, other} <= set(comparison.numbers.get("coarsity", {})):
        return []
    by = difference(comparison, "coarsity", first, other)
    again = _difference_of("coarsity", first, other, comparison.check[first], comparison.check[other])
    if by.verdict == again.verdict:
        return []
    says = {"harder": "harder", "easier": "easier", "noise": "no different beyond noise"}
    kind = DISTANCES[other_distance(comparison.spec["distance"])].title
    return [f"In meaning that depends on the distance: by {kind} the first is {says[again.verdict]}."]


def _parted(comparison: DatasetComparison, rows: Sequence[MeasureDifference], than: str = "") -> str:
    """In what the first side is harder, and in what easier: accuracy first, then what is clearest."""
    rows = sorted(rows, key=lambda d: (d.measure != ACCURACY, -abs(d.effect)))
    parts: list[str] = []
    for verdict in dict.fromkeys(d.here for d in rows):
        mine = [d for d in rows if d.here == verdict]
        told = _with_numbers(comparison, mine[:MAX_NAMED])
        more = f" and {len(mine) - MAX_NAMED} more" if len(mine) > MAX_NAMED else ""
        parts += [f"{verdict}{'' if parts else than} {_listed(told)}{more}"] if told else []
    return ", and ".join(parts)


def _with_numbers(comparison: DatasetComparison, rows: Sequence[MeasureDifference]) -> list[str]:
    """Measures with the means of both sides; those of meaning together."""
    said: dict[str, list[str]] = {}
    for d in rows:
        one, two = (
            format_value(comparison.numbers[d.measure][name].estimate.mean, d.measure) for name in (d.first, d.other)
        )
        against, name = f"{one} against {two}", _name(comparison, d)
        if is_semantic(d.measure):
            said.setdefault("in meaning", []).append(f"mean {name} {against}")
        else:
            by = f"for {METHODS[comparison.spec['method']].title}" if d.measure == ACCURACY else f"by {name}"
            said[by] = [against]
    return [f"{by} ({'; '.join(numbers)})" for by, numbers in said.items()]


def _name(comparison: DatasetComparison, d: MeasureDifference) -> str:
    if d.measure == ACCURACY:
        return "accuracy"
    name = MEASURES[d.measure].title
    return name if name[:2].isupper() or "-" in name.split()[0] else name[0].lower() + name[1:]


def _some(names: Sequence[str]) -> str:
    return _listed(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def notes(comparison: DatasetComparison) -> list[str]:
    """Notes to read before comparing two datasets."""
    said = []
    joined = list(comparison.numbers.get("coarsity", {}))
    if len(joined) > 1:
        n = {name: len(comparison.side(name).class_ids) for name in joined}
        total = len({node for name in joined for node in _nodes(comparison.side(name))})
        said.append(
            f"Distances in meaning are in one graph of all {total:,} classes, each counting once. On its own taxonomy "
            "a side has another coarsity, which other pages show: its scale follows the number of classes "
            f"({', '.join(f'{comparison.side(name).title}: {many:,}' for name, many in n.items())}), so those are not "
            "comparable."
        )
    shared = _shared(comparison.sides)
    if shared:
        said.append(f"{shared} Differences are then smaller than between sets without common classes.")
    if comparison.backbone:
        said.append(
            f"Everything else is under {title_of(comparison.backbone)}: numbers of different backbones, or of "
            "different numbers of classes per task, are not comparable."
        )
    return said


def _nodes(side: DatasetSplit) -> list[str]:
    return side.dataset.classes.loc[side.class_ids, "node"].astype(str).tolist()


def _shared(sides: Sequence[DatasetSplit]) -> str:
    """A sentence where two splits of one dataset have classes in common."""
    for i, one in enumerate(sides):
        for two in sides[i + 1 :]:
            n = len(np.intersect1d(one.class_ids, two.class_ids)) if one.dataset.name == two.dataset.name else 0
            if n:
                return f"{one.title} and {two.title} have {n:,} classes in common."
    return ""
