"""The classes of a task: class pairs and the taxonomy above them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import ClassPairs, TaskProfile
from fsviz.figures import task_profile as figures
from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.taxonomy import maps
from fsviz.ui.pages.task.choices import CONFUSION_MATRIX, picked_result
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape


def show_classes(profiles: Sequence[TaskProfile], pairs_name: str) -> None:
    """Shows the selected numbers of class pairs, and the taxonomy above the classes."""
    st.subheader("Class pairs", anchor=False)
    if not pairs_name:
        st.caption("Not available: the dataset has neither a taxonomy nor features.")
        return
    if len(profiles) == 1:
        left, right = shell.responsive_columns("classes", [9, 11], gap="large")
        with left:
            _show_pairs(profiles[0], pairs_name, 0)
        with right:
            _show_tree(profiles[0], 0)
        return
    for which, (slot, profile) in enumerate(zip(st.columns(2, gap="large"), profiles, strict=True)):
        with slot:
            _show_pairs(profile, pairs_name, which)
            _show_tree(profile, which)


def _show_pairs(profile: TaskProfile, pairs_name: str, which: int) -> None:
    if pairs_name == CONFUSION_MATRIX:
        result = picked_result(profile)
        if result is None:
            st.caption("No predictions for this task.")
            return
        export.chart(
            "Confusion matrix",
            figures.plot_confusion_matrix(study.predicted_pairs(result, len(profile.names)), profile.names),
            key=f"answered_{which}",
        )
        st.caption(f"Queries of {escape(result.label)}. Rows: true class, columns: predicted class.")
        return
    pairs = next((p for p in cached_call(study.class_pairs, profile, keep=64) if p.name == pairs_name), None)
    if pairs is None:
        st.caption("Not available for this task.")
        return
    export.chart(
        pairs.title,
        taxonomy_figures.plot_task_distances(pairs.values, profile.names, pairs.title, pairs.max_value, 330),
        key=f"pairs_{which}",
    )
    st.caption(escape(f"{pairs.description} {_most_overlapping(profile, pairs)}".strip()))


def _most_overlapping(profile: TaskProfile, pairs: ClassPairs) -> str:
    """The pair of classes with the largest overlap; "" for other numbers of pairs."""
    if pairs.name != study.OVERLAP or not pairs.values.any():
        return ""
    first, second = np.unravel_index(int(np.triu(pairs.values).argmax()), pairs.values.shape)
    names = f"{profile.short_names[first]} and {profile.short_names[second]}"
    return f"Most overlapping pair: {names} ({pairs.values[first, second]:.2f} bits)."


def _show_tree(profile: TaskProfile, which: int) -> None:
    taxonomy = cached_call(study.tree, profile, keep=64)
    if taxonomy is None:
        return
    graph, positions = taxonomy
    st.markdown("**Classes in the taxonomy**")
    export.graph(
        "Classes in the taxonomy",
        taxonomy_figures.plot_task_tree(maps.task_map(graph, positions)),
        key=f"passport_tree_{which}",
        height=60 + 34 * len(positions),
        alt="Tree of concepts above the classes of the task",
    )
