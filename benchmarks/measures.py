"""Measures of tasks, all of a setting at once, against a loop over tasks with scikit-learn: 5-way 5-shot 30-query.

The loop is what one writes first, after the published code: per task a logistic regression by Adam in torch,
scikit-learn's KMeans (ten starts) and its Davies-Bouldin score, cosines and eigenvalues by numpy. Both sides see the
same semi-supervised tasks with 640 dimensions; their measures are compared task by task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

N_TASKS, N_LOOP, MANY = 256, 6, 10_000
N_WAY, N_SHOT, N_QUERY = 5, 5, 30
NAMES = ("support_loss", "support_separation", "davies_bouldin", "graph_connectivity", "prediction_uncertainty")


def data() -> tuple[Any, Any]:
    from benchmarks.hard import clustered_features, random_tasks

    features = clustered_features()
    tasks = random_tasks(features, N_TASKS)
    rng = np.random.default_rng(2)
    per_class = int((features.class_ids == 0).sum())
    order = np.argsort(rng.random((N_TASKS, N_WAY, per_class)), axis=2)[:, :, : N_SHOT + N_QUERY]
    image_ids = order + tasks.class_ids[:, :, None] * per_class
    return features, type(tasks)(tasks.class_ids, image_ids[:, :, :N_SHOT], image_ids[:, :, N_SHOT:])


def one_task(values: np.ndarray, support: np.ndarray, query: np.ndarray) -> dict[str, float]:
    """Accuracy and all measures of one semi-supervised task, step by step."""
    import torch
    from sklearn.cluster import KMeans
    from sklearn.metrics import davies_bouldin_score

    images = values[np.concatenate([support.ravel(), query.ravel()])]
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    weights = nearest(images)
    scale = 1 / np.sqrt(weights.sum(1))
    images = 0.75 * images + (weights * scale[:, None] * scale) @ images
    labels = np.repeat(np.arange(N_WAY), N_SHOT)
    train, test = (torch.from_numpy(part) for part in np.split(images, [support.size]))
    model = torch.nn.Linear(images.shape[1], N_WAY)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-6)
    luck = np.random.default_rng(0)
    for _ in range(50):
        for batch in luck.permutation(support.size).reshape(-1, 5):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(train[batch]), torch.from_numpy(labels[batch])).backward()
            optimiser.step()
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(train), torch.from_numpy(labels))
        probability = model(test).softmax(1)
    cosines = unit_products(images)
    of = [np.flatnonzero(labels == c) for c in range(N_WAY)]
    intra = [(cosines[np.ix_(c, c)].sum() - N_SHOT) / (N_SHOT * (N_SHOT - 1)) for c in of]
    inter = [max(cosines[np.ix_(c, d)].mean() for d in of if d is not c) for c in of]
    graph = nearest(images)
    graph = (graph + graph.T) / 2
    clusters = KMeans(N_WAY, n_init=10, random_state=0).fit_predict(images)
    return {
        "support_loss": float(loss),
        "support_separation": float(np.mean(np.subtract(intra, inter))),
        "davies_bouldin": float(davies_bouldin_score(images, clusters)),
        "graph_connectivity": float(np.linalg.eigvalsh(np.diag(graph.sum(1)) - graph)[N_WAY - 1]),
        "prediction_uncertainty": float(-probability.max(1).values.log().mean()),
        "outcome": float((probability.argmax(1).numpy() == np.repeat(np.arange(N_WAY), N_QUERY)).mean()),
    }


def unit_products(images: np.ndarray) -> np.ndarray:
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    return unit @ unit.T


def nearest(images: np.ndarray, k: int = 15) -> np.ndarray:
    cosines = unit_products(images)
    np.fill_diagonal(cosines, 0)
    return np.where(cosines >= np.sort(cosines, axis=1)[:, -k][:, None], np.maximum(cosines, 0), 0)


def all_tasks(features: Any, tasks: Any, setting: str = "semi") -> dict[str, np.ndarray]:
    """The same for all tasks, batched."""
    import torch

    from fsviz.difficulty.measures import MEASURES
    from fsviz.difficulty.task_statistics import task_views

    values = {name: np.full(len(tasks), np.nan) for name in (*NAMES, "outcome")}
    with torch.inference_mode():
        for where, view in task_views(features, tasks, setting):
            values["outcome"][where] = view.outcome.numpy()
            for name in NAMES:
                if all(view.has(need) for need in MEASURES[name].needs):
                    values[name][where] = MEASURES[name](view)
    return values


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    features, tasks = data()
    with threadpool_limits(1):
        all_tasks(features, tasks.take(slice(0, 2)))  # the first call of a process loads libraries
        one_task(features.values, tasks.support[0], tasks.query[0])
        seconds: dict[str, float] = {}
        for setting in ("semi", "supervised"):
            seconds[setting], values = timed(lambda setting=setting: all_tasks(features, tasks, setting))
            seconds[setting] /= N_TASKS
            if setting == "semi":
                ours = values
            progress(f"{setting}: {1000 * seconds[setting]:.2f} ms per task, {N_TASKS} tasks")
        spent, loop = timed(
            lambda: [one_task(features.values, tasks.support[t], tasks.query[t]) for t in range(N_LOOP)]
        )
    seconds["loop"] = spent / N_LOOP
    progress(f"loop: {1000 * seconds['loop']:.1f} ms per task, {N_LOOP} tasks")
    differences = {
        name: float(np.max(np.abs([row[name] - ours[name][t] for t, row in enumerate(loop)])))
        for name in (*NAMES, "outcome")
    }
    for name, most in {
        "support_loss": 0.01,
        "support_separation": 1e-3,
        "graph_connectivity": 1e-3,
        "prediction_uncertainty": 0.02,
    }.items():
        if differences[name] > most:
            raise AssertionError(f"{name} differs from the loop by {differences[name]:.3g}")
    return {
        "ratio": seconds["loop"] / seconds["semi"],
        "seconds_per_task": seconds,
        "seconds_of_10000_on_two_cores": {s: MANY * seconds[s] / 2 for s in ("supervised", "semi")},
        "largest_difference": differences,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of one thread, which other programs do not lengthen, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
