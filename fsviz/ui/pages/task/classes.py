"""How the classes of a task relate: pairs of classes and their place in the taxonomy."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from fsviz.analyses import task_profile as study
from fsviz.analyses.task_profile import TaskProfile
from fsviz.figures import task_profile as figures
from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.taxonomy import maps
from fsviz.ui.pages.task.choices import PAIRS, picked_answer
from fsviz.ui.parts import controls, export, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape


def show_classes(passports: Sequence[TaskProfile]) -> None:
    st.subheader("How its classes relate" if len(passports) == 1 else "How their classes relate", anchor=False)
    titles = {
        pairs.name: pairs.title for passport in passports for pairs in cached_call(study.class_pairs, passport, keep=64)
    }
    whose = {} if not any(p.answers for p in passports) else {"answers": "Answers to the queries"}
    titles |= whose
    if not titles:
        st.caption("Nothing is known here of how its classes relate: the dataset has neither a taxonomy nor features.")
        return
    chosen = str(controls.pick(PAIRS.with_(choices=titles, default=next(iter(titles))), shell.side()))
    if len(passports) == 1:
        left, right = shell.responsive_columns("classes", [9, 11], gap="large")
        with left:
            _show_pairs(passports[0], chosen, 0)
        with right:
            _show_tree(passports[0], 0)
        return
    for which, (slot, passport) in enumerate(zip(st.columns(2, gap="large"), passports, strict=True)):
        with slot:
            _show_pairs(passport, chosen, which)
            _show_tree(passport, which)


def _show_pairs(passport: TaskProfile, chosen: str, which: int) -> None:
    if chosen == "answers":
        answer = picked_answer(passport)
        if answer is None:
            st.caption("No answers to its queries are known.")
            return
        export.chart(
            "Answers to the queries",
            figures.plot_confusion_matrix(study.predicted_pairs(answer, len(passport.names)), passport.names),
            key=f"answered_{which}",
        )
        st.caption(f"How many queries of a class (rows) {escape(answer.label)} named as which class.")
        return
    pairs = next((p for p in cached_call(study.class_pairs, passport, keep=64) if p.name == chosen), None)
    if pairs is None:
        st.caption("Not known for this task.")
        return
    export.chart(
        pairs.title,
        taxonomy_figures.plot_task_distances(pairs.values, passport.names, pairs.title, float(pairs.most), 330),
        key=f"pairs_{which}",
    )
    st.caption(escape(pairs.what) + (" The sidebar has answers and other numbers." if passport.answers else ""))


def _show_tree(passport: TaskProfile, which: int) -> None:
    found = cached_call(study.tree, passport, keep=64)
    if found is None:
        return
    graph, places = found
    st.markdown("**Their place in the taxonomy**, from the smallest concept above all of them:")
    export.graph(
        "Its classes in the taxonomy",
        taxonomy_figures.plot_task_tree(maps.task_map(graph, places)),
        key=f"passport_tree_{which}",
        height=60 + 34 * len(places),
        alt="Tree of concepts above the classes of the task",
    )
