"""Frozen records that pass between rooms. No disk, no models, no drawing.

Dimensions, named once and used everywhere:
    C classes of a dataset        N images of a dataset       D feature dimensions
    T tasks                       W ways (classes per task)   S shots per class    Q queries per class
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records.class_splits import PAD as PAD
from fsviz.records.class_splits import SIDES as SIDES
from fsviz.records.class_splits import ClassSplit as ClassSplit
from fsviz.settings import RawSettings
from fsviz.text import short_names

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int, str], object]  # told as progress(done, total, message)


@dataclass(frozen=True)
class Dataset:
    """A named image collection: its classes always, its images if they are available.

    classes   index class_id 0..C-1; columns class_name, split, n_images (Int64, <NA> where unknown),
              node (the class's node in the taxonomy, "" if it has none).
    splits    split name -> sorted class_ids. Several schemes may overlap (CIFAR-FS and FC100).
    taxonomy  is-a edges (columns child, parent) of nodes, or None; node_names gives readable names.
    contexts  columns class_id, context, n_images, or None.
    images    index image_id 0..N-1; columns class_id, path (opaque: only the datasets room reads it),
              optionally context, n_bytes (of the file when it was added), group (a number shared by images that
              must not stand on both sides of a task, PAD for none), and one column per attribute;
              None if only the class table is known.
    origin    how pixels are opened: "catalog" (none), "demo", "fruit", "digits", "folder" (files below root),
              "features" (imported features, no pixels).
    """

    name: str
    title: str
    classes: pd.DataFrame
    splits: Mapping[str, np.ndarray]
    summary: str = ""
    source: str = ""
    licence: str = ""
    homepage: str = ""
    taxonomy: pd.DataFrame | None = None
    node_names: Mapping[str, str] = field(default_factory=dict)
    contexts: pd.DataFrame | None = None
    images: pd.DataFrame | None = None
    attributes: tuple[str, ...] = ()
    origin: str = "catalog"
    root: Path | None = None
    has_features: bool = False
    notes: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def n_images(self) -> int | None:
        """Number of images, None if the counts are not public."""
        counts = self.classes["n_images"]
        return None if counts.isna().any() else int(counts.sum())

    @property
    def has_pixels(self) -> bool:
        return self.images is not None and self.origin != "features"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The parts it has: a subset of taxonomy, contexts, attributes, images, features."""
        present = {
            "taxonomy": self.taxonomy is not None,
            "contexts": self.contexts is not None,
            "attributes": bool(self.attributes),
            "images": self.has_pixels,
            "features": self.has_features,
        }
        return tuple(name for name, is_present in present.items() if is_present)

    def split_class_ids(self, split: str) -> np.ndarray:
        """Class ids of a split, in split order (the class table's); "all" is every class."""
        if split == "all":
            return np.arange(self.n_classes)
        if split not in self.splits:
            names = dict.fromkeys([*self.splits, "all"])
            raise UnknownName("split", split, names, f"Dataset {self.name!r} has those splits.")
        return np.asarray(self.splits[split])

    def split_of(self, class_ids: np.ndarray) -> str:
        """The first split that holds all of these classes (PAD is none); "all" if no other does."""
        used = np.unique(class_ids[class_ids != PAD])
        return next((s for s in self.splits if np.isin(used, self.split_class_ids(s)).all()), "all")

    def distinct_names(self, class_ids: np.ndarray) -> list[str]:
        """Names of these classes; where two of them share one, their nodes tell them apart."""
        names, nodes = (self.classes.loc[class_ids, column].astype(str) for column in ("class_name", "node"))
        return names.where(~names.duplicated(keep=False), names + " (" + nodes + ")").tolist()

    def short_names(self, class_ids: np.ndarray | None = None) -> list[str]:
        """Names of these classes, by default of all, without the folders that they do not need to be distinct."""
        return short_names(self.distinct_names(np.arange(self.n_classes) if class_ids is None else class_ids))

    def class_weights(self) -> np.ndarray:
        """Image counts (C,), or ones where the dataset's counts are unknown (treated as balanced)."""
        if self.n_images is None:
            return np.ones(self.n_classes)
        return self.classes["n_images"].to_numpy(dtype=float)

    def image_class_ids(self) -> np.ndarray:
        """Class of every image_id (N,). Without an image table, ids count through the classes in table order."""
        if self.images is not None:
            return self.images["class_id"].to_numpy(dtype=np.int64)
        if self.n_images is None:
            raise Missing(
                f"{self.title} lists classes only. Set n_shot to 0, or add your copy of the images with "
                "'fsviz add NAME PATH'."
            )
        return np.repeat(np.arange(self.n_classes), self.classes["n_images"].to_numpy(dtype=np.int64))

    def image_contexts(self) -> np.ndarray:
        """Context of every image_id (N,), "" if it has none; only where there is an image table with contexts."""
        assert self.images is not None
        return self.images["context"].fillna("").astype(str).to_numpy()

    def image_groups(self) -> np.ndarray | None:
        """Group of every image_id (N,), counted from 0; an image with no other is a group of its own.

        Images of a group (copies of a picture, frames of a video) must not stand on both sides of a task.
        None if no two images belong together.
        """
        if self.images is None or "group" not in self.images:
            return None
        numbers = self.images["group"].to_numpy(dtype=np.int64)
        single = numbers.max(initial=PAD) + 1 + np.arange(len(numbers))
        groups = np.unique(np.where(numbers == PAD, single, numbers), return_inverse=True)[1]
        return groups if groups.max(initial=0) + 1 < len(groups) else None


class FeaturesKey(TypedDict, total=False):
    """All that the values of features depend on; features with the same key are the same."""

    version: int
    dataset: str
    fingerprint: str  # of the images
    backbone: str
    checkpoint: str | None
    preprocessing: dict[str, Any] | None
    imported: str  # the file they came from
    warning: str  # such as random weights


@dataclass(frozen=True)
class Features:
    """Features of a dataset's images under one backbone.

    values (n, D) float16 or float32, may be memory-mapped; image_ids (n,) and class_ids (n,) name the rows.
    Rows may be fewer than the dataset's images (broken files are skipped).
    groups (N,) is the group of every image_id (see Dataset.image_groups), None if there are none.
    """

    dataset: str
    backbone: str
    values: np.ndarray
    image_ids: np.ndarray
    class_ids: np.ndarray
    key: FeaturesKey = field(default_factory=FeaturesKey)
    groups: np.ndarray | None = None

    @property
    def remake(self) -> str:
        """Advice how to make them again."""
        return remake_features(self.dataset, self.backbone, self.key)

    def image_class_ids(self, n: int) -> np.ndarray:
        """Class of the image_ids below n (n,), PAD if an image has no features."""
        class_ids = np.full(n, PAD, dtype=np.int64)
        class_ids[self.image_ids] = self.class_ids
        return class_ids

    def rows_of(self, image_ids: np.ndarray) -> np.ndarray:
        """Row of every image_id, PAD if an id is PAD or has no features; any shape."""
        size = int(self.image_ids.max()) + 1 if len(self.image_ids) else 0
        row = np.full(size + 1, PAD, dtype=np.int64)
        row[self.image_ids] = np.arange(len(self.image_ids))
        ids = np.where((image_ids < 0) | (image_ids >= size), size, image_ids)
        return row[ids]


def remake_features(dataset: str, backbone: str, key: FeaturesKey) -> str:
    """The command that makes features of this key again: they are imported, or extracted from images."""
    if "imported" in key:
        return f"import them again with 'fsviz features import {dataset} FILE --backbone {backbone}'"
    name, _, weights = backbone.partition("@")
    own = ".py" in name  # the user's code, whose weights come with it
    checkpoint = " --checkpoint FILE" if weights and not own and not key.get("warning") else ""
    return f"extract them again with 'fsviz extract {dataset} --backbone {name}{checkpoint} --again'"


_NO_IMAGES = np.zeros((0, 0, 0), np.int64)


@dataclass(frozen=True)
class Tasks:
    """T tasks of one dataset, padded with PAD where ways, shots or queries vary.

    class_ids (T, W); support (T, W, S) and query (T, W, Q) image_ids; S and Q are 0 for tasks of classes only.
    measures  name -> (T,) difficulty numbers known so far ("coarsity", ...).
    split     the split that they were sampled from, "" if unknown: it decides which classes are their training classes.
    The label of a class inside a task is its column in class_ids.
    """

    class_ids: np.ndarray
    support: np.ndarray = field(default_factory=lambda: _NO_IMAGES)
    query: np.ndarray = field(default_factory=lambda: _NO_IMAGES)
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)
    split: str = ""

    def __post_init__(self) -> None:
        for name in ("support", "query"):
            if getattr(self, name) is _NO_IMAGES:
                object.__setattr__(self, name, np.zeros((*self.class_ids.shape, 0), np.int64))

    def __len__(self) -> int:
        return len(self.class_ids)

    @property
    def n_way(self) -> int:
        return self.class_ids.shape[1]

    @property
    def has_images(self) -> bool:
        return self.support.shape[2] > 0 and self.query.shape[2] > 0

    @property
    def chance_level(self) -> float:
        """Accuracy of guessing, from 0 to 1: the mean over tasks of one out of their own number of ways."""
        return float(np.mean(1 / np.maximum((self.class_ids != PAD).sum(axis=1), 1)))

    @property
    def setting(self) -> str:
        """Ways and shots in words: "5-way 1-shot", or "5 to 50-way 1 to 100-shot" where tasks differ."""
        ways = (self.class_ids != PAD).sum(axis=1)
        words = _span(ways, "way")
        if not self.support.shape[2]:
            return words
        return f"{words} {_span((self.support != PAD).sum(axis=2)[self.class_ids != PAD], 'shot')}"

    def take(self, which: np.ndarray | slice) -> Tasks:
        """The tasks at these positions, in this order."""
        return Tasks(
            self.class_ids[which],
            self.support[which],
            self.query[which],
            {name: np.asarray(values)[which] for name, values in self.measures.items()},
            self.split,
        )

    def with_measure(self, name: str, values: np.ndarray) -> Tasks:
        if len(values) != len(self):
            raise BadInput(f"Measure {name!r} must have one number per task ({len(self)}). Got {len(values)}.")
        return replace(self, measures={**self.measures, name: np.asarray(values)})

    def positions(self, class_ids: np.ndarray) -> np.ndarray:
        """Place of every class of the tasks among these class_ids (C,): (T, W), PAD if a task has fewer ways.

        A class that is not among them is refused.
        """
        size = int(max(self.class_ids.max(initial=0), class_ids.max(initial=0))) + 1
        position_of = np.full(size + 1, PAD, dtype=np.int64)
        position_of[class_ids] = np.arange(len(class_ids))
        positions = position_of[np.where(self.class_ids == PAD, size, self.class_ids)]
        outside = (positions == PAD) & (self.class_ids != PAD)
        if outside.any():
            raise BadInput(
                f"A task may hold only classes of its split. Got class_id {int(self.class_ids[outside][0])}. "
                "Choose the split of the tasks, or 'all'."
            )
        return positions


def _span(counts: np.ndarray, word: str) -> str:
    low, high = (int(counts.min()), int(counts.max())) if counts.size else (0, 0)
    return f"{low}-{word}" if low == high else f"{low} to {high}-{word}"


@dataclass(frozen=True)
class Testbed:
    """An ordered list of tasks and the recipe that made it.

    recipe  dataset, split, sampler, its parameters, seed, version: enough to draw the same tasks again. Its split
            becomes that of the tasks.
    """

    __test__ = False  # not a pytest class

    name: str
    tasks: Tasks
    recipe: RawSettings

    def __post_init__(self) -> None:
        if not self.tasks.split and self.recipe.get("split"):
            object.__setattr__(self, "tasks", replace(self.tasks, split=str(self.recipe["split"])))

    @property
    def dataset(self) -> str:
        return str(self.recipe["dataset"])

    def task_id(self, position: int) -> TaskId:
        """The identity of the task at this position."""
        return TaskId(self.name, int(position))


@dataclass(frozen=True)
class TaskId:
    """A task by name: its testbed, and its position there from 0. As text "testbed:position"."""

    testbed: str
    position: int

    def __str__(self) -> str:
        return f"{self.testbed}:{self.position}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        testbed, colon, position = text.rpartition(":")
        if not (testbed and colon and position.isascii() and position.isdecimal()):
            raise BadInput(f"A task is named TESTBED:POSITION, such as mine:17. Got {text[:60]!r}.")
        return cls(testbed, int(position))


@dataclass(frozen=True)
class Predictions:
    """Predictions of a method for every query, small enough to keep for every task of a run.

    All arrays (T, W, Q), laid out as Tasks.query; W indexes the query's true class.
    predicted   label with the largest score (PAD if there is no query)
    rank        how many labels come before the true one by score (0 = right)
    confidence  the largest probability, the softmax of the scores
    likelihood  the probability of the true label

    Of labels with exactly equal scores the lower one comes first, whichever is true: where a method cannot tell n
    classes apart, it is right on the queries of one of them, as often as a guess. Scores are always finite.
    """

    predicted: np.ndarray
    rank: np.ndarray
    confidence: np.ndarray
    likelihood: np.ndarray

    def __len__(self) -> int:
        return len(self.predicted)

    @classmethod
    def blank(cls, shape: tuple[int, int, int]) -> Predictions:
        """Room for the answers to tasks whose queries have this shape (T, W, Q); none is given yet."""
        labels, shares = ((PAD, np.int16), (np.nan, np.float32))
        return cls(*(np.full(shape, value, dtype) for value, dtype in (labels, labels, shares, shares)))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Predictions:
        """Predictions from the result of `arrays`, out of a mapping that may hold more."""
        return cls(*(arrays[f"{prefix}{part.name}"] for part in fields(cls)))

    @classmethod
    def join(cls, parts: Sequence[Predictions]) -> Predictions:
        """The tasks of several in one, in their order. They have the same ways and queries."""
        return cls(*(np.concatenate([getattr(part, name.name) for part in parts]) for name in fields(cls)))

    def arrays(self, prefix: str = "") -> dict[str, np.ndarray]:
        """The four arrays by name, as a chunk of a run stores them."""
        return {f"{prefix}{part.name}": getattr(self, part.name) for part in fields(self)}

    def task_mean(self, values: np.ndarray) -> np.ndarray:
        """Mean over each task's queries of what is known of every query (T, W, Q): (T,); NaN without queries."""
        is_query = self.predicted != PAD
        with np.errstate(invalid="ignore"):
            return np.where(is_query, values, 0).sum((1, 2), dtype=np.float64) / is_query.sum((1, 2))

    def loss(self) -> np.ndarray:
        """Mean over each task's queries of -log(probability of the true class), in nats (T,); lower is better.

        Methods keep log-odds above -80 (see methods.geometry.probabilities), and a probability of zero counts as the
        smallest float32: a query that is surely wrong counts as a loss of about 80, and the mean stays finite.
        """
        smallest = np.finfo(np.float32).tiny
        return self.task_mean(-np.log(np.maximum(self.likelihood, smallest, dtype=np.float64)))

    def take(self, which: np.ndarray | slice) -> Predictions:
        """The answers to the tasks at these positions, in this order."""
        return Predictions(*(array[which] for array in self.arrays().values()))


@dataclass(frozen=True)
class SizeHistogram:
    """Number of classes per bin of images per class, one row of bars per split."""

    edges: np.ndarray
    bars: Mapping[str, np.ndarray]
    median: float
    logarithmic: bool


@dataclass(frozen=True)
class Colouring:
    """Colours of n points of a map: `codes` (n,) into `names`, PAD for the rest, or `numbers` (n,).

    title  what the names or numbers are, in words
    """

    title: str
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    names: tuple[str, ...] = ()
    numbers: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def is_numeric(self) -> bool:
        return self.numbers.size > 0


@dataclass(frozen=True)
class NeighbourAgreement:
    """Share of neighbours on a map with the same value of an attribute.

    by      what it is, as points are coloured by it
    title   the same in words
    share   of pairs of neighbours with the same value, 0 to 1; of numbers: in the same third, low, middle or high
    chance  what it would be for neighbours at random
    thirds  whether it is a number
    within  the same among neighbours of the same class group, of classes: they lie inside groups, so neighbours that
            share the class share the group anyway
    """

    by: str
    title: str
    share: float
    chance: float
    thirds: bool = False
    within: NeighbourAgreement | None = None

    @property
    def beyond(self) -> float:
        """The share beyond chance, 0 for chance and 1 where all neighbours agree."""
        return (self.share - self.chance) / (1 - self.chance)


@dataclass(frozen=True)
class ContextTable:
    """Number of images of every class in every context.

    class_ids, names  (R,) the concepts
    contexts          (K,) names of the contexts, the most common first
    counts            (R, K)
    n_without         images of these concepts whose context is not known: they are in no cell
    """

    class_ids: np.ndarray
    names: tuple[str, ...]
    contexts: tuple[str, ...]
    counts: np.ndarray
    n_without: int = 0

    @property
    def n_images(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True)
class HeadlineNumber:
    """A number that sums up a result: on a page, in a table, and as a point of the curve of a sweep.

    name       an identifier: numbers of the same name are points of one curve
    title      the number for people, "Accuracy, hard supports"
    value      in its unit
    low, high  the ends of its 95% interval, None if it has none
    unit       "%", "points", "nats", ... or ""
    ci_unit    what the interval is over: "tasks", "images" or "classes"
    digits     after the point
    words      shown instead of the number
    note       a baseline, or whose number it is
    change     the difference to a baseline, in points if the unit is %; the note says to which
    signed     whether a value above zero has a sign
    coloured   whether a page colours the change or the note as good or bad
    help       what is measured, for a tooltip
    """

    name: str
    title: str
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = "%"
    ci_unit: str = "tasks"
    digits: int = 1
    words: str = ""
    note: str = ""
    change: float | None = None
    signed: bool = False
    coloured: bool = False
    help: str = ""

    @classmethod
    def around(
        cls,
        name: str,
        title: str,
        mean: float,
        half: float | None,
        unit: str = "%",
        ci_unit: str = "tasks",
        **more: Any,
    ) -> HeadlineNumber:
        """A mean with the half-width of its interval; None or NaN if it has none."""
        if half is None or not np.isfinite(half):
            return cls(name, title, mean, None, None, unit, ci_unit, **more)
        return cls(name, title, mean, mean - half, mean + half, unit, ci_unit, **more)

    @classmethod
    def count(cls, name: str, title: str, n: float, **more: Any) -> HeadlineNumber:
        """A number of items, as a headline number."""
        return cls(name, title, n, unit="", digits=0, **more)

    @classmethod
    def worded(cls, name: str, title: str, words: str, **more: Any) -> HeadlineNumber:
        """Words in the place of a number."""
        return cls(name, title, None, words=words, **more)

    @property
    def number_text(self) -> str:
        """The value with its unit; with its half-width if the interval lies evenly around it."""
        if self.value is None:
            return "unknown"
        half = "" if self.half is None else f" ± {self.half:.{self.digits}f}"
        return f"{self.value:{'+' if self.signed else ''},.{self.digits}f}{half}{self._after}"

    @property
    def change_text(self) -> str:
        """The interval that is not part of the number, and the change; "" if there are none."""
        parts = []
        if self.low is not None and self.high is not None and self.half is None:
            parts.append(f"{self.low:,.{self.digits}f} to {self.high:,.{self.digits}f}{self._after}")
        if self.change is not None:
            after = " points" if self.unit.startswith("%") else self._after
            parts.append(f"{self.change:+,.{self.digits}f}{after}")
        return "; ".join(parts)

    @property
    def half(self) -> float | None:
        """The half-width of the interval; None if it does not lie evenly around the value."""
        if self.value is None or self.low is None or self.high is None:
            return None
        below, above = self.value - self.low, self.high - self.value
        return (below + above) / 2 if abs(below - above) < 1e-9 * (1 + abs(self.value)) else None

    def in_words(self) -> str:
        """The number with its title and what is compared with it."""
        return f"{self.title}: {self.words or self.number_text}" + (f" ({below})" if (below := self.below()) else "")

    def below(self, escape: Callable[[str], str] = str) -> str:
        """The line below the number: its comparison. `escape` is for the note, which may hold names of users."""
        note = escape(self.note) if self.note else ""
        joint = "; " if self.change is None else " "
        return joint.join(part for part in (self.change_text, note) if part)

    @property
    def _after(self) -> str:
        return self.unit if self.unit.startswith("%") or not self.unit else f" {self.unit}"
