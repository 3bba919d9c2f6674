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
    """Matches of training and test classes among the strongest edges (section IV-B4); positions in rows and columns.

    matches      (training, test) classes with an edge to each other and no other edge
    split_train  training class -> the test classes that share it
    split_test   test class -> the training classes that it is spread over
    unmatched    test classes without an edge
    """

    matches: list[tuple[int, int]]
    split_train: dict[int, list[int]]
    split_test: dict[int, list[int]]
    unmatched: list[int]


def train_test_matches(graph: ClassGraph, n_edges: int) -> TrainTestMatches:
    """The matches among the n_edges heaviest edges of a bipartite graph."""
    i, j, weights = graph.edges(n_edges)
    i, j = i[weights > 0], j[weights > 0]
    train, test = np.bincount(i, minlength=len(graph.rows)), np.bincount(j, minlength=len(graph.columns))
    return TrainTestMatches(
        [(int(a), int(b)) for a, b in zip(i, j, strict=True) if train[a] == test[b] == 1],
        {int(a): j[i == a].tolist() for a in np.lexsort((np.arange(len(train)), -train)) if train[a] > 1},
        {int(b): i[j == b].tolist() for b in np.lexsort((np.arange(len(test)), -test)) if test[b] > 1},
        np.flatnonzero(test == 0).tolist(),
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
    """The edges of both graphs and the correlation of their weights, with 95% CI over classes."""
    from scipy import stats

    if not (np.array_equal(first.rows, second.rows) and np.array_equal(first.columns, second.columns)):
        raise BadInput("Two graphs can be compared only if they have the same classes. Use one split.")
    is_edge = ~(np.isnan(first.weights) | np.isnan(second.weights))
    i, j = np.nonzero(is_edge if first.is_bipartite else np.triu(is_edge, 1))
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
    both = [evaluation.correlation(y, x, pairs, rank=rank) for rank in (False, True)]
    return SimilarityComparison(first, second, table, i, j, *both)


def outliers(compared: SimilarityComparison, n: int = 5, min_gap: float = 0.5) -> tuple[list[int], list[int]]:
    """Edges (rows of the table) that rank far higher in the first graph than in the second, and the reverse.

    min_gap  smallest difference between the two ranks, as a share of all pairs
    """
    gap = compared.table["gap"].to_numpy()
    order = np.argsort(-gap, kind="stable")
    return (
        [int(e) for e in order[:n] if gap[e] >= min_gap],
        [int(e) for e in order[::-1][:n] if gap[e] <= -min_gap],
    )


def describe_edge(compared: SimilarityComparison, edge: int) -> tuple[str, str]:
    """A pair in both graphs, as text: ("large overlap", "semantically far")."""
    row = compared.table.iloc[edge]
    texts = []
    for graph, value, sign in ((compared.first, row["first"], 1), (compared.second, row["second"], -1)):
        similarity = SIMILARITIES[graph.kind]
        is_large = sign * row["gap"] > 0
        text = similarity.much if is_large else similarity.never if value <= 0 else similarity.little
        same = compared.first.kind == compared.second.kind
        texts.append(f"{text} with {title_of(graph.source)}" if same and graph.source else text)
    return texts[0], texts[1]


def describe_comparison(compared: SimilarityComparison) -> str:
    """The rank correlation of two graphs over pairs of classes, as a sentence."""
    n_pairs, rho = len(compared.table), compared.spearman
    first, second = (_name(graph, compared) for graph in (compared.first, compared.second))
    if np.isnan(rho.value):
        return f"{first} and {second} cannot be correlated: all pairs of one are equal."
    interval = "" if np.isnan(rho.low) else f" (95% CI over {rho.ci_unit} {rho.low:.2f} to {rho.high:.2f})"
    return f"{first} and {second}: rank correlation {rho.value:.2f}{interval} over {n_pairs:,} pairs of classes."


def describe_correlations(compared: SimilarityComparison) -> str:
    """Both correlations with their intervals, as text."""
    texts = []
    for name, correlation in (("Pearson", compared.pearson), ("Spearman", compared.spearman)):
        interval = "" if np.isnan(correlation.low) else f" ({correlation.low:.2f} to {correlation.high:.2f})"
        is_known = not np.isnan(correlation.value)
        texts.append(f"{name} {correlation.value:.2f}{interval}" if is_known else f"{name} not available")
    return ", ".join(texts)


def _name(graph: ClassGraph, compared: SimilarityComparison) -> str:
    """The backbone of a graph if both have the same similarity, else the similarity."""
    same = compared.first.kind == compared.second.kind
    return title_of(graph.source) if same and graph.source else graph.title
