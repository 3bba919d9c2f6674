"""Superclasses on each side of a split: one line each, and bars that link to their classes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.figures import class_splits as figures
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.shell import escape


def say(dataset: Dataset, split: ClassSplit) -> bool:
    """Says which kind of classes tells train and test from the rest; False where there is no taxonomy to say it by."""
    found = study.superclass_shares(dataset, split)
    for mix in found:
        st.markdown(
            f"**{escape(mix.side)}**: {mix.n:,} of {mix.of:,} classes are kinds of *{escape(mix.concept)}* (elsewhere "
            f"{mix.n_rest:,} of {mix.of_rest:,})."
        )
    return bool(found)


def draw(dataset: Dataset, split: ClassSplit, key: str, room: int, row: int) -> None:
    """Classes by superclass and side; below, the classes of the bar that was clicked."""
    table = study.superclass_table(dataset, split)
    kinds = [f"{side}: {kind}" for kind in table.index for side in SIDES if table.loc[kind, side]]
    chosen = drilldown.chart(
        "Superclasses by side",
        figures.plot_superclasses(table, room + row * len(table)),
        key=key,
        name="kind",
        place=1,
        texts=kinds,
    )
    if chosen:
        side, _, kind = chosen.partition(": ")
        of_kind = np.array(study.groups_of(dataset, split)) == kind
        here = split.class_ids[of_kind & (split.sides == SIDES.index(side))]
        drilldown.heading(f"{escape(side)} classes that are kinds of {escape(kind)}", "kind")
        drilldown.classes(dataset, here.tolist(), f"{key}_classes")
