"""Images to label next: the least confident ones, compared with random ones.

A question of the prediction study (Bontonou et al. 2020, section VI-F). Semi-supervised tasks start from a balanced
support. Some queries get their label, the logistic regression is trained again and classifies the other queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from fsviz.numerics import chunk_seed, mean_and_ci95
from fsviz.records import Features, Tasks

if TYPE_CHECKING:
    from torch import Tensor

    from fsviz.difficulty.task_statistics import TaskView
    from fsviz.studies.prediction.tasks import PredictionSpec

POLICIES = ("least confident", "random")
BUDGETS = (0, 1, 2, 5, 10, 20, 30, 50, 75, 100, 150)


class LabellingSummary(TypedDict):
    """Curves over the number of labelled images, for the unlabelled images ("rest") and for all.

    By policy "mean" and "ci95" of the accuracy; "gain" and "gain_ci95" of the first policy over the second.
    """

    budgets: list[int]
    n_tasks: int
    rest: dict[str, Any]
    all: dict[str, Any]


def budgets(spec: PredictionSpec) -> list[int]:
    """Numbers of images to label: at most half of the queries."""
    return [n for n in BUDGETS if n <= spec["n_way"] * spec["n_query"] / 2]


def label_and_retrain(spec: PredictionSpec, tasks: Tasks, table: Features, first: int) -> dict[str, np.ndarray]:
    """Accuracy (T, B, 2) for every budget and policy.

    rest   on the images that stay unlabelled
    all    on all images; labelled ones count as correct
    first  number of the first task
    """
    import torch

    from fsviz.difficulty.task_statistics import task_views

    counts = budgets(spec)
    shape = (len(tasks), len(counts), len(POLICIES))
    accuracy = {"rest": np.full(shape, np.nan), "all": np.full(shape, np.nan)}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, "semi", spec["neighbours"]):
            generators = [np.random.default_rng(chunk_seed(spec["seed"], first + int(t))) for t in where]
            n_query = view.query_mask.shape[1]
            at_random = torch.from_numpy(np.stack([rng.random(n_query) for rng in generators])).to(view.confidence)
            for policy, order in enumerate((view.confidence, at_random)):
                order = order.argsort(dim=1, stable=True)
                for at, n in enumerate(counts):
                    labelled = torch.zeros_like(view.query_mask).scatter_(1, order[:, :n], True)
                    correct = (view.predicted if n == 0 else _retrained(view, labelled)) == view.query_labels
                    n_correct = (correct & ~labelled).sum(1).double()
                    accuracy["rest"][where, at, policy] = (n_correct / (n_query - n)).numpy()
                    accuracy["all"][where, at, policy] = ((n_correct + n) / n_query).numpy()
    return accuracy


def labelled(spec: PredictionSpec, tasks: Tasks, table: Features, policy: str, n: int) -> list[np.ndarray]:
    """The n images per task that a policy labels first; the first task has number 0."""
    import torch

    from fsviz.difficulty.task_statistics import task_views

    images: list[np.ndarray] = [np.empty(0, int)] * len(tasks)
    with torch.inference_mode():
        for where, view in task_views(table, tasks, "semi", spec["neighbours"]):
            for t, confidence in zip(where, view.confidence.numpy(), strict=True):
                generator = np.random.default_rng(chunk_seed(spec["seed"], int(t)))
                order = confidence if policy == POLICIES[0] else generator.random(view.query_mask.shape[1])
                images[t] = tasks.query[t].ravel()[np.argsort(order, kind="stable")[:n]]
    return images


def _retrained(view: TaskView, labelled: Tensor) -> Tensor:
    """Predictions (T, M) of the queries after training on support and labelled queries (T, M)."""
    import torch

    from fsviz.methods import logistic

    ways = torch.arange(view.ways.shape[1])
    has_label = torch.cat([view.support_mask.flatten(1), labelled], 1)
    of_way = has_label.unsqueeze(1) & (view.labels.unsqueeze(1) == ways[:, None])  # (T, W, V)
    max_labelled = int(of_way.sum(2).max())
    mask, order = of_way.to(torch.uint8).sort(dim=2, descending=True, stable=True)
    mask, order = mask[..., :max_labelled].bool(), order[..., :max_labelled]
    rows = order.flatten(1).unsqueeze(2).expand(-1, -1, view.images.shape[2])
    support = view.images.gather(1, rows).view(*order.shape, -1).masked_fill(~mask.unsqueeze(3), 0.0)
    weights = logistic.train(support, mask)
    queries = view.images[:, view.n_support :]
    return (torch.bmm(weights[:, :, :-1], queries.transpose(1, 2)) + weights[:, :, -1:]).max(1).indices


def summary(spec: PredictionSpec, accuracies: Mapping[str, np.ndarray]) -> LabellingSummary:
    """Mean accuracies of both policies (fractions) with 95% intervals over tasks, and their paired difference."""
    curves: dict[str, dict[str, Any]] = {}
    for kind in ("rest", "all"):
        mean, half = mean_and_ci95(accuracies[kind], axis=0)
        gain, gain_half = mean_and_ci95(accuracies[kind][..., 0] - accuracies[kind][..., 1], axis=0)
        curves[kind] = {
            **{policy: {"mean": mean[:, p], "ci95": half[:, p]} for p, policy in enumerate(POLICIES)},
            "gain": gain,
            "gain_ci95": gain_half,
        }
    return {"budgets": budgets(spec), "n_tasks": len(accuracies["rest"]), "rest": curves["rest"], "all": curves["all"]}
