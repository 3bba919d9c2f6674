"""Every measure in two sentences and its formula."""

from __future__ import annotations

import streamlit as st

from fsviz.difficulty.measures import MEASURES
from fsviz.studies.prediction import Measured
from fsviz.ui.parts.shell import plain


def show(found: Measured) -> None:
    st.subheader("What do the measures look at?", anchor=False)
    for name in found.measures:
        with st.container(border=True):
            left, right = st.columns([5, 4], gap="large", vertical_alignment="center")
            MEASURE = MEASURES[name]
            left.markdown(f"**{MEASURE.title}** · the higher, the {MEASURE.direction} · {MEASURE.paper}")
            left.markdown(MEASURE.what)
            left.caption(f"Labels it uses: {plain(MEASURE.labels)}.")
            right.latex(MEASURE.formula)
            right.caption(MEASURE.symbols_as_written)
