"""Features that were made elsewhere: they become a dataset of their own, or join one whose images they match.

.npz          features and labels under any of the usual names, or one (n, D) array per class, named by the class
.npy          (n, D) with labels in a second file, or (C, n, D): one class after another
.parquet      columns embedding and class_name, as easyfsl writes them
.h5, .hdf5    all_feats and all_labels, as many few-shot repositories write them
.pt, .pth     a dictionary of tensors with features and labels
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets, workspace
from fsviz.errors import BadInput, FsvizError
from fsviz.features import store
from fsviz.records import Dataset

_FEATURES = ("features", "all_feats", "feats", "embeddings", "embedding", "values", "x", "x_test", "data")
_LABELS = ("labels", "all_labels", "class_name", "class_ids", "targets", "label", "y", "y_test", "target", "classes")
_NAMES = ("class_names", "names", "label_names", "classes")
_HEADERS = frozenset((*_LABELS, "class", "class_id", "classname", "category"))
_PICKLES = (".pkl", ".pickle", ".plk", ".p", ".joblib")
_HDF5 = (".h5", ".hdf5", ".hdf")
READABLE = (".npz", ".npy", ".parquet", *_HDF5, ".pt", ".pth")


@dataclass(frozen=True)
class Imported:
    """What an import gave: the dataset it belongs to, the label of the features, and where they are."""

    dataset: Dataset
    backbone: str
    n_images: int
    dims: int
    attached: bool
    path: Path


def import_features(
    name: str,
    path: str | Path,
    labels: str | Path | None = None,
    like: Dataset | None = None,
    split: str | None = None,
    backbone: str = store.IMPORTED,
    title: str = "",
    replace: bool = False,
) -> Imported:
    """Reads a file of features and stores them under a dataset name.

    labels    a second file (.npy, .txt or .csv, one label a row) where the features file has none
    like      a dataset whose classes these are: names, splits and taxonomy are taken from it
    split     with `like`: numeric labels count through the classes of this split, in its order
    backbone  what the features are called
    replace   put a new dataset in the place of one of the same name

    A dataset that exists takes the features when they match its images one by one, row by row.
    """
    workspace.checked_name(name, "dataset name")
    workspace.checked_name(backbone, "backbone name")
    values, found = read(path, labels)
    exists = name in datasets.names()
    if exists and not replace:
        dataset = _checked_match(datasets.load(name), values, found, backbone)
        class_ids, attached = dataset.image_class_ids(), True
    else:
        class_names, class_ids, nodes = _classes(found, like, split)
        dataset = _dataset(name, title, Path(path), class_names, class_ids, nodes, like)
        attached = False
    key = {
        "version": store.VERSION,
        "dataset": name,
        "fingerprint": store.fingerprint(dataset),
        "backbone": backbone,
        "checkpoint": hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest(),
        "preprocessing": None,
        "imported": Path(path).name,
    }
    earlier = store.stored_paths(name)
    where = store.save(key, backbone, values, np.arange(len(values)), class_ids)
    if not attached:
        try:
            from fsviz.datasets.saved import save_dataset

            dataset = save_dataset(dataset, overwrite=replace)
        except FsvizError:
            if where not in earlier:
                store.remove(key, backbone)
            raise
        store.forget([p for p in earlier if p != where])  # features of the dataset that was replaced
    return Imported(dataset, backbone, len(values), int(values.shape[1]), attached, where)


def read(path: str | Path, labels: str | Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, D) float16 or float32 and one label a row (n,), whole numbers or names, from a file."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise BadInput(f"There is no file {path}. Give one of {', '.join(READABLE)}.")
    if path.stat().st_size == 0:
        raise BadInput(f"{path} is empty (0 bytes). Save it again.")
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise _pickle_refused(path)
    if suffix not in READABLE:
        raise BadInput(f"Features are read from {', '.join(READABLE)}. Got {path.name}.")
    try:
        arrays = _read_arrays(path, suffix)
    except FsvizError:
        raise
    except Exception as error:  # broken archives raise whatever their bytes lead to
        if "Object arrays" in str(error):
            raise _objects_refused(path) from error
        if _starts_as_pickle(path):
            raise _pickle_refused(path) from error
        raise BadInput(f"{path} cannot be read as {suffix} ({type(error).__name__}). Save it again.") from error
    given = None if labels is None else _read_labels(Path(labels).expanduser())
    values, found = _features_and_labels(arrays, given, path)
    return _checked(values, path), _checked_labels(found, len(values), path)


def _pickle_refused(path: Path) -> BadInput:
    return BadInput(
        f"{path.name} is a pickle, and opening a pickle can run any code its maker put in, so it is refused. "
        "Where you trust it, load it yourself and save it with numpy.savez('features.npz', features=X, labels=y)."
    )


def _objects_refused(path: Path) -> BadInput:
    return BadInput(
        f"{path.name} holds an array of Python objects (dtype object), which numpy stores as a pickle, and opening a "
        "pickle can run any code its maker put in. Where you trust it, save it again as plain arrays: "
        "numpy.savez('features.npz', features=X.astype('float32'), labels=y.astype(str))."
    )


def _starts_as_pickle(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(1) == b"\x80"


def _read_arrays(path: Path, suffix: str) -> dict[str, np.ndarray]:
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    if suffix == ".npy":
        return {"features": np.load(path, allow_pickle=False)}
    if suffix == ".parquet":
        table = pd.read_parquet(path)
        if not {"embedding", "class_name"} <= set(table.columns):
            raise BadInput(
                f"{path.name} must have the columns embedding and class_name. Got {', '.join(map(str, table.columns))}."
            )
        for column, empty in table[["embedding", "class_name"]].isna().any().items():
            if empty:
                rows = np.flatnonzero(table[column].isna())
                raise BadInput(
                    f"Every row of {path.name} must have an embedding and a class_name. {len(rows)} have no {column}, "
                    f"the first is row {int(rows[0])} (from 0). Leave those rows out."
                )
        if table.empty:
            raise BadInput(f"{path.name} holds no features: it has no rows.")
        lengths = {len(row) for row in table["embedding"]}
        if len(lengths) != 1:
            raise BadInput(f"Every embedding of {path.name} must have the same length. Got {sorted(lengths)[:5]}.")
        return {
            "features": np.stack([np.asarray(row) for row in table["embedding"]]),
            "labels": table["class_name"].astype(str).to_numpy(dtype=np.str_),
        }
    if suffix in _HDF5:
        import h5py

        with h5py.File(path, "r") as file:
            arrays = {name: np.asarray(value) for name, value in file.items() if isinstance(value, h5py.Dataset)}
        count = arrays.pop("count", None)  # such files are often longer than they are filled
        if count is not None and count.size == 1:
            arrays = {name: a[: int(count.ravel()[0])] if a.ndim else a for name, a in arrays.items()}
        return {name: a.astype(np.str_) if a.dtype.kind in "OS" else a for name, a in arrays.items()}
    from fsviz.features.checkpoints import load_tensors

    return {name: tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
            for name, tensor in load_tensors(path).items()}  # fmt: skip


def _read_labels(path: Path) -> np.ndarray:
    """One label a row: .npy, or a text file (a CSV's last column)."""
    if not path.is_file():
        raise BadInput(f"There is no labels file {path}.")
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise BadInput(f"The labels file {path} cannot be read ({error}). Save one label a row.") from error
    cells = [line.split(",")[-1].strip().strip('"') for line in lines]
    if cells and cells[0].lower() in _HEADERS:
        cells = cells[1:]
    try:
        return np.array([int(cell) for cell in cells])
    except ValueError:
        return np.array(cells, dtype=np.str_)


def _features_and_labels(
    arrays: Mapping[str, np.ndarray], given: np.ndarray | None, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    by_lower = {name.lower(): value for name, value in arrays.items()}
    values = next((by_lower[n] for n in _FEATURES if n in by_lower and by_lower[n].ndim >= 2), None)
    if values is None:
        tables = {name: a for name, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "fiu"}
        if len(tables) > 1 and len(tables) == len(arrays) and len({a.shape[1] for a in tables.values()}) == 1:
            names = np.repeat(np.array(list(tables), np.str_), [len(a) for a in tables.values()])  # a table a class
            return np.concatenate(list(tables.values())), names
        if len(tables) != 1:
            raise BadInput(
                f"{path.name} must hold the features, a table of images x dimensions, under one of the names "
                f"{', '.join(_FEATURES[:4])}. "
                f"Got {', '.join(f'{n} of shape {a.shape}' for n, a in arrays.items()) or 'nothing'}."
            )
        values = next(iter(tables.values()))
    if values.ndim == 3 and given is None:
        labels = np.repeat(np.arange(values.shape[0]), values.shape[1])
        return values.reshape(-1, values.shape[2]), labels
    labels = given
    if labels is None:
        rows = [by_lower[n] for n in _LABELS if n in by_lower and by_lower[n].shape[:1] == values.shape[:1]]
        labels = rows[0] if rows else None
    if labels is None:
        other = next((n for n in _LABELS if n in by_lower and by_lower[n].ndim), None)
        if other is not None:
            raise BadInput(
                f"There must be one label a row of features ({len(values)}). {path.name} has {len(by_lower[other])} "
                f"under {other!r}. Save both from the same images."
            )
        raise BadInput(
            f"{path.name} has features for {len(values)} images but no labels. Save them beside the features under "
            "the name 'labels', or give a file with one label a row with --labels FILE."
        )
    labels = labels.reshape(len(labels), -1)[:, 0] if labels.ndim > 1 else labels
    names = next((by_lower[n] for n in _NAMES if n in by_lower and by_lower[n].dtype.kind in "US"), None)
    whole = labels.dtype.kind in "iu"
    if names is not None and whole and names is not labels and labels.min() >= 0 and labels.max() < len(names):
        labels = names.astype(np.str_)[labels]
    return values, labels


def _checked(values: np.ndarray, path: Path) -> np.ndarray:
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise BadInput(
            f"Features must be numbers in a table of images x dimensions. {path.name} has shape {values.shape} "
            f"of {values.dtype}."
        )
    if not values.size:
        raise BadInput(f"{path.name} holds no features: its shape is {values.shape}.")
    broken = ~np.isfinite(values).all(axis=1)
    if broken.any():
        raise BadInput(
            f"Features must be finite numbers. {int(broken.sum())} of {len(values)} rows of {path.name} hold NaN or "
            f"infinity, the first is row {int(np.argmax(broken))} (from 0). Leave those images out."
        )
    if values.dtype == np.float16:
        return values
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if not np.isfinite(single).all():
        raise BadInput(f"{path.name} holds numbers beyond the range of float32. Scale the features first.")
    return single


def _checked_labels(labels: np.ndarray, n: int, path: Path) -> np.ndarray:
    labels = np.asarray(labels)
    if len(labels) != n:
        raise BadInput(f"There must be one label a row of features ({n}). Got {len(labels)} for {path.name}.")
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.floor(labels)).all():
        return labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind != "U":
        raise BadInput(f"Labels must be whole numbers or class names. {path.name} has {labels.dtype}.")
    return labels


def _classes(
    labels: np.ndarray, like: Dataset | None, split: str | None
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """Class names, the class_id of every row, and the class_id in `like` of every class."""
    distinct, class_ids = np.unique(labels, return_inverse=True)
    if like is None:
        return [str(name) for name in distinct], class_ids, None
    if labels.dtype.kind == "i":
        known = like.split_class_ids(split or "all")
        if distinct.min() < 0 or distinct.max() >= len(known):
            raise BadInput(
                f"Numeric labels must lie between 0 and {len(known) - 1}, the classes of {like.title}"
                f"{f', split {split!r}' if split else ''}. Got {distinct.min()} to {distinct.max()}."
            )
        there = known[distinct]
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
        there = np.array([lookup[str(label)] for label in distinct])
        if len(set(there.tolist())) < len(there):
            raise BadInput(f"Two labels mean the same class of {like.title}. Use either names or taxonomy nodes.")
    order = np.argsort(there, kind="stable")  # classes in the order of the dataset they come from
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    names = [str(like.classes["class_name"].iat[i]) for i in there[order]]
    return names, rank[class_ids], there[order]


def _dataset(
    name: str,
    title: str,
    path: Path,
    class_names: list[str],
    class_ids: np.ndarray,
    there: np.ndarray | None,
    like: Dataset | None,
) -> Dataset:
    counts = np.bincount(class_ids, minlength=len(class_names))
    classes = pd.DataFrame({"class_name": class_names, "split": "test", "n_images": counts, "node": ""})
    classes["n_images"] = classes["n_images"].astype("Int64")
    classes.index.name = "class_id"
    splits: dict[str, np.ndarray] = {"test": np.arange(len(class_names))}
    taxonomy, node_names = None, {}
    if like is not None and there is not None:
        classes["node"] = like.classes["node"].to_numpy()[there]
        classes["split"] = like.classes["split"].to_numpy()[there]
        kept = {s: np.flatnonzero(np.isin(there, ids)) for s, ids in like.splits.items()}
        splits = {s: ids for s, ids in kept.items() if len(ids)} or splits
        taxonomy, node_names = like.taxonomy, like.node_names
    images = pd.DataFrame({"class_id": class_ids, "path": ""})
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


def _checked_match(dataset: Dataset, values: np.ndarray, labels: np.ndarray, backbone: str) -> Dataset:
    """An existing dataset takes features whose rows are its images, in its order."""
    if backbone in store.available(dataset):
        raise BadInput(
            f"{dataset.title} has features named {backbone!r} already. Choose another name with --backbone NAME"
            + (", or replace the dataset with --replace." if dataset.origin == "features" else ".")
        )
    there = dataset.image_class_ids()
    otherwise = "Choose a new name for a dataset of their own."
    if len(there) != len(values):
        raise BadInput(
            f"A dataset named {dataset.name!r} has {len(there)} images, but the file has {len(values)} rows. "
            + otherwise
        )
    if labels.dtype.kind == "i":
        same = np.array_equal(labels, there)
        named = dataset.classes["class_name"].astype(str).to_numpy()[there]
        same = same or np.array_equal(labels.astype(np.str_), named)
    else:
        same = np.array_equal(labels, dataset.classes["class_name"].astype(str).to_numpy(dtype=np.str_)[there])
    if not same:
        raise BadInput(
            f"A dataset named {dataset.name!r} exists, but its images have other classes than the rows of the file. "
            + otherwise
        )
    return dataset


def describe(imported: Imported) -> dict[str, Any]:
    """An import as plain values."""
    return {
        "dataset": imported.dataset.name,
        "backbone": imported.backbone,
        "n_images": imported.n_images,
        "n_classes": imported.dataset.n_classes,
        "dims": imported.dims,
        "attached": imported.attached,
        "path": str(imported.path),
    }
