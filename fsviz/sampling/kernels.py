"""Compiled loops of the samplers. Imported only where tasks are sampled, because numba is slow to load.

Random numbers come from xoshiro256** (Blackman & Vigna 2018), whose four words are seeded by numpy's SeedSequence:
one seed gives the same tasks on every machine and with every version of numpy and numba.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

COLUMNS = 16  # weights stand in rows of this many, padded with zeros, and are summed column by column
_FLOOR = 1e-160  # smaller weights become 0, which also keeps slow denormal numbers away ...
_FLUSH = math.log(_FLOOR)
_RENEW = 1e-130  # ... and before the sum of the weights falls to where such a zero could matter, they are renewed
_ATTEMPTS = 30  # orders of the classes of a task that are tried where groups of several classes stand in the way


@njit(cache=True)
def _next(state: np.ndarray) -> np.uint64:
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
def _uniform(state: np.ndarray) -> float:
    """A number in [0, 1) with 53 random bits."""
    return np.float64(np.int64(_next(state) >> np.uint64(11))) * 1.1102230246251565e-16


@njit(cache=True)
def _below(n: int, state: np.ndarray) -> int:
    """A whole number in 0 .. n-1."""
    return min(int(_uniform(state) * n), n - 1)


@njit(cache=True)
def _shuffle(values: np.ndarray, start: int, stop: int, state: np.ndarray) -> None:
    for i in range(stop - 1, start, -1):
        j = start + _below(i - start + 1, state)
        values[i], values[j] = values[j], values[i]


@njit(cache=True)
def choose(n: int, k: int, state: np.ndarray) -> np.ndarray:
    """k of the numbers 0 .. n-1, each set equally likely, in ascending order."""
    deck = np.arange(n)
    selection = np.zeros(n, dtype=np.bool_)
    for i in range(k):
        j = i + _below(n - i, state)
        deck[i], deck[j] = deck[j], deck[i]
        selection[deck[i]] = True
    return np.flatnonzero(selection)


@njit(cache=True)
def _insertion_sort(row: np.ndarray) -> None:
    for i in range(1, len(row)):
        value = row[i]
        j = i - 1
        while j >= 0 and row[j] > value:
            row[j + 1] = row[j]
            j -= 1
        row[j + 1] = value


@njit(cache=True)
def first_of_each(rows: np.ndarray) -> np.ndarray:
    """Positions of the first occurrence of every different row, ascending: a hash table with open addressing."""
    n, width = rows.shape
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    firsts = np.empty(n, dtype=np.int64)
    n_found = 0
    for r in range(n):
        key = np.uint64(14695981039346656037)
        for k in range(width):
            key = (key ^ np.uint64(rows[r, k])) * np.uint64(1099511628211)
        key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(size - 1))
        while True:
            row = table[slot]
            if row < 0:
                table[slot] = r
                firsts[n_found] = r
                n_found += 1
                break
            same = True
            for k in range(width):
                if rows[row, k] != rows[r, k]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & (size - 1)
    return firsts[:n_found]


@njit(cache=True)
def draw_uniform(n_classes: int, n_way: int, n_draws: int, state: np.ndarray) -> np.ndarray:
    """(n_draws, n_way) class positions, every set of classes equally likely, ascending within a task."""
    tasks = np.empty((n_draws, n_way), dtype=np.int32)
    deck = np.arange(n_classes).astype(np.int32)
    for t in range(n_draws):
        for i in range(n_way):
            j = i + _below(n_classes - i, state)
            deck[i], deck[j] = deck[j], deck[i]
            tasks[t, i] = deck[i]
        _insertion_sort(tasks[t])
    return tasks


@njit(cache=True)
def _pick(weights: np.ndarray, sums: np.ndarray, total: float, n_rows: int, state: np.ndarray) -> int:
    """One position with probability proportional to its weight, given the sums of the columns and of all."""
    remainder = _uniform(state) * total
    column = 0
    while column < COLUMNS - 1 and remainder >= sums[column]:
        remainder -= sums[column]
        column += 1
    while sums[column] <= 0.0:
        column -= 1
    position = -1
    for k in range(n_rows):
        i = k * COLUMNS + column
        if weights[i] > 0.0:
            position = i  # the last one stays when rounding leaves a crumb
            remainder -= weights[i]
            if remainder < 0.0:
                break
    return position


@njit(cache=True)
def _sum_columns(weights: np.ndarray, sums: np.ndarray, n_rows: int) -> float:
    """Sums of the columns, and of all: independent additions side by side, in the same order on every machine."""
    for j in range(COLUMNS):
        sums[j] = weights[j]
    for k in range(1, n_rows):
        at = k * COLUMNS
        for j in range(COLUMNS):
            sums[j] += weights[at + j]
    total = 0.0
    for j in range(0, COLUMNS, 4):
        total += (sums[j] + sums[j + 1]) + (sums[j + 2] + sums[j + 3])
    return total


@njit(cache=True)
def _from_logs(logs: np.ndarray, n_classes: int, weights: np.ndarray) -> None:
    """weights = exp(logs - max); classes already sampled have the log weight -inf."""
    top = -np.inf
    for i in range(n_classes):
        top = max(top, logs[i])
    for i in range(n_classes):
        weights[i] = math.exp(logs[i] - top) if logs[i] - top > _FLUSH else 0.0


@njit(cache=True)
def _log_penalties(occ: np.ndarray, low: int, scale: float, logs: np.ndarray) -> None:
    """Log weights of the classes before any is sampled."""
    for i in range(len(logs)):
        logs[i] = -scale * (occ[i] - low)


@njit(cache=True)
def _renew(class_indices: np.ndarray, cost: np.ndarray, logs: np.ndarray, n_classes: int, weights: np.ndarray) -> None:
    """Adds more classes that were sampled to the log weights, and computes the weights from them again."""
    for k in range(len(class_indices)):
        for i in range(n_classes):
            logs[i] -= cost[class_indices[k], i]
        logs[class_indices[k]] = -np.inf
    _from_logs(logs, n_classes, weights)


@njit(cache=True)
def draw_semantic(
    potential: np.ndarray, cost: np.ndarray, beta: float, n_classes: int, n_way: int, n_draws: int, state: np.ndarray
) -> np.ndarray:
    """(n_draws, n_way) class positions sampled by the semantic sampler, ascending within a task.

    potential  (C, padded C) exp(-cost), zero on the diagonal and in the padding
    cost       (C, C) alpha times the distance
    One task after the other: a class's weight starts at its penalty exp(-beta occ / max occ), with occ one more than
    the number of earlier tasks that hold it, and is multiplied by the potential row of each class sampled. Weights are
    kept relative to the largest; as soon as their sum nears the smallest doubles they are computed again from sums
    of logarithms, so that no beta or alpha makes them underflow.
    """
    padded = potential.shape[1]
    n_rows = padded // COLUMNS
    tasks = np.empty((n_draws, n_way), dtype=np.int32)
    occ = np.ones(n_classes, dtype=np.int64)
    holders = np.zeros(n_draws + 2, dtype=np.int64)  # how many classes have each number of occurrences
    holders[1] = n_classes
    low, high = 1, 1
    penalty = np.zeros(padded)
    penalty[:n_classes] = 1.0
    weights = np.zeros(padded)
    logs = np.empty(n_classes)
    table = np.empty(n_classes)
    sums = np.zeros(COLUMNS)
    sinking = cost.max() * (n_way - 1) > 300.0  # can a weight fall below the smallest doubles within a task?
    for t in range(n_draws):
        scale = beta / high
        total = _sum_columns(penalty, sums, n_rows)
        class_index = _pick(penalty, sums, total, n_rows, state)
        tasks[t, 0] = class_index
        in_logs = 0  # how many of the classes sampled the logarithms already know of
        for way in range(1, n_way):
            source = penalty if way == 1 else weights
            row = potential[class_index]
            if sinking:
                for i in range(padded):
                    product = source[i] * row[i]
                    weights[i] = product if product > _FLOOR else 0.0
            else:
                for i in range(padded):
                    weights[i] = source[i] * row[i]
            total = _sum_columns(weights, sums, n_rows)
            if total < _RENEW:
                if in_logs == 0:
                    _log_penalties(occ, low, scale, logs)
                _renew(tasks[t, in_logs:way], cost, logs, n_classes, weights)
                in_logs = way
                total = _sum_columns(weights, sums, n_rows)
            class_index = _pick(weights, sums, total, n_rows, state)
            tasks[t, way] = class_index
        new_high = high
        for way in range(n_way):
            class_index = tasks[t, way]
            holders[occ[class_index]] -= 1
            occ[class_index] += 1
            holders[occ[class_index]] += 1
            new_high = max(new_high, occ[class_index])
        new_low = low
        while holders[new_low] == 0:
            new_low += 1
        if new_high != high or new_low != low:
            low, high = new_low, new_high
            scale = beta / high
            if high - low < n_classes:  # few different counts: one exponential each
                for k in range(high - low + 1):
                    table[k] = _penalty(k, scale)
                for i in range(n_classes):
                    penalty[i] = table[occ[i] - low]
            else:
                for i in range(n_classes):
                    penalty[i] = _penalty(occ[i] - low, scale)
        else:  # only the classes of this task changed
            for way in range(n_way):
                penalty[tasks[t, way]] = _penalty(occ[tasks[t, way]] - low, scale)
        _insertion_sort(tasks[t])
    return tasks


@njit(cache=True)
def _penalty(more: float, scale: float) -> float:
    """exp(-scale x more), 0 if it is too small to matter."""
    return math.exp(-scale * more) if -scale * more > _FLUSH else 0.0


@njit(cache=True)
def sample_images(
    class_ids: np.ndarray, decks: np.ndarray, starts: np.ndarray, sizes: np.ndarray, hand: int, state: np.ndarray
) -> np.ndarray:
    """(T, W, hand) image_ids: each class deals from its own shuffled deck and reshuffles when it runs out.

    decks   image_ids grouped by class; class c owns decks[starts[c] : starts[c] + sizes[c]]
    No image comes twice in one hand, and the uses of two images of a class never differ by more than one.
    """
    n_tasks, n_way = class_ids.shape
    sampled = np.full((n_tasks, n_way, hand), -1, dtype=np.int64)
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
            n_left = size - place[c]
            if n_left >= hand:
                for k in range(hand):
                    sampled[t, w, k] = decks[start + place[c] + k]
                place[c] += hand
                continue
            # The rest of this round, then the next round, whose first cards come from those not in this hand.
            for k in range(n_left):
                sampled[t, w, k] = decks[start + place[c] + k]
            need = hand - n_left
            _shuffle(decks, start, start + size - n_left, state)
            for k in range(need):
                sampled[t, w, n_left + k] = decks[start + k]
            _shuffle(decks, start + need, start + size, state)
            place[c] = need
    return sampled


@njit(cache=True)
def sample_images_by_group(
    class_ids: np.ndarray,
    decks: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    n_shot: int,
    n_query: int,
    pairs: np.ndarray,
    group_of: np.ndarray,
    pair_sizes: np.ndarray,
    state: np.ndarray,
) -> tuple[np.ndarray, int]:
    """As `sample_images`, with no group on both sides of a task: (T, W, n_shot + n_query), and a failing class or -1.

    pairs  (N,) number of the pair of class and group that an image belongs to
    group_of, pair_sizes  (P,) the group of a pair, and how many images it has in its deck

    Support comes from the front of a deck, as long as the groups it does not touch have images enough for the queries;
    queries come from the front of those. What a hand passes over stays at the front for the next one.
    """
    n_tasks, n_way = class_ids.shape
    sampled = np.full((n_tasks, n_way, n_shot + n_query), -1, dtype=np.int64)
    place = np.full(len(sizes), -1, dtype=np.int64)
    side = np.zeros(group_of.max() + 1, dtype=np.int64)  # 2 x turn: support, one more: query, less: neither yet
    positions = np.empty((n_way, n_shot + n_query), dtype=np.int64)
    order = np.arange(n_way)
    turn = 0
    for t in range(n_tasks):
        failed = -1
        for _ in range(_ATTEMPTS):  # a group of several classes may take a side on which another class needs it not
            turn += 1
            failed = -1
            for w in order:
                c = class_ids[t, w]
                if c < 0:
                    continue
                deck = decks[starts[c] : starts[c] + sizes[c]]
                if place[c] < 0:
                    _shuffle(deck, 0, len(deck), state)
                    place[c] = 0
                if not _pick_hand(
                    deck, place[c], n_shot, n_query, pairs, group_of, pair_sizes, side, turn, positions[w]
                ):
                    failed = c
                    break
            if failed < 0:
                break
            _shuffle(order, 0, n_way, state)
            _shuffle(decks, starts[failed], starts[failed] + sizes[failed], state)
        if failed >= 0:
            return sampled, failed
        for way in range(n_way):
            own = class_ids[t, way]
            if own >= 0:
                deck = decks[starts[own] : starts[own] + sizes[own]]
                for k, at in enumerate(positions[way]):
                    sampled[t, way, k] = deck[(place[own] + at) % len(deck)]
                place[own] = _put_back(deck, place[own], positions[way], state)
    return sampled, -1


@njit(cache=True)
def _pick_hand(
    deck: np.ndarray,
    place: int,
    n_shot: int,
    n_query: int,
    pairs: np.ndarray,
    group_of: np.ndarray,
    pair_sizes: np.ndarray,
    side: np.ndarray,
    turn: int,
    positions: np.ndarray,
) -> bool:
    """Writes positions in the deck, counted from `place` round and round; False if there are no such images."""
    n = len(deck)
    n_left = n  # images that may still become queries
    for image in deck:
        n_left -= side[group_of[pairs[image]]] == 2 * turn
    took = np.empty(n_shot, dtype=np.int64)  # groups that this class put on the side of the support
    got, n_took = 0, 0
    for k in range(n):
        if got == n_shot:
            break
        pair = pairs[deck[(place + k) % n]]
        group = group_of[pair]
        if side[group] < 2 * turn and n_left - pair_sizes[pair] >= n_query:
            side[group] = 2 * turn
            n_left -= pair_sizes[pair]
            took[n_took] = group
            n_took += 1
        if side[group] == 2 * turn:
            positions[got] = k
            got += 1
    if got < n_shot or n_left < n_query:
        for group in took[:n_took]:
            side[group] = 0
        if not _choose_groups(deck, place, n_shot, n_query, pairs, group_of, pair_sizes, side, turn):
            return False
        got = 0
        for k in range(n):
            if got < n_shot and side[group_of[pairs[deck[(place + k) % n]]]] == 2 * turn:
                positions[got] = k
                got += 1
    for k in range(n):
        if got == n_shot + n_query:
            break
        group = group_of[pairs[deck[(place + k) % n]]]
        if side[group] != 2 * turn:
            side[group] = 2 * turn + 1
            positions[got] = k
            got += 1
    return True


@njit(cache=True)
def _choose_groups(
    deck: np.ndarray,
    place: int,
    n_shot: int,
    n_query: int,
    pairs: np.ndarray,
    group_of: np.ndarray,
    pair_sizes: np.ndarray,
    side: np.ndarray,
    turn: int,
) -> bool:
    """Puts groups on the side of the support so that both sides have images enough, by exact search: a subset sum."""
    n = len(deck)
    support, query, n_free = 0, 0, 0  # images whose side is known, and groups whose side is not
    free = np.empty(n, dtype=np.int64)
    computed = np.zeros(len(pair_sizes), dtype=np.bool_)
    for k in range(n):
        pair = pairs[deck[(place + k) % n]]
        if side[group_of[pair]] == 2 * turn:
            support += 1
        elif side[group_of[pair]] == 2 * turn + 1:
            query += 1
        elif not computed[pair]:
            computed[pair] = True
            free[n_free] = pair
            n_free += 1
    most = n - support - n_query  # images that the support may take from the free groups
    least = max(0, n_shot - support)
    if most < least:
        return False
    reached = np.zeros((n_free + 1, most + 1), dtype=np.bool_)
    reached[0, 0] = True
    for i in range(n_free):
        size = pair_sizes[free[i]]
        for x in range(most + 1):
            reached[i + 1, x] = reached[i, x] or (x >= size and reached[i, x - size])
    x = least
    while x <= most and not reached[n_free, x]:
        x += 1
    if x > most:
        return False
    for i in range(n_free - 1, -1, -1):
        if not reached[i, x]:
            side[group_of[free[i]]] = 2 * turn
            x -= pair_sizes[free[i]]
    return True


@njit(cache=True)
def _put_back(deck: np.ndarray, place: int, positions: np.ndarray, state: np.ndarray) -> int:
    """Moves the chosen cards behind the dealer, where cards lie in random order; returns where the dealer now stands.

    Where cards from behind the dealer were needed, a new round begins: those first that the last one did not come to.
    """
    ahead = len(deck) - place
    is_moved = np.zeros(len(deck), dtype=np.bool_)
    for k in positions:
        is_moved[k] = True
    old, new = deck[place:].copy(), deck[:place].copy()
    of_old, of_new = is_moved[:ahead], is_moved[ahead:]
    begun = of_new.sum()
    if begun == 0:
        deck[place:] = np.concatenate((old[of_old], old[~of_old]))
        for i in range(place, place + len(positions)):
            j = _below(i + 1, state)
            deck[i], deck[j] = deck[j], deck[i]
        return place + len(positions)
    deck[:] = np.concatenate((new[of_new], old[~of_old], new[~of_new], old[of_old]))
    _shuffle(deck, 0, begun, state)
    _shuffle(deck, begun + (~of_old).sum(), len(deck), state)
    return begun
