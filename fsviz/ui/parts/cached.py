"""What pages compute once and keep: `remember` is the one idiom, the functions below are shared by several pages.

A function of a dataset is computed again when the dataset changes in the workspace, whatever its record's age.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import streamlit as st

from fsviz import datasets
from fsviz.records import ClassMap, Dataset
from fsviz.studies import semantic_sampling
from fsviz.taxonomy import Dag, maps

Function = TypeVar("Function", bound=Callable)


def identity(dataset: Dataset) -> tuple[str, str]:
    """Changes when the dataset does: what stands for it in every cache key."""
    return dataset.name, datasets.stamp(dataset.name)


def remember(words: str | bool = False, most: int = 32) -> Callable[[Function], Function]:
    """Keeps the answers of a function for all visitors; `words` are shown while it computes.

    Answers are shared, not copied: nobody may change them.
    """
    return st.cache_resource(show_spinner=words, max_entries=most, hash_funcs={Dataset: identity})


@remember("Measuring distances between classes", 24)
def distances(dataset: Dataset, split: str, distance: str, dag: str, backbone: str | None) -> np.ndarray:
    return semantic_sampling.class_distances(dataset, split, distance, dag, backbone)


@remember(most=24)
def graph(dataset: Dataset, split: str, dag: str) -> Dag:
    return maps.spanning_graph(dataset, split, dag)


@remember(most=48)
def class_map(
    dataset: Dataset, split: str, dag: str, deepest: int | None, layout: str, reveal: tuple[int, ...] = ()
) -> ClassMap:
    return maps.class_map(graph(dataset, split, dag), deepest, layout, reveal)


@remember(most=24)
def class_order(dataset: Dataset, split: str, dag: str) -> np.ndarray:
    return maps.class_order(graph(dataset, split, dag))


@remember(most=24)
def concepts(dataset: Dataset, split: str, dag: str) -> dict[str, tuple[str, np.ndarray]]:
    return maps.concepts(graph(dataset, split, dag))
