"""The page Predict accuracy: measures of tasks compared with their outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz.difficulty.measures import lower_title, title
from fsviz.features.backbones import title_of
from fsviz.figures import prediction as figures
from fsviz.records import Dataset
from fsviz.studies import prediction as study
from fsviz.studies import sweep as sweep_study
from fsviz.studies.prediction import answers, measured
from fsviz.studies.prediction.measured import PredictionTasks
from fsviz.text import split_title
from fsviz.ui.pages.predict_accuracy import hard_or_easy, labelling, settings, sweep, task, variance
from fsviz.ui.parts import controls, export, links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

MAX_POINTS = 3000
LABELS_USED = {
    "supervised": "Uses support labels only.",
    "semi": "Also uses unlabelled queries.",
    "unsupervised": "Uses no labels; outcome: adjusted Rand index (0% = chance level).",
}
SECTIONS = ("Task", "Detect hard tasks", "Shots, ways, queries", "Sources of variance", "What to label next")


def show(dataset: Dataset) -> None:
    backbones = shell.known_backbones(dataset)
    measure_place = shell.side().container()
    spec = settings.pick(dataset, backbones)
    result = answer(study.STUDY, spec, "Measuring tasks")
    if result is None:
        return
    tasks = result.measured[0]
    sentence, more = cached_call(answers.answer, tasks)
    controls.show_answer(escape(sentence), escape(more), float(tasks.outcome.mean()), spec["n_shot"])
    left, right = shell.responsive_columns("measure", [3, 2], gap="large")
    with left:
        selected_task = _scatter(tasks, measure_place)
    with right:
        _bars(tasks)
    _caption(tasks)
    section = controls.pick_section("Details", SECTIONS, "Task", label_visibility="collapsed")
    command = ""
    if section != "Detect hard tasks":
        links.drop_from_link(hard_or_easy.CALLED.name)
    if section == "Task":
        task.show(dataset, tasks, selected_task)
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


def _scatter(tasks: PredictionTasks, place: Any) -> int:
    """Show the scatter of a measure; returns the clicked task, else that with the lowest outcome."""
    titles = {name: title(name) for name in tasks.measures}
    expected = "expected" if tasks.spec["setting"] == "semi" else ""
    if expected:
        titles[expected] = "Mean confidence (predicted accuracy)"
    best = measured.best_measure(cached_call(measured.correlations, tasks))
    default = best[0] if best else next(iter(titles))
    picker = controls.MEASURE.with_(choices=titles, default=default, help="Also by a click on a bar.")
    name = controls.pick(picker, place, about=str(tasks.spec["setting"]))
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
        return hardest
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
        sets=Click(task_setting, also={"show": "Task"}),
    )
    return clicked


def _bars(tasks: PredictionTasks) -> None:
    outcome = escape(measured.outcome_name(tasks.spec))
    rows = measured.correlation_rows(cached_call(measured.correlations, tasks))
    figure = figures.plot_correlations(rows, outcome)
    export.chart("Correlation of every measure", figure, key="correlations", sets=controls.MEASURE)


def _caption(tasks: PredictionTasks) -> None:
    """Show the settings of the tasks, how to read the bars, and the measures that are missing."""
    spec, rows = tasks.spec, cached_call(measured.correlations, tasks)
    excluded = cached_call(measured.excluded_measures, tasks)
    missing = "; ".join(f"{escape(title(measure))}: {escape(why)}" for measure, why in excluded.items())
    hatched = "Hatched: needs to know the classes. " if any(map(measured.needs_classes, rows)) else ""
    st.caption(
        f"{escape(tasks.tasks.setting)} tasks of {escape(split_title(spec['split']))}, "
        f"{escape(title_of(spec['backbone']))} features. {LABELS_USED[spec['setting']]} {hatched}"
        + (f"Not measured: {missing}. " if missing else "")
        + "Click a point for its task, a bar for its measure.",
        help=f"Pearson's r; {escape(measured.describe_intervals(rows.values()))}. Blue: best of the measures that do "
        "not need to know the classes."
        + (" Features are averaged with those of their neighbours." if spec["setting"] == "semi" else ""),
    )
