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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fsviz.errors import BadInput, Cancelled
from fsviz.numerics import LARGE, needs_double
from fsviz.records import PAD, Features, Progress, Tasks

if TYPE_CHECKING:
    import torch

OBJECTIVES = ("hard", "easy")
LOSSES = ("euclidean", "cosine")
COSINE_SCALE = 10.0
SPREAD = 3.0  # mean scaled squared distance between queries and prototypes, see natural_scale
STARTS = ("ones", "random")
PAPER_STEP = 200.0
_LOOKED_AT = 64  # classes

Weights = dict[int, "torch.Tensor"]  # class_id -> (E, n_c): selection weights wherever a class stands


def select_supports(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    loss: str = "euclidean",
    scale: float | None = None,
    step: float = PAPER_STEP,
    n_steps: int = 1,
    start: str = "ones",
    seed: int = 0,
    literal: bool = False,
    device: str = "cpu",
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with the support images that FastDiffSel picks; shots per class stay as they are.

    loss      "euclidean" (minus the squared distance, as the paper) or "cosine" (similarity times 10).
    scale     what distances or similarities are multiplied with; None is 10 for cosine and `natural_scale`, task by
              task, for euclidean. 1 gives the plain squared distance.
    start     "ones" (deterministic) or "random" (uniform in [0, 1), as the paper). Random weights follow from the seed
              and the task's own queries, so that a task's support is the same alone and in company of any others.
    step      size of a gradient step. From ones, one step picks the same images whatever its size, because the
              order of the weights is the order of the gradient: then the closed form is used, without weights.
    n_steps   more than one step starts the next from the projected, now sparse weights.
    literal   every step as algorithm 1 has it: the gradient of the sum of the queries' losses, weights that may become
              negative, and the heaviest images after the last projection. It leaves few weights other than zero, with
              large steps fewer than shots; the images of weight zero that fill the set up are random.

    One step follows a straight line. Where a class has distinct groups, an easy set of several shots may therefore
    stay inside one group and miss the variety that a random set has; greedy search does not.
    """
    import torch

    check_request(features, tasks, objective, loss, step, n_steps, start)
    sign = 1.0 if objective == "hard" else -1.0
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    n_tasks = len(tasks)
    chunk = chunk or _chunk_size(tasks, features.values.shape[1])
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    with torch.inference_mode():
        for first in range(0, n_tasks, chunk):
            part = tasks.take(slice(first, min(first + chunk, n_tasks)))
            if start == "ones" and n_steps == 1 and not literal:
                chosen = _closed_form(layout, part, sign, loss, scale)
            else:
                chosen = _ascend(layout, part, sign, loss, scale, step, n_steps, start, seed, literal)
            support[first : first + len(part)] = chosen
            if progress is not None and progress(first + len(part), n_tasks, f"{objective} support sets") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


def select_by_step(
    features: Features,
    tasks: Tasks,
    steps: Sequence[float],
    objectives: Sequence[str] = ("hard", "easy"),
    loss: str = "euclidean",
    scale: float | None = None,
    start: str = "random",
    seed: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
) -> dict[tuple[str, float], Tasks]:
    """What `select_supports` picks after one step, for every objective and size of the step.

    The gradient is the same for all of them, so that many sizes take hardly longer than one.
    """
    import torch

    for objective in objectives:
        for step in steps:
            check_request(features, tasks, objective, loss, step, 1, start)
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    chunk = _chunk_size(tasks, features.values.shape[1])
    support = {(o, s): np.full(tasks.support.shape, PAD, dtype=np.int64) for o in objectives for s in steps}
    with torch.inference_mode():
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            weights = _first_weights(layout, part, start, seed)
            slopes, _ = _slopes(layout, part, _asked(layout, part, loss, scale), weights, loss)
            for (objective, step), chosen in support.items():
                moved = _moved(weights, slopes, 1.0 if objective == "hard" else -1.0, step)
                chosen[first : first + len(part)] = _select(layout, part, moved, start, seed, False)
            if progress is not None and progress(first + len(part), len(tasks), "tasks, every step size") is False:
                raise Cancelled("The search for support sets was stopped.")
    return {which: Tasks(tasks.class_ids, chosen, tasks.query, tasks.measures) for which, chosen in support.items()}


def trace_steps(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    loss: str = "euclidean",
    scale: float | None = None,
    step: float = PAPER_STEP,
    n_steps: int = 6,
    start: str = "ones",
    seed: int = 0,
    literal: bool = False,
    device: str = "cpu",
    progress: Progress | None = None,
) -> tuple[list[Tasks], np.ndarray]:
    """What `select_supports` picks after 1, 2, ... n_steps steps, and the loss of the weighted prototypes on the way.

    The losses (n_steps + 1, T) are the mean query losses in nats under prototypes that are weighted means of the whole
    pool: of the first weights, then after every step and its projection (Basu et al. 2023, appendix K).
    """
    import torch

    check_request(features, tasks, objective, loss, step, n_steps, start)
    sign = 1.0 if objective == "hard" else -1.0
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    chunk = _chunk_size(tasks, features.values.shape[1])
    support = np.full((n_steps, *tasks.support.shape), PAD, dtype=np.int64)
    losses = np.empty((n_steps + 1, len(tasks)))
    with torch.inference_mode():
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            at = slice(first, first + len(part))
            steps = _steps(layout, part, sign, loss, scale, step, n_steps + 1, start, seed, literal)
            for nth, (moved, before) in enumerate(steps):
                losses[nth, at] = before.cpu().numpy()
                if nth < n_steps:
                    support[nth, at] = _select(layout, part, moved, start, seed, literal)
            if progress is not None and progress(first + len(part), len(tasks), "tasks, step by step") is False:
                raise Cancelled("The search for support sets was stopped.")
    return [Tasks(tasks.class_ids, chosen, tasks.query, tasks.measures) for chosen in support], losses


def support_loss(
    features: Features, tasks: Tasks, loss: str = "euclidean", scale: float | None = None, device: str = "cpu"
) -> np.ndarray:
    """Mean query loss (T,), in nats, under the prototypes of the tasks' own support: what the search tries to raise.

    loss and scale are those of `select_supports`; the scale of a task follows from its pool, whatever its support.
    """
    import torch

    check_request(features, tasks, "hard", loss, 1.0, 1, "ones")
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    layout.require_support(tasks)
    chunk = _chunk_size(tasks, features.values.shape[1])
    losses = np.empty(len(tasks))
    with torch.inference_mode():
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            query, query_mask, labels = layout.queries(part)
            rows = layout.rows(part.support)
            there = torch.from_numpy(rows != PAD).to(layout.device)
            chosen = layout.all_values[torch.from_numpy(np.maximum(rows, 0)).to(layout.device)] * there[..., None]
            prototypes = chosen.sum(dim=2) / there.sum(dim=2).clamp(min=1)[..., None]
            way_mask = there.any(dim=2)
            means = layout.pool_means(part, query, query_mask)
            known = torch.from_numpy(part.class_ids != PAD).to(layout.device)
            factor = resolve_scale(scale, loss, means, known, query, query_mask)
            found, _ = loss_gradient(prototypes, way_mask, query, query_mask, labels, loss, factor)
            losses[first : first + len(part)] = found.cpu().numpy()
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


class ClassLayout:
    """Features with the rows of a class side by side, so that a class is one slice and one matrix.

    values[class_id] (n_c, D) float32, or float64 where the features need it (numerics.needs_double);
    image_ids[class_id] (n_c,); place (row of an image_id inside its class).
    """

    def __init__(self, features: Features, class_ids: np.ndarray, device: str = "cpu") -> None:
        import torch

        kept = np.flatnonzero(np.isin(features.class_ids, class_ids))
        order = kept[np.argsort(features.class_ids[kept], kind="stable")]
        values = np.asarray(features.values[order])
        values = values if values.dtype == np.float64 else values.astype(np.float32, copy=False)
        largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        if not np.isfinite(largest):
            raise BadInput(
                f"The {features.backbone} features of {features.dataset} hold values that are not finite (NaN or "
                "infinity). Extract or import them again."
            )
        if largest > LARGE or _in_double(features):
            values = values.astype(np.float64, copy=False)
        sorted_classes = features.class_ids[order]
        self.device = device
        self.all_values = torch.from_numpy(values).to(device)
        self.row_of = np.full(int(features.image_ids.max(initial=0)) + 2, PAD, dtype=np.int64)
        self.row_of[features.image_ids[order]] = np.arange(len(order))
        self.all_image_ids = features.image_ids[order]
        self.groups = None if features.groups is None else features.groups[self.all_image_ids]
        self.first = {int(c): int(np.searchsorted(sorted_classes, c)) for c in class_ids}
        self.count = {
            int(c): int(np.searchsorted(sorted_classes, c, side="right")) - self.first[int(c)] for c in class_ids
        }

    def values(self, class_id: int) -> torch.Tensor:
        first = self.first[class_id]
        return self.all_values[first : first + self.count[class_id]]

    def image_ids(self, class_id: int) -> np.ndarray:
        first = self.first[class_id]
        return self.all_image_ids[first : first + self.count[class_id]]

    def rows(self, image_ids: np.ndarray) -> np.ndarray:
        """Row of every image_id in all_values; PAD where an id is PAD or has no features here."""
        beyond = (image_ids < 0) | (image_ids >= len(self.row_of) - 1)
        return self.row_of[np.where(beyond, len(self.row_of) - 1, image_ids)]

    def require_pool(self, tasks: Tasks) -> None:
        """Every query has features, and every class keeps at least as many images as it needs shots."""
        rows = self.rows(tasks.query)
        lost = (tasks.query != PAD) & (rows == PAD)
        if lost.any():
            raise BadInput(
                f"{int(lost.sum())} query images have no features (the first is image {int(tasks.query[lost][0])}). "
                "Extract the features of the whole dataset, or sample the tasks from images that have them."
            )
        n_query = (tasks.query != PAD).sum(axis=2)
        n_shot = (tasks.support != PAD).sum(axis=2)
        in_class = np.zeros_like(tasks.class_ids)
        for class_id, count in self.count.items():
            in_class[tasks.class_ids == class_id] = count
        in_pool = in_class - n_query
        if self.groups is not None:
            for class_id, at in class_entries(tasks):
                in_pool[at] = pool_mask(self, tasks, class_id, at).sum(dim=1).cpu().numpy()
        short = (tasks.class_ids != PAD) & (in_pool < n_shot)
        if short.any():
            t, w = np.argwhere(short)[0]
            lost = (
                "queries" if self.groups is None else "queries or of a group with a query (copies, frames of a video)"
            )
            raise BadInput(
                f"The pool of a class must hold at least as many images as shots. Class {int(tasks.class_ids[t, w])} "
                f"has {in_class[t, w]} images with features, {(in_class - in_pool)[t, w]} of them {lost}, and "
                f"{int(n_shot[t, w])} shots are asked for. Lower n_shot or n_query, or leave the class out."
            )

    def require_support(self, tasks: Tasks) -> None:
        """Every support image has features: what a search that starts from the support needs."""
        lost = (tasks.support != PAD) & (self.rows(tasks.support) == PAD)
        if lost.any():
            raise BadInput(f"{int(lost.sum())} support images have no features. Extract those of the whole dataset.")

    def queries(self, tasks: Tasks) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query features (T, M, D), mask (T, M) and labels (T, M), with the queries of all classes in one row."""
        import torch

        n_tasks, n_way, n_query = tasks.query.shape
        rows = self.rows(tasks.query).reshape(n_tasks, n_way * n_query)
        mask = torch.from_numpy(rows != PAD).to(self.device)
        values = self.all_values[torch.from_numpy(np.maximum(rows, 0)).to(self.device)]
        labels = torch.arange(n_way, device=self.device).repeat_interleave(n_query).expand(n_tasks, -1)
        return values, mask, labels

    def group_codes(self, class_id: int) -> np.ndarray:
        """Group (n_c,) of every image of a class, counted from 0 in ascending order; its place where there are none."""
        first, count = self.first[class_id], self.count[class_id]
        if self.groups is None:
            return np.arange(count)
        return np.unique(self.groups[first : first + count], return_inverse=True)[1]

    def one_per_group(self, key: torch.Tensor, class_id: int) -> torch.Tensor:
        """Keys (E, n_c) in the same order, but behind the best image of every group come all others of it.

        Copies of a picture have the same key: without this, five of them would make a support set of one picture.
        """
        import torch

        codes = torch.from_numpy(self.group_codes(class_id)).to(key.device).expand(key.shape)
        rank = key.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
        best = torch.full_like(rank, rank.shape[1]).scatter_reduce(1, codes, rank, "amin")
        again = (rank != best.gather(1, codes)) & key.isfinite()
        return -(rank + rank.shape[1] * (again + 2 * ~key.isfinite())).to(key)

    def pool_means(self, tasks: Tasks, query: torch.Tensor, query_mask: torch.Tensor) -> torch.Tensor:
        """Mean feature (T, W, D) of every class's pool: the class's sum without the task's queries of it."""
        import torch

        n_tasks, n_way = tasks.class_ids.shape
        if self.groups is not None:
            means = torch.zeros(n_tasks, n_way, query.shape[2]).to(query)
            for class_id, at in class_entries(tasks):
                pool = pool_mask(self, tasks, class_id, at).to(query)
                means[at] = pool @ self.values(class_id) / pool.sum(dim=1, keepdim=True).clamp(min=1)
            return means
        left_out = query.masked_fill(~query_mask[:, :, None], 0).reshape(n_tasks, n_way, -1, query.shape[2]).sum(dim=2)
        n_left_out = query_mask.reshape(n_tasks, n_way, -1).sum(dim=2)
        means = torch.zeros_like(left_out)
        for class_id, at in class_entries(tasks):
            values = self.values(class_id)
            means[at] = (values.sum(dim=0) - left_out[at]) / (len(values) - n_left_out[at])[:, None].clamp(min=1)
        return means


def _in_double(features: Features) -> bool:
    """Whether these features need float64, from one image each of some classes: the same whichever tasks are asked."""
    _, rows = np.unique(features.class_ids, return_index=True)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _LOOKED_AT)).astype(int)]
    return bool(needs_double(np.asarray(features.values[rows], dtype=np.float32)[None])[0])


def _least(values: torch.Tensor) -> float:
    """The length below which a vector counts as zero: its square is the smallest number of this precision."""
    import torch

    return torch.finfo(values.dtype).tiny ** 0.5


def natural_scale(
    prototypes: torch.Tensor, way_mask: torch.Tensor, query: torch.Tensor, query_mask: torch.Tensor
) -> torch.Tensor:
    """Factor (T, 1, 1) that makes the mean squared distance of a task's queries to its prototypes SPREAD.

    Backbones differ in the size of their features by orders of magnitude, and with large distances the softmax sees
    one nearly misclassified query and nothing else: the gradient then no longer finds what hurts the task. On
    clustered and on real features, hard sets are hardest and easy sets easiest for spreads between 1 and 5.
    """
    import torch

    pairs = (query_mask[:, :, None] & way_mask[:, None, :]).to(query)
    squared = (
        (query**2).sum(dim=2)[:, :, None]
        - 2 * query @ prototypes.transpose(1, 2)
        + (prototypes**2).sum(dim=2)[:, None, :]
    ).clamp(min=0)
    mean = (squared * pairs).sum(dim=(1, 2)) / pairs.sum(dim=(1, 2)).clamp(min=1)
    rounding = torch.finfo(query.dtype).eps * (query**2).sum(dim=2).amax(dim=1)  # distances of equal images
    return (SPREAD / torch.maximum(mean, rounding).clamp(min=_least(query)))[:, None, None]


def resolve_scale(
    scale: float | None,
    loss: str,
    prototypes: torch.Tensor,
    way_mask: torch.Tensor,
    query: torch.Tensor,
    query_mask: torch.Tensor,
) -> torch.Tensor | float:
    """The factor of the loss: the one asked for, or the loss's own."""
    if scale is not None:
        return float(scale)
    return COSINE_SCALE if loss == "cosine" else natural_scale(prototypes, way_mask, query, query_mask)


def normalised(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors (..., D) of length one."""
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=_least(vectors))


def logits_of(dots: torch.Tensor, square: torch.Tensor, loss: str, scale: torch.Tensor | float) -> torch.Tensor:
    """Logits of prototypes from their inner products with the queries and their squared lengths.

    For the loss "cosine" the queries must be normalised.
    """
    import torch

    if loss == "euclidean":
        return scale * (2 * dots - square)
    return scale * dots / square.clamp(min=torch.finfo(square.dtype).tiny).sqrt()


def loss_gradient(
    prototypes: torch.Tensor,
    way_mask: torch.Tensor,
    query: torch.Tensor,
    query_mask: torch.Tensor,
    labels: torch.Tensor,
    loss: str,
    scale: torch.Tensor | float,
    per_class: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean query loss (T,) and its gradient with respect to every prototype (T, W, D).

    With per_class the gradient of every class is scaled by its own positive factor, so that it keeps its direction
    even where the softmax is so sure of itself that the true gradient would underflow to zero.
    """
    import torch

    if loss == "euclidean":
        logits = 2 * query @ prototypes.transpose(1, 2) - (prototypes**2).sum(dim=2)[:, None, :]
    else:
        length = prototypes.norm(dim=2, keepdim=True).clamp(min=_least(query))
        direction = prototypes / length
        query = normalised(query)
        logits = query @ direction.transpose(1, 2)
    logits = (scale * logits).masked_fill(~way_mask[:, None, :], -torch.inf)
    log_p = logits - logits.logsumexp(dim=2, keepdim=True)
    true = labels[:, :, None] == torch.arange(logits.shape[2], device=logits.device)
    count = query_mask.sum(dim=1).clamp(min=1)
    mean_loss = -(log_p.gather(2, labels[:, :, None])[:, :, 0].masked_fill(~query_mask, 0)).sum(dim=1) / count
    # p - 1 of the true class is minus the sum of the others: exact also where p is nearly 1
    others = log_p.masked_fill(true, -torch.inf).logsumexp(dim=2, keepdim=True)
    log_size = torch.where(true, others, log_p).masked_fill(~query_mask[:, :, None], -torch.inf)
    if per_class:
        top = log_size.amax(dim=1, keepdim=True)
        log_size = log_size - torch.where(top.isfinite(), top, 0)
    residual = torch.where(true, -1.0, 1.0) * log_size.exp() / count[:, None, None]
    if loss == "euclidean":
        gradient = 2 * (residual.transpose(1, 2) @ query - residual.sum(dim=1)[:, :, None] * prototypes)
    else:
        pull = residual.transpose(1, 2) @ query
        gradient = (pull - (pull * direction).sum(dim=2, keepdim=True) * direction) / length
    return mean_loss, scale * gradient


def _closed_form(layout: ClassLayout, tasks: Tasks, sign: float, loss: str, scale: float | None) -> np.ndarray:
    """One step from equal weights: the prototypes are the pools' means, the order is that of g_j . f_i."""
    import torch

    query, query_mask, labels = layout.queries(tasks)
    prototypes = layout.pool_means(tasks, query, query_mask)
    way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
    scales = resolve_scale(scale, loss, prototypes, way_mask, query, query_mask)
    _, gradient = loss_gradient(prototypes, way_mask, query, query_mask, labels, loss, scales, per_class=True)
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    for class_id, at in class_entries(tasks):
        key = sign * (gradient[at] @ layout.values(class_id).T)
        _take_heaviest(layout, tasks, class_id, at, key, support)
    return support


def _ascend(
    layout: ClassLayout,
    tasks: Tasks,
    sign: float,
    loss: str,
    scale: float | None,
    step: float,
    n_steps: int,
    start: str,
    seed: int,
    literal: bool = False,
) -> np.ndarray:
    """Any start and any number of steps, with the weights of every class at hand."""
    *_, (moved, _) = _steps(layout, tasks, sign, loss, scale, step, n_steps, start, seed, literal)
    return _select(layout, tasks, moved, start, seed, literal)


def _steps(
    layout: ClassLayout,
    tasks: Tasks,
    sign: float,
    loss: str,
    scale: float | None,
    step: float,
    n_steps: int,
    start: str,
    seed: int,
    literal: bool = False,
) -> Iterator[tuple[Weights, torch.Tensor]]:
    """Step by step: the weights it led to, not yet projected, and the mean query loss (T,) of those it started from."""
    asked = _asked(layout, tasks, loss, scale)
    weights = _first_weights(layout, tasks, start, seed)
    moved: Weights = {}
    for nth in range(n_steps):
        if nth:
            weights = _projected(layout, tasks, moved, literal)
        slopes, mean_loss = _slopes(layout, tasks, asked, weights, loss, literal)
        moved = _moved(weights, slopes, sign, step)
        yield moved, mean_loss


@dataclass(frozen=True)
class _Asked:
    """The queries of tasks (see ClassLayout.queries), which ways they have (T, W), and the factor of the loss."""

    query: torch.Tensor
    query_mask: torch.Tensor
    labels: torch.Tensor
    way_mask: torch.Tensor
    scales: torch.Tensor | float


def _asked(layout: ClassLayout, tasks: Tasks, loss: str, scale: float | None) -> _Asked:
    import torch

    query, query_mask, labels = layout.queries(tasks)
    way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
    scales = resolve_scale(scale, loss, layout.pool_means(tasks, query, query_mask), way_mask, query, query_mask)
    return _Asked(query, query_mask, labels, way_mask, scales)


def _slopes(
    layout: ClassLayout, tasks: Tasks, asked: _Asked, weights: Weights, loss: str, literal: bool = False
) -> tuple[Weights, torch.Tensor]:
    """How fast the loss rises with every weight (literally the sum of the queries' losses, else their mean), and the
    mean query loss (T,)."""
    import torch

    query, entries = asked.query, class_entries(tasks)
    of_sum = asked.query_mask.sum(dim=1) if literal else torch.ones(len(tasks), device=layout.device)
    prototypes = torch.zeros(*tasks.class_ids.shape, query.shape[2]).to(query)
    for class_id, at in entries:
        w = weights[class_id]
        prototypes[at] = (w @ layout.values(class_id)) / w.sum(dim=1, keepdim=True)
    mean_loss, gradient = loss_gradient(
        prototypes, asked.way_mask, query, asked.query_mask, asked.labels, loss, asked.scales
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


def _moved(weights: Weights, slopes: Weights, sign: float, step: float) -> Weights:
    return {class_id: w + sign * step * slopes[class_id] for class_id, w in weights.items()}


def _projected(layout: ClassLayout, tasks: Tasks, moved: Weights, literal: bool) -> Weights:
    """The weights after the projection; literally also negative ones."""
    import torch

    n_shot = torch.from_numpy((tasks.support != PAD).sum(axis=2)).to(layout.device)
    weights = {}
    for class_id, at in class_entries(tasks):
        kept = moved[class_id] * pool_mask(layout, tasks, class_id, at)
        weights[class_id] = project_l1(kept if literal else kept.clamp(min=0), n_shot[at])
    return weights


def _select(layout: ClassLayout, tasks: Tasks, moved: Weights, start: str, seed: int, literal: bool) -> np.ndarray:
    """The heaviest images after the last step.

    The projection would keep the order of positive weights but set most to zero; before it these have an order too.
    Literally after it, images of weight zero are taken in the order of their first weights.
    """
    support = np.full(tasks.support.shape, PAD, dtype=np.int64)
    projected = _projected(layout, tasks, moved, literal) if literal else {}
    first = _first_weights(layout, tasks, start, seed) if literal else {}
    for class_id, at in class_entries(tasks):
        key = moved[class_id]
        if literal:
            by_first = first[class_id].argsort(dim=1, descending=True, stable=True)
            heaviest = projected[class_id].gather(1, by_first).argsort(dim=1, descending=True, stable=True)
            key = -by_first.gather(1, heaviest).argsort(dim=1).to(key)  # minus the place of every image in that order
        _take_heaviest(layout, tasks, class_id, at, key, support)
    return support


def _first_weights(layout: ClassLayout, tasks: Tasks, start: str, seed: int) -> Weights:
    """The weights before any step; those of queries are zero."""
    import torch

    drawn = _random_weights(layout, tasks, seed) if start == "random" else {}
    first = {}
    for class_id, at in class_entries(tasks):
        pool = pool_mask(layout, tasks, class_id, at)
        if start == "random":
            w = torch.from_numpy(np.stack([drawn[t, w] for t, w in zip(*at, strict=True)]))
        else:
            w = torch.ones(pool.shape)
        first[class_id] = w.to(layout.all_values) * pool
    return first


def _random_weights(layout: ClassLayout, tasks: Tasks, seed: int) -> dict[tuple[int, int], np.ndarray]:
    """Uniform weights of every class's images, by (task, way); one generator a task, seeded by its queries."""
    drawn = {}
    for t, (class_ids, query) in enumerate(zip(tasks.class_ids, tasks.query, strict=True)):
        rng = np.random.default_rng((seed, *query[query != PAD].tolist()))
        for w in np.flatnonzero(class_ids != PAD):
            drawn[t, int(w)] = rng.random(layout.count[int(class_ids[w])], dtype=np.float32)
    return drawn


def class_entries(tasks: Tasks) -> list[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Class by class, where it stands: class_id and the (task, way) positions that use it."""
    flat = tasks.class_ids.ravel()
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] != PAD]
    classes, first = np.unique(flat[order], return_index=True)
    groups = np.split(order, first[1:])
    return [(int(c), divmod(g, tasks.n_way)) for c, g in zip(classes, groups, strict=True)]


def pool_mask(layout: ClassLayout, tasks: Tasks, class_id: int, at: tuple[np.ndarray, np.ndarray]) -> torch.Tensor:
    """(E, n_c): true for the images that a task may select, false for its queries and what shares a group with one."""
    import torch

    if layout.groups is not None:
        first, codes = layout.first[class_id], layout.group_codes(class_id)
        own = np.unique(layout.groups[first : first + layout.count[class_id]])
        rows = layout.rows(tasks.query[at[0]]).reshape(len(at[0]), -1)  # the queries of all classes of the task
        asked = layout.groups[np.maximum(rows, 0)]
        place = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        entry, slot = np.nonzero((rows != PAD) & (own[place] == asked))
        met = np.zeros((len(at[0]), len(own)), dtype=bool)
        met[entry, place[entry, slot]] = True
        return torch.from_numpy(~met[:, codes]).to(layout.device)
    places = layout.rows(tasks.query[at]) - layout.first[class_id]
    entry, slot = np.nonzero(tasks.query[at] != PAD)
    mask = np.ones((len(at[0]), layout.count[class_id]), dtype=bool)
    mask[entry, places[entry, slot]] = False
    return torch.from_numpy(mask).to(layout.device)


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

    wanted = tasks.support[at] != PAD
    most = int(wanted.sum(axis=1).max())
    if most == 0:
        return
    pool = pool_mask(layout, tasks, class_id, at)
    key = key.masked_fill(~pool, -torch.inf)
    if layout.groups is not None:
        key = layout.one_per_group(key, class_id)
    best = key.topk(most, dim=1).indices.cpu().numpy()
    entry, _ = np.nonzero(wanted)
    nth = wanted.cumsum(axis=1)[wanted] - 1
    filled = np.full(wanted.shape, PAD, dtype=np.int64)
    filled[wanted] = layout.image_ids(class_id)[best[entry, nth]]
    support[at] = filled


def _chunk_size(tasks: Tasks, n_dims: int, budget: int = 64_000_000) -> int:
    """Tasks at a time so that query features stay below `budget` numbers."""
    return max(1, min(512, budget // max(1, tasks.query[0].size * n_dims * 2 if len(tasks) else 1)))


def check_request(
    features: Features, tasks: Tasks, objective: str, loss: str, step: float, n_steps: int, start: str
) -> None:
    if objective not in OBJECTIVES:
        raise BadInput(f"The objective must be one of {', '.join(OBJECTIVES)}. Got {objective!r}.")
    if loss not in LOSSES:
        raise BadInput(f"The loss must be one of {', '.join(LOSSES)}. Got {loss!r}.")
    if start not in STARTS:
        raise BadInput(f"The weights must start from one of {', '.join(STARTS)}. Got {start!r}.")
    if not (np.isfinite(step) and step > 0):
        raise BadInput(f"The step must be a positive number (the paper uses {PAPER_STEP:g}). Got {step}.")
    if n_steps < 1:
        raise BadInput(f"There must be at least one gradient step. Got {n_steps}.")
    if not tasks.has_images:
        raise BadInput("These tasks name classes only. Sample them with n_shot and n_query of at least 1.")
