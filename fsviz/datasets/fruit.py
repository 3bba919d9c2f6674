"""The built-in photographs: fruit in grocery stores, a part of the Grocery Store Dataset, taken with smartphones.

scripts/fruit/build.py made data/fruit; data/fruit/ATTRIBUTION.md names who took the photographs.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fsviz.errors import UnknownName
from fsviz.records import Dataset
from fsviz.shipped import DATA

if TYPE_CHECKING:
    from PIL.Image import Image

FOLDER = DATA / "fruit"
NOT_ATTRIBUTES = ("class_id", "path", "n_bytes")


@lru_cache(maxsize=1)
def load_fruit() -> Dataset:
    """The photographs' record: one split, test, with 14 classes; WordNet 3.0 taxonomy, attributes from pixels."""
    images = pd.read_parquet(FOLDER / "images.parquet", columns=_columns())
    images.index.name = "image_id"
    classes = pd.read_csv(FOLDER / "classes.csv", keep_default_na=False)
    counts = np.bincount(images["class_id"], minlength=len(classes))
    classes = classes.assign(split="test", n_images=pd.array(counts, dtype="Int64"))
    classes.index.name = "class_id"
    names = pd.read_csv(FOLDER / "taxonomy_names.csv", keep_default_na=False)
    return Dataset(
        name="fruit",
        title="Grocery fruit (photographs)",
        classes=classes[["class_name", "split", "n_images", "node"]],
        splits={"test": np.arange(len(classes))},
        summary=f"{len(images)} smartphone photographs of {len(classes)} kinds of fruit, taken in grocery stores.",
        source="Klasson, Zhang & Kjellström 2019, A Hierarchical Grocery Store Image Dataset (WACV); a part of it",
        licence="MIT, copyright 2019 Marcus Klasson (data/fruit/LICENSE); taxonomy: WordNet 3.0 licence (Princeton)",
        homepage="https://github.com/marcusklasson/GroceryStoreDataset",
        taxonomy=pd.read_csv(FOLDER / "taxonomy.csv", keep_default_na=False),
        node_names=dict(zip(names["node"], names["name"], strict=True)),
        images=images,
        attributes=tuple(column for column in images if column not in NOT_ATTRIBUTES),
        origin="fruit",
        has_features=(FOLDER / "features" / "efficientnet_lite0.npy").is_file(),
        notes=(
            "There is one split, test, with all 14 classes: no classes are left to train on.",
            "WordNet does not have Pink Lady, Royal Gala, Conference and Kaiser: they are children of eating apple and "
            "of pear.",
        ),
    )


def open_fruit_image(image_id: int) -> Image:
    """One photograph as RGB, its shorter side 224 pixels."""
    from PIL import Image

    photographs = _photographs()
    if not 0 <= image_id < len(photographs):
        raise UnknownName("image", image_id, [], f"The photographs have images 0 to {len(photographs) - 1}.")
    return Image.open(io.BytesIO(photographs[image_id])).convert("RGB")


def _columns() -> list[str]:
    from pyarrow import parquet

    return [name for name in parquet.read_schema(FOLDER / "images.parquet").names if name != "webp"]


@lru_cache(maxsize=1)
def _photographs() -> list[bytes]:
    return pd.read_parquet(FOLDER / "images.parquet", columns=["webp"])["webp"].tolist()
