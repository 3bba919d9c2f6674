"""How far measures explain accuracy: correlations, families of measures, shares, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.difficulty.measures import HARD_PHRASES, MEASURES, STAGE_TITLES, Cause, Stage
from fsviz.errors import BadInput
from fsviz.evaluation import Correlation, VarianceExplained, VarianceShare
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import HeadlineNumber
from fsviz.studies.causes.spec import STAGE, CausesDict, CausesSummary, MeasuredTasks, MethodCauses
from fsviz.workspace import plain_json

ALIKE = 0.6  # rank correlation from which on measures are one family


def summary(measured: MeasuredTasks) -> CausesSummary:
    """Everything in numbers: per method its mean, correlations, shares and sentence; families of measures; what is not
    known and why."""
    spec = measured.spec
    told: CausesSummary = {
        "dataset": spec["dataset"],
        "backbone": spec["backbone"],
        "testbed": spec["testbed"],
        "run": spec["run"],
        "n_tasks": len(measured),
        "digest": spec["digest"],
        "unknown": dict(measured.unknown),
        "families": families(measured)[1],
        "methods": {},
    }
    for method, values in measured.accuracy.items():
        told["methods"][method] = {**mean(values), "correlations": _correlations_dict(measured, method)}
        try:
            by_stage = {stage: explained(measured, method, stage) for stage in STAGE.choices}
        except BadInput as error:
            told["methods"][method]["sentence"] = str(error)
            continue
        told["methods"][method] |= {
            "explained": {cast(Stage, stage): _causes_dict(one.total) for stage, one in by_stage.items()},
            "shares": {cast(Cause, cause): _causes_dict(one) for cause, one in by_stage["labelled"].lost.items()},
            "alone": {cast(Cause, cause): _causes_dict(one) for cause, one in by_stage["labelled"].alone.items()},
            "luck": finite(sampling_noise(measured, method)),
            "sentence": headline(measured, method, by_stage["labelled"]),
        }
    return plain_json(told)


def headline_numbers(measured: MeasuredTasks) -> list[HeadlineNumber]:
    """Per method its mean accuracy, and how much of its variance the measures explain once the support is labelled."""
    numbers = []
    for method in measured.accuracy:
        mean, half = mean_accuracy(measured, method)
        numbers.append(HeadlineNumber.around(f"accuracy_{method}", f"Accuracy, {method}", 100 * mean, 100 * half))
        try:
            total = explained(measured, method, "labelled").total
        except BadInput:  # too few tasks for a regression
            continue
        share, low, high = (finite(100 * end) for end in (total.value, total.low, total.high))
        title = f"Variance explained, {method}"
        numbers.append(HeadlineNumber(f"explained_{method}", title, share, low, high, ci_unit=total.ci_unit))
    return numbers


def mean(values: np.ndarray) -> MethodCauses:
    mean, ci95 = mean_and_ci95(values[np.isfinite(values)])
    return {"accuracy": finite(mean), "ci95": finite(ci95)}


def _causes_dict(share: VarianceShare) -> CausesDict:
    return {"share": finite(share.value), "low": finite(share.low), "high": finite(share.high), "over": share.ci_unit}


def _correlations_dict(measured: MeasuredTasks, method: str) -> dict[str, dict[str, float | None]]:
    rows = correlations(measured, method)
    return {name: {k: finite(getattr(row, k)) for k in ("value", "low", "high")} for name, row in rows.items()}


def mean_accuracy(measured: MeasuredTasks, method: str) -> tuple[float, float]:
    """The mean accuracy and half of its 95% interval over tasks."""
    mean, ci95 = mean_and_ci95(measured.accuracy[method][np.isfinite(measured.accuracy[method])])
    return float(mean), float(ci95)


def sampling_noise(measured: MeasuredTasks, method: str) -> float:
    """The share of the differences in accuracy that the draw of the queries brings, at most."""
    return evaluation.sampling_noise(measured.accuracy[method], measured.n_queries)


def correlations(measured: MeasuredTasks, method: str) -> dict[str, Correlation]:
    """Pearson's correlation of every measure with the accuracy of a method, with its 95% interval over classes."""
    accuracy = measured.accuracy[method]
    return {
        name: evaluation.correlation(accuracy, values, measured.tasks.class_ids)
        for name, values in measured.measures.items()
    }


def families(measured: MeasuredTasks) -> tuple[pd.DataFrame, list[list[str]]]:
    """Rank correlations among the measures, each turned so that higher is harder; rows and columns in an order that
    puts families together, and the families: measures that are alike on the average (see ALIKE)."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform
    from scipy.stats import spearmanr

    directed = pd.DataFrame({name: harder(name, measured.measures[name]) for name in varied(measured)})
    if directed.shape[1] < 2:
        return pd.DataFrame(np.ones((directed.shape[1],) * 2), directed.columns, directed.columns), [
            [n] for n in directed
        ]
    matrix = np.atleast_2d(spearmanr(directed, nan_policy="omit").statistic)
    if directed.shape[1] == 2:
        matrix = np.array([[1.0, matrix.ravel()[0]], [matrix.ravel()[0], 1.0]])
    matrix = np.nan_to_num(np.asarray(matrix, dtype=float))
    np.fill_diagonal(matrix, 1.0)
    tree = linkage(squareform(np.clip(1 - np.abs(matrix), 0, 1), checks=False), "average", optimal_ordering=True)
    order = leaves_list(tree)
    of = fcluster(tree, 1 - ALIKE, "distance")[order]
    names = [directed.columns[i] for i in order]
    return (
        pd.DataFrame(matrix[np.ix_(order, order)], names, names),
        [[name for name, family in zip(names, of, strict=True) if family == one] for one in dict.fromkeys(of)],
    )


def varied(measured: MeasuredTasks) -> list[str]:
    """Measures that are known of most tasks and differ between them."""
    return [
        name
        for name, values in measured.measures.items()
        if np.isfinite(values).mean() > 0.5 and np.nanmax(values) > np.nanmin(values)
    ]


def causes_at(measured: MeasuredTasks, stage: str) -> dict[Cause, list[str]]:
    """The measures that are known at a stage, by cause."""
    known = list(STAGE_TITLES)[: list(STAGE_TITLES).index(cast(Stage, stage)) + 1]
    names = [name for name in varied(measured) if MEASURES[name].stage in known]
    groups = {cause: [name for name in names if MEASURES[name].cause == cause] for cause in HARD_PHRASES}
    return {cause: group for cause, group in groups.items() if group}


def explained(measured: MeasuredTasks, method: str, stage: str = "labelled") -> VarianceExplained:
    """Variance explained on held-out tasks by a regression on the measures of a stage."""
    groups = cast(Mapping[str, Sequence[str]], causes_at(measured, stage))
    return evaluation.explain(measured.measures, measured.accuracy[method], groups, measured.tasks.class_ids)


def headline(measured: MeasuredTasks, method: str, variance: VarianceExplained) -> str:
    """Why these tasks are hard, in one sentence with its numbers, or that no cause explains it."""
    share, lost = variance.total, variance.lost
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
    also = [f"{HARD_PHRASES[cast(Cause, cause)]} ({lost[cause].value:.0%})" for cause in sure[1:]]
    others = f", then because {', and because '.join(also)}" if also else ""
    return (
        f"For {method}, these tasks are hard {how} because {HARD_PHRASES[cast(Cause, sure[0])]}: that explains "
        f"{first.value:.0%} of the differences in accuracy between them ({_interval(first)}){others}. All measures "
        f"together explain {share.value:.0%} ({_interval(share)})."
    )


def _interval(share: VarianceShare) -> str:
    return f"95% interval {max(share.low, 0):.0%} to {min(share.high, 1):.0%}"


def calibration(measured: MeasuredTasks, method: str, variance: VarianceExplained, n_groups: int = 8) -> pd.DataFrame:
    """Tasks in groups by what the regression expects: columns expected, accuracy, ci95 (over tasks), n_tasks."""
    there = np.flatnonzero(np.isfinite(variance.expected))
    order = there[np.argsort(variance.expected[there], kind="stable")]
    rows = []
    for part in np.array_split(order, min(n_groups, max(1, len(order) // 5))):
        mean, ci95 = mean_and_ci95(measured.accuracy[method][part])
        rows.append(
            {
                "expected": float(variance.expected[part].mean()),
                "accuracy": float(mean),
                "ci95": float(ci95),
                "n_tasks": len(part),
            }
        )
    return pd.DataFrame(rows)


def harder(name: str, values: np.ndarray) -> np.ndarray:
    """Values turned so that higher is harder."""
    return values if MEASURES[name].direction == "harder" else -values
