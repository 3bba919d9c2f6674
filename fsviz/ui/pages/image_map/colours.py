"""Colours of the points of the image map: an attribute, the accuracy in a run, or highlighted classes."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.features import maps
from fsviz.records import Colouring, Dataset
from fsviz.settings import Setting
from fsviz.studies import feature_map as study
from fsviz.ui.parts import controls, image_runs, links, selections
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape

COLOUR = Setting("colour", "Colour by", "", "choice", study.BY_CLASS)
RUN = image_runs.RUN.with_(help="The colour is how often each image is classified correctly.")


def pick(dataset: Dataset, backbone: str, default: str) -> tuple[str, str]:
    """The attribute that colours the points, and the run if it is one ("RUN/ENTRY")."""
    runs = image_runs.methods(dataset)
    choices = study.colours(dataset) | ({study.BY_RUN: "Accuracy in a run"} if runs else {})
    setting = COLOUR.with_(choices=choices, default=default)
    by = str(controls.pick(setting, about=f"{dataset.name} {backbone}"))
    if by != study.BY_RUN:
        links.drop_from_link(RUN.name)
        return by, ""
    return by, str(controls.pick(RUN.with_(choices=runs, default=next(iter(runs))), about=dataset.name))


def pick_classes(dataset: Dataset) -> list[int]:
    """The classes to highlight."""
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    selections.pick_classes(names, study.MAX_NAMES)
    picked = controls.multiselect_classes(
        "Highlight classes",
        names,
        key=selections.KEY,
        placeholder="none",
        max_selections=study.MAX_NAMES,
        help=f"Up to {study.MAX_NAMES} classes in colour, the rest in grey.",
    )
    position = {name: i for i, name in enumerate(names)}
    return [position[name] for name in picked]


def highlight(name: str) -> None:
    """Adds a class to the highlighted ones; the first gives way if there are too many."""
    st.session_state[selections.KEY] = [*st.session_state.get(selections.KEY, []), name][-study.MAX_NAMES :]


def colouring(dataset: Dataset, feature_map: maps.FeatureMap, by: str, run: str, class_ids: list[int]) -> Colouring:
    """The colours of the images on the map."""
    if class_ids or by != study.BY_RUN:
        by = study.BY_CLASS if class_ids else by
        words = "Colouring the map"
        return cached_call(study.map_colouring, dataset, feature_map, by, tuple(class_ids), words=words)
    accuracy, n_queries = image_runs.accuracy(dataset, run)
    was_query = n_queries > 0
    st.caption(
        f"Colour: how often each image is classified correctly in run {escape(run.rpartition('/')[0])}. "
        f"{int(was_query.sum()):,} images were queries, {n_queries[was_query].mean():.1f} times each on average."
    )
    return Colouring("correct", numbers=accuracy[feature_map.image_ids])
