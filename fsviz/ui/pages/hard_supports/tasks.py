"""Section Tasks: the images of each task with hard, random and easy supports, and their attribute shifts."""

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
from fsviz.ui.parts.controls import multiselect_classes
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import errors_on_page, escape

MAX_CLASSES = 10  # of a task, unless the user shows all
MAX_TILES = 40  # support images of a class
MAX_REASONS = 4
MAX_BARS = 8
ANY = "any"

ATTRIBUTES = Table("Image attributes", Column("attribute", "Attribute"), Column("value", "Value"))


def show(dataset: Dataset, sets: SupportSets) -> None:
    explained = task_table.explained(sets, dataset)
    rows, order = _filtered(dataset, sets, task_table.task_table(dataset, sets, explained), explained)
    if not len(rows):
        st.info("No task matches these filters. Remove one.", icon="🔍")
        return
    task = task_table.show(dataset, sets, rows, "task_table")
    st.caption(f"{len(rows):,} of {len(sets):,} tasks, {escape(order)}. Select a row.")
    one_task(dataset, sets, task, explained)


def _filtered(
    dataset: Dataset, sets: SupportSets, table: pd.DataFrame, explained: AttributeEffects | None
) -> tuple[pd.DataFrame, str]:
    """The rows that pass the filters, sorted, and the title of their order."""
    columns = shell.responsive_columns("filters", [3, 2, 2, 2], "pairs", vertical_alignment="bottom")
    class_ids = sets.tasks["random"].class_ids
    names = dataset.classes["class_name"].astype(str)
    chosen_classes = multiselect_classes(
        "Classes",
        names[np.unique(class_ids[class_ids != PAD])].unique().tolist(),
        f"with_{dataset.name}_{sets.spec['split']}",
        columns[0],
        placeholder="any class",
    )
    low, high = columns[1].slider("Accuracy (hard)", 0, 100, (0, 100), key="between", format="%d %%")
    keep = table["hard"].between(low, high).to_numpy(copy=True)
    for name in chosen_classes:
        keep &= (class_ids == int(names[names == name].index[0])).any(axis=1)
    if explained is not None:
        largest = explained.largest_effect()
        reasons = [a.name for i, a in enumerate(explained.attributes) if explained.real[:, i].any()]
        options = [ANY, *reasons, *([task_table.NO_ATTRIBUTE] if (largest == PAD).any() else [])]
        by = columns[2].selectbox("Attribute", options, key=f"explained_by_{dataset.name}", format_func=str)
        if by == task_table.NO_ATTRIBUTE:
            keep &= largest == PAD
        elif by in reasons:
            keep &= explained.real[:, [a.name for a in explained.attributes].index(by)]
    orders = {"hard": "hardest", "drop": "largest drop", "easy": "largest gain from easy"}
    order = columns[2 if explained is None else 3].selectbox(
        "Order", list(orders), key="task_order", format_func=orders.__getitem__
    )
    distribution.show_bar(sets)
    rows = table[keep & distribution.tasks_of_bar(sets)]
    sorting = {
        "hard": rows["hard"],
        "drop": rows["hard"] - rows["random"],
        "easy": rows["random"] - rows["easy"],
    }[order]
    return rows.loc[sorting.sort_values(kind="stable").index], orders[order]


def one_task(dataset: Dataset, sets: SupportSets, task: int, explained: AttributeEffects | None) -> None:
    """One task: its images with all three supports, what explains the hard one, and the predictions."""
    st.subheader(f"Task {task:,}: three support sets", anchor=False)
    clicked: dict[str, int | None] = {}
    if not dataset.has_pixels:
        st.caption(f"{escape(dataset.title)} has no pixels here, so images are shown by number.")
    ways = _visible_ways(sets, task)
    columns = st.columns(len(study.SETS), gap="medium")
    for column, name in zip(columns, study.SETS):
        with column:
            st.markdown(f"**{SUPPORT_SETS[name].title} support** · {100 * sets.accuracy(name)[task]:.0f}% correct")
            rows = _support_rows(dataset, sets, explained, task, name, ways)
            clicked[name] = task_rows(dataset, rows, f"support_{name}", tile_px=48)
    if explained is not None:
        st.caption("Under a class: its costly attribute shift, if larger than in 95% of random supports.")
    backbone = str(sets.spec["backbone"])
    task_id = task_ids.name_task(dataset, sets.tasks["random"], task, sets.spec, (backbone,))
    page_links.from_task(dataset, sets.tasks["hard"], task, backbone, task_id=task_id)
    _reasons(dataset, sets, explained, task)
    view = st.segmented_control(
        "Predictions with",
        study.SETS,
        default="hard",
        key="queries_of",
        required=True,
        format_func=lambda name: f"{SUPPORT_SETS[name].title} support",
    )
    clicked["query"] = task_rows(dataset, _query_rows(dataset, sets, task, str(view), ways), "queries", tile_px=76)
    st.caption("✓ correct · ✗ incorrect, with the predicted class. Click an image to enlarge it.")
    _enlarge(dataset, sets, task, clicked)


def _visible_ways(sets: SupportSets, task: int) -> list[int]:
    """The classes of a task that are shown: all, or those with the most errors with the hard support."""
    tasks = sets.tasks["random"]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    if len(used) <= MAX_CLASSES or st.toggle(f"Show all {len(used)} classes", key="all_classes"):
        return used.tolist()
    st.caption(f"The {MAX_CLASSES} classes with the most errors with the hard support.")
    n_incorrect = (sets.predictions["hard"].rank[task] > 0).sum(axis=1)[used]
    return sorted(used[np.argsort(-n_incorrect, kind="stable")[:MAX_CLASSES]].tolist())


def _support_rows(
    dataset: Dataset, sets: SupportSets, explained: AttributeEffects | None, task: int, name: str, ways: list[int]
) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    tasks = sets.tasks[name]
    used = np.flatnonzero(tasks.class_ids[task] != PAD)
    differences = cached_call(support_attributes.class_differences, sets, dataset, explained, task, name, keep=64)
    differs = dict(zip(used.tolist(), differences))
    rows = []
    for way in ways:
        support = tasks.support[task, way][tasks.support[task, way] != PAD]
        difference = differs[way]
        note = difference.short if difference is not None else ""
        if len(support) > MAX_TILES:
            note = f"first {MAX_TILES} of {len(support)} images. {note}"
        tiles = [Tile(int(i)) for i in support[:MAX_TILES]]
        rows.append(Row(names[tasks.class_ids[task, way]], tiles, note, kind="support"))
    return rows


def _query_rows(dataset: Dataset, sets: SupportSets, task: int, view: str, ways: list[int]) -> list[Row]:
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids, query = sets.tasks["random"].class_ids[task], sets.tasks["random"].query[task]
    rows = []
    for label in ways:
        class_id = class_ids[label]
        n_correct = {
            s: int((sets.predictions[s].predicted[task, label][query[label] != PAD] == label).sum()) for s in study.SETS
        }
        tiles = []
        for image_id, predicted in zip(query[label], sets.predictions[view].predicted[task, label]):
            if image_id == PAD:
                continue
            is_wrong = int(predicted) != label
            tiles.append(
                Tile(
                    int(image_id), "", "wrong" if is_wrong else "right", names[class_ids[predicted]] if is_wrong else ""
                )
            )
        note = f"correct of {len(tiles)}: {', '.join(f'{n_correct[s]} {s}' for s in study.SETS)}"
        rows.append(Row(names[class_id], tiles, note, kind="query"))
    return rows


def _reasons(dataset: Dataset, sets: SupportSets, explained: AttributeEffects | None, task: int) -> None:
    """Attribute shifts of the hard support of one task, as sentences and as points of accuracy."""
    if explained is None:
        st.caption(
            "This dataset has no attributes. Import a CSV with columns such as blur, style or context "
            "(path,class,blur,...) to see which attribute shift explains a hard support."
        )
        return
    reasons = explained.reasons(task)
    st.markdown("**Attribute shifts in this support**")
    if reasons:
        st.markdown("\n".join(f"- {escape(reason.words)}" for reason in reasons[:MAX_REASONS]))
    st.markdown(escape(support_attributes.describe_effects(sets, explained, task)))
    effects = explained.of_task(task)
    if effects:
        easy = cached_call(support_attributes.points_of, sets, explained, "easy")[task]
        column = {attribute.name: a for a, attribute in enumerate(explained.attributes)}
        largest = effects[:MAX_BARS]
        rows = [vars(reason) | {"easy": float(easy[column[reason.attribute]])} for reason in largest]
        attribute = drilldown.chart(
            "Attribute shifts of the task",
            figures.plot_reasons(rows),
            key="task_reasons",
            name="reason",
            texts=[reason.attribute for reason in largest],
            about=task_table.about(sets),
        )
    n_tasks = int(explained.costs["n_tasks"].max())
    st.caption(
        f"Cost in points vs random supports of this task, measured on {n_tasks:,} tasks. Click a point to sort the "
        "images by that attribute.",
        help="Points: how much larger the shift is than with random supports of this task, times the cost of a shift. "
        "That cost is how much accuracy falls inside a task if the shift is larger; its 95% CI comes from 200 shuffles "
        "of the attribute's values among the images of each class. Significance: p < 0.05, Holm-corrected, and a shift "
        "larger than in 95% of random supports of this task.",
    )
    if effects and attribute:
        _by_attribute(dataset, sets, task, attribute)


def _by_attribute(dataset: Dataset, sets: SupportSets, task: int, attribute: str) -> None:
    """Support images of all three sets and the queries, sorted by an attribute, with its values."""
    drilldown.heading(f"Task {task:,} by {escape(attribute)}", "reason")
    rows = []
    for title, images in (
        *((f"{SUPPORT_SETS[name].title} support", sets.tasks[name].support[task]) for name in study.SETS),
        ("Queries", sets.tasks["random"].query[task]),
    ):
        values = support_attributes.format_values(dataset, images[images != PAD], attribute)
        rows.append(Row(title, [Tile(image_id, value) for image_id, value in values[:MAX_TILES]]))
    drilldown.images(dataset, rows, "by_attribute", tile_px=48)


def _enlarge(dataset: Dataset, sets: SupportSets, task: int, clicked: Mapping[str, int | None]) -> None:
    """Opens the dialog once for every new click on an image."""
    before = st.session_state.get("hard_clicked", {})
    st.session_state["hard_clicked"] = dict(clicked)
    for where, image_id in clicked.items():
        if image_id is not None and before.get(where) != image_id and dataset.has_pixels:
            _dialog(dataset, sets, task, image_id, where)
            return


@st.dialog("Image", width="medium")
@errors_on_page()
def _dialog(dataset: Dataset, sets: SupportSets, task: int, image_id: int, where: str) -> None:
    assert dataset.images is not None  # one of them was clicked
    row = dataset.images.iloc[image_id]
    name = dataset.short_names()[int(row["class_id"])]
    role = "query" if where == "query" else f"{escape(where)} support"
    st.markdown(f"**{escape(name)}** · image {image_id:,} · {role} of task {task:,}")
    left, right = st.columns([3, 2])
    left.image(datasets.open_image(dataset, image_id), width="stretch")
    names = support_attributes.attribute_names(dataset)
    if names:
        values = [f"{row[a]:.2f}" if isinstance(row[a], float) else str(row[a]) for a in names]
        export.table(ATTRIBUTES, {"attribute": names, "value": values}, where=right)
    if where == "query":
        labels = np.argwhere(sets.tasks["random"].query[task] == image_id)
        if len(labels):
            label, query = labels[0]
            class_ids = sets.tasks["random"].class_ids[task]
            classes = dataset.short_names(class_ids[class_ids != PAD])
            for s in study.SETS:
                predicted = int(sets.predictions[s].predicted[task, label, query])
                confidence = float(sets.predictions[s].confidence[task, label, query])
                title = f"{SUPPORT_SETS[s].title} support"
                mark = "✓" if predicted == label else "✗"
                right.markdown(f"{title}: {mark} {escape(classes[predicted])} ({confidence:.0%} confidence)")
