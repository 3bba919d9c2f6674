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
FIRST_TASKS = 500
MAX_OFFERED = 6  # other datasets with results


def show_first_run(dataset: Dataset) -> None:
    """Says that the dataset has no results, and shows a button that starts a run next to published results."""
    backbones = features.available(dataset)
    title = escape(dataset.title)
    if not backbones:
        shell.answer(f"{title} has no results yet, and no features.", shell.missing_hint(dataset, "features"))
    else:
        methods = ", ".join(escape(METHODS[name].title) for name in FIRST_RUN)
        shell.answer(f"{title} has no results yet.", f"Start with {methods} on {FIRST_TASKS:,} tasks, a few seconds.")
    figure, start = shell.responsive_columns("first_run", [4, 1], gap="medium")
    with figure:
        show_published()
    with start:
        if not backbones:
            shell.link_to_fix(dataset, "features")
            shell.offer_demo(dataset)
            return
        access.show_denied("run")
        if access.can("run") and st.button("Run", type="primary", key="first_run", width="stretch"):
            _start_first(dataset, backbones[0])
        shell.page_link("evaluate", "Open Evaluate", shell.link(dataset))


def offer_other_datasets(runs: Sequence[jobs.Run]) -> None:
    """Shows a button for each dataset that has results."""
    names = list(dict.fromkeys(str(run.spec["dataset"]) for run in runs if is_comparable(run)))
    if names:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("Datasets with results:", width="content")
            for name in names[:MAX_OFFERED]:
                if st.button(escape(shell.dataset_title(name)), key=f"results_of_{name}"):
                    show_results_of(name, runs)
                    st.rerun()


def show_published() -> None:
    """Published results of another dataset."""
    table = published_table("better-tieredImageNet", "5-way 1-shot").rename(columns={"method": "name"})
    lost = table["Q4"] - table["Q1"]
    st.markdown("**Published results: tieredImageNet, ResNet12, 5-way 1-shot**")
    export.chart(
        "Published accuracy by quarter of the tasks",
        figures.plot_quartiles(table, source="Bennequin et al. 2022, table 1"),
        key="published_quartiles",
    )
    st.caption(
        "From Bennequin et al. (2022), table 1; not computed here. Tasks by "
        f"{escape(measures.lower_title(run_comparison.QUARTERS))}: every method loses {lost.min():.0f} to "
        f"{lost.max():.0f} points from the coarsest quarter to the finest."
    )


def _start_first(dataset: Dataset, backbone: str) -> None:
    spec: evaluate.EvaluationSpec = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": [backbone],
        "methods": [{"name": name} for name in FIRST_RUN],
        "sampler": evaluate.feasible_sampler(dataset, backbone, n_tasks=FIRST_TASKS),
        "seed": 0,
        "device": "auto",
    }
    with st.spinner("Sampling tasks…"):
        access.do("run", jobs.submit, spec)
    st.rerun()
