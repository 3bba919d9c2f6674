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
TESTBED = Setting("testbed", "Testbed", "A saved testbed or a testbed file, instead of sampled tasks.", "text", "")
RUN = Setting("run", "Run", "A finished evaluation: measure its tasks and explain its accuracies.", "text", "")
STAGE = Setting(
    "stage",
    "Measures used",
    "Measures that the regression may use, by the labels that they need.",
    "choice",
    "labelled",
    choices={name: stage_title for name, stage_title in STAGE_TITLES.items() if name != "answered"},
)
MOST = Setting("most", "Tasks measured", "Measure only the first tasks; 0 for all.", "int", 0, 0, 1_000_000)
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
    """A checked spec; fields about the tasks are there once they are sampled, version and folder in a run."""

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
    """A share of the variation in accuracy with its 95% CI and what the CI is over; None if not available."""

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
    sampling_noise: Any
    sentence: str


class CausesSummary(TypedDict, total=False):
    """Results of a run; of a run in progress, the number of measured tasks and the accuracies only."""

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
    """Tasks with their measures and accuracies.

    measures  by name (T,), NaN if a measure is undefined for a task
    accuracy  by label of a method (T,), from 0 to 1
    unknown   measures that are not available, with the reason in a sentence
    recipe    of the testbed, with its name
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
        """A key that changes with the tasks or their predictions."""
        spec = self.spec
        names = (spec["backbone"], *self.accuracy, *self.measures)
        return spec["digest"], len(self), names, datasets.stamp(spec["dataset"])

    @property
    def n_queries(self) -> np.ndarray:
        """Number of queries (T,) of every task."""
        return (self.tasks.query != PAD).sum(axis=(1, 2))


def tasks_of(spec: CausesSpec, dataset: Dataset, table: Features) -> Testbed:
    """The tasks of a spec: sampled, saved, or those of an evaluation."""
    if spec["run"]:
        folder = home() / "runs" / str(spec["run"])
        tasks = snapshot.tasks(folder, snapshot.testbed_file(0))
        recipe = {"dataset": dataset.name, "sampler": "", "run": spec["run"], "split": tasks.split}
        testbed = Testbed(f"run {spec['run']}", tasks, recipe)
    else:
        sampler = {name: value for name, value in spec.items() if name in TASK_SETTINGS and name != "seed"}
        source: Any = {"testbed": spec["testbed"]} if spec["testbed"] else {"sampler": sampler}
        testbed = evaluate.resolve_testbed({**source, "seed": spec["seed"]}, dataset, {table.backbone: table})
    if spec["most"]:
        testbed = replace(testbed, tasks=testbed.tasks.take(slice(0, spec["most"])))
    evaluation.check_tasks(table, testbed.tasks)
    return testbed


def command(spec: CausesSpec) -> str:
    """The command with the same results."""
    dataset = datasets.load(spec["dataset"])
    flags: list[str] = []
    if spec["run"]:
        flags = RUN.to_args(spec["run"])
    elif spec["testbed"]:
        flags = TESTBED.to_args(spec["testbed"])
    else:
        arguments = draw.recipe_for(
            dataset, **{name: cast(RawSettings, spec).get(name) for name in (*TASK_SETTINGS, "backbone")}
        ).arguments
        flags = to_args({name: value for name, value in arguments.items() if name != "backbone"}, draw.SETTINGS)
    methods = ["--methods", ",".join(spec["methods"])] if spec["methods"] != METHODS_EXPLAINED.default else []
    return shlex.join(["fsviz", "causes", dataset.name, "--backbone", spec["backbone"], *flags, *methods])


def fit(dataset: Dataset, backbone: str, requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks: as requested, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, requested, TASK_DEFAULTS, [backbone], varied=True)
