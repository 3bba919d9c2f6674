"""The search for hard support sets against greedy search: 5-way 5-shot, 600 images per class, 640 dimensions.

The naive sweep is what one writes first: for every slot and every candidate, rebuild the support set, compute the
prototypes and the query loss. The vectorised sweep tries all candidates of a slot at once. The search here is
FastDiffSel, one gradient step; the accuracy search that starts from it, the default of the dashboard, is timed too. All
see the same tasks and the same loss, and their hard and easy sets are compared by the accuracy of prototypes on the
queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

N_WAY, N_SHOT, N_QUERY, N_POOL, N_DIMS, N_CLASSES = 5, 5, 10, 600, 640, 20
BATCH = 200  # tasks that the search takes at once; a run of the dashboard has at least as many
FEW = 10  # tasks that greedy search gets, and that accuracies are of


def clustered_features(seed: int = 0) -> Any:
    """Overlapping classes with six subgroups each (as contexts and styles make them) in a 16-dimensional subspace."""
    from fsviz.records import Features

    rng = np.random.default_rng(seed)
    n_latent, n_groups = 16, 6
    basis = np.linalg.qr(rng.normal(size=(N_DIMS, n_latent)))[0].T
    centres = rng.normal(size=(N_CLASSES, 1, n_latent))
    groups = centres + 0.7 * rng.normal(size=(N_CLASSES, n_groups, n_latent))
    class_ids = np.repeat(np.arange(N_CLASSES), N_POOL + N_QUERY)
    latent = groups[class_ids, rng.integers(0, n_groups, len(class_ids))] + rng.normal(size=(len(class_ids), n_latent))
    values = (0.4 * latent @ basis + 0.02 * rng.normal(size=(len(class_ids), N_DIMS))).astype(np.float32)
    return Features("synthetic", "synthetic", values, np.arange(len(class_ids)), class_ids)


def random_tasks(features: Any, n_tasks: int, seed: int = 1) -> Any:
    from fsviz.records import Tasks

    rng = np.random.default_rng(seed)
    class_ids = np.stack([rng.choice(N_CLASSES, N_WAY, replace=False) for _ in range(n_tasks)])
    n_images = N_POOL + N_QUERY
    order = np.argsort(rng.random((n_tasks, N_WAY, n_images)), axis=2)[:, :, : N_SHOT + N_QUERY]
    image_ids = order + class_ids[:, :, None] * n_images
    return Tasks(class_ids, image_ids[:, :, :N_SHOT], image_ids[:, :, N_SHOT:])


def query_loss(features: np.ndarray, support: np.ndarray, query: np.ndarray, labels: np.ndarray) -> float:
    """Cross-entropy of the queries under the support's prototypes, from scratch."""
    prototypes = features[support].mean(axis=1)
    logits = -((features[query][:, None, :] - prototypes[None]) ** 2).sum(axis=2)
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return float(-log_p[np.arange(len(labels)), labels].mean())


def naive_greedy(features: np.ndarray, class_of: np.ndarray, task: Any) -> np.ndarray:
    """One sweep over every slot and every candidate, one loss at a time; support (W, S)."""
    support = task.support[0].copy()
    query = task.query[0].ravel()
    labels = np.repeat(np.arange(N_WAY), task.query.shape[2])
    for way, class_id in enumerate(task.class_ids[0]):
        pool = np.setdiff1d(np.flatnonzero(class_of == class_id), query)
        for slot in range(support.shape[1]):
            best, best_loss = support[way, slot], query_loss(features, support, query, labels)
            for candidate in pool:
                if candidate in support[way]:
                    continue
                trial = support.copy()
                trial[way, slot] = candidate
                trial_loss = query_loss(features, trial, query, labels)
                if trial_loss > best_loss:
                    best, best_loss = candidate, trial_loss
            support[way, slot] = best
    return support


def accuracy(features: np.ndarray, tasks: Any) -> float:
    """Mean accuracy of nearest prototypes, in percent."""
    hits = []
    for support, query in zip(tasks.support, tasks.query, strict=True):
        prototypes = features[support].mean(axis=1)
        distance = ((features[query][:, :, None, :] - prototypes) ** 2).sum(axis=3)
        hits.append((distance.argmin(axis=2) == np.arange(len(support))[:, None]).mean())
    return 100 * float(np.mean(hits))


def run(progress: Callable[[str], None], repeats: int = 5) -> dict[str, Any]:
    import torch

    from fsviz.difficulty.accuracy_search import search_by_accuracy
    from fsviz.difficulty.fastdiffsel import select_supports
    from fsviz.difficulty.greedy import greedy_supports
    from fsviz.difficulty.search_options import SearchOptions

    def by_accuracy(features: Any, tasks: Any, objective: str = "hard", options: SearchOptions | None = None) -> Any:
        return search_by_accuracy(features, select_supports(features, tasks, objective, options), objective, options)

    torch.set_num_threads(1)
    plain = SearchOptions(scale=1.0)
    features = clustered_features()
    tasks = random_tasks(features, BATCH)
    few, single = tasks.take(slice(0, FEW)), tasks.take(slice(0, 1))
    searches = {"fastdiffsel": select_supports, "accuracy": by_accuracy, "greedy": greedy_supports}
    for search in searches.values():
        search(features, single, options=plain)  # the first call of a process loads libraries

    seconds: dict[str, list[float]] = {name: [] for name in (*searches, "naive", "one_task")}
    results: dict[str, Any] = {}
    for repeat in range(repeats):
        for name, search in searches.items():
            batch = few if name == "greedy" else tasks
            spent, results[name] = _timed(lambda search=search, batch=batch: search(features, batch, options=plain))
            seconds[name].append(spent / len(batch))
        seconds["one_task"].append(_timed(lambda: select_supports(features, single))[0])
        if repeat < 2:  # a naive sweep takes seconds
            progress(f"naive sweep {repeat + 1} of 2")
            task = tasks.take(slice(repeat, repeat + 1))
            spent, support = _timed(lambda task=task: naive_greedy(features.values, features.class_ids, task))
            seconds["naive"].append(spent)
            same = float(np.mean(np.sort(support) == np.sort(results["greedy"].support[repeat])))
            progress(f"  {spent:.2f} s; {same:.0%} of its images are those of the vectorised sweep")
            if same < 0.9:
                raise AssertionError("the vectorised sweep does not choose what the naive one chooses")
    per_task = {name: float(np.median(values)) for name, values in seconds.items()}
    easy = {name: search(features, few, "easy", plain) for name, search in searches.items()}
    return {
        "ratio": per_task["naive"] / per_task["fastdiffsel"],
        "ratio_vectorised": per_task["greedy"] / per_task["fastdiffsel"],
        "ratio_accuracy": per_task["naive"] / per_task["accuracy"],
        "ratio_accuracy_vectorised": per_task["greedy"] / per_task["accuracy"],
        "seconds_per_task": per_task,
        "accuracy": {
            "random": accuracy(features.values, few),
            "hard": {name: accuracy(features.values, sets.take(slice(0, FEW))) for name, sets in results.items()},
            "easy": {name: accuracy(features.values, sets) for name, sets in easy.items()},
        },
        "n_tasks": len(tasks),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of one thread, which other programs do not lengthen, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
