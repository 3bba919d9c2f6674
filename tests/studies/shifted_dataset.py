"""A dataset whose contexts move its features: what FastDiffSel can find, and two backbones that agree on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from fsviz.datasets.saved import save_dataset
from fsviz.features import store
from fsviz.records import Dataset

N_CLASSES, N_IMAGES, DIMS = 12, 45, 16
CONTEXTS = ("water", "sand", "snow")


def make_shifted(
    name: str = "shifted", backbones: tuple[str, ...] = ("first", "second"), root: Path | None = None
) -> Dataset:
    """Features are class centre + context + noise; each backbone sees them through its own rotation.

    root  where to write small images of the classes; without it the dataset has no pixels
    """
    rng = np.random.default_rng(0)
    class_ids = np.repeat(np.arange(N_CLASSES), N_IMAGES)
    context = rng.integers(0, 3, len(class_ids))
    images = pd.DataFrame(
        {
            "class_id": class_ids,
            "path": "",
            "context": np.array(CONTEXTS)[context],
            "noise": rng.random(len(class_ids)),
        }
    )
    if root is not None:
        root.mkdir(parents=True, exist_ok=True)
        for i, class_id in enumerate(class_ids):
            coarse = np.random.default_rng(int(class_id)).integers(0, 255, (4, 4, 3))
            pixels = np.clip(coarse + rng.normal(0, 40, (4, 4, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).resize((24, 24), Image.Resampling.NEAREST).save(root / f"{i}.png")
        images["path"] = [f"{i}.png" for i in range(len(class_ids))]
    nodes = [f"c{i}" for i in range(N_CLASSES)]
    classes = pd.DataFrame(
        {"class_name": [f"kind {i}" for i in range(N_CLASSES)], "split": "test", "n_images": N_IMAGES, "node": nodes}
    )
    classes["n_images"] = classes["n_images"].astype("Int64")
    edges = [(node, f"g{i // 3}") for i, node in enumerate(nodes)] + [(f"g{g}", "root") for g in range(N_CLASSES // 3)]
    dataset = save_dataset(
        Dataset(
            name=name,
            title=name.title(),
            classes=classes,
            splits={"test": np.arange(N_CLASSES)},
            taxonomy=pd.DataFrame(edges, columns=["child", "parent"]),
            images=images,
            attributes=("noise",),
            origin="features" if root is None else "folder",
            root=root,
            has_features=True,
        ),
        overwrite=True,
    )
    latent = rng.normal(size=(N_CLASSES, DIMS))[class_ids]
    latent = (
        latent + 0.8 * rng.normal(size=(N_CLASSES, 3, DIMS))[class_ids, context] + 1.0 * rng.normal(size=latent.shape)
    )
    for i, backbone in enumerate(backbones):
        turn = np.linalg.qr(np.random.default_rng(i + 1).normal(size=(DIMS, DIMS)))[0]
        values = (latent @ turn + 0.3 * np.random.default_rng(i + 10).normal(size=latent.shape)).astype(np.float32)
        key = {
            "version": store.VERSION,
            "dataset": name,
            "fingerprint": store.fingerprint(dataset),
            "backbone": backbone,
        }
        store.save(key, backbone, values, np.arange(len(values)), class_ids)
    return dataset
