"""Attribute gaps between support and query images: contexts, styles, blur, brightness (Basu et al. 2023).

Categorical attributes: the share of every value among support images minus its share among query images. Their gap is
half the sum of the absolute differences: 0 when the shares agree, 1 when support and query have no value in common.
Numeric attributes: mean of the support minus mean of the query, in standard deviations over the whole dataset; the gap
is its absolute value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.numerics import holm, nanmean_rows
from fsviz.records import PAD, Dataset, Tasks

N_SHUFFLES = 200
MOST_VALUES = 64
_BLOCK = 4_000_000  # numbers a block of shuffles may hold


@dataclass(frozen=True)
class Attribute:
    """One attribute of every image_id (N,): codes into `values`, or numbers in `numbers`.

    codes are PAD and numbers NaN if the table has no entry.
    """

    name: str
    values: tuple[str, ...] = ()
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    deviation: float = 1.0

    @property
    def is_numeric(self) -> bool:
        return self.numbers.size > 0


@dataclass(frozen=True)
class AttributeGap:
    """Difference of one attribute between the support and the queries of every task.

    gap (T,)             0 is no difference; NaN if one side has no entry
    support, query       shares of every value (T, V) for a categorical attribute, means (T,) for a numeric one
    """

    attribute: Attribute
    gap: np.ndarray
    support: np.ndarray
    query: np.ndarray


@dataclass(frozen=True)
class AttributeDifference:
    """The plainest single statement about an attribute in one task, ready to be read or drawn."""

    attribute: str
    value: str  # the value whose share differs most; "" for a numeric attribute
    support: float  # its share, or the mean
    query: float
    gap: float
    words: str

    @property
    def short(self) -> str:
        """The same in a few words."""
        if self.value:
            return f"{self.attribute}: {self.support:.0%} {self.value}, query {self.query:.0%}"
        return f"{self.attribute}: {self.support:.2f}, query {self.query:.2f}"


def attribute_names(dataset: Dataset) -> list[str]:
    """Attributes in which images of a dataset differ, its context first: one that is the same in all tells nothing."""
    if dataset.images is None:
        return []
    has_context = "context" in dataset.images.columns
    names = (["context"] if has_context else []) + [a for a in dataset.attributes if a != "context"]
    return [name for name in names if _differs(dataset, name)]


def _differs(dataset: Dataset, name: str) -> bool:
    return dataset.images is not None and name in dataset.images.columns and dataset.images[name].nunique() > 1


def require_attributes(dataset: Dataset) -> list[str]:
    """The attributes, or a sentence on how to add some."""
    names = attribute_names(dataset)
    if not names:
        raise Missing(
            f"{dataset.title} has no attributes, so support and query can only be compared by eye. Add columns such as "
            "blur or style to the CSV (path,class,blur,...) and import it with 'python -m fsviz add NAME PATH'."
        )
    return names


def read_attribute(dataset: Dataset, name: str) -> Attribute:
    """One attribute of a dataset; numbers with more than two values are numeric, everything else is categorical."""
    if name not in ("context", *dataset.attributes) or not _differs(dataset, name):
        raise UnknownName("attribute", name, attribute_names(dataset), f"Those are the attributes of {dataset.title}.")
    assert dataset.images is not None  # it has attributes
    column = dataset.images[name]
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column) and column.nunique() > 2:
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
        deviation = float(np.nanstd(numbers))
        return Attribute(name, numbers=numbers, deviation=deviation if deviation > 0 else 1.0)
    codes, values = pd.factorize(column, sort=True, use_na_sentinel=True)
    return Attribute(name, tuple(_value_words(name, v) for v in values), codes=np.asarray(codes, dtype=np.int64))


def measure_gap(attribute: Attribute, tasks: Tasks, by: str = "task") -> AttributeGap:
    """The gap of every task between all its support and all its query images.

    by  "task" compares the two halves as a whole, as the paper does; "class" compares them class by class and takes
        the mean, which also sees shifts of opposite direction in two classes.
    """
    if by not in ("task", "class"):
        raise BadInput(f"Gaps are measured by 'task' or by 'class'. Got {by!r}.")
    if not tasks.has_images:
        raise BadInput("These tasks name classes only, so they have no attributes to compare.")
    sides = []
    for image_ids in (tasks.support, tasks.query):
        whole = image_ids.reshape(len(tasks), 1, -1) if by == "task" else image_ids
        sides.append(_means(attribute, whole) if attribute.is_numeric else _shares(attribute, whole))
    support, query = sides
    with np.errstate(invalid="ignore"):
        if attribute.is_numeric:
            gap = np.abs(support - query) / attribute.deviation
        else:
            gap = 0.5 * np.abs(support - query).sum(axis=2)
    return AttributeGap(attribute, *(nanmean_rows(values, axis=1) for values in (gap, support, query)))


def measure_gaps(dataset: Dataset, tasks: Tasks, by: str = "task") -> dict[str, AttributeGap]:
    """The gaps of all attributes of a dataset."""
    return {name: measure_gap(read_attribute(dataset, name), tasks, by) for name in require_attributes(dataset)}


def gap_table(dataset: Dataset, sets: dict[str, Tasks], by: str = "task") -> pd.DataFrame:
    """Mean gap of every attribute over the tasks of every set ("hard", "random", "easy"), against what chance gives.

    Tasks share images, so their gaps are not independent. What chance gives is measured: the values of an attribute
    are dealt out anew among the images of each class, many times, and the gaps of the same tasks are taken again.
    Columns attribute, kind ("share" or "deviations"), set, gap, chance (mean over the shuffles), ci95 (how far 95% of
    the shuffles stray from it), p (two-sided, of the gap against chance), n_tasks, p_holm (corrected for the number of
    gaps that are compared with chance: all but those of random sets) and significant (p_holm below 5%).
    """
    from scipy import stats

    attributes = [read_attribute(dataset, name) for name in require_attributes(dataset)]
    rows = []
    for set_name, tasks in sets.items():
        shuffled = shuffled_gaps(attributes, tasks, dataset.image_class_ids(), by)
        for attribute, dealt in zip(attributes, shuffled, strict=True):
            gap = measure_gap(attribute, tasks, by).gap
            mean, chance, spread = float(nanmean_rows(gap)), float(dealt.mean()), float(dealt.std(ddof=1))
            half = float(stats.t.ppf(0.975, N_SHUFFLES - 1)) * spread
            p = _p_of_shuffles(mean, dealt) if set_name != "random" else np.nan
            kind = "deviations" if attribute.is_numeric else "share"
            rows.append((attribute.name, kind, set_name, mean, chance, half, p, int(np.isfinite(gap).sum())))
    table = pd.DataFrame(rows, columns=["attribute", "kind", "set", "gap", "chance", "ci95", "p", "n_tasks"])
    table["p_holm"] = holm(table["p"].to_numpy())
    return table.assign(significant=table["p_holm"] < 0.05)


def _p_of_shuffles(value: float, shuffled: np.ndarray) -> float:
    """Two-sided p of a value among shuffles: NaN if they do not differ.

    Counting shuffles beyond the value would need thousands of them to survive a correction for many attributes, so a
    curve is laid through them: with the skew they have upwards (few images make long tails), without it downwards.
    """
    from scipy import stats

    spread = shuffled.std(ddof=1)
    if not spread > 0:
        return float("nan")
    z = (value - shuffled.mean()) / spread
    tail = stats.pearson3.sf(z, max(float(stats.skew(shuffled)), 0.0)) if z > 0 else stats.norm.cdf(z)
    return float(min(1.0, 2 * tail))


def shuffled_gaps(
    attributes: Sequence[Attribute],
    tasks: Tasks,
    image_class_ids: np.ndarray,
    by: str = "task",
    n_shuffles: int = N_SHUFFLES,
    seed: int = 0,
) -> np.ndarray:
    """Mean gap of the tasks (A, n_shuffles) when the values of A attributes are dealt out anew within every class.

    The mean gap of the real values is one draw from the same distribution if an attribute has nothing to do with how
    support and query were chosen. NaN for an attribute of more than MOST_VALUES values: that is a name, not a trait.
    """
    n_groups = len(tasks) * (1 if by == "task" else tasks.n_way)
    deals = LabelShuffles(tasks.class_ids, image_class_ids, seed)
    support, query = (deals.membership(ids.reshape(n_groups, -1)) for ids in (tasks.support, tasks.query))
    block = int(np.clip(_BLOCK // max(n_groups, deals.n_places), 1, n_shuffles))
    means = []
    for start in range(0, n_shuffles, block):
        size = min(block, n_shuffles - start)
        dealt = deals.deal(size)
        gaps = (gaps_of(attribute, dealt, support, query) for attribute in attributes)
        by_deal = (nanmean_rows(gap.reshape(len(tasks), -1, size), axis=1) for gap in gaps)
        means.append([nanmean_rows(gaps_of_deal[None], axis=1)[0] for gaps_of_deal in by_deal])
    return np.concatenate(means, axis=1)


class LabelShuffles:
    """Deals the images of every class out anew among their places: what chance would make of an attribute."""

    def __init__(self, class_ids: np.ndarray, image_class_ids: np.ndarray, seed: int = 0) -> None:
        held = np.flatnonzero(np.isin(image_class_ids, class_ids) & (image_class_ids != PAD))
        self._held = held[np.argsort(image_class_ids[held], kind="stable")]
        self._class_ids = image_class_ids[self._held]
        self._place = np.full(len(image_class_ids), PAD)
        self._place[self._held] = np.arange(len(held))
        self._rng = np.random.default_rng(seed)

    @property
    def n_places(self) -> int:
        return len(self._held)

    def deal(self, n: int) -> np.ndarray:
        """(places, n) image_ids: n deals."""
        # sorting by class plus a fraction shuffles inside every class at once
        return self._held[np.argsort(self._class_ids[:, None] + self._rng.random((self.n_places, n)), axis=0)]

    def membership(self, image_ids: np.ndarray) -> Any:
        """Sparse matrix (G, places): number of times each group (row of image_ids, padded) holds each place."""
        from scipy.sparse import csr_array

        places = np.where(image_ids == PAD, PAD, self._place[image_ids])
        used = places != PAD
        ones = np.ones(int(used.sum()), dtype=np.float32)
        return csr_array((ones, (np.nonzero(used)[0], places[used])), shape=(len(places), self.n_places))


def gaps_of(
    attribute: Attribute, images: np.ndarray, support: Any, query: Any, which: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Gap (G, R) of G groups when place n holds the values of image images[n, r].

    support, query  (G, places) counts (see Deals.membership)
    which           the row of `query` that belongs to each group, where several groups share one
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if attribute.is_numeric:
            numbers = ((attribute.numbers - np.nanmean(attribute.numbers)) / attribute.deviation)[images]
            finite, filled = np.isfinite(numbers).astype(np.float32), np.nan_to_num(numbers).astype(np.float32)
            support_mean, query_mean = ((side @ filled) / (side @ finite) for side in (support, query))
            return np.abs(support_mean - query_mean[which])
        if len(attribute.values) > MOST_VALUES:
            return np.full((support.shape[0], images.shape[1]), np.nan)
        codes = attribute.codes[images]
        n_support, n_query = (side @ (codes != PAD).astype(np.float32) for side in (support, query))
        gap = np.zeros_like(n_support)
        for value in range(len(attribute.values)):
            has = (codes == value).astype(np.float32)
            gap += 0.5 * np.abs((support @ has) / n_support - ((query @ has) / n_query)[which])
        return gap


def differences(gaps: dict[str, AttributeGap], task: int, most: int | None = None) -> list[AttributeDifference]:
    """The attributes of one task, those that differ most first.

    Shares and deviations are put on one scale by 1 - exp(-gap) for numeric ones: one deviation counts as 63 points.
    """
    ranked = []
    for name, gap in gaps.items():
        if not np.isfinite(gap.gap[task]):
            continue
        if gap.attribute.is_numeric:
            ranked.append(_numeric_difference(name, gap, task))
        else:
            ranked.append(_categorical_difference(name, gap, task))
    ranked.sort(key=lambda pair: -pair[0])
    return [difference for _, difference in ranked[:most]]


def class_differences(
    dataset: Dataset, tasks: Tasks, task: int, most: int | None = None
) -> list[list[AttributeDifference]]:
    """For every class of one task, how its own support and query images differ; the largest difference first.

    A class has few images, so such differences also come about by chance: compare with a random support.
    """
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    alone = Tasks(
        tasks.class_ids[task][used][:, None], tasks.support[task][used][:, None], tasks.query[task][used][:, None]
    )
    gaps = measure_gaps(dataset, alone)
    return [differences(gaps, way, most) for way in range(len(used))]


def _categorical_difference(name: str, gap: AttributeGap, task: int) -> tuple[float, AttributeDifference]:
    change = gap.support[task] - gap.query[task]
    # of values that differ equally, the one that support has more of: "support: 80% night"
    widest = int(np.argmax(np.abs(change) + 1e-9 * (change > 0)))
    value, s, q = gap.attribute.values[widest], float(gap.support[task, widest]), float(gap.query[task, widest])
    words = f"{name}: support {s:.0%} {value}, query {q:.0%} {value}"
    return float(gap.gap[task]), AttributeDifference(name, value, s, q, float(gap.gap[task]), words)


def _numeric_difference(name: str, gap: AttributeGap, task: int) -> tuple[float, AttributeDifference]:
    s, q, size = float(gap.support[task]), float(gap.query[task]), float(gap.gap[task])
    way = "higher" if s > q else "lower"
    words = f"{name}: support {s:.2f} on average, query {q:.2f} ({size:.1f} standard deviations {way} in the support)"
    return 1 - float(np.exp(-size)), AttributeDifference(name, "", s, q, size, words)


def _shares(attribute: Attribute, image_ids: np.ndarray) -> np.ndarray:
    """Share of every value (T, G, V) among groups of image_ids (T, G, n); NaN for a group without entries."""
    codes = np.where(image_ids == PAD, PAD, attribute.codes[image_ids])
    n_values = len(attribute.values)
    n_groups = codes.shape[0] * codes.shape[1]
    flat = codes.reshape(n_groups, -1)
    group = np.broadcast_to(np.arange(n_groups)[:, None], flat.shape)
    counted = flat != PAD
    counts = np.bincount(group[counted] * n_values + flat[counted], minlength=n_groups * n_values)
    counts = counts.reshape(*codes.shape[:2], n_values).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts / counts.sum(axis=2, keepdims=True)


def _means(attribute: Attribute, image_ids: np.ndarray) -> np.ndarray:
    """Mean number (T, G) of groups of image_ids (T, G, n)."""
    return nanmean_rows(np.where(image_ids == PAD, np.nan, attribute.numbers[image_ids]), axis=2)


def _value_words(name: str, value: object) -> str:
    """A value as it reads in a sentence: yes/no attributes carry their name."""
    if isinstance(value, bool | np.bool_):
        return name if value else f"not {name}"
    return str(value)
