"""The page Add images: from a folder to a dataset with a taxonomy and features, in three steps.

1. say where the images are and check what was read
2. choose what the classes mean
3. save, then extract features
"""

from __future__ import annotations

import streamlit as st

from fsviz.datasets.catalog import ENTRIES
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.ui.pages.add_images.benchmark import pick_benchmark, show_attach
from fsviz.ui.pages.add_images.contents import show_contents
from fsviz.ui.pages.add_images.extraction import show_extraction
from fsviz.ui.pages.add_images.importing import show_import
from fsviz.ui.pages.add_images.manage import show_datasets, show_manage
from fsviz.ui.pages.add_images.meanings import pick_meanings, show_meanings
from fsviz.ui.pages.add_images.saving import show_save
from fsviz.ui.pages.add_images.sources import (
    DOWNLOAD,
    FOLDER,
    UPLOAD,
    from_download,
    from_path,
    from_upload,
    show_layouts,
)
from fsviz.ui.parts import access, controls, shell
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images

ADD, EXTRACT, IMPORT = "Add images", "Extract features", "Import features"
MEANING, KEEP = "Meanings", "Rename or delete"
DO = Setting(
    "do",
    "What do you want to do?",
    "",
    "choice",
    ADD,
    choices={name: name for name in (ADD, EXTRACT, IMPORT, MEANING, KEEP)},
)


def show(dataset: Dataset) -> None:
    if not access.can("save"):
        st.info(access.reason("save"), icon="🔒")
        return
    few = shell.classroom() and st.session_state.get(DO.name, st.query_params.get(DO.name, ADD)) in (ADD, EXTRACT)
    offered = DO.with_(choices={name: name for name in (ADD, EXTRACT)}) if few else DO
    choice = controls.pick(offered, as_buttons=True, label_visibility="collapsed")
    if choice == EXTRACT:
        show_extraction(dataset)
    elif choice == IMPORT:
        show_import()
    elif choice == MEANING:
        show_meanings(dataset)
    elif choice == KEEP:
        show_manage()
    else:
        _show_add(dataset)


PAGE = Page(
    slug="add_images",
    label="Add images",
    icon="➕",
    group="Data",
    order=3,
    question="How do I add my own images?",
    lead="A folder, a table or a zip; your images stay on this computer.",
    action="save",
    explains=("features", "senses", "pixels", "copies"),
    keywords=("upload", "import", "own dataset", "folder", "backbone"),
    show=show,
)


def _show_add(dataset: Dataset) -> None:
    done = st.session_state.get("added")
    if done is not None and done == dataset.name:
        _show_saved(dataset)
        return
    st.subheader("1 · Where are the images?", anchor=False)
    sources = (*((FOLDER,) if access.can("paths") else ()), UPLOAD, DOWNLOAD)
    where = st.segmented_control(
        "Source", sources, default=sources[0], key="source", required=True, label_visibility="collapsed"
    )
    access.show_denied("paths")
    if where == UPLOAD:
        preview, upload = from_upload()
    elif where == DOWNLOAD:
        preview, upload = from_download(), None
    else:
        preview, upload = from_path()
    if preview is None:
        if (like := st.query_params.get("like")) in ENTRIES:
            st.session_state["like"] = like
            st.info(
                f"Give the folder that holds the images of **{ENTRIES[like].title}**, one folder per class, named by "
                "class or by WordNet id (n01440764, as in ILSVRC's train folder).",
                icon="🧩",
            )
        show_layouts()
        show_datasets()
        return
    by_size = not shell.classroom() and st.checkbox(
        "Split the classes by size",
        key="by_size",
        help="As MetaCoCo does, whatever the folders say: the 64% of classes with most images train, the next 20% "
        "test, the rest is val.",
    )
    preview = user_images.with_splits_by_size(preview) if by_size else preview
    show_contents(preview)
    if like := pick_benchmark(preview):
        show_attach(preview, like, upload)
        return
    st.subheader("2 · What do the classes mean?", anchor=False)
    senses, edges, ready = pick_meanings(preview)
    st.subheader("3 · Save it", anchor=False)
    show_save(preview, senses, edges, upload, ready)


def _show_saved(dataset: Dataset) -> None:
    st.success(
        f"**{escape(dataset.title)}** is saved: {dataset.n_classes:,} classes, {dataset.n_images or 0:,} images"
        f"{', with a taxonomy' if dataset.taxonomy is not None else ''}.",
        icon="✅",
    )
    for note in dataset.notes:
        st.caption(escape(note))
    show_extraction(dataset)
    if st.button("Add another dataset", icon="➕", key="another"):
        st.session_state.pop("added", None)
        st.rerun()
