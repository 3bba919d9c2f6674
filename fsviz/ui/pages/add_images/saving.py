"""Writing a dataset, and links to the pages that open it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import streamlit as st

from fsviz import workspace
from fsviz.datasets import image_folders
from fsviz.datasets.preview import Preview
from fsviz.records import Dataset
from fsviz.ui.pages.add_images.meanings import ChosenSenses
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.page import HOME
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images


def show_save(
    preview: Preview, senses: ChosenSenses, edges: pd.DataFrame | str | None, upload: Path | None, ready: bool
) -> None:
    one, two, three = st.columns([2, 2, 1], vertical_alignment="bottom")
    suggested = re.sub(r"[^A-Za-z0-9_.+=-]+", "_", preview.root.name).strip("._-") or "my_images"
    if upload is not None and preview.root == upload:
        suggested = "my_images"
    name = one.text_input("Name", suggested, key="new_name", help="Letters, digits and . _ + = - only.").strip()
    title = two.text_input("Title", "", key="new_title", placeholder=name).strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace the dataset {escape(name)} that is there already", key="replace")
        if edges is None and (kept := user_images.chosen_senses(name, preview.classes["class_name"].tolist())):
            st.caption(f"Meanings that you chose for it before stay, where you choose none here: {len(kept):,}.")
    if three.button("Save dataset", type="primary", key="save", disabled=not ready, width="stretch"):
        with st.spinner("Writing the dataset …"):
            made = access.do(
                "save",
                user_images.save,
                name,
                preview,
                senses.senses,
                edges,
                title,
                overwrite=overwrite,
                upload=upload,
                corrected=senses.changed,
            )
        open_saved(made.name)
    st.caption(
        f"The table is written to {escape(str(workspace.folder('datasets')))}; images are not copied, except uploads."
    )


def open_saved(name: str) -> None:
    """Shows what was saved; the fields start empty next time."""
    for key in ("preview", "fetched"):
        st.session_state.pop(key, None)
    st.session_state["added"] = name
    st.session_state["add_turn"] = st.session_state.get("add_turn", 0) + 1
    shell.choose_dataset(name)
    st.rerun()


def show_page_links(dataset: Dataset) -> None:
    st.markdown("**Go on with this dataset**")
    with st.container(horizontal=True):
        for page in shell.useful_pages():
            if page.slug not in (HOME, "add_images"):
                shell.page_link(page.slug, query=shell.link(dataset))
