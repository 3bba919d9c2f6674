"""Confidence intervals of a mean over tasks: over tasks, over images, over classes.

Tasks of one testbed are sampled from the same images: a thousand tasks of four hundred photographs are not a thousand
independent observations. An interval over tasks says what other tasks of these images would give, and shrinks to
nothing as tasks are added. What other photographs of the same classes would give, or other classes, is another and
mostly far wider interval.

The variance of the mean of T tasks is that of T independent tasks plus the covariances of tasks that share an image
(or a class). To first order an image adds its own effect to every task that holds it, so the second part is the sum
over images of their squared effects on the mean (the infinitesimal jackknife; Hoeffding 1948 for such means, Efron
2014). An image has an effect as a query (is it easy to name?) and as a support image (does it help to name others?).
Effects are estimated from the same tasks, and only products of different tasks count: an image that one task holds
alone adds nothing. Where tasks are few these products are known badly, and the interval is wider for it: its degrees
of freedom follow Satterthwaite, or the noise is left in, whichever gives the narrower of the two cautious intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsviz.errors import UnknownName
from fsviz.numerics import pearson, spearman, t_quantile, t_two_sided
from fsviz.records import PAD, Tasks

CI_UNITS: dict[str, str] = {
    "tasks": "over tasks of these images: other tasks sampled from the same images",
    "images": "over images: what tasks of other images of the same classes would give",
    "classes": "over classes: what tasks of other classes, with images of their own, would give",
}


@dataclass(frozen=True)
class Estimate:
    """A mean, its standard error and the degrees of freedom of the error; NaN if they cannot be known."""

    mean: float
    error: float
    freedom: float

    @property
    def ci95(self) -> float:
        """Half-width of the 95% interval."""
        return t_quantile(0.975, self.freedom) * self.error

    @property
    def p(self) -> float:
        """Two-sided p against a mean of zero."""
        if self.error == 0:
            return float(self.mean == 0)
        return t_two_sided(self.mean / self.error, self.freedom)


@dataclass(frozen=True)
class Correlation:
    """A correlation from -1 to 1 with its 95% interval, and what this is over; NaN if it cannot be known."""

    value: float
    low: float
    high: float
    ci_unit: str = "tasks"


def estimate(
    accuracy: np.ndarray, over: str = "tasks", values: np.ndarray | None = None, tasks: Tasks | None = None
) -> Estimate:
    """The mean of the tasks' accuracies with its error over tasks, images or classes (see CI_UNITS).

    accuracy       (T,) of every task, or differences of two methods' accuracies; NaNs are excluded
    values, tasks  (t, W, Q) the same for every query (NaN if there is none) and the tasks they are of: the first t
                   of the T tasks. Needed over images and classes; some thousands of tasks are enough of a million.
    Over classes nothing can be said when every task holds every class: NaN. The interval over images is at most as
    wide as the one over classes, because other classes have other images; few tasks know the effects of their many
    images worse than those of their classes.
    """
    if over not in CI_UNITS:
        raise UnknownName("interval", over, CI_UNITS)
    accuracy = np.asarray(accuracy, dtype=float)
    values = None if values is None else np.asarray(values, dtype=float)
    done = accuracy[~np.isnan(accuracy)]
    n = len(done)
    mean = float(done.mean()) if n else float("nan")
    if n < 2:
        return Estimate(mean, float("nan"), float("nan"))
    independent = float(done.var(ddof=1)) / n
    if over == "tasks":
        return Estimate(mean, float(np.sqrt(independent)), np.inf)
    assert values is not None and tasks is not None, "intervals over images and classes need the queries"
    finite = np.isfinite(values).any(axis=(1, 2))
    values, tasks = (values, tasks) if finite.all() else (values[finite], tasks.take(finite))
    of_classes = Estimate(mean, float("nan"), float("nan"))
    if n_classes := _n_classes(tasks.class_ids):
        shared = _shared_by_classes(_task_means(values), tasks.class_ids)
        of_classes = _estimate(mean, independent, n, shared, n_classes - 1)
    if over == "classes":
        return of_classes
    of_images = _estimate(mean, independent, n, _shared_by_images(values, tasks))
    return of_classes if of_classes.ci95 < of_images.ci95 else of_images


def correlation(
    accuracy: np.ndarray, measure: np.ndarray, class_ids: np.ndarray | None = None, rank: bool = False
) -> Correlation:
    """Correlation of a measure of the tasks with their accuracy: Pearson's, or Spearman's where `rank`.

    accuracy, measure  (T,), or (T, S) of S variants of every task, which hang together: a task counts once
    class_ids  (t, W) of the first t tasks: the interval is then over classes (with their images), the units that
               tasks share; without it, or where every task holds every class, it is over tasks.
    The interval is symmetric in Fisher's z, so that it stays within -1 and 1.
    """
    accuracy, measure = np.asarray(accuracy, dtype=float), np.asarray(measure, dtype=float)
    both = np.isfinite(accuracy) & np.isfinite(measure)
    value, influence = (spearman if rank else pearson)(measure[both], accuracy[both])
    if both.ndim > 1:
        each = np.zeros(both.shape)
        each[both] = influence
        both = both.any(axis=1)
        influence = each[both].sum(axis=1) * (both.sum() / max(len(influence), 1))
    n = len(influence)
    if np.isnan(value) or n < 4:
        return Correlation(value, float("nan"), float("nan"))
    if class_ids is not None:
        class_ids = class_ids[both[: len(class_ids)]]
    error, over = of_influence(value, influence, class_ids)
    if abs(value) >= 1:
        return Correlation(value, value, value, over)
    half = t_quantile(0.975, error.freedom) * error.error / (1 - value**2)
    low, high = np.tanh(np.arctanh(value) + np.array([-half, half]))
    return Correlation(value, float(low), float(high), over)


def of_influence(value: float, influence: np.ndarray, class_ids: np.ndarray | None = None) -> tuple[Estimate, str]:
    """The error of a number that every task moves by its influence (T,), and what it is over: the classes that tasks
    share where class_ids (t, W) of the first t tasks are known and tasks have different ones, else the tasks."""
    n = len(influence)
    independent = float(influence.var(ddof=1)) / n
    n_classes = 0 if class_ids is None else _n_classes(class_ids)
    if class_ids is None or not n_classes:
        return Estimate(value, float(np.sqrt(independent)), np.inf), "tasks"
    shared = _shared_by_classes(influence[: len(class_ids)], class_ids)
    return _estimate(value, independent, n, shared, n_classes - 1), "classes"


# --- what tasks share --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shared:
    """Variance that shared units add to a mean, the variance of this estimate, and the sum with the noise left in."""

    variance: float
    doubt: float
    raw: float


def _estimate(mean: float, independent: float, n: int, shared: _Shared, most: float = np.inf) -> Estimate:
    """The error of a mean of n tasks from their variance if they were independent and from what they share.

    most  degrees of freedom if the variance of the effects were seen without noise
    """
    variance = independent + max(shared.variance, 0.0)
    doubt = shared.doubt + 2 * independent**2 / (n - 1)
    freedom = float(np.clip(2 * variance**2 / doubt, 1.0, most)) if doubt > 0 else most
    either = (
        Estimate(mean, float(np.sqrt(variance)), freedom),
        Estimate(mean, float(np.sqrt(max(shared.raw, variance))), most),
    )
    return min(either, key=lambda candidate: candidate.ci95)


def _n_classes(class_ids: np.ndarray) -> int:
    """Number of classes in these tasks; 0 where every task holds all, which says nothing about others."""
    n = len(np.unique(class_ids[class_ids != PAD]))
    return n if n > (class_ids != PAD).sum(axis=1).max(initial=0) else 0


def _shared_by_images(values: np.ndarray, tasks: Tasks) -> _Shared:
    """Variance of the mean over tasks that comes from the images.

    values (T, W, Q), NaN if there is no query. Effects are deviations from the class: classes stay what they are.
    """
    n_tasks = len(values)
    t, w, q = np.nonzero(~np.isnan(values))
    value, query, query_class = values[t, w, q], tasks.query[t, w, q], tasks.class_ids[t, w]
    u, v, s = np.nonzero(tasks.support != PAD)
    support, support_class = tasks.support[u, v, s], tasks.class_ids[u, v]
    n_images = int(max(query.max(), support.max())) + 1
    n_classes = int(tasks.class_ids.max()) + 1
    class_of = np.zeros(n_images, dtype=np.int64)
    class_of[query], class_of[support] = query_class, support_class
    used = np.zeros(n_images, dtype=bool)
    used[query] = used[support] = True
    size = np.bincount(class_of[used], minlength=n_classes)  # images per class

    # as a query: how much more often right than its class, weighed by its share of the mean
    share = 1.0 / (np.bincount(t, minlength=n_tasks)[t] * n_tasks)
    n_as_query = np.bincount(query, minlength=n_images)
    of_image = np.bincount(query, value, minlength=n_images) / np.maximum(n_as_query, 1)
    of_class = _means(query_class, value, n_classes, share)
    effect = np.bincount(query, share * (value - of_class[query_class]), minlength=n_images)
    queries_of_class = np.bincount(query_class, minlength=n_classes)
    repeats = queries_of_class - np.bincount(class_of[n_as_query > 0], minlength=n_classes)
    within = np.bincount(query_class, (value - of_image[query]) ** 2, minlength=n_classes) / np.maximum(repeats, 1)
    total_variance = np.bincount(query_class, (value - of_class[query_class]) ** 2, minlength=n_classes)
    variance = total_variance / np.maximum(queries_of_class - 1, 1)
    within = np.where(repeats > 0, within, variance)  # no image is a query twice: all is noise
    squares: np.ndarray = np.bincount(query, share**2, minlength=n_images)
    noise_query = squares * within[class_of] * (1 - n_as_query / np.maximum(queries_of_class[class_of], 1))
    # the squares of single tasks; deviations from the mean of n values have products of -variance / n with each other
    own: np.ndarray = np.bincount(query, (share * (value - of_class[query_class])) ** 2, minlength=n_images)
    own = own - squares * (variance / np.maximum(queries_of_class, 1))[class_of] * np.maximum(n_as_query - 1, 0)

    # as a support image: how its tasks go, once the queries' own effects (known from other tasks) are taken off
    mean_elsewhere = (n_as_query[query] * of_image[query] - value) / np.maximum(n_as_query[query] - 1, 1)
    of_query = np.where(n_as_query[query] > 1, mean_elsewhere - of_class[query_class], 0.0)
    rest = _means(t, value - of_query, n_tasks)[u]
    per_class = np.bincount(support_class, minlength=n_classes)
    shots = np.bincount(u * tasks.n_way + v, minlength=n_tasks * tasks.n_way)[u * tasks.n_way + v]
    # tasks that hold an image also hold others of its class, which are then not sampled by pure chance
    scale = (size[support_class] - 1) / np.maximum(size[support_class] - shots, 1) / n_tasks
    rest = rest - _means(support_class, rest, n_classes)[support_class]
    effect += np.bincount(support, scale * rest, minlength=n_images)
    held = np.bincount(support, minlength=n_images)
    tasks_of_class = np.bincount(tasks.class_ids[tasks.class_ids != PAD], minlength=n_classes)
    spread = np.bincount(support_class, rest**2, minlength=n_classes) / np.maximum(per_class, 1)
    spread *= tasks_of_class / np.maximum(tasks_of_class - 1, 1)
    squares = np.bincount(support, scale**2, minlength=n_images)
    squares = squares * spread[class_of]
    noise_support = squares * (1 - held / np.maximum(tasks_of_class[class_of], 1))
    own = own + np.bincount(support, (scale * rest) ** 2, minlength=n_images)
    own = own - squares * np.maximum(held - 1, 0) / np.maximum(tasks_of_class[class_of], 1)
    small = size[class_of[used]]
    single = noise_query**2 / np.maximum(n_as_query, 1) + noise_support**2 / np.maximum(held, 1)
    return _sum_of_products(
        effect[used],
        own[used],
        (noise_query + noise_support)[used],
        single[used],
        (n_as_query + held)[used],
        small / np.maximum(small - 1, 1),
    )


def _shared_by_classes(values: np.ndarray, class_ids: np.ndarray) -> _Shared:
    """The same for classes with all their images: values (T,) of tasks that hold class_ids (T, W)."""
    n_tasks = len(values)
    t, w = np.nonzero(class_ids != PAD)
    classes, place = np.unique(class_ids[t, w], return_inverse=True)
    n_classes = len(classes)
    centred = values - values.mean()
    ways = np.bincount(t, minlength=n_tasks)[t]
    scale = (n_classes - 1) / (n_classes - ways) / n_tasks
    held = np.bincount(place)
    effect = np.bincount(place, scale * centred[t])
    squares = np.bincount(place, scale**2) * float(values.var(ddof=1))
    noise = squares * (1 - held / n_tasks)
    own = np.bincount(place, (scale * centred[t]) ** 2) - squares * (held - 1) / n_tasks
    return _sum_of_products(effect, own, noise, noise**2 / held, held, np.full(n_classes, n_classes / (n_classes - 1)))


def _sum_of_products(
    effect: np.ndarray, own: np.ndarray, noise: np.ndarray, single: np.ndarray, held: np.ndarray, small: np.ndarray
) -> _Shared:
    """The sum over units of what different tasks that hold a unit have in common: its squared effect without the
    squares of the single tasks. A unit in one task adds nothing, and no doubt either.

    effect, own    (U,) effect of every unit on the mean, and the sum of the squares that each task alone adds to it
    noise, single  (U,) what noise alone adds to the squared effect, and the sum of its squares over single tasks
    held, small    (U,) number of times that tasks hold a unit, and what its square is multiplied by
    """
    raw, variance = float((small * effect**2).sum()), float((small * (effect**2 - own)).sum())
    common = held > 1
    signal = np.where(common, max(variance, 0.0) / max(int(common.sum()), 1), 0.0)
    doubt = 2 * float((small**2 * np.maximum((noise + signal) ** 2 - single, 0.0)).sum())
    return _Shared(variance, doubt, raw)


def _means(index: np.ndarray, values: np.ndarray, n: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Mean of the values of every index (n,), 0 if it has none."""
    total = np.bincount(index, weights, minlength=n)
    return np.bincount(index, values if weights is None else weights * values, minlength=n) / np.where(
        total > 0, total, 1
    )


def _task_means(values: np.ndarray) -> np.ndarray:
    there = ~np.isnan(values)
    return np.where(there, values, 0.0).sum(axis=(1, 2)) / there.sum(axis=(1, 2))
