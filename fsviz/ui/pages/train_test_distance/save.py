"""Saves a split: as a split of the dataset, as a file, as a command; lists and deletes saved ones."""

from __future__ import annotations

from functools import partial

import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.datasets import saved_splits
from fsviz.errors import FsvizError
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.settings import RawSettings
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.shell import escape, link, load_dataset


def show(dataset: Dataset, result: study.SplitResult) -> None:
    command = study.command(dataset, result.settings)
    offer(dataset, result.split, study.recipe(result), study.fitting_name(result), command, "split")
    _import(dataset)
    _saved(dataset)


def offer(dataset: Dataset, split: ClassSplit, recipe: RawSettings, name: str, command: str, key: str) -> None:
    """Save, JSON, CSV and the command of one split."""
    st.markdown("**Save split**")
    access.show_denied("save")
    new_name = name
    if access.can("save"):
        new_name = st.text_input(
            "Name", value=name, key=f"{key}_name_{name}", help="Letters, digits and . _ + = -", width=420
        )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        is_clicked = access.can("save") and st.button("Save split", type="primary", icon="💾", key=f"save_{key}")
        _files(dataset, split, recipe, name, key)
        shell.command_popover(f"{command} --save {name}")
    if is_clicked:
        _save(dataset, split, new_name, recipe)
    st.caption("Saved as NAME_train, NAME_val and NAME_test, on every page and in the command line.")


def _files(dataset: Dataset, split: ClassSplit, recipe: RawSettings, name: str, key: str) -> None:
    for kind, make in (("JSON", partial(study.as_json, dataset, split, recipe)), ("CSV", partial(study.as_csv, split))):
        st.download_button(
            kind,
            data=make,
            file_name=f"{dataset.name}-{name}.{kind.lower()}",
            key=f"{key}_{kind}",
            on_click="ignore",
            icon="⬇️",
        )


def _save(dataset: Dataset, split: ClassSplit, name: str, recipe: RawSettings) -> None:
    try:
        added = access.do("save", study.save, load_dataset(dataset.name), split, name.strip(), recipe)
    except FsvizError as error:
        st.error(escape(error), icon="⚠️")
        return
    st.success(f"Saved: {escape(', '.join(added))} are now splits of {escape(dataset.title)}.", icon="✅")
    test = link(dataset, split=added[-1])
    with st.container(horizontal=True):
        shell.page_link("sample_tasks", "Sample tasks from its test classes", test)
        shell.page_link("evaluate", "Evaluate methods on them", test)


def _import(dataset: Dataset) -> None:
    with st.expander("Import split (JSON or CSV)"):
        access.show_denied("upload")
        if not access.can("upload"):
            return
        st.caption(
            "JSON with the lists train, val and test of class names, or a CSV with columns class_name and split."
        )
        file = st.file_uploader("Split file", ["json", "csv"], key="split_file")
        if file is None:
            return
        try:
            parts = access.do("upload", saved_splits.read_split, dataset, file.getvalue(), file.name)
        except FsvizError as error:
            st.error(escape(error), icon="⚠️")
            return
        split = study.split_of(dataset, parts)
        counts = [len(split.on(side)) for side in SIDES]
        st.markdown(f"{counts[0]:,} train, {counts[1]:,} val and {counts[2]:,} test classes.")
        name = study.safe_stem(file.name)
        new_name = st.text_input("Name", value=name, key="imported_name")
        if access.can("save") and st.button("Save imported split", icon="💾", key="save_imported"):
            _save(dataset, split, new_name, {"mode": "file", "file": file.name})


def _saved(dataset: Dataset) -> None:
    names = saved_splits.saved_split_names(dataset.name)
    if not names:
        return
    with st.expander(f"Saved splits ({len(names):,})"):
        for name in names:
            line, button = st.columns([5, 1], vertical_alignment="center")
            line.markdown(
                f"**{escape(name)}**: {escape(study.describe_recipe(saved_splits.split_recipe(dataset.name, name)))}"
            )
            if access.can("delete") and button.button("Delete", key=f"delete_{name}", width="stretch"):
                access.do("delete", saved_splits.remove_split, dataset.name, name)
                st.rerun()
        access.show_denied("delete")
