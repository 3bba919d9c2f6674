"""Contexts and attributes of support and query images."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import custom_task
from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import TaskProfile
from fsviz.ui.parts import export
from fsviz.ui.parts.caching import cached_call


def show_attributes(profiles: Sequence[TaskProfile]) -> None:
    slots = [st.container()] if len(profiles) == 1 else st.columns(2, gap="large")
    for which, (slot, profile) in enumerate(zip(slots, profiles, strict=True)):
        with slot:
            _show_attributes(profile, which)


def _show_attributes(profile: TaskProfile, which: int) -> None:
    gaps = cached_call(study.gaps, profile, keep=64)
    contexts = cached_call(study.contexts, profile, keep=64)
    if not gaps and contexts is None:
        if profile.has_images:
            st.caption("Not available: the images have neither contexts nor attributes.")
        return
    st.markdown("**Support vs queries**")
    if contexts is not None and contexts["n"].sum():
        share = contexts["shared"].sum() / contexts["n"].sum()
        st.caption(f"{share:.0%} of {int(contexts['n'].sum()):,} queries share a context with their support.")
        with st.expander("Contexts by class"):
            export.table(study.CONTEXTS, contexts, key=f"contexts_{which}")
    if gaps:
        export.table(custom_task.GAPS, study.gap_rows(gaps), height=300, key=f"gaps_{which}")
        st.caption("Attribute shift, mean over classes (0 = none).")
