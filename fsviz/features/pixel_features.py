"""Pixels as features, for a first look at images that no backbone has seen: colours on a coarse grid."""

from __future__ import annotations

import numpy as np

from fsviz.datasets import images
from fsviz.errors import FsvizError
from fsviz.records import Dataset, Features

SIDE = 8  # squares of the grid along each side


def of_images(dataset: Dataset, image_ids: np.ndarray) -> Features:
    """Each image shrunk to 8 x 8 squares of three colours, from 0 to 1: (n, 192). Images that cannot be opened are
    left out."""
    from PIL import Image

    values, usable_ids = [], []
    for image_id in map(int, image_ids):
        try:
            image = images.thumbnail(dataset, image_id, 4 * SIDE)
        except FsvizError:
            continue
        small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX)
        values.append(np.asarray(small, np.float32).ravel() / 255)
        usable_ids.append(image_id)
    ids = np.array(usable_ids, np.int64)
    table = np.array(values, np.float32).reshape(len(ids), 3 * SIDE**2)
    return Features(dataset.name, "pixels", table, ids, dataset.image_class_ids()[ids], groups=dataset.image_groups())
