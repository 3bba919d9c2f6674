"""Lesson 4: lucky and unlucky support images (Basu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from fsviz.analyses import lessons as study
from fsviz.analyses.lessons import ControlPosition
from fsviz.records import Dataset
from fsviz.tasks import draw
from fsviz.ui.pages.learn.lesson import Lesson, same_queries, titles
from fsviz.ui.parts import page_links, shell


def _show(dataset: Dataset, stops: list[ControlPosition], at: int, seen: Sequence[bool]) -> None:
    same_queries(dataset, stops, at, seen, "support of the same queries", "support")


def _go_on(dataset: Dataset, stops: list[ControlPosition], at: int) -> None:
    task = study.typical(stops, at, paired=True)
    backbone = draw.default_backbone(dataset)
    page_links.to_task(dataset, stops[at].tasks, task, backbone, "Swap support images of this very task", study.METHOD)
    asked = {"split": draw.default_split(dataset), "n_shot": str(study.SHAPE["n_shot"])}
    label = "Hard and easy support of many tasks"
    shell.page_link("hard_supports", label, shell.link(dataset, **asked))


LESSON = Lesson(
    4,
    "Support",
    "How much is luck with the support images?",
    "Which image of a class is labelled is chance. Below the queries stay; the support is the **hardest** and the "
    "**easiest** that a search (FastDiffSel) finds, and between them the unlucky, middle and lucky of "
    f"{study.N_SUPPORTS} random ones.",
    "Basu et al. 2023",
    "Support images",
    "Look at the first image of every row: what is it about the hard ones?",
    study.by_support,
    titles,
    study.ask_support,
    _show,
    _go_on,
)
