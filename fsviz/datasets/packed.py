"""Benchmarks as few files that hold many images, written out as class folders:

pickles     of miniImageNet (image_data, class_dict; or data, labels, catname2label) and of tieredImageNet
            (train_images_png.pkl or train_images.npz beside train_labels.pkl), for each split one
TFRecords   of Meta-Dataset: dataset_spec.json, and a file per class, 0.tfrecords, 1.tfrecords, ...

A pickle is a small program: opening it with Python's or NumPy's reader may run any code. Here nothing of a pickle is
run: the few names that these files use stand for inert records of this module, and any other name is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from fsviz import workspace
from fsviz.datasets.images import HEADER, begins_as_image
from fsviz.errors import BadInput
from fsviz.records import Progress

_PICKLES = (".pkl", ".pickle")
_SPEC = "dataset_spec.json"
_RECORDS = ".tfrecords"
_MOST_BYTES = 40_000_000_000


class Packed(NamedTuple):
    """One image: the split and class it is of, and its bytes as a file or its pixels (h, w, 3) uint8."""

    split: str
    class_name: str
    image: bytes | np.ndarray


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a path is such a file or a folder of them; one with folders in it is read as class folders."""
    path = Path(path).expanduser()
    if path.is_file():
        return path.suffix.lower() in _PICKLES
    try:
        entries = [entry for entry in os.scandir(path) if not entry.name.startswith(".")]
    except (OSError, ValueError):
        return False
    if any(entry.is_dir() for entry in entries):
        return False
    names = [entry.name.lower() for entry in entries]
    return any(name.endswith(_PICKLES) for name in names) or (
        _SPEC in names and any(name.endswith(_RECORDS) for name in names)
    )


def unpack(path: str | os.PathLike[str], progress: Progress | None = None) -> Path:
    """Writes the images below a hidden folder of the workspace, split/class/number.png, and returns it.

    The folder's name follows from the files, so the same ones are written once; it is swept when nobody saves it.
    """
    path = Path(path).expanduser().resolve()
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file())
    files = [p for p in files if p.suffix.lower() in (*_PICKLES, ".npz", _RECORDS) or p.name == _SPEC]
    total = sum(p.stat().st_size for p in files)
    if total > _MOST_BYTES:
        raise BadInput(f"{path} holds {total / 1e9:,.0f} GB; at most {_MOST_BYTES / 1e9:,.0f} GB are read at once.")
    about = json.dumps([(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files])
    name = hashlib.blake2b(about.encode(), digest_size=10).hexdigest()
    folder = workspace.folder("datasets", create=True) / f".upload-{name}"
    if folder.is_dir():
        os.utime(folder)
        return folder
    workspace.sweep("datasets")
    images = _of_records(path) if any(p.name == _SPEC for p in files) else _of_pickles(files)
    with workspace.atomic_folder(folder, private=True) as temporary:
        n = 0
        for n, packed in enumerate(images, 1):
            _write(temporary, packed, n)
            if progress and n % 500 == 0:
                progress(n, n, "writing images out")
        if not n:
            raise BadInput(
                f"{path} holds no images. Give the files of a benchmark, such as mini-imagenet-cache-test.pkl."
            )
    return folder


def _write(root: Path, packed: Packed, number: int) -> None:
    safe = re.sub(r"[/\\\0]", " ", packed.class_name).strip(". ") or "unnamed"
    folder = root / packed.split / safe if packed.split else root / safe
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(packed.image, bytes):
        if not begins_as_image(packed.image[:HEADER]):
            raise BadInput(f"An image of class {safe!r} is in no format that is known here. Get the files again.")
        ending = "png" if packed.image.startswith(b"\x89PNG") else "jpg"
        (folder / f"{number:07d}.{ending}").write_bytes(packed.image)
    else:
        Image.fromarray(packed.image).save(folder / f"{number:07d}.png", compress_level=1)


# Pickles ---------------------------------------------------------------------------------------------------------


class _Dtype:
    """What a pickle says of numpy.dtype: its code, such as u1."""

    def __init__(self, code: Any = "", *_: Any) -> None:
        self.code, self.order = str(code), "|"

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self.order = state[1]

    def numpy(self) -> np.dtype:
        if not re.fullmatch(r"[biuf][1248]|[SU]\d{1,4}", self.code):
            raise BadInput(f"A pickle of images holds whole numbers and texts. Got an array of {self.code!r}.")
        return np.dtype(self.order + self.code)


class _Array:
    """What a pickle says of numpy.ndarray: shape, type and bytes, or a list of things."""

    def __init__(self, *_: Any) -> None:
        self.shape: tuple[int, ...] = ()
        self.dtype: Any = None
        self.fortran = False
        self.data: Any = b""

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.fortran, self.data = state

    def value(self) -> Any:
        if isinstance(self.data, list):
            return self.data
        data = self.data.encode("latin1") if isinstance(self.data, str) else bytes(self.data)
        made: np.ndarray = np.frombuffer(data, self.dtype.numpy()).reshape(
            self.shape, order="F" if self.fortran else "C"
        )
        return np.char.decode(made, "latin1") if made.dtype.kind == "S" else made


def _buffer(data: Any, dtype: Any, shape: Any, order: str) -> _Array:
    made = _Array()
    made.__setstate__((1, shape, dtype, order == "F", bytes(data)))
    return made


def _scalar(dtype: Any, data: Any = b"") -> Any:
    made = _Array()
    made.__setstate__((1, (), dtype, False, data))
    return made.value().item()


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise BadInput(f"A pickle may write bytes as latin1. Got {encoding!r}.")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encoded,
    ("collections", "OrderedDict"): dict,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _buffer for core in ("core", "_core")},
}


class _Reader(pickle.Unpickler):
    """Python's reader of pickles, which finds nothing but the inert records of this module."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise BadInput(
                f"The pickle names {module}.{name}, which opening it would run. Only numbers, texts, lists, tables and "
                "arrays are read. Get the file from its makers, or save the images as files."
            ) from None

    def persistent_load(self, _: Any) -> Any:
        raise BadInput("The pickle refers to things outside of it. Save the images as files.")


def read_pickle(path: Path) -> Any:
    """The content of a pickle: numbers, texts, lists, dictionaries and arrays; nothing in it is run."""
    try:
        with open(path, "rb") as file:
            return _plain(_Reader(file, fix_imports=False, encoding="latin1").load())
    except BadInput as error:
        raise BadInput(f"{path.name}: {error}") from None
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # broken bytes lead the reader anywhere
        raise BadInput(
            f"{path.name} is not a pickle that can be read ({type(error).__name__}). Get it again."
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return _plain(value.value())
    if isinstance(value, dict):
        return {key.decode("latin1") if isinstance(key, bytes) else key: _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _of_pickles(files: Iterable[Path]) -> Iterator[Packed]:
    """The images of every split, file after file, so that one split at a time is in memory."""
    files = list(files)
    waiting = [p for p in files if p.suffix.lower() in (*_PICKLES, ".npz")]
    labels = [p for p in waiting if "label" in p.stem.lower()]
    for path in (p for p in waiting if p not in labels):
        beside = [p for p in labels if _stem(p) == _stem(path)]
        if path.suffix.lower() == ".npz" and not beside:
            continue
        content: Any = _arrays(path) if path.suffix.lower() == ".npz" else read_pickle(path)
        if beside:
            yield from _beside_labels(path, content, read_pickle(beside[0]))
        elif isinstance(content, dict) and {"image_data", "class_dict"} <= set(content):
            for name, rows in content["class_dict"].items():
                yield from (Packed(_split_of(path), str(name), _pixels(path, content["image_data"], r)) for r in rows)
        elif isinstance(content, dict) and {"data", "labels"} <= set(content):
            names = {int(v): str(k) for k, v in dict(content.get("catname2label") or {}).items()}
            for row, label in enumerate(content["labels"]):
                name = names.get(int(label), f"class {int(label)}")
                yield Packed(_split_of(path), name, _pixels(path, content["data"], row))
        else:
            known = ", ".join(map(str, content)) if isinstance(content, dict) else type(content).__name__
            raise BadInput(
                f"{path.name} is none of the files that are known: it needs image_data and class_dict, or data and "
                f"labels, or a file of labels beside it (train_images_png.pkl and train_labels.pkl). Got {known[:200]}."
            )


def _beside_labels(path: Path, images: Any, labels: Any) -> Iterator[Packed]:
    """tieredImageNet: images in one file; in the other label_specific, numbers, and label_specific_str, their names."""
    images = images.get("images", images) if isinstance(images, dict) else images
    known = isinstance(labels, dict) and {"label_specific", "label_specific_str"} <= set(labels)
    if not known or len(labels["label_specific"]) != len(images):
        raise BadInput(
            f"The labels beside {path.name} need label_specific, one per image, and label_specific_str. Check that the "
            "two files are of the same split."
        )
    names = [str(name) for name in labels["label_specific_str"]]
    for row, label in enumerate(labels["label_specific"]):
        one = images[row]
        flat = isinstance(one, np.ndarray) and one.ndim == 1
        packed = one if isinstance(one, bytes) else one.tobytes() if flat else None
        yield Packed(_split_of(path), names[int(label)], packed if packed is not None else _pixels(path, images, row))


def _pixels(path: Path, images: Any, row: Any) -> np.ndarray:
    try:
        one = np.asarray(images[int(row)])
    except (IndexError, TypeError, ValueError):
        raise BadInput(f"{path.name} names an image {row!r} that it does not hold. Get it again.") from None
    if one.dtype != np.uint8 or one.ndim != 3 or one.shape[2] != 3 or not one.size:
        raise BadInput(
            f"{path.name} must hold images as (height, width, 3) of whole numbers up to 255. Got {one.dtype} of shape "
            f"{one.shape}."
        )
    return one


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as opened:
            return {name: opened[name] for name in opened.files}
    except (OSError, ValueError) as error:
        raise BadInput(f"{path.name} cannot be read as plain arrays ({error}).") from None


def _stem(path: Path) -> str:
    """What the files of a split have in common: train of train_images_png.pkl and train_labels.pkl."""
    return re.sub(r"(images?|labels?|png|_|-)+", "", path.stem.lower())


def _split_of(path: Path) -> str:
    """The split that a file name says; of category_split_train_phase_test it is that of the categories."""
    name = path.stem.lower()
    found = re.search(r"category_split_(train|val|test)", name) or re.search(
        r"(train|val|test)(?!.*(?:train|val|test))", name
    )
    return found[1] if found else ""


# TFRecords -------------------------------------------------------------------------------------------------------


def _of_records(root: Path) -> Iterator[Packed]:
    """The images of Meta-Dataset's files, class after class; its classes count through train, val and test."""
    try:
        spec = json.loads((root / _SPEC).read_text(encoding="utf-8"))
        names = {int(number): str(name) for number, name in spec["class_names"].items()}
        sizes = {str(split).lower(): int(n) for split, n in dict(spec.get("classes_per_split") or {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadInput(
            f"{_SPEC} in {root} is not Meta-Dataset's: it needs class_names, a number and a name per class."
        ) from None
    split_of: list[str] = []
    for split, called in (("train", "train"), ("valid", "val"), ("test", "test")):
        split_of += [called] * sizes.get(split, 0)
    for number, name in names.items():
        path = root / f"{number}{_RECORDS}"
        if path.is_file():
            split = split_of[number] if 0 <= number < len(split_of) else ""
            yield from (Packed(split, name, image) for image in _images_in(path))


def _images_in(path: Path) -> Iterator[bytes]:
    """The field image of every record: its length (8 bytes), a checksum (4), the content, a checksum (4)."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        while head := file.read(12):
            length = struct.unpack("<Q", head[:8])[0] if len(head) == 12 else size
            if length > size:
                raise BadInput(f"{path.name} is damaged or cut off. Convert the dataset again.")
            content = file.read(length)
            file.read(4)
            found = _field(content, path)
            if found is not None:
                yield found


def _field(content: bytes, path: Path) -> bytes | None:
    """The bytes of the feature "image" of a tf.train.Example: features, entries of a map, a list of bytes."""
    try:
        for features in _messages(content, 1):
            for entry in _messages(features, 1):
                if next(_messages(entry, 1), b"") == b"image":
                    return next(_messages(next(_messages(next(_messages(entry, 2)), 1)), 1))
    except (StopIteration, IndexError, ValueError):
        raise BadInput(f"{path.name} holds a record that is no image of Meta-Dataset. Convert it again.") from None
    return None


def _messages(content: bytes, wanted: int) -> Iterator[bytes]:
    """The fields of one number that hold bytes, in a protocol-buffer message."""
    reader = io.BytesIO(content)
    while (key := _varint(reader)) is not None:
        kind = key & 7
        if kind == 2:
            length = _varint(reader) or 0
            value = reader.read(length)
            if len(value) != length:
                raise ValueError("cut off")
            if key >> 3 == wanted:
                yield value
        elif kind == 0:
            _varint(reader)
        elif kind in (1, 5):
            reader.read(8 if kind == 1 else 4)
        else:
            raise ValueError("no message")


def _varint(reader: io.BytesIO) -> int | None:
    value = shift = 0
    while byte := reader.read(1):
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value
        shift += 7
        if shift > 63:
            raise ValueError("no number")
    return None
