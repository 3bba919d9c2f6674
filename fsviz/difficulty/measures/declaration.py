"""The declaration of a measure of difficulty, and the inputs that measures are computed from."""

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
    "feature_distances",
    "overlaps",
    "train_divergence",
    "images",
    "support",
    "queries",
    "attributes",
    "contexts",
    "text_margins",
    "predictions",
]
NEEDS: dict[Need, str] = {
    "distances": "class distances",
    "feature_distances": "class means",
    "overlaps": "class overlap",
    "train_divergence": "training classes",
    "images": "features of the task's images",
    "support": "features and labels of the support images",
    "queries": "features of the query images",
    "attributes": "image attributes, such as brightness",
    "contexts": "the context of each image",
    "text_margins": "an image-text model",
    "predictions": "predictions",
}

LABEL_NEEDS: dict[Need, str] = {  # labels that each need takes; needs that are missing here take none
    "distances": "the task's classes",
    "feature_distances": "labels of all images of these classes",
    "overlaps": "labels of all images of these classes",
    "train_divergence": "labels of all images of these classes",
    "support": "support labels",
    "contexts": "support and query labels",
    "text_margins": "query labels",
    "predictions": "query labels",
}

Stage = Literal["before", "support", "labelled", "answered"]
STAGE_TITLES: dict[Stage, str] = {  # in order: each stage includes those before it
    "before": "without labels",
    "support": "with support labels",
    "labelled": "with all labels",
    "answered": "with predictions",
}
_STAGE_OF_NEED: dict[Need, Stage] = {  # needs that are missing here are met from the start
    "support": "support",
    "feature_distances": "labelled",
    "overlaps": "labelled",
    "train_divergence": "labelled",
    "contexts": "labelled",
    "text_margins": "labelled",
    "predictions": "answered",
}

Cause = Literal["meaning", "looks", "images", "shift", "transfer", "answers"]
CAUSE_TITLES: dict[Cause, str] = {
    "meaning": "Semantically close classes",
    "looks": "Class overlap in feature space",
    "images": "Weak separation of the sampled images",
    "shift": "Support–query shift",
    "transfer": "Distance from training classes",
    "answers": "Confident errors",
}
_MISSING: Any = None  # a measure is called only with the inputs it needs, so it need not check again


@dataclass(frozen=True)
class MeasureInputs:
    """Inputs of measures for T tasks; a measure takes those it needs, and the rest may be missing.

    positions          (T, W) positions of the tasks' classes in the matrices below, PAD if a task has fewer ways
    distances          (C, C) between classes, symmetric, zero diagonal
    feature_distances  (C, C) between the mean features of classes, symmetric, zero diagonal
    overlaps           (C, C) of pairs of classes, symmetric, in bits
    train_divergence   (T,) between the tasks' classes and the training classes
    support            (T, W, S, D) features, support_mask (T, W, S) True for an image; torch tensors, as for methods
    query              (T, M, D) features, all queries of a task in one row, query_mask (T, M)
    attributes         by name, (T,) difference between support and queries in it, 0 for none
    contexts           (T, W, Q) whether a query's context is in its class's support; NaN if it is not available
    text_margins       (T, W, Q) cosine of a query with its context's text minus that with its class's text
    predictions        of a method for the queries
    settings           of the measures, by name
    """

    positions: np.ndarray = _MISSING
    distances: np.ndarray = _MISSING
    feature_distances: np.ndarray = _MISSING
    overlaps: np.ndarray = _MISSING
    train_divergence: np.ndarray = _MISSING
    support: torch.Tensor = _MISSING
    support_mask: torch.Tensor = _MISSING
    query: torch.Tensor = _MISSING
    query_mask: torch.Tensor = _MISSING
    attributes: Mapping[str, np.ndarray] = _MISSING
    contexts: np.ndarray = _MISSING
    text_margins: np.ndarray = _MISSING
    predictions: Predictions = _MISSING
    settings: Settings = field(default_factory=dict)

    def has(self, need: Need) -> bool:
        """Whether these inputs meet the need."""
        holder = {"queries": "query", "images": "support"}.get(need, need)
        return getattr(self, holder) is not None


@dataclass(frozen=True)
class Measure:
    """One number per task that indicates how hard it is, declared next to the function that computes it.

    description  meaning and caveats, at most three sentences for a student
    formula      LaTeX; symbols names every symbol in it
    direction    whether a task with a higher value is "harder" or "easier"
    needs        inputs it is computed from
    paper_name   what the paper calls it
    order        position in lists
    cause        of difficulty that it indicates; measures of one cause tend to agree
    """

    name: str
    title: str
    description: str
    formula: str
    symbols: str
    direction: Literal["harder", "easier"]
    needs: tuple[Need, ...]
    paper: str
    order: int
    cause: Cause
    paper_name: str = ""
    settings: tuple[Setting, ...] = ()

    @property
    def lower_title(self) -> str:
        """The title inside a sentence or along an axis."""
        return self.title[:1].lower() + self.title[1:]

    @property
    def source(self) -> str:
        """The paper, and what it calls the measure."""
        return f"{self.paper}: {self.paper_name}" if self.paper_name else self.paper

    @property
    def stage(self) -> Stage:
        """The first stage at which all its needs are met."""
        return max((_STAGE_OF_NEED.get(need, "before") for need in self.needs), key=list(STAGE_TITLES).index)

    @property
    def labels(self) -> str:
        """The labels it uses, for people."""
        return " and ".join(LABEL_NEEDS[need] for need in self.needs if need in LABEL_NEEDS) or "no labels"

    @property
    def tooltip(self) -> str:
        """Meaning, direction and labels, in at most five short sentences."""
        return f"{self.description} Higher is {self.direction}. Uses {self.labels}."

    def load(self) -> Callable[[MeasureInputs], np.ndarray]:
        """The function (MeasureInputs) -> (T,) float64, NaN for a task that it is not defined for."""
        function: Callable[[MeasureInputs], np.ndarray] = importlib.import_module(
            f"fsviz.difficulty.measures.{self.name}"
        ).measure
        return function

    def __call__(self, inputs: MeasureInputs) -> np.ndarray:
        missing = [NEEDS[need] for need in self.needs if not inputs.has(need)]
        if missing:
            raise Missing(f"{self.title} needs {' and '.join(missing)}. Add them, or choose another measure.")
        return self.load()(inputs)
