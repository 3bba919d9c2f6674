"""What is behind a point, a bar, a cell or a row: a click puts it into the link, and its tasks, classes or images are
shown below, beside the figure that stays as it is.

A page says how a clicked point is written as text (`of`); the text is in the link under a name, so that a link opens
with the same thing chosen. A text that the page does not know is told as ignored, like any setting of a link. A second
click on the same thing, a double click on the empty area and the button Close let go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.records import Dataset, Predictions, TaskId, Tasks
from fsviz.settings import Setting
from fsviz.text import escape_plotly
from fsviz.ui.parts import export, links, page_links, shell, task_list
from fsviz.ui.parts.image_wall import Row, Tile, task_rows
from fsviz.ui.parts.shell import escape

Point = Mapping[str, Any]  # customdata, x, y, curve_number, point_index, ... as Streamlit reports a clicked point
MOST_CLASSES, MOST_IMAGES = 12, 12
_DRAWN = "_leading_on"  # name in the link -> key of every figure and table that chooses it -> how often it was let go


def chart(
    title: str,
    figure: Any,
    *,
    key: str,
    name: str,
    of: Callable[[Point], str],
    known: Iterable[str],
    about: str = "",
    already: str | None = None,
    **more: Any,
) -> str:
    """Draws a figure; returns the text of the point that was clicked last or that the link names, "" for none.

    name     under which it is in the link
    of       a clicked point -> its text, "" where it stands for nothing
    known    the texts that are possible
    about    what the choice belongs to: when that changes, nothing is chosen
    already  what is chosen, where another figure of the same name has asked
    """
    texts = list(known)
    found = chosen(name, texts, about) if already is None else already
    answer = clicks(key, name, of, {escape_plotly(text): text for text in texts}, clears=True)
    figure.update_layout(meta=_times_let_go(name, key))  # Streamlit draws another figure anew, with nothing marked
    export.chart(title, figure, key=key, on_select=answer, selection_mode="points", **more)
    return found


def table(
    title: str,
    data: Any,
    *,
    key: str,
    name: str,
    texts: Sequence[str],
    about: str = "",
    already: str | None = None,
    **more: Any,
) -> str:
    """Draws a table; returns the text of the row that was chosen last or that the link names, "" for none."""
    found = chosen(name, texts, about) if already is None else already
    now = _key_now(key, _times_let_go(name, key))
    answer = partial(_row_chosen, key, now, name, tuple(texts))
    export.table(title, data, key=now, on_select=answer, selection_mode="single-row", **more)
    return found


def chosen(name: str, known: Iterable[str], about: str = "") -> str:
    """What is chosen under a name of the link, "" for nothing."""
    choices = {"": "nothing", **{text: text for text in known}}
    return str(
        links.value_of(Setting(name, "Looked at", "What was clicked.", "choice", "", choices=choices), name, about)
    )


def clicks(
    key: str, name: str, of: Callable[[Point], Any], texts: Mapping[str, str] | None = None, clears: bool = False
) -> Callable[[], None]:
    """What a click on the figure with this key does: the thing that a point stands for becomes the value of `name`,
    which may be any setting of the page.

    texts   what points carry, escaped as figures write it -> the text itself; others stand for nothing
    clears  whether nothing is chosen once the click is taken back: a setting that always has a value keeps it
    """
    return partial(_clicked, key, name, of, texts or {}, clears)


def _clicked(key: str, name: str, of: Callable[[Point], Any], texts: Mapping[str, str], clears: bool) -> None:
    points = st.session_state[key].selection.points
    told = (texts.get(value) if texts else value for value in map(of, points))
    found = next((value for value in told if value not in (None, "")), None)
    if found is not None:
        st.session_state[name] = found
        _let_go(name, but=key)
    elif clears and not points:
        st.session_state[name] = ""


def _times_let_go(name: str, key: str) -> int:
    """How often what was marked in a figure or table was let go of."""
    return int(st.session_state.setdefault(_DRAWN, {}).setdefault(name, {}).setdefault(key, 0))


def _key_now(key: str, times: int) -> str:
    """The key of a table, another one once what was ticked in it was let go of."""
    return f"{key}_{times}" if times else key


def _let_go(name: str, but: str = "") -> None:
    """Nothing is marked any more in what chooses this name, except in the one that was clicked just now."""
    times: dict[str, int] = st.session_state.get(_DRAWN, {}).get(name, {})
    for key in times:
        events = (st.session_state.get(each) for each in (key, _key_now(key, times[key])))
        marked = any(event.selection.get("points") or event.selection.get("rows") for event in events if event)
        times[key] += marked and key != but


def _row_chosen(key: str, now: str, name: str, texts: Sequence[str]) -> None:
    row = page_links.row_of(now)
    st.session_state[name] = texts[row] if row is not None and row < len(texts) else ""
    _let_go(name, but=key)


def data(point: Point, place: int = 0) -> Any:
    """One of the things that a point carries; None where it carries none."""
    found = point.get("customdata")
    if isinstance(found, list | tuple):
        return found[place] if -len(found) <= place < len(found) else None
    return found


def heading(words: str, name: str) -> None:
    """What is shown because it was clicked, in Markdown, with a way to close it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{words}**")
        st.button("Close", key=f"close_{name}", on_click=_forget, args=(name,))


def _forget(name: str) -> None:
    st.session_state[name] = ""
    _let_go(name)


# What can be behind -----------------------------------------------------------------------------------------------


def classes(dataset: Dataset, class_ids: Sequence[int], key: str, notes: Sequence[str] = ()) -> None:
    """Some images of every class, a row each, and where classes lead."""
    names = dataset.classes["class_name"].astype(str).to_numpy()
    shown = [int(class_id) for class_id in class_ids[:MOST_CLASSES]]
    if dataset.has_pixels:
        of_image = dataset.image_class_ids()
        rows = [
            Row(
                str(names[class_id]),
                [Tile(int(i)) for i in np.flatnonzero(of_image == class_id)[:MOST_IMAGES]],
                notes[at] if at < len(notes) else "",
            )
            for at, class_id in enumerate(shown)
        ]
        page_links.to_gallery(dataset, task_rows(dataset, rows, key, tile_px=56))
    else:
        st.markdown(", ".join(escape(names[class_id]) for class_id in shown))
    if len(class_ids) > len(shown):
        st.caption(f"The first {len(shown):,} of {len(class_ids):,} classes.")
    with st.container(horizontal=True, gap="medium"):
        if dataset.has_pixels:
            some = [str(names[class_id]) for class_id in shown]
            words = f"All images of {escape(some[0])}" if len(some) == 1 else "All their images"
            shell.page_link("images", words, shell.link(dataset, classes=some))
        page_links.to_classes(dataset, shown, "Build a task of them")


def images(dataset: Dataset, rows: Sequence[Row], key: str, tile_px: int = 64) -> None:
    """Rows of images; a click leads to the page Images."""
    if dataset.has_pixels:
        page_links.to_gallery(dataset, task_rows(dataset, rows, key, tile_px=tile_px))
    else:
        st.caption(f"{escape(dataset.title)} has no pixels here.")


def tasks(
    dataset: Dataset,
    found: Tasks,
    positions: np.ndarray,
    notes: Mapping[int, str],
    about: str,
    name: str,
    answer: Predictions | None = None,
    named: Callable[[int], TaskId | None] | None = None,
) -> None:
    """A list of tasks, some per page, and the images of the chosen one; `name` is where it is in the link.

    named  position -> what names the task in links, where its testbed has a name
    """
    if not len(positions):
        st.caption("There is no such task.")
        return
    left, right = shell.responsive_columns(name, [5, 6], gap="large")
    with left:
        task = task_list.pick_task(dataset, found, positions, notes, about, f"{name}_list", name=name)
    with right:
        st.markdown(f"**Task {task:,}**: {escape(notes[task])}")
        if found.has_images:
            called = named(task) if named else None
            task_list.show_task(dataset, found, task, f"{name}_images", answer=answer, named=called)
