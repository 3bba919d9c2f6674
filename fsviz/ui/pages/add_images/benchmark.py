"""Images of a published dataset: matched by class and attached."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from fsviz.datasets import image_folders, published_images
from fsviz.datasets.catalog import ENTRIES
from fsviz.datasets.preview import ITEMS, Preview
from fsviz.settings import Setting
from fsviz.ui.pages.add_images.saving import open_saved
from fsviz.ui.parts import access, controls, export, shell
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images

MY_OWN = "none, my own classes"


def pick_benchmark(preview: Preview) -> str:
    """The published dataset that these are the images of; "" for other classes."""
    setting = Setting(
        "like",
        "Published dataset",
        "Published datasets come without images. Folders named by class or by WordNet id become its images; its ids, "
        "splits and taxonomy stay.",
        "choice",
        MY_OWN,
        choices={MY_OWN: MY_OWN, **{name: entry.title for name, entry in ENTRIES.items()}},
    )
    like = controls.pick(setting)
    return "" if like == MY_OWN else like


def show_attach(preview: Preview, like: str, upload: Path | None) -> None:
    benchmark = shell.load_dataset(like)
    matches = published_images.match_folders(benchmark, preview.classes["class_name"])
    n_matched = benchmark.n_classes - len(matches.missing)
    st.markdown(f"**{n_matched:,} of {benchmark.n_classes:,} classes** of {escape(benchmark.title)} have a folder.")
    names = benchmark.classes["class_name"].astype(str)
    for title, items in (
        ("classes without a folder, excluded from the splits", names.iloc[list(matches.missing)].tolist()),
        ("folders that match no class, skipped", list(matches.unknown)),
    ):
        if items:
            with st.expander(f"{len(items):,} {title}"):
                table = ITEMS.titled("Unmatched classes and folders")
                export.table(table, {"item": items}, height=min(200, 36 * len(items) + 40))
    st.subheader("2. Save", anchor=False)
    name_column, button_column = st.columns([3, 1], vertical_alignment="bottom")
    name = name_column.text_input("Name", f"my_{like}", key=f"attach_name_{like}").strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace existing dataset {escape(name)}", key="attach_replace")
    if button_column.button("Attach images", type="primary", key="attach", disabled=not n_matched, width="stretch"):
        with st.spinner("Writing the dataset …"):
            saved = access.do("save", user_images.attach_preview, name, like, preview, overwrite, "", upload)
        open_saved(saved["name"])
