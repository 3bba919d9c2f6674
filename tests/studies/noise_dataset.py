"""Four hundred images of the demo with their features, thinned out, and columns of coin flips that mean nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz import datasets, features
from fsviz.datasets.saved import save_dataset
from fsviz.features import store
from fsviz.records import Dataset

N_CLASSES, N_IMAGES = 20, 20


def make_noise(n_columns: int, name: str = "noise", seed: int = 0) -> Dataset:
    """Twenty classes of the demo's test split, twenty images each; attributes "flip 0", "flip 1", ...

    Features are the demo's under a random projection to 64 dimensions: quick, and distances are about the same.
    """
    rng = np.random.default_rng(seed)
    demo = datasets.load("demo")
    table = features.load(demo, "efficientnet_lite0")
    selection = demo.split_class_ids("test")[:N_CLASSES]
    rows = np.concatenate([rng.permutation(np.flatnonzero(table.class_ids == c))[:N_IMAGES] for c in selection])
    class_ids = np.repeat(np.arange(N_CLASSES), N_IMAGES)
    flips = rng.random((len(rows), n_columns)) < 0.5
    columns = {f"flip {i}": np.where(flips[:, i], "heads", "tails") for i in range(n_columns)}
    names = demo.classes["class_name"].to_numpy()[selection]
    classes = pd.DataFrame({"class_name": names, "split": "test", "n_images": N_IMAGES, "node": ""})
    classes["n_images"] = classes["n_images"].astype("Int64")
    dataset = save_dataset(
        Dataset(
            name=name,
            title=name.title(),
            classes=classes,
            splits={"test": np.arange(N_CLASSES)},
            images=pd.DataFrame({"class_id": class_ids, "path": "", **columns}),
            attributes=tuple(columns),
            origin="features",
            has_features=True,
        ),
        overwrite=True,
    )
    key = {"version": store.VERSION, "dataset": name, "fingerprint": store.fingerprint(dataset), "backbone": "real"}
    turn = rng.normal(size=(table.values.shape[1], 64)) / 8
    values = (np.asarray(table.values[rows], dtype=float) @ turn).astype(np.float32)
    store.save(key, "real", values, np.arange(len(rows)), class_ids)
    return dataset
