"""Extraction as a run: a dataset's images under one backbone, shard by shard, so that it can be stopped and resumed.

One item is one image, and a chunk is one shard of the feature store. When all shards are there, `finish` stores them as
the dataset's features, and the run deletes its chunks. Whoever computes a chunk must see the images.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput
from fsviz.features import store
from fsviz.features.backbones import DEFAULT
from fsviz.records import Dataset
from fsviz.settings import Schema, Setting
from fsviz.studies.study import Arrays, Part, Study
from fsviz.tables import Column, Table

BY_ITSELF = -1  # workers: as many as suit the machine
SETTINGS = Schema(
    {
        s.name: s
        for s in (
            Setting("backbone", "Backbone", "The network that makes features of images.", "text", DEFAULT),
            Setting("checkpoint", "Checkpoint", "A file of weights for the backbone.", "text", ""),
            Setting("device", "Device", "Where the backbone runs: auto, cpu, cuda, mps.", "text", "auto"),
            Setting("batch", "Batch", "Images per batch; 0 chooses by the device.", "int", 0, 0, 100_000),
            Setting(
                "workers",
                "Workers",
                "Decoding processes; -1 chooses by the machine.",
                "int",
                BY_ITSELF,
                -1,
                64,
            ),
        )
    },
    required=("dataset",),
    of="an extraction",
)


class ExtractionSpec(TypedDict, total=False):
    """A checked spec; `prepare` adds what the backbone makes of which images, and who executes the run its folder."""

    study: str
    dataset: str
    backbone: str
    checkpoint: str
    device: str
    batch: int
    workers: int
    n_images: int
    dims: int
    label: str
    warning: str
    fingerprint: str
    folder: str


class SkippedImage(TypedDict):
    """An image that could not be read, and why."""

    image_id: int
    reason: str


class ExtractionSummary(TypedDict, total=False):
    """Partial results of a run; the precision of the stored features is added at its end."""

    dataset: str
    backbone: str
    n_images: int
    n_total: int | None
    dims: int | None
    skipped: list[SkippedImage]
    device: str | None
    warning: str
    precision: str


@dataclass(frozen=True)
class ExtractedChunks:
    """Finished chunks of an extraction."""

    spec: ExtractionSpec
    chunks: Sequence[Arrays]


class BackboneChoice(TypedDict):
    """A backbone that a page offers."""

    backbone: str
    extracted: bool
    warning: str


def prepare(spec: ExtractionSpec, folder: Path) -> ExtractionSpec:
    """Loads the backbone while whoever asks still looks; refuses what cannot be extracted."""
    from fsviz.features.extraction import check_pixels, key_of

    dataset = datasets.load(spec["dataset"])
    n_images = check_pixels(dataset)
    backbone = _backbone(*_backbone_choice(spec))
    if store.is_stored(key_of(dataset, backbone), backbone.label):
        raise BadInput(
            f"The features of {dataset.title} under {backbone.label} are there already. To make them again: "
            f"'fsviz extract {dataset.name} --backbone {backbone.name} --again'."
        )
    return {
        **spec,
        "n_images": n_images,
        "dims": backbone.dims,
        "label": backbone.label,
        "device": backbone.device,
        "warning": backbone.warning,
        "fingerprint": key_of(dataset, backbone)["fingerprint"],
    }


def parts(spec: ExtractionSpec) -> list[Part]:
    return [Part("", spec["n_images"], store.SHARD, "images")]


def n_bytes(spec: ExtractionSpec) -> float:
    """The features twice: in chunks and, for a moment, stored next to them."""
    from fsviz.features.extraction import n_bytes

    return n_bytes(2 * spec["n_images"], spec["dims"])


def run_chunk(spec: ExtractionSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Features (n, D) of the images of one shard, and the images that could not be read with the reasons."""
    from fsviz.features.extraction import compute_shard, default_workers

    dataset = _dataset(spec)
    backbone = _backbone(*_backbone_choice(spec))
    workers = spec["workers"]
    workers = default_workers(spec["n_images"], backbone.device) if workers == BY_ITSELF else workers
    decoder = _decoder(dataset, workers)
    shard = compute_shard(dataset, backbone, start // store.SHARD, decoder, spec["batch"] or None)
    return {
        "values": shard.values,
        "image_ids": shard.image_ids,
        "skipped": np.array([image_id for image_id, _ in shard.skipped], np.int64),
        "reasons": np.array([reason for _, reason in shard.skipped], np.str_),
        "attributes": shard.attributes,
    }


def summarise(result: ExtractedChunks) -> ExtractionSummary:
    """Images done and skipped."""
    spec = result.spec
    skipped: list[SkippedImage]
    done, skipped = 0, []
    for chunk in result.chunks:
        done += len(chunk["image_ids"])
        skipped += [{"image_id": image_id, "reason": reason} for image_id, reason in _skipped(chunk)]
    return {
        "dataset": spec["dataset"],
        "backbone": spec["label"],
        "n_images": done,
        "n_total": spec["n_images"],
        "dims": spec["dims"],
        "skipped": skipped,
        "device": spec["device"],
        "warning": spec["warning"],
    }


def finish(spec: ExtractionSpec, result: ExtractedChunks) -> ExtractionSummary:
    """Stores the features of all chunks; returns how exact the stored values are."""
    from fsviz.features.device import describe as in_words
    from fsviz.features.extraction import key_of, store_shards

    def shards() -> Iterator[store.Shard]:
        return (
            store.Shard(chunk["values"], chunk["image_ids"], _skipped(chunk), chunk["attributes"])
            for chunk in result.chunks
        )

    backbone = _backbone(*_backbone_choice(spec))
    store_shards(_dataset(spec), backbone, shards, {"device": in_words(backbone.device)})
    return {"precision": store.precision(key_of(_dataset(spec), backbone), backbone.label)}


def _skipped(chunk: Arrays) -> tuple[tuple[int, str], ...]:
    return tuple(zip(chunk["skipped"].tolist(), chunk["reasons"].tolist(), strict=True))


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


def choices(dataset: Dataset) -> list[BackboneChoice]:
    """Backbones that work offline, whether their features exist, and a warning if one is due."""
    from fsviz.features import backbones, trained

    there = set(features.available(dataset))
    rows: list[BackboneChoice] = []
    for name in [*backbones.names(), *(f"{trained.PREFIX}{name}" for name in trained.names())]:
        warning = backbones.RANDOM if name in backbones.FEWSHOT else ""
        rows.append({"backbone": name, "extracted": name in there, "warning": warning})
    return rows


def describe_device(device: str = "auto") -> str:
    """The device that an extraction would run on, in words."""
    from fsviz.features.device import describe as in_words

    return in_words(device)


def _backbone_choice(spec: ExtractionSpec) -> tuple[str, str | None, str]:
    return spec["backbone"], spec["checkpoint"] or None, spec["device"]


@lru_cache(maxsize=1)
def _backbone(name: str, checkpoint: str | None, device: str) -> Any:
    from fsviz.features.backbones import load_backbone

    return load_backbone(name, checkpoint, device)


def _dataset(spec: ExtractionSpec) -> Dataset:
    """The dataset that the run was made for. Other images since would give features of neither."""
    dataset = _dataset_of_run(spec["dataset"], spec["folder"])
    if spec["fingerprint"] != store.fingerprint(dataset):
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


SKIPPED = Table("Images that could not be read", Column("image_id", "Image", kind="count"), Column("reason", "Reason"))


STUDY = Study(
    name="extraction",
    title="features",
    settings=SETTINGS,
    check=SETTINGS.check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=ExtractedChunks,
    summarise=summarise,
    finish=finish,
    n_bytes=n_bytes,
    is_transient=True,
    holds_model=True,
    reads_images=True,
)
