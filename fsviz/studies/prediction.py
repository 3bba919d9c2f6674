"""Can the accuracy of a task be known before its queries have labels? Measures of tasks against what came out.

    dataset -> features -> tasks -> what is seen of them (a setting) -> measures and outcome -> correlations

The spec of a run: {"study": "prediction", "dataset": name, "backbone": name, "question": one of QUESTION}, the settings
of tasks (see fsviz.studies.draw) and OWN_SETTINGS; all but dataset and backbone have defaults. A cell is one value of
what a question varies (a number of shots, a half of the classes, ...), a chunk is a range of a cell's tasks. The
outcome of a task is the accuracy of a logistic regression, or without any label the adjusted Rand index of clusters;
both are fractions here. After Bontonou et al. 2020.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

import numpy as np

from fsviz import datasets, evaluation, features
from fsviz.difficulty.measures import MEASURES, Given, Measure
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Progress, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_SHOT, Setting, Unchecked, Value, Values, words
from fsviz.studies import chunked, confusion, draw, fitting, frozen
from fsviz.studies import evaluate as evaluation_study
from fsviz.studies.labelling import POLICIES
from fsviz.studies.spread import CAUSES, sets_of
from fsviz.studies.threads import half_the_cores
from fsviz.workspace import plain_json

if TYPE_CHECKING:
    from fsviz.studies.spread import Parts, Spread

__all__ = ["CAUSES", "POLICIES", "Measured"]

VERSION = 2  # 2: many sets of classes of few tasks each tell the spread; intervals of correlations over classes
SIDE_BY_SIDE = 2  # chunks that a command computes at once: each takes half of the cores
SETTING = Setting(
    "setting",
    "What is seen",
    "Supervised: the labelled support alone. Semi-supervised: the queries too, without labels; features are then mixed "
    "with those of their neighbours. Unsupervised: all images, no label; they are clustered.",
    "choice",
    "semi",
    choices={"supervised": "Supervised", "semi": "Semi-supervised", "unsupervised": "Unsupervised"},
)
NEIGHBOURS = Setting(
    "neighbours",
    "Neighbours",
    "Neighbours that an image keeps in the graph of similar images.",
    "int",
    15,
    1,
    500,
    advanced=True,
)
QUESTION = Setting(
    "question",
    "Question",
    "What is asked: correlations of the measures with the outcome, the same as one thing varies, the spread of the "
    "accuracy by its cause, hard or easy on one half of the classes and carried to the other, what to label next.",
    "choice",
    "correlations",
    choices={
        "correlations": "Correlations",
        "shots": "Shots",
        "ways": "Ways",
        "queries": "Queries",
        "neighbours": "Neighbours in the graph",
        "imbalance": "Share of one class among the unlabelled",
        "eigenvalues": "Which eigenvalue",
        "spread": "Spread by cause",
        "hard": "Hard or easy",
        "labelling": "What to label next",
    },
)
HARD_BELOW = Setting("hard_below", "Hard is an accuracy below (%)", "The paper takes 80%.", "int", 80, 1, 100, step=1)
FOUND = Setting(
    "found",
    "Hard tasks to be found (%)",
    "Moves the threshold: it is set where at least this share of the hard tasks of the first half is called hard.",
    "int",
    80,
    1,
    100,
    step=1,
)
OWN_SETTINGS: dict[str, Setting] = {s.name: s for s in (SETTING, NEIGHBOURS, QUESTION, HARD_BELOW, FOUND)}
TASK_SETTINGS: dict[str, Setting] = evaluation_study.TASK_SETTINGS
TASK_DEFAULTS: dict[str, Value] = {"sampler": "uniform", **draw.PER_CLASS, "n_query": 30, "n_tasks": 200}
DEFAULTS: dict[str, Value] = {name: s.default for name, s in {**TASK_SETTINGS, **OWN_SETTINGS}.items()}
ASIDE = (HARD_BELOW.name, FOUND.name)  # where a task counts as hard is no part of what is computed
GRIDS: dict[str, tuple[float, ...]] = {  # what a question varies; what a dataset is too small for is left out
    "shots": (1, 2, 3, 5, 7, 10, 15, 20),
    "ways": (2, 3, 5, 7, 10, 15, 20),
    "queries": (1, 2, 5, 10, 15, 20, 30, 50),
    "neighbours": (2, 5, 10, 15, 20, 30, 50, 100),
    "imbalance": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "eigenvalues": (2, 3, 5, 7, 10, 15, 20),
}
VARIES = {"shots": "n_shot", "ways": "n_way", "queries": "n_query", "neighbours": "neighbours", "eigenvalues": "n_way"}
HALVES = ("first half", "second half")
OF_CLASSES = ("coarsity", "confusion_sum")  # measures that tasks are drawn with, whatever is seen of their images
_KEPT_EIGENVALUES = 40
MOST_TOLD = 60  # tasks of a cell that are shown one by one
_CONFUSION_SECONDS = 12.0  # that all pairs of a split may take on one core
_CHUNK_IMAGES = 20_000  # images in the tasks of a chunk: a second or two on one core


class Spec(draw.TaskSpec, total=False):
    """A checked spec. What depends on the dataset is there once it is fitted, the share of the first class among the
    unlabelled in the cells of the question "imbalance"; a run adds its version and folder."""

    study: str
    version: int
    folder: str
    setting: str
    neighbours: int
    question: str
    hard_below: int
    found: int
    values: list[float]
    n_unlabelled: int
    share: float


class Correlation(TypedDict, total=False):
    """What `correlations` says of one measure; its numbers are floats, or None where they are not known."""

    pearson: Any
    low: Any
    high: Any
    spearman: Any
    over: str
    why: str


class CellSummary(TypedDict, total=False):
    """What the summary of a run says of one cell; the last five are of the question "eigenvalues" alone,
    numbers or None."""

    value: float | str
    n_tasks: int
    outcome: float
    outcome_ci95: float | None
    correlations: dict[str, Correlation]
    predicted_accuracy: dict[str, Any]
    best: int | None
    best_pearson: Any
    best_low: Any
    best_high: Any
    nth_pearson: Any


class Judged(TypedDict, total=False):
    """How well a measure tells hard tasks from easy ones: the area under its ROC curve with its 95% interval, None
    where there is no curve, and `why`; shares of "hard" and "easy" tasks that it calls hard on both halves."""

    area: float | None
    low: float
    high: float
    threshold: float
    why: str
    first: dict[str, float]
    second: dict[str, float | None]
    table: list[list[int]]


class Summary(CellSummary, total=False):
    """What came out of a run, by its question: correlations are those of its only cell."""

    dataset: str
    backbone: str
    setting: str
    question: str
    n_way: int
    n_shot: int
    n_query: int
    n_unlabelled: int
    cells: list[CellSummary]
    halves: list[CellSummary]
    thresholds: dict[str, Judged]
    spread: list[Spread]
    parts: Parts
    why: str
    budgets: list[int]
    rest: dict[str, Any]
    all: dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One value of what is varied, and the settings of its tasks."""

    value: float | str
    spec: Spec
    n_tasks: int


@dataclass(frozen=True)
class Measured:
    """Tasks, what came out (T,), and what each measure said before (T,), NaN where it is not defined.

    expected (T,) is the accuracy that the logistic regression expects of itself (NaN where there is none).
    """

    spec: Spec
    tasks: Tasks
    outcome: np.ndarray
    expected: np.ndarray
    measures: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.outcome)


def outcome_name(spec: Spec | Summary) -> str:
    """What is predicted, in words."""
    return "adjusted Rand index" if _outcome_setting(cast(Spec, spec)) == "unsupervised" else "accuracy"


def measures_of(spec: Spec) -> dict[str, Measure]:
    """The measures that can be known in a setting: those whose needs it shows, and those that tasks are drawn with."""
    shown = {"images"}
    shown |= {"support"} if spec["setting"] != "unsupervised" else set()
    shown |= {"queries"} if spec["setting"] != "supervised" else set()
    return {name: measure for name, measure in MEASURES.items() if name in OF_CLASSES or set(measure.needs) <= shown}


def undefined(name: str, spec: Spec) -> str:
    """Why a measure says nothing of these tasks, in words."""
    if name == "davies_bouldin" and spec["setting"] == "supervised" and spec.get("n_shot") == 1:
        return "not defined for 1 shot"
    if spec["n_tasks"] < 4:
        return "too few tasks"
    return "the same for all tasks, or not defined"


def left_out(found: Measured) -> dict[str, str]:
    """Measures of this setting that the tasks do not carry, and why, in words."""
    said = {}
    for name in (name for name in measures_of(found.spec) if name not in found.measures):
        said[name] = "it needs a taxonomy of the classes"
        if name == "confusion_sum":
            try:
                confusions_of(found.spec)
                said[name] = "it was not measured when these tasks were drawn"
            except FsvizError as error:
                said[name] = str(error).rstrip(".")
    return said


# --- measuring ---------------------------------------------------------------------------------------------------


def measure(spec: Unchecked, progress: Progress | None = None) -> Measured:
    """Draws tasks, measures them and predicts their queries, in this process."""
    return cells_at_once({**spec, "question": "correlations"}, progress)[0]


def cells_at_once(spec: Unchecked, progress: Progress | None = None) -> list[Measured]:
    """All cells of a question, in this process."""
    settled, chunks, tasks = _at_once(spec, progress)
    return collect(settled, chunks, tasks)


def answer(spec: Unchecked, progress: Progress | None = None) -> Summary:
    """What a run would find, in this process and nothing recorded."""
    settled, chunks, tasks = _at_once(spec, progress)
    return plain_json(_summary(settled, chunks, tasks))


def _at_once(spec: Unchecked, progress: Progress | None) -> tuple[Spec, list, list[Tasks]]:
    settled = checked_spec(spec)
    dataset, table = _source(settled)
    settled = fitted(settled, dataset, table)
    tasks = [draw_cell(settled, cell, dataset, table) for cell in cells(settled)]
    chunks, n_chunks = [], plan(settled)
    for index in range(n_chunks):
        which, start, stop = chunk_at(settled, index)
        chunks.append(_chunk(settled, which, start, tasks[which].take(slice(start, stop)), table))
        if progress is not None:
            progress(index + 1, n_chunks, describe(settled, index))
    return settled, chunks, tasks


def tasks_of_cell(spec: Unchecked, value: str, progress: Progress | None = None) -> tuple[Tasks, np.ndarray]:
    """Some tasks of a question's cell, named by its value as `cell_text` writes it, and their outcomes (fractions)."""
    settled = checked_spec(spec)
    dataset, table = _source(settled)
    settled = fitted(settled, dataset, table)
    known = {cell_text(cell.value): cell for cell in cells(settled)}
    if value not in known:
        raise UnknownName("point", value, known)
    tasks = draw_cell(settled, known[value], dataset, table).take(slice(0, MOST_TOLD))
    if progress is not None:
        progress(1, 2, "tasks drawn")
    return tasks, look(known[value].spec, tasks, table)["outcome"]


def cell_text(value: float | str) -> str:
    """The value of a cell as text, in links."""
    return value if isinstance(value, str) else f"{value:g}"


def labelled_images(spec: Unchecked, policy: str, n: int, most: int = 3) -> tuple[Tasks, list[np.ndarray]]:
    """The first tasks of the question "labelling", and the images of each that a policy has labelled first."""
    from fsviz.studies import labelling

    settled = checked_spec(spec)
    dataset, table = _source(settled)
    settled = fitted(settled, dataset, table)
    tasks = draw_cell(settled, cells(settled)[0], dataset, table).take(slice(0, most))
    return tasks, labelling.labelled(settled, tasks, table, policy, n)


def look(spec: Spec, tasks: Tasks, table: Features, eigenvalues: bool = False) -> dict[str, np.ndarray]:
    """outcome, expected, one array per measure of features (measure_NAME), and where asked the lowest eigenvalues."""
    import torch

    from fsviz.difficulty.predictors import views

    evaluation.check_tasks(table, tasks)
    n = len(tasks)
    wanted = {m for m, d in measures_of(spec).items() if set(d.needs) <= {"images", "support", "queries"}}
    found = {name: np.full(n, np.nan) for name in ("outcome", "expected", *(f"measure_{m}" for m in wanted))}
    with torch.inference_mode():
        for where, view in views(table, tasks, _outcome_setting(spec), spec["neighbours"]):
            found["outcome"][where] = view.outcome.numpy()
            if _outcome_setting(spec) != "unsupervised":
                found["expected"][where] = view.expected.double().numpy()
            for name in wanted:
                found[f"measure_{name}"][where] = MEASURES[name](view)
            if eigenvalues:
                values = view.eigenvalues[:, :_KEPT_EIGENVALUES].double().numpy()
                kept = found.setdefault("eigenvalues", np.full((n, _KEPT_EIGENVALUES), np.nan))
                kept[where, : values.shape[1]] = values
    return found


def predictions(spec: Spec, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    """What was said of every query of these tasks: predicted label and confidence (T, W, Q); or, without labels, the
    cluster (T, W, Q), numbered so that as many images as possible are in the cluster of their class."""
    import torch
    from scipy.optimize import linear_sum_assignment

    from fsviz.difficulty.predictors import views

    shape = tasks.query.shape
    said = {"predicted": np.full(shape, PAD), "confidence": np.full(shape, np.nan)}
    with torch.inference_mode():
        for where, view in views(table, tasks, spec["setting"], spec["neighbours"]):
            if spec["setting"] == "unsupervised":
                for t, clusters in zip(where, view.clusters.numpy(), strict=True):
                    counts = np.zeros((shape[1], shape[1]), dtype=int)
                    np.add.at(counts, (clusters, view.labels[0].numpy()), view.mask[0].numpy())
                    named = linear_sum_assignment(counts, maximize=True)[1]
                    said["predicted"][t] = named[clusters[view.n_support :]].reshape(shape[1:])
            else:
                said["predicted"][where] = view.predicted.numpy().reshape(-1, *shape[1:])
                said["confidence"][where] = view.confidence.numpy().reshape(-1, *shape[1:])
    said["predicted"][tasks.query == PAD] = PAD
    return said


def _outcome_setting(spec: Spec) -> str:
    """Hard or easy is always a matter of accuracy: without labels, that of a regression on the same mixed features."""
    return "semi" if spec.get("question") == "hard" and spec["setting"] == "unsupervised" else spec["setting"]


# --- cells -------------------------------------------------------------------------------------------------------


def cells(spec: Spec) -> list[Cell]:
    """What a question of a fitted spec computes, in order."""
    question, n_tasks = spec["question"], int(spec["n_tasks"])
    if question in VARIES:
        varied = VARIES[question]
        whole = {"n_way": int, "n_shot": int, "n_query": int, "neighbours": int}[varied]
        return [Cell(value, cast(Spec, {**spec, varied: whole(value)}), n_tasks) for value in spec["values"]]
    if question == "imbalance":
        return [Cell(value, {**spec, "share": value}, n_tasks) for value in spec["values"]]
    if question == "hard":
        return [Cell(half, spec, n_tasks) for half in HALVES]
    if question == "spread":
        return [Cell(cause, spec, math.prod(sets_of(cause, n_tasks))) for cause in CAUSES]
    return [Cell("", spec, n_tasks)]


def draw_cell(spec: Spec, cell: Cell, dataset: Dataset, table: Features) -> Tasks:
    """The tasks of a cell, from images that have features."""
    if spec["question"] == "spread" and cell.value != CAUSES[0]:
        from fsviz.studies import spread

        return spread.draw_fixed(cell, dataset, table)
    asked = cast(Spec, dict(cell.spec))
    if spec["question"] == "imbalance":
        asked["n_query"] = max(_unbalanced(spec, value)[0] for value in spec["values"])
        asked["n_query"] = max(asked["n_query"], *(_unbalanced(spec, value)[1] for value in spec["values"]))
    if spec["question"] == "hard":
        dataset = halved(dataset, spec)
        asked["split"] = cast(str, cell.value)
    sampler = {
        name: cast(Unchecked, asked)[name] for name in (*TASK_SETTINGS, "backbone") if name in asked and name != "seed"
    }
    tasks = evaluation_study.sample_testbed(dataset, sampler, asked["seed"], {spec["backbone"]: table}).tasks
    tasks = with_confusion(draw.with_coarsity(tasks, dataset), dataset, spec)
    if spec["question"] == "imbalance":
        first, others = _unbalanced(spec, float(cell.value))
        query = np.full_like(tasks.query, PAD)
        query[:, 0, :first], query[:, 1:, :others] = tasks.query[:, 0, :first], tasks.query[:, 1:, :others]
        tasks = replace(tasks, query=query)
    return tasks


def with_confusion(tasks: Tasks, dataset: Dataset, spec: Spec) -> Tasks:
    """The tasks with the confusion of their classes, where all pairs of the split take a few seconds."""
    try:
        class_ids, confusions = confusions_of(spec)
    except FsvizError:  # too large for now, images that are all the same, classes of one image
        return tasks
    given = Given(positions=tasks.positions(class_ids), confusions=confusions)
    return tasks.with_measure("confusion_sum", MEASURES["confusion_sum"](given))


def confusions_of(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and how much the backbone mixes up every pair of them (C, C), where that takes a few
    seconds; else refused."""
    stamp = chunked.stamp(spec["dataset"])
    return _confusions(spec["dataset"], spec["backbone"], spec["split"], stamp)


@lru_cache(maxsize=4)
def _confusions(dataset: str, backbone: str, split: str, stamp: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes of a split (C,) and how much the backbone mixes up every pair of them (C, C), in bits."""
    k = min(int(confusion.SETTINGS["k"].default), confusion.most_k(datasets.load(dataset), backbone, split))
    asked = confusion.checked_spec({"dataset": dataset, "backbone": backbone, "split": split, "k": k})
    if confusion.seconds(asked) > _CONFUSION_SECONDS:
        raise Missing("The pairs of classes are too many to compare along the way; the page Confusion does as a run.")
    graph = confusion.class_graph(asked)
    return graph.rows, np.nan_to_num(graph.weights)


def halved(dataset: Dataset, spec: Spec) -> Dataset:
    """The dataset with the classes of the split in two halves, dealt by the seed."""
    class_ids = np.random.default_rng(spec["seed"]).permutation(dataset.split_class_ids(spec["split"]))
    middle = len(class_ids) // 2
    halves = {HALVES[0]: np.sort(class_ids[:middle]), HALVES[1]: np.sort(class_ids[middle:])}
    return replace(dataset, splits={**dataset.splits, **halves})


def _unbalanced(spec: Spec, share: float) -> tuple[int, int]:
    """Unlabelled images of the first class, and of each other one, when the first has this share of all of them."""
    first = max(1, round(share * spec["n_unlabelled"]))
    return first, max(1, round((spec["n_unlabelled"] - first) / (spec["n_way"] - 1)))


def fitted(spec: Spec, dataset: Dataset, table: Features) -> Spec:
    """A checked spec with what depends on the dataset: values that its classes and images allow."""
    spec = cast(Spec, dict(spec))
    question = spec["question"]
    class_ids = dataset.split_class_ids(spec["split"])
    draw.at_least_two_classes(dataset, spec["split"])
    counts = np.bincount(table.class_ids, minlength=dataset.n_classes)[class_ids]
    smallest = int(counts.min())
    limits = {
        "shots": smallest - spec["n_query"],
        "queries": smallest - spec["n_shot"],
        "ways": len(class_ids),
        "eigenvalues": len(class_ids),
        "neighbours": spec["n_way"] * (spec["n_shot"] + (spec["n_query"] if spec["setting"] != "supervised" else 0))
        - 1,
    }
    if question in limits:
        spec["values"] = [value for value in spec.get("values") or GRIDS[question] if value <= limits[question]]
        if not spec["values"]:
            raise BadInput(
                f"{dataset.title} is too small to vary this: the smallest class of split {spec['split']!r} has "
                f"{smallest} images with features. Lower n_shot and n_query."
            )
    if question == "imbalance":
        spec["values"] = list(spec.get("values") or GRIDS["imbalance"])
        largest = max(*spec["values"], (1 - min(spec["values"])) / (spec["n_way"] - 1))  # share of any one class
        spec["n_unlabelled"] = min(spec["n_way"] * spec["n_query"], int((smallest - spec["n_shot"]) / largest))
        if spec["n_unlabelled"] < 2 * spec["n_way"]:
            raise BadInput(
                f"Imbalance needs more unlabelled images: the smallest class of split {spec['split']!r} has {smallest} "
                "images with features. Lower n_way or n_shot."
            )
    if question == "hard" and len(class_ids) < 2 * spec["n_way"]:
        raise BadInput(
            f"Hard or easy is learned on one half of the classes and tried on the other, so split {spec['split']!r} "
            f"needs at least {2 * spec['n_way']} classes. It has {len(class_ids)}. Lower n_way or pick another split."
        )
    return spec


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: dict[str, Any], folder: Path) -> Spec:
    """Checks a spec, fits it to the dataset, and freezes the tasks of every cell into `folder`."""
    settled = checked_spec(spec)
    dataset, table = _source(settled)
    settled = {"study": "prediction", **fitted(settled, dataset, table), "version": VERSION}
    for which, cell in enumerate(cells(settled)):
        tasks = draw_cell(settled, cell, dataset, table)
        recipe = {"dataset": dataset.name, "split": settled["split"], "sampler": settled["sampler"]}
        frozen.freeze(folder, Testbed(f"cell {which}", tasks, recipe), f"cell{which}")
    return settled


def relative_cost(spec: Spec) -> float:
    """About how many times as long a question takes as measuring its tasks once: grows with the square of the ways."""
    question = spec["question"]
    if question in ("ways", "eigenvalues"):
        return sum((value / spec["n_way"]) ** 2 for value in GRIDS[question])
    return float(len(GRIDS.get(question, (1,))))


def plan(spec: Spec) -> int:
    return sum(math.ceil(cell.n_tasks / _chunk_size(cell)) for cell in cells(spec))


def chunk_at(spec: Spec, index: int) -> tuple[int, int, int]:
    """Cell and range of tasks (start, stop) of a chunk."""
    return chunked.chunk_at(((cell.n_tasks, _chunk_size(cell)) for cell in cells(spec)), index)


def run_chunk(spec: Spec, index: int) -> dict[str, np.ndarray]:
    which, start, stop = chunk_at(spec, index)
    tasks = frozen.tasks(spec["folder"], f"cell{which}", start, stop)
    return _chunk(spec, which, start, tasks, chunked.features_of(spec["dataset"], spec["backbone"]))


def _chunk(spec: Spec, which: int, start: int, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    with half_the_cores():
        if spec["question"] == "labelling":
            from fsviz.studies import labelling

            found = labelling.label_and_learn(spec, tasks, table, start)
        elif spec["question"] == "spread":
            from fsviz.studies import spread

            found = spread.accuracies(spec, tasks, table)
        else:
            found = look(cells(spec)[which].spec, tasks, table, eigenvalues=spec["question"] == "eigenvalues")
    return {"cell": np.array(which), "start": np.array(start), **found}


def describe(spec: Spec, index: int) -> str:
    which, _, stop = chunk_at(spec, index)
    cell = cells(spec)[which]
    value = f"{cell.value:g}" if isinstance(cell.value, float | int) else cell.value
    what = QUESTION.choices[spec["question"]].lower()
    return f"{what}{f' ({value})' if value else ''}: {stop:,} of {cell.n_tasks:,} tasks"


def summarise(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]]) -> Summary:
    tasks = [frozen.tasks(spec["folder"], f"cell{which}") for which in range(len(cells(spec)))]
    return _summary(spec, list(chunks), tasks)


def _summary(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]], tasks: Sequence[Tasks]) -> Summary:
    said: Final = ("dataset", "backbone", "setting", "question", "n_way", "n_shot", "n_query", "n_unlabelled")
    base = cast(Summary, {name: spec[name] for name in said if name in spec})
    if spec["question"] == "labelling":
        from fsviz.studies import labelling

        return {**base, **labelling.summary(spec, gathered(spec, chunks)[0])}
    if spec["question"] == "spread":
        from fsviz.studies import spread

        return {**base, **spread.summary(spec, gathered(spec, chunks))}
    measured = collect(spec, chunks, tasks)
    if spec["question"] == "hard":
        halves = [_cell_summary(HALVES[i], found) for i, found in enumerate(measured)]
        return {**base, "halves": halves, "thresholds": _thresholds(spec, measured) if len(measured) == 2 else {}}
    rows = [_cell_summary(cell.value, found) for cell, found in zip(cells(spec), measured, strict=False)]
    if spec["question"] == "correlations":
        return cast(Summary, base | {name: value for name, value in rows[0].items() if name != "value"})
    if spec["question"] == "eigenvalues":
        for row, found, cell in zip(rows, gathered(spec, chunks), measured, strict=False):
            row |= _best_eigenvalue(found["eigenvalues"], found["outcome"], int(row["value"]), cell.tasks.class_ids)
    return {**base, "cells": rows}


def _cell_summary(value: float | str, found: Measured) -> CellSummary:
    mean, half = mean_and_ci95(found.outcome)
    return {
        "value": value,
        "n_tasks": len(found),
        "outcome": float(mean),
        "outcome_ci95": finite(half),
        "correlations": correlations(found),
        **({"predicted_accuracy": prediction_error(found)} if np.isfinite(found.expected).any() else {}),
    }


def _thresholds(spec: Spec, halves: Sequence[Measured]) -> dict[str, Judged]:
    """Per measure: the area under its ROC curve on the first half of the classes with its 95% interval, the threshold,
    and the shares of hard and easy tasks that it calls hard on both halves; `why` where there is no curve."""
    result: dict[str, Judged] = {}
    level = spec["hard_below"] / 100
    for name in halves[0].measures:
        try:
            curve = roc(halves[0], name, level, spec["found"] / 100)
        except BadInput as error:
            result[name] = {"area": None, "why": str(error)}
            continue
        table = confusion_table(halves[1], name, level, curve.value)
        shares = [finite(row[0] / row.sum()) if row.sum() else None for row in table]
        result[name] = {
            "area": curve.area,
            "low": curve.low,
            "high": curve.high,
            "threshold": curve.value,
            "why": "",
            "first": {"hard": curve.at[1], "easy": curve.at[0]},
            "second": {"hard": shares[0], "easy": shares[1]},
            "table": table.tolist(),
        }
    return result


def _best_eigenvalue(
    eigenvalues: np.ndarray, outcome: np.ndarray, n_way: int, class_ids: np.ndarray | None = None
) -> CellSummary:
    """The eigenvalue (counted from 1) that follows the outcome best in the direction it should, beside the N-th
    (figure 11); its interval is over the classes of the tasks where these are known."""
    strength = np.full(eigenvalues.shape[1], np.nan)
    for i in range(1, eigenvalues.shape[1]):  # the first is always zero
        strength[i] = evaluation.correlation(outcome, eigenvalues[:, i]).value
    if not np.isfinite(strength).any():
        return {"best": None, "best_pearson": None, "nth_pearson": None}
    best = int(np.nanargmin(strength))
    by_rank = evaluation.correlation(outcome, eigenvalues[:, best], class_ids)
    return {
        "best": best + 1,
        "best_pearson": by_rank.value,
        "best_low": finite(by_rank.low),
        "best_high": finite(by_rank.high),
        "nth_pearson": finite(strength[n_way - 1]) if n_way <= len(strength) else None,
    }


def gathered(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """The arrays of every cell that has begun, its finished chunks put together in the order of the tasks."""
    by_cell: dict[int, list[Mapping[str, np.ndarray]]] = {}
    for chunk in chunks:
        by_cell.setdefault(int(chunk["cell"]), []).append(chunk)
    found = []
    for which in sorted(by_cell):
        parts = sorted(by_cell[which], key=lambda chunk: int(chunk["start"]))
        names = [name for name in parts[0] if name not in ("cell", "start")]
        joined = {name: np.concatenate([part[name] for part in parts]) for name in names}
        n = len(joined[names[0]])
        joined["position"] = (
            np.concatenate([int(p["start"]) + np.arange(len(p[names[0]])) for p in parts])
            if n
            else np.zeros(0, dtype=int)
        )
        found.append({**joined, "cell": np.array(which)})
    return found


def collect(
    spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]], tasks: Sequence[Tasks] | None = None
) -> list[Measured]:
    """What is known of the tasks of every cell that has begun."""
    every = cells(spec)
    if tasks is None:
        tasks = [frozen.tasks(spec["folder"], f"cell{which}") for which in range(len(every))]
    result = []
    for found in gathered(spec, chunks):
        which = int(found["cell"])
        drawn = tasks[which].take(found["position"])
        known = {name.removeprefix("measure_"): v for name, v in found.items() if name.startswith("measure_")}
        possible = measures_of(every[which].spec)
        known |= {name: np.asarray(v, dtype=float) for name, v in drawn.measures.items() if name in possible}
        ordered = {name: known[name] for name in possible if name in known}
        result.append(Measured(every[which].spec, drawn, found["outcome"], found["expected"], ordered))
    return result


def _chunk_size(cell: Cell) -> int:
    """Tasks of a chunk; labelling learns every task many times."""
    per_task = draw.most_images(cell.spec) * (4 if cell.spec["question"] == "labelling" else 1)
    return int(np.clip(_CHUNK_IMAGES // per_task, 1, 200))


# --- what came out -----------------------------------------------------------------------------------------------


def correlations(found: Measured) -> dict[str, Correlation]:
    """Every measure against the outcome: Pearson's correlation with its 95% interval (low, high), and Spearman's;
    `why` says what is missing where there is none.

    Tasks share classes, so the interval is `over` "classes"; over "tasks" where every task holds every class.
    """
    result: dict[str, Correlation] = {}
    for name, values in found.measures.items():
        pearson = evaluation.correlation(found.outcome, values, found.tasks.class_ids)
        known = np.isfinite(pearson.value)
        result[name] = {
            "pearson": finite(pearson.value),
            "low": finite(pearson.low),
            "high": finite(pearson.high),
            "spearman": finite(evaluation.correlation(found.outcome, values, rank=True).value),
            "over": pearson.over,
            "why": "" if known else undefined(name, found.spec),
        }
    return result


def intervals_in_words(found: Iterable[Correlation]) -> str:
    """What the 95% intervals of correlations are over, in words, or why there are none."""
    rows = [row for row in found if row["pearson"] is not None]
    over = {row["over"] for row in rows if row["low"] is not None}
    if over == {"classes", "tasks"}:
        return "95% intervals over classes, and over tasks of these images where every task holds every class"
    kinds = {
        "classes": "95% intervals over classes: what tasks of other classes would give",
        "tasks": "95% intervals over tasks of these images: every task holds every class",
    }
    missing = "too few tasks for intervals" if rows else "none of them is defined"
    return kinds[over.pop()] if over else missing


def unlabelled_in_words(result: Summary) -> str:
    """The number of unlabelled images of a task of the question "imbalance", and why there are no more."""
    n, wanted = result["n_unlabelled"], result["n_way"] * result["n_query"]
    if n >= wanted:
        return f"{n:,} unlabelled images per task."
    return (
        f"{n:,} unlabelled images per task instead of {wanted:,} ({result['n_way']} ways x {result['n_query']} "
        "queries), because the smallest class has no more for the largest share."
    )


def as_expected(name: str, row: Correlation) -> tuple[float | None, float | None, float | None]:
    """A measure's correlation and the ends of its interval, of those that `correlations` gave, positive where it goes
    as it should: a measure of what is hard falls as the outcome rises."""
    if row["pearson"] is None:
        return None, None, None
    sign = -_hardness(name)
    low, high = (None, None) if row["low"] is None else sorted((sign * row["low"], sign * row["high"]))
    return sign * row["pearson"], low, high


def best_measure(found: Mapping[str, Correlation]) -> tuple[str, Correlation] | None:
    """The measure with the strongest correlation in the direction it should have, of those that `correlations` gave;
    those that must know which classes a task has (coarsity, class confusion) are none of them."""
    of_classes = {"distances", "confusions"}
    candidates = {name: row for name, row in found.items() if not of_classes & set(MEASURES[name].needs)}
    known = {name: -_hardness(name) * row["pearson"] for name, row in candidates.items() if row["low"] is not None}
    if not known:
        return None
    name = max(known, key=known.__getitem__)
    return name, found[name]


def mean_outcome(found: Measured) -> tuple[float, float | None]:
    """Mean outcome and the half-width of its 95% interval over tasks of these images; one task has none."""
    mean, half = mean_and_ci95(found.outcome)
    return float(mean), finite(half)


def fitted_line(x: np.ndarray, y: np.ndarray) -> tuple[list[float], list[float]] | None:
    """The two ends of the straight line with the least squared error; None where x does not vary."""
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < 3 or np.ptp(x[both]) == 0:
        return None
    slope, start = np.polyfit(x[both], y[both], 1)
    ends = [float(x[both].min()), float(x[both].max())]
    return ends, [float(slope * end + start) for end in ends]


def ease_rank(found: Measured, name: str) -> np.ndarray:
    """Rank (T,) of every task by a measure, 1 being the easiest."""
    order = np.argsort(_hardness(name) * found.measures[name], kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank


def said_of(found: Measured, task: int) -> dict[str, np.ndarray]:
    """What was said of the queries of one task (W, Q), see `predictions`."""
    one = found.tasks.take(slice(task, task + 1))
    with half_the_cores():
        said = predictions(found.spec, one, chunked.features_of(found.spec["dataset"], found.spec["backbone"]))
    return {name: values[0] for name, values in said.items()}


def prediction_error(found: Measured) -> dict[str, Any]:
    """How far the expected accuracy is from the true one, beside a constant that knows the mean of all tasks."""
    error, half = mean_and_ci95(np.abs(found.expected - found.outcome))
    naive, naive_half = mean_and_ci95(np.abs(found.outcome - found.outcome.mean()))
    return {
        "error": float(error),
        "error_ci95": finite(half),
        "constant": float(naive),
        "constant_ci95": finite(naive_half),
        "bias": float(np.mean(found.expected - found.outcome)),
    }


@dataclass(frozen=True)
class Threshold:
    """Tasks called hard above a threshold of how hard a measure says they are, on the half where it was chosen.

    fpr, tpr  (n,) the ROC curve; area under it with its 95% interval
    value     the threshold, in units of the measure; at is its place on the curve (fpr, tpr)
    """

    fpr: np.ndarray
    tpr: np.ndarray
    area: float
    low: float
    high: float
    value: float
    at: tuple[float, float]


def roc(found: Measured, name: str, hard_below: float, sensitivity: float) -> Threshold:
    """The ROC curve of a measure for tasks whose outcome is below `hard_below`, and the threshold that calls at least
    this share of the hard tasks hard."""
    from sklearn.metrics import roc_auc_score, roc_curve

    hard, score = found.outcome < hard_below, _hardness(name) * found.measures[name]
    known = np.isfinite(score)
    hard, score = hard[known], score[known]
    if hard.all() or not hard.any():
        which, advice = ("all", "lower") if len(hard) and hard.all() else ("none", "raise")
        raise BadInput(
            f"Hard or easy needs tasks of both kinds: of {len(hard):,} tasks {which} are hard. "
            f"{advice.capitalize()} the accuracy below which a task counts as hard."
        )
    fpr, tpr, thresholds = roc_curve(hard, score, drop_intermediate=False)
    chosen = int(np.argmax(tpr >= sensitivity - 1e-9))
    area = float(roc_auc_score(hard, score))
    half = _area_half_width(area, int(hard.sum()), int((~hard).sum()))
    return Threshold(
        fpr,
        tpr,
        area,
        max(0.0, area - half),
        min(1.0, area + half),
        _hardness(name) * float(thresholds[chosen]),
        (float(fpr[chosen]), float(tpr[chosen])),
    )


def called_hard(found: Measured, name: str, threshold: float) -> np.ndarray:
    """Which tasks (T,) a threshold calls hard."""
    return _hardness(name) * found.measures[name] >= _hardness(name) * threshold


def confusion_table(found: Measured, name: str, hard_below: float, threshold: float) -> np.ndarray:
    """Tasks (2, 2): rows hard and easy in truth, columns called hard and easy."""
    called, hard = called_hard(found, name, threshold), found.outcome < hard_below
    return np.array([[np.sum(r & c) for c in (called, ~called)] for r in (hard, ~hard)])


def harder_above(name: str) -> bool:
    """Whether a higher value of a measure means a harder task."""
    return MEASURES[name].direction == "harder"


def _hardness(name: str) -> int:
    return 1 if harder_above(name) else -1


def _area_half_width(area: float, n_hard: int, n_easy: int) -> float:
    """1.96 standard errors of the area under a ROC curve (Hanley & McNeil 1982)."""
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (n_hard - 1) * (one - area**2) + (n_easy - 1) * (two - area**2)
    return 1.96 * math.sqrt(max(spread, 0.0) / (n_hard * n_easy))


def command(spec: Values) -> str:
    """The command that asks the same."""
    own = {name: spec[name] for name in OWN_SETTINGS if spec[name] != OWN_SETTINGS[name].default}
    settings = {name: spec.get(name) for name in (*TASK_SETTINGS, "backbone")}
    tasks = draw.recipe_for(datasets.load(spec["dataset"]), **settings).said | {"backbone": spec["backbone"]}
    flags = words(tasks, draw.KNOWN) + words({"setting": spec["setting"]} | own, OWN_SETTINGS)
    return shlex.join(["python", "-m", "fsviz", "predict", spec["dataset"], *flags])


# --- checking ----------------------------------------------------------------------------------------------------


def fit(dataset: Dataset, backbone: str, given: Unchecked) -> fitting.Fit:
    """Ways, shots and queries of the tasks: those given, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, given, TASK_DEFAULTS, [backbone], varied=True)


def checked_spec(spec: Unchecked) -> Spec:
    """The spec with its defaults filled in; unknown settings and impossible values are named."""
    fitted_later = ("values", "n_unlabelled")
    known = {"study", "dataset", "backbone", "version", "folder", *fitted_later, *TASK_SETTINGS, *OWN_SETTINGS}
    for name in spec:
        if name not in known:
            raise UnknownName("setting of the prediction study", name, sorted(known - {"folder", "version"}))
    for name in ("dataset", "backbone"):
        if not spec.get(name):
            raise BadInput(f'A prediction needs "{name}".')
    dataset = datasets.load(spec["dataset"])
    split = str(spec.get("split") or draw.default_split(dataset))
    defaults = {**TASK_DEFAULTS, "split": split, **fit(dataset, spec["backbone"], spec).values}
    defaults |= draw.alpha_for(dataset, {**defaults, **spec})
    tasks = draw.checked({k: v for k, v in spec.items() if k in TASK_SETTINGS}, **defaults)
    N_SHOT.check(tasks["n_shot"])
    own = {name: s.check(spec.get(name, s.default)) for name, s in OWN_SETTINGS.items()}
    if own["question"] == "labelling":
        own["setting"] = "semi"
    if own["question"] == "imbalance" and own["setting"] == "supervised":
        raise BadInput("Unlabelled images play no part in the supervised setting. Choose setting semi or unsupervised.")
    if own["question"] == "spread" and own["setting"] == "unsupervised":
        raise BadInput("The spread of the accuracy needs labels. Choose setting supervised or semi.")
    sampler, of_classes = SAMPLERS[str(tasks["sampler"])], [repr(s.name) for s in SAMPLERS.values() if not s.deals]
    instead = f"Choose the sampler {' or '.join(of_classes)}."
    if sampler.varies and own["question"] != "correlations":
        raise BadInput(f"This question needs tasks of one shape. {instead}")
    if sampler.deals and own["question"] == "spread":
        raise BadInput(f"The spread by cause deals images of its own. {instead}")
    kept = {name: spec[name] for name in ("dataset", "backbone", "folder", "values") if name in spec}
    return cast(Spec, {**kept, **{name: tasks[name] for name in TASK_SETTINGS}, **own})


def _source(spec: Spec) -> tuple[Dataset, Features]:
    dataset = datasets.load(spec["dataset"])
    return dataset, features.load(dataset, spec["backbone"])
