"""The distances of all pairs of classes on the page Classes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses.semantic_sampling import CLASS_PAIRS
from fsviz.figures import taxonomy as figures
from fsviz.records import Dataset
from fsviz.records.graphs import ConceptTree
from fsviz.taxonomy import DISTANCES
from fsviz.text import short_names
from fsviz.ui.pages.classes import pictures
from fsviz.ui.pages.classes.views import AT, View
from fsviz.ui.parts import caching, export, selections, shell
from fsviz.ui.parts.clicks import Click, Point
from fsviz.ui.parts.hover import answer_cells
from fsviz.ui.parts.shell import escape

HEAT_MAX = 180  # rows of the heat map; more classes are averaged in blocks


def show(view: View, distances: np.ndarray, distance: str) -> None:
    """Shows the distances below a concept as a heat map, and the closest pairs."""
    dataset, split, tree, at, names = view.dataset, view.split, view.tree, view.at, view.names
    st.subheader("All pairs", anchor=False)
    order = caching.class_order(dataset, split, view.dag)
    inside = np.zeros(len(names), dtype=bool)
    inside[caching.part(dataset, split, view.dag, view.at_id)[1]] = True
    order = order[inside[order]]
    if len(order) < 2:
        st.caption("Only one class here. Go up one level.")
        return
    block = distances[np.ix_(order, order)]
    labels = [names[i] for i in order]
    size = -(-len(order) // HEAT_MAX)
    if size > 1:
        block, labels = _averaged(block, short_names(labels), size)
    left, right = shell.responsive_columns("pairs", [3, 2], gap="medium")
    with left:
        export.chart(
            "Distances of all pairs",
            figures.plot_distance_map(block, labels, DISTANCES[distance].title, float(distances.max())),
            key="distance_map",
        )
        images = None
        if dataset.has_pixels:
            images_of_class = pictures.images_of(dataset, split)
            images = [int(images_of_class[i][0]) if len(images_of_class[i]) else -1 for i in order[::size]]
        answer_cells(
            dataset,
            "distance_map",
            images,
            Click(selections.CLASSES, lambda cell: list(dict.fromkeys(names[order[at]] for at in cell.data)))
            if size == 1
            else Click(AT, partial(_concept_above, tree, order, size)),
            len(labels),
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
            rows[f"{side}_picture"] = pictures.first_images(dataset, split, positions.tolist())
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
