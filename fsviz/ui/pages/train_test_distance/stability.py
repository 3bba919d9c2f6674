"""How certain a split is: agreement over seeds, compared with chance, and how the number of dimensions changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.figures import class_splits as figures
from fsviz.records import Dataset, HeadlineNumber, Progress
from fsviz.settings import RawSettings, Value
from fsviz.text import percent
from fsviz.ui.pages.train_test_distance import settings
from fsviz.ui.parts import access, export, shell
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.headline import show_number
from fsviz.ui.parts.shell import escape


def headline(where: Any, agreement: study.SplitAgreement) -> None:
    number = HeadlineNumber.worded(
        "agreement",
        "Agreement over seeds",
        percent(agreement.value),
        note=f"by chance {percent(agreement.chance)}",
        help=f"Share of the classes that two of {agreement.n_seeds:,} seeds put on the same side (train, val or test). "
        f"Two seeds share {percent(agreement.on_test)} of their test classes, two random splits "
        f"{percent(agreement.chance_on_test)}. {agreement.n_splits:,} different "
        f"split{'s were' if agreement.n_splits > 1 else ' was'} found.",
    )
    show_number(number, where)


def show(dataset: Dataset, spec: Mapping[str, Value], result: study.SplitResult) -> None:
    if result.split.requested is None:
        st.info("This split is not searched for, so another seed gives another one. Choose the mode “stable”.")
        return
    known = settings.class_features(dataset, str(spec["backbone"]))
    n_seeds = study.SWEEP_SEEDS
    if study.sweep_seconds(known, spec) > access.limit("seconds"):
        n_seeds = study.FEW_SEEDS
    if not settings.is_affordable(study.sweep_seconds(known, spec, n_seeds)):
        return
    asked = {"dataset": dataset.name, "n_seeds": n_seeds, **spec}
    table = compute_with_progress(_agreement_over_dims, asked, "Splits of several seeds")
    most = study.max_dims(dataset) if spec["mode"] == "stable" else 0
    export.chart(
        "Agreement of seeds by dimensions",
        figures.plot_agreement(table, result.split.points.shape[1]),
        key="over_dims",
        sets=Click({2: study.SETTINGS["dims"].with_(high=most)}),
    )
    n, floor = len(result.split.names), result.floor
    all_dims = table.iloc[-1]
    st.markdown(
        f"**What we found.** The objective is never below M log M = {floor:.3f} for these M = {n:,} classes: there the "
        "two distributions together give every class the same probability. With about as many dimensions as classes "
        "every start gets there with any divergence, so the published way does not choose between splits: the random "
        f"start does. Here, with all {int(all_dims['dims']):,} dimensions, the best of {int(spec['starts']):,} starts "
        f"is {max(0.0, float(all_dims['above_floor'])):.4f} above it, and two seeds put "
        f"{escape(percent(all_dims['agreement']))} of the classes on the same side (random splits: "
        f"{escape(percent(all_dims['chance']))}). On few principal axes the classes decide, and seeds agree."
    )
    export.table(study.AGREEMENT, table)
    st.caption(
        f"Mode “stable”: for every number of dimensions {n_seeds} seeds, the best of the chosen number of "
        f"starts each. Reached divergence and objective are means over seeds. {study.SIDE_RULE}"
        + (" Click a point to see the split of so many dimensions above." if most else "")
    )


def _agreement_over_dims(spec: RawSettings, progress: Progress) -> pd.DataFrame:
    """For `compute_with_progress`: settings and the dataset's name in one."""
    dataset = shell.load_dataset(str(spec["dataset"]))
    values = {name: value for name, value in spec.items() if name != "dataset"}
    classes = settings.class_features(dataset, str(values["backbone"]))
    return study.agreement_over_dims(dataset, classes, progress=progress, **values)
