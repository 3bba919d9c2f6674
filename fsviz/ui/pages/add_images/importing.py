"""Import features that were computed elsewhere."""

from __future__ import annotations

import streamlit as st

from fsviz import datasets
from fsviz.ui.pages.add_images.saving import show_page_links
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.shell import escape
from fsviz.user import images as user_images


def show_import() -> None:
    st.subheader("Import features", anchor=False)
    if not access.can("paths"):
        access.show_denied("paths")
        return
    st.caption(
        "npz or npy with labels, easyfsl parquet (embedding, class_name), HDF5 (all_feats, all_labels), torch tensors. "
        "Pickles are refused: opening one can run code.",
        help="To add features to an existing dataset, give its name; "
        "rows are matched by a column or array of paths (path, image) or of image ids.",
    )
    path = st.text_input("File of features", key="features_file", placeholder="/home/you/features.npz").strip()
    access.say_folders()
    labels_column, like_column, split_column = st.columns(3, vertical_alignment="bottom")
    labels = labels_column.text_input("File of labels, or of paths and labels (.npy)", key="labels_file").strip()
    likes = ["(none)", *(n for n in datasets.names() if n not in ("demo", "digits"))]
    like = like_column.selectbox(
        "Classes of", likes, key="like", format_func=lambda n: n if n == "(none)" else shell.dataset_title(n)
    )
    parent = None if like == "(none)" else shell.load_dataset(like)
    splits = ["(every class)", *(parent.splits if parent else ())]
    split = split_column.selectbox("Label order from split", splits, key="like_split", disabled=parent is None)
    name_column, backbone_column, button_column = st.columns([2, 2, 1], vertical_alignment="bottom")
    name = name_column.text_input("Name of the dataset", "my_features", key="features_name").strip()
    backbone = backbone_column.text_input("Name of the features", "imported", key="features_backbone").strip()
    replace = st.checkbox("Replace an existing dataset", key="features_replace")
    if button_column.button("Import", type="primary", key="import", disabled=not path, width="stretch"):
        with st.spinner("Reading the features …"):
            st.session_state["imported"] = access.do(
                "save",
                user_images.import_features,
                name,
                access.path(path),
                labels=access.path(labels) if labels else None,
                like=parent,
                split=None if split == "(every class)" else split,
                backbone=backbone,
                replace=replace,
            )
    result = st.session_state.get("imported")
    if result and result["dataset"] in datasets.names():  # it may have been removed since
        st.success(
            f"**{escape(result['dataset'])}**: {result['n_images']:,} images of {result['n_classes']:,} classes with "
            f"{result['dims']:,} dimensions each, as {escape(result['backbone'])}.",
            icon="✅",
        )
        for note in filter(None, (result["joined"], *result["notes"])):
            st.caption(escape(note))
        show_page_links(shell.load_dataset(result["dataset"]))
