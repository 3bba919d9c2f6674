"""Contexts and attributes of support and query images."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import custom_task
from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import TaskProfile
from fsviz.ui.parts import export
from fsviz.ui.parts.caching import cached_call


def show_attributes(passports: Sequence[TaskProfile]) -> None:
    slots = [st.container()] if len(passports) == 1 else st.columns(2, gap="large")
    for which, (slot, passport) in enumerate(zip(slots, passports, strict=True)):
        with slot:
            _show_attributes(passport, which)


def _show_attributes(passport: TaskProfile, which: int) -> None:
    found = cached_call(study.gaps, passport, keep=64)
    seen = cached_call(study.contexts, passport, keep=64)
    if not found and seen is None:
        if passport.has_images:
            st.caption(
                "The images have neither contexts nor attributes, so how support and queries differ can be seen but "
                "not measured."
            )
        return
    st.markdown("**Contexts and attributes**: how its support differs from its queries")
    if seen is not None and seen["n"].sum():
        share = seen["shared"].sum() / seen["n"].sum()
        st.caption(
            f"{share:.0%} of its {int(seen['n'].sum()):,} queries were taken in a context of their own class's support."
        )
        with st.expander("Contexts, class by class"):
            export.table(study.CONTEXTS, seen, key=f"contexts_{which}")
    if found:
        export.table(custom_task.GAPS, study.gap_rows(found), height=300, key=f"gaps_{which}")
        st.caption("The gap of every attribute between support and queries, class by class on average; 0 is none.")
