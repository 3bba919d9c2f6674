"""One split of 160 classes x 640 dimensions with a wanted divergence, against the authors' loop of 7,000 SGD steps.

The other side is the published recipe in torch: both centroids as parameters, softmax of negative squared distances,
-sum log of the mixture + (symmetrised KL - R)^2, SGD with rate 0.1 and momentum 0.9 for 7,000 steps. Both begin at the
same standard normal centroids and see the same unit-length class features, all dimensions. Ours must reach the asked
divergence within 1 % and no higher objective than theirs, which after its 7,000 steps is still some percent off, or
left the range of numbers (told as null). The best of 32 starts on 8 axes, what the page opens with, is timed too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

N_CLASSES, N_DIMS, STEPS = 160, 640, 7000
TARGETS = (0.32, 0.64, 0.96)


def class_means(seed: int = 0) -> np.ndarray:
    """Unit-length class features in eight loose groups."""
    rng = np.random.default_rng(seed)
    groups = rng.normal(size=(8, N_DIMS))
    means = 0.5 * groups[rng.integers(0, 8, N_CLASSES)] + rng.normal(size=(N_CLASSES, N_DIMS))
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def by_their_loop(means: np.ndarray, target: float, start: np.ndarray) -> tuple[float, float]:
    """Objective and divergence after 7,000 steps of SGD."""
    import torch

    phi = torch.as_tensor(means, dtype=torch.float32)
    train, test = (torch.nn.Parameter(torch.as_tensor(mu, dtype=torch.float32)) for mu in start)
    optimiser = torch.optim.SGD([train, test], lr=0.1, momentum=0.9)

    def loss() -> tuple[Any, Any]:
        p, q = (torch.softmax(-((phi - mu) ** 2).sum(dim=1), dim=0) for mu in (train, test))
        divergence = (p * (p.log() - q.log())).sum() + (q * (q.log() - p.log())).sum()
        return -(0.5 * (p + q)).log().sum() + (divergence - target) ** 2, divergence

    for _ in range(STEPS):
        optimiser.zero_grad()
        value, _ = loss()
        value.backward()
        optimiser.step()
    with torch.no_grad():
        value, divergence = loss()
    return float(value), float(divergence)


def run(progress: Callable[[str], None], repeats: int = 5) -> dict[str, Any]:
    import torch

    from fsviz.splits.clustering import class_points, cluster

    torch.set_num_threads(1)
    means = class_means()
    centred = means - means.mean(axis=0)
    cluster(class_points(means), [0.5], starts=1)  # loads what is imported late
    ratios, ours, theirs, solutions = [], [], [], []
    for seed, target in enumerate(TARGETS):

        def split(target: float = target, seed: int = seed) -> Any:
            return cluster(class_points(means), [target], seeds=(seed,), starts=1)

        spent = [_timed(split) for _ in range(repeats)]
        seconds, result = float(np.median([s for s, _ in spent])), spent[0][1]
        turn = np.linalg.lstsq(centred, result.points, rcond=None)[0]  # from features to principal axes
        start = np.random.default_rng(seed).normal(size=(2, result.points.shape[1])) @ turn.T + means.mean(axis=0)
        slow, (value, divergence) = _timed(lambda target=target, start=start: by_their_loop(means, target, start))
        reached, objective = float(result.divergence[0, 0]), float(result.objective[0, 0])
        progress(
            f"asked {target:g}: reached {reached:.3f} in {seconds:.3f} s, their loop {divergence:.3f} in {slow:.1f} s"
        )
        if abs(reached - target) > 0.01 * target or (np.isfinite(value) and abs(divergence - target) > 0.2 * target):
            raise AssertionError(f"asked {target:g}, reached {reached:.3f} and {divergence:.3f}")
        if objective > value + 1e-3:
            raise AssertionError(f"the objective is above theirs: {objective:.4f} and {value:.4f}")
        ours.append(seconds)
        theirs.append(slow)
        ratios.append(slow / seconds)
        solutions.append((target, reached, divergence if np.isfinite(value) else None))
    points = class_points(means)[:, :8]
    stable, _ = _timed(lambda: cluster(points, [0.96], starts=32))
    return {
        "ratio": float(np.median(ratios)),
        "ratio_least": float(min(ratios)),
        "seconds_per_split": {"fsviz": float(np.median(ours)), "their_loop": float(np.median(theirs))},
        "asked_reached_theirs": solutions,
        "seconds_best_of_32_on_8_axes": stable,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, which other programs do not lengthen, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
