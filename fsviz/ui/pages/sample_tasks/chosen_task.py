"""One task of a testbed: its images or classes, their distances, and their place in the taxonomy."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.records import PAD, TaskId, Testbed
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.taxonomy import DISTANCES, Dag, maps
from fsviz.ui.pages.sample_tasks.testbeds import Classes, class_names, coarsity_text
from fsviz.ui.parts import drilldown, export, hover, page_links, shell, task_list
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.shell import escape

CELL = Setting("cell", "Pair", "The two selected classes of the task, by their positions.", "choice", "")


def show_chosen_task(classes: Classes, bed: Testbed, task: int) -> None:
    pictured = classes.dataset.has_pixels and bed.tasks.has_images
    st.subheader(f"Task {task:,}", anchor=False)
    if classes.distance:
        _show_distances(classes, bed, task)
    elif pictured:
        task_list.show_task(classes.dataset, bed.tasks, task, "task_images", named=_task_name(classes, bed, task))
    else:
        ids = bed.tasks.class_ids[task]
        st.markdown(", ".join(escape(n) for n in class_names(classes, ids[ids != PAD])))
        page_links.from_task(classes.dataset, bed.tasks, task, named=_task_name(classes, bed, task))


def _task_name(classes: Classes, bed: Testbed, task: int) -> TaskId | None:
    """The id of the task in links; None if it has classes only and its recipe cannot reproduce it."""
    return task_ids.name_task(classes.dataset, bed.tasks, task, bed.recipe)


def _class_table(high: float) -> Table:
    """The table of the classes of a task without images."""
    return Table(
        "Classes of the task",
        Column("class", "Class", width=190),
        Column("place", "Taxonomy path", width=230),
        Column("distance", "Mean distance", digits=2, kind="bar", high=high, width=90),
    )


def _show_distances(classes: Classes, bed: Testbed, task: int) -> None:
    dataset, distances, graph = classes.dataset, classes.distances, classes.graph
    assert distances is not None  # pages without distances do not list tasks
    class_ids = bed.tasks.class_ids[task]
    class_ids = class_ids[class_ids != PAD]
    positions = np.searchsorted(dataset.split_class_ids(classes.split), class_ids)
    shown = class_names(classes, class_ids)
    inside = distances[np.ix_(positions, positions)]
    few = len(class_ids) <= 10  # a larger tree needs the full width
    left, right = shell.responsive_columns("task", [3, 2], gap="medium")
    with left:
        if dataset.has_pixels and bed.tasks.has_images:
            notes = [_mean_note(inside, i) for i in range(len(shown))]
            task_list.show_task(dataset, bed.tasks, task, "task_images", notes, named=_task_name(classes, bed, task))
        else:
            others = inside.sum(axis=1) / max(len(class_ids) - 1, 1)
            export.table(
                _class_table(float(distances.max())),
                {
                    "class": shown,
                    "place": [
                        " › ".join(maps.class_card(graph, distances, int(p)).path[-3:-1]) if graph else ""
                        for p in positions
                    ],
                    "distance": others,
                },
            )
            st.caption(
                "Set support images to 1 or more to sample images."
                if dataset.has_pixels
                else f"{escape(dataset.title)} has no images here."
            )
            page_links.from_task(dataset, bed.tasks, task, named=_task_name(classes, bed, task))
        if not dataset.has_pixels and few:
            _show_tree(graph, positions)
    with right:
        name = DISTANCES[classes.distance].title
        export.chart(
            "Class distances of the task",
            taxonomy_figures.plot_task_distances(inside, shown, name, float(distances.max()), 380),
            key="task_distances",
        )
        pictured = bed.tasks.has_images and dataset.has_pixels
        faces = [int(i) for i in bed.tasks.support[task, : len(class_ids), 0]] if pictured else None
        hover.answer_cells(dataset, "task_distances", faces, Click(CELL, _pair_of), len(class_ids))
        values = inside[np.triu_indices(len(class_ids), 1)]
        st.caption(
            f"Coarsity {coarsity_text(bed.tasks.measures['coarsity'][task])}: "
            + (
                f"squared {name} distance between its two classes ({values[0]:.2f})."
                if len(values) == 1
                else f"mean squared {name} distance over {len(values):,} class pairs ({values.min():.2f} to "
                f"{values.max():.2f})."
            )
        )
        if dataset.has_pixels and few:
            _show_tree(graph, positions)
    if not few:
        _show_tree(graph, positions)
    pair = drilldown.chosen(
        CELL.name, [f"{a}-{b}" for a in range(len(shown)) for b in range(len(shown))], f"{bed.name} {task}"
    )
    if pair:
        places = sorted({int(at) for at in pair.split("-")})
        drilldown.heading(" and ".join(escape(shown[at]) for at in places), CELL.name)
        drilldown.classes(dataset, [int(class_ids[at]) for at in places], "cell_classes")


def _pair_of(cell: Point) -> str:
    """The two classes of a cell; for a class of the tree, that class twice."""
    return f"{cell.data[0]}-{cell.data[-1]}"


def _show_tree(graph: Dag | None, positions: np.ndarray) -> None:
    if graph is None or len(positions) > 25:
        return
    st.markdown("**Classes in the taxonomy**")
    task_map = maps.task_map(graph, positions.tolist())
    export.graph(
        "The task in the taxonomy",
        taxonomy_figures.plot_task_tree(task_map),
        key="task_tree",
        height=60 + 34 * len(positions),
        sets=Click(CELL, [None if at == PAD else f"{at}-{at}" for at in task_map.class_position.tolist()]),
        alt="Tree of concepts above the classes of the task",
    )


def _mean_note(inside: np.ndarray, row: int) -> str:
    mean = inside[row].sum() / max(len(inside) - 1, 1)
    return f"mean distance {mean:.{1 if inside.max() >= 2 else 2}f}"
