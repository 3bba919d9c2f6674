"""A dataset without features: published results of the paper, and the next step."""

from __future__ import annotations

import streamlit as st

from fsviz.figures import support_sets as figures
from fsviz.records import Dataset
from fsviz.studies.support_sets import published
from fsviz.ui.parts import export, no_images, shell
from fsviz.ui.parts.shell import escape


def show(dataset: Dataset) -> None:
    """Shows published accuracies and stops the page with the next step."""
    table = published.published_accuracies(dataset.name, dataset.title)
    answer, more = published.describe_published(table, dataset.title)
    shell.answer(escape(answer), escape(f"{more} Not computed here: {dataset.title} has no features."))
    export.chart("Published accuracies with hard supports", figures.plot_published(table), key="published_hard")
    st.caption(
        "Printed in Basu et al. (2023). Hard supports on Meta-Dataset were searched with DINO ViT-S features.",
        help="Meta-Dataset: hard tasks of Hard-Meta-Dataset compared with random tasks of Meta-Dataset, not the same "
        "queries.",
    )
    no_images.stop_without(dataset)
    shell.require(dataset, "features")
