"""Lesson 4: hard and easy support images (Basu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, same_queries, titles
from fsviz.ui.parts import page_links, shell


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    same_queries(dataset, positions, at, visited, "support images of the same queries", "support")


def _next_steps(dataset: Dataset, positions: list[ControlPosition], at: int) -> None:
    task = study.typical(positions, at, paired=True)
    backbone = draw.default_backbone(dataset)
    page_links.to_task(dataset, positions[at].tasks, task, backbone, "Edit support images", study.METHOD)
    settings = {"split": draw.default_split(dataset), "n_shot": str(study.SHAPE["n_shot"])}
    shell.page_link("hard_supports", "Hard supports of many tasks", shell.link(dataset, **settings))


LESSON = Lesson(
    order=4,
    cause="Support",
    title="How much depends on the support images?",
    text="The labelled images are chosen at random. The queries stay fixed; the support ranges from a **hard** to "
    "an **easy** one, both the result of a search.",
    paper="Basu et al. 2023",
    control="Support images",
    hint="What do the hard ones have in common?",
    measure=study.measure_support,
    positions=titles,
    ask=study.ask_support,
    show=_show,
    next_steps=_next_steps,
)
