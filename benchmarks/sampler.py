"""Semantic task sampling: the compiled sampler against the published procedure, task by task with torch.multinomial.

10,000 5-way tasks of tieredImageNet's test split, alpha 0.383, beta 100 (Bennequin et al. 2022). Both sides draw
20,000 tasks, drop repeated ones and keep 10,000, with their coarsity. Compared: quartiles of coarsity, how evenly
classes are used, and which classes meet.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fsviz import datasets
from fsviz.analyses.semantic_sampling import warm_up
from fsviz.difficulty.measures.coarsity import coarsity
from fsviz.sampling import sample_semantic
from fsviz.tasks.draw import class_distances

N_TASKS, N_WAY, ALPHA, BETA = 10_000, 5, 0.383, 100.0
REPEATS = 7


def published_procedure(
    distances: np.ndarray, n_way: int, n_tasks: int, alpha: float, beta: float, seed: int, tensor_max: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of the paper as its published program runs it: task by task, one torch.multinomial a class.

    The penalty divides by Python's max over the tensor of occurrences, as published; tensor_max replaces that by the
    tensor's own max, which is what a careful user would write. The coarsity of each task is measured as it is drawn.
    Doubles, because exp(-100) is 0 in single precision. Drops repeated tasks and keeps n_tasks at random.
    """
    import torch

    torch.manual_seed(seed)
    potential_matrix = torch.exp(-alpha * torch.tensor(distances, dtype=torch.float64))
    potential_matrix.fill_diagonal_(0)
    occurrences = torch.ones(len(distances), dtype=torch.float64)
    tasks: dict[tuple[int, ...], float] = {}
    for _ in range(2 * n_tasks):
        largest = occurrences.max() if tensor_max else max(occurrences)
        potential = torch.exp(-beta * occurrences / largest)
        classes: list[int] = []
        for _ in range(n_way):
            classes.append(int(torch.multinomial(potential, 1)))
            potential = potential * potential_matrix[classes[-1]]
        for class_index in classes:
            occurrences[class_index] += 1
        squares = [distances[a, b] ** 2 for i, a in enumerate(classes) for b in classes[:i]]
        tasks.setdefault(tuple(sorted(classes)), sum(squares) / len(squares))
    selection = random.Random(seed).sample(list(tasks), n_tasks)
    return np.array(selection), np.array([tasks[task] for task in selection])


def ours(distances: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    tasks = sample_semantic(distances, np.arange(len(distances)), N_WAY, N_TASKS, ALPHA, BETA, seed).class_ids
    return tasks, coarsity(distances, tasks)


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    distances = class_distances(datasets.load("tiered_imagenet"), "test")
    warm_up()
    ours(distances, 0)
    seconds: dict[str, list[float]] = {"ours": [], "published": [], "tensor_max": []}
    samples: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def clock(name: str, work: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
        start = time.process_time()  # one thread on both sides, and other programs do not count
        samples[name] = work()
        seconds[name].append(time.process_time() - start)

    def some_of_ours() -> None:
        for seed in range(REPEATS):
            clock("ours", lambda seed=seed: ours(distances, seed))

    setting = (distances, N_WAY, N_TASKS, ALPHA, BETA, 0)
    some_of_ours()
    progress(f"the published procedure, {N_TASKS:,} tasks")
    clock("published", lambda: published_procedure(*setting))
    some_of_ours()
    progress(f"{seconds['published'][0]:.1f} s; the same with the tensor's own max")
    clock("tensor_max", lambda: published_procedure(*setting, tensor_max=True))
    some_of_ours()
    fast = float(np.median(seconds["ours"]))
    progress(f"{seconds['tensor_max'][0]:.1f} s; the compiled sampler {fast * 1000:.1f} ms")

    # The same distribution: quartiles of coarsity, evenness, and which classes meet (as alike as two of our seeds).
    quartiles = {name: np.quantile(values, [0.25, 0.5, 0.75]) for name, (_, values) in samples.items()}
    spread = {name: np.bincount(tasks.ravel(), minlength=len(distances)).std() for name, (tasks, _) in samples.items()}
    pairs = {name: _pair_counts(tasks, len(distances)) for name, (tasks, _) in samples.items()}
    between = float(np.corrcoef(pairs["published"], pairs["ours"])[0, 1])
    within = float(np.corrcoef(_pair_counts(ours(distances, 99)[0], len(distances)), pairs["ours"])[0, 1])
    agree = bool(
        np.allclose(quartiles["published"], quartiles["ours"], atol=1.5)
        and abs(spread["published"] - spread["ours"]) < 0.25 * spread["published"]
        and abs(between - within) < 0.02
    )
    if not agree:
        raise RuntimeError(
            f"The samplers disagree: {quartiles}, {spread}, correlations {between:.3f} and {within:.3f}."
        )
    return {
        "ratio": seconds["published"][0] / fast,
        "ratio_tensor_max": seconds["tensor_max"][0] / fast,
        "published_seconds": seconds["published"][0],
        "tensor_max_seconds": seconds["tensor_max"][0],
        "seconds": fast,
        "n_tasks": N_TASKS,
        "published_quartiles": quartiles["published"].round(2).tolist(),
        "quartiles": quartiles["ours"].round(2).tolist(),
        "agree": agree,
    }


def _pair_counts(tasks: np.ndarray, n_classes: int) -> np.ndarray:
    """Number of tasks that hold each pair of classes."""
    held = np.zeros((len(tasks), n_classes))
    np.put_along_axis(held, tasks, 1.0, axis=1)
    return (held.T @ held)[np.triu_indices(n_classes, 1)]
