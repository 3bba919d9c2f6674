"""What is known of this one task? Everything that fsviz measures, for one task of a testbed.

    name of a task -> the task -> answers of methods -> measures, and where they stand among the testbed's tasks
                               -> classes: distances, confusions, contexts; attributes; hard and easy support sets

`open_task` is what can be known in a moment. `spread` measures the other tasks of the testbed, so that a number can be
held against them: "harder than 83% of its tasks". Of a large testbed it takes some, evenly spread.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fsviz import evaluation, features
from fsviz.analyses import custom_task, run_comparison, task_measures
from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.measures import MEASURES, Measure
from fsviz.errors import BadInput, FsvizError, Missing
from fsviz.methods import METHODS
from fsviz.numerics import mean_and_ci95
from fsviz.records import PAD, Dataset, Predictions, Progress, TaskId, Tasks
from fsviz.studies import evaluate, support_sets
from fsviz.studies.support_sets import SupportSets
from fsviz.tasks import draw, snapshot
from fsviz.tasks.task_ids import ResolvedTestbed, name_testbed
from fsviz.taxonomy import DAG, DISTANCE, DISTANCES, Dag, maps

MAX_MEASURED = 200  # tasks of a testbed that a passport's numbers are held against at once
MAX_SHOWN = 25  # classes of a task that are held against each other, pair by pair
POSITION = "position"
ACCURACY = "accuracy of "
_AS_FAST = 3  # a method that is slower than so many times ProtoNet waits for a run
_STEP = 20  # tasks that are measured between two words on how far it is


@dataclass(frozen=True)
class MethodResult:
    """What one method said of the task, beside what it is right on in the whole testbed.

    source       the run it is from, "" where it was computed here
    predictions  of length one; None where a run did not keep them
    others       (n,) accuracy of the testbed's tasks that are known, NaN where not done; with `positions` (n,)
    """

    label: str
    method: str
    backbone: str
    accuracy: float
    predictions: Predictions | None = None
    source: str = ""
    positions: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    others: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def key(self) -> str:
        return f"{self.label} · {self.backbone}"

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy of the testbed's tasks that are known, and the half-width of its 95% interval."""
        if not np.isfinite(self.others).any():
            return np.nan, np.nan
        mean, half = mean_and_ci95(self.others)
        return float(mean), float(half)


@dataclass(frozen=True)
class MeasureValue:
    """One measure of the task, or why it is not known."""

    measure: Measure
    value: float
    why_not: str = ""


@dataclass(frozen=True)
class TaskProfile:
    """What is known of one task in a moment.

    tasks    the task alone
    answers  those of runs of its testbed, else of methods that answer at once; () without features or images
    values   every measure; of a task of classes only those that need no images
    """

    found: ResolvedTestbed
    position: int
    backbone: str
    tasks: Tasks
    answers: tuple[MethodResult, ...] = ()
    values: tuple[MeasureValue, ...] = ()

    @property
    def dataset(self) -> Dataset:
        return self.found.dataset

    @property
    def task_id(self) -> TaskId:
        return TaskId(self.found.name, self.position)

    @property
    def class_ids(self) -> np.ndarray:
        ids = self.tasks.class_ids[0]
        return ids[ids != PAD]

    @property
    def names(self) -> list[str]:
        return self.dataset.distinct_names(self.class_ids)

    @property
    def has_images(self) -> bool:
        return self.tasks.has_images

    def value(self, name: str) -> float:
        return next((v.value for v in self.values if v.measure.name == name), np.nan)


@dataclass(frozen=True)
class ValuesAmongTasks:
    """What was measured of the other tasks of a testbed.

    positions  (n,) which tasks: all, or some that are evenly spread
    n_tasks    how many there are
    table      a row per such task, a column per measure
    accuracy   label -> (n,) of the methods that were computed here
    """

    positions: np.ndarray
    n_tasks: int
    table: pd.DataFrame
    accuracy: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.positions) == self.n_tasks


@dataclass(frozen=True)
class Percentile:
    """Where a value of the task stands among the other tasks of its testbed.

    lower    share of the others with a lower value, those with the same count half; NaN where there are none
    harder   share of the others that are easier by this measure
    """

    value: float
    lower: float
    harder: float
    n: int


# Opening -----------------------------------------------------------------------------------------------------------


def open_task(
    found: ResolvedTestbed, position: int, backbone: str = "", of_runs: Sequence[MethodResult] = ()
) -> TaskProfile:
    """What can be known of a task in a moment.

    of_runs  what methods of recorded runs said of this task (see `answers_of_run`); others are then not computed
    """
    tasks = task_at(found, position)
    if not found.dataset.has_features or not tasks.has_images:
        passport = TaskProfile(found, position, "", tasks)
        return replace(passport, values=tuple(_values(passport)))
    backbone = backbone or draw.default_backbone(found.dataset)
    evaluation.check_tasks(features.load(found.dataset, backbone), tasks)
    answers = tuple(of_runs) or tuple(_answers(found.dataset, backbone, tasks))
    passport = TaskProfile(found, position, backbone, tasks, answers)
    return replace(passport, values=tuple(_values(passport)))


def task_at(found: ResolvedTestbed, position: int) -> Tasks:
    """One task of a testbed, alone."""
    n = len(found.tasks)
    if not 0 <= position < n:
        raise BadInput(
            f"This testbed has {n:,} task{'s' if n > 1 else ''}, at position{'s 0 to' if n > 1 else ''} {n - 1:,}. Got "
            f"{position:,}. Choose one of them."
        )
    return found.tasks.take(slice(position, position + 1))


def fast_methods(dataset: Dataset, backbone: str, tasks: Tasks) -> list[str]:
    """The methods that answer nearly as soon as ProtoNet, by a count of operations."""
    cost = {name: evaluate.guess_seconds(dataset, backbone, name, {}, tasks) for name in METHODS}
    return [name for name, seconds in cost.items() if seconds <= _AS_FAST * cost["protonet"]]


def _answers(dataset: Dataset, backbone: str, tasks: Tasks) -> list[MethodResult]:
    found = []
    for name in fast_methods(dataset, backbone, tasks):
        said = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), tasks)
        accuracy = float(evaluation.task_accuracy(said)[0])
        found.append(MethodResult(METHODS[name].title, name, backbone, accuracy, said))
    return found


def digest(found: ResolvedTestbed) -> str:
    """What runs of exactly these tasks are found by."""
    return snapshot.digest(found.tasks)


def is_of_testbed(spec: Any, wanted: str) -> bool:
    """Whether a recorded run evaluated exactly the tasks with this digest."""
    return evaluate.is_complete(spec) and any(part["tasks"]["digest"] == wanted for part in evaluate.run_testbeds(spec))


def results_of_run(
    run_id: str, spec: evaluate.ResolvedSpec, chunks: Any, wanted: str, position: int, summary: Any = None
) -> list[MethodResult]:
    """What the methods of a run said of one of its tasks.

    chunks  chunks(indices) -> those of the run, None for all
    """
    found = []
    for line in run_comparison.method_runs(run_id, spec, chunks(None), summary):
        if line.digest != wanted or not np.isfinite(line.accuracy[position]):
            continue
        size = spec["chunk_tasks"][line.entry]
        index = evaluate.chunks_of(spec, line.entry)[position // size]
        said: Predictions | None = None
        try:
            (chunk,) = chunks([index])
            said = Predictions.from_arrays(chunk).take(slice(position - int(chunk["start"]), None)).take(slice(0, 1))
        except (FsvizError, KeyError, ValueError):  # its accuracy is known all the same
            said = None
        positions = np.arange(len(line.accuracy))
        accuracy = np.asarray(line.accuracy, dtype=float)
        found.append(
            MethodResult(
                line.label, line.method, line.backbone, float(accuracy[position]), said, run_id, positions, accuracy
            )
        )
    return found


def newest_of_each(answers: Sequence[MethodResult]) -> list[MethodResult]:
    """One answer per method and backbone: the first, as runs are listed newest first."""
    return list({one.key: one for one in reversed(answers)}.values())[::-1]


def _values(passport: TaskProfile) -> list[MeasureValue]:
    found = []
    for measure in MEASURES.values():
        value, why_not = np.nan, ""
        try:
            value = _value(passport, measure)
            why_not = "" if np.isfinite(value) else "It is not defined for a task like this."
        except FsvizError as error:
            why_not = str(error)
        found.append(MeasureValue(measure, value, why_not))
    return found


def _value(passport: TaskProfile, measure: Measure) -> float:
    dataset, tasks = passport.dataset, passport.tasks
    if measure.name in tasks.measures:
        return float(tasks.measures[measure.name][0])
    if not passport.backbone:
        if measure.name in (known := draw.with_coarsity(tasks, dataset).measures):
            return float(known[measure.name][0])
        raise Missing("That takes features of the task's images, and there are none.")
    if "confusions" in measure.needs:  # pair by pair: all pairs of the split would take a while
        return float(np.triu(custom_task.pair_confusions(dataset, passport.backbone, passport.class_ids)).sum())
    return float(task_measures.measure_tasks(tasks, dataset, passport.backbone, [measure.name])[measure.name].iloc[0])


# Among the others --------------------------------------------------------------------------------------------------


def values_among_tasks(
    found: ResolvedTestbed,
    backbone: str = "",
    most: int = MAX_MEASURED,
    methods: Sequence[str] = (),
    progress: Progress | None = None,
) -> ValuesAmongTasks:
    """Measures tasks of a testbed, and what these methods get right of them."""
    positions = evaluate.spread_evenly(len(found.tasks), most)
    some = found.tasks.take(positions)
    dataset = found.dataset
    if not backbone or not dataset.has_features or not some.has_images:
        known = draw.with_coarsity(some, dataset).measures
        return ValuesAmongTasks(
            positions, len(found.tasks), pd.DataFrame({k: v for k, v in known.items() if k in MEASURES})
        )
    steps = [slice(start, start + _STEP) for start in range(0, len(some), _STEP)]
    rows, total = [], len(steps) * _STEP + len(methods) * _STEP
    for step in steps:
        if progress is not None:
            progress(step.start, total, "tasks of its testbed")
        rows.append(task_measures.measure_tasks(some.take(step), dataset, backbone))
    accuracy = {}
    for i, name in enumerate(methods):
        if progress is not None:
            progress((len(steps) + i) * _STEP, total, "tasks of its testbed")
        said = evaluate.predict_tasks(dataset, backbone, name, METHODS[name].checked(), some)
        accuracy[METHODS[name].title] = evaluation.task_accuracy(said)
    table = pd.concat(rows, ignore_index=True)
    for name, values in some.measures.items():  # as the tasks carry them: coarsity by the distance they were drawn with
        if name in MEASURES:
            table[name] = values
    return ValuesAmongTasks(positions, len(found.tasks), table, accuracy)


def with_values_among_tasks(passport: TaskProfile, among: ValuesAmongTasks) -> TaskProfile:
    """The passport with what methods that were computed here get right of other tasks."""
    known = [
        replace(one, positions=among.positions, others=among.accuracy[one.label])
        if not one.source and one.label in among.accuracy
        else one
        for one in passport.answers
    ]
    return replace(passport, answers=tuple(known))


def percentile(value: float, others: np.ndarray, direction: str) -> Percentile:
    """Where a value stands among those of other tasks."""
    others = np.asarray(others, dtype=float)
    others = others[np.isfinite(others)]
    if not len(others) or not np.isfinite(value):
        return Percentile(value, np.nan, np.nan, len(others))
    same = np.isclose(others, value, rtol=1e-6, atol=1e-12)
    lower = float(((others < value) & ~same).mean() + same.mean() / 2)
    return Percentile(value, lower, lower if direction == "harder" else 1 - lower, len(others))


def percentiles(passport: TaskProfile, among: ValuesAmongTasks) -> dict[str, Percentile]:
    """Every measure that is known of the task and of others, by name."""
    apart = among.positions != passport.position
    found = {}
    for one in passport.values:
        if one.measure.name in among.table and np.isfinite(one.value):
            others = among.table[one.measure.name].to_numpy()[apart]
            found[one.measure.name] = percentile(one.value, others, one.measure.direction)
    return found


def accuracy_percentile(passport: TaskProfile, answer: MethodResult) -> Percentile:
    """Where the accuracy of a method on this task stands among those on the others."""
    apart = answer.positions != passport.position
    return percentile(answer.accuracy, answer.others[apart], "easier")


def orders(passport: TaskProfile, among: ValuesAmongTasks | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the tasks of a testbed can be gone through by: name -> positions, and their values.

    "position", measures by name, and "accuracy of METHOD".
    """
    everyone = np.arange(len(passport.found.tasks))
    found = {POSITION: (everyone, everyone.astype(float))}
    for name, values in passport.found.tasks.measures.items():
        found[name] = (everyone, np.asarray(values, dtype=float))
    if among is not None:
        for name in among.table:
            found.setdefault(str(name), (among.positions, among.table[name].to_numpy(dtype=float)))
    for one in passport.answers:
        if len(one.others):
            found[f"{ACCURACY}{one.key}"] = (one.positions, one.others)
    return found


def neighbours(
    passport: TaskProfile, positions: np.ndarray, values: np.ndarray, own: float
) -> tuple[int | None, int | None]:
    """The tasks before and after this one by a value, of equal ones by their position; None at an end."""
    known = np.isfinite(values) & (positions != passport.position)
    positions, values = positions[known], values[known]
    if not np.isfinite(own) or not len(positions):
        return None, None
    order = np.lexsort((positions, values))
    here = (values < own) | ((values == own) & (positions < passport.position))
    place = int(here.sum())
    before = int(positions[order[place - 1]]) if place else None
    return before, int(positions[order[place]]) if place < len(order) else None


# Its classes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassPairs:
    """A number for every two classes of the task (W, W).

    most  the largest number of its kind, for a scale that is the same for every task
    """

    name: str
    title: str
    values: np.ndarray
    what: str
    most: float


def split_of(passport: TaskProfile) -> str:
    """The split that the task is of: its recipe's, else the smallest that holds its classes."""
    dataset, said = passport.dataset, str(passport.found.testbed.recipe.get("split", ""))
    splits = [said] if said in dataset.splits else []
    splits += sorted(dataset.splits, key=lambda name: len(dataset.splits[name]))
    return next((s for s in splits if np.isin(passport.class_ids, dataset.split_class_ids(s)).all()), "all")


def class_pairs(passport: TaskProfile) -> list[ClassPairs]:
    """How far apart the classes are and how much they are mixed up, by everything that is known."""
    dataset, backbone, ids = passport.dataset, passport.backbone, passport.class_ids
    if not 2 <= len(ids) <= MAX_SHOWN:
        return []
    found, split, recipe = [], split_of(passport), passport.found.testbed.recipe
    places = _places(passport, split)
    asked = str(recipe.get("distance", DISTANCE.default))
    kinds = [asked] if asked in draw.possible_distances(dataset) else []
    kinds += [str(DISTANCE.default), "features"]
    for kind in dict.fromkeys(kinds):
        if kind not in draw.possible_distances(dataset) or (kind == "features" and not backbone):
            continue
        try:
            whole = draw.class_distances(dataset, split, kind, str(recipe.get("dag", DAG.default)), backbone)
        except FsvizError:  # a class outside the taxonomy
            continue
        title = DISTANCES[kind].title
        where = "in features" if kind == "features" else "in meaning"
        found.append(
            ClassPairs(
                kind, f"Distance {where}", whole[np.ix_(places, places)], f"Distance {where} ({title}).", whole.max()
            )
        )
    if backbone:
        try:
            bits = custom_task.pair_confusions(dataset, backbone, ids)
            told = "How much the backbone mixes up two classes, in bits: 1 is as much as can be. By all their images."
            found.append(ClassPairs("confusion", "Confusion", bits, told, 1.0))
        except FsvizError:
            pass
    return found


def predicted_pairs(answer: MethodResult, n_way: int) -> np.ndarray:
    """(W, W) how many queries of each class (rows) were named as each class."""
    assert answer.predictions is not None
    said = answer.predictions.predicted[0]
    found = np.zeros((n_way, n_way), dtype=np.int64)
    for way in range(n_way):
        named = said[way][said[way] != PAD]
        np.add.at(found[way], named, 1)
    return found


def tree(passport: TaskProfile) -> tuple[Dag, list[int]] | None:
    """The graph of meanings above the split's classes, and the task's places in it; None where there is none."""
    if passport.dataset.taxonomy is None or len(passport.class_ids) > MAX_SHOWN:
        return None
    split = split_of(passport)
    try:
        graph = maps.spanning_graph(passport.dataset, split, str(passport.found.testbed.recipe.get("dag", DAG.default)))
    except FsvizError:
        return None
    return graph, _places(passport, split)


def _places(passport: TaskProfile, split: str) -> list[int]:
    """Where the task's classes stand among those of a split."""
    ids = passport.dataset.split_class_ids(split).tolist()
    return [ids.index(int(c)) for c in passport.class_ids]


def contexts(passport: TaskProfile) -> pd.DataFrame | None:
    """Per class the contexts of its support and of its queries with how often each, and how many queries were taken in
    a context of the support; None where contexts are not known."""
    images = passport.dataset.images
    if images is None or "context" not in images.columns or not passport.has_images:
        return None
    of_image = passport.dataset.image_contexts()
    rows = []
    for way, name in enumerate(passport.names):
        support, query = (side[0, way][side[0, way] != PAD] for side in (passport.tasks.support, passport.tasks.query))
        seen = of_image[query]
        known = seen[seen != ""]
        rows.append(
            {
                "class": name,
                "support": _counted(of_image[support]),
                "query": _counted(seen),
                "shared": int(np.isin(known, of_image[support]).sum()),
                "n": len(known),
            }
        )
    return pd.DataFrame(rows)


def _counted(values: np.ndarray) -> str:
    names, counts = np.unique(values[values != ""], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{names[i]} {counts[i]}" if counts[i] > 1 else str(names[i]) for i in order)


@dataclass(frozen=True)
class AttributeGap:
    """How support and queries differ in one attribute, class by class on average, and among other tasks."""

    name: str
    gap: float
    in_deviations: bool
    standing: Percentile


def gaps(passport: TaskProfile, most: int = MAX_MEASURED) -> list[AttributeGap]:
    """Every attribute of the images, the largest gap beside that of other tasks first."""
    dataset = passport.dataset
    if not passport.has_images or not attribute_gaps.attribute_names(dataset):
        return []
    positions = evaluate.spread_evenly(len(passport.found.tasks), most)
    others = passport.found.tasks.take(positions[positions != passport.position])
    mine = attribute_gaps.measure_gaps(dataset, passport.tasks, by="class")
    theirs = attribute_gaps.measure_gaps(dataset, others, by="class") if len(others) else {}
    found = []
    for name, gap in mine.items():
        size = float(gap.gap[0])
        beside = theirs[name].gap if name in theirs else np.zeros(0)
        found.append(AttributeGap(name, size, gap.attribute.is_numeric, percentile(size, beside, "harder")))
    return sorted(found, key=lambda g: -np.nan_to_num(g.standing.harder, nan=np.nan_to_num(g.gap)))


# Other support sets ------------------------------------------------------------------------------------------------


def support_sets_of(passport: TaskProfile, classifier: str = "protonet") -> SupportSets:
    """The hard and the easy support sets for the same queries, as FastDiffSel finds them, beside the task's own."""
    if not passport.backbone:
        raise Missing("Hard and easy support sets need features of the images.")
    dataset, recipe = passport.dataset, passport.found.testbed.recipe
    table = features.load(dataset, passport.backbone)
    spec = support_sets.check(
        {
            "dataset": dataset.name,
            "backbone": passport.backbone,
            "split": split_of(passport),
            "n_way": len(passport.class_ids),
            "n_shot": passport.tasks.support.shape[2],
            "n_query": passport.tasks.query.shape[2],
            "classifier": classifier,
            "keep_groups": bool(recipe.get("keep_groups", True)),
        }
    )
    alone = replace(passport.tasks, measures={})
    return support_sets.search_and_classify(spec, alone, table, 0)


# In numbers --------------------------------------------------------------------------------------------------------


def profile_dict(passport: TaskProfile, among: ValuesAmongTasks, sets: SupportSets | None = None) -> dict[str, Any]:
    """A passport as a command gives it; what is not known is null."""
    stands = percentiles(passport, among)
    told: dict[str, Any] = {
        "task": str(passport.task_id),
        "testbed": passport.found.title,
        "dataset": passport.dataset.name,
        "position": passport.position,
        "n_tasks": among.n_tasks,
        "n_measured": len(among.positions),
        "backbone": passport.backbone or None,
        "classes": passport.names,
    }
    for side in ("support", "query"):
        images = getattr(passport.tasks, side)[0]
        told[side] = [[int(i) for i in row if i != PAD] for row in images] if passport.has_images else None
    told["measures"] = [
        {
            "measure": one.measure.name,
            "title": one.measure.title,
            "value": _known(one.value),
            "higher_is": one.measure.direction,
            "percentile": _percent(stands[one.measure.name].lower) if one.measure.name in stands else None,
            "harder_than": _percent(stands[one.measure.name].harder) if one.measure.name in stands else None,
            "why_not": one.why_not or None,
        }
        for one in passport.values
    ]
    told["methods"] = [
        {
            "method": one.label,
            "backbone": one.backbone,
            "accuracy": 100 * one.accuracy,
            "mean": _percent(one.mean[0]),
            "ci95": _percent(one.mean[1]),
            "n_tasks": int(np.isfinite(one.others).sum()),
            "harder_than": _percent(accuracy_percentile(passport, one).harder),
            "run": one.source or None,
        }
        for one in passport.answers
    ]
    told["pairs"] = {pairs.name: pairs.values.tolist() for pairs in class_pairs(passport)}
    told["gaps"] = {g.name: _known(g.gap) for g in gaps(passport)}
    told["support_sets"] = {w: 100 * float(sets.accuracy(w)[0]) for w in support_sets.SETS} if sets else None
    return told


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _percent(share: float) -> float | None:
    return 100 * float(share) if np.isfinite(share) else None


def command(passport: TaskProfile) -> str:
    """The command that tells the same."""
    more = ["--backbone", passport.backbone] if passport.backbone else []
    return shlex.join(["fsviz", "passport", str(passport.task_id), *more])


def first_task(dataset: Dataset) -> TaskId:
    """A task to begin with: the first of those that the dataset's tasks are usually drawn as."""
    sampler = draw.default_sampler(dataset)
    if dataset.has_features:
        backbone = draw.default_backbone(dataset)
        asked = {**evaluate.feasible_sampler(dataset, backbone, n_tasks=MAX_MEASURED), "sampler": sampler}
        bed = evaluate.sample_testbed(dataset, asked, 0, {backbone: features.load(dataset, backbone)})
        return TaskId(name_testbed(dataset, bed.tasks, bed.recipe, (backbone,)), 0)
    n_way = min(5, len(dataset.split_class_ids(draw.default_split(dataset))))
    bed = draw.sample(dataset, sampler=sampler, n_way=n_way, n_tasks=MAX_MEASURED)
    return TaskId(name_testbed(dataset, bed.tasks, bed.recipe), 0)
