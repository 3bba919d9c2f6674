"""The page of class confusion: the graph of classes, one pair in images, the heat map, comparisons, base classes."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
import streamlit as st

from fsviz.figures import confusion as figures
from fsviz.records import Dataset, HeadlineNumber
from fsviz.records.graphs import ClassGraph
from fsviz.reports import graphs
from fsviz.studies import confusion as study
from fsviz.text import shorten
from fsviz.ui.pages.confusion import base, compare, pair, settings
from fsviz.ui.pages.confusion.graph import find
from fsviz.ui.parts import controls, export, links, page_links, selections, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import BY_TYPING, pick
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

GRAPH = "class_graph"
PICKED = selections.KEY
TABLE, HEAT_MAP = "class_pairs", "likeness_map"
NEIGHBOURS = 12
N_BUILT = 5  # classes of a task that is built around one
MOST_JOINED = 240  # pairs at first: of a thousand classes more would be one knot
SECTIONS = ("Images", "Heat map", "Compare", "Base classes")


def show(dataset: Dataset) -> None:
    if not study.possible_similarities(dataset):
        shell.require(dataset, "features")
    spec = settings.pick_spec(dataset)
    if "backbone" not in spec and not dataset.has_features:
        st.info(
            f"{escape(dataset.title)} has no features here, so its classes are compared by what they mean. "
            "To see which "
            "of them a backbone mixes up, add its images or import features on the page Add images.",
            icon="🧩",
        )
    measured = find(spec)
    if measured is None:  # it takes long: until it is done, what takes a moment
        spec = cast(
            study.ConfusionRequest,
            {name: spec[name] for name in ("dataset", "split", "backbone")} | {"likeness": "cosine"},
        )
        st.caption("Below, until then: how alike the classes are on average, by the cosine of their mean features.")
    graph = measured or study.class_graph(spec)
    found = cached_call(study.communities, graph)
    _headline(graph, found)
    picked = _graph_and_side(dataset, graph, found)
    section = controls.pick_section("What is behind it?", SECTIONS, "Images")
    if section == "Images":
        pair.show(dataset, spec, int(graph.rows[picked[0]]), int(graph.rows[picked[1]]))
    elif section == "Heat map":
        _heat_map(graph, found)
    more = compare.show(dataset, spec, graph) if section == "Compare" else []
    if section in ("Heat map", "Compare") and len(st.session_state.get(PICKED, [])) == 2:
        pair.show(dataset, spec, int(graph.rows[picked[0]]), int(graph.rows[picked[1]]))
    two = base.show(dataset, spec) if section == "Base classes" else None
    if section != "Base classes":
        links.drop_from_link(base.PAIR.name)
    _keep(*(two or (spec, graph)), None if two else found, more)


PAGE = Page(
    slug="confusion",
    label="Confusion",
    icon="🔀",
    group="Why hard?",
    order=1,
    question="Which classes does the backbone confuse?",
    lead="Classes of {dataset} that overlap in feature space.",
    paper="Bontonou et al. (2020), section IV-B and figures 1 to 3",
    takes=("classes",),
    explains=("pair_confusion", "class_overlap", "neighbours", "distance:jiang_conrath"),
    keywords=("mix up", "overlap", "Louvain"),
    show=show,
)


def _headline(graph: ClassGraph, found: np.ndarray) -> None:
    likeness = study.SIMILARITIES[graph.kind]
    i, j, weights = graph.edges()
    mean = study.mean(graph)
    digits = 2 if not mean.ci95 < 0.005 else 3
    has_interval = bool(np.isfinite(mean.ci95))
    a, b = graph.row_names[i[0]], graph.column_names[j[0]]
    counts = np.bincount(found)
    numbers = [
        HeadlineNumber.count(
            "classes",
            "Classes",
            len(graph.rows),
            help=f"{len(weights):,} pairs of classes, each with a number of its own.",
        ),
        HeadlineNumber.around(
            "mean",
            f"Mean {likeness.title[:1].lower()}{likeness.title[1:]}",
            mean.mean,
            mean.ci95,
            likeness.unit,
            "classes",
            digits=digits,
            help=f"Mean over {len(weights):,} pairs{' with its 95% interval over classes' * bool(has_interval)}. "
            f"{likeness.title}: {likeness.what}",
        ),
        HeadlineNumber(
            "most",
            "Most confused" if graph.kind == "confusion" else "Most alike",
            weights[0],
            unit=likeness.unit,
            digits=2,
            note=f"{shorten(a)} and {shorten(b)}",
        ),
        HeadlineNumber.count(
            "communities",
            "Communities of classes",
            int((counts > 1).sum()),
            help="Groups of classes that are more alike to each other than to the rest: Louvain's algorithm on this "
            f"graph, all its edges. {int((counts == 1).sum()):,} classes are in none.",
        ),
    ]
    show_numbers(numbers)


def _graph_and_side(dataset: Dataset, graph: ClassGraph, found: np.ndarray) -> tuple[int, int]:
    """The graph and what is picked in it; returns the positions of the two classes whose images are shown."""
    left, side = shell.responsive_columns("graph", [2.2, 1], gap="medium")
    n_pairs = len(graph.edges()[2])
    with side:
        usual = max(1, min(n_pairs, round(1.5 * len(graph.rows)), MOST_JOINED))
        shown = study.N_EDGES.with_(high=n_pairs, default=usual, typical=min(n_pairs, max(4 * usual, 10)))
        here = f"{graph.kind} {len(graph.rows)}"
        n_edges = pick(shown, as_slider=True, about=here) if n_pairs > 1 else 1
        names = graph.row_names
        picked = _pick_classes(names)
    with left:
        _draw(graph, found, n_edges, picked)
    i, j, _ = graph.edges(1)
    default = (int(i[0]), int(j[0]))
    with side:
        if len(picked) == 1:
            near = _neighbours(graph, picked[0])
            order = np.argsort(-np.nan_to_num(graph.weights[picked[0]], nan=-np.inf), kind="stable")[: N_BUILT - 1]
            ids = [int(graph.rows[p]) for p in (picked[0], *order) if p == picked[0] or graph.weights[picked[0], p] > 0]
            page_links.to_classes(
                dataset, ids, f"Build a task of {escape(names[picked[0]])} and what it is confused with"
            )
            return picked[0], near
        both = (picked[0], picked[1]) if len(picked) == 2 else default
        if not picked:
            st.caption("Nothing is picked yet, so this is the pair at the top. Click an edge or a class in the graph.")
        _pair_card(graph, both)
        label = f"Build a task of {escape(names[both[0]])} and {escape(names[both[1]])}"
        page_links.to_classes(dataset, [int(graph.rows[p]) for p in both], label)
    return both


def _pick_classes(names: tuple[str, ...]) -> list[int]:
    """Places of the one or two classes picked by name, by click or by link; those of another split are forgotten."""
    position = {name: i for i, name in enumerate(names)}
    selections.pick_classes(names, 2)
    picked = st.multiselect(
        "Find one class or two, or click the graph",
        sorted(names, key=str.lower),
        key=PICKED,
        max_selections=2,
        placeholder="Type a class name",
        **BY_TYPING,
        help="One class: what it is alike to. Two classes: their images and the communities they fell into.",
    )
    return [position[name] for name in picked]


def _draw(graph: ClassGraph, found: np.ndarray, n_edges: int, picked: list[int]) -> None:
    chart, nodes, ends = figures.plot_class_graph(
        graph, cached_call(study.layout, graph, words="Laying the graph out"), n_edges, found, picked
    )
    names = graph.row_names
    of_part = {"node": [[names[position]] for position in nodes], "edge": [[names[a], names[b]] for a, b in ends]}
    export.graph(
        "Graph of the classes",
        chart,
        key=GRAPH,
        height=620,
        sets=Click(selections.CLASSES, of_part, clears=True),
        alt=f"Graph of {len(nodes)} classes, joined where they are alike",
    )
    hidden, weights = len(names) - len(nodes), graph.edges()[2]
    st.caption(
        f"The {len(ends):,} most alike of {len(weights):,} pairs are joined, wider and redder the more alike; "
        "colours and shapes are communities of classes. Click an edge for its two classes, a class for its neighbours."
        + (" No other pair is alike at all." if (weights > 0).sum() == len(ends) < len(weights) else "")
        + (f" {hidden:,} classes without an edge are left out: show more edges to see them." if hidden else "")
    )


def _neighbours(graph: ClassGraph, position: int) -> int:
    """What a class is most alike to, as a table; returns the position of the first."""
    row = graph.weights[position]
    order = np.argsort(-np.nan_to_num(row, nan=-np.inf), kind="stable")
    order = order[~np.isnan(row[order])]
    if not len(order):  # it met no other class in a run
        return position
    st.markdown(f"**{escape(graph.row_names[position])}** is most alike to")
    near = [graph.row_names[p] for p in order[:NEIGHBOURS]]
    _bars(graph, {"a": near}, row[order[:NEIGHBOURS]], [[graph.row_names[position], name] for name in near])
    st.caption(f"{min(NEIGHBOURS, len(order)):,} of {len(order):,} classes; click a row for its pair.")
    return int(order[0])


def _pair_card(graph: ClassGraph, both: tuple[int, int]) -> None:
    """One pair, and where it stands among all."""
    i, j, weights = graph.edges()
    value = graph.weights[both]
    with st.container(border=True):
        st.markdown(f"**{escape(graph.row_names[both[0]])}** and **{escape(graph.row_names[both[1]])}**")
        if np.isnan(value):
            st.caption("These two have no number: they never met.")
            return
        above = int((weights > value).sum())
        st.markdown(
            f"{value:.2f} {study.SIMILARITIES[graph.kind].unit} · number {above + 1:,} of {len(weights):,} pairs"
        )
    n = min(NEIGHBOURS - 2, int((weights > 0).sum()) or len(weights))
    st.markdown("**The pairs at the top**")
    pairs = [[graph.row_names[a], graph.row_names[b]] for a, b in zip(i[:n], j[:n])]
    _bars(graph, {"a": [a for a, _ in pairs], "b": [b for _, b in pairs]}, weights[:n], pairs)


def _bars(graph: ClassGraph, names: dict[str, list[str]], values: np.ndarray, pairs: list[list[str]]) -> None:
    """A table with a bar in every row, which leads to a pair of classes."""
    high = max(float(np.nanmax(graph.weights)), 1e-9)
    export.table(
        study.pair_table(study.SIMILARITIES[graph.kind].unit, high),
        {"value": values, **names},
        key=TABLE,
        sets=Click(selections.CLASSES, pairs),
    )


def _heat_map(graph: ClassGraph, found: np.ndarray) -> None:
    figure = figures.plot_similarity_map(graph, study.community_order(graph, found), found)
    export.chart("Map of likeness", figure, key=HEAT_MAP, sets=Click(selections.CLASSES, partial(_names_of, graph)))
    st.caption(
        f"{len(graph.rows):,} classes, community by community (lines part them), and in each the class that is most "
        "alike to its fellows first. Bright squares along the diagonal are groups that are confused among themselves; "
        "bright cells beside them join two groups."
        + (" Click a cell for the images of its two classes." if len(graph.rows) <= figures.MAX_CLICKED else "")
    )


def _names_of(graph: ClassGraph, cell: Point) -> list[str] | None:
    """The names of the two classes of a cell of the heat map; None for one that is no pair."""
    places = [int(part) for part in str(cell.at(0)).split(",") if part.isascii() and part.isdecimal()]
    names = [graph.row_names[place] for place in places if place < len(graph.row_names)]
    return names or None


def _keep(spec: study.ConfusionRequest, graph: ClassGraph, found: np.ndarray | None, more: list[str]) -> None:
    if shell.classroom():
        return
    st.divider()
    left, right = st.columns(2, gap="large")
    between = f"{spec['base']}-{spec['split']}" if graph.is_bipartite else spec["split"]
    with left:
        st.markdown("**Keep this graph**")
        with st.container(horizontal=True):
            for kind, label in (("graphml", "GraphML"), ("csv", "CSV")):
                st.download_button(
                    label,
                    data=partial(graphs.export, graph, kind, found),
                    file_name=f"{spec['dataset']}-{between}-{graph.kind}.{kind}",
                    key=f"download_{kind}",
                    on_click="ignore",
                    icon="⬇️",
                )
        also = "the communities" if found is not None else "which classes are base and which novel"
        st.caption(f"All {len(graph.edges()[2]):,} pairs; GraphML has {also} too, for Gephi and its like.")
    with right:
        shell.command_popover(study.command(spec, more))
