"""scikit-learn's handwritten digits as a built-in small set of real images: 1,797 scans of 8 x 8 pixels, 10 classes."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fsviz.errors import UnknownName
from fsviz.records import Dataset

if TYPE_CHECKING:
    from PIL.Image import Image

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIDE = 128  # pixels per side of an opened digit


@lru_cache(maxsize=1)
def load_digits_dataset() -> Dataset:
    """The digits' record: one split, test, with all ten classes; no taxonomy, contexts or attributes."""
    targets = _digits()[1]
    counts = np.bincount(targets, minlength=len(NAMES))
    classes = pd.DataFrame(
        {
            "class_name": NAMES,
            "split": "test",
            "n_images": pd.array(counts, dtype="Int64"),
            "node": "",
        },
        index=pd.RangeIndex(len(NAMES), name="class_id"),
    )
    images = pd.DataFrame(
        {"class_id": targets.astype(np.int64), "path": ""}, index=pd.RangeIndex(len(targets), name="image_id")
    )
    return Dataset(
        name="digits",
        title="Handwritten digits",
        classes=classes,
        splits={"test": np.arange(len(NAMES))},
        summary="1,797 scanned handwritten digits of 8 x 8 pixels: a small set of real images, built in.",
        source="Alpaydin & Kaynak 1998, Optical Recognition of Handwritten Digits, test part, through scikit-learn",
        licence="CC BY 4.0 (UCI Machine Learning Repository)",
        homepage="https://archive.ics.uci.edu/dataset/80/optical+recognition+of+handwritten+digits",
        images=images,
        origin="digits",
        notes=("There is one split, test, with all ten digits: no classes are left to train on.",),
    )


def open_digit(image_id: int) -> Image:
    """One digit as RGB, dark ink on white paper, enlarged smoothly to SIDE pixels per side."""
    from PIL import Image

    scans = _digits()[0]
    if not 0 <= image_id < len(scans):
        raise UnknownName("image", image_id, [], f"The digits have images 0 to {len(scans) - 1}.")
    ink = scans[image_id].astype(np.int64)  # 0 (paper) to 16 (ink)
    paper = (255 - ink * 255 // 16).astype(np.uint8)
    return Image.fromarray(paper).resize((SIDE, SIDE), Image.Resampling.BICUBIC).convert("RGB")


@lru_cache(maxsize=1)
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Scans (1797, 8, 8) with levels 0 to 16, and the digit of each (1797,).

    Read from scikit-learn's file: importing scikit-learn itself would take every page and command two seconds.
    """
    (folder,) = find_spec("sklearn").submodule_search_locations  # type: ignore[union-attr, misc]
    rows = pd.read_csv(Path(folder) / "datasets" / "data" / "digits.csv.gz", header=None).to_numpy()
    return rows[:, :-1].reshape(-1, 8, 8).astype(float), rows[:, -1].astype(np.int64)
