"""What came out, and is the difference real? Any set of evaluations side by side.

A line is one method on one backbone of one run, with its numbers per task. Lines of the same tasks (same digest)
form a group: only inside a group are numbers compared, task by task. Accuracies handed out are percentages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.numerics import holm, mean_and_ci95
from fsviz.records import Dataset, Predictions, Tasks, Testbed
from fsviz.studies import evaluate, frozen

QUARTILES = ("Q1", "Q2", "Q3", "Q4")


@dataclass(frozen=True)
class Line:
    """One method on one backbone of one run.

    accuracy, top5, loss  (T,) of every task, fractions and nats, NaN where not done yet
    measures              name -> (T,) what is known of the tasks ("coarsity")
    """

    run_id: str
    entry: int
    method: str
    label: str
    backbone: str
    dataset: str
    testbed: str
    digest: str
    setting: str
    accuracy: np.ndarray
    top5: np.ndarray
    loss: np.ndarray
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.entry}"


def lines_of(run_id: str, spec: Mapping[str, Any], chunks: Sequence[Mapping[str, np.ndarray]]) -> list[Line]:
    """The lines of one run, from its spec (with "folder") and its finished chunks; entries not begun are left out."""
    shape = spec["tasks"]
    measures = frozen.measures(spec["folder"])
    found = []
    numbers = evaluate.task_numbers(spec, chunks)
    for which, (entry, values) in enumerate(zip(evaluate.entries(spec), numbers, strict=True)):
        if np.isnan(values["accuracy"]).all():
            continue
        found.append(
            Line(
                run_id,
                which,
                entry.method,
                entry.label,
                entry.backbone,
                spec["dataset"],
                spec["testbed_name"],
                shape["digest"],
                shape.get("setting") or f"{shape['n_way']}-way {shape['n_shot']}-shot",
                values["accuracy"],
                values["top5"],
                values["loss"],
                measures,
            )
        )
    return found


def line_of(entry: evaluate.Entry, answer: Predictions, testbed: Testbed, run_id: str = "look", which: int = 0) -> Line:
    """The line of predictions that belong to no recorded run."""
    from fsviz import evaluation

    tasks = testbed.tasks
    return Line(
        run_id,
        which,
        entry.method,
        entry.label,
        entry.backbone,
        testbed.dataset,
        testbed.name,
        evaluate.tasks_digest(tasks),
        tasks.setting,
        evaluation.task_accuracy(answer),
        evaluation.task_top_k(answer, 5),
        evaluation.task_loss(answer),
        tasks.measures,
    )


def named(lines: Sequence[Line]) -> dict[str, Line]:
    """The lines under names that tell them apart: the backbone and the run are added only where needed."""
    parts = [[line.label] for line in lines]
    for extra in (lambda line: line.backbone, lambda line: line.testbed, lambda line: f"run {line.run_id}"):
        names = [" · ".join(p) for p in parts]
        if len(set(names)) == len(names):
            break
        if len({extra(line) for line in lines}) > 1:
            for part, line in zip(parts, lines, strict=True):
                part.append(extra(line))
    return {" · ".join(part): line for part, line in zip(parts, lines, strict=True)}


def groups(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Lines of the same tasks together, in the order of their first line."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.digest, []).append(line)
    return found


def table(lines: Sequence[Line], measure: str = "coarsity") -> pd.DataFrame:
    """One row a line, as papers print it: accuracy with interval, quartiles of the measure, top-5, loss.

    Columns name, method, backbone, dataset, testbed, setting, run, n_tasks, accuracy, ci95, Q1 .. Q4 and their
    ci95, top5, loss, digest; Q1 holds the tasks with the lowest measure. NaN where a number does not exist.
    """
    rows = []
    for name, line in named(lines).items():
        accuracy, half = mean_and_ci95(line.accuracy)
        row: dict[str, Any] = {
            "name": name,
            "method": line.method,
            "backbone": line.backbone,
            "dataset": line.dataset,
            "testbed": line.testbed,
            "setting": line.setting,
            "run": line.run_id,
            "n_tasks": int((~np.isnan(line.accuracy)).sum()),
            "accuracy": 100 * float(accuracy),
            "ci95": 100 * float(half),
        }
        quartile = _quartiles(line, measure)
        for i, q in enumerate(QUARTILES):
            row[q] = quartile[i][0] if quartile else np.nan
            row[f"{q}_ci95"] = quartile[i][1] if quartile else np.nan
        row["top5"] = 100 * float(np.nanmean(line.top5))
        row["loss"] = float(np.nanmean(line.loss))
        row["digest"] = line.digest
        rows.append(row)
    return pd.DataFrame(rows)


def curves(lines: Sequence[Line], measure: str = "coarsity", window: int | None = None) -> dict[str, pd.DataFrame]:
    """Rolling mean of accuracy (percent) against a measure, a line each: columns measure, accuracy, ci95."""
    from fsviz.evaluation import rolling_accuracy

    found = {}
    for name, line in named(lines).items():
        values = line.measures.get(measure)
        if values is None or not (np.isfinite(values) & np.isfinite(line.accuracy)).any():
            continue
        curve = rolling_accuracy(line.accuracy, values, window)
        curve[["accuracy", "ci95"]] *= 100
        found[name] = _thinned(curve)
    return found


def single_tasks(line: Line, measure: str = "coarsity", most: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Measure and accuracy (percent) of single tasks, at most so many, evenly taken: a screen shows no more."""
    step = slice(None, None, max(1, -(-len(line.accuracy) // most)))
    return line.measures[measure][step], 100 * line.accuracy[step]


def ranks(lines: Sequence[Line], measure: str = "coarsity", n_bins: int = 4) -> pd.DataFrame:
    """Rank of every line in each quantile group of a measure: columns method (name), bin, accuracy, ci95, rank.

    Lines must be of the same tasks. Accuracies in percent; empty where the tasks do not have the measure.
    """
    from fsviz.evaluation import method_ranks

    _check_same_tasks(lines)
    values = lines[0].measures.get(measure) if lines else None
    if values is None or np.isfinite(values).sum() < n_bins:
        return pd.DataFrame(columns=["method", "bin", "accuracy", "ci95", "rank"])
    ranked = method_ranks({name: line.accuracy for name, line in named(lines).items()}, values, n_bins)
    ranked[["accuracy", "ci95"]] *= 100
    return ranked


def differences(lines: Sequence[Line], reference: str | None = None) -> pd.DataFrame:
    """Every line against the reference (the most accurate one unless named), task by task.

    Columns name, reference, n_tasks, difference (points of accuracy), ci95, wins, ties, losses, p (the larger of a
    paired t test and Wilcoxon's signed-rank test), p_holm (corrected for the number of comparisons by Holm's
    method) and significant (p_holm below 5%).
    """
    from fsviz.evaluation import paired_difference

    _check_same_tasks(lines)
    by_name = named(lines)
    if reference is None:
        reference = max(by_name, key=lambda name: np.nanmean(by_name[name].accuracy))
    rows = []
    for name, line in by_name.items():
        if name == reference:
            continue
        d = paired_difference(line.accuracy, by_name[reference].accuracy)
        rows.append(
            {
                "name": name,
                "reference": reference,
                "n_tasks": d.n_tasks,
                "difference": 100 * d.mean,
                "ci95": 100 * d.ci95,
                "wins": d.wins,
                "ties": d.ties,
                "losses": d.losses,
                "p": float(np.fmax(d.p_t, d.p_wilcoxon)),
            }
        )
    columns = ["name", "reference", "n_tasks", "difference", "ci95", "wins", "ties", "losses", "p"]
    found = pd.DataFrame(rows, columns=columns)
    found["p_holm"] = holm(found["p"].to_numpy(dtype=float))
    found["significant"] = found["p_holm"] < 0.05
    return found.sort_values("difference", ascending=False, ignore_index=True)


# --- why: the queries that went wrong ----------------------------------------------------------------------------


def confused_pairs(
    spec: Mapping[str, Any], chunks: Sequence[Mapping[str, np.ndarray]], which: int, dataset: Dataset, n: int = 20
) -> pd.DataFrame:
    """The pairs of classes that one entry confuses most: columns class_id, class_name, taken_for, taken_for_name,
    confused, asked, rate (percent)."""
    answer = evaluate.predictions(spec, chunks, which)
    return pairs_table(answer, frozen.tasks(spec["folder"], stop=len(answer)), dataset, n)


def pairs_table(answer: Predictions, tasks: Tasks, dataset: Dataset, n: int = 20) -> pd.DataFrame:
    """Pairs of classes by how often the first is taken for the second, among pairs met often enough to tell."""
    from fsviz.evaluation import pair_confusion

    confusion = pair_confusion(answer, tasks)
    met = confusion.asked[~np.eye(len(confusion.class_ids), dtype=bool)]
    least = max(1, int(np.median(met[met > 0]) // 2)) if (met > 0).any() else 1
    worst = confusion.worst(n, least)
    names = dataset.classes["class_name"].astype(str)
    worst.insert(1, "class_name", names.reindex(worst["class_id"]).fillna("?").to_numpy())
    worst.insert(3, "taken_for_name", names.reindex(worst["taken_for"]).fillna("?").to_numpy())
    worst["rate"] *= 100
    return worst


def class_table(answer: Predictions, tasks: Tasks, dataset: Dataset) -> pd.DataFrame:
    """Accuracy on the queries of every class, lowest first, in percent, with its interval over the class's tasks."""
    from fsviz.evaluation import class_accuracy

    found = class_accuracy(answer, tasks)
    names = dataset.classes["class_name"].astype(str)
    return pd.DataFrame(
        {
            "class": names.reindex(found["class_id"]).fillna("?").to_numpy(),
            "accuracy (%)": 100 * found["accuracy"],
            "± 95%": 100 * found["ci95"],
            "queries": found["n_queries"],
            "tasks": found["n_tasks"],
        }
    )


def misclassified(answer: Predictions, tasks: Tasks, class_id: int, taken_for: int, n: int = 60) -> pd.DataFrame:
    """Queries of one class that were taken for another, the most confident mistakes first.

    Columns image_id, task, confidence (percent), times: an image may be wrong in several tasks and is listed once.
    """
    t, w, q = np.nonzero((tasks.class_ids[:, :, None] == class_id) & (answer.predicted >= 0))
    said = tasks.class_ids[t, answer.predicted[t, w, q]]
    t, w, q = (index[said == taken_for] for index in (t, w, q))
    frame = pd.DataFrame(
        {"image_id": tasks.query[t, w, q], "task": t, "confidence": 100.0 * answer.confidence[t, w, q]}
    )
    if frame.empty:
        return frame.assign(times=pd.Series(dtype=int))
    frame = frame.sort_values("confidence", ascending=False, kind="stable")
    frame["times"] = frame.groupby("image_id")["image_id"].transform("size")
    return frame.drop_duplicates("image_id").head(n).reset_index(drop=True)


# --- steps -------------------------------------------------------------------------------------------------------


def _quartiles(line: Line, measure: str) -> list[tuple[float, float]] | None:
    from fsviz.evaluation import accuracy_by_quantile

    values = line.measures.get(measure)
    if values is None or (np.isfinite(values) & np.isfinite(line.accuracy)).sum() < 4:
        return None
    found = accuracy_by_quantile(line.accuracy, values, 4)
    return [(100 * float(a), 100 * float(h)) for a, h in zip(found["accuracy"], found["ci95"])]


def _thinned(curve: pd.DataFrame, most: int = 400) -> pd.DataFrame:
    """At most `most` evenly spaced points: a screen shows no more."""
    if len(curve) <= most:
        return curve
    return curve.iloc[np.unique(np.linspace(0, len(curve) - 1, most).round().astype(int))].reset_index(drop=True)


def _check_same_tasks(lines: Sequence[Line]) -> None:
    if len({line.digest for line in lines}) > 1:
        raise BadInput(
            "Runs can be compared task by task only when they are of the same tasks. "
            f"Got {len({line.digest for line in lines})} different testbeds: choose runs of one, or evaluate on one."
        )
