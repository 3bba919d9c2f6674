"""The page Classes: a sunburst or graph of a split's concepts, a class or a selected task in detail, all distances.

Every choice is in the link: the concept at the root of the view (`at`) and the classes of the task (`classes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import semantic_sampling as study
from fsviz.analyses.semantic_sampling import CLASS_PAIRS
from fsviz.figures import taxonomy as figures
from fsviz.records import PAD, Dataset, HeadlineNumber
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.settings import Setting, to_args
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES, Dag, maps
from fsviz.text import split_title
from fsviz.ui.parts import caching, controls, export, links, page_links, selections, shell
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.headline import show_numbers
from fsviz.ui.parts.hover import answer_cells
from fsviz.ui.parts.image_wall import Row, Tile, gallery, task_rows, thumbnail_uri
from fsviz.ui.parts.page import Page
from fsviz.ui.parts.shell import escape

GRAPH = "taxonomy_graph"
PICKED = selections.KEY
FEW = 60  # classes whose whole graph is legible; larger splits open as a sunburst
HEAT_MAX = 180  # rows of the heat map; more classes are averaged in blocks
N_BUILT = 5  # classes of a task that is created from a class and its nearest
N_CARD, N_ROW, N_HOVER = 6, 5, 3  # images on a class's card, in its row of the task, in a tooltip
_PX = 60
PICTURES = {
    "rings": "Sunburst",
    "radial": "Radial graph",
    "layered": "Tree",
}
AT = Setting("at", "Concept", "The concept at the root of the view.", "choice", "")
LAYOUT = Setting(
    "layout",
    "View",
    "The sunburst shows the levels below one concept; graphs also show classes with several parents.",
    "choice",
    "rings",
    choices=PICTURES,
)


def show(dataset: Dataset) -> None:
    if dataset.taxonomy is None:
        for note in dataset.notes:
            st.markdown(escape(note))
    shell.require(dataset, "taxonomy")
    split = shell.pick_split(dataset)
    distance, dag, backbone = controls.pick_distance(dataset)
    requested = {"split": split, "distance": distance, "dag": dag, **({"backbone": backbone} if backbone else {})}
    export.command("distances", dataset.name, *to_args(requested, draw.SETTINGS))
    distances = caching.distances(dataset, split, distance, dag, backbone)
    names = controls.class_names(dataset, split)
    here = f"{dataset.name} {split} {dag}"
    default = "radial" if len(names) <= FEW else "rings"
    layout = controls.pick(LAYOUT.with_(default=default), shell.side(), about=f"{dataset.name} {split}")
    graph, tree = caching.graph(dataset, split, dag), caching.concept_tree(dataset, split, dag)
    at = _pick_concept(tree, here)
    _headline(caching.class_map(dataset, split, dag, tree.ids[0], None, "radial"), distances, names, distance)
    left, right = shell.responsive_columns("graph", [2, 1], gap="medium")
    with right:
        picked = _pick_classes(names)
    with left:
        _breadcrumbs(tree, at)
        if layout == "rings":
            links.drop_from_link("depth")
            _rings(dataset, split, tree, at, picked, names)
        else:
            _graph(dataset, split, dag, layout, tree, at, picked, names)
    with right:
        _details(dataset, split, graph, distances, names, picked, distance)
    _heat_map(dataset, split, dag, tree, at, distances, names, distance)


PAGE = Page(
    slug="classes",
    label="Classes",
    icon="🌳",
    group="Data",
    order=2,
    question="Which classes are close in meaning?",
    lead="The taxonomy of {dataset} and the semantic distance between any two classes.",
    paper="Bennequin et al. (2022), figures 2 and 4",
    needs=("taxonomy",),
    takes=("classes",),
    explains=("distances", "coarsity"),
    keywords=("hierarchy", "WordNet", "synonyms", "taxonomy"),
    show=show,
)


def _headline(graph: ClassMap, distances: np.ndarray, names: list[str], distance: str) -> None:
    numbers: list[HeadlineNumber | None] = [
        HeadlineNumber.count("classes", "Classes", len(names)),
        HeadlineNumber.count(
            "concepts",
            "Concepts",
            graph.n_nodes - len(names),
            help=f"{graph.n_nodes:,} nodes and {graph.n_edges:,} is-a edges, single-child chains collapsed.",
        ),
        None,
        None,
    ]
    pairs = distances[np.triu_indices(len(names), 1)]
    if len(pairs):
        a, b = (int(i[int(pairs.argmin())]) for i in np.triu_indices(len(names), 1))
        ties = int((pairs < pairs.min() + 1e-9).sum())
        numbers[2:] = [
            HeadlineNumber(
                "smallest",
                "Smallest distance",
                pairs.min(),
                unit="",
                digits=2,
                help=f"{names[a]} and {names[b]}." + (f" {ties:,} pairs are this close." if ties > 1 else ""),
            ),
            HeadlineNumber(
                "median",
                "Median distance",
                float(np.median(pairs)),
                unit="",
                digits=2,
                help=f"{DISTANCES[distance].title}, over all pairs.",
            ),
        ]
    show_numbers(numbers)


def _pick_classes(names: list[str]) -> list[int]:
    """Positions of the classes selected by name, by click or by link."""
    index_of = {name: i for i, name in enumerate(names)}
    selections.pick_classes(names)
    picked = st.multiselect(
        "Find a class",
        sorted(names, key=str.lower),
        key=PICKED,
        placeholder="Type a class name",
        **controls.BY_TYPING,
        help="One class shows its neighbours; several form a task.",
    )
    return [index_of[name] for name in picked]


# The concept at the root of the view


def _pick_concept(tree: ConceptTree, here: str) -> int:
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


def _rings(dataset: Dataset, split: str, tree: ConceptTree, at: int, picked: list[int], names: list[str]) -> None:
    levels = min(figures.RINGS, tree.levels_that_fit(at, figures.SECTORS))
    shown = tree.part(at, levels)
    tooltips = (
        _tooltips(dataset, split, {int(v): _classes_of(tree, int(v)) for v in shown}) if dataset.has_pixels else None
    )
    above = int(tree.parents[at])
    marks = [
        (tree.ids[above] if v == at and above >= 0 else "" if v == at else tree.ids[v], names[c] if c != PAD else "")
        if tree.n_nodes[v] > 1 or v == at
        else ("", names[c])
        for v, c in zip(shown.tolist(), tree.class_position[shown].tolist(), strict=True)
    ]
    _draw(
        figures.plot_concept_sunburst(tree, at, levels, picked, tooltips),
        [None, *marks],  # a chart of a tree counts a root of its own
        f"rings {dataset.name} {split} {tree.ids[at]}",
        f"Sunburst of the concepts below {tree.names[at]}",
    )
    st.caption(
        f"{levels:,} levels below **{escape(tree.names[at])}**. Angle: number of classes; ▸ has more levels. "
        "Click a concept to zoom, the centre to go back, a class to select it."
    )


def _graph(
    dataset: Dataset,
    split: str,
    dag: str,
    layout: str,
    tree: ConceptTree,
    at: int,
    picked: list[int],
    names: list[str],
) -> None:
    at_id = tree.ids[at]
    subgraph, positions = caching.part(dataset, split, dag, at_id)
    index_of = {int(p): i for i, p in enumerate(positions)}
    revealed = tuple(index_of[p] for p in picked if p in index_of)
    fits = caching.levels_that_fit(dataset, split, dag, at_id, figures.ENDS[layout])
    full_graph = caching.class_map(dataset, split, dag, at_id, None, layout)
    deepest = full_graph.deepest
    if deepest > 1:
        setting = Setting(
            "depth",
            "Depth shown",
            "Concepts below this depth collapse into squares, sized by their number of classes. Selected classes are "
            "always shown.",
            "int",
            min(fits, deepest),
            low=1,
            high=deepest,
        )
        deepest = controls.pick(setting, shell.side(), as_slider=True, about=f"{dataset.name} {split} {dag} {at_id}")
    graph = caching.class_map(dataset, split, dag, at_id, deepest, layout, revealed)
    tooltips = None
    if dataset.has_pixels:
        held: dict[int, list[int]] = {}
        for i, v in enumerate(graph.shown_at.tolist()):
            held.setdefault(int(v), []).append(int(positions[i]))
        tooltips = _tooltips(dataset, split, held)
    concepts = {tree.ids[v] for v in range(len(tree.ids)) if tree.n_nodes[v] > 1}
    ids = _ids_of(graph, subgraph, concepts)
    marks = [
        ("", names[positions[c]]) if c != PAD else (node_id if v else "", "")
        for v, (c, node_id) in enumerate(zip(graph.class_position.tolist(), ids, strict=True))
    ]
    _draw(
        figures.plot_class_map(graph, revealed, tooltips),
        marks,
        f"{layout} {dataset.name} {split} {at_id}",
        f"Graph of the {len(graph.shown_at)} classes of {split_title(split)} below their concepts",
    )
    hidden = full_graph.n_nodes - len(graph.names)
    st.caption(
        f":green[◆] root · :red[●] {len(full_graph.shown_at):,} classes · other dots: concepts. "
        + (f"Grey squares: {hidden:,} collapsed nodes. " if hidden else "")
        + "Click a concept to zoom, a class to select it.",
        help="Scroll to zoom, drag to move; ↻ resets the view.",
    )


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
        export.graph("Taxonomy", option, key=key, height=730, sets=Click(_select, marks, repeats=True), alt=alt)


def _select(mark: tuple[str, str]) -> None:
    """Zooms into a concept, or toggles a class of the task."""
    concept, name = mark
    if concept:
        _zoom_to(concept)
    elif name:
        picked = list(st.session_state.get(PICKED, []))
        _pick([n for n in picked if n != name] if name in picked else [*picked, name])


# Images


def _classes_of(tree: ConceptTree, v: int) -> list[int]:
    inside = tree.class_position[v : v + int(tree.n_nodes[v])]
    return inside[inside != PAD].tolist()


@caching.cache_data(most=24)
def _images_of(dataset: Dataset, split: str) -> list[np.ndarray]:
    """The image_ids of every class of a split, in their order."""
    class_ids = dataset.image_class_ids()
    order = np.argsort(class_ids, kind="stable")
    cuts = np.searchsorted(class_ids[order], np.arange(dataset.n_classes + 1))
    return [order[cuts[c] : cuts[c + 1]] for c in dataset.split_class_ids(split)]


def _tooltips(dataset: Dataset, split: str, held: dict[int, list[int]]) -> dict[int, str]:
    """node -> HTML of images of some of its classes, for its tooltip."""
    images = _images_of(dataset, split)
    tooltips = {}
    for node, positions in held.items():
        some = positions[:: max(1, len(positions) // N_HOVER)][:N_HOVER]
        ids = [int(images[p][0]) for p in some if len(images[p])]
        if len(some) == 1:  # a single class: several images of it
            ids = images[some[0]][:N_HOVER].tolist()
        tooltips[node] = "<br>" + "".join(_picture(dataset, image_id) for image_id in ids) if ids else ""
    return tooltips


def _picture(dataset: Dataset, image_id: int) -> str:
    source = thumbnail_uri(dataset, image_id, _PX)
    if not source:
        return ""
    return f'<img src="{source}" width="{_PX}" height="{_PX}" style="margin:4px 4px 0 0;border-radius:6px" alt="">'


# The selection


def _details(
    dataset: Dataset,
    split: str,
    graph: Dag,
    distances: np.ndarray,
    names: list[str],
    picked: list[int],
    distance: str,
) -> None:
    if not picked:
        st.caption("Example class. Select another to compare.")
        _card(dataset, split, graph, distances, names, 0)
        return
    if len(picked) >= 2:
        result = study.class_set(graph, distances, picked)
        with st.container(border=True):
            st.markdown(f"**Selected task: {len(picked)} classes**")
            numbers = [
                HeadlineNumber(
                    "coarsity",
                    "Coarsity",
                    result.coarsity,
                    unit="",
                    digits=1 if result.coarsity >= 10 else 2,
                    help=f"Mean squared {DISTANCES[distance].title} distance over its class pairs. Low: fine-grained.",
                ),
                HeadlineNumber(
                    "share_finer",
                    "Finer random tasks",
                    100 * result.share_finer,
                    digits=0,
                    help=f"Share of 2,000 random {len(picked)}-way tasks with lower coarsity.",
                ),
            ]
            show_numbers(numbers, "task_numbers")
            st.markdown(
                f"Closest shared concept: **{escape(result.superordinate)}** "
                f"({result.superordinate_classes:,} of {len(names):,} classes)"
            )
            page_links.to_classes(dataset, dataset.split_class_ids(split)[picked].tolist(), "Create task")
            with st.container(horizontal=True):
                st.button("Clear", key="forget", icon="✖️", on_click=_pick, args=((),))
                shell.page_link("sample_tasks", "Sample tasks", shell.link(dataset, split=split))
        if dataset.has_pixels and len(picked) <= 8:
            _task_pictures(dataset, split, names, picked)
        if 2 < len(picked) <= 12:
            chosen = np.array(picked)
            export.chart(
                "Distances between the selected classes",
                figures.plot_task_distances(
                    distances[np.ix_(chosen, chosen)],
                    [names[p] for p in picked],
                    DISTANCES[distance].title,
                    float(distances.max()),
                ),
                key="task_distances",
            )
            images = _images_of(dataset, split) if dataset.has_pixels else None
            answer_cells(
                dataset,
                "task_distances",
                None if images is None else [int(images[p][0]) if len(images[p]) else -1 for p in picked],
                Click(selections.CLASSES, lambda cell: list(dict.fromkeys(names[picked[at]] for at in cell.data))),
                len(picked),
            )
    _card(dataset, split, graph, distances, names, picked[-1])


def _pick(names: Iterable[str]) -> None:
    st.session_state[PICKED] = list(dict.fromkeys(names))


def _task_pictures(dataset: Dataset, split: str, names: list[str], picked: Sequence[int]) -> None:
    images = _images_of(dataset, split)
    rows = [Row(names[p], [Tile(int(i)) for i in images[p][:N_ROW]]) for p in picked]
    _open_image(dataset, task_rows(dataset, rows, key="task_pictures", tile_px=44))


def _open_image(dataset: Dataset, clicked: int | None) -> None:
    """Links to an image that was clicked."""
    if clicked is not None:
        shell.page_link("images", f"Image {clicked:,} and its neighbours", shell.link(dataset, image=str(clicked)))


def _card(dataset: Dataset, split: str, graph: Dag, distances: np.ndarray, names: list[str], position: int) -> None:
    card = maps.class_card(graph, distances, position)
    with st.container(border=True):
        st.markdown(f"**{escape(names[position])}**")
        if dataset.n_images is not None:
            st.caption(f"{card.n_images:,.0f} images")
        if dataset.has_pixels:
            tiles = [Tile(int(i)) for i in _images_of(dataset, split)[position][:N_CARD]]
            _open_image(dataset, gallery(dataset, tiles, key="card_pictures", tile_px=58))
        st.caption(" › ".join(escape(step) for step in card.path))
        shell.page_link(
            "images",
            "Show all images" if dataset.has_pixels else "Open in Images",
            shell.link(
                dataset,
                **{PICKED: str(dataset.classes["class_name"].iat[int(dataset.split_class_ids(split)[position])])},
            ),
        )
        for title, rows in (("Nearest", card.nearest), ("Farthest", card.farthest)):
            pictures = _pictures_of(dataset, split, [i for i, _ in rows]) if dataset.has_pixels else ""
            table = _neighbour_table(title, float(distances.max()))
            key = f"rows_{title}_{position}"
            export.table(
                table,
                {"picture": pictures, "class": [names[i] for i, _ in rows], "distance": [value for _, value in rows]},
                key=key,
                sets=Click(_add, [[names[position], names[i]] for i, _ in rows]),
            )
        st.caption("Click a row to compare the two classes.")
        near = [position, *(i for i, _ in card.nearest[: N_BUILT - 1])]
        label = "Create a task with its nearest classes"
        page_links.to_classes(dataset, dataset.split_class_ids(split)[near].tolist(), label)


def _neighbour_table(title: str, high: float) -> Table:
    """The nearest or the farthest classes of a class."""
    return Table(
        f"{title} classes",
        Column("picture", "Image", kind="image", width=44),
        Column("class", title, width=110),
        Column("distance", "Distance", digits=2, kind="bar", high=max(high, 1e-9), width=85),
    )


def _pictures_of(dataset: Dataset, split: str, positions: Iterable[int]) -> list[str]:
    images = _images_of(dataset, split)
    return [thumbnail_uri(dataset, int(images[p][0]), _PX) if len(images[p]) else "" for p in positions]


def _add(names: Iterable[str]) -> None:
    _pick([*st.session_state.get(PICKED, []), *names])


# Every pair


def _heat_map(
    dataset: Dataset,
    split: str,
    dag: str,
    tree: ConceptTree,
    at: int,
    distances: np.ndarray,
    names: list[str],
    distance: str,
) -> None:
    st.subheader("All pairs", anchor=False)
    order = caching.class_order(dataset, split, dag)
    inside = np.zeros(len(names), dtype=bool)
    inside[caching.part(dataset, split, dag, tree.ids[at])[1]] = True
    order = order[inside[order]]
    if len(order) < 2:
        st.caption("Only one class here. Go up one level.")
        return
    block = distances[np.ix_(order, order)]
    shown = [names[i] for i in order]
    size = -(-len(order) // HEAT_MAX)
    if size > 1:
        block, shown = _averaged(block, shown, size)
    left, right = shell.responsive_columns("pairs", [3, 2], gap="medium")
    with left:
        export.chart(
            "Distances of all pairs",
            figures.plot_distance_map(block, shown, DISTANCES[distance].title, float(distances.max())),
            key="distance_map",
        )
        images = None
        if dataset.has_pixels:
            images_of_class = _images_of(dataset, split)
            images = [int(images_of_class[i][0]) if len(images_of_class[i]) else -1 for i in order[::size]]
        answer_cells(
            dataset,
            "distance_map",
            images,
            Click(selections.CLASSES, lambda cell: list(dict.fromkeys(names[order[at]] for at in cell.data)))
            if size == 1
            else Click(AT, partial(_concept_above, tree, order, size)),
            len(shown),
        )
    with right:
        _closest_pairs(dataset, split, distances, order, names)
    averaged = f" Each cell averages {size} x {size} classes; click to zoom."
    st.caption(
        f"{len(order):,} classes below **{escape(tree.names[at])}**, ordered by taxonomy: bright blocks are families."
        + (averaged if size > 1 else " Click a cell to compare two classes.")
    )


def _concept_above(tree: ConceptTree, order: np.ndarray, size: int, cell: Point) -> str:
    """The lowest concept above all classes of a cell that averages several pairs."""
    in_cell = {int(p) for i in cell.data for p in order[i * size : (i + 1) * size]}
    paths = [set(tree.path_to(v)) for v in range(len(tree.ids)) if int(tree.class_position[v]) in in_cell]
    shared = set.intersection(*paths) if paths else {0}
    return tree.ids[max(v for v in shared if tree.n_nodes[v] > 1 or v == 0)]


def _closest_pairs(
    dataset: Dataset, split: str, distances: np.ndarray, order: np.ndarray, names: list[str], n: int = 15
) -> None:
    """Shows the pairs of classes with the smallest distances."""
    first, second = np.triu_indices(len(order), 1)
    values = distances[order[first], order[second]]
    some = np.argpartition(values, min(n, len(values)) - 1)[:n]
    some = some[np.argsort(values[some], kind="stable")]
    st.markdown("**Closest pairs**")
    sides = {"a": order[first[some]], "b": order[second[some]]}
    pairs = [[names[a], names[b]] for a, b in zip(*sides.values(), strict=True)]
    rows: dict[str, Any] = {"distance": [float(values[i]) for i in some]}
    for side, positions in sides.items():
        rows[side] = [names[i] for i in positions]
        if dataset.has_pixels:
            rows[f"{side}_picture"] = _pictures_of(dataset, split, positions.tolist())
    key = f"pairs_{hash((dataset.name, split, tuple(order[:3].tolist()), len(order)))}"
    export.table(CLASS_PAIRS, rows, key=key, sets=Click(selections.CLASSES, pairs))
    ties = int((values <= values[some[-1]] + 1e-9).sum())
    more = f" First {len(some)} of {ties:,} pairs at distance {values[some[-1]]:.2f} or less." if ties > n else ""
    st.caption(f"Click a row to compare the two classes.{more}")


def _averaged(block: np.ndarray, names: list[str], size: int) -> tuple[np.ndarray, list[str]]:
    starts = np.arange(0, len(names), size)
    sums = np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)
    counts = np.diff(np.append(starts, len(names)))
    labels = [f"{names[s]} … {names[min(s + size, len(names)) - 1]}" for s in starts.tolist()]
    return sums / np.outer(counts, counts), labels
