"""FastDiffSel (Basu et al. 2023): the support images, out of a whole pool, on which a classifier fails or shines.

A task's queries are fixed. Every image i of the pool of class j (all its images but the queries; where features know
groups of images, none of a group that has a query, and of each group one as long as they last) has a selection
weight w_i >= 0; the prototype of the class is the weighted mean c_j = sum_i w_i f_i / sum_i w_i, and L is the
cross-entropy of the queries under the prototypes. One step of gradient ascent on w, a projection of every class's
weights onto the l1 ball of radius k_j, and the k_j heaviest images are the hard support set; descent gives an easy one.

With g_j = dL/dc_j the gradient is dL/dw_i = g_j . (f_i - c_j) / sum(w_j): no autograd is needed. Classes are laid out
contiguously, so that one matrix product serves every task that uses a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsviz.difficulty import objectives
from fsviz.difficulty.class_layout import ClassLayout, class_entries, layout_of, pool_mask
from fsviz.difficulty.query_loss import loss_gradient, resolve_scale
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput, Cancelled
from fsviz.records import PAD, Features, Progress, Tasks

if TYPE_CHECKING:
    import torch

Weights = dict[int, "torch.Tensor"]  # class_id -> (E, n_c): selection weights of a class in all its tasks


def select_supports(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    options: SearchOptions | None = None,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with the support images that FastDiffSel picks; shots per class stay as they are.

    From equal weights, the order after one step is that of the gradient, whatever the step size: the closed form is
    used, without weights. One step follows a straight line. If a class has distinct groups, an easy set of several
    shots may therefore stay inside one group and miss the variety that a random set has; greedy search does not.
    """
    import torch

    options = options or SearchOptions()
    sign = objectives.get(objective).sign
    layout = layout_of(features, tasks, options.device)
    n_tasks = len(tasks)
    chunk = chunk or _chunk_size(tasks, features.values.shape[1])
    closed = options.start == "ones" and options.n_steps == 1 and not options.literal
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    with torch.inference_mode():
        for first in range(0, n_tasks, chunk):
            part = tasks.take(slice(first, min(first + chunk, n_tasks)))
            select = _closed_form if closed else _ascend
            support[first : first + len(part)] = select(layout, part, sign, options)
            if progress is not None and progress(first + len(part), n_tasks, f"{objective} support sets") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


def trace_steps(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    options: SearchOptions | None = None,
    progress: Progress | None = None,
) -> tuple[list[Tasks], np.ndarray]:
    """Supports that `select_supports` picks after 1, 2, ... n_steps steps, and the loss of the weighted prototypes.

    The losses (n_steps + 1, T) are the mean query losses in nats under prototypes that are weighted means of the whole
    pool: of the first weights, then after every step and its projection (Basu et al. 2023, appendix K).
    """
    import torch

    options = options or SearchOptions(n_steps=6)
    sign, n_steps = objectives.get(objective).sign, options.n_steps
    layout = layout_of(features, tasks, options.device)
    chunk = _chunk_size(tasks, features.values.shape[1])
    support = np.full((n_steps, *tasks.support.shape), PAD, dtype=np.int64)
    losses = np.empty((n_steps + 1, len(tasks)))
    with torch.inference_mode():
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            at = slice(first, first + len(part))
            steps = _steps(layout, part, sign, options, n_steps + 1)
            for nth, (moved, before) in enumerate(steps):
                losses[nth, at] = before.cpu().numpy()
                if nth < n_steps:
                    support[nth, at] = _select(layout, part, moved, options)
            if progress is not None and progress(first + len(part), len(tasks), "tasks, step by step") is False:
                raise Cancelled("The search for support sets was stopped.")
    return [Tasks(tasks.class_ids, selected, tasks.query, tasks.measures) for selected in support], losses


def support_loss(features: Features, tasks: Tasks, options: SearchOptions | None = None) -> np.ndarray:
    """Mean query loss (T,), in nats, under the prototypes of the tasks' own support: what a search raises or lowers.

    The scale of a task follows from its pool, whatever its support.
    """
    import torch

    options = options or SearchOptions()
    layout = layout_of(features, tasks, options.device)
    layout.require_support(tasks)
    chunk = _chunk_size(tasks, features.values.shape[1])
    losses = np.empty(len(tasks))
    with torch.inference_mode():
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            queries = _queries(layout, part, options)
            rows = layout.rows(part.support)
            is_used = torch.from_numpy(rows != PAD).to(layout.device)
            values = layout.all_values[torch.from_numpy(np.maximum(rows, 0)).to(layout.device)] * is_used[..., None]
            prototypes = values.sum(dim=2) / is_used.sum(dim=2).clamp(min=1)[..., None]
            mean_loss, _ = loss_gradient(
                prototypes,
                is_used.any(dim=2),
                queries.values,
                queries.mask,
                queries.labels,
                options.loss,
                queries.scales,
            )
            losses[first : first + len(part)] = mean_loss.cpu().numpy()
    return losses


def project_l1(weights: torch.Tensor, radius: torch.Tensor, n_halvings: int = 60) -> torch.Tensor:
    """Rows of weights (R, n) moved to the nearest point of the l1 ball of their radius (R,).

    The threshold lambda of sign(w) max(|w| - lambda, 0) is found by bisection in [0, max |w|]. A row that is inside
    its ball already is returned as it is.
    """
    import torch

    size = weights.abs()
    radius = radius.to(weights)
    outside = size.sum(dim=1) > radius
    if not bool(outside.any()):
        return weights
    low = torch.zeros_like(radius)
    high = size.amax(dim=1)
    for _ in range(n_halvings):
        middle = (low + high) / 2
        too_small = (size - middle[:, None]).clamp(min=0).sum(dim=1) > radius
        low, high = torch.where(too_small, middle, low), torch.where(too_small, high, middle)
    projected = weights.sign() * (size - high[:, None]).clamp(min=0)
    return torch.where(outside[:, None], projected, weights)


def _closed_form(layout: ClassLayout, tasks: Tasks, sign: int, options: SearchOptions) -> np.ndarray:
    """One step from equal weights: the prototypes are the pools' means, the order is that of g_j . f_i."""
    queries = _queries(layout, tasks, options)
    _, gradient = loss_gradient(
        queries.pool_means,
        queries.way_mask,
        queries.values,
        queries.mask,
        queries.labels,
        options.loss,
        queries.scales,
        per_class=True,
    )
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    for class_id, at in class_entries(tasks):
        key = sign * (gradient[at] @ layout.values(class_id).T)
        _take_heaviest(layout, tasks, class_id, at, key, support)
    return support


def _ascend(layout: ClassLayout, tasks: Tasks, sign: int, options: SearchOptions) -> np.ndarray:
    """Any start and any number of steps, with the weights of every class in memory."""
    *_, (moved, _) = _steps(layout, tasks, sign, options, options.n_steps)
    return _select(layout, tasks, moved, options)


def _steps(
    layout: ClassLayout, tasks: Tasks, sign: int, options: SearchOptions, n_steps: int
) -> Iterator[tuple[Weights, torch.Tensor]]:
    """Step by step: the weights after it, not yet projected, and the mean query loss (T,) of those before it."""
    queries = _queries(layout, tasks, options)
    weights = _first_weights(layout, tasks, options)
    moved: Weights = {}
    for nth in range(n_steps):
        if nth:
            weights = _projected(layout, tasks, moved, options.literal)
        slopes, mean_loss = _slopes(layout, tasks, queries, weights, options)
        moved = {class_id: w + sign * options.step * slopes[class_id] for class_id, w in weights.items()}
        yield moved, mean_loss


@dataclass(frozen=True)
class _Queries:
    """The queries of tasks, and what the loss needs in addition to prototypes.

    values (T, M, D), mask (T, M), labels (T, M)  see ClassLayout.queries
    way_mask (T, W)                               which ways the tasks have
    pool_means (T, W, D)                          mean features of the pools
    scales                                        the factor of the loss
    """

    values: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor
    way_mask: torch.Tensor
    pool_means: torch.Tensor
    scales: torch.Tensor | float


def _queries(layout: ClassLayout, tasks: Tasks, options: SearchOptions) -> _Queries:
    import torch

    values, mask, labels = layout.queries(tasks)
    way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
    means = layout.pool_means(tasks, values, mask)
    return _Queries(values, mask, labels, way_mask, means, resolve_scale(options, means, way_mask, values, mask))


def _slopes(
    layout: ClassLayout, tasks: Tasks, queries: _Queries, weights: Weights, options: SearchOptions
) -> tuple[Weights, torch.Tensor]:
    """The slope of the loss along every weight, and the mean query loss (T,).

    The slope is that of the mean of the queries' losses; of their sum if the search is literal.
    """
    import torch

    entries = class_entries(tasks)
    of_sum = queries.mask.sum(dim=1) if options.literal else torch.ones(len(tasks), device=layout.device)
    prototypes = torch.zeros(*tasks.class_ids.shape, queries.values.shape[2]).to(queries.values)
    for class_id, at in entries:
        w = weights[class_id]
        prototypes[at] = (w @ layout.values(class_id)) / w.sum(dim=1, keepdim=True)
    mean_loss, gradient = loss_gradient(
        prototypes, queries.way_mask, queries.values, queries.mask, queries.labels, options.loss, queries.scales
    )
    if not bool(mean_loss.isfinite().all()):
        raise BadInput(
            "After a gradient step the selection weights of a class cancel each other, so that its prototype is "
            "not finite. Take one step, or a search other than literal, which lets weights become negative."
        )
    slopes = {}
    for class_id, at in entries:
        g = gradient[at] * of_sum[at[0]][:, None]
        along = g @ layout.values(class_id).T - (g * prototypes[at]).sum(dim=1, keepdim=True)
        slopes[class_id] = along / weights[class_id].sum(dim=1, keepdim=True)
    return slopes, mean_loss


def _projected(layout: ClassLayout, tasks: Tasks, moved: Weights, literal: bool) -> Weights:
    """The weights after the projection; literally also negative ones."""
    import torch

    n_shot = torch.from_numpy((tasks.support != PAD).sum(axis=2)).to(layout.device)
    weights = {}
    for class_id, at in class_entries(tasks):
        masked = moved[class_id] * pool_mask(layout, tasks, class_id, at)
        weights[class_id] = project_l1(masked if literal else masked.clamp(min=0), n_shot[at])
    return weights


def _select(layout: ClassLayout, tasks: Tasks, moved: Weights, options: SearchOptions) -> np.ndarray:
    """The heaviest images after the last step.

    The projection would keep the order of positive weights but set most to zero; before it these have an order too.
    Literally after it, images of weight zero are taken in the order of their first weights.
    """
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    projected = _projected(layout, tasks, moved, True) if options.literal else {}
    first = _first_weights(layout, tasks, options) if options.literal else {}
    for class_id, at in class_entries(tasks):
        key = moved[class_id]
        if options.literal:
            by_first = first[class_id].argsort(dim=1, descending=True, stable=True)
            heaviest = projected[class_id].gather(1, by_first).argsort(dim=1, descending=True, stable=True)
            key = -by_first.gather(1, heaviest).argsort(dim=1).to(key)  # minus the place of every image in that order
        _take_heaviest(layout, tasks, class_id, at, key, support)
    return support


def _first_weights(layout: ClassLayout, tasks: Tasks, options: SearchOptions) -> Weights:
    """The weights before any step; those of queries are zero."""
    import torch

    random = _random_weights(layout, tasks, options.seed) if options.start == "random" else {}
    first = {}
    for class_id, at in class_entries(tasks):
        pool = pool_mask(layout, tasks, class_id, at)
        if random:
            w = torch.from_numpy(np.stack([random[t, w] for t, w in zip(*at, strict=True)]))
        else:
            w = torch.ones(pool.shape)
        first[class_id] = w.to(layout.all_values) * pool
    return first


def _random_weights(layout: ClassLayout, tasks: Tasks, seed: int) -> dict[tuple[int, int], np.ndarray]:
    """Uniform weights of every class's images, by (task, way); one generator a task, seeded by its queries."""
    weights = {}
    for t, (class_ids, query) in enumerate(zip(tasks.class_ids, tasks.query, strict=True)):
        rng = np.random.default_rng((seed, *query[query != PAD].tolist()))
        for w in np.flatnonzero(class_ids != PAD):
            weights[t, int(w)] = rng.random(layout.count[int(class_ids[w])], dtype=np.float32)
    return weights


def _take_heaviest(
    layout: ClassLayout,
    tasks: Tasks,
    class_id: int,
    at: tuple[np.ndarray, np.ndarray],
    key: torch.Tensor,
    support: np.ndarray,
) -> None:
    """Writes the images with the largest keys, heaviest first, into the support slots that a task uses."""
    import torch

    is_image = tasks.support[at] != PAD
    most = int(is_image.sum(axis=1).max())
    if most == 0:
        return
    pool = pool_mask(layout, tasks, class_id, at)
    key = key.masked_fill(~pool, -torch.inf)
    if layout.groups is not None:
        key = layout.one_per_group(key, class_id)
    best = key.topk(most, dim=1).indices.cpu().numpy()
    entry, _ = np.nonzero(is_image)
    nth = is_image.cumsum(axis=1)[is_image] - 1
    filled = np.full(is_image.shape, PAD, dtype=np.int64)
    filled[is_image] = layout.image_ids(class_id)[best[entry, nth]]
    support[at] = filled


def _chunk_size(tasks: Tasks, n_dims: int, budget: int = 64_000_000) -> int:
    """Tasks at a time so that query features stay below `budget` numbers."""
    return max(1, min(512, budget // max(1, tasks.query[0].size * n_dims * 2 if len(tasks) else 1)))
