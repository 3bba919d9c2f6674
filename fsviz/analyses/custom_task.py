"""How much does one support image change? A task made by hand, its predictions, and every measured cause.

    classes (names) -> images (dealt, or named) -> a task -> answers to its queries, measures, gaps -> the same after
    one support image was swapped for another

A task is written in three texts, for links and commands: classes by name with commas between, support and query as
image_ids, dots between the images of a class and commas between classes, in the order of the classes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import fsviz
from fsviz import datasets, features
from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.attribute_gaps import AttributeGap
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.methods import METHODS
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks, Testbed
from fsviz.sampling import testbed_tables
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, SEED, RawSettings, Setting
from fsviz.studies import chunk_data, evaluate, task_measures
from fsviz.tables import Column, Table
from fsviz.tasks import draw, fitting

CLASSES = Setting(
    "classes",
    "Classes",
    "The classes of the task by name, with commas between; #17 is the class with number 17.",
    "text",
    "",
)
SUPPORT = Setting(
    "support",
    "Support images",
    "Numbers of the support images: dots between those of a class, commas between classes. Dealt where left out.",
    "text",
    "",
)
QUERY = Setting("query", "Query images", "Numbers of the queries, written like those of the support.", "text", "")
SWAP = Setting(
    "swap",
    "Swap",
    "OLD.NEW: the number of a support image, and that of the image of the same class that takes its place.",
    "text",
    "",
)
METHOD = Setting(
    "method",
    "Method",
    "The few-shot method that names the queries.",
    "choice",
    "protonet",
    choices={name: method.title for name, method in METHODS.items()},
)
SETTINGS: dict[str, Setting] = {s.name: s for s in (CLASSES, SUPPORT, QUERY, SWAP, METHOD, N_SHOT, N_QUERY, SEED)}
MAX_CLASSES = 20
MAX_IMAGES = 4000  # of a task that is measured while somebody waits
# What links call its classes: "classes" are those that other pages show, each under a key of its own.
TASK_OF = CLASSES.with_(name="task_of")
LINKED = "linked"  # what the map calls the task whose images its link names
_PAIR_IMAGES = 1500  # of two classes together: more take too long to compare along the way
_PAIR_CLASSES = 10
_EFFECT_SECONDS = 0.1  # that all swaps of one image may take, by a count of operations


CAUSES = Table(
    "Measures of the task",
    Column("measure", "Measure", width=235),
    Column("before", "Before", kind="number"),
    Column("now", "Now", kind="number"),
    Column("change", "By the swap"),
    Column("higher_is", "Higher is"),
    Column("seen", "Computed from"),
)
GAPS = Table(
    "Gaps between support and query",
    Column("attribute", "Attribute"),
    Column("before", "Gap before", digits=2, kind="number"),
    Column("gap", "Gap", digits=2, kind="number"),
    Column("change", "Change", digits=2, kind="number"),
    Column("larger_than", "Larger than in", "% of tasks", 0, kind="bar", high=100),
    Column("unit", "Unit"),
)


@dataclass(frozen=True)
class CauseChange:
    """One number that is measured of a task, or why it is not known.

    value      NaN where it is not known, and `why_not` says why
    direction  whether a task with a higher value is "harder" or "easier"
    seen       what it is computed from, in words
    """

    name: str
    title: str
    what: str
    value: float
    direction: str
    seen: str
    why_not: str = ""


@dataclass(frozen=True)
class TaskResult:
    """One task with what a method said of its queries, and what is measured of it.

    tasks        of length one
    predictions  the method's
    causes       every measure, in the order of lists
    gaps         attribute -> its gap between support and queries; {} where the dataset has no attributes
    """

    tasks: Tasks
    predictions: Predictions
    causes: tuple[CauseChange, ...]
    gaps: Mapping[str, AttributeGap]

    @property
    def right(self) -> np.ndarray:
        """(W, Q) which queries were named rightly."""
        return (self.predictions.rank[0] == 0) & (self.tasks.query[0] != PAD)

    @property
    def n_queries(self) -> int:
        return int((self.tasks.query[0] != PAD).sum())

    @property
    def accuracy(self) -> float:
        return float(self.right.sum() / self.n_queries)


@dataclass(frozen=True)
class TaskChange:
    """Difference between two results on the same queries.

    gained, lost  (n, 2) places (way, query) that turned right, that turned wrong
    moved         (n, 2) places that are wrong both times, with another class
    """

    gained: np.ndarray
    lost: np.ndarray
    moved: np.ndarray
    accuracy: float


# A task as text --------------------------------------------------------------------------------------------------


def classes_in(dataset: Dataset, text: str) -> list[int]:
    """The class_ids that a text names, in its order; no class may be named twice. Names come before numbers."""
    known: dict[str, int] = {}
    for class_id, name in enumerate(dataset.classes["class_name"].astype(str)):
        known.setdefault(name, class_id)
    distinct = dict(zip(dataset.distinct_names(np.arange(dataset.n_classes)), range(dataset.n_classes), strict=True))
    class_ids = []
    for part in (part.strip() for part in text.split(",")):
        number = part.removeprefix("#")
        if part in known or part in distinct:
            class_ids.append(known.get(part, distinct.get(part, PAD)))
        elif number.isascii() and number.isdecimal() and int(number) < dataset.n_classes:
            class_ids.append(int(number))
        elif part:
            raise UnknownName("class", part, known, f"Those are classes of {dataset.title}.")
    twice = next((class_id for at, class_id in enumerate(class_ids) if class_id in class_ids[:at]), None)
    if twice is not None:
        name = dataset.distinct_names(np.array([twice]))[0]
        raise BadInput(f"Every class of a task is named once. {name!r} is there twice in {text[:60]!r}. Leave one out.")
    return class_ids


def classes_text(dataset: Dataset, class_ids: Iterable[int]) -> str:
    """The text that `classes_in` reads back: names, and numbers where a name is ambiguous."""
    names = dataset.classes["class_name"].astype(str)
    shared = names.duplicated(keep=False)
    awkward = shared | names.str.contains(",", regex=False) | (names != names.str.strip()) | names.str.startswith("#")
    return ",".join(f"#{c}" if awkward[c] or not names[c] else names[c] for c in class_ids)


def images_in(text: str) -> list[list[int]]:
    """Rows of image_ids."""
    try:
        return [[int(number) for number in row.split(".")] for row in text.split(",")] if text else []
    except ValueError:
        raise BadInput(
            f"Images are written as numbers, dots between those of a class and commas between classes: 4.17,90.95. "
            f"Got {text[:40]!r}."
        ) from None


def images_text(rows: np.ndarray | Sequence[Sequence[int]]) -> str:
    return ",".join(".".join(str(int(i)) for i in row if i != PAD) for row in rows)


def swap_in(text: str) -> tuple[int, int] | None:
    """The image that was taken out, and the one in its place; None for no swap."""
    if not text:
        return None
    rows = images_in(text)
    if len(rows) != 1 or len(rows[0]) != 2:
        raise BadInput(f"A swap is written OLD.NEW, the numbers of two images. Got {text[:40]!r}.")
    return rows[0][0], rows[0][1]


# Putting it together ---------------------------------------------------------------------------------------------


def drawn_from(dataset: Dataset) -> str:
    """The split whose classes are suggested; refused if the dataset has too few."""
    split = draw.default_split(dataset)
    split = split if len(dataset.split_class_ids(split)) >= 2 else "all"
    draw.check_n_classes(dataset, split)
    return split


def suggested(dataset: Dataset, seed: int = 0, n_way: int = int(N_WAY.default)) -> list[int]:
    """Classes to begin with: close in meaning where a taxonomy says what is, any where none does."""
    split = drawn_from(dataset)
    n_way = min(n_way, len(dataset.split_class_ids(split)))
    sampler = draw.default_sampler(dataset)
    drawn = draw.sample(dataset, sampler=sampler, split=split, n_way=n_way, n_tasks=1, seed=seed)
    return drawn.tasks.class_ids[0].tolist()


def sample_images(
    dataset: Dataset, table: Features, class_id: int, n_shot: int, n_query: int, seed: int
) -> tuple[list, list]:
    """Support and query images of one class. They follow from the seed and the class alone, so that another class in
    the task changes nothing here; no group of images (copies, frames) is on both sides."""
    images = _usable(dataset, table, class_id)
    images = np.random.default_rng((SEED.check(seed), class_id)).permutation(images)
    support, rest = images[:n_shot], images[n_shot:]
    groups = dataset.image_groups()
    if groups is not None:
        rest = rest[~np.isin(groups[rest], groups[support])]
    if len(support) < n_shot or len(rest) < n_query:
        name = str(dataset.classes["class_name"].iloc[class_id])
        raise BadInput(
            f"Class {name!r} of {dataset.title} cannot give n_shot + n_query = {n_shot + n_query} images with features "
            f"that share no group: it has {len(images)}. "
            + ("Lower n_shot or n_query, or leave the class out." if len(images) > 1 else "Leave the class out.")
        )
    return support.tolist(), rest[:n_query].tolist()


def _usable(dataset: Dataset, table: Features, class_id: int) -> np.ndarray:
    """Images of a class that have features and are no copies of another class's."""
    images = np.sort(table.image_ids[table.class_ids == class_id])
    groups = dataset.image_groups()
    if groups is None:
        return images
    of_image = dataset.image_class_ids()
    mixed = np.zeros(groups.max() + 1, dtype=bool)
    first = np.full(groups.max() + 1, PAD)
    first[groups[::-1]] = of_image[::-1]
    mixed[groups[of_image != first[groups]]] = True
    return images[~mixed[groups[images]]]


def fit(dataset: Dataset, backbone: str, requested: RawSettings) -> fitting.Fit:
    """Shots and queries of a task: those given, else the defaults, lowered to what the classes to draw from have."""
    images = {name: requested.get(name) for name in draw.IMAGE_DEFAULTS}
    shape = {"n_way": 2, "split": drawn_from(dataset)}
    return fitting.fit(dataset, {**images, **shape}, draw.IMAGE_DEFAULTS, [backbone])


def build(
    dataset: Dataset,
    table: Features,
    class_ids: Sequence[int],
    n_shot: int = int(N_SHOT.default),
    n_query: int = int(N_QUERY.default),
    seed: int = 0,
    support: Sequence[Sequence[int]] = (),
    query: Sequence[Sequence[int]] = (),
) -> Tasks:
    """The task of these classes; images that are not named are dealt."""
    class_ids = list(dict.fromkeys(int(c) for c in class_ids))
    if not 2 <= len(class_ids) <= MAX_CLASSES:
        raise BadInput(f"A task made by hand has 2 to {MAX_CLASSES} classes. Got {len(class_ids)}.")
    for rows, what in ((support, "support"), (query, "query")):
        if rows and len(rows) != len(class_ids):
            raise BadInput(
                f"The {what} must name images for each of the {len(class_ids)} classes. Got {len(rows)} rows: name all "
                "of them, or leave them out."
            )
    sides: tuple[list, list] = ([], [])
    for way, class_id in enumerate(class_ids):
        if support and query:
            hand: Any = support[way], query[way]
        else:
            hand = sample_images(dataset, table, class_id, n_shot, n_query, seed)
            hand = (support[way] if support else hand[0], query[way] if query else hand[1])
        for side, images in zip(sides, hand, strict=True):
            side.append(list(images))
    tasks = Tasks(np.array([class_ids], dtype=np.int64), _padded(sides[0]), _padded(sides[1]))
    check(dataset, table, tasks)
    return tasks


def of_support(
    dataset: Dataset, table: Features, image_ids: Sequence[int], n_query: int = int(N_QUERY.default), seed: int = 0
) -> Tasks:
    """The task with these images as its support; queries are other images of their classes, as many as all have.

    Copies of support images are never queries.
    """
    of_image, support = dataset.image_class_ids(), dict[int, list[int]]()
    for image_id in dict.fromkeys(int(i) for i in image_ids):
        support.setdefault(int(of_image[image_id]), []).append(image_id)
    groups, all_support = dataset.image_groups(), np.concatenate([[], *support.values()]).astype(np.int64)
    pools = []
    for class_id in support:
        images = np.random.default_rng((SEED.check(seed), class_id)).permutation(_usable(dataset, table, class_id))
        images = images[~np.isin(images, all_support)]
        if groups is not None:
            images = images[~np.isin(groups[images], groups[all_support])]
        if not len(images):
            name = str(dataset.classes["class_name"].iloc[class_id])
            raise BadInput(f"Class {name!r} has no other images for queries. Select fewer of its images.")
        pools.append(images)
    n_query = min([n_query, *map(len, pools)])
    return build(
        dataset, table, list(support), support=list(support.values()), query=[pool[:n_query].tolist() for pool in pools]
    )


def of_images(
    dataset: Dataset, table: Features, support: Sequence[Sequence[int]], query: Sequence[Sequence[int]]
) -> Tasks:
    """The task whose images are named, class by class; its classes are theirs."""
    of_image = dataset.image_class_ids()
    unknown = [i for row in (*support, *query) for i in row if i >= len(of_image)]
    if unknown:
        raise BadInput(f"{dataset.title} has {len(of_image):,} images, numbered from 0. Got image {unknown[0]}.")
    return build(dataset, table, [int(of_image[row[0]]) for row in support], support=support, query=query)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((1, len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for way, row in enumerate(rows):
        padded[0, way, : len(row)] = row
    return padded


def check(dataset: Dataset, table: Features, tasks: Tasks) -> None:
    """Refuses a task whose images are of other classes, lack features, or stand on both sides."""
    testbed_tables.check_tasks(tasks, dataset)
    for images in (tasks.support[0], tasks.query[0]):
        empty = ~(images != PAD).any(axis=1)
        if empty.any():
            name = str(dataset.classes["class_name"].iloc[int(tasks.class_ids[0, empty.argmax()])])
            raise BadInput(f"Every class of a task needs support images and queries. Class {name!r} has none.")
    used = np.concatenate([tasks.support[0], tasks.query[0]], axis=1)
    used = used[used != PAD]
    without = used[table.rows_of(used) == PAD]
    if len(without):
        raise BadInput(
            f"Image {without[0]} has no features under {table.backbone!r}. Choose another, or {table.remake}."
        )
    groups = dataset.image_groups()
    if groups is not None:
        sides = [groups[side[side != PAD]] for side in (tasks.support, tasks.query)]
        if np.isin(sides[0], sides[1]).any():
            raise BadInput(
                "A support image and a query are copies of one picture, or frames of one video: the task would be "
                "easier than it looks. Choose another image."
            )


def check_size(tasks: Tasks) -> None:
    """Refuses a task with more images than can be measured while somebody waits."""
    n_images = int((tasks.support != PAD).sum() + (tasks.query != PAD).sum())
    if n_images > MAX_IMAGES:
        raise BadInput(
            f"A task that is measured at once has at most {MAX_IMAGES:,} images. Got {n_images:,}. Lower n_shot or "
            "n_query, or leave classes out."
        )


def swapped(tasks: Tasks, old: int, new: int) -> Tasks:
    """The task with one support image in the place of another."""
    places = tasks.support == old
    if not places.any():
        raise BadInput(f"Image {old} is no support image of this task, so nothing can take its place.")
    return replace(tasks, support=np.where(places, new, tasks.support), measures={})


def candidates(dataset: Dataset, table: Features, tasks: Tasks, way: int) -> np.ndarray:
    """Images of one of the task's classes that can take the place of a support image: neither in the task already,
    nor copies of a query."""
    images = _usable(dataset, table, int(tasks.class_ids[0, way]))
    images = images[~np.isin(images, np.concatenate([tasks.support.ravel(), tasks.query.ravel()]))]
    groups = dataset.image_groups()
    if groups is not None:
        asked = tasks.query[tasks.query != PAD]
        images = images[~np.isin(groups[images], groups[asked])]
    return images


def way_of_support(tasks: Tasks, image_id: int) -> int:
    """Whose support image it is: the place of the class in the task, PAD where it is no support image."""
    return int(next(iter(np.nonzero((tasks.support[0] == image_id).any(axis=1))[0]), PAD))


def testbed(dataset: Dataset, tasks: Tasks, name: str = "by_hand") -> Testbed:
    """The task as a testbed of its own."""
    recipe = {
        "dataset": dataset.name,
        "split": dataset.split_of(tasks.class_ids),
        "sampler": "by hand",
        "version": fsviz.__version__,
    }
    sizes = {"n_shot": tasks.support.shape[2], "n_query": tasks.query.shape[2], "n_distinct": 1}
    return Testbed(name, draw.with_coarsity(tasks, dataset), recipe | sizes)


# Answers and causes ----------------------------------------------------------------------------------------------


def answer(
    dataset: Dataset, backbone: str, tasks: Tasks, method: str = "protonet", parameters: RawSettings | None = None
) -> TaskResult:
    """Predictions of a method for the queries of a task, and every measure of it."""
    chosen = METHODS[str(METHOD.check(method))].checked(parameters)
    said = evaluate.predict_tasks(dataset, backbone, method, chosen, tasks)
    has_attributes = bool(attribute_gaps.attribute_names(dataset))
    gaps = attribute_gaps.measure_gaps(dataset, tasks, by="class") if has_attributes else {}
    return TaskResult(tasks, said, tuple(_causes(dataset, backbone, tasks, said)), gaps)


def change(before: TaskResult, after: TaskResult) -> TaskChange:
    """Which queries turned right or wrong. Both must be of the same queries."""
    if not np.array_equal(before.tasks.query, after.tasks.query):
        raise BadInput("Two tasks can be compared query by query only when they have the same queries.")
    there = before.tasks.query[0] != PAD
    other = before.predictions.predicted[0] != after.predictions.predicted[0]
    return TaskChange(
        np.argwhere(there & ~before.right & after.right),
        np.argwhere(there & before.right & ~after.right),
        np.argwhere(there & ~before.right & ~after.right & other),
        after.accuracy - before.accuracy,
    )


def effects(
    dataset: Dataset, backbone: str, tasks: Tasks, old: int, images: np.ndarray, method: str = "protonet"
) -> np.ndarray | None:
    """How many more queries (n,) would be named rightly with each of these images in the place of a support image.

    None where the method is too slow to try them all while somebody waits.
    """
    if not len(images):
        return np.zeros(0, dtype=np.int64)
    support = np.repeat(tasks.support, len(images) + 1, axis=0)
    place = tuple(np.argwhere(tasks.support[0] == old)[0])
    support[(slice(1, None), *place)] = images  # the first is the task as it is
    every = Tasks(
        np.repeat(tasks.class_ids, len(support), axis=0), support, np.repeat(tasks.query, len(support), axis=0)
    )
    chosen = METHODS[method].checked()
    if evaluate.guess_seconds(dataset, backbone, method, chosen, every) > _EFFECT_SECONDS:
        return None
    right = (evaluate.predict_tasks(dataset, backbone, method, chosen, every).rank == 0).sum(axis=(1, 2))
    return right[1:] - right[0]


_SIDES = ("support", "query")
_SEEN = {
    "distances": "the classes",
    "feature_distances": "all images of the classes",
    "overlaps": "all images of the classes",
    "train_divergence": "the classes, and those to train on",
    "attributes": "attributes of support and queries",
    "contexts": "contexts of support and queries",
    "text_margins": "queries, words for contexts and classes",
    "support": "the support",
    "queries": "support with labels, queries without",
    "images": "support and queries, without labels",
    "predictions": "the method's answers",
}


def _causes(dataset: Dataset, backbone: str, tasks: Tasks, predictions: Predictions) -> Iterable[CauseChange]:
    table = features.load(dataset, backbone)
    for name, measure in MEASURES.items():
        value, why_not = np.nan, ""
        try:
            if "overlaps" in measure.needs:
                value = _confusion(dataset, backbone, tasks)
            else:
                value = float(task_measures.measured(measure, tasks, dataset, table, predictions)[0])
            why_not = "" if np.isfinite(value) else "It is not defined for a task like this."
        except FsvizError as error:
            why_not = str(error)
        seen = _SEEN["queries" if "queries" in measure.needs else measure.needs[0]]
        yield CauseChange(name, measure.title, measure.description, value, measure.direction, seen, why_not)


def _confusion(dataset: Dataset, backbone: str, tasks: Tasks) -> float:
    return float(np.triu(pair_confusions(dataset, backbone, tasks.class_ids[0])).sum())


def pair_confusions(dataset: Dataset, backbone: str, class_ids: np.ndarray) -> np.ndarray:
    """How much the backbone mixes up every two of these classes (W, W), in bits; refused where it takes too long."""
    if len(class_ids) > _PAIR_CLASSES:
        raise Missing(f"With more than {_PAIR_CLASSES} classes it takes too long here; the page Confusion has it.")
    confusions = np.zeros((len(class_ids), len(class_ids)))
    stamp = chunk_data.stamp(dataset.name)
    for i, j in zip(*np.triu_indices(len(class_ids), 1), strict=True):
        a, b = sorted((int(class_ids[i]), int(class_ids[j])))
        confusions[i, j] = confusions[j, i] = _pair_confusion(dataset.name, backbone, a, b, stamp)
    return confusions


@lru_cache(maxsize=4096)
def _pair_confusion(dataset: str, backbone: str, a: int, b: int, stamp: str) -> float:
    """Confusion in bits of one pair of classes: it does not depend on the images of a task."""
    from fsviz.difficulty import class_confusion

    table = features.load(datasets.load(dataset), backbone)
    sizes = [int((table.class_ids == c).sum()) for c in (a, b)]
    if sum(sizes) > _PAIR_IMAGES:
        raise Missing("Its classes have too many images to compare along the way; the page Confusion has it.")
    k = min(int(class_confusion.SETTINGS["k"].default), class_confusion.max_k(sizes))
    if k < 1:
        raise Missing("Its classes have too few images for it.")
    return float(class_confusion.class_confusion(table, np.array([[a, b]]), k=k)[0])


def result_dict(dataset: Dataset, result: TaskResult) -> dict[str, Any]:
    """An answered task as a command gives it; what is not known is null."""
    names = dataset.distinct_names(result.tasks.class_ids[0])
    sides = {side: [[int(i) for i in row if i != PAD] for row in getattr(result.tasks, side)[0]] for side in _SIDES}
    gaps = {name: float(gap.gap[0]) for name, gap in result.gaps.items()}
    return {
        "classes": names,
        **sides,
        "n_queries": result.n_queries,
        "right": int(result.right.sum()),
        "accuracy": result.accuracy,
        "causes": {cause.title: cause.value if np.isfinite(cause.value) else None for cause in result.causes},
        "gaps": {name: value if np.isfinite(value) else None for name, value in gaps.items()},
    }


# From a terminal -------------------------------------------------------------------------------------------------


def command(dataset: Dataset, backbone: str, tasks: Tasks, method: str, swap: tuple[int, int] | None = None) -> str:
    """The command that shows the same task."""
    words = ["fsviz", "task", dataset.name, "--backbone", backbone, "--method", method]
    words += CLASSES.to_args(classes_text(dataset, tasks.class_ids[0].tolist()))
    words += SUPPORT.to_args(images_text(tasks.support[0])) + QUERY.to_args(images_text(tasks.query[0]))
    return shlex.join(words + (SWAP.to_args(f"{swap[0]}.{swap[1]}") if swap else []))
