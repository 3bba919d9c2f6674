"""Support sets with low, or high, accuracy: a coordinate search over support images, on accuracy itself.

FastDiffSel and greedy search move the query loss, which is not accuracy: an easy set of theirs may classify no more
queries than a random one. This search starts from the tasks' own support. Class by class and image by image it tries
every image of the pool, and keeps the one with the fewest (hard) or most (easy) correct queries; ties go to the higher
or lower query loss. It stops when no exchange of one image helps, or after `MAX_SWEEPS` sweeps. That is a local
optimum of a search: other supports may be harder still.

All tasks of a batch are searched together. A trial moves one prototype only, and its distances follow from inner
products of the candidates with the queries and with each other, which are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from fsviz.difficulty import objectives
from fsviz.difficulty.class_layout import ClassLayout, class_entries, layout_of, pool_mask
from fsviz.difficulty.query_loss import logits_of, loss_gradient, normalised, resolve_scale
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import Cancelled
from fsviz.numerics import threads
from fsviz.records import PAD, Features, Progress, Tasks

if TYPE_CHECKING:
    import torch

MAX_CANDIDATES = 128  # images per class that are tried: the whole pool, or those that the gradient likes best
MAX_SWEEPS = 4
_RAGGED = 8  # tasks of different shapes that are padded to one
_LEAST_GAIN = 1e-5  # of the loss, relative: below it lies rounding


def search_by_accuracy(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    options: SearchOptions | None = None,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with support sets that start from the tasks' own and improve image by image.

    The number of correct queries of a task never rises (hard) or falls (easy), by nearest prototypes.
    """
    import torch

    options = options or SearchOptions()
    sign = objectives.get(objective).sign
    layout = layout_of(features, tasks, options.device)
    layout.require_support(tasks)
    support = tasks.support.copy()
    done = 0
    with torch.inference_mode(), threads(1):  # many small steps: on a busy machine, threads wait for one another
        for batch in _batches(tasks, features.values.shape[1], chunk):
            part, ways, slots = _trimmed(tasks.take(batch))
            support[np.ix_(batch, ways, slots)] = _searched(layout, part, sign, options)
            done += len(batch)
            if progress is not None and progress(done, len(tasks), f"{objective} support sets, by accuracy") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


def _batches(tasks: Tasks, n_dims: int, chunk: int | None, budget: int = 16_000_000) -> list[np.ndarray]:
    """Tasks that are searched together: few enough that candidates and trials stay below `budget` numbers.

    Tasks of different shapes go by size, so that small ones are not padded to the largest.
    """
    n_used = (tasks.support != PAD).sum(axis=(1, 2))
    order = np.argsort(n_used, kind="stable")
    if chunk is None:
        n_way, n_shot, n_query = *tasks.support.shape[1:], tasks.query[:1].size
        n_candidates = _most_candidates(n_shot)
        per_task = n_way * n_candidates * (n_dims + n_query + n_candidates) + n_way * n_shot * n_query
        chunk = max(1, min(256 if np.ptp(n_used) == 0 else _RAGGED, budget // per_task)) if len(tasks) else 1
    return [order[first : first + chunk] for first in range(0, len(order), chunk)]


def _trimmed(tasks: Tasks) -> tuple[Tasks, np.ndarray, np.ndarray]:
    """The tasks without ways, slots and query places that none of them uses; the ways and slots that are kept."""
    ways = np.flatnonzero((tasks.class_ids != PAD).any(axis=0))
    slots = np.flatnonzero((tasks.support != PAD).any(axis=(0, 1)))
    places = np.flatnonzero((tasks.query != PAD).any(axis=(0, 1)))
    return (
        Tasks(tasks.class_ids[:, ways], tasks.support[:, ways][:, :, slots], tasks.query[:, ways][:, :, places]),
        ways,
        slots,
    )


def _most_candidates(n_shot: int) -> int:
    """Candidates of a class at most: with many shots there must be others than the support."""
    return max(MAX_CANDIDATES, 2 * n_shot)


def _searched(layout: ClassLayout, tasks: Tasks, sign: int, options: SearchOptions) -> np.ndarray:
    """Support (T, W, K) of a batch of tasks after the search."""

    state = _state(layout, tasks, sign, options)
    support = tasks.support.copy()
    places = np.arange(len(tasks))
    for _ in range(MAX_SWEEPS):
        is_changed = _sweep(state, sign, options.loss)
        rows = state.rows.gather(2, state.selected).cpu().numpy()
        support[places] = np.where(state.slots.cpu().numpy(), layout.all_image_ids[rows], PAD)
        if not bool(is_changed.any()):
            break
        state, places = state.take(is_changed), places[is_changed.cpu().numpy()]
    return support


@dataclass
class _State:
    """A batch of tasks during the search. T tasks, W ways, K shots, M queries, B candidates of a class.

    rows        (T, W, B) rows of the candidates in the layout; the first hold the support
    in_pool     (T, W, B) false if a class has fewer candidates
    codes       (T, W, B) groups of the candidates: of each a support has one image
    selected      (T, W, K) the candidates that are the support
    slots       (T, W, K) false if a slot is not used
    with_query  (T, W, B, M) inner products of the candidates with the queries
    with_each   (T, W, B, B) inner products of the candidates with each other
    labels, query_mask  (T, M)
    way_mask    (T, W)
    scale       (T, 1, 1) factor of the loss
    """

    rows: torch.Tensor
    in_pool: torch.Tensor
    codes: torch.Tensor
    selected: torch.Tensor
    slots: torch.Tensor
    with_query: torch.Tensor
    with_each: torch.Tensor
    labels: torch.Tensor
    query_mask: torch.Tensor
    way_mask: torch.Tensor
    scale: torch.Tensor

    def take(self, is_kept: torch.Tensor) -> _State:
        """The tasks of a mask."""
        if bool(is_kept.all()):
            return self
        return _State(**{field.name: getattr(self, field.name)[is_kept] for field in fields(self)})


def _state(layout: ClassLayout, tasks: Tasks, sign: int, options: SearchOptions) -> _State:
    """The tasks with their candidates and all inner products."""
    import torch

    query, query_mask, labels = layout.queries(tasks)
    way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
    means = layout.pool_means(tasks, query, query_mask)
    scale = torch.as_tensor(resolve_scale(options, means, way_mask, query, query_mask)).to(query)
    scale = scale.expand(len(tasks), 1, 1)
    inputs = (way_mask, query, query_mask, labels, options.loss, scale)
    _, gradient = loss_gradient(means, *inputs, per_class=True)
    support = layout.rows(tasks.support)
    rows, in_pool = _candidates(layout, tasks, sign * gradient, support)
    slots = torch.from_numpy(support != PAD).to(layout.device)
    support_rows = torch.from_numpy(support).to(layout.device)
    selected = (rows[:, :, None, :] == support_rows[..., None]).to(torch.uint8).argmax(dim=3)
    values = layout.all_values[rows]  # (T, W, B, D)
    if options.loss == "cosine":
        query = normalised(query)
    codes = rows
    if layout.groups is not None:
        codes = torch.from_numpy(np.asarray(layout.groups)).to(layout.device)[rows]
    return _State(
        rows=rows,
        in_pool=in_pool,
        codes=codes,
        selected=selected,
        slots=slots,
        with_query=(values.flatten(1, 2) @ query.transpose(1, 2)).unflatten(1, values.shape[1:3]),
        with_each=values @ values.transpose(2, 3),
        labels=labels,
        query_mask=query_mask,
        way_mask=way_mask,
        scale=scale,
    )


def _candidates(
    layout: ClassLayout, tasks: Tasks, direction: torch.Tensor, support: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (T, W, B) of the support and of the images of the pool that lie farthest along a direction (T, W, D).

    False if a class has fewer.
    """
    import torch

    largest = max(layout.count[class_id] for class_id, _ in class_entries(tasks))
    most = min(_most_candidates(support.shape[2]), largest)
    rows = torch.zeros(*tasks.class_ids.shape, most, dtype=torch.long, device=layout.device)
    in_pool = torch.zeros(rows.shape, dtype=torch.bool, device=layout.device)
    for class_id, at in class_entries(tasks):
        key = direction[at] @ layout.values(class_id).T
        key = key.masked_fill(~pool_mask(layout, tasks, class_id, at), -torch.inf)
        entry, slot = np.nonzero(support[at] != PAD)
        key[entry, support[at][entry, slot] - layout.first[class_id]] = torch.inf
        top = key.topk(min(most, key.shape[1]), dim=1)
        width = slice(0, top.indices.shape[1])
        rows[(*at, width)] = top.indices + layout.first[class_id]
        in_pool[(*at, width)] = top.values > -torch.inf
    return rows, in_pool


def _sweep(state: _State, sign: int, loss: str) -> torch.Tensor:
    """Tries every candidate in every slot, in place; which tasks (T,) changed."""
    import torch

    is_changed = torch.zeros(len(state.rows), dtype=torch.bool, device=state.rows.device)
    logits = torch.stack([_logits_of_way(state, way, loss) for way in range(state.rows.shape[1])], dim=1)
    for way in range(logits.shape[1]):
        against = _Opponents.of(logits, way, state)
        for slot in range(state.selected.shape[2]):
            is_changed |= _exchange(state, way, slot, against, sign, loss)
        logits[:, way] = _logits_of_way(state, way, loss)
    return is_changed


@dataclass
class _Opponents:
    """The other classes of the tasks, for one way whose prototype moves.

    limit      (T, 1, M) the logit above which a query counts for this way
    log_rest   (T, 1, M) log-sum-exp of the other classes
    is_other   (T, 1, M) queries of other classes: correct as long as the logit is not above the limit
    own, used  (T, M, 1) queries of this way, and of the task, as numbers
    constant   (T, 1) the part of the loss that this way has no part in
    """

    limit: torch.Tensor
    log_rest: torch.Tensor
    is_other: torch.Tensor
    own: torch.Tensor
    used: torch.Tensor
    constant: torch.Tensor

    @staticmethod
    def of(logits: torch.Tensor, way: int, state: _State) -> _Opponents:
        import torch

        remaining = torch.cat([logits[:, :way], logits[:, way + 1 :]], dim=1)
        highest = remaining.amax(dim=1)
        true = logits.gather(1, state.labels[:, None]).squeeze(1)
        is_own = (state.labels == way) & state.query_mask
        limit = torch.where(is_own | (true >= highest), highest, -torch.inf)  # of others, those that are lost already
        limit = limit.masked_fill(~state.query_mask, torch.inf)  # padding is always correct
        log_rest = remaining.logsumexp(dim=1)
        constant = (log_rest - true.masked_fill(is_own, 0)).masked_fill(~state.query_mask, 0).sum(dim=1, keepdim=True)
        return _Opponents(
            limit[:, None],
            log_rest[:, None],
            ~is_own[:, None],
            is_own[..., None].to(logits),
            state.query_mask[..., None].to(logits),
            constant,
        )


def _logits_of_way(state: _State, way: int, loss: str) -> torch.Tensor:
    """Logits (T, M) of a way's prototype; minus infinity if the task has no such way."""
    import torch

    used = state.slots[:, way].to(state.with_query)
    n_shot = used.sum(dim=1).clamp(min=1)
    selected = state.selected[:, way]
    dots = (_picked(state.with_query[:, way], selected) * used[..., None]).sum(dim=1) / n_shot[:, None]
    each = _picked(_picked(state.with_each[:, way], selected).transpose(1, 2), selected)  # (T, K, K)
    square = (each * used[:, :, None] * used[:, None, :]).sum(dim=(1, 2)) / n_shot**2
    logits = logits_of(dots, square[:, None], loss, state.scale[:, 0])
    return logits.masked_fill(~state.way_mask[:, way, None], -torch.inf)


def _picked(values: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
    """Rows (T, K, ...) of values (T, B, ...) at places (T, K)."""
    return values.gather(1, selected[..., None].expand(*selected.shape, values.shape[2]))


def _exchange(state: _State, way: int, slot: int, against: _Opponents, sign: int, loss: str) -> torch.Tensor:
    """Puts the best candidate into one slot of one way of all tasks, in place; which tasks (T,) changed."""
    import torch
    from torch.nn import functional

    used = state.slots[:, way].clone()
    is_used = used[:, slot].clone()
    used[:, slot] = False
    selected, with_query, with_each = state.selected[:, way], state.with_query[:, way], state.with_each[:, way]
    rest = used.to(with_query)[..., None]  # (T, K, 1)
    n_shot = (rest.sum(dim=1) + 1)[..., None]  # (T, 1, 1)
    dots = (_picked(with_query, selected) * rest).sum(dim=1, keepdim=True) + with_query  # (T, B, M)
    inner = (_picked(with_each, selected) * rest).sum(dim=1)  # (T, B) rest . candidate
    rest_square = (inner.gather(1, selected) * rest[..., 0]).sum(dim=1, keepdim=True)
    square = rest_square + 2 * inner + with_each.diagonal(dim1=1, dim2=2)
    trial = logits_of(dots / n_shot, square[..., None] / n_shot**2, loss, state.scale)
    n_wrong = ((trial > against.limit) == against.is_other).sum(dim=2)
    n_queries = against.used.sum(dim=1)
    # the cross-entropy of the queries, as far as this way has a part in it
    total = functional.softplus(trial - against.log_rest) @ against.used - trial @ against.own
    mean_loss = sign * (total[..., 0] + against.constant) / n_queries
    count = sign * n_wrong
    now_count, now_loss = (of.gather(1, selected[:, slot, None])[:, 0] for of in (count, mean_loss))
    codes = state.codes[:, way]
    present = codes.gather(1, selected).masked_fill(~used, -1)
    is_blocked = (codes[:, :, None] == present[:, None, :]).any(dim=2) | ~state.in_pool[:, way]
    best_count = count.masked_fill(is_blocked, torch.iinfo(count.dtype).min).amax(dim=1)
    is_best = (count == best_count[:, None]) & ~is_blocked
    best_loss, at = mean_loss.masked_fill(~is_best, -torch.inf).max(dim=1)
    is_gain = best_loss > now_loss + _LEAST_GAIN * (1 + now_loss.abs())
    is_better = is_used & ((best_count > now_count) | ((best_count == now_count) & is_gain))
    state.selected[:, way, slot] = torch.where(is_better, at, selected[:, slot])
    return is_better
