"""One task of a testbed: its images or classes, their distances, and their place in the taxonomy."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.records import PAD, Predictions, TaskId, Testbed
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.tasks import task_ids
from fsviz.taxonomy import DISTANCES, Dag, maps
from fsviz.ui.pages.sample_tasks.testbeds import Classes, class_names, coarsity_text
from fsviz.ui.parts import drilldown, export, hover, page_links, shell, task_list
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.shell import escape

WALL_PX = 530  # height of the images of a task, about that of the list
CELL = Setting("cell", "Pair", "The two selected classes of the task, by their positions.", "choice", "")


def show_selected_task(classes: Classes, bed: Testbed, task: int, note: str, predictions: Predictions | None) -> None:
    """Shows the images or classes of a task, with predictions if there are any, and links to its other pages."""
    dataset = classes.dataset
    st.markdown(f"**Task {task:,}**" + (f" · {escape(note)}" if note else ""))
    class_ids = bed.tasks.class_ids[task]
    class_ids = class_ids[class_ids != PAD]
    task_id = _task_name(classes, bed, task)
    if dataset.has_pixels and bed.tasks.has_images:
        notes = _mean_notes(classes, class_ids) if classes.distance else []
        alone = bed.tasks.take(np.array([task]))
        height = WALL_PX if len(class_ids) > 2 else None
        task_list.show_task(
            dataset, alone, 0, "task_images", notes, answer=predictions, tile_px=48, task_id=task_id, height=height
        )
        if predictions is not None:
            scroll = f" Scroll for all {len(class_ids):,} classes." if height else ""
            st.caption(f"✓ correct · ✗ incorrect, with the predicted class.{scroll}")
        return
    if classes.distance:
        _show_class_table(classes, class_ids)
        st.caption(
            "Set support images to 1 or more to sample images."
            if dataset.has_pixels
            else f"{escape(dataset.title)} has no images here."
        )
    else:
        st.markdown(", ".join(map(escape, dataset.short_names(class_ids))))
    page_links.from_task(dataset, bed.tasks, task, task_id=task_id)


def _task_name(classes: Classes, bed: Testbed, task: int) -> TaskId | None:
    """The id of the task in links; None if it has classes only and its recipe cannot reproduce it."""
    return task_ids.name_task(classes.dataset, bed.tasks, task, bed.recipe)


def _class_table(high: float) -> Table:
    """The table of the classes of a task without images."""
    return Table(
        "Classes of the task",
        Column("class", "Class", kind="class", width=190),
        Column("place", "Taxonomy path", width=230),
        Column("distance", "Mean distance", digits=2, kind="bar", high=high, width=90),
    )


def _inside(classes: Classes, class_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the classes of a task in the split (W,), and their distances (W, W)."""
    assert classes.distances is not None
    positions = np.searchsorted(classes.dataset.split_class_ids(classes.split), class_ids)
    return positions, classes.distances[np.ix_(positions, positions)]


def _mean_notes(classes: Classes, class_ids: np.ndarray) -> list[str]:
    _, inside = _inside(classes, class_ids)
    digits = 1 if inside.max() >= 2 else 2
    return [f"mean distance {row.sum() / max(len(inside) - 1, 1):.{digits}f}" for row in inside]


def _show_class_table(classes: Classes, class_ids: np.ndarray) -> None:
    distances, graph = classes.distances, classes.graph
    assert distances is not None
    positions, inside = _inside(classes, class_ids)
    export.table(
        _class_table(float(distances.max())),
        {
            "class": class_names(classes, class_ids),
            "place": [
                " › ".join(maps.class_card(graph, distances, int(p)).path[-3:-1]) if graph else "" for p in positions
            ],
            "distance": inside.sum(axis=1) / max(len(class_ids) - 1, 1),
        },
    )


def show_distances(classes: Classes, bed: Testbed, task: int) -> None:
    """Shows the distances between the classes of a task, and the taxonomy above them."""
    dataset, distances = classes.dataset, classes.distances
    if distances is None:
        return
    class_ids = bed.tasks.class_ids[task]
    class_ids = class_ids[class_ids != PAD]
    positions, inside = _inside(classes, class_ids)
    names = class_names(classes, class_ids)
    few = len(class_ids) <= 10  # a larger tree needs the full width
    left, right = shell.responsive_columns("task", [1, 1], gap="large")
    with left:
        name = DISTANCES[classes.distance].title
        st.markdown("**Class distances**")
        export.chart(
            "Class distances of the task",
            taxonomy_figures.plot_task_distances(inside, names, name, float(distances.max()), 360),
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
    with right if few else st.container():
        _show_tree(classes.graph, positions)
    pair = drilldown.selection(
        CELL.name, [f"{a}-{b}" for a in range(len(names)) for b in range(len(names))], f"{bed.name} {task}"
    )
    if pair:
        selected = sorted({int(at) for at in pair.split("-")})
        drilldown.heading(" and ".join(escape(names[at]) for at in selected), CELL.name)
        drilldown.classes(dataset, [int(class_ids[at]) for at in selected], "cell_classes")


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
