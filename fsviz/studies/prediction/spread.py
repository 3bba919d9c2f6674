"""Why does accuracy vary from task to task: the classes, the labelled images, or the queries?

A part of the prediction study (Bontonou et al. 2020, algorithms 1 to 3): the standard deviation of the accuracy over
random tasks, over tasks of the same classes, and over tasks that take fixed support images for every class. The
variance falls into three parts: tasks of the same classes vary less than random ones by what the classes add, and what
the choice of queries adds is known from the answers to each task's own. The rest is due to the support.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from fsviz import sampling
from fsviz.numerics import mean_and_ci95
from fsviz.records import Dataset, Features, Tasks
from fsviz.settings import RawSettings
from fsviz.tasks import draw

if TYPE_CHECKING:
    from fsviz.studies.prediction.tasks import Cell, Spec


class Spread(TypedDict, total=False):
    """How far accuracies of one kind of tasks spread: standard deviation (of several sets, the root of their mean
    variance) and half-width of its 95% interval, None where not known."""

    cause: str
    std: Any
    ci95: Any
    n_sets: int
    n_tasks: int


class Part(TypedDict):
    """What the variance is due to: the share of one cause with its 95% interval."""

    cause: str
    variance: float
    share: float
    low: float
    high: float


class Parts(TypedDict):
    """The variance of random tasks in its parts, and the number of sets of classes that tell them apart."""

    total_std: float
    n_sets: int
    parts: list[Part]


class Summary(TypedDict, total=False):
    """What `summary` says; the parts are there once enough tasks are, and `why` says what is missing before."""

    spread: list[Spread]
    parts: Parts
    why: str
    n_tasks: int


CAUSES = ("random tasks", "fixed classes", "fixed shots")
PARTS = ("classes", "support", "queries")
PER_SET = 5  # tasks of one set of classes: many sets of few tasks know the variance within a set best
LEAST_SETS = 20  # sets of classes that tell the parts of the variance apart
N_POOLS = 4  # sets of queries that tasks with fixed support images draw theirs from


def sets_of(cause: str, n_tasks: int) -> tuple[int, int]:
    """Number of sets that share what a cause fixes (classes, or a choice of support images), and tasks of each."""
    if cause == CAUSES[0]:
        return 1, n_tasks
    if cause == CAUSES[1]:
        return max(2, n_tasks // PER_SET), PER_SET
    side = max(2, math.isqrt(n_tasks))
    return side, side


def draw_fixed(cell: Cell, dataset: Dataset, table: Features) -> Tasks:
    """Tasks of several sets of classes (or of several choices of support images for every class), those of one set
    after one another. Every task has queries of its own."""
    spec = cell.spec
    n_sets, each = sets_of(str(cell.value), spec["n_tasks"])
    class_ids = dataset.split_class_ids(spec["split"])
    groups = dataset.image_groups() if spec.get("keep_groups", True) else None
    of_image = table.image_class_ids(len(dataset.image_class_ids()))
    names = dataset.classes["class_name"].astype(str).tolist()

    def dealt(sets: np.ndarray, n_query: int) -> Tasks:
        return sampling.assign_images(Tasks(sets), of_image, spec["n_shot"], n_query, spec["seed"] + 1, groups, names)

    def chosen(n_tasks: int) -> np.ndarray:
        settings = {name: cast(RawSettings, spec)[name] for name in draw.SAMPLER_SETTINGS if name in spec}
        common: dict[str, Any] = {name: spec[name] for name in ("split", "sampler", "distance", "dag", "seed")}
        backbone: dict[str, Any] = (
            {"backbone": spec["backbone"]} if draw.DISTANCES[spec["distance"]].needs == "features" else {}
        )
        return draw.sample(dataset, **settings, **common, **backbone, n_tasks=n_tasks).tasks.class_ids

    if cell.value == CAUSES[1]:
        return dealt(chosen(n_sets).repeat(each, axis=0), spec["n_query"])
    left = int(np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids].min()) - spec["n_shot"]
    pool = max(spec["n_query"], min(left, N_POOLS * spec["n_query"]))
    every = dealt(np.tile(class_ids, (n_sets, 1)), pool)  # support and queries of all classes, for every choice
    sets = chosen(cell.n_tasks)
    at = Tasks(sets).positions(class_ids)
    outer = np.arange(n_sets).repeat(each)[:, None]
    queries = every.query[outer, at]
    luck = np.random.default_rng(spec["seed"]).random(queries.shape).argsort(2)[:, :, : spec["n_query"]]
    return Tasks(sets, every.support[outer, at], np.take_along_axis(queries, luck, 2))


def accuracies(spec: Spec, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    """accuracy (T,) of every task, and luck (T,): the variance that another choice of as many queries adds to it.

    Where a share p of the n queries of a class is right, drawn from the R images that the support leaves, its variance
    is p (1 - p) / (n - 1) * (1 - n / R).
    """
    import torch

    from fsviz.difficulty.task_statistics import task_views

    n_way, n_query = tasks.query.shape[1:]
    left = np.bincount(table.class_ids)[tasks.class_ids] - tasks.support.shape[2]
    share = np.empty(tasks.class_ids.shape)
    with torch.inference_mode():
        for where, view in task_views(table, tasks, spec["setting"], spec["neighbours"]):
            right = (view.predicted == view.query_labels).numpy()
            share[where] = right.reshape(len(where), n_way, n_query).mean(2)
    luck = share * (1 - share) / max(n_query - 1, 1) * (1 - n_query / left)
    return {"accuracy": share.mean(1), "luck": luck.sum(1) / n_way**2}


def summary(spec: Spec, measured: Mapping[str, Mapping[str, np.ndarray]]) -> Summary:
    """Standard deviations (fractions) of the three algorithms over what is finished, and the parts of the variance.

    measured  by cause, what `accuracies` gave
    """
    rows: list[Spread] = []
    sets: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # accuracy and luck of every cause (sets, tasks of each)
    for cause, found in measured.items():
        n_done = len(found["accuracy"])
        each = n_done if cause == CAUSES[0] else sets_of(cause, spec["n_tasks"])[1]
        whole = n_done // each
        accuracy, luck = (found[name][: whole * each].reshape(whole, each) for name in ("accuracy", "luck"))
        sets[cause] = accuracy, luck
        deviation, half = _deviation(accuracy.ravel()) if cause == CAUSES[0] else _pooled_deviation(accuracy)
        rows.append({"cause": cause, "std": deviation, "ci95": half, "n_sets": whole, "n_tasks": whole * each})
    result: Summary = {"spread": rows, "why": "", "n_tasks": int(sum(row["n_tasks"] for row in rows))}
    known = len(sets[CAUSES[1]][0]) if CAUSES[1] in sets else 0
    if known < LEAST_SETS or CAUSES[0] not in sets:
        result["why"] = (
            f"At least {LEAST_SETS} sets of classes ({LEAST_SETS * PER_SET} tasks) are needed to tell the parts of the "
            f"variance apart. Got {known}."
        )
    elif spec["n_query"] < 2:
        result["why"] = "At least 2 queries per class are needed to tell the parts of the variance apart. Got 1."
    elif not sets[CAUSES[0]][0].var() > 0:
        result["why"] = "All random tasks have the same accuracy: there is no variance to part."
    else:
        result["parts"] = variance_parts(sets[CAUSES[0]][0][0], *sets[CAUSES[1]])
    return result


def parts_in_words(parts: Parts) -> str:
    """The share of every part with its interval, in one sentence."""
    told = ", ".join(
        f"{part['cause']} {part['share']:.0%} ({part['low']:.0%} to {part['high']:.0%})" for part in parts["parts"]
    )
    return (
        f"Of the variance of random tasks: {told}; 95% intervals from {parts['n_sets']:,} sets of classes, "
        f"{PER_SET} tasks each."
    )


def variance_parts(random: np.ndarray, accuracy: np.ndarray, luck: np.ndarray) -> Parts:
    """Shares of the variance of random tasks' accuracies (T,) by cause, with 95% intervals.

    accuracy, luck  (sets of classes, tasks of each): accuracies of tasks of the same classes, and what queries add to
                    their variance
    What tasks of the same classes vary less is due to the classes; what queries add to their variance is known; the
    rest of it is due to the support.
    """
    total, within, queries = random.var(ddof=1), accuracy.var(1, ddof=1).mean(), luck.mean()
    parts = np.maximum([total - within, within - queries, queries], 0.0)
    low, high = _shares(random, accuracy, luck)
    return {
        "total_std": float(np.sqrt(total)),
        "n_sets": len(accuracy),
        "parts": [
            {"cause": name, "variance": float(v), "share": float(v / parts.sum()), "low": least, "high": most}
            for name, v, least, most in zip(PARTS, parts, low.tolist(), high.tolist(), strict=True)
        ],
    }


def _shares(random: np.ndarray, accuracy: np.ndarray, luck: np.ndarray, n_draws: int = 4000) -> np.ndarray:
    """Ends (2, 3) of the 95% intervals of the shares (generalised intervals, Weerahandi 1993).

    Each variance is drawn as what may lie behind the one that was seen: n times it over a chi-square number with n
    degrees of freedom. A dozen sets know their variance badly, and drawing them with replacement would hide that.
    """
    rng = np.random.default_rng(0)

    def behind(variance: float, freedom: float) -> np.ndarray:
        return variance * freedom / rng.chisquare(freedom, n_draws)

    def pooled(each: np.ndarray, most: float) -> float:
        """Degrees of freedom of a mean of variances, by how far these differ."""
        spread = each.var(ddof=1)
        return min(most, 2 * len(each) * each.mean() ** 2 / spread) if spread else most

    n_sets, n_tasks = accuracy.shape
    within, queries = accuracy.var(1, ddof=1), luck.mean(1)
    squares = (random - random.mean()) ** 2
    total = behind(random.var(ddof=1), pooled(squares, len(random) - 1))
    inside = behind(within.mean(), pooled(within, n_sets * (n_tasks - 1)))
    luck_of = behind(queries.mean(), pooled(queries, n_sets * n_tasks))
    drawn = np.maximum([total - inside, inside - luck_of, luck_of], 0.0)
    return np.quantile(drawn / np.maximum(drawn.sum(0), 1e-30), [0.025, 0.975], axis=1)


def _pooled_deviation(accuracy: np.ndarray) -> tuple[float, float]:
    """Root of the mean variance of the sets (sets, tasks of each), and the half-width of its 95% interval over sets."""
    if not len(accuracy):
        return float("nan"), float("nan")
    variance, half = mean_and_ci95(accuracy.var(1, ddof=1))
    deviation = float(np.sqrt(variance))
    return deviation, float(half) / (2 * deviation) if deviation else 0.0


def _deviation(values: np.ndarray) -> tuple[float, float]:
    """Standard deviation of n values, and the half-width of its 95% interval from their fourth moment."""
    n = len(values)
    if n < 3:
        return float("nan"), float("nan")
    centred = values - values.mean()
    variance = float((centred**2).sum() / (n - 1))
    error = np.sqrt(max(float((centred**4).mean()) - variance**2, 0.0) / n)  # of the variance
    deviation = float(np.sqrt(variance))
    return deviation, 1.96 * error / (2 * deviation) if deviation else 0.0
