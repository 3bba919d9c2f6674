"""Lesson 2: contexts (Zhang et al. 2024, MetaCoCo)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition, context
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import LessonView, same_queries
from fsviz.ui.parts import shell

COST = "Cost of a context change"  # section of the page Contexts


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    same_queries(context.LESSON, dataset, positions, at, visited)


def _next_steps(dataset: Dataset, positions: list[ControlPosition], at: int) -> None:
    settings = {"split": draw.default_split(dataset), "show": COST, "n_shot": str(study.SHAPE["n_shot"])}
    shell.page_link("contexts", "Cost of a context change by method", shell.link(dataset, **settings))


LESSON = LessonView(context.LESSON, _show, _next_steps)
