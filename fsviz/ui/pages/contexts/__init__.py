"""The page Contexts: the class–context table, the cost of a context change, and image–text similarity."""

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

SECTIONS = ("Class–context table", "Cost of a context change", "Image–text similarity")
TABLE = (study.ORDER.name, study.CELL.name)  # link keys of the table alone
ONE_TASK = (shift.LOOKED.name, shift.PLACE.name)  # link keys of the task whose context changes


def show(dataset: Dataset) -> None:
    shell.require(dataset, "contexts")
    split = shell.pick_split(dataset)
    counted = study.context_table(dataset, split)
    _headline(counted, association(dataset, split))
    section = controls.pick_section("View", SECTIONS)
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


def _headline(counted: ContextTable, cramer: dict[str, float | None]) -> None:
    share, median = study.common_context(counted)
    number = HeadlineNumber.worded(
        "tie", "Class–context association (V)", "not available", help="Needs at least two classes and two contexts."
    )
    if cramer["v"] is not None:
        number = HeadlineNumber(
            "tie",
            "Class–context association (V)",
            cramer["v"],
            cramer["low"],
            cramer["high"],
            unit="",
            digits=2,
            note=f"expected by chance below {cramer['chance']:.2f}",
            help="Bias-corrected Cramér's V: 0 = independent, 1 = context determines the class. 95% CI over images. "
            "95% of shuffled tables stay below the value expected by chance.",
        )
    numbers = [
        HeadlineNumber.count("concepts", "Classes", len(counted.names), help="Classes of the split."),
        HeadlineNumber.count(
            "contexts", "Contexts", len(counted.contexts), help="Different backgrounds of their images."
        ),
        number,
        HeadlineNumber(
            "usual",
            "In the most common context",
            100 * share,
            digits=0,
            help=f"Share of images in their class's most common context (median: {median:,} contexts per class).",
        ),
    ]
    show_numbers(numbers)
    single = study.single_context(counted)
    if single:
        names = ", ".join(escape(name) for name in single[:6]) + (f" and {len(single) - 6:,} more" * (len(single) > 6))
        st.caption(f"One context only, no shift possible: {names}.")


@cache_data("Shuffling the table", 48)
def association(dataset: Dataset, split: str) -> dict[str, float | None]:
    return study.association(study.context_table(dataset, split))
