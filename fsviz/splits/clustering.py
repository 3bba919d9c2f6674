"""The penalised clustering of classes by Arnold & Sha (2021): two centroids that are to be a target divergence apart.

    p_train(i) = softmax_i(-|x_i - mu_train|^2)      p_test(i) = softmax_i(-|x_i - mu_test|^2)
    J = - sum_i log (p_train(i) + p_test(i)) / 2  +  lambda (D(p_train, p_test) - R)^2

x_i is the feature of class i, mu the centroids that are sought, D the divergence, R the one that is requested.
|mu|^2 is the same for every class and drops out of the softmax: its logits are 2 x_i . mu - |x_i|^2.

Dimensions: M classes, d dimensions, S seeds, K targets R, N starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsviz.errors import BadInput, NotFinite, UnknownName
from fsviz.numerics import threads
from fsviz.splits.optimizers import descent, lbfgs

if TYPE_CHECKING:
    from torch import Tensor

MIN_CLASSES = 10  # fewer leave no two test classes
DAMPING = 1e-3  # added to variances (Arnold & Sha 2021, section A.2)
SOLVERS = {"lbfgs": "L-BFGS", "sgd": "The authors' SGD"}
MOST_NUMBERS = 2_000_000  # logits that are worked on at a time


@dataclass(frozen=True)
class Divergence:
    """A distance between two distributions over classes.

    formula    LaTeX; symbols names every symbol in it
    symmetric  whether it stays the same when the two change places
    of         (points (M, d), mu (B, 2, d), log p (B, 2, M)) -> (B,)
    """

    title: str
    description: str
    formula: str
    symbols: str
    symmetric: bool
    of: Callable[[Tensor, Tensor, Tensor], Tensor]


def _kl(points: Tensor, mu: Tensor, log_p: Tensor) -> Tensor:
    return (log_p[:, 0].exp() * (log_p[:, 0] - log_p[:, 1])).sum(-1)


def _symmetric_kl(points: Tensor, mu: Tensor, log_p: Tensor) -> Tensor:
    p = log_p.exp()
    return ((p[:, 0] - p[:, 1]) * (log_p[:, 0] - log_p[:, 1])).sum(-1)


def _euclidean(points: Tensor, mu: Tensor, log_p: Tensor) -> Tensor:
    return _root(((mu[:, 0] - mu[:, 1]) ** 2).sum(-1))


def _wasserstein(points: Tensor, mu: Tensor, log_p: Tensor) -> Tensor:
    p = log_p.exp()
    mean = p @ points
    spread = (p @ points**2 - mean**2).clamp(min=0.0) + DAMPING
    apart = (mean[:, 0] - mean[:, 1]) ** 2 + (spread[:, 0].sqrt() - spread[:, 1].sqrt()) ** 2
    return _root(apart.sum(-1))


def _root(squared: Tensor, smooth: float = 1e-6) -> Tensor:
    """The square root, with a slope also at 0."""
    return (squared + smooth**2).sqrt() - smooth


_SIDES = "p, q: the distributions of train and test over the classes; i: a class; p_i, q_i: its share in either"
DIVERGENCES: dict[str, Divergence] = {
    "symmetric_kl": Divergence(
        "Symmetrised KL",
        "KL(train, test) + KL(test, train), in nats: how surprised either distribution is by classes of the other.",
        r"D(p, q) = \sum_{i} (p_i - q_i) \log \frac{p_i}{q_i}",
        f"D: the divergence; {_SIDES}",
        True,
        _symmetric_kl,
    ),
    "kl": Divergence(
        "Kullback-Leibler",
        "KL(train, test) alone, in nats. It is not symmetric, so it also says which side is train.",
        r"D(p, q) = \sum_{i} p_i \log \frac{p_i}{q_i}",
        f"D: the divergence; {_SIDES}",
        False,
        _kl,
    ),
    "wasserstein": Divergence(
        "Wasserstein-2",
        "the distance between Gaussians with the means and the variances along every axis (plus 0.001) that the two "
        "distributions give the class features, in units of the features.",
        r"D(p, q)^2 = \lVert m_p - m_q \rVert^2 + \lVert s_p - s_q \rVert^2",
        "D: the divergence; p, q: the distributions of train and test over the classes; m_p, m_q: the mean of the "
        "class features under either; s_p, s_q: their standard deviations along every axis",
        True,
        _wasserstein,
    ),
    "euclidean": Divergence(
        "Euclidean",
        "the distance between the two centroids, in units of the features.",
        r"D(p, q) = \lVert \mu_p - \mu_q \rVert",
        "D: the divergence; p, q: the distributions of train and test; mu_p, mu_q: their centroids",
        True,
        _euclidean,
    ),
}


@dataclass(frozen=True)
class Clustering:
    """Centroids and class distributions for S seeds and K targets, best of N starts; train comes first.

    points      (M, d) the class features it worked on
    targets     (K,) the divergences requested
    centroids   (S, K, 2, d)
    log_p       (S, K, 2, M)
    divergence  (S, K) reached
    objective   (S, K) at the best start
    """

    points: np.ndarray
    targets: np.ndarray
    centroids: np.ndarray
    log_p: np.ndarray
    divergence: np.ndarray
    objective: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """log p_train - log p_test (S, K, M): how much more a class belongs to the train side."""
        return self.log_p[:, :, 0] - self.log_p[:, :, 1]

    @property
    def distance(self) -> np.ndarray:
        """Between the two centroids (S, K), in units of the features."""
        return np.linalg.norm(self.centroids[:, :, 0] - self.centroids[:, :, 1], axis=-1)


def class_points(means: np.ndarray, least: int = MIN_CLASSES) -> np.ndarray:
    """Class features (M, d): means of unit length, centred and turned to their principal axes, the widest first.

    All axes along which classes differ are kept, fewer than M of them: distances stay as they were.
    least  the fewest classes accepted: a split needs MIN_CLASSES, distances two
    """
    means = np.asarray(means, dtype=float)
    if len(means) < least:
        raise BadInput(
            f"A split at a target divergence needs at least {MIN_CLASSES} classes: one fifth of them are test "
            f"classes. Got {len(means)}. Take a larger dataset, or split its classes by hand."
        )
    if not np.isfinite(means).all():
        raise NotFinite("The mean features of the classes are not finite numbers. Extract the features again.")
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    unit = means / np.where(norms > 0, norms, 1.0)
    centred = unit - unit.mean(axis=0)
    n, width = centred.shape
    squared, axes = np.linalg.eigh(centred @ centred.T if n <= width else centred.T @ centred)
    sizes, axes = np.sqrt(np.maximum(squared[::-1], 0)), axes[:, ::-1]
    if sizes[0] < 1e-7:
        raise BadInput(
            f"All {len(means)} classes have the same mean feature, so no two of them are closer than others. "
            "Choose another backbone, or extract the features again."
        )
    is_used = sizes > 1e-6 * sizes[0]
    points = axes[:, is_used] * sizes[is_used] if n <= width else centred @ axes[:, is_used]
    strongest = np.abs(points).argmax(axis=0)
    return points * np.sign(points[strongest, np.arange(points.shape[1])])  # the same signs on every machine


def log_probabilities(points: Tensor, mu: Tensor) -> Tensor:
    """log p (B, 2, M) of the classes under both centroids (B, 2, d)."""
    import torch

    return torch.log_softmax(2 * mu @ points.T - (points**2).sum(-1), dim=-1)


def objective(points: Tensor, mu: Tensor, target: Tensor, penalty: float, divergence: str) -> Tensor:
    """J (B,) for centroids (B, 2, d) and targets (B,)."""
    import torch

    log_p = log_probabilities(points, mu)
    clustering = -(torch.logaddexp(log_p[:, 0], log_p[:, 1]) - np.log(2)).sum(-1)
    return clustering + penalty * (DIVERGENCES[divergence].of(points, mu, log_p) - target) ** 2


def cluster(
    points: np.ndarray,
    targets: Sequence[float],
    *,
    seeds: Sequence[int] = (0,),
    starts: int = 32,
    penalty: float = 1.0,
    divergence: str = "symmetric_kl",
    solver: str = "lbfgs",
) -> Clustering:
    """The best of `starts` standard normal starts for every seed and target.

    Of the two sides, train is the one whose distribution over classes has the higher entropy: test classes are the
    tighter group. A divergence that is not symmetric says itself which side is train.
    """
    import torch

    if divergence not in DIVERGENCES:
        raise UnknownName("divergence", divergence, DIVERGENCES)
    if solver not in SOLVERS:
        raise UnknownName("solver", solver, SOLVERS)
    n_seeds, n_targets, (n_classes, dims) = len(seeds), len(targets), points.shape
    samples = np.stack([np.random.default_rng(seed).normal(size=(starts, 2 * dims)) for seed in seeds])
    begin = np.repeat(samples[:, None], n_targets, axis=1).reshape(-1, 2 * dims)
    target_of = np.broadcast_to(np.asarray(targets, dtype=float)[None, :, None], (n_seeds, n_targets, starts)).ravel()
    places = torch.as_tensor(points)
    ends, values = [], []
    chunk = max(1, MOST_NUMBERS // (2 * n_classes))
    for at in range(0, len(begin), chunk):
        requested = torch.as_tensor(target_of[at : at + chunk].copy())

        def of(numbers: Tensor, which: Tensor, requested: Tensor = requested) -> Tensor:
            return objective(places, numbers.view(-1, 2, dims), requested[which], penalty, divergence)

        with threads(1):  # matrices this small are slower on several cores
            end = (lbfgs if solver == "lbfgs" else descent)(of, torch.as_tensor(begin[at : at + chunk]))
        with torch.no_grad():
            values.append(of(end, torch.arange(len(end))))
        ends.append(end)
    shape = (n_seeds, n_targets, starts)
    objectives = torch.cat(values).numpy().reshape(shape)
    fine = np.isfinite(objectives)
    if not fine.any(axis=-1).all():
        raise NotFinite(
            "The authors' SGD left the range of numbers from every start. Take the solver 'lbfgs', a smaller penalty "
            "or more starts."
            if solver == "sgd"
            else "The search left the range of numbers from every start. Take a smaller penalty or divergence."
        )
    best = np.where(fine, objectives, np.inf).argmin(axis=-1)
    solution = torch.cat(ends)[torch.as_tensor(best.ravel() + starts * np.arange(best.size))]
    target = torch.as_tensor(np.tile(np.asarray(targets, dtype=float), n_seeds))
    if solver == "lbfgs" and starts > 1:
        solution = _polished(places, solution, target, penalty, divergence)
    with torch.no_grad():
        mu = solution.view(-1, 2, dims)
        all_log_p = log_probabilities(places, mu)
        reached = DIVERGENCES[divergence].of(places, mu, all_log_p)
        at_best = objective(places, mu, target, penalty, divergence)
    centroids = mu.numpy().reshape(n_seeds, n_targets, 2, dims)
    log_p = all_log_p.numpy().reshape(n_seeds, n_targets, 2, n_classes)
    if DIVERGENCES[divergence].symmetric:
        entropy = -(np.exp(log_p) * log_p).sum(axis=-1)
        turned = (entropy[..., 1] > entropy[..., 0])[..., None, None]
        centroids, log_p = (np.where(turned, array[:, :, ::-1], array) for array in (centroids, log_p))
    return Clustering(
        points,
        np.asarray(targets, dtype=float),
        centroids,
        log_p,
        reached.numpy().reshape(n_seeds, n_targets),
        at_best.numpy().reshape(n_seeds, n_targets),
    )


def _polished(points: Tensor, centroids: Tensor, target: Tensor, penalty: float, divergence: str) -> Tensor:
    """The centroids (B, 2 d) at the minimum that they are near, as exactly as double precision can tell.

    Val and test classes alternate by score. Of two classes with nearly the same score, the one that is a test class
    would otherwise depend on where the search stopped, and seeds that found the same split would differ in it.
    """

    def of(numbers: Tensor, which: Tensor) -> Tensor:
        return objective(points, numbers.view(len(numbers), 2, -1), target[which], penalty, divergence)

    with threads(1):
        return lbfgs(of, centroids, tolerance=0.0)
