"""The classes that a network is trained and tested on, and settings of tasks that they can give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fsviz import training
from fsviz.datasets import saved_splits
from fsviz.errors import BadInput
from fsviz.records import PAD, SIDES, Dataset
from fsviz.settings import SHAPE, RawSettings, Setting, Settings, images_advice
from fsviz.tasks import fitting
from fsviz.training import TRAINERS, Trainer

OWN = "own"  # the dataset's own train, val and test classes
METHOD = Setting(
    "method",
    "Trained by",
    "How the network learns from the train classes.",
    "choice",
    "multiclass",
    choices={name: trainer.title for name, trainer in TRAINERS.items()},
)


def fit(dataset: Dataset, spec: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of tasks: those given, else the defaults, lowered to what every side of the split has."""
    trainer = training.get(str(spec.get("method") or METHOD.default))
    parts, _, _ = split_of(dataset, spec.get("split"))
    sides = {side: ids for side in _by_tasks(trainer) if len(ids := parts[side]) >= 2}  # others are refused
    of_sides = replace(dataset, splits=sides)
    shape = {name: spec.get(name) for name in SHAPE}
    usual = {name: trainer.settings[name].default for name in SHAPE}
    return fitting.smallest([fitting.fit(of_sides, {**shape, "split": side}, usual, probed=False) for side in sides])


def _by_tasks(trainer: Trainer) -> list[str]:
    """The sides of a split that tasks are drawn from."""
    return [side for side in SIDES if side != "train" or trainer.learns_from == "tasks"]


def split_of(dataset: Dataset, requested: Any) -> tuple[dict[str, np.ndarray], str, dict[str, Any]]:
    """Train, val and test class_ids of a split, its name and its recipe.

    requested  "own" or nothing: the dataset's; a name: a saved split, or NAME_train, NAME_val, NAME_test of the
               dataset; a dictionary: the content of a file of a split
    """
    if isinstance(requested, Mapping):
        content = json.dumps({side: requested.get(side) for side in SIDES}).encode()
        name = str(requested.get("name") or "given")
        recipe = requested.get("recipe")
        parts = saved_splits.read_split(dataset, content, f"The split {name!r}")
        return parts, name, dict(recipe) if isinstance(recipe, Mapping) else {}
    name = str(requested or OWN)
    if name in saved_splits.saved_split_names(dataset.name):
        return saved_splits.load_split(dataset, name), name, saved_splits.split_recipe(dataset.name, name)
    sides = {side: side if name == OWN else f"{name}_{side}" for side in SIDES}
    if name != OWN and sides["train"] not in dataset.splits:
        saved_splits.load_split(dataset, name)  # says that there is none, and which there are
    none = np.zeros(0, np.int64)
    return {side: np.asarray(dataset.splits.get(split, none)) for side, split in sides.items()}, name, {"mode": name}


def read_split(dataset: Dataset, path: Path) -> dict[str, Any]:
    """A file of a split (JSON or CSV, as `split --out` writes them) as a spec takes it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}). Give the path of a file.") from error
    parts = saved_splits.read_split(dataset, content, str(path))
    recipe: dict[str, Any] = {"mode": "file", "file": path.name}
    if content.lstrip()[:1] == b"{":
        stored = json.loads(content.decode("utf-8-sig")).get("recipe")
        recipe = stored if isinstance(stored, dict) and stored else recipe
    return {**saved_splits.split_record(dataset, parts, recipe), "name": path.stem}


def check_classes(
    dataset: Dataset, trainer: Trainer, settings: Settings, parts: Mapping[str, np.ndarray], split: str
) -> None:
    """Refuses, in a sentence, a split that cannot be trained or measured on."""
    n_way = settings["n_way"]
    for side, why in (("train", "to train on"), ("val", "to end training in time"), ("test", "to measure on")):
        if not len(parts[side]):
            raise BadInput(
                f"The split {split!r} of {dataset.title} has no {side} classes {why}. "
                "Make one with 'fsviz split DATASET --save NAME', and give --split NAME."
            )
    by_tasks = _by_tasks(trainer)
    for side in by_tasks:
        if len(parts[side]) < n_way:
            raise BadInput(
                f"n_way must be at most {len(parts[side])}, the number of {side} classes of the split {split!r}. "
                f"Got {n_way}. Lower n_way, or choose another split."
            )
    if len(parts["train"]) < 2:
        raise BadInput(f"Training needs two train classes at least. The split {split!r} has {len(parts['train'])}.")
    check_sizes(dataset, np.concatenate([parts[side] for side in by_tasks]), dataset.image_class_ids(), settings)


def check_sizes(dataset: Dataset, class_ids: np.ndarray, of_image: np.ndarray, spec: RawSettings) -> None:
    n_shot, n_query = spec["n_shot"], spec["n_query"]
    sizes = np.bincount(of_image[of_image != PAD], minlength=dataset.n_classes)
    smallest = int(class_ids[sizes[class_ids].argmin()])
    if sizes[smallest] < n_shot + n_query:
        name = dataset.classes["class_name"][smallest]
        raise BadInput(
            f"A class needs n_shot + n_query = {n_shot + n_query} images. Class {name!r} of {dataset.title} has "
            f"{sizes[smallest]}. {images_advice(n_shot, n_query, int(sizes[smallest]))}"
        )
