"""The graph of meanings of a split, ready to be drawn and asked: maps, a class's card, the concepts above classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fsviz.errors import UnknownName
from fsviz.records import PAD, ClassMap, Dataset
from fsviz.taxonomy.dag import Dag, collapse, span, split_dag
from fsviz.taxonomy.distances import lowest_superordinate
from fsviz.taxonomy.layout import class_order, layered, radial

__all__ = ["ClassCard", "class_card", "class_map", "class_order", "concepts", "spanning_graph", "task_map"]


def spanning_graph(dataset: Dataset, split: str, dag: str = "shortest_path") -> Dag:
    """The graph that spans the classes of a split, with the names of the classes as the dataset gives them."""
    graph = split_dag(dataset, split, dag)
    names = np.array(graph.names, dtype=object)
    names[graph.class_nodes] = dataset.classes["class_name"].to_numpy()[dataset.split_class_ids(split)]
    return replace(graph, names=tuple(str(name) for name in names))


def class_map(graph: Dag, deepest: int | None = None, layout: str = "radial", reveal: Sequence[int] = ()) -> ClassMap:
    """The graph without tunnels (concepts with one parent and one child), laid out to be drawn.

    deepest  nodes farther from the root are folded into their last visible ancestor; None shows all
    layout   "radial" (root in the middle) or "layered" (root on top)
    reveal   places of classes that are shown however deep they are
    """
    if layout not in ("radial", "layered"):
        raise UnknownName("layout", layout, ["radial", "layered"])
    graph = collapse(graph)
    visible = graph.depth <= (graph.depth.max() if deepest is None else max(1, int(deepest)))
    for position in reveal:
        visible[graph.path_to(int(graph.class_nodes[position]))] = True
    shown = np.flatnonzero(visible)
    new = np.full(len(graph), -1, dtype=np.int64)
    new[shown] = np.arange(len(shown))
    edge = (new[graph.parents] >= 0) & (new[graph.children] >= 0)
    folded = np.zeros(len(graph), dtype=bool)
    folded[graph.parents[(new[graph.parents] >= 0) & (new[graph.children] < 0)]] = True
    class_at = np.full(len(graph), PAD, dtype=np.int64)
    class_at[graph.class_nodes] = np.arange(graph.n_classes)
    place = graph.class_nodes.copy()  # where each class shows: itself, or the node it is folded into
    while (hidden := new[place] < 0).any():
        place[hidden] = graph.first_parent[place[hidden]]
    return ClassMap(
        names=tuple(graph.names[v] for v in shown),
        xy=(radial if layout == "radial" else layered)(graph, shown),
        depth=graph.depth[shown],
        n_images=graph.counts[shown],
        n_classes=graph.below[shown].sum(axis=1),
        class_position=class_at[shown],
        folded=folded[shown],
        parents=new[graph.parents[edge]],
        children=new[graph.children[edge]],
        shown_at=new[place],
        deepest=int(graph.depth.max()),
        n_nodes=len(graph),
        n_edges=graph.n_edges,
        n_leaves=len(graph.leaves),
    )


def task_map(graph: Dag, positions: Sequence[int]) -> ClassMap:
    """The concepts above a few classes, from the lowest one above all of them down to the classes."""
    positions = [int(p) for p in positions]
    root = lowest_superordinate(graph, positions)
    nodes = np.array(graph.nodes, dtype=object)
    within = ~(graph.below & ~graph.below[root]).any(axis=1)  # nodes whose classes are all below the new root
    edge = within[graph.parents] & within[graph.children] & (graph.children != root)
    edges = pd.DataFrame({"child": nodes[graph.children[edge]], "parent": nodes[graph.parents[edge]]})
    names = dict(zip(graph.nodes, graph.names, strict=True))
    chosen = nodes[graph.class_nodes[positions]].tolist()
    return class_map(span(edges, chosen, graph.weights[positions], names=names), layout="layered")


@dataclass(frozen=True)
class ClassCard:
    """A class's place among the others: its path from the root, its images, its nearest and farthest classes."""

    path: tuple[str, ...]
    n_images: float
    nearest: tuple[tuple[int, float], ...]
    farthest: tuple[tuple[int, float], ...]


def class_card(graph: Dag, distances: np.ndarray, position: int, n: int = 5) -> ClassCard:
    """What there is to know of the class at this place of the split; other classes are given by their places."""
    others = np.delete(np.arange(len(distances)), position)
    order = others[np.argsort(distances[position, others], kind="stable")]
    return ClassCard(
        tuple(graph.names[v] for v in graph.path_to(int(graph.class_nodes[position]))),
        float(graph.weights[position]),
        tuple((int(i), float(distances[position, i])) for i in order[:n]),
        tuple((int(i), float(distances[position, i])) for i in order[::-1][:n]),
    )


def concepts(graph: Dag) -> dict[str, tuple[str, np.ndarray]]:
    """Concepts with at least two classes below them, the largest first: label -> (name, places of those classes)."""
    graph = collapse(graph)
    size = graph.below.sum(axis=1)
    found: dict[str, tuple[str, np.ndarray]] = {}
    for node in np.lexsort((np.arange(len(graph)), -size)):
        if size[node] >= 2:
            label = f"{graph.names[node]} · {size[node]:,} classes"
            if label in found:
                label = f"{label} ({graph.nodes[node]})"
            found[label] = (graph.names[node], np.flatnonzero(graph.below[node]))
    return found
