"""The tasks one by one: their images with hard, random and easy supports, and what differs from the queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import datasets
from fsviz.figures import support_sets as figures
from fsviz.records import PAD, Dataset
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_tasks import results
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import plain, sentences

MOST_CLASSES = 10  # classes of one task that are drawn before the user asks for all
MOST_TILES = 40  # support images of one class that are drawn
SET_WORDS = {"hard": "Hard support", "random": "Random support", "easy": "Easy support"}


def show(dataset: Dataset, found: SupportSets) -> None:
    differences = results.differences(found, dataset)
    table = _task_table(dataset, found, differences)
    shown, order = _filtered(dataset, found, table)
    if not len(shown):
        st.info("No task passes all of these filters. Take one of them away.", icon="🔍")
        return
    chosen = st.dataframe(
        shown,
        key="task_table",
        on_select="rerun",
        selection_mode="single-row",
        height=min(38 + 35 * len(shown), 214),
        hide_index=True,
        column_config={
            "task": st.column_config.NumberColumn("Task", width=50),
            **{
                name: st.column_config.ProgressColumn(
                    f"{name.capitalize()} %", min_value=0, max_value=100, format="%.0f", width=90
                )
                for name in study.SETS
            },
            "classes": st.column_config.TextColumn("Classes", width=260),
            "difference": st.column_config.TextColumn("What differs most with the hard support", width="large"),
        },
    )
    rows = chosen.selection.rows if chosen and chosen.selection.rows else [0]
    task = int(shown["task"].iloc[min(rows[0], len(shown) - 1)])
    st.caption(f"{len(shown):,} of {len(found):,} tasks, {plain(order)}. Choose one by the box at its left.")
    _one_task(dataset, found, task, differences)


def _task_table(dataset: Dataset, found: SupportSets, differences: Mapping[str, Any]) -> pd.DataFrame:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids = found.tasks["random"].class_ids
    table = pd.DataFrame({"task": np.arange(len(found))})
    for name in study.SETS:
        table[name] = 100 * found.accuracy(name)
    table["classes"] = [", ".join(names[row[row != PAD]]) for row in class_ids]
    if any(differences["hard"]):
        table["difference"] = [d[0].words if d else "" for d in differences["hard"]]
    return table


def _filtered(dataset: Dataset, found: SupportSets, table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The tasks that pass the filters, and the order they are in, in words."""
    columns = st.columns([3, 2, 2, 2], vertical_alignment="bottom")
    class_ids = found.tasks["random"].class_ids
    names = dataset.classes["class_name"].astype(str)
    in_tasks = sorted(names[np.unique(class_ids[class_ids != PAD])])
    wanted = columns[0].multiselect(
        "With the classes", in_tasks, key=f"with_{dataset.name}_{found.spec['split']}", placeholder="any class"
    )
    low, high = columns[1].slider("Accuracy with hard support", 0, 100, (0, 100), key="between", format="%d %%")
    attributes = study.attribute_names(dataset)
    keep = table["hard"].between(low, high).to_numpy(copy=True)
    for name in wanted:
        keep &= (class_ids == int(names[names == name].index[0])).any(axis=1)
    if attributes:
        by = columns[2].selectbox("With a gap in", ["any attribute", *attributes], key=f"gap_in_{dataset.name}")
        if by != "any attribute":
            gap = study.task_gap(found, dataset, by)
            most = float(np.nanmax(gap)) if np.isfinite(gap).any() else 1.0
            least = columns[3].slider(
                "of at least", 0.0, max(0.1, round(most, 1)), round(most / 2, 1), 0.1, key=f"gap_{by}_{most:.1f}"
            )
            keep &= np.nan_to_num(gap, nan=-1.0) >= least
    orders = {"hard": "hardest first", "drop": "largest drop first", "easy": "most helped by easy supports first"}
    if not attributes or st.session_state.get(f"gap_in_{dataset.name}", "any attribute") == "any attribute":
        order = columns[3].selectbox("Order", list(orders), key="task_order", format_func=orders.__getitem__)
    else:
        order = "hard"
    kept = table[keep]
    sorting = {
        "hard": kept["hard"],
        "drop": kept["hard"] - kept["random"],
        "easy": kept["random"] - kept["easy"],
    }[order]
    return kept.loc[sorting.sort_values(kind="stable").index], orders[order]


def _one_task(dataset: Dataset, found: SupportSets, task: int, differences: Mapping[str, Any]) -> None:
    st.subheader(f"Task {task:,}: the same queries, three support sets", anchor=False)
    clicked: dict[str, int | None] = {}
    if not dataset.has_pixels:
        st.caption(f"{plain(dataset.title)} has no pixels here: images are named by their number.")
    ways = _ways_shown(found, task)
    columns = st.columns(3, gap="medium")
    for column, name in zip(columns, study.SETS):
        with column:
            st.markdown(f"**{SET_WORDS[name]}** · {100 * found.accuracy(name)[task]:.0f}% of queries right")
            rows = _support_rows(dataset, found, task, name, ways)
            clicked[name] = task_rows(dataset, rows, f"support_{name}", tile_px=48)
    if study.attribute_names(dataset):
        st.caption(
            "Below each class: the attribute in which its support differs most from its queries. A few images "
            "differ by chance too, as the random column shows."
        )
    _reasons(differences, task)
    view = st.segmented_control(
        "Queries, as classified with the",
        study.SETS,
        default="hard",
        key="queries_of",
        required=True,
        format_func=lambda name: SET_WORDS[name].lower(),
    )
    clicked["query"] = task_rows(dataset, _query_rows(dataset, found, task, str(view), ways), "queries", tile_px=76)
    st.caption(
        "A broken red frame with a cross is a wrong answer; its label is the class the classifier chose. Click an "
        "image to enlarge it."
    )
    _enlarge(dataset, found, task, clicked)


def _ways_shown(found: SupportSets, task: int) -> list[int]:
    """The classes of a task that are drawn: all, or of many the ones that suffer most from the hard support."""
    tasks = found.tasks["random"]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    if len(used) <= MOST_CLASSES or st.toggle(f"Show all {len(used)} classes", key="all_classes"):
        return used.tolist()
    st.caption(f"The {MOST_CLASSES} classes with the most wrong answers under the hard support.")
    wrong = (found.predictions["hard"].rank[task] > 0).sum(axis=1)[used]
    return sorted(used[np.argsort(-wrong, kind="stable")[:MOST_CLASSES]].tolist())


def _support_rows(dataset: Dataset, found: SupportSets, task: int, name: str, ways: list[int]) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    tasks = found.tasks[name]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    differs = dict(zip(used.tolist(), study.class_differences(found, dataset, task, name)))
    rows = []
    for way in ways:
        support = tasks.support[task, way][tasks.support[task, way] != PAD]
        note = differs[way][0].short if differs[way] else ""
        if len(support) > MOST_TILES:
            note = f"first {MOST_TILES} of {len(support)} images. {note}"
        tiles = [Tile(int(i)) for i in support[:MOST_TILES]]
        rows.append(Row(names[tasks.class_ids[task, way]], tiles, note, kind="support"))
    return rows


def _query_rows(dataset: Dataset, found: SupportSets, task: int, view: str, ways: list[int]) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids, query = found.tasks["random"].class_ids[task], found.tasks["random"].query[task]
    rows = []
    for label in ways:
        class_id = class_ids[label]
        right = {
            s: int((found.predictions[s].predicted[task, label][query[label] != PAD] == label).sum())
            for s in study.SETS
        }
        tiles = []
        for image_id, predicted in zip(query[label], found.predictions[view].predicted[task, label]):
            if image_id == PAD:
                continue
            wrong = int(predicted) != label
            tiles.append(
                Tile(int(image_id), "", "wrong" if wrong else "right", names[class_ids[predicted]] if wrong else "")
            )
        note = f"right: {right['hard']} hard, {right['random']} random, {right['easy']} easy of {len(tiles)}"
        rows.append(Row(names[class_id], tiles, note, kind="query"))
    return rows


def _reasons(differences: Mapping[str, Any], task: int) -> None:
    """Words and bars on what differs between the hard support and the queries of one task."""
    hard, easy = differences["hard"][task], differences["easy"][task]
    if not hard:
        st.caption(
            "This dataset has no attributes, so the reason must be found by eye. Add columns such as blur, style "
            "or context to the CSV you import (path,class,blur,...) and this place says in words what differs."
        )
        return
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.markdown("**What differs between hard support and query, over all classes**")
        st.markdown("\n".join(f"- {plain(d.words)}" for d in hard[:4]))
        if easy:
            st.caption(f"With the easy support the largest difference is: {plain(easy[0].words)}.")
    bars = [vars(d) for d in hard if d.value][:4]
    if bars:
        with right:
            st.plotly_chart(figures.plot_differences(bars), key="task_bars")


def _enlarge(dataset: Dataset, found: SupportSets, task: int, clicked: Mapping[str, int | None]) -> None:
    """Opens the dialog once for every new click on any of the walls."""
    before = st.session_state.get("hard_clicked", {})
    st.session_state["hard_clicked"] = dict(clicked)
    for where, image_id in clicked.items():
        if image_id is not None and before.get(where) != image_id and dataset.has_pixels:
            _dialog(dataset, found, task, image_id, where)
            return


@st.dialog("Image", width="medium")
@sentences()
def _dialog(dataset: Dataset, found: SupportSets, task: int, image_id: int, where: str) -> None:
    assert dataset.images is not None  # one of them was clicked
    row = dataset.images.iloc[image_id]
    name = str(dataset.classes["class_name"].iloc[int(row["class_id"])])
    role = "query" if where == "query" else f"{plain(where)} support"
    st.markdown(f"**{plain(name)}** · image {image_id:,} · {role} of task {task:,}")
    left, right = st.columns([3, 2])
    left.image(datasets.open_image(dataset, image_id), width="stretch")
    known = study.attribute_names(dataset)
    if known:
        values = [f"{row[a]:.2f}" if isinstance(row[a], float) else str(row[a]) for a in known]
        right.dataframe(pd.DataFrame({"attribute": known, "value": values}), hide_index=True)
    if where == "query":
        labels = np.argwhere(found.tasks["random"].query[task] == image_id)
        if len(labels):
            label, place = labels[0]
            names = dataset.classes["class_name"].astype(str).to_numpy()[found.tasks["random"].class_ids[task]]
            for s in study.SETS:
                said = int(found.predictions[s].predicted[task, label, place])
                sure = float(found.predictions[s].confidence[task, label, place])
                right.markdown(
                    f"{SET_WORDS[s]}: {'✓' if said == label else '✗'} {plain(names[said])} ({sure:.0%} sure)"
                )
