"""Why does accuracy vary from task to task: the classes, the labelled images, or the queries?

A part of the prediction study (Bontonou et al. 2020, algorithms 1 to 3): the standard deviation of the accuracy over
random tasks, over tasks of the same classes, and over tasks that take fixed support images for every class. What the
choice of queries adds is known from the answers to each task's own, so that the variance falls into three parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from fsviz import sampling
from fsviz.numerics import mean_and_ci95
from fsviz.records import Dataset, Features, Tasks
from fsviz.settings import Unchecked
from fsviz.studies import draw

if TYPE_CHECKING:
    from fsviz.studies.prediction import Cell, Spec


class Spread(TypedDict, total=False):
    """How far accuracies of one kind of tasks spread: standard deviation and 95% interval, None where not known."""

    cause: str
    std: Any
    ci95: Any
    std_of_std: float | None
    n_sets: int
    n_tasks: int


class Part(TypedDict):
    """What the variance is due to: the share of one cause with its 95% interval."""

    cause: str
    variance: float
    share: float | None
    low: float
    high: float


class Parts(TypedDict):
    """The variance in its parts."""

    total_std: float
    parts: list[Part]


class Summary(TypedDict, total=False):
    """What `summary` says; the parts are there once enough tasks are."""

    spread: list[Spread]
    parts: Parts
    n_tasks: int


PARTS = ("classes", "support", "queries")
N_POOLS = 4  # sets of queries that tasks with fixed support images draw theirs from


def draw_fixed(cell: Cell, dataset: Dataset, table: Features, shots: bool) -> Tasks:
    """side x side tasks: of `side` sets of classes (or of `side` choices of support images for every class), each the
    same in `side` tasks that follow one another. Every task has queries of its own."""
    spec = cell.spec
    side = round(cell.n_tasks**0.5)
    class_ids = dataset.split_class_ids(spec["split"])
    groups = dataset.image_groups() if spec.get("keep_groups", True) else None
    of_image = table.image_class_ids(len(dataset.image_class_ids()))
    names = dataset.classes["class_name"].astype(str).tolist()

    def dealt(sets: np.ndarray, n_query: int) -> Tasks:
        return sampling.assign_images(Tasks(sets), of_image, spec["n_shot"], n_query, spec["seed"] + 1, groups, names)

    def chosen(n_tasks: int) -> np.ndarray:
        settings = {name: cast(Unchecked, spec)[name] for name in draw.OWN if name in spec}
        common: dict[str, Any] = {name: spec[name] for name in ("split", "sampler", "distance", "dag", "seed")}
        backbone: dict[str, Any] = (
            {"backbone": spec["backbone"]} if draw.DISTANCES[spec["distance"]].needs == "features" else {}
        )
        return draw.sample(dataset, **settings, **common, **backbone, n_tasks=n_tasks).tasks.class_ids

    if not shots:
        return dealt(chosen(side).repeat(side, axis=0), spec["n_query"])
    left = int(np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids].min()) - spec["n_shot"]
    pool = max(spec["n_query"], min(left, N_POOLS * spec["n_query"]))
    every = dealt(np.tile(class_ids, (side, 1)), pool)  # support and queries of all classes, `side` times
    sets = chosen(side * side)
    at = Tasks(sets).positions(class_ids)
    outer = np.arange(side).repeat(side)[:, None]
    queries = every.query[outer, at]
    luck = np.random.default_rng(spec["seed"]).random(queries.shape).argsort(2)[:, :, : spec["n_query"]]
    return Tasks(sets, every.support[outer, at], np.take_along_axis(queries, luck, 2))


def accuracies(spec: Spec, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    """accuracy (T,) of every task, and luck (T,): the variance that another choice of as many queries adds to it.

    Where a share p of the n queries of a class is right, drawn from the R images that the support leaves, its variance
    is p (1 - p) / (n - 1) * (1 - n / R).
    """
    import torch

    from fsviz.difficulty.predictors import views

    n_way, n_query = tasks.query.shape[1:]
    left = np.bincount(table.class_ids)[tasks.class_ids] - tasks.support.shape[2]
    share = np.empty(tasks.class_ids.shape)
    with torch.inference_mode():
        for where, view in views(table, tasks, spec["setting"], spec["neighbours"]):
            right = (view.predicted == view.query_labels).numpy()
            share[where] = right.reshape(len(where), n_way, n_query).mean(2)
    luck = share * (1 - share) / max(n_query - 1, 1) * (1 - n_query / left)
    return {"accuracy": share.mean(1), "luck": luck.sum(1) / n_way**2}


def summary(spec: Spec, measured: Sequence[Mapping[str, np.ndarray]]) -> Summary:
    """Standard deviations (fractions) of the three algorithms over what is finished, and the parts of the variance."""
    from fsviz.studies.prediction import CAUSES, cells

    result: Summary = {"spread": []}
    for cell, found in zip(cells(spec), measured, strict=False):
        side, accuracy = round(cell.n_tasks**0.5), found["accuracy"]
        if cell.value == CAUSES[0]:
            deviation, half, n = _deviation(accuracy)
            row: Spread = {"cause": str(cell.value), "std": deviation, "ci95": half, "n_sets": 1, "n_tasks": n}
        else:
            whole = len(accuracy) // side
            accuracy, luck = (found[name][: whole * side].reshape(whole, side) for name in ("accuracy", "luck"))
            stds = accuracy.std(1, ddof=1) if whole else np.full(1, np.nan)
            mean, around = mean_and_ci95(stds)
            row = {
                "cause": str(cell.value),
                "std": float(mean),
                "ci95": float(around),
                "std_of_std": float(stds.std(ddof=1)) if whole > 1 else None,
                "n_sets": whole,
                "n_tasks": whole * side,
            }
            if cell.value == CAUSES[1] and whole > 1 and spec["n_query"] > 1:  # one answer has no variance to be seen
                result["parts"] = variance_parts(accuracy, luck)
        result["spread"].append(row)
    return {**result, "n_tasks": int(sum(row["n_tasks"] for row in result["spread"]))}


def variance_parts(accuracy: np.ndarray, luck: np.ndarray) -> Parts:
    """Shares of the variance of accuracies (sets of classes, supports) by cause, with 95% intervals.

    What queries add is known for every task (luck, of the same shape); what the support adds is the rest of the
    variance within a set of classes; what is left is due to the classes.
    """
    parts = _parts(accuracy, luck)
    low, high = _shares(accuracy, luck)
    total = float(parts.sum())
    return {
        "total_std": float(np.sqrt(total)),
        "parts": [
            {
                "cause": name,
                "variance": float(v),
                "share": float(v / total) if total else None,
                "low": least,
                "high": most,
            }
            for name, v, least, most in zip(PARTS, parts, low.tolist(), high.tolist(), strict=True)
        ],
    }


def _shares(accuracy: np.ndarray, luck: np.ndarray, n_draws: int = 4000) -> np.ndarray:
    """Ends (2, 3) of the 95% intervals of the shares, over sets of classes (generalised intervals, Weerahandi 1993).

    Each variance is drawn as what may lie behind the one that was seen: n times it over a chi-square number with n
    degrees of freedom. A dozen sets know their variance badly, and drawing them with replacement would hide that: such
    intervals held the true share in 80% of simulated studies, these in 95% (in 90% where a few sets are far harder).
    """
    random = np.random.default_rng(0)
    n_sets, n_tasks = accuracy.shape
    means, within = accuracy.mean(1), accuracy.var(1, ddof=1)

    def behind(variance: float, freedom: float) -> np.ndarray:
        return variance * freedom / random.chisquare(freedom, n_draws)

    def pooled(each: np.ndarray) -> float:
        """Degrees of freedom of a mean of variances, by how far these differ."""
        most, spread = n_sets * (n_tasks - 1), each.var(ddof=1)
        return min(most, 2 * n_sets * each.mean() ** 2 / spread) if spread else most

    tails = ((means - means.mean()) ** 4).mean() / max(means.var() ** 2, 1e-30) - 3  # above 0: rare sets far away
    between = behind(means.var(ddof=1), (n_sets - 1) / (1 + max(tails, 0.0) / 2))
    inside, queries = behind(within.mean(), pooled(within)), behind(luck.mean(), pooled(luck.mean(1)))
    drawn = np.maximum([between - inside / n_tasks, inside - queries, queries], 0.0)
    return np.quantile(drawn / np.maximum(drawn.sum(0), 1e-30), [0.025, 0.975], axis=1)


def _parts(accuracy: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """Variances due to classes, support and queries (3,), none below zero."""
    within, queries = accuracy.var(1, ddof=1).mean(), luck.mean()
    classes = accuracy.mean(1).var(ddof=1) - within / accuracy.shape[1]
    return np.maximum([classes, within - queries, queries], 0.0)


def _deviation(values: np.ndarray) -> tuple[float, float, int]:
    """Standard deviation of n values, the half-width of its 95% interval from their fourth moment, and n."""
    n = len(values)
    if n < 3:
        return float("nan"), float("nan"), n
    centred = values - values.mean()
    variance = float((centred**2).sum() / (n - 1))
    error = np.sqrt(max(float((centred**4).mean()) - variance**2, 0.0) / n)  # of the variance
    deviation = float(np.sqrt(variance))
    return deviation, 1.96 * error / (2 * deviation) if deviation else 0.0, n
