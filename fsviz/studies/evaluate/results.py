"""Numbers of every task, predictions and the summary of a run, from its finished chunks.

Accuracies in a summary are percentages; fractions in arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz.errors import Missing
from fsviz.records import Predictions, Tasks
from fsviz.studies.evaluate.spec import FailedMethod, ResolvedSpec, chunks_of, entries, entry_tasks, parts, run_testbeds
from fsviz.studies.study import Arrays

CORRELATIONS = ("pearson", "spearman")
FIRST_QUERIES = 250_000  # queries that show how alike tasks are that share images: 5,000 usual tasks
NUMBERS = ("accuracy", "top5", "loss", "confidence")  # what is kept of every task


class EntryResult(TypedDict, total=False):
    """Results of one entry, in percent except the loss. Intervals over images and classes,
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


class EvaluationSummary(TypedDict):
    """Partial results of a run."""

    results: list[EntryResult]
    failed: list[FailedMethod]
    dataset: str
    testbed: str
    n_tasks: int
    device: str


def failures(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> dict[int, str]:
    """By entry why code of the user gave no answer, from the first task that it failed on."""
    if not any(entry.own for entry in entries(spec)):
        return {}
    first_errors: dict[int, tuple[int, str]] = {}
    for chunk in chunks:
        try:
            failure = int(chunk["start"]), str(chunk["failed"])
        except KeyError:
            continue
        which = int(chunk["part"])
        first_errors[which] = min(failure, first_errors.get(which, failure))
    return {which: sentence for which, (_, sentence) in first_errors.items()}


@dataclass(frozen=True)
class Evaluation:
    """The predictions of finished chunks, in numbers.

    numbers   (E, 4, T) NUMBERS of every entry and task, NaN where it is not done
    right     (E, t, W, Q) 1, 0 or -1 (no query, or not done) for the queries of the first tasks
    measures  measures of the tasks by name, of every testbed
    first     the first tasks of every testbed, as many as `right` has
    failed    sentences by entry, for methods of the user that failed
    """

    spec: ResolvedSpec
    numbers: np.ndarray
    right: np.ndarray
    measures: Sequence[Mapping[str, np.ndarray]]
    first: Sequence[Tasks]
    failed: Mapping[int, str]


def summary_of(
    spec: ResolvedSpec,
    numbers: np.ndarray,
    measures: Sequence[Mapping[str, np.ndarray]],
    failed: Mapping[int, str],
    evaluation: Evaluation | None = None,
) -> EvaluationSummary:
    results = []
    for which, (entry, values) in enumerate(zip(entries(spec), numbers, strict=True)):
        done = ~np.isnan(values[0])
        if not done.any():
            continue
        testbed = run_testbeds(spec)[entry.testbed]
        of_done = {name: of_task[done] for name, of_task in measures[entry.testbed].items()}
        result: EntryResult = {"method": entry.method, "label": entry.label, "backbone": entry.backbone}
        result["parameters"] = dict(entry.parameters)
        result |= result_of(dict(zip(NUMBERS, values[:, done], strict=True)), of_done.get("coarsity"))
        result |= {"testbed": testbed["testbed_name"], "sampler": testbed["recipe"].get("sampler", "")}
        result |= {"setting": testbed["tasks"]["setting"], "n_way": testbed["tasks"]["n_way"]}
        if evaluation is not None:
            right = _as_floats(evaluation.right[which])
            result |= _intervals(values[0], of_done, right, evaluation.first[entry.testbed])
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


def task_numbers(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> list[dict[str, np.ndarray]]:
    """Per entry the arrays (T,) accuracy, top5, loss and confidence of every task, NaN where it is not done yet.

    A finished run has them in one file; where that is missing or damaged, they come from the chunks.
    """
    shape = (len(entries(spec)), len(NUMBERS), spec["tasks"]["n_tasks"])
    try:
        numbers = np.load(numbers_file(spec), mmap_mode="r", allow_pickle=False)
        if numbers.shape != shape:
            raise ValueError(f"its shape is {numbers.shape}")
    except (OSError, ValueError, EOFError):
        numbers = numbers_in(spec, chunks)
    return [dict(zip(NUMBERS, values, strict=True)) for values in numbers]


def numbers_in(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> np.ndarray:
    """NUMBERS of every entry and task from chunks (entries, 4, T), NaN for tasks in none."""
    numbers = np.full((len(entries(spec)), len(NUMBERS), spec["tasks"]["n_tasks"]), np.nan)
    for chunk in chunks:
        values, start = chunk["numbers"], int(chunk["start"])
        numbers[int(chunk["part"]), :, start : start + values.shape[1]] = values
    numbers[list(failures(spec, chunks))] = np.nan  # what failed on one task is not compared on the others
    return numbers


def numbers_of(answer: Predictions) -> np.ndarray:
    from fsviz import evaluation

    top5 = evaluation.task_top_k(answer, 5)
    measures = (evaluation.task_accuracy, Predictions.loss, evaluation.task_confidence)
    accuracy, loss, confidence = (measure(answer) for measure in measures)
    return np.stack([accuracy, top5, loss, confidence])


def numbers_file(spec: ResolvedSpec) -> Path:
    return Path(spec["folder"]) / "numbers.npy"


def first_correct(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> list[tuple[np.ndarray, Tasks]] | None:
    """Per entry 1 or 0 for every query of the first tasks (t, W, Q), NaN where there is none, and these tasks.

    As many tasks as hold FIRST_QUERIES queries. A finished run has them in a file; of a run under way, or one that was
    stopped, they come from its chunks. None where the file is damaged.
    """
    try:
        right = np.load(correct_file(spec), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        right = correct_in(spec, chunks)
    if right.ndim != 4 or len(right) != len(entries(spec)):
        return None
    return [(_as_floats(r), entry_tasks(spec, e, stop=len(r))) for r, e in zip(right, entries(spec), strict=True)]


def correct_in(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> np.ndarray:
    """1, 0 or -1 (no query, or not done yet) for the queries of the first tasks: (entries, t, W, Q), a byte each."""
    from fsviz import evaluation

    shape = spec["tasks"]
    n = min(shape["n_tasks"], max(1, FIRST_QUERIES // (shape["n_way"] * shape["n_query"])))
    is_correct = np.full((len(entries(spec)), n, shape["n_way"], shape["n_query"]), -1, np.int8)
    whole = len(chunks) == sum(part.n_chunks for part in parts(spec))
    for which in range(len(is_correct)):
        if whole:
            own = [chunks[i] for i in chunks_of(spec, which, n)]
        else:
            own = [chunk for chunk in chunks if int(chunk["part"]) == which and int(chunk["start"]) < n]
        with suppress(Missing):  # none of its tasks is done
            right = evaluation.correct_queries(predictions(spec, own, which))[:n]
            is_correct[which, : len(right)] = np.nan_to_num(right, nan=-1)
    return is_correct


def _as_floats(right: np.ndarray) -> np.ndarray:
    return np.where(right < 0, np.nan, right)


def correct_file(spec: ResolvedSpec) -> Path:
    return Path(spec["folder"]) / "right.npy"


def predictions(spec: ResolvedSpec, chunks: Sequence[Arrays], which: int) -> Predictions:
    """Predictions of entry number `which` for its first tasks, up to the first unfinished one."""
    own = sorted(((int(c["start"]), c) for c in chunks if int(c["part"]) == which), key=lambda pair: pair[0])
    chunks_in_order: list[Predictions] = []
    for start, chunk in own:
        if start != sum(map(len, chunks_in_order)):  # a chunk before it is missing
            break
        chunks_in_order.append(Predictions.from_arrays(chunk))
    if not chunks_in_order:
        raise Missing("No task of this method is finished yet. Wait for its first chunk, or resume the run.")
    return Predictions.join(chunks_in_order)


def _intervals(
    accuracy: np.ndarray, measures: Mapping[str, np.ndarray], right: np.ndarray, tasks: Tasks
) -> EntryResult:
    """Half-widths over images and classes in percent, and the correlation of every measure with accuracy."""
    from fsviz import evaluation

    intervals: dict[str, Any] = {
        f"ci95_{over}": 100 * evaluation.estimate(accuracy, over, right, tasks).ci95 for over in ("images", "classes")
    }
    intervals["correlations"] = {}
    for name, values in measures.items():
        if not evaluation.varies(values):
            continue
        both = {k: evaluation.correlation(accuracy, values, tasks.class_ids, k == "spearman") for k in CORRELATIONS}
        if np.isfinite(both["pearson"].value):
            estimates = {k: {"value": c.value, "ci95": [c.low, c.high]} for k, c in both.items()}
            intervals["correlations"][name] = {**estimates, "over": both["pearson"].ci_unit}
    return cast(EntryResult, intervals)


def result_of(numbers: Mapping[str, np.ndarray], measure: np.ndarray | None) -> EntryResult:
    """The means of these NUMBERS (T,) over the tasks that are done (not NaN), and accuracy by quarters of a measure
    (T,), where the tasks have it and differ in it."""
    from fsviz.evaluation import accuracy_by_quantile, varies
    from fsviz.numerics import mean_and_ci95

    done = ~np.isnan(numbers["accuracy"])
    accuracy, half = mean_and_ci95(numbers["accuracy"][done])
    means = {"n_tasks": int(done.sum()), "accuracy": 100 * float(accuracy), "ci95": 100 * float(half)}
    for name in [name for name in numbers if name != "accuracy"]:
        means[name] = (1 if name == "loss" else 100) * float(np.mean(numbers[name][done]))
    result = cast(EntryResult, {**means, "quartiles": None})
    if measure is not None and np.isfinite(measure[done]).sum() >= 4 and varies(measure[done]):
        table = accuracy_by_quantile(numbers["accuracy"], measure, 4)
        result["quartiles"] = [100 * float(a) for a in table["accuracy"]]
        result["quartiles_ci95"] = [100 * float(h) for h in table["ci95"]]
        result["quartile_coarsity"] = [[float(low), float(high)] for low, high in zip(table["low"], table["high"])]
    return result
