"""Images to features: decoded in processes of their own, computed in batches, kept shard by shard.

A stopped or killed extraction continues where it was. Images that cannot be read are skipped and listed.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.datasets import pixel_attributes
from fsviz.errors import BadInput, Cancelled, Missing
from fsviz.features import store
from fsviz.features.backbones import DEFAULT, Backbone, load_backbone
from fsviz.features.decoding import FEW, Decoder
from fsviz.features.device import cores, describe
from fsviz.records import Dataset, Features, FeaturesKey, Progress

MAX_BATCH = 4096


@dataclass(frozen=True)
class ExtractionResult:
    """Result of an extraction.

    n_images counts images with features; skipped holds image_id, path and reason of the others; images_per_second is
    this run's, decoding included (None if nothing was left to do); resumed counts images kept from an earlier run.
    """

    features: Features
    n_images: int
    dims: int
    skipped: tuple[dict[str, Any], ...]
    images_per_second: float | None
    resumed: int
    device: str
    warning: str
    path: Path
    precision: str = ""  # why they are kept in float32, where they are


def extract(
    dataset: Dataset,
    backbone: str | Backbone = DEFAULT,
    checkpoint: str | Path | None = None,
    device: str = "auto",
    batch: int | None = None,
    workers: int | None = None,
    again: bool = False,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> ExtractionResult:
    """Features of all images of a dataset, computed if they are not stored yet.

    batch     images at once (default 8 on a CPU, 128 on a GPU)
    workers   processes that decode images (default: by the number of cores; 0: none)
    again     start over, also when the features are stored
    progress  called with images done, images in all, and a line with speed and time left; may raise Cancelled
    should_stop  asked between batches; True ends the work with Cancelled, finished shards stay
    """
    n_images = check_pixels(dataset)
    if batch is not None and not 1 <= batch <= MAX_BATCH:
        raise BadInput(f"batch must be between 1 and {MAX_BATCH}. Got {batch}.")
    workers = default_workers(n_images, device) if workers is None else workers
    with Decoder(dataset, workers) as decoder:  # its processes start while the backbone loads
        if isinstance(backbone, str):
            backbone = load_backbone(backbone, checkpoint, device)
        key, label = key_of(dataset, backbone), backbone.label
        with store.locked(key, label):
            if again:
                store.remove(key, label)
            entry = store.find(key, label)
            if entry is not None and store.is_stored(key, label):
                return _result(entry, backbone, None, n_images)
            rate, resumed = _extract_missing(dataset, backbone, decoder, batch, progress, should_stop)
        entry = store.find(key, label)
        assert entry is not None
        return _result(entry, backbone, rate, resumed)


def _extract_missing(
    dataset: Dataset,
    backbone: Backbone,
    decoder: Decoder,
    batch: int | None,
    progress: Progress | None,
    should_stop: Callable[[], bool] | None,
) -> tuple[float | None, int]:
    """Computes the shards that are missing and stores the features: images per second, and images that were there."""
    key, label, n_images = key_of(dataset, backbone), backbone.label, check_pixels(dataset)
    done = {i for i in store.shards_done(key, label) if store.load_shard(key, label, i) is not None}
    todo = [i for i in range(store.n_shards(n_images)) if i not in done]
    resumed = sum(len(store.shard_ids(n_images, i)) for i in done)
    needed = n_bytes(2 * n_images - resumed, backbone.dims)  # in shards, and joined
    workspace.require_space(needed, "The features")
    started, finished = time.perf_counter(), 0
    with _threads(decoder.workers, backbone.device):
        for count in _shards(dataset, backbone, todo, decoder, batch, n_images, should_stop):
            finished += count
            ready = resumed + finished
            if progress is not None:
                progress(ready, n_images, _pace(started, finished, n_images - ready))
        rate = finished / (time.perf_counter() - started) if finished else None
        facts = {"images_per_second": rate, "device": describe(backbone.device), "resumed": resumed}
    try:
        store_shards(dataset, backbone, lambda: store.each_shard(key, label, n_images), facts)
    except BadInput:  # nothing in them is worth keeping
        store.drop_shards(key, label)
        raise
    store.drop_shards(key, label)
    return rate, resumed


def compute_shard(
    dataset: Dataset, backbone: Backbone, index: int, decoder: Decoder, batch: int | None = None
) -> store.Shard:
    """One shard of an extraction, for runs that are cut into chunks; nothing is stored."""
    batches = _cut(store.shard_ids(check_pixels(dataset), index), batch or default_batch(backbone.device))
    with _threads(decoder.workers, backbone.device):
        return _joined(list(_computed(dataset, batches, backbone, decoder)))


def store_shards(
    dataset: Dataset, backbone: Backbone, shards: Callable[[], Iterable[store.Shard]], facts: dict[str, Any]
) -> Path:
    """Stores the features of a whole extraction; `shards` gives its shards in order, each time it is called."""
    _refuse_empty(dataset, shards())
    _keep_attributes(dataset, shards())
    return store.join(key_of(dataset, backbone), backbone.label, dataset, shards, facts)


def compute(
    dataset: Dataset,
    image_ids: Sequence[int] | np.ndarray,
    backbone: Backbone,
    decoder: Decoder | None = None,
    batch: int | None = None,
) -> Iterator[store.Shard]:
    """Features of some images, batch after batch, in the order requested; nothing is stored."""
    ids = [int(i) for i in image_ids]
    batches = _cut(ids, batch or default_batch(backbone.device))
    yield from _computed(dataset, batches, backbone, decoder or Decoder(dataset, 0))


def key_of(dataset: Dataset, backbone: Backbone) -> FeaturesKey:
    """Every input that the features depend on."""
    key: FeaturesKey = {
        "version": store.VERSION,
        "dataset": dataset.name,
        "fingerprint": store.fingerprint(dataset),
        "backbone": backbone.name,
        "checkpoint": backbone.checkpoint,
        "preprocessing": backbone.preprocessing.as_dict(),
    }
    return {**key, "warning": backbone.warning} if backbone.warning else key


def n_bytes(n_images: int, dims: int) -> float:
    """Upper bound of the size of the features of n_images."""
    return 4.0 * n_images * dims


def check_pixels(dataset: Dataset) -> int:
    """The number of images to extract from; a sentence if there are none."""
    if not dataset.has_pixels or dataset.images is None:
        raise Missing(
            f"{dataset.title} has no images here. Add your copy with 'fsviz add NAME PATH', then extract from that."
        )
    if not len(dataset.images):
        raise Missing(f"{dataset.title} has no images. Add some with 'fsviz add NAME PATH'.")
    if dataset.origin == "folder" and dataset.root is not None and not dataset.root.is_dir():
        raise Missing(f"Images of {dataset.title} not found at {dataset.root}. Connect its disk or restore the folder.")
    return len(dataset.images)


def default_workers(n_images: int, device: str = "auto") -> int:
    """Decoding processes: one core in four on a CPU, all but one with a GPU; none for a handful of images."""
    if n_images < FEW:
        return 0
    on_cpu = device == "cpu" or (device == "auto" and not _has_gpu())
    return max(1, cores() // 4) if on_cpu else max(1, min(16, cores() - 1))


def default_batch(device: str) -> int:
    """Images at once: few on a CPU, where larger batches only leave its caches and cost page faults."""
    return 8 if device == "cpu" else 128


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available() or torch.backends.mps.is_available()


def _shards(
    dataset: Dataset,
    backbone: Backbone,
    todo: Sequence[int],
    decoder: Decoder,
    batch: int | None,
    n_images: int,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[int]:
    """Computes and keeps shards; yields the number of images after every batch. Decoding runs ahead across shards."""
    key, label = key_of(dataset, backbone), backbone.label
    size = batch or default_batch(backbone.device)
    by_shard = {index: _cut(store.shard_ids(n_images, index), size) for index in todo}
    computed = _computed(dataset, [ids for batches in by_shard.values() for ids in batches], backbone, decoder)
    for index, batches in by_shard.items():
        parts = []
        for _ in batches:
            if should_stop is not None and should_stop():
                raise Cancelled("The extraction was stopped. Run it again to continue: finished parts are kept.")
            parts.append(next(computed))
            yield len(parts[-1].image_ids) + len(parts[-1].skipped)
        store.save_shard(key, label, index, _joined(parts))


def _computed(
    dataset: Dataset, batches: Sequence[Sequence[int]], backbone: Backbone, decoder: Decoder
) -> Iterator[store.Shard]:
    for decoded in decoder.batches(batches, backbone.preprocessing):
        if len(decoded.image_ids):
            values = _forward(backbone, decoded.pixels)
        else:
            values = np.zeros((0, backbone.dims), np.float32)
        yield store.Shard(values, decoded.image_ids, decoded.skipped, decoded.attributes)


def _forward(backbone: Backbone, pixels: np.ndarray) -> np.ndarray:
    import torch

    try:
        values = backbone.features(pixels)
    except torch.OutOfMemoryError as error:
        raise BadInput(
            f"Out of memory on {backbone.device} with {len(pixels)} images at once. Lower --batch."
        ) from error
    if not np.isfinite(values).all():
        raise BadInput(f"{backbone.name} returned NaN or infinity: its weights are broken. Choose another checkpoint.")
    return values


def _cut(ids: Sequence[int], size: int) -> list[list[int]]:
    return [[int(i) for i in ids[start : start + size]] for start in range(0, len(ids), size)]


@contextmanager
def _threads(workers: int, device: str) -> Iterator[None]:
    """Leaves the decoding processes their cores while a backbone runs on the CPU."""
    import torch

    before = torch.get_num_threads()
    try:
        if device == "cpu":
            _keep_memory()
            torch.set_num_threads(max(1, min(before, cores() - workers)))
        yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _keep_memory() -> None:
    """Lets glibc keep freed memory for the next batch: handing it back and forth costs a quarter of the time here."""
    if not sys.platform.startswith("linux"):
        return
    trim_threshold, mmap_threshold = -1, -3  # malloc.h
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(mmap_threshold, 2**30)
        libc.mallopt(trim_threshold, 2**31 - 1)


def _pace(started: float, finished: int, n_left: int) -> str:
    rate = finished / max(time.perf_counter() - started, 1e-9)
    return f"{rate:.1f} images/s, {duration(n_left / rate)} left" if rate else "starting"


def duration(seconds: float) -> str:
    """Seconds in words for a person who waits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _joined(parts: Sequence[store.Shard]) -> store.Shard:
    values, image_ids = np.concatenate([p.values for p in parts]), np.concatenate([p.image_ids for p in parts])
    attribute_parts = [p.attributes for p in parts if p.attributes.size]
    attributes = np.concatenate(attribute_parts) if attribute_parts else np.zeros((0, 0), np.float32)
    return store.Shard(values, image_ids, tuple(pair for part in parts for pair in part.skipped), attributes)


def _refuse_empty(dataset: Dataset, shards: Iterable[store.Shard]) -> None:
    """When not one image can be read, something is wrong with the folder, and there is nothing to keep."""
    skipped: list[str] = []
    for shard in shards:
        if len(shard.image_ids):
            return
        skipped += [reason for _, reason in shard.skipped]
    raise BadInput(f"None of the {len(skipped)} images of {dataset.title} can be read. First problem: {skipped[0]}")


def _keep_attributes(dataset: Dataset, shards: Iterable[store.Shard]) -> None:
    """Keeps what the pixels say of the images; NaN for those that cannot be read."""
    assert dataset.images is not None
    table = np.full((len(dataset.images), len(pixel_attributes.NAMES)), np.nan)
    for shard in shards:
        if len(shard.image_ids):
            table[shard.image_ids] = shard.attributes
    if dataset.origin in pixel_attributes.ORIGINS:
        pixel_attributes.save(dataset, pd.DataFrame(table, columns=list(pixel_attributes.NAMES)))


def _result(metadata: dict[str, Any], backbone: Backbone, rate: float | None, resumed: int) -> ExtractionResult:
    features = store.open_stored(metadata)
    return ExtractionResult(
        features,
        len(features.image_ids),
        int(features.values.shape[1]),
        tuple(metadata["skipped"]),
        rate,
        resumed,
        str(metadata.get("device", "")),
        backbone.warning,
        Path(metadata["path"]),
        str(metadata.get("precision", "")),
    )
