"""The picture behind a point of a figure, beside the pointer while it rests there.

Plotly's hover boxes hold text only. The component listens to the figure and asks for the one picture that it needs, in
a fragment of its own, so that nothing else is drawn again; the browser keeps what it was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from fsviz.records import Dataset
from fsviz.ui.parts.image_wall import thumbnail_uri
from fsviz.ui.parts.shell import sentences

_PX = 96


@st.fragment
@sentences()
def thumbnails(dataset: Dataset, chart: str, image_ids: frozenset[int]) -> None:
    """Shows pictures beside the points of the figure with this key, whose customdata are image_ids, one of these."""
    key = f"{chart}_hover"
    hovered = dict(st.session_state.get(key) or {}).get("hovered")
    known = hovered if isinstance(hovered, int) and hovered in image_ids else None
    source = "" if known is None else thumbnail_uri(dataset, known, round(_PX * 1.5))
    _component()(
        key=key,
        data={"chart": chart, "dataset": dataset.name, "id": known, "source": source, "px": _PX},
        default={"hovered": None},
        on_hovered_change=lambda: None,
    )


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_hover", html='<div class="beside" hidden></div>', css=_CSS, js=_JS)


_CSS = """
.beside { position: fixed; z-index: 1000; pointer-events: none; border-radius: 8px; overflow: hidden;
  border: 1px solid var(--st-border-color); background: var(--st-background-color); box-shadow: 0 2px 10px #0004; }
.beside img { display: block; width: 100%; height: 100%; object-fit: cover; }
"""

_JS = """
const kept = new Map();
const REST = 60;  // milliseconds that the pointer rests before a picture is asked for

const show = (box) => {
  const source = kept.get(box.dataset.of + " " + box.wanted);
  box.hidden = box.wanted === null || !source;
  if (box.hidden) return;
  const image = document.createElement("img");
  image.alt = "";
  image.src = source;
  box.replaceChildren(image);
  const { px } = box;
  box.style.width = box.style.height = px + "px";
  const left = box.x + 18 + px > window.innerWidth ? box.x - 18 - px : box.x + 18;
  box.style.left = left + "px";
  box.style.top = Math.max(4, Math.min(box.y - px - 12, window.innerHeight - px - 4)) + "px";
};

const listen = (box, chart) => {
  chart.on("plotly_hover", ({ points, event }) => {
    const id = points[0]?.customdata;
    if (!Number.isInteger(id)) return;
    Object.assign(box, { wanted: id, x: event.clientX, y: event.clientY });
    show(box);
    clearTimeout(box.waiting);
    if (!kept.has(box.dataset.of + " " + id)) box.waiting = setTimeout(() => box.ask(id), REST);
  });
  chart.on("plotly_unhover", () => { clearTimeout(box.waiting); box.wanted = null; show(box); });
};

export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".beside");
  box.wanted ??= null;
  box.px = data.px;
  box.dataset.of = data.dataset;
  box.ask = (id) => setStateValue("hovered", id);
  if (data.id !== null && data.source) kept.set(data.dataset + " " + data.id, data.source);
  while (kept.size > 2000) kept.delete(kept.keys().next().value);
  show(box);
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
