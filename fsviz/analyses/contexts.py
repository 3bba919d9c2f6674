"""Association of classes and contexts: is a class always seen in front of the same background?

    dataset -> counts of class x context -> association of the table, information of every cell

The tables are those of MetaCoCo (Zhang et al. 2024, table 5). The paper measures the shift by an image-text model. The
association is ours, and needs only counts. MetaCoCo calls classes concepts.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsviz.errors import FsvizError, Missing
from fsviz.numerics import cramers_v, cramers_v_by_chance, finite, pointwise_information
from fsviz.records import ContextTable, Dataset
from fsviz.settings import Setting
from fsviz.tables import Column, Table
from fsviz.tasks import draw
from fsviz.taxonomy import maps

CELLS = Table(
    "Images by context",
    Column("concept", "Class", kind="class", width=110),
    Column("context", "Context", width=110),
    Column("n_images", "Images", digits=0, kind="bar", width=70),
    Column("bits", "Association", kind="bits"),
)
ORDER = Setting(
    "table_order",
    "Order",
    "Order of classes and contexts.",
    "choice",
    "size",
    choices={"size": "By size", "association": "By association", "taxonomy": "By taxonomy", "name": "By name"},
)
CELL = Setting(
    "cells",
    "Cells show",
    "Images, or how much more often than expected by chance class and context occur together, in bits (pointwise "
    "mutual information).",
    "choice",
    "counts",
    choices={"counts": "Images", "information": "Association"},
)


def context_table(dataset: Dataset, split: str = "") -> ContextTable:
    """Counts of the classes of a split by context; refuse a dataset without contexts."""
    if dataset.contexts is None:
        raise Missing(
            f"{dataset.title} has no contexts. Name them with 'fsviz label NAME', or add images with a CSV that has a "
            "column 'context', or as folders concept/context/image: fsviz add NAME PATH"
        )
    split = split or draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    rows = dataset.contexts[dataset.contexts["class_id"].isin(class_ids)]
    if rows.empty:
        raise Missing(f"No image of split {split!r} of {dataset.title} has a context. Pick another split.")
    counts_by_class = rows.pivot_table(
        index="class_id", columns="context", values="n_images", aggfunc="sum", fill_value=0
    )
    counts_by_class = counts_by_class.reindex(class_ids, fill_value=0)
    counts = counts_by_class.to_numpy(dtype=np.int64)
    order = np.lexsort((counts_by_class.columns.astype(str), -counts.sum(0)))
    total = dataset.classes["n_images"].loc[class_ids].sum() if dataset.images is not None else counts.sum()
    return ContextTable(
        class_ids,
        tuple(dataset.distinct_names(class_ids)),
        tuple(str(counts_by_class.columns[k]) for k in order),
        counts[:, order],
        int(total) - int(counts.sum()),
    )


def association(table: ContextTable) -> dict[str, float | None]:
    """Cramér's V of the table with its 95% interval over images, and the 95% quantile of shuffled tables."""
    value, low, high = cramers_v(table.counts)
    values = {"v": value, "low": low, "high": high, "chance": cramers_v_by_chance(table.counts)}
    return {name: finite(number) for name, number in values.items()}


def association_answer(cramer: Mapping[str, float | None]) -> tuple[str, str]:
    """The association as a bold sentence, with its interval; takes the result of `association`."""
    if cramer["v"] is None or cramer["chance"] is None:
        return "Class–context association is not available.", "It needs at least two classes and two contexts."
    interval = "" if cramer["low"] is None else f"95% CI {cramer['low']:.2f} to {cramer['high']:.2f} over images. "
    value = f"V = {cramer['v']:.2f} (expected by chance below {cramer['chance']:.2f})"
    more = f"{interval}0 = independent, 1 = context determines the class."
    if cramer["v"] <= cramer["chance"]:
        return f"Class and context are not significantly associated: {value}.", more
    return f"Class and context are associated: {value}.", more


def information(table: ContextTable) -> np.ndarray:
    """Pointwise mutual information (R, K) of class and context in bits, NaN for empty cells."""
    return pointwise_information(table.counts)


def association_strengths(table: ContextTable, axis: int) -> np.ndarray:
    """Association of every class (axis 0) or context (axis 1) in bits, at least 0; NaN without images.

    The mean pointwise information over its images: how far its contexts (or classes) are from those of all images.
    """
    counts = table.counts if axis == 0 else table.counts.T
    bits = np.nan_to_num(information(table) if axis == 0 else information(table).T)
    with np.errstate(invalid="ignore"):
        return (counts * bits).sum(1) / counts.sum(1)


def common_context(table: ContextTable) -> tuple[float, int]:
    """Share of images in the most common context of their class, and the median number of contexts per class."""
    largest = table.counts.max(1, initial=0).sum()
    return float(largest / max(table.n_images, 1)), int(np.median((table.counts > 0).sum(1)))


def ordered(dataset: Dataset, split: str, table: ContextTable, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns in this order. By taxonomy, columns follow the rows that share most of their images."""
    sizes = table.counts.sum(1), table.counts.sum(0)
    if by == "name":
        return (
            np.array(sorted(range(len(table.names)), key=lambda i: table.names[i].lower()), dtype=int),
            np.array(sorted(range(len(table.contexts)), key=lambda k: table.contexts[k].lower()), dtype=int),
        )
    if by == "association":
        rows, columns = (
            np.argsort(-np.nan_to_num(association_strengths(table, axis)), kind="stable") for axis in (0, 1)
        )
        return rows, columns
    rows, columns = (np.argsort(-size, kind="stable") for size in sizes)
    if by == "taxonomy":
        rows = _semantic_order(dataset, split, len(table.names))
        rank = np.empty(len(rows))
        rank[rows] = np.arange(len(rows))
        columns = np.argsort((rank[:, None] * table.counts).sum(0) / np.maximum(sizes[1], 1), kind="stable")
    return rows, columns


def orders(dataset: Dataset) -> dict[str, str]:
    """The orders that a dataset allows."""
    return {name: title for name, title in ORDER.choices.items() if name != "taxonomy" or dataset.taxonomy is not None}


def _semantic_order(dataset: Dataset, split: str, n_rows: int) -> np.ndarray:
    """Classes in the order of the taxonomy; unchanged if one of them is not in it."""
    try:
        return maps.class_order(maps.spanning_graph(dataset, split))
    except FsvizError:
        return np.arange(n_rows)


def images_of(dataset: Dataset, class_id: int | None, context: str | None) -> np.ndarray:
    """Images of a class, of a context, or of both."""
    if dataset.images is None or "context" not in dataset.images:
        return np.zeros(0, dtype=np.int64)
    keep = np.ones(len(dataset.images), dtype=bool)
    if class_id is not None:
        keep &= dataset.images["class_id"].to_numpy() == class_id
    if context is not None:
        keep &= dataset.images["context"].astype(str).to_numpy() == context
    return np.flatnonzero(keep)


def single_context(table: ContextTable) -> list[str]:
    """Classes with at most one context: no task can shift their context."""
    return [table.names[i] for i in np.flatnonzero((table.counts > 0).sum(1) < 2)]


def summary(dataset: Dataset, split: str = "") -> dict[str, Any]:
    """Summary of the table for the command line."""
    split = split or draw.default_split(dataset)
    table = context_table(dataset, split)
    bits = information(table)
    share, median = common_context(table)
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
        "usual_context_share": share,
        "contexts_per_concept": median,
        "single_context": single_context(table),
        "cells": sorted(cells, key=lambda cell: -cell["bits"]),
        "notes": list(dataset.notes),
    }


def command(dataset: Dataset, split: str, more: Sequence[str] = ()) -> str:
    return shlex.join(["fsviz", "contexts", dataset.name, "--split", split, *more])
