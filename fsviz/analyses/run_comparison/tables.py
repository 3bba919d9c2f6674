"""Accuracies as tables: a row per method, and semantic next to uniform tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from fsviz.features.backbones import title_of
from fsviz.studies import evaluate

if TYPE_CHECKING:
    pass
from fsviz.analyses.run_comparison.intervals import accuracy_estimate, at_tasks, difference
from fsviz.analyses.run_comparison.method_runs import CI95, QUARTERS, MethodRun, backbone_title, by_name, testbed_title

QUARTILES = ("Q1", "Q2", "Q3", "Q4")
_SIDES = ("semantic", "semantic_ci95", "uniform", "uniform_ci95")


def result_table(lines: Sequence[MethodRun], measure: str = QUARTERS, over: str = "tasks") -> pd.DataFrame:
    """One row per line, as papers print it: accuracy with intervals, quartiles of the measure, top-5, loss.

    Columns name, method, label, backbone, dataset and testbed with their titles for people (backbone_title,
    testbed_title), sampler, setting, run, n_way, n_tasks, accuracy, ci95 (over tasks of these images), ci95_images,
    ci95_classes (see evaluation.intervals), Q1 .. Q4 with their ci95, fine_to_coarse (Q4 minus Q1) with its ci95, top5,
    loss, digest; Q1 holds the tasks with the lowest measure. NaN where a number does not exist.
    over  what the intervals of the quarters are over
    """
    rows = []
    for name, line in by_name(lines).items():
        row: dict[str, Any] = {
            "name": name,
            "method": line.method,
            "label": line.label,
            "backbone": line.backbone,
            "backbone_title": backbone_title(line),
            "dataset": line.dataset,
            "testbed": line.testbed,
            "testbed_title": testbed_title(line),
            "sampler": line.sampler,
            "setting": line.setting,
            "run": line.run_id,
            "n_way": line.n_way,
        }
        result = line.result if measure == QUARTERS and line.result else _computed(line, measure)
        row |= {name: cast(Any, result)[name] for name in ("n_tasks", "accuracy", *CI95.values(), "top5", "loss")}
        row |= _quarters(result)
        row |= _between_quarters(line, row, measure, over)
        row["digest"] = line.digest
        rows.append(row)
    return pd.DataFrame(rows)


def _quarters(result: evaluate.EntryResult) -> dict[str, float]:
    """The quarters of a result as columns; NaN where the tasks have no measure, or are too few."""
    pairs = ((end, result.get(name)) for end, name in (("", "quartiles"), ("_ci95", "quartiles_ci95")))
    columns = {end: values if isinstance(values, list) else [np.nan] * 4 for end, values in pairs}
    return {f"{q}{end}": columns[end][i] for i, q in enumerate(QUARTILES) for end in columns}


def _between_quarters(line: MethodRun, row: Mapping[str, Any], measure: str, over: str) -> dict[str, float]:
    """Accuracy in Q4 minus Q1 (points) with its ci95; and the ci95 of every quarter, where they are not over tasks."""
    cells = {"fine_to_coarse": row["Q4"] - row["Q1"]}
    if over == "tasks" or np.isnan(row["Q1"]):  # quarters share no task
        return cells | {"fine_to_coarse_ci95": float(np.hypot(row["Q1_ci95"], row["Q4_ci95"]))}
    from fsviz.evaluation import quantile_groups

    quarter = quantile_groups(line.measures[measure], 4, line.done)
    halves = [100 * accuracy_estimate(at_tasks(line, np.flatnonzero(quarter == i + 1)), over).ci95 for i in range(4)]
    # The difference is the mean of deviations from either quarter's mean, the first quarter's with a minus: images and
    # classes that both quarters hold then count in both.
    ends = np.flatnonzero((quarter == 1) | (quarter == 4))
    share = np.zeros(len(quarter))
    middle = np.zeros(len(quarter))
    for q, sign in ((1, -1), (4, 1)):
        share[quarter == q] = sign * len(ends) / (quarter == q).sum()
        middle[quarter == q] = line.accuracy[quarter == q].mean()
    accuracy, right = share * (line.accuracy - middle), line.right
    if right is not None:
        n = len(right)
        right = share[:n, None, None] * (right - middle[:n, None, None])
    between = accuracy_estimate(at_tasks(replace(line, accuracy=accuracy, right=right), ends), over)
    cells["fine_to_coarse_ci95"] = 100 * between.ci95
    return cells | {f"{q}_ci95": half for q, half in zip(QUARTILES, halves, strict=True)}


def _computed(line: MethodRun, measure: str) -> evaluate.EntryResult:
    """The result that a finished run keeps, from the numbers of its tasks."""
    numbers = {"accuracy": line.accuracy, "top5": line.top5, "loss": line.loss}
    intervals = {column: 100 * difference(line, None, over).ci95 for over, column in CI95.items()}
    return cast(evaluate.EntryResult, {**evaluate.result_of(numbers, line.measures.get(measure)), **intervals})


def summary_table(summary: evaluate.EvaluationSummary) -> pd.DataFrame:
    """The results of a run's summary as rows like those of `result_table`, as far as `side_by_side` needs them."""
    rows = []
    columns = ("method", "label", "backbone", "sampler", "setting", "n_tasks", "accuracy", "ci95")
    for result in summary.get("results") or []:
        row = {name: value for name, value in result.items() if name in columns}
        rows.append({"dataset": summary.get("dataset", ""), **row, **_quarters(result)})
    return pd.DataFrame(rows, columns=["dataset", "setting", "sampler"] if not rows else None)


def with_interval(results: pd.DataFrame, over: str) -> pd.DataFrame:
    """The same table with its column ci95 over tasks, images or classes."""
    return results.assign(ci95=results[CI95[over]])


def side_by_side(results: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Methods on semantic and on uniform tasks next to each other, as tables 1 and 2 of Bennequin et al. (2022).

    results  rows of `result_table`; of those with the same method, backbone and sampler the first counts
    One table per dataset and setting ("demo", "5-way 1-shot") that has both kinds of tasks; inductive methods first.
    Columns method (its label), kind, backbone, n_tasks, semantic, semantic_ci95, Q1 .. Q4 (of the semantic tasks),
    uniform, uniform_ci95; NaN where a method has only one of the two.
    """
    from fsviz.methods import METHODS

    tables = {}
    for (dataset, setting), part in results.groupby(["dataset", "setting"], sort=False):
        if not {"semantic", "uniform"} <= set(part["sampler"]):
            continue
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in part[part["sampler"].isin(("semantic", "uniform"))].to_dict("records"):
            kind = METHODS[row["method"]].kind if row["method"] in METHODS else "inductive"
            unknown = dict.fromkeys([*_SIDES, *QUARTILES], np.nan)
            key = (row["label"], row["backbone"])
            start = {"method": row["label"], "kind": kind, "backbone": title_of(row["backbone"])}
            start["n_tasks"] = row["n_tasks"]
            cells = rows.setdefault(key, start | unknown)
            if np.isnan(cells[row["sampler"]]):
                cells |= {row["sampler"]: row["accuracy"], f"{row['sampler']}_ci95": row["ci95"]}
                cells |= {q: row[q] for q in QUARTILES} if row["sampler"] == "semantic" else {}
        table = pd.DataFrame(sorted(rows.values(), key=lambda cells: cells["kind"] != "inductive"))
        tables[str(dataset), str(setting)] = table
    return tables
