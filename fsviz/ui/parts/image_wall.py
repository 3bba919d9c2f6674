"""Clickable walls of thumbnails, and rows of them for the classes of a task: one component for every page.

The browser gets one message with all thumbnails as data URIs and builds the wall itself, about ten times as fast
as one Streamlit element per image. Names from datasets are user data: they enter the page as text, never as HTML.
Titles, captions and badges that are names of classes lose the folders that they do not need here; hovering shows them.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Any, Literal

import numpy as np
import streamlit as st

from fsviz.datasets import images
from fsviz.errors import FsvizError
from fsviz.figures import palette
from fsviz.records import Dataset
from fsviz.text import short_names
from fsviz.ui.parts import links

Frame = Literal["right", "wrong", "selected"]
PER_PAGE = 100
_SHARPNESS = 1.5  # thumbnail pixels per page pixel, between plain and high-density screens
_KEEP = 20_000  # thumbnails kept for the whole server, about 5 KB each
_LINES = 2  # of a class name on or below a thumbnail
_LETTER = 0.52  # approximate width of a letter as a share of the font's size


@dataclass(frozen=True)
class Tile:
    """One thumbnail. The frame says more than its colour: right has a tick, wrong a cross and a broken line."""

    image_id: int
    caption: str = ""
    frame: Frame | None = None
    badge: str = ""


@dataclass(frozen=True)
class Row:
    """A titled row of tiles, such as one class of a task.

    note     a second, quieter line below the title
    kind     "support" or "query" colours the row's edge and names it; "" for any other row
    section  a heading above this row
    reserve  whether a tile without a caption has room for one: rows then stay in place if captions change
    """

    title: str
    tiles: Sequence[Tile] = field(default_factory=tuple)
    note: str = ""
    kind: Literal["", "support", "query"] = ""
    section: str = ""
    reserve: bool = False


def gallery(
    dataset: Dataset,
    tiles: Iterable[Tile],
    key: str,
    tile_px: int = 112,
    on_click: Callable[[int], None] | None = None,
    pressed: Sequence[int] = (),
) -> int | None:
    """A wall of thumbnails. Returns the image_id last clicked while it is shown; a second click on it clears it.

    on_click  is called with the image_id, once per click and before the page is drawn again: for a click that leads
              on. The wall does not remember it, and returns None
    pressed   image_ids that are marked as selected
    """
    return _wall(dataset, [Row("", tuple(tiles))], key, tile_px, titled=False, on_click=on_click, pressed=pressed)


def task_rows(
    dataset: Dataset,
    rows: Iterable[Row],
    key: str,
    tile_px: int = 84,
    on_click: Callable[[int], None] | None = None,
    pressed: Sequence[int] = (),
    head_px: int = 108,
) -> int | None:
    """Rows of thumbnails with their titles on the left. Returns a click as `gallery` does.

    head_px  width of the titles in a narrow column
    """
    return _wall(dataset, list(rows), key, tile_px, titled=True, on_click=on_click, pressed=pressed, head_px=head_px)


def thumbnail_uri(dataset: Dataset, image_id: int, px: int) -> str:
    """A thumbnail as a data URI, kept in memory; "" when the image cannot be opened."""
    return _thumbnail(dataset, image_id, px)[0]


def strip_uri(dataset: Dataset, image_ids: Sequence[int], px: int) -> str:
    """Thumbnails side by side in one picture, for a cell of a table or a report; "" where there are no pixels.

    An image that cannot be opened leaves its place empty.
    """
    if not dataset.has_pixels or not len(image_ids):
        return ""
    name = ("|".join(images.image_identity(dataset, int(i)) for i in image_ids), -px)
    with _lock:
        if name in _cache:
            _cache.move_to_end(name)
            return _cache[name][0]
    strip = (images.data_uri(images.image_strip(dataset, image_ids, px), 70), "")
    _add_to_cache(name, strip)
    return strip[0]


def _wall(
    dataset: Dataset,
    rows: list[Row],
    key: str,
    tile_px: int,
    titled: bool,
    on_click: Callable[[int], None] | None,
    pressed: Sequence[int],
    head_px: int = 108,
) -> int | None:
    key = f"{key}_{turn}" if (turn := links.turn()) else key
    short = _short_names(dataset, rows, titled)
    on = dict(zip(short, in_lines(list(short.values()), tile_px - 7, min(max(8.3, tile_px / 6.8), 9.9)), strict=True))
    below = dict(
        zip(short, in_lines(list(short.values()), tile_px - 6, min(max(9.3, tile_px / 5.6), 11.5)), strict=True)
    )
    groups = [
        {
            "title": short.get(row.title, row.title),
            "whole": row.title if row.title in short else "",
            "note": row.note,
            "kind": row.kind,
            "section": row.section,
            "reserve": row.reserve,
            "tiles": [_tile(dataset, row, tile, tile_px, on, below) for tile in row.tiles],
        }
        for row in rows
    ]
    token = hashlib.blake2b(repr((dataset.name, tile_px, titled, groups)).encode(), digest_size=12).hexdigest()
    image_ids = frozenset(tile.image_id for row in rows for tile in row.tiles)
    data = {"token": token, "px": tile_px, "head": head_px, "titled": titled, "groups": groups}
    data["once"] = on_click is not None
    data["pressed"] = [int(image_id) for image_id in pressed]
    if on_click is not None:
        _component()(key=key, data=data, on_followed_change=partial(_follow, key, image_ids, on_click))
        return None
    result = _component()(key=key, data=data, default={"clicked": None}, on_clicked_change=_nothing)
    return _image(result.clicked, image_ids)


def _short_names(dataset: Dataset, rows: list[Row], titled: bool) -> dict[str, str]:
    """Class name -> its short name: unique among the classes of titled rows, of a gallery among all classes."""
    listed = {row.title for row in rows} | {text for row in rows for t in row.tiles for text in (t.caption, t.badge)}
    distinct = dict.fromkeys(dataset.distinct_names(np.arange(dataset.n_classes)))
    names = [name for name in (distinct | dict.fromkeys(dataset.classes["class_name"].astype(str))) if name in listed]
    among = names if titled else list(distinct)
    short = dict(zip(among, short_names(among), strict=True))
    return {name: short[name] for name in names if name in short}


def in_lines(names: Sequence[str], width: int, font: float) -> list[str]:
    """Class names in lines of this width in pixels, cut in the middle if they are too many, and still distinct."""
    letters = max(6, int(width / (_LETTER * font)))
    wrapped = [textwrap.wrap(name, letters) for name in names]
    cuts = short_names(names, _LINES * letters)
    for at, cut in enumerate(cuts):
        if len(wrapped[at]) > _LINES:
            line = max(letters, -(-len(cut) // _LINES))
            wrapped[at] = [cut[start : start + line] for start in range(0, len(cut), line)]
    return ["\n".join(lines) for lines in wrapped]


def _follow(key: str, image_ids: frozenset[int], on_click: Callable[[int], None]) -> None:
    """Follows a click, unless the browser went back meanwhile: then the link decides."""
    clicked = _image(dict(st.session_state.get(key) or {}).get("followed"), image_ids)
    if clicked is not None and not links.going_back():
        on_click(clicked)


def _image(clicked: Any, image_ids: frozenset[int]) -> int | None:
    return int(clicked) if clicked is not None and int(clicked) in image_ids else None


def alt_text(dataset: Dataset, row: Row, tile: Tile) -> str:
    """The class of an image, its role in the task, and its prediction: "wolf, query, predicted as tiger"."""
    class_name = _class_name(dataset, tile.image_id)
    captions = [str(text) for text in (tile.caption, tile.badge) if str(text) not in ("", class_name, row.kind)]
    parts = [class_name or f"image {tile.image_id}", row.kind]
    if tile.frame in ("right", "wrong") and not row.kind:
        parts[1] = "query"  # only queries are correct or incorrect
    if tile.frame == "right":
        parts.append("correct")
    elif tile.frame == "wrong":
        predicted = next((text for text in captions if (dataset.classes["class_name"] == text).any()), "")
        parts.append(f"predicted as {predicted}" if predicted else "incorrect")
        captions = [text for text in captions if text != predicted]
    elif tile.frame == "selected":
        parts.append("selected")
    return ", ".join(part for part in (*parts, *captions) if part)


def _class_name(dataset: Dataset, image_id: int) -> str:
    """The class of an image; "" without a table of images."""
    if dataset.images is None or not 0 <= image_id < len(dataset.images):
        return ""
    return str(dataset.classes["class_name"].iat[int(dataset.images["class_id"].iat[image_id])])


def _tile(
    dataset: Dataset, row: Row, tile: Tile, tile_px: int, on: dict[str, str], below: dict[str, str]
) -> dict[str, Any]:
    """A tile for the browser.

    on, below  class name -> its lines on a thumbnail and below it
    """
    source, problem = (
        _thumbnail(dataset, tile.image_id, round(tile_px * _SHARPNESS)) if dataset.has_pixels else ("", "")
    )
    return {
        "id": int(tile.image_id),
        "source": source,
        "problem": problem,
        "caption": below.get(str(tile.caption), str(tile.caption)),
        "frame": tile.frame or "",
        "badge": on.get(str(tile.badge), str(tile.badge)),
        "named": str(tile.badge) in on,
        "hover": "\n".join(text for text in (str(tile.caption), str(tile.badge), problem) if text),
        "alt": alt_text(dataset, row, tile),
    }


_cache: OrderedDict[tuple[str, int], tuple[str, str]] = OrderedDict()
_lock = Lock()


def _thumbnail(dataset: Dataset, image_id: int, px: int) -> tuple[str, str]:
    """(data URI, "") or ("", why not). Cached in memory, the least recently used dropped first."""
    name = (images.image_identity(dataset, image_id), px)
    with _lock:
        if name in _cache:
            _cache.move_to_end(name)
            return _cache[name]
    try:
        picture = (images.data_uri(images.thumbnail(dataset, image_id, px)), "")
    except FsvizError as error:
        picture = ("", str(error))
    _add_to_cache(name, picture)
    return picture


def _add_to_cache(name: tuple[str, int], picture: tuple[str, str]) -> None:
    with _lock:
        _cache[name] = picture
        while len(_cache) > _KEEP:
            _cache.popitem(last=False)


def _nothing() -> None:
    """The component needs a callback to report state; the value itself is read from its result."""


@cache
def _component() -> Callable[..., Any]:
    return st.components.v2.component("fsviz_gallery", html='<div class="wall"></div>', css=_CSS, js=_JS)


_CSS = (
    """
.wall { font-family: var(--st-font); color: var(--st-text-color); container-type: inline-size; padding: 4px 2px; }
.section { font-size: 0.95rem; font-weight: 600; margin: 14px 0 6px; }
.row { display: grid; grid-template-columns: minmax(110px, 170px) 1fr; gap: 14px; padding: 8px 0 8px 10px;
  border-left: 4px solid var(--st-border-color); margin-bottom: 6px; }
.row.support { border-left-color: SUPPORT; }
.row.query { border-left-color: QUERY; }
.title { font-size: 0.875rem; font-weight: 600; overflow-wrap: anywhere; line-height: 1.3; }
.note { font-size: 0.78rem; opacity: 0.72; overflow-wrap: anywhere; line-height: 1.35; margin-top: 2px; }
.kind { display: inline-block; font-size: 0.7rem; letter-spacing: 0.02em; opacity: 0.72; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; align-items: flex-start; align-content: flex-start; }
.wall > .tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(var(--px), 1fr)); gap: 8px; }
.wall > .tiles .tile, .wall > .tiles .frame { width: 100%; }
@container (max-width: 560px) { .row { grid-template-columns: minmax(84px, var(--head)) 1fr; gap: 10px; }
  .row .tiles { gap: 6px; } }
.tile { all: unset; box-sizing: border-box; cursor: pointer; width: var(--px); border-radius: 8px; }
.frame { position: relative; display: block; width: var(--px); aspect-ratio: 1; box-sizing: border-box;
  border-radius: 8px; overflow: hidden; background: var(--st-secondary-background-color);
  border: 1px solid var(--st-border-color); }
@container (max-width: 490px) { .row { grid-template-columns: 1fr; gap: 6px; }
  .row .badge:not(.named) { right: 1px; max-width: calc(100% - 2px); padding: 1px 2px; font-size: 0.6rem; }
  .row .tile, .row .frame { width: min(var(--px), calc((100cqi - 46px) / 5)); } }
.frame img { display: block; width: 100%; height: 100%; object-fit: cover; }
.frame img.coarse { image-rendering: pixelated; }
.absent { display: flex; width: 100%; height: 100%; align-items: center; justify-content: center; text-align: center;
  font-size: 0.72rem; opacity: 0.7; padding: 4px; box-sizing: border-box; }
.tile:hover .frame { border-color: ACCENT; }
.tile:focus-visible .frame { outline: 3px solid ACCENT; outline-offset: 2px; }
.tile.right .frame { border: 3px solid RIGHT; }
.tile.wrong .frame { border: 3px dashed WRONG; }
.tile.selected .frame, .tile[aria-pressed="true"] .frame { border: 3px solid ACCENT; box-shadow: 0 0 0 2px ACCENT; }
.mark { position: absolute; left: 3px; top: 3px; width: 18px; height: 18px; border-radius: 9px; color: #fff;
  font-size: 12px; line-height: 18px; text-align: center; font-weight: 700; }
.tile.right .mark { background: RIGHT; }
.tile.wrong .mark { background: WRONG; }
.badge { position: absolute; right: 3px; bottom: 3px; max-width: calc(100% - 6px); box-sizing: border-box;
  background: rgba(16, 20, 27, 0.82); color: #fff; border-radius: 5px; padding: 1px 5px; font-size: 0.68rem;
  line-height: 1.35; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.badge.named { left: 0; right: 0; bottom: 0; max-width: none; border-radius: 0; padding: 1px 1px 2px;
  font-size: clamp(0.52rem, calc(var(--px) / 6.8), 0.62rem); line-height: 1.12; text-align: center; white-space: pre;
  text-overflow: clip; letter-spacing: -0.01em; }
.caption { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden;
  font-size: clamp(0.58rem, calc(var(--px) / 5.6), 0.72rem); line-height: 1.25; margin-top: 4px;
  overflow-wrap: anywhere; white-space: pre-line; opacity: 0.85; }
.row.reserve .caption { min-height: 2.5em; }
.empty { font-size: 0.8rem; opacity: 0.65; }
""".replace("SUPPORT", palette.meaning("support"))
    .replace("QUERY", palette.meaning("query"))
    .replace("RIGHT", palette.meaning("correct"))
    .replace("WRONG", palette.meaning("incorrect"))
    .replace("ACCENT", palette.ACCENT)
)

# An element with words in it. Names come from users: they are text, never markup.
TEXT_JS = """
const text = (tag, kind, words) => {
  const element = document.createElement(tag);
  element.className = kind;
  if (words) element.textContent = words;
  return element;
};
"""

_JS = (
    TEXT_JS
    + """
const picture = (tile, px) => {
  const frame = text("span", "frame");
  if (tile.source) {
    const image = document.createElement("img");
    image.alt = tile.alt;
    image.draggable = false;
    image.onload = () => { if (image.naturalWidth * 2 <= px) image.className = "coarse"; };
    image.src = tile.source;
    frame.append(image);
  } else {
    frame.append(text("span", "absent", tile.problem ? "cannot be opened" : "image " + tile.id));
  }
  if (tile.frame === "right" || tile.frame === "wrong") {
    frame.append(text("span", "mark", tile.frame === "right" ? "\\u2713" : "\\u2717"));
  }
  if (tile.badge) frame.append(text("span", tile.named ? "badge named" : "badge", tile.badge));
  return frame;
};

const button = (tile, px, reserve) => {
  const element = text("button", "tile " + tile.frame);
  element.type = "button";
  element.tabIndex = -1;
  element.dataset.id = tile.id;
  element.append(picture(tile, px));
  if (tile.caption || reserve) element.append(text("span", "caption", tile.caption));
  element.setAttribute("aria-label", [tile.alt, tile.problem].filter(Boolean).join(", "));
  element.title = tile.hover;
  return element;
};

const press = (wall) => {
  for (const tile of wall.querySelectorAll(".tile")) {
    const id = Number(tile.dataset.id);
    tile.setAttribute("aria-pressed", String(id === wall.chosen || wall.pressed.has(id)));
  }
};

const walk = (wall, event) => {
  const tiles = [...wall.querySelectorAll(".tile")];
  const here = tiles.indexOf(event.target.closest(".tile"));
  if (here < 0) return;
  const top = tiles[here].getBoundingClientRect().top;
  const perRow = Math.max(1, tiles.filter((t) => Math.abs(t.getBoundingClientRect().top - top) < 2).length);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perRow, ArrowUp: -perRow }[event.key];
  const there = event.key === "Home" ? 0 : event.key === "End" ? tiles.length - 1 : here + step;
  if (Number.isNaN(there) || !tiles[there]) return;
  event.preventDefault();
  tiles[here].tabIndex = -1;
  tiles[there].tabIndex = 0;
  tiles[there].focus();
};

const build = (wall, data) => {
  wall.style.setProperty("--px", data.px + "px");
  wall.style.setProperty("--head", data.head + "px");
  const parts = [];
  for (const group of data.groups) {
    if (group.section) parts.push(text("div", "section", group.section));
    const tiles = text("div", "tiles");
    tiles.append(...group.tiles.map((tile) => button(tile, data.px, group.reserve)));
    if (!data.titled) { parts.push(tiles); continue; }
    if (!group.tiles.length) tiles.append(text("span", "empty", "no images"));
    const row = text("div", "row " + group.kind + (group.reserve ? " reserve" : ""));
    const head = text("div", "head");
    const title = text("div", "title", group.title);
    if (group.whole) title.title = group.whole;
    head.append(title);
    if (group.kind) head.append(text("div", "kind", group.kind));
    if (group.note) head.append(text("div", "note", group.note));
    row.append(head, tiles);
    parts.push(row);
  }
  wall.replaceChildren(...parts);
  const first = wall.querySelector(".tile");
  if (first) first.tabIndex = 0;
};

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const wall = parentElement.querySelector(".wall");
  wall.report = (id) => data.once ? setTriggerValue("followed", id) : setStateValue("clicked", wall.chosen);
  wall.pressed = new Set(data.pressed);
  if (wall.dataset.token === data.token) { press(wall); return; }
  wall.dataset.token = data.token;
  wall.chosen = data.once ? null : wall.chosen ?? null;
  build(wall, data);
  press(wall);
  wall.onclick = (event) => {
    const tile = event.target.closest(".tile");
    if (!tile) return;
    const id = Number(tile.dataset.id);
    wall.chosen = wall.chosen === id && !data.once ? null : id;
    press(wall);
    wall.report(id);
  };
  wall.onkeydown = (event) => walk(wall, event);
}
"""
)
