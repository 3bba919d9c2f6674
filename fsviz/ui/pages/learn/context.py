"""Lesson 2: contexts (Zhang et al. 2024, MetaCoCo)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, same_queries, titles
from fsviz.ui.parts import shell

COST = "Cost of a context change"  # section of the page Contexts


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    same_queries(dataset, positions, at, visited, "support contexts, relative to those of the queries", "context")


def _next_steps(dataset: Dataset, positions: list[ControlPosition], at: int) -> None:
    settings = {"split": draw.default_split(dataset), "show": COST, "n_shot": str(study.SHAPE["n_shot"])}
    shell.page_link("contexts", "Cost of a context change by method", shell.link(dataset, **settings))


LESSON = Lesson(
    order=2,
    cause="Context",
    title="Does the classifier use the object or the background?",
    text="Every demo image shows an object (its class) in a place (its **context**). Classes and queries stay "
    "fixed; only the support's contexts change.",
    paper="Zhang et al. 2024 (MetaCoCo)",
    control="Support contexts",
    hint="Watch the first image of each row.",
    measure=study.measure_context,
    positions=titles,
    ask=study.ask_context,
    show=_show,
    next_steps=_next_steps,
)
