"""Lesson 6: several causes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import CombinedLesson
from fsviz.difficulty.measures import MEASURES
from fsviz.figures import lessons as figures
from fsviz.records import Dataset
from fsviz.studies.prediction.measured import fitted_line
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, images
from fsviz.ui.parts import export, page_links, shell
from fsviz.ui.parts.shell import escape


def _show(dataset: Dataset, found: CombinedLesson, at: int, seen: Sequence[bool]) -> None:
    name = list(found.measures)[at]
    measure, values, accuracy = MEASURES[name], found.measures[name].to_numpy(), found.stop.accuracy
    how = found.correlations[name]
    left, right = shell.responsive_columns("together", [3, 2], gap="large")
    with left:
        line = fitted_line(values, accuracy)
        figure = figures.plot_cause(values, accuracy, line, found.hard, found.easy, measure.title)
        export.chart("A measure against accuracy", figure, key="lesson_chart")
        st.caption(
            f"{len(accuracy):,} random tasks ({escape(found.stop.tasks.setting)}). **{escape(measure.title)}**: "
            f"{escape(measure.words)}. {escape(measure.what)}"
        )
    with right:
        st.metric(
            "Correlation with the accuracy",
            f"{how.value:.2f}",
            f"{how.low:.2f} to {how.high:.2f} over {escape(how.over)}; the higher, the {measure.direction}",
            delta_color="off",
            delta_arrow="off",
        )
        for which, task in (("hard", found.hard), ("easy", found.easy)):
            st.progress(
                found.percentile(name, task) / 100,
                f"The {which} task ({accuracy[task]:.0f}% right): harder by this measure than "
                f"{found.percentile(name, task):.0f}% of all",
            )
        known = [n for n, there in zip(found.measures, seen, strict=True) if there]
        export.table(
            "Measures that were looked at",
            {
                "measure": [MEASURES[n].title for n in known],
                "correlation": [f"{found.correlations[n].value:.2f}" for n in known],
                "points between the two": [f"{found.points(n):.1f}" for n in known],
            },
            hide_index=True,
            height="content",
        )
    columns = shell.responsive_columns("two_tasks", 2, gap="small")
    for column, which, task in zip(columns, ("hard", "easy"), (found.hard, found.easy), strict=True):
        with column:
            st.markdown(f"**The {which} task**: {accuracy[task]:.0f}% right")
            images(dataset, found.stop, task, f"together_{which}")


def _stops(found: CombinedLesson) -> Mapping[str, str]:
    return {name: MEASURES[name].title for name in found.measures}


def _go_on(dataset: Dataset, found: CombinedLesson, at: int) -> None:
    backbone = draw.default_backbone(dataset)
    page_links.to_task(dataset, found.stop.tasks, found.hard, backbone, "Take the hard task apart", study.METHOD)
    asked = {"split": draw.default_split(dataset), **{name: str(n) for name, n in study.SHAPE.items()}}
    label = "Every cause of these tasks, weighed against the others"
    shell.page_link("causes", label, shell.link(dataset, **asked))


LESSON = Lesson(
    6,
    "Together",
    "Several causes at once: which matters most?",
    "A real task has it all. Each measure is one number per task that is known before its queries are answered. One "
    "that matters lines up with the accuracy over many tasks, and differs between the hard and the easy task below.",
    "Bennequin et al. 2022 and Bontonou et al. 2020",
    "Measure",
    "Move through the measures. Which one orders the tasks best?",
    study.by_causes,
    _stops,
    study.ask_together,
    _show,
    _go_on,
    by_position=True,
)
