"""Why does accuracy vary from task to task: the classes, the labelled images, or the queries?

A part of the prediction study (Bontonou et al. 2020, algorithms 1 to 3): the standard deviation of the accuracy over
random tasks, over tasks of the same classes, and over tasks that take fixed support images for every class. Every task
is asked several sets of queries, so that the variance falls into three parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fsviz import sampling
from fsviz.numerics import chunk_seed, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Tasks
from fsviz.studies import draw

if TYPE_CHECKING:
    from fsviz.studies.prediction import Cell

PARTS = ("classes", "support", "queries")
N_BLOCKS = 4  # sets of queries that every task is asked


def draw_fixed(cell: Cell, dataset: Dataset, table: Features, shots: bool) -> Tasks:
    """side x side tasks: of `side` sets of classes (or of `side` choices of support images for every class), each the
    same in `side` tasks that follow one another."""
    spec = cell.spec
    side = round(cell.n_tasks**0.5)
    class_ids = dataset.split_class_ids(spec["split"])
    groups = dataset.image_groups() if spec.get("keep_groups", True) else None
    of_image = np.full(len(dataset.image_class_ids()), PAD, dtype=np.int64)
    of_image[table.image_ids] = table.class_ids
    names = dataset.classes["class_name"].astype(str).tolist()

    def dealt(sets: np.ndarray) -> Tasks:
        return sampling.assign_images(
            Tasks(sets), of_image, spec["n_shot"], spec["n_asked"], spec["seed"] + 1, groups, names
        )

    def chosen(n_tasks: int) -> np.ndarray:
        settings = {name: spec[name] for name in draw.OWN if name in spec}
        common = {name: spec[name] for name in ("split", "sampler", "distance", "dag", "seed")}
        backbone = {"backbone": spec["backbone"]} if draw.DISTANCES[spec["distance"]].needs == "features" else {}
        return draw.sample(dataset, **settings, **common, **backbone, n_tasks=n_tasks).tasks.class_ids

    if not shots:
        return dealt(chosen(side).repeat(side, axis=0))
    every = dealt(np.tile(class_ids, (side, 1)))  # support and queries of all classes, `side` times
    sets = chosen(side * side)
    place = np.searchsorted(np.sort(class_ids), sets)
    place = np.argsort(class_ids, kind="stable")[place]
    outer = np.arange(side).repeat(side)[:, None]
    return Tasks(sets, every.support[outer, place], every.query[outer, place])


def block_accuracies(spec: Mapping[str, Any], tasks: Tasks, table: Features, first: int) -> np.ndarray:
    """Accuracy (T, B) of every task on B sets of n_query queries per class, each drawn from all that were dealt."""
    import torch

    from fsviz.difficulty.predictors import views

    n_way, n_asked = tasks.query.shape[1:]
    accuracy = np.empty((len(tasks), N_BLOCKS))
    with torch.inference_mode():
        for where, view in views(table, tasks, spec["setting"], spec["neighbours"]):
            right = (view.predicted == view.query_labels).numpy().reshape(len(where), n_way, n_asked)
            for t, of_task in zip(where, right, strict=True):
                luck = np.random.default_rng(chunk_seed(spec["seed"], first + int(t)))
                order = luck.random((N_BLOCKS, n_way, n_asked)).argsort(2)[:, :, : spec["n_query"]]
                accuracy[t] = np.take_along_axis(of_task[None], order, 2).mean((1, 2))
    return accuracy


def summary(spec: Mapping[str, Any], accuracies: Sequence[np.ndarray]) -> dict[str, Any]:
    """Standard deviations (fractions) of the three algorithms over what is finished, and the parts of the variance."""
    from fsviz.studies.prediction import CAUSES, cells

    result: dict[str, Any] = {"spread": []}
    for cell, blocks in zip(cells(spec), accuracies, strict=False):
        side = round(cell.n_tasks**0.5)
        if cell.value == CAUSES[0]:
            deviation, half, n = _deviation(blocks[:, 0])
            row = {"cause": cell.value, "std": deviation, "ci95": half, "n_sets": 1, "n_tasks": n}
        else:
            whole = len(blocks) // side
            stds = blocks[: whole * side, 0].reshape(whole, side).std(1, ddof=1) if whole else np.full(1, np.nan)
            mean, around = mean_and_ci95(stds)
            row = {
                "cause": cell.value,
                "std": float(mean),
                "ci95": float(around),
                "std_of_std": float(stds.std(ddof=1)) if whole > 1 else None,
                "n_sets": whole,
                "n_tasks": whole * side,
            }
            if cell.value == CAUSES[1] and whole > 1:
                result["parts"] = variance_parts(blocks[: whole * side].reshape(whole, side, -1))
        result["spread"].append(row)
    return result | {"n_tasks": int(sum(row["n_tasks"] for row in result["spread"]))}


def variance_parts(accuracy: np.ndarray, n_resamples: int = 200) -> dict[str, Any]:
    """Shares of the variance of accuracies (sets of classes, supports, sets of queries) by cause, with 95% intervals.

    Nested analysis of variance: what queries add is the variance within a support; what the support adds is the
    variance of its means within a set of classes, less what queries left in them; the rest is due to the classes.
    Intervals are from drawing sets of classes with replacement.
    """
    random = np.random.default_rng(0)
    parts = _parts(accuracy)
    again = np.array([_parts(accuracy[random.integers(0, len(accuracy), len(accuracy))]) for _ in range(n_resamples)])
    shares = again / np.maximum(again.sum(1, keepdims=True), 1e-30)
    low, high = np.quantile(shares, [0.025, 0.975], axis=0)
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


def _parts(accuracy: np.ndarray) -> np.ndarray:
    """Variances due to classes, support and queries (3,), none below zero."""
    _, n_supports, n_blocks = accuracy.shape
    queries = accuracy.var(2, ddof=1).mean()
    means = accuracy.mean(2)
    support = means.var(1, ddof=1).mean()
    classes = means.mean(1).var(ddof=1) - support / n_supports
    return np.maximum([classes, support - queries / n_blocks, queries], 0.0)


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
