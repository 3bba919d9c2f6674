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
# What is told about an image stays in sight while the wall beside it is scrolled.
_STICKY = """<style>
@media (min-width: 900px) {
  [data-testid="stColumn"]:has(.st-key-gallery_detail) {
    position: sticky; top: 3.2rem; align-self: flex-start; max-height: calc(100vh - 3.6rem); overflow-y: auto;
  }
}
</style>"""
N_NEIGHBOURS = 12
PICKED = custom_task.TASK_OF
CONTEXTS = Setting("contexts", "Context", "The contexts whose images are shown.", "text", "")
BY = Setting("by", "Filter by attribute", "The attributes that images are filtered by.", "text", "")
ORDER = Setting("order", "Order", "In which order images stand.", "choice", filtering.SHUFFLED)
VIEW = Setting("view", "Show", "", "choice", "Images", choices={name: name for name in ("Images", "Classes")})


def show(dataset: Dataset) -> None:
    export.command("show", dataset.name)
    if dataset.root is not None and not dataset.root.is_dir():
        st.warning(escape(moved_note(dataset.name, dataset.root)), icon="📁")
    if not dataset.has_pixels:
        _class_list(dataset)
        return
    wanted, order, view = _settings(dataset)
    image_ids = filtering.select_images(dataset, wanted, order, seed=4)
    _headline(dataset, image_ids)
    picked = _picked(dataset)
    if not len(image_ids):
        st.info("No image passes all of these filters. Take one of them away in the sidebar.", icon="🔍")
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
        known = list(dict.fromkeys(names))
        selections.pick_classes(known)
        typed = controls.BY_TYPING
        classes = st.multiselect("Class", known, key=selections.KEY, placeholder="every class", **typed)
        contexts: list[str] = []
        if dataset.contexts is not None:
            counts = dataset.contexts.groupby("context")["n_images"].sum().sort_values(ascending=False)
            contexts = _multiselect(CONTEXTS, counts.index.astype(str).tolist(), "every background")
        attributes: dict[str, Any] = {}
        if dataset.attributes and not _is_spared(BY.name):
            for name in _multiselect(BY, list(dataset.attributes), "none"):
                attributes[name] = _attribute(dataset, name)
        orders = [filtering.SHUFFLED, filtering.BY_CLASS, *dataset.attributes]
        order = filtering.SHUFFLED if _is_spared(ORDER.name) else _selectbox(ORDER, orders)
        view = controls.pick(VIEW, as_buttons=True)
    by_name = pd.Series(dataset.classes.index, index=dataset.classes["class_name"].astype(str))
    class_ids = by_name[by_name.index.isin(classes)].tolist()
    return filtering.ImageFilter(split, class_ids, contexts, attributes), order, view


def _is_spared(key: str) -> bool:
    """Whether a control is out of sight before a class: unless the link, or somebody before, has used it."""
    return shell.classroom() and key not in st.query_params and not st.session_state.get(key)


def _multiselect(setting: Setting, options: list[str], placeholder: str) -> list[str]:
    """A multiselect kept in the URL; what the dataset does not have is forgotten."""
    links.names_of(options, setting.name)
    return st.multiselect(
        escape(setting.title), options, key=setting.name, placeholder=placeholder, **controls.BY_TYPING
    )


def _selectbox(setting: Setting, options: list[str]) -> str:
    links.value_of(setting.with_(choices={name: name for name in options}), setting.name)
    return st.selectbox(escape(setting.title), options, key=setting.name, format_func=lambda o: o.replace("_", " "))


def _attribute(dataset: Dataset, name: str) -> Any:
    """The part of an attribute to keep, in the URL as with_NAME; what the dataset does not have is forgotten."""
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
    part = images["class_id"].to_numpy()[image_ids]
    sizes = np.bincount(part)
    sizes = sizes[sizes > 0]
    if dataset.contexts is not None:
        n = images["context"].iloc[image_ids].nunique()
        third = HeadlineNumber.count("contexts", "Contexts", n, help="Different backgrounds among these images.")
    else:
        third = HeadlineNumber.count("splits", "Splits", len(dataset.splits), help=", ".join(dataset.splits))
    numbers = [
        HeadlineNumber.count("images", "Images", len(image_ids), help=f"of {len(images):,} in the dataset"),
        HeadlineNumber.count(
            "classes", "Classes", len(np.unique(part)), help=f"of {dataset.n_classes:,} in the dataset"
        ),
        third,
        HeadlineNumber.worded(
            "per_class",
            "Images per class",
            " to ".join(f"{n:,}" for n in sorted({int(sizes.min()), int(sizes.max())})) if len(sizes) else "0",
            help="Among the images that pass the filters.",
        ),
    ]
    show_numbers(numbers)


# Classes for a task


def _picked(dataset: Dataset) -> list[int]:
    """The classes that were picked for a task, in the link, with the way to it."""
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
        more = " Pick one more class." if len(picked) == 1 else ""
        st.markdown(f"**Your task:** {', '.join(map(escape, names))}.{more}", width="content")
        page_links.to_classes(dataset, picked, "Build it")
        st.button("Start over", icon="✖️", key="pick_anew", on_click=_pick, args=(dataset, []))
    return picked


def _pick(dataset: Dataset, class_ids: list[int]) -> None:
    st.session_state[PICKED.name] = custom_task.classes_text(dataset, class_ids)


# The wall


def _images(dataset: Dataset, image_ids: np.ndarray, order: str, marked: int | None) -> tuple[int | None, int]:
    """The wall; returns the image clicked and the first one shown."""
    page = _page(len(image_ids), PER_PAGE)
    part = image_ids[(page - 1) * PER_PAGE : page * PER_PAGE]
    images = dataset.images
    assert images is not None
    names = dataset.classes["class_name"].to_numpy()[images["class_id"].to_numpy()[part]]
    badges = _badges(images, part, order) if order in dataset.attributes else [""] * len(part)
    tiles = [
        Tile(int(i), str(name), "selected" if i == marked else None, badge)
        for i, name, badge in zip(part, names, badges)
    ]
    clicked = gallery(dataset, tiles, key="wall", tile_px=128 if shell.classroom() else 84)
    start = (page - 1) * PER_PAGE + 1
    st.caption(f"Images {start:,} to {start + len(part) - 1:,} of {len(image_ids):,}. Click one to see all about it.")
    return clicked, int(part[0])


def _badges(images: pd.DataFrame, part: np.ndarray, name: str) -> list[str]:
    return ["–" if pd.isna(v) else f"{v:.3g}" if isinstance(v, float) else str(v) for v in images[name].iloc[part]]


def _classes(dataset: Dataset, image_ids: np.ndarray, marked: int | None) -> tuple[int | None, int]:
    """A row per class; returns the image clicked and the first one shown."""
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
    st.caption(f"{len(present):,} classes, the first 8 of each one's images. Click an image to see all about it.")
    return clicked, rows[0].tiles[0].image_id


def _page(n: int, per_page: int) -> int:
    n_pages = max(1, -(-n // per_page))
    if n_pages == 1:
        return 1
    if not 1 <= int(st.session_state.get("page") or 1) <= n_pages:
        st.session_state.pop("page", None)
    return st.pagination(n_pages, key="page", bind="query-params")


def _chosen(dataset: Dataset) -> int | None:
    """The image that was chosen, on the wall, among the neighbours or by the link; None: the first one shown is told.

    When the page is opened and when the browser goes back, the link decides; then the walls forget their clicks.
    """
    asked, state = links.requested_for(IMAGE.name), st.session_state
    if asked is not None or state.get("seen_dataset") != dataset.name:
        state["seen_dataset"], state["followed"] = dataset.name, links.image_id(asked, dataset)
        state["seen_click"] = None
        links.forget_clicks()
    return state["followed"]


def _go_to(image_id: int) -> None:
    """A neighbour becomes the image that is told about; what was clicked on the wall before it is forgotten."""
    st.session_state["followed"], st.session_state["seen_click"] = image_id, None
    links.forget_clicks()


def _selected(clicked: int | None, first: int) -> int:
    """The image to tell about, kept in the link as image; without any chosen it is the first one shown."""
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
        st.caption("The first image shown. Click another one to see its neighbours.")
    _picture(dataset, image_id)
    st.html(_facts({k: v for k, v in row.items() if k != "class" and v is not None}))
    class_id = int(dataset.image_class_ids()[image_id])
    if dataset.has_features and class_id not in picked and len(picked) < custom_task.MAX_CLASSES:
        st.button(
            "Pick its class for a task",
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
    st.markdown("**Its place among meanings**")
    st.html(_crumbs(place.path))
    if place.siblings:
        names = dataset.classes["class_name"].iloc[list(place.siblings)].astype(str)
        told = ", ".join(escape(n) for n in names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
        st.caption(f"Closest relatives among the classes, all below “{escape(place.shared)}”: {told}.")


def _contexts(dataset: Dataset, class_id: int, here: str) -> None:
    """Where images of the class were taken: bars, the context of this image marked."""
    if dataset.contexts is None:
        return
    counts = dataset.contexts[dataset.contexts["class_id"] == class_id].set_index("context")["n_images"]
    counts = counts[counts > 0].sort_values(ascending=False)
    if counts.empty:
        return
    st.markdown("**Where its class is seen**")
    most, total = int(counts.max()), int(counts.sum())
    shown = list(counts.head(6).items())
    if here in counts.index and here not in dict(shown):
        shown[-1] = (here, counts[here])
    st.html(Markup("").join(_bar(str(name), int(n), most, str(name) == here) for name, n in shown))
    usual = escape(str(counts.index[0]))
    some = f", {len(shown)} of them shown" if len(counts) > len(shown) else ""
    st.caption(
        f"{total:,} images in {len(counts)} contexts{some}; {counts.iloc[0] / total:.0%} of them in “{usual}”. "
        "A classifier may learn the background instead of the thing."
    )


def _bar(name: str, n: int, most: int, here: bool) -> Markup:
    return Markup(
        '<div style="display:grid;grid-template-columns:130px 1fr 34px;gap:.5rem;align-items:center;font-size:.84rem">'
        '<span style="overflow-wrap:anywhere">{}</span>'
        '<span style="height:9px;border-radius:4px;width:{:.1f}%;background:{}"></span>'
        '<span style="text-align:right">{:,}</span></div>'
    ).format(name + " (this image)" * here, 100 * n / most, palette.ACCENT if here else palette.QUIET, n)


def _neighbours(dataset: Dataset, image_id: int) -> None:
    st.markdown("**Its nearest neighbours in feature space**")
    known = features.available(dataset)
    if not known:
        st.info(
            "A backbone (a trained image network) must look at the images first. "
            f"Extract features on the page Add images, or run: "
            f"{code(f'fsviz extract {dataset.name}')}",
            icon="🧩",
        )
        shell.link_to_add_images("Extract features", shell.link(dataset, do="Extract features"))
        return
    backbone = known[0]
    if len(known) > 1:
        help = "The frozen network whose features say which images are near."
        backbone = controls.pick_backbone(known, help=help, where=st)
    try:
        near, cosines = caching.cached_call(
            neighbours.nearest_images_of,
            dataset,
            backbone,
            image_id,
            N_NEIGHBOURS,
            words="Comparing features …",
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
    grouped = "" if dataset.image_groups() is None else " Images of its own group (copies, frames) are left out."
    st.caption(
        f"{int(same.sum())} of {len(near)} neighbours are of the same class (✓). The number is the cosine of the two "
        f"images' features under {escape(title_of(backbone))}: 1 means the backbone sees the same thing.{grouped} "
        "Click one to go there."
    )


# A dataset without pixels


def _class_list(dataset: Dataset) -> None:
    split = shell.pick_split(dataset, default="all")
    table = dataset.classes.iloc[dataset.split_class_ids(split)]
    is_known = not table["n_images"].isna().any()
    numbers = [
        HeadlineNumber.count("classes", "Classes", len(table)),
        HeadlineNumber("images", "Images", int(table["n_images"].sum()) if is_known else None, unit="", digits=0),
        HeadlineNumber.count("splits", "Splits", len(dataset.splits), help=", ".join(dataset.splits)),
        None,
    ]
    show_numbers(numbers)
    why = "its features were imported without images" if dataset.origin == "features" else "it comes as a class table"
    st.info(
        f"**{escape(dataset.title)} has no pixels here: {why}.** Below are its classes. To look at images, get your "
        f"own copy of them and add the folder on the page Add images, or run: "
        f"{code(published_images.command(dataset.name))}",
        icon="🖼️",
    )
    shell.link_to_add_images()
    left, right = st.columns([3, 2], gap="large")
    with left:
        shown = table[["class_name", "split", *(["n_images"] if is_known else [])]]
        shown = shown.astype({"n_images": "float64"}) if is_known else shown
        event = export.table(
            CLASSES,
            shown,
            height=520,
            on_select="rerun",
            selection_mode="single-row",
            key=f"class_list_{dataset.name}_{split}",
        )
        st.caption("Select a row to see its place among the classes.")
    picked = next(iter(clicks.data_in(event)), 0)
    with right:
        class_id = int(table.index[picked]) if len(table) else 0
        st.subheader(escape(str(dataset.classes["class_name"].iat[class_id])), anchor=False)
        _place(dataset, class_id)
        if dataset.taxonomy is None:
            st.caption("This dataset has no taxonomy, so nothing is known about how its classes are related.")


def _facts(facts: dict[str, Any]) -> Markup:
    """Names and values of one image as a grid."""
    cell = Markup(
        '<div style="overflow-wrap:anywhere"><span style="opacity:.65;font-size:.78rem">{}</span><br>{}</div>'
    )
    cells = Markup("").join(cell.format(name.replace("_", " "), _readable(value)) for name, value in facts.items())
    return Markup(
        '<div style="display:grid;grid-template-columns:repeat(auto-fill,minmax(96px,1fr));gap:.45rem .9rem;'
        'font-size:.88rem;line-height:1.25">{}</div>'
    ).format(cells)


def _crumbs(path: tuple[str, ...]) -> Markup:
    """The way from the root to a class; the class itself in bold."""
    steps = [*path[:-1], Markup("<b>{}</b>").format(path[-1])]
    way = Markup(' <span style="opacity:.5">›</span> ').join(steps)
    return Markup('<div style="font-size:.88rem;line-height:1.5;overflow-wrap:anywhere">{}</div>').format(way)


def _readable(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
