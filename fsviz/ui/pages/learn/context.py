"""Lesson 2: backgrounds (Zhang et al. 2024, MetaCoCo)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, same_queries, titles
from fsviz.ui.parts import shell

COSTS = "What another context costs"  # the section of the page Contexts


def _show(dataset: Dataset, stops: list[ControlPosition], at: int, seen: Sequence[bool]) -> None:
    same_queries(dataset, stops, at, seen, "contexts of the support images, against those of the queries", "context")


def _go_on(dataset: Dataset, stops: list[ControlPosition], at: int) -> None:
    asked = {"split": draw.default_split(dataset), "show": COSTS, "n_shot": str(study.SHAPE["n_shot"])}
    label = "What another context costs every method"
    shell.page_link("contexts", label, shell.link(dataset, **asked))


LESSON = Lesson(
    2,
    "Context",
    "Does a classifier know the thing or its background?",
    "Every image of the demo shows a thing (its concept, the class) in a place (its **context**). Below, classes and "
    "queries stay; only the contexts of the support images change. *Swapped*: those of another class's queries.",
    "Zhang et al. 2024 (MetaCoCo)",
    "Contexts of the support",
    "Move it and look at the first image of every row: same thing, another place.",
    study.by_context,
    titles,
    study.ask_context,
    _show,
    _go_on,
)
