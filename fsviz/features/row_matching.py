"""Match rows of a file of features with images of a dataset: by path, by image_id, else by row."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fsviz.errors import BadInput
from fsviz.records import PAD, Dataset

_OTHERWISE = "Choose a new name for a dataset of their own."
_SHOWN = 3


@dataclass(frozen=True)
class RowMatches:
    """Rows (n,) of a file and the image_ids (n,) they belong to, ascending.

    by      "path", "image_id" or "row"
    n_rows  of the file; lost names those that found no image
    n_images  of the dataset
    """

    by: str
    rows: np.ndarray
    image_ids: np.ndarray
    n_rows: int
    lost: tuple[str, ...]
    n_images: int

    def sentence(self) -> str:
        """A sentence: how rows were matched, how many found their image and how many did not."""
        if self.by == "row":
            return (
                f"Joined by row: the file names no images, so its {self.n_rows:,} rows were taken for the images in "
                "their order; the classes agree."
            )
        by = self.by.replace("_", " ")
        if not self.lost:
            text = f"All {self.n_rows:,} rows found their image by {by}."
        else:
            text = (
                f"{len(self.rows):,} of {self.n_rows:,} rows found their image by {by}; {len(self.lost):,} did not and "
                f"were left out ({_some(self.lost)})."
            )
        without = self.n_images - len(self.rows)
        return text + (f" {without:,} of the dataset's {self.n_images:,} images have no features." if without else "")


def match_rows(
    dataset: Dataset, n_rows: int, names: np.ndarray | None, labels: np.ndarray | None, file: str
) -> RowMatches:
    """Finds the image of every row of a file.

    names   (n_rows,) paths or image_ids, None if the file has none: then the rows must be all the dataset's images
            in its order, class by class
    labels  (n_rows,) or None; they must agree with the classes of the images found
    """
    class_ids = dataset.image_class_ids()
    if names is None:
        _check_rows(dataset, class_ids, n_rows, labels)
        return RowMatches("row", np.arange(n_rows), np.arange(n_rows), n_rows, (), n_rows)
    by, positions = _match_rows(dataset, names, file)
    rows = np.flatnonzero(positions != PAD)
    rows = rows[np.argsort(positions[rows], kind="stable")]
    again = np.flatnonzero(positions[rows][1:] == positions[rows][:-1])
    if len(again):
        first_row, second_row = sorted(rows[again[0] : again[0] + 2].tolist())
        image = " or ".join(dict.fromkeys(repr(str(names[row])) for row in (first_row, second_row)))
        raise BadInput(
            f"Every row must be of another image. Rows {first_row} and {second_row} of {file} (from 0) both name "
            f"{image}, one image of {dataset.name!r}. Keep one row per image, with enough of the path to tell images "
            "apart."
        )
    if labels is not None:
        _check_labels(dataset, labels[rows], class_ids[positions[rows]], rows, names, file)
    lost = tuple(str(name) for name in names[positions == PAD])
    return RowMatches(by, rows, positions[rows], n_rows, lost, len(class_ids))


def _match_rows(dataset: Dataset, names: np.ndarray, file: str) -> tuple[str, np.ndarray]:
    """image_id of every name, PAD if there is none; refused if no name or more than one image fits."""
    n = len(dataset.image_class_ids())
    paths = [""] * n if dataset.images is None else dataset.images["path"].astype(str).tolist()
    if names.dtype.kind in "iu":
        if names.min() < 0 or names.max() >= n:
            raise BadInput(
                f"An image_id counts the images of {dataset.name!r}, 0 to {n - 1}. {file} has {names.min()} to "
                f"{names.max()}, which another program numbered. Save the paths of the images under 'paths' instead."
            )
        return "image_id", names.astype(np.int64)
    texts = [_plain(name, dataset) for name in names.tolist()]
    for cut in (lambda path: path, lambda path: posixpath.splitext(path)[0]):  # "dog/1" may stand for dog/1.jpg
        positions = _by_path([cut(t) for t in texts], [cut(_plain(p)) for p in paths], names, paths, file)
        if (positions != PAD).any():
            return "path", positions
    if all(text.isdecimal() for text in texts):
        return _match_rows(dataset, np.array([int(text) for text in texts]), file)
    example = next((path for path in paths if path), "")
    raise BadInput(
        f"None of the {len(names):,} images that {file} names is in {dataset.name!r}: its first is "
        f"{str(names[0])!r}, "
        + (f"and the dataset's first is {example!r}. Save the paths as they stand in the dataset. " if example else
           "and the dataset knows no paths. Save the features without paths, in the dataset's order. ")
        + _OTHERWISE
    )  # fmt: skip


def _by_path(texts: list[str], paths: list[str], names: np.ndarray, labels: list[str], file: str) -> np.ndarray:
    """A name fits a path when it is its end, folder by folder, or the other way round; the longest fit wins."""
    full_paths = {path: i for i, path in reversed(list(enumerate(paths))) if path}
    ends: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        for end in _ends(path):
            ends.setdefault(end, []).append(i)
    positions = np.full(len(texts), PAD, dtype=np.int64)
    for row, text in enumerate(texts):
        fits = ends.get(text, [])
        if len(fits) > 1 and text in full_paths:  # both "1.jpg" and dog/1.jpg
            fits = [full_paths[text]]
        if len(fits) > 1:
            raise BadInput(
                f"Row {row} of {file} (from 0) names {str(names[row])!r}, which may be {labels[fits[0]]!r} or "
                f"{labels[fits[1]]!r}{f' or {len(fits) - 2:,} more' if len(fits) > 2 else ''}. "
                "Save the paths with their folders, as they stand in the dataset."
            )
        positions[row] = fits[0] if fits else next((full_paths[end] for end in _ends(text) if end in full_paths), PAD)
    return positions


def _ends(path: str) -> Iterable[str]:
    """a/b/c.jpg, b/c.jpg, c.jpg"""
    while path:
        yield path
        path = path.partition("/")[2]


def _plain(path: object, dataset: Dataset | None = None) -> str:
    """A path with forward slashes, without ./ and without the dataset's own folder before it."""
    text = str(path).strip().replace("\\", "/")
    if dataset is not None and dataset.root is not None and os.path.isabs(text):
        text = text.removeprefix(dataset.root.as_posix())
    return posixpath.normpath(text).strip("/") if text else ""


def _check_rows(dataset: Dataset, class_ids: np.ndarray, n_rows: int, labels: np.ndarray | None) -> None:
    """Without names the rows must be the dataset's images, all of them, in its order."""
    name_them = "Save the paths of the images with the features under 'paths', then rows may be fewer and in any"
    if len(class_ids) != n_rows:
        raise BadInput(
            f"A dataset named {dataset.name!r} has {len(class_ids)} images, but the file has {n_rows} rows. "
            f"{name_them} order. {_OTHERWISE}"
        )
    names = dataset.classes["class_name"].astype(str).to_numpy(dtype=np.str_)[class_ids]
    if labels is None or not (np.array_equal(labels, class_ids) or np.array_equal(labels.astype(np.str_), names)):
        raise BadInput(
            f"A dataset named {dataset.name!r} exists, but its images have other classes than the rows of the file. "
            f"{name_them} order. {_OTHERWISE}"
        )


def _check_labels(
    dataset: Dataset, labels: np.ndarray, class_ids: np.ndarray, rows: np.ndarray, names: np.ndarray, file: str
) -> None:
    """Check that each label stands for one class only: features of other images would break that."""
    classes = dataset.classes["class_name"]
    label_of: dict[int, str] = {}
    class_of: dict[str, int] = {}
    for row, label, class_id in zip(rows.tolist(), labels.astype(np.str_).tolist(), class_ids.tolist(), strict=True):
        if label_of.setdefault(class_id, label) != label:
            earlier = f"earlier images of that class have the label {label_of[class_id]!r}"
        elif class_of.setdefault(label, class_id) != class_id:
            earlier = f"earlier images with that label are of class {classes.iat[class_of[label]]!r}"
        else:
            continue
        raise BadInput(
            f"Row {row} of {file} (from 0) has the label {label!r} but names {str(names[row])!r}, an image of class "
            f"{classes.iat[class_id]!r}; {earlier}. Save names and labels in the order of the features, or leave the "
            "labels out."
        )


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
