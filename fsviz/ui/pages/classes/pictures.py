"""Images of classes on the page Classes: in tooltips, in tables, and at the leaves of a graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fsviz.records import Dataset
from fsviz.ui.parts import caching
from fsviz.ui.parts.image_wall import thumbnail_uri

N_HOVER = 3  # images in a tooltip
_PX = 60


@caching.cache_data(most=24)
def images_of(dataset: Dataset, split: str) -> list[np.ndarray]:
    """The image_ids of every class of a split."""
    class_ids = dataset.image_class_ids()
    order = np.argsort(class_ids, kind="stable")
    cuts = np.searchsorted(class_ids[order], np.arange(dataset.n_classes + 1))
    return [order[cuts[c] : cuts[c + 1]] for c in dataset.split_class_ids(split)]


def tooltips(dataset: Dataset, split: str, classes_at: dict[int, list[int]]) -> dict[int, str]:
    """node -> HTML of images of some of its classes, for its tooltip.

    classes_at  node -> positions of its classes
    """
    images = images_of(dataset, split)
    html = {}
    for node, positions in classes_at.items():
        some = positions[:: max(1, len(positions) // N_HOVER)][:N_HOVER]
        ids = [int(images[p][0]) for p in some if len(images[p])]
        if len(some) == 1:  # a single class: several images of it
            ids = images[some[0]][:N_HOVER].tolist()
        html[node] = "<br>" + "".join(_picture(dataset, image_id) for image_id in ids) if ids else ""
    return html


def _picture(dataset: Dataset, image_id: int) -> str:
    source = thumbnail_uri(dataset, image_id, _PX)
    if not source:
        return ""
    return f'<img src="{source}" width="{_PX}" height="{_PX}" style="margin:4px 4px 0 0;border-radius:6px" alt="">'


def first_images(dataset: Dataset, split: str, positions: Iterable[int], px: int = _PX) -> list[str]:
    """The first image of each of these classes as a data URI, "" if it has none."""
    images = images_of(dataset, split)
    return [thumbnail_uri(dataset, int(images[p][0]), px) if len(images[p]) else "" for p in positions]
