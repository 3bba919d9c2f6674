"""The graph of meanings of a split, ready to be drawn and asked: maps, a class's card, the concepts above classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fsviz.errors import UnknownName
from fsviz.records import PAD, Dataset
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.taxonomy.dag import Dag, branch, collapse, span, split_dag
from fsviz.taxonomy.distances import lowest_superordinate
from fsviz.taxonomy.hierarchy import NEARLY_ALL
from fsviz.taxonomy.layout import class_order, layered, radial

__all__ = [
    "ClassCard",
    "class_card",
    "class_map",
    "class_order",
    "classes_below",
    "concept_tree",
    "levels_that_fit",
    "spanning_graph",
    "task_map",
]


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
    depth = graph.tree_depth
    visible = depth <= (depth.max() if deepest is None else max(1, int(deepest)))
    for position in reveal:
        visible[graph.path_to(int(graph.class_nodes[position]))] = True
    nodes = np.flatnonzero(visible)
    new = np.full(len(graph), -1, dtype=np.int64)
    new[nodes] = np.arange(len(nodes))
    edge = (new[graph.parents] >= 0) & (new[graph.children] >= 0)
    folded = np.zeros(len(graph), dtype=bool)
    folded[graph.tree_parent[(new < 0) & graph.holds]] = True
    class_at = np.full(len(graph), PAD, dtype=np.int64)
    class_at[graph.class_nodes] = np.arange(graph.n_classes)
    place = graph.class_nodes.copy()  # where each class shows: itself, or the node it is folded into
    while (hidden := new[place] < 0).any():
        place[hidden] = graph.tree_parent[place[hidden]]
    return ClassMap(
        names=tuple(graph.names[v] for v in nodes),
        xy=(radial if layout == "radial" else layered)(graph, nodes),
        depth=depth[nodes],
        n_images=graph.counts[nodes],
        n_classes=graph.held[nodes].sum(axis=1),
        class_position=class_at[nodes],
        folded=folded[nodes],
        parents=new[graph.parents[edge]],
        children=new[graph.children[edge]],
        shown_at=new[place],
        deepest=int(depth.max()),
        n_nodes=len(graph),
        n_edges=graph.n_edges,
        n_leaves=len(graph.leaves),
    )


def levels_that_fit(graph: Dag, most: int) -> int:
    """The depth down to which the graph without tunnels can be shown before more than `most` branches end."""
    graph = collapse(graph)
    depth, holds = graph.tree_depth, graph.holds
    ends = holds.copy()
    ends[graph.tree_parent[1:][holds[1:]]] = False
    deepest = int(depth.max())
    so_many = [int((holds & ((depth == n) | (ends & (depth < n)))).sum()) for n in range(1, deepest + 1)]
    return max([n for n, ending in enumerate(so_many, 1) if ending <= most], default=1)


def classes_below(graph: Dag, node_id: str) -> tuple[Dag, np.ndarray]:
    """The part of a graph that hangs below one of its nodes, and the places in the split of the classes it holds."""
    root = graph.nodes.index(node_id)
    return branch(graph, root), np.flatnonzero(graph.held[root])


def task_map(graph: Dag, positions: Sequence[int]) -> ClassMap:
    """The concepts above a few classes, from the lowest one above all of them down to the classes."""
    positions = [int(p) for p in positions]
    return class_map(_part(graph, lowest_superordinate(graph, positions), positions), layout="layered")


def _part(graph: Dag, root: int, positions: Sequence[int] | np.ndarray) -> Dag:
    """The graph that spans these classes below another root."""
    nodes = np.array(graph.nodes, dtype=object)
    within = ~(graph.below & ~graph.below[root]).any(axis=1)  # nodes whose classes are all below the new root
    edge = within[graph.parents] & within[graph.children] & (graph.children != root)
    edges = pd.DataFrame({"child": nodes[graph.children[edge]], "parent": nodes[graph.parents[edge]]})
    names = dict(zip(graph.nodes, graph.names, strict=True))
    class_nodes = nodes[graph.class_nodes[positions]].tolist()
    return span(edges, class_nodes, graph.weights[positions], names=names)


def concept_tree(graph: Dag) -> ConceptTree:
    """The graph as a tree: a node hangs below its tree parent, the largest branches stand first.

    Tunnels are excluded, concepts that hold no class, and a concept that holds nearly all of its parent ("physical
    entity" in "entity"), which says nothing: what is below it moves up.
    """
    graph = collapse(graph)
    class_at = np.full(len(graph), PAD, dtype=np.int64)
    class_at[graph.class_nodes] = np.arange(graph.n_classes)
    n_classes = np.bincount(graph.class_nodes, minlength=len(graph))  # two classes may share a node
    for node in range(len(graph) - 1, 0, -1):  # children stand behind their parents
        n_classes[graph.tree_parent[node]] += n_classes[node]
    above = graph.tree_parent.copy()
    is_kept = np.ones(len(graph), dtype=bool)
    for node in range(1, len(graph)):
        if not is_kept[above[node]]:
            above[node] = above[above[node]]
        is_kept[node] = class_at[node] != PAD or 0 < n_classes[node] < NEARLY_ALL * n_classes[above[node]]
    children: dict[int, list[int]] = {}
    for node in np.flatnonzero(is_kept)[1:].tolist():
        children.setdefault(int(above[node]), []).append(node)
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(sorted(children.get(node, ()), key=lambda c: (n_classes[c], graph.names[c])))
    place = {node: i for i, node in enumerate(order)}
    parents = np.array([-1, *(place[int(above[node])] for node in order[1:])], dtype=np.int64)
    depth, n_nodes = np.zeros(len(order), dtype=np.int64), np.ones(len(order), dtype=np.int64)
    for v in range(1, len(order)):
        depth[v] = depth[parents[v]] + 1
    for v in range(len(order) - 1, 0, -1):
        n_nodes[parents[v]] += n_nodes[v]
    return ConceptTree(
        ids=tuple(graph.nodes[node] for node in order),
        names=tuple(graph.names[node] for node in order),
        parents=parents,
        depth=depth,
        n_classes=n_classes[order],
        n_nodes=n_nodes,
        class_position=class_at[order],
    )


@dataclass(frozen=True)
class ClassCard:
    """A class's place among the others: its path from the root, its images, its nearest and farthest classes."""

    path: tuple[str, ...]
    n_images: float
    nearest: tuple[tuple[int, float], ...]
    farthest: tuple[tuple[int, float], ...]


def class_card(graph: Dag, distances: np.ndarray, position: int, n: int = 5) -> ClassCard:
    """Path, image count and nearest classes of the class at this position of the split; others by position too."""
    neighbours = np.delete(np.arange(len(distances)), position)
    order = neighbours[np.argsort(distances[position, neighbours], kind="stable")]
    return ClassCard(
        tuple(graph.names[v] for v in graph.path_to(int(graph.class_nodes[position]))),
        float(graph.weights[position]),
        tuple((int(i), float(distances[position, i])) for i in order[:n]),
        tuple((int(i), float(distances[position, i])) for i in order[::-1][:n]),
    )
