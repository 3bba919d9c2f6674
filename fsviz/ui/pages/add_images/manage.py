"""User datasets, features and testbeds: rename or delete them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from fsviz.datasets import image_folders, saved
from fsviz.errors import FsvizError
from fsviz.features import store
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.sampling import testbeds
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.shell import escape


def show_datasets(title: str = "Your datasets") -> None:
    """The datasets of the workspace, with links and ways to rename and delete them."""
    names = image_folders.workspace_dataset_names()
    if not names:
        return
    st.subheader(title, anchor=False)
    for name in names:
        with st.container(horizontal=True, vertical_alignment="center"):
            try:
                _show_dataset(shell.load_dataset(name))
            except FsvizError as error:
                st.markdown(f"**{escape(name)}** · {escape(str(error))}")
            if access.can("delete"):
                with st.popover("Delete"):
                    st.caption("Removes the dataset, its features and splits. Your image files and finished runs stay.")
                    st.button(f"Delete {escape(name)}", key=f"remove_{name}", on_click=_remove, args=(name,))


def _show_dataset(dataset: Dataset) -> None:
    """Counts of a dataset, a link to it, and a field for another title."""
    contents = f"{dataset.n_classes:,} classes, {dataset.n_images or 0:,} images"
    contents += ", features" if dataset.has_features else ", no features yet"
    st.markdown(f"**{escape(dataset.title)}** · {contents}")
    shell.page_link("images", "Open", shell.link(dataset))
    if access.can("delete"):
        with st.popover("Rename"):
            title = st.text_input("Title", dataset.title, key=f"title_{dataset.name}")
            st.caption("Pages show the title; links and commands keep the name.")
            st.button("Save the title", key=f"rename_{dataset.name}", on_click=_rename, args=(dataset.name, title))


def _rename(name: str, title: str) -> None:
    _act("delete", saved.rename_dataset, name, st.session_state.get(f"title_{name}", title))


def _remove(name: str) -> None:
    _act("delete", image_folders.remove_dataset, name)
    if st.query_params.get("dataset") == name:
        shell.choose_dataset(shell.DEFAULT_DATASET)


def _act(action: str, act: Callable[..., Any], *args: Any) -> None:
    """Acts on behalf of a click; an error is shown on the next page."""
    try:
        access.do(action, act, *args)
    except FsvizError as error:
        shell.notice(str(error))


def show_manage() -> None:
    """Datasets, features and testbeds of the user: rename or delete them."""
    access.show_denied("delete")
    show_datasets("Datasets")
    rows = [row for row in store.list_features() if row["origin"] == "workspace"]
    if rows:
        st.subheader("Features", anchor=False)
    for row in rows:
        dataset, backbone = row["dataset"], row["backbone"]
        size = f"{row['n_images'] or 0:,} images, {row['dims'] or 0:,} dimensions"
        _show_item(
            f"**{escape(title_of(backbone))}** on {escape(shell.dataset_title(dataset))} · {size}",
            f"features_{row['path']}",
            f"{'Import' if row['imported'] else 'Extract'} them again at any time. Finished runs stay.",
            ("delete", store.remove_features, dataset, backbone),
            ("delete", store.rename_features, dataset, backbone) if row["imported"] else (),
            "Finished runs keep the old name; commands and links need the new one.",
        )
    names = testbeds.list_testbeds()
    if names:
        st.subheader("Testbeds", anchor=False)
    for name in names:
        _show_item(
            f"**{escape(name)}**",
            f"testbed_{name}",
            "Finished runs on it stay; new ones need another testbed.",
            ("delete", testbeds.delete_testbed, name),
            ("delete", testbeds.rename_testbed, name),
            "Runs keep their own copy of the tasks; commands and links need the new name.",
        )
    if not (rows or names or image_folders.workspace_dataset_names()):
        st.caption("Nothing added yet.")


def _show_item(
    title: str, key: str, after: str, removal: tuple[Any, ...], renaming: tuple[Any, ...] = (), renamed: str = ""
) -> None:
    """A line with ways to rename and delete an item, each after a second click.

    title     the item, in Markdown
    removal   the action, the function and what it is called with
    renaming  the same, without the new name that comes last; the last of it is the old name. () for none
    renamed   what another name changes
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(title)
        if not access.can("delete"):
            return
        if renaming:
            with st.popover("Rename"):
                st.text_input("Name", str(renaming[-1]), key=f"new_{key}")
                st.caption(renamed)
                st.button("Save the name", key=f"rename_{key}", on_click=_rename_item, args=(renaming, f"new_{key}"))
        with st.popover("Delete"):
            st.caption(after)
            st.button("Delete it", key=f"delete_{key}", on_click=_act, args=removal)


def _rename_item(renaming: tuple[Any, ...], field: str) -> None:
    _act(*renaming, st.session_state.get(field, renaming[-1]))
