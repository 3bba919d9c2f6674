"""Pictures next to the pointer on a point or a cell of a figure, and clicks on heat maps and tree maps.

Plotly's hover boxes hold text only, and Streamlit reports no clicks on heat maps and tree maps. The component listens
to the figure itself. For pictures it stands in a fragment of its own, so that asking for them draws nothing else again;
the browser keeps what it was sent. For clicks it stands in the page: a fragment that then asked for the whole page
could overtake, and so undo, the page that a user has chosen meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.records import PAD, Dataset
from fsviz.settings import Setting
from fsviz.ui.parts import clicks
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.image_wall import strip_uri, thumbnail_uri
from fsviz.ui.parts.shell import errors_on_page


@st.fragment
@errors_on_page()
def thumbnails(dataset: Dataset, chart: str, image_ids: frozenset[int]) -> None:
    """Shows pictures next to the points of the figure with this key, whose customdata are among these image_ids."""
    px = 96

    def source_of(image_id: int) -> str:
        return thumbnail_uri(dataset, image_id, round(1.5 * px)) if image_id in image_ids else ""

    _show_pictures(dataset, chart, source_of, px, above=12)


@st.fragment
@errors_on_page()
def strips(dataset: Dataset, chart: str, image_ids: np.ndarray) -> None:
    """Shows a row of pictures next to the points of the figure with this key, whose customdata are rows of image_ids.

    image_ids  (n, k), PAD if a row has fewer
    """
    px = 56

    def source_of(row: int) -> str:
        images = image_ids[row] if 0 <= row < len(image_ids) else image_ids[:0].ravel()
        return strip_uri(dataset, [int(i) for i in images if i != PAD], round(1.5 * px))

    of = hash(image_ids.tobytes())
    _show_pictures(dataset, chart, source_of, px, above=26, of=of, wide=px * image_ids.shape[1])


def answer_cells(
    dataset: Dataset, chart: str, images: Sequence[int] | None, sets: Setting | Click, n_rows: int
) -> None:
    """Makes the square heat map with this key answer to clicks.

    images  image_id of every row, None if there are no pictures
    sets    what a click sets: a cell carries its row and its column
    """
    key = f"{chart}_clicks"
    _component()(
        key=key, data={"chart": chart, "wants": "clicks"}, on_clicked_change=partial(_cell_clicked, key, sets, n_rows)
    )
    if images is not None:
        _pictures_of_cells(dataset, chart, tuple(images))


def answer_boxes(dataset: Dataset, chart: str, sets: Setting | Click, n_boxes: int) -> None:
    """Makes the tree map with this key answer to clicks: a box carries its number."""
    answer_cells(dataset, chart, None, sets, n_boxes)


def answer_points(dataset: Dataset, chart: str, sets: Setting | Click, n_points: int) -> None:
    """Makes the figure with this key answer to clicks on points, which carry their number as customdata.

    Streamlit reports no such clicks while dragging draws a box.
    """
    answer_cells(dataset, chart, None, sets, n_points)


def _cell_clicked(key: str, sets: Setting | Click, n_rows: int) -> None:
    cell = st.session_state[key].clicked
    if isinstance(cell, list) and len(cell) == 2 and all(isinstance(i, int) and 0 <= i < n_rows for i in cell):
        clicks.apply(clicks.click_of(sets), [clicks.Point(tuple(cell))])


@st.fragment
@errors_on_page()
def _pictures_of_cells(dataset: Dataset, chart: str, images: tuple[int, ...]) -> None:
    px = 88

    def source_of(row: int) -> str:
        return thumbnail_uri(dataset, images[row], round(1.5 * px)) if 0 <= row < len(images) else ""

    _show_pictures(dataset, chart, source_of, px, above=44, of=hash(images))


def _show_pictures(
    dataset: Dataset, chart: str, source_of: Callable[[int], str], px: int, above: int, of: int = 0, wide: int = 0
) -> None:
    """Sends the requested pictures.

    source_of  number that the figure gives -> picture as a data URI, "" for a number it may not ask for
    px, wide   height and width of a picture, square if no width is given
    above      pixels between picture and pointer
    of         distinguishes figures of a dataset whose numbers mean different images
    """
    key = f"{chart}_pictures"
    requested = dict(st.session_state.get(key) or {}).get("hovered") or []
    all_sources = {str(i): source_of(i) for i in requested if isinstance(i, int)}
    sources = {name: source for name, source in all_sources.items() if source}
    _component()(
        key=key,
        data={
            "chart": chart,
            "wants": "pictures",
            "of": f"{dataset.name} {of}",
            "sources": sources,
            "px": px,
            "wide": wide or px,
            "above": above,
        },
        default={"hovered": None},
        on_hovered_change=lambda: None,
    )


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "fsviz_pointing", html='<div class="hover-images" hidden></div>', css=_CSS, js=_JS
    )


_CSS = """
.hover-images { position: fixed; z-index: 1000; pointer-events: none; border-radius: 8px; overflow: hidden;
  display: flex; gap: 2px; border: 1px solid var(--st-border-color); background: var(--st-background-color);
  box-shadow: 0 2px 10px #0004; }
.hover-images[hidden] { display: none; }
.hover-images img { display: block; object-fit: cover; }
"""

_JS = """
const kept = new Map();
const REST = 80;  // milliseconds that the pointer rests before pictures are asked for

// row and column of a heat map's cell, or the number that a point carries
const place = (point) => {
  const at = point?.pointNumber ?? point?.pointIndex;
  if (Array.isArray(at)) return [at[0], at[1]];
  return Number.isInteger(point?.customdata) ? [point.customdata] : null;
};

const show = (box) => {
  const wanted = box.wanted ?? [];
  const sources = [...new Set(wanted)].map((i) => kept.get(box.dataset.of + " " + i));
  box.hidden = !sources.length || sources.some((source) => !source);
  if (box.hidden) return;
  const { px } = box;
  box.replaceChildren(...sources.map((source) => {
    const image = document.createElement("img");
    image.alt = "";
    image.src = source;
    image.style.width = box.wide + "px";
    image.style.height = px + "px";
    return image;
  }));
  const wide = sources.length * (box.wide + 2);
  box.style.left = (box.x + 18 + wide > window.innerWidth ? box.x - 18 - wide : box.x + 18) + "px";
  box.style.top = Math.max(4, Math.min(box.y - px - box.above, window.innerHeight - px - 4)) + "px";
};

const listenForPictures = (box, chart) => {
  chart.on("plotly_hover", ({ points, event }) => {
    const cell = place(points[0]);
    if (!cell) return;
    Object.assign(box, { wanted: cell, x: event.clientX, y: event.clientY });
    show(box);
    clearTimeout(box.waiting);
    if (cell.some((i) => !kept.has(box.dataset.of + " " + i))) box.waiting = setTimeout(() => box.ask(cell), REST);
  });
  chart.on("plotly_unhover", () => { clearTimeout(box.waiting); box.wanted = null; show(box); });
};

const listenForClicks = (box, chart) => {
  chart.on("plotly_click", ({ points }) => {
    const cell = place(points[0]);
    if (cell) box.report(cell.length === 2 ? cell : [cell[0], cell[0]]);
  });
  chart.on("plotly_treemapclick", ({ points }) => {
    const at = points?.[0]?.pointNumber;
    if (Number.isInteger(at)) box.report([at, at]);
  });
};

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const box = parentElement.querySelector(".hover-images");
  const listen = data.wants === "clicks" ? listenForClicks : listenForPictures;
  box.report = (cell) => setTriggerValue("clicked", cell);
  if (data.wants === "pictures") {
    box.px = data.px;
    box.wide = data.wide;
    box.above = data.above;
    box.dataset.of = data.of;
    box.ask = (cell) => setStateValue("hovered", cell);
    for (const [i, source] of Object.entries(data.sources)) kept.set(data.of + " " + i, source);
    while (kept.size > 2000) kept.delete(kept.keys().next().value);
    show(box);
  }
  // the figure may come later than this, and be made anew
  const look = () => {
    const chart = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (chart?.on && chart !== box.chart) { box.chart = chart; listen(box, chart); }
  };
  look();
  clearInterval(box.looking);
  box.looking = setInterval(look, 400);
  return () => { clearInterval(box.looking); clearTimeout(box.waiting); };
}
"""
