"""The features of a run, unchanged since it began, and their centre."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BadInput, Missing
from fsviz.records import Dataset, Features, Tasks
from fsviz.records.class_splits import training_classes
from fsviz.studies.evaluate.spec import FeaturesFingerprint
from fsviz.tasks import snapshot


def centre_for(
    method: str, dataset: Dataset, table: Features, tasks: Tasks, unit_length: bool = False
) -> np.ndarray | None:
    """Mean features (D,) for a method that centres, None for the others.

    The mean is that of the training classes of the tasks (Wang et al. 2019), so that it does not depend on the
    queries. Without training classes it is that of all images.
    """
    from fsviz.methods import get

    return _centre(dataset, table, tasks, unit_length) if get(method).wants_centre else None


def _centre(dataset: Dataset, table: Features, tasks: Tasks, unit_length: bool) -> np.ndarray:
    from fsviz.evaluation import features_mean

    base = training_classes(dataset, tasks)
    has_features = base is not None and np.isin(base, table.class_ids).any()
    return features_mean(table, base if has_features else None, unit_length)


def fingerprint_of(table: Features) -> FeaturesFingerprint:
    """Key, shape and images of features, which identify them among others of the same name."""
    ids = hashlib.blake2b(np.ascontiguousarray(table.image_ids, dtype=np.int64).tobytes(), digest_size=8).hexdigest()
    key = hashlib.blake2b(repr(sorted(dict(table.key).items())).encode(), digest_size=8).hexdigest()
    return {"rows": int(table.values.shape[0]), "dims": int(table.values.shape[1]), "images": ids, "key": key}


@lru_cache(maxsize=4)
def features_of_run(dataset: str, backbone: str, fingerprint: tuple[Any, ...], stamp: str) -> Features:
    """The features of a run, if they are still those; `stamp` changes when they are replaced or gone."""
    try:
        table = features.load(datasets.load(dataset), backbone)
    except Missing as error:
        raise Missing(f"{error} The run's finished chunks are kept: resume it afterwards.") from error
    if tuple(sorted(fingerprint_of(table).items())) != fingerprint:
        raise BadInput(
            f"The features of {dataset!r} under {backbone!r} are not the ones this run started with, and mixing them "
            "would give numbers of neither. Start a new run."
        )
    return table


@lru_cache(maxsize=8)
def centre_of_run(
    dataset: str,
    backbone: str,
    fingerprint: tuple[Any, ...],
    stamp: str,
    folder: str,
    file: str,
    unit_length: bool,
) -> np.ndarray | None:
    """The centre, once per run: reading all features takes longer than most chunks."""
    table = features_of_run(dataset, backbone, fingerprint, stamp)
    return _centre(datasets.load(dataset), table, snapshot.tasks(folder, file), unit_length)
