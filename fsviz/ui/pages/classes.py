"""The page Classes: rings or a graph of a split's concepts, one class or a hand-made task in detail, the heat map.

Everything that is chosen is in the link: the concept that is looked into (`at`), the classes of the task (`classes`).
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
FEW = 60  # classes whose whole graph can be read; more open as rings
HEAT_MOST = 180  # rows of the heat map; more classes are averaged in blocks
N_BUILT = 5  # classes of a task that is built around one
N_CARD, N_ROW, N_BESIDE = 6, 5, 3  # pictures on a class's card, of a class of the task, beside the pointer
_PX = 60
PICTURES = {
    "rings": "Rings (sunburst)",
    "radial": "Graph, root in the middle",
    "layered": "Graph, root on the left",
}
AT = Setting("at", "Concept", "The concept that is looked into.", "choice", "")
LAYOUT = Setting(
    "layout",
    "Picture",
    "Rings show as many levels as have room below one concept; graphs also show classes with several parents.",
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
    asked = {"split": split, "distance": distance, "dag": dag, **({"backbone": backbone} if backbone else {})}
    export.command("distances", dataset.name, *to_args(asked, draw.SETTINGS))
    distances = caching.distances(dataset, split, distance, dag, backbone)
    names = controls.class_names(dataset, split)
    here = f"{dataset.name} {split} {dag}"
    default = "radial" if len(names) <= FEW else "rings"
    layout = controls.pick(LAYOUT.with_(default=default), shell.side(), about=f"{dataset.name} {split}")
    graph, tree = caching.graph(dataset, split, dag), caching.concept_tree(dataset, split, dag)
    at = _looked_into(tree, here)
    _headline(caching.class_map(dataset, split, dag, tree.ids[0], None, "radial"), distances, names, distance)
    picture, side = shell.responsive_columns("graph", [2, 1], gap="medium")
    with side:
        picked = _pick_classes(names)
    with picture:
        _way_back(tree, at)
        if layout == "rings":
            links.drop_from_link("depth")
            _rings(dataset, split, tree, at, picked, names)
        else:
            _graph(dataset, split, dag, layout, tree, at, picked, names)
    with side:
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


def _headline(whole: ClassMap, distances: np.ndarray, names: list[str], distance: str) -> None:
    numbers: list[HeadlineNumber | None] = [
        HeadlineNumber.count("classes", "Classes", len(names)),
        HeadlineNumber.count(
            "concepts",
            "Concepts above",
            whole.n_nodes - len(names),
            help=f"Concepts with one parent and one child are left out; {whole.n_nodes:,} nodes and "
            f"{whole.n_edges:,} is-a edges remain.",
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
                help=f"{names[a]} and {names[b]}; {ties:,} pairs are as close.",
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
    """Places of the classes picked by name, by click or by link; those of another dataset or split are forgotten."""
    place = {name: i for i, name in enumerate(names)}
    selections.pick_classes(names)
    picked = st.multiselect(
        "Find classes, or click them in the picture",
        sorted(names, key=str.lower),
        key=PICKED,
        placeholder="Type a class name",
        **controls.BY_TYPING,
        help="One class: its path, and its nearest and farthest classes. Several: a task with its coarsity.",
    )
    return [place[name] for name in picked]


# Which part of the taxonomy is looked into


def _looked_into(tree: ConceptTree, here: str) -> int:
    """The node that is looked into, the root at first; kept in the link by its id."""
    concepts = {tree.ids[v]: tree.names[v] for v in range(len(tree.ids)) if tree.n_nodes[v] > 1 or v == 0}
    setting = AT.with_(choices=concepts, default=tree.ids[0])
    return tree.ids.index(str(links.value_of(setting, AT.name, here)))


def _look_into(node_id: str) -> None:
    st.session_state[AT.name] = node_id


def _way_back(tree: ConceptTree, at: int) -> None:
    """The path down to what is looked into; each step leads back to it."""
    path = tree.path_to(at)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="way_back"):
        for v in path[:-1]:
            label = f"All {tree.n_classes[0]:,} classes" if v == 0 else escape(tree.names[v])
            icon = "⬅️" if v == 0 else None
            st.button(label, key=f"back_{tree.ids[v]}", icon=icon, on_click=_look_into, args=(tree.ids[v],))
            st.markdown("›", width="content")
        st.markdown(f"**{escape(tree.names[at])}** · {tree.n_classes[at]:,} classes", width="content")


def _rings(dataset: Dataset, split: str, tree: ConceptTree, at: int, picked: list[int], names: list[str]) -> None:
    levels = min(figures.RINGS, tree.levels_that_fit(at, figures.SECTORS))
    shown = tree.part(at, levels)
    beside = _beside(dataset, split, {int(v): _classes_of(tree, int(v)) for v in shown}) if dataset.has_pixels else None
    above = int(tree.parents[at])
    things = [
        (tree.ids[above] if v == at and above >= 0 else "" if v == at else tree.ids[v], names[c] if c != PAD else "")
        if tree.n_nodes[v] > 1 or v == at
        else ("", names[c])
        for v, c in zip(shown.tolist(), tree.class_position[shown].tolist(), strict=True)
    ]
    _draw(
        figures.plot_concept_sunburst(tree, at, levels, picked, beside),
        [None, *things],  # a chart of a tree counts a root of its own
        f"rings {dataset.name} {split} {tree.ids[at]}",
        f"Rings of the concepts below {tree.names[at]}",
    )
    st.caption(
        f"{levels:,} levels below **{escape(tree.names[at])}**, in the middle; the angle of a sector is its number of "
        "classes, and ▸ holds more. Click a concept to look into it, the middle to go back up, and a class to add it "
        "to your task (again to take it out). Names without room show beside the pointer."
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
    part, positions = caching.part(dataset, split, dag, at_id)
    place = {int(p): i for i, p in enumerate(positions)}
    revealed = tuple(place[p] for p in picked if p in place)
    fits = caching.levels_that_fit(dataset, split, dag, at_id, figures.ENDS[layout])
    whole = caching.class_map(dataset, split, dag, at_id, None, layout)
    deepest = whole.deepest
    if deepest > 1:
        setting = Setting(
            "depth",
            "Depth shown",
            "Concepts below this depth are folded into the squares, larger the more classes they hold. At first as "
            "deep as names have room. Classes you pick are always shown.",
            "int",
            min(fits, deepest),
            low=1,
            high=deepest,
        )
        deepest = controls.pick(setting, shell.side(), as_slider=True, about=f"{dataset.name} {split} {dag} {at_id}")
    graph = caching.class_map(dataset, split, dag, at_id, deepest, layout, revealed)
    beside = None
    if dataset.has_pixels:
        held: dict[int, list[int]] = {}
        for i, v in enumerate(graph.shown_at.tolist()):
            held.setdefault(int(v), []).append(int(positions[i]))
        beside = _beside(dataset, split, held)
    known = {tree.ids[v] for v in range(len(tree.ids)) if tree.n_nodes[v] > 1}
    ids = _ids_of(graph, part, known)
    things = [
        ("", names[positions[c]]) if c != PAD else (node_id if v else "", "")
        for v, (c, node_id) in enumerate(zip(graph.class_position.tolist(), ids, strict=True))
    ]
    _draw(
        figures.plot_class_map(graph, revealed, beside),
        things,
        f"{layout} {dataset.name} {split} {at_id}",
        f"Graph of the {len(graph.shown_at)} classes of {split_title(split)} below their concepts",
    )
    hidden = whole.n_nodes - len(graph.names)
    st.caption(
        f":green[◆] the root, :red[●] the {len(whole.shown_at):,} classes, other dots are concepts above them"
        + (f"; {hidden:,} nodes are folded into ▢ grey squares" if hidden else "")
        + ". Scroll to zoom, drag to move, ↻ in the corner for the whole picture. Click a concept to look into it, a "
        "class to add it to your task and again to take it out."
    )


def _ids_of(graph: ClassMap, part: Dag, known: set[str]) -> list[str]:
    """The id of every drawn node that can be looked into, "" for the others; names are not unique, ids are."""
    by_name: dict[str, list[str]] = {}
    for node_id, name in zip(part.nodes, part.names, strict=True):
        by_name.setdefault(name, []).append(node_id)
    return [next((i for i in by_name.get(name, ()) if i in known), "") for name in graph.names]


def _draw(option: dict[str, Any], things: Sequence[tuple[str, str] | None], key: str, alt: str) -> None:
    """The picture, a new one for another concept: a chart keeps what was selected in it by its place.

    things  the concept or the class of each mark
    """
    with st.container(key=GRAPH):
        export.graph("Taxonomy", option, key=key, height=730, sets=Click(_take, things, repeats=True), alt=alt)


def _take(thing: tuple[str, str]) -> None:
    """Looks into a concept, or toggles a class of the task."""
    concept, name = thing
    if concept:
        _look_into(concept)
    elif name:
        picked = list(st.session_state.get(PICKED, []))
        _pick([n for n in picked if n != name] if name in picked else [*picked, name])


# Pictures


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


def _beside(dataset: Dataset, split: str, held: dict[int, list[int]]) -> dict[int, str]:
    """node -> HTML of pictures of some of its classes, for the box beside the pointer."""
    images = _images_of(dataset, split)
    found = {}
    for node, positions in held.items():
        some = positions[:: max(1, len(positions) // N_BESIDE)][:N_BESIDE]
        ids = [int(images[p][0]) for p in some if len(images[p])]
        if len(some) == 1:  # a class by itself: several pictures of it
            ids = images[some[0]][:N_BESIDE].tolist()
        found[node] = "<br>" + "".join(_picture(dataset, image_id) for image_id in ids) if ids else ""
    return found


def _picture(dataset: Dataset, image_id: int) -> str:
    source = thumbnail_uri(dataset, image_id, _PX)
    if not source:
        return ""
    return f'<img src="{source}" width="{_PX}" height="{_PX}" style="margin:4px 4px 0 0;border-radius:6px" alt="">'


# What is picked


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
        st.caption(
            "Nothing is picked yet. A class in detail, for example the first of the split; pick your own above or in "
            "the picture."
        )
        _card(dataset, split, graph, distances, names, 0)
        return
    if len(picked) >= 2:
        result = study.class_set(graph, distances, picked)
        with st.container(border=True):
            st.markdown(f"**Your task of {len(picked)} classes**")
            numbers = [
                HeadlineNumber(
                    "coarsity",
                    "Coarsity",
                    result.coarsity,
                    unit="",
                    digits=1 if result.coarsity >= 10 else 2,
                    help=f"Mean squared {DISTANCES[distance].title} distance over its pairs of classes.",
                ),
                HeadlineNumber(
                    "share_finer",
                    "Finer by chance",
                    100 * result.share_finer,
                    digits=0,
                    help=f"Share of 2,000 uniformly drawn {len(picked)}-way tasks with a smaller coarsity.",
                ),
            ]
            show_numbers(numbers, "task_numbers")
            st.markdown(
                f"Lowest concept above all of them: **{escape(result.superordinate)}** "
                f"({result.superordinate_classes:,} of {len(names):,} classes)."
            )
            page_links.to_classes(
                dataset, dataset.split_class_ids(split)[picked].tolist(), "Build this task: its images and answers"
            )
            with st.container(horizontal=True):
                st.button("Start over", key="forget", icon="✖️", on_click=_pick, args=((),))
                shell.page_link("sample_tasks", "Draw tasks", shell.link(dataset, split=split))
        if dataset.has_pixels and len(picked) <= 8:
            _task_pictures(dataset, split, names, picked)
        if 2 < len(picked) <= 12:
            chosen = np.array(picked)
            export.chart(
                "Distances among the chosen classes",
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
    """The way from a picture that was clicked to the image itself."""
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
            "Its images" if dataset.has_pixels else "In the page Images",
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
        st.caption("Click a row to compare the two.")
        near = [position, *(i for i, _ in card.nearest[: N_BUILT - 1])]
        label = "Build a task of this class and its nearest"
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
    st.subheader("How far apart is every pair?", anchor=False)
    order = caching.class_order(dataset, split, dag)
    inside = np.zeros(len(names), dtype=bool)
    inside[caching.part(dataset, split, dag, tree.ids[at])[1]] = True
    order = order[inside[order]]
    if len(order) < 2:
        st.caption("One class has no pairs. Go back up to see more classes.")
        return
    block = distances[np.ix_(order, order)]
    shown = [names[i] for i in order]
    size = -(-len(order) // HEAT_MOST)
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
            known = _images_of(dataset, split)
            images = [int(known[i][0]) if len(known[i]) else -1 for i in order[::size]]
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
    averaged = f" Each cell averages {size} x {size} classes; a click looks into the concept above them."
    st.caption(
        f"{len(order):,} classes below **{escape(tree.names[at])}** in the order of the taxonomy, so relatives stand "
        "side by side: bright squares along the diagonal are families of classes that are close in meaning."
        + (averaged if size > 1 else " Click a cell to compare its two classes above.")
    )


def _concept_above(tree: ConceptTree, order: np.ndarray, size: int, cell: Point) -> str:
    """The lowest concept above all classes of a cell that averages several pairs."""
    wanted = {int(p) for i in cell.data for p in order[i * size : (i + 1) * size]}
    paths = [set(tree.path_to(v)) for v in range(len(tree.ids)) if int(tree.class_position[v]) in wanted]
    shared = set.intersection(*paths) if paths else {0}
    return tree.ids[max(v for v in shared if tree.n_nodes[v] > 1 or v == 0)]


def _closest_pairs(
    dataset: Dataset, split: str, distances: np.ndarray, order: np.ndarray, names: list[str], n: int = 15
) -> None:
    """The pairs a classifier may mistake most easily, if meaning shows in pictures."""
    first, second = np.triu_indices(len(order), 1)
    values = distances[order[first], order[second]]
    some = np.argpartition(values, min(n, len(values)) - 1)[:n]
    some = some[np.argsort(values[some], kind="stable")]
    st.markdown("**The closest pairs here**")
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
    more = f" {ties:,} pairs are at most {values[some[-1]]:.2f} apart; {len(some)} are listed." if ties > n else ""
    st.caption(f"Click a row to compare the two above.{more}")


def _averaged(block: np.ndarray, names: list[str], size: int) -> tuple[np.ndarray, list[str]]:
    starts = np.arange(0, len(names), size)
    sums = np.add.reduceat(np.add.reduceat(block, starts, axis=0), starts, axis=1)
    counts = np.diff(np.append(starts, len(names)))
    labels = [f"{names[s]} … {names[min(s + size, len(names)) - 1]}" for s in starts.tolist()]
    return sums / np.outer(counts, counts), labels
