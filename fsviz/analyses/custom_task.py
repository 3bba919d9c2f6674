"""A task put together by hand: predictions and measures, before and after a swap of one support image.

    classes (names) -> images (sampled, or given) -> a task -> predictions, measures, attribute shifts -> the same after
    one support image was replaced by another

Links and commands write a task as three texts: classes by name with commas between, support and query as image_ids,
dots between the images of a class and commas between classes, in the order of the classes.
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
    "Names of the classes, with commas between; #17 is class number 17.",
    "text",
    "",
)
SUPPORT = Setting(
    "support",
    "Support images",
    "Numbers of the support images: dots between those of a class, commas between classes. Sampled if not given.",
    "text",
    "",
)
QUERY = Setting(
    "query", "Query images", "Numbers of the queries, written like those of the support images.", "text", ""
)
SWAP = Setting(
    "swap",
    "Swap",
    "OLD.NEW: the number of a support image, and of the image of the same class that replaces it.",
    "text",
    "",
)
METHOD = Setting(
    "method",
    "Method",
    "The few-shot method that classifies the queries.",
    "choice",
    "protonet",
    choices={name: method.title for name, method in METHODS.items()},
)
SETTINGS: dict[str, Setting] = {s.name: s for s in (CLASSES, SUPPORT, QUERY, SWAP, METHOD, N_SHOT, N_QUERY, SEED)}
MAX_CLASSES = 20
MAX_IMAGES = 4000  # of a task that is measured while a visitor waits
# The key of its classes in links: "classes" is the selection of other pages.
TASK_OF = CLASSES.with_(name="task_of")
LINKED = "linked"  # on the map: the task whose images are in the link
_PAIR_IMAGES = 1500  # of two classes together: more take too long to compare on a page
_PAIR_CLASSES = 10
_EFFECT_SECONDS = 0.1  # for all swaps of one image, by a count of operations


MEASURE_CHANGES = Table(
    "Measures of the task",
    Column("measure", "Measure", width=235),
    Column("before", "Before", kind="number"),
    Column("now", "Now", kind="number"),
    Column("change", "Change"),
    Column("higher_is", "Higher is"),
    Column("inputs", "Inputs"),
)
GAPS = Table(
    "Attribute shift",
    Column("attribute", "Attribute"),
    Column("before", "Before", digits=2, kind="number"),
    Column("gap", "Shift", digits=2, kind="number"),
    Column("change", "Change", digits=2, kind="number"),
    Column("larger_than", "Larger than in", "% of tasks", 0, kind="bar", high=100),
    Column("unit", "Unit"),
)


@dataclass(frozen=True)
class TaskMeasure:
    """The value of a measure for the task, or why it is not available.

    value      NaN if it is not available, and `why_not` says why
    direction  whether a task with a higher value is "harder" or "easier"
    inputs     the inputs that it is computed from, for people
    """

    name: str
    title: str
    value: float
    direction: str
    inputs: str
    why_not: str = ""


@dataclass(frozen=True)
class TaskResult:
    """A task with the predictions of a method and its measures.

    tasks        of length one
    predictions  the method's
    measures     every measure, in the order of lists
    gaps         attribute -> its shift between support and queries; {} if the dataset has no attributes
    """

    tasks: Tasks
    predictions: Predictions
    measures: tuple[TaskMeasure, ...]
    gaps: Mapping[str, AttributeGap]

    @property
    def correct(self) -> np.ndarray:
        """(W, Q) whether each query is classified correctly."""
        return (self.predictions.rank[0] == 0) & (self.tasks.query[0] != PAD)

    @property
    def n_correct(self) -> int:
        return int(self.correct.sum())

    @property
    def n_queries(self) -> int:
        return int((self.tasks.query[0] != PAD).sum())

    @property
    def accuracy(self) -> float:
        return float(self.n_correct / self.n_queries)

    @property
    def chance_level(self) -> float:
        return 1 / len(self.tasks.class_ids[0])


@dataclass(frozen=True)
class TaskChange:
    """Difference between two results on the same queries.

    gained, lost  (n, 2) positions (way, query) of queries that are now correct, now incorrect
    moved         (n, 2) positions of queries that are incorrect both times, with another predicted class
    accuracy      the difference, as a share
    """

    gained: np.ndarray
    lost: np.ndarray
    moved: np.ndarray
    accuracy: float


# A task as text --------------------------------------------------------------------------------------------------


def classes_in(dataset: Dataset, text: str) -> list[int]:
    """The class_ids of a text, in its order; no class may be named twice. Names come before numbers."""
    by_name: dict[str, int] = {}
    for class_id, name in enumerate(dataset.classes["class_name"].astype(str)):
        by_name.setdefault(name, class_id)
    distinct = dict(zip(dataset.distinct_names(np.arange(dataset.n_classes)), range(dataset.n_classes), strict=True))
    class_ids = []
    for part in (part.strip() for part in text.split(",")):
        number = part.removeprefix("#")
        if part in by_name or part in distinct:
            class_ids.append(by_name.get(part, distinct.get(part, PAD)))
        elif number.isascii() and number.isdecimal() and int(number) < dataset.n_classes:
            class_ids.append(int(number))
        elif part:
            raise UnknownName("class", part, by_name, f"These are classes of {dataset.title}.")
    twice = next((class_id for at, class_id in enumerate(class_ids) if class_id in class_ids[:at]), None)
    if twice is not None:
        name = dataset.distinct_names(np.array([twice]))[0]
        raise BadInput(f"A task names every class once. {name!r} is there twice in {text[:60]!r}. Remove one.")
    return class_ids


def classes_text(dataset: Dataset, class_ids: Iterable[int]) -> str:
    """The text that `classes_in` reads back: names, and numbers where a name is ambiguous."""
    names = dataset.classes["class_name"].astype(str)
    shared = names.duplicated(keep=False)
    ambiguous = shared | names.str.contains(",", regex=False) | (names != names.str.strip()) | names.str.startswith("#")
    return ",".join(f"#{c}" if ambiguous[c] or not names[c] else names[c] for c in class_ids)


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
    """The image that was removed, and the one that replaced it; None for no swap."""
    if not text:
        return None
    rows = images_in(text)
    if len(rows) != 1 or len(rows[0]) != 2:
        raise BadInput(f"A swap is written OLD.NEW, the numbers of two images. Got {text[:40]!r}.")
    return rows[0][0], rows[0][1]


# The task ---------------------------------------------------------------------------------------------


def suggested_split(dataset: Dataset) -> str:
    """The split whose classes are suggested; refused if the dataset has too few."""
    split = draw.default_split(dataset)
    split = split if len(dataset.split_class_ids(split)) >= 2 else "all"
    draw.check_n_classes(dataset, split)
    return split


def suggest_classes(dataset: Dataset, seed: int = 0, n_way: int = int(N_WAY.default)) -> list[int]:
    """Classes to begin with: semantically close ones if the dataset has a taxonomy, else any."""
    split = suggested_split(dataset)
    n_way = min(n_way, len(dataset.split_class_ids(split)))
    sampler = draw.default_sampler(dataset)
    testbed = draw.sample(dataset, sampler=sampler, split=split, n_way=n_way, n_tasks=1, seed=seed)
    return testbed.tasks.class_ids[0].tolist()


def sample_images(
    dataset: Dataset, table: Features, class_id: int, n_shot: int, n_query: int, seed: int
) -> tuple[list, list]:
    """Support and query images of one class.

    They follow from the seed and the class alone, so that another class in the task changes nothing here. No group of
    images (copies, frames) is on both sides.
    """
    images = _usable(dataset, table, class_id)
    images = np.random.default_rng((SEED.check(seed), class_id)).permutation(images)
    support, rest = images[:n_shot], images[n_shot:]
    groups = dataset.image_groups()
    if groups is not None:
        rest = rest[~np.isin(groups[rest], groups[support])]
    if len(support) < n_shot or len(rest) < n_query:
        name = str(dataset.classes["class_name"].iloc[class_id])
        raise BadInput(
            f"Class {name!r} of {dataset.title} has {len(images)} images with features; n_shot + n_query needs "
            f"{n_shot + n_query} that share no group. "
            + ("Lower n_shot or n_query, or remove the class." if len(images) > 1 else "Remove the class.")
        )
    return support.tolist(), rest[:n_query].tolist()


def _usable(dataset: Dataset, table: Features, class_id: int) -> np.ndarray:
    """Images of a class that have features and no copy in another class."""
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
    """Shots and queries of a task: as requested, else the defaults, lowered to what the suggested classes have."""
    images = {name: requested.get(name) for name in draw.IMAGE_DEFAULTS}
    shape = {"n_way": 2, "split": suggested_split(dataset)}
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
    """The task of these classes; images that are not given are sampled."""
    class_ids = list(dict.fromkeys(int(c) for c in class_ids))
    if not 2 <= len(class_ids) <= MAX_CLASSES:
        raise BadInput(f"A task has 2 to {MAX_CLASSES} classes here. Got {len(class_ids)}. Add or remove classes.")
    for rows, side_title in ((support, "support"), (query, "query")):
        if rows and len(rows) != len(class_ids):
            raise BadInput(
                f"The {side_title} must name images for each of the {len(class_ids)} classes. Got {len(rows)} rows. "
                "Name all of them, or none."
            )
    sides: tuple[list, list] = ([], [])
    for way, class_id in enumerate(class_ids):
        if support and query:
            of_class: Any = support[way], query[way]
        else:
            of_class = sample_images(dataset, table, class_id, n_shot, n_query, seed)
            of_class = (support[way] if support else of_class[0], query[way] if query else of_class[1])
        for side, images in zip(sides, of_class, strict=True):
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
    """The task of these images, class by class; its classes follow from them."""
    of_image = dataset.image_class_ids()
    out_of_range = [i for row in (*support, *query) for i in row if i >= len(of_image)]
    if out_of_range:
        raise BadInput(f"{dataset.title} has {len(of_image):,} images, numbered from 0. Got image {out_of_range[0]}.")
    return build(dataset, table, [int(of_image[row[0]]) for row in support], support=support, query=query)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.full((1, len(rows), max(map(len, rows))), PAD, dtype=np.int64)
    for way, row in enumerate(rows):
        padded[0, way, : len(row)] = row
    return padded


def check(dataset: Dataset, table: Features, tasks: Tasks) -> None:
    """Refuse a task whose images are of other classes, lack features, or are on both sides."""
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
            f"Image {without[0]} has no {table.backbone!r} features. Choose another image, or {table.remake}."
        )
    groups = dataset.image_groups()
    if groups is not None:
        sides = [groups[side[side != PAD]] for side in (tasks.support, tasks.query)]
        if np.isin(sides[0], sides[1]).any():
            raise BadInput(
                "A support image and a query are copies of one picture, or frames of one video. Choose another image."
            )


def check_size(tasks: Tasks) -> None:
    """Refuse a task with more images than can be measured while a visitor waits."""
    n_images = int((tasks.support != PAD).sum() + (tasks.query != PAD).sum())
    if n_images > MAX_IMAGES:
        raise BadInput(
            f"A task has at most {MAX_IMAGES:,} images here. Got {n_images:,}. Lower n_shot or n_query, or remove "
            "classes."
        )


def swap_image(tasks: Tasks, old: int, new: int) -> Tasks:
    """The task with one support image replaced by another."""
    is_old = tasks.support == old
    if not is_old.any():
        raise BadInput(f"A swap replaces a support image of the task. Image {old} is none. Choose a support image.")
    return replace(tasks, support=np.where(is_old, new, tasks.support), measures={})


def candidates(dataset: Dataset, table: Features, tasks: Tasks, way: int) -> np.ndarray:
    """Images of a class that can replace a support image: not in the task, and not copies of a query."""
    images = _usable(dataset, table, int(tasks.class_ids[0, way]))
    images = images[~np.isin(images, np.concatenate([tasks.support.ravel(), tasks.query.ravel()]))]
    groups = dataset.image_groups()
    if groups is not None:
        queries = tasks.query[tasks.query != PAD]
        images = images[~np.isin(groups[images], groups[queries])]
    return images


def way_of_support(tasks: Tasks, image_id: int) -> int:
    """The way of a support image; PAD if it is none."""
    return int(next(iter(np.nonzero((tasks.support[0] == image_id).any(axis=1))[0]), PAD))


def testbed(dataset: Dataset, tasks: Tasks, name: str = "by_hand") -> Testbed:
    """The task as a testbed of one task."""
    recipe = {
        "dataset": dataset.name,
        "split": dataset.split_of(tasks.class_ids),
        "sampler": "by hand",
        "version": fsviz.__version__,
    }
    sizes = {"n_shot": tasks.support.shape[2], "n_query": tasks.query.shape[2], "n_distinct": 1}
    return Testbed(name, draw.with_coarsity(tasks, dataset), recipe | sizes)


# Predictions and measures -------------------------------------------------------------------------------------------


def evaluate_task(
    dataset: Dataset, backbone: str, tasks: Tasks, method: str = "protonet", parameters: RawSettings | None = None
) -> TaskResult:
    """Predictions of a method for the queries of a task, and every measure of it."""
    settings = METHODS[str(METHOD.check(method))].checked(parameters)
    predictions = evaluate.predict_tasks(dataset, backbone, method, settings, tasks)
    has_attributes = bool(attribute_gaps.attribute_names(dataset))
    gaps = attribute_gaps.measure_gaps(dataset, tasks, by="class") if has_attributes else {}
    return TaskResult(tasks, predictions, tuple(_measures(dataset, backbone, tasks, predictions)), gaps)


def compare_results(before: TaskResult, after: TaskResult) -> TaskChange:
    """The queries whose prediction changed. Both results must be of the same queries."""
    if not np.array_equal(before.tasks.query, after.tasks.query):
        raise BadInput("Results are compared query by query, so both tasks need the same queries. These differ.")
    is_query = before.tasks.query[0] != PAD
    is_changed = before.predictions.predicted[0] != after.predictions.predicted[0]
    return TaskChange(
        np.argwhere(is_query & ~before.correct & after.correct),
        np.argwhere(is_query & before.correct & ~after.correct),
        np.argwhere(is_query & ~before.correct & ~after.correct & is_changed),
        after.accuracy - before.accuracy,
    )


def headline(result: TaskResult, change: TaskChange | None = None) -> tuple[str, str]:
    """The result as a bold sentence and its addition; with `change`, the effect of the swap comes first."""
    count = f"{result.n_correct:,} of {result.n_queries:,} queries correct ({100 * result.accuracy:.0f}%)"
    chance = f"{result.tasks.setting}, chance level: {100 * result.chance_level:.0f}%."
    if change is None:
        return f"{count}.", chance
    points = round(100 * change.accuracy)
    effect = f"{points:+d} point{'' if abs(points) == 1 else 's'}".replace("-", "−")
    if not points and change.accuracy:
        effect = f"{100 * change.accuracy:+.1f} points".replace("-", "−")
    turned = [
        f"{len(change.gained):,} {_queries(len(change.gained))} now correct",
        f"{len(change.lost):,} now incorrect",
    ]
    moved = f" {len(change.moved):,} still incorrect, with another predicted class." if len(change.moved) else ""
    sentence = f"Swap: {effect if change.accuracy else 'accuracy unchanged'}. {', '.join(turned)}."
    return sentence, f"Now {count}; {chance}{moved}"


def _queries(n: int) -> str:
    return "query" if n == 1 else "queries"


def swap_effects(
    dataset: Dataset, backbone: str, tasks: Tasks, old: int, images: np.ndarray, method: str = "protonet"
) -> np.ndarray | None:
    """The change (n,) in correct queries if each of these images replaced a support image.

    None if the method is too slow to try them all while a visitor waits.
    """
    if not len(images):
        return np.zeros(0, dtype=np.int64)
    support = np.repeat(tasks.support, len(images) + 1, axis=0)
    position = tuple(np.argwhere(tasks.support[0] == old)[0])
    support[(slice(1, None), *position)] = images  # the first is the task as it is
    variants = replace(tasks.take(np.zeros(len(support), np.int64)), support=support)
    settings = METHODS[method].checked()
    if evaluate.guess_seconds(dataset, backbone, method, settings, variants) > _EFFECT_SECONDS:
        return None
    n_correct = (evaluate.predict_tasks(dataset, backbone, method, settings, variants).rank == 0).sum(axis=(1, 2))
    return n_correct[1:] - n_correct[0]


_SIDES = ("support", "query")
_INPUTS = {
    "distances": "the classes",
    "feature_distances": "all images of the classes",
    "overlaps": "all images of the classes",
    "train_divergence": "the classes, and the training classes",
    "attributes": "attributes of support and queries",
    "contexts": "contexts of support and queries",
    "text_margins": "queries, words for contexts and classes",
    "support": "the support",
    "queries": "support with labels, queries without",
    "images": "support and queries, without labels",
    "predictions": "predictions of the method",
}


def _measures(dataset: Dataset, backbone: str, tasks: Tasks, predictions: Predictions) -> Iterable[TaskMeasure]:
    table = features.load(dataset, backbone)
    for name, measure in MEASURES.items():
        value, why_not = np.nan, ""
        try:
            if "overlaps" in measure.needs:
                value = _confusion(dataset, backbone, tasks)
            else:
                value = float(task_measures.measured(measure, tasks, dataset, table, predictions)[0])
            why_not = "" if np.isfinite(value) else f"Undefined for {tasks.setting} tasks."
        except FsvizError as error:
            why_not = str(error)
        inputs = _INPUTS["queries" if "queries" in measure.needs else measure.needs[0]]
        yield TaskMeasure(name, measure.title, value, measure.direction, inputs, why_not)


def _confusion(dataset: Dataset, backbone: str, tasks: Tasks) -> float:
    return float(np.triu(pair_confusions(dataset, backbone, tasks.class_ids[0])).sum())


def pair_confusions(dataset: Dataset, backbone: str, class_ids: np.ndarray) -> np.ndarray:
    """The overlap (W, W) of every two of these classes, in bits; refused if it takes too long."""
    if len(class_ids) > _PAIR_CLASSES:
        raise Missing(f"Not computed here for more than {_PAIR_CLASSES} classes. Use the page Confusion.")
    confusions = np.zeros((len(class_ids), len(class_ids)))
    stamp = chunk_data.stamp(dataset.name)
    for i, j in zip(*np.triu_indices(len(class_ids), 1), strict=True):
        a, b = sorted((int(class_ids[i]), int(class_ids[j])))
        confusions[i, j] = confusions[j, i] = _pair_confusion(dataset.name, backbone, a, b, stamp)
    return confusions


@lru_cache(maxsize=4096)
def _pair_confusion(dataset: str, backbone: str, a: int, b: int, stamp: str) -> float:
    """The overlap of two classes in bits; it does not depend on the images of a task."""
    from fsviz.difficulty import class_confusion

    table = features.load(datasets.load(dataset), backbone)
    sizes = [int((table.class_ids == c).sum()) for c in (a, b)]
    if sum(sizes) > _PAIR_IMAGES:
        raise Missing("Not computed here for classes with so many images. Use the page Confusion.")
    return float(class_confusion.class_confusion(table, np.array([[a, b]]))[0])


def result_dict(dataset: Dataset, result: TaskResult) -> dict[str, Any]:
    """A result as numbers for JSON; values that are not available are null."""
    names = dataset.distinct_names(result.tasks.class_ids[0])
    sides = {side: [[int(i) for i in row if i != PAD] for row in getattr(result.tasks, side)[0]] for side in _SIDES}
    gaps = {name: float(gap.gap[0]) for name, gap in result.gaps.items()}
    return {
        "classes": names,
        **sides,
        "n_queries": result.n_queries,
        "correct": result.n_correct,
        "accuracy": result.accuracy,
        "measures": {item.title: item.value if np.isfinite(item.value) else None for item in result.measures},
        "gaps": {name: value if np.isfinite(value) else None for name, value in gaps.items()},
    }


# The command -------------------------------------------------------------------------------------------------


def command(dataset: Dataset, backbone: str, tasks: Tasks, method: str, swap: tuple[int, int] | None = None) -> str:
    """The command that shows the same task."""
    arguments = ["fsviz", "task", dataset.name, "--backbone", backbone, "--method", method]
    arguments += CLASSES.to_args(classes_text(dataset, tasks.class_ids[0].tolist()))
    arguments += SUPPORT.to_args(images_text(tasks.support[0])) + QUERY.to_args(images_text(tasks.query[0]))
    return shlex.join(arguments + (SWAP.to_args(f"{swap[0]}.{swap[1]}") if swap else []))
