"""What a measure of difficulty says of itself, and what it may be given."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fsviz.errors import Missing
from fsviz.records import Predictions
from fsviz.settings import Setting, Settings

if TYPE_CHECKING:
    import torch

Need = Literal[
    "distances",
    "looks",
    "confusions",
    "base",
    "images",
    "support",
    "queries",
    "attributes",
    "contexts",
    "words",
    "predictions",
]
NEEDS: dict[Need, str] = {
    "distances": "how far apart the classes are, by a taxonomy or by features",
    "looks": "how far apart the mean features of the classes are",
    "confusions": "how much every pair of classes is mixed up by the backbone",
    "base": "classes to train on, and how far they are from those of a task",
    "images": "features of a task's images, with or without labels",
    "support": "features and labels of the support images",
    "queries": "features of the query images, without their labels",
    "attributes": "attributes of the images, such as their brightness",
    "contexts": "the context that every image was taken in",
    "words": "an image-text model that reads the names of classes and contexts",
    "predictions": "answers to the queries, and with them the queries' labels",
}

LABELS: dict[Need, str] = {  # that it takes to know it; what is not here takes none
    "distances": "which classes the task has",
    "looks": "which classes the task has, and those of all their images",
    "confusions": "which classes the task has, and those of all their images",
    "base": "which classes the task has, and those of all their images",
    "support": "those of the support images",
    "contexts": "those of the support images and of the queries",
    "words": "those of the queries",
    "predictions": "those of the queries",
}

Stage = Literal["before", "support", "labelled", "answered"]
STAGES: dict[Stage, str] = {  # each knows what those before it know
    "before": "before any image has a label",
    "support": "once the support has labels",
    "labelled": "when all images have labels",
    "answered": "when the queries were answered",
}
_KNOWN: dict[Need, Stage] = {  # what is not here is known from the start
    "support": "support",
    "looks": "labelled",
    "confusions": "labelled",
    "base": "labelled",
    "contexts": "labelled",
    "words": "labelled",
    "predictions": "answered",
}

Cause = Literal["meaning", "looks", "images", "shift", "transfer", "answers"]
CAUSES: dict[Cause, str] = {  # as "these tasks are hard mostly because ..." goes on
    "meaning": "their classes mean nearly the same",
    "looks": "their classes look alike to the backbone",
    "images": "the images at hand do not fall apart by class",
    "shift": "support and queries differ in what is not the class",
    "transfer": "their classes are unlike those to train on",
    "answers": "the classifier is sure of wrong answers",
}
EASED: dict[Cause, str] = {  # as "these tasks are easy mostly because ..." goes on
    "meaning": "their classes mean different things",
    "looks": "their classes look different to the backbone",
    "images": "the images at hand fall apart by class",
    "shift": "support and queries are alike in what is not the class",
    "transfer": "their classes are like those to train on",
    "answers": "the classifier is sure of right answers",
}

_LACKING: Any = None  # a measure is called only with what it needs, so it need not ask again


@dataclass(frozen=True)
class Given:
    """What is known of T tasks; a measure takes what it needs, and the rest may be missing.

    positions     (T, W) places of the tasks' classes in the two matrices, PAD where a task has fewer ways
    distances     (C, C) between classes, symmetric, zero diagonal
    looks         (C, C) between the mean features of classes, symmetric, zero diagonal
    confusions    (C, C) of pairs of classes, symmetric, in bits
    base          (T,) divergence of the tasks' classes from those to train on
    support       (T, W, S, D) features, support_mask (T, W, S) True where an image is; torch, as methods take them
    query         (T, M, D) features, all queries of a task in one row, query_mask (T, M)
    attributes    by name, (T,) how far support and queries are apart in it: 0 is no difference
    contexts      (T, W, Q) whether a query's context is among those of its class's support; NaN where not known
    words         (T, W, Q) cosine of a query with the word for its context minus that with the word for its concept
    predictions   what a method said of the queries
    settings      of the measures, by name
    """

    positions: np.ndarray = _LACKING
    distances: np.ndarray = _LACKING
    looks: np.ndarray = _LACKING
    confusions: np.ndarray = _LACKING
    base: np.ndarray = _LACKING
    support: torch.Tensor = _LACKING
    support_mask: torch.Tensor = _LACKING
    query: torch.Tensor = _LACKING
    query_mask: torch.Tensor = _LACKING
    attributes: Mapping[str, np.ndarray] = _LACKING
    contexts: np.ndarray = _LACKING
    words: np.ndarray = _LACKING
    predictions: Predictions = _LACKING
    settings: Settings = field(default_factory=dict)

    def has(self, need: Need) -> bool:
        holder = {"queries": "query", "images": "support"}.get(need, need)
        return getattr(self, holder) is not None


@dataclass(frozen=True)
class Measure:
    """One number per task that says how hard it is, declared beside the function that computes it.

    place      where it stands in lists
    words      what it tells, as an axis or a sentence says it: "how far apart in meaning the classes of a task are"
    what       what it is and why it should matter, in two sentences for a student
    formula    LaTeX; symbols names every symbol in it
    direction  whether a task with a higher value is "harder" or "easier"
    cause      of difficulty that it is a sign of; measures of one cause tend to say the same
    needs      what it is computed from: what must be there before it can be known
    """

    name: str
    title: str
    words: str
    what: str
    formula: str
    symbols: str
    direction: Literal["harder", "easier"]
    needs: tuple[Need, ...]
    paper: str
    place: int
    cause: Cause
    settings: tuple[Setting, ...] = ()

    @property
    def axis(self) -> str:
        """What stands along an axis."""
        return f"{self.words} ({self.title[:1].lower()}{self.title[1:]})"

    @property
    def stage(self) -> Stage:
        """From when on it can be known."""
        return max((_KNOWN.get(need, "before") for need in self.needs), key=list(STAGES).index)

    @property
    def labels(self) -> str:
        """The labels it uses, in words."""
        return " and ".join(LABELS[need] for need in self.needs if need in LABELS) or "none"

    def load(self) -> Callable[[Given], np.ndarray]:
        """The function (Given) -> (T,) float64, NaN for a task it is not defined for."""
        return importlib.import_module(f"fsviz.difficulty.measures.{self.name}").measure

    def __call__(self, given: Given) -> np.ndarray:
        lacking = [NEEDS[need] for need in self.needs if not given.has(need)]
        if lacking:
            raise Missing(f"{self.title} needs {' and '.join(lacking)}. Give it that, or choose another measure.")
        return self.load()(given)
