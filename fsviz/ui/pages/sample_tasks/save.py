"""Saving, downloading and importing testbeds."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from fsviz.errors import FsvizError
from fsviz.records import Dataset, Testbed
from fsviz.sampling import SAMPLERS, testbeds
from fsviz.tasks import draw
from fsviz.tasks.draw import Recipe
from fsviz.ui.pages.sample_tasks.testbeds import Classes
from fsviz.ui.parts import access, controls, shell
from fsviz.ui.parts.shell import escape

MIME = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "json": "application/json"}


def show_save(classes: Classes, beds: dict[str, Testbed], titles: dict[str, str], recipes: dict[str, Recipe]) -> None:
    """Shows the buttons that save and download the tasks, and the command that samples them."""
    if st.session_state.get("keep") not in beds:
        st.session_state.pop("keep", None)
    start = list(beds).index("chosen") if "chosen" in beds else 0
    with st.popover("Save as testbed", icon="💾", key="save_tasks"):
        st.caption("A testbed fixes the tasks, so that every method sees the same ones.")
        bed_name = st.selectbox("Tasks", list(beds), index=start, format_func=titles.__getitem__, key="keep")
        name = _show_files(classes, beds, recipes, bed_name)
    shell.command_popover(recipes[bed_name].command(f"{name}.parquet"), "Command line")


def _show_files(classes: Classes, beds: dict[str, Testbed], recipes: dict[str, Recipe], bed_name: str) -> str:
    """Shows the name, the buttons that save and download the testbed; returns the name."""
    recipe = recipes[bed_name]
    name = st.text_input("Name", placeholder=recipe.name, key="testbed_name").strip() or recipe.name
    has_images = "n_shot" in recipe.settings or SAMPLERS[recipe.sampler].samples_images
    access.show_denied("save")
    button: dict[str, Any] = {"type": "primary", "icon": "💾", "width": "stretch", "key": "save_testbed"}
    if access.can("save") and st.button("Save testbed", **button):
        try:
            testbed = draw.sample_testbed(classes.dataset, recipe, name=name, distances=classes.distances)
            saved, message = access.do("save", draw.save, testbed, number=name == recipe.name)
            st.success(f"{escape(message)} {len(testbed.tasks):,} tasks.", icon="✅")
            if testbed.tasks.has_images and classes.dataset.has_features:
                controls.link_to_evaluate(classes.dataset, saved, "Evaluate on this testbed")
        except FsvizError as error:
            st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
    tasks = beds[bed_name].tasks
    per_class = tasks.support.shape[2] + tasks.query.shape[2] if tasks.has_images else 0
    if not tasks.has_images:
        per_class = sum(recipe.settings.get(setting, 0) for setting in draw.IMAGE_SETTINGS)
    n_images = tasks.class_ids.size * per_class
    if n_images > access.limit("exported"):
        st.caption(f"🔒 Too many images to download from this shared server: {n_images:,}.")
    formats = testbeds.FORMATS if n_images <= access.limit("exported") else ()
    for column, kind in zip(st.columns(3), formats, strict=False):
        column.download_button(
            kind.upper() if kind != "parquet" else "Parquet",
            partial(_file, classes, recipe, name, kind),
            file_name=f"{name}.{kind}",
            mime=MIME[kind],
            key=f"download_{kind}",
            on_click="ignore",
            icon="⬇️",
            width="stretch",
            disabled=kind == "json" and not has_images,
            help={
                "parquet": "One row per task, with the recipe.",
                "csv": "One row per image: task, variance (the coarsity), labels, image_id, support.",
                "json": "Paths of the support and query images of each task. Needs images.",
            }[kind],
        )
    return name


def _file(classes: Classes, recipe: Recipe, name: str, kind: str) -> bytes:
    testbed = draw.sample_testbed(classes.dataset, recipe, name=name, distances=classes.distances)
    return testbeds.export(testbed, classes.dataset, kind)


def show_import(dataset: Dataset, split: str) -> None:
    with st.expander("Import a testbed"):
        st.caption(
            f"CSV, JSON or Parquet. Labels refer to the classes of split {escape(repr(split))}.",
            help="CSV: columns task, variance, labels, image_id, support. JSON: paths of the Support and Query images. "
            "If a file has support rows only, queries are sampled.",
        )
        uneven = st.checkbox("Allow varying ways and shots", key="uneven")
        file = st.file_uploader("Testbed file", ["csv", "json", "parquet"], key="testbed_file")
        if file is None:
            return
        bed = access.do("upload", testbeds.parse_testbed, file.getvalue(), file.name, dataset, split, uneven)
        images = "with images" if bed.tasks.has_images else "classes only"
        st.success(f"{len(bed.tasks):,} tasks read: {bed.tasks.n_way:,} classes each, {images}.", icon="✅")
        for note in bed.recipe.get("notes", ()):
            st.info(escape(note), icon="🎲")
        name = st.text_input("Name", bed.name, key="bring_name")
        if st.button("Save testbed", key="save_brought", icon="💾"):
            path = access.do("save", testbeds.save_testbed, Testbed(name.strip(), bed.tasks, bed.recipe))
            st.success(f"Saved to {escape(path)}.", icon="✅")
