"""Support sets made harder, or easier, by a few exact swaps: what one gradient step cannot see.

The gradient of FastDiffSel holds at the pool's mean and follows a straight line; the prototypes of the images it picks
lie far from there. From a given support set, every round takes the gradient at the set's own prototypes, lists for each
class the few images of the pool that it likes best and the few of the set that it likes least, and computes the query
loss of every swap between the two lists. The best swap of a class is made if it helps. All tasks of a batch are refined
together, one class after the other. Greedy search tries the whole pool for every image; short lists find about the same
sets in a tenth of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.difficulty import objectives
from fsviz.difficulty.class_layout import ClassLayout, class_entries, layout_of, pool_mask
from fsviz.difficulty.query_loss import logits_of, loss_gradient, normalised, resolve_scale
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import Cancelled
from fsviz.records import PAD, Features, Progress, Tasks

if TYPE_CHECKING:
    import torch

SHORT_LIST = 8  # images of the pool, and of the set, that are tried per class and round
_RAGGED = 8  # tasks of different shapes that are padded to one
_LEAST_GAIN = 1e-5  # nats, summed over the queries: below it lies rounding


def refine_supports(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    options: SearchOptions | None = None,
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with support sets that start from the tasks' own and improve swap by swap.

    The query loss of a task never falls (hard) or rises (easy).
    """
    import torch

    options = options or SearchOptions()
    sign = objectives.get(objective).sign
    layout = layout_of(features, tasks, options.device)
    layout.require_support(tasks)
    support = tasks.support.copy()
    done = 0
    with torch.inference_mode():
        squares = (layout.all_values**2).sum(dim=1)
        for batch in _batches(tasks, features.values.shape[1], chunk):
            part, ways, slots = _trimmed(tasks.take(batch))
            refined = _Refining(layout, squares, part, sign, options)
            for _ in range(options.n_rounds):
                if not refined.swap_in_every_class():
                    break
            support[np.ix_(batch, ways, slots)] = refined.support()
            done += len(batch)
            if progress is not None and progress(done, len(tasks), f"{objective} support sets, swaps") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


def _batches(tasks: Tasks, n_dims: int, chunk: int | None, budget: int = 16_000_000) -> list[np.ndarray]:
    """Tasks that are refined together: few enough that features and trials stay below `budget` numbers.

    Tasks of different shapes go by size, so that small ones are not padded to the largest.
    """
    n_used = (tasks.support != PAD).sum(axis=(1, 2))
    order = np.argsort(n_used, kind="stable")
    if chunk is None:
        n_way, n_shot, n_query = *tasks.support.shape[1:], tasks.query[:1].size
        per_task = n_way * (n_shot + SHORT_LIST) * (n_dims + n_query) + 3 * SHORT_LIST**2 * n_query
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


class _Refining:
    """A batch of tasks being refined. T tasks, W ways, K shots, M queries, B images of the short list, D dimensions.

    squares       squared lengths of all features of the layout
    rows          (T, W, K) rows of the support in the layout, 0 if a slot is not used
    total         (T, W, D) sum of the features of a class's support
    query_chosen  (T, W, K, M) inner products of the support with the queries
    active        (T,) which tasks still change
    """

    def __init__(
        self, layout: ClassLayout, squares: torch.Tensor, tasks: Tasks, sign: int, options: SearchOptions
    ) -> None:
        import torch

        self.layout, self.squares, self.tasks, self.sign, self.loss = layout, squares, tasks, sign, options.loss
        rows = layout.rows(tasks.support)
        self.slots = torch.from_numpy(rows != PAD).to(layout.device)
        self.rows = torch.from_numpy(np.maximum(rows, 0)).to(layout.device)
        self.query, self.query_mask, self.labels = layout.queries(tasks)
        self.way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
        means = layout.pool_means(tasks, self.query, self.query_mask)
        factor = resolve_scale(options, means, self.way_mask, self.query, self.query_mask)
        self.scale = torch.as_tensor(factor).to(self.query).expand(len(tasks), 1, 1)
        support = self._features(self.rows) * self.slots[..., None]
        self.total = support.sum(dim=2)
        if self.loss == "cosine":
            self.query = normalised(self.query)
        self.query_chosen = _products(support, self.query)
        self.active = np.ones(len(tasks), dtype=bool)

    def support(self) -> np.ndarray:
        image_ids = self.layout.all_image_ids[self.rows.cpu().numpy()]
        return np.where(self.slots.cpu().numpy(), image_ids, PAD)

    def swap_in_every_class(self) -> bool:
        """One round over the tasks that still change; False when none does any more."""
        import torch

        at = torch.from_numpy(np.flatnonzero(self.active)).to(self.layout.device)
        if not len(at):
            return False
        slots, query, labels = self.slots[at], self.query[at], self.labels[at]
        query_mask, scale, way_mask = self.query_mask[at], self.scale[at], self.way_mask[at]
        rows, total, query_chosen = self.rows[at], self.total[at], self.query_chosen[at]
        n_shot = slots.sum(dim=2).clamp(min=1)  # (T, W)
        prototypes = total / n_shot[:, :, None]
        _, gradient = loss_gradient(prototypes, way_mask, query, query_mask, labels, self.loss, scale, per_class=True)
        listed, in_pool = self._short_list(self.tasks.take(at.cpu().numpy()), gradient, rows, slots)
        leaving = self._leaving(gradient, rows, slots)  # (T, W, L) slots that may be swapped
        offered = self._features(listed)  # (T, W, B, D)
        query_offered = _products(offered, query)  # (T, W, B, M)
        with_total = (offered @ total[..., None])[..., 0]  # (T, W, B)
        dots, square = query_chosen.sum(dim=2) / n_shot[:, :, None], (total**2).sum(dim=2) / n_shot**2
        logits = logits_of(dots, square[:, :, None], self.loss, scale)  # (T, W, M)
        logits = logits.masked_fill(~way_mask[:, :, None], -torch.inf)

        every = torch.arange(len(at), device=self.layout.device)[:, None]
        changed = torch.zeros(len(at), dtype=torch.bool, device=self.layout.device)
        for way in range(rows.shape[1]):
            out = leaving[:, way]  # (T, L)
            k = n_shot[:, way, None, None]
            elsewhere = torch.cat([logits[:, :way], logits[:, way + 1 :]], dim=1).logsumexp(dim=1)  # (T, M)
            of_class = (labels == way) & query_mask
            # without the image of a slot and with an offered one: dots with the queries (T, L, B, M), squared length
            without = query_chosen[:, way].sum(dim=1, keepdim=True) - query_chosen[every, way, out]
            dots = (without[:, :, None] + query_offered[:, way][:, None]) / k[..., None]
            removed = self._features(rows[every, way, out])  # (T, L, D)
            rest = (total[:, way] ** 2).sum(dim=1)[:, None] - 2 * (removed @ total[:, way, :, None])[..., 0]
            rest = rest + self.squares[rows[every, way, out]]
            with_rest = with_total[:, way][:, None] - removed @ offered[:, way].transpose(1, 2)
            square = (rest[:, :, None] + 2 * with_rest + self.squares[listed[:, way]][:, None]) / k**2
            trial = logits_of(dots, square[..., None], self.loss, scale[..., None])
            now = _loss_of(logits[:, way], elsewhere, of_class, query_mask)
            wide = (part[:, None, None] for part in (elsewhere, of_class, query_mask))
            gain = self.sign * (_loss_of(trial, *wide) - now[:, None, None])
            gain = gain.masked_fill(~(slots[every, way, out][:, :, None] & in_pool[:, way, None, :]), -torch.inf)
            best, which = gain.flatten(1).max(dim=1)
            task = (best > _LEAST_GAIN).nonzero()[:, 0]
            nth, offer = which[task] // gain.shape[2], which[task] % gain.shape[2]
            slot = out[task, nth]
            rows[task, way, slot] = listed[task, way, offer]
            total[task, way] += offered[task, way, offer] - removed[task, nth]
            query_chosen[task, way, slot] = query_offered[task, way, offer]
            logits[task, way] = trial[task, nth, offer]
            changed[task] = True
        self.rows[at], self.total[at], self.query_chosen[at] = rows, total, query_chosen
        self.active[at.cpu().numpy()] = changed.cpu().numpy()
        return bool(changed.any())

    def _leaving(self, gradient: torch.Tensor, rows: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Slots (T, W, L) whose images the gradient likes least; all of them if they are few."""
        import torch

        if rows.shape[2] <= SHORT_LIST:
            return torch.arange(rows.shape[2], device=rows.device).expand(rows.shape)
        liked = self.sign * (self._features(rows) @ gradient[..., None])[..., 0]
        return liked.masked_fill(~slots, torch.inf).topk(SHORT_LIST, dim=2, largest=False).indices

    def _features(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layout.all_values[rows]

    def _short_list(
        self, tasks: Tasks, gradient: torch.Tensor, rows: torch.Tensor, slots: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows (T, W, B) of the images of the pool, not yet chosen, along the gradient; false if there are fewer."""
        import torch

        listed = torch.zeros(*rows.shape[:2], SHORT_LIST, dtype=torch.long, device=rows.device)
        there = torch.zeros(listed.shape, dtype=torch.bool, device=rows.device)
        for class_id, at in class_entries(tasks):
            key = self.sign * (gradient[at] @ self.layout.values(class_id).T)
            key = key.masked_fill(~pool_mask(self.layout, tasks, class_id, at), -torch.inf)
            entry, slot = slots[at].nonzero(as_tuple=True)
            place = rows[at][entry, slot] - self.layout.first[class_id]
            key[entry, place] = -torch.inf
            if self.layout.groups is not None:  # no second image of a group that is chosen already
                codes = torch.from_numpy(self.layout.group_codes(class_id)).to(rows.device)
                has_group = torch.zeros(len(key), int(codes.max()) + 1, dtype=torch.bool, device=rows.device)
                has_group[entry, codes[place]] = True
                key = key.masked_fill(has_group[:, codes], -torch.inf)
            top = key.topk(min(SHORT_LIST, key.shape[1]), dim=1)
            width = slice(0, top.indices.shape[1])
            listed[(*at, width)] = top.indices + self.layout.first[class_id]
            there[(*at, width)] = top.values.isfinite()
        return listed, there


def _products(images: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Inner products (T, W, n, M) of images (T, W, n, D) with the queries (T, M, D)."""
    return (images.flatten(1, 2) @ query.transpose(1, 2)).unflatten(1, images.shape[1:3])


def _loss_of(
    mine: torch.Tensor, log_rest: torch.Tensor, of_class: torch.Tensor, query_mask: torch.Tensor
) -> torch.Tensor:
    """The sum of the queries' losses (...) as far as one class's logits (..., M) have a part in it.

    others is the log-sum-exp of the other classes; of_class says which queries are of this class.
    """
    import torch

    return torch.logaddexp(log_rest, mine).masked_fill(~query_mask, 0).sum(-1) - mine.masked_fill(~of_class, 0).sum(-1)
