"""Support sets made harder, or easier, by a few exact swaps: what one gradient step cannot see.

The gradient of FastDiffSel holds at the pool's mean and follows a straight line; the prototypes of the images it picks
lie far from there. From a given support set, every round takes the gradient at the set's own prototypes, lists for each
class the few images of the pool that it likes best, and computes the query loss of every swap of one of them for one
image of the set. The best swap of a class is made if it helps. All tasks of a batch are refined together, one class
after the other. Greedy search tries the whole pool for every image; a short list finds about the same sets in a tenth
of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fsviz.difficulty.fastdiffsel import (
    ClassLayout,
    check_request,
    class_entries,
    logits_of,
    loss_gradient,
    normalised,
    pool_mask,
    resolve_scale,
)
from fsviz.errors import BadInput, Cancelled
from fsviz.records import PAD, Features, Progress, Tasks

if TYPE_CHECKING:
    import torch

N_ROUNDS = 3  # swaps per class; more change little, on clustered and on real features
SHORT_LIST = 8  # images of the pool that are tried per class and round
_LEAST_GAIN = 1e-5  # nats, summed over the queries: below it lies rounding


def refine_supports(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    loss: str = "euclidean",
    scale: float | None = None,
    n_rounds: int = N_ROUNDS,
    device: str = "cpu",
    chunk: int | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with support sets that start from the tasks' own and are swapped for the better.

    loss and scale are those of `select_supports`. The query loss of a task never falls (hard) or rises (easy).
    """
    import torch

    check_request(features, tasks, objective, loss, 1.0, 1, "ones")
    if n_rounds < 1:
        raise BadInput(f"Refining needs at least one round of swaps. Got {n_rounds}.")
    layout = ClassLayout(features, np.unique(tasks.class_ids[tasks.class_ids != PAD]), device)
    layout.require_pool(tasks)
    layout.require_support(tasks)
    chunk = chunk or _chunk_size(tasks, features.values.shape[1])
    support = tasks.support.copy()
    with torch.inference_mode():
        squares = (layout.all_values**2).sum(dim=1)
        for first in range(0, len(tasks), chunk):
            part = tasks.take(slice(first, first + chunk))
            refined = _Refining(layout, squares, part, 1.0 if objective == "hard" else -1.0, loss, scale)
            for _ in range(n_rounds):
                if not refined.swap_in_every_class():
                    break
            support[first : first + len(part)] = refined.support()
            if progress is not None and progress(first + len(part), len(tasks), f"{objective} support sets") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


class _Refining:
    """A batch of tasks being refined. T tasks, W ways, K shots, M queries, B images of the short list, D dimensions.

    squares are the squared lengths of all features of the layout; rows (T, W, K) are those of the support in it, 0
    where a slot is not used; active (T,) says which tasks still change.
    """

    def __init__(
        self, layout: ClassLayout, squares: torch.Tensor, tasks: Tasks, sign: float, loss: str, scale: float | None
    ) -> None:
        import torch

        self.layout, self.squares, self.tasks, self.sign, self.loss = layout, squares, tasks, sign, loss
        rows = layout.rows(tasks.support)
        self.slots = torch.from_numpy(rows != PAD).to(layout.device)
        self.rows = torch.from_numpy(np.maximum(rows, 0)).to(layout.device)
        self.query, self.query_mask, self.labels = layout.queries(tasks)
        self.way_mask = torch.from_numpy(tasks.class_ids != PAD).to(layout.device)
        means = layout.pool_means(tasks, self.query, self.query_mask)
        factor = resolve_scale(scale, loss, means, self.way_mask, self.query, self.query_mask)
        self.scale = torch.as_tensor(factor).to(self.query).expand(len(tasks), 1, 1)
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
        values = self.layout.all_values
        rows, slots, query, labels = self.rows[at], self.slots[at], self.query[at], self.labels[at]
        query_mask, scale, way_mask = self.query_mask[at], self.scale[at], self.way_mask[at]
        n_shot = slots.sum(dim=2).clamp(min=1)  # (T, W)
        chosen = values[rows]  # (T, W, K, D)
        if not bool(slots.all()):
            chosen = chosen * slots[:, :, :, None]
        prototypes = chosen.sum(dim=2) / n_shot[:, :, None]
        _, gradient = loss_gradient(prototypes, way_mask, query, query_mask, labels, self.loss, scale, per_class=True)
        listed, in_pool = self._short_list(self.tasks.take(at.cpu().numpy()), gradient, rows, slots)
        offered = values[listed]  # (T, W, B, D)

        if self.loss == "cosine":
            query = normalised(query)
        to_query = query.transpose(1, 2)
        query_chosen = (chosen.flatten(1, 2) @ to_query).unflatten(1, chosen.shape[1:3])  # (T, W, K, M)
        query_offered = (offered.flatten(1, 2) @ to_query).unflatten(1, offered.shape[1:3])  # (T, W, B, M)
        inner = chosen @ chosen.transpose(2, 3)  # (T, W, K, K)
        across = chosen @ offered.transpose(2, 3)  # (T, W, K, B)
        own = self.squares[listed]  # (T, W, B)
        dots, square = query_chosen.sum(dim=2) / n_shot[:, :, None], inner.sum(dim=(2, 3)) / n_shot**2
        logits = logits_of(dots, square[:, :, None], self.loss, scale)  # (T, W, M)
        logits = logits.masked_fill(~way_mask[:, :, None], -torch.inf)

        changed = torch.zeros(len(at), dtype=torch.bool, device=self.layout.device)
        for way in range(rows.shape[1]):
            k = n_shot[:, way, None, None]
            elsewhere = torch.cat([logits[:, :way], logits[:, way + 1 :]], dim=1).logsumexp(dim=1)  # (T, M)
            of_class = (labels == way) & query_mask
            # without slot s and with offer b: dots with the queries (T, K, B, M) and squared length (T, K, B)
            without = query_chosen[:, way].sum(dim=1, keepdim=True) - query_chosen[:, way]
            dots = (without[:, :, None] + query_offered[:, way][:, None]) / k[..., None]
            rest = inner[:, way].sum(dim=(1, 2))[:, None] - 2 * inner[:, way].sum(dim=2)
            rest = rest + inner[:, way].diagonal(dim1=1, dim2=2)
            with_rest = across[:, way].sum(dim=1, keepdim=True) - across[:, way]
            square = (rest[:, :, None] + 2 * with_rest + own[:, way][:, None]) / k**2
            trial = logits_of(dots, square[..., None], self.loss, scale[..., None])

            def total(mine: torch.Tensor, others: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
                """Loss of all queries as far as this class's logits go: log-sum-exp of all, minus its own queries'."""
                return torch.logaddexp(others, mine).masked_fill(~true[1], 0).sum(-1) - (mine * true[0]).sum(-1)

            now = total(logits[:, way], elsewhere, (of_class, query_mask))
            wide = (of_class[:, None, None], query_mask[:, None, None])
            gain = self.sign * (total(trial, elsewhere[:, None, None], wide) - now[:, None, None])
            gain = gain.masked_fill(~(slots[:, way, :, None] & in_pool[:, way, None, :]), -torch.inf)
            best, which = gain.flatten(1).max(dim=1)
            task = (best > _LEAST_GAIN).nonzero()[:, 0]
            slot, offer = which[task] // gain.shape[2], which[task] % gain.shape[2]
            rows[task, way, slot] = listed[task, way, offer]
            logits[task, way] = trial[task, slot, offer]
            changed[task] = True
        self.rows[at] = rows
        self.active[at.cpu().numpy()] = changed.cpu().numpy()
        return bool(changed.any())

    def _short_list(
        self, tasks: Tasks, gradient: torch.Tensor, rows: torch.Tensor, slots: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows (T, W, B) of the images of the pool, not yet chosen, along the gradient; false where there are fewer."""
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
                chosen = torch.zeros(len(key), int(codes.max()) + 1, dtype=torch.bool, device=rows.device)
                chosen[entry, codes[place]] = True
                key = key.masked_fill(chosen[:, codes], -torch.inf)
            top = key.topk(min(SHORT_LIST, key.shape[1]), dim=1)
            width = slice(0, top.indices.shape[1])
            listed[(*at, width)] = top.indices + self.layout.first[class_id]
            there[(*at, width)] = top.values.isfinite()
        return listed, there


def _chunk_size(tasks: Tasks, n_dims: int, budget: int = 16_000_000) -> int:
    """Tasks at a time so that features and trials together stay below `budget` numbers."""
    if not len(tasks):
        return 1
    n_way, n_shot, n_query = *tasks.support.shape[1:], tasks.query[0].size
    per_task = n_way * (n_shot + SHORT_LIST) * (n_dims + n_query) + 3 * n_shot * SHORT_LIST * n_query
    return max(1, min(256, budget // per_task))
