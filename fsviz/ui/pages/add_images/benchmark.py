"""Images of a benchmark whose class tables fsviz ships: matched by class and attached."""

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

MY_OWN = "no, my own classes"


def pick_benchmark(preview: Preview) -> str:
    """The benchmark whose images these are, "" for classes of one's own."""
    setting = Setting(
        "like",
        "Are these the images of a benchmark?",
        "Benchmarks come as class tables without images. Folders named by its classes or by WordNet ids become its "
        "images: its ids, splits and taxonomy are kept.",
        "choice",
        MY_OWN,
        choices={MY_OWN: MY_OWN, **{name: entry.title for name, entry in ENTRIES.items()}},
    )
    like = controls.pick(setting)
    return "" if like == MY_OWN else like


def show_attach(preview: Preview, like: str, upload: Path | None) -> None:
    benchmark = shell.load_dataset(like)
    found = published_images.match_folders(benchmark, preview.classes["class_name"])
    n_there = benchmark.n_classes - len(found.missing)
    st.markdown(
        f"**{n_there:,} of {benchmark.n_classes:,} classes** of {escape(benchmark.title)} are among these folders."
    )
    names = benchmark.classes["class_name"].astype(str)
    for title, items in (
        ("classes without images, which will be in no split", names.iloc[list(found.missing)].tolist()),
        ("folders that are no class of it, which are left out", list(found.unknown)),
    ):
        if items:
            with st.expander(f"{len(items):,} {title}"):
                table = ITEMS.titled("Classes and folders without a partner")
                export.table(table, {"item": items}, height=min(200, 36 * len(items) + 40))
    st.subheader("2 · Save it", anchor=False)
    one, two = st.columns([3, 1], vertical_alignment="bottom")
    name = one.text_input("Name", f"my_{like}", key=f"attach_name_{like}").strip()
    overwrite = False
    if name in image_folders.workspace_dataset_names():
        overwrite = st.checkbox(f"Replace the dataset {escape(name)} that is there already", key="attach_replace")
    if two.button("Attach images", type="primary", key="attach", disabled=not n_there, width="stretch"):
        with st.spinner("Writing the dataset …"):
            made = access.do("save", user_images.attach_preview, name, like, preview, overwrite, "", upload)
        open_saved(made["name"])
