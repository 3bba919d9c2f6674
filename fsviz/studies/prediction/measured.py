"""Measures of tasks, the outcome of the tasks, and the correlation of the two."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from fsviz import datasets, evaluation
from fsviz.difficulty.measures import MEASURES, Measure, title
from fsviz.errors import FsvizError
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Features, Tasks
from fsviz.settings import RawSettings
from fsviz.studies import chunk_data
from fsviz.studies.prediction.tasks import PredictionCell, PredictionSpec, class_overlaps
from fsviz.studies.thread_limits import limit_threads

OF_CLASSES = ("coarsity", "class_overlap")  # measures that are sampled with the tasks, for every setting
MIN_TASKS = 4  # of a correlation
_KEPT_EIGENVALUES = 40


class MeasureCorrelation(TypedDict, total=False):
    """Correlation of a measure with the outcome; its numbers are floats, or None if undefined."""

    pearson: Any
    low: Any
    high: Any
    spearman: Any
    over: str
    why: str


class CellSummary(TypedDict, total=False):
    """Summary of a cell; the last five are numbers or None, for the question "eigenvalues" only."""

    value: float | str
    n_tasks: int
    outcome: float
    outcome_ci95: float | None
    correlations: dict[str, MeasureCorrelation]
    predicted_accuracy: dict[str, Any]
    best: int | None
    best_pearson: Any
    best_low: Any
    best_high: Any
    nth_pearson: Any


@dataclass(frozen=True)
class PredictionTasks:
    """Tasks of a cell with their outcome (T,) and measures (T,), NaN if undefined.

    expected  (T,) mean confidence of the logistic regression: its predicted accuracy, NaN without one
    value     of the cell
    """

    spec: PredictionSpec
    tasks: Tasks
    outcome: np.ndarray
    expected: np.ndarray
    measures: Mapping[str, np.ndarray]
    value: float | str = ""

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def cache_key(self) -> tuple[object, ...]:
        """Changes with the tasks or their values."""
        spec = json.dumps(dict(self.spec), sort_keys=True)
        return spec, self.value, len(self), datasets.stamp(self.spec["dataset"])


def outcome_name(spec: RawSettings) -> str:
    """Name of the outcome of a spec or summary."""
    return "adjusted Rand index" if _setting_of_outcome(spec) == "unsupervised" else "accuracy"


def measures_of(spec: PredictionSpec) -> dict[str, Measure]:
    """Measures of a setting: those whose needs it meets, and those sampled with the tasks."""
    needs = {"images"}
    needs |= {"support"} if spec["setting"] != "unsupervised" else set()
    needs |= {"queries"} if spec["setting"] != "supervised" else set()
    return {name: measure for name, measure in MEASURES.items() if name in OF_CLASSES or set(measure.needs) <= needs}


def undefined(name: str, spec: PredictionSpec) -> str:
    """Why a measure is undefined for these tasks."""
    if name == "davies_bouldin" and spec["setting"] == "supervised" and spec.get("n_shot") == 1:
        return "undefined for 1-shot tasks"
    if spec["n_tasks"] < MIN_TASKS:
        return "too few tasks"
    return "undefined, or the same for all tasks"


def excluded_measures(tasks: PredictionTasks) -> dict[str, str]:
    """Measures of the setting that the tasks lack, with the reason."""
    reasons = {}
    for name in (name for name in measures_of(tasks.spec) if name not in tasks.measures):
        reasons[name] = "needs a taxonomy"
        if name == "class_overlap":
            try:
                class_overlaps(tasks.spec)
                reasons[name] = "not measured when these tasks were sampled"
            except FsvizError as error:
                reasons[name] = str(error).rstrip(".")
    return reasons


# --- measuring ---------------------------------------------------------------------------------------------------


def measure_tasks(
    spec: PredictionSpec, tasks: Tasks, table: Features, eigenvalues: bool = False
) -> dict[str, np.ndarray]:
    """Arrays outcome, expected, measure_NAME per measure of features, and if requested the lowest eigenvalues."""
    import torch

    from fsviz.difficulty.task_statistics import task_views

    evaluation.check_tasks(table, tasks)
    n = len(tasks)
    names = {m for m, d in measures_of(spec).items() if set(d.needs) <= {"images", "support", "queries"}}
    arrays = {name: np.full(n, np.nan) for name in ("outcome", "expected", *(f"measure_{m}" for m in names))}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, _setting_of_outcome(spec), spec["neighbours"]):
            arrays["outcome"][where] = view.outcome.numpy()
            if _setting_of_outcome(spec) != "unsupervised":
                arrays["expected"][where] = view.expected.double().numpy()
            for name in names:
                arrays[f"measure_{name}"][where] = MEASURES[name](view)
            if eigenvalues:
                values = view.eigenvalues[:, :_KEPT_EIGENVALUES].double().numpy()
                array = arrays.setdefault("eigenvalues", np.full((n, _KEPT_EIGENVALUES), np.nan))
                array[where, : values.shape[1]] = values
    return arrays


def predict(spec: PredictionSpec, tasks: Tasks, table: Features) -> dict[str, np.ndarray]:
    """Predicted label and confidence (T, W, Q) of every query; without labels, its cluster.

    Clusters are matched one-to-one to classes, so that as many images as possible are in the cluster of their class.
    """
    import torch
    from scipy.optimize import linear_sum_assignment

    from fsviz.difficulty.task_statistics import task_views

    shape = tasks.query.shape
    arrays = {"predicted": np.full(shape, PAD), "confidence": np.full(shape, np.nan)}
    with torch.inference_mode():
        for where, view in task_views(table, tasks, spec["setting"], spec["neighbours"]):
            if spec["setting"] == "unsupervised":
                for t, clusters in zip(where, view.clusters.numpy(), strict=True):
                    counts = np.zeros((shape[1], shape[1]), dtype=int)
                    np.add.at(counts, (clusters, view.labels[0].numpy()), view.mask[0].numpy())
                    labels = linear_sum_assignment(counts, maximize=True)[1]
                    arrays["predicted"][t] = labels[clusters[view.n_support :]].reshape(shape[1:])
            else:
                arrays["predicted"][where] = view.predicted.numpy().reshape(-1, *shape[1:])
                arrays["confidence"][where] = view.confidence.numpy().reshape(-1, *shape[1:])
    arrays["predicted"][tasks.query == PAD] = PAD
    return arrays


def predict_task(tasks: PredictionTasks, task: int) -> dict[str, np.ndarray]:
    """Predictions (W, Q) for the queries of one task, see `predict`."""
    task_alone = tasks.tasks.take(slice(task, task + 1))
    with limit_threads():
        arrays = predict(tasks.spec, task_alone, chunk_data.features_of(tasks.spec["dataset"], tasks.spec["backbone"]))
    return {name: values[0] for name, values in arrays.items()}


def _setting_of_outcome(spec: RawSettings) -> str:
    """Setting of the outcome: hard tasks are always defined by accuracy, without labels by that of "semi"."""
    return "semi" if spec.get("question") == "hard" and spec["setting"] == "unsupervised" else spec["setting"]


def measured_cell(cell: PredictionCell, tasks: Tasks, rows: Mapping[str, np.ndarray]) -> PredictionTasks:
    """The tasks of a cell with the arrays of `measure_tasks`."""
    values = {name.removeprefix("measure_"): v for name, v in rows.items() if name.startswith("measure_")}
    possible = measures_of(cell.spec)
    values |= {name: np.asarray(v, dtype=float) for name, v in tasks.measures.items() if name in possible}
    ordered = {name: values[name] for name in possible if name in values}
    return PredictionTasks(cell.spec, tasks, rows["outcome"], rows["expected"], ordered, cell.value)


# --- results -----------------------------------------------------------------------------------------------------


def cell_summary(tasks: PredictionTasks) -> CellSummary:
    """The outcome and the correlations of a cell."""
    mean, half = mean_and_ci95(tasks.outcome)
    return {
        "value": tasks.value,
        "n_tasks": len(tasks),
        "outcome": float(mean),
        "outcome_ci95": finite(half),
        "correlations": correlations(tasks),
        **({"predicted_accuracy": prediction_error(tasks)} if np.isfinite(tasks.expected).any() else {}),
    }


def correlations(tasks: PredictionTasks) -> dict[str, MeasureCorrelation]:
    """Pearson's correlation of every measure with the outcome and its 95% interval, and Spearman's.

    Tasks share classes, so the interval is `over` "classes", or "tasks" if every task has every class. `why` is the
    reason if there is no correlation.
    """
    result: dict[str, MeasureCorrelation] = {}
    for name, values in tasks.measures.items():
        pearson = evaluation.correlation(tasks.outcome, values, tasks.tasks.class_ids)
        is_defined = np.isfinite(pearson.value)
        result[name] = {
            "pearson": finite(pearson.value),
            "low": finite(pearson.low),
            "high": finite(pearson.high),
            "spearman": finite(evaluation.correlation(tasks.outcome, values, rank=True).value),
            "over": pearson.ci_unit,
            "why": "" if is_defined else undefined(name, tasks.spec),
        }
    return result


def describe_intervals(correlations: Iterable[MeasureCorrelation]) -> str:
    """Describe the unit of the 95% intervals of correlations, or why there are none."""
    rows = [row for row in correlations if row["pearson"] is not None]
    over = {row["over"] for row in rows if row["low"] is not None}
    if over == {"classes", "tasks"}:
        return "95% CI over classes, or over tasks if every task has every class"
    kinds = {
        "classes": "95% CI over classes",
        "tasks": "95% CI over tasks (every task has every class)",
    }
    reason = "too few tasks for a 95% CI" if rows else "no correlation is defined"
    return kinds[over.pop()] if over else reason


def as_expected(name: str, row: MeasureCorrelation) -> tuple[float | None, float | None, float | None]:
    """Correlation of a measure and its interval, positive if it has the expected sign.

    A measure that is higher for harder tasks is expected to fall as the outcome rises.
    """
    if row["pearson"] is None:
        return None, None, None
    sign = -hardness(name)
    low, high = (None, None) if row["low"] is None else sorted((sign * row["low"], sign * row["high"]))
    return sign * row["pearson"], low, high


def best_measure(correlations: Mapping[str, MeasureCorrelation]) -> tuple[str, MeasureCorrelation] | None:
    """The measure with the strongest correlation of the expected sign.

    Measures that use class identities (coarsity, class overlap) are excluded.
    """
    candidates = {name: row for name, row in correlations.items() if not needs_classes(name)}
    strengths = {name: -hardness(name) * row["pearson"] for name, row in candidates.items() if row["low"] is not None}
    if not strengths:
        return None
    name = max(strengths, key=strengths.__getitem__)
    return name, correlations[name]


def correlation_rows(correlations: Mapping[str, MeasureCorrelation]) -> list[dict[str, Any]]:
    """A row per measure, the strongest correlation of the expected sign first, undefined ones last.

    name, title, pearson, low, high, why (there is no correlation), is_best (see `best_measure`), needs_classes, and
    is_expected (whether it has the expected sign)
    """
    best = best_measure(correlations)
    rows = []
    for name, row in correlations.items():
        strength = as_expected(name, row)[0]
        rows.append(
            {
                "name": name,
                "title": title(name),
                **{key: row[key] for key in ("pearson", "low", "high", "why")},
                "is_best": best is not None and name == best[0],
                "needs_classes": needs_classes(name),
                "is_expected": strength is None or strength >= 0,
                "strength": -np.inf if strength is None else strength,
            }
        )
    return sorted(rows, key=lambda row: row.pop("strength"), reverse=True)


def needs_classes(name: str) -> bool:
    """Whether a measure uses class identities, which nobody knows of unlabelled images."""
    return bool({"distances", "overlaps"} & set(MEASURES[name].needs))


def mean_outcome(tasks: PredictionTasks) -> tuple[float, float | None]:
    """Mean outcome and the half-width of its 95% interval over tasks, None for one task."""
    mean, half = mean_and_ci95(tasks.outcome)
    return float(mean), finite(half)


def fitted_line(x: np.ndarray, y: np.ndarray) -> tuple[list[float], list[float]] | None:
    """Ends (x, y) of the least-squares line; None if x does not vary."""
    is_defined = np.isfinite(x) & np.isfinite(y)
    if is_defined.sum() < 3 or np.ptp(x[is_defined]) == 0:
        return None
    slope, start = np.polyfit(x[is_defined], y[is_defined], 1)
    ends = [float(x[is_defined].min()), float(x[is_defined].max())]
    return ends, [float(slope * end + start) for end in ends]


def ease_rank(tasks: PredictionTasks, name: str) -> np.ndarray:
    """Rank (T,) of every task by a measure; 1 is predicted easiest."""
    order = np.argsort(hardness(name) * tasks.measures[name], kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    return rank


def prediction_error(tasks: PredictionTasks) -> dict[str, Any]:
    """Mean absolute error of the expected accuracy, of predicting the mean of all tasks, and the gain over that."""
    error, half = mean_and_ci95(np.abs(tasks.expected - tasks.outcome))
    naive_errors = np.abs(tasks.outcome - tasks.outcome.mean())
    naive, naive_half = mean_and_ci95(naive_errors)
    gain, gain_half = mean_and_ci95(naive_errors - np.abs(tasks.expected - tasks.outcome))
    return {
        "error": float(error),
        "error_ci95": finite(half),
        "constant": float(naive),
        "constant_ci95": finite(naive_half),
        "gain": float(gain),
        "gain_ci95": finite(gain_half),
        "bias": float(np.mean(tasks.expected - tasks.outcome)),
    }


def harder_above(name: str) -> bool:
    """Whether a higher value of a measure means a harder task."""
    return MEASURES[name].direction == "harder"


def hardness(name: str) -> int:
    return 1 if harder_above(name) else -1
