"""Filter images by split, class, context and attribute, and order them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import Missing, UnknownName
from fsviz.records import Dataset

BY_CLASS, SHUFFLED = "class", "shuffled"


@dataclass(frozen=True)
class ImageFilter:
    """Conditions on images; an empty one keeps everything.

    attributes  name -> the values kept (a list), or the range kept (a pair low, high) of a numeric attribute
    """

    split: str = "all"
    class_ids: Sequence[int] = ()
    contexts: Sequence[str] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)


def select_images(dataset: Dataset, conditions: ImageFilter, order: str = BY_CLASS, seed: int = 0) -> np.ndarray:
    """Image ids that pass the filter: by class, shuffled (the same for the same seed), or by an attribute, low to high.

    Images without a value of the attribute come last.
    """
    if dataset.images is None:
        raise Missing(f"{dataset.title} has no images here. Add your copy with 'fsviz add NAME PATH'.")
    images = dataset.images
    keep = np.ones(len(images), dtype=bool)
    class_ids = images["class_id"].to_numpy()
    if conditions.split != "all":
        keep &= np.isin(class_ids, dataset.split_class_ids(conditions.split))
    if len(conditions.class_ids):
        keep &= np.isin(class_ids, np.asarray(conditions.class_ids))
    if len(conditions.contexts):
        keep &= images["context"].isin(list(conditions.contexts)).to_numpy()
    for name, value in conditions.attributes.items():
        keep &= _passes(_column(dataset, name), value)
    ids = np.flatnonzero(keep)
    if order == SHUFFLED:
        return np.random.default_rng(seed).permutation(ids)
    if order == BY_CLASS:
        return ids[np.argsort(class_ids[ids], kind="stable")]
    values = _column(dataset, order).iloc[ids]
    if not is_numeric(values):
        values = values.astype("string")
    return ids[np.argsort(values.rank(method="first", na_option="bottom").to_numpy(), kind="stable")]


def is_numeric(values: pd.Series) -> bool:
    """Whether a range, rather than a list of values, describes an attribute; yes/no counts as values."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def attribute_values(dataset: Dataset, name: str) -> list[Any] | tuple[float, float]:
    """The values an attribute takes, most usual first, or its range when it is numeric."""
    values = _column(dataset, name).dropna()
    if not is_numeric(values):
        return [value.item() if hasattr(value, "item") else value for value in values.value_counts().index]
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
        facts[name] = None if pd.isna(value) else value.item() if hasattr(value, "item") else value
    if dataset.origin == "folder":
        facts["file"] = row["path"]
    return facts


def _column(dataset: Dataset, name: str) -> pd.Series:
    if dataset.images is None or name not in dataset.attributes:
        raise UnknownName("attribute", name, dataset.attributes)
    return dataset.images[name]


def _passes(values: pd.Series, condition: Any) -> np.ndarray:
    if isinstance(condition, tuple):
        low, high = condition
        return values.between(low, high).fillna(False).to_numpy(dtype=bool)
    return values.isin(list(condition)).to_numpy(dtype=bool)
