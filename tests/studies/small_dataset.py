"""Datasets at the edge of what tasks can be drawn from: one class, classes of one image, none at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from fsviz.datasets.saved import save_dataset
from fsviz.features import store
from fsviz.records import Dataset

CONTEXTS = ("grass", "sand")
DIMS = 6


def make_small(name: str, sizes: Sequence[int], root: Path) -> Dataset:
    """A dataset of classes of these sizes with everything that pages read: pictures, features, a taxonomy, contexts
    and an attribute."""
    rng = np.random.default_rng(0)
    class_ids = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
    paths = [f"{i}.png" for i in range(len(class_ids))]
    root.mkdir(parents=True, exist_ok=True)
    for path in paths:
        Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(root / path)
    context = np.array([CONTEXTS[i % 2] for i in range(len(class_ids))], dtype=object)
    images = pd.DataFrame({"class_id": class_ids, "path": paths, "context": context, "blur": rng.random(len(paths))})
    counted = images.groupby(["class_id", "context"]).size().rename("n_images").reset_index()
    edges = [(f"c{i}", f"g{i % 2}") for i in range(len(sizes))] + [(f"g{g}", "root") for g in range(2)]
    dataset = save_dataset(
        Dataset(
            name=name,
            title=name.title(),
            classes=pd.DataFrame(
                {
                    "class_name": [f"class {i}" for i in range(len(sizes))],
                    "split": ["test"] * len(sizes),
                    "n_images": pd.array(list(sizes), dtype="Int64"),
                    "node": [f"c{i}" for i in range(len(sizes))],
                }
            ),
            splits={"test": np.arange(len(sizes))},
            taxonomy=pd.DataFrame(edges, columns=["child", "parent"]),
            contexts=counted,
            images=images,
            attributes=("context", "blur"),
            origin="folder",
            root=root,
            has_features=True,
        ),
        overwrite=True,
    )
    key = {"version": store.VERSION, "dataset": name, "fingerprint": store.fingerprint(dataset), "backbone": "net"}
    values = (2 * np.eye(max(len(sizes), 1), DIMS)[class_ids] + rng.normal(size=(len(class_ids), DIMS))).astype("f4")
    store.save(key, "net", values, np.arange(len(class_ids)), class_ids)
    return dataset
