"""The images and tasks of a training run, read once for all its chunks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fsviz import datasets, features, sampling
from fsviz.errors import BadInput
from fsviz.numerics import chunk_seed
from fsviz.records import PAD, SIDES, Dataset, Tasks
from fsviz.studies.training.class_split import check_sizes
from fsviz.studies.training.stages import TrainingSpec

_DRAWS = {"val": 1_000_001, "test": 1_000_002}  # their tasks come from streams that no epoch has


@dataclass(frozen=True)
class _RunImages:
    """The images of a run: `inputs` as networks take them, by row; image_ids (n,), ascending, and their classes."""

    inputs: Any
    image_ids: np.ndarray
    class_ids: np.ndarray

    def rows_of(self, image_ids: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.image_ids, image_ids)


def images_of_run(spec: TrainingSpec) -> _RunImages:
    return _images_at(
        spec["dataset"], spec["side"], spec["device"], tuple(class_ids_of(spec, *SIDES).tolist()), cache_stamp(spec)
    )


@lru_cache(maxsize=1)
def _images_at(name: str, side: int, device: str, class_ids: tuple[int, ...], stamp: int) -> _RunImages:
    """Read once for all chunks of a run."""
    from fsviz.features import pixels
    from fsviz.training.networks import Images

    dataset = datasets.load(name)
    small = pixels.load(dataset, side, image_ids_of(dataset, np.array(class_ids)))
    want = pixels.preprocessing(side)
    of = dataset.image_class_ids()[small.image_ids]
    return _RunImages(Images(small.values, want.mean, want.std, device), small.image_ids, of)


def tasks_of_run(spec: TrainingSpec, side: str) -> Tasks:
    """The validation or test tasks of a run."""
    return _tasks_at(spec["folder"], side, cache_stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=2)
def _tasks_at(folder: str, side: str, stamp: int, key: str) -> Tasks:
    spec = json.loads(key)
    n_tasks = spec["n_tasks"] if side == "test" else spec["val_tasks"]
    return draw_tasks(spec, class_ids_of(spec, side), n_tasks, _DRAWS[side])


def draw_tasks(spec: TrainingSpec, class_ids: np.ndarray, n_tasks: int, stream: int) -> Tasks:
    """Tasks of these classes from the images that could be read."""
    dataset, images = dataset_of_run(spec), images_of_run(spec)
    of_image = np.full(len(dataset.image_class_ids()), PAD, dtype=np.int64)
    of_image[images.image_ids] = images.class_ids
    check_sizes(dataset, class_ids, of_image, spec)
    seed = int(chunk_seed(spec["seed"], stream).generate_state(1)[0]) >> 1
    tasks = sampling.sample_uniform(class_ids, spec["n_way"], n_tasks, seed)
    names = dataset.classes["class_name"].tolist()
    groups = dataset.image_groups()
    return sampling.assign_images(tasks, of_image, spec["n_shot"], spec["n_query"], seed, groups, names)


def class_ids_of(spec: TrainingSpec, *sides: str) -> np.ndarray:
    """class_ids of these sides, ascending."""
    names = tuple(name for side in sides for name in spec["split"][side])
    return _ids_at(spec["dataset"], names, cache_stamp(spec))


@lru_cache(maxsize=16)
def _ids_at(dataset: str, names: tuple[str, ...], stamp: int) -> np.ndarray:
    loaded = datasets.load(dataset)
    at = {name: i for i, name in enumerate(loaded.distinct_names(np.arange(loaded.n_classes)))}
    return np.sort(np.array([at[name] for name in names], dtype=np.int64))


def dataset_of_run(spec: TrainingSpec) -> Dataset:
    """The dataset that the run was made for; training on other images halfway would be neither."""
    dataset = _dataset_at(spec["dataset"], str(spec.get("folder")))
    if spec["fingerprint"] != features.fingerprint(dataset):
        raise BadInput(f"The images of {dataset.title} changed since this run was made. Start a new one.")
    return dataset


@lru_cache(maxsize=1)
def _dataset_at(name: str, folder: str) -> Dataset:
    return datasets.load(name)


def image_ids_of(dataset: Dataset, class_ids: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isin(dataset.image_class_ids(), class_ids))


def cache_stamp(spec: TrainingSpec) -> int:
    """Of what is remembered between chunks: other images make it another number."""
    return hash(spec["fingerprint"])


def test_tasks(spec: TrainingSpec) -> Tasks:
    """The test tasks of a run, as they were drawn for it."""
    dataset_of_run(spec)
    return tasks_of_run(spec, "test")
