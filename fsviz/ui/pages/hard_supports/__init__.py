"""The page of hard tasks: accuracies with hard, random and easy supports, the tasks themselves, and the reasons."""

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
    "Attributes": attributes.show,
    "Closeness in meaning": semantic_distance.show,
    "Searches": search_methods.show,
    "Step size": step_size.show,
    "Stress test": stress_test.show,
}


def show(dataset: Dataset) -> None:
    no_images.stop_without(dataset)
    known = shell.known_backbones(dataset)
    spec = settings.pick(dataset, known)
    found = answer(study.STUDY, spec, task_table.SEARCHING, distribution.so_far)
    if found is None:
        return
    if found.spec["search"] != spec["search"]:
        shown, asked = (study.SEARCH.choices[of["search"]] for of in (found.spec, spec))
        st.caption(f"The preview shows {shown}, which is faster than {asked}.")
    _headline(found)
    if told := cached_call(_understated, found, dataset):
        st.warning(escape(shell.with_setting_titles(told)), icon="⚠️")
    _distribution(found)
    section = controls.pick_section("Why, and what else?", list(SECTIONS), "Tasks")
    SECTIONS[section](dataset, found)
    _keep(found)


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


def _understated(found: SupportSets, dataset: Dataset) -> str:
    return study.understated(found.spec, found.tasks["random"], dataset)


def _headline(found: SupportSets) -> None:
    numbers = cached_call(study.summary, found)
    accuracy, half = numbers["accuracy"], numbers["ci95"]
    cost = HeadlineNumber.around(
        "drop",
        "Hard supports cost",
        numbers["drop"],
        numbers["drop_ci95"],
        "points",
        help="Mean difference in accuracy between random and hard support sets over the same queries, task by task, "
        "with its 95% interval over tasks of these images.",
    )
    accuracies = [
        HeadlineNumber.around(
            f"accuracy_{name}",
            f"Accuracy, {name}",
            accuracy[name],
            half[name],
            change=accuracy[name] - accuracy["random"] if name in OBJECTIVES else None,
            coloured=name in OBJECTIVES,
            help=f"Share of queries classified correctly with {name} support images, mean over "
            f"{numbers['n_tasks']:,} tasks.",
        )
        for name in study.SETS
    ]
    show_numbers([cost, *accuracies])


def _distribution(found: SupportSets) -> None:
    numbers = cached_call(study.summary, found)
    distribution.draw(found, numbers)
    spec = found.spec
    shape = (
        f"sampler {SAMPLERS[spec['sampler']].title}"
        if SAMPLERS[spec["sampler"]].samples_images
        else f"{spec['n_way']:,} classes, {spec['n_shot']:,} support and {spec['n_query']:,} query images per class"
    )
    if numbers["failed"]:
        st.warning(escape(numbers["failed"]), icon="🧭")
    st.caption(
        f"{numbers['n_tasks']:,} tasks of {escape(split_title(spec['split']))} ({shape}), features of "
        f"{escape(title_of(spec['backbone']))}, classified by {study.CLASSIFIER.choices[spec['classifier']]}; means "
        "with 95% intervals over tasks of these images. Only the support images differ between the three curves: the "
        "queries are the same. Click a point of a curve to list its tasks. Hard supports are worse than random ones in "
        f"{numbers['harder_than_random']:.0%} of the tasks."
        + distribution.correlation(found, " Rank correlation of accuracy with low query loss: ")
    )


def _keep(found: SupportSets) -> None:
    st.divider()
    st.markdown("**Keep these tasks**")
    which = st.segmented_control("Set", study.SETS, default=study.SETS[0], key="keep_set", required=True)
    testbed = study.to_testbed(found, str(which))
    with st.container(horizontal=True):
        words = "Into the workspace, for the page Evaluate."
        if access.can("save") and st.button("Save testbed", icon="💾", type="primary", help=words):
            st.toast(escape(access.do("save", study.save_sets, found, str(which))[1]), icon="💾")
        for kind in ("parquet", "csv", "json"):
            st.download_button(
                "Parquet" if kind == "parquet" else kind.upper(),
                data=partial(study.export_sets, found, str(which), kind),
                file_name=f"{testbed.name}.{kind}",
                key=f"download_{kind}",
                on_click="ignore",
                icon="⬇️",
            )
        shell.command_popover(study.command(found.spec))
    access.show_denied("save")
