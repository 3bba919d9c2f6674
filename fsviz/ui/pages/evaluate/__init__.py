"""The page Evaluate: choose tasks, backbones and methods; a preview at once, the full run in the background.

A finished run of these settings replaces the preview.
"""

from __future__ import annotations

import shlex
from typing import cast

import streamlit as st

from fsviz import features, jobs
from fsviz.features.backbones import DEFAULT
from fsviz.records import Dataset
from fsviz.studies import evaluate, extraction
from fsviz.ui.pages.evaluate.preview import coarsity_note, earlier_runs, preview_of, view_of_run
from fsviz.ui.pages.evaluate.results import show_results
from fsviz.ui.pages.evaluate.settings import devices, pick_settings
from fsviz.ui.pages.evaluate.start import show_finished, show_just_finished, show_start
from fsviz.ui.parts import (
    access,
    no_images,
    run_panel,
    shell,
)
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset) -> None:
    backbones = features.available(dataset)
    if not backbones:
        _no_features(dataset)
        return
    with st.spinner("Loading the methods…"):
        devices()  # the first visit loads torch
    with shell.side():
        request = pick_settings(dataset, backbones)
    figure, runs, details = st.container(), st.container(), st.container()
    with runs:
        run_panel.active_runs("evaluate", "evaluate")
    if request is None:
        shell.answer("Choose a method and a backbone.")
        with runs:
            show_just_finished("")
        return
    spec, testbeds, shots = request
    finished, stopped = earlier_runs(dataset, spec)
    view = view_of_run(dataset, spec, finished) if finished is not None else None
    with runs:
        show_just_finished(view.run if view else "")
    with figure:
        view = view or preview_of(dataset, spec)
    if view is None:
        return
    show_results(dataset, view, figure, details, int(spec.get("sampler", {}).get("n_shot", 1)))
    with runs:  # filled after the answer: timing takes a moment
        planned_specs = [cast(evaluate.EvaluationSpec, {**spec, "testbed": name}) for name in testbeds]
        samplers = evaluate.both_samplers(spec["sampler"], shots) if shots is not None else []
        planned_specs += [cast(evaluate.EvaluationSpec, {**spec, "sampler": sampler}) for sampler in samplers]
        if view.run and finished is not None and all(earlier_runs(dataset, planned)[0] for planned in planned_specs):
            show_finished(finished, spec)
        elif access.can("run"):
            n_tasks = spec["sampler"]["n_tasks"] if spec.get("sampler") else 0
            note = "" if view.run else coarsity_note(dataset, view.testbed, n_tasks)
            show_start(spec, testbeds, shots, stopped.id if stopped is not None else "", note)
        access.show_denied("run")


PAGE = Page(
    slug="evaluate",
    label="Evaluate",
    icon="⚖️",
    group="Results",
    order=0,
    question="Which method works best here?",
    lead="Every method classifies the same tasks of {dataset}.",
    paper="Bennequin et al. (2022), tables 1 to 3",
    needs=("features",),
    explains=("accuracy", "protonet", "interval", "coarsity", "samplers"),
    keywords=("leaderboard", "methods"),
    show=show,
)


def _no_features(dataset: Dataset) -> None:
    """Shows what is missing, and a button that extracts features."""
    if not dataset.has_pixels:
        no_images.stop_without(dataset)
        shell.require(dataset, "features")
        return
    st.info(
        f"**{escape(dataset.title)} has no features yet.** Extract them once; it runs in the background.",
        icon="🧩",
    )
    run_panel.active_runs("extract", "extraction")
    access.show_denied("run")
    if access.can("run") and st.button("Extract features with EfficientNet-Lite0", type="primary"):
        spec: extraction.ExtractionSpec = {
            "study": "extraction",
            "dataset": dataset.name,
            "backbone": DEFAULT,
            "device": "auto",
        }
        access.do("run", jobs.submit, spec)
        st.rerun()
    st.caption("Or in a terminal:")
    st.code(f"fsviz extract {shlex.quote(dataset.name)} --backbone {DEFAULT}", language="bash")
