"""Drill-down: a click on a point, bar, cell or row selects it in the link and shows its tasks, classes or images.

The value of a point is in the link under a name, so that a link opens with the same selection. A value that the page
does not know is reported as ignored, like any setting of a link. A second click on the same point, a double click on
the empty area and the button Close clear the selection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from fsviz.records import Dataset, Predictions, TaskId, Tasks
from fsviz.settings import Setting
from fsviz.tables import Rows, Table
from fsviz.ui.parts import clicks, export, links, page_links, shell, task_list
from fsviz.ui.parts.clicks import Click, Values
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

MOST_CLASSES, MOST_IMAGES = 12, 12


def chart(
    title: str,
    figure: Any,
    *,
    key: str,
    name: str,
    texts: Iterable[str],
    place: int = 0,
    values: Values | None = None,
    about: str = "",
    already: str | None = None,
    **more: Any,
) -> str:
    """Draws a figure; returns the text of the selected point, "" for none.

    name     the key of the selection in the link
    texts    the possible texts of points
    place    position of the text in the customdata of a point
    values   clicked value -> its text, if points carry something else
    about    what the selection belongs to: when that changes, nothing is selected
    already  the selection, if another figure of the same name has been drawn
    """
    setting = _setting(name, texts)
    choice = str(links.value_of(setting, name, about)) if already is None else already
    sets = Click({place: setting}, clears=True) if values is None else Click(setting, values, clears=True)
    export.chart(title, figure, key=key, sets=sets, **more)
    return choice


def table(
    table: Table,
    rows: Rows,
    *,
    key: str,
    name: str,
    texts: Sequence[str],
    about: str = "",
    already: str | None = None,
    **more: Any,
) -> str:
    """Draws a table; returns the text of the selected row, "" for none."""
    setting = _setting(name, texts)
    choice = str(links.value_of(setting, name, about)) if already is None else already
    export.table(table, rows, key=key, sets=Click(setting, texts, clears=True), **more)
    return choice


def selection(name: str, texts: Iterable[str], about: str = "") -> str:
    """The selection under a name of the link, "" for none."""
    return str(links.value_of(_setting(name, texts), name, about))


def _setting(name: str, texts: Iterable[str]) -> Setting:
    choices = {"": "nothing", **{text: text for text in texts}}
    return Setting(name, "Selection", "The item that was clicked.", "choice", "", choices=choices)


def heading(words: str, name: str) -> None:
    """Shows the heading of a drill-down, in Markdown, with a button that closes it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{words}**")
        st.button("Close", key=f"close_{name}", on_click=_forget, args=(name,))


def _forget(name: str) -> None:
    st.session_state[name] = ""
    clicks.clear_marks(name)


# Contents of a drill-down -----------------------------------------------------------------------------------------


def classes(dataset: Dataset, class_ids: Sequence[int], key: str, notes: Sequence[str] = ()) -> None:
    """Shows some images of every class, a row each, and links to more."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    listed = [int(class_id) for class_id in class_ids[:MOST_CLASSES]]
    short = dataset.short_names(np.array(listed, dtype=int))
    if dataset.has_pixels:
        of_image = dataset.image_class_ids()
        rows = [
            Row(
                str(names[class_id]),
                [Tile(int(i)) for i in np.flatnonzero(of_image == class_id)[:MOST_IMAGES]],
                notes[at] if at < len(notes) else "",
            )
            for at, class_id in enumerate(listed)
        ]
        page_links.to_gallery(dataset, task_rows(dataset, rows, key, tile_px=56))
    else:
        st.markdown(", ".join(map(escape, short)))
    if len(class_ids) > len(listed):
        st.caption(f"The first {len(listed):,} of {len(class_ids):,} classes.")
    with st.container(horizontal=True, gap="medium"):
        if dataset.has_pixels:
            some = [str(names[class_id]) for class_id in listed]
            words = f"All images of {escape(short[0])}" if len(some) == 1 else "Show all images"
            shell.page_link("images", words, shell.link(dataset, classes=some))
        page_links.to_classes(dataset, listed, "Create a task from these classes")


def images(dataset: Dataset, rows: Sequence[Row], key: str, tile_px: int = 64) -> None:
    """Shows rows of images; a click leads to the page Images."""
    if dataset.has_pixels:
        page_links.to_gallery(dataset, task_rows(dataset, rows, key, tile_px=tile_px))
    else:
        st.caption(f"{escape(dataset.title)} has no images here.")


def tasks(
    dataset: Dataset,
    testbed: Tasks,
    positions: np.ndarray,
    notes: Mapping[int, str],
    about: str,
    name: str,
    answer: Predictions | None = None,
    task_id_of: Callable[[int], TaskId | None] | None = None,
) -> None:
    """Shows a list of tasks, some per page, and the images of the selected one; `name` is its key in the link.

    task_id_of  position -> the id of the task in links, if its testbed has a name
    """
    if not len(positions):
        st.caption("Task not found.")
        return
    left, right = shell.responsive_columns(name, [5, 6], gap="large")
    with left:
        task = task_list.pick_task(dataset, testbed, positions, notes, about, f"{name}_list", name=name)
    with right:
        st.markdown(f"**Task {task:,}**: {escape(notes[task])}")
        if testbed.has_images:
            task_id = task_id_of(task) if task_id_of else None
            task_list.show_task(dataset, testbed, task, f"{name}_images", answer=answer, task_id=task_id)
