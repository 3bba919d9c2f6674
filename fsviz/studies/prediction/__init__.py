"""Can the accuracy of a task be known before its queries have labels? Measures of tasks against what came out.

    dataset -> features -> tasks -> what is seen of them (a setting) -> measures and outcome -> correlations

One question, one way to vary and to judge them (see QUESTION): the tasks of its cells are in `tasks`, their measures
and outcomes in `measured`, and what only one question needs in `thresholds`, `eigenvalues`, `spread` and `labelling`.
The outcome of a task is the accuracy of a logistic regression, or without any label the adjusted Rand index of
clusters; both are fractions here. After Bontonou et al. 2020.
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
from fsviz.studies.prediction.measured import CellSummary, Measured, cell_summary, look, measured_cell, outcome_name
from fsviz.studies.prediction.spread import CAUSES, Parts, Spread
from fsviz.studies.prediction.tasks import GRIDS, SHARE, TASK_SETTINGS, Cell, Spec, cells, draw_cell, fitted, sweeps
from fsviz.studies.prediction.thresholds import Judged
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.studies.thread_limits import limit_threads
from fsviz.tasks import draw, fitting, snapshot
from fsviz.workspace import plain_json

__all__ = ["CAUSES", "GRIDS", "POLICIES", "SHARE", "TASK_SETTINGS", "Measured", "Spec"]

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
    "What is asked: correlations of the measures with the outcome, the same with the eigenvalue that correlates best, "
    "the spread of the accuracy by its cause, hard or easy on one half of the classes and carried to the other, what "
    "to label next.",
    "choice",
    "correlations",
    choices={
        "correlations": "Correlations",
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
OWN_SETTINGS: dict[str, Setting] = {s.name: s for s in (SETTING, NEIGHBOURS, QUESTION, SHARE, HARD_BELOW, FOUND)}
TASK_DEFAULTS: dict[str, Value] = {"sampler": "uniform", **draw.IMAGE_DEFAULTS, "n_query": 30, "n_tasks": 200}
SETTINGS = Schema(
    {name: s.with_(default=TASK_DEFAULTS.get(name, s.default)) for name, s in TASK_SETTINGS.items()} | OWN_SETTINGS,
    required=("dataset", "backbone"),
    of="the prediction study",
)
MOST_TOLD = 60  # tasks of a cell that are shown one by one
_MEASURED = ("correlations", "eigenvalues")  # questions with one cell of measured tasks
_CHUNK_IMAGES = 20_000  # images in the tasks of a chunk: a second or two on one core
_SECONDS = {"supervised": 6e-5, "semi": 1.2e-4, "unsupervised": 1e-4}  # per image of a task, on one ordinary core
_FEWEST = 10  # tasks of a preview


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
    halves: list[CellSummary]
    thresholds: dict[str, Judged]
    spread: list[Spread]
    parts: Parts
    why: str
    budgets: list[int]
    rest: dict[str, Any]
    all: dict[str, Any]


@dataclass(frozen=True)
class PredictionResult:
    """Finished tasks of the cells of a question, by the index of a cell.

    rows      arrays with one row per task, as `run_chunk` gives them
    measured  measures and outcomes; the questions "spread" and "labelling" have none
    """

    spec: Spec
    tasks: Mapping[int, Tasks]
    rows: Mapping[int, Arrays]
    measured: Mapping[int, Measured]

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes when the tasks or what is known of them do."""
        spec = json.dumps(dict(self.spec), sort_keys=True)
        return spec, [len(tasks) for tasks in self.tasks.values()], datasets.stamp(self.spec["dataset"])


# --- what is asked -----------------------------------------------------------------------------------------------


def fit(dataset: Dataset, backbone: str, given: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks: those given, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, given, TASK_DEFAULTS, [backbone], varied=True)


def check(spec: RawSettings) -> Spec:
    """The spec with every setting; ways, shots and queries fit the dataset, and alpha the sampler."""
    values = fitting.check(SETTINGS, spec, TASK_DEFAULTS)
    question = values["question"]
    if question == "labelling":
        values["setting"] = "semi"
    if values[SHARE.name] and values["setting"] == "supervised":
        raise BadInput("Unlabelled images play no part in the supervised setting. Choose setting semi or unsupervised.")
    if values[SHARE.name] and question not in _MEASURED:
        raise BadInput(f"A share of one class is for the question {' or '.join(_MEASURED)}. Got {question}.")
    if question == "spread" and values["setting"] == "unsupervised":
        raise BadInput("The spread of the accuracy needs labels. Choose setting supervised or semi.")
    sampler, of_classes = SAMPLERS[values["sampler"]], [repr(s.name) for s in SAMPLERS.values() if not s.samples_images]
    instead = f"Choose the sampler {' or '.join(of_classes)}."
    if sampler.varies and (question != "correlations" or values[SHARE.name]):
        raise BadInput(f"This question needs tasks of one shape. {instead}")
    if sampler.samples_images and question == "spread":
        raise BadInput(f"The spread by cause deals images of its own. {instead}")
    return cast(Spec, values)


def work(spec: Spec) -> Work:
    per = {"hard": " per half", "spread": " of each kind"}.get(spec["question"], "")
    seconds = relative_cost(spec) * spec["n_tasks"] * draw.max_images(spec) * _SECONDS[spec["setting"]]
    return Work(spec["n_tasks"], f"tasks{per}", seconds)


def relative_cost(spec: Spec) -> float:
    """About how many times as long a question takes as measuring tasks of few classes once."""
    many_ways = 1.0 if SAMPLERS[spec["sampler"]].varies else max(1.0, spec["n_way"] / N_WAY.default)
    return many_ways * {"hard": 2.0, "spread": 1.5, "labelling": 12.0}.get(spec["question"], 1.0)


def shorten(spec: Spec, n: int) -> Spec | None:
    return {**spec, "n_tasks": max(n, _FEWEST)} if spec["n_tasks"] > _FEWEST else None


def command(spec: Settings) -> str:
    """The command that asks the same."""
    own = {name: spec[name] for name in OWN_SETTINGS if spec[name] != OWN_SETTINGS[name].default}
    settings = {name: spec.get(name) for name in (*TASK_SETTINGS, "backbone")}
    tasks = draw.recipe_for(datasets.load(spec["dataset"]), **settings).arguments | {"backbone": spec["backbone"]}
    flags = to_args(tasks, draw.SETTINGS) + to_args({"setting": spec["setting"]} | own, OWN_SETTINGS)
    return shlex.join(["fsviz", "predict", spec["dataset"], *flags])


# --- computing ---------------------------------------------------------------------------------------------------


def prepare(spec: Spec, folder: Path) -> Spec:
    """Adds the values that fit the dataset, and freezes the tasks of every cell into `folder`."""
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    settled = fitted(spec, dataset, table)
    for which, cell in enumerate(cells(settled)):
        tasks = draw_cell(settled, cell, dataset, table)
        recipe = {"dataset": dataset.name, "split": settled["split"], "sampler": settled["sampler"]}
        snapshot.freeze(folder, Testbed(f"cell {which}", tasks, recipe), _file(which))
    return settled


def _file(which: int) -> str:
    return f"cell{which}"


def parts(spec: Spec) -> list[Part]:
    """One part per cell."""
    what = QUESTION.choices[spec["question"]].lower()
    values = [f" ({cell.value})" if cell.value else "" for cell in cells(spec)]
    sizes = [(cell.n_tasks, _chunk_size(cell)) for cell in cells(spec)]
    return [Part(f"{what}{value}", *size) for value, size in zip(values, sizes, strict=True)]


def _chunk_size(cell: Cell) -> int:
    """Tasks of a chunk; labelling learns every task many times."""
    per_task = draw.max_images(cell.spec) * (4 if cell.spec["question"] == "labelling" else 1)
    return int(np.clip(_CHUNK_IMAGES // per_task, 1, 200))


def run_chunk(spec: Spec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """What a question needs to know of a range of a cell's tasks."""
    tasks = snapshot.tasks(spec["folder"], _file(part), start, stop)
    table = chunk_data.features_of(spec["dataset"], spec["backbone"])
    with limit_threads():
        if spec["question"] == "labelling":
            return labelling.label_and_learn(spec, tasks, table, start)
        if spec["question"] == "spread":
            return spread.accuracies(spec, tasks, table)
        return look(cells(spec)[part].spec, tasks, table, eigenvalues=spec["question"] == "eigenvalues")


def collect(spec: Spec, chunks: Sequence[Arrays]) -> PredictionResult:
    """The finished tasks of every cell that has begun."""
    asked = cast(Spec, {name: value for name, value in spec.items() if name != "folder"})
    every, rows = cells(asked), joined(chunks)
    tasks = {which: snapshot.tasks(spec["folder"], _file(which)).take(row["positions"]) for which, row in rows.items()}
    measures = asked["question"] not in ("spread", "labelling")
    measured = {which: measured_cell(every[which], tasks[which], rows[which]) for which in rows if measures}
    return PredictionResult(asked, tasks, rows, measured)


# --- what came out -----------------------------------------------------------------------------------------------


def summary(result: PredictionResult) -> Summary:
    """The answer to the question in numbers."""
    return cast(Summary, plain_json(_summary(result)))


def _summary(result: PredictionResult) -> Summary:
    spec, measured = result.spec, result.measured
    said: Final = ("dataset", "backbone", "setting", "question", "n_way", "n_shot", "n_query", "n_unlabelled")
    base = cast(Summary, {name: spec[name] for name in said if name in spec})
    if spec["question"] == "labelling":
        return {**base, **labelling.summary(spec, result.rows[0])}
    if spec["question"] == "spread":
        causes = [str(cell.value) for cell in cells(spec)]
        return {**base, **spread.summary(spec, {causes[which]: row for which, row in result.rows.items()})}
    rows = {which: cell_summary(found) for which, found in measured.items()}
    if spec["question"] == "hard":
        judged = thresholds.thresholds(spec, measured[0], measured[1]) if len(measured) == 2 else {}
        return {**base, "halves": list(rows.values()), "thresholds": judged}
    if spec["question"] == "eigenvalues":
        values, one = result.rows[0]["eigenvalues"], measured[0]
        rows[0] |= eigenvalues.best_eigenvalue(values, one.outcome, spec["n_way"], one.tasks.class_ids)
    return cast(Summary, base | {name: value for name, value in rows[0].items() if name != "value"})


def headline(result: PredictionResult) -> list[HeadlineNumber]:
    """The mean outcome and the correlation of every measure; of other questions what they end in."""
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
        return [HeadlineNumber.around("gain", "Gain by choosing the least confident", mean, half, "points")]
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
    """Some tasks of a question's cell, named by its value, and their outcomes (fractions)."""
    every = cells(result.spec)
    known = {every[which].value: which for which in result.tasks}
    if value not in known:
        raise UnknownName("point", value, known)
    which, first = known[value], slice(0, MOST_TOLD)
    name = "accuracy" if result.spec["question"] == "spread" else "outcome"
    return result.tasks[which].take(first), result.rows[which][name][first]


def labelled_images(result: PredictionResult, policy: str, n: int, most: int = 3) -> tuple[Tasks, list[np.ndarray]]:
    """The first tasks of the question "labelling", and the images of each that a policy has labelled first."""
    tasks = result.tasks[0].take(slice(0, most))
    table = chunk_data.features_of(result.spec["dataset"], result.spec["backbone"])
    return tasks, labelling.labelled(result.spec, tasks, table, policy, n)


def unlabelled_in_words(result: Summary) -> str:
    """The number of unlabelled images of a task with a share of one class, and why there are no more."""
    n, wanted = result["n_unlabelled"], result["n_way"] * result["n_query"]
    if n >= wanted:
        return f"{n:,} unlabelled images per task."
    return (
        f"{n:,} unlabelled images per task instead of {wanted:,} ({result['n_way']} ways x {result['n_query']} "
        "queries), because the smallest class has no more for the largest share."
    )


STUDY = Study(
    name="prediction",
    title="prediction of accuracy",
    question="Can the accuracy of a task be known before its queries have labels?",
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
    ignored=(HARD_BELOW.name, FOUND.name),
    version=4,
    threads=2,
)
