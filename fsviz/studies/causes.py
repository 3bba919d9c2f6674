"""What makes these tasks hard? Every measure of every task, set against what methods got right.

    tasks -> measures (fsviz.difficulty.measures) and accuracies -> correlations, families of measures
          -> a regression that has not seen the task -> shares of the causes -> one sentence

Tasks are drawn by the settings of tasks (see fsviz.tasks.draw), or those of a "testbed", or those of an evaluation
("run"), whose accuracies are then used too; "most" takes the first so many. A chunk holds every measure of its tasks,
and every method's accuracy.

After all five papers; that causes are weighed against each other is of this project.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.analyses import task_measures
from fsviz.difficulty.measures import CAUSES, EASED, MEASURES, STAGES, Cause, Stage
from fsviz.errors import BadInput, UnknownName
from fsviz.evaluation import Correlation, Explained, Share
from fsviz.methods import METHOD_NAMES, METHODS
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks, Testbed
from fsviz.settings import RawSettings, Schema, Setting, Value, to_args
from fsviz.studies import evaluate
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.tasks import draw, fitting, snapshot
from fsviz.workspace import home, plain_json

__all__ = ["STAGES", "Correlation", "Explained", "MeasuredTasks", "Share"]

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
    choices={name: words for name, words in STAGES.items() if name != "answered"},
)
BRUSH = Setting(
    "brush",
    "Chosen tasks",
    "Ranges that tasks are chosen by, such as accuracy~0.2~0.6;coarsity~10~25; the hardest tenth where empty.",
    "text",
    "",
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
FEW = 0.1  # the share of tasks that count as the hardest
ALIKE = 0.6  # rank correlation from which on measures are one family
ACCURACY, EXPECTED, RANK = "accuracy", "expected", "rank "
_CHUNK_IMAGES = 12_000  # images in the tasks of a chunk: two or three seconds on one core
_SECONDS = 3.5e-4  # per image of a task, on one ordinary core
_FEWEST = 60  # tasks that a regression can be learned from


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
    """What the summary says of one method; the shares and luck are there where a regression could be learned."""

    accuracy: Any
    ci95: Any
    correlations: dict[str, dict[str, float | None]]
    explained: dict[Stage, CausesDict]
    shares: dict[Cause, CausesDict]
    alone: dict[Cause, CausesDict]
    luck: Any
    sentence: str


class CausesSummary(TypedDict, total=False):
    """What came out of a run: while it is under way, how many tasks are measured and how accurate methods were."""

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


# --- measuring ---------------------------------------------------------------------------------------------------


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


def _size(spec: CausesSpec) -> tuple[int, int]:
    """How many tasks a checked spec measures, and how many images one of them has at most."""
    if not (spec["run"] or spec["testbed"]):
        n_tasks = int(spec["n_tasks"])
        return min(n_tasks, spec["most"] or n_tasks), draw.max_images(spec)
    tasks = tasks_of(spec, *_source(spec)).tasks
    return len(tasks), _images_per_task(tasks)


def work(spec: CausesSpec) -> Work:
    n_tasks, images = _size(spec)
    return Work(n_tasks, "tasks", n_tasks * images * _SECONDS)


def shorten(spec: CausesSpec, n: int) -> CausesSpec | None:
    """The first tasks alone, enough for a regression."""
    n_tasks, _ = _size(spec)
    return {**spec, "most": max(n, _FEWEST)} if n_tasks > _FEWEST else None


def _images_per_task(tasks: Tasks) -> int:
    return int(np.prod(tasks.support.shape[1:]) + np.prod(tasks.query.shape[1:]))


def run_chunk(spec: CausesSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Every measure of a range of tasks, and every method's accuracy."""
    dataset, table = _source(spec)
    tasks = snapshot.tasks(spec["folder"], start=start, stop=stop)
    found: dict[str, np.ndarray] = {}
    of_image = task_measures.of_images(tasks, table)
    said = {}
    for method in spec["methods"]:
        said[method] = evaluate.predict_tasks(dataset, table.backbone, method, METHODS[method].checked(), tasks)
        found[f"accuracy_{method}"] = evaluation.task_accuracy(said[method])
    answers = said[spec["methods"][0]] if said else "protonet"
    for name, measure in MEASURES.items():
        if name in of_image:
            found[f"measure_{name}"] = of_image[name]
        elif name not in spec["unknown"]:
            found[f"measure_{name}"] = task_measures.measured(measure, tasks, dataset, table, answers)
    return found


def collect(spec: CausesSpec, chunks: Sequence[Arrays]) -> MeasuredTasks:
    """The measured tasks of the finished chunks."""
    if not chunks:
        raise BadInput("No task of this run has been measured yet. Wait for its first part.")
    rows = joined(chunks)[0]
    known = {n.removeprefix("measure_"): v for n, v in rows.items() if n.startswith("measure_")}
    lost = {n: "It is not defined for tasks like these." for n, v in known.items() if not np.isfinite(v).any()}
    accuracy = {METHODS[n.removeprefix("accuracy_")].title: v for n, v in rows.items() if n.startswith("accuracy_")}
    ordered = {name: known[name] for name in MEASURES if name in known and name not in lost}
    tasks = snapshot.tasks(spec["folder"]).take(rows["positions"])
    return MeasuredTasks(spec, tasks, ordered, accuracy, {**spec["unknown"], **lost}, spec["recipe"])


def with_predictions(found: MeasuredTasks, accuracy: Mapping[str, np.ndarray]) -> MeasuredTasks:
    """The same tasks with accuracies that were recorded elsewhere: of all tasks, in their order."""
    for label, values in accuracy.items():
        if len(values) != len(found):
            raise BadInput(f"{label} answered {len(values):,} tasks, and {len(found):,} were measured. Choose its run.")
    return replace(found, accuracy={**found.accuracy, **accuracy})


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: CausesSpec, folder: Path) -> CausesSpec:
    """Freezes the tasks of a spec into `folder`, and adds what they are like."""
    dataset, table = _source(spec)
    testbed = tasks_of(spec, dataset, table)
    snapshot.freeze(folder, testbed)
    tasks = testbed.tasks
    return {
        **spec,
        "n_measured": len(tasks),
        "images_per_task": _images_per_task(tasks),
        "digest": snapshot.digest(tasks),
        "unknown": task_measures.unknown(tasks, dataset, spec["backbone"]),
        "recipe": {**plain_json(dict(testbed.recipe)), "name": testbed.name},
    }


def parts(spec: CausesSpec) -> list[Part]:
    size = int(np.clip(_CHUNK_IMAGES // spec["images_per_task"], 1, 200))
    return [Part("", spec["n_measured"], size)]


def partial(spec: CausesSpec, chunks: Sequence[Arrays]) -> CausesSummary:
    """How many tasks are measured, while a run is under way."""
    if not chunks:
        return {"n_tasks": 0}
    found = collect(spec, chunks)
    return plain_json({"n_tasks": len(found), "methods": {k: _mean(v) for k, v in found.accuracy.items()}})


# --- what came out -----------------------------------------------------------------------------------------------


def summary(found: MeasuredTasks) -> CausesSummary:
    """Everything in numbers: per method its mean, correlations, shares and sentence; families of measures; what is not
    known and why."""
    spec = found.spec
    told: CausesSummary = {
        "dataset": spec["dataset"],
        "backbone": spec["backbone"],
        "testbed": spec["testbed"],
        "run": spec["run"],
        "n_tasks": len(found),
        "digest": spec["digest"],
        "unknown": dict(found.unknown),
        "families": families(found)[1],
        "methods": {},
    }
    for method, values in found.accuracy.items():
        told["methods"][method] = {**_mean(values), "correlations": _correlations_in_numbers(found, method)}
        try:
            by_stage = {stage: explained(found, method, stage) for stage in STAGE.choices}
        except BadInput as error:
            told["methods"][method]["sentence"] = str(error)
            continue
        told["methods"][method] |= {
            "explained": {cast(Stage, stage): _in_numbers(one.whole) for stage, one in by_stage.items()},
            "shares": {cast(Cause, cause): _in_numbers(one) for cause, one in by_stage["labelled"].lost.items()},
            "alone": {cast(Cause, cause): _in_numbers(one) for cause, one in by_stage["labelled"].alone.items()},
            "luck": finite(sampling_noise(found, method)),
            "sentence": headline(found, method, by_stage["labelled"]),
        }
    return plain_json(told)


def _mean(values: np.ndarray) -> MethodCauses:
    mean, ci95 = mean_and_ci95(values[np.isfinite(values)])
    return {"accuracy": finite(mean), "ci95": finite(ci95)}


def _in_numbers(share: Share) -> CausesDict:
    return {"share": finite(share.value), "low": finite(share.low), "high": finite(share.high), "over": share.over}


def _correlations_in_numbers(found: MeasuredTasks, method: str) -> dict[str, dict[str, float | None]]:
    rows = correlations(found, method)
    return {name: {k: finite(getattr(row, k)) for k in ("value", "low", "high")} for name, row in rows.items()}


def mean_accuracy(found: MeasuredTasks, method: str) -> tuple[float, float]:
    """The mean accuracy and half of its 95% interval over tasks."""
    mean, ci95 = mean_and_ci95(found.accuracy[method][np.isfinite(found.accuracy[method])])
    return float(mean), float(ci95)


def sampling_noise(found: MeasuredTasks, method: str) -> float:
    """The share of the differences in accuracy that the draw of the queries brings, at most."""
    return evaluation.luck(found.accuracy[method], found.n_queries)


def correlations(found: MeasuredTasks, method: str) -> dict[str, Correlation]:
    """Pearson's correlation of every measure with the accuracy of a method, with its 95% interval over classes."""
    accuracy = found.accuracy[method]
    return {
        name: evaluation.correlation(accuracy, values, found.tasks.class_ids) for name, values in found.measures.items()
    }


def families(found: MeasuredTasks) -> tuple[pd.DataFrame, list[list[str]]]:
    """Rank correlations among the measures, each turned so that higher is harder; rows and columns in an order that
    puts families together, and the families: measures that are alike on the average (see ALIKE)."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform
    from scipy.stats import spearmanr

    harder = pd.DataFrame({name: _harder(name, found.measures[name]) for name in varied(found)})
    if harder.shape[1] < 2:
        return pd.DataFrame(np.ones((harder.shape[1],) * 2), harder.columns, harder.columns), [[n] for n in harder]
    matrix = np.atleast_2d(spearmanr(harder, nan_policy="omit").statistic)
    if harder.shape[1] == 2:
        matrix = np.array([[1.0, matrix.ravel()[0]], [matrix.ravel()[0], 1.0]])
    matrix = np.nan_to_num(np.asarray(matrix, dtype=float))
    np.fill_diagonal(matrix, 1.0)
    tree = linkage(squareform(np.clip(1 - np.abs(matrix), 0, 1), checks=False), "average", optimal_ordering=True)
    order = leaves_list(tree)
    of = fcluster(tree, 1 - ALIKE, "distance")[order]
    names = [harder.columns[i] for i in order]
    return (
        pd.DataFrame(matrix[np.ix_(order, order)], names, names),
        [[name for name, family in zip(names, of, strict=True) if family == one] for one in dict.fromkeys(of)],
    )


def varied(found: MeasuredTasks) -> list[str]:
    """Measures that are known of most tasks and differ between them."""
    return [
        name
        for name, values in found.measures.items()
        if np.isfinite(values).mean() > 0.5 and np.nanmax(values) > np.nanmin(values)
    ]


def causes_at(found: MeasuredTasks, stage: str) -> dict[Cause, list[str]]:
    """The measures that are known at a stage, by cause."""
    known = list(STAGES)[: list(STAGES).index(cast(Stage, stage)) + 1]
    names = [name for name in varied(found) if MEASURES[name].stage in known]
    groups = {cause: [name for name in names if MEASURES[name].cause == cause] for cause in CAUSES}
    return {cause: group for cause, group in groups.items() if group}


def explained(found: MeasuredTasks, method: str, stage: str = "labelled") -> Explained:
    """What a regression on the measures that are known at a stage says of tasks it has not learned from."""
    groups = cast(Mapping[str, Sequence[str]], causes_at(found, stage))
    return evaluation.explain(found.measures, found.accuracy[method], groups, found.tasks.class_ids)


def headline(found: MeasuredTasks, method: str, known: Explained) -> str:
    """Why these tasks are hard, in one sentence with its numbers, or that no cause explains it."""
    share, lost = known.whole, known.lost
    ordered = sorted(lost, key=lambda cause: -lost[cause].value)
    sure = [cause for cause in ordered if lost[cause].sure > 0]
    if share.low <= 0 or not sure:
        why = "no cause alone does so beyond chance" if share.low > 0 else "which chance would do as well"
        return (
            f"No single cause explains it: for {method}, all measures together explain {max(share.value, 0):.0%} "
            f"of the differences in accuracy between these tasks ({_interval(share)}), {why}."
        )
    first = lost[sure[0]]
    how = "mostly" if first.value > share.value / 2 else "first of all"
    also = [f"{CAUSES[cast(Cause, cause)]} ({lost[cause].value:.0%})" for cause in sure[1:]]
    others = f", then because {', and because '.join(also)}" if also else ""
    return (
        f"For {method}, these tasks are hard {how} because {CAUSES[cast(Cause, sure[0])]}: that explains "
        f"{first.value:.0%} of the differences in accuracy between them ({_interval(first)}){others}. All measures "
        f"together explain {share.value:.0%} ({_interval(share)})."
    )


def _interval(share: Share) -> str:
    return f"95% interval {max(share.low, 0):.0%} to {min(share.high, 1):.0%}"


def calibration(found: MeasuredTasks, method: str, known: Explained, n_groups: int = 8) -> pd.DataFrame:
    """Tasks in groups by what the regression expects: columns expected, accuracy, ci95 (over tasks), n_tasks."""
    there = np.flatnonzero(np.isfinite(known.expected))
    order = there[np.argsort(known.expected[there], kind="stable")]
    rows = []
    for part in np.array_split(order, min(n_groups, max(1, len(order) // 5))):
        mean, ci95 = mean_and_ci95(found.accuracy[method][part])
        rows.append(
            {
                "expected": float(known.expected[part].mean()),
                "accuracy": float(mean),
                "ci95": float(ci95),
                "n_tasks": len(part),
            }
        )
    return pd.DataFrame(rows)


# --- chosen tasks ------------------------------------------------------------------------------------------------


def _harder(name: str, values: np.ndarray) -> np.ndarray:
    """Values turned so that higher is harder."""
    return values if MEASURES[name].direction == "harder" else -values


def ranks(found: MeasuredTasks) -> dict[str, np.ndarray]:
    """By measure, where every task (T,) stands among these: 0 the easiest, 1 the hardest by this measure."""
    from scipy.stats import rankdata

    told = {}
    for name in varied(found):
        values = _harder(name, found.measures[name])
        there = np.isfinite(values)
        told[name] = np.full(len(values), np.nan)
        told[name][there] = (rankdata(values[there]) - 0.5) / there.sum()
    return told


def brush_text(ranges: Mapping[str, tuple[float, float]]) -> str:
    """What `chosen` reads: axis~low~high, semicolons between."""
    return ";".join(f"{axis}~{min(ends):.6g}~{max(ends):.6g}" for axis, ends in ranges.items())


def chosen(found: MeasuredTasks, method: str, brush: str = "", known: Explained | None = None) -> np.ndarray:
    """Which tasks (T,) a brush chooses; the hardest tenth where it is empty.

    An axis is "accuracy", "expected", a measure, or "rank " and a measure: where it stands among these tasks.
    """
    accuracy = found.accuracy[method]
    if not brush:
        few = max(1, round(FEW * np.isfinite(accuracy).sum()))
        order = np.argsort(np.where(np.isfinite(accuracy), accuracy, np.inf), kind="stable")
        return np.isin(np.arange(len(found)), order[:few])
    which = np.ones(len(found), dtype=bool)
    for part in brush.split(";"):
        axis, *ends = part.split("~")
        try:
            low, high = (float(end) for end in ends)
        except ValueError:
            raise BadInput(f"A range of tasks is written axis~low~high: accuracy~0.2~0.6. Got {part[:40]!r}.") from None
        with np.errstate(invalid="ignore"):
            values = _along(found, method, axis, known)
            which &= (values >= low) & (values <= high)
    return which


def _along(found: MeasuredTasks, method: str, axis: str, known: Explained | None) -> np.ndarray:
    if axis == ACCURACY:
        return found.accuracy[method]
    if axis == EXPECTED and known is not None:
        return known.expected
    if axis.startswith(RANK) and axis.removeprefix(RANK) in varied(found):
        return ranks(found)[axis.removeprefix(RANK)]
    if axis in found.measures:
        return found.measures[axis]
    axes = [ACCURACY, *found.measures, *([EXPECTED] if known else [])]
    raise UnknownName("axis of chosen tasks", axis, axes)


def extremes(found: MeasuredTasks, which: np.ndarray) -> pd.DataFrame:
    """How the chosen tasks stand in every measure among all: rank (0.5 is the middle, 1 the hardest), its 95% interval
    over classes low and high, and whether that is beyond chance with as many measures looked at."""
    from scipy import stats

    rows = []
    table = ranks(found)
    for name, values in table.items():
        there = np.isfinite(values)
        n = int((which & there).sum())
        if n < 2 or n == there.sum():
            continue
        mean = float(values[which & there].mean())
        influence = np.where(which, values - mean, 0.0)[there] * (there.sum() / n)
        error, _ = evaluation.of_influence(mean, influence, found.tasks.class_ids[there])
        half, sure = (float(stats.t.ppf(1 - 0.025 / m, error.freedom)) * error.error for m in (1, len(table)))
        beyond = abs(mean - 0.5) > sure
        rows.append({"measure": name, "rank": mean, "low": mean - half, "high": mean + half, "beyond": beyond})
    return pd.DataFrame(rows, columns=["measure", "rank", "low", "high", "beyond"])


def selection_breakdown(found: MeasuredTasks, method: str, known: Explained, which: np.ndarray) -> dict[str, float]:
    """What parts the chosen tasks from all, in accuracy (0 to 1): "below" the mean of all, by cause what the regression
    puts down to it, and "left" unexplained: luck, and causes that nobody measured."""
    accuracy = found.accuracy[method]
    there = which & np.isfinite(known.expected)
    if not there.any():
        raise BadInput("No task is chosen. Choose a wider range.")
    below = float(np.nanmean(accuracy) - accuracy[there].mean())
    by_cause = {cause: -float(values[there].mean()) for cause, values in known.added.items()}
    return {"below": below, **by_cause, "left": below - sum(by_cause.values())}


def describe_selection(found: MeasuredTasks, method: str, known: Explained, which: np.ndarray) -> str:
    """The same in a sentence."""
    parts = selection_breakdown(found, method, known, which)
    below, left = parts.pop("below"), parts.pop("left")
    n = int(which.sum())
    told = f"The {n:,} chosen tasks lie {abs(100 * below):.1f} points {'below' if below >= 0 else 'above'} the mean"
    if known.whole.low <= 0:
        return told + "; no cause explains the accuracy of these tasks beyond chance."
    sign, why = (1, CAUSES) if below >= 0 else (-1, EASED)
    points = {cause: 100 * sign * value for cause, value in sorted(parts.items(), key=lambda pair: -pair[1] * sign)}
    sure = {cause: n for cause, n in points.items() if n > 0.5 and known.lost[cause].sure > 0}
    named = [f"{n:.1f} because {why[cast(Cause, cause)]}" for cause, n in sure.items()]
    by = f": by what was measured, {', '.join(named)}" if named else ": nothing that was measured says why"
    rest = sum(points.values()) - sum(sure.values())
    others = f", {rest:.1f} by causes that are within chance" if named and abs(rest) >= 0.05 else ""
    left = 100 * sign * left + (0 if named else rest)
    return f"{told}{by}{others}; {left:.1f} are left to luck and to what nobody measured."


def predictions(dataset: Dataset, found: MeasuredTasks, method: str, task: int) -> Predictions | None:
    """What the built-in method of this title says of one task, the only one of the answer; None for other methods."""
    name = next((name for name, one in METHODS.items() if one.title == method), None)
    if name is None:
        return None
    tasks = found.tasks.take(np.array([task]))
    return evaluate.predict_tasks(dataset, found.spec["backbone"], name, METHODS[name].checked(), tasks)


def as_table(found: MeasuredTasks) -> pd.DataFrame:
    """One row per task: every measure by name, and the accuracy of every method under its title."""
    return pd.DataFrame({**found.measures, **found.accuracy}, index=pd.RangeIndex(len(found), name="task"))


# --- checking ----------------------------------------------------------------------------------------------------


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


def fit(dataset: Dataset, backbone: str, given: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks: those given, else the defaults, lowered to what the dataset has."""
    return fitting.fit(dataset, given, TASK_DEFAULTS, [backbone], varied=True)


def check(spec: RawSettings) -> CausesSpec:
    """The spec with every setting; shots and queries fit the dataset, and alpha the sampler."""
    given = {name: value for name, value in spec.items() if value not in (None, "")}
    SETTINGS.check(given)
    dataset = datasets.load(given["dataset"])
    drawn = not (given.get("testbed") or given.get("run"))
    fitting_defaults = fitting.defaults(dataset, given, TASK_DEFAULTS, [given["backbone"]], drawn=drawn, varied=True)
    values = SETTINGS.check(given, **fitting_defaults)
    if values["testbed"] and values["run"]:
        raise BadInput("Tasks come from a testbed or from a run, not from both. Name one of them.")
    if not values["methods"] and not values["run"]:
        raise BadInput("At least one method must answer the tasks. Name one, such as protonet.")
    return cast(CausesSpec, {**values, "dataset": dataset.name})


def _source(spec: CausesSpec) -> tuple[Dataset, Features]:
    dataset = datasets.load(spec["dataset"])
    return dataset, features.load(dataset, spec["backbone"])


STUDY = Study(
    name="causes",
    title="causes of difficulty",
    question="What makes these tasks hard?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    work=work,
    shorten=shorten,
    partial=partial,
    ignored=("most",),
    threads=2,
)
