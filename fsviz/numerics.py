"""Arrays in, arrays out: the small numerics that several rooms share."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np


def mean_and_ci95(values: np.ndarray, axis: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """Mean and half-width of its normal 95% interval (1.96 standard errors); NaNs are excluded.

    One value has no interval: its half-width is NaN.
    """
    values = np.asarray(values, dtype=float)
    n = np.sum(~np.isnan(values), axis=axis)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, axis=axis) / n
        centred = values - np.expand_dims(mean, axis)
        variance = np.nansum(centred**2, axis=axis) / np.where(n > 1, n - 1, np.nan)
        half_width = 1.96 * np.sqrt(variance / n)
    return mean, half_width


def finite(value: float | np.ndarray | None) -> float | None:
    """The number, None if there is none: what a record or a page has instead of NaN."""
    return float(value) if value is not None and np.isfinite(value) else None


def nanmean_rows(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean over an axis of what is finite; NaN if nothing is."""
    is_finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(is_finite, values, 0).sum(axis=axis) / is_finite.sum(axis=axis)


def mean_record(values: np.ndarray) -> dict[str, float | None]:
    """mean and ci95 (see `mean_and_ci95`) as a record keeps them."""
    mean, half_width = mean_and_ci95(values)
    return {"mean": float(mean), "ci95": finite(half_width)}


def t_quantile(p: float, freedom: float) -> float:
    """Below it lies the share p of Student's t with so many degrees of freedom; NaN if there are none.

    What scipy.stats.t.ppf answers, without scipy.stats, whose import takes longer than a small run.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, p)) if freedom > 0 else float("nan")


def t_two_sided(t: float, freedom: float) -> float:
    """The share of Student's t that is as far from zero as t, on either side; NaN without degrees of freedom."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t))) if freedom > 0 else float("nan")


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks (n,) from 1, equal values sharing their mean, as scipy.stats.rankdata has them; all NaN if one is."""
    values = np.asarray(values, dtype=float)
    if np.isnan(values).any():
        return np.full(len(values), np.nan)
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]


def clustered_mean(values: np.ndarray, clusters: np.ndarray) -> tuple[float, float, float]:
    """Mean, half-width of its 95% interval and two-sided p against zero, where values of one cluster hang together.

    values and clusters  the same shape; clusters are whole numbers; NaNs are excluded.
    Every cluster counts as one observation, however many values it has (the sandwich estimator with G / (G - 1), t
    with G - 1 degrees of freedom for G clusters). One cluster has no interval: NaN.
    """
    values = np.asarray(values, dtype=float).ravel()
    is_number = ~np.isnan(values)
    values, (_, cluster) = values[is_number], np.unique(np.asarray(clusters).ravel()[is_number], return_inverse=True)
    n, n_clusters = len(values), int(cluster.max(initial=-1)) + 1
    mean = float(values.mean()) if n else float("nan")
    if n_clusters < 2:
        return mean, float("nan"), float("nan")
    sums = np.bincount(cluster, values - mean)
    error = float(np.sqrt((sums**2).sum() * n_clusters / (n_clusters - 1))) / n
    if error == 0:
        return mean, 0.0, 1.0 if mean == 0 else 0.0
    return mean, t_quantile(0.975, n_clusters - 1) * error, t_two_sided(mean / error, n_clusters - 1)


def pearson(first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray]:
    """Pearson's correlation of two lists (n,), and the influence (n,) of every pair on it: mean zero, and the variance
    of the correlation is that of the mean of independent influences. NaN if a list is constant or too short."""
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan"), np.zeros(len(first))
    x, y = ((v - v.mean()) / v.std() for v in (np.asarray(first, dtype=float), np.asarray(second, dtype=float)))
    value = float(np.clip((x * y).mean(), -1, 1))
    return value, x * y - value * (x**2 + y**2) / 2


def spearman(first: np.ndarray, second: np.ndarray) -> tuple[float, np.ndarray]:
    """Spearman's rank correlation (mean ranks for ties) and the influence of every pair, as in `pearson`.

    A pair also moves the ranks of all others: h(x, X) = [x < X] + [x = X] / 2 is what x adds to the rank of X.
    """
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan"), np.zeros(len(first))
    u, v = _centred_ranks(first), _centred_ranks(second)
    cov, var_u, var_v = (float((a * b).mean()) for a, b in ((u, v), (u, u), (v, v)))
    value = float(np.clip(cov / np.sqrt(var_u * var_v), -1, 1))
    of_cov = u * v + _mean_above(first, v) + _mean_above(second, u) - 3 * cov
    of_u = u**2 + 2 * _mean_above(first, u) - 3 * var_u
    of_v = v**2 + 2 * _mean_above(second, v) - 3 * var_v
    return value, of_cov / np.sqrt(var_u * var_v) - value * (of_u / var_u + of_v / var_v) / 2


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from -1/2 to 1/2, equal values sharing their mean; their mean is 0."""
    return (mean_ranks(values) - (len(values) + 1) / 2) / len(values)


def _mean_above(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For every value x the mean over all X of h(x, X) times the weight of X, see `spearman`."""
    _, place = np.unique(values, return_inverse=True)
    total = np.bincount(place, weights)
    above = total[::-1].cumsum()[::-1] - total / 2
    return above[place] / len(values)


def cramers_v(counts: np.ndarray) -> tuple[float, float, float]:
    """Bias-corrected Cramer's V of a table of counts (R, C), and its 95% interval (Bergsma 2013).

    V measures the association of rows with columns, from 0 (none) to 1 (perfect). Rows and columns without counts are
    excluded; V is NaN if fewer than two of either remain. The interval is that of the mean square contingency: the
    delta method, plus the variance of chi-square, which dominates if rows and columns are independent. It needs many
    counts, not a handful.
    """
    counts = np.asarray(counts, dtype=float)
    counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
    n_rows, n_columns = counts.shape
    n = counts.sum()
    if min(n_rows, n_columns) < 2 or n < 2:
        return (float("nan"),) * 3
    p = counts / n
    rows, columns = p.sum(1, keepdims=True), p.sum(0, keepdims=True)
    square = p**2 / (rows * columns)
    contingency = float(square.sum()) - 1
    # what one more count in a cell does to the contingency, as a derivative
    effect = 2 * p / (rows * columns) - square.sum(1, keepdims=True) / rows - square.sum(0, keepdims=True) / columns
    spread = max(float((p * effect**2).sum() - (p * effect).sum() ** 2), 0.0)
    freedom = (n_rows - 1) * (n_columns - 1)
    half_width = 1.96 * np.sqrt(spread / n + 2 * freedom / n**2)
    expected = freedom / (n - 1)
    max_contingency = min(n_rows - (n_rows - 1) ** 2 / (n - 1), n_columns - (n_columns - 1) ** 2 / (n - 1)) - 1
    if max_contingency <= 0:  # about as many rows or columns as counts: any table looks perfect
        return (float("nan"),) * 3
    ends = contingency - expected + half_width * np.array([0.0, -1.0, 1.0])
    value, low, high = np.sqrt(np.clip(ends / max_contingency, 0.0, 1.0)).tolist()
    return value, low, high


def cramers_v_by_chance(counts: np.ndarray, n_tables: int = 200, seed: int = 0) -> float:
    """The V that 95% of tables with the same sums stay below where rows and columns have nothing to do with each
    other."""
    from scipy import stats

    counts = np.asarray(counts, dtype=np.int64)
    counts = counts[counts.sum(1) > 0][:, counts.sum(0) > 0]
    if min(counts.shape) < 2:
        return float("nan")
    tables = stats.random_table(counts.sum(1), counts.sum(0)).rvs(size=n_tables, random_state=seed)
    return float(np.quantile([cramers_v(table)[0] for table in tables], 0.95))


def pointwise_information(counts: np.ndarray) -> np.ndarray:
    """log2(p(row, column) / (p(row) p(column))) of every cell (R, C), in bits: above 0 if the two come together more
    often than by chance, below 0 where less often; NaN if they never do."""
    counts = np.asarray(counts, dtype=float)
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / max(counts.sum(), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 0, np.log2(counts / expected), np.nan)


def holm(p: np.ndarray) -> np.ndarray:
    """p values corrected for their number (Holm 1979): the i-th smallest of n times n - i, never decreasing, at most 1.

    NaNs stay NaN and are not counted.
    """
    p = np.asarray(p, dtype=float)
    corrected = np.full(p.shape, np.nan)
    real = np.flatnonzero(~np.isnan(p))
    order = real[np.argsort(p[real], kind="stable")]
    factors = len(order) - np.arange(len(order))
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0) if len(order) else []
    return corrected


def chunk_seed(run_seed: int, chunk: int) -> np.random.SeedSequence:
    """The seed of one chunk of work: the same in one process, a pool or a cluster."""
    return np.random.SeedSequence(entropy=run_seed, spawn_key=(chunk,))


def sort_order(values: np.ndarray) -> np.ndarray:
    """Positions (n,) that sort the values, equal ones in their order.

    Remembered for an array that cannot be written to: a page asks many times for the order of one measure.
    """
    cached = _orders.get(id(values))
    if cached is not None and cached[0]() is values:
        return cached[1]
    order = np.argsort(values, kind="stable")
    if not values.flags.writeable:
        while len(_orders) > 3:
            _orders.pop(next(iter(_orders)), None)
        order.setflags(write=False)
        _orders[id(values)] = (weakref.ref(values), order)
    return order


_orders: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}


def rolling_mean(values: np.ndarray, window: int, starts: np.ndarray | None = None) -> np.ndarray:
    """Mean over a sliding window, only where the window is full: length n - window + 1, or where it starts at these."""
    values = np.asarray(values, dtype=float)
    window = max(1, min(window, len(values)))
    total = np.concatenate([[0.0], np.cumsum(values)])
    starts = np.arange(len(values) - window + 1) if starts is None else starts
    return (total[starts + window] - total[starts]) / window


NEAR = 0.05  # squared distance, in squared lengths, below which float32 would change some predictions (measured)
LARGE = 1e7  # features up to here have squares, and sums and products of these, that float32 holds
_SHORT = 1e-16  # the squared length below which squares of it leave float32
N_PROBED = 25  # images of a task that `needs_double` is shown, at least one of each way


def needs_double(images: np.ndarray) -> np.ndarray:
    """Mask (T,) of the tasks that need float64, from one image (T, W, D) or some (T, W, K, D) per way.

    NaN stands for none. Distances and angles come out of sums of squared lengths. Where images of two classes are much
    closer to each other than to the origin (features with a large common part, of all images or of some), float32 has
    no digits left for what tells them apart; where features are huge or tiny, their squares leave its range (and make a
    NaN here, which is not fine).
    """
    images = images[:, :, None] if images.ndim == 3 else images
    n_tasks, n_way, n_each, dims = images.shape
    images = images.reshape(n_tasks, n_way * n_each, dims)
    is_image = ~np.isnan(images[:, :, 0])
    images = np.where(is_image[..., None], images, 0) if not is_image.all() else images
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        products = _products(images)
        squares = products.diagonal(axis1=1, axis2=2)
        larger = np.maximum(squares[:, :, None], squares[:, None, :])
        fine = squares[:, :, None] + squares[:, None, :] - 2 * products >= NEAR * larger
    way = np.repeat(np.arange(n_way), n_each)
    fine |= (way[:, None] == way) | ~(is_image[:, :, None] & is_image[:, None, :])
    return ~(fine.all((1, 2)) & ((squares > _SHORT) & (squares < np.inf) | ~is_image).all(1))


def _products(rows: np.ndarray) -> np.ndarray:
    """Inner products (T, N, N) of the rows (T, N, D) of each task, by torch: numpy's threads ignore its limit on them,
    and on a busy machine wait for one another many times longer than the products take."""
    import torch

    images = torch.from_numpy(np.ascontiguousarray(rows))
    return torch.bmm(images, images.transpose(1, 2)).numpy()


_lock = Lock()
_inside, _before = 0, 0  # blocks of `threads` that are open, and the threads before the first of them


@contextmanager
def threads(n: int) -> Iterator[None]:
    """The number of threads torch uses: part of a run's spec, so that its sums are added in the same order again.

    Blocks may run in several Python threads at once, but not nested. The previous number returns after the last block.
    """
    import torch

    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(n)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                torch.set_num_threads(_before)
