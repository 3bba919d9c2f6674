"""The page before the first result: a button for a first run, and published results."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz import features, jobs
from fsviz.analyses import run_comparison
from fsviz.datasets.published import published_table
from fsviz.difficulty import measures
from fsviz.figures import runs as figures
from fsviz.methods import METHODS
from fsviz.records import Dataset
from fsviz.studies import evaluate
from fsviz.ui.pages.runs.choice import is_comparable, show_results_of
from fsviz.ui.parts import (
    access,
    export,
    shell,
)
from fsviz.ui.parts.shell import escape

FIRST_RUN = ("protonet", "simpleshot", "ridge", "bd_cspn", "finetune")
MOST_OFFERED = 6  # datasets with results, beside one that has none


def show_first_run(dataset: Dataset) -> None:
    """No result of this dataset yet: a button that makes one, or what it lacks."""
    known = features.available(dataset)
    left, right = st.columns([3, 2], vertical_alignment="center")
    if known:
        titles = [escape(METHODS[name].title) for name in FIRST_RUN]
        left.info(
            f"**No evaluation of {escape(dataset.title)} has results yet.** A first one takes some seconds: "
            f"{', '.join(titles)} on 500 tasks. The page Evaluate has all choices.",
            icon="👋",
        )
        access.show_denied("run", where=right)
        if access.can("run") and right.button("Start a first run", type="primary", width="stretch"):
            _start_first(dataset, known[0])
    else:
        left.info(
            f"**No evaluation of {escape(dataset.title)} has results yet**, and it has no features to evaluate. "
            + shell.missing_hint(dataset, "features"),
            icon="👋",
        )
        with right:
            shell.link_to_fix(dataset, "features")
            shell.offer_demo(dataset)
        return
    shell.page_link("evaluate", "Choose what to run on the page Evaluate", shell.link(dataset), where=right)


def offer_other_datasets(runs: Sequence[jobs.Run]) -> None:
    """The datasets that have results, a button each."""
    others = list(dict.fromkeys(str(run.spec["dataset"]) for run in runs if is_comparable(run)))
    if others:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("There are results of", width="content")
            for name in others[:MOST_OFFERED]:
                if st.button(escape(shell.dataset_title(name)), key=f"results_of_{name}"):
                    show_results_of(name, runs)
                    st.rerun()


def show_published() -> None:
    """Published numbers to look at until there are own ones."""
    st.subheader("Meanwhile: what the paper found", anchor=False)
    table = published_table("better-tieredImageNet", "5-way 1-shot").rename(columns={"method": "name"})
    lost = table["Q4"] - table["Q1"]
    export.chart(
        "Published accuracy by quarter of the tasks",
        figures.plot_quartiles(table, source="Bennequin et al. 2022, table 1"),
        key="published_quartiles",
    )
    st.caption(
        "Published numbers, not computed here (Bennequin et al. 2022, table 1: tieredImageNet, ResNet12, 5 ways, "
        f"1 shot). Tasks are sorted by {escape(measures.lower_title(run_comparison.QUARTERS))} and cut into quarters: "
        f"from the coarsest quarter to the finest every method loses {lost.min():.0f} to {lost.max():.0f} points. "
        "Your own runs will be shown the same way."
    )


def _start_first(dataset: Dataset, backbone: str) -> None:
    spec: evaluate.EvaluationSpec = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": [backbone],
        "methods": [{"name": name} for name in FIRST_RUN],
        "sampler": evaluate.feasible_sampler(dataset, backbone, n_tasks=500),
        "seed": 0,
        "device": "auto",
    }
    with st.spinner("Freezing the tasks and starting the run…"):
        access.do("run", jobs.submit, spec)
    st.rerun()
