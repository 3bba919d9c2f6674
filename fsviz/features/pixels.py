"""Images made small, read once and kept: what networks are trained on, epoch after epoch and run after run.

They lie in the workspace, pixels/DATASET/KEY/000000.npz, in parts of PART image_ids. A part that is missing or broken
is read again from the images.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass

import numpy as np

from fsviz import workspace
from fsviz.features import store
from fsviz.features.decoding import decode
from fsviz.features.preprocessing import Preprocessing
from fsviz.records import PAD, Dataset

PART = 256  # image_ids


@dataclass(frozen=True)
class SmallImages:
    """Pixels (n, side, side, 3) uint8 of image_ids (n,), ascending; `skipped` has those that could not be read."""

    values: np.ndarray
    image_ids: np.ndarray
    skipped: tuple[tuple[int, str], ...] = ()

    def rows_of(self, image_ids: np.ndarray) -> np.ndarray:
        """Rows of image_ids of any shape; PAD for one that is not here."""
        at = np.searchsorted(self.image_ids, image_ids)
        at = np.minimum(at, len(self.image_ids) - 1)
        return np.where(self.image_ids[at] == image_ids, at, PAD)


def preprocessing(side: int) -> Preprocessing:
    """Preprocessing to a square image: the shorter side is fitted, the centre stays."""
    return Preprocessing((side, side), interpolation="bilinear", resize=side)


def parts_of(image_ids: np.ndarray) -> list[int]:
    """The parts that hold these images."""
    return np.unique(np.asarray(image_ids) // PART).tolist()


def load(dataset: Dataset, side: int, image_ids: np.ndarray) -> SmallImages:
    """These images, ascending; what is not kept yet is read."""
    unique_ids = np.unique(image_ids)
    parts = [read_part(dataset, side, part) for part in parts_of(unique_ids)]
    ids = np.concatenate([part.image_ids for part in parts])
    keep = np.isin(ids, unique_ids)
    skipped = tuple(pair for part in parts for pair in part.skipped if pair[0] in set(unique_ids.tolist()))
    return SmallImages(np.concatenate([part.values for part in parts])[keep], ids[keep], skipped)


def read_part(dataset: Dataset, side: int, part: int) -> SmallImages:
    """All images of one part, kept from now on."""
    key = {"fingerprint": store.fingerprint(dataset), "preprocessing": preprocessing(side).as_dict(), "part": PART}
    folder = workspace.folder("pixels") / dataset.name / store.key_digest(key)
    path = folder / f"{part:06d}.npz"
    try:
        with np.load(path, allow_pickle=False) as arrays:
            skipped = tuple(zip(arrays["skipped"].tolist(), arrays["reasons"].tolist(), strict=True))
            return SmallImages(arrays["values"], arrays["image_ids"], skipped)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass  # not there yet, or broken
    assert dataset.images is not None
    ids = range(part * PART, min(len(dataset.images), (part + 1) * PART))
    decoded = decode(dataset, ids, preprocessing(side))
    workspace.folder("pixels", create=True)
    with workspace.atomic_file(path) as temporary:
        np.savez(
            temporary,
            values=decoded.pixels,
            image_ids=decoded.image_ids,
            skipped=np.array([image_id for image_id, _ in decoded.skipped], np.int64),
            reasons=np.array([reason for _, reason in decoded.skipped], np.str_),
        )
    return SmallImages(decoded.pixels, decoded.image_ids, decoded.skipped)
