"""What the page lets a visitor choose, and the answers that are chosen."""

from __future__ import annotations

import streamlit as st

from fsviz.analyses.task_profile import MethodResult, TaskProfile
from fsviz.settings import Setting
from fsviz.ui.parts import controls

ANSWERS_OF = Setting("answers_of", "Answers of", "The method whose answers to the queries are shown.", "choice", "")
PAIRS = Setting("pairs", "Two classes", "What the table of its classes shows.", "choice", "")


def pick_answer(passport: TaskProfile) -> None:
    """Whose answers frame the queries: the same for both of two tasks, where both have them."""
    known = {one.key: one for one in passport.answers if one.predictions is not None}
    if known and passport.dataset.has_pixels:
        titles = {key: f"{one.label}, {one.accuracy:.0%} right" for key, one in known.items()}
        controls.pick(ANSWERS_OF.with_(choices=titles, default=next(iter(titles))), about=passport.backbone)


def picked_answer(passport: TaskProfile) -> MethodResult | None:
    known = {one.key: one for one in passport.answers if one.predictions is not None}
    return known.get(st.session_state.get(ANSWERS_OF.name, ""), next(iter(known.values()), None))
