"""Loss of a shorter float type: how far rounding moves an image, relative to distances between images.

Rounding that moves images by a five-hundredth of the distance to the next one changes no result worth mention; where
features are huge, tiny, or have a large common part, it moves them by more than they differ.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

LOST = 1 / 500
_BLOCK, _SAMPLE = 4096, 256  # rows: of each block so many are looked at


def share_lost(parts: Iterable[np.ndarray], dtype: type) -> float:
    """The median distance by which `dtype` moves a row of the tables (n, D), as a share of that between rows.

    Rows are compared with the one before, mostly of the same class; equal ones do not count. The worst block of rows
    speaks for all. Infinite where a number is beyond the range of `dtype`.
    """
    shares, max_value = [0.0], np.finfo(dtype).max
    for values in parts:
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            if not (block.max() <= max_value and block.min() >= -max_value):
                return np.inf
            sample = np.asarray(block[:_SAMPLE], dtype=np.float64)
            shares.append(_share(sample, np.linalg.norm(sample - sample.astype(dtype), axis=1)))
    return max(shares)


def share_lost_before(half: np.ndarray) -> float:
    """The same for features (n, D) that came in float16: estimated from the spacing of their numbers."""
    sample = np.asarray(half[:_SAMPLE])
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.linalg.norm(np.spacing(sample).astype(np.float64), axis=1)
        return _share(sample.astype(np.float64), steps / 12**0.5)  # rounding is uniform within a step


def _share(values: np.ndarray, moved: np.ndarray) -> float:
    apart = np.linalg.norm(np.diff(values, axis=0), axis=1)
    apart = apart[apart > 0]
    return float(np.median(moved) / np.median(apart)) if len(apart) else 0.0
