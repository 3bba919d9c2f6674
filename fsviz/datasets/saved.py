"""Datasets in the workspace: a folder each, with dataset.json, classes.parquet, images.parquet and taxonomy.csv.

Where classes have senses, senses.csv says which, a row per class in the order of their ids (class, synset, by): by
"you" what a person chose, which stays when the dataset is replaced, and by "guess" the rest.

Images stay where the user keeps them and are found through the root in dataset.json; only uploads are kept inside.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import workspace
from fsviz.datasets import labels, pixel_attributes
from fsviz.errors import BadInput, FsvizError, UnknownName, WorkspaceError
from fsviz.records import Dataset

VERSION = 1
SENSES = "senses.csv"
_TEXTS = ("title", "summary", "source", "licence", "homepage", "origin")


def workspace_dataset_names() -> list[str]:
    """Names of the datasets that the user has added."""
    return [path.name for path in workspace.entries("datasets") if os.path.isfile(path / "dataset.json")]


def save_dataset(
    dataset: Dataset, overwrite: bool = False, move_images: Path | None = None, senses: pd.DataFrame | None = None
) -> Dataset:
    """Writes a dataset into the workspace, whole or not at all, and returns it as it reads back.

    senses       the table of senses.csv
    move_images  a folder whose content becomes the dataset's own copy of its images (uploads); it must lie in the
                 workspace and takes the place of dataset.root.
    """
    check_new_name(dataset.name, overwrite)
    folder = workspace.folder("datasets", create=True) / dataset.name
    with workspace.atomic_folder(folder) as temporary:
        dataset.classes.reset_index(drop=True).to_parquet(temporary / "classes.parquet")
        if dataset.images is not None:
            images = dataset.images.reset_index(drop=True)
            if dataset.origin == "folder":
                images["n_bytes"] = _sizes(move_images or dataset.root, images["path"])
            images.to_parquet(temporary / "images.parquet")
        if dataset.taxonomy is not None:
            dataset.taxonomy.to_csv(temporary / "taxonomy.csv", index=False)
        if senses is not None:
            senses.to_csv(temporary / SENSES, index=False)
        if dataset.contexts is not None:
            dataset.contexts.to_parquet(temporary / "contexts.parquet")
        root = None if dataset.root is None else str(dataset.root)
        if move_images is not None:
            shutil.move(move_images, temporary / "images")
            os.chmod(temporary / "images", 0o700)  # uploads are for fsviz alone
            root = "images"
        facts = {key: getattr(dataset, key) for key in _TEXTS} | {
            "version": VERSION,
            "name": dataset.name,
            "root": root,
            "splits": {name: np.asarray(ids).tolist() for name, ids in dataset.splits.items()},
            "node_names": dict(dataset.node_names),
            "attributes": list(dataset.attributes),
            "notes": list(dataset.notes),
        }
        workspace.write_json(temporary / "dataset.json", facts)
    return load_workspace_dataset(dataset.name)


def read_senses(name: str) -> pd.DataFrame | None:
    """The table of senses.csv of a dataset; None if it has none."""
    path = workspace.folder("datasets") / workspace.check_name(name, "dataset name") / SENSES
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)[["class", "synset", "by"]]
    except (OSError, ValueError, KeyError):
        return None


def save_senses(dataset: Dataset, senses: pd.DataFrame) -> Dataset:
    """Writes another taxonomy of a dataset that is in the workspace: its nodes, edges and notes, and the senses behind
    them. Images, their ids and what was computed from them stay."""
    folder = workspace.folder("datasets") / dataset.name
    facts = workspace.read_json(folder / "dataset.json")
    for file, write in (
        (SENSES, lambda path: senses.to_csv(path, index=False)),
        ("classes.parquet", lambda path: dataset.classes.reset_index(drop=True).to_parquet(path)),
    ):
        with workspace.atomic_file(folder / file) as temporary:
            write(temporary)
    if dataset.taxonomy is None:
        (folder / "taxonomy.csv").unlink(missing_ok=True)
    else:
        with workspace.atomic_file(folder / "taxonomy.csv") as temporary:
            dataset.taxonomy.to_csv(temporary, index=False)
    changed = {"node_names": dict(dataset.node_names), "notes": list(dataset.notes)}
    workspace.write_json(folder / "dataset.json", facts | changed)
    os.utime(folder)  # pages read a dataset again when its folder changes
    return load_workspace_dataset(dataset.name)


def load_workspace_dataset(name: str) -> Dataset:
    """A dataset that the user has added. When its folder has moved, the notes say so and images do not open."""
    folder = workspace.folder("datasets") / workspace.check_name(name, "dataset name")
    if not (folder / "dataset.json").is_file():
        workspace.restore_aside(folder.parent)
    if not (folder / "dataset.json").is_file():
        raise UnknownName("dataset", name, workspace_dataset_names(), "Add your own with 'fsviz add NAME PATH'.")
    facts = workspace.read_json(folder / "dataset.json")
    try:
        if facts["version"] != VERSION:
            raise WorkspaceError(
                f"Dataset {name!r} was written by another version of fsviz (format {facts['version']}, here "
                f"{VERSION}). Add it again with 'fsviz add NAME PATH --replace'."
            )
        return _assembled(name, folder, facts)
    except FsvizError:
        raise
    except Exception as error:  # a file that is damaged or half deleted can raise anything
        raise WorkspaceError(
            f"Dataset {name!r} in {folder} is damaged ({type(error).__name__}). "
            "Delete that folder and add the images again with 'fsviz add NAME PATH'."
        ) from error


def remove_dataset(name: str) -> None:
    """Takes a dataset, its features and saved splits out of the workspace, never the user's own folder of images."""
    folder = workspace.folder("datasets") / workspace.check_name(name, "dataset name")
    workspace.restore_aside(folder.parent)
    if not folder.is_dir():
        raise UnknownName("dataset", name, workspace_dataset_names())
    made_of_it = (workspace.folder(kind) / name for kind in ("features", "pixels", "splits"))
    workspace.remove([*made_of_it, pixel_attributes.path_of(name), labels.path_of(name), folder])


def rename_dataset(name: str, title: str) -> None:
    """Gives a dataset of the workspace another title. Its name stays, by which links, runs and features know it."""
    title = " ".join(str(title).split())
    if not title:
        raise BadInput("A title is a few words. Got nothing. Give the words by which pages should call the dataset.")
    load_workspace_dataset(name)  # refuses what is not there
    folder = workspace.folder("datasets") / name
    workspace.write_json(folder / "dataset.json", workspace.read_json(folder / "dataset.json") | {"title": title[:200]})
    os.utime(folder)  # pages read a dataset again when its folder changes


def _sizes(root: Path | None, paths: pd.Series) -> list[int]:
    """Bytes of every file when it was added, to recognise other files of the same names; -1 where gone."""
    sizes = []
    for path in paths:
        try:
            sizes.append(os.stat(path if root is None else os.path.join(root, path)).st_size)
        except OSError:
            sizes.append(-1)
    return sizes


def check_new_name(name: str, overwrite: bool = False) -> None:
    """Refuses names that are impossible, that come with fsviz, or (unless overwrite) that are taken."""
    from fsviz.datasets import BUILT_IN
    from fsviz.datasets.catalog import ENTRIES

    workspace.check_name(name, "dataset name")
    if name in BUILT_IN or name in ENTRIES or name == "all":
        raise BadInput(
            f"The name {name!r} belongs to a dataset that comes with fsviz. Choose another, such as my_{name}."
        )
    if not overwrite and name in (path.name for path in workspace.entries("datasets")):
        raise BadInput(f"Dataset {name!r} already exists. Choose another name or use --replace.")


def _assembled(name: str, folder: Path, facts: dict[str, Any]) -> Dataset:
    classes = pd.read_parquet(folder / "classes.parquet")
    classes.index = pd.RangeIndex(len(classes), name="class_id")
    classes["n_images"] = classes["n_images"].astype("Int64")
    images = None
    if (folder / "images.parquet").is_file():
        images = pd.read_parquet(folder / "images.parquet")
        images.index = pd.RangeIndex(len(images), name="image_id")
    taxonomy = None
    if (folder / "taxonomy.csv").is_file():
        taxonomy = pd.read_csv(folder / "taxonomy.csv", dtype=str, keep_default_na=False)
    contexts = pd.read_parquet(folder / "contexts.parquet") if (folder / "contexts.parquet").is_file() else None
    root = None if facts["root"] is None else folder / facts["root"]  # an absolute root stands for itself
    dataset = Dataset(
        name=name,
        classes=classes,
        splits={split: np.asarray(ids, dtype=np.int64) for split, ids in facts["splits"].items()},
        taxonomy=taxonomy,
        node_names=facts["node_names"],
        contexts=contexts,
        images=images,
        attributes=tuple(facts["attributes"]),
        root=root,
        has_features=has_features(name),
        notes=tuple(facts["notes"]),
        **{key: facts[key] for key in _TEXTS},
    )
    if root is not None and not root.is_dir():
        return replace(dataset, notes=(moved_note(name, root), *dataset.notes))
    return dataset


def has_features(name: str) -> bool:
    """Whether the workspace holds features of this name; the features room decides whether they still fit."""
    folder = workspace.folder("features") / name
    workspace.restore_aside(folder)
    try:
        return any(not path.name.startswith(".") for path in folder.iterdir())
    except OSError:
        return False


def moved_note(name: str, root: Path) -> str:
    return (
        f"Images of {name!r} not found at {root}. Restore the folder, or add them again with "
        f"'fsviz add {name} PATH --replace'."
    )
