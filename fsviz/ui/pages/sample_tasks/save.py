"""Testbeds that are saved, downloaded or brought along."""

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
    st.subheader("Keep these tasks as a testbed", anchor=False)
    st.caption("A testbed is a saved, ordered list of tasks with the recipe that drew it: every method sees the same.")
    if st.session_state.get("keep") not in beds:
        st.session_state.pop("keep", None)
    which_column, rest = shell.responsive_columns("keep", [3, 8], vertical_alignment="bottom")
    start = list(beds).index("chosen") if "chosen" in beds else 0
    which = which_column.selectbox("Tasks", list(beds), index=start, format_func=titles.__getitem__, key="keep")
    recipe = recipes[which]
    deals = SAMPLERS[recipe.sampler].samples_images
    name = rest.text_input("Name", placeholder=recipe.name, key="testbed_name").strip() or recipe.name
    has_images = "n_shot" in recipe.settings or deals
    buttons = st.columns(4)
    access.show_denied("save")
    words: dict[str, Any] = {"type": "primary", "icon": "💾", "width": "stretch", "key": "save_testbed"}
    if access.can("save") and buttons[0].button("Save testbed", **words):
        try:
            testbed = draw.sample_testbed(classes.dataset, recipe, name=name, distances=classes.distances)
            saved, said = access.do("save", draw.save, testbed, number=name == recipe.name)
            st.success(f"{escape(said)} {len(testbed.tasks):,} tasks.", icon="✅")
            if testbed.tasks.has_images and classes.dataset.has_features:
                controls.link_to_evaluate(classes.dataset, saved, "Evaluate methods on this testbed")
        except FsvizError as error:
            st.error(escape(shell.with_setting_titles(error)), icon="⚠️")
    tasks = beds[which].tasks
    per_class = tasks.support.shape[2] + tasks.query.shape[2] if tasks.has_images else 0
    if not tasks.has_images:
        per_class = sum(recipe.settings.get(setting, 0) for setting in draw.IMAGE_SETTINGS)
    n_images = tasks.class_ids.size * per_class
    if n_images > access.limit("exported"):
        st.caption(f"🔒 {n_images:,} images are too many for a file that visitors of this shared server may ask for.")
    for column, kind in zip(buttons[1:] if n_images <= access.limit("exported") else (), testbeds.FORMATS):
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
                "parquet": "The native format: one row per task, the recipe inside.",
                "csv": "One row per image: task, variance (the coarsity), labels, image_id, support.",
                "json": "Paths of the support and query images of each task; needs images.",
            }[kind],
        )
    shell.command_popover(recipe.command(f"{name}.parquet"), "The same tasks from a terminal")


def _file(classes: Classes, recipe: Recipe, name: str, kind: str) -> bytes:
    testbed = draw.sample_testbed(classes.dataset, recipe, name=name, distances=classes.distances)
    return testbeds.export(testbed, classes.dataset, kind)


def show_import(dataset: Dataset, split: str) -> None:
    with st.expander("Bring a testbed of your own (CSV, JSON or Parquet)"):
        st.caption(
            "CSV with the columns task, variance, labels, image_id, support; JSON with Support and Query image paths; "
            "or a Parquet file saved here. Files of Bennequin et al. hold support rows only: queries are then drawn. "
            "Labels count through the classes of split "
            f"{escape(repr(split))}. Every row is checked."
        )
        uneven = st.checkbox("Allow tasks of different shapes (ways, shots)", key="uneven")
        file = st.file_uploader("Testbed file", ["csv", "json", "parquet"], key="testbed_file")
        if file is None:
            return
        bed = access.do("upload", testbeds.parse_testbed, file.getvalue(), file.name, dataset, split, uneven)
        images = "classes only" if not bed.tasks.has_images else "with images"
        st.success(
            f"{len(bed.tasks):,} tasks of {bed.tasks.n_way:,} classes, {images}: every row is in order.", icon="✅"
        )
        for note in bed.recipe.get("notes", ()):
            st.info(escape(note), icon="🎲")
        name = st.text_input("Keep it as", bed.name, key="bring_name")
        if st.button("Save in the workspace", key="save_brought", icon="💾"):
            path = access.do("save", testbeds.save_testbed, Testbed(name.strip(), bed.tasks, bed.recipe))
            st.success(f"Saved to {escape(path)}.", icon="✅")
