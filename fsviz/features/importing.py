"""Features that were made elsewhere: they become a dataset of their own, or join one whose images they match."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets, workspace
from fsviz.datasets.preview import SPELLING_RULE, look_alikes, pluralize
from fsviz.errors import BadInput, FsvizError
from fsviz.features import store
from fsviz.features.feature_files import FeatureRows, no_labels_error, read
from fsviz.features.precision import LOST, share_lost_before
from fsviz.features.row_matching import RowMatches, match_rows
from fsviz.records import Dataset, FeaturesKey

_BROKEN = "Its features hold NaN, infinity or numbers beyond float32."


@dataclass(frozen=True)
class ImportResult:
    """Result of an import: the dataset, the name of the features, and their path.

    joined  how the rows found their images; None if they became a dataset of their own
    notes   what was excluded, and how the numbers are kept, in sentences
    """

    dataset: Dataset
    backbone: str
    n_images: int
    dims: int
    joined: RowMatches | None
    path: Path
    notes: tuple[str, ...] = ()


def import_features(
    name: str,
    path: str | Path,
    labels: str | Path | None = None,
    like: Dataset | None = None,
    split: str | None = None,
    backbone: str = store.IMPORTED,
    title: str = "",
    replace: bool = False,
) -> ImportResult:
    """Reads a file of features and stores them under a dataset name.

    labels    a second file (.npy, .txt or .csv, one label per row) where the features file has none
    like      a dataset whose classes these are: names, splits and taxonomy are taken from it
    split     with `like`: numeric labels count through the classes of this split, in its order
    backbone  what the features are called
    replace   put a new dataset in the place of one of the same name

    A dataset that exists takes the features of its images: those that the file names by path or image_id, in any
    order and number; without names, row by row, when there are as many rows as images and the classes agree.
    """
    workspace.check_name(name, "dataset name")
    workspace.check_name(backbone, "backbone name")
    rows = read(path, labels)
    is_finite = rows.is_finite()
    values, joined, skipped = rows.values, None, []
    if name in datasets.names() and not replace:
        dataset = datasets.load(name)
        _refuse_taken(dataset, backbone)
        joined = match_rows(dataset, len(values), rows.images, rows.labels, Path(path).name)
        keep = is_finite[joined.rows]
        values, image_ids = values[joined.rows[keep]], joined.image_ids[keep]
        class_ids = dataset.image_class_ids()[image_ids]
        skipped = [{"image_id": int(i), "path": "", "reason": _BROKEN} for i in joined.image_ids[~keep]]
    else:
        if rows.labels is None:
            raise no_labels_error(Path(path), len(values))
        _refuse_empty(rows.labels, Path(path))
        rows = rows.take(is_finite)
        values, image_ids = rows.values, np.arange(len(rows.values))
        assert rows.labels is not None  # refused above
        class_names, class_ids, nodes = _classes(rows.labels, like, split)
        dataset = _dataset(name, title, Path(path), class_names, class_ids, nodes, like, rows)
    key: FeaturesKey = {
        "version": store.VERSION,
        "dataset": name,
        "fingerprint": store.fingerprint(dataset),
        "backbone": backbone,
        "checkpoint": hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest(),
        "preprocessing": None,
        "imported": Path(path).name,
    }
    earlier = store.stored_paths(name)
    where = store.save(key, backbone, values, image_ids, class_ids, skipped)
    if joined is None:
        try:
            from fsviz.datasets.saved import save_dataset

            dataset = save_dataset(dataset, overwrite=replace)
        except FsvizError:
            if where not in earlier:
                store.remove(key, backbone)
            raise
        store.forget([p for p in earlier if p != where])  # features of the dataset that was replaced
    names = [] if joined is not None else dataset.classes["class_name"]
    notes = _notes(is_finite, values, store.precision(key, backbone), names)
    return ImportResult(dataset, backbone, len(values), int(values.shape[1]), joined, where, notes)


def _notes(is_finite: np.ndarray, values: np.ndarray, precision: str, names: Iterable[object]) -> tuple[str, ...]:
    """Notes for the user about skipped rows (False in `is_finite`), precision and names of classes."""
    notes = []
    if twins := look_alikes(names):
        more = f" and {len(twins) - 5:,} more" if len(twins) > 5 else ""
        notes.append(
            f"{pluralize(len(twins), 'group')} of class names {SPELLING_RULE}: {', '.join(twins[:5])}{more}. "
            "They are kept "
            "apart; give them one label and import again (--replace) if they are the same class."
        )
    if not is_finite.all():
        notes.append(
            f"Skipped {int((~is_finite).sum()):,} of {len(is_finite):,} rows with NaN, infinity or numbers beyond "
            f"float32; the first is row {int(np.argmin(is_finite))} (from 0)."
        )
    if precision:
        notes.append(f"The features are {precision}.")
    if values.dtype == np.float16 and (lost := share_lost_before(values)) > LOST:
        notes.append(
            f"The file is in float16, whose steps are {lost:.1%} of the distance between images: some of what tells "
            "them apart may be lost already. Where you have the features in float32, import those."
        )
    return tuple(notes)


def _refuse_empty(labels: np.ndarray | None, path: Path) -> None:
    """Refuses rows whose class has no name."""
    if labels is None or labels.dtype.kind != "U":
        return
    empty = np.char.strip(labels) == ""
    if empty.any():
        raise BadInput(
            f"Every row of {path.name} must have a class name. {int(empty.sum()):,} have an empty one, the first is "
            f"row {int(np.argmax(empty))} (from 0). Name them, or leave those rows out."
        )


def _classes(
    labels: np.ndarray, like: Dataset | None, split: str | None
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Class names, the class_id of every row, and the class_id in `like` of every class."""
    distinct, class_ids = np.unique(labels, return_inverse=True)
    if like is None:
        return [str(name) for name in distinct], class_ids, None
    if labels.dtype.kind == "i":
        split_ids = like.split_class_ids(split or "all")
        if distinct.min() < 0 or distinct.max() >= len(split_ids):
            raise BadInput(
                f"Numeric labels must lie between 0 and {len(split_ids) - 1}, the classes of {like.title}"
                f"{f', split {split!r}' if split else ''}. Got {distinct.min()} to {distinct.max()}."
            )
        like_ids = split_ids[distinct]
    else:
        table = like.classes
        lookup = {str(node): i for i, node in enumerate(table["node"]) if node}
        lookup |= {str(class_name): i for i, class_name in enumerate(table["class_name"])}
        unknown = [str(label) for label in distinct if str(label) not in lookup]
        if unknown:
            raise BadInput(
                f"Every class must be one of {like.title}, by its name or its taxonomy node. "
                f"{len(unknown)} are not, among them {unknown[0]!r}. Leave out --like to import them without it."
            )
        like_ids = np.array([lookup[str(label)] for label in distinct])
        if len(set(like_ids.tolist())) < len(like_ids):
            raise BadInput(f"Two labels mean the same class of {like.title}. Use either names or taxonomy nodes.")
    order = np.argsort(like_ids, kind="stable")  # classes in the order of the dataset they come from
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    names = [str(like.classes["class_name"].iat[i]) for i in like_ids[order]]
    return names, rank[class_ids], like_ids[order]


def _dataset(
    name: str,
    title: str,
    path: Path,
    class_names: list[str],
    class_ids: np.ndarray,
    like_ids: np.ndarray | None,
    like: Dataset | None,
    rows: FeatureRows,
) -> Dataset:
    counts = np.bincount(class_ids, minlength=len(class_names))
    classes = pd.DataFrame({"class_name": class_names, "split": "test", "n_images": counts, "node": ""})
    classes["n_images"] = classes["n_images"].astype("Int64")
    classes.index.name = "class_id"
    splits: dict[str, np.ndarray] = {"test": np.arange(len(class_names))}
    taxonomy = None
    node_names: Mapping[str, str] = {}
    if like is not None and like_ids is not None:
        classes["node"] = like.classes["node"].to_numpy()[like_ids]
        classes["split"] = like.classes["split"].to_numpy()[like_ids]
        split_rows = {s: np.flatnonzero(np.isin(like_ids, ids)) for s, ids in like.splits.items()}
        splits = {s: ids for s, ids in split_rows.items() if len(ids)} or splits
        taxonomy, node_names = like.taxonomy, like.node_names
    images = pd.DataFrame({"class_id": class_ids, "path": ""})
    if rows.images is not None and rows.images.dtype.kind == "U" and len(np.unique(rows.images)) == len(images):
        images["path"] = rows.images  # so that further features find their images
    if rows.groups is not None:
        images["group"] = np.unique(rows.groups, return_inverse=True)[1]
    images.index.name = "image_id"
    return Dataset(
        name=name,
        title=title or name,
        classes=classes,
        splits=splits,
        summary=f"Features imported from {path.name}; there are no images to show.",
        source=str(path),
        taxonomy=taxonomy,
        node_names=node_names,
        images=images,
        origin="features",
        has_features=True,
    )


def _refuse_taken(dataset: Dataset, backbone: str) -> None:
    if backbone in store.available(dataset) and store.is_readable(dataset, backbone):
        raise BadInput(
            f"{dataset.title} has features named {backbone!r} already. Choose another name with --backbone NAME"
            + (", or replace the dataset with --replace." if dataset.origin == "features" else ".")
        )


def describe(imported: ImportResult) -> dict[str, Any]:
    """An import as plain values; `joined` says how rows found their images, "" if they became a new dataset."""
    joined = imported.joined
    return {
        "dataset": imported.dataset.name,
        "backbone": imported.backbone,
        "n_images": imported.n_images,
        "n_classes": imported.dataset.n_classes,
        "dims": imported.dims,
        "attached": joined is not None,
        "joined": "" if joined is None else joined.sentence(),
        "joined_by": None if joined is None else joined.by,
        "unmatched": [] if joined is None else list(joined.lost),
        "notes": list(imported.notes),
        "path": str(imported.path),
    }
