"""Stability of a split: agreement across seeds by number of dimensions, compared with random splits."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.figures import class_splits as figures
from fsviz.records import Dataset, Progress
from fsviz.settings import RawSettings, Value
from fsviz.ui.pages.train_test_distance import settings
from fsviz.ui.parts import access, export, shell
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset, spec: Mapping[str, Value], result: study.SplitResult) -> None:
    if result.split.requested is None:
        st.info("This split has no target divergence, so every seed gives another one. Choose the method “stable”.")
        return
    classes = settings.class_features(dataset, str(spec["backbone"]))
    n_seeds = study.SWEEP_SEEDS
    if study.sweep_seconds(classes, spec) > access.limit("seconds"):
        n_seeds = study.FEW_SEEDS
    if not settings.is_affordable(study.sweep_seconds(classes, spec, n_seeds)):
        return
    inputs = {"dataset": dataset.name, "n_seeds": n_seeds, **spec}
    table = compute_with_progress(_agreement_over_dims, inputs, "Splits of several seeds")
    n_dims = result.split.points.shape[1]
    sentence, more = study.stability_answer(table, n_dims)
    shell.answer(escape(sentence), escape(more))
    high = study.max_dims(dataset) if spec["mode"] == "stable" else 0
    export.chart(
        "Agreement of seeds by dimensions",
        figures.plot_agreement(table, n_dims),
        key="over_dims",
        sets=Click({2: study.SETTINGS["dims"].with_(high=high)}),
    )
    st.caption(
        f"{n_seeds} seeds per number of dimensions, best of {int(spec['starts']):,} random starts."
        + (" Click a point to use this number of dimensions." if high else ""),
        help=f"The objective is never below M log M = {result.floor:.3f} for these {len(result.split.names):,} "
        "classes. With about as many dimensions as classes every start gets there at any target, so the random start "
        "determines the split.",
    )
    with st.expander("Table"):
        export.table(study.AGREEMENT, table)


def _agreement_over_dims(spec: RawSettings, progress: Progress) -> pd.DataFrame:
    """The study for `compute_with_progress`, with the dataset's name among the settings."""
    dataset = shell.load_dataset(str(spec["dataset"]))
    values = {name: value for name, value in spec.items() if name != "dataset"}
    classes = settings.class_features(dataset, str(values["backbone"]))
    return study.agreement_over_dims(dataset, classes, progress=progress, **values)
