"""Splits that the paper prints, for the datasets that are here as class tables and those that are not."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fsviz.figures import splits as figures
from fsviz.records import SIDES, Dataset
from fsviz.settings import Setting
from fsviz.studies import splits as study
from fsviz.ui.pages.splits import keep
from fsviz.ui.parts import shell
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import plain


def show_without_features(dataset: Dataset) -> None:
    """What there is for a dataset of which no images are here."""
    if not study.published_targets(dataset.name):
        shell.needs(dataset, "features")
        return
    how = shell.how_to_add(dataset, "features")
    st.info(
        f"**{plain(dataset.title)} has no features here**, so no split of it can be searched for. {how} Below are the "
        "splits of it that the paper prints.",
        icon="🧩",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        shell.link_to_what_is_missing(dataset, "features")
        shell.offer_demo(dataset)
    show(dataset)


def show(dataset: Dataset) -> None:
    targets = study.published_targets(dataset.name)
    if targets:
        _printed(dataset, targets)
        st.divider()
    else:
        st.info(f"The paper prints no split of {plain(dataset.title)}. These are the ones that it prints:", icon="📄")
    table = study.published_overview()
    st.dataframe(table.assign(dataset=table["dataset"].map(study.PUBLISHED_TITLES)), hide_index=True, height="content")
    st.caption(
        "Arnold & Sha 2021, tables 6 to 11, as printed: the divergence asked for, and the classes on each side. They "
        "come from all dimensions of their own backbones and one random start each."
    )


def _printed(dataset: Dataset, targets: list[float]) -> None:
    choices = {f"{target:g}": f"R = {target:g}" for target in targets}
    setting = Setting(
        "printed",
        "Published split",
        "The divergence that was asked for.",
        "choice",
        f"{targets[-1]:g}",
        choices=choices,
    )
    target = float(pick(setting, st.columns(3)[0]))
    split = study.published_split(dataset, target)
    sizes = " / ".join(f"{len(split.on(side)):,}" for side in SIDES)
    st.markdown(f"**Published: {sizes} train, val and test classes** of {plain(dataset.title)} at R = {target:g}.")
    for mix in study.mixes(dataset, split):
        st.markdown(
            f"**{mix.side}**: {mix.n:,} of {mix.of:,} classes are kinds of *{plain(mix.concept)}*, of the others "
            f"{mix.n_rest:,} of {mix.of_rest:,}."
        )
    if study.mixes(dataset, split):
        table = study.mix_table(dataset, split)
        st.plotly_chart(figures.plot_mix(table, 90 + 34 * len(table)), key="published_mix")
    columns = {
        side: pd.Series([split.names[p] for p in (split.sides == i).nonzero()[0]]) for i, side in enumerate(SIDES)
    }
    st.dataframe(pd.DataFrame(columns).fillna(""), hide_index=True, height=300)
    command = study.published_command(dataset, target)
    recipe = {"mode": "published", "divergence": target}
    keep.offer(dataset, split, recipe, f"published-r{target:g}", command, "published")
