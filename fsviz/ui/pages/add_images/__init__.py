"""The page Add images: from a folder to a dataset with a taxonomy and features, in three steps.

1. give the path of the images and check what was read
2. choose a taxonomy
3. save, then extract features
"""

from __future__ import annotations

import streamlit as st

from fsviz import datasets
from fsviz.datasets.catalog import ENTRIES
from fsviz.datasets.preview import pluralize
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.ui.pages.add_images.benchmark import pick_benchmark, show_attach
from fsviz.ui.pages.add_images.check import show_check
from fsviz.ui.pages.add_images.contents import show_contents
from fsviz.ui.pages.add_images.extraction import show_extraction
from fsviz.ui.pages.add_images.importing import show_import
from fsviz.ui.pages.add_images.manage import show_datasets, show_manage
from fsviz.ui.pages.add_images.saving import show_save
from fsviz.ui.pages.add_images.senses import pick_taxonomy, show_senses
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
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images

ADD, EXTRACT, CHECK, IMPORT = "Add images", "Extract features", "Check", "Import features"
SENSES, MANAGE = "WordNet senses", "Manage"
DO = Setting(
    "do",
    "Step",
    "",
    "choice",
    ADD,
    choices={name: name for name in (ADD, EXTRACT, CHECK, IMPORT, SENSES, MANAGE)},
)
SECTION_OF = {"extract": EXTRACT, "senses": SENSES}  # of a next step


def show(dataset: Dataset) -> None:
    if not access.can("save"):
        st.info(access.reason("save"), icon="🔒")
        return
    few = shell.classroom() and st.session_state.get(DO.name, st.query_params.get(DO.name, ADD)) in (ADD, EXTRACT)
    offered = DO.with_(choices={name: name for name in (ADD, EXTRACT)}) if few else DO
    choice = controls.pick(offered, as_buttons=True, label_visibility="collapsed")
    if choice == CHECK:
        show_check(dataset, is_answer=True)
        return
    _recommend(dataset, choice)
    if choice == EXTRACT:
        show_extraction(dataset)
    elif choice == IMPORT:
        show_import()
    elif choice == SENSES:
        show_senses(dataset)
    elif choice == MANAGE:
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
    keywords=("upload", "import", "own dataset", "folder", "backbone", "mislabelled", "quality check"),
    show=show,
)


def _recommend(dataset: Dataset, section: str) -> None:
    """One next step as the answer, and a button that leads to its section."""
    step = cached_call(_next_step, dataset.name, datasets.stamp(dataset.name), keep=16)
    shell.answer(escape(step.sentence), escape(step.state))
    if step.action == "explore":
        shell.page_link("causes", "Causes", shell.link(dataset))
    elif (goal := SECTION_OF.get(step.action, section)) != section:
        st.button(goal, type="primary", key="next_step", on_click=_go, args=(goal,))


def _next_step(name: str, stamp: str) -> user_images.NextStep:
    return user_images.next_step(datasets.load(name))


def _go(section: str) -> None:
    st.session_state[DO.name] = section


def _show_add(dataset: Dataset) -> None:
    done = st.session_state.get("added")
    if done is not None and done == dataset.name:
        _show_saved(dataset)
        return
    st.subheader("1. Images", anchor=False)
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
                f"Give the folder of the images of **{ENTRIES[like].title}**: one folder per class, named by class or "
                "by WordNet id (n01440764, as in ILSVRC's train folder).",
                icon="🧩",
            )
        show_layouts()
        show_datasets()
        return
    by_size = not shell.classroom() and st.checkbox(
        "Split classes by size",
        key="by_size",
        help="Largest 64% train, next 20% test, rest val (MetaCoCo). Splits of folders are ignored.",
    )
    preview = user_images.with_splits_by_size(preview) if by_size else preview
    shell.answer(
        f"Read {len(preview.images):,} images of {escape(pluralize(len(preview.classes), 'class', 'classes'))}.",
        "Next: check them, choose a taxonomy and save.",
    )
    show_contents(preview)
    if like := pick_benchmark(preview):
        show_attach(preview, like, upload)
        return
    st.subheader("2. Taxonomy", anchor=False)
    senses, edges, ready = pick_taxonomy(preview)
    st.subheader("3. Save", anchor=False)
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
    show_check(dataset)
    if st.button("Add another", icon="➕", key="another"):
        st.session_state.pop("added", None)
        st.rerun()
