"""Extraction as a run: a dataset's images under one backbone, shard by shard, so that it can be stopped and resumed.

The spec of a run:
    {"study": "extraction", "dataset": name, "backbone": name, "checkpoint": file or null, "device": "auto",
     "batch": null, "workers": null}
A chunk is one shard of the store. Its features go straight into the workspace's feature store; what the chunk
returns is only what the page shows: counts, seconds, and the images that could not be read.
Every worker must see the same workspace.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput
from fsviz.features import store
from fsviz.records import Dataset

DEFAULT_BACKBONE = "efficientnet_lite0"


def prepare(spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Checks a spec while its maker still looks: the dataset has images, the backbone loads, the device is there."""
    from fsviz.features.extraction import check_pixels, key_of

    dataset = datasets.load(_text(spec, "dataset"))
    n_images = check_pixels(dataset)
    backbone = _backbone(*_backbone_choice(spec))
    frozen = {
        "backbone": str(spec.get("backbone") or DEFAULT_BACKBONE),
        "n_images": n_images,
        "dims": backbone.dims,
        "label": backbone.label,
        "device": backbone.device,
        "warning": backbone.warning,
        "fingerprint": key_of(dataset, backbone)["fingerprint"],
    }
    return {**spec, **frozen}


def plan(spec: Mapping[str, Any]) -> int:
    """One chunk a shard."""
    from fsviz.features.extraction import check_pixels

    n_images = spec.get("n_images") or check_pixels(datasets.load(_text(spec, "dataset")))
    return store.n_shards(int(n_images))


def run_chunk(spec: Mapping[str, Any], index: int) -> dict[str, np.ndarray]:
    """Computes and stores one shard (or finds it stored); the last one to finish joins them."""
    from fsviz.features.extraction import check_pixels, default_workers, extract_shard

    dataset = _dataset(spec["dataset"], str(spec.get("folder")))
    if spec.get("fingerprint") not in (None, store.fingerprint(dataset)):
        raise BadInput(f"The images of {dataset.title} changed since this run was made. Start a new one.")
    n_images = check_pixels(dataset)
    backbone = _backbone(*_backbone_choice(spec))
    workers = spec.get("workers")
    workers = default_workers(n_images, backbone.device) if workers is None else int(workers)
    started = time.perf_counter()
    shard = extract_shard(dataset, backbone, index, _decoder(dataset, workers), spec.get("batch"))
    seconds = time.perf_counter() - started
    images, before = _pace.get(str(spec.get("folder")), (0, 0.0))
    _pace[str(spec.get("folder"))] = (images + len(shard.image_ids) + len(shard.skipped), before + seconds)
    return {
        "n_images": np.array([len(shard.image_ids)]),
        "seconds": np.array([seconds]),
        "skipped": np.array([image_id for image_id, _ in shard.skipped], np.int64),
        "reasons": np.array([reason for _, reason in shard.skipped], np.str_),
    }


def summarise(spec: Mapping[str, Any], chunks: Iterable[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Images done and skipped so far, and how fast."""
    done, seconds, skipped = 0, 0.0, []
    for chunk in chunks:
        done += int(chunk["n_images"][0])
        seconds += float(chunk["seconds"][0])
        pairs = zip(chunk["skipped"].tolist(), chunk["reasons"].tolist(), strict=True)
        skipped += [{"image_id": image_id, "reason": reason} for image_id, reason in pairs]
    return {
        "dataset": spec["dataset"],
        "backbone": spec.get("label") or spec.get("backbone") or DEFAULT_BACKBONE,
        "n_images": done,
        "n_total": spec.get("n_images"),
        "dims": spec.get("dims"),
        "skipped": skipped,
        "images_per_second": (done + len(skipped)) / seconds if seconds > 0 else None,
        "device": spec.get("device"),
        "warning": spec.get("warning", ""),
    }


def describe(spec: Mapping[str, Any], index: int) -> str:
    """A line beside the progress bar: images, speed, and time left at that speed."""
    total = int(spec.get("n_images") or 0)
    ready = min(total, (index + 1) * store.SHARD)
    text = f"{ready:,} of {total:,} images"
    images, seconds = _pace.get(str(spec.get("folder")), (0, 0.0))
    if not images or seconds <= 0:
        return text
    from fsviz.features.extraction import duration

    return f"{text}, {images / seconds:.1f} images/s, {duration((total - ready) * seconds / images)} left"


def extract_now(
    dataset: Dataset, backbone: str = DEFAULT_BACKBONE, progress: Any = None, **options: Any
) -> dict[str, Any]:
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
        "path": str(done.path),
    }


def choices(dataset: Dataset) -> list[dict[str, Any]]:
    """What a page offers: the backbones that work offline, whether their features exist, and a warning where due."""
    from fsviz.features import backbones

    there = set(features.available(dataset))
    rows = []
    for name in backbones.names():
        warning = backbones.RANDOM if name in backbones.FEWSHOT else ""
        rows.append({"backbone": name, "extracted": name in there, "warning": warning})
    return rows


def device_in_words(device: str = "auto") -> str:
    """Where an extraction would run, for a person."""
    from fsviz.features.device import describe as in_words

    return in_words(device)


def _backbone_choice(spec: Mapping[str, Any]) -> tuple[str, str | None, str]:
    checkpoint = spec.get("checkpoint") or None
    name = str(spec.get("backbone") or DEFAULT_BACKBONE)
    return name, None if checkpoint is None else str(checkpoint), str(spec.get("device") or "auto")


@lru_cache(maxsize=1)
def _backbone(name: str, checkpoint: str | None, device: str) -> Any:
    from fsviz.features.backbones import load_backbone

    return load_backbone(name, checkpoint, device)


@lru_cache(maxsize=1)
def _dataset(name: str, run: str) -> Dataset:
    """Read once a run; `run_chunk` notices when it is not the one that the run was made for."""
    return datasets.load(name)


_pace: dict[str, tuple[int, float]] = {}  # run folder -> images and seconds of this process, for `describe`
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


def _text(spec: Mapping[str, Any], name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"An extraction's spec needs {name!r}, a name. Got {value!r}.")
    return value
