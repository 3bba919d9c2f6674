"""Writing a dataset, and links to the pages that open it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import streamlit as st

from fsviz import workspace
from fsviz.datasets import image_folders
from fsviz.datasets.preview import Preview, pluralize
from fsviz.records import Dataset
from fsviz.ui.pages.add_images.senses import ChosenSenses
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images


def show_save(
    preview: Preview, senses: ChosenSenses, edges: pd.DataFrame | str | None, upload: Path | None, ready: bool
) -> None:
    name_column, title_column, button_column = st.columns([2, 2, 1], vertical_alignment="bottom")
    suggested = re.sub(r"[^A-Za-z0-9_.+=-]+", "_", preview.root.name).strip("._-") or "my_images"
    if upload is not None and preview.root == upload:
        suggested = "my_images"
    name = name_column.text_input("Name", suggested, key="new_name", help="Letters, digits and . _ + = - only.").strip()
    title = title_column.text_input("Title", "", key="new_title", placeholder=name).strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace existing dataset {escape(name)}", key="replace")
        if edges is None and (previous := user_images.chosen_senses(name, preview.classes["class_name"].tolist())):
            st.caption(
                f"Keeps {escape(pluralize(len(previous), 'sense'))} that you chose before, unless you change them here."
            )
    if button_column.button("Save dataset", type="primary", key="save", disabled=not ready, width="stretch"):
        with st.spinner("Writing the dataset …"):
            dataset = access.do(
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
        open_saved(dataset.name)
    st.caption(
        f"The dataset goes to {escape(str(workspace.folder('datasets')))}. Images are not copied, except uploads."
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
    st.markdown("**Next steps**")
    with st.container(horizontal=True):
        for slug in ("images", "causes", "evaluate"):
            shell.page_link(slug, query=shell.link(dataset))
