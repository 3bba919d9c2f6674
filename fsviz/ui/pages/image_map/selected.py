"""The panel next to the image map: the selected images, the task, one image, or what neighbours share."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from fsviz import datasets
from fsviz.analyses import image_map as readings
from fsviz.datasets import filtering
from fsviz.errors import FsvizError
from fsviz.features import maps
from fsviz.figures import feature_map as figures
from fsviz.records import PAD, Dataset, NeighbourAgreement, Tasks
from fsviz.records.image_map import MappedTask
from fsviz.settings import Setting
from fsviz.ui.pages.image_map import colours
from fsviz.ui.pages.image_map.tasks import PickedTask
from fsviz.ui.parts import access, export, labelling, links, page_links, selections, shell
from fsviz.ui.parts.image_wall import Frame, Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.shell import escape

SHARED = "map_shared"
MAX_TILES = 60
MAX_BARS = 10
N_BUILT = 5  # classes of a task that is created from the selected images
OUTLINE = Setting("around", "Outline", "Corners of the box or lasso whose images are shown.", "text", "")


def marked_image(dataset: Dataset) -> int | None:
    """The image with the ring, in the link as image."""
    requested, state = links.requested_for(IMAGE.name), st.session_state
    if requested is not None or state.get("mapped_dataset") != dataset.name:
        state["mapped_dataset"], state["mapped_image"] = dataset.name, links.image_id(requested, dataset)
    image_id = state["mapped_image"]
    links.keep(IMAGE.name, None if image_id is None else str(image_id))
    return image_id


def _mark(image_id: int | None) -> None:
    st.session_state["mapped_image"] = image_id


def _clear_image() -> None:
    _mark(None)
    st.session_state["mapped_click"] = None
    links.forget_clicks()


def show(
    dataset: Dataset,
    feature_map: maps.FeatureMap,
    image_ids: list[int],
    picked: PickedTask | None,
    task: MappedTask | None,
    agreements: list[NeighbourAgreement],
) -> None:
    """Shows the selected images, else the image with the ring, else the task, else what neighbours share."""
    marked = st.session_state.get("mapped_image")
    clicked = image_ids[0] if len(image_ids) == 1 else None
    if clicked != st.session_state.get("mapped_click"):
        st.session_state["mapped_click"] = clicked
        if clicked is not None and clicked != marked:
            _mark(clicked)
            st.rerun()
    if len(image_ids) > 1:
        _wall(dataset, image_ids)
    if marked is not None:
        _card(dataset, marked)
    if len(image_ids) > 1:
        return
    if picked is not None and task is not None:
        _task(dataset, feature_map, picked.tasks, task)
        page_links.from_task(dataset, picked.tasks, 0, feature_map.backbone, task_id=picked.task_id, on_map=False)
    elif marked is None:
        _shared_attributes(agreements)


def _shared_attributes(agreements: list[NeighbourAgreement]) -> None:
    if not agreements:
        return
    st.markdown("**What neighbours share**")
    export.chart(
        "What neighbours share",
        figures.plot_shared(agreements[:MAX_BARS]),
        key=SHARED,
        config={"displayModeBar": False},
        sets=colours.COLOUR,
    )
    n_hidden = len(agreements) - MAX_BARS
    hidden = f" {n_hidden} more are closer to what is expected." if n_hidden > 0 else ""
    thirds = " Numbers count as equal in the same third." if any(item.thirds for item in agreements) else ""
    st.caption(
        f"Share of the {maps.NEIGHBOURS} nearest images with the same value; line: expected by chance. Click a bar to "
        "colour the map.",
        help=f"Sorted by how far the share is above chance, as a part of what is possible.{thirds}{hidden}",
    )


def _clear_outline() -> None:
    st.session_state[OUTLINE.name] = ""


def _wall(dataset: Dataset, selected: list[int]) -> None:
    names, short = dataset.classes["class_name"].astype(str).to_numpy(), dataset.short_names()
    of_image = dataset.image_class_ids()
    counts = np.bincount(of_image[selected], minlength=dataset.n_classes)
    top = np.argsort(-counts, kind="stable")[:4]
    frequent = ", ".join(f"{escape(short[c])} ({counts[c]:,})" for c in top if counts[c])
    n_classes = int((counts > 0).sum())
    st.markdown(f"**{len(selected):,} images of {n_classes:,} classes selected.** Most frequent: {frequent}")
    some = np.array(selected)[np.unique(np.linspace(0, len(selected) - 1, MAX_TILES).round().astype(int))]
    tiles = [Tile(int(i), str(names[of_image[i]])) for i in some]
    gallery(dataset, tiles, key=f"map_wall_{dataset.name}", tile_px=72, on_click=_mark)
    if len(some) < len(selected):
        st.caption(f"{len(some):,} of them are shown.")
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        labelling.show(dataset, selected, "map")
        if st.session_state.get(OUTLINE.name):
            st.button("Clear selection", key="forget_around", on_click=_clear_outline)
    class_ids = [int(c) for c in np.argsort(-counts, kind="stable")[:N_BUILT] if counts[c]]
    page_links.to_classes(dataset, class_ids, "Create a task from these classes")


def _task(dataset: Dataset, feature_map: maps.FeatureMap, task: Tasks, mapped: MappedTask) -> None:
    st.markdown(f"**{escape(task.setting)} task.** {escape(readings.task_sentence(mapped))}")
    names = dataset.classes["class_name"].astype(str).to_numpy()
    frames: dict[int, Frame] = {}
    if mapped.n_correct is not None:
        image_ids = feature_map.image_ids[mapped.rows].tolist()
        frames = {i: "right" if ok else "wrong" for i, ok in zip(image_ids, mapped.is_correct, strict=True)}
    rows = []
    for kind, images in (("support", task.support[0]), ("query", task.query[0])):
        for way, class_id in enumerate(task.class_ids[0]):
            ids = images[way][images[way] != PAD] if class_id != PAD else []
            if len(ids):
                title = f"{'Support' if kind == 'support' else 'Query'} images" if not way else ""
                tiles = [Tile(int(i), frame=frames.get(int(i)) if kind == "query" else None) for i in ids[:12]]
                rows.append(Row(str(names[class_id]), tiles, kind=kind, section=title))  # type: ignore[arg-type]
    task_rows(dataset, rows[:24], key=f"map_task_{dataset.name}", tile_px=44, on_click=_mark)


def _card(dataset: Dataset, image_id: int) -> None:
    """Shows an image with its attributes and a link to its details."""
    name = dataset.short_names()[int(dataset.image_class_ids()[image_id])]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{escape(name)}** · image {image_id:,}", width="stretch")
        st.button("Clear", icon="✖️", key="clear_image", on_click=_clear_image)
    left, right = st.columns([2, 3])
    if dataset.has_pixels:
        try:
            image = datasets.open_image(dataset, image_id)
            image.thumbnail((320, 320))
            left.image(image, width=150)
        except FsvizError as error:
            left.caption(escape(access.without_paths(str(error))))
    if dataset.images is not None:
        row = filtering.image_row(dataset, image_id)
        attributes = {k: v for k, v in row.items() if k not in ("class", "image", "file") and v is not None}
        values = [f"{escape(k.replace('_', ' '))} {escape(_readable(v))}" for k, v in attributes.items()]
        right.caption(" · ".join(values))
    with right:
        if dataset.has_pixels:
            shell.page_link("images", "Open in Images", shell.link(dataset, image=str(image_id)))
        class_name = dataset.distinct_names(np.arange(dataset.n_classes))[int(dataset.image_class_ids()[image_id])]
        if class_name not in st.session_state.get(selections.KEY, []):
            st.button(
                "Highlight class", icon="🖍️", key="highlight_class", on_click=colours.highlight, args=(class_name,)
            )


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
