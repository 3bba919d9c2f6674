"""Superclasses on each side of a split: one line each, and bars that link to their classes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.figures import class_splits as figures
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.shell import escape


def describe(dataset: Dataset, split: ClassSplit) -> bool:
    """Shows which superclass distinguishes train and test from the rest; False without a taxonomy."""
    shares = study.superclass_shares(dataset, split)
    for share in shares:
        st.markdown(
            f"**{escape(share.side)}**: {share.n:,} of {share.of:,} classes are *{escape(share.concept)}* (others: "
            f"{share.n_rest:,} of {share.of_rest:,})."
        )
    return bool(shares)


def draw(dataset: Dataset, split: ClassSplit, key: str, room: int, row: int) -> None:
    """Classes by superclass and side; below, the classes of the selected bar."""
    table = study.superclass_table(dataset, split)
    groups = [f"{side}: {group}" for group in table.index for side in SIDES if table.loc[group, side]]
    bar = drilldown.chart(
        "Superclasses by side",
        figures.plot_superclasses(table, room + row * len(table)),
        key=key,
        name="kind",
        place=1,
        texts=groups,
    )
    if bar:
        side, _, group = bar.partition(": ")
        is_in_group = np.array(study.groups_of(dataset, split)) == group
        class_ids = split.class_ids[is_in_group & (split.sides == SIDES.index(side))]
        drilldown.heading(f"{escape(side)} classes: {escape(group)}", "kind")
        drilldown.classes(dataset, class_ids.tolist(), f"{key}_classes")
