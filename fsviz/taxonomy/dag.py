"""The is-a graph that spans a set of classes: a directed acyclic graph from one root down to the classes.

Dimensions: V nodes, E edges, C classes (those of one split, in split order).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import Dataset

DAG_MODES: dict[str, str] = {
    "shortest_path": "Shortest path to each class",
    "all_paths": "All paths",
}


@dataclass(frozen=True)
class Dag:
    """The part of a taxonomy that spans the classes of a split.

    nodes        V node ids, parents before children, the root first
    names        V readable names
    parents, children  (E,) node indices of every edge
    class_nodes  (C,) node index of every class
    weights      (C,) images of every class
    counts       (V,) images of the classes at or below a node: |v|
    depth        (V,) edges on the shortest path from the root
    below        (V, C) whether a class is at or below a node
    tree_parent  (V,) the one parent that a node hangs below in pictures and tables, -1 for the root; distances take all
    """

    nodes: tuple[str, ...]
    names: tuple[str, ...]
    parents: np.ndarray
    children: np.ndarray
    class_nodes: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    depth: np.ndarray
    below: np.ndarray
    tree_parent: np.ndarray

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def n_classes(self) -> int:
        return len(self.class_nodes)

    @property
    def n_edges(self) -> int:
        return len(self.parents)

    @property
    def leaves(self) -> np.ndarray:
        """Nodes without children."""
        inner = np.zeros(len(self), dtype=bool)
        inner[self.parents] = True
        return np.flatnonzero(~inner)

    @cached_property
    def tree_depth(self) -> np.ndarray:
        """(V,) edges from the root along tree parents."""
        depth = np.zeros(len(self), dtype=np.int64)
        for node in range(1, len(self)):  # parents stand before children
            depth[node] = depth[self.tree_parent[node]] + 1
        return depth

    @cached_property
    def held(self) -> np.ndarray:
        """(V, C) whether a class hangs at or below a node along tree parents: each class below one child of a node.

        A concept may hold none, where all that is below it hangs below nearer concepts.
        """
        held = np.zeros_like(self.below)
        held[self.class_nodes, np.arange(self.n_classes)] = True
        for node in range(len(self) - 1, 0, -1):
            held[self.tree_parent[node]] |= held[node]
        return held

    @cached_property
    def holds(self) -> np.ndarray:
        """(V,) whether a node holds a class."""
        return np.asarray(self.held.any(axis=1))

    def path_to(self, node: int) -> list[int]:
        """Nodes from the root down to this one, along tree parents."""
        path = [int(node)]
        while self.tree_parent[path[-1]] >= 0:
            path.append(int(self.tree_parent[path[-1]]))
        return path[::-1]


def split_dag(dataset: Dataset, split: str, mode: str = "shortest_path") -> Dag:
    """The graph that spans the classes of a split of a dataset."""
    if dataset.taxonomy is None:
        raise Missing(
            f"{dataset.title} has no taxonomy, so semantic distance is not available. "
            'Use the distance "features", or choose a dataset with a taxonomy.'
        )
    class_ids = dataset.split_class_ids(split)
    table = dataset.classes.loc[class_ids]
    without = table.loc[table["node"].astype(str) == "", "class_name"].astype(str).tolist()
    if without:
        raise BadInput(
            f"Classes of split {split!r} missing from the taxonomy of {dataset.title}: {_listed(without)}. "
            "Add them, or remove them from the split."
        )
    return span(
        dataset.taxonomy,
        table["node"].astype(str).tolist(),
        dataset.class_weights()[class_ids],
        mode,
        dataset.node_names,
    )


def span(
    edges: pd.DataFrame,
    class_nodes: Sequence[str],
    weights: np.ndarray,
    mode: str = "shortest_path",
    names: Mapping[str, str] | None = None,
) -> Dag:
    """The graph from the root to the given class nodes.

    edges    is-a edges, columns child and parent
    weights  (C,) images of every class
    mode     "shortest_path" keeps the nodes on one shortest path from the root to each class, with every edge among
             them; where paths tie, the parent that `edges` lists first wins. This is the graph of Bennequin et al.
             (2022). Their ties follow the order of a file of WordNet edges that is not public; with the parents of
             a synset in reverse alphabetical order, as data/ and `wordnet.hypernym_closure` have them, all that was
             published agrees: the graph of tieredImageNet and the distances of mini-ImageNet.
             "all_paths" keeps every ancestor of every class.
    """
    if mode not in DAG_MODES:
        raise UnknownName("dag", mode, DAG_MODES)
    class_nodes = [str(node) for node in class_nodes]
    if not class_nodes:
        raise BadInput("A taxonomy can only span one class or more. Got none. Pick a split that has classes.")
    up: dict[str, list[str]] = defaultdict(list)
    down: dict[str, list[str]] = defaultdict(list)
    for child, parent in dict.fromkeys(zip(edges["child"].astype(str), edges["parent"].astype(str), strict=True)):
        up[child].append(parent)
        down[parent].append(child)

    unknown = [node for node in class_nodes if node not in up and node not in down]
    if unknown:
        raise BadInput(
            f"Every class must be a node of the taxonomy. Got {_listed(unknown)}, which no edge names. "
            "Add an edge child,parent for each, or take those classes out of the split."
        )
    closure = _ancestors(class_nodes, up)
    root = _root(closure, class_nodes, up, down)
    if mode == "shortest_path":
        depth = _depths(root, down, closure)
        nodes: set[str] = set()
        for class_node in class_nodes:
            node: str | None = class_node
            while node is not None and node not in nodes:
                nodes.add(node)
                node = _first_parent(node, up, depth)
    else:
        nodes = closure & set(_depths(root, down, closure))
    return _assemble(root, nodes, up, down, class_nodes, np.asarray(weights, dtype=float), names or {})


def collapse(dag: Dag) -> Dag:
    """The same graph without tunnels: nodes with one parent and one child that are no class.

    A tunnel spans the same classes as its child, so no image count and no Jiang-Conrath distance changes.
    """
    up: dict[int, list[int]] = defaultdict(list)
    down: dict[int, list[int]] = defaultdict(list)
    for parent, child in zip(dag.parents.tolist(), dag.children.tolist(), strict=True):
        up[child].append(parent)
        down[parent].append(child)
    classes = set(dag.class_nodes.tolist())
    waiting = deque(range(len(dag)))
    nodes_left = set(range(len(dag)))
    while waiting:
        node = waiting.popleft()
        if node in classes or node not in nodes_left or len(up[node]) != 1 or len(down[node]) != 1:
            continue
        parent, child = up[node][0], down[node][0]
        nodes_left.remove(node)
        if child in down[parent]:  # two tunnels side by side leave one edge
            down[parent].remove(node)
            up[child].remove(node)
            waiting.extend((parent, child))
        else:
            down[parent][down[parent].index(node)] = child
            up[child][up[child].index(node)] = parent
    names = {dag.nodes[node]: dag.names[node] for node in nodes_left}
    children = {dag.nodes[p]: [dag.nodes[c] for c in down[p]] for p in nodes_left}
    parents = {dag.nodes[c]: [dag.nodes[p] for p in up[c]] for c in nodes_left}
    above = {}
    for node in nodes_left - {0}:
        parent = int(dag.tree_parent[node])
        while parent not in nodes_left:
            parent = int(dag.tree_parent[parent])
        above[dag.nodes[node]] = dag.nodes[parent]
    class_nodes = [dag.nodes[node] for node in dag.class_nodes]
    return _assemble(dag.nodes[0], set(names), parents, children, class_nodes, dag.weights, names, above)


def n_concepts(dag: Dag) -> int:
    """Number of concepts above the classes: nodes that are no class, without tunnels."""
    collapsed = collapse(dag)
    return len(collapsed) - len(np.unique(collapsed.class_nodes))


def branch(dag: Dag, node: int) -> Dag:
    """The part of the graph that hangs below a node along tree parents, with every edge inside it."""
    inside = np.zeros(len(dag), dtype=bool)
    inside[node] = True
    for below in range(node + 1, len(dag)):
        inside[below] = inside[dag.tree_parent[below]]
    names = {dag.nodes[v]: dag.names[v] for v in np.flatnonzero(inside)}
    up: dict[str, list[str]] = defaultdict(list)
    down: dict[str, list[str]] = defaultdict(list)
    edge = inside[dag.parents] & inside[dag.children]
    for parent, child in zip(dag.parents[edge].tolist(), dag.children[edge].tolist(), strict=True):
        up[dag.nodes[child]].append(dag.nodes[parent])
        down[dag.nodes[parent]].append(dag.nodes[child])
    above = {dag.nodes[v]: dag.nodes[dag.tree_parent[v]] for v in np.flatnonzero(inside) if v != node}
    positions = np.flatnonzero(dag.held[node])
    class_nodes = [dag.nodes[v] for v in dag.class_nodes[positions]]
    return _assemble(dag.nodes[node], set(names), up, down, class_nodes, dag.weights[positions], names, above)


def _listed(names: Sequence[str], most: int = 5) -> str:
    text = ", ".join(repr(name) for name in names[:most])
    return f"{text} and {len(names) - most:,} more" if len(names) > most else text


def _ancestors(class_nodes: Sequence[str], up: Mapping[str, list[str]]) -> set[str]:
    ancestors = set(class_nodes)
    waiting = list(ancestors)
    while waiting:
        for parent in up.get(waiting.pop(), ()):
            if parent not in ancestors:
                ancestors.add(parent)
                waiting.append(parent)
    return ancestors


def _root(
    closure: set[str], class_nodes: Sequence[str], up: Mapping[str, list[str]], down: Mapping[str, list[str]]
) -> str:
    """The one parentless node above every class; refuses cycles and taxonomies in pieces."""
    waiting_for = {node: len(up.get(node, ())) for node in closure}
    ready = deque(sorted(node for node, n in waiting_for.items() if n == 0))
    roots, done = list(ready), 0
    while ready:
        done += 1
        for child in down.get(ready.popleft(), ()):
            if child in waiting_for:
                waiting_for[child] -= 1
                if waiting_for[child] == 0:
                    ready.append(child)
    if done < len(closure):
        raise BadInput(
            f"The taxonomy has a cycle: {' is a '.join(_cycle(waiting_for, up))}. Remove one of these edges."
        )
    targets = set(class_nodes)
    reach = {root: targets & set(_depths(root, down, closure)) for root in roots}
    root = max(roots, key=lambda r: (len(reach[r]), r))
    if len(reach[root]) < len(targets):
        outside = sorted(targets - reach[root])
        raise BadInput(
            f"A taxonomy must have one root above every class. Got {len(roots)} roots, and {_listed(outside, 3)} "
            f"cannot be reached from {root!r}. Join the pieces under one root."
        )
    return root


def _cycle(waiting_for: Mapping[str, int], up: Mapping[str, list[str]]) -> list[str]:
    """One cycle among the nodes that never became free: from any of them, walk up until a node repeats."""
    node = min(n for n, n_left in waiting_for.items() if n_left > 0)
    walked: list[str] = []
    while node not in walked:
        walked.append(node)
        node = next(p for p in up[node] if waiting_for.get(p, 0) > 0)
    return [*walked[walked.index(node) :], node]


def _depths(root: str, down: Mapping[str, list[str]], within: set[str]) -> dict[str, int]:
    """Fewest edges from the root to every node that can be reached, breadth-first."""
    depth = {root: 0}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        for child in down.get(node, ()):
            if child in within and child not in depth:
                depth[child] = depth[node] + 1
                waiting.append(child)
    return depth


def _first_parent(node: str, up: Mapping[str, list[str]], depth: Mapping[str, int]) -> str | None:
    """The first listed parent on a shortest path from the root, None for the root itself."""
    return next((parent for parent in up.get(node, ()) if depth.get(parent) == depth[node] - 1), None)


def _assemble(
    root: str,
    nodes: set[str],
    up: Mapping[str, list[str]],
    down: Mapping[str, list[str]],
    class_nodes: Sequence[str],
    weights: np.ndarray,
    names: Mapping[str, str],
    above: Mapping[str, str] | None = None,
) -> Dag:
    """The graph of the nodes that are kept; `above` is the tree parent of each, chosen here if it is not given."""
    depths = _depths(root, down, nodes)
    order = _topological(root, nodes, down)
    index = {node: i for i, node in enumerate(order)}
    pairs = [(index[p], index[c]) for p in order for c in down.get(p, ()) if c in index]
    parents, children = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    at = np.array([index[node] for node in class_nodes], dtype=np.int64)
    below = _classes_below(len(order), pairs, at)
    depth = np.array([depths[node] for node in order], dtype=np.int64)
    if above is None:
        tree_parent = _tree_parents(parents, children, depth, below)
    else:
        tree_parent = np.array([-1, *(index[above[node]] for node in order[1:])], dtype=np.int64)
    return Dag(
        nodes=tuple(order),
        names=tuple(str(names.get(node, node)) for node in order),
        parents=parents,
        children=children,
        class_nodes=at,
        weights=weights,
        counts=below @ weights,
        depth=depth,
        below=below,
        tree_parent=tree_parent,
    )


def _tree_parents(parents: np.ndarray, children: np.ndarray, depth: np.ndarray, below: np.ndarray) -> np.ndarray:
    """(V,) for every node the parent that keeps it with its nearest relatives, -1 for the root.

    Relatives are other classes below a parent or, if it has none, below the nearest tree parent above that has: the
    deeper that lies, the nearer they are. Dogs hang below canines with wolves and foxes, not below domestic animals,
    right under animals. Of two as deep, the one with fewer classes.
    """
    tree_parent = np.full(len(depth), -1, dtype=np.int64)
    tree_parent[children] = parents
    n_below = below.sum(axis=1)
    for node in np.flatnonzero(np.bincount(children, minlength=len(depth)) > 1).tolist():  # parents before children
        several = parents[children == node]
        shared = several.copy()
        while (alone := (n_below[shared] == n_below[node]) & (shared > 0)).any():  # a parent has all that its child has
            shared[alone] = tree_parent[shared[alone]]
        tree_parent[node] = several[np.lexsort((n_below[shared], -depth[shared]))[0]]
    return tree_parent


def _classes_below(n_nodes: int, edges: Sequence[tuple[int, int]], at: np.ndarray) -> np.ndarray:
    """(V, C) whether a class is at or below a node, from edges (parent, child) in the order of their parents."""
    classes = [0] * n_nodes  # the classes of a node as the bits of one number
    for position, node in enumerate(at.tolist()):
        classes[node] |= 1 << position
    for parent, child in reversed(edges):  # children are complete before parents
        classes[parent] |= classes[child]
    n_bytes = (len(at) + 7) // 8
    packed = np.frombuffer(b"".join(members.to_bytes(n_bytes, "little") for members in classes), dtype=np.uint8)
    return np.unpackbits(packed.reshape(n_nodes, n_bytes), axis=1, count=len(at), bitorder="little").view(bool)


def _topological(root: str, nodes: set[str], down: Mapping[str, list[str]]) -> list[str]:
    n_parents: dict[str, int] = defaultdict(int)
    for node in nodes:
        for child in down.get(node, ()):
            if child in nodes:
                n_parents[child] += 1
    ready, order = deque([root]), []
    while ready:
        node = ready.popleft()
        order.append(node)
        for child in down.get(node, ()):
            if child in nodes:
                n_parents[child] -= 1
                if n_parents[child] == 0:
                    ready.append(child)
    return order
