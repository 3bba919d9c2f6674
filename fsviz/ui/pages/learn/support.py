"""Lesson 4: hard and easy support images (Basu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition, support
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import LessonView, same_queries
from fsviz.ui.parts import page_links, shell


def _show(dataset: Dataset, positions: list[ControlPosition], at: int, visited: Sequence[bool]) -> None:
    same_queries(support.LESSON, dataset, positions, at, visited)


def _next_steps(dataset: Dataset, positions: list[ControlPosition], at: int) -> None:
    task = study.typical(positions, at, paired=True)
    backbone = draw.default_backbone(dataset)
    page_links.to_task(dataset, positions[at].tasks, task, backbone, "Edit support images", study.METHOD)
    settings = {"split": draw.default_split(dataset), "n_shot": str(study.SHAPE["n_shot"])}
    shell.page_link("hard_supports", "Hard supports of many tasks", shell.link(dataset, **settings))


LESSON = LessonView(support.LESSON, _show, _next_steps)
