"""From scores to train, val and test classes, and how alike two such splits are. Dimensions: M classes, S seeds."""

from __future__ import annotations

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import SIDES

TRAIN, VAL, TEST = range(3)
_ROUND = 6  # decimals of a score; what differs by less is a tie


def sizes(n_classes: int) -> tuple[int, int, int]:
    """Train, val and test classes: val and test are a fifth each, rounded down."""
    held_out = n_classes // 5
    return n_classes - 2 * held_out, held_out, held_out


def assign(scores: np.ndarray, seed: int = 0) -> np.ndarray:
    """The side (M,) of every class by its score, log p_train - log p_test: 0 train, 1 val, 2 test.

    The lowest class goes to test, the next to val, and so on in turn; the rest is train. So val and test classes are
    alike. Ties are broken at random by the seed (Arnold & Sha 2021, section 4).
    """
    scores = np.round(np.asarray(scores, dtype=float), _ROUND)
    order = np.lexsort((np.random.default_rng(seed).permutation(len(scores)), scores))
    held_out = 2 * sizes(len(scores))[1]
    sides = np.full(len(scores), TRAIN)
    sides[order[:held_out:2]] = TEST
    sides[order[1:held_out:2]] = VAL
    return sides


def agreement(sides: np.ndarray) -> float:
    """Mean share of classes on the same side (train, val or test) over every two of the splits (S, M); 1 where all
    splits are the same."""
    return _over_pairs(np.asarray(sides)[:, None, :] == np.asarray(sides)[None, :, :])


def agreement_on_test(sides: np.ndarray) -> float:
    """Mean share of test classes that every two of the splits (S, M) have in common; 1 where all are the same."""
    test = np.asarray(sides) == TEST
    n = int(test[0].sum())
    return _over_pairs((test[:, None, :] & test[None, :, :]).sum(axis=2, keepdims=True) / n)


def _over_pairs(shared: np.ndarray) -> float:
    """The mean (S, S, n) over every two different splits."""
    if len(shared) < 2:
        raise BadInput("Agreement is over two seeds at least. Got one.")
    return float(shared[~np.eye(len(shared), dtype=bool)].mean())


def expected_agreement(n_classes: int) -> float:
    """The share of classes that two random splits put on the same side on average."""
    return float(sum((n / n_classes) ** 2 for n in sizes(n_classes)))


def expected_test_agreement(n_classes: int) -> float:
    """The share of test classes that two random splits have in common on average."""
    return sizes(n_classes)[2] / n_classes


def random_sides(n_classes: int, seed: int = 0) -> np.ndarray:
    """A random split of the same sizes (M,)."""
    return assign(np.zeros(n_classes), seed)


def group_sides(groups: np.ndarray, seed: int = 0) -> np.ndarray:
    """A split (M,) along groups of classes, such as superclasses: no group is on two sides.

    Groups in random order fill test, then val, up to a fifth of the classes each; the rest is train. Sizes follow as
    nearly as whole groups allow.
    """
    names, of, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if len(names) < 3:
        raise BadInput(
            f"A split along superclasses needs three of them at least, one per side. Got {len(names)}. "
            "Use a dataset with a finer taxonomy."
        )
    target_size = max(1, sizes(len(of))[1])
    remaining = np.random.default_rng(seed).permutation(len(names)).tolist()
    side_of = np.full(len(names), TRAIN)
    for side in (TEST, VAL):
        n_taken = 0
        for group in list(remaining):
            if n_taken + counts[group] <= target_size:
                side_of[group] = side
                n_taken += counts[group]
                remaining.remove(group)
        if not n_taken:  # every group is larger than a fifth
            group = min(remaining, key=lambda g: counts[g])
            side_of[group] = side
            remaining.remove(group)
    return side_of[of]


def side_names(sides: np.ndarray) -> list[str]:
    return [SIDES[side] for side in sides]
