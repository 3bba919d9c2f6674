"""Fields that give images a context or an attribute of the user's own, and buttons that take it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from fsviz.datasets import filtering, labels
from fsviz.datasets.labels import CONTEXT
from fsviz.datasets.preview import pluralize
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.ui.parts import access, links
from fsviz.ui.parts.shell import escape

MAX_UNDO = 12  # labels with a button; `fsviz label` lists all


def show(dataset: Dataset, image_ids: Sequence[int], key: str) -> None:
    """Shows a popover that names these images, and the last label with a button that takes it back."""
    if not (labels.is_possible(dataset) and access.can("save")):
        return
    column_key, value_key = f"label_column_{key}", f"label_value_{key}"
    with st.popover("Name these images", icon="🏷️"):
        columns = [CONTEXT, *_categorical(dataset)]
        column = st.selectbox(
            "Kind",
            columns,
            key=column_key,
            accept_new_options=True,
            help="context, or the name of an attribute such as light. A new name makes a new attribute.",
        )
        st.selectbox(
            "Name",
            values_of(dataset, column or CONTEXT),
            index=None,
            key=value_key,
            accept_new_options=True,
            placeholder="such as hand",
        )
        st.button(
            f"Save for {escape(pluralize(len(image_ids), 'image'))}",
            type="primary",
            key=f"label_save_{key}",
            on_click=_save_selection,
            args=(dataset, tuple(image_ids), column_key, value_key),
        )
    show_undo(dataset, key, 1)


def show_undo(dataset: Dataset, key: str, most: int = MAX_UNDO) -> None:
    """Shows a button for each of the last labels that takes it back."""
    for label in labels.list_labels(dataset)[::-1][:most]:
        text = f"Undo {escape(label.column)} {escape(label.value)} ({escape(pluralize(label.n_images, 'image'))})"
        st.button(text, icon="↩️", key=f"undo_{key}_{label.number}", on_click=_undo, args=(dataset, label.number))


def values_of(dataset: Dataset, column: str) -> list[str]:
    """The values of a context or an attribute that images have already, the most frequent first."""
    if dataset.images is None or column not in dataset.images:
        return []
    if column == CONTEXT:
        return [str(name) for name in filtering.facet_counts(dataset, filtering.ImageFilter(), "context")]
    return [str(value) for value in dataset.images[column].dropna().value_counts().index]


def attempt(action: str, act: Callable[..., object], *arguments: object) -> bool:
    """Does this for a visitor who may; an error is shown on the next page. Returns whether it is done."""
    try:
        access.do(action, act, *arguments)
    except FsvizError as error:
        links.notice(str(error))
        return False
    return True


def _save_selection(dataset: Dataset, image_ids: tuple[int, ...], column_key: str, value_key: str) -> None:
    column, value = st.session_state.get(column_key) or CONTEXT, st.session_state.get(value_key) or ""
    if attempt("save", labels.add_label, dataset, image_ids, value, column):
        st.session_state[value_key] = None


def _undo(dataset: Dataset, number: int) -> None:
    attempt("save", labels.remove_label, dataset, number)


def _categorical(dataset: Dataset) -> list[str]:
    """Attributes with values rather than numbers."""
    assert dataset.images is not None
    return [name for name in dataset.attributes if name != CONTEXT and dataset.images[name].dtype == object]
