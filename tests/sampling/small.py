"""A small dataset for the tests of this room: six classes in two families, images as a table or only counted."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.records import Dataset

NAMES = ["dog", "cat", "cow", "cup", "car", "pen"]
TAXONOMY = pd.DataFrame(
    [
        *((n, "animal") for n in NAMES[:3]),
        *((n, "object") for n in NAMES[3:]),
        ("animal", "thing"),
        ("object", "thing"),
    ],
    columns=["child", "parent"],
)


def small_dataset(per_class: int = 12, table: bool = True, name: str = "small") -> Dataset:
    """Classes 0 and 1 are split "train", the others "test": places in the split are not class ids."""
    classes = pd.DataFrame(
        {
            "class_name": NAMES,
            "split": ["train", "train", "test", "test", "test", "test"],
            "n_images": pd.array([per_class] * 6, dtype="Int64"),
            "node": NAMES,
        }
    )
    of_image = np.repeat(np.arange(6), per_class)
    if table:  # images of a class need not stand together
        of_image = np.random.default_rng(0).permutation(of_image)
    images = pd.DataFrame({"class_id": of_image, "path": [f"{NAMES[c]}/{i}.png" for i, c in enumerate(of_image)]})
    return Dataset(
        name=name,
        title=name.capitalize(),
        classes=classes,
        splits={"train": np.array([0, 1]), "test": np.array([2, 3, 4, 5])},
        taxonomy=TAXONOMY,
        images=images if table else None,
        origin="folder" if table else "catalog",
    )
