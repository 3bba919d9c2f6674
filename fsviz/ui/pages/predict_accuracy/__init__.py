"""The page of predicted accuracy: measures against what came out, task by task, and what follows from it."""

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
from fsviz.studies.prediction.measured import Measured
from fsviz.text import split_title
from fsviz.ui.pages.predict_accuracy import hard_or_easy, labelling, settings, sweep, task, variance
from fsviz.ui.parts import controls, export, links, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.ui.parts.task_list import TASK

MOST_POINTS = 3000
SECTIONS = ("Task", "Hard or easy", "Shots, ways, queries", "Spread by cause", "What to label next")


def show(dataset: Dataset) -> None:
    known = shell.known_backbones(dataset)
    spec = settings.pick(dataset, known)
    result = answer(study.STUDY, spec, "Measuring tasks")
    if result is None:
        return
    found = result.measured[0]
    _headline(found)
    left, right = shell.responsive_columns("measure", [3, 2], gap="large")
    with left:
        chosen, name = _scatter(found)
    with right:
        _bars(found)
    _caption(found, name)
    section = controls.pick_section("Why, and what else?", SECTIONS, "Task")
    command = ""
    if section != "Hard or easy":
        links.drop_from_link(hard_or_easy.CALLED.name)
    if section == "Task":
        task.show(dataset, found, chosen)
    elif section == "Hard or easy":
        command = study.command(hard_or_easy.show(dataset, spec))
    elif section == "Shots, ways, queries":
        command = sweep_study.command(sweep.show(dataset, spec))
    else:
        part: Any = {"Spread by cause": variance}.get(str(section), labelling)
        command = study.command(part.show(dataset, spec))
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


def _headline(found: Measured) -> None:
    what = escape(measured.outcome_name(found.spec))
    best = measured.best_measure(cached_call(measured.correlations, found))
    numbers: list[HeadlineNumber | None] = [None, None, None, None]
    if best is not None:
        name, row = best
        numbers[0] = HeadlineNumber.worded(
            "best",
            "Best, classes unknown",
            title(name),
            note=f"correlation {row['pearson']:.2f} ({row['low']:.2f} to {row['high']:.2f})",
            help=f"Of the measures that need not know which classes a task has, the one that follows the {what} best, "
            f"with its {measured.intervals_in_words([row])}.",
        )
    mean, half = measured.mean_outcome(found)
    text = "95% interval over tasks of these images."
    numbers[1] = HeadlineNumber.around("mean", f"Mean {what}", 100 * mean, _times(100, half), help=text)
    if found.spec["setting"] == "semi":
        error = measured.prediction_error(found)
        constant = _error(error, "constant", "", "")
        numbers[2] = _error(error, "error", "Confidence misses accuracy by", f"a constant: {constant.number_text}")
    elif best is not None:
        low, high = sorted(100 * best[1][end] ** 2 for end in ("low", "high"))
        numbers[2] = HeadlineNumber(
            "explained",
            "Variance it explains",
            100 * best[1]["pearson"] ** 2,
            0.0 if best[1]["low"] < 0 < best[1]["high"] else low,
            high,
            digits=0,
            help=f"Share of the variance of the {what} that a straight line through the best measure explains.",
        )
    numbers[3] = HeadlineNumber.count("tasks", "Tasks", len(found))
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
        help="Mean absolute difference between the accuracy of a task and the mean confidence of the regression on "
        "its queries, beside always saying the mean accuracy of all tasks; 95% intervals over tasks of these images.",
    )


def _times(factor: float, value: float | None) -> float | None:
    return None if value is None else factor * value


def _scatter(found: Measured) -> tuple[int, str]:
    """The scatter of a measure; returns the task that was clicked, else the one with the lowest outcome, and which
    measure it is."""
    titles = {name: title(name) for name in found.measures}
    expected = "expected" if found.spec["setting"] == "semi" else ""
    if expected:
        titles[expected] = "Mean confidence: the predicted accuracy"
    best = measured.best_measure(cached_call(measured.correlations, found))
    default = best[0] if best else next(iter(titles))
    picker = controls.MEASURE.with_(choices=titles, default=default)
    name = controls.pick(picker, about=str(found.spec["setting"]))
    values = 100 * found.expected if name == expected else found.measures[name]
    hardest = int(np.argmin(found.outcome))
    looked_at = TASK.with_(kind="int", default=hardest, high=len(found) - 1)
    clicked = int(links.value_of(looked_at, TASK.name, str(found.cache_key)))
    shown = np.flatnonzero(np.isfinite(values))
    if not len(shown):
        st.info(
            f"{escape(titles[name])}: {escape(measured.undefined(name, found.spec))}. Choose another measure.",
            icon="🔍",
        )
        return hardest, name
    few = shown if len(shown) <= MOST_POINTS else shown[:: -(-len(shown) // MOST_POINTS)]
    what = escape(measured.outcome_name(found.spec))
    export.chart(
        "A measure against what came out",
        figures.plot_scatter(
            values[few],
            100 * found.outcome[few],
            measured.fitted_line(values, 100 * found.outcome),
            "mean confidence (%)" if name == expected else lower_title(name),
            f"{what} (%)",
            clicked,
            few,
            diagonal=name == expected,
        ),
        key="scatter",
        sets=looked_at,
    )
    return clicked, name


def _bars(found: Measured) -> None:
    what = escape(measured.outcome_name(found.spec))
    best = measured.best_measure(cached_call(measured.correlations, found))
    rows = []
    for name, row in cached_call(measured.correlations, found).items():
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
    st.markdown(f"**Correlation of every measure with the {what}** (to the right: as expected)")
    export.chart(
        "Correlation of every measure",
        figures.plot_correlations(rows, what),
        key="correlations",
        sets=controls.MEASURE,
    )
    st.caption(f"Click a bar to see its measure against the {what}.")


def _caption(found: Measured, name: str) -> None:
    """What the tasks are, and the correlation of the measure that is looked at."""
    spec = found.spec
    row: measured.Correlation = cached_call(measured.correlations, found).get(name, {})
    left_out = cached_call(measured.left_out, found)
    missing = "; ".join(f"{escape(title(other))}: {escape(why)}" for other, why in left_out.items())
    seen = {
        "supervised": "Only the labelled support is seen.",
        "semi": "Support and unlabelled queries are seen; their features are mixed with those of their neighbours.",
        "unsupervised": "No label is seen: support and query images together are clustered, and the adjusted Rand "
        "index says how well clusters and classes agree (100% is perfect, 0 is chance).",
    }[spec["setting"]]
    st.caption(
        f"{len(found):,} {escape(found.tasks.setting)} tasks of {escape(split_title(spec['split']))}, features of "
        f"{escape(title_of(spec['backbone']))}. {seen} Every point is a task: click one to see it below. Pearson's "
        f"correlations; {escape(measured.intervals_in_words(cached_call(measured.correlations, found).values()))}."
        + (
            f" {escape(title(name))}: {row['pearson']:.2f} ({row['low']:.2f} to {row['high']:.2f}), Spearman's "
            f"{row['spearman']:.2f}."
            if row.get("low") is not None
            else ""
        )
        + (f" Not measured: {missing}." if missing else "")
    )
