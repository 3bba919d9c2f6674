"""Two graphs of the same classes compared, one pair of classes, and pairs of train and test classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fsviz import evaluation
from fsviz.errors import BadInput
from fsviz.evaluation.intervals import Correlation
from fsviz.features.backbones import title_of
from fsviz.records.graphs import ClassGraph
from fsviz.studies.confusion.similarities import SIMILARITIES


@dataclass(frozen=True)
class TrainTestMatches:
    """Matches of train and test classes, by the kept edges (section IV-B4); positions in rows and columns.

    matches      (base, novel) joined to each other alone: what a novel class looks like, one base class has taught
    split_base   base -> novel classes that share it: their images look alike to the backbone
    split_novel  novel -> base classes that it is spread over
    alone        novel classes without an edge
    """

    matches: list[tuple[int, int]]
    split_base: dict[int, list[int]]
    split_novel: dict[int, list[int]]
    alone: list[int]


def train_test_matches(graph: ClassGraph, n_edges: int) -> TrainTestMatches:
    """Perfect matches, split base classes and split novel classes among the heaviest edges of a bipartite graph."""
    i, j, weights = graph.edges(n_edges)
    i, j = i[weights > 0], j[weights > 0]
    base, novel = np.bincount(i, minlength=len(graph.rows)), np.bincount(j, minlength=len(graph.columns))
    return TrainTestMatches(
        [(int(a), int(b)) for a, b in zip(i, j, strict=True) if base[a] == novel[b] == 1],
        {int(a): j[i == a].tolist() for a in np.lexsort((np.arange(len(base)), -base)) if base[a] > 1},
        {int(b): i[j == b].tolist() for b in np.lexsort((np.arange(len(novel)), -novel)) if novel[b] > 1},
        np.flatnonzero(novel == 0).tolist(),
    )


@dataclass(frozen=True)
class SimilarityComparison:
    """Two graphs of the same classes, edge by edge.

    table  columns a, b (names), first, second (weights), gap: the share of pairs below it in the first graph less that
           in the second, from -1 to 1
    i, j   (E,) positions of the pairs
    """

    first: ClassGraph
    second: ClassGraph
    table: pd.DataFrame
    i: np.ndarray
    j: np.ndarray
    pearson: Correlation
    spearman: Correlation


def compare(first: ClassGraph, second: ClassGraph) -> SimilarityComparison:
    """The edges that both graphs know, and how their weights go together; intervals are over classes."""
    from scipy import stats

    if not (np.array_equal(first.rows, second.rows) and np.array_equal(first.columns, second.columns)):
        raise BadInput("Two graphs are compared edge by edge, so they must be of the same classes. Use one split.")
    known = ~(np.isnan(first.weights) | np.isnan(second.weights))
    i, j = np.nonzero(known if first.is_bipartite else np.triu(known, 1))
    x, y = first.weights[i, j], second.weights[i, j]
    ranks = [(stats.rankdata(v) - 0.5) / max(len(v), 1) for v in (x, y)]
    table = pd.DataFrame(
        {
            "a": np.array(first.row_names, dtype=object)[i],
            "b": np.array(first.column_names, dtype=object)[j],
            "first": x,
            "second": y,
            "gap": ranks[0] - ranks[1],
        }
    )
    pairs = np.stack([first.rows[i], first.columns[j]], 1)
    found = [evaluation.correlation(y, x, pairs, rank=rank) for rank in (False, True)]
    return SimilarityComparison(first, second, table, i, j, *found)


def outliers(compared: SimilarityComparison, n: int = 5, least: float = 0.5) -> tuple[list[int], list[int]]:
    """Edges (rows of the table) far larger in the first graph than in the second, and the other way round.

    least  share of all pairs by which their places differ at least
    """
    gap = compared.table["gap"].to_numpy()
    order = np.argsort(-gap, kind="stable")
    return (
        [int(e) for e in order[:n] if gap[e] >= least],
        [int(e) for e in order[::-1][:n] if gap[e] <= -least],
    )


def describe_edge(compared: SimilarityComparison, edge: int) -> tuple[str, str]:
    """How a pair is spoken of in both graphs: ("often confused", "far in meaning")."""
    row = compared.table.iloc[edge]
    said = []
    for graph, value, above in ((compared.first, row["first"], 1), (compared.second, row["second"], -1)):
        likeness = SIMILARITIES[graph.kind]
        large = above * row["gap"] > 0
        told = likeness.much if large else likeness.never if value <= 0 else likeness.little
        same = compared.first.kind == compared.second.kind
        said.append(f"{told} by {title_of(graph.source)}" if same and graph.source else told)
    return said[0], said[1]
