"""Caches for all visitors: `cached_call` for functions of the engine, `cache_data` for those of a page.

A function of a dataset is computed again when the dataset changes in the workspace, whatever its record's age. An
argument of another type that is too large to hash declares `cache_key`, a property that changes when the argument does.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
import streamlit as st

from fsviz import datasets, taxonomy
from fsviz.analyses import headline
from fsviz.errors import FsvizError
from fsviz.records import Dataset
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.settings import RawSettings
from fsviz.tasks import draw, task_ids
from fsviz.taxonomy import Dag, maps
from fsviz.ui.parts.shell import escape

Function = TypeVar("Function", bound=Callable)
Answer = TypeVar("Answer")
MOST_COMPUTED = 32  # answers kept by compute_with_progress, each a few megabytes at most


def identity(dataset: Dataset) -> tuple[str, str]:
    """Changes when the dataset does: what stands for it in every cache key."""
    return dataset.name, datasets.stamp(dataset.name)


def cache_data(
    words: str | bool = False, most: int = 32, hashes: Mapping[type, Callable[[Any], Any]] | None = None
) -> Callable[[Function], Function]:
    """Keeps the answers of a function for all visitors; `words` are shown while it computes.

    hashes  what stands in the cache key for arguments of a type that is too large to hash itself

    Answers are shared, not copied: nobody may change them.
    """
    all_hashes: dict[Any, Callable[[Any], Any]] = {Dataset: identity, **(hashes or {})}
    return cast(
        Callable[[Function], Function],
        st.cache_resource(show_spinner=words, max_entries=most, hash_funcs=all_hashes),
    )


def cached_call(function: Callable[..., Answer], *args: Any, words: str = "", keep: int = 32, **more: Any) -> Answer:
    """The answer of a function of a module, kept for all visitors; `words` are shown while it computes.

    keep  answers of this function that are kept
    """
    for value in (*args, *more.values()):
        if hasattr(type(value), "cache_key"):
            _HASHES[type(value)] = _cache_key
    return _cached(function, words, keep)(*args, **more)


_HASHES: dict[Any, Callable[[Any], Any]] = {Dataset: identity}


def _cache_key(value: Any) -> Any:
    return value.cache_key


@functools.cache
def _cached(function: Callable[..., Answer], words: str, keep: int) -> Callable[..., Answer]:
    """A cached version of a function, with a unique name: Streamlit distinguishes functions by name and source."""

    def call(*args: Any, **more: Any) -> Answer:
        return function(*args, **more)

    digest = hashlib.blake2b(inspect.getsource(function).encode(), digest_size=8).hexdigest()
    call.__qualname__ = f"{function.__module__}.{function.__qualname__}.{digest}"
    return st.cache_resource(show_spinner=words or False, max_entries=keep, hash_funcs=_HASHES)(call)


def compute_with_progress(compute: Callable[..., Answer], spec: RawSettings, words: str) -> Answer:
    """The answer of a study to a spec, computed once for all visitors with a bar that says how far it is.

    A function kept by `cache_data` replays what it drew, so a bar cannot live in one. Moving the bar lets Streamlit
    stop the computation as soon as the visitor changes a setting or leaves.
    """
    memory, key = _computed(), _key(compute, spec)
    slot = st.empty()
    if key not in memory:
        slot.progress(0.0, f"{words} …")

        def say(done: int, total: int, message: str) -> None:
            slot.progress(min(1.0, done / max(total, 1)), f"{words}: {escape(message)}, {done:,} of {total:,}")

        try:
            memory[key] = compute(spec, progress=say)
        except FsvizError:  # the page says why in its place
            slot.empty()
            raise
        while len(memory) > MOST_COMPUTED:
            memory.popitem(last=False)
        slot.empty()
    return memory[key]


def is_computed(compute: Callable[..., Any], spec: RawSettings) -> bool:
    """Whether `compute_with_progress` would answer at once."""
    return _key(compute, spec) in _computed()


def _key(compute: Callable[..., Any], spec: RawSettings) -> tuple[str, str, str]:
    return compute.__qualname__, json.dumps(spec, sort_keys=True), datasets.stamp(spec["dataset"])


@st.cache_resource(show_spinner=False)
def _computed() -> OrderedDict[tuple[str, str, str], Any]:
    return OrderedDict()


@cache_data("Measuring distances between classes", 24)
def distances(dataset: Dataset, split: str, distance: str, dag: str, backbone: str | None) -> np.ndarray:
    return draw.class_distances(dataset, split, distance, dag, backbone)


@cache_data(most=24)
def graph(dataset: Dataset, split: str, dag: str) -> Dag:
    return maps.spanning_graph(dataset, split, dag)


@cache_data(most=48)
def part(dataset: Dataset, split: str, dag: str, at: str) -> tuple[Dag, np.ndarray]:
    """The graph below a node, and the places of its classes in the split."""
    complete = graph(dataset, split, dag)
    return (complete, np.arange(complete.n_classes)) if at == complete.nodes[0] else maps.classes_below(complete, at)


@cache_data(most=48)
def n_concepts(dataset: Dataset, split: str, dag: str, at: str = "") -> int:
    """The number of concepts above the classes of a split, or of those below a node."""
    return taxonomy.n_concepts(part(dataset, split, dag, at)[0] if at else graph(dataset, split, dag))


@cache_data(most=48)
def class_map(
    dataset: Dataset, split: str, dag: str, at: str, deepest: int | None, layout: str, reveal: tuple[int, ...] = ()
) -> ClassMap:
    """The graph below a node, laid out; `reveal` are places among the classes below it."""
    return maps.class_map(part(dataset, split, dag, at)[0], deepest, layout, reveal)


@cache_data(most=24)
def concept_tree(dataset: Dataset, split: str, dag: str) -> ConceptTree:
    return maps.concept_tree(graph(dataset, split, dag))


@cache_data(most=48)
def levels_that_fit(dataset: Dataset, split: str, dag: str, at: str, most: int) -> int:
    return maps.levels_that_fit(part(dataset, split, dag, at)[0], most)


@cache_data(most=24)
def class_order(dataset: Dataset, split: str, dag: str) -> np.ndarray:
    return maps.class_order(graph(dataset, split, dag))


@cache_data("Classifying 1,000 random tasks", 16)
def look(dataset: Dataset) -> headline.TaskContrast:
    return headline.contrast(dataset)


@cache_data(most=16)
def look_name(dataset: Dataset) -> str:
    """The name of these tasks in links, "" if only their images name them."""
    contrast = look(dataset)
    return task_ids.name_testbed(
        dataset, contrast.tasks, contrast.recipe.values, (contrast.backbone,) if contrast.backbone else ()
    )
