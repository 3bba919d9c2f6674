"""Images that are the same picture: copied, saved again in another quality or size, or frames that hardly differ.

Each image is seen as a glimpse of 16 x 16 pixels. Two glimpses are alike when they differ by no more than saving a
picture again does, and everywhere alike: a difference in one place is another content (a small object on the same
ground, another stroke of the pen). Pairs worth comparing come from a tree over the first coefficients of the glimpses'
cosine transform, the numbers that a perceptual hash rounds to bits; unrounded, they miss no pair that is alike.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from fsviz.records import PAD, Dataset

SIDE = 16
# What saving again changes, in levels of 0 to 255, measured on photographs and drawings: JPEG of quality 20 up, sizes
# from half to double, WebP, one row or column cut off. Of 5,136 images of the demo, 1,797 digits and 3,000 drawn
# characters no two different ones come this near.
_FARTHEST = 6.0  # root mean square difference
_OF_CONTRAST = 0.12  # ... and as a share of the picture's own deviation: strokes on white, textures that look grey
_BLANK = 1.0  # a picture of less deviation shows nothing that could be compared
_SPREAD = 6.0  # largest difference, in units of the root mean square one ...
_LEVELS = 6.0  # ... beyond this many levels of rounding
_NEIGHBOURS = 32  # pairs looked at per image, the nearest
_PAIRS = 20_000  # compared at a time


def find_copies(glimpses: np.ndarray) -> np.ndarray:
    """Group of every image (n,), PAD if no other image is the same picture; glimpses (n, SIDE, SIDE, 3) uint8.

    Pictures that look blank are left alone: what they show may be too small for a glimpse.
    """
    group = np.full(len(glimpses), PAD)
    shows = np.flatnonzero(_contrast(glimpses) >= _BLANK)
    if not len(shows):
        return group
    flat = np.ascontiguousarray(glimpses[shows]).reshape(len(shows), -1)
    _, first, same = np.unique(flat.view(f"V{flat.shape[1]}").ravel(), return_index=True, return_inverse=True)
    different = glimpses[shows[first]]
    first_ids, second_ids = _near_pairs(different)
    keep = are_copies(different, first_ids, second_ids)
    group[shows] = merge_groups(same, components(len(first), first_ids[keep], second_ids[keep])[same])
    return group


def are_copies(glimpses: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Whether the pairs (p,) of images are the same picture."""
    contrast = _contrast(glimpses)
    result = np.zeros(len(first), dtype=bool)
    for start in range(0, len(first), _PAIRS):
        a, b = first[start : start + _PAIRS], second[start : start + _PAIRS]
        apart = np.abs(glimpses[a].astype(np.float32) - glimpses[b]).reshape(len(a), -1)
        rms = np.sqrt((apart**2).mean(axis=1))
        near = rms <= np.minimum(_OF_CONTRAST * np.minimum(contrast[a], contrast[b]), _FARTHEST)
        result[start : start + len(a)] = near & (apart.max(axis=1) <= _LEVELS + _SPREAD * rms)
    return result


def look_like_frames(glimpses: np.ndarray, folders: np.ndarray) -> bool:
    """Whether images in their order look like frames of a video: most are much like the one before in their folder."""
    frames = np.flatnonzero(folders[1:] == folders[:-1])
    if not len(frames):
        return False
    apart = (glimpses[frames].astype(np.float32) - glimpses[frames + 1]).reshape(len(frames), -1)
    return bool(np.median(np.sqrt((apart**2).mean(axis=1)) / np.maximum(_contrast(glimpses)[frames], 1.0)) < 0.5)


def same_bytes(root: Path, paths: list[str]) -> np.ndarray:
    """Group of every file (n,), PAD if no other has the same bytes; only files of the same size are read."""
    sizes = np.array([_size(root, path) for path in paths])
    _, at, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    digests = [_digest(root, path) if counts[k] > 1 else str(i) for i, (path, k) in enumerate(zip(paths, at))]
    return merge_groups(np.unique(digests, return_inverse=True)[1])


def merge_groups(*labels: np.ndarray) -> np.ndarray:
    """Groups (n,) of what is together under any of these labels (n,), PAD being none; PAD if an image is alone.

    Groups are numbered by their first image.
    """
    n = len(labels[0])
    firsts, seconds = [], []
    for groups in labels:
        order = np.argsort(groups, kind="stable")
        order = order[groups[order] != PAD]
        same = np.flatnonzero(groups[order][1:] == groups[order][:-1])
        firsts.append(order[same])
        seconds.append(order[same + 1])
    component = components(n, np.concatenate(firsts), np.concatenate(seconds))
    _, first, at, counts = np.unique(component, return_index=True, return_inverse=True, return_counts=True)
    rank = np.full(len(first), PAD)
    several = np.flatnonzero(counts > 1)
    rank[several[np.argsort(first[several])]] = np.arange(len(several))
    return rank[at]


def largest_groups(dataset: Dataset, n: int, across: bool = False) -> list[np.ndarray]:
    """The image_ids of the n largest groups; `across` takes only groups with images of more than one class."""
    groups = dataset.image_groups()
    if groups is None:
        return []
    sizes = np.bincount(groups)
    if across:
        pairs = np.unique(np.stack([groups, dataset.image_class_ids()]), axis=1)
        sizes[np.bincount(pairs[0]) < 2] = 0
    largest = np.argsort(-sizes, kind="stable")[:n]
    return [np.flatnonzero(groups == group) for group in largest[sizes[largest] > 1]]


def components(n: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Connected component (n,) of every image, given the pairs that belong together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)[1]


def _near_pairs(glimpses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of images that may be alike: the transform keeps distances, so its first numbers are never farther."""
    from scipy.fft import dctn
    from scipy.spatial import cKDTree

    if len(glimpses) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    light = glimpses.mean(axis=3, dtype=np.float32) * np.float32(np.sqrt(3))
    numbers = dctn(light, axes=(1, 2), norm="ortho")[:, :4, :4].reshape(len(glimpses), -1)
    reach = _FARTHEST * np.sqrt(glimpses[0].size)
    k = min(_NEIGHBOURS + 1, len(glimpses))
    _, near = cKDTree(numbers).query(numbers, k, distance_upper_bound=reach, workers=-1)
    first, nth = np.nonzero(near != len(glimpses))
    pairs = np.sort(np.stack([first, near[first, nth]], axis=1), axis=1)
    return tuple(np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).T)


def _contrast(glimpses: np.ndarray) -> np.ndarray:
    """Standard deviation (n,) of the lightness within each glimpse."""
    return glimpses.mean(axis=3, dtype=np.float32).reshape(len(glimpses), -1).std(axis=1)


def _size(root: Path, path: str) -> int:
    try:
        return os.stat(root / path).st_size
    except (OSError, ValueError):
        return -1


def _digest(root: Path, path: str) -> str:
    try:
        with open(root / path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return path
