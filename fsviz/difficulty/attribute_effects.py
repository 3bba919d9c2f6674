"""Attributes that explain a hard support set: the cost of a gap, times its excess over the gap expected by chance.

    points = (gap of the support - mean gap of random supports of the same task) * cost of a gap of one

A gap is measured class by class (see attribute_gaps) and averaged over the classes of a task. Its cost is measured on
random supports of the same tasks, which no search has chosen: inside a task, how much accuracy falls where the gap is
larger (least squares through all tasks, each around its own mean). Tasks share images, so chance is measured: the
values of an attribute are dealt out anew among the images of each class, and the cost is computed again. An attribute
that has nothing to do with the images is one such deal, whatever the number of its values.

An attribute is a reason for one task when its cost is more than chance gives (5%, corrected for the number of
attributes by Holm's method) and its gap is larger than in 95% of the random supports of that very task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.attribute_gaps import MOST_VALUES, Attribute
from fsviz.numerics import holm
from fsviz.records import PAD, Features, Progress, Tasks

N_RANDOM = 39  # random supports of every task: a gap above all of them, or all but one, is among the largest 5%
N_CLASSIFIED = 8  # of them are classified: from these come the costs
N_TASKS = 200  # tasks that costs are measured on, at most
N_SHUFFLES = 200
LEVEL = 0.05
_BLOCK = 4_000_000  # numbers a block of shuffles may hold
_TASKS_AT_ONCE = 500


@dataclass(frozen=True)
class AttributeEffect:
    """Effect of an attribute on the accuracy of one support set of one task.

    points, ci95    what the gap costs beyond that of random supports, in points of accuracy
    gap, by_chance  the gap of the support, and the mean over random supports of the same task
    beyond          share of those random supports that have a smaller gap
    real            whether it is a reason; chance will do if not
    """

    attribute: str
    is_numeric: bool
    points: float
    ci95: float
    gap: float
    by_chance: float
    beyond: float
    real: bool

    @property
    def words(self) -> str:
        """The gap in the average class, compared with random supports, and its cost in points."""
        if self.is_numeric:
            gap = f"shift {self.gap:.1f} SD ({self.by_chance:.1f} with random supports)"
        else:
            gap = f"distribution difference {self.gap:.2f} ({self.by_chance:.2f} with random supports)"
        return f"{self.attribute}: {gap}, about {self.points:.1f} ± {self.ci95:.1f} points."


@dataclass(frozen=True)
class AttributeEffects:
    """Effects of every attribute on the accuracy of the support sets of every task.

    costs      a row per attribute (see cost_table)
    gap        (T, A) of the tasks' own supports, by_chance the mean over random supports, beyond the share of these
               that have a smaller gap
    real       (T, A) whether the attribute is a reason for the task
    """

    attributes: tuple[Attribute, ...]
    costs: pd.DataFrame
    gap: np.ndarray
    by_chance: np.ndarray
    beyond: np.ndarray
    real: np.ndarray

    @property
    def cache_key(self) -> str:
        """Changes when the costs do."""
        return str(self.costs.to_json())

    @property
    def points(self) -> np.ndarray:
        """(T, A) what the gap costs beyond that of random supports, in points of accuracy; NaN where unknown."""
        return (self.gap - self.by_chance) * self.costs["cost"].to_numpy(dtype=float)

    @property
    def ci95(self) -> np.ndarray:
        """(T, A) half-width of the 95% interval of `points`, which is that of the cost."""
        return np.abs(self.gap - self.by_chance) * self.costs["ci95"].to_numpy(dtype=float)

    def of_task(self, task: int) -> list[AttributeEffect]:
        """Every attribute with a known cost, reasons first, those that cost most on top."""
        points, half = self.points[task], self.ci95[task]
        indices = np.flatnonzero(np.isfinite(points))
        order = sorted(indices, key=lambda a: (not self.real[task, a], -points[a]))
        return [
            AttributeEffect(
                self.attributes[a].name,
                self.attributes[a].is_numeric,
                float(points[a]),
                float(half[a]),
                float(self.gap[task, a]),
                float(self.by_chance[task, a]),
                float(self.beyond[task, a]),
                bool(self.real[task, a]),
            )
            for a in order
        ]

    def reasons(self, task: int) -> list[AttributeEffect]:
        """The reasons of one task, the costliest first; none if no attribute explains it."""
        return [reason for reason in self.of_task(task) if reason.real]

    def largest_effect(self) -> np.ndarray:
        """(T,) place of the costliest reason of every task among the attributes, PAD if there is none."""
        points = np.where(self.real, self.points, -np.inf)
        return np.where(self.real.any(axis=1), points.argmax(axis=1), PAD)


def random_supports(table: Features, tasks: Tasks, n: int, seed: int) -> np.ndarray:
    """(T, n, W, S) image_ids: n random supports of every task, with as many shots per class as it has, from the images
    of its classes that are not its queries and share no group with one."""
    rng = np.random.default_rng(np.random.SeedSequence((seed, 11)))
    n_tasks, n_way, n_shot = tasks.support.shape
    support_ids = np.full((n_tasks, n, n_way, n_shot), PAD, dtype=np.int64)
    shots = (tasks.support != PAD).sum(axis=2)
    for class_id in np.unique(tasks.class_ids[tasks.class_ids != PAD]):
        t, w = np.nonzero((tasks.class_ids == class_id) & (shots > 0))
        image_ids = table.image_ids[table.class_ids == class_id]
        if not len(t) or not len(image_ids):
            continue
        is_query = _is_query(image_ids, tasks.query[t], table.groups)
        keys = rng.random((len(t), n, len(image_ids)), dtype=np.float32) + 2 * is_query[:, None, :]
        most = min(int(shots[t, w].max()), len(image_ids))
        order = np.argsort(keys, axis=2)[:, :, :most] if most > 1 else keys.argmin(axis=2)[..., None]
        sampled = np.where(np.take_along_axis(keys, order, axis=2) < 1, image_ids[order], PAD)
        sampled[np.broadcast_to(np.arange(most) >= shots[t, w][:, None, None], sampled.shape)] = PAD
        support_ids[t, :, w, :most] = sampled
    return support_ids


def pool_sizes(table: Features, tasks: Tasks) -> np.ndarray:
    """(T, W) images that each class of a task could have in its support; 0 if a task has fewer classes."""
    sizes = np.zeros(tasks.class_ids.shape, dtype=np.int64)
    for class_id in np.unique(tasks.class_ids[tasks.class_ids != PAD]):
        t, w = np.nonzero(tasks.class_ids == class_id)
        image_ids = table.image_ids[table.class_ids == class_id]
        if len(image_ids):
            sizes[t, w] = (~_is_query(image_ids, tasks.query[t], table.groups)).sum(axis=1)
    return sizes


def _is_query(image_ids: np.ndarray, query: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """(E, n) whether each of the images is a query of a task (query (E, W, Q)), or of a group with one."""
    names = np.arange(int(max(image_ids.max(), query.max(initial=0))) + 1) if groups is None else groups
    of_image, inverse = np.unique(names[image_ids], return_inverse=True)
    flat = query.reshape(len(query), -1)
    query_groups = names[np.maximum(flat, 0)]
    place = np.minimum(np.searchsorted(of_image, query_groups), len(of_image) - 1)
    entry, slot = np.nonzero((flat != PAD) & (of_image[place] == query_groups))
    met = np.zeros((len(query), len(of_image)), dtype=bool)
    met[entry, place[entry, slot]] = True
    return met[:, inverse]


def one_by_one(tasks: Tasks, supports: np.ndarray) -> Tasks:
    """Tasks (T * n) of n supports each (T, n, W, S), those of a task side by side."""
    n = supports.shape[1]
    again = tasks.take(np.repeat(np.arange(len(tasks)), n))
    return replace(again, support=supports.reshape(-1, *supports.shape[2:]))


def explain(
    attributes: Sequence[Attribute],
    tasks: Tasks,
    costs: pd.DataFrame,
    table: Features,
    seed: int,
    progress: Progress | None = None,
) -> AttributeEffects:
    """Why the tasks' own supports are harder than random ones, attribute by attribute, by these costs."""
    parts = []
    for start in range(0, len(tasks), _TASKS_AT_ONCE):
        if progress is not None:
            progress(start, len(tasks), "gaps of random supports")
        part = tasks.take(slice(start, start + _TASKS_AT_ONCE))
        supports = random_supports(table, part, N_RANDOM, seed + start)
        own = np.stack([attribute_gaps.measure_gap(a, part, by="class").gap for a in attributes], axis=1)
        parts.append((own, gaps_of_supports(attributes, part, supports)))
    gap = np.concatenate([own for own, _ in parts])
    random = np.concatenate([random_gap for _, random_gap in parts])
    with np.errstate(invalid="ignore"):
        by_chance = random.mean(axis=1)
        smaller = (random < gap[:, None] - 1e-9).sum(axis=1)
    rare = (1 + N_RANDOM - smaller) / (1 + N_RANDOM) <= LEVEL + 1e-9
    costly = (costs["significant"] & (costs["cost"] > 0)).to_numpy(dtype=bool)
    return AttributeEffects(
        tuple(attributes), costs, gap, by_chance, smaller / N_RANDOM, rare & costly & (gap > by_chance)
    )


def gaps_of_supports(attributes: Sequence[Attribute], tasks: Tasks, supports: np.ndarray) -> np.ndarray:
    """Gap (T, n, A) of n supports of every task (T, n, W, S), class by class."""
    every = one_by_one(tasks, supports)
    gaps = [attribute_gaps.measure_gap(attribute, every, by="class").gap for attribute in attributes]
    return np.stack(gaps, axis=1).reshape(*supports.shape[:2], len(attributes))


def cost_table(
    attributes: Sequence[Attribute],
    tasks: Tasks,
    supports: np.ndarray,
    accuracy: np.ndarray,
    image_class_ids: np.ndarray,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Cost of a gap of one in points of accuracy, one attribute per row, compared with the cost expected by chance.

    supports  (T, n, W, S) random supports of the tasks, and accuracy (T, n) with each of them, from 0 to 1
    Columns attribute, kind ("share" or "deviations"), cost, ci95 (how far 95% of the deals stray), p (two-sided),
    spread (deviation of the gap inside tasks), n_tasks, p_holm and significant. NaN if no gap differs inside a task.
    """
    from scipy import stats

    gaps = gaps_of_supports(attributes, tasks, supports)
    fallen = -100 * (accuracy - accuracy.mean(axis=1, keepdims=True))  # points lost against the task's own mean
    if fallen.any():
        dealt = _dealt_costs(attributes, tasks, supports, fallen, image_class_ids, progress)
    else:  # every support is as good as every other: nothing costs anything
        dealt = np.full((len(attributes), N_SHUFFLES), np.nan)
    rows = []
    for attribute, gap, chance in zip(attributes, np.moveaxis(gaps, 2, 0), dealt, strict=True):
        cost = float(_slope(gap[..., None], fallen)[0])
        inside = gap - gap.mean(axis=1, keepdims=True)
        spread = float(np.sqrt(np.nanmean(inside**2))) if np.isfinite(inside).any() else np.nan
        finite = chance[np.isfinite(chance)]
        half = p = np.nan
        if len(finite) > 2 and finite.std() > 0 and np.isfinite(cost):
            error = float(finite.std(ddof=1)) * np.sqrt(1 + 1 / len(finite))  # the cost is one more such draw
            half = float(stats.t.ppf(1 - LEVEL / 2, len(finite) - 1)) * error
            p = float(2 * stats.t.sf(abs(cost - finite.mean()) / error, len(finite) - 1))
        kind = "deviations" if attribute.is_numeric else "share"
        rows.append((attribute.name, kind, cost if np.isfinite(half) else np.nan, half, p, spread, len(tasks)))
    table = pd.DataFrame(rows, columns=["attribute", "kind", "cost", "ci95", "p", "spread", "n_tasks"])
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    return table.assign(significant=table["p_holm"] < LEVEL)


def _slope(gap: np.ndarray, fallen: np.ndarray) -> np.ndarray:
    """Least squares (S,) of fallen (t, m) on gap (t, m, S), each task around its own mean; NaN where gaps are equal.

    Tasks in which a gap is unknown are excluded."""
    inside = gap - gap.mean(axis=1, keepdims=True)
    inside = np.where(np.isfinite(inside).all(axis=1, keepdims=True), inside, 0)
    square = (inside**2).sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(square > 1e-9, np.einsum("tms,tm->s", inside, fallen) / square, np.nan)


def _dealt_costs(
    attributes: Sequence[Attribute],
    tasks: Tasks,
    supports: np.ndarray,
    fallen: np.ndarray,
    image_class_ids: np.ndarray,
    progress: Progress | None,
    seed: int = 0,
) -> np.ndarray:
    """Costs (A, N_SHUFFLES) when the values of each attribute are dealt out anew among the images of every class."""
    n_tasks, n, n_way, _ = supports.shape
    deals = attribute_gaps.LabelShuffles(tasks.class_ids, image_class_ids, seed)
    support = deals.membership(supports.reshape(n_tasks * n * n_way, -1))
    query = deals.membership(tasks.query.reshape(n_tasks * n_way, -1))
    which = (np.arange(n_tasks)[:, None, None] * n_way + np.arange(n_way)).repeat(n, axis=1).ravel()
    block = int(np.clip(_BLOCK // max(len(which), deals.n_places), 1, N_SHUFFLES))
    slope_blocks = []
    n_blocks = -(-N_SHUFFLES // block)
    for i, start in enumerate(range(0, N_SHUFFLES, block)):
        size = min(block, N_SHUFFLES - start)
        dealt = deals.deal(size)
        slopes = []
        for a, attribute in enumerate(attributes):
            if progress is not None:
                progress(i * len(attributes) + a, n_blocks * len(attributes), f"chance, {attribute.name}")
            if not attribute.is_numeric and len(attribute.values) > MOST_VALUES:
                slopes.append(np.full(size, np.nan))
                continue
            gap = attribute_gaps.gaps_of(attribute, dealt, support, query, which).reshape(n_tasks, n, n_way, size)
            finite = np.isfinite(gap)
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.where(finite, gap, 0).sum(axis=2) / finite.sum(axis=2)
            slopes.append(_slope(mean, fallen))
        slope_blocks.append(slopes)
    return np.concatenate(slope_blocks, axis=1)
