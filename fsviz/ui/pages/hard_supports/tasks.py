"""The tasks one by one: their images with hard, random and easy supports, and what differs from the queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import datasets
from fsviz.analyses import support_attributes
from fsviz.analyses.support_attributes import AttributeEffects
from fsviz.difficulty.objectives import SUPPORT_SETS
from fsviz.figures import support_sets as figures
from fsviz.records import PAD, Dataset
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.ui.pages.hard_supports import distribution, task_table
from fsviz.ui.parts import drilldown, export, page_links, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import BY_TYPING
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import errors_on_page, escape

MOST_CLASSES = 10  # classes of one task that are drawn before the user asks for all
MOST_TILES = 40  # support images of one class that are drawn
MOST_REASONS = 4
MOST_BARS = 8
ANY = "anything"

ATTRIBUTES = Table("Attributes of the image", Column("attribute", "Attribute"), Column("value", "Value"))


def show(dataset: Dataset, found: SupportSets) -> None:
    explained = task_table.explained(found, dataset)
    shown, order = _filtered(dataset, found, task_table.task_table(dataset, found, explained), explained)
    if not len(shown):
        st.info("No task passes all of these filters. Take one of them away.", icon="🔍")
        return
    task = task_table.show(dataset, found, shown, "task_table")
    st.caption(f"{len(shown):,} of {len(found):,} tasks, {escape(order)}. Choose one by the box at its left.")
    one_task(dataset, found, task, explained)


def _filtered(
    dataset: Dataset, found: SupportSets, table: pd.DataFrame, explained: AttributeEffects | None
) -> tuple[pd.DataFrame, str]:
    """The tasks that pass the filters, and the order they are in, in words."""
    columns = shell.responsive_columns("filters", [3, 2, 2, 2], "pairs", vertical_alignment="bottom")
    class_ids = found.tasks["random"].class_ids
    names = dataset.classes["class_name"].astype(str)
    in_tasks = sorted(names[np.unique(class_ids[class_ids != PAD])])
    wanted = columns[0].multiselect(
        "With the classes",
        in_tasks,
        key=f"with_{dataset.name}_{found.spec['split']}",
        placeholder="any class",
        **BY_TYPING,
    )
    low, high = columns[1].slider("Accuracy with hard support", 0, 100, (0, 100), key="between", format="%d %%")
    keep = table["hard"].between(low, high).to_numpy(copy=True)
    for name in wanted:
        keep &= (class_ids == int(names[names == name].index[0])).any(axis=1)
    if explained is not None:
        first = explained.costliest()
        there = [a.name for i, a in enumerate(explained.attributes) if explained.real[:, i].any()]
        options = [ANY, *there, *([task_table.NO_ATTRIBUTE] if (first == PAD).any() else [])]
        by = columns[2].selectbox("Explained by", options, key=f"explained_by_{dataset.name}", format_func=str)
        if by == task_table.NO_ATTRIBUTE:
            keep &= first == PAD
        elif by in there:
            keep &= explained.real[:, [a.name for a in explained.attributes].index(by)]
    orders = {"hard": "hardest first", "drop": "largest drop first", "easy": "most helped by easy supports first"}
    order = columns[2 if explained is None else 3].selectbox(
        "Order", list(orders), key="task_order", format_func=orders.__getitem__
    )
    keep &= distribution.keep(found)
    kept = table[keep]
    sorting = {
        "hard": kept["hard"],
        "drop": kept["hard"] - kept["random"],
        "easy": kept["random"] - kept["easy"],
    }[order]
    return kept.loc[sorting.sort_values(kind="stable").index], orders[order]


def one_task(dataset: Dataset, found: SupportSets, task: int, explained: AttributeEffects | None) -> None:
    """The images of one task with all three supports, what explains the hard one, and every query's answer."""
    st.subheader(f"Task {task:,}: the same queries, three support sets", anchor=False)
    clicked: dict[str, int | None] = {}
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has no pixels here: images are named by their number.")
    ways = _ways_shown(found, task)
    columns = st.columns(len(study.SETS), gap="medium")
    for column, name in zip(columns, study.SETS):
        with column:
            st.markdown(
                f"**{SUPPORT_SETS[name].title} support** · {100 * found.accuracy(name)[task]:.0f}% of queries right"
            )
            rows = _support_rows(dataset, found, explained, task, name, ways)
            clicked[name] = task_rows(dataset, rows, f"support_{name}", tile_px=48)
    if explained is not None:
        st.caption(
            "Below a class: the attribute with a measured cost in which its support differs more from its queries than "
            "95% of random supports of that class do. Nothing where chance will do."
        )
    backbone = str(found.spec["backbone"])
    named = task_ids.name_task(dataset, found.tasks["random"], task, found.spec, (backbone,))
    page_links.from_task(dataset, found.tasks["hard"], task, backbone, named=named)
    _reasons(dataset, found, explained, task)
    view = st.segmented_control(
        "Queries, as classified with the",
        study.SETS,
        default="hard",
        key="queries_of",
        required=True,
        format_func=lambda name: f"{SUPPORT_SETS[name].title} support",
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


def _support_rows(
    dataset: Dataset, found: SupportSets, explained: AttributeEffects | None, task: int, name: str, ways: list[int]
) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    tasks = found.tasks[name]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    differences = cached_call(support_attributes.class_differences, found, dataset, explained, task, name, keep=64)
    differs = dict(zip(used.tolist(), differences))
    rows = []
    for way in ways:
        support = tasks.support[task, way][tasks.support[task, way] != PAD]
        differing = differs[way]
        note = differing.short if differing is not None else ""
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


def _reasons(dataset: Dataset, found: SupportSets, explained: AttributeEffects | None, task: int) -> None:
    """What explains that the hard support of one task is hard, in words and as points of accuracy."""
    if explained is None:
        st.caption(
            "This dataset has no attributes, so the reason must be found by eye. Add columns such as blur, style "
            "or context to the CSV you import (path,class,blur,...) and this place says in words what explains it."
        )
        return
    real = explained.reasons(task)
    st.markdown("**What explains that this support is hard?**")
    if real:
        st.markdown("\n".join(f"- {escape(reason.words)}" for reason in real[:MOST_REASONS]))
    st.markdown(escape(support_attributes.describe_effects(found, explained, task)))
    every = explained.of_task(task)
    if every:
        easy = cached_call(support_attributes.points_of, found, explained, "easy")[task]
        column = {attribute.name: a for a, attribute in enumerate(explained.attributes)}
        shown = every[:MOST_BARS]
        rows = [vars(reason) | {"easy": float(easy[column[reason.attribute]])} for reason in shown]
        attribute = drilldown.chart(
            "Reasons of the task",
            figures.plot_reasons(rows),
            key="task_reasons",
            name="reason",
            texts=[reason.attribute for reason in shown],
            about=task_table.about(found),
        )
    n_tasks = int(explained.costs["n_tasks"].max())
    st.caption(
        "Points are how much larger a gap is than with random supports of this task, times what a gap costs. Costs "
        f"are measured on random supports of {n_tasks:,} tasks of these settings: how much accuracy falls where the "
        "gap between support and query is larger, inside each task. Bars: 95% interval of that cost, from dealing "
        "the attribute's values out anew among the images of each class 200 times. Filled: a reason, its cost beyond "
        "chance (p below 5%, corrected for the number of attributes by Holm's method) and its gap larger than in 95% "
        "of random supports of this task. Hollow: chance will do. Click a point to see the images by that attribute."
    )
    if every and attribute:
        _by_attribute(dataset, found, task, attribute)


def _by_attribute(dataset: Dataset, found: SupportSets, task: int, attribute: str) -> None:
    """Support images of all three sets and the queries, each in the order of an attribute, with its values."""
    drilldown.heading(f"Task {task:,} by {escape(attribute)}", "reason")
    rows = []
    for title, images in (
        *((f"{SUPPORT_SETS[name].title} support", found.tasks[name].support[task]) for name in study.SETS),
        ("Queries", found.tasks["random"].query[task]),
    ):
        told = support_attributes.format_values(dataset, images[images != PAD], attribute)
        rows.append(Row(title, [Tile(image_id, value) for image_id, value in told[:MOST_TILES]]))
    drilldown.images(dataset, rows, "by_attribute", tile_px=48)


def _enlarge(dataset: Dataset, found: SupportSets, task: int, clicked: Mapping[str, int | None]) -> None:
    """Opens the dialog once for every new click on any of the walls."""
    before = st.session_state.get("hard_clicked", {})
    st.session_state["hard_clicked"] = dict(clicked)
    for where, image_id in clicked.items():
        if image_id is not None and before.get(where) != image_id and dataset.has_pixels:
            _dialog(dataset, found, task, image_id, where)
            return


@st.dialog("Image", width="medium")
@errors_on_page()
def _dialog(dataset: Dataset, found: SupportSets, task: int, image_id: int, where: str) -> None:
    assert dataset.images is not None  # one of them was clicked
    row = dataset.images.iloc[image_id]
    name = str(dataset.classes["class_name"].iloc[int(row["class_id"])])
    role = "query" if where == "query" else f"{escape(where)} support"
    st.markdown(f"**{escape(name)}** · image {image_id:,} · {role} of task {task:,}")
    left, right = st.columns([3, 2])
    left.image(datasets.open_image(dataset, image_id), width="stretch")
    known = support_attributes.attribute_names(dataset)
    if known:
        values = [f"{row[a]:.2f}" if isinstance(row[a], float) else str(row[a]) for a in known]
        export.table(ATTRIBUTES, {"attribute": known, "value": values}, where=right)
    if where == "query":
        labels = np.argwhere(found.tasks["random"].query[task] == image_id)
        if len(labels):
            label, query = labels[0]
            names = dataset.classes["class_name"].astype(str).to_numpy()[found.tasks["random"].class_ids[task]]
            for s in study.SETS:
                said = int(found.predictions[s].predicted[task, label, query])
                sure = float(found.predictions[s].confidence[task, label, query])
                title = f"{SUPPORT_SETS[s].title} support"
                right.markdown(f"{title}: {'✓' if said == label else '✗'} {escape(names[said])} ({sure:.0%} sure)")
