"""The views of the page Classes: a sunburst or a graph of the concepts below one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from markupsafe import Markup

from fsviz.errors import FsvizError
from fsviz.figures import taxonomy as figures
from fsviz.records import PAD, Dataset
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.settings import Setting
from fsviz.taxonomy import Dag
from fsviz.taxonomy.everyday import everyday_groups
from fsviz.text import split_title
from fsviz.ui.pages.classes import pictures
from fsviz.ui.parts import caching, controls, export, links, selections
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.shell import escape

GRAPH = "taxonomy_graph"
FEW = 60  # classes whose whole graph is legible; larger splits open as a sunburst
AT = Setting("at", "Concept", "The concept at the root of the view.", "choice", "")
LAYOUT = Setting(
    "layout",
    "View",
    "The sunburst shows the levels below one concept; graphs also show classes with several parents.",
    "choice",
    "rings",
    choices={"rings": "Sunburst", "radial": "Radial graph", "layered": "Tree"},
)


@dataclass(frozen=True)
class View:
    """The concept `at` of the tree of a split, and the names of all classes of the split."""

    dataset: Dataset
    split: str
    dag: str
    tree: ConceptTree
    at: int
    names: list[str]

    @property
    def at_id(self) -> str:
        return self.tree.ids[self.at]


def pick_layout(dataset: Dataset, split: str, n_classes: int) -> str:
    """The kind of the view; few classes have room in a graph."""
    default = "radial" if n_classes <= FEW else "rings"
    return str(controls.pick(LAYOUT.with_(default=default), about=f"{dataset.name} {split}"))


def show(view: View, layout: str, selected: list[int], settings: Any) -> None:
    """Shows the view below its breadcrumbs; its own settings are drawn in the container `settings`."""
    if view.at:
        _breadcrumbs(view.tree, view.at)
    if layout == "rings":
        links.drop_from_link("depth")
        _sunburst(view, selected)
    else:
        _graph(view, layout, selected, settings)


# The concept at the root of the view


def pick_concept(tree: ConceptTree, here: str) -> int:
    """The node at the root of the view, by default that of the taxonomy; kept in the link by its id."""
    concepts = {tree.ids[v]: tree.names[v] for v in range(len(tree.ids)) if tree.n_nodes[v] > 1 or v == 0}
    setting = AT.with_(choices=concepts, default=tree.ids[0])
    return tree.ids.index(str(links.value_of(setting, AT.name, here)))


def _zoom_to(node_id: str) -> None:
    st.session_state[AT.name] = node_id


def _breadcrumbs(tree: ConceptTree, at: int) -> None:
    """Shows the path to the current concept; a click on a step goes back to it."""
    path = tree.path_to(at)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="way_back"):
        for v in path[:-1]:
            label = f"All {tree.n_classes[0]:,} classes" if v == 0 else escape(tree.names[v])
            icon = "⬅️" if v == 0 else None
            st.button(label, key=f"back_{tree.ids[v]}", icon=icon, on_click=_zoom_to, args=(tree.ids[v],))
            st.markdown("›", width="content")
        st.markdown(f"**{escape(tree.names[at])}** · {tree.n_classes[at]:,} classes", width="content")


def _groups(view: View) -> list[str]:
    """The group of every class of the split; [] if the taxonomy does not hold them all."""
    try:
        class_ids = view.dataset.split_class_ids(view.split)
        return caching.cached_call(_everyday_groups, view.dataset, tuple(class_ids.tolist()))
    except FsvizError:
        return []


def _everyday_groups(dataset: Dataset, class_ids: tuple[int, ...]) -> list[str]:
    return everyday_groups(dataset, np.array(class_ids), figures.N_GROUPS)


def _sunburst(view: View, selected: list[int]) -> None:
    tree, at = view.tree, view.at
    levels = min(figures.RINGS, tree.levels_that_fit(at, figures.SECTORS))
    tooltips = None
    if view.dataset.has_pixels:
        classes_at = {int(v): _classes_below(tree, int(v)) for v in tree.part(at, levels)}
        tooltips = pictures.tooltips(view.dataset, view.split, classes_at)
    marks = [_mark(view, v) for v in figures.sunburst_order(tree, at, levels)]
    groups = _groups(view)
    _draw(
        figures.plot_concept_sunburst(tree, at, levels, selected, tooltips, groups),
        [None, *marks],  # a chart of a tree counts a root of its own
        f"rings {view.dataset.name} {view.split} {tree.ids[at]}",
        f"Sunburst of the concepts below {tree.names[at]}",
    )
    _legend(groups, _classes_below(tree, at))
    st.caption(
        f"{levels:,} levels below **{escape(tree.names[at])}**. Angle: number of classes; ▸ has more levels. "
        "Click a concept to zoom, the centre to go back, a class to select it."
    )


def _mark(view: View, v: int) -> tuple[str, str]:
    """The concept or the class that a click on a sector selects; the centre leads to the concept above."""
    tree, position = view.tree, int(view.tree.class_position[v])
    name = view.names[position] if position != PAD else ""
    if v == view.at:
        return tree.ids[int(tree.parents[v])] if tree.parents[v] >= 0 else "", name
    return tree.ids[v] if tree.n_nodes[v] > 1 else "", name


def _legend(groups: list[str], positions: list[int]) -> None:
    """Names the colours of the groups of these classes, if there are several."""
    here = {groups[p] for p in positions} if groups else set()
    if len(here) < 2:
        return
    marks = [
        Markup('<span style="white-space:nowrap"><span style="color:{}">■</span> {}</span>').format(colour, name)
        for name, colour in figures.group_colours(groups).items()
        if name in here
    ]
    st.html(
        Markup('<div style="font-size:.84rem;display:flex;flex-wrap:wrap;gap:.1rem .9rem">{}</div>').format(
            Markup("").join(marks)
        )
    )


def _classes_below(tree: ConceptTree, v: int) -> list[int]:
    inside = tree.class_position[v : v + int(tree.n_nodes[v])]
    return inside[inside != PAD].tolist()


def _graph(view: View, layout: str, selected: list[int], settings: Any) -> None:
    dataset, split, dag, at_id = view.dataset, view.split, view.dag, view.at_id
    subgraph, positions = caching.part(dataset, split, dag, at_id)
    index_of = {int(p): i for i, p in enumerate(positions)}
    revealed = tuple(index_of[p] for p in selected if p in index_of)
    full_graph = caching.class_map(dataset, split, dag, at_id, None, layout)
    depth = full_graph.deepest
    if depth > 1:
        fits = caching.levels_that_fit(dataset, split, dag, at_id, figures.ENDS[layout])
        depth_setting = Setting(
            "depth",
            "Depth",
            "Concepts below this depth collapse into squares, sized by their number of classes. Selected classes are "
            "always shown.",
            "int",
            min(fits, depth),
            low=1,
            high=depth,
        )
        depth = controls.pick(depth_setting, settings, as_slider=True, about=f"{dataset.name} {split} {dag} {at_id}")
    graph = caching.class_map(dataset, split, dag, at_id, depth, layout, revealed)
    tooltips, thumbnails = _images_of_nodes(view, graph, positions)
    ids = _ids_of(graph, subgraph, {view.tree.ids[v] for v in range(len(view.tree.ids)) if view.tree.n_nodes[v] > 1})
    marks = [
        ("", view.names[positions[c]]) if c != PAD else (node_id if v else "", "")
        for v, (c, node_id) in enumerate(zip(graph.class_position.tolist(), ids, strict=True))
    ]
    groups = _groups(view)
    _draw(
        figures.plot_class_map(graph, revealed, tooltips, [groups[p] for p in positions] if groups else (), thumbnails),
        marks,
        f"{layout} {dataset.name} {split} {at_id}",
        f"Graph of the {len(graph.shown_at)} classes of {split_title(split)} below their concepts",
    )
    hidden = full_graph.n_nodes - len(graph.names)
    st.caption(
        f"{len(full_graph.shown_at):,} classes, {caching.n_concepts(dataset, split, dag, at_id):,} concepts (grey)."
        + (f" Grey squares: {hidden:,} collapsed nodes." if hidden else "")
        + " Click a concept to zoom, a class to select it.",
        help=f"{full_graph.n_nodes:,} nodes and {full_graph.n_edges:,} is-a edges, single-child chains collapsed. "
        "Scroll to zoom, which reveals hidden names; drag to move; ↻ resets the view.",
    )


def _images_of_nodes(
    view: View, graph: ClassMap, positions: np.ndarray
) -> tuple[dict[int, str] | None, dict[int, str] | None]:
    """Tooltips of all nodes, and thumbnails of classes if there is room for them."""
    if not view.dataset.has_pixels:
        return None, None
    classes_at: dict[int, list[int]] = {}
    for i, v in enumerate(graph.shown_at.tolist()):
        classes_at.setdefault(int(v), []).append(int(positions[i]))
    tooltips = pictures.tooltips(view.dataset, view.split, classes_at)
    leaves = [v for v in range(len(graph.names)) if graph.class_position[v] != PAD]
    if len(leaves) > FEW:
        return tooltips, None
    of_leaves = [int(positions[graph.class_position[v]]) for v in leaves]
    sources = pictures.first_images(view.dataset, view.split, of_leaves, round(1.5 * figures.THUMBNAIL))
    return tooltips, {v: source for v, source in zip(leaves, sources, strict=True) if source}


def _ids_of(graph: ClassMap, subgraph: Dag, concepts: set[str]) -> list[str]:
    """The id of every drawn node that a click can open, "" for the others; names are not unique, ids are."""
    by_name: dict[str, list[str]] = {}
    for node_id, name in zip(subgraph.nodes, subgraph.names, strict=True):
        by_name.setdefault(name, []).append(node_id)
    return [next((i for i in by_name.get(name, ()) if i in concepts), "") for name in graph.names]


def _draw(option: dict[str, Any], marks: Sequence[tuple[str, str] | None], key: str, alt: str) -> None:
    """Shows the view under a key of its concept: a chart keeps its selection by position.

    marks  (concept, class) of each mark
    """
    with st.container(key=GRAPH):
        export.graph(
            "Taxonomy", option, key=key, height=figures.HEIGHT, sets=Click(_select, marks, repeats=True), alt=alt
        )


def _select(mark: tuple[str, str]) -> None:
    """Zooms into a concept, or toggles a class of the task."""
    concept, name = mark
    if concept:
        _zoom_to(concept)
    elif name:
        before = list(st.session_state.get(selections.KEY, []))
        select([n for n in before if n != name] if name in before else [*before, name])


def select(names: Iterable[str]) -> None:
    """Selects these classes of the task."""
    st.session_state[selections.KEY] = list(dict.fromkeys(names))
