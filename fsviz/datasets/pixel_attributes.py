"""Attributes that pixels alone give: how bright, contrasty, sharp, colourful and cluttered an image is, and its shape.

They are kept in the workspace, attributes/DATASET.parquet, a row per image in the order of the dataset, and join its
image table when it is loaded. Columns of the same name that the user gave win.

Values but for shape and size are of the image made SIDE pixels on its shorter side, so that a large photograph and a
small one of the same thing have the same ones. The longer side gets at most LONGEST pixels, so that the work and memory
per image are bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.errors import FsvizError, Missing
from fsviz.records import Dataset, Progress

SIDE = 128
LONGEST = 8 * SIDE
ORIGINS = ("folder", "digits")  # the demo and the photographs come with theirs
EDGE = 0.1  # change of brightness from a pixel to the next that counts as an edge


def brightness(pixels: np.ndarray) -> np.ndarray:
    """Mean grey level of images (..., height, width, 3) uint8, from 0 (black) to 1 (white)."""
    return grey(pixels).mean(axis=(-2, -1))


def contrast(pixels: np.ndarray) -> np.ndarray:
    """Standard deviation of the grey levels: 0 for one flat tone, 0.5 for half black and half white."""
    return grey(pixels).std(axis=(-2, -1))


def sharpness(pixels: np.ndarray) -> np.ndarray:
    """Standard deviation of the discrete Laplacian of the grey levels: low when blurred, or flat; 4 at most."""
    tone = grey(pixels)
    laplacian = (
        tone[..., :-2, 1:-1]
        + tone[..., 2:, 1:-1]
        + tone[..., 1:-1, :-2]
        + tone[..., 1:-1, 2:]
        - 4 * tone[..., 1:-1, 1:-1]
    )
    return laplacian.std(axis=(-2, -1))


def colourfulness(pixels: np.ndarray) -> np.ndarray:
    """Hasler & Süsstrunk (2003): spread and strength of red against green and of yellow against blue; 0 is grey."""
    red, green, blue = np.moveaxis(pixels.astype(np.float64) / 255, -1, 0)
    first, second = red - green, (red + green) / 2 - blue
    spread = np.hypot(first.std(axis=(-2, -1)), second.std(axis=(-2, -1)))
    strength = np.hypot(first.mean(axis=(-2, -1)), second.mean(axis=(-2, -1)))
    return spread + 0.3 * strength


def edge_density(pixels: np.ndarray) -> np.ndarray:
    """Share of pixels whose grey level changes by more than EDGE towards the next one, right or below: clutter."""
    tone = grey(pixels)
    right = np.abs(np.diff(tone, axis=-1))[..., :-1, :]
    below = np.abs(np.diff(tone, axis=-2))[..., :, :-1]
    return (np.maximum(right, below) > EDGE).mean(axis=(-2, -1))


def grey(pixels: np.ndarray) -> np.ndarray:
    """Grey levels (..., height, width) from 0 to 1, weighted as eyes do (Rec. 601)."""
    return pixels.astype(np.float64) @ (np.array([0.299, 0.587, 0.114]) / 255)


# What pixels say, by the name that pages show; aspect ratio and resolution come from the size of the image as it is.
OF_PIXELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "brightness": brightness,
    "contrast": contrast,
    "sharpness": sharpness,
    "colourfulness": colourfulness,
    "edge density": edge_density,
}
NAMES = (*OF_PIXELS, "aspect ratio", "resolution")


def compute(dataset: Dataset, progress: Progress | None = None) -> pd.DataFrame:
    """All attributes of every image; NaN for one that cannot be opened."""
    from fsviz import datasets

    if not dataset.has_pixels or dataset.images is None:
        raise Missing(f"{dataset.title} has no images here. Add your copy with 'fsviz add NAME PATH'.")
    n = len(dataset.images)
    table = np.full((n, len(NAMES)), np.nan)
    for image_id in range(n):
        if progress is not None and image_id % 50 == 0:
            progress(image_id, n, "images looked at")
        try:
            table[image_id] = measure_image(datasets.open_image(dataset, image_id))
        except FsvizError:  # left without attributes
            continue
    return pd.DataFrame(table, columns=list(NAMES), index=pd.RangeIndex(n, name="image_id"))


def measure_image(image: object) -> list[float]:
    """The attributes of one picture (of Pillow, RGB), in the order of NAMES."""
    from PIL.Image import Image, Resampling

    assert isinstance(image, Image)
    width, height = image.size
    scale = min(SIDE / min(width, height), LONGEST / max(width, height))
    small = image.resize((max(3, round(width * scale)), max(3, round(height * scale))), Resampling.BILINEAR)
    pixels = np.asarray(small.convert("RGB"))
    return [*(float(measure(pixels)) for measure in OF_PIXELS.values()), width / height, float(np.sqrt(width * height))]


def save(dataset: Dataset, table: pd.DataFrame) -> None:
    """Keeps computed attributes of a dataset."""
    workspace.folder("attributes", create=True)
    with workspace.atomic_file(path_of(dataset.name)) as temporary:
        table.astype(np.float32).assign(path=image_keys(dataset)).to_parquet(temporary)


def with_pixel_attributes(dataset: Dataset) -> Dataset:
    """The dataset with the attributes kept for it, as long as they are of these images; its own columns win."""
    if dataset.origin not in ORIGINS or dataset.images is None:
        return dataset
    try:
        saved = pd.read_parquet(path_of(dataset.name)).rename(columns=_describe)
        fits = saved["path"].tolist() == image_keys(dataset)
    except (OSError, ValueError, KeyError):  # none, or not to be read
        return dataset
    existing = set(map(_describe, dataset.images))
    new = [name for name in NAMES if name in saved and name not in existing]
    if not fits or not new:
        return dataset
    images = dataset.images.assign(**{name: saved[name].to_numpy(np.float64) for name in new})
    return replace(dataset, images=images, attributes=(*dataset.attributes, *new))


def _describe(column: object) -> str:
    """The name of a column without underscores: a user's edge_density is the same attribute."""
    return str(column).replace("_", " ")


def image_keys(dataset: Dataset) -> list[str]:
    """Identity of the images: path and size of every file when it was added."""
    images = dataset.images
    assert images is not None
    sizes = images["n_bytes"].astype(str) if "n_bytes" in images else ""
    return (images["path"].astype(str) + " " + sizes).tolist()


def path_of(name: str) -> Path:
    """The file that keeps what was computed for a dataset."""
    return workspace.folder("attributes") / f"{workspace.check_name(name, 'dataset name')}.parquet"
