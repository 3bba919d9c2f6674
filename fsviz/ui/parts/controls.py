"""Controls that several pages share, each kept in the link."""

from __future__ import annotations

import streamlit as st

from fsviz import features, taxonomy
from fsviz.records import Dataset
from fsviz.studies import draw
from fsviz.ui.parts.shell import plain


def pick_distance(dataset: Dataset) -> tuple[str, str, str | None]:
    """Distance, paths of the taxonomy and backbone, in the sidebar; shared by the Taxonomy and Tasks pages."""
    possible = draw.possible_distances(dataset)
    if st.session_state.get("distance") not in possible:
        st.session_state.pop("distance", None)
    with st.sidebar:
        distance = st.selectbox(
            "Distance between classes",
            possible,
            key="distance",
            bind="query-params",
            help="\n\n".join(
                f"**{plain(name)}** ({plain(kind.title)}): {plain(kind.what)}"
                for name, kind in taxonomy.DISTANCES.items()
            ),
        )
        backbone = None
        if distance == "features":
            backbone = st.selectbox("Backbone", features.available(dataset), key="backbone", bind="query-params")
        dag = st.session_state.get("dag", "shortest_path")
        if dataset.taxonomy is not None:
            dag = st.selectbox(
                "Paths of the taxonomy",
                list(taxonomy.DAG_MODES),
                key="dag",
                bind="query-params",
                help="A concept may have several parents. The paper keeps the shortest path from the root to each "
                "class; with all paths, classes with several parents come a little closer.",
            )
        if dataset.n_images is None and taxonomy.DISTANCES[distance].by_counts:
            st.caption(
                f"How many images the classes of {plain(dataset.title)} have is not known here, so each counts as one: "
                "distances and coarsity differ from those of a paper that counts images."
            )
    return distance, dag, backbone


def class_names(dataset: Dataset, split: str) -> list[str]:
    """Names of a split's classes, made different where two classes share one."""
    table = dataset.classes.loc[dataset.split_class_ids(split)]
    names = table["class_name"].astype(str)
    twice = names.duplicated(keep=False)
    return names.where(~twice, names + " (" + table["node"].astype(str) + ")").tolist()


def pick_groups(dataset: Dataset) -> dict[str, bool]:
    """Whether copies and frames stay on one side of a task, asked where there are groups; {} where there are none."""
    if dataset.image_groups() is None:
        return {}
    setting = draw.KEEP_GROUPS
    kept = st.toggle(setting.title, True, key=setting.name, bind="query-params", help=setting.help)
    return {setting.name: bool(kept)}
