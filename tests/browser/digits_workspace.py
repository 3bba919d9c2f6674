"""A workspace with features of scikit-learn's digits: their 64 pixels, enough for quick real runs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np


@cache
def pixels() -> np.ndarray:
    """(images, 64), drawn once per process."""
    from fsviz import datasets

    dataset = datasets.load("digits")
    small = [datasets.open_image(dataset, i).convert("L").resize((8, 8)) for i in dataset.images.index]
    return np.stack([np.asarray(image, np.float32) for image in small]).reshape(len(small), -1) / 255


def make_digits_workspace(home: Path) -> Path:
    from fsviz import datasets
    from fsviz.features import store

    before = os.environ.get("FSVIZ_HOME")
    os.environ["FSVIZ_HOME"] = str(home)
    try:
        dataset = datasets.load("digits")
        values = pixels()
        key = {"version": store.VERSION, "dataset": "digits", "fingerprint": store.fingerprint(dataset)}
        key |= {"backbone": "pixels", "preprocessing": "8x8 grey"}
        store.save(key, "pixels", values, np.arange(len(values)), dataset.image_class_ids())
    finally:
        if before is None:
            del os.environ["FSVIZ_HOME"]
        else:
            os.environ["FSVIZ_HOME"] = before
    return home
