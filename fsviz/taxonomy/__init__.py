"""Hierarchies of classes: the graph that spans a split, distances in meaning."""

from __future__ import annotations

from fsviz.taxonomy.concepts import class_concepts
from fsviz.taxonomy.dag import DAG_MODES, Dag, collapse, n_concepts, span, split_dag
from fsviz.taxonomy.distances import (
    DAG,
    DISTANCE,
    DISTANCES,
    Distance,
    class_distances,
    feature_distances,
    lowest_superordinate,
    superordinates,
)

__all__ = [
    "DAG",
    "DAG_MODES",
    "DISTANCE",
    "DISTANCES",
    "Dag",
    "Distance",
    "class_concepts",
    "class_distances",
    "collapse",
    "feature_distances",
    "lowest_superordinate",
    "n_concepts",
    "span",
    "split_dag",
    "superordinates",
]
