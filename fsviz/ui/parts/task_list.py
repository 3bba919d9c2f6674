"""A list of tasks, a line each with a picture per class, and the images of the selected task.

Like image walls, the list is one message to the browser; names enter it as text, never as HTML. The selected task is in
the link.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import streamlit as st

from fsviz.figures import palette
from fsviz.records import PAD, Dataset, Predictions, TaskId, Tasks
from fsviz.settings import Setting
from fsviz.text import short_names
from fsviz.ui.parts import links, page_links
from fsviz.ui.parts.image_wall import TEXT_JS, Frame, Row, Tile, in_lines, task_rows, thumbnail_uri

TASK = Setting("task", "Task", "The selected task, by its position in the testbed.", "text", "")
PAGE = Setting("task_page", "Page of the list of tasks", "The page of the list of tasks.", "text", "")
PER_PAGE = 6
_MORE, _FONT = 14, 11.5  # a class below its picture: pixels it is wider, size of its letters
MOST_TILES = 10  # classes of a line, images of a row
MOST_ROWS = 12  # classes of a task shown with images
_PX = 42


def pick_task(
    dataset: Dataset,
    tasks: Tasks,
    positions: np.ndarray,
    notes: Mapping[int, str],
    about: str,
    key: str = "task_list",
    examples: Callable[[int], np.ndarray] | None = None,
    name: str = TASK.name,
) -> int:
    """Lists the tasks at these positions, in this order, some per page; returns the position of the selected task.

    notes     the text of a line, by position; read only for the lines of the page
    about     identifies the list: in another list, the selection starts over at its first task
    examples  pictures for a task without images of its own
    name      the key of the selection in the link
    """
    order = [int(p) for p in positions]
    text = str(links.value_of(TASK, name, about))
    selected = int(text) if text.isascii() and text.isdecimal() and int(text) in order else order[0]
    n_pages = -(-len(order) // PER_PAGE)
    if st.session_state.get(f"_{name}_seen", selected) != selected:  # selected elsewhere: turn to its page
        st.session_state[f"{name}_page"] = PAGE.default
    st.session_state[f"_{name}_seen"] = selected
    requested = str(links.value_of(PAGE, f"{name}_page", about))
    page = int(requested) if requested.isascii() and requested.isdecimal() and 1 <= int(requested) <= n_pages else 0
    page = page or 1 + order.index(selected) // PER_PAGE
    page_positions = order[(page - 1) * PER_PAGE : page * PER_PAGE]
    names = dataset.classes["class_name"].astype(str).to_numpy()
    rows = [_row(dataset, tasks, names, position, notes[position], examples) for position in page_positions]
    _component()(
        key=key,
        data={"rows": rows, "chosen": selected, "px": _PX},
        on_picked_change=lambda: _picked(key, name),
    )
    if n_pages > 1:
        widget = f"{key}_page_{hashlib.blake2b(f'{about} {n_pages}'.encode(), digest_size=6).hexdigest()}"
        if st.session_state.get(widget) not in (None, page):
            st.session_state[widget] = page
        st.pagination(n_pages, default=page, key=widget, on_change=_paged, args=(widget, name))
    return selected


def _picked(key: str, name: str) -> None:
    picked = dict(st.session_state.get(key) or {}).get("picked")
    if isinstance(picked, int):
        st.session_state[name] = str(picked)


def _paged(widget: str, name: str) -> None:
    st.session_state[f"{name}_page"] = str(st.session_state[widget])


def _row(
    dataset: Dataset,
    tasks: Tasks,
    names: np.ndarray,
    position: int,
    note: str,
    examples: Callable[[int], np.ndarray] | None,
) -> dict[str, Any]:
    """One line: the first support image of every class, or only its name if there is no image."""
    class_ids = tasks.class_ids[position]
    class_ids = class_ids[class_ids != PAD]
    images = np.full(len(class_ids), PAD)
    if dataset.has_pixels:
        images = tasks.support[position, : len(class_ids), 0] if tasks.has_images else images
        images = examples(position) if examples is not None and not tasks.has_images else images
    whole = [str(name) for name in names[class_ids]]
    names_in_lines = in_lines(short_names(whole), _PX + _MORE, _FONT)
    tiles = [
        {
            "name": name,
            "whole": whole_name,
            "source": thumbnail_uri(dataset, int(image), round(1.5 * _PX)) if image != PAD else "",
        }
        for name, whole_name, image in zip(names_in_lines, whole, images[:MOST_TILES], strict=False)
    ]
    more = f"and {len(class_ids) - MOST_TILES:,} more" if len(class_ids) > MOST_TILES else ""
    return {"id": position, "title": f"Task {position:,}", "note": note, "tiles": tiles, "more": more}


def show_task(
    dataset: Dataset,
    tasks: Tasks,
    position: int,
    key: str,
    notes: Sequence[str] = (),
    answer: Predictions | None = None,
    tile_px: int = 64,
    task_id: TaskId | None = None,
    height: int | None = None,
) -> None:
    """Shows the support and query images of a task by class; with `answer`, queries are marked correct or incorrect.

    task_id  the id of the task in links, if its testbed has a name
    height   of the images in pixels, which then scroll inside
    """
    names = dataset.classes["class_name"].astype(str).to_numpy()
    class_ids = tasks.class_ids[position]
    ways = np.flatnonzero(class_ids != PAD)
    rows = []
    for way in ways[:MOST_ROWS]:
        name, note = str(names[class_ids[way]]), notes[way] if notes else ""
        support, query = (side[position, way] for side in (tasks.support, tasks.query))
        tiles = [Tile(int(i)) for i in support[support != PAD][:MOST_TILES]]
        rows.append(Row(name, tiles, note, kind="support"))
        tiles = []
        for place in np.flatnonzero(query != PAD)[: 2 * MOST_TILES]:
            predicted = way if answer is None else int(answer.predicted[position, way, place])
            frame: Frame | None = None if answer is None else "right" if predicted == way else "wrong"
            tiles.append(Tile(int(query[place]), "" if predicted == way else str(names[class_ids[predicted]]), frame))
        rows.append(Row("", tiles, _right_of(answer, position, int(way)), kind="query"))
    with st.container(height=height, border=False) if height else st.container():
        clicked = task_rows(dataset, rows, key=key, tile_px=tile_px)
    if len(ways) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS} of {len(ways):,} classes.")
    page_links.to_gallery(dataset, clicked)
    page_links.from_task(dataset, tasks, position, task_id=task_id)


def _right_of(answer: Predictions | None, position: int, way: int) -> str:
    if answer is None:
        return ""
    rank = answer.rank[position, way][answer.predicted[position, way] != PAD]
    return f"{int((rank == 0).sum())} of {len(rank)} correct"


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_tasks", html='<div class="tasks"></div>', css=_CSS, js=_JS)


_CSS = """
.tasks { font-family: var(--st-font); color: var(--st-text-color); container-type: inline-size; padding: 2px; }
.task { all: unset; box-sizing: border-box; cursor: pointer; display: grid; width: 100%; gap: 12px; padding: 6px 8px;
  grid-template-columns: minmax(84px, 104px) 1fr; border-left: 4px solid transparent; border-radius: 6px;
  border-bottom: 1px solid var(--st-border-color); }
.task:hover { background: var(--st-secondary-background-color); }
.task:focus-visible { outline: 2px solid ACCENT; }
.task[aria-pressed="true"] { border-left-color: ACCENT; background: var(--st-secondary-background-color); }
.title { font-size: 0.875rem; font-weight: 600; }
.note { font-size: 0.78rem; opacity: 0.75; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: 6px; align-items: flex-start; }
.tile { max-width: 120px; font-size: 0.72rem; line-height: 1.25; overflow-wrap: anywhere; opacity: 0.9; }
.tile:not(.pictured) { padding: 1px 7px; border: 1px solid var(--st-border-color); border-radius: 9px; }
.tile.pictured { width: calc(var(--px) + MOREpx); text-align: center; }
.tile img { display: block; margin: 0 auto 2px; width: var(--px); height: var(--px); object-fit: cover;
  border-radius: 6px; }
.name { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden;
  white-space: pre-line; }
@container (max-width: 420px) { .task { grid-template-columns: 1fr; gap: 4px; } }
""".replace("ACCENT", palette.ACCENT).replace("MORE", str(_MORE))

_JS = (
    TEXT_JS
    + """
const line = (row, chosen) => {
  const task = text("button", "task");
  task.type = "button";
  task.dataset.id = row.id;
  task.setAttribute("aria-pressed", String(row.id === chosen));
  const head = text("span", "head");
  head.append(text("div", "title", row.title), text("div", "note", row.note));
  const tiles = text("span", "tiles");
  for (const tile of row.tiles) {
    const element = text("span", "tile" + (tile.source ? " pictured" : ""));
    element.title = tile.whole;
    if (tile.source) {
      const image = document.createElement("img");
      image.alt = "";
      image.src = tile.source;
      element.append(image);
    }
    element.append(text("span", "name", tile.name));
    tiles.append(element);
  }
  if (row.more) tiles.append(text("span", "tile", row.more));
  task.append(head, tiles);
  return task;
};

export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".tasks");
  list.style.setProperty("--px", data.px + "px");
  list.replaceChildren(...data.rows.map((row) => line(row, data.chosen)));
  list.onclick = (event) => {
    const task = event.target.closest(".task");
    if (!task) return;
    for (const other of list.querySelectorAll(".task")) other.setAttribute("aria-pressed", String(other === task));
    setTriggerValue("picked", Number(task.dataset.id));
  };
}
"""
)
