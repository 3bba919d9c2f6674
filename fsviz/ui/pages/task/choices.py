"""The settings of the page One task."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import MethodResult, TaskProfile
from fsviz.settings import Setting
from fsviz.ui.parts import controls
from fsviz.ui.parts.caching import cached_call

METHOD = Setting("answers_of", "Predictions by", "", "choice", "")
CONFUSION_MATRIX = "answers"  # in links
PAIRS = Setting("pairs", "Class pairs", "", "choice", "")


def pick_method(profile: TaskProfile) -> None:
    """Shows the control for the method whose predictions are shown, the same for two compared tasks."""
    results = _with_predictions(profile)
    if results:
        titles = {key: f"{result.label}, {result.accuracy:.0%} correct" for key, result in results.items()}
        controls.pick(METHOD.with_(choices=titles, default=next(iter(titles))), about=profile.backbone)


def picked_result(profile: TaskProfile) -> MethodResult | None:
    """The result of the picked method; None without predictions."""
    results = _with_predictions(profile)
    return results.get(st.session_state.get(METHOD.name, ""), next(iter(results.values()), None))


def pick_pairs(profiles: Sequence[TaskProfile]) -> str:
    """The numbers of class pairs to show: a distance, the overlap or the confusion matrix; "" if there are none."""
    titles = {
        pairs.name: pairs.title for profile in profiles for pairs in cached_call(study.class_pairs, profile, keep=64)
    }
    if any(profile.results for profile in profiles):
        titles[CONFUSION_MATRIX] = "Confusion matrix"
    return str(controls.pick(PAIRS.with_(choices=titles, default=next(iter(titles))))) if titles else ""


def _with_predictions(profile: TaskProfile) -> dict[str, MethodResult]:
    return {result.key: result for result in profile.results if result.predictions is not None}
