"""A small dataset with a taxonomy and features in which classes close in meaning are close in feature space."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.datasets.saved import save_dataset
from fsviz.features import store
from fsviz.records import Dataset

N_GROUPS, PER_GROUP, DIMS = 4, 4, 12


def make_toy(
    name: str = "toy",
    n_images: int = 24,
    seed: int = 0,
    backbones: tuple[str, ...] = ("alpha_net",),
    small_class: int | None = None,
    noise: float = 1.0,
) -> Dataset:
    """Sixteen classes in four groups; every image a Gaussian around its class, every class around its group."""
    n_classes = N_GROUPS * PER_GROUP
    counts = np.full(n_classes, n_images)
    if small_class is not None:
        counts[small_class] = 3
    names = [f"group {g} <b>kind</b> {k}" for g in range(N_GROUPS) for k in range(PER_GROUP)]
    classes = pd.DataFrame(
        {"class_name": names, "split": "test", "n_images": counts, "node": [f"c{i}" for i in range(n_classes)]}
    )
    classes["n_images"] = classes["n_images"].astype("Int64")
    edges = [(f"c{i}", f"g{i // PER_GROUP}") for i in range(n_classes)] + [(f"g{g}", "root") for g in range(N_GROUPS)]
    class_ids = np.repeat(np.arange(n_classes), counts)
    dataset = save_dataset(
        Dataset(
            name=name,
            title=name.title(),
            classes=classes,
            splits={"test": np.arange(n_classes)},
            taxonomy=pd.DataFrame(edges, columns=["child", "parent"]),
            images=pd.DataFrame({"class_id": class_ids, "path": ""}),
            origin="features",
            has_features=True,
        ),
        overwrite=True,
    )
    for i, backbone in enumerate(backbones):
        save_toy_features(dataset, backbone, seed + 100 * i, noise)
    return dataset


def save_toy_features(dataset: Dataset, backbone: str, seed: int = 0, noise: float = 1.0, spoil=None) -> None:
    """Stores features of the toy dataset; `spoil(values)` may damage them first."""
    random = np.random.default_rng(seed)
    class_ids = dataset.image_class_ids()
    groups = 2.0 * random.standard_normal((N_GROUPS, DIMS))
    centres = groups[np.arange(dataset.n_classes) // PER_GROUP] + 0.7 * random.standard_normal(
        (dataset.n_classes, DIMS)
    )
    values = (centres[class_ids] + noise * random.standard_normal((len(class_ids), DIMS))).astype(np.float32)
    if spoil:
        spoil(values)
    key = {"version": store.VERSION, "dataset": dataset.name, "fingerprint": store.fingerprint(dataset)}
    key |= {"backbone": backbone, "seed": seed, "noise": noise, "spoiled": bool(spoil)}
    store.save(key, backbone, values, np.arange(len(values)), class_ids)
