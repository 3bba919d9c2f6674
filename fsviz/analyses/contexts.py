"""Does a dataset lean on its backgrounds? Concepts, the contexts they were taken in, and how the two go together.

    dataset -> counts of concept x context -> association of the whole, information of every cell

The tables are those of MetaCoCo (Zhang et al. 2024, table 5). The paper measures the shift by an image-text model; the
association is ours, and needs counts alone. A concept is a class.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from fsviz import datasets
from fsviz.errors import FsvizError, Missing
from fsviz.numerics import cramers_v, cramers_v_by_chance, finite, pointwise_information
from fsviz.records import ContextTable, Dataset
from fsviz.settings import RawSettings, Setting
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.taxonomy import maps

CELLS = Table(
    "Images by context",
    Column("concept", "Class", width=110),
    Column("context", "Context", width=110),
    Column("n_images", "Images", digits=0, kind="bar", width=70),
    Column("bits", "Association", kind="bits"),
)
ORDER = Setting(
    "table_order",
    "Order",
    "In which order concepts and contexts stand.",
    "choice",
    "size",
    choices={"size": "By size", "association": "Most tied first", "taxonomy": "By meaning", "name": "By name"},
)
CELL = Setting(
    "cells",
    "Cells show",
    "Images counted in every cell, or how much more often than by chance the two come together, in bits (pointwise "
    "mutual information).",
    "choice",
    "counts",
    choices={"counts": "Images", "information": "Against chance"},
)


def load_with_images(spec: RawSettings) -> Dataset:
    """The dataset of a spec; refused where it has no images whose contexts are known."""
    dataset = datasets.load(str(spec.get("dataset", "")))
    if dataset.contexts is None or dataset.images is None:
        raise Missing(
            f"{dataset.title} has no images with contexts here. Add its images with a CSV that has a column 'context', "
            "or as folders concept/context/image."
        )
    return dataset


def context_table(dataset: Dataset, split: str = "") -> ContextTable:
    """Concepts of a split against their contexts; refused where the dataset knows no contexts."""
    if dataset.contexts is None:
        raise Missing(
            f"{dataset.title} has no contexts: it does not say in what background an image was taken. Add its images "
            "with a CSV that has a column 'context', or as folders concept/context/image: 'fsviz add NAME "
            "PATH'."
        )
    split = split or draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    known = dataset.contexts[dataset.contexts["class_id"].isin(class_ids)]
    if known.empty:
        raise Missing(f"No image of split {split!r} of {dataset.title} has a context. Pick another split.")
    wide = known.pivot_table(index="class_id", columns="context", values="n_images", aggfunc="sum", fill_value=0)
    wide = wide.reindex(class_ids, fill_value=0)
    counts = wide.to_numpy(dtype=np.int64)
    order = np.lexsort((wide.columns.astype(str), -counts.sum(0)))
    total = dataset.classes["n_images"].loc[class_ids].sum() if dataset.images is not None else counts.sum()
    return ContextTable(
        class_ids,
        tuple(dataset.distinct_names(class_ids)),
        tuple(str(wide.columns[k]) for k in order),
        counts[:, order],
        int(total) - int(counts.sum()),
    )


def association(table: ContextTable) -> dict[str, float | None]:
    """Cramer's V of the table with its 95% interval over images, and what chance alone stays below."""
    value, low, high = cramers_v(table.counts)
    found = {"v": value, "low": low, "high": high, "chance": cramers_v_by_chance(table.counts)}
    return {name: finite(number) for name, number in found.items()}


def information(table: ContextTable) -> np.ndarray:
    """Pointwise mutual information (R, K) of concept and context in bits, NaN where the two never meet."""
    return pointwise_information(table.counts)


def ties(table: ContextTable, axis: int) -> np.ndarray:
    """How far the contexts of a concept (axis 0: rows), or the concepts of a context (axis 1), are from those of all
    images: the mean pointwise information over its images, in bits from 0; NaN without images."""
    counts = table.counts if axis == 0 else table.counts.T
    bits = np.nan_to_num(information(table) if axis == 0 else information(table).T)
    with np.errstate(invalid="ignore"):
        return (counts * bits).sum(1) / counts.sum(1)


def usual_context(table: ContextTable) -> tuple[float, int]:
    """Share of images that were taken in the most common context of their concept, and in how many contexts a concept
    is seen (the median)."""
    largest = table.counts.max(1, initial=0).sum()
    return float(largest / max(table.n_images, 1)), int(np.median((table.counts > 0).sum(1)))


def ordered(dataset: Dataset, split: str, table: ContextTable, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns in this order. By meaning, columns follow the rows that they are most seen with."""
    sizes = table.counts.sum(1), table.counts.sum(0)
    if by == "name":
        return (
            np.array(sorted(range(len(table.names)), key=lambda i: table.names[i].lower()), dtype=int),
            np.array(sorted(range(len(table.contexts)), key=lambda k: table.contexts[k].lower()), dtype=int),
        )
    if by == "association":
        rows, columns = (np.argsort(-np.nan_to_num(ties(table, axis)), kind="stable") for axis in (0, 1))
        return rows, columns
    rows, columns = (np.argsort(-size, kind="stable") for size in sizes)
    if by == "taxonomy":
        rows = _by_meaning(dataset, split, len(table.names))
        place = np.empty(len(rows))
        place[rows] = np.arange(len(rows))
        columns = np.argsort((place[:, None] * table.counts).sum(0) / np.maximum(sizes[1], 1), kind="stable")
    return rows, columns


def orders(dataset: Dataset) -> dict[str, str]:
    """The orders that a dataset can give."""
    return {name: title for name, title in ORDER.choices.items() if name != "taxonomy" or dataset.taxonomy is not None}


def _by_meaning(dataset: Dataset, split: str, n_rows: int) -> np.ndarray:
    """Concepts as a walk through the taxonomy meets them; as they are where one of them is not in it."""
    try:
        return maps.class_order(maps.spanning_graph(dataset, split))
    except FsvizError:
        return np.arange(n_rows)


def images_of(dataset: Dataset, class_id: int | None, context: str | None) -> np.ndarray:
    """Images of a concept, of a context, or of both."""
    if dataset.images is None or "context" not in dataset.images:
        return np.zeros(0, dtype=np.int64)
    keep = np.ones(len(dataset.images), dtype=bool)
    if class_id is not None:
        keep &= dataset.images["class_id"].to_numpy() == class_id
    if context is not None:
        keep &= dataset.images["context"].astype(str).to_numpy() == context
    return np.flatnonzero(keep)


def single(table: ContextTable) -> list[str]:
    """Concepts that are seen in one context only, or in none: no task can ask for them in another one."""
    return [table.names[i] for i in np.flatnonzero((table.counts > 0).sum(1) < 2)]


def summary(dataset: Dataset, split: str = "") -> dict[str, Any]:
    """The table and what follows from it, as a command prints it."""
    split = split or draw.default_split(dataset)
    table = context_table(dataset, split)
    bits = information(table)
    usual, median = usual_context(table)
    cells = [
        {"concept": table.names[i], "context": table.contexts[k], "n_images": int(table.counts[i, k])}
        | {"bits": float(bits[i, k])}
        for i, k in np.argwhere(table.counts > 0)
    ]
    return {
        "dataset": dataset.name,
        "split": split,
        "n_concepts": len(table.names),
        "n_contexts": len(table.contexts),
        "n_images": table.n_images,
        "n_without_context": table.n_without,
        "association": association(table),
        "usual_context_share": usual,
        "contexts_per_concept": median,
        "single_context": single(table),
        "cells": sorted(cells, key=lambda cell: -cell["bits"]),
        "notes": list(dataset.notes),
    }


def command(dataset: Dataset, split: str, more: Sequence[str] = ()) -> str:
    return shlex.join(["fsviz", "contexts", dataset.name, "--split", split, *more])
