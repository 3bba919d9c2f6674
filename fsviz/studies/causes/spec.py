"""Settings of the study of causes, and the types of its results."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets, evaluation
from fsviz.difficulty.measures import STAGE_TITLES, Cause, Stage
from fsviz.methods import METHOD_NAMES
from fsviz.records import PAD, Dataset, Features, Tasks, Testbed
from fsviz.settings import RawSettings, Schema, Setting, Value, to_args
from fsviz.studies import evaluate
from fsviz.tasks import draw, fitting, snapshot
from fsviz.workspace import home

TASK_SETTINGS: dict[str, Setting] = evaluate.TASK_SETTINGS
TASK_DEFAULTS: dict[str, Value] = {"sampler": "uniform", **draw.IMAGE_DEFAULTS, "n_tasks": 300}
TESTBED = Setting("testbed", "Testbed", "A saved testbed, or a file of one, instead of tasks drawn here.", "text", "")
RUN = Setting("run", "Run", "An evaluation whose tasks are measured; its accuracies stand beside.", "text", "")
STAGE = Setting(
    "stage",
    "Explained by",
    "What a regression may know of a task when it says how accurate a method will be.",
    "choice",
    "labelled",
    choices={name: words for name, words in STAGE_TITLES.items() if name != "answered"},
)
MOST = Setting("most", "Tasks measured", "Only the first so many tasks; 0 for all of them.", "int", 0, 0, 1_000_000)
METHODS_EXPLAINED = METHOD_NAMES.with_(
    default=["protonet", "logistic", "bd_cspn"], help="Methods whose accuracy is explained."
)
SETTINGS = Schema(
    {s.name: s for s in (METHODS_EXPLAINED, TESTBED, RUN, MOST)}
    | {name: s.with_(default=TASK_DEFAULTS.get(name, s.default)) for name, s in TASK_SETTINGS.items()},
    required=("dataset", "backbone"),
    of="the study of causes",
)


class CausesSpec(draw.TaskSpec, total=False):
    """A checked spec. What its tasks are like is there once they are drawn; a run adds its version and folder."""

    study: str
    version: int
    folder: str
    methods: list[str]
    testbed: str
    run: str
    most: int
    n_measured: int
    images_per_task: int
    digest: str
    unknown: dict[str, str]
    recipe: dict[str, Any]


class CausesDict(TypedDict):
    """A share of the differences in accuracy with its 95% interval and what that is over; None where not known."""

    share: Any
    low: Any
    high: Any
    over: str


class MethodCauses(TypedDict, total=False):
    """Results of one method; shares and sampling noise need enough tasks for a regression."""

    accuracy: Any
    ci95: Any
    correlations: dict[str, dict[str, float | None]]
    explained: dict[Stage, CausesDict]
    shares: dict[Cause, CausesDict]
    alone: dict[Cause, CausesDict]
    luck: Any
    sentence: str


class CausesSummary(TypedDict, total=False):
    """Results of a run; while it is under way, the number of measured tasks and accuracies only."""

    dataset: str
    backbone: str
    testbed: str
    run: str
    n_tasks: int
    digest: str
    unknown: dict[str, str]
    families: list[list[str]]
    methods: dict[str, MethodCauses]


@dataclass(frozen=True)
class MeasuredTasks:
    """Tasks with everything that is known of them.

    measures  by name (T,), NaN where a measure is not defined for a task
    accuracy  by label of a method (T,), from 0 to 1
    unknown   why a measure is not among them, in a sentence
    recipe    as of a Testbed, and its name
    """

    spec: CausesSpec
    tasks: Tasks
    measures: Mapping[str, np.ndarray]
    accuracy: Mapping[str, np.ndarray]
    unknown: Mapping[str, str]
    recipe: RawSettings

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes when the tasks or their answers do."""
        spec = self.spec
        names = (spec["backbone"], *self.accuracy, *self.measures)
        return spec["digest"], len(self), names, datasets.stamp(spec["dataset"])

    @property
    def n_queries(self) -> np.ndarray:
        """(T,)"""
        return (self.tasks.query != PAD).sum(axis=(1, 2))


def tasks_of(spec: CausesSpec, dataset: Dataset, table: Features) -> Testbed:
    """The tasks that a spec names: drawn, saved, or those of an evaluation."""
    if spec["run"]:
        folder = home() / "runs" / str(spec["run"])
        tasks = snapshot.tasks(folder, snapshot.testbed_file(0))
        testbed = Testbed(f"run {spec['run']}", tasks, {"dataset": dataset.name, "sampler": "", "run": spec["run"]})
    else:
        sampler = {name: value for name, value in spec.items() if name in TASK_SETTINGS and name != "seed"}
        asked: Any = {"testbed": spec["testbed"]} if spec["testbed"] else {"sampler": sampler}
        testbed = evaluate.resolve_testbed({**asked, "seed": spec["seed"]}, dataset, {table.backbone: table})
    if spec["most"]:
        testbed = replace(testbed, tasks=testbed.tasks.take(slice(0, spec["most"])))
    evaluation.check_tasks(table, testbed.tasks)
    return testbed


def command(spec: CausesSpec) -> str:
    """The command that measures the same."""
    dataset = datasets.load(spec["dataset"])
    flags: list[str] = []
    if spec["run"]:
        flags = RUN.to_args(spec["run"])
    elif spec["testbed"]:
        flags = TESTBED.to_args(spec["testbed"])
    else:
        said = draw.recipe_for(
            dataset, **{name: cast(RawSettings, spec).get(name) for name in (*TASK_SETTINGS, "backbone")}
        ).arguments
        flags = to_args({name: value for name, value in said.items() if name != "backbone"}, draw.SETTINGS)
    methods = ["--methods", ",".join(spec["methods"])] if spec["methods"] != METHODS_EXPLAINED.default else []
    return shlex.join(["fsviz", "causes", dataset.name, "--backbone", spec["backbone"], *flags, *methods])


def fit(dataset: Dataset, backbone: str, requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks: those given, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, requested, TASK_DEFAULTS, [backbone], varied=True)
