"""The wall of the page Images, its pages, the image that was clicked, and the images that are selected for a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from fsviz import features
from fsviz.analyses import custom_task
from fsviz.datasets import labels
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.tasks import draw
from fsviz.ui.pages.images.orders import Order
from fsviz.ui.parts import labelling, links, page_links, shell
from fsviz.ui.parts.image_wall import PER_PAGE, Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.shell import escape

CLASSES_PER_PAGE = 12
N_PER_CLASS = 8
MAX_SELECTED = 200
SELECTED = Setting("selected", "Selected images", "Numbers of the selected images, with dots between.", "text", "")


def show(
    dataset: Dataset, image_ids: np.ndarray, order: Order, view: str, selection: Sequence[int]
) -> tuple[int, bool]:
    """Shows the wall; returns the image of the details, and whether it is the first one because none was clicked."""
    image_id = _followed(dataset)
    marked = None if image_id == st.session_state["seen_click"] else image_id  # the wall marks its own click
    class_ids = dataset.image_class_ids()[image_ids]
    rows = np.unique(class_ids) if view == "Classes" else image_ids
    page, n_pages, collects = _tools(dataset, len(rows), CLASSES_PER_PAGE if view == "Classes" else PER_PAGE)
    on_click = _toggle if collects else None
    pressed = selection if collects else ()
    if view == "Classes":
        on_page = rows[(page - 1) * CLASSES_PER_PAGE : page * CLASSES_PER_PAGE]
        class_rows = [_class_row(dataset, int(c), image_ids[class_ids == c], marked) for c in on_page]
        size = 110 if shell.classroom() else 76
        clicked = task_rows(dataset, class_rows, "class_wall", size, on_click, pressed)
        first, caption = (
            class_rows[0].tiles[0].image_id,
            f"First {N_PER_CLASS} images of each of {len(rows):,} classes.",
        )
    else:
        on_page = rows[(page - 1) * PER_PAGE : page * PER_PAGE]
        tiles = _tiles(dataset, on_page, order, marked)
        clicked = gallery(dataset, tiles, "wall", 128 if shell.classroom() else 84, on_click, pressed)
        start = (page - 1) * PER_PAGE + 1
        first, caption = int(on_page[0]), f"{start:,} to {start + len(on_page) - 1:,} of {len(image_ids):,} images."
    hint = "Click images to select them." if collects else "Click an image for its details."
    st.caption(f"{caption} {escape(f'{order.note} {hint}'.strip())}")
    _page_below(page, n_pages)
    return _to_show(clicked, first)


def _tools(dataset: Dataset, n: int, per_page: int) -> tuple[int, int, bool]:
    """The pages of the wall, and the switch between details and selection; returns page, pages and the switch."""
    n_pages = max(1, -(-n // per_page))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="wall_tools"):
        page = 1
        if n_pages > 1:
            if not 1 <= int(st.session_state.get("page") or 1) <= n_pages:
                st.session_state.pop("page", None)
            page = st.pagination(n_pages, key="page", bind="query-params", width="content")
        collects = (dataset.has_features or labels.is_possible(dataset)) and st.toggle(
            "Select images",
            key="collects",
            help="Each click selects an image. A selection can get a context, or become a task's support.",
        )
    return page, n_pages, collects


def _page_below(page: int, n_pages: int) -> None:
    """The same pages below the wall."""
    if n_pages > 1:
        st.session_state["page_below"] = page
        st.pagination(n_pages, key="page_below", on_change=_turn_page)


def _turn_page() -> None:
    st.session_state["page"] = st.session_state["page_below"]


def _tiles(dataset: Dataset, image_ids: np.ndarray, order: Order, marked: int | None) -> list[Tile]:
    images = dataset.images
    assert images is not None
    names = dataset.classes["class_name"].to_numpy()[images["class_id"].to_numpy()[image_ids]]
    return [
        Tile(int(i), str(name), "selected" if i == marked else None, badge)
        for i, name, badge in zip(image_ids, names, order.badges(dataset, image_ids), strict=True)
    ]


def _class_row(dataset: Dataset, class_id: int, image_ids: np.ndarray, marked: int | None) -> Row:
    facts = dataset.classes.iloc[class_id]
    tiles = [Tile(int(i), frame="selected" if i == marked else None) for i in image_ids[:N_PER_CLASS]]
    return Row(str(facts["class_name"]), tiles, note=f"{facts['split']} · {len(image_ids):,} images")


# The image of the details


def _followed(dataset: Dataset) -> int | None:
    """The image clicked on a wall or named by the link; None for the first one on the wall.

    The link decides when the page opens and when the browser goes back; the walls then forget their clicks.
    """
    requested, state = links.requested_for(IMAGE.name), st.session_state
    if requested is not None or state.get("seen_dataset") != dataset.name:
        state["seen_dataset"], state["followed"] = dataset.name, links.image_id(requested, dataset)
        state["seen_click"] = None
        links.forget_clicks()
    return state["followed"]


def follow(image_id: int) -> None:
    """Shows a neighbour instead, and forgets the click on the wall."""
    st.session_state["followed"], st.session_state["seen_click"] = image_id, None
    links.forget_clicks()


def _to_show(clicked: int | None, first: int) -> tuple[int, bool]:
    """The image of the details, kept in the link, or the first on the wall; and whether it is that."""
    state = st.session_state
    if clicked != state["seen_click"]:
        state["seen_click"] = state["followed"] = clicked
    image_id = state["followed"]
    links.keep(IMAGE.name, None if image_id is None else str(image_id))
    return (first, True) if image_id is None else (image_id, False)


# The selection


def selection(dataset: Dataset) -> list[int]:
    """The selected image_ids, in the link."""
    if not (dataset.has_features or labels.is_possible(dataset)):
        return []
    text = str(links.value_of(SELECTED, SELECTED.name, dataset.name))
    try:
        rows = custom_task.images_in(text)
    except FsvizError as error:
        shell.notice(str(error))
        rows = []
    n_images = len(dataset.image_class_ids())
    return [i for row in rows for i in row if 0 <= i < n_images][:MAX_SELECTED]


def _toggle(image_id: int) -> None:
    """Adds an image to the selection, or removes it, and shows its details."""
    rows = custom_task.images_in(str(st.session_state.get(SELECTED.name, "")))
    selected = [i for row in rows for i in row]
    selected = [i for i in selected if i != image_id] if image_id in selected else [*selected, image_id]
    _select(selected)
    st.session_state["followed"], st.session_state["seen_click"] = image_id, None


def _select(image_ids: Sequence[int]) -> None:
    st.session_state[SELECTED.name] = custom_task.images_text([image_ids]) if image_ids else ""


def show_selection(dataset: Dataset, selected: Sequence[int]) -> None:
    """Shows the selected images, the field that gives them a context, and the task that has them as its support."""
    class_ids = dataset.image_class_ids()[list(selected)]
    names = dataset.short_names(np.array(list(dict.fromkeys(class_ids.tolist()))))
    images = "image" if len(selected) == 1 else "images"
    with st.container(border=True, key="selection"):
        st.markdown(f"**{len(selected):,} {images} selected:** {', '.join(map(escape, names))}")
        gallery(dataset, [Tile(int(i)) for i in selected], "selection_wall", 40, on_click=_toggle)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            labelling.show(dataset, selected, "wall")
            if len(names) > 1 and dataset.has_features:
                _link_to_task(dataset, selected)
            st.button("Clear", icon="✖️", key="clear_selection", on_click=_select, args=([],))
        if len(names) < 2 and dataset.has_features:
            st.caption("Select images of at least two classes for a task.")


def _link_to_task(dataset: Dataset, selected: Sequence[int]) -> None:
    backbone = draw.default_backbone(dataset)
    try:
        tasks = custom_task.of_support(dataset, features.load(dataset, backbone), selected)
    except FsvizError as error:
        st.caption(escape(error))
        return
    page_links.to_task(dataset, tasks, 0, backbone, "Create a task from these")
