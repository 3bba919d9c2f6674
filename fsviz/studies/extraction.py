"""Extraction as a run: a dataset's images under one backbone, shard by shard, so that it can be stopped and resumed.

The spec of a run:
    {"study": "extraction", "dataset": name, "backbone": name, "checkpoint": file or null, "device": "auto",
     "batch": null, "workers": null}
A chunk is the features of one shard of images. When all are there, `finish` stores them as the dataset's features,
and the run lets its chunks go. Whoever computes a chunk must see the images.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput
from fsviz.features import store
from fsviz.features.backbones import DEFAULT
from fsviz.records import Dataset
from fsviz.settings import Unchecked

HOLDS_A_MODEL = READS_IMAGES = True
TRANSIENT = True  # the features are kept in the store, not a second time in the run


class Spec(TypedDict, total=False):
    """What is asked for, down to the workers; `prepare` adds what the backbone makes of which images, and who executes
    the run its folder."""

    study: str
    dataset: str
    backbone: str
    checkpoint: str | None
    device: str
    batch: int | None
    workers: int | None
    n_images: int
    dims: int
    label: str
    warning: str
    fingerprint: str
    folder: str


class Skipped(TypedDict):
    """An image that could not be read, and why."""

    image_id: int
    reason: str


class Summary(TypedDict, total=False):
    """What came out of a run so far; how exact the stored features are is known at its end."""

    dataset: str
    backbone: str
    n_images: int
    n_total: int | None
    dims: int | None
    skipped: list[Skipped]
    device: str | None
    warning: str
    precision: str


class Choice(TypedDict):
    """A backbone that a page offers."""

    backbone: str
    extracted: bool
    warning: str


def prepare(spec: Unchecked, folder: Path) -> Spec:
    """Checks a spec while its maker still looks: the dataset has images, the backbone loads, the device is there."""
    from fsviz.features.extraction import check_pixels, key_of

    dataset = datasets.load(_text(spec, "dataset"))
    n_images = check_pixels(dataset)
    backbone = _backbone(*_backbone_choice(cast(Spec, spec)))
    if store.is_stored(key_of(dataset, backbone), backbone.label):
        raise BadInput(
            f"The features of {dataset.title} under {backbone.label} are there already. To make them again: "
            f"'python -m fsviz extract {dataset.name} --backbone {backbone.name} --again'."
        )
    settled: Spec = {
        "backbone": str(spec.get("backbone") or DEFAULT),
        "n_images": n_images,
        "dims": backbone.dims,
        "label": backbone.label,
        "device": backbone.device,
        "warning": backbone.warning,
        "fingerprint": key_of(dataset, backbone)["fingerprint"],
    }
    return cast(Spec, {**spec, **settled})


def plan(spec: Spec) -> int:
    """One chunk per shard."""
    from fsviz.features.extraction import check_pixels

    n_images = spec.get("n_images") or check_pixels(datasets.load(_text(spec, "dataset")))
    return store.n_shards(int(n_images))


def n_bytes(spec: Spec) -> float:
    """The features twice: in chunks and, for a moment, stored beside them."""
    from fsviz.features.extraction import n_bytes

    return n_bytes(2 * int(spec["n_images"]), int(spec["dims"]))


def run_chunk(spec: Spec, index: int) -> dict[str, np.ndarray]:
    """Features (n, D) of the images of one shard, and the images that could not be read with the reasons."""
    from fsviz.features.extraction import check_pixels, compute_shard, default_workers

    dataset = _dataset(spec)
    backbone = _backbone(*_backbone_choice(spec))
    workers = spec.get("workers")
    workers = default_workers(check_pixels(dataset), backbone.device) if workers is None else int(workers)
    shard = compute_shard(dataset, backbone, index, _decoder(dataset, workers), spec.get("batch"))
    return {
        "values": shard.values,
        "image_ids": shard.image_ids,
        "skipped": np.array([image_id for image_id, _ in shard.skipped], np.int64),
        "reasons": np.array([reason for _, reason in shard.skipped], np.str_),
        "attributes": shard.attributes,
    }


def summarise(spec: Spec, chunks: Iterable[Mapping[str, np.ndarray]]) -> Summary:
    """Images done and skipped so far."""
    skipped: list[Skipped]
    done, skipped = 0, []
    for chunk in chunks:
        done += len(chunk["image_ids"])
        skipped += [{"image_id": image_id, "reason": reason} for image_id, reason in _skipped(chunk)]
    return {
        "dataset": spec["dataset"],
        "backbone": spec.get("label") or spec.get("backbone") or DEFAULT,
        "n_images": done,
        "n_total": spec.get("n_images"),
        "dims": spec.get("dims"),
        "skipped": skipped,
        "device": spec.get("device"),
        "warning": spec.get("warning", ""),
    }


def finish(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]]) -> Summary:
    """The summary, after storing the features of all chunks."""
    from fsviz.features.device import describe as in_words
    from fsviz.features.extraction import key_of, store_shards

    def shards() -> Iterator[store.Shard]:
        return (
            store.Shard(chunk["values"], chunk["image_ids"], _skipped(chunk), _attributes(chunk)) for chunk in chunks
        )

    backbone = _backbone(*_backbone_choice(spec))
    store_shards(_dataset(spec), backbone, shards, {"device": in_words(backbone.device)})
    precision = store.precision(key_of(_dataset(spec), backbone), backbone.label)
    return summarise(spec, chunks) | {"precision": precision}


def _skipped(chunk: Mapping[str, np.ndarray]) -> tuple[tuple[int, str], ...]:
    return tuple(zip(chunk["skipped"].tolist(), chunk["reasons"].tolist(), strict=True))


def _attributes(chunk: Mapping[str, np.ndarray]) -> np.ndarray:
    try:
        return chunk["attributes"]
    except KeyError:  # a chunk of an older version
        return np.zeros((0, 0), np.float32)


def describe(spec: Spec, index: int) -> str:
    """A line beside the progress bar."""
    total = int(spec.get("n_images") or 0)
    return f"{min(total, (index + 1) * store.SHARD):,} of {total:,} images"


def extract_now(dataset: Dataset, backbone: str = DEFAULT, progress: Any = None, **options: Any) -> dict[str, Any]:
    """The whole extraction in this process, for the command line; `options` are those of features.extract."""
    done = features.extract(dataset, backbone, progress=progress, **options)
    return {
        "dataset": dataset.name,
        "backbone": done.features.backbone,
        "n_images": done.n_images,
        "dims": done.dims,
        "skipped": list(done.skipped),
        "images_per_second": done.images_per_second,
        "resumed": done.resumed,
        "device": done.device,
        "warning": done.warning,
        "precision": done.precision,
        "path": str(done.path),
    }


def choices(dataset: Dataset) -> list[Choice]:
    """What a page offers: the backbones that work offline, whether their features exist, and a warning where due."""
    from fsviz.features import backbones, trained

    there = set(features.available(dataset))
    rows: list[Choice] = []
    for name in [*backbones.names(), *(f"{trained.PREFIX}{name}" for name in trained.names())]:
        warning = backbones.RANDOM if name in backbones.FEWSHOT else ""
        rows.append({"backbone": name, "extracted": name in there, "warning": warning})
    return rows


def device_in_words(device: str = "auto") -> str:
    """Where an extraction would run, for a person."""
    from fsviz.features.device import describe as in_words

    return in_words(device)


def _backbone_choice(spec: Spec) -> tuple[str, str | None, str]:
    checkpoint = spec.get("checkpoint") or None
    name = str(spec.get("backbone") or DEFAULT)
    return name, None if checkpoint is None else str(checkpoint), str(spec.get("device") or "auto")


@lru_cache(maxsize=1)
def _backbone(name: str, checkpoint: str | None, device: str) -> Any:
    from fsviz.features.backbones import load_backbone

    return load_backbone(name, checkpoint, device)


def _dataset(spec: Spec) -> Dataset:
    """The dataset that the run was made for. Other images since would give features of neither."""
    dataset = _dataset_of_run(spec["dataset"], str(spec.get("folder")))
    if spec.get("fingerprint") not in (None, store.fingerprint(dataset)):
        raise BadInput(f"The images of {dataset.title} changed since this run was made. Start a new one.")
    return dataset


@lru_cache(maxsize=1)
def _dataset_of_run(name: str, run: str) -> Dataset:
    """Read once per run."""
    return datasets.load(name)


_decoders: dict[tuple[int, int], Any] = {}


def _decoder(dataset: Dataset, workers: int) -> Any:
    """The decoding processes live from chunk to chunk and end with this process."""
    from fsviz.features.decoding import Decoder

    here = (id(dataset), workers)
    if here not in _decoders:
        for decoder in _decoders.values():
            decoder.close()
        _decoders.clear()
        _decoders[here] = Decoder(dataset, workers)
        atexit.register(_decoders[here].close)
    return _decoders[here]


def _text(spec: Unchecked, name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"An extraction's spec needs {name!r}, a name. Got {value!r}.")
    return value
