"""Accuracy explained by measures: correlations, groups of measures, shares, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.difficulty.measures import CAUSE_TITLES, MEASURES, STAGE_TITLES, Cause, Stage
from fsviz.errors import BadInput
from fsviz.evaluation import Correlation, VarianceExplained, VarianceShare
from fsviz.features.backbones import title_of
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import HeadlineNumber
from fsviz.studies.causes.spec import STAGE, CausesDict, CausesSummary, MeasuredTasks, MethodCauses
from fsviz.workspace import plain_json

ALIKE = 0.6  # mean rank correlation of measures that form a group


def summary(measured: MeasuredTasks) -> CausesSummary:
    """All results: per method its mean, correlations, shares and answer; groups of measures; measures not available."""
    spec = measured.spec
    result: CausesSummary = {
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
        result["methods"][method] = {**mean(values), "correlations": _correlations_dict(measured, method)}
        try:
            by_stage = {stage: explained(measured, method, stage) for stage in STAGE.choices}
        except BadInput as error:
            result["methods"][method]["sentence"] = str(error)
            continue
        result["methods"][method] |= {
            "explained": {cast(Stage, stage): _causes_dict(variance.total) for stage, variance in by_stage.items()},
            "shares": {cast(Cause, cause): _causes_dict(share) for cause, share in by_stage["labelled"].lost.items()},
            "alone": {cast(Cause, cause): _causes_dict(share) for cause, share in by_stage["labelled"].alone.items()},
            "sampling_noise": finite(sampling_noise(measured, method)),
            "sentence": " ".join(headline(measured, method, by_stage["labelled"])),
        }
    return plain_json(result)


def headline_numbers(measured: MeasuredTasks) -> list[HeadlineNumber]:
    """Per method its mean accuracy, and the share of its variance that all measures explain."""
    numbers = []
    for method in measured.accuracy:
        mean, half = _mean_accuracy(measured, method)
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
    """Mean accuracy and half of its 95% CI over tasks."""
    mean, ci95 = mean_and_ci95(values[np.isfinite(values)])
    return {"accuracy": finite(mean), "ci95": finite(ci95)}


def _causes_dict(share: VarianceShare) -> CausesDict:
    return {"share": finite(share.value), "low": finite(share.low), "high": finite(share.high), "over": share.ci_unit}


def _correlations_dict(measured: MeasuredTasks, method: str) -> dict[str, dict[str, float | None]]:
    rows = correlations(measured, method)
    return {name: {k: finite(getattr(row, k)) for k in ("value", "low", "high")} for name, row in rows.items()}


def _mean_accuracy(measured: MeasuredTasks, method: str) -> tuple[float, float]:
    mean, half = mean_and_ci95(measured.accuracy[method][np.isfinite(measured.accuracy[method])])
    return float(mean), float(half)


def sampling_noise(measured: MeasuredTasks, method: str) -> float:
    """Largest share of the variation in accuracy that can come from the sampled queries."""
    return evaluation.sampling_noise(measured.accuracy[method], measured.n_queries)


def correlations(measured: MeasuredTasks, method: str) -> dict[str, Correlation]:
    """Pearson's correlation of every measure with the accuracy of a method, with its 95% CI over classes."""
    accuracy = measured.accuracy[method]
    return {
        name: evaluation.correlation(accuracy, values, measured.tasks.class_ids)
        for name, values in measured.measures.items()
    }


def families(measured: MeasuredTasks) -> tuple[pd.DataFrame, list[list[str]]]:
    """Rank correlations of measures, signs flipped so that higher is harder, and groups of similar ones (see ALIKE).

    Rows and columns are in the order of the groups.
    """
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
    group_of = fcluster(tree, 1 - ALIKE, "distance")[order]
    names = [directed.columns[i] for i in order]
    return (
        pd.DataFrame(matrix[np.ix_(order, order)], names, names),
        [
            [name for name, group in zip(names, group_of, strict=True) if group == number]
            for number in dict.fromkeys(group_of)
        ],
    )


def varied(measured: MeasuredTasks) -> list[str]:
    """Measures that most tasks have and that differ between them."""
    return [
        name
        for name, values in measured.measures.items()
        if np.isfinite(values).mean() > 0.5 and np.nanmax(values) > np.nanmin(values)
    ]


def causes_at(measured: MeasuredTasks, stage: str) -> dict[Cause, list[str]]:
    """The measures that a stage allows, by cause."""
    stages = list(STAGE_TITLES)[: list(STAGE_TITLES).index(cast(Stage, stage)) + 1]
    names = [name for name in varied(measured) if MEASURES[name].stage in stages]
    groups = {cause: [name for name in names if MEASURES[name].cause == cause] for cause in CAUSE_TITLES}
    return {cause: group for cause, group in groups.items() if group}


def explained(measured: MeasuredTasks, method: str, stage: str = "labelled") -> VarianceExplained:
    """Variance explained on held-out tasks by a regression on the measures of a stage."""
    groups = cast(Mapping[str, Sequence[str]], causes_at(measured, stage))
    return evaluation.explain(measured.measures, measured.accuracy[method], groups, measured.tasks.class_ids)


def headline(measured: MeasuredTasks, method: str, variance: VarianceExplained) -> tuple[str, str]:
    """The main cause with its share of the variation in accuracy, and an addition: the other causes and the total."""
    total, lost = variance.total, variance.lost
    significant = [cause for cause in sorted(lost, key=lambda cause: -lost[cause].value) if lost[cause].sure > 0]
    if total.low <= 0 or not significant:
        note = "None of them is significant on its own." if total.low > 0 else "This is not significant."
        return (
            f"No single cause for {method}: all measures together explain {max(total.value, 0):.0%} of the variation "
            f"in accuracy ({_interval(total)}).",
            note,
        )
    main, *further = significant
    listed = " and ".join(f"{cause_name(cause)} ({lost[cause].value:.0%})" for cause in further)
    return (
        f"Main cause for {method}: {cause_name(main)}. It uniquely explains {lost[main].value:.0%} of the variation "
        f"in accuracy ({_interval(lost[main])}).",
        (f"Next: {listed}. " if listed else "") + f"All measures together: {total.value:.0%} ({_interval(total)}).",
    )


def cause_name(cause: str) -> str:
    """The title of a cause inside a sentence."""
    title = CAUSE_TITLES[cast(Cause, cause)]
    return title[:1].lower() + title[1:]


def describe_accuracy(measured: MeasuredTasks, method: str) -> str:
    """The mean accuracy of a method with its 95% CI over tasks and its setting, in a sentence."""
    mean, half = _mean_accuracy(measured, method)
    return (
        f"Mean accuracy: {100 * mean:.1f} ± {100 * half:.1f}% over {len(measured):,} {measured.tasks.setting} tasks, "
        f"{title_of(measured.spec['backbone'])} features."
    )


_EXPLAINED_TITLES = {
    "before": "Predictable without labels",
    "support": "Predictable with support labels",
    "labelled": "Explained with all labels",
}


def explained_numbers(by_stage: Mapping[str, VarianceExplained]) -> list[HeadlineNumber]:
    """Share of the variation in accuracy explained at each stage, or "not significant"."""
    numbers = []
    for stage, variance in by_stage.items():
        share = variance.total
        is_significant = share.low > 0
        numbers.append(
            HeadlineNumber(
                f"explained_{stage}",
                _EXPLAINED_TITLES[stage],
                max(100 * share.value, 0) if is_significant else None,
                100 * share.low,
                100 * share.high,
                digits=0,
                words="" if is_significant else "not significant",
                help="Held-out R²: variation in accuracy explained on tasks not used for fitting. 95% CI over "
                f"{share.ci_unit}; below 0, predicting the mean is better.",
            )
        )
    return numbers


def unexplainable(measured: MeasuredTasks, method: str, by_stage: Mapping[str, VarianceExplained]) -> float:
    """Largest share of the variation that can be query sampling noise: none of it is explained at any stage."""
    explained_shares = [variance.total.value for variance in by_stage.values() if variance.total.low > 0]
    return min([sampling_noise(measured, method), *(1 - share for share in explained_shares)])


def strongest_measure(measured: MeasuredTasks, method: str) -> str:
    """The measure with the strongest correlation in its expected direction, without those that use predictions."""
    signed = {
        name: (1 if MEASURES[name].direction == "easier" else -1) * row.value
        for name, row in correlations(measured, method).items()
        if MEASURES[name].stage != "answered" and np.isfinite(row.value)
    }
    return max(signed, key=signed.__getitem__) if signed else ""


def _interval(share: VarianceShare) -> str:
    return f"95% CI {100 * max(share.low, 0):.0f} to {100 * min(share.high, 1):.0f}%"


def calibration(measured: MeasuredTasks, method: str, variance: VarianceExplained, n_groups: int = 8) -> pd.DataFrame:
    """Tasks in groups by predicted accuracy: columns expected, accuracy, ci95 (over tasks), n_tasks."""
    finite_rows = np.flatnonzero(np.isfinite(variance.expected))
    order = finite_rows[np.argsort(variance.expected[finite_rows], kind="stable")]
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
    """Values with the sign flipped if needed, so that higher is harder."""
    return values if MEASURES[name].direction == "harder" else -values
