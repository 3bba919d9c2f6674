"""Features on disk: what ships with the demo, and the workspace.

workspace/features/DATASET/BACKBONE-DIGEST/
    values.npy     (n, D) float16 (float32 where that would lose: `precision`), memory-mapped when loaded
    rows.parquet   image_id and class_id of every row
    about.json     the key (every input the values depend on), images that were skipped, and how it was made
workspace/features/DATASET/.partial-128-BACKBONE-DIGEST/
    00012.npz      a finished shard of SHARD images; what a killed extraction leaves, and the next one continues

Everything is written under a temporary name and renamed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import time
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName, WorkspaceError
from fsviz.features.precision import LOST, share_lost
from fsviz.records import Dataset, Features, FeaturesKey, remake_features
from fsviz.shipped import DATA

VERSION = 1
SHARD = 128  # images; a kill loses at most this many
SHIPPED = DATA  # ORIGIN/features/BACKBONE.npy
IMPORTED = "imported"
_prints: dict[int, tuple[weakref.ref[Dataset], str]] = {}  # a record never changes, so it is hashed once


@dataclass(frozen=True)
class Shard:
    """Features (n, D) float32 of image_ids (n,), and the images of the shard that could not be read.

    attributes (n, A) what pixels say of them, in the order of pixel_attributes.NAMES.
    """

    values: np.ndarray
    image_ids: np.ndarray
    skipped: tuple[tuple[int, str], ...]
    attributes: np.ndarray


def load(dataset: Dataset, backbone: str) -> Features:
    """Features of a dataset under a backbone: the ones that ship with the demo first, then the workspace's.

    backbone  a name as `available` gives it; a plain name also finds features made with a checkpoint of it.
    """
    return replace(_load(dataset, backbone), groups=dataset.image_groups())


def _load(dataset: Dataset, backbone: str) -> Features:
    shipped = _shipped(dataset, backbone)
    if shipped is not None:
        return shipped
    matches = [entry for entry in _entries(dataset.name) if _matches(backbone, entry["label"])]
    print_ = fingerprint(dataset) if matches else ""
    current = [entry for entry in matches if entry["key"].get("fingerprint") == print_]
    if current:
        exact = [entry for entry in current if entry["label"] == backbone]
        return _open(max(exact or current, key=lambda entry: entry["created"]))
    if matches:
        raise Missing(
            f"The {backbone} features of {dataset.title} are older than its images: "
            f"{remake_features(dataset.name, matches[-1]['label'], matches[-1]['key'])}."
        )
    backbones = available(dataset)
    also = f" Available: {', '.join(backbones)} (--backbone on the command line)."
    also = also if backbones else ""
    if not dataset.has_pixels:
        raise Missing(
            f"{dataset.title} has no {backbone} features and no images to extract them from.{also} "
            "Add your copy of the images with 'fsviz add NAME PATH', or import features with "
            "'fsviz features import NAME FILE'."
        )
    raise Missing(
        f"{dataset.title} has no {backbone} features yet.{also} Extract them with '{_command(dataset, backbone)}'."
    )


def available(dataset: Dataset) -> list[str]:
    """The backbones that have up-to-date features of a dataset, the embedded ones first."""
    labels = []
    shipped = [path.stem for path in sorted(SHIPPED.glob(f"{dataset.origin}/features/*.npy"), reverse=True)]
    labels += [label for label in shipped if _shipped(dataset, label) is not None]
    stored = _entries(dataset.name)
    print_ = fingerprint(dataset) if stored else ""
    labels += [entry["label"] for entry in stored if entry["key"].get("fingerprint") == print_]
    return list(dict.fromkeys(labels))


def required(dataset: Dataset) -> list[str]:
    """`available`, where there are any; else refused with what makes some."""
    names = available(dataset)
    if not names:
        from fsviz.features.backbones import DEFAULT

        stored = [entry["label"] for entry in _entries(dataset.name)]  # made before the images changed
        load(dataset, stored[-1] if stored else DEFAULT)
    return names


def is_readable(dataset: Dataset, backbone: str) -> bool:
    """Whether `load` would give features that are all numbers: others may be made again under the same name."""
    try:
        values = load(dataset, backbone).values
        return len(values) > 0 and bool(np.isfinite(values).all())
    except FsvizError:
        return False


def list_features() -> list[dict[str, Any]]:
    """All available features, shipped and in the workspace: one dictionary of plain values each."""
    rows = []
    for path in sorted(SHIPPED.glob("*/features/*.npy"), reverse=True):
        metadata = _about(path.with_suffix(".json"))
        if metadata is not None:
            rows.append(_row({"label": path.stem, **metadata}, path, "shipped"))
    for folder in workspace.entries("features"):
        for entry in _entries(folder.name):
            rows.append(_row(entry, Path(entry["path"]), "workspace"))
    return rows


def fingerprint(dataset: Dataset) -> str:
    """Changes when the images do: order, files (names, sizes), classes; for the demo all they are drawn from.

    Attributes, splits and taxonomy of other datasets may change without making features again.
    """
    cached = _prints.get(id(dataset))
    if cached is not None and cached[0]() is dataset:
        return cached[1]
    if dataset.images is None:
        table = dataset.classes[["class_name"]]
    elif dataset.origin == "demo":
        table = dataset.images
    else:
        table = dataset.images[[c for c in ("class_id", "path", "n_bytes") if c in dataset.images]]
    text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    digest = hashlib.sha256(f"{dataset.origin}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()
    for identity in [i for i, (reference, _) in _prints.items() if reference() is None]:
        del _prints[identity]
    _prints[id(dataset)] = (weakref.ref(dataset), digest)
    return digest


def key_digest(key: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def folder_of(key: FeaturesKey, label: str) -> Path:
    """The folder of the features with this key."""
    return workspace.folder("features") / str(key["dataset"]) / f"{_slug(label)}-{key_digest(key)[:12]}"


def find(key: FeaturesKey, label: str) -> dict[str, Any] | None:
    """The metadata of the features with exactly this key, or None if they are not stored."""
    folder = folder_of(key, label)
    workspace.restore_aside(folder.parent)
    metadata = _about(folder / "about.json")
    return None if metadata is None or metadata.get("key") != key else {**metadata, "path": str(folder)}


def is_stored(key: FeaturesKey, label: str) -> bool:
    """Whether the features with exactly this key are there and can be read."""
    metadata = find(key, label)
    return metadata is not None and _is_complete(metadata)


def precision(key: FeaturesKey, label: str) -> str:
    """Why the features with this key are kept in float32, for a person; "" where float16 does or nothing is known."""
    return str((find(key, label) or {}).get("precision", ""))


def open_stored(metadata: Mapping[str, Any]) -> Features:
    """The features that `find` found."""
    return _open(metadata)


def remove(key: FeaturesKey, label: str) -> None:
    """Forgets the features with this key, finished or not."""
    workspace.remove([folder_of(key, label), _partial(key, label)])


def remove_features(dataset_name: str, backbone: str) -> int:
    """Removes a dataset's features under one backbone from the workspace; how many sets of them there were."""
    entries = _entries(workspace.check_name(dataset_name, "dataset name"))
    paths = [Path(entry["path"]) for entry in entries if _matches(backbone, entry["label"])]
    if not paths:
        raise UnknownName("features", backbone, [entry["label"] for entry in entries], "See 'fsviz features'.")
    forget(paths)
    return len(paths)


def rename_features(dataset_name: str, backbone: str, new: str) -> str:
    """Gives imported features another name, which it returns. Those that a backbone made are called what it is called:
    by that name they are extracted again."""
    entries = _entries(workspace.check_name(dataset_name, "dataset name"))
    labels = [entry["label"] for entry in entries]
    matches = [entry for entry in entries if entry["label"] == backbone]
    if not matches:
        raise UnknownName("features", backbone, labels, "See 'fsviz features'.")
    if not all(is_imported(entry["key"]) for entry in matches):
        raise BadInput(
            f"Features that were extracted are called what their backbone is called. Got {backbone!r}, of which a "
            "backbone made some. Only imported features can be renamed."
        )
    new = workspace.check_name(new.strip(), "backbone name")
    if new == backbone:
        return new
    if new in labels:
        raise BadInput(f"Features need names of their own. Got {new!r}, which others have. Choose another.")
    for entry in matches:  # the key stays: it says what the values depend on, which a name does not change
        path = Path(entry.pop("path"))
        workspace.write_json(path / "about.json", {**entry, "label": new})
        path.rename(folder_of(entry["key"], new))
    return new


def is_imported(key: FeaturesKey) -> bool:
    """Whether features with this key were made elsewhere."""
    return bool(key.get("imported"))


def stored_paths(dataset_name: str) -> list[Path]:
    """The folders of a dataset's stored features."""
    return [Path(entry["path"]) for entry in _entries(dataset_name)]


def forget(paths: Sequence[Path]) -> None:
    """Removes stored features by their folders."""
    workspace.remove(paths)


def save(
    key: FeaturesKey,
    label: str,
    values: np.ndarray,
    image_ids: np.ndarray,
    class_ids: np.ndarray,
    skipped: Sequence[Mapping[str, Any]] = (),
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Stores finished features."""
    lost = share_lost([values], np.float16)
    return _write(key, label, [values], lost, image_ids, class_ids, skipped, facts or {})


# Shards of an extraction that is under way


def save_shard(key: FeaturesKey, label: str, index: int, shard: Shard) -> None:
    """Keeps one finished shard; after a kill it need not be computed again."""
    folder = _partial(key, label)
    ids = np.array([image_id for image_id, _ in shard.skipped], np.int64)
    reasons = np.array([reason for _, reason in shard.skipped], np.str_)
    try:
        with workspace.atomic_file(folder / f"{index:05d}.npz") as temporary, open(temporary, "wb") as file:
            np.savez(
                file,
                values=shard.values,
                image_ids=shard.image_ids,
                skipped=ids,
                reasons=reasons,
                attributes=shard.attributes,
            )
    except WorkspaceError:
        _drop_if_empty(folder)
        raise


def load_shard(key: FeaturesKey, label: str, index: int) -> Shard | None:
    """A finished shard, or None; one that cannot be read counts as not finished."""
    path = _partial(key, label) / f"{index:05d}.npz"
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as arrays:
            skipped = tuple(zip(arrays["skipped"].tolist(), arrays["reasons"].tolist(), strict=True))
            return Shard(arrays["values"], arrays["image_ids"], skipped, arrays["attributes"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def shards_done(key: FeaturesKey, label: str) -> set[int]:
    """Numbers of the shards that are finished."""
    folder = _partial(key, label)
    return {int(path.stem) for path in folder.glob("[0-9]*.npz")} if folder.is_dir() else set()


def join(
    key: FeaturesKey,
    label: str,
    dataset: Dataset,
    shards: Callable[[], Iterable[Shard]],
    facts: Mapping[str, Any],
) -> Path:
    """Stores all shards as the finished features. `shards` is called more than once: they are never all in memory."""
    images = dataset.images
    paths = images["path"].astype(str).to_numpy() if images is not None and "path" in images else None
    image_ids, skipped = [], []
    for shard in shards():
        image_ids.append(shard.image_ids)
        for image_id, reason in shard.skipped:
            where = "" if paths is None else str(paths[image_id])
            skipped.append({"image_id": image_id, "path": where, "reason": reason})
    ids = np.concatenate(image_ids)
    lost = share_lost((shard.values for shard in shards()), np.float16)
    values = (shard.values for shard in shards())
    return _write(key, label, values, lost, ids, dataset.image_class_ids()[ids], skipped, facts)


def each_shard(key: FeaturesKey, label: str, n_images: int) -> Iterator[Shard]:
    """The kept shards of an extraction, all of them in order."""
    for index in range(n_shards(n_images)):
        shard = load_shard(key, label, index)
        if shard is None:
            raise WorkspaceError(
                f"Part of the extraction in {_partial(key, label)} is gone. Run the same command again to make it."
            )
        yield shard


def drop_shards(key: FeaturesKey, label: str) -> None:
    """Forgets the kept shards of an extraction that has ended."""
    shutil.rmtree(_partial(key, label), ignore_errors=True)


def n_shards(n_images: int) -> int:
    return -(-n_images // SHARD)


def shard_ids(n_images: int, index: int) -> range:
    """The image_ids of one shard."""
    return range(index * SHARD, min(n_images, (index + 1) * SHARD))


@contextmanager
def locked(key: FeaturesKey, label: str, wait: bool = False) -> Iterator[None]:
    """One process at a time works on these features; the lock falls with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: renames alone keep the store whole
        yield
        return
    parent = workspace.folder("features", create=True) / str(key["dataset"])
    path = parent / f".lock-{_slug(label)}-{key_digest(key)[:12]}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        handle = open(path, "w")  # noqa: SIM115  (held open as long as the lock)
    except OSError as error:
        raise WorkspaceError(
            f"{parent} cannot be written ({error.strerror or error}). Free some space or move FSVIZ_HOME."
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise BadInput(
                f"Another process is extracting the {label} features of {key['dataset']}. "
                "Wait for it to finish, or stop it first."
            ) from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            _drop_if_empty(parent)


# Private steps


def _precision_note(lost: float) -> str:
    """Why features are stored in float32, for a person; "" where float16 does."""
    if lost <= LOST:
        return ""
    if not np.isfinite(lost):
        return "kept in float32: beyond the range of float16"
    return f"kept in float32: float16 would move images by {lost:.1%} of the distance between them"


def _write(
    key: FeaturesKey,
    label: str,
    parts: Iterable[np.ndarray],
    lost: float,
    image_ids: np.ndarray,
    class_ids: np.ndarray,
    skipped: Sequence[Mapping[str, Any]],
    facts: Mapping[str, Any],
) -> Path:
    path = folder_of(key, label)
    parts = iter(parts)
    first = next(parts)
    dims = first.shape[1]
    precision_note = _precision_note(lost)
    dtype = np.dtype(np.float32 if precision_note else np.float16)
    metadata = {
        "key": dict(key),
        "label": label,
        "n_images": len(image_ids),
        "dims": dims,
        "dtype": dtype.name,
        "precision": precision_note,
        "skipped": list(skipped),
        "created": time.time(),
        **facts,
    }
    with workspace.atomic_folder(path) as folder:
        # Plain writes: on a full disk a memory-mapped file would end the process instead of raising an error.
        with open(folder / "values.npy", "wb") as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": (len(image_ids), dims)}
            np.lib.format.write_array_header_1_0(file, header)
            for part in itertools.chain([first], parts):
                file.write(np.ascontiguousarray(part, dtype=dtype).data)
        pd.DataFrame({"image_id": image_ids, "class_id": class_ids}).to_parquet(folder / "rows.parquet", index=False)
        (folder / "about.json").write_text(json.dumps(metadata, indent=1, sort_keys=True), encoding="utf-8")
    return path


def _open(metadata: Mapping[str, Any]) -> Features:
    folder = Path(metadata["path"])
    try:
        values = np.load(folder / "values.npy", mmap_mode="r", allow_pickle=False)
        status = (folder / "rows.parquet").stat()
        ids, classes = _rows(folder / "rows.parquet", status.st_mtime_ns, status.st_size)
        if values.ndim != 2 or len(values) != len(ids):
            raise ValueError(f"{values.shape} values for {len(ids)} rows")
    except (OSError, ValueError, KeyError, EOFError) as error:
        again = remake_features(str(metadata["key"].get("dataset")), str(metadata["label"]), metadata["key"])
        raise WorkspaceError(
            f"The features in {folder} are damaged ({error}). {again[0].upper()}{again[1:]}."
        ) from error
    return Features(str(metadata["key"]["dataset"]), str(metadata["label"]), values, ids, classes, metadata["key"])


@lru_cache(maxsize=16)
def _rows(path: Path, changed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and classes of the rows of a file as it was then: pages open the same features again and again."""
    rows = pd.read_parquet(path)
    return rows["image_id"].to_numpy(np.int64), rows["class_id"].to_numpy(np.int64)


def _is_complete(metadata: Mapping[str, Any]) -> bool:
    try:
        return len(_open(metadata).values) > 0
    except WorkspaceError:
        return False


def _shipped(dataset: Dataset, backbone: str) -> Features | None:
    if dataset.images is None or not _is_plain(backbone):
        return None
    path = SHIPPED / dataset.origin / "features" / f"{backbone}.npy"
    if not path.is_file():
        return None
    metadata = _about(path.with_suffix(".json"))
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    if (
        metadata is None
        or len(values) != len(dataset.images)
        or metadata["key"].get("fingerprint") != fingerprint(dataset)
    ):
        return None
    return Features(dataset.name, backbone, values, np.arange(len(values)), dataset.image_class_ids(), metadata["key"])


def _entries(dataset_name: str) -> list[dict[str, Any]]:
    """The stored features of one dataset, oldest first; folders that cannot be read are excluded."""
    folder = workspace.folder("features") / dataset_name
    entries = []
    workspace.restore_aside(folder)
    try:
        paths = sorted(folder.iterdir())
    except OSError:  # there are none, or they may not be read
        return []
    for path in paths:
        metadata = None if path.name.startswith(".") else _about(path / "about.json")
        if metadata is not None and {"label", "created"} <= metadata.keys():
            entries.append({**metadata, "path": str(path)})
    return sorted(entries, key=lambda entry: entry["created"])


def _about(path: Path) -> dict[str, Any] | None:
    try:
        metadata = json.loads(path.read_text(encoding="utf-8"))
        return metadata if isinstance(metadata["key"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _row(metadata: Mapping[str, Any], path: Path, origin: str) -> dict[str, Any]:
    key = metadata["key"]
    return {
        "dataset": key["dataset"],
        "backbone": metadata["label"],
        "n_images": metadata.get("n_images"),
        "dims": metadata.get("dims"),
        "skipped": len(metadata.get("skipped", ())),
        "dtype": metadata.get("dtype"),
        "precision": metadata.get("precision", ""),
        "origin": origin,
        "warning": key.get("warning", ""),
        "imported": is_imported(key),
        "damaged": origin == "workspace" and not _is_complete({**metadata, "path": str(path)}),
        "path": str(path),
    }


def _matches(requested: str, label: str) -> bool:
    """ "resnet12" finds resnet12@1a2b3c4d, "ViT-B-32" finds open_clip:ViT-B-32/openai; a full label finds itself."""
    if requested == label:
        return True
    plain = label.split("@")[0]
    bare = plain.split(":", 1)[-1]
    return requested in {plain, bare, bare.split("/")[0]}


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9_]+", name) is not None


def _slug(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.@+-]+", "-", label)[:80]


def _partial(key: FeaturesKey, label: str) -> Path:
    final = folder_of(key, label)
    return final.with_name(f".partial-{SHARD}-{final.name}")  # shards of another size do not mix


def _drop_if_empty(folder: Path) -> None:
    with suppress(OSError):  # not empty
        folder.rmdir()


def _command(dataset: Dataset, backbone: str) -> str:
    return f"fsviz extract {dataset.name} --backbone {backbone.split('@')[0]}"
