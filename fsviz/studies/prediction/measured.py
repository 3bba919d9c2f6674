"""Measured tasks: what came out, what measures said before, and how the two go together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from fsviz import datasets, evaluation
from fsviz.difficulty.measures import MEASURES, Measure
from fsviz.errors import FsvizError
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Features, Tasks
from fsviz.settings import RawSettings
from fsviz.studies import chunk_data
from fsviz.studies.prediction.tasks import Cell, Spec, confusions_of
from fsviz.studies.thread_limits import limit_threads

OF_CLASSES = ("coarsity", "class_overlap")  # measures that tasks are drawn with, whatever is seen of their images
_KEPT_EIGENVALUES = 40


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


@dataclass(frozen=True)
class Measured:
    """Tasks, what came out (T,), and what each measure said before (T,), NaN where it is not defined.

    expected (T,) is the accuracy that the logistic regression expects of itself (NaN where there is none). The value is
    that of the cell.
    """

    spec: Spec
    tasks: Tasks
    outcome: np.ndarray
    expected: np.ndarray
    measures: Mapping[str, np.ndarray]
    value: float | str = ""

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes when the tasks or what is known of them do."""
        spec = json.dumps(dict(self.spec), sort_keys=True)
        return spec, self.value, len(self), datasets.stamp(self.spec["dataset"])


def outcome_name(spec: RawSettings) -> str:
    """What is predicted, in words; by a spec or a summary."""
    return "adjusted Rand index" if _outcome_setting(spec) == "unsupervised" else "accuracy"


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
        if name == "class_overlap":
            try:
                confusions_of(found.spec)
                said[name] = "it was not measured when these tasks were drawn"
            except FsvizError as error:
                said[name] = str(error).rstrip(".")
    return said


# --- measuring ---------------------------------------------------------------------------------------------------


def look(spec: Spec, tasks: Tasks, table: Features, eigenvalues: bool = False) -> dict[str, np.ndarray]:
    """outcome, expected, one array per measure of features (measure_NAME), and where asked the lowest eigenvalues."""
    import torch

    from fsviz.difficulty.task_statistics import task_views

    evaluation.check_tasks(table, tasks)
    n = len(tasks)
    wanted = {m for m, d in measures_of(spec).items() if set(d.needs) <= {"images", "support", "queries"}}
    found = {name: np.full(n, np.nan) for name in ("outcome", "expected", *(f"measure_{m}" for m in wanted))}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, _outcome_setting(spec), spec["neighbours"]):
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

    from fsviz.difficulty.task_statistics import task_views

    shape = tasks.query.shape
    said = {"predicted": np.full(shape, PAD), "confidence": np.full(shape, np.nan)}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, spec["setting"], spec["neighbours"]):
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


def said_of(found: Measured, task: int) -> dict[str, np.ndarray]:
    """What was said of the queries of one task (W, Q), see `predictions`."""
    one = found.tasks.take(slice(task, task + 1))
    with limit_threads():
        said = predictions(found.spec, one, chunk_data.features_of(found.spec["dataset"], found.spec["backbone"]))
    return {name: values[0] for name, values in said.items()}


def _outcome_setting(spec: RawSettings) -> str:
    """Hard or easy is always a matter of accuracy: without labels, that of a regression on the same mixed features."""
    return "semi" if spec.get("question") == "hard" and spec["setting"] == "unsupervised" else spec["setting"]


def measured_cell(cell: Cell, tasks: Tasks, rows: Mapping[str, np.ndarray]) -> Measured:
    """The tasks of a cell with the arrays that `look` gave for them."""
    known = {name.removeprefix("measure_"): v for name, v in rows.items() if name.startswith("measure_")}
    possible = measures_of(cell.spec)
    known |= {name: np.asarray(v, dtype=float) for name, v in tasks.measures.items() if name in possible}
    ordered = {name: known[name] for name in possible if name in known}
    return Measured(cell.spec, tasks, rows["outcome"], rows["expected"], ordered, cell.value)


# --- what came out -----------------------------------------------------------------------------------------------


def cell_summary(found: Measured) -> CellSummary:
    """The outcome and the correlations of a cell."""
    mean, half = mean_and_ci95(found.outcome)
    return {
        "value": found.value,
        "n_tasks": len(found),
        "outcome": float(mean),
        "outcome_ci95": finite(half),
        "correlations": correlations(found),
        **({"predicted_accuracy": prediction_error(found)} if np.isfinite(found.expected).any() else {}),
    }


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
            "over": pearson.ci_unit,
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


def as_expected(name: str, row: Correlation) -> tuple[float | None, float | None, float | None]:
    """A measure's correlation and the ends of its interval, of those that `correlations` gave, positive where it goes
    as it should: a measure of what is hard falls as the outcome rises."""
    if row["pearson"] is None:
        return None, None, None
    sign = -hardness(name)
    low, high = (None, None) if row["low"] is None else sorted((sign * row["low"], sign * row["high"]))
    return sign * row["pearson"], low, high


def best_measure(found: Mapping[str, Correlation]) -> tuple[str, Correlation] | None:
    """The measure with the strongest correlation in the direction it should have, of those that `correlations` gave;
    those that must know which classes a task has (coarsity, class confusion) are none of them."""
    of_classes = {"distances", "overlaps"}
    candidates = {name: row for name, row in found.items() if not of_classes & set(MEASURES[name].needs)}
    known = {name: -hardness(name) * row["pearson"] for name, row in candidates.items() if row["low"] is not None}
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
    order = np.argsort(hardness(name) * found.measures[name], kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank


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


def harder_above(name: str) -> bool:
    """Whether a higher value of a measure means a harder task."""
    return MEASURES[name].direction == "harder"


def hardness(name: str) -> int:
    return 1 if harder_above(name) else -1
