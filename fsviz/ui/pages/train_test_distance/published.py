"""Published splits, also of datasets that have no features or images here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.records import SIDES, Dataset
from fsviz.tables import Column, Table
from fsviz.ui.pages.train_test_distance import save, superclasses
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape


def show_without_features(dataset: Dataset) -> None:
    """The page for a dataset without images."""
    if not study.published_targets(dataset.name):
        shell.require(dataset, "features")
        return
    show(dataset)
    st.info(f"No distances without features. {shell.missing_hint(dataset, 'features')}", icon="🧩")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        shell.link_to_fix(dataset, "features")
        shell.offer_demo(dataset)


def show(dataset: Dataset) -> None:
    default = dataset.name if dataset.name in study.PUBLISHED else str(study.PRINTED.default)
    with shell.side():
        name = pick(study.PRINTED.with_(default=default), about=dataset.name)
        targets = [f"{target:g}" for target in study.published_targets(name)]
        choices = {target: f"R = {target}" for target in targets}
        target = float(pick(study.PRINTED_AT.with_(choices=choices, default=targets[-1])))
    parts = study.published_parts(name, target)
    sizes = " / ".join(f"{len(parts[side]):,}" for side in SIDES)
    shell.answer(
        f"Published: {sizes} train, val and test classes of {study.PUBLISHED[name]} at R = {target:g}.",
        "" if "features" in dataset.capabilities else f"{escape(dataset.title)} has no features here.",
    )
    split = study.published_split(dataset, target) if name == dataset.name else None
    if split is not None and study.superclass_shares(dataset, split):
        left, right = shell.responsive_columns("published", [3, 2], gap="medium")
        with left:
            superclasses.draw(dataset, split, "published_mix", 90, 34)
        with right:
            superclasses.describe(dataset, split)
    names = study.published_names(name)
    classes = pd.DataFrame({side: pd.Series([names[i] for i in parts[side]]) for side in SIDES}).fillna("")
    table = Table("Classes of the published split", *tuple(Column(side, side) for side in SIDES))
    export.table(table, classes, height=300)
    if split is not None:
        command = study.published_command(dataset, target)
        recipe = {"mode": "published", "divergence": target}
        save.offer(dataset, split, recipe, f"published-r{target:g}", command, "published")
    with st.expander("All published splits"):
        export.table(study.OVERVIEW, study.published_overview())
        st.caption(
            "Arnold & Sha 2021, tables 6 to 11: targets, and the classes on each side.",
            help="From all dimensions of their own backbones, with one random start each.",
        )
