"""Contexts and attributes that a user gives to images by hand: "these 37 are in a hand".

They are kept in the workspace, labels/DATASET.parquet, a row per labelled image: the number of the label, its column
("context" or the name of an attribute), its value, and the image by path and size. They join the image table when the
dataset is loaded; of two labels of an image the later one counts. Files of the dataset and the fingerprint of features
stay, and removing a label brings back the values before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.datasets import pixel_attributes
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import PAD, Dataset

CONTEXT = "context"
ORIGINS = ("folder", "fruit", "digits")  # the images of the demo are drawn from its contexts and attributes
MAX_LENGTH = 60  # characters of a name or value
_COLUMNS = ("label", "column", "value", "image")
_RESERVED = frozenset(
    ("class", "class_id", "class_name", "path", "split", "group", "image", "image_id", "n_bytes", "none")
)


@dataclass(frozen=True)
class Label:
    """A value that was given to images at once.

    number   counts up; by it a label is removed
    column   "context" or the name of an attribute
    """

    number: int
    column: str
    value: str
    n_images: int


def is_possible(dataset: Dataset) -> bool:
    """Whether images of this dataset can be labelled."""
    return dataset.origin in ORIGINS and dataset.has_pixels


def list_labels(dataset: Dataset) -> list[Label]:
    """The labels of a dataset in their order, with the number of its images that each was given to."""
    table = _read(dataset.name)
    if not len(table) or not is_possible(dataset):
        return []
    table = table[_rows(dataset, table) != PAD]
    counts = table.groupby(["label", "column", "value"], sort=True).size()
    return [Label(int(number), column, value, int(n)) for (number, column, value), n in counts.items()]


def add_label(dataset: Dataset, image_ids: Iterable[int], value: str, column: str = CONTEXT) -> Label:
    """Gives images a context, or a value of an attribute of their own, and keeps it."""
    return add_labels(dataset, [(image_ids, value)], column)[0]


def add_labels(dataset: Dataset, values: Iterable[tuple[Iterable[int], str]], column: str = CONTEXT) -> list[Label]:
    """Gives several sets of images a value each, in one write: all of them or none."""
    column = _checked_column(dataset, column)
    table = _read(dataset.name)
    keys = np.array(pixel_attributes.image_keys(dataset), dtype=object)
    number = int(table["label"].max()) if len(table) else 0
    labels, parts = [], [table]
    for image_ids, text in values:
        ids, value = _checked_ids(image_ids, len(keys)), _checked_text(text, "value")
        number += 1
        labels.append(Label(number, column, value, len(ids)))
        parts.append(pd.DataFrame({"label": number, "column": column, "value": value, "image": keys[ids]}))
    if not labels:
        raise BadInput("No images and value to label. Give at least one image and a name for it.")
    _write(dataset.name, pd.concat(parts, ignore_index=True))
    return labels


def remove_label(dataset: Dataset, number: int | None = None) -> Label:
    """Removes a label, the last one without a number; the images get back the values before it."""
    labels = list_labels(dataset)
    if not labels:
        raise BadInput(f"{dataset.title} has no labels to remove. Add one with 'fsviz label NAME --context VALUE'.")
    label = labels[-1] if number is None else next((item for item in labels if item.number == number), None)
    if label is None:
        raise UnknownName("label", number, [str(item.number) for item in labels])
    table = _read(dataset.name)
    _write(dataset.name, table[table["label"] != label.number])
    return label


def with_labels(dataset: Dataset) -> Dataset:
    """The dataset with its labels as contexts and attributes; the notes say if labelled images are gone."""
    if not is_possible(dataset) or dataset.images is None:
        return dataset
    table = _read(dataset.name)
    if not len(table):
        return dataset
    rows = _rows(dataset, table)
    table, rows, n_gone = table[rows != PAD], rows[rows != PAD], len(set(table["image"][rows == PAD]))
    images, new = dataset.images, []
    for column in dict.fromkeys(table["column"]):
        is_column = (table["column"] == column).to_numpy()
        values = images[column].astype(object).to_numpy().copy() if column in images else np.full(len(images), None)
        values[rows[is_column]] = table["value"].to_numpy()[is_column]  # a later label overwrites an earlier one
        if column == CONTEXT:
            values = np.where(pd.isna(values), "", values)
        elif column not in dataset.attributes:
            new.append(column)
        images = images.assign(**{column: values})
    notes = dataset.notes
    if n_gone:
        notes = (*notes, f"{n_gone:,} labelled images are not in this dataset any more; their labels wait for them.")
    return replace(
        dataset,
        images=images,
        contexts=count_contexts(images) if CONTEXT in set(table["column"]) else dataset.contexts,
        attributes=(*dataset.attributes, *new),
        notes=notes,
    )


def read_images(dataset: Dataset, text: str) -> list[int]:
    """Image_ids of a text: numbers with commas, dots or blanks between, or a file with a number or path per line."""
    path = Path(text).expanduser()
    words = re.split(r"[,.\s]+", text.strip())
    if all(word.isdecimal() for word in words):
        return [int(word) for word in words]
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{text[:60]!r} is neither numbers nor a file to read ({type(error).__name__}). Give numbers such "
            "as 4,17,90, or a file with a number or path per line."
        ) from error
    assert dataset.images is not None
    place = {str(name): i for i, name in enumerate(dataset.images["path"])}
    ids = [int(line) if line.isdecimal() else place.get(line, PAD) for line in lines if line]
    if PAD in ids:
        unknown = next(line for line in lines if line and not line.isdecimal() and line not in place)
        raise UnknownName("image", unknown, list(place)[:1000], "A path starts at the folder that was added.")
    return ids


def count_contexts(images: pd.DataFrame) -> pd.DataFrame:
    """Number of images per class and context, as a dataset keeps it; images without a context are left out."""
    names = images[CONTEXT].fillna("").astype(str)
    counts = images.assign(**{CONTEXT: names})[names != ""].groupby(["class_id", CONTEXT]).size()
    return counts.rename("n_images").reset_index()


def path_of(name: str) -> Path:
    """The file with the labels of a dataset."""
    return workspace.folder("labels") / f"{workspace.check_name(name, 'dataset name')}.parquet"


def _read(name: str) -> pd.DataFrame:
    try:
        return pd.read_parquet(path_of(name))[list(_COLUMNS)]
    except (OSError, ValueError, KeyError):  # none, or not to be read
        return pd.DataFrame({"label": pd.Series(dtype=np.int64), **{c: pd.Series(dtype=object) for c in _COLUMNS[1:]}})


def _write(name: str, table: pd.DataFrame) -> None:
    if not len(table):
        workspace.remove([path_of(name)])
        return
    workspace.folder("labels", create=True)
    with workspace.atomic_file(path_of(name)) as temporary:
        table.to_parquet(temporary, index=False)


def _rows(dataset: Dataset, table: pd.DataFrame) -> np.ndarray:
    """The image_id of every row of a table of labels, PAD if the image is gone."""
    keys = pd.Index(pixel_attributes.image_keys(dataset))
    if not keys.is_unique:  # an image that is listed twice is labelled where it stands first
        first = ~keys.duplicated()
        return np.append(np.flatnonzero(first), PAD)[keys[first].get_indexer(table["image"])]
    return keys.get_indexer(table["image"])


def _checked_column(dataset: Dataset, column: str) -> str:
    """The name of the column; refuses one that holds something else, such as numbers."""
    if not is_possible(dataset) or dataset.images is None:
        why = "has no images here" if not dataset.has_pixels else "comes with its contexts and attributes"
        raise Missing(f"{dataset.title} {why}, so its images cannot be labelled. Choose another dataset.")
    column = _checked_text(column, "name of an attribute")
    by_spelling = {str(name).replace("_", " ").casefold(): name for name in dataset.images}
    name = by_spelling.get(column.replace("_", " ").casefold(), column)
    numeric = name in dataset.attributes and pd.api.types.is_numeric_dtype(dataset.images[name])
    is_own = name in dataset.images and name not in (*dataset.attributes, CONTEXT)
    if name.casefold() in _RESERVED or numeric or is_own:
        raise BadInput(f"{name!r} is taken in {dataset.title}. Choose another name for the attribute.")
    return str(name)


def _checked_ids(image_ids: Iterable[int], n: int) -> np.ndarray:
    ids = np.unique(np.array(list(image_ids), dtype=np.int64))
    if not len(ids):
        raise BadInput("No images to label. Give at least one.")
    if ids[0] < 0 or ids[-1] >= n:
        raise BadInput(f"Images are numbered 0 to {n - 1:,}. Got {ids[0] if ids[0] < 0 else ids[-1]}.")
    return ids


def _checked_text(text: str, kind: str) -> str:
    text = " ".join(str(text).split())
    if not text or len(text) > MAX_LENGTH:
        raise BadInput(f"A {kind} has 1 to {MAX_LENGTH} characters. Got {len(text)}.")
    return text
