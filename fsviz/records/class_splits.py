"""Splits of classes into training, validation and test classes, and the sides that belong together.

A dataset names its splits; their names say which belong together: train, val and test; hard_train, hard_val and
hard_test of a saved split; base and novel. Only this module reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fsviz.records import Dataset, Tasks

PAD = -1  # fills ragged arrays of class_ids, image_ids and labels
SIDES = ("train", "val", "test")
_SIDE_OF_WORD = {
    **dict.fromkeys(("train", "training", "base", "background"), "train"),
    **dict.fromkeys(("val", "valid", "validation"), "val"),
    **dict.fromkeys(("test", "testing", "novel", "evaluation"), "test"),
}
_NAME = re.compile(rf"(?:(?P<scheme>.*)[_-])?(?P<word>{'|'.join(_SIDE_OF_WORD)})", re.IGNORECASE)


def training_side(dataset: Dataset, split: str) -> str | None:
    """The split of the training classes that belong to a split; None if there is none.

    It never shares a class with the split: hard_train of hard_test, train of test, nothing of train or all.
    """
    return sibling(dataset, split, "train")


def is_training_side(split: str) -> bool:
    """Whether the name of a split says that its classes are for training."""
    return _scheme_and_side(split)[1] == "train"


def sibling(dataset: Dataset, split: str, side: str) -> str | None:
    """The split on another side ("train", "val", "test") that belongs to a split and shares no class with it.

    A split whose name says no side, or without such a sibling, has that of the dataset's own train, val and test.
    """
    scheme, own = _scheme_and_side(split)
    if own == side:
        return None
    class_ids = dataset.split_class_ids(split)
    for prefix in dict.fromkeys((scheme, "")):
        for name, ids in dataset.splits.items():
            if _scheme_and_side(name) == (prefix, side) and len(ids) and not np.isin(ids, class_ids).any():
                return name
    return None


def training_classes(dataset: Dataset, tasks: Tasks) -> np.ndarray | None:
    """class_ids of the training classes of tasks; None if there are none.

    They belong to the split of the tasks. Tasks without a split, or with classes outside it, have those of the first
    training split whose val and test classes hold theirs.
    """
    used = np.unique(tasks.class_ids[tasks.class_ids != PAD])
    if tasks.split in (*dataset.splits, "all") and np.isin(used, dataset.split_class_ids(tasks.split)).all():
        base = training_side(dataset, tasks.split)
        return None if base is None else dataset.split_class_ids(base)
    at = {_scheme_and_side(name): np.asarray(ids) for name, ids in dataset.splits.items()}
    for (scheme, side), ids in at.items():
        if side == "train" and not np.isin(used, ids).any():
            held_out = [at[scheme, held] for held in SIDES[1:] if (scheme, held) in at]
            if held_out and np.isin(used, np.concatenate(held_out)).all():
                return ids
    return None


def _scheme_and_side(split: str) -> tuple[str, str]:
    """The prefix of a split and its side: ("hard", "test") of hard_test; ("", "") if its name says none."""
    match = _NAME.fullmatch(split)
    return ((match["scheme"] or "").lower(), _SIDE_OF_WORD[match["word"].lower()]) if match else ("", "")


@dataclass(frozen=True)
class ClassSplit:
    """Train, val and test classes of a dataset, and where they lie.

    class_ids, names  (M,) the classes
    sides             (M,) place of each class in SIDES
    points            (M, d) class features, the first two along their principal axes
    centroids         (2, d) of the train and the test side, None if a split was not made from centroids
    requested, reached    divergence between the two, None if none was requested
    scores            (M,) log p_train - log p_test, by which sides were given; None if they were not
    title             what the split is called in a figure
    """

    class_ids: np.ndarray
    names: tuple[str, ...]
    sides: np.ndarray
    points: np.ndarray
    centroids: np.ndarray | None = None
    requested: float | None = None
    reached: float | None = None
    scores: np.ndarray | None = None
    title: str = ""

    def on(self, *sides: str) -> np.ndarray:
        """class_ids of these sides, in the order of the class table."""
        return self.class_ids[np.isin(self.sides, [SIDES.index(side) for side in sides])]

    @property
    def parts(self) -> dict[str, np.ndarray]:
        return {side: self.on(side) for side in SIDES}
