"""Splits that a user has made and kept: a file per dataset and name in the workspace, and three splits of the dataset.

A split named hard adds hard_train, hard_val and hard_test to the dataset's own, wherever a split is chosen. Classes are
kept by name, so that a file says what it is and is refused if it belongs to other classes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.records import SIDES, Dataset
from fsviz.settings import RawSettings
from fsviz.text import from_csv

VERSION = 1


def with_saved_splits(dataset: Dataset) -> Dataset:
    """The dataset with its saved splits; one that does not fit any more is excluded, and the notes say so."""
    splits: dict[str, np.ndarray] = {}
    notes = []
    for name in saved_split_names(dataset.name):
        try:
            parts = load_split(dataset, name)
        except FsvizError as error:
            notes.append(str(error))
            continue
        splits |= {f"{name}_{side}": ids for side, ids in parts.items() if len(ids)}
    if not (splits or notes):
        return dataset
    return replace(dataset, splits={**dataset.splits, **splits}, notes=(*dataset.notes, *notes))


def saved_split_names(dataset: str) -> list[str]:
    try:
        return [path.stem for path in workspace.entries("splits", f"{dataset}/*.json") if path.stem[0] != "."]
    except FsvizError:  # the catalog reports a workspace that cannot be read
        return []


def save_split(
    dataset: Dataset, name: str, parts: Mapping[str, np.ndarray], recipe: RawSettings, overwrite: bool = False
) -> Path:
    """Keeps train, val and test class_ids under a name, with the recipe that made them."""
    workspace.check_name(name, "name of a split")
    clashes = [split for split in (f"{name}_{side}" for side in SIDES) if split in dataset.splits]
    is_saved = name in saved_split_names(dataset.name)
    if (clashes and not is_saved) or (is_saved and not overwrite):
        raise BadInput(
            f"{dataset.title} has a split named {name!r} already. Choose another name"
            + (", or replace it (--replace on the command line)." if is_saved else ".")
        )
    path = workspace.folder("splits", create=True) / dataset.name / f"{name}.json"
    workspace.write_json(path, {"version": VERSION, "name": name, **split_record(dataset, parts, recipe)})
    return path


def split_record(dataset: Dataset, parts: Mapping[str, np.ndarray], recipe: RawSettings) -> dict[str, Any]:
    """A split as JSON has it: the names of its classes by side, the dataset, and the recipe."""
    names = np.array(dataset.distinct_names(np.arange(dataset.n_classes)), dtype=object)
    sides = {side: names[np.sort(np.asarray(parts[side], dtype=int))].tolist() for side in SIDES}
    return {"dataset": dataset.name, **sides, "recipe": dict(recipe)}


def load_split(dataset: Dataset, name: str) -> dict[str, np.ndarray]:
    """Train, val and test class_ids of a saved split."""
    path = _path(dataset.name, name)
    return _parts(dataset, workspace.read_json(path), f"The saved split {name!r}")


def split_recipe(dataset: str, name: str) -> dict[str, Any]:
    """The recipe of a saved split; {} if it has none."""
    facts = workspace.read_json(_path(dataset, name))
    recipe = facts.get("recipe") if isinstance(facts, dict) else None
    return recipe if isinstance(recipe, dict) else {}


def remove_split(dataset: str, name: str) -> None:
    workspace.remove([_path(dataset, name)])


def read_split(dataset: Dataset, content: bytes, where: str) -> dict[str, np.ndarray]:
    """Train, val and test class_ids of a file: JSON as it is exported, or a CSV with columns class_name and split."""
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            facts = json.loads(text)
        else:
            columns = {"class_name", "split"}
            table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, usecols=columns.__contains__)
            absent = [column for column in ("class_name", "split") if column not in table]
            if absent:
                raise BadInput(f"{where}: a table of a split needs the columns class_name and split.")
            wrong = sorted(set(table["split"]) - set(SIDES))
            if wrong:
                raise BadInput(f"{where}: a split is train, val or test. Got {wrong[0]!r}.")
            plain = table["class_name"].map(from_csv)
            facts = {side: plain[table["split"] == side].tolist() for side in SIDES}
    except (UnicodeDecodeError, ValueError) as error:
        raise BadInput(
            f"{where} cannot be read as a split ({type(error).__name__}). Give JSON with the lists train, val and "
            "test, or a CSV with the columns class_name and split."
        ) from error
    return _parts(dataset, facts, where)


def _path(dataset: str, name: str) -> Path:
    names = saved_split_names(dataset)
    if name not in names:
        raise UnknownName("saved split", name, names, "Save one with 'fsviz split DATASET --save NAME'.")
    return workspace.folder("splits") / dataset / f"{name}.json"


def _parts(dataset: Dataset, facts: Any, where: str) -> dict[str, np.ndarray]:
    lists: list[Any] = [facts.get(side) for side in SIDES] if isinstance(facts, dict) else []
    if not lists or not all(isinstance(part, list) and all(isinstance(n, str) for n in part) for part in lists):
        raise BadInput(f"{where} is no split: it needs the lists train, val and test of class names. Make it again.")
    names = dataset.distinct_names(np.arange(dataset.n_classes))
    class_id = {name: i for i, name in enumerate(names)}
    all_names = [name for part in lists for name in part]
    unknown = [name for name in all_names if name not in class_id]
    if unknown:
        raise BadInput(
            f"{where} is of other classes: {len(unknown):,} of its {len(all_names):,} classes are not in "
            f"{dataset.title}, such as {unknown[0]!r}. Make the split again for this dataset."
        )
    if len(set(all_names)) < len(all_names):
        repeated = next(name for name in all_names if all_names.count(name) > 1)
        raise BadInput(f"{where}: the class {repeated!r} is there twice. A class is on one side of a split.")
    if not all_names:
        raise BadInput(f"{where} has no classes. Give at least one class of {dataset.title} per side.")
    return {side: np.sort(np.array([class_id[n] for n in part], dtype=np.int64)) for side, part in zip(SIDES, lists)}
