"""Page Confusion: the graph of classes, a pair in images, the heat map, comparisons, training classes."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.features.backbones import title_of
from fsviz.figures import confusion as figures
from fsviz.records import Dataset
from fsviz.records.graphs import ClassGraph
from fsviz.reports import graphs
from fsviz.studies import confusion as study
from fsviz.text import short_names, split_title
from fsviz.ui.pages.confusion import compare, pair, settings, training_classes
from fsviz.ui.pages.confusion.graph import find, find_errors
from fsviz.ui.parts import controls, export, links, page_links, selections, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.image_wall import strip_uri
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

GRAPH = "class_graph"
SELECTED = selections.KEY
TABLE, HEAT_MAP = "class_pairs", "likeness_map"
GRAPH_PX = 500
MAX_ROWS = 6  # pairs in the table next to the graph
MAX_PICTURES = 120  # classes of a graph whose hovers have pictures
PICTURE_PX = 56
TASK_CLASSES = 5  # classes of a new task around one class
MAX_DEFAULT_EDGES = 240  # more are a tangle
SECTIONS = ("Images", "Heat map", "Training classes")


def show(dataset: Dataset) -> None:
    if not study.possible_similarities(dataset):
        shell.require(dataset, "features")
    spec, sidebar = settings.pick_spec(dataset)
    first_screen, runs = st.container(), st.container()
    with sidebar:
        versus = compare.pick_versus(dataset, spec)
    with runs:
        errors, why_not = find_errors(spec)
        measured = find(spec)
        if measured is None:  # until the run is finished: a similarity that takes a moment
            spec = _fast_spec(spec)
        graph = measured or study.class_graph(spec)
        second = compare.second_graph(dataset, spec, versus) if versus else None
    clusters = cached_call(study.communities, graph)
    compared = None if second is None else cached_call(study.compare, graph, second)
    with sidebar:
        order = str(pick(study.PAIR_ORDER)) if errors is not None and graph.kind != "error" else "similarity"
        selected = _pick_classes(graph.row_names)
        n_edges = _pick_edges(graph)
    pairs = cached_call(study.ranked_pairs, graph, errors, order)
    _answer(dataset, spec, study.describe(graph, errors, order), graph, compared, is_preview=measured is None)
    current = _current_pair(pairs, selected)
    with first_screen:
        left, right = shell.responsive_columns("graph", [2, 1], gap="medium")
        with left:
            if compared is None:
                _draw(dataset, graph, clusters, n_edges, selected)
            else:
                compare.show(compared, [graph.row_names[position] for position in selected])
        with right:
            _side_panel(dataset, spec, graph, pairs, selected, current, order)
            if errors is not None:
                st.caption(f"Errors: {escape(errors.setting)}, at most ± {np.nanmax(errors.ci95):.1f} points.")
            elif why_not:
                st.caption(f"No errors on pairs: {escape(why_not)}")
    section = controls.pick_section("Section", SECTIONS, "Images")
    if section == "Images":
        pair.show(dataset, spec, int(graph.rows[current[0]]), int(graph.rows[current[1]]))
    elif section == "Heat map":
        _heat_map(graph, clusters)
    bipartite = training_classes.show(dataset, spec) if section == "Training classes" else None
    if section != "Training classes":
        links.drop_from_link(training_classes.PAIR.name)
    flags = [] if second is None else study.describe_versus(graph, second)
    _export(*(bipartite or (spec, graph)), None if bipartite else clusters, None if bipartite else pairs, flags)


PAGE = Page(
    slug="confusion",
    label="Confusion",
    icon="🔀",
    group="Why hard?",
    order=1,
    question="Which classes does the backbone confuse?",
    lead="Classes of {dataset}: errors on every pair, and overlap in feature space.",
    paper="Bontonou et al. (2020), section IV-B and figures 1 to 3",
    takes=("classes",),
    explains=("pair_confusion", "class_overlap", "neighbours", "distance:jiang_conrath"),
    keywords=("mix up", "overlap", "Louvain", "errors"),
    show=show,
)


def _fast_spec(spec: study.ConfusionRequest) -> study.ConfusionRequest:
    """The spec with a similarity that needs no run."""
    common = {name: spec[name] for name in ("dataset", "split", "backbone", "n_shot")}
    return cast(study.ConfusionRequest, common | {"likeness": "cosine"})


def _answer(
    dataset: Dataset,
    spec: study.ConfusionRequest,
    description: tuple[str, str],
    graph: ClassGraph,
    compared: study.SimilarityComparison | None,
    is_preview: bool,
) -> None:
    answer, more = description
    if compared is not None:
        answer, more = study.describe_comparison(compared), answer
    setting = split_title(spec["split"])
    more = f"{more} {setting[:1].upper()}{setting[1:]}"
    more += f", {title_of(graph.source)} features." if graph.source else "."
    if is_preview:
        more = f"Preview until the run below is finished. {more}"
    if "backbone" not in spec and not dataset.has_features:
        more += " No features: showing semantic distance. Add images or import features to measure errors and overlap."
    shell.answer(escape(answer), escape(more))


def _pick_edges(graph: ClassGraph) -> int:
    n_pairs = len(graph.edges()[2])
    if n_pairs < 2:
        return 1
    usual = max(1, min(n_pairs, round(1.5 * len(graph.rows)), MAX_DEFAULT_EDGES))
    setting = study.N_EDGES.with_(high=n_pairs, default=usual, typical=min(n_pairs, max(4 * usual, 10)))
    return int(pick(setting, as_slider=True, about=f"{graph.kind} {len(graph.rows)}"))


def _pick_classes(names: tuple[str, ...]) -> list[int]:
    """Positions of the one or two selected classes; those of another split are dropped."""
    position = {name: i for i, name in enumerate(names)}
    selections.pick_classes(names, 2)
    selected = controls.multiselect_classes(
        "Find classes",
        names,
        key=SELECTED,
        max_selections=2,
        placeholder="Type a class name",
        help="One class lists its neighbours, two show their images.",
    )
    return [position[name] for name in selected]


def _current_pair(pairs: pd.DataFrame, selected: list[int]) -> tuple[int, int]:
    """The two selected classes, one class and its first partner, or the first pair of all."""
    if len(selected) == 2:
        return selected[0], selected[1]
    partners = _partners(pairs, selected[0]) if selected else pairs
    if len(partners):
        return int(partners["i"].iloc[0]), int(partners["j"].iloc[0])
    return (selected[0], selected[0]) if selected else (0, 0)


def _partners(pairs: pd.DataFrame, position: int) -> pd.DataFrame:
    """The pairs with one class, in their order, this class first."""
    own = pairs[(pairs["i"] == position) | (pairs["j"] == position)]
    partner = np.where(own["i"] == position, own["j"], own["i"])
    return own.assign(i=position, j=partner)


def _neighbours(graph: ClassGraph, position: int) -> np.ndarray:
    """Positions of the classes with a known similarity to one class, the most similar first."""
    row = graph.weights[position]
    order = np.argsort(-np.nan_to_num(row, nan=-np.inf), kind="stable")
    return order[~np.isnan(row[order])]


def _draw(dataset: Dataset, graph: ClassGraph, clusters: np.ndarray, n_edges: int, selected: list[int]) -> None:
    names = graph.row_names
    chart, nodes, ends = figures.plot_class_graph(
        graph,
        cached_call(study.layout, graph, words="Computing the layout"),
        n_edges,
        clusters,
        selected,
        _pictures(dataset, graph),
    )
    values = {"node": [[names[position]] for position in nodes], "edge": [[names[a], names[b]] for a, b in ends]}
    export.graph(
        "Graph of classes",
        chart,
        key=GRAPH,
        height=GRAPH_PX,
        sets=Click(selections.CLASSES, values, clears=True),
        alt=f"Graph of {len(nodes)} classes with edges between similar ones",
    )
    hidden, n_pairs = len(names) - len(nodes), len(graph.edges()[2])
    n_clusters = np.bincount(clusters)
    st.caption(
        f"Edges: the {len(ends):,} most similar of {n_pairs:,} pairs; wider = more similar. Colour: cluster. Click an "
        "edge or a class." + (f" {hidden:,} classes without edges are hidden." if hidden else ""),
        help=f"Clusters: Louvain communities of this graph. {int((n_clusters == 1).sum()):,} classes are in none.",
    )


def _pictures(dataset: Dataset, graph: ClassGraph) -> dict[int, str]:
    """An image of each class and of its most similar classes, side by side, by the position of the class."""
    if not dataset.has_pixels or len(graph.rows) > MAX_PICTURES:
        return {}
    of_image = dataset.image_class_ids()
    first = {int(c): int(np.argmax(of_image == c)) for c in graph.rows if (of_image == c).any()}
    pictures = {}
    for position in range(len(graph.rows)):
        similar = [p for p in _neighbours(graph, position)[: figures.N_PARTNERS] if graph.weights[position, p] > 0]
        class_ids = [int(graph.rows[p]) for p in (position, *similar)]
        pictures[position] = strip_uri(dataset, [first[c] for c in class_ids if c in first], PICTURE_PX)
    return pictures


def _side_panel(
    dataset: Dataset,
    spec: study.ConfusionRequest,
    graph: ClassGraph,
    pairs: pd.DataFrame,
    selected: list[int],
    current: tuple[int, int],
    order: str,
) -> None:
    """The images of the current pair, a link to a task of it, and the first pairs of the order."""
    short = short_names(graph.row_names)
    a, b = (escape(short[position]) for position in current)
    if len(selected) == 1 and current[0] == current[1]:
        st.caption(f"No data: {a} never appears in a task with another class.")
        return
    is_error = order == "error" or graph.kind in ("error", "run")
    overlap = "Largest overlap" if graph.kind == "confusion" else "Most similar pair"
    title = {
        0: "Most confused pair" if is_error else overlap,
        1: f"Most confused with {a}" if is_error else f"Closest to {a}",
    }
    st.markdown(f"**{title.get(len(selected), 'Selected pair')}** · {_numbers(graph, pairs, current)}")
    pair.show_preview(dataset, spec, int(graph.rows[current[0]]), int(graph.rows[current[1]]))
    if not dataset.has_pixels:
        st.markdown(f"{a} and {b}")
    with st.container(horizontal=True, gap="medium"):
        if len(selected) == 1:
            near = _partners(pairs, current[0])["j"].tolist()[: TASK_CLASSES - 1]
            class_ids = [int(graph.rows[p]) for p in (current[0], *near)]
            label = "most confused" if is_error else "most similar"
            page_links.to_classes(dataset, class_ids, f"Create a task with its {label} classes")
        else:
            page_links.to_classes(dataset, [int(graph.rows[p]) for p in current], "Create a task from these classes")
    _pair_table(graph, pairs, current[0] if len(selected) == 1 else None, is_error)


def _numbers(graph: ClassGraph, pairs: pd.DataFrame, positions: tuple[int, int]) -> str:
    """The error and the similarity of a pair, with their ranks among all pairs."""
    rows = pairs[pairs["i"].isin(positions) & pairs["j"].isin(positions)]
    if rows.empty:
        return "No data: the two classes never appear in one task."
    row = rows.iloc[0]
    space = "" if graph.unit.startswith("%") or not graph.unit else " "
    similarity = f"{row['value']:.2f}{space}{escape(graph.unit)}, rank {int(row['value_rank']):,} of {len(pairs):,}"
    if np.isnan(row["error"]):
        return similarity
    return f"{row['error']:.1f}% errors, rank {int(row['error_rank']):,} of {len(pairs):,}; {similarity}"


def _pair_table(graph: ClassGraph, pairs: pd.DataFrame, position: int | None, is_error: bool) -> None:
    """The first pairs of all classes or of one; a row selects its pair."""
    short = short_names(graph.row_names)
    rows = (pairs if position is None else _partners(pairs, position))[:MAX_ROWS]
    title = "Most confused" if is_error else "Largest overlap" if graph.kind == "confusion" else "Most similar"
    st.markdown(f"**{title} pairs**" if position is None else f"**{title} with {escape(short[position])}**")
    columns: dict[str, Any] = {"a": [short[p] for p in rows["i"]]} if position is None else {}
    high = max(float(np.nanmax(graph.weights)), 1e-9) if rows["error"].isna().all() else None
    export.table(
        study.pair_table(graph.kind, high),
        {**rows[["value", "error"]], **columns, "b": [short[p] for p in rows["j"]]},
        key=TABLE,
        sets=Click(
            selections.CLASSES,
            [[graph.row_names[p], graph.row_names[q]] for p, q in zip(rows["i"], rows["j"], strict=True)],
        ),
        height=38 + 35 * len(rows),
    )


def _heat_map(graph: ClassGraph, clusters: np.ndarray) -> None:
    figure = figures.plot_similarity_map(graph, study.community_order(graph, clusters), clusters)
    export.chart("Heat map of class similarity", figure, key=HEAT_MAP, sets=_cell_click(graph))
    st.caption(
        f"{len(graph.rows):,} classes, ordered by cluster: bright blocks are groups of similar classes."
        + (" Click a cell for images." if len(graph.rows) <= figures.MAX_CLICKED else ""),
        help="Lines separate the clusters. Within a cluster, the class most similar to the others comes first.",
    )


def _cell_click(graph: ClassGraph) -> Click:
    return Click(selections.CLASSES, partial(_names_of, graph))


def _names_of(graph: ClassGraph, cell: Point) -> list[str] | None:
    """The names of the two classes of a cell of the heat map; None on the diagonal."""
    positions = [int(part) for part in str(cell.at(0)).split(",") if part.isascii() and part.isdecimal()]
    names = [graph.row_names[position] for position in positions if position < len(graph.row_names)]
    return names or None


def _export(
    spec: study.ConfusionRequest,
    graph: ClassGraph,
    clusters: np.ndarray | None,
    pairs: pd.DataFrame | None,
    flags: list[str],
) -> None:
    if shell.classroom():
        return
    st.divider()
    left, right = st.columns(2, gap="large")
    between = f"{spec['base']}-{spec['split']}" if graph.is_bipartite else spec["split"]
    with left:
        st.markdown("**Export graph**")
        with st.container(horizontal=True):
            for kind, label in (("graphml", "GraphML"), ("csv", "CSV")):
                st.download_button(
                    label,
                    data=partial(graphs.export, graph, kind, clusters, pairs),
                    file_name=f"{spec['dataset']}-{between}-{graph.kind}.{kind}",
                    key=f"download_{kind}",
                    on_click="ignore",
                    icon="⬇️",
                )
        also = "the clusters" if clusters is not None else "the split of each class"
        st.caption(f"All {len(graph.edges()[2]):,} pairs. GraphML opens in Gephi and includes {also}.")
    with right:
        shell.command_popover(study.command(spec, flags))
