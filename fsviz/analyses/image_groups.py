"""Groups of images within a class that look alike to a backbone: proposals for contexts, to be confirmed and named.

    features of a class -> unit length -> k-means -> groups, each with its images, the most typical first

A backbone sees hand, crate and shelf next to the object, so within a class its clusters often follow them. It does not
know their names, and a group may follow something else (angle, light): a person looks at the images and names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz import features, workspace
from fsviz.datasets import labels
from fsviz.errors import BadInput
from fsviz.features.neighbours import unit_tensor
from fsviz.records import Dataset, Features
from fsviz.settings import Setting
from fsviz.text import csv, from_csv

N_GROUPS = Setting(
    "n_groups",
    "Groups per class",
    "Images of a class are split into so many groups of similar images.",
    "int",
    3,
    low=2,
    high=3,
)
MIN_IMAGES = 3  # per group: a class with fewer is not split
_MOST = 400  # images of a class that the centres are computed from; the others go to the nearest centre
_STEPS, _STARTS = 20, 4  # of k-means: steps, and starts of which the best counts
_VALUES = 20_000_000  # numbers held at a time
_COLUMNS = ("class", "group", "context", "n_images", "typical", "images")


@dataclass(frozen=True)
class ImageGroup:
    """Similar images of a class.

    image_ids  the most typical first
    context    the context that at least half of them have already, "" for none
    """

    class_id: int
    number: int
    image_ids: np.ndarray
    context: str


def propose(dataset: Dataset, backbone: str, n_groups: int = 3, class_ids: Sequence[int] = ()) -> list[ImageGroup]:
    """Groups of similar images within these classes (all without any), class by class, the largest group first."""
    stored = features.load(dataset, backbone)
    of_classes = np.asarray(class_ids if len(class_ids) else np.unique(stored.class_ids), dtype=np.int64)
    rows, codes, distances = _cluster(stored, of_classes, int(N_GROUPS.check(n_groups)))
    contexts = dataset.image_contexts() if dataset.images is not None and "context" in dataset.images else None
    table = pd.DataFrame(
        {"class_id": stored.class_ids[rows], "code": codes, "distance": distances, "image_id": stored.image_ids[rows]}
    )
    table["size"] = table.groupby(["class_id", "code"])["image_id"].transform("size")
    table["place"] = table["class_id"].map(pd.Series(np.arange(len(of_classes)), index=of_classes))
    table = table.sort_values(["place", "size", "code", "distance"], ascending=[True, False, True, True], kind="stable")
    groups: list[ImageGroup] = []
    for (class_id, _), part in table.groupby(["class_id", "code"], sort=False):
        number = 1 + (groups[-1].number if groups and groups[-1].class_id == class_id else 0)
        image_ids = part["image_id"].to_numpy()
        groups.append(ImageGroup(int(class_id), number, image_ids, _common(contexts, image_ids)))
    return groups


def write_groups(dataset: Dataset, groups: Sequence[ImageGroup], path: Path) -> None:
    """Writes groups as a CSV, a row each, whose column context is to be filled in."""
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    paths = dataset.images["path"].astype(str).to_numpy() if dataset.images is not None else None
    rows = [
        {
            "class": names[group.class_id],
            "group": group.number,
            "context": group.context,
            "n_images": len(group.image_ids),
            "typical": "" if paths is None else " | ".join(paths[group.image_ids[:3]]),
            "images": " ".join(map(str, group.image_ids)),
        }
        for group in groups
    ]
    with workspace.atomic_file(path) as temporary:
        temporary.write_text(csv(pd.DataFrame(rows, columns=list(_COLUMNS))), encoding="utf-8", newline="")


def read_groups(path: Path) -> list[tuple[list[int], str]]:
    """Images and context of every row of such a CSV that has a context."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        rows = [(from_csv(c), [int(i) for i in ids.split()]) for c, ids in zip(table["context"], table["images"])]
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{path} cannot be read as groups ({type(error).__name__}). Give the CSV of 'fsviz label NAME --propose "
            "FILE' with names in its column context."
        ) from error
    return [(ids, context.strip()) for context, ids in rows if context.strip()]


def name_groups(dataset: Dataset, groups: Sequence[ImageGroup], names: Mapping[int, str]) -> list[labels.Label]:
    """Gives groups (by their position) a context; groups of one name become one label."""
    images: dict[str, list[int]] = {}
    for position, name in names.items():
        name = " ".join(name.split())
        if name and name != groups[position].context:
            images.setdefault(name, []).extend(groups[position].image_ids.tolist())
    return labels.add_labels(dataset, [(ids, name) for name, ids in images.items()]) if images else []


def _common(contexts: np.ndarray | None, image_ids: np.ndarray) -> str:
    """The context that at least half of the images have, "" for none."""
    if contexts is None:
        return ""
    names, counts = np.unique(contexts[image_ids].astype(str), return_counts=True)
    best = int(counts.argmax())
    return str(names[best]) if 2 * counts[best] >= len(image_ids) else ""


def _cluster(stored: Features, class_ids: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (m,) of these classes, the group of each within its class, and its distance from the centre."""
    order = np.argsort(stored.class_ids, kind="stable")
    starts = np.searchsorted(stored.class_ids[order], class_ids)
    sizes = np.searchsorted(stored.class_ids[order], class_ids, side="right") - starts
    class_ids, starts, sizes = (part[sizes > 0] for part in (class_ids, starts, sizes))
    dims = stored.values.shape[1]
    widest = min(int(sizes.max(initial=1)), _MOST)
    per_block = max(1, _VALUES // (widest * dims))
    rows, codes, distances = [], [], []
    for first in range(0, len(class_ids), per_block):
        block = slice(first, first + per_block)
        sampled, mask = _sampled_rows(order, starts[block], sizes[block])
        centres = _centres(_unit(stored.values[sampled]) * mask[..., None], mask, k)
        own = np.concatenate([order[s : s + n] for s, n in zip(starts[block], sizes[block], strict=True)])
        position = np.repeat(np.arange(len(centres)), sizes[block])
        for start in range(0, len(own), max(1, _VALUES // (k * dims))):
            part = slice(start, start + max(1, _VALUES // (k * dims)))
            squares = _squares(_unit(stored.values[own[part]])[:, None], centres[position[part]])[:, 0]
            rows.append(own[part])
            codes.append(squares.argmin(axis=1))
            distances.append(squares.min(axis=1))
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(rows), np.concatenate(codes), np.concatenate(distances)


def _sampled_rows(order: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (C, n) of the classes, evenly spread over each, and whether a place is used (C, n)."""
    width = min(int(sizes.max()), _MOST)
    used = np.minimum(sizes, width)
    place = np.arange(width)
    at = np.minimum((place[None] * sizes[:, None]) // used[:, None], sizes[:, None] - 1)
    return order[starts[:, None] + at], place[None] < used[:, None]


def _centres(values: np.ndarray, mask: np.ndarray, k: int) -> np.ndarray:
    """Centres (C, k, D) of k-means in every class at once; a class that is too small has one centre, at its mean.

    The centres that are not used lie infinitely far away.
    """
    n_classes = len(values)
    usable = mask.sum(axis=1) >= k * MIN_IMAGES
    best, least = np.zeros((n_classes, k, values.shape[2]), np.float32), np.full(n_classes, np.inf)
    rng = np.random.default_rng(0)
    for _ in range(_STARTS):
        centres = _spread_start(values, mask, k, rng)
        for _ in range(_STEPS):
            nearest = _squares(values, centres).argmin(axis=2)
            member = (nearest[:, :, None] == np.arange(k)) & mask[:, :, None]
            sums, counts = np.matmul(member.transpose(0, 2, 1).astype(np.float32), values), member.sum(axis=1)
            moved = np.where(counts[..., None] > 0, sums / np.maximum(counts[..., None], 1), centres)
            if np.array_equal(moved, centres):
                break
            centres = moved
        loss = np.where(mask, _squares(values, centres).min(axis=2), 0).sum(axis=1)
        better = loss < least
        best[better], least[better] = centres[better], loss[better]
    mean = values.sum(axis=1) / np.maximum(mask.sum(axis=1), 1)[:, None]
    best[~usable, 0] = mean[~usable]
    best[~usable, 1:] = np.inf
    return best


def _spread_start(values: np.ndarray, mask: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """First centres (C, k, D): an image at random, then again and again one that is far from those before."""
    weights = mask.astype(np.float64)
    picked = []
    for _ in range(k):
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, weights, mask)
        cumulated = np.cumsum(weights, axis=1)
        at = (cumulated < rng.random((len(values), 1)) * cumulated[:, -1:]).sum(axis=1).clip(max=values.shape[1] - 1)
        picked.append(values[np.arange(len(values)), at])
        squares = _squares(values, np.stack(picked, axis=1)).min(axis=2)
        weights = np.where(mask, np.maximum(squares, 0), 0)
    return np.stack(picked, axis=1)


def _squares(values: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances (C, n, k) of unit vectors (C, n, D) from centres (C, k, D), which may be infinitely far."""
    is_finite = np.isfinite(centres).all(axis=2)
    safe = np.where(is_finite[..., None], centres, 0)
    products = np.matmul(values, safe.transpose(0, 2, 1))
    squares = 1 + (safe**2).sum(axis=2)[:, None] - 2 * products
    return np.where(is_finite[:, None], squares, np.inf)


def _unit(values: np.ndarray) -> np.ndarray:
    return unit_tensor(values).numpy()
