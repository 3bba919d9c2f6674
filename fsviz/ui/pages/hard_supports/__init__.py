"""Page Hard supports: accuracies with hard, random and easy supports, the tasks, and what explains them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from fsviz.records import Dataset
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.text import percent
from fsviz.ui.pages.hard_supports import (
    attributes,
    distribution,
    published,
    search_methods,
    semantic_distance,
    settings,
    step_size,
    stress_test,
    strips,
    task_table,
    tasks,
)
from fsviz.ui.parts import access, controls, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

SECTIONS = {
    "Tasks": tasks.show,
    "Attribute shift": attributes.show,
    "Semantic distance": semantic_distance.show,
    "Search methods": search_methods.show,
    "Step size": step_size.show,
    "Other classifiers": stress_test.show,
}


def show(dataset: Dataset) -> None:
    if not dataset.has_features:
        published.show(dataset)
    spec = settings.pick(dataset, shell.known_backbones(dataset))
    first_screen, runs = st.container(), st.container()
    with runs:
        sets = answer(study.STUDY, spec, task_table.PROGRESS_TITLE, distribution.so_far)
    if sets is None:
        shell.answer("No results yet: start the run, or lower the number of tasks or classes.")
        return
    with first_screen:
        _first_screen(dataset, sets, spec)
    section = controls.pick_section("Section", list(SECTIONS), "Tasks")
    SECTIONS[section](dataset, sets)
    _save(sets)


PAGE = Page(
    slug="hard_supports",
    label="Hard supports",
    icon="🧗",
    group="Tasks",
    order=3,
    question="How much accuracy can a choice of support images cost?",
    lead="The same queries of {dataset} with hard, random and easy support sets.",
    paper="Basu et al. (2023), FastDiffSel",
    needs=("features",),
    explains=("hard_support", "fastdiffsel", "query_loss", "accuracy", "gap", "interval"),
    keywords=("bad shots", "worst case", "outliers"),
    show=show,
)


def _lower_bound_note(sets: SupportSets, dataset: Dataset) -> str:
    return study.lower_bound_note(sets.spec, sets.tasks["random"], dataset)


def _first_screen(dataset: Dataset, sets: SupportSets, spec: study.SupportSpec) -> None:
    """The answer, the histogram with a hard and an easy support next to it, and what limits the answer."""
    numbers = cached_call(study.summary, sets)
    sentence, more = study.describe(sets, numbers)
    if sets.spec["search"] != spec["search"]:
        more = f"Preview by {study.SEARCH.choices[sets.spec['search']]}. {more}"
    elif len(sets) < spec["n_tasks"]:
        more = f"Preview. {more}"
    controls.show_answer(escape(sentence), escape(more), numbers["accuracy"]["random"] / 100, spec["n_shot"])
    if dataset.has_pixels:
        left, right = shell.responsive_columns("first_screen", [13, 8], gap="medium")
        with right:
            strips.show(dataset, sets)
    else:
        left = st.container()
    share = percent(numbers["harder_than_random"])
    with left:
        distribution.draw(sets, numbers)
        st.caption(
            f"Same queries in all three curves; hard is worse than random in {escape(share)} of the tasks. "
            "Click a point to list its tasks.",
            help="Means with 95% CI over tasks; their difference is paired by task."
            + distribution.correlation(sets, " Rank correlation of accuracy with low query loss: "),
        )
        if numbers["failed"]:
            st.warning(escape(numbers["failed"]), icon="🧭")
        if note := cached_call(_lower_bound_note, sets, dataset):
            st.warning(escape(shell.with_setting_titles(note)), icon="⚠️")


def _save(sets: SupportSets) -> None:
    st.divider()
    st.markdown("**Save as testbed**")
    name = str(st.segmented_control("Support set", study.SETS, default=study.SETS[0], key="keep_set", required=True))
    testbed = study.to_testbed(sets, name)
    with st.container(horizontal=True):
        help_text = "Then choose it on Evaluate."
        if access.can("save") and st.button("Save testbed", icon="💾", type="primary", help=help_text):
            st.toast(escape(access.do("save", study.save_sets, sets, name)[1]), icon="💾")
        for kind in ("parquet", "csv", "json"):
            st.download_button(
                "Parquet" if kind == "parquet" else kind.upper(),
                data=partial(study.export_sets, sets, name, kind),
                file_name=f"{testbed.name}.{kind}",
                key=f"download_{kind}",
                on_click="ignore",
                icon="⬇️",
            )
        shell.command_popover(study.command(sets.spec))
    access.show_denied("save")
