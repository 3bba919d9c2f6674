"""The Taxonomy page: the graph of a split's classes, one class or a hand-made task in detail, the heat map."""

from __future__ import annotations

import numpy as np
import streamlit as st

from fsviz.figures import taxonomy as figures
from fsviz.records import PAD, ClassMap, Dataset
from fsviz.studies import semantic_sampling as study
from fsviz.taxonomy import DISTANCES, Dag, maps
from fsviz.ui.parts import cached, controls, shell
from fsviz.ui.parts.shell import plain

GRAPH = "taxonomy_graph"
PICKED = "classes"
FITS = 700  # nodes shown at first
HEAT_MOST = 180  # rows of the heat map; more classes are averaged in blocks


def show(dataset: Dataset) -> None:
    shell.needs(dataset, "taxonomy")
    split = shell.pick_split(dataset)
    distance, dag, backbone = controls.pick_distance(dataset)
    distances = cached.distances(dataset, split, distance, dag, backbone)
    names = controls.class_names(dataset, split)
    with st.sidebar:
        layout = st.segmented_control(
            "Layout", ["radial", "layered"], default="radial", required=True, key="layout", bind="query-params"
        )
    graph = cached.graph(dataset, split, dag)
    whole = cached.class_map(dataset, split, dag, None, "radial")
    _headline(whole, distances, names, distance)
    graph_column, side = shell.columns_if_wide("graph", [2, 1], gap="medium")
    with side:
        picked = _pick_classes(names)
    with graph_column:
        _graph(dataset, split, dag, layout, whole, picked, names)
    with side:
        _details(graph, distances, names, picked, distance, dataset.n_images is not None)
    _heat_map(dataset, split, dag, distances, names, distance)


def _headline(whole: ClassMap, distances: np.ndarray, names: list[str], distance: str) -> None:
    classes, concepts, close, typical = st.columns(4)
    classes.metric("Classes", f"{len(names):,}")
    concepts.metric(
        "Concepts above",
        f"{whole.n_nodes - len(names):,}",
        help=f"Concepts with one parent and one child are left out; {whole.n_nodes:,} nodes and "
        f"{whole.n_edges:,} is-a edges remain.",
    )
    pairs = distances[np.triu_indices(len(names), 1)]
    if len(pairs):
        nearest = int(pairs.argmin())
        a, b = (int(i[nearest]) for i in np.triu_indices(len(names), 1))
        close.metric(
            "Smallest distance",
            f"{pairs.min():.2f}",
            help=f"{plain(names[a])} and {plain(names[b])}; {int((pairs < pairs.min() + 1e-9).sum()):,} pairs are as "
            "close.",
        )
        typical.metric(
            "Median distance", f"{np.median(pairs):.2f}", help=f"{DISTANCES[distance].title}, over all pairs."
        )


def _pick_classes(names: list[str]) -> list[int]:
    """Places of the classes picked by name, by click or by link; those of another dataset or split are forgotten."""
    place = {name: i for i, name in enumerate(names)}
    if any(name not in place for name in st.session_state.get(PICKED, [])):
        st.session_state[PICKED] = [name for name in st.session_state[PICKED] if name in place]
    picked = st.multiselect(
        "Find classes, or click them in the graph",
        sorted(names, key=str.lower),
        key=PICKED,
        bind="query-params",
        placeholder="Type a class name",
        help="One class: its path, and its nearest and farthest classes. Several: a task with its coarsity.",
    )
    return [place[name] for name in picked]


def _graph(
    dataset: Dataset, split: str, dag: str, layout: str, whole: ClassMap, picked: list[int], names: list[str]
) -> None:
    per_depth = np.cumsum(np.bincount(whole.depth))
    start = max(1, int(np.searchsorted(per_depth, FITS, side="right")) - 1)
    if whole.deepest > 1:
        here = (dataset.name, split, dag)
        moved = st.session_state.get("_depth_of", here) != here  # another graph starts at its own depth
        st.session_state["_depth_of"] = here
        if moved or not 1 <= st.session_state.get("depth", 1) <= whole.deepest:
            st.session_state.pop("depth", None)
        deepest = st.sidebar.slider(
            "Depth shown",
            1,
            whole.deepest,
            min(start, whole.deepest),
            key="depth",
            bind="query-params",
            help="Concepts below this depth are folded into the squares, larger the more classes they hold. "
            "Classes you pick are always shown.",
        )
    else:
        deepest = whole.deepest
    graph = cached.class_map(dataset, split, dag, deepest, layout, tuple(picked))
    new = [p for p in picked if p not in st.session_state.get("_flown", ())]
    st.session_state["_flown"] = tuple(picked)
    by_click = st.session_state.pop("_by_click", False)
    if new and not by_click:
        st.session_state["_focus"] = new[-1]
    elif not picked or by_click:
        st.session_state.pop("_focus", None)
    focus = st.session_state.get("_focus")
    st.session_state["_drawn"] = (graph.class_position, graph.names, names)
    st.echarts_chart(
        figures.plot_class_map(graph, picked, None if focus is None else int(graph.shown_at[focus])),
        key=GRAPH,
        height=740,
        on_select=_clicked,
        alt=f"Graph of the {len(graph.shown_at)} classes of split {split} below their concepts",
    )
    hidden = whole.n_nodes - len(graph.names)
    st.caption(
        f"◆ green: the root, :red[●] red: the {len(whole.shown_at):,} classes, grey: concepts above them"
        + (f"; {hidden:,} nodes are folded into ▢ grey squares" if hidden else "")
        + ". Scroll to zoom, drag to move, click a class to add it to your task and again to take it out."
    )


def _clicked() -> None:
    """A click toggles a class of the task, or chooses a concept for the heat map."""
    groups = st.session_state[GRAPH].selection.selected
    indices = [i for group in groups if group["data_type"] != "edge" for i in group["data_indices"]]
    drawn = st.session_state.get("_drawn")
    if drawn is None:
        return
    class_position, node_names, names = drawn
    last = st.session_state.get("_last_click")
    node = indices[0] if indices else last  # clicking the same node again clears the chart's own selection
    st.session_state["_last_click"] = indices[0] if indices else None
    if node is None or not 0 <= node < len(node_names):
        return
    if class_position[node] == PAD:
        st.session_state["_concept"] = node_names[node]
        return
    picked = list(st.session_state.get(PICKED, []))
    name = names[class_position[node]]
    st.session_state[PICKED] = [n for n in picked if n != name] if name in picked else [*picked, name]
    st.session_state["_by_click"] = True


def _details(
    graph: Dag, distances: np.ndarray, names: list[str], picked: list[int], distance: str, counted: bool
) -> None:
    if not picked:
        st.caption(
            "Nothing is picked yet. A class in detail, for example the first of the split; pick your own above or in "
            "the graph."
        )
        _card(graph, distances, names, 0, counted)
        return
    if len(picked) >= 2:
        result = study.class_set(graph, distances, picked)
        with st.container(border=True):
            st.markdown(f"**Your task of {len(picked)} classes**")
            left, right = st.columns(2)
            left.metric(
                "Coarsity",
                f"{result.coarsity:.1f}" if result.coarsity >= 10 else f"{result.coarsity:.2f}",
                help=f"Mean squared {DISTANCES[distance].title} distance over its pairs of classes.",
            )
            right.metric(
                "Finer by chance",
                f"{result.share_finer:.0%}",
                help=f"Share of 2,000 uniformly drawn {len(picked)}-way tasks with a smaller coarsity.",
            )
            st.markdown(
                f"Lowest concept above all of them: **{plain(result.superordinate)}** "
                f"({result.superordinate_classes:,} of {len(names):,} classes)."
            )
        if len(picked) <= 12:
            chosen = np.array(picked)
            st.plotly_chart(
                figures.plot_task_distances(
                    distances[np.ix_(chosen, chosen)],
                    [names[p] for p in picked],
                    DISTANCES[distance].title,
                    float(distances.max()),
                ),
                key="task_distances",
            )
    _card(graph, distances, names, picked[-1], counted)


def _card(graph: Dag, distances: np.ndarray, names: list[str], position: int, counted: bool) -> None:
    card = maps.class_card(graph, distances, position)
    with st.container(border=True):
        st.markdown(f"**{plain(names[position])}**")
        if counted:
            st.caption(f"{card.n_images:,.0f} images")
        st.caption(" › ".join(plain(step) for step in card.path))
        for title, rows in (("Nearest", card.nearest), ("Farthest", card.farthest)):
            st.dataframe(
                {title: [names[i] for i, _ in rows], "distance": [round(value, 2) for _, value in rows]},
                hide_index=True,
                height="content",
                column_config={
                    title: st.column_config.TextColumn(width=110),
                    "distance": st.column_config.ProgressColumn(
                        "distance", format="%.2f", min_value=0.0, max_value=float(max(distances.max(), 1e-9)), width=85
                    ),
                },
            )


def _heat_map(dataset: Dataset, split: str, dag: str, distances: np.ndarray, names: list[str], distance: str) -> None:
    st.subheader("How far apart is every pair?", anchor=False)
    order, concepts = cached.class_order(dataset, split, dag), cached.concepts(dataset, split, dag)
    labels = list(concepts)
    wanted = st.session_state.pop("_concept", None)
    if wanted is not None:
        st.session_state["concept"] = next((c for c in labels if concepts[c][0] == wanted), labels[0])
    if st.session_state.get("concept", labels[0]) not in labels:
        st.session_state.pop("concept", None)
    chosen = st.selectbox(
        "Classes below",
        labels,
        key="concept",
        help="A concept of the taxonomy. Clicking a concept in the graph chooses it here too.",
    )
    inside = np.zeros(len(names), dtype=bool)
    inside[concepts[chosen][1]] = True
    order = order[inside[order]]
    block = distances[np.ix_(order, order)]
    shown = [names[i] for i in order]
    size = -(-len(order) // HEAT_MOST)
    if size > 1:
        block, shown = _averaged(block, shown, size)
    left, right = shell.columns_if_wide("pairs", [3, 2], gap="medium")
    left.plotly_chart(
        figures.plot_distance_map(block, shown, DISTANCES[distance].title, float(distances.max())),
        key="distance_map",
    )
    with right:
        _closest_pairs(distances, order, names)
    averaged = f" Each cell averages {size} x {size} classes; choose a smaller concept to see single pairs."
    st.caption(
        f"{len(order):,} classes in the order of the taxonomy, so relatives stand side by side: bright squares along "
        "the diagonal are families of classes that are close in meaning." + (averaged if size > 1 else "")
    )


def _closest_pairs(distances: np.ndarray, order: np.ndarray, names: list[str], n: int = 15) -> None:
    """The pairs a classifier may mistake most easily, if meaning shows in pictures."""
    first, second = np.triu_indices(len(order), 1)
    values = distances[order[first], order[second]]
    some = np.argpartition(values, min(n, len(values)) - 1)[:n]
    some = some[np.argsort(values[some], kind="stable")]
    st.markdown("**The closest pairs here**")
    st.dataframe(
        {
            "distance": [round(float(values[i]), 2) for i in some],
            "one": [names[order[first[i]]] for i in some],
            "other": [names[order[second[i]]] for i in some],
        },
        hide_index=True,
        height="content",
        column_config={
            "distance": st.column_config.NumberColumn("distance", format="%.2f", width=80),
            **{name: st.column_config.TextColumn(width=140) for name in ("one", "other")},  # both, however long
        },
    )
    ties = int((values <= values[some[-1]] + 1e-9).sum())
    if ties > n:
        st.caption(f"{ties:,} pairs are at most {values[some[-1]]:.2f} apart; {len(some)} of them are listed.")


def _averaged(block: np.ndarray, names: list[str], size: int) -> tuple[np.ndarray, list[str]]:
    starts = np.arange(0, len(names), size)
    sums = np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)
    counts = np.diff(np.append(starts, len(names)))
    labels = [f"{names[s]} … {names[min(s + size, len(names)) - 1]}" for s in starts.tolist()]
    return sums / np.outer(counts, counts), labels
