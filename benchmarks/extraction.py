"""Extraction against the bare backbone: does decoding, storing and skipping bad files cost anything?

Both sides run EfficientNet-Lite0 over the same JPEG photographs' worth of pixels with the same number of torch
threads. The bare side is a plain loop over tensors that were decoded and normalised beforehand. The other side is
everything that `extract` does once its processes run: read and decode files in a process of its own, normalise,
forward, check, keep the shard, join and store. The two sides take turns, the ratio is the median over neighbouring
pairs (other work on the machine drifts), and the features are compared.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

IMAGES, REPEATS = 256, 6
WIDTH, HEIGHT = 500, 375  # a typical ImageNet photograph


def run(progress: Callable[[str], None]) -> dict[str, object]:
    import torch

    from fsviz import datasets
    from fsviz.features import store
    from fsviz.features.backbones import load_backbone, normalised
    from fsviz.features.decoding import Decoder
    from fsviz.features.device import cores
    from fsviz.features.extraction import compute_shard, default_batch, default_workers, key_of, store_shards

    home_before = os.environ.get("FSVIZ_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSVIZ_HOME"] = str(Path(folder) / "workspace")
        try:
            dataset = _photographs(Path(folder) / "images")
            backbone = load_backbone("efficientnet_lite0", on="cpu")
            workers = default_workers(10_000, "cpu")
            threads = max(1, cores() - workers)
            torch.set_num_threads(threads)
            batch = default_batch("cpu")
            pixels = np.stack(
                [backbone.preprocessing.apply(datasets.open_image(dataset, i)) for i in range(len(dataset.images))]
            )
            tensors = [
                normalised(pixels[i : i + batch], backbone.preprocessing, "cpu") for i in range(0, IMAGES, batch)
            ]
            key, label = key_of(dataset, backbone), backbone.label

            def bare() -> tuple[float, np.ndarray]:
                started = time.perf_counter()
                with torch.inference_mode():
                    rows = [backbone.forward(images).numpy() for images in tensors]
                return time.perf_counter() - started, np.concatenate(rows)

            def whole(decoder: Decoder) -> tuple[float, np.ndarray]:
                store.remove(key, label)
                started = time.perf_counter()
                shards = [compute_shard(dataset, backbone, i, decoder) for i in range(store.n_shards(IMAGES))]
                store_shards(dataset, backbone, lambda: shards, {})
                return time.perf_counter() - started, np.concatenate([shard.values for shard in shards])

            bare_seconds, whole_seconds, difference = [], [], 0.0
            with Decoder(dataset, workers) as decoder:
                bare(), whole(decoder)  # warm both
                for repeat in range(REPEATS):
                    if repeat % 2:
                        ours, theirs = whole(decoder), bare()
                    else:
                        theirs, ours = bare(), whole(decoder)
                    bare_seconds.append(theirs[0])
                    whole_seconds.append(ours[0])
                    difference = max(difference, float(np.abs(ours[1] - theirs[1]).max()))
                    progress(
                        f"repeat {repeat + 1} of {REPEATS}: bare {IMAGES / theirs[0]:.1f} images/s, "
                        f"whole {IMAGES / ours[0]:.1f} images/s"
                    )
        finally:
            if home_before is None:
                os.environ.pop("FSVIZ_HOME")
            else:
                os.environ["FSVIZ_HOME"] = home_before
    if difference > 1e-3:
        raise AssertionError(f"the two sides disagree by {difference}")
    bare_median, whole_median = float(np.median(bare_seconds)), float(np.median(whole_seconds))
    return {
        "ratio": float(np.median(np.array(bare_seconds) / np.array(whole_seconds))),
        "bare_images_per_second": IMAGES / bare_median,
        "pipeline_images_per_second": IMAGES / whole_median,
        "largest_difference": difference,
        "images": IMAGES,
        "repeats": REPEATS,
        "torch_threads_on_both_sides": threads,
        "decoding_processes": workers,
        "cores": cores(),
    }


def _photographs(root: Path):
    """JPEG files with the size and the detail of photographs: noise at several scales."""
    from PIL import Image

    from fsviz.records import Dataset

    root.mkdir()
    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        layers = np.zeros((HEIGHT, WIDTH, 3), np.float32)
        for cells, weight in ((6, 0.55), (24, 0.3), (120, 0.15)):
            coarse = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
            layers += weight * np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), np.float32)
        Image.fromarray(layers.clip(0, 255).astype(np.uint8)).save(root / f"{i}.jpg", quality=90)
    classes = pd.DataFrame({"class_name": ["noise"], "split": ["test"], "n_images": [IMAGES], "node": [""]})
    images = pd.DataFrame({"class_id": 0, "path": [f"{i}.jpg" for i in range(IMAGES)]})
    return Dataset("noise", "Noise", classes, {"test": np.array([0])}, images=images, origin="folder", root=root)
