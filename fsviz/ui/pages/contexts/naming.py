"""Naming contexts: groups of similar images within each class, to be looked at and named."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.analyses import image_groups
from fsviz.analyses.image_groups import ImageGroup
from fsviz.datasets.preview import pluralize
from fsviz.records import Dataset
from fsviz.text import short_names
from fsviz.ui.parts import controls, labelling, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.image_wall import Tile, gallery
from fsviz.ui.parts.shell import escape

CLASSES_PER_PAGE = 4
N_TILES = 9
_UNDER_WAY = "_naming_contexts"


def is_under_way(dataset: Dataset) -> bool:
    """Whether the visitor has named contexts of this dataset: the page then stays here."""
    return st.session_state.get(_UNDER_WAY) == dataset.name


def show(dataset: Dataset, split: str) -> None:
    """Shows the groups of some classes with a field for the name of each; a name is saved at once."""
    backbone = controls.pick_backbone(shell.known_backbones(dataset), help="The network whose features are grouped.")
    with shell.side():
        n_groups = int(controls.pick(image_groups.N_GROUPS))
    class_ids = dataset.split_class_ids(split)
    n_images = int(dataset.classes["n_images"].iloc[class_ids].sum())
    contexts = dataset.contexts
    n_named = 0 if contexts is None else int(contexts.loc[contexts["class_id"].isin(class_ids), "n_images"].sum())
    shell.answer(
        f"{n_named:,} of {n_images:,} images have a context.",
        "Name the groups that share a surrounding, such as hand or shelf; each name is saved at once.",
    )
    page = _pick_page(-(-len(class_ids) // CLASSES_PER_PAGE))
    on_page = class_ids[(page - 1) * CLASSES_PER_PAGE : page * CLASSES_PER_PAGE]
    groups = cached_call(
        image_groups.propose, dataset, backbone, n_groups, tuple(map(int, on_page)), words="Grouping images", keep=64
    )
    names = short_names(dataset.distinct_names(np.arange(dataset.n_classes)))
    for position, group in enumerate(groups):
        _show_group(dataset, groups, position, names[group.class_id], f"{backbone}_{n_groups}_{page}_{position}")
    st.caption(
        f"Groups by k-means on the features of a class, {N_TILES} of each from typical to atypical. They may follow "
        "angle or light: leave these without a name.",
        help=f"{escape(backbone)} features at unit length. Single images get a name on the pages Images and Image map.",
    )
    with st.container(horizontal=True):
        labelling.show_undo(dataset, "naming")
    shell.command_popover(f"fsviz label {dataset.name} --propose contexts.csv --groups {n_groups}")


def _pick_page(n_pages: int) -> int:
    if n_pages < 2:
        return 1
    if not 1 <= int(st.session_state.get("naming_page") or 1) <= n_pages:
        st.session_state.pop("naming_page", None)
    return int(st.pagination(n_pages, key="naming_page", width="content"))


def _show_group(dataset: Dataset, groups: list[ImageGroup], position: int, name: str, key: str) -> None:
    """Shows images of a group and the field for its context."""
    group = groups[position]
    spread = np.unique(np.linspace(0, len(group.image_ids) - 1, N_TILES).round().astype(int))
    title, tiles, field = st.columns([2, 9, 3], vertical_alignment="center")
    title.markdown(f"**{escape(name)}** {group.number:d}  \n{escape(pluralize(len(group.image_ids), 'image'))}")
    with tiles:
        gallery(dataset, [Tile(int(i)) for i in group.image_ids[spread]], f"group_{dataset.name}_{key}", tile_px=64)
    field_key = f"context_{dataset.name}_{key}"
    if st.session_state.get(field_key) != (group.context or None):
        st.session_state[field_key] = group.context or None
    options = list(
        dict.fromkeys([*labelling.values_of(dataset, "context"), *([group.context] if group.context else [])])
    )
    field.selectbox(
        "Context",
        options,
        index=None,
        key=field_key,
        accept_new_options=True,
        placeholder="no name yet",
        label_visibility="collapsed",
        on_change=_name,
        args=(dataset, groups, position, field_key),
    )


def _name(dataset: Dataset, groups: list[ImageGroup], position: int, field_key: str) -> None:
    name = st.session_state.get(field_key)
    if name and labelling.attempt("save", image_groups.name_groups, dataset, groups, {position: name}):
        st.session_state[_UNDER_WAY] = dataset.name
