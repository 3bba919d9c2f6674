"""Which images should be labelled next? Those that a classifier is least sure of, against images drawn at random.

A part of the prediction study (Bontonou et al. 2020, section VI-F): semi-supervised tasks start from a balanced
support; some queries are labelled, the logistic regression is trained again, and what it says of the queries that are
still without a label is counted.
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
    from fsviz.studies.prediction.tasks import Spec

POLICIES = ("least confident", "random")
BUDGETS = (0, 1, 2, 5, 10, 20, 30, 50, 75, 100, 150)


class Summary(TypedDict):
    """Curves over the numbers of images that are labelled, of the images that stay unlabelled ("rest") and of all: by
    policy "mean" and "ci95" of the accuracy, and "gain" and "gain_ci95" of the first policy over the second."""

    budgets: list[int]
    n_tasks: int
    rest: dict[str, Any]
    all: dict[str, Any]


def budgets(spec: Spec) -> list[int]:
    """Numbers of images that are labelled: at most half of the unlabelled ones."""
    return [n for n in BUDGETS if n <= spec["n_way"] * spec["n_query"] / 2]


def label_and_learn(spec: Spec, tasks: Tasks, table: Features, first: int) -> dict[str, np.ndarray]:
    """rest (T, B, 2): accuracy on the images that stay unlabelled; all (T, B, 2): share of all images whose label is
    right in the end, the given ones included; for every budget and policy. `first` is the number of the first task."""
    import torch

    from fsviz.difficulty.task_statistics import task_views

    steps = budgets(spec)
    shape = (len(tasks), len(steps), len(POLICIES))
    found = {"rest": np.full(shape, np.nan), "all": np.full(shape, np.nan)}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, "semi", spec["neighbours"]):
            luck = [np.random.default_rng(chunk_seed(spec["seed"], first + int(t))) for t in where]
            n_query = view.query_mask.shape[1]
            at_random = torch.from_numpy(np.stack([rng.random(n_query) for rng in luck])).to(view.confidence)
            for p, order in enumerate((view.confidence, at_random)):
                order = order.argsort(dim=1, stable=True)
                for b, n in enumerate(steps):
                    labelled = torch.zeros_like(view.query_mask).scatter_(1, order[:, :n], True)
                    right = (view.predicted if n == 0 else _relearned(view, labelled)) == view.query_labels
                    rest = (right & ~labelled).sum(1).double()
                    found["rest"][where, b, p] = (rest / (n_query - n)).numpy()
                    found["all"][where, b, p] = ((rest + n) / n_query).numpy()
    return found


def labelled(spec: Spec, tasks: Tasks, table: Features, policy: str, n: int) -> list[np.ndarray]:
    """Per task the n images that a policy labels first, as `label_and_learn` does; the tasks begin with number 0."""
    import torch

    from fsviz.difficulty.task_statistics import task_views

    found: list[np.ndarray] = [np.empty(0, int)] * len(tasks)
    with torch.inference_mode():
        for where, view in task_views(table, tasks, "semi", spec["neighbours"]):
            for t, confidence in zip(where, view.confidence.numpy(), strict=True):
                luck = np.random.default_rng(chunk_seed(spec["seed"], int(t)))
                order = confidence if policy == POLICIES[0] else luck.random(view.query_mask.shape[1])
                found[t] = tasks.query[t].ravel()[np.argsort(order, kind="stable")[:n]]
    return found


def _relearned(view: TaskView, labelled: Tensor) -> Tensor:
    """What is said of every query (T, M) once the labelled ones (T, M) are part of the support."""
    import torch

    from fsviz.methods import logistic

    ways = torch.arange(view.ways.shape[1])
    known = torch.cat([view.support_mask.flatten(1), labelled], 1)
    mine = known.unsqueeze(1) & (view.labels.unsqueeze(1) == ways[:, None])  # (T, W, V)
    most = int(mine.sum(2).max())
    mask, place = mine.to(torch.uint8).sort(dim=2, descending=True, stable=True)
    mask, place = mask[..., :most].bool(), place[..., :most]
    rows = place.flatten(1).unsqueeze(2).expand(-1, -1, view.images.shape[2])
    support = view.images.gather(1, rows).view(*place.shape, -1).masked_fill(~mask.unsqueeze(3), 0.0)
    weights = logistic.train(support, mask)
    queries = view.images[:, view.n_support :]
    return (torch.bmm(weights[:, :, :-1], queries.transpose(1, 2)) + weights[:, :, -1:]).max(1).indices


def summary(spec: Spec, found: Mapping[str, np.ndarray]) -> Summary:
    """Curves of both policies: mean accuracies in fractions with 95% intervals over tasks of these images, and the
    paired difference of the two."""
    curves: dict[str, dict[str, Any]] = {}
    for kind in ("rest", "all"):
        mean, half = mean_and_ci95(found[kind], axis=0)
        gain, gain_half = mean_and_ci95(found[kind][..., 0] - found[kind][..., 1], axis=0)
        curves[kind] = {
            **{policy: {"mean": mean[:, p], "ci95": half[:, p]} for p, policy in enumerate(POLICIES)},
            "gain": gain,
            "gain_ci95": gain_half,
        }
    return {"budgets": budgets(spec), "n_tasks": len(found["rest"]), "rest": curves["rest"], "all": curves["all"]}
