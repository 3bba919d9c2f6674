"""Optimal transport by Sinkhorn's scaling, for a batch of tasks."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from torch import Tensor

CHANGE, ITERATIONS, TINY = 1e-6, 1000, 1e-10  # when the scaling stops, and what keeps it from dividing by zero


def transport(cost: Tensor, ways: Tensor, query_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Sinkhorn's plan (T, W, M) for a cost (T, W, M): each query sends 1, each way receives an equal share.

    Also the log-scaling of each way (T, W): the plan is softmax over ways of (log-scaling - cost), up to rounding.
    """
    if cost.device.type == "cpu":
        plan, appeal = cost.new_empty(cost.shape), cost.new_empty(cost.shape[:2])
        arrays = (cost.contiguous(), ways, query_mask, plan, appeal)
        _transport_loops(*(array.numpy() for array in arrays))
        return plan, appeal
    return transport_batched(cost, ways, query_mask)


def transport_batched(cost: Tensor, ways: Tensor, query_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The same for any device: all tasks together, each frozen once it has settled."""
    there = query_mask.unsqueeze(1)
    cost = cost.masked_fill(~ways.unsqueeze(-1), torch.inf)
    kernel = torch.exp(cost.amin(1, keepdim=True) - cost) * there
    share = (query_mask.sum(1) / ways.sum(1).clamp(min=1))[:, None, None]
    send, receive = there.to(cost), ways.unsqueeze(-1).to(cost)
    active = torch.ones_like(share, dtype=torch.bool)
    sums = send * (kernel * receive).sum(1, keepdim=True)
    for iteration in range(ITERATIONS):
        new_send = send / (sums + TINY)
        column_sums = receive * (kernel * new_send).sum(2, keepdim=True)
        new_receive = (receive * share / (column_sums + TINY)).clamp(max=1e30)
        new_sums = new_send * (kernel * new_receive).sum(1, keepdim=True)
        change = ((new_sums - sums) * there).abs().amax((1, 2), keepdim=True)
        send, receive = torch.where(active, new_send, send), torch.where(active, new_receive, receive)
        sums = torch.where(active, new_sums, sums)
        active = active & (change >= CHANGE)
        if iteration % 10 == 9 and not bool(active.any()):  # asking a GPU at every step would stall it
            break
    return kernel * send * receive, receive.squeeze(-1).clamp(min=1e-38).log()


@njit(cache=True, nogil=True)
def _transport_loops(
    cost: np.ndarray, ways: np.ndarray, there: np.ndarray, plan: np.ndarray, appeal: np.ndarray
) -> None:
    """transport for one task after the other, in double precision: the matrices are too small for array calls."""
    n_tasks, n_way, n_query = cost.shape
    kernel = np.empty((n_query, n_way))
    send, sums, receive, column_sums = np.empty(n_query), np.empty(n_query), np.empty(n_way), np.empty(n_way)
    for t in range(n_tasks):
        columns, rows = ways[t].sum(), there[t].sum()
        share = rows / max(columns, 1)
        for m in range(n_query):
            least = np.inf
            for w in range(n_way):
                if ways[t, w] and cost[t, w, m] < least:
                    least = cost[t, w, m]
            sums[m], send[m] = 0.0, there[t, m]  # 1 for a query, 0 where padded
            for w in range(n_way):
                used = there[t, m] and ways[t, w]
                kernel[m, w] = np.exp(least - cost[t, w, m]) if used else 0.0
                sums[m] += kernel[m, w]
        receive[:] = ways[t]  # 1 for the ways of this task, 0 for the others
        for _ in range(ITERATIONS):
            column_sums[:] = 0.0
            for m in range(n_query):
                send[m] /= sums[m] + TINY
                for w in range(n_way):
                    column_sums[w] += kernel[m, w] * send[m]
            for w in range(n_way):
                # a way out of everybody's reach would ask for ever more
                receive[w] = min(receive[w] * share / (receive[w] * column_sums[w] + TINY), 1e30)
            change = 0.0
            for m in range(n_query):
                total = 0.0
                for w in range(n_way):
                    total += kernel[m, w] * receive[w]
                total *= send[m]
                if there[t, m]:
                    change = max(change, abs(total - sums[m]))
                sums[m] = total
            if change < CHANGE:
                break
        for w in range(n_way):
            appeal[t, w] = np.log(max(receive[w], 1e-38))
            for m in range(n_query):
                plan[t, w, m] = kernel[m, w] * send[m] * receive[w]
