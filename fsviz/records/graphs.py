"""Trees and graphs of classes: laid out, ready to be drawn.

Dimensions:
    C classes    V nodes    E edges    R and C rows and columns of a graph between two sets of classes
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from fsviz.records import PAD


@dataclass(frozen=True)
class Hierarchy:
    """A tree of nodes, parents before children: the first is the root (its parent is None).

    n_classes counts the classes at and below a node; split is the split they all belong to, or "mixed"; class_ids is
    the class that a node is, PAD for a group of classes.
    """

    ids: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str | None, ...]
    n_classes: tuple[int, ...]
    split: tuple[str, ...]
    class_ids: tuple[int, ...]

    def classes_below(self, node: str) -> list[int]:
        """The class_ids at and below a node."""
        inside = {node}
        for child, parent in zip(self.ids, self.parents, strict=True):  # parents come first
            if parent in inside:
                inside.add(child)
        return [c for name, c in zip(self.ids, self.class_ids, strict=True) if name in inside and c != PAD]


@dataclass(frozen=True)
class ClassMap:
    """The graph of meanings that spans C classes of a split, laid out to be drawn: V visible nodes, the root first.

    names (V,), xy (V, 2) with y downwards, depth (V,)
    n_images             (V,) images of the classes at or below a node
    n_classes            (V,) classes that hang at or below it, each below one child: 0 where all hang below others
    class_position       (V,) place in the split of the class a node is, PAD if it is a concept above classes
    folded               (V,) whether nodes below it are not shown
    parents, children    (E,) visible edges
    shown_at             (C,) the visible node of each class: itself, or the one it is folded into
    deepest, n_nodes, n_edges, n_leaves  of the whole graph, shown or not
    """

    names: tuple[str, ...]
    xy: np.ndarray
    depth: np.ndarray
    n_images: np.ndarray
    n_classes: np.ndarray
    class_position: np.ndarray
    folded: np.ndarray
    parents: np.ndarray
    children: np.ndarray
    shown_at: np.ndarray
    deepest: int
    n_nodes: int
    n_edges: int
    n_leaves: int


@dataclass(frozen=True)
class ConceptTree:
    """The concepts above C classes as a tree of V nodes: every class and concept once, each followed by all below it.

    ids, names      (V,)
    parents         (V,) -1 for the root, which is the first
    depth           (V,) steps from the root
    n_classes       (V,) classes at or below a node
    n_nodes         (V,) nodes at or below it: node v and what is below it are v .. v + n_nodes[v] - 1
    class_position  (V,) place in the split of the class a node is, PAD if it is a concept above classes
    """

    ids: tuple[str, ...]
    names: tuple[str, ...]
    parents: np.ndarray
    depth: np.ndarray
    n_classes: np.ndarray
    n_nodes: np.ndarray
    class_position: np.ndarray

    def path_to(self, node: int) -> list[int]:
        """Nodes from the root down to this one."""
        path = [int(node)]
        while self.parents[path[-1]] >= 0:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]

    def part(self, at: int, levels: int) -> np.ndarray:
        """The nodes at and below one, so many levels down."""
        inside = np.arange(at, at + int(self.n_nodes[at]))
        return inside[self.depth[inside] <= self.depth[at] + levels]

    def levels_that_fit(self, at: int, max_branches: int) -> int:
        """Number of levels below a node that show at most max_branches branches; at least one."""
        depth = self.depth[at : at + int(self.n_nodes[at])] - self.depth[at]
        leaf = self.n_nodes[at : at + int(self.n_nodes[at])] == 1
        ends = [int((depth == n).sum() + (leaf & (depth < n)).sum()) for n in range(1, int(depth.max()) + 1)]
        return max([n for n, n_branches in enumerate(ends, 1) if n_branches <= max_branches], default=1)


@dataclass(frozen=True)
class ClassGraph:
    """Similarity of classes: one number per pair, larger is more similar.

    kind, title, unit  the likeness by name ("confusion"), for people, and its unit ("bits"; "" for none)
    source             whose it is: a backbone, a run; "" if there is one only
    rows, columns      class_ids (R,), (C,): the same ones, or those of two splits (a bipartite graph: base, novel)
    weights            (R, C), NaN if a pair has none: a class and itself, classes that never met in a run
    """

    kind: str
    title: str
    unit: str
    source: str
    rows: np.ndarray
    columns: np.ndarray
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    weights: np.ndarray

    @property
    def cache_key(self) -> tuple[str, ...]:
        """Changes when the graph does."""
        digest = hashlib.blake2b(np.ascontiguousarray(self.weights).tobytes(), digest_size=12).hexdigest()
        return self.kind, self.source, str(self.weights.shape), *self.row_names, *self.column_names, digest

    @property
    def is_bipartite(self) -> bool:
        return not np.array_equal(self.rows, self.columns)

    def edges(self, n: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns (places) and weights of every pair, each once, or of the n heaviest; the heaviest first."""
        is_pair = ~np.isnan(self.weights)
        i, j = np.nonzero(is_pair if self.is_bipartite else np.triu(is_pair, 1))
        weights = self.weights[i, j]
        order = np.argsort(-weights, kind="stable")[:n]
        return i[order], j[order], weights[order]


@dataclass(frozen=True)
class ClassTree:
    """A tree above C classes; V nodes.

    parents  (V,) node above each, PAD for the root
    heights  (V,) how far above its classes a node is drawn, 0 for classes
    leaves   (C,) node of each class; no node is below it
    names    (V,) "" if a node has none
    title    whose tree it is
    """

    parents: np.ndarray
    heights: np.ndarray
    leaves: np.ndarray
    names: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True)
class Tanglegram:
    """Two trees of the same C classes that face each other.

    ranks      of the classes from top to bottom, (C,) in each tree
    middles    the same for every node, (V,) in each tree
    crossing   (C,) the fewest classes without which no two lines would cross
    crossings  pairs of lines that cross
    """

    trees: tuple[ClassTree, ClassTree]
    ranks: tuple[np.ndarray, np.ndarray]
    middles: tuple[np.ndarray, np.ndarray]
    crossing: np.ndarray
    crossings: int
