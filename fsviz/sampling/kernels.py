"""Compiled loops of the samplers. Imported only where tasks are drawn, because numba is slow to load.

Random numbers come from xoshiro256** (Blackman & Vigna 2018), whose four words are seeded by numpy's SeedSequence:
one seed gives the same tasks on every machine and with every version of numpy and numba.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

BLOCK = 32  # classes summed together; weights are padded to whole blocks
_FLUSH = -650.0  # log weights this far below the largest become 0 ...
_RENEW = 1e-130  # ... and before the sum of the weights falls to where such a zero could matter, they are renewed


@njit(cache=True)
def _next(state):
    """The next 64 random bits."""
    product = state[1] * np.uint64(5)
    result = ((product << np.uint64(7)) | (product >> np.uint64(57))) * np.uint64(9)
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return result


@njit(cache=True)
def _uniform(state):
    """A number in [0, 1) with 53 random bits."""
    return np.float64(np.int64(_next(state) >> np.uint64(11))) * 1.1102230246251565e-16


@njit(cache=True)
def _below(n, state):
    """A whole number in 0 .. n-1."""
    return min(np.int64(_uniform(state) * n), n - 1)


@njit(cache=True)
def _shuffle(values, start, stop, state):
    for i in range(stop - 1, start, -1):
        j = start + _below(i - start + 1, state)
        values[i], values[j] = values[j], values[i]


@njit(cache=True)
def choose(n, k, state):
    """k of the numbers 0 .. n-1, each set equally likely, in ascending order."""
    deck = np.arange(n)
    for i in range(k):
        j = i + _below(n - i, state)
        deck[i], deck[j] = deck[j], deck[i]
    return np.sort(deck[:k])


@njit(cache=True)
def draw_uniform(n_classes, n_way, n_draws, state):
    """(n_draws, n_way) class positions, every set of classes equally likely, ascending within a task."""
    tasks = np.empty((n_draws, n_way), dtype=np.int32)
    deck = np.arange(n_classes).astype(np.int32)
    for t in range(n_draws):
        for i in range(n_way):
            j = i + _below(n_classes - i, state)
            deck[i], deck[j] = deck[j], deck[i]
        tasks[t] = np.sort(deck[:n_way])
    return tasks


@njit(cache=True)
def _pick(weights, block_sums, n_blocks, state):
    """One position with probability proportional to its weight, given the sums of the blocks."""
    total = 0.0
    for b in range(n_blocks):
        total += block_sums[b]
    left = _uniform(state) * total
    last = -1
    for b in range(n_blocks):
        if block_sums[b] <= 0.0:
            continue
        if left >= block_sums[b]:
            left -= block_sums[b]
            last = b
            continue
        last = b
        for i in range(b * BLOCK, (b + 1) * BLOCK):
            if weights[i] > 0.0:
                left -= weights[i]
                if left < 0.0:
                    return i
        break
    # Rounding left a crumb beyond the last weight of a block: take that weight.
    for i in range((last + 1) * BLOCK - 1, -1, -1):
        if weights[i] > 0.0:
            return i
    return 0


@njit(cache=True)
def _sum_blocks(weights, block_sums, n_blocks):
    for b in range(n_blocks):
        start = b * BLOCK
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(start, start + BLOCK, 4):
            s0 += weights[i]
            s1 += weights[i + 1]
            s2 += weights[i + 2]
            s3 += weights[i + 3]
        block_sums[b] = (s0 + s1) + (s2 + s3)


@njit(cache=True)
def _multiply_and_sum(weights, row, block_sums, n_blocks):
    """weights *= row, the sum of every block, and the sum of all, in one pass."""
    total = 0.0
    for b in range(n_blocks):
        start = b * BLOCK
        for i in range(start, start + BLOCK):
            weights[i] *= row[i]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(start, start + BLOCK, 4):
            s0 += weights[i]
            s1 += weights[i + 1]
            s2 += weights[i + 2]
            s3 += weights[i + 3]
        block_sums[b] = (s0 + s1) + (s2 + s3)
        total += block_sums[b]
    return total


@njit(cache=True)
def _from_logs(logs, n_classes, weights, block_sums, n_blocks):
    """weights = exp(logs - max); classes already drawn have the log weight -inf."""
    top = -np.inf
    for i in range(n_classes):
        top = max(top, logs[i])
    for i in range(n_classes):
        weights[i] = math.exp(logs[i] - top) if logs[i] - top > _FLUSH else 0.0
    _sum_blocks(weights, block_sums, n_blocks)


@njit(cache=True)
def draw_semantic(potential, cost, beta, n_classes, n_way, n_draws, state):
    """(n_draws, n_way) class positions drawn by the semantic sampler, ascending within a task.

    potential  (C, padded C) exp(-cost), zero on the diagonal and in the padding
    cost       (C, C) alpha times the distance
    One task after the other: a class's weight starts at exp(-beta occ / max occ), with occ one more than the number
    of earlier tasks that hold it, and is multiplied by the potential row of each class drawn. The weights are kept
    relative to the largest; as soon as their sum nears the smallest doubles they are computed again from sums of
    logarithms, so that no beta or alpha makes them underflow.
    """
    padded = potential.shape[1]
    n_blocks = padded // BLOCK
    tasks = np.empty((n_draws, n_way), dtype=np.int32)
    occ = np.ones(n_classes, dtype=np.int64)
    weights = np.zeros(padded)
    logs = np.empty(n_classes)
    block_sums = np.zeros(n_blocks)
    table = np.empty(n_classes)
    for t in range(n_draws):
        low, high = occ[0], occ[0]
        for i in range(n_classes):
            low = min(low, occ[i])
            high = max(high, occ[i])
        scale = beta / high
        for i in range(n_classes):
            logs[i] = -scale * (occ[i] - low)
        if high - low < n_classes:  # few different counts: one exponential each
            for k in range(high - low + 1):
                table[k] = math.exp(-scale * k) if -scale * k > _FLUSH else 0.0
            for i in range(n_classes):
                weights[i] = table[occ[i] - low]
            _sum_blocks(weights, block_sums, n_blocks)
        else:
            _from_logs(logs, n_classes, weights, block_sums, n_blocks)
        in_logs = 0  # how many of the classes drawn the logarithms already know of
        for way in range(n_way):
            chosen = _pick(weights, block_sums, n_blocks, state)
            tasks[t, way] = chosen
            occ[chosen] += 1
            if way == n_way - 1:
                break
            if _multiply_and_sum(weights, potential[chosen], block_sums, n_blocks) < _RENEW:
                for k in range(in_logs, way + 1):
                    drawn = tasks[t, k]
                    for i in range(n_classes):
                        logs[i] -= cost[drawn, i]
                    logs[drawn] = -np.inf
                in_logs = way + 1
                _from_logs(logs, n_classes, weights, block_sums, n_blocks)
        tasks[t].sort()
    return tasks


@njit(cache=True)
def deal(class_ids, decks, starts, sizes, hand, state):
    """(T, W, hand) image_ids: each class deals from its own shuffled deck and reshuffles when it runs out.

    decks   image_ids grouped by class; class c owns decks[starts[c] : starts[c] + sizes[c]]
    No image comes twice in one hand, and the uses of two images of a class never differ by more than one.
    """
    n_tasks, n_way = class_ids.shape
    dealt = np.full((n_tasks, n_way, hand), -1, dtype=np.int64)
    place = np.full(len(sizes), -1, dtype=np.int64)
    for t in range(n_tasks):
        for w in range(n_way):
            c = class_ids[t, w]
            if c < 0:
                continue
            start, size = starts[c], sizes[c]
            if place[c] < 0:
                _shuffle(decks, start, start + size, state)
                place[c] = 0
            left = size - place[c]
            if left >= hand:
                for k in range(hand):
                    dealt[t, w, k] = decks[start + place[c] + k]
                place[c] += hand
                continue
            # The rest of this round, then the next round, whose first cards come from those not in this hand.
            for k in range(left):
                dealt[t, w, k] = decks[start + place[c] + k]
            need = hand - left
            _shuffle(decks, start, start + size - left, state)
            for k in range(need):
                dealt[t, w, left + k] = decks[start + k]
            _shuffle(decks, start + need, start + size, state)
            place[c] = need
    return dealt
