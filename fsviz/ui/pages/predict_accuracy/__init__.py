"""The page Predict accuracy: measures of tasks compared with their outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import lower_title, title
from fsviz.features.backbones import title_of
from fsviz.figures import prediction as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.studies import prediction as study
from fsviz.studies import sweep as sweep_study
from fsviz.studies.prediction import measured
from fsviz.studies.prediction.measured import PredictionTasks
from fsviz.text import split_title
from fsviz.ui.pages.predict_accuracy import hard_or_easy, labelling, settings, sweep, task, variance
from fsviz.ui.parts import controls, export, links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

MAX_POINTS = 3000
SECTIONS = ("Task", "Detect hard tasks", "Shots, ways, queries", "Sources of variance", "What to label next")


def show(dataset: Dataset) -> None:
    backbones = shell.known_backbones(dataset)
    spec = settings.pick(dataset, backbones)
    result = answer(study.STUDY, spec, "Measuring tasks")
    if result is None:
        return
    measured_tasks = result.measured[0]
    _headline(measured_tasks)
    left, right = shell.responsive_columns("measure", [3, 2], gap="large")
    with left:
        chosen, name = _scatter(measured_tasks)
    with right:
        _bars(measured_tasks)
    _caption(measured_tasks, name)
    section = controls.pick_section("View", SECTIONS, "Task")
    command = ""
    if section != "Detect hard tasks":
        links.drop_from_link(hard_or_easy.CALLED.name)
    if section == "Task":
        task.show(dataset, measured_tasks, chosen)
    elif section == "Detect hard tasks":
        command = study.command(hard_or_easy.show(dataset, spec))
    elif section == "Shots, ways, queries":
        command = sweep_study.command(sweep.show(dataset, spec))
    else:
        module: Any = {"Sources of variance": variance}.get(str(section), labelling)
        command = study.command(module.show(dataset, spec))
    st.divider()
    shell.command_popover(command or study.command(spec))


PAGE = Page(
    slug="predict_accuracy",
    label="Predict accuracy",
    icon="🔮",
    group="Why hard?",
    order=4,
    question="Can accuracy be predicted without query labels?",
    lead="Measures that need no query labels, compared with the true accuracy on {dataset}.",
    paper="Bontonou et al. (2020)",
    needs=("features",),
    explains=("measures", "correlation", "accuracy", "rand"),
    keywords=("label-free", "uncertainty"),
    show=show,
)


def _headline(tasks: PredictionTasks) -> None:
    outcome = escape(measured.outcome_name(tasks.spec))
    best = measured.best_measure(cached_call(measured.correlations, tasks))
    numbers: list[HeadlineNumber | None] = [None, None, None, None]
    if best is not None:
        name, row = best
        numbers[0] = HeadlineNumber.worded(
            "best",
            "Best measure",
            title(name),
            note=f"r = {row['pearson']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            help="Best of the measures that do not use class identities: strongest correlation with the "
            f"{outcome}, {measured.describe_intervals([row])}.",
        )
    mean, half = measured.mean_outcome(tasks)
    text = "95% CI over tasks."
    numbers[1] = HeadlineNumber.around("mean", f"Mean {outcome}", 100 * mean, _times(100, half), help=text)
    if tasks.spec["setting"] == "semi":
        error = measured.prediction_error(tasks)
        constant = _error(error, "constant", "", "")
        numbers[2] = _error(error, "error", "Prediction error", f"predicting the mean: {constant.number_text}")
    elif best is not None:
        low, high = sorted(100 * best[1][end] ** 2 for end in ("low", "high"))
        numbers[2] = HeadlineNumber(
            "explained",
            "R²",
            100 * best[1]["pearson"] ** 2,
            0.0 if best[1]["low"] < 0 < best[1]["high"] else low,
            high,
            digits=0,
            help=f"Share of the variance of the {outcome} explained by a linear fit to the best measure.",
        )
    numbers[3] = HeadlineNumber.count("tasks", "Tasks", len(tasks))
    show_numbers(numbers)


def _error(error: dict[str, float | None], name: str, title: str, note: str) -> HeadlineNumber:
    """A mean error in points with its interval."""
    return HeadlineNumber.around(
        name,
        title,
        100 * (error[name] or 0),
        _times(100, error[f"{name}_ci95"]),
        "points",
        note=note,
        help="Mean absolute error of mean confidence as predicted accuracy, compared with predicting the mean accuracy "
        "of all tasks. 95% CI over tasks.",
    )


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _scatter(tasks: PredictionTasks) -> tuple[int, str]:
    """Show the scatter of a measure; returns the clicked task, else that with the lowest outcome, and the measure."""
    titles = {name: title(name) for name in tasks.measures}
    expected = "expected" if tasks.spec["setting"] == "semi" else ""
    if expected:
        titles[expected] = "Mean confidence (predicted accuracy)"
    best = measured.best_measure(cached_call(measured.correlations, tasks))
    default = best[0] if best else next(iter(titles))
    picker = controls.MEASURE.with_(choices=titles, default=default)
    name = controls.pick(picker, about=str(tasks.spec["setting"]))
    values = 100 * tasks.expected if name == expected else tasks.measures[name]
    hardest = int(np.argmin(tasks.outcome))
    task_setting = TASK.with_(kind="int", default=hardest, high=len(tasks) - 1)
    clicked = int(links.value_of(task_setting, TASK.name, str(tasks.cache_key)))
    defined = np.flatnonzero(np.isfinite(values))
    if not len(defined):
        st.info(
            f"{escape(titles[name])}: {escape(measured.undefined(name, tasks.spec))}. Choose another measure.",
            icon="🔍",
        )
        return hardest, name
    plotted = defined if len(defined) <= MAX_POINTS else defined[:: -(-len(defined) // MAX_POINTS)]
    outcome = escape(measured.outcome_name(tasks.spec))
    export.chart(
        "Measure vs outcome",
        figures.plot_scatter(
            values[plotted],
            100 * tasks.outcome[plotted],
            measured.fitted_line(values, 100 * tasks.outcome),
            "mean confidence (%)" if name == expected else lower_title(name),
            f"{outcome} (%)",
            clicked,
            plotted,
            diagonal=name == expected,
        ),
        key="scatter",
        sets=task_setting,
    )
    return clicked, name


def _bars(tasks: PredictionTasks) -> None:
    outcome = escape(measured.outcome_name(tasks.spec))
    best = measured.best_measure(cached_call(measured.correlations, tasks))
    rows = []
    for name, row in cached_call(measured.correlations, tasks).items():
        value, low, high = measured.as_expected(name, row)
        rows.append(
            {
                "name": name,
                "title": title(name),
                "value": value,
                "low": low,
                "high": high,
                "shown": "" if row["pearson"] is None else f"{row['pearson']:.2f}",
                "why": row["why"],
                "best": best is not None and name == best[0],
            }
        )
    st.markdown(f"**Correlation with {outcome}** (expected sign: right)")
    export.chart(
        "Correlation of every measure",
        figures.plot_correlations(rows, outcome),
        key="correlations",
        sets=controls.MEASURE,
    )
    st.caption("Click a bar to plot its measure.")


def _caption(tasks: PredictionTasks, name: str) -> None:
    """Show the settings of the tasks and the correlation of a measure."""
    spec = tasks.spec
    row: measured.MeasureCorrelation = cached_call(measured.correlations, tasks).get(name, {})
    excluded = cached_call(measured.excluded_measures, tasks)
    missing = "; ".join(f"{escape(title(measure))}: {escape(why)}" for measure, why in excluded.items())
    labels_used = {
        "supervised": "Uses support labels only.",
        "semi": "Also uses unlabelled queries.",
        "unsupervised": "Uses no labels; outcome: adjusted Rand index (0% = chance level).",
    }[spec["setting"]]
    st.caption(
        f"{len(tasks):,} {escape(tasks.tasks.setting)} tasks of {escape(split_title(spec['split']))}, "
        f"{escape(title_of(spec['backbone']))} features. {labels_used} "
        + (
            f"{escape(title(name))}: r = {row['pearson']:.2f} ({row['low']:.2f} to {row['high']:.2f}), Spearman "
            f"{row['spearman']:.2f}. "
            if row.get("low") is not None
            else ""
        )
        + (f"Not measured: {missing}. " if missing else "")
        + "Click a point to see its task.",
        help=f"Pearson's r; {escape(measured.describe_intervals(cached_call(measured.correlations, tasks).values()))}."
        + (" Features are averaged with those of their neighbours." if spec["setting"] == "semi" else ""),
    )
