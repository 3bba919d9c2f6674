"""Files of features that were made elsewhere: their arrays, and the class, image and group of every row.

A column or array of paths (path, paths, image, ..., or of any name that ends like images do) or image_ids says which
image a row is of; see fsviz.features.row_matching.

.npz          features and labels under any of the usual names, or one (n, D) array per class, named by the class
.npy          (n, D) with labels (or a CSV of paths and labels) in a second file, or (C, n, D): class after class, with
              the C names of the classes as labels, C x n labels or none
.parquet      columns embedding and class_name, as easyfsl writes them
.h5, .hdf5    all_feats and all_labels, as many few-shot repositories write them
.pt, .pth     a dictionary of tensors with features and labels
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fsviz.datasets.images import SUFFIXES
from fsviz.errors import BadInput, FsvizError
from fsviz.features.precision import LOST, share_lost

_FEATURES = ("features", "all_feats", "feats", "embeddings", "embedding", "values", "x", "x_test", "data")
_LABELS = ("labels", "all_labels", "class_name", "class_ids", "targets", "label", "y", "y_test", "target", "classes")
_NAMES = ("class_names", "names", "label_names", "classes")
_HEADERS = frozenset((*_LABELS, "class", "class_id", "classname", "category"))
_IMAGES = (
    *("path", "paths", "image_path", "image_paths", "filepath", "filepaths", "filename", "filenames", "file_name"),
    *("file", "files", "image", "images", "image_id", "image_ids", "image_name", "image_names"),
)
_GROUPS = ("group", "groups", "group_id", "group_ids")
_PICKLES = (".pkl", ".pickle", ".plk", ".p", ".joblib")
_HDF5 = (".h5", ".hdf5", ".hdf")
_SAVE = "Import them again after saving, in the place of the features X,"
READABLE = (".npz", ".npy", ".parquet", *_HDF5, ".pt", ".pth")


class FeatureRows(NamedTuple):
    """The rows of a file: values (n, D) float16 or float32, and one entry per row, or None if the file has none:

    labels  whole numbers or names of classes
    images  paths or image_ids
    groups  what must stay together on one side of a task

    Rows that hold NaN or infinity (also what was beyond float32) are no features: see `is_finite`.
    """

    values: np.ndarray
    labels: np.ndarray | None
    images: np.ndarray | None = None
    groups: np.ndarray | None = None

    def is_finite(self) -> np.ndarray:
        """Mask (n,) of the rows that hold finite numbers only."""
        return np.isfinite(self.values).all(axis=1)

    def take(self, rows: np.ndarray) -> FeatureRows:
        labels, images, groups = (None if array is None else array[rows] for array in self[1:])
        return FeatureRows(self.values[rows], labels, images, groups)


def read(path: str | Path, labels: str | Path | None = None) -> FeatureRows:
    """Features from a file, and what it says of every row. Labels may be missing only where images are named."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise BadInput(f"Not found: {path}. Give one of {', '.join(READABLE)}.")
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
    file_labels = None
    if labels is not None:
        file_labels, images = _read_labels(Path(labels).expanduser())
        arrays |= {} if images is None else {_IMAGES[0]: images}
    image_names = _beside(arrays, (*_IMAGES, *(name.lower() for name, array in arrays.items() if _are_paths(array))))
    values, row_labels = _features_and_labels(arrays, file_labels, path, image_names is not None)
    row_labels = None if row_labels is None else _checked_labels(row_labels, len(values), path)
    return FeatureRows(
        _checked(values, path),
        row_labels,
        _checked_names(image_names, len(values), path),
        _checked_names(_beside(arrays, _GROUPS), len(values), path),
    )


def _pickle_refused(path: Path) -> BadInput:
    return BadInput(
        f"Refused: {path.name} is a pickle, which can run any code when opened. "
        "If you trust it, load it yourself and save it with numpy.savez('features.npz', features=X, labels=y)."
    )


def _objects_refused(path: Path) -> BadInput:
    return BadInput(
        f"{path.name} holds an array of Python objects (dtype object), which numpy stores as a pickle, and opening a "
        "pickle can run any code its maker put in. Where you trust it, save it again as plain arrays: "
        "numpy.savez('features.npz', features=X.astype('float32'), labels=y.astype(str)), and so with paths."
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
        return _read_parquet(path)
    if suffix in _HDF5:
        return _read_hdf5(path)
    from fsviz.features.checkpoints import load_tensors

    return {name: tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy()
            for name, tensor in load_tensors(path).items()}  # fmt: skip


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    table = pd.read_parquet(path)
    table.columns = [str(column) for column in table.columns]
    image_column = next((c for c in table if c.lower() in _IMAGES), None)
    image_column = (
        next((c for c in table if _are_paths(table[c].to_numpy())), None) if image_column is None else image_column
    )
    if "embedding" not in table or ("class_name" not in table and image_column is None):
        raise BadInput(
            f"{path.name} must have the columns embedding and class_name, or embedding and path. "
            f"Got {', '.join(table.columns)}."
        )
    for column in ("embedding", "class_name"):
        if column in table and table[column].isna().any():
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
    arrays = {"features": np.stack([np.asarray(row) for row in table["embedding"]])}
    if "class_name" in table:
        arrays["labels"] = table["class_name"].astype(str).to_numpy(dtype=np.str_)
    for extra in (image_column, next((c for c in table if c.lower() in _GROUPS), None)):
        if extra is not None:
            number = pd.api.types.is_numeric_dtype(table[extra]) and table[extra].notna().all()
            arrays[extra] = table[extra].to_numpy() if number else _texts(table[extra])
    return arrays


def _texts(column: pd.Series) -> np.ndarray:
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy(dtype=np.str_)


def _read_hdf5(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an HDF5 file that are in the file itself: nothing is read from another one."""
    import h5py

    with h5py.File(path, "r") as file:
        arrays = {}
        for name in file:
            link = file.get(name, getlink=True)  # the link first: what it leads to would be opened
            if not isinstance(link, h5py.HardLink):
                raise _leaves(path, name, "a link")
            value = file[name]
            if isinstance(value, h5py.Dataset):
                if value.external or value.is_virtual:
                    raise _leaves(path, name, "kept in another file")
                arrays[name] = np.asarray(value)
    count = arrays.pop("count", None)  # such files are often longer than they are filled
    if count is not None and count.size == 1:
        arrays = {name: a[: int(count.ravel()[0])] if a.ndim else a for name, a in arrays.items()}
    return {name: _decoded(a) if a.dtype.kind in "OS" else a for name, a in arrays.items()}


def _leaves(path: Path, name: str, description: str) -> BadInput:
    return BadInput(
        f"{name!r} in {path.name} is {description}, and only what is in the file itself is read. If you trust it, "
        f"load the array yourself and save it with numpy.savez('features.npz', features=X, labels=y)."
    )


def _decoded(values: np.ndarray) -> np.ndarray:
    """Text of an HDF5 file, which comes as bytes."""
    flat = [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values.ravel().tolist()]
    return np.array(flat, dtype=np.str_).reshape(values.shape)


def _read_labels(path: Path) -> tuple[np.ndarray | None, np.ndarray | None]:
    """One label per row: .npy, or a text file (a CSV's last column); and the paths where a CSV's header names them."""
    if not path.is_file():
        raise BadInput(f"Labels file not found: {path}.")
    try:
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False), None
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file, skipinitialspace=True) if any(row)]
    except (OSError, ValueError, csv.Error) as error:
        raise BadInput(f"The labels file {path} cannot be read ({error}). Save one label per row.") from error
    if not rows:
        return np.array([], dtype=np.str_), None
    header = [cell.lower() for cell in rows[0]]
    image = next((i for i, cell in enumerate(header) if cell in _IMAGES), None)
    label = next((i for i, cell in enumerate(header) if cell in _HEADERS and i != image), None)
    if label is None and image is None:
        return _whole_or_text([row[-1] for row in rows]), None
    if any(len(row) != len(header) for row in rows):
        raise BadInput(f"Every row of {path} must have as many cells as its header, {len(header)}. Fix the others.")
    labels, images = ([row[i] for row in rows[1:]] if i is not None else None for i in (label, image))
    return (
        None if labels is None else _whole_or_text(labels),
        None if images is None else _whole_or_text(images),
    )


def _whole_or_text(cells: list[str]) -> np.ndarray:
    try:
        return np.array([int(cell) for cell in cells])
    except ValueError:
        return np.array(cells, dtype=np.str_)


def _beside(arrays: Mapping[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray | None:
    """The first array of these names that may speak of rows: text or numbers, but no pixels."""
    by_lower = {name.lower(): value for name, value in arrays.items()}
    candidates = (by_lower[name] for name in names if name in by_lower)
    rows = {"i": 3, "u": 3, "f": 2}  # dimensions that are too many
    return next((a for a in candidates if a.dtype.kind in "USO" or a.ndim < rows.get(a.dtype.kind, 0)), None)


def _are_paths(values: np.ndarray) -> bool:
    """Whether these are texts that all end like the name of an image."""
    if values.ndim != 1 or not len(values) or not isinstance(values[0], str | bytes):
        return False
    return all(text.lower().endswith(tuple(SUFFIXES)) for text in _decoded(values).tolist())


def _features_and_labels(
    arrays: Mapping[str, np.ndarray], file_labels: np.ndarray | None, path: Path, has_names: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """The table of features and one label per row; None where rows are named and need none."""
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
    labels = file_labels
    if values.ndim == 3:
        labels = next((by_lower[n] for n in _LABELS if n in by_lower), None) if labels is None else labels
        return _classes_of_cube(values, labels, path)
    if labels is None:
        rows = [by_lower[n] for n in _LABELS if n in by_lower and by_lower[n].shape[:1] == values.shape[:1]]
        labels = rows[0] if rows else None
    if labels is None:
        label_key = next((n for n in _LABELS if n in by_lower and by_lower[n].ndim), None)
        if label_key is not None:
            raise BadInput(
                f"There must be one label per row of features ({len(values)}). {path.name} has "
                f"{len(by_lower[label_key])} under {label_key!r}. Save both from the same images."
            )
        if has_names:
            return values, None
        raise no_labels_error(path, len(values))
    labels = labels.reshape(len(labels), -1)[:, 0] if labels.ndim > 1 else labels
    class_names = next((by_lower[n] for n in _NAMES if n in by_lower and by_lower[n].dtype.kind in "US"), None)
    is_int = labels.dtype.kind in "iu"
    if (
        class_names is not None
        and is_int
        and class_names is not labels
        and labels.min() >= 0
        and labels.max() < len(class_names)
    ):
        labels = class_names.astype(np.str_)[labels]
    return values, labels


def _classes_of_cube(values: np.ndarray, labels: np.ndarray | None, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features (C, n, D), class after class, as rows with one label each.

    labels  one per class, all of them different, one per row, or None: classes are numbers then
    """
    n_classes, n, dims = values.shape
    if labels is None:
        labels = np.arange(n_classes)
    if labels.size == n_classes and len(np.unique(labels)) == n_classes:
        labels = np.repeat(labels.ravel(), n)
    if labels.size != n_classes * n:
        vectors = f"{n:,} x {dims:,} numbers for each of {n_classes:,} labels that repeat"
        label_text = vectors if labels.size == n_classes else f"{labels.size:,} labels"
        raise BadInput(
            f"{path.name} holds features of shape {values.shape} and {label_text}. Three dimensions are read as "
            "classes x images x numbers, with a label per class or per image. If the first counts images, save one "
            f"vector for each: X.mean(1), or X.reshape({n_classes}, -1)."
        )
    return values.reshape(-1, dims), labels.ravel()


def no_labels_error(path: Path, n: int) -> BadInput:
    return BadInput(
        f"{path.name} has features for {n} images but no labels. Save them in the same file under the name "
        "'labels', or give a file with one label per row with --labels FILE."
    )


def _checked(values: np.ndarray, path: Path) -> np.ndarray:
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        advice = " Save one vector for each image: X.reshape(len(X), -1)." if values.ndim > 2 else ""
        raise BadInput(
            f"Features must be numbers in a table of images x dimensions. {path.name} has shape {values.shape} "
            f"of {values.dtype}.{advice}"
        )
    if not values.size:
        raise BadInput(f"{path.name} holds no features: its shape is {values.shape}.")
    with np.errstate(over="ignore"):
        numbers = values if values.dtype == np.float16 else values.astype(np.float32)
    is_finite = np.isfinite(numbers).all(axis=1)
    lost = share_lost([values[is_finite]], numbers.dtype.type)
    if 2 * is_finite.sum() < len(values):
        if 2 * np.isfinite(values).all(axis=1).sum() < len(values):
            cause = "NaN or infinity. Check the program that made them; a few such rows would be skipped."
        else:
            cause = f"numbers beyond float32, which ends at 3.4e38. {_SAVE} X / numpy.abs(X).max()."
        raise BadInput(f"{int((~is_finite).sum()):,} of {len(values):,} rows of {path.name} hold {cause}")
    if len(values) > 1 and (values[is_finite] == values[is_finite][0]).all():
        raise BadInput(
            f"All rows of {path.name} are the same, so nothing tells its images apart. Check that the features of "
            "different images were saved, and make them again."
        )
    if lost > LOST:
        tiny = np.abs(values[is_finite]).max() < 1e-30
        raise BadInput(
            f"float32 keeps too few digits of the numbers of {path.name}: it would move images by {lost:.0%} of the "
            f"distance between them. {_SAVE} {'X / numpy.abs(X).max()' if tiny else 'X - X.mean(0)'}."
        )
    return numbers


def _checked_labels(labels: np.ndarray, n: int, path: Path) -> np.ndarray:
    labels = np.asarray(labels)
    if len(labels) != n:
        raise BadInput(f"There must be one label per row of features ({n}). Got {len(labels)} for {path.name}.")
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.floor(labels)).all():
        return labels.astype(np.int64)
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind != "U":
        raise BadInput(f"Labels must be whole numbers or class names. {path.name} has {labels.dtype}.")
    return labels


def _checked_names(names: np.ndarray | None, n: int, path: Path) -> np.ndarray | None:
    """One name per row as text or whole numbers; None if there are none or all are empty."""
    if names is None or not names.size:
        return None
    if names.ndim > 1 and names.dtype.kind in "iu" and names.size != n:
        return None  # pixels
    names = names.ravel()
    if len(names) != n:
        raise BadInput(
            f"There must be one image name per row of features ({n}). {path.name} has {len(names)}. "
            "Save both from the same images."
        )
    if names.dtype.kind in "SO":
        names = _decoded(names)
    if names.dtype.kind == "f":  # what other programs make of whole numbers
        is_int = np.isfinite(names) & (names == np.round(names))
        if not is_int.all():
            raise BadInput(
                f"An image_id or a group is a whole number or a text. {path.name} has {names[~is_int][0]}. "
                "Save them as whole numbers or texts, one for every row."
            )
        names = names.astype(np.int64)
    return names if names.dtype.kind in "iu" or (names != "").any() else None
