"""The graph of classes for a spec, by any similarity, and the measured errors on its pairs."""

from __future__ import annotations

import streamlit as st

from fsviz.errors import BadInput, Missing
from fsviz.records.graphs import ClassGraph
from fsviz.settings import RawSettings
from fsviz.studies import confusion as study
from fsviz.ui.parts import access
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import compute_with_progress
from fsviz.ui.parts.run_panel import duration
from fsviz.ui.parts.shell import escape

MAX_ERROR_SECONDS = 20.0  # errors on pairs cannot run in the background
PROGRESS_TITLE = "Comparing all pairs of classes"


def find(spec: study.ConfusionRequest) -> ClassGraph | None:
    """The graph of a spec; None if it needs a run that is not finished, which is offered and shown here."""
    kind = spec.get("likeness", "confusion")
    if kind == "confusion":
        return answer(study.STUDY, study.run_spec(spec), PROGRESS_TITLE, _so_far)
    if kind != "error":
        return compute_with_progress(study.class_graph, _without_shots(spec), PROGRESS_TITLE)
    if _fits(spec):
        return _measure(spec).graph
    seconds = study.seconds({**spec, "likeness": "error"})
    st.info(f"This takes about {duration(seconds)}, too long for a page. Choose a smaller split.", icon="⏳")
    return None


def find_errors(spec: study.ConfusionRequest) -> tuple[study.PairErrors | None, str]:
    """Measured errors on the pairs of a spec, or the reason why there are none; ("" without features)."""
    if "backbone" not in spec:
        return None, ""
    if not _fits(spec):
        return None, "Too many classes to measure errors on every pair. Choose a smaller split."
    try:
        return _measure(spec), ""
    except (BadInput, Missing) as error:
        return None, str(error)


def _fits(spec: study.ConfusionRequest) -> bool:
    return study.seconds({**spec, "likeness": "error"}) <= min(MAX_ERROR_SECONDS, access.limit("seconds"))


def _measure(spec: study.ConfusionRequest) -> study.PairErrors:
    names = ("dataset", "split", "base", "backbone", "seed", "n_shot")
    used: RawSettings = {name: value for name, value in spec.items() if name in names}
    return compute_with_progress(study.pair_errors, used, "Classifying tasks of every pair")


def _without_shots(spec: study.ConfusionRequest) -> RawSettings:
    return {name: value for name, value in spec.items() if name != study.N_SHOT.name}


def _so_far(summary: study.ConfusionSummary) -> None:
    if summary["most_similar"]:
        a, b, bits = summary["most_similar"][0]
        pair = f"{escape(a)} and {escape(b)}, {bits:.2f} bits"
        st.caption(f"Largest overlap of {summary['pairs']:,} pairs so far: {pair}.")
