"""Filters of the page Images with the number of images of every choice, the order, and the view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import custom_task
from fsviz.datasets import filtering
from fsviz.datasets.filtering import ImageFilter
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import feature_map
from fsviz.text import short_names
from fsviz.ui.pages.images import orders
from fsviz.ui.pages.images.orders import Order
from fsviz.ui.parts import controls, image_runs, links, selections, shell
from fsviz.ui.parts.shell import escape

CONTEXTS = Setting("contexts", "Context", "Contexts whose images are shown.", "text", "")
BY = Setting("by", "Filter by attribute", "Attributes to filter images by.", "text", "")
LISTED = Setting("only", "Listed images", "Numbers of the only images to show, with dots between.", "text", "")
VIEW = Setting("view", "Show", "", "choice", "Images", choices={name: name for name in ("Images", "Classes")})
RUN = image_runs.RUN.with_(title="Predictions of a run", help="Filters queries by how the run classified them.")
OUTCOME = Setting("outcome", "Query images", "Over all tasks in which an image is a query.", "choice", "")


def pick(dataset: Dataset) -> tuple[ImageFilter, Order, str]:
    """Draws the filters in the sidebar; returns them with the order and the view."""
    n_of_split = filtering.facet_counts(dataset, ImageFilter(), "split")
    split = shell.pick_split(dataset, default="all", titles={name: f"{name} ({n:,})" for name, n in n_of_split.items()})
    with shell.side():
        class_place, context_place = st.container(), st.container()
        names = dataset.classes["class_name"].iloc[dataset.split_class_ids(split)].astype(str)
        options = list(dict.fromkeys(names))
        selections.pick_classes(options)
        contexts = list(filtering.facet_counts(dataset, ImageFilter(), "context")) if _has_contexts(dataset) else []
        if contexts:
            links.names_of(contexts, CONTEXTS.name)
        conditions = ImageFilter(
            split,
            _class_ids(dataset, st.session_state[selections.KEY]),
            st.session_state[CONTEXTS.name] if contexts else (),
        )
        conditions = replace(conditions, image_ids=_listed(dataset))
        conditions = replace(conditions, attributes=_pick_attributes(dataset, conditions))
        conditions, run = _pick_outcome(dataset, conditions)
        n_of_class = filtering.facet_counts(dataset, conditions, "class")
        with class_place:
            _multiselect("Class", options, selections.KEY, "All classes", n_of_class)
        if contexts:
            with context_place:
                n_of_context = filtering.facet_counts(dataset, conditions, "context")
                _multiselect(CONTEXTS.title, contexts, CONTEXTS.name, "All contexts", n_of_context)
        order = Order(filtering.SHUFFLED) if _is_hidden(orders.ORDER.name) else orders.pick(dataset, run)
        listed = _listed(dataset)
        if listed is not None and order.name == filtering.SHUFFLED:
            order = orders.as_listed(dataset, listed)
        view = controls.pick(VIEW, as_buttons=True)
    return conditions, order, view


def _has_contexts(dataset: Dataset) -> bool:
    return dataset.contexts is not None and dataset.images is not None and "context" in dataset.images


def _class_ids(dataset: Dataset, names: list[str]) -> list[int]:
    by_name = pd.Series(dataset.classes.index, index=dataset.classes["class_name"].astype(str))
    return by_name[by_name.index.isin(names)].tolist()


def _is_hidden(key: str) -> bool:
    """Whether a control is hidden in the classroom; one that was used, or is in the link, stays."""
    return shell.classroom() and key not in st.query_params and not st.session_state.get(key)


def _multiselect(
    title: str, options: list[str], key: str, placeholder: str, counts: Mapping[str, int] | None = None
) -> list[str]:
    """A multiselect whose options are followed by their numbers of images."""
    short = dict(zip(options, short_names(options), strict=True)) if key == selections.KEY else {}
    titles = {
        name: short.get(name, name) + ("" if counts is None else f" ({counts.get(name, 0):,})") for name in options
    }
    return st.multiselect(
        title,
        options,
        key=key,
        placeholder=placeholder,
        format_func=lambda name: titles.get(name, name),
        **controls.BY_TYPING,
    )


def _listed(dataset: Dataset) -> np.ndarray | None:
    """The only images that the link shows; None for all."""
    text = str(links.value_of(LISTED, LISTED.name, dataset.name))
    try:
        image_ids = [i for row in custom_task.images_in(text) for i in row]
    except FsvizError as error:
        shell.notice(str(error))
        image_ids = []
    image_ids = [i for i in image_ids if 0 <= i < len(dataset.image_class_ids())]
    return np.array(image_ids) if image_ids else None


def show_listed() -> None:
    """Shows that the link lists its images, with a button to all of them."""
    if text := str(st.session_state.get(LISTED.name) or ""):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.caption(f"Only the {text.count('.') + text.count(',') + 1:,} images of the link.", width="content")
            st.button("Show all images", icon="✖️", key="show_all_images", on_click=_show_all)


def _show_all() -> None:
    st.session_state[LISTED.name] = ""


def _pick_attributes(dataset: Dataset, conditions: ImageFilter) -> dict[str, Any]:
    """The filters by attribute: allowed values, or a range."""
    if not dataset.attributes or _is_hidden(BY.name):
        return {}
    links.names_of(list(dataset.attributes), BY.name)
    names = _multiselect(BY.title, list(dataset.attributes), BY.name, "none")
    return {name: _pick_values(dataset, name, conditions) for name in names}


def _pick_values(dataset: Dataset, name: str, conditions: ImageFilter) -> Any:
    """Allowed values of an attribute, in the link as with_NAME."""
    values = filtering.attribute_values(dataset, name)
    label, key = escape(name.replace("_", " ")), f"with_{name}"
    current = st.session_state.get(key)
    if isinstance(values, tuple):
        low, high = values
        if low == high:
            st.caption(f"{label} is {low:g} for all images")
            return (low, high)
        if current is not None and not (isinstance(current, tuple) and low <= current[0] <= current[1] <= high):
            st.session_state.pop(key)
        return st.slider(label, low, high, (low, high), key=key, bind="query-params")
    if current is not None and not (isinstance(current, list) and set(current) <= set(values)):
        st.session_state.pop(key)
    counts = filtering.facet_counts(dataset, conditions, name)
    titles = {value: f"{value} ({counts.get(value, 0):,})" for value in values}
    return st.multiselect(
        label,
        values,
        default=values[:1],
        key=key,
        bind="query-params",
        format_func=lambda value: str(value),
        help=" · ".join(map(escape, titles.values())),
        **controls.BY_TYPING,
    )


def _pick_outcome(dataset: Dataset, conditions: ImageFilter) -> tuple[ImageFilter, str]:
    """Adds a filter by how a run classified the images as queries, if there is a run; returns the run too."""
    runs = image_runs.methods(dataset)
    if not runs or _is_hidden(RUN.name):
        return conditions, ""
    run = str(controls.pick(RUN.with_(choices={"": "none", **runs}), about=dataset.name))
    if not run:
        links.drop_from_link(OUTCOME.name)
        return conditions, ""
    outcomes = feature_map.outcomes(image_runs.accuracy(dataset, run)[0])
    if conditions.image_ids is not None:
        outcomes = {title: np.intersect1d(image_ids, conditions.image_ids) for title, image_ids in outcomes.items()}
    choices = {
        title: f"{title} ({len(filtering.select_images(dataset, replace(conditions, image_ids=image_ids))):,})"
        for title, image_ids in outcomes.items()
    }
    default = "never correct"
    outcome = str(controls.pick(OUTCOME.with_(choices=choices, default=default), about=f"{dataset.name} {run}"))
    return replace(conditions, image_ids=outcomes[outcome]), run
