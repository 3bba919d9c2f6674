"""The graph of classes that the settings ask for, by any likeness."""

from __future__ import annotations

import streamlit as st

from fsviz.records.graphs import ClassGraph
from fsviz.studies import confusion as study
from fsviz.ui.parts import access
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.run_panel import duration
from fsviz.ui.parts.shell import escape

WAIT_FOR_ERRORS = 60.0  # seconds: errors on pairs cannot run in the background, so a page waits longer for them
WORDS = "Comparing every two classes"


def find(spec: study.ConfusionRequest) -> ClassGraph | None:
    """The graph of a spec; None while it takes a run that is not finished, which is offered and watched here."""
    if spec.get("likeness", "confusion") == "confusion":
        asked = {name: value for name, value in spec.items() if name != "likeness"}
        return answer(study.STUDY, asked, WORDS, _so_far)
    wanted = study.seconds(spec)
    if wanted <= min(WAIT_FOR_ERRORS, access.limit("seconds")):
        return compute_with_progress(study.class_graph, spec, WORDS)
    st.info(f"This takes about {duration(wanted)}, too long here. Choose a smaller split.", icon="⏳")
    return None


def _so_far(summary: study.ConfusionSummary) -> None:
    if summary["most_confused"]:
        a, b, bits = summary["most_confused"][0]
        st.caption(f"Most confused of {summary['pairs']:,} pairs so far: {escape(a)} and {escape(b)}, {bits:.2f} bits.")
