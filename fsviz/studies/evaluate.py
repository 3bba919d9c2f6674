"""Which method suits these images? Every chosen method on every chosen backbone, on the same tasks.

    dataset -> features (backbones) -> tasks (a testbed, or drawn here) -> predictions -> accuracy by coarsity

A spec has "backbones" and "methods" (names, or {"name", "parameters"}), and either "testbed" (a name or a path) or
"sampler" ({"sampler", "split", "n_way", ...}) or "samplers", several of those, of as many tasks each. `prepare`
resolves it once and freezes the tasks into the run's folder, so that deleting the testbed later does not matter. An
entry is one method on one backbone and one testbed, and a part of the work.
A method may be of the user (see fsviz.user.methods): "name" is then a file, "./mine.py". Where it fails it has
no results, and the others go on. Predictions made elsewhere are a run too: {"predictions": FILE, "name": ...} in the
place of methods and backbones, for a testbed (see fsviz.user.predictions).
Accuracies are percentages in what this file hands out; fractions inside.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput, BrokenCode, FsvizError, Missing, NotFinite, UnknownName
from fsviz.evaluation import resolved_device
from fsviz.features.backbones import title_of
from fsviz.features.device import cores
from fsviz.methods import METHODS, Method
from fsviz.numerics import threads
from fsviz.records import Dataset, Features, Predictions, Tasks, Testbed
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import N_SHOT, SEED, RawSettings, Schema, Settings
from fsviz.studies.study import Arrays, Part, Study
from fsviz.studies.thread_limits import half, half_the_cores
from fsviz.tasks import draw, fitting, snapshot
from fsviz.user import methods as user_methods
from fsviz.user import predictions as user_predictions
from fsviz.workspace import atomic_file

# How tasks are drawn; those of classes only cannot be evaluated, and "backbones" says whose features are.
TASK_SETTINGS = {**{name: s for name, s in draw.KNOWN.items() if name != "backbone"}, "n_shot": N_SHOT}
DEFAULTS: dict[str, Any] = {**draw.PER_CLASS, "n_tasks": 1000}
CORRELATIONS = ("pearson", "spearman")
FIRST_QUERIES = 250_000  # queries from which is told how alike tasks are that share images: 5,000 usual tasks
NUMBERS = ("accuracy", "top5", "loss", "confidence")  # what is kept of every task
_CHUNK_SECONDS = 0.7  # what a chunk should take on one ordinary core
_LARGEST_CHUNK = 2048


class Shape(TypedDict):
    """What a settled spec says of the tasks of one testbed."""

    n_tasks: int
    n_way: int
    n_shot: int
    n_query: int
    setting: str
    digest: str


class RunTestbed(TypedDict):
    """What a settled spec says of one testbed, whose tasks lie in the run's folder."""

    testbed_name: str
    recipe: dict[str, Any]
    tasks: Shape


class Chosen(TypedDict, total=False):
    """A method that is asked for: those of a settled spec have all their parameters, and what is not built in says
    what it is."""

    name: str
    parameters: dict[str, Any]
    preset: str
    own: dict[str, Any]


class Failed(TypedDict):
    """A method of the user that has no results, and why."""

    method: str
    label: str
    backbone: str
    error: str


class Lists(TypedDict, total=False):
    """What the entries of a run are made of."""

    backbones: list[str]
    methods: list[Chosen]
    testbeds: list[RunTestbed]


class Spec(Lists, total=False):
    """What is asked for: of "testbed", "sampler" and "samplers" one."""

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


class Fingerprint(TypedDict):
    """What tells the features of a run from others of the same name."""

    rows: int
    dims: int
    images: str
    key: str


class Settled(RunTestbed, Spec, total=False):
    """The spec of a run as `prepare` leaves it; who executes the run adds its folder."""

    features: dict[str, Fingerprint]
    chunk_tasks: list[int]
    failed: list[Failed]
    version: int
    folder: str


class Result(TypedDict, total=False):
    """What the summary of a run says of one entry; percentages but for the loss. Intervals over images and classes,
    and correlations, are there once the run is finished."""

    method: str
    label: str
    backbone: str
    parameters: dict[str, Any]
    testbed: str
    sampler: str
    setting: str
    n_way: int
    n_tasks: int
    accuracy: float
    ci95: float
    ci95_images: float
    ci95_classes: float
    top5: float
    loss: float
    confidence: float
    quartiles: list[float] | None
    quartiles_ci95: list[float]
    quartile_coarsity: list[list[float]]
    correlations: dict[str, dict[str, Any]]


class Summary(TypedDict):
    """What came out of a run so far."""

    results: list[Result]
    failed: list[Failed]
    dataset: str
    testbed: str
    n_tasks: int
    device: str


class Timing(TypedDict):
    """How long one entry would take, in seconds."""

    label: str
    method: str
    backbone: str
    per_task: float
    seconds: float


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
        return user_methods.again(self.method, self.own) if self.own else METHODS[self.method]

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
        changed = ", ".join(_changed(name, value) for name, value in self.changed.items())
        return f"{self.title} ({changed})" if changed else self.title


# --- the run -----------------------------------------------------------------------------------------------------


SETTINGS = Schema({SEED.name: SEED}, of="an evaluation")
_KEYS = frozenset(Spec.__annotations__) - {"testbeds"}


def check(spec: RawSettings) -> Spec:
    """A spec without unknown names; what its names stand for is looked up when the run is prepared."""
    for name in spec:
        if name not in _KEYS:
            raise UnknownName("setting of an evaluation", name, sorted(_KEYS - {"study"}))
    return cast(Spec, dict(spec))


def prepare(spec: dict[str, Any], folder: Path) -> Settled:
    """Checks a spec, resolves its names and freezes its tasks into `folder`/inputs."""
    dataset = datasets.load(_text(spec, "dataset"))
    if "predictions" in spec:
        return _prepare_predictions(spec, dataset, folder)
    chosen, failed = _checked_methods(spec.get("methods"))
    tables = {name: features.load(dataset, name) for name in _checked_backbones(spec.get("backbones"))}
    testbeds = _resolve_testbeds(cast(Spec, spec), dataset, tables)
    device = resolved_device(str(spec.get("device", "auto")))
    settled_testbeds = []
    for i, testbed in enumerate(testbeds):
        for table in tables.values():
            _check(table, testbed)
        snapshot.freeze(folder, testbed, snapshot.testbed_file(i))
        settled_testbeds.append(_part(testbed))
    settled: Any = {
        **spec,
        "methods": chosen,
        "backbones": list(tables),
        "device": device,
        "seed": _seed(spec),
        "threads": int(spec.get("threads") or half()),
        **{name: settled_testbeds[0][name] for name in ("recipe", "testbed_name", "tasks")},
        **({"testbeds": settled_testbeds} if len(settled_testbeds) > 1 else {}),
        "features": {name: _fingerprint(table) for name, table in tables.items()},
        **({"failed": failed} if failed else {}),
    }
    chunk = _chunk(spec)
    settled["chunk_tasks"] = [
        chunk or _chunk_tasks(entry, testbeds[entry.testbed].tasks, tables[entry.backbone].values.shape[1])
        for entry in entries(settled)
    ]
    return settled


def _prepare_predictions(spec: dict[str, Any], dataset: Dataset, folder: Path) -> Settled:
    """Freezes predictions that were made elsewhere beside their tasks: all that is left is to count."""
    testbed = resolve_testbed(cast(Spec, {**spec, "testbed": _text(spec, "testbed")}), dataset, {})
    file = Path(_text(spec, "predictions")).expanduser().absolute()
    answer = user_predictions.read(file, testbed, dataset)
    snapshot.freeze(folder, testbed, snapshot.testbed_file(0))
    user_predictions.freeze(folder, answer)
    settled: Any = {
        **spec,
        "predictions": file.name,
        "methods": [{"name": _text(spec, "name"), "parameters": {}, "own": {"predictions": file.name}}],
        "backbones": [str((spec.get("backbones") or [user_predictions.ELSEWHERE])[0])],
        "device": user_predictions.ELSEWHERE,
        "seed": _seed(spec),
        "threads": 1,
        **_part(testbed),
        "features": {},
        "chunk_tasks": [_LARGEST_CHUNK],
    }
    return settled


def requires_local(spec: RawSettings) -> str:
    """Why a run must not be left to a worker process, "" where it may be: it has code of the user."""
    asked = spec.get("methods")
    for chosen in asked if isinstance(asked, list | tuple) else ():
        own = chosen.get("own") if isinstance(chosen, Mapping) else None
        name = str(chosen.get("name")) if isinstance(chosen, Mapping) else str(chosen)
        if (own and "code" in own) or (not own and user_methods.is_own(name)):
            return f"{name} is your own code, which runs only where you start it, from the command line or a notebook"
    return ""


def _part(testbed: Testbed) -> RunTestbed:
    """What a spec says of one frozen testbed."""
    tasks = testbed.tasks
    shape: Shape = {
        "n_tasks": len(tasks),
        "n_way": tasks.n_way,
        "n_shot": tasks.support.shape[2],
        "n_query": tasks.query.shape[2],
        "setting": tasks.setting,
        "digest": snapshot.digest(tasks),
    }
    return {"testbed_name": testbed.name, "recipe": dict(testbed.recipe), "tasks": shape}


def run_testbeds(spec: Settled) -> list[RunTestbed]:
    """The testbeds of a run: testbed_name, recipe and tasks (n_tasks, n_way, ..., digest) of each."""
    return spec.get("testbeds") or [
        {"testbed_name": spec["testbed_name"], "recipe": spec["recipe"], "tasks": spec["tasks"]}
    ]


def entry_tasks(spec: Settled, entry: Entry, start: int = 0, stop: int | None = None) -> Tasks:
    """The tasks of an entry's testbed, all or those from `start` to `stop`."""
    return snapshot.tasks(spec["folder"], snapshot.testbed_file(entry.testbed), start, stop)


def parts(spec: Settled) -> list[Part]:
    """One part per entry."""
    several = len(run_testbeds(spec)) > 1
    every = []
    for entry, size in zip(entries(spec), spec["chunk_tasks"], strict=True):
        of = f", {run_testbeds(spec)[entry.testbed]['testbed_name']}" if several else ""
        label = f"{entry.label} on {title_of(entry.backbone)}{of}"
        every.append(Part(label, spec["tasks"]["n_tasks"], size))
    return every


def n_bytes(spec: Settled) -> float:
    """About how large the run's results are: twelve bytes per query and entry, and four numbers per task, twice."""
    shape = spec["tasks"]
    return len(entries(spec)) * shape["n_tasks"] * (12 * shape["n_way"] * shape["n_query"] + 64)


def run_chunk(spec: Settled, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The predictions of one entry for the queries of one range of tasks."""
    from fsviz.evaluation import evaluate

    entry = entries(spec)[part]
    tasks = entry_tasks(spec, entry, start, stop)
    if "predictions" in entry.own:
        answer = user_predictions.frozen(spec["folder"], start, stop)
        return _chunk_of(user_predictions.known(_numbers_of(answer), answer), answer)
    fingerprint = tuple(sorted(spec["features"][entry.backbone].items()))
    stored = (spec["dataset"], entry.backbone, fingerprint, datasets.stamp(spec["dataset"]))
    table = _features_cached(*stored)
    unit_length = bool(entry.parameters.get("unit_length"))
    method = entry.code
    centre = None
    if method.wants_centre:
        centre = _centre_cached(*stored, spec["folder"], snapshot.testbed_file(entry.testbed), unit_length)
    try:
        with threads(spec["threads"]):
            answer = evaluate(table, tasks, method, dict(entry.parameters), spec["device"], centre=centre, first=start)
    except (BrokenCode, NotFinite) as error:
        if not entry.own:
            raise
        none = Predictions.blank(tasks.query.shape)
        unknown = np.full((len(NUMBERS), len(tasks)), np.nan)
        return {**_chunk_of(unknown, none), "failed": np.array(str(error))}
    return _chunk_of(_numbers_of(answer), answer)


def _chunk_of(numbers: np.ndarray, answer: Predictions) -> dict[str, np.ndarray]:
    return {"numbers": numbers, **answer.arrays()}


def failures(spec: Settled, chunks: Sequence[Arrays]) -> dict[int, str]:
    """By entry why code of the user gave no answer, from the first task that it failed on."""
    if not any(entry.own for entry in entries(spec)):
        return {}
    found: dict[int, tuple[int, str]] = {}
    for chunk in chunks:
        try:
            told = int(chunk["start"]), str(chunk["failed"])
        except KeyError:
            continue
        which = int(chunk["part"])
        found[which] = min(told, found.get(which, told))
    return {which: sentence for which, (_, sentence) in found.items()}


@dataclass(frozen=True)
class Evaluation:
    """The predictions of finished chunks, in numbers.

    numbers   (E, 4, T) NUMBERS of every entry and task, NaN where it is not done
    right     (E, t, W, Q) 1, 0 or -1 (no query, or not done) for the queries of the first tasks
    measures  measures of the tasks by name, of every testbed
    first     the first tasks of every testbed, as many as `right` has
    failed    sentences by entry, for methods of the user that failed
    """

    spec: Settled
    numbers: np.ndarray
    right: np.ndarray
    measures: Sequence[Mapping[str, np.ndarray]]
    first: Sequence[Tasks]
    failed: Mapping[int, str]


def collect(spec: Settled, chunks: Sequence[Arrays]) -> Evaluation:
    right = _first_right(spec, chunks)
    files = [snapshot.testbed_file(i) for i in range(len(run_testbeds(spec)))]
    return Evaluation(
        spec,
        _numbers_in(spec, chunks),
        right,
        [snapshot.measures(spec["folder"], file) for file in files],
        [snapshot.tasks(spec["folder"], file, stop=right.shape[1]) for file in files],
        failures(spec, chunks),
    )


def partial(spec: Settled, chunks: Sequence[Arrays]) -> Summary:
    """Accuracy, interval, top-5 and quartiles of every entry over the tasks finished so far."""
    measures = [snapshot.measures(spec["folder"], snapshot.testbed_file(i)) for i in range(len(run_testbeds(spec)))]
    return _summary(spec, _numbers_in(spec, chunks), measures, failures(spec, chunks))


def summarise(result: Evaluation) -> Summary:
    """The same with intervals over images and classes, and correlations with the measures of tasks."""
    return _summary(result.spec, result.numbers, result.measures, result.failed, result)


def finish(spec: Settled, result: Evaluation) -> dict[str, Any]:
    """Saves the numbers of every task and which first queries were right: who compares runs need not read chunks."""
    if result.failed and np.isnan(result.numbers[:, 0]).all():
        raise BrokenCode(" ".join(dict.fromkeys(result.failed.values())))
    for path, array in ((_numbers_file(spec), result.numbers), (_right_file(spec), result.right)):
        with atomic_file(path) as temporary:
            np.save(temporary, array, allow_pickle=False)
    return {}


def _summary(
    spec: Settled,
    numbers: np.ndarray,
    measures: Sequence[Mapping[str, np.ndarray]],
    failed: Mapping[int, str],
    whole: Evaluation | None = None,
) -> Summary:
    results = []
    for which, (entry, values) in enumerate(zip(entries(spec), numbers, strict=True)):
        done = ~np.isnan(values[0])
        if not done.any():
            continue
        testbed = run_testbeds(spec)[entry.testbed]
        of_done = {name: of_task[done] for name, of_task in measures[entry.testbed].items()}
        result: Result = {"method": entry.method, "label": entry.label, "backbone": entry.backbone}
        result["parameters"] = dict(entry.parameters)
        result |= result_of(dict(zip(NUMBERS, values[:, done], strict=True)), of_done.get("coarsity"))
        result |= {"testbed": testbed["testbed_name"], "sampler": testbed["recipe"].get("sampler", "")}
        result |= {"setting": testbed["tasks"]["setting"], "n_way": testbed["tasks"]["n_way"]}
        if whole is not None:
            right = _unpacked(whole.right[which])
            result |= _intervals(values[0], of_done, right, whole.first[entry.testbed])
        results.append(result)
    broken = list(spec.get("failed", []))
    for which, error in failed.items():
        entry = entries(spec)[which]
        broken.append({"method": entry.method, "label": entry.label, "backbone": entry.backbone, "error": error})
    return {
        "results": results,
        "failed": broken,
        "dataset": spec["dataset"],
        "testbed": spec["testbed_name"],
        "n_tasks": spec["tasks"]["n_tasks"],
        "device": spec["device"],
    }


def entries(spec: Lists) -> list[Entry]:
    """Every method on every backbone and testbed, in the order they are computed."""
    found = []
    for testbed in range(len(cast(RawSettings, spec).get("testbeds") or [{}])):
        for backbone in spec["backbones"]:
            for chosen in spec["methods"]:
                own = chosen.get("own") or {}
                method = None if own else METHODS.get(chosen["name"])
                defaults = {setting.name: setting.default for setting in method.settings} if method else {}
                defaults |= own.get("defaults") or {}
                parameters = dict(chosen.get("parameters") or {})
                changed = {k: v for k, v in parameters.items() if k not in defaults or v != defaults[k]}
                title = method.title if method else chosen["name"]
                found.append(Entry(backbone, chosen["name"], title, parameters, changed, testbed, own))
    return found


def same_entries(spec: Spec, recorded: Any, dataset: Dataset) -> list[int]:
    """Numbers of the recorded run's entries that are what a spec asks for, in the spec's order; none unless all are
    there, on the same tasks and on features that have not changed since.

    spec  one testbed or sampler, and methods with all their parameters
    """
    if not is_whole(recorded) or recorded["dataset"] != dataset.name or "predictions" in recorded:
        return []
    if set(recorded["backbones"]) != set(spec["backbones"]):  # the images that all of them have decide the tasks
        return []
    which = [i for i, testbed in enumerate(run_testbeds(recorded)) if _is_testbed(spec, testbed, dataset)]
    own = [(i, e) for i, e in enumerate(entries(recorded)) if which and e.testbed == which[0] and not e.own]
    known = [((e.backbone, e.method, e.parameters), i) for i, e in own]
    found = [next((i for key, i in known if key == (e.backbone, e.method, e.parameters)), None) for e in entries(spec)]
    if None in found or not found:
        return []
    same = (recorded["features"].get(b) == _fingerprint(features.load(dataset, b)) for b in spec["backbones"])
    return cast(list[int], found) if all(same) else []


def _is_testbed(spec: Spec, testbed: RunTestbed, dataset: Dataset) -> bool:
    """Whether a recorded testbed is the one that a spec names or would draw: a name follows from all settings."""
    if spec.get("sampler") is not None:
        return testbed["testbed_name"] == _recipe(dataset, spec["sampler"], _seed(spec)).name
    if testbed["testbed_name"] != spec.get("testbed"):
        return False
    from fsviz.sampling.testbeds import load_testbed

    return testbed["tasks"]["digest"] == snapshot.digest(load_testbed(str(spec["testbed"]), dataset).tasks)


def is_whole(spec: Any) -> bool:
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


# --- what came out -----------------------------------------------------------------------------------------------


def task_numbers(spec: Settled, chunks: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
    """Per entry the arrays (T,) accuracy, top5, loss and confidence of every task, NaN where it is not done yet.

    A finished run has them in one file; where that is missing or damaged, they come from the chunks.
    """
    shape = (len(entries(spec)), len(NUMBERS), spec["tasks"]["n_tasks"])
    try:
        numbers = np.load(_numbers_file(spec), mmap_mode="r", allow_pickle=False)
        if numbers.shape != shape:
            raise ValueError(f"its shape is {numbers.shape}")
    except (OSError, ValueError, EOFError):
        numbers = _numbers_in(spec, chunks)
    return [dict(zip(NUMBERS, values, strict=True)) for values in numbers]


def _numbers_in(spec: Settled, chunks: Sequence[Arrays]) -> np.ndarray:
    """What chunks hold of NUMBERS (entries, 4, T), NaN where a task is in none."""
    numbers = np.full((len(entries(spec)), len(NUMBERS), spec["tasks"]["n_tasks"]), np.nan)
    for chunk in chunks:
        values, start = chunk["numbers"], int(chunk["start"])
        numbers[int(chunk["part"]), :, start : start + values.shape[1]] = values
    numbers[list(failures(spec, chunks))] = np.nan  # what failed on one task is not compared on the others
    return numbers


def _numbers_of(answer: Predictions) -> np.ndarray:
    from fsviz import evaluation

    top5 = evaluation.task_top_k(answer, 5)
    measures = (evaluation.task_accuracy, Predictions.loss, evaluation.task_confidence)
    accuracy, loss, confidence = (measure(answer) for measure in measures)
    return np.stack([accuracy, top5, loss, confidence])


def _numbers_file(spec: Settled) -> Path:
    return Path(spec["folder"]) / "numbers.npy"


def first_right(spec: Settled, chunks: Sequence[Arrays]) -> list[tuple[np.ndarray, Tasks]] | None:
    """Per entry 1 or 0 for every query of the first tasks (t, W, Q), NaN where there is none, and these tasks.

    As many tasks as hold FIRST_QUERIES queries. A finished run has them in a file; of a run under way, or one that was
    stopped, they come from its chunks. None where the file is damaged.
    """
    try:
        right = np.load(_right_file(spec), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        right = _first_right(spec, chunks)
    if right.ndim != 4 or len(right) != len(entries(spec)):
        return None
    return [(_unpacked(r), entry_tasks(spec, e, stop=len(r))) for r, e in zip(right, entries(spec), strict=True)]


def _first_right(spec: Settled, chunks: Sequence[Arrays]) -> np.ndarray:
    """1, 0 or -1 (no query, or not done yet) for the queries of the first tasks: (entries, t, W, Q), a byte each."""
    from fsviz import evaluation

    shape = spec["tasks"]
    n = min(shape["n_tasks"], max(1, FIRST_QUERIES // (shape["n_way"] * shape["n_query"])))
    found = np.full((len(entries(spec)), n, shape["n_way"], shape["n_query"]), -1, np.int8)
    whole = len(chunks) == sum(part.n_chunks for part in parts(spec))
    for which in range(len(found)):
        if whole:
            own = [chunks[i] for i in chunks_of(spec, which, n)]
        else:
            own = [chunk for chunk in chunks if int(chunk["part"]) == which and int(chunk["start"]) < n]
        with suppress(Missing):  # none of its tasks is done
            right = evaluation.correct_queries(predictions(spec, own, which))[:n]
            found[which, : len(right)] = np.nan_to_num(right, nan=-1)
    return found


def _unpacked(right: np.ndarray) -> np.ndarray:
    return np.where(right < 0, np.nan, right)


def _right_file(spec: Settled) -> Path:
    return Path(spec["folder"]) / "right.npy"


def chunks_of(spec: Settled, which: int, most: int | None = None) -> range:
    """The indices of the chunks that hold entry number `which`, or those of its first `most` tasks."""
    n_tasks = spec["tasks"]["n_tasks"]
    counts = [math.ceil(n_tasks / size) for size in spec["chunk_tasks"]]
    first = sum(counts[:which])
    wanted = n_tasks if most is None else min(most, n_tasks)
    return range(first, first + math.ceil(wanted / spec["chunk_tasks"][which]))


def predictions(spec: Settled, chunks: Sequence[Arrays], which: int) -> Predictions:
    """What entry number `which` said of the queries of its first tasks, up to the first that is not finished."""
    own = sorted(((int(c["start"]), c) for c in chunks if int(c["part"]) == which), key=lambda pair: pair[0])
    found: list[Predictions] = []
    for start, chunk in own:
        if start != sum(map(len, found)):  # a chunk before it is missing
            break
        found.append(Predictions.from_arrays(chunk))
    if not found:
        raise Missing("No task of this method is finished yet. Wait for its first chunk, or resume the run.")
    return Predictions.join(found)


def _intervals(accuracy: np.ndarray, measures: Mapping[str, np.ndarray], right: np.ndarray, tasks: Tasks) -> Result:
    """Half-widths over images and classes in percent, and the correlation of every measure with accuracy."""
    from fsviz import evaluation

    found: dict[str, Any] = {
        f"ci95_{over}": 100 * evaluation.estimate(accuracy, over, right, tasks).ci95 for over in ("images", "classes")
    }
    found["correlations"] = {}
    for name, values in measures.items():
        if not evaluation.varies(values):
            continue
        both = {k: evaluation.correlation(accuracy, values, tasks.class_ids, k == "spearman") for k in CORRELATIONS}
        if np.isfinite(both["pearson"].value):
            told = {k: {"value": c.value, "ci95": [c.low, c.high]} for k, c in both.items()}
            found["correlations"][name] = {**told, "over": both["pearson"].over}
    return cast(Result, found)


def result_of(numbers: Mapping[str, np.ndarray], measure: np.ndarray | None) -> Result:
    """The means of these NUMBERS (T,) over the tasks that are done (not NaN), and accuracy by quarters of a measure
    (T,), where the tasks have it and differ in it."""
    from fsviz.evaluation import accuracy_by_quantile, varies
    from fsviz.numerics import mean_and_ci95

    done = ~np.isnan(numbers["accuracy"])
    accuracy, half = mean_and_ci95(numbers["accuracy"][done])
    found = {"n_tasks": int(done.sum()), "accuracy": 100 * float(accuracy), "ci95": 100 * float(half)}
    for name in [name for name in numbers if name != "accuracy"]:
        found[name] = (1 if name == "loss" else 100) * float(np.mean(numbers[name][done]))
    result = cast(Result, {**found, "quartiles": None})
    if measure is not None and np.isfinite(measure[done]).sum() >= 4 and varies(measure[done]):
        table = accuracy_by_quantile(numbers["accuracy"], measure, 4)
        result["quartiles"] = [100 * float(a) for a in table["accuracy"]]
        result["quartiles_ci95"] = [100 * float(h) for h in table["ci95"]]
        result["quartile_coarsity"] = [[float(low), float(high)] for low, high in zip(table["low"], table["high"])]
    return result


# --- the tasks ---------------------------------------------------------------------------------------------------


def resolve_testbed(spec: Spec, dataset: Dataset, tables: Mapping[str, Features]) -> Testbed:
    """The tasks a spec names: a saved testbed, or drawn here from the images that have features everywhere."""
    named, sampler = spec.get("testbed"), spec.get("sampler")
    if (named is None) == (sampler is None):
        raise BadInput(
            'An evaluation needs either "testbed" (a name or a file) or "sampler" (how to draw tasks), not both.'
        )
    if named is not None:
        from fsviz.sampling.testbeds import load_testbed

        testbed = load_testbed(str(named), dataset)
        if testbed.dataset != dataset.name:
            raise BadInput(
                f"Testbed {testbed.name!r} was drawn from dataset {testbed.dataset!r}, and its image ids mean nothing "
                f"in {dataset.name!r}. Evaluate it on {testbed.dataset!r}, or draw a testbed from {dataset.name!r}."
            )
    else:
        assert sampler is not None
        testbed = sample_testbed(dataset, sampler, _seed(spec), tables)
    return Testbed(testbed.name, draw.with_coarsity(testbed.tasks, dataset), testbed.recipe)


def _resolve_testbeds(spec: Spec, dataset: Dataset, tables: Mapping[str, Features]) -> list[Testbed]:
    """The testbeds a spec names: one, or one for each of its samplers."""
    samplers = spec.get("samplers")
    if samplers is None:
        return [resolve_testbed(spec, dataset, tables)]
    if not isinstance(samplers, list | tuple) or not samplers or spec.get("testbed") or spec.get("sampler"):
        raise BadInput('"samplers" is a list of samplers, and stands alone: leave out "testbed" and "sampler".')
    found = [resolve_testbed({**spec, "sampler": sampler}, dataset, tables) for sampler in samplers]
    shapes = {(len(t.tasks), t.tasks.n_way, t.tasks.query.shape[2]) for t in found}
    if len(shapes) > 1:
        raise BadInput(
            "The testbeds of one run must have as many tasks, classes per task and queries per class. "
            f"Got {', '.join(f'{a:,} tasks of {b} classes and {c} queries' for a, b, c in sorted(shapes))}."
        )
    return found


def both_samplers(sampler: draw.TaskSpec, shots: Sequence[int] = ()) -> list[draw.TaskSpec]:
    """Semantic and uniform tasks for every number of shots (the sampler's own where none is given), all else as in
    `sampler`: what tables 1 and 2 of Bennequin et al. 2022 stand on."""
    each: list[draw.TaskSpec] = [{"n_shot": n} for n in dict.fromkeys(shots)] or [{}]
    return [{**sampler, **n_shot, "sampler": name} for n_shot in each for name in ("semantic", "uniform")]


def sample_testbed(
    dataset: Dataset, sampler: RawSettings, seed: int, tables: Mapping[str, Features] | None = None
) -> Testbed:
    """Draws tasks as `sampler` says (settings of fsviz.tasks.draw), from the images that all these features have."""
    from fsviz.evaluation import check_class_sizes

    recipe = _recipe(dataset, sampler, seed)
    names = dict(enumerate(dataset.classes["class_name"].astype(str)))
    usable = None
    for table in (tables or {}).values():
        if "n_shot" in recipe.settings:
            n_shot, n_query = recipe.settings["n_shot"], recipe.settings["n_query"]
            check_class_sizes(table, dataset.split_class_ids(recipe.split), n_shot, n_query, names)
        usable = table.image_ids if usable is None else np.intersect1d(usable, table.image_ids)
    return draw.draw(dataset, recipe, usable=usable)


def _recipe(dataset: Dataset, sampler: Any, seed: int = 0) -> draw.Recipe:
    if not isinstance(sampler, Mapping):
        raise BadInput(f'"sampler" is a dictionary such as {{"sampler": "uniform", "n_tasks": 100}}. Got {sampler!r}.')
    settings = {**DEFAULTS, **sampler}
    N_SHOT.check(settings["n_shot"])
    return draw.recipe_for(dataset, **settings, seed=seed)


# --- a first look, and how long it will take ---------------------------------------------------------------------


def testbeds(dataset: Dataset) -> list[str]:
    """Saved testbeds of a dataset that have images."""
    from fsviz.sampling.testbeds import list_testbeds, read_recipe

    found = []
    for name in list_testbeds():
        try:
            recipe = read_recipe(name)
        except FsvizError:
            continue
        if recipe.get("dataset") == dataset.name and recipe.get("n_shot", 1):
            found.append(name)
    return found


def testbed_titles(names: Iterable[str]) -> dict[str, str]:
    """Readable titles of saved testbeds: what their recipe says where the name was made from it, else the name."""
    from fsviz.sampling.testbeds import read_recipe

    titles: dict[str, str] = {}
    for name in names:
        try:
            titles[name] = draw.title_of(name, read_recipe(name))
        except FsvizError:
            titles[name] = name
    shared = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    return {name: name if title in shared else title for name, title in titles.items()}


def look_testbed(dataset: Dataset, spec: Spec, n_tasks: int = 200) -> Testbed:
    """A few of the tasks a spec would evaluate: drawn like them, or spread evenly over its testbed."""
    tables = {name: features.load(dataset, name) for name in _checked_backbones(spec.get("backbones"))}
    if spec.get("sampler") is not None:
        few = min(n_tasks, _recipe(dataset, spec["sampler"]).n_tasks)
        spec = {**spec, "sampler": {**spec["sampler"], "n_tasks": few}}
    testbed = resolve_testbed(spec, dataset, tables)
    for table in tables.values():
        _check(table, testbed)
    if len(testbed.tasks) > n_tasks:
        which = spread_evenly(len(testbed.tasks), n_tasks)
        testbed = Testbed(testbed.name, testbed.tasks.take(which), testbed.recipe)
    return testbed


def spread_evenly(n_tasks: int, most: int) -> np.ndarray:
    """All positions of a testbed, or `most` of them that are evenly spread over it."""
    return np.unique(np.linspace(0, n_tasks - 1, min(n_tasks, most)).round().astype(int))


def look(dataset: Dataset, backbone: str, method: str, parameters: RawSettings, tasks: Tasks) -> Predictions:
    """What one method says of these tasks, computed here and now."""
    from fsviz.evaluation import evaluate

    table = features.load(dataset, backbone)
    centre = centre_for(method, dataset, table, tasks.class_ids, bool(parameters.get("unit_length")))
    with half_the_cores():
        return evaluate(table, tasks, method, dict(parameters), centre=centre)


def centre_for(
    method: str, dataset: Dataset, table: Features, class_ids: np.ndarray, unit_length: bool = False
) -> np.ndarray | None:
    """Mean features (D,) for a method that centres, None for the others.

    The mean is that of split train where no class of `class_ids`, the classes of the tasks, is in it (Wang et al.
    2019): what a query is compared with then owes nothing to the queries. Elsewhere it is that of all images.
    """
    from fsviz.methods import get

    return _centre(dataset, table, class_ids, unit_length) if get(method).wants_centre else None


def _centre(dataset: Dataset, table: Features, class_ids: np.ndarray, unit_length: bool) -> np.ndarray:
    from fsviz.evaluation import features_mean

    train = np.asarray(dataset.splits.get("train", ()), dtype=np.int64)
    apart = not np.isin(train, class_ids).any() and np.isin(train, table.class_ids).any()
    return features_mean(table, train if apart else None, unit_length)


def no_prediction(
    found: Mapping[str, Mapping[str, Any]],
    quarters: Mapping[str, Sequence[float]] | None = None,
    how: str = "--distance features",
) -> str:
    """A sentence where coarsity does not tell the accuracy of these tasks; "" where it does, or is not known.

    found     name -> its rank correlation of coarsity with accuracy: "value" and "ci95"
    quarters  name -> its accuracy on the tasks from the finest to the coarsest quarter
    how       where another distance is chosen
    It tells nothing where the whole interval is not above 0: tasks whose classes are far apart should be easier.
    """
    known = {name: one for name, one in found.items() if one["ci95"][0] is not None and np.isfinite(one["ci95"][0])}
    without = {name: one for name, one in known.items() if one["ci95"][0] <= 0}
    if not without or len(without) < len(known):
        return ""
    name, one = next(iter(without.items()))
    low, high = one["ci95"]
    cut = (quarters or {}).get(name) or ()
    shown = f", and quarters from the finest to the coarsest are {', '.join(f'{q:.1f}' for q in cut)}%" if cut else ""
    return (
        f"That coarsity tells how hard a task is does not show here: its rank correlation with the accuracy of {name} "
        f"is {one['value']:.2f} ({low:.2f} to {high:.2f}){shown}. Among broad classes, how alike they look often says "
        f"more than what they mean: draw and measure by the distance of features ({how})."
    )


def scale_notes(chosen: Iterable[Chosen]) -> list[str]:
    """What to know of the methods (name, parameters) whose predictions change with the scale of the features."""
    titles: dict[str, list[str]] = {}  # by reason
    for one in chosen:
        method = METHODS.get(one["name"])
        if method is not None and "scale" not in method.invariant_to(one["parameters"]):
            titles.setdefault(method.units, []).append(method.title)
    return [
        f"{', '.join(dict.fromkeys(names))}: predictions depend on the scale of the features, because {reason}."
        for reason, names in titles.items()
    ]


def guess_seconds(dataset: Dataset, backbone: str, method: str, parameters: RawSettings, tasks: Tasks) -> float:
    """About how long these tasks take on one ordinary core, from a count of operations; `estimate` measures it."""
    chosen = METHODS[method]
    entry = Entry(backbone, method, chosen.title, chosen.checked(parameters))
    return len(tasks) * _seconds_per_task(entry, tasks, features.load(dataset, backbone).values.shape[1])


def fit(dataset: Dataset, backbones: Sequence[str], given: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of an evaluation: those given, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, given, DEFAULTS, backbones)


def feasible_sampler(dataset: Dataset, backbone: str, split: str | None = None, **usual: int) -> draw.TaskSpec:
    """Settings of the sampler that this dataset can give, as near to the defaults (and to `usual`) as possible."""
    candidates = [split or "test", "test", *dataset.splits, "all"]
    split = next(s for s in candidates if s == "all" or (s in dataset.splits and len(dataset.splits[s]) >= 2))
    given = {"split": split, "sampler": draw.default_sampler(dataset)}
    wanted = {**DEFAULTS, **usual}
    found = fitting.fit(dataset, given, wanted, [backbone])
    return cast(draw.TaskSpec, {**given, **found.values, "n_tasks": wanted["n_tasks"]})


def estimate(spec: Spec, seconds: float = 0.25) -> list[Timing]:
    """How long every entry of a spec would take on this machine, from a trial of a few tasks.

    seconds  about how long one entry's trial may take
    Rows: label, method, backbone, per_task, seconds.
    """
    dataset = datasets.load(_text(spec, "dataset"))
    chosen, _ = _checked_methods(spec.get("methods"))
    tables = {name: features.load(dataset, name) for name in _checked_backbones(spec.get("backbones"))}
    device = resolved_device(str(spec.get("device", "auto")))
    n_tasks, tasks = _trial_tasks(spec, dataset, tables)
    rows: list[Timing] = []
    with threads(int(spec.get("threads") or half())):
        for entry in entries({"backbones": list(tables), "methods": chosen}):
            total = _timed(entry, tables[entry.backbone], tasks, n_tasks, device, seconds)
            rows.append(
                {
                    "label": entry.label,
                    "method": entry.method,
                    "backbone": entry.backbone,
                    "per_task": total / n_tasks,
                    "seconds": total,
                }
            )
    return rows


def _timed(entry: Entry, table: Features, tasks: Tasks, n_tasks: int, device: str, seconds: float) -> float:
    """Seconds for n_tasks. They are worked on in batches, and a batch costs something before its first task.

    A whole batch is timed where that is quick; else the answer lies between what the largest one tried says (its
    share of the cost of a batch is too large) and what two sizes say (their difference is the cost of tasks alone).
    """
    from fsviz.evaluation import chunk_size, evaluate, features_mean

    method = entry.code
    centre = features_mean(table) if method.wants_centre else None  # once per run, not per batch

    def measured(n: int) -> float:
        part, settings = tasks.take(slice(0, n)), dict(entry.parameters)
        start = time.perf_counter()
        evaluate(table, part, method, settings, device=device, centre=centre)
        return time.perf_counter() - start

    shape = (tasks.n_way, tasks.support.shape[2], tasks.query.shape[2], table.values.shape[1])
    batch = max(1, min(chunk_size(*shape, entry.pairwise), n_tasks))
    measured(1)  # the first call loads what later ones have
    small, large = 1, min(batch, len(tasks), 4)
    before = after = measured(small)
    while large > small:
        before, after = after, measured(large)
        if after > seconds / 2 or large >= min(batch, len(tasks)):
            break
        small, large = large, min(4 * large, batch, len(tasks))
    at_most = n_tasks * after / large
    if large in (small, batch):
        return at_most
    per_task = max(after - before, 0.0) / (large - small)
    at_least = math.ceil(n_tasks / batch) * max(after - large * per_task, 0.0) + n_tasks * per_task
    return math.sqrt(at_most * max(at_least, at_most / 16))


def _trial_tasks(spec: Spec, dataset: Dataset, tables: Mapping[str, Features]) -> tuple[int, Tasks]:
    if spec.get("testbed") is None and spec.get("sampler") is not None:
        n_tasks = _recipe(dataset, spec["sampler"]).n_tasks
        few: draw.TaskSpec = {**spec["sampler"], "n_tasks": min(n_tasks, 256)}
        if "distances" in SAMPLERS[str(few.get("sampler", SAMPLER.default))].needs:
            few["sampler"] = "uniform"  # quicker, and as long to classify
        return n_tasks, sample_testbed(dataset, few, 0, tables).tasks
    testbed = resolve_testbed(spec, dataset, tables)
    for table in tables.values():
        _check(table, testbed)
    return len(testbed.tasks), testbed.tasks.take(slice(0, 256))


def devices() -> list[dict[str, str]]:
    """What evaluations can run on here, the fastest first: torch's name of each device and what it is."""
    import torch

    found = [
        {"device": f"cuda:{i}", "name": f"{torch.cuda.get_device_name(i)} (cuda:{i})"}
        for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    ]
    n = cores()
    return [*found, {"device": "cpu", "name": f"CPU, {n} core{'s' if n != 1 else ''}"}]


# --- checking ----------------------------------------------------------------------------------------------------


def _text(spec: RawSettings, name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f'An evaluation\'s spec needs "{name}", a name. Got {value!r}.')
    return value


def _seed(spec: RawSettings) -> int:
    return SEED.check(spec.get("seed", SEED.default))


def _chunk(spec: RawSettings) -> int | None:
    chunk = spec.get("chunk")
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise BadInput(f"chunk, the number of tasks per chunk, must be a whole number from 1. Got {chunk!r}.")
    return chunk


def _checked_methods(chosen: Any) -> tuple[list[Chosen], list[Failed]]:
    """The methods with all their parameters, and those of the user that cannot be loaded while others can."""
    if not isinstance(chosen, list | tuple) or not chosen:
        raise BadInput('An evaluation needs at least one method: "methods": [{"name": "protonet"}].')
    found: list[Chosen] = []
    failed: list[Failed] = []
    for one in chosen:
        one = {"name": one} if isinstance(one, str) else one
        if not isinstance(one, Mapping):
            raise BadInput(f'A method is {{"name": ..., "parameters": {{...}}}}. Got {one!r}.')
        name = str(one.get("name"))
        code = None if name in METHODS else user_methods.code_of(name)
        try:
            method = METHODS[name] if code is None else user_methods.declared(code)
        except BrokenCode as error:
            assert code is not None
            failed.append({"method": code.name, "label": code.name, "backbone": "", "error": str(error)})
            continue
        parameters = method.checked(one.get("parameters"), str(one.get("preset") or ""))
        checked: Chosen = {"name": method.name, "parameters": parameters}
        if code is not None:
            checked["own"] = user_methods.recorded(code, method)
            if any(one["name"] == method.name and one.get("own") != checked["own"] for one in found):
                raise BadInput(
                    f"Two methods are named {method.name}, and a table could not tell them apart. Rename one."
                )
        if checked in found:
            raise BadInput(
                f"{method.title} is listed twice with the same parameters. Remove one or change its parameters."
            )
        found.append(checked)
    if not found:
        raise BrokenCode(" ".join(one["error"] for one in failed))
    return found, failed


def _checked_backbones(chosen: Any) -> list[str]:
    if not isinstance(chosen, list | tuple) or not chosen:
        raise BadInput('An evaluation needs at least one backbone with features: "backbones": ["efficientnet_lite0"].')
    return list(dict.fromkeys(str(name) for name in chosen))


def _check(table: Features, testbed: Testbed) -> None:
    from fsviz.evaluation import check_tasks

    try:
        check_tasks(table, testbed.tasks)
    except FsvizError as error:
        raise type(error)(f"Testbed {testbed.name!r} cannot be evaluated. {error}") from error


def _fingerprint(table: Features) -> Fingerprint:
    """What tells these features from others of the same name: their key, shape and images."""
    ids = hashlib.blake2b(np.ascontiguousarray(table.image_ids, dtype=np.int64).tobytes(), digest_size=8).hexdigest()
    key = hashlib.blake2b(repr(sorted(dict(table.key).items())).encode(), digest_size=8).hexdigest()
    return {"rows": int(table.values.shape[0]), "dims": int(table.values.shape[1]), "images": ids, "key": key}


@lru_cache(maxsize=4)
def _features_cached(dataset: str, backbone: str, fingerprint: tuple[Any, ...], stamp: str) -> Features:
    """The features of a run, if they are still those; `stamp` changes when they are replaced or gone."""
    try:
        table = features.load(datasets.load(dataset), backbone)
    except Missing as error:
        raise Missing(f"{error} The run's finished chunks are kept: resume it afterwards.") from error
    if tuple(sorted(_fingerprint(table).items())) != fingerprint:
        raise BadInput(
            f"The features of {dataset!r} under {backbone!r} are not the ones this run started with, and mixing them "
            "would give numbers of neither. Start a new run."
        )
    return table


@lru_cache(maxsize=8)
def _centre_cached(
    dataset: str,
    backbone: str,
    fingerprint: tuple[Any, ...],
    stamp: str,
    folder: str,
    file: str,
    unit_length: bool,
) -> np.ndarray | None:
    """The centre, once per run: reading all features takes longer than most chunks."""
    table = _features_cached(dataset, backbone, fingerprint, stamp)
    return _centre(datasets.load(dataset), table, snapshot.tasks(folder, file).class_ids, unit_length)


def _chunk_tasks(entry: Entry, tasks: Tasks, dims: int) -> int:
    """Tasks per chunk, so that one takes about a second: a rough count of operations, the same on every machine."""
    from fsviz.evaluation import chunk_size

    size = int(np.clip(_CHUNK_SECONDS / _seconds_per_task(entry, tasks, dims), 1, _LARGEST_CHUNK))
    batch = chunk_size(tasks.n_way, tasks.support.shape[2], tasks.query.shape[2], dims, entry.pairwise)
    return size - size % batch if size >= batch else size


def _seconds_per_task(entry: Entry, tasks: Tasks, dims: int) -> float:
    """Gathering the images, then steps of matrix products over ways, then pairs of images where a method needs them."""
    images = tasks.n_way * (tasks.support.shape[2] + tasks.query.shape[2])
    steps = sum(
        int(value)
        for name, value in entry.parameters.items()
        if any(word in name for word in ("step", "iter", "epoch")) and isinstance(value, int | float)
    )
    in_a_step = images
    if entry.batch:
        steps, in_a_step = steps * math.ceil(tasks.n_way * tasks.support.shape[2] / entry.batch), entry.batch
    seconds = images * dims / 2e8 + steps * in_a_step * dims * tasks.n_way * 4 / 2.5e10
    seconds += steps * (in_a_step * tasks.n_way * 3e-8 + 3e-6)  # what a step does to scores, and its own overhead
    if entry.batch:
        seconds += steps * dims * tasks.n_way * 2e-9  # moving the weights is most of a step on few images
    if entry.pairwise:
        seconds += images**2 * (dims + 20 * max(steps, 10)) / 1e10
    return seconds


def _changed(name: str, value: Any) -> str:
    """A parameter in the label of a method, in words: "distance cosine", "unit length", "no centring"."""
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"


STUDY = Study(
    name="evaluate",
    title="evaluation",
    question="Which method suits these images?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summarise,
    partial=partial,
    finish=finish,
    n_bytes=n_bytes,
    requires_local=requires_local,
)
