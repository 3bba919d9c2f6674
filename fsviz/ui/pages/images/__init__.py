"""The page Images: a wall of images with filters, and the details of the one that was clicked."""

from __future__ import annotations

import streamlit as st

from fsviz.datasets import filtering, published_images
from fsviz.datasets.preview import CLASSES
from fsviz.datasets.saved import moved_note
from fsviz.records import Dataset
from fsviz.text import code
from fsviz.ui.pages.images import detail, filters, wall
from fsviz.ui.parts import clicks, export, scroll_state, shell
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

# The details of an image stay visible while the wall is scrolled.
_STICKY = """<style>
@media (min-width: 900px) {
  [data-testid="stColumn"]:has(.st-key-gallery_detail) {
    position: sticky; top: 3.2rem; align-self: flex-start; max-height: calc(100vh - 3.6rem); overflow-y: auto;
  }
}
</style>"""


def show(dataset: Dataset) -> None:
    export.command("show", dataset.name)
    if dataset.root is not None and not dataset.root.is_dir():
        st.warning(escape(moved_note(dataset.name, dataset.root)), icon="📁")
    if not dataset.has_pixels:
        _class_list(dataset)
        return
    conditions, order, view = filters.pick(dataset)
    image_ids = filtering.select_images(dataset, conditions, order.name, seed=4, values=order.values)
    sentence, more = filtering.describe(dataset, image_ids)
    shell.answer(escape(sentence), escape(more))
    selection = wall.selection(dataset)
    filters.show_listed()
    if not len(image_ids):
        return
    left, right = st.columns([11, 7], gap="large")
    with left:
        image_id, is_first = wall.show(dataset, image_ids, order, view, selection)
    with right, st.container(key="gallery_detail"):
        st.html(_STICKY)
        scroll_state.to_top("gallery_detail", f"{dataset.name} {image_id}")
        if selection:
            wall.show_selection(dataset, selection)
        detail.show(dataset, image_id, is_first)


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


def _class_list(dataset: Dataset) -> None:
    """Shows the classes of a dataset without images."""
    split = shell.pick_split(dataset, default="all")
    table = dataset.classes.iloc[dataset.split_class_ids(split)]
    has_counts = not table["n_images"].isna().any()
    counts = f" with {int(table['n_images'].sum()):,} images" if has_counts else ""
    shell.answer(f"{len(table):,} classes{counts}; the images are not on this computer.")
    left, right = st.columns([3, 2], gap="large")
    with left:
        rows = table[["class_name", "split", *(["n_images"] if has_counts else [])]]
        rows = rows.astype({"n_images": "float64"}) if has_counts else rows
        event = export.table(
            CLASSES,
            rows,
            height=460,
            on_select="rerun",
            selection_mode="single-row",
            key=f"class_list_{dataset.name}_{split}",
        )
        st.caption("Select a row to see the class in the taxonomy.")
    position = next(iter(clicks.data_in(event)), 0)
    with right:
        _show_missing(dataset)
        class_id = int(table.index[position]) if len(table) else 0
        st.subheader(escape(dataset.short_names()[class_id]), anchor=False)
        detail.show_place(dataset, class_id)
        if dataset.taxonomy is None:
            st.caption("No taxonomy for this dataset.")


def _show_missing(dataset: Dataset) -> None:
    """Says why there are no images, and how to add them."""
    why = "its features were imported without images" if dataset.origin == "features" else "it is a class table"
    st.info(
        f"**No images of {escape(dataset.title)} here: {why}.** Attach your copy of the images on the page Add images, "
        f"or run: {code(published_images.command(dataset.name))}",
        icon="🖼️",
    )
    shell.link_to_add_images()
