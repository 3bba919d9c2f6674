"""Page Hard supports: accuracies with hard, random and easy supports, the tasks, and what explains them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from fsviz.difficulty.objectives import OBJECTIVES
from fsviz.features.backbones import title_of
from fsviz.records import Dataset, HeadlineNumber
from fsviz.sampling import SAMPLERS
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.text import split_title
from fsviz.ui.pages.hard_supports import (
    attributes,
    distribution,
    search_methods,
    semantic_distance,
    settings,
    step_size,
    stress_test,
    task_table,
    tasks,
)
from fsviz.ui.parts import access, controls, no_images, shell
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.headline import show_numbers
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
    no_images.stop_without(dataset)
    spec = settings.pick(dataset, shell.known_backbones(dataset))
    sets = answer(study.STUDY, spec, task_table.SEARCHING, distribution.so_far)
    if sets is None:
        return
    if sets.spec["search"] != spec["search"]:
        quick, requested = (study.SEARCH.choices[of["search"]] for of in (sets.spec, spec))
        st.caption(f"The preview uses {quick}, which is faster than {requested}.")
    _headline(sets)
    if note := cached_call(_lower_bound_note, sets, dataset):
        st.warning(escape(shell.with_setting_titles(note)), icon="⚠️")
    _distribution(sets)
    section = controls.pick_section("Section", list(SECTIONS), "Tasks")
    SECTIONS[section](dataset, sets)
    _keep(sets)


PAGE = Page(
    slug="hard_supports",
    label="Hard supports",
    icon="🧗",
    group="Tasks",
    order=3,
    question="Which support images hurt accuracy most?",
    lead="The same queries of {dataset} with hard, random and easy support sets.",
    paper="Basu et al. (2023), FastDiffSel",
    needs=("features",),
    explains=("fastdiffsel", "query_loss", "accuracy", "gap", "interval"),
    keywords=("bad shots", "worst case", "outliers"),
    show=show,
)


def _lower_bound_note(sets: SupportSets, dataset: Dataset) -> str:
    return study.lower_bound_note(sets.spec, sets.tasks["random"], dataset)


def _headline(sets: SupportSets) -> None:
    numbers = cached_call(study.summary, sets)
    accuracy, half_width = numbers["accuracy"], numbers["ci95"]
    cost = HeadlineNumber.around(
        "drop",
        "Cost of hard supports",
        numbers["drop"],
        numbers["drop_ci95"],
        "points",
        help="Random minus hard, same queries, paired by task. 95% CI over tasks.",
    )
    accuracies = [
        HeadlineNumber.around(
            f"accuracy_{name}",
            f"Accuracy, {name} supports",
            accuracy[name],
            half_width[name],
            change=accuracy[name] - accuracy["random"] if name in OBJECTIVES else None,
            coloured=name in OBJECTIVES,
            help=f"Share of queries classified correctly with {name} support images. Mean over "
            f"{numbers['n_tasks']:,} tasks with its 95% CI.",
        )
        for name in study.SETS
    ]
    show_numbers([cost, *accuracies])


def _distribution(sets: SupportSets) -> None:
    numbers = cached_call(study.summary, sets)
    distribution.draw(sets, numbers)
    spec = sets.spec
    sampler = SAMPLERS[spec["sampler"]]
    shape = sampler.title.lower() if sampler.samples_images else f"{spec['n_way']:,}-way {spec['n_shot']:,}-shot"
    if numbers["failed"]:
        st.warning(escape(numbers["failed"]), icon="🧭")
    st.caption(
        f"{numbers['n_tasks']:,} {escape(shape)} tasks of {escape(split_title(spec['split']))}, "
        f"{escape(title_of(spec['backbone']))} features, {study.CLASSIFIER.choices[spec['classifier']]}. Same queries "
        f"in all three curves; hard is worse than random in {numbers['harder_than_random']:.0%} of the tasks. Click a "
        "point to list its tasks.",
        help="Means with 95% CI over tasks."
        + distribution.correlation(sets, " Rank correlation of accuracy with low query loss: "),
    )


def _keep(sets: SupportSets) -> None:
    st.divider()
    st.markdown("**Save as testbed**")
    which = st.segmented_control("Support set", study.SETS, default=study.SETS[0], key="keep_set", required=True)
    testbed = study.to_testbed(sets, str(which))
    with st.container(horizontal=True):
        help_text = "Then choose it on Evaluate."
        if access.can("save") and st.button("Save testbed", icon="💾", type="primary", help=help_text):
            st.toast(escape(access.do("save", study.save_sets, sets, str(which))[1]), icon="💾")
        for kind in ("parquet", "csv", "json"):
            st.download_button(
                "Parquet" if kind == "parquet" else kind.upper(),
                data=partial(study.export_sets, sets, str(which), kind),
                file_name=f"{testbed.name}.{kind}",
                key=f"download_{kind}",
                on_click="ignore",
                icon="⬇️",
            )
        shell.command_popover(study.command(sets.spec))
    access.show_denied("save")
