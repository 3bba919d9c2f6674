"""Benchmarks as few files that hold many images, written out as class folders:

pickles     of miniImageNet (image_data, class_dict; or data, labels, catname2label) and of tieredImageNet
            (train_images_png.pkl or train_images.npz next to train_labels.pkl), for each split one
TFRecords   of Meta-Dataset: dataset_spec.json, and a file per class, 0.tfrecords, 1.tfrecords, ...

A pickle is a small program: opening it with Python's or NumPy's reader may run any code. Here nothing of a pickle is
run: the few names that these files use stand for inert records of this module, and any other name is refused. Its
operations are counted before the first one is done, so that a small file cannot take much time or memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import pickle
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
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
_MOST_OPERATIONS = 20_000_000  # of one pickle; tieredImageNet's train images, each an array, take 12 million
_DEEPEST = 20  # lists in lists; benchmarks have three
_MOST_LETTERS = 200  # bytes of a class name, which becomes a folder
_UNPACKS = 100  # times its own size that an npz file may hold; photographs do not pack to a half


class PackedImage(NamedTuple):
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
    listing = json.dumps([(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files])
    name = hashlib.blake2b(listing.encode(), digest_size=10).hexdigest()
    folder = workspace.folder("datasets", create=True) / f".upload-{name}"
    if folder.is_dir():
        os.utime(folder)
        return folder
    workspace.sweep("datasets")
    images = _of_records(path) if any(p.name == _SPEC for p in files) else _of_pickles(files)
    with workspace.atomic_folder(folder, private=True) as temporary:
        n = n_bytes = 0
        homes: dict[Path, str] = {}
        for n, packed in enumerate(images, 1):
            n_bytes += len(packed.image) if isinstance(packed.image, bytes) else packed.image.nbytes
            if n_bytes > _MOST_BYTES:
                raise BadInput(
                    f"{path.name} holds the same images again and again: more than {_MOST_BYTES / 1e9:,.0f} GB. "
                    "Get it again."
                )
            _write(temporary, packed, n, homes)
            if progress and n % 500 == 0:
                progress(n, n, "writing images out")
        if not n:
            raise BadInput(
                f"{path} holds no images. Give the files of a benchmark, such as mini-imagenet-cache-test.pkl."
            )
    return folder


def _write(root: Path, packed: PackedImage, number: int, homes: dict[Path, str]) -> None:
    """Writes one image; `homes` has the class of every folder so far."""
    safe = re.sub(r"[/\\\0]", " ", packed.class_name).strip(". ")
    try:
        fits = 0 < len(safe.encode("utf-8")) <= _MOST_LETTERS
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise BadInput(
            f"A class is named {packed.class_name[:40]!r}. A class name has 1 to {_MOST_LETTERS} bytes of UTF-8, "
            "without counting dots and blanks around it. Rename it in the file."
        )
    folder = root / packed.split / safe if packed.split else root / safe
    if homes.setdefault(folder, packed.class_name) != packed.class_name:
        raise BadInput(
            f"The classes {homes[folder]!r} and {packed.class_name!r} become the same folder, {safe!r}. Rename one."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(packed.image, bytes):
        if not begins_as_image(packed.image[:HEADER]):
            raise BadInput(f"An image of class {safe!r} has an unknown format. Get the files again.")
        ending = "png" if packed.image.startswith(b"\x89PNG") else "jpg"
        (folder / f"{number:07d}.{ending}").write_bytes(packed.image)
    else:
        Image.fromarray(packed.image).save(folder / f"{number:07d}.png", compress_level=1)


# Pickles ---------------------------------------------------------------------------------------------------------


class _Dtype:
    """The description of a numpy.dtype in a pickle: its code, such as u1."""

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
    """The description of a numpy.ndarray in a pickle: shape, type and bytes, or a list."""

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
        data = self.data.encode("latin1") if isinstance(self.data, str) else self.data
        if not isinstance(data, bytes | bytearray):
            raise TypeError(f"an array of {type(data).__name__}")
        array: np.ndarray = np.frombuffer(data, self.dtype.numpy()).reshape(
            self.shape, order="F" if self.fortran else "C"
        )
        return np.char.decode(array, "latin1") if array.dtype.kind == "S" else array


def _buffer(data: Any, dtype: Any, shape: Any, order: str) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", data))
    return array


def _scalar(dtype: Any, data: Any = b"") -> Any:
    array = _Array()
    array.__setstate__((1, (), dtype, False, data))
    return array.value().item()


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise BadInput(f"A pickle may write bytes as latin1. Got {encoding!r}.")
    return text.encode("latin1")


class _Maker:
    """A function that a pickle may call, in a shell that nothing in a pickle can change."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *inputs: Any) -> Any:
        return self._make(*inputs)

    def __setstate__(self, _: Any) -> None:
        raise TypeError("a function has no state")


_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Maker(_encoded),
    ("collections", "OrderedDict"): dict,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Maker(_scalar) for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _Maker(_buffer) for core in ("core", "_core")},
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
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                _check_operations(content)
            return _plain(_Reader(file, fix_imports=False, encoding="latin1").load(), {})
    except BadInput as error:
        raise BadInput(f"{path.name}: {error}") from None
    except OSError as error:
        raise BadInput(f"{path.name} cannot be read ({error.strerror or error}).") from None
    except Exception as error:  # broken bytes lead the reader anywhere
        raise BadInput(
            f"{path.name} is not a pickle that can be read ({type(error).__name__}). Get it again."
        ) from None


_OPERATIONS = {ord(op.code): op.arg.n if op.arg else 0 for op in pickletools.opcodes}
_LENGTHS = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_TWO_LINES = frozenset(b"ci")  # GLOBAL and INST: a module and a name
_PUT, _LONG_PUT, _STOP = b"pr."


def _check_operations(content: mmap.mmap) -> None:
    """Refuses a pickle of too many operations, or one that numbers its parts so high that the numbers take memory.

    Python's reader makes a table as long as the highest number; a writer counts, so none is beyond the file's length.
    """
    at, end = 0, len(content)
    for _ in range(_MOST_OPERATIONS):
        code = content[at]  # beyond the end: an IndexError, as for any cut-off file
        size, begin = _OPERATIONS[code], at + 1
        if size >= 0:
            at = begin + size
        elif size == pickletools.UP_TO_NEWLINE:
            at = _after_line(content, begin)
            at = _after_line(content, at) if code in _TWO_LINES else at
        else:
            at = begin + _LENGTHS[size]
            at += int.from_bytes(content[begin:at], "little")
        if at > end:
            raise EOFError
        if code == _STOP:
            return
        if code in (_PUT, _LONG_PUT):
            number = int(content[begin:at]) if code == _PUT else int.from_bytes(content[begin:at], "little")
            if not 0 <= number <= end:
                raise BadInput(f"The pickle numbers a part {number:,}, which no writer does. Get it again.")
    raise BadInput(
        f"The pickle has more than {_MOST_OPERATIONS:,} operations; benchmarks have fewer. Save the images as files."
    )


def _after_line(content: mmap.mmap, begin: int) -> int:
    end = content.find(b"\n", begin)
    if end < 0:
        raise EOFError
    return end + 1


def _plain(value: Any, cache: dict[int, Any], depth: int = 0) -> Any:
    """The content without the records of this module; what is named twice is made once (`known`, by identity)."""
    if depth > _DEEPEST:
        raise BadInput(f"The pickle nests lists deeper than {_DEEPEST}, and benchmarks do not. Get it again.")
    if isinstance(value, _Array):
        if id(value) not in cache:
            cache[id(value)] = _plain(value.value(), cache, depth + 1)
        return cache[id(value)]
    if not isinstance(value, dict | list | tuple):
        return value
    if id(value) not in cache:
        if isinstance(value, dict):
            cache[id(value)] = {
                key.decode("latin1") if isinstance(key, bytes) else key: _plain(v, cache, depth + 1)
                for key, v in value.items()
            }
        else:
            cache[id(value)] = [_plain(v, cache, depth + 1) for v in value]
    return cache[id(value)]


def _of_pickles(files: Iterable[Path]) -> Iterator[PackedImage]:
    """The images of every split, file after file, so that one split at a time is in memory."""
    files = list(files)
    waiting = [p for p in files if p.suffix.lower() in (*_PICKLES, ".npz")]
    labels = [p for p in waiting if "label" in p.stem.lower()]
    for path in (p for p in waiting if p not in labels):
        label_files = [p for p in labels if _stem(p) == _stem(path)]
        if path.suffix.lower() == ".npz" and not label_files:
            continue
        content: Any = _arrays(path) if path.suffix.lower() == ".npz" else read_pickle(path)
        if label_files:
            yield from _images_with_labels(path, content, read_pickle(label_files[0]))
        elif isinstance(content, dict) and {"image_data", "class_dict"} <= set(content):
            yield from _by_class(path, content["image_data"], content["class_dict"])
        elif isinstance(content, dict) and {"data", "labels"} <= set(content):
            yield from _by_label(path, content["data"], content["labels"], content.get("catname2label"))
        else:
            content_keys = ", ".join(map(repr, content)) if isinstance(content, dict) else type(content).__name__
            raise BadInput(
                f"{path.name} must hold image_data and class_dict, or data and labels, or have a file of labels next "
                f"to it (train_images_png.pkl and train_labels.pkl). Got {content_keys[:200]}."
            )


def _by_class(path: Path, images: Any, rows_of: Any) -> Iterator[PackedImage]:
    """miniImageNet: all images in image_data, and in class_dict the rows of every class."""
    images = _rows_of_images(path, images, "image_data")
    if not isinstance(rows_of, dict):
        raise _wrong_type(path, "class_dict", "a table of class names and their rows of image_data", rows_of)
    rows = {
        _class_name(path, "class_dict", name): _numbers(path, "class_dict", numbers, len(images))
        for name, numbers in rows_of.items()
    }
    n_named = sum(map(len, rows.values()))
    if len(rows) < len(rows_of) or n_named > len(images):
        raise BadInput(
            f"{path.name}: every image of image_data belongs to one class of class_dict. Got {n_named:,} rows in "
            f"{len(rows_of):,} classes for {len(images):,} images. Get the file again."
        )
    for name, numbers in rows.items():
        yield from (PackedImage(_split_of(path), name, _pixels(path, images, row)) for row in numbers.tolist())


def _by_label(path: Path, images: Any, labels: Any, names: Any) -> Iterator[PackedImage]:
    """miniImageNet: images in data, a number for each in labels, and what the numbers mean in catname2label."""
    images = _rows_of_images(path, images, "data")
    labels = _numbers(path, "labels", labels)
    if len(labels) != len(images):
        raise BadInput(
            f"{path.name} needs one label per image of data. Got {len(labels):,} labels for {len(images):,} images. "
            "Get it again."
        )
    name_of = {number: f"class {number}" for number in np.unique(labels).tolist()}
    if names is not None:
        if not isinstance(names, dict):
            raise _wrong_type(path, "catname2label", "a table of class names and their labels", names)
        numbers = _numbers(path, "catname2label", list(names.values())).tolist()
        name_of_number = dict(zip(numbers, (_class_name(path, "catname2label", name) for name in names), strict=True))
        unknown = [number for number in name_of if number not in name_of_number]
        if unknown or len(set(name_of_number.values())) < len(names):
            problem = (
                f"none for label {unknown[0]}" if unknown else f"{len(names):,} for {len(name_of_number):,} labels"
            )
            raise BadInput(f"{path.name}: catname2label gives every label one name of its own. Got {problem}.")
        name_of = name_of_number
    for row, label in enumerate(labels.tolist()):
        yield PackedImage(_split_of(path), name_of[label], _pixels(path, images, row))


def _images_with_labels(path: Path, images: Any, labels: Any) -> Iterator[PackedImage]:
    """tieredImageNet: images in one file; in the other label_specific, numbers, and label_specific_str, their names."""
    images = _rows_of_images(path, images.get("images") if isinstance(images, dict) else images, "images")
    if not isinstance(labels, dict) or not {"label_specific", "label_specific_str"} <= set(labels):
        raise BadInput(
            f"The labels next to {path.name} need label_specific, one per image, and label_specific_str. Check that "
            "the two files are of the same split."
        )
    names = labels["label_specific_str"]
    if not isinstance(names, list | np.ndarray) or (isinstance(names, np.ndarray) and names.ndim == 0):
        raise _wrong_type(path, "label_specific_str", "a list of class names", names)
    names = [_class_name(path, "label_specific_str", name) for name in names]
    numbers = _numbers(path, "label_specific", labels["label_specific"], len(names))
    if len(numbers) != len(images) or len(set(names)) < len(names):
        raise BadInput(
            f"The labels next to {path.name} must have one number per image and one name per class. Got "
            f"{len(numbers):,} numbers for {len(images):,} images, and {len(set(names)):,} different names of "
            f"{len(names):,}. Check that the two files are of the same split."
        )
    for row, label in enumerate(numbers.tolist()):
        image = images[row]
        flat = isinstance(image, np.ndarray) and image.ndim == 1
        packed = image if isinstance(image, bytes) else image.tobytes() if flat else None
        yield PackedImage(_split_of(path), names[label], packed if packed is not None else _pixels(path, images, row))


def _rows_of_images(path: Path, images: Any, key: str) -> Any:
    if not isinstance(images, list | np.ndarray) or (isinstance(images, np.ndarray) and images.ndim == 0):
        raise _wrong_type(path, key, "a list or an array of images", images)
    return images


def _numbers(path: Path, key: str, values: Any, below: int | None = None) -> np.ndarray:
    """Whole numbers (n,) from 0 on, all of them below a number if it is given."""
    if not isinstance(values, list | np.ndarray):
        raise _wrong_type(path, key, "a list of whole numbers", values)
    try:
        numbers = np.asarray(values)
    except ValueError:  # lists of several lengths
        raise _wrong_type(path, key, "a list of whole numbers", values) from None
    if not numbers.size and numbers.ndim == 1:
        return np.array([], np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise _wrong_type(path, key, "a list of whole numbers", values)
    if numbers.min() < 0 or (below is not None and numbers.max() >= below):
        limit = "up" if below is None else f"{below - 1:,}"
        wrong = int(numbers.min() if numbers.min() < 0 else numbers.max())
        raise BadInput(
            f"{path.name}: the numbers of {key} go from 0 to {limit}. Got {wrong:,}, which it does not hold."
        )
    return numbers.astype(np.int64)


def _class_name(path: Path, key: str, name: Any) -> str:
    name = name.decode("latin1") if isinstance(name, bytes) else name
    if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
        raise _wrong_type(path, key, "class names as texts", name)
    return str(name)


def _wrong_type(path: Path, key: str, expected: str, value: Any) -> BadInput:
    return BadInput(f"{path.name}: {key} must hold {expected}. Got {type(value).__name__}. Get the file again.")


def _pixels(path: Path, images: Any, row: int) -> np.ndarray:
    image = images[row]
    if (
        not isinstance(image, np.ndarray)
        or image.dtype != np.uint8
        or image.ndim != 3
        or image.shape[2] != 3
        or not image.size
    ):
        got = f"{image.dtype} of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
        raise BadInput(
            f"{path.name} must hold images as (height, width, 3) of whole numbers up to 255. Got {got} in row {row:,}."
        )
    return image


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
        if n_bytes > min(_MOST_BYTES, _UNPACKS * path.stat().st_size):
            raise BadInput(
                f"{path.name} would unpack to {n_bytes / 1e9:,.1f} GB; at most {_UNPACKS} times its own size and "
                f"{_MOST_BYTES / 1e9:,.0f} GB are read. Get it again."
            )
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except BadInput:
        raise
    except Exception as error:  # broken archives raise whatever their bytes lead to
        why = " ".join(str(error).split())[:160] or type(error).__name__
        raise BadInput(f"{path.name} cannot be read as plain arrays ({why}). Get it again.") from None


def _stem(path: Path) -> str:
    """The common name of the files of a split: train of train_images_png.pkl and train_labels.pkl."""
    return re.sub(r"(images?|labels?|png|_|-)+", "", path.stem.lower())


def _split_of(path: Path) -> str:
    """The split that a file name says; of category_split_train_phase_test it is that of the categories."""
    name = path.stem.lower()
    match = re.search(r"category_split_(train|val|test)", name) or re.search(
        r"(train|val|test)(?!.*(?:train|val|test))", name
    )
    return match[1] if match else ""


# TFRecords -------------------------------------------------------------------------------------------------------


def _of_records(root: Path) -> Iterator[PackedImage]:
    """The images of Meta-Dataset's files, class after class; its classes count through train, val and test."""
    try:
        spec = json.loads((root / _SPEC).read_text(encoding="utf-8"))
        names = {int(number): str(name) for number, name in spec["class_names"].items()}
        sizes = {str(split).lower(): int(n) for split, n in dict(spec.get("classes_per_split") or {}).items()}
        if len(set(names.values())) < len(names) or min(sizes.values(), default=0) < 0:
            raise ValueError("names that repeat, or fewer than no classes")
        if sum(sizes.values()) > len(names):
            raise ValueError("splits of more classes than there are")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise BadInput(
            f"{_SPEC} in {root} is not Meta-Dataset's: it needs class_names, a number and a name per class, and the "
            "splits of classes_per_split have no more classes than that. Convert the dataset again."
        ) from None
    split_of: list[str] = []
    for split, called in (("train", "train"), ("valid", "val"), ("test", "test")):
        split_of += [called] * sizes.get(split, 0)
    for number, name in names.items():
        path = root / f"{number}{_RECORDS}"
        if path.is_file():
            split = split_of[number] if 0 <= number < len(split_of) else ""
            yield from (PackedImage(split, name, image) for image in _images_in(path))


def _images_in(path: Path) -> Iterator[bytes]:
    """The field image of every record: its length (8 bytes), a checksum (4), the content, a checksum (4)."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        while head := file.read(12):
            length = struct.unpack("<Q", head[:8])[0] if len(head) == 12 else size
            if length > size:
                raise BadInput(f"{path.name} is damaged or cut off. Convert the dataset again.")
            content = file.read(length)
            if len(content) < length:
                raise BadInput(f"{path.name} is damaged or cut off. Convert the dataset again.")
            file.read(4)
            image = _field(content, path)
            if image is not None:
                yield image


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


def _messages(content: bytes, number: int) -> Iterator[bytes]:
    """The fields of one number that hold bytes, in a protocol-buffer message."""
    reader = io.BytesIO(content)
    while (key := _varint(reader)) is not None:
        kind = key & 7
        if kind == 2:
            length = _varint(reader) or 0
            value = reader.read(length)
            if len(value) != length:
                raise ValueError("cut off")
            if key >> 3 == number:
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
