"""The graph of classes for a spec, by any similarity."""

from __future__ import annotations

import streamlit as st

from fsviz.records.graphs import ClassGraph
from fsviz.studies import confusion as study
from fsviz.ui.parts import access
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.run_panel import duration
from fsviz.ui.parts.shell import escape

MAX_ERROR_SECONDS = 60.0  # errors on pairs cannot run in the background, so a page waits longer for them
PROGRESS_TITLE = "Comparing all pairs of classes"


def find(spec: study.ConfusionRequest) -> ClassGraph | None:
    """The graph of a spec; None if it needs a run that is not finished, which is offered and shown here."""
    if spec.get("likeness", "confusion") == "confusion":
        run_spec = {name: value for name, value in spec.items() if name != "likeness"}
        return answer(study.STUDY, run_spec, PROGRESS_TITLE, _so_far)
    seconds = study.seconds(spec)
    if seconds <= min(MAX_ERROR_SECONDS, access.limit("seconds")):
        return compute_with_progress(study.class_graph, spec, PROGRESS_TITLE)
    st.info(f"This takes about {duration(seconds)}, too long for a page. Choose a smaller split.", icon="⏳")
    return None


def _so_far(summary: study.ConfusionSummary) -> None:
    if summary["most_confused"]:
        a, b, bits = summary["most_confused"][0]
        st.caption(f"Most confused of {summary['pairs']:,} pairs so far: {escape(a)} and {escape(b)}, {bits:.2f} bits.")
