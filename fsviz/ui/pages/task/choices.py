"""The settings of the page One task."""

from __future__ import annotations

import streamlit as st

from fsviz.analyses.task_profile import MethodResult, TaskProfile
from fsviz.settings import Setting
from fsviz.ui.parts import controls

METHOD = Setting("answers_of", "Predictions by", "", "choice", "")
PAIRS = Setting("pairs", "Class pairs", "", "choice", "")


def pick_method(profile: TaskProfile) -> None:
    """Shows the control for the method whose predictions are shown, the same for two compared tasks."""
    results = _with_predictions(profile)
    if results and profile.dataset.has_pixels:
        titles = {key: f"{result.label}, {result.accuracy:.0%} correct" for key, result in results.items()}
        controls.pick(METHOD.with_(choices=titles, default=next(iter(titles))), about=profile.backbone)


def picked_method(profile: TaskProfile) -> MethodResult | None:
    """The result of the chosen method; None without predictions."""
    results = _with_predictions(profile)
    return results.get(st.session_state.get(METHOD.name, ""), next(iter(results.values()), None))


def _with_predictions(profile: TaskProfile) -> dict[str, MethodResult]:
    return {result.key: result for result in profile.results if result.predictions is not None}
