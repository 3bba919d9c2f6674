"""A page for a dataset without images here: its published results, and how to attach images."""

from __future__ import annotations

import streamlit as st

from fsviz import text
from fsviz.datasets import published_images, saved
from fsviz.datasets.catalog import ENTRIES
from fsviz.datasets.published import PUBLISHED, benchmark_title, published_benchmarks, published_table
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.ui.parts import export, shell
from fsviz.ui.parts.shell import escape


def stop_without(dataset: Dataset) -> None:
    """Stops the page for a dataset without images or features; shows published results and the next step."""
    if dataset.name not in ENTRIES or dataset.has_pixels or dataset.has_features:
        return
    command = text.code(published_images.command(dataset.name))
    st.info(
        f"**{escape(dataset.title)} has no images here.** Attach your copy, in folders named by class or WordNet id: "
        f"{command}. Classes, splits and taxonomy stay the same.",
        icon="🧩",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        shell.link_to_add_images("Attach images", shell.link(dataset, like=dataset.name))
        for name in _copies(dataset):
            shell.page_link("overview", escape(shell.dataset_title(name)), {"dataset": name}, icon="🖼️")
        shell.page_link("classes", "Classes", shell.link(dataset))
        shell.offer_demo(dataset)
    _published(dataset)
    st.stop()


def _copies(dataset: Dataset) -> list[str]:
    """The copy of this dataset that has images, if one was attached under the usual name."""
    try:
        return [name for name in saved.workspace_dataset_names() if name == f"my_{dataset.name}"]
    except FsvizError:
        return []


def _published(dataset: Dataset) -> None:
    benchmarks = published_benchmarks(dataset.name)
    st.subheader("Published results", anchor=False)
    if not benchmarks:
        st.caption("No paper that fsviz follows reports an accuracy for this dataset.")
        return
    pick = st.selectbox(
        "Table",
        benchmarks,
        format_func=lambda pair: f"{benchmark_title(pair[0])}, {pair[1]}",
        key="published_without_images",
    )
    table = published_table(*pick).drop(columns="fsviz_method").dropna(axis=1, how="all")
    sources = table.pop("source").dropna().unique().tolist()
    export.table(
        PUBLISHED,
        table.sort_values("accuracy", ascending=False, na_position="last") if "accuracy" in table else table,
    )
    quarters = " Q1 to Q4: quarters of the tasks, from fine-grained to coarse." if "Q1" in table else ""
    st.caption(f"From {escape('; '.join(map(str, sources)))}; not computed here.{quarters}")
