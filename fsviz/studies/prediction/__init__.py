"""Predict the accuracy of tasks without query labels: measures of tasks, compared with their outcome.

    dataset -> features -> tasks -> labels used (a setting) -> measures and outcome -> correlations

A question (see QUESTION) has cells. Their tasks are in `tasks`, measures and outcomes in `measured`; `thresholds`,
`eigenvalues`, `spread` and `labelling` each serve one question. The outcome of a task is the accuracy of a logistic
regression, or without labels the adjusted Rand index of clusters, as a fraction. After Bontonou et al. 2020.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from fsviz import datasets, features
from fsviz.difficulty.measures import title
from fsviz.errors import BadInput, UnknownName
from fsviz.records import Dataset, HeadlineNumber, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_WAY, RawSettings, Schema, Setting, Settings, Value, to_args
from fsviz.studies import chunk_data
from fsviz.studies.prediction import eigenvalues, labelling, spread, thresholds
from fsviz.studies.prediction.labelling import POLICIES
from fsviz.studies.prediction.measured import (
    CellSummary,
    PredictionTasks,
    cell_summary,
    measure_tasks,
    measured_cell,
    outcome_name,
)
from fsviz.studies.prediction.spread import CAUSES, Spread, VarianceComponents
from fsviz.studies.prediction.tasks import (
    GRIDS,
    SHARE,
    TASK_SETTINGS,
    PredictionCell,
    PredictionSpec,
    cells,
    draw_cell,
    fitted,
    sweeps,
)
from fsviz.studies.prediction.thresholds import HardTaskDetection
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.studies.thread_limits import limit_threads
from fsviz.tasks import draw, fitting, snapshot
from fsviz.workspace import plain_json

__all__ = ["CAUSES", "GRIDS", "POLICIES", "SHARE", "TASK_SETTINGS", "PredictionSpec", "PredictionTasks"]

SETTING = Setting(
    "setting",
    "Labels used",
    "Supervised: support. Semi-supervised: plus unlabelled queries. Unsupervised: none.",
    "choice",
    "semi",
    choices={"supervised": "Supervised", "semi": "Semi-supervised", "unsupervised": "Unsupervised"},
)
NEIGHBOURS = Setting(
    "neighbours",
    "Neighbours",
    "Neighbours of an image in the graph of similar images.",
    "int",
    15,
    1,
    500,
    advanced=True,
)
QUESTION = Setting(
    "question",
    "Question",
    "Correlations of measures with the outcome, the best eigenvalue, sources of variance, detection of hard tasks "
    "with a threshold, or which images to label next.",
    "choice",
    "correlations",
    choices={
        "correlations": "Correlations",
        "eigenvalues": "Best eigenvalue",
        "spread": "Sources of variance",
        "hard": "Detect hard tasks",
        "labelling": "What to label next",
    },
)
HARD_BELOW = Setting("hard_below", "Hard if accuracy below (%)", "Paper: 80%.", "int", 80, 1, 100, step=1)
RECALL = Setting(
    "recall",
    "Target recall (%)",
    "Sets the threshold on the first half of the classes.",
    "int",
    80,
    1,
    100,
    step=1,
)
OWN_SETTINGS: dict[str, Setting] = {s.name: s for s in (SETTING, NEIGHBOURS, QUESTION, SHARE, HARD_BELOW, RECALL)}
TASK_DEFAULTS: dict[str, Value] = {"sampler": "uniform", **draw.IMAGE_DEFAULTS, "n_query": 30, "n_tasks": 200}
SETTINGS = Schema(
    {name: s.with_(default=TASK_DEFAULTS.get(name, s.default)) for name, s in TASK_SETTINGS.items()} | OWN_SETTINGS,
    required=("dataset", "backbone"),
    of="the prediction study",
)
MAX_TASKS_OF_CELL = 60  # tasks of a cell that a page lists
_MEASURED = ("correlations", "eigenvalues")  # questions with one cell of measured tasks
_CHUNK_IMAGES = 20_000  # images in the tasks of a chunk: a second or two on one core
_SECONDS = {"supervised": 6e-5, "semi": 1.2e-4, "unsupervised": 1e-4}  # per image of a task, on one ordinary core
_FEWEST = 10  # tasks of a preview


class PredictionSummary(CellSummary, total=False):
    """Summary of a run, by its question; correlations are those of its only cell."""

    dataset: str
    backbone: str
    setting: str
    question: str
    n_way: int
    n_shot: int
    n_query: int
    n_unlabelled: int
    halves: list[CellSummary]
    thresholds: dict[str, HardTaskDetection]
    spread: list[Spread]
    parts: VarianceComponents
    why: str
    budgets: list[int]
    rest: dict[str, Any]
    all: dict[str, Any]


@dataclass(frozen=True)
class PredictionResult:
    """Finished tasks of the cells of a question, by cell number.

    rows      arrays with one row per task, from `run_chunk`
    measured  measures and outcomes; empty for the questions "spread" and "labelling"
    """

    spec: PredictionSpec
    tasks: Mapping[int, Tasks]
    rows: Mapping[int, Arrays]
    measured: Mapping[int, PredictionTasks]

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes with the tasks or their values."""
        spec = json.dumps(dict(self.spec), sort_keys=True)
        return spec, [len(tasks) for tasks in self.tasks.values()], datasets.stamp(self.spec["dataset"])


# --- settings ----------------------------------------------------------------------------------------------------


def fit(dataset: Dataset, backbone: str, requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries as requested; defaults are lowered to what the dataset has."""
    return fitting.fit(dataset, requested, TASK_DEFAULTS, [backbone], varied=True)


def check(spec: RawSettings) -> PredictionSpec:
    """The spec with every setting; ways, shots and queries fit the dataset, alpha fits the sampler."""
    values = fitting.check(SETTINGS, spec, TASK_DEFAULTS)
    question = values["question"]
    if question == "labelling":
        values["setting"] = "semi"
    if values[SHARE.name] and values["setting"] == "supervised":
        raise BadInput("The supervised setting uses no unlabelled images. Choose setting semi or unsupervised.")
    if values[SHARE.name] and question not in _MEASURED:
        raise BadInput(f"The setting {SHARE.name} needs the question {' or '.join(_MEASURED)}. Got {question}.")
    if question == "spread" and values["setting"] == "unsupervised":
        raise BadInput("The question spread needs labels. Choose setting supervised or semi.")
    sampler, of_classes = SAMPLERS[values["sampler"]], [repr(s.name) for s in SAMPLERS.values() if not s.samples_images]
    instead = f"Choose the sampler {' or '.join(of_classes)}."
    if sampler.varies and (question != "correlations" or values[SHARE.name]):
        raise BadInput(f"This question needs the same ways and shots in every task. {instead}")
    if sampler.samples_images and question == "spread":
        raise BadInput(f"The question spread samples its own images. {instead}")
    return cast(PredictionSpec, values)


def work(spec: PredictionSpec) -> Work:
    per = {"hard": " per half", "spread": " of each kind"}.get(spec["question"], "")
    seconds = relative_cost(spec) * spec["n_tasks"] * draw.max_images(spec) * _SECONDS[spec["setting"]]
    return Work(spec["n_tasks"], f"tasks{per}", seconds)


def relative_cost(spec: PredictionSpec) -> float:
    """Estimated time of a question, relative to measuring tasks of few classes once."""
    many_ways = 1.0 if SAMPLERS[spec["sampler"]].varies else max(1.0, spec["n_way"] / N_WAY.default)
    return many_ways * {"hard": 2.0, "spread": 1.5, "labelling": 12.0}.get(spec["question"], 1.0)


def shorten(spec: PredictionSpec, n: int) -> PredictionSpec | None:
    return {**spec, "n_tasks": max(n, _FEWEST)} if spec["n_tasks"] > _FEWEST else None


def command(spec: Settings) -> str:
    """Command line of a spec."""
    own = {name: spec[name] for name in OWN_SETTINGS if spec[name] != OWN_SETTINGS[name].default}
    settings = {name: spec.get(name) for name in (*TASK_SETTINGS, "backbone")}
    tasks = draw.recipe_for(datasets.load(spec["dataset"]), **settings).arguments | {"backbone": spec["backbone"]}
    flags = to_args(tasks, draw.SETTINGS) + to_args({"setting": spec["setting"]} | own, OWN_SETTINGS)
    return shlex.join(["fsviz", "predict", spec["dataset"], *flags])


# --- computing ---------------------------------------------------------------------------------------------------


def prepare(spec: PredictionSpec, folder: Path) -> PredictionSpec:
    """Resolve the spec for the dataset, and save the tasks of every cell in `folder`."""
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    resolved = fitted(spec, dataset, table)
    for which, cell in enumerate(cells(resolved)):
        tasks = draw_cell(resolved, cell, dataset, table)
        recipe = {"dataset": dataset.name, "split": resolved["split"], "sampler": resolved["sampler"]}
        snapshot.freeze(folder, Testbed(f"cell {which}", tasks, recipe), _file(which))
    return resolved


def _file(which: int) -> str:
    return f"cell{which}"


def parts(spec: PredictionSpec) -> list[Part]:
    """One part per cell."""
    question = QUESTION.choices[spec["question"]].lower()
    values = [f" ({cell.value})" if cell.value else "" for cell in cells(spec)]
    sizes = [(cell.n_tasks, _chunk_size(cell)) for cell in cells(spec)]
    return [Part(f"{question}{value}", *size) for value, size in zip(values, sizes, strict=True)]


def _chunk_size(cell: PredictionCell) -> int:
    """Tasks of a chunk; labelling trains on every task many times."""
    per_task = draw.max_images(cell.spec) * (4 if cell.spec["question"] == "labelling" else 1)
    return int(np.clip(_CHUNK_IMAGES // per_task, 1, 200))


def run_chunk(spec: PredictionSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Arrays of a range of the tasks of a cell, by question."""
    tasks = snapshot.tasks(spec["folder"], _file(part), start, stop)
    table = chunk_data.features_of(spec["dataset"], spec["backbone"])
    with limit_threads():
        if spec["question"] == "labelling":
            return labelling.label_and_retrain(spec, tasks, table, start)
        if spec["question"] == "spread":
            return spread.accuracies(spec, tasks, table)
        return measure_tasks(cells(spec)[part].spec, tasks, table, eigenvalues=spec["question"] == "eigenvalues")


def collect(spec: PredictionSpec, chunks: Sequence[Arrays]) -> PredictionResult:
    """The finished tasks of every started cell."""
    checked = cast(PredictionSpec, {name: value for name, value in spec.items() if name != "folder"})
    every, rows = cells(checked), joined(chunks)
    tasks = {which: snapshot.tasks(spec["folder"], _file(which)).take(row["positions"]) for which, row in rows.items()}
    measures = checked["question"] not in ("spread", "labelling")
    measured = {which: measured_cell(every[which], tasks[which], rows[which]) for which in rows if measures}
    return PredictionResult(checked, tasks, rows, measured)


# --- results -----------------------------------------------------------------------------------------------------


def summary(result: PredictionResult) -> PredictionSummary:
    """Numbers of a question, as JSON."""
    return cast(PredictionSummary, plain_json(_summary(result)))


def _summary(result: PredictionResult) -> PredictionSummary:
    spec, measured = result.spec, result.measured
    names: Final = ("dataset", "backbone", "setting", "question", "n_way", "n_shot", "n_query", "n_unlabelled")
    base = cast(PredictionSummary, {name: spec[name] for name in names if name in spec})
    if spec["question"] == "labelling":
        return {**base, **labelling.summary(spec, result.rows[0])}
    if spec["question"] == "spread":
        causes = [str(cell.value) for cell in cells(spec)]
        return {**base, **spread.summary(spec, {causes[which]: row for which, row in result.rows.items()})}
    rows = {which: cell_summary(tasks) for which, tasks in measured.items()}
    if spec["question"] == "hard":
        judged = thresholds.thresholds(spec, measured[0], measured[1]) if len(measured) == 2 else {}
        return {**base, "halves": list(rows.values()), "thresholds": judged}
    if spec["question"] == "eigenvalues":
        values, cell = result.rows[0]["eigenvalues"], measured[0]
        rows[0] |= eigenvalues.best_eigenvalue(values, cell.outcome, spec["n_way"], cell.tasks.class_ids)
    return cast(PredictionSummary, base | {name: value for name, value in rows[0].items() if name != "value"})


def headline(result: PredictionResult) -> list[HeadlineNumber]:
    """Mean outcome and correlation of every measure, or the result of another question."""
    numbers = summary(result)
    if numbers["question"] == "spread":
        return [
            HeadlineNumber.around(f"std_{row['cause']}", f"Standard deviation, {row['cause']}", *_percent(row))
            for row in numbers["spread"]
        ]
    if numbers["question"] == "hard":
        return [
            HeadlineNumber(f"area_{name}", f"Area under the ROC curve, {title(name)}", row["area"], unit="")
            if row["area"] is None
            else HeadlineNumber(f"area_{name}", f"Area under the ROC curve, {title(name)}", *_ends(row, "area"), "")
            for name, row in numbers["thresholds"].items()
        ]
    if numbers["question"] == "labelling":
        rest = numbers["rest"]
        mean, half = 100 * rest["gain"][-1], 100 * (rest["gain_ci95"][-1] or np.nan)
        return [HeadlineNumber.around("gain", "Gain of labelling the least confident", mean, half, "points")]
    mean, half = 100 * numbers["outcome"], 100 * (numbers["outcome_ci95"] or np.nan)
    return [
        HeadlineNumber.around("outcome", f"Mean {outcome_name(numbers)}", mean, half),
        *(
            HeadlineNumber(name, title(name), row["pearson"], row["low"], row["high"], "correlation", row["over"])
            for name, row in numbers["correlations"].items()
        ),
    ]


def _percent(row: Spread) -> tuple[float, float | None]:
    return 100 * (row["std"] or np.nan), None if row["ci95"] is None else 100 * row["ci95"]


def _ends(row: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    return row[name], row["low"], row["high"]


def tasks_of_cell(result: PredictionResult, value: str) -> tuple[Tasks, np.ndarray]:
    """First tasks of the cell with this value, and their outcomes (fractions)."""
    every = cells(result.spec)
    numbers = {every[number].value: number for number in result.tasks}
    if value not in numbers:
        raise UnknownName("point", value, numbers)
    number, first = numbers[value], slice(0, MAX_TASKS_OF_CELL)
    name = "accuracy" if result.spec["question"] == "spread" else "outcome"
    return result.tasks[number].take(first), result.rows[number][name][first]


def labelled_images(result: PredictionResult, policy: str, n: int, n_tasks: int = 3) -> tuple[Tasks, list[np.ndarray]]:
    """First tasks of the question "labelling", and the n images of each that a policy labels first."""
    tasks = result.tasks[0].take(slice(0, n_tasks))
    table = chunk_data.features_of(result.spec["dataset"], result.spec["backbone"])
    return tasks, labelling.labelled(result.spec, tasks, table, policy, n)


def describe_unlabelled(result: PredictionSummary) -> str:
    """Number of unlabelled images per task, and why there are no more."""
    n, needed = result["n_unlabelled"], result["n_way"] * result["n_query"]
    if n >= needed:
        return f"{n:,} unlabelled images per task."
    return (
        f"{n:,} unlabelled images per task instead of {needed:,} ({result['n_way']} ways x {result['n_query']} "
        "queries): the smallest class has too few images for the largest share."
    )


STUDY = Study(
    name="prediction",
    title="prediction of accuracy",
    question="Can accuracy be predicted without query labels?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    headline=headline,
    sweeps=sweeps,
    work=work,
    shorten=shorten,
    ignored=(HARD_BELOW.name, RECALL.name),
    version=5,
    threads=2,
)
