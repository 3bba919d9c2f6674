"""Filter images by split, class, context and attribute, and order them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import Missing, UnknownName
from fsviz.records import Dataset

BY_CLASS, SHUFFLED = "class", "shuffled"
BY_NEIGHBOURS, BY_ERRORS = "own_class_neighbours", "errors_in_run"  # ordered by numbers that a page computes


@dataclass(frozen=True)
class ImageFilter:
    """Conditions on images; without any, all images pass.

    attributes  name -> allowed values (a list), or the allowed range (a pair low, high) of a numeric attribute
    image_ids   the only images that pass, such as those that a run classifies incorrectly; None for all
    """

    split: str = "all"
    class_ids: Sequence[int] = ()
    contexts: Sequence[str] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    image_ids: np.ndarray | None = None


def select_images(
    dataset: Dataset,
    conditions: ImageFilter,
    order: str = BY_CLASS,
    seed: int = 0,
    values: np.ndarray | None = None,
) -> np.ndarray:
    """Image ids that pass the filter: by class, shuffled (the same for the same seed), or by an attribute, low to high.

    Images without a value of the attribute come last.

    values  numbers (N,) of all images to order them by instead, low to high; NaN comes last
    """
    keep = _passing(dataset, conditions)
    assert dataset.images is not None
    class_ids = dataset.images["class_id"].to_numpy()
    ids = np.flatnonzero(keep)
    if values is not None:
        return ids[np.argsort(values[ids], kind="stable")]
    if order == SHUFFLED:
        return np.random.default_rng(seed).permutation(ids)
    if order == BY_CLASS:
        return ids[np.argsort(class_ids[ids], kind="stable")]
    column = _column(dataset, order).iloc[ids]
    if not is_numeric(column):
        column = column.astype("string")
    return ids[np.argsort(column.rank(method="first", na_option="bottom").to_numpy(), kind="stable")]


def facet_counts(dataset: Dataset, conditions: ImageFilter, facet: str) -> dict[Any, int]:
    """Number of images of each value of a facet among those that pass all other conditions, largest first.

    facet  "split", "class" (by name), "context", or the name of an attribute with values
    """
    without = {"split": {"split": "all"}, "class": {"class_ids": ()}, "context": {"contexts": ()}}
    attributes = {name: value for name, value in conditions.attributes.items() if name != facet}
    wider = replace(conditions, **without.get(facet, {"attributes": attributes}))  # type: ignore[arg-type]
    keep = _passing(dataset, wider)
    assert dataset.images is not None
    class_ids = dataset.images["class_id"].to_numpy()[keep]
    if facet == "split":
        inside = {split: int(np.isin(class_ids, dataset.split_class_ids(split)).sum()) for split in dataset.splits}
        return {**inside, "all": len(class_ids)}
    if facet == "class":
        values = dataset.classes["class_name"].astype(str).iloc[class_ids]
    elif facet == "context":
        values = dataset.images["context"][keep].replace("", None)
    else:
        values = _column(dataset, facet)[keep]
    return {_plain(value): int(n) for value, n in values.value_counts().items() if n}


def describe(dataset: Dataset, image_ids: np.ndarray) -> tuple[str, str]:
    """A sentence with the numbers of images, classes and contexts among these images, and one about their sizes."""
    assert dataset.images is not None
    images = dataset.images.iloc[image_ids]
    if not len(images):
        return "No images match.", "Remove a filter."
    sizes = images["class_id"].value_counts()
    counts = [f"{_counted(len(images), 'image')} of {_counted(len(sizes), 'class', 'es')}"]
    if dataset.contexts is not None:
        contexts = images["context"]
        counts.append(_counted(int(contexts[contexts.notna() & (contexts != "")].nunique()), "context"))
    least, most = int(sizes.min()), int(sizes.max())
    per_class = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    more = f"{per_class} {'image' if most == 1 else 'images'} per class."
    if len(images) < len(dataset.images):
        more = f"{len(images) / len(dataset.images):.0%} of all {len(dataset.images):,} images. {more}"
    return ", ".join(counts) + ".", more


def _counted(n: int, noun: str, plural: str = "s") -> str:
    return f"{n:,} {noun}{'' if n == 1 else plural}"


def is_numeric(values: pd.Series) -> bool:
    """Whether a range, rather than a list of values, describes an attribute; yes/no counts as values."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def attribute_values(dataset: Dataset, name: str) -> list[Any] | tuple[float, float]:
    """The values of an attribute, most frequent first, or its range if it is numeric."""
    values = _column(dataset, name).dropna()
    if not is_numeric(values):
        return [_plain(value) for value in values.value_counts().index]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def image_row(dataset: Dataset, image_id: int) -> dict[str, Any]:
    """The facts about one image in the tables, by readable names."""
    assert dataset.images is not None
    row = dataset.images.iloc[image_id]
    class_row = dataset.classes.iloc[int(row["class_id"])]
    facts: dict[str, Any] = {"image": int(image_id), "class": class_row["class_name"], "split": class_row["split"]}
    if "context" in row and not pd.isna(row["context"]) and row["context"] != "":
        facts["context"] = row["context"]
    for name in dataset.attributes:
        value = row[name]
        facts[name] = None if pd.isna(value) else _plain(value)
    if dataset.origin == "folder":
        facts["file"] = row["path"]
    return facts


def _passing(dataset: Dataset, conditions: ImageFilter) -> np.ndarray:
    """Whether each image passes all conditions."""
    if dataset.images is None:
        raise Missing(f"{dataset.title} has no images here. Add your copy with 'fsviz add NAME PATH'.")
    images = dataset.images
    keep = np.ones(len(images), dtype=bool)
    class_ids = images["class_id"].to_numpy()
    if conditions.image_ids is not None:
        keep[:] = False
        keep[conditions.image_ids] = True
    if conditions.split != "all":
        keep &= np.isin(class_ids, dataset.split_class_ids(conditions.split))
    if len(conditions.class_ids):
        keep &= np.isin(class_ids, np.asarray(conditions.class_ids))
    if len(conditions.contexts):
        keep &= images["context"].isin(list(conditions.contexts)).to_numpy()
    for name, value in conditions.attributes.items():
        keep &= _passes(_column(dataset, name), value)
    return keep


def _plain(value: Any) -> Any:
    """A value of a table as Python has it."""
    return value.item() if hasattr(value, "item") else value


def _column(dataset: Dataset, name: str) -> pd.Series:
    if dataset.images is None or name not in dataset.attributes:
        raise UnknownName("attribute", name, dataset.attributes)
    return dataset.images[name]


def _passes(values: pd.Series, condition: Any) -> np.ndarray:
    if isinstance(condition, tuple):
        low, high = condition
        return values.between(low, high).fillna(False).to_numpy(dtype=bool)
    return values.isin(list(condition)).to_numpy(dtype=bool)
