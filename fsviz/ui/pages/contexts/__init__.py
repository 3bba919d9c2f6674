"""The page of contexts: the table of concepts and contexts, and what follows from it."""

from __future__ import annotations

import streamlit as st

from fsviz.analyses import contexts as study
from fsviz.records import ContextTable, Dataset, HeadlineNumber
from fsviz.ui.pages.contexts import shift, table, words
from fsviz.ui.parts import controls, links, shell
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

SECTIONS = ("The table", "What another context costs", "Images and words")
TABLE = (study.ORDER.name, study.CELL.name)  # what stands in the link for the table alone
ONE_TASK = (shift.LOOKED.name, shift.PLACE.name)  # and for the one task whose context changes


def show(dataset: Dataset) -> None:
    shell.require(dataset, "contexts")
    split = shell.pick_split(dataset)
    counted = study.context_table(dataset, split)
    _headline(counted, association(dataset, split))
    section = controls.pick_section("What is shown", SECTIONS)
    if section == SECTIONS[1]:
        links.drop_from_link(*TABLE)
        shift.show(dataset, split)
        return
    if section == SECTIONS[2]:
        links.drop_from_link(*TABLE, *ONE_TASK)
        words.show(dataset, split)
        return
    links.drop_from_link(*ONE_TASK)
    table.show(dataset, split, counted)
    st.divider()
    shell.command_popover(study.command(dataset, split))


PAGE = Page(
    slug="contexts",
    label="Contexts",
    icon="🏜️",
    group="Why hard?",
    order=2,
    question="Does the classifier rely on the background?",
    lead="Which class of {dataset} appears in which context, and the cost when the context changes.",
    paper="Zhang et al. (2024), MetaCoCo",
    needs=("contexts",),
    explains=("loss_of_context", "accuracy", "interval", "cramer", "information", "words"),
    keywords=("background", "bias", "shift"),
    show=show,
)


def _headline(counted: ContextTable, found: dict[str, float | None]) -> None:
    share, median = study.usual_context(counted)
    tie = HeadlineNumber.worded(
        "tie", "Tie of concept and context", "unknown", help="It needs two concepts and two contexts."
    )
    if found["v"] is not None:
        tie = HeadlineNumber(
            "tie",
            "Tie of concept and context",
            found["v"],
            found["low"],
            found["high"],
            unit="",
            digits=2,
            note=f"by chance below {found['chance']:.2f}",
            help="Cramér's V without its bias: 0 where the context says nothing of the concept, 1 where it gives it "
            "away. With its 95% interval over images, and what 95% of shuffled tables stay below.",
        )
    numbers = [
        HeadlineNumber.count("concepts", "Concepts", len(counted.names), help="Classes of the split."),
        HeadlineNumber.count(
            "contexts", "Contexts", len(counted.contexts), help="Different backgrounds that they are seen in."
        ),
        tie,
        HeadlineNumber(
            "usual",
            "In its usual context",
            100 * share,
            digits=0,
            help="Share of images that were taken in the most common context of their concept. A concept is seen in "
            f"{median:,} contexts (median).",
        ),
    ]
    show_numbers(numbers)
    lonely = study.single(counted)
    if lonely:
        names = ", ".join(escape(name) for name in lonely[:6]) + (f" and {len(lonely) - 6:,} more" * (len(lonely) > 6))
        st.caption(f"Seen in one context only, so that no task can ask for them in another one: {names}.")


@cache_data("Shuffling the table", 48)
def association(dataset: Dataset, split: str) -> dict[str, float | None]:
    return study.association(study.context_table(dataset, split))
