"""The page Images: a wall of images with filters, and everything about the one that was clicked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from markupsafe import Markup

from fsviz import datasets, features
from fsviz.analyses import custom_task
from fsviz.datasets import filtering, published_images
from fsviz.datasets.preview import CLASSES
from fsviz.datasets.saved import moved_note
from fsviz.errors import FsvizError, Missing
from fsviz.features import neighbours
from fsviz.features.backbones import title_of
from fsviz.figures import palette
from fsviz.records import Dataset, HeadlineNumber
from fsviz.settings import Setting
from fsviz.taxonomy import places
from fsviz.text import code
from fsviz.ui.parts import caching, clicks, controls, export, links, page_links, scroll_state, selections, shell
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.image_wall import PER_PAGE, Row, Tile, gallery, task_rows
from fsviz.ui.parts.links import IMAGE
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

CLASSES_PER_PAGE = 12
# The details of an image stay visible while the wall is scrolled.
_STICKY = """<style>
@media (min-width: 900px) {
  [data-testid="stColumn"]:has(.st-key-gallery_detail) {
    position: sticky; top: 3.2rem; align-self: flex-start; max-height: calc(100vh - 3.6rem); overflow-y: auto;
  }
}
</style>"""
N_NEIGHBOURS = 12
PICKED = custom_task.TASK_OF
CONTEXTS = Setting("contexts", "Context", "Contexts whose images are shown.", "text", "")
BY = Setting("by", "Filter by attribute", "Attributes to filter images by.", "text", "")
ORDER = Setting("order", "Sort by", "", "choice", filtering.SHUFFLED)
VIEW = Setting("view", "Show", "", "choice", "Images", choices={name: name for name in ("Images", "Classes")})


def show(dataset: Dataset) -> None:
    export.command("show", dataset.name)
    if dataset.root is not None and not dataset.root.is_dir():
        st.warning(escape(moved_note(dataset.name, dataset.root)), icon="📁")
    if not dataset.has_pixels:
        _class_list(dataset)
        return
    filters, order, view = _settings(dataset)
    image_ids = filtering.select_images(dataset, filters, order, seed=4)
    _headline(dataset, image_ids)
    picked = _picked(dataset)
    if not len(image_ids):
        st.info("No images match. Remove a filter.", icon="🔍")
        return
    chosen = _chosen(dataset)
    left, right = st.columns([11, 7], gap="large")
    with left:
        marked = None if chosen == st.session_state["seen_click"] else chosen  # the wall marks its own click
        walls = _images(dataset, image_ids, order, marked) if view == "Images" else _classes(dataset, image_ids, marked)
    shown = _selected(*walls)
    with right, st.container(key="gallery_detail"):
        st.html(_STICKY)
        scroll_state.to_top("gallery_detail", f"{dataset.name} {shown}")
        _detail(dataset, shown, shown != walls[1], picked)


PAGE = Page(
    slug="images",
    label="Images",
    icon="🖼️",
    group="Data",
    order=0,
    question="What is in this dataset?",
    lead="Browse {dataset} by class, context and attribute.",
    takes=("classes", "all"),
    explains=("neighbours", "distance:jiang_conrath"),
    keywords=("mislabelled", "duplicates", "nearest neighbours", "gallery"),
    show=show,
)


# Filters


def _settings(dataset: Dataset) -> tuple[filtering.ImageFilter, str, str]:
    split = shell.pick_split(dataset, default="all")
    with shell.side():
        names = dataset.classes["class_name"].iloc[dataset.split_class_ids(split)].astype(str)
        options = list(dict.fromkeys(names))
        selections.pick_classes(options)
        typed = controls.BY_TYPING
        classes = st.multiselect("Class", options, key=selections.KEY, placeholder="All classes", **typed)
        contexts: list[str] = []
        if dataset.contexts is not None:
            counts = dataset.contexts.groupby("context")["n_images"].sum().sort_values(ascending=False)
            contexts = _multiselect(CONTEXTS, counts.index.astype(str).tolist(), "All contexts")
        attributes: dict[str, Any] = {}
        if dataset.attributes and not _is_hidden(BY.name):
            for name in _multiselect(BY, list(dataset.attributes), "none"):
                attributes[name] = _attribute(dataset, name)
        orders = [filtering.SHUFFLED, filtering.BY_CLASS, *dataset.attributes]
        order = filtering.SHUFFLED if _is_hidden(ORDER.name) else _selectbox(ORDER, orders)
        view = controls.pick(VIEW, as_buttons=True)
    by_name = pd.Series(dataset.classes.index, index=dataset.classes["class_name"].astype(str))
    class_ids = by_name[by_name.index.isin(classes)].tolist()
    return filtering.ImageFilter(split, class_ids, contexts, attributes), order, view


def _is_hidden(key: str) -> bool:
    """Whether a control is hidden in the classroom; one that was used, or is in the link, stays."""
    return shell.classroom() and key not in st.query_params and not st.session_state.get(key)


def _multiselect(setting: Setting, options: list[str], placeholder: str) -> list[str]:
    """A multiselect kept in the link, without values that the dataset does not have."""
    links.names_of(options, setting.name)
    return st.multiselect(
        escape(setting.title), options, key=setting.name, placeholder=placeholder, **controls.BY_TYPING
    )


def _selectbox(setting: Setting, options: list[str]) -> str:
    links.value_of(setting.with_(choices={name: name for name in options}), setting.name)
    return st.selectbox(escape(setting.title), options, key=setting.name, format_func=lambda o: o.replace("_", " "))


def _attribute(dataset: Dataset, name: str) -> Any:
    """The values of an attribute to keep, in the link as with_NAME, if the dataset has them."""
    values = filtering.attribute_values(dataset, name)
    label, key = name.replace("_", " "), f"with_{name}"
    kept = st.session_state.get(key)
    if isinstance(values, tuple):
        low, high = values
        if low == high:
            st.caption(f"{escape(label)} is {low:g} everywhere")
            return (low, high)
        if kept is not None and not (isinstance(kept, tuple) and low <= kept[0] <= kept[1] <= high):
            st.session_state.pop(key)
        return st.slider(escape(label), low, high, (low, high), key=key, bind="query-params")
    if kept is not None and not (isinstance(kept, list) and set(kept) <= set(values)):
        st.session_state.pop(key)
    typed = controls.BY_TYPING
    return st.multiselect(
        escape(label), values, default=values[:1], key=key, bind="query-params", format_func=str, **typed
    )


def _headline(dataset: Dataset, image_ids: np.ndarray) -> None:
    images = dataset.images
    assert images is not None
    class_ids = images["class_id"].to_numpy()[image_ids]
    sizes = np.bincount(class_ids)
    sizes = sizes[sizes > 0]
    if dataset.contexts is not None:
        n = images["context"].iloc[image_ids].nunique()
        third = HeadlineNumber.count("contexts", "Contexts", n, help="Contexts among these images.")
    else:
        third = HeadlineNumber.count("splits", "Splits", len(dataset.splits), help=", ".join(dataset.splits))
    numbers = [
        HeadlineNumber.count("images", "Images", len(image_ids), help=f"of {len(images):,} in the dataset"),
        HeadlineNumber.count(
            "classes", "Classes", len(np.unique(class_ids)), help=f"of {dataset.n_classes:,} in the dataset"
        ),
        third,
        HeadlineNumber.worded(
            "per_class",
            "Images per class",
            " to ".join(f"{n:,}" for n in sorted({int(sizes.min()), int(sizes.max())})) if len(sizes) else "0",
            help="Fewest and most, among the images that match the filters.",
        ),
    ]
    show_numbers(numbers)


# Classes for a task


def _picked(dataset: Dataset) -> list[int]:
    """The classes picked for a task, kept in the link, with a link to the task."""
    if not dataset.has_features:
        return []
    text = str(links.value_of(PICKED, PICKED.name, dataset.name))
    try:
        picked = custom_task.classes_in(dataset, text)
    except FsvizError as error:
        shell.notice(str(error))
        picked = []
    if not picked:
        return []
    names = dataset.distinct_names(np.array(picked))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="picked_classes"):
        more = " Add at least one more." if len(picked) == 1 else ""
        st.markdown(f"**Task classes:** {', '.join(map(escape, names))}.{more}", width="content")
        page_links.to_classes(dataset, picked, "Create task")
        st.button("Clear", icon="✖️", key="pick_anew", on_click=_pick, args=(dataset, []))
    return picked


def _pick(dataset: Dataset, class_ids: list[int]) -> None:
    st.session_state[PICKED.name] = custom_task.classes_text(dataset, class_ids)


# The wall


def _images(dataset: Dataset, image_ids: np.ndarray, order: str, marked: int | None) -> tuple[int | None, int]:
    """Shows the wall; returns the clicked image and the first image."""
    page = _page(len(image_ids), PER_PAGE)
    on_page = image_ids[(page - 1) * PER_PAGE : page * PER_PAGE]
    images = dataset.images
    assert images is not None
    names = dataset.classes["class_name"].to_numpy()[images["class_id"].to_numpy()[on_page]]
    badges = _badges(images, on_page, order) if order in dataset.attributes else [""] * len(on_page)
    tiles = [
        Tile(int(i), str(name), "selected" if i == marked else None, badge)
        for i, name, badge in zip(on_page, names, badges)
    ]
    clicked = gallery(dataset, tiles, key="wall", tile_px=128 if shell.classroom() else 84)
    start = (page - 1) * PER_PAGE + 1
    st.caption(
        f"{start:,} to {start + len(on_page) - 1:,} of {len(image_ids):,} images. Click an image for its details."
    )
    return clicked, int(on_page[0])


def _badges(images: pd.DataFrame, image_ids: np.ndarray, name: str) -> list[str]:
    return ["–" if pd.isna(v) else f"{v:.3g}" if isinstance(v, float) else str(v) for v in images[name].iloc[image_ids]]


def _classes(dataset: Dataset, image_ids: np.ndarray, marked: int | None) -> tuple[int | None, int]:
    """Shows a row per class; returns the clicked image and the first image."""
    assert dataset.images is not None
    class_ids = dataset.images["class_id"].to_numpy()[image_ids]
    present = np.unique(class_ids)
    page = _page(len(present), CLASSES_PER_PAGE)
    rows = []
    for class_id in present[(page - 1) * CLASSES_PER_PAGE : page * CLASSES_PER_PAGE]:
        members = image_ids[class_ids == class_id]
        about = dataset.classes.iloc[class_id]
        note = f"{about['split']} · {len(members):,} images"
        tiles = [Tile(int(i), frame="selected" if i == marked else None) for i in members[:8]]
        rows.append(Row(str(about["class_name"]), tiles, note=note))
    clicked = task_rows(dataset, rows, key="class_wall", tile_px=110 if shell.classroom() else 76)
    st.caption(f"First 8 images of each of {len(present):,} classes. Click an image for its details.")
    return clicked, rows[0].tiles[0].image_id


def _page(n: int, per_page: int) -> int:
    n_pages = max(1, -(-n // per_page))
    if n_pages == 1:
        return 1
    if not 1 <= int(st.session_state.get("page") or 1) <= n_pages:
        st.session_state.pop("page", None)
    return st.pagination(n_pages, key="page", bind="query-params")


def _chosen(dataset: Dataset) -> int | None:
    """The image chosen on the wall, among the neighbours or by the link; None: the first one shown.

    The link decides when the page opens and when the browser goes back; the walls then forget their clicks.
    """
    requested, state = links.requested_for(IMAGE.name), st.session_state
    if requested is not None or state.get("seen_dataset") != dataset.name:
        state["seen_dataset"], state["followed"] = dataset.name, links.image_id(requested, dataset)
        state["seen_click"] = None
        links.forget_clicks()
    return state["followed"]


def _go_to(image_id: int) -> None:
    """Shows a neighbour instead, and forgets the click on the wall."""
    st.session_state["followed"], st.session_state["seen_click"] = image_id, None
    links.forget_clicks()


def _selected(clicked: int | None, first: int) -> int:
    """The image to show: the chosen one, kept in the link, or else the first on the wall."""
    state = st.session_state
    if clicked != state["seen_click"]:
        state["seen_click"] = state["followed"] = clicked
    chosen = state["followed"]
    links.keep(IMAGE.name, None if chosen is None else str(chosen))
    return first if chosen is None else chosen


# One image


def _detail(dataset: Dataset, image_id: int, chosen: bool, picked: list[int]) -> None:
    row = filtering.image_row(dataset, image_id)
    st.subheader(escape(str(row["class"])), anchor=False)
    if not chosen:
        st.caption("Click an image to see its neighbours.")
    _picture(dataset, image_id)
    st.html(_facts({k: v for k, v in row.items() if k != "class" and v is not None}))
    class_id = int(dataset.image_class_ids()[image_id])
    if dataset.has_features and class_id not in picked and len(picked) < custom_task.MAX_CLASSES:
        st.button(
            "Add class to task",
            icon="🧪",
            key="pick_class",
            on_click=_pick,
            args=(dataset, [*picked, class_id]),
        )
    _place(dataset, class_id)
    _neighbours(dataset, image_id)
    _contexts(dataset, class_id, str(row.get("context", "")))


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
    st.image(image, width=min(240, max(image.size)))


def _place(dataset: Dataset, class_id: int) -> None:
    place = caching.cached_call(places.place_in_taxonomy, dataset, class_id, keep=2000)
    if place is None:
        return
    st.markdown("**Taxonomy**")
    st.html(_crumbs(place.path))
    if place.siblings:
        siblings = dataset.classes["class_name"].iloc[list(place.siblings)].astype(str)
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
    shown = list(counts.head(6).items())
    if here in counts.index and here not in dict(shown):
        shown[-1] = (here, counts[here])
    st.html(Markup("").join(_bar(str(name), int(n), max_count, str(name) == here) for name, n in shown))
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
        backbone = controls.pick_backbone(backbones, help=help, where=st)
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
        Tile(int(i), str(names[class_ids[i]]), "right" if alike else "wrong", f"{cosine:.2f}")
        for i, cosine, alike in zip(near, cosines, same)
    ]
    gallery(dataset, tiles, key="near", tile_px=128 if shell.classroom() else 84, on_click=_go_to)
    grouped = "" if dataset.image_groups() is None else " Images of its own group (copies, frames) are excluded."
    st.caption(
        f"{int(same.sum())} of {len(near)} neighbours share its class (✓). Number: cosine similarity "
        f"({escape(title_of(backbone))} features).{grouped} Click an image to open it."
    )


# A dataset without pixels


def _class_list(dataset: Dataset) -> None:
    split = shell.pick_split(dataset, default="all")
    table = dataset.classes.iloc[dataset.split_class_ids(split)]
    has_counts = not table["n_images"].isna().any()
    numbers = [
        HeadlineNumber.count("classes", "Classes", len(table)),
        HeadlineNumber("images", "Images", int(table["n_images"].sum()) if has_counts else None, unit="", digits=0),
        HeadlineNumber.count("splits", "Splits", len(dataset.splits), help=", ".join(dataset.splits)),
        None,
    ]
    show_numbers(numbers)
    why = "its features were imported without images" if dataset.origin == "features" else "it is a class table"
    st.info(
        f"**No images of {escape(dataset.title)} here: {why}.** Only its classes are shown. Attach your copy of the "
        f"images on the page Add images, or run: {code(published_images.command(dataset.name))}",
        icon="🖼️",
    )
    shell.link_to_add_images()
    left, right = st.columns([3, 2], gap="large")
    with left:
        shown = table[["class_name", "split", *(["n_images"] if has_counts else [])]]
        shown = shown.astype({"n_images": "float64"}) if has_counts else shown
        event = export.table(
            CLASSES,
            shown,
            height=520,
            on_select="rerun",
            selection_mode="single-row",
            key=f"class_list_{dataset.name}_{split}",
        )
        st.caption("Select a row to see the class in the taxonomy.")
    picked = next(iter(clicks.data_in(event)), 0)
    with right:
        class_id = int(table.index[picked]) if len(table) else 0
        st.subheader(escape(str(dataset.classes["class_name"].iat[class_id])), anchor=False)
        _place(dataset, class_id)
        if dataset.taxonomy is None:
            st.caption("No taxonomy for this dataset.")


def _facts(facts: dict[str, Any]) -> Markup:
    """Names and values of an image as a grid."""
    cell = Markup(
        '<div style="overflow-wrap:anywhere"><span style="opacity:.65;font-size:.78rem">{}</span><br>{}</div>'
    )
    cells = Markup("").join(cell.format(name.replace("_", " "), _readable(value)) for name, value in facts.items())
    return Markup(
        '<div style="display:grid;grid-template-columns:repeat(auto-fill,minmax(96px,1fr));gap:.45rem .9rem;'
        'font-size:.88rem;line-height:1.25">{}</div>'
    ).format(cells)


def _crumbs(path: tuple[str, ...]) -> Markup:
    """The path from the root to a class, which is bold."""
    steps = [*path[:-1], Markup("<b>{}</b>").format(path[-1])]
    crumbs = Markup(' <span style="opacity:.5">›</span> ').join(steps)
    return Markup('<div style="font-size:.88rem;line-height:1.5;overflow-wrap:anywhere">{}</div>').format(crumbs)


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
