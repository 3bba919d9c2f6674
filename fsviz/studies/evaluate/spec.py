"""The spec of an evaluation, the resolved spec of a run, and its entries.

A spec has "backbones" and "methods" (names, or {"name", "parameters"}), and either "testbed" (a name or a path) or
"sampler" ({"sampler", "split", "n_way", ...}) or "samplers", several of those, of as many tasks each. In the place of
methods it may have "predictions", a file, and "name". An entry is one method on one backbone and one testbed, and a
part of the work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from fsviz.features.backbones import title_of
from fsviz.methods import METHODS, Method
from fsviz.records import Tasks
from fsviz.settings import RawSettings, Settings
from fsviz.studies.study import Part
from fsviz.tasks import draw, snapshot
from fsviz.user import methods as user_methods


class TasksShape(TypedDict):
    """Number and shape of the tasks of one testbed in a resolved spec."""

    n_tasks: int
    n_way: int
    n_shot: int
    n_query: int
    setting: str
    digest: str


class RunTestbed(TypedDict):
    """One testbed of a resolved spec; its tasks lie in the run's folder."""

    testbed_name: str
    recipe: dict[str, Any]
    tasks: TasksShape


class MethodChoice(TypedDict, total=False):
    """A method that is asked for: those of a settled spec have all their parameters, and what is not built in says
    what it is."""

    name: str
    parameters: dict[str, Any]
    preset: str
    own: dict[str, Any]


class FailedMethod(TypedDict):
    """A method of the user that has no results, and why."""

    method: str
    label: str
    backbone: str
    error: str


class EntryLists(TypedDict, total=False):
    """The lists whose product is the entries of a run."""

    backbones: list[str]
    methods: list[MethodChoice]
    testbeds: list[RunTestbed]


class EvaluationSpec(EntryLists, total=False):
    """The request for an evaluation, with one of "testbed", "sampler" and "samplers"."""

    study: str
    dataset: str
    testbed: str
    sampler: draw.TaskSpec
    samplers: list[draw.TaskSpec]
    seed: int
    device: str
    chunk: int
    threads: int
    predictions: str
    name: str


class FeaturesFingerprint(TypedDict):
    """Identity of the features of a run among others of the same name."""

    rows: int
    dims: int
    images: str
    key: str


class ResolvedSpec(RunTestbed, EvaluationSpec, total=False):
    """The spec of a run as `prepare` leaves it; who executes the run adds its folder."""

    features: dict[str, FeaturesFingerprint]
    chunk_tasks: list[int]
    failed: list[FailedMethod]
    version: int
    folder: str


@dataclass(frozen=True)
class Entry:
    """One method with its parameters on one backbone and one testbed of the run (its place in "testbeds")."""

    backbone: str
    method: str
    title: str
    parameters: Settings = field(default_factory=dict)
    changed: Settings = field(default_factory=dict)  # parameters that differ from the method's defaults
    testbed: int = 0
    own: RawSettings = field(default_factory=dict)  # what is kept of a method that is not built in

    @property
    def code(self) -> Method:
        """The method itself; that of a user is loaded from where the run found it."""
        return user_methods.load_recorded(self.method, self.own) if self.own else METHODS[self.method]

    @property
    def pairwise(self) -> bool:
        return bool(self.own.get("pairwise")) if self.own else METHODS[self.method].pairwise

    @property
    def batch(self) -> int | None:
        """Support images of one step, where a step is not on all images."""
        return None if self.own else METHODS[self.method].batch

    @property
    def label(self) -> str:
        """The method's title with the parameters that differ from its defaults."""
        changed = ", ".join(_describe_change(name, value) for name, value in self.changed.items())
        return f"{self.title} ({changed})" if changed else self.title


def run_testbeds(spec: ResolvedSpec) -> list[RunTestbed]:
    """The testbeds of a run: testbed_name, recipe and tasks (n_tasks, n_way, ..., digest) of each."""
    return spec.get("testbeds") or [
        {"testbed_name": spec["testbed_name"], "recipe": spec["recipe"], "tasks": spec["tasks"]}
    ]


def entry_tasks(spec: ResolvedSpec, entry: Entry, start: int = 0, stop: int | None = None) -> Tasks:
    """The tasks of an entry's testbed, all or those from `start` to `stop`."""
    return snapshot.tasks(spec["folder"], snapshot.testbed_file(entry.testbed), start, stop)


def parts(spec: ResolvedSpec) -> list[Part]:
    """One part per entry."""
    several = len(run_testbeds(spec)) > 1
    every = []
    for entry, size in zip(entries(spec), spec["chunk_tasks"], strict=True):
        of = f", {run_testbeds(spec)[entry.testbed]['testbed_name']}" if several else ""
        label = f"{entry.label} on {title_of(entry.backbone)}{of}"
        every.append(Part(label, spec["tasks"]["n_tasks"], size))
    return every


def entries(spec: EntryLists) -> list[Entry]:
    """Every method on every backbone and testbed, in the order they are computed."""
    every_entry = []
    for testbed in range(len(cast(RawSettings, spec).get("testbeds") or [{}])):
        for backbone in spec["backbones"]:
            for choice in spec["methods"]:
                own = choice.get("own") or {}
                method = None if own else METHODS.get(choice["name"])
                defaults = {setting.name: setting.default for setting in method.settings} if method else {}
                defaults |= own.get("defaults") or {}
                parameters = dict(choice.get("parameters") or {})
                changed = {k: v for k, v in parameters.items() if k not in defaults or v != defaults[k]}
                title = method.title if method else choice["name"]
                every_entry.append(Entry(backbone, choice["name"], title, parameters, changed, testbed, own))
    return every_entry


def is_complete(spec: Any) -> bool:
    """Whether a recorded spec says all that a page needs of it; one changed by hand or by damage may not."""
    try:
        names, sizes = [str(spec[name]) for name in ("dataset", "device")], []
        for testbed in run_testbeds(spec):
            sizes += [int(testbed["tasks"][name]) for name in ("n_tasks", "n_way", "n_shot", "n_query")]
            names += [str(testbed["testbed_name"]), *(str(testbed["tasks"][name]) for name in ("setting", "digest"))]
        recipes = all(isinstance(testbed["recipe"], Mapping) for testbed in run_testbeds(spec))
        return min(sizes) > 0 and all(names) and recipes and len(entries(spec)) == len(spec["chunk_tasks"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def chunks_of(spec: ResolvedSpec, which: int, most: int | None = None) -> range:
    """The indices of the chunks that hold entry number `which`, or those of its first `most` tasks."""
    n_tasks = spec["tasks"]["n_tasks"]
    counts = [math.ceil(n_tasks / size) for size in spec["chunk_tasks"]]
    first = sum(counts[:which])
    n_used = n_tasks if most is None else min(most, n_tasks)
    return range(first, first + math.ceil(n_used / spec["chunk_tasks"][which]))


def _describe_change(name: str, value: Any) -> str:
    """A parameter in the label of a method, in words: "distance cosine", "unit length", "no centring"."""
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"
