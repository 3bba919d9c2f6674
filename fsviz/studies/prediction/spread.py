"""Sources of variance of the accuracy: classes, support and queries.

A question of the prediction study (Bontonou et al. 2020, algorithms 1 to 3): the standard deviation of the accuracy
over random tasks, over tasks with the same classes, and over tasks with fixed support images for every class. The
variance has three components. Classes: random tasks vary more than tasks with the same classes. Queries: estimated
from the predictions in every task. Support: the rest.
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
    from fsviz.studies.prediction.tasks import PredictionCell, PredictionSpec


class Spread(TypedDict, total=False):
    """Standard deviation of the accuracy of one kind of tasks, with the half-width of its 95% interval.

    Of several sets, the root of their mean variance. None if undefined.
    """

    cause: str
    std: Any
    ci95: Any
    n_sets: int
    n_tasks: int


class VarianceComponent(TypedDict):
    """A source of variance: its share with the 95% interval."""

    cause: str
    variance: float
    share: float
    low: float
    high: float


class VarianceComponents(TypedDict):
    """Components of the variance of random tasks, and the number of sets of classes used."""

    total_std: float
    n_sets: int
    parts: list[VarianceComponent]


class SpreadSummary(TypedDict, total=False):
    """Spread of every kind of tasks, and variance components; `why` is the reason if there are none yet."""

    spread: list[Spread]
    parts: VarianceComponents
    why: str
    n_tasks: int


CAUSES = ("random tasks", "fixed classes", "fixed shots")
COMPONENTS = ("classes", "support", "queries")
PER_SET = 5  # tasks per set of classes: many small sets estimate the variance within a set best
MIN_SETS = 20  # sets of classes that variance components need
N_POOLS = 4  # tasks with fixed support images sample queries from this many times n_query


def sets_of(cause: str, n_tasks: int) -> tuple[int, int]:
    """Number of sets that share classes (or support images), and tasks per set."""
    if cause == CAUSES[0]:
        return 1, n_tasks
    if cause == CAUSES[1]:
        return max(2, n_tasks // PER_SET), PER_SET
    side = max(2, math.isqrt(n_tasks))
    return side, side


def draw_fixed(cell: PredictionCell, dataset: Dataset, table: Features) -> Tasks:
    """Sample tasks of several sets of classes, or of several choices of support images, set by set.

    Every task has its own queries.
    """
    spec = cell.spec
    n_sets, each = sets_of(str(cell.value), spec["n_tasks"])
    class_ids = dataset.split_class_ids(spec["split"])
    groups = dataset.image_groups() if spec.get("keep_groups", True) else None
    image_classes = table.image_class_ids(len(dataset.image_class_ids()))
    names = dataset.classes["class_name"].astype(str).tolist()

    def assign(sets: np.ndarray, n_query: int) -> Tasks:
        return sampling.assign_images(
            Tasks(sets), image_classes, spec["n_shot"], n_query, spec["seed"] + 1, groups, names
        )

    def sample_sets(n_tasks: int) -> np.ndarray:
        settings = {name: cast(RawSettings, spec)[name] for name in draw.SAMPLER_SETTINGS if name in spec}
        common: dict[str, Any] = {name: spec[name] for name in ("split", "sampler", "distance", "dag", "seed")}
        backbone: dict[str, Any] = (
            {"backbone": spec["backbone"]} if draw.DISTANCES[spec["distance"]].needs == "features" else {}
        )
        return draw.sample(dataset, **settings, **common, **backbone, n_tasks=n_tasks).tasks.class_ids

    if cell.value == CAUSES[1]:
        return assign(sample_sets(n_sets).repeat(each, axis=0), spec["n_query"])
    n_spare = int(np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids].min()) - spec["n_shot"]
    pool = max(spec["n_query"], min(n_spare, N_POOLS * spec["n_query"]))
    pools = assign(np.tile(class_ids, (n_sets, 1)), pool)  # support and candidate queries of all classes
    sets = sample_sets(cell.n_tasks)
    at = Tasks(sets).positions(class_ids)
    pool_of_task = np.arange(n_sets).repeat(each)[:, None]
    queries = pools.query[pool_of_task, at]
    order = np.random.default_rng(spec["seed"]).random(queries.shape).argsort(2)[:, :, : spec["n_query"]]
    return Tasks(sets, pools.support[pool_of_task, at], np.take_along_axis(queries, order, 2))


def accuracies(spec: PredictionSpec, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    """accuracy (T,) of every task, and luck (T,): its variance over the choice of queries.

    If a share p of the n queries of a class is correct, sampled from the R images outside the support, its variance is
    p (1 - p) / (n - 1) * (1 - n / R).
    """
    import torch

    from fsviz.difficulty.task_statistics import task_views

    n_way, n_query = tasks.query.shape[1:]
    n_spare = np.bincount(table.class_ids)[tasks.class_ids] - tasks.support.shape[2]
    share = np.empty(tasks.class_ids.shape)
    with torch.inference_mode():
        for where, view in task_views(table, tasks, spec["setting"], spec["neighbours"]):
            correct = (view.predicted == view.query_labels).numpy()
            share[where] = correct.reshape(len(where), n_way, n_query).mean(2)
    noise = share * (1 - share) / max(n_query - 1, 1) * (1 - n_query / n_spare)
    return {"accuracy": share.mean(1), "luck": noise.sum(1) / n_way**2}


def summary(spec: PredictionSpec, rows_by_cause: Mapping[str, Mapping[str, np.ndarray]]) -> SpreadSummary:
    """Standard deviations (fractions) of the three algorithms over finished tasks, and variance components.

    rows_by_cause  arrays of `accuracies` by cause
    """
    spreads: list[Spread] = []
    sets: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # accuracy and luck of every cause (sets, tasks of each)
    for cause, arrays in rows_by_cause.items():
        n_tasks = len(arrays["accuracy"])
        each = n_tasks if cause == CAUSES[0] else sets_of(cause, spec["n_tasks"])[1]
        n_full = n_tasks // each
        accuracy, noise = (arrays[name][: n_full * each].reshape(n_full, each) for name in ("accuracy", "luck"))
        sets[cause] = accuracy, noise
        deviation, half = _deviation(accuracy.ravel()) if cause == CAUSES[0] else _pooled_deviation(accuracy)
        spreads.append({"cause": cause, "std": deviation, "ci95": half, "n_sets": n_full, "n_tasks": n_full * each})
    result: SpreadSummary = {"spread": spreads, "why": "", "n_tasks": int(sum(row["n_tasks"] for row in spreads))}
    n_sets = len(sets[CAUSES[1]][0]) if CAUSES[1] in sets else 0
    if n_sets < MIN_SETS or CAUSES[0] not in sets:
        result["why"] = (
            f"Variance components need at least {MIN_SETS} sets of classes ({MIN_SETS * PER_SET} tasks). Got {n_sets}. "
            "Raise the number of tasks."
        )
    elif spec["n_query"] < 2:
        result["why"] = "Variance components need at least 2 queries per class. Got 1."
    elif not sets[CAUSES[0]][0].var() > 0:
        result["why"] = "All random tasks have the same accuracy: there is no variance."
    else:
        result["parts"] = variance_parts(sets[CAUSES[0]][0][0], *sets[CAUSES[1]])
    return result


def describe_components(components: VarianceComponents) -> str:
    """Describe the share of every component in one sentence."""
    shares = ", ".join(
        f"{row['cause']} {row['share']:.0%} ({row['low']:.0%} to {row['high']:.0%})" for row in components["parts"]
    )
    return (
        f"Share of the variance: {shares}; 95% CI from {components['n_sets']:,} sets of classes with {PER_SET} tasks."
    )


def variance_parts(random: np.ndarray, accuracy: np.ndarray, noise: np.ndarray) -> VarianceComponents:
    """Shares of the variance of random tasks' accuracies (T,) by cause, with 95% intervals.

    accuracy, luck  (sets of classes, tasks of each): accuracies of tasks of the same classes, and what queries add to
                    their variance
    Classes explain how much less tasks of the same classes vary; queries explain their noise, the support the rest.
    """
    total, within, queries = random.var(ddof=1), accuracy.var(1, ddof=1).mean(), noise.mean()
    variances = np.maximum([total - within, within - queries, queries], 0.0)
    low, high = _shares(random, accuracy, noise)
    return {
        "total_std": float(np.sqrt(total)),
        "n_sets": len(accuracy),
        "parts": [
            {"cause": name, "variance": float(v), "share": float(v / variances.sum()), "low": least, "high": most}
            for name, v, least, most in zip(COMPONENTS, variances, low.tolist(), high.tolist(), strict=True)
        ],
    }


def _shares(random: np.ndarray, accuracy: np.ndarray, noise: np.ndarray, n_draws: int = 4000) -> np.ndarray:
    """Ends (2, 3) of the 95% intervals of the shares (generalised intervals, Weerahandi 1993).

    Each variance is sampled as n times the observed one divided by a chi-square number with n degrees of freedom. A
    bootstrap over a dozen sets would understate the uncertainty.
    """
    rng = np.random.default_rng(0)

    def plausible(variance: float, freedom: float) -> np.ndarray:
        return variance * freedom / rng.chisquare(freedom, n_draws)

    def pooled(each: np.ndarray, max_freedom: float) -> float:
        """Degrees of freedom of a mean of variances, by how far these differ."""
        spread = each.var(ddof=1)
        return min(max_freedom, 2 * len(each) * each.mean() ** 2 / spread) if spread else max_freedom

    n_sets, n_tasks = accuracy.shape
    within, queries = accuracy.var(1, ddof=1), noise.mean(1)
    squares = (random - random.mean()) ** 2
    total = plausible(random.var(ddof=1), pooled(squares, len(random) - 1))
    inside = plausible(within.mean(), pooled(within, n_sets * (n_tasks - 1)))
    query_noise = plausible(queries.mean(), pooled(queries, n_sets * n_tasks))
    shares = np.maximum([total - inside, inside - query_noise, query_noise], 0.0)
    return np.quantile(shares / np.maximum(shares.sum(0), 1e-30), [0.025, 0.975], axis=1)


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
