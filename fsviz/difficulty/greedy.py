"""Greedy search for hard support sets (Agarwal et al. 2021): the baseline that FastDiffSel replaces.

One support image at a time is swapped for the image of the pool that changes the query loss most, class by class and
slot by slot, for a number of sweeps. All candidates of a slot are tried at once: a swap moves one prototype only, and
its distances follow from inner products that are kept.
"""

from __future__ import annotations

import numpy as np

from fsviz.difficulty import objectives
from fsviz.difficulty.class_layout import ClassLayout, layout_of, pool_mask
from fsviz.difficulty.query_loss import logits_of, normalised, resolve_scale
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import Cancelled
from fsviz.records import PAD, Features, Progress, Tasks


def greedy_supports(
    features: Features,
    tasks: Tasks,
    objective: str = "hard",
    options: SearchOptions | None = None,
    progress: Progress | None = None,
) -> Tasks:
    """The same classes and queries with greedily chosen support images, starting from the tasks' own support."""
    import torch

    options = options or SearchOptions()
    sign = objectives.get(objective).sign
    layout = layout_of(features, tasks, options.device)
    layout.require_support(tasks)
    support = tasks.support.copy()
    with torch.inference_mode():
        for t in range(len(tasks)):
            support[t] = _support_of_task(layout, tasks, t, sign, options)
            if progress is not None and progress(t + 1, len(tasks), f"{objective} support sets, greedy") is False:
                raise Cancelled("The search for support sets was stopped.")
    return Tasks(tasks.class_ids, support, tasks.query, tasks.measures)


def _scale_of(layout: ClassLayout, task: Tasks, options: SearchOptions) -> float:
    """The factor of the loss for one task, the same that FastDiffSel uses."""
    import torch

    query, query_mask, _ = layout.queries(task)
    way_mask = torch.from_numpy(task.class_ids != PAD).to(layout.device)
    means = layout.pool_means(task, query, query_mask)
    return float(resolve_scale(options, means, way_mask, query, query_mask))


def _support_of_task(layout: ClassLayout, tasks: Tasks, t: int, sign: int, options: SearchOptions) -> np.ndarray:
    """Support (W, S) of task t after the sweeps."""
    import torch

    loss, scale = options.loss, _scale_of(layout, tasks.take(slice(t, t + 1)), options)
    class_ids, support = tasks.class_ids[t], tasks.support[t].copy()
    ways = [w for w in range(len(class_ids)) if class_ids[w] != PAD]
    rows = layout.rows(tasks.query[t])
    query = layout.all_values[torch.from_numpy(rows[rows != PAD])]
    labels = torch.from_numpy(np.nonzero(rows != PAD)[0])
    if loss == "cosine":
        query = normalised(query)

    pools, open_rows, selection, with_query, with_chosen = {}, {}, {}, {}, {}
    for w in ways:
        class_id = int(class_ids[w])
        pools[w] = layout.values(class_id)
        open_rows[w] = pool_mask(layout, tasks, class_id, (np.array([t]), np.array([w])))[0]
        selection[w] = layout.rows(support[w][support[w] != PAD]) - layout.first[class_id]
        with_query[w] = pools[w] @ query.T  # (n, M) inner products with the queries
        with_chosen[w] = pools[w] @ pools[w][selection[w]].T  # (n, k) inner products with the support

    logits = torch.full((len(class_ids), len(query)), -torch.inf).to(query)
    for w in ways:
        if len(selection[w]):
            dots = with_query[w][selection[w]].mean(dim=0)
            logits[w] = logits_of(dots, with_chosen[w][selection[w]].mean(), loss, scale)
    for _ in range(options.n_sweeps):
        for w in ways:
            n_shot = len(selection[w])
            of_class = labels == w
            squares, codes = (pools[w] ** 2).sum(dim=1), layout.group_codes(int(class_ids[w]))
            elsewhere = torch.cat([logits[:w], logits[w + 1 :]]).logsumexp(dim=0)  # (M,)
            true_elsewhere = logits[labels, torch.arange(len(labels))][~of_class].sum()
            for slot in range(n_shot):
                rest = np.delete(np.arange(n_shot), slot)
                dots = (with_query[w][selection[w][rest]].sum(dim=0) + with_query[w]) / n_shot  # (n, M)
                inner = with_chosen[w][:, rest].sum(dim=1)  # (n,) rest . f_i
                rest_square = with_chosen[w][selection[w][rest]][:, rest].sum()
                square = (rest_square + 2 * inner + squares) / n_shot**2
                trial = logits_of(dots, square[:, None], loss, scale)
                total = torch.logaddexp(elsewhere, trial).sum(dim=1) - trial[:, of_class].sum(dim=1) - true_elsewhere
                total = (sign * total).masked_fill(~open_rows[w], -torch.inf)
                total[np.isin(codes, codes[selection[w][rest]])] = -torch.inf
                best = int(total.argmax())
                if total[best] > total[selection[w][slot]]:
                    selection[w][slot] = best
                    with_chosen[w][:, slot] = pools[w] @ pools[w][best]
                logits[w] = trial[selection[w][slot]]
    for w in ways:
        support[w][support[w] != PAD] = layout.image_ids(int(class_ids[w]))[selection[w]]
    return support
