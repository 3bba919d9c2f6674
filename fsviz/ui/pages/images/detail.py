"""The details of one image on the page Images: facts, nearest neighbours, place in the taxonomy, contexts."""

from __future__ import annotations

from typing import Any

import streamlit as st
from markupsafe import Markup

from fsviz import datasets, features
from fsviz.datasets import filtering
from fsviz.errors import FsvizError, Missing
from fsviz.features import neighbours
from fsviz.features.backbones import title_of
from fsviz.figures import palette
from fsviz.records import Dataset
from fsviz.taxonomy import places
from fsviz.text import code
from fsviz.ui.pages.images.wall import follow
from fsviz.ui.parts import caching, controls, shell
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

N_NEIGHBOURS = 12


def show(dataset: Dataset, image_id: int, is_first: bool) -> None:
    """Shows an image; `is_first` if it is the first on the wall because none was clicked."""
    row = filtering.image_row(dataset, image_id)
    file = row.pop("file", None)
    st.markdown(f"#### {escape(str(row['class']))}")
    if is_first:
        st.caption("Click an image to see its neighbours.")
    picture, facts = st.columns([4, 5], gap="small")
    with picture:
        _picture(dataset, image_id)
    with facts:
        st.html(_facts({name: value for name, value in row.items() if name != "class" and value is not None}))
    _neighbours(dataset, image_id)
    show_place(dataset, int(dataset.image_class_ids()[image_id]))
    _contexts(dataset, int(dataset.image_class_ids()[image_id]), str(row.get("context", "")))
    if file is not None:
        st.caption(f"File: {escape(str(file))}")


def _picture(dataset: Dataset, image_id: int) -> None:
    try:
        image = datasets.open_image(dataset, image_id)
    except FsvizError as error:
        st.warning(escape(str(error)), icon="⚠️")
        return
    if max(image.size) < 96:  # tiny images are shown as the squares they are made of
        times = 240 // max(image.size)
        image = image.resize((image.width * times, image.height * times), resample=0)
    image.thumbnail((640, 640))
    st.image(image, width=min(220, max(image.size)))


def show_place(dataset: Dataset, class_id: int) -> None:
    """Shows the path of a class in the taxonomy and its closest classes."""
    place = caching.cached_call(places.place_in_taxonomy, dataset, class_id, keep=2000)
    if place is None:
        return
    st.markdown("**Taxonomy**")
    st.html(_crumbs(place.path))
    if place.siblings:
        short = dataset.short_names()
        siblings = [short[class_id] for class_id in place.siblings]
        n_more = len(siblings) - 8
        names = ", ".join(escape(name) for name in siblings[:8]) + (f" and {n_more:,} more" if n_more > 0 else "")
        st.caption(f"Closest classes, all in “{escape(place.shared)}”: {names}.")


def _contexts(dataset: Dataset, class_id: int, here: str) -> None:
    """Bars of the contexts of a class; the context of this image is marked."""
    if dataset.contexts is None:
        return
    counts = dataset.contexts[dataset.contexts["class_id"] == class_id].set_index("context")["n_images"]
    counts = counts[counts > 0].sort_values(ascending=False)
    if counts.empty:
        return
    st.markdown("**Contexts of this class**")
    max_count, total = int(counts.max()), int(counts.sum())
    bars = list(counts.head(6).items())
    if here in counts.index and here not in dict(bars):
        bars[-1] = (here, counts[here])
    st.html(Markup("").join(_bar(str(name), int(n), max_count, str(name) == here) for name, n in bars))
    top = escape(str(counts.index[0]))
    st.caption(
        f"{counts.iloc[0] / total:.0%} of {total:,} images in “{top}”; {len(counts)} contexts in all.",
        help="A classifier may learn the context instead of the object.",
    )


def _bar(name: str, n: int, max_count: int, here: bool) -> Markup:
    return Markup(
        '<div style="display:grid;grid-template-columns:130px 1fr 34px;gap:.5rem;align-items:center;font-size:.84rem">'
        '<span style="overflow-wrap:anywhere">{}</span>'
        '<span style="height:9px;border-radius:4px;width:{:.1f}%;background:{}"></span>'
        '<span style="text-align:right">{:,}</span></div>'
    ).format(name + " (this image)" * here, 100 * n / max_count, palette.ACCENT if here else palette.QUIET, n)


def _neighbours(dataset: Dataset, image_id: int) -> None:
    st.markdown("**Nearest neighbours**")
    backbones = features.available(dataset)
    if not backbones:
        st.info(
            f"No features yet. Extract them on the page Add images, or run: {code(f'fsviz extract {dataset.name}')}",
            icon="🧩",
        )
        shell.link_to_add_images("Extract features", shell.link(dataset, do="Extract features"))
        return
    backbone = backbones[0]
    if len(backbones) > 1:
        help = "The frozen network whose features are compared."
        backbone = controls.pick_backbone(backbones, help=help)
    try:
        near, cosines = caching.cached_call(
            neighbours.nearest_images_of,
            dataset,
            backbone,
            image_id,
            N_NEIGHBOURS,
            words="Comparing features",
            keep=2000,
        )
    except Missing as error:
        st.info(escape(error), icon="🧩")
        return
    class_ids = dataset.image_class_ids()
    names = dataset.classes["class_name"].to_numpy()
    same = class_ids[near] == class_ids[image_id]
    tiles = [
        Tile(int(i), str(names[class_ids[i]]), None, f"{'✓ ' if is_same else ''}{cosine:.2f}")
        for i, cosine, is_same in zip(near, cosines, same, strict=True)
    ]
    gallery(dataset, tiles, key="near", tile_px=100 if shell.classroom() else 66, on_click=follow)
    grouped = "" if dataset.image_groups() is None else " Images of its own group (copies, frames) are excluded."
    st.caption(
        f"{int(same.sum())} of {len(near)} neighbours share its class (✓). Number: cosine similarity.",
        help=f"Click a neighbour for its details. {escape(title_of(backbone))} features.{grouped}",
    )


def _facts(facts: dict[str, Any]) -> Markup:
    """Names and values of an image as a grid."""
    cell = Markup(
        '<div style="overflow-wrap:anywhere"><span style="opacity:.65;font-size:.78rem">{}</span><br>{}</div>'
    )
    cells = Markup("").join(cell.format(name.replace("_", " "), _readable(value)) for name, value in facts.items())
    return Markup(
        '<div style="display:grid;grid-template-columns:repeat(auto-fill,minmax(84px,1fr));gap:.45rem .9rem;'
        'font-size:.88rem;line-height:1.25">{}</div>'
    ).format(cells)


def _crumbs(path: tuple[str, ...]) -> Markup:
    """The path from the root to a class, which is bold."""
    steps = [*path[:-1], Markup("<b>{}</b>").format(path[-1])]
    crumbs = Markup(' <span style="opacity:.5">›</span> ').join(steps)
    return Markup('<div style="font-size:.88rem;line-height:1.5;overflow-wrap:anywhere">{}</div>').format(crumbs)


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
