"""Splits and divergences that papers printed."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.datasets import published
from fsviz.errors import UnknownName
from fsviz.records import SIDES, ClassSplit, Dataset
from fsviz.settings import Setting

PART = Setting(
    "part",
    "Classes",
    "Classes of the split in the two trees.",
    "choice",
    "test",
    choices={"test": "test classes", "val": "val classes", "train": "train classes", "all": "all classes"},
)
PUBLISHED = {
    "cifar100": "CIFAR-100",
    "mini_imagenet": "miniImageNet",
    "tiered_imagenet": "tieredImageNet",
    "emnist": "EMNIST",
    "lfw10": "LFW10",
}
PRINTED = Setting(
    "printed",
    "Published dataset",
    "Dataset of the paper.",
    "choice",
    "mini_imagenet",
    choices=PUBLISHED,
)
PRINTED_AT = Setting("printed_at", "Published split", "Target divergence of the split.", "choice", "")


def published_targets(dataset: str) -> list[float]:
    """The divergences at which Arnold & Sha 2021 print splits of a dataset; [] where they print none."""
    return [float(d) for d in sorted(published.published_splits(dataset)["divergence"].unique())]


def published_parts(dataset: str, divergence: float) -> dict[str, np.ndarray]:
    """Train, val and test class_ids as printed."""
    table = published.published_splits(dataset)
    targets = published_targets(dataset)
    if divergence not in targets:
        raise UnknownName("published split", f"{dataset} {divergence:g}", [f"{dataset} {d:g}" for d in targets])
    table = table[table["divergence"] == divergence]
    return {side: np.sort(table.loc[table["split"] == side, "class_index"].to_numpy()) for side in SIDES}


def published_names(name: str) -> list[str]:
    """Names of the classes of a printed dataset: the catalog's, EMNIST's characters as torchvision orders them, or
    numbers where names are not dataset here."""
    if name in datasets.shipped_names():
        dataset = datasets.load(name)
        return dataset.distinct_names(np.arange(dataset.n_classes))
    if name == "emnist":
        return list(string.digits + string.ascii_uppercase + string.ascii_lowercase)
    return [f"class {i}" for i in range(int(published.published_splits(name)["class_index"].max()) + 1)]


def published_split(dataset: Dataset, divergence: float) -> ClassSplit:
    """A printed split of a dataset that is here; its classes have no features."""
    return replace(split_of(dataset, published_parts(dataset.name, divergence)), requested=divergence)


def split_of(dataset: Dataset, parts: Mapping[str, np.ndarray]) -> ClassSplit:
    """The record of given class_ids by side, without features."""
    class_ids = np.sort(np.concatenate([parts[side] for side in SIDES]))
    sides = np.zeros(dataset.n_classes, dtype=int)
    for number, side in enumerate(SIDES):
        sides[parts[side]] = number
    names = np.array(dataset.distinct_names(np.arange(dataset.n_classes)), dtype=object)[class_ids]
    return ClassSplit(class_ids, tuple(names), sides[class_ids], np.zeros((len(class_ids), 0)))


def published_command(dataset: Dataset, divergence: float) -> str:
    return shlex.join(["fsviz", "split", dataset.name, "--published", f"{divergence:g}"])


def published_overview() -> pd.DataFrame:
    """All printed splits, a row per dataset: dataset, classes on every side, divergences."""
    rows = []
    for name, title in PUBLISHED.items():
        targets = published_targets(name)
        sizes = {side: len(ids) for side, ids in published_parts(name, targets[0]).items()}
        rows.append({"dataset": title, **sizes, "divergences": ", ".join(f"{t:g}" for t in targets)})
    return pd.DataFrame(rows)
