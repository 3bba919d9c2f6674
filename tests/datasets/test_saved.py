"""Datasets in the workspace: saved, read back, moved, damaged, replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, workspace
from fsviz.datasets import image_folders, pixel_attributes, saved, saved_splits
from fsviz.datasets.preview import Preview
from fsviz.errors import BadInput, UnknownName, WorkspaceError
from tests.datasets import test_image_folders
from tests.datasets.test_image_folders import (
    ROOT,
    folder_of,
)

home = test_image_folders.home  # a fixture


def test_a_dataset_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 3, "cat": 2})
    edges = pd.DataFrame({"child": ["cat", "dog"], "parent": ["animal", "animal"]})
    saved = image_folders.register(
        "pets",
        image_folders.inspect(root),
        {"cat": "cat", "dog": "dog"},
        edges,
        {"cat": "cat"},
        title="Pets",
        licence="mine",
    )
    loaded = datasets.load("pets")
    pd.testing.assert_frame_equal(saved.classes, loaded.classes)
    assert loaded.taxonomy is not None and loaded.taxonomy.equals(edges)
    assert loaded.images is not None and loaded.images["class_id"].tolist() == [0, 0, 1, 1, 1]
    assert loaded.classes["node"].tolist() == ["cat", "dog"]
    assert (loaded.title, loaded.licence, loaded.origin, loaded.root) == ("Pets", "mine", "folder", root)
    assert "pets" in datasets.names() and image_folders.workspace_dataset_names() == ["pets"]
    assert [p.name for p in (tmp_path / "home" / "datasets").iterdir()] == ["pets"], "nothing half-written remains"
    assert np.asarray(datasets.open_image(loaded, 0)).shape == (16, 16, 3)


def test_names_that_are_taken_or_impossible(tmp_path: Path) -> None:
    preview = image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 2, "cat": 2}))
    for name in ("demo", "digits", "tiered_imagenet"):
        with pytest.raises(BadInput, match="comes with fsviz"):
            image_folders.register(name, preview)
    for name in ("../x", "", ".hidden", "a b", "x" * 101):
        with pytest.raises(BadInput, match="dataset name may have"):
            image_folders.register(name, preview)
    image_folders.register("pets", preview)
    with pytest.raises(BadInput, match="already"):
        image_folders.register("pets", preview)
    image_folders.register("pets", preview, title="Second", overwrite=True)
    assert datasets.load("pets").title == "Second"
    image_folders.remove_dataset("pets")
    assert image_folders.workspace_dataset_names() == [] and (tmp_path / "pets" / "dog" / "00.png").exists()


def test_a_folder_that_has_moved(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    image_folders.register("pets", image_folders.inspect(root))
    shutil.move(root, tmp_path / "elsewhere")
    dataset = datasets.load("pets")
    assert "not found at" in dataset.notes[0] and "--replace" in dataset.notes[0]
    with pytest.raises(BadInput, match="Images not found at"):
        datasets.open_image(dataset, 0)


def test_a_record_is_read_once_until_one_of_its_files_changes(tmp_path: Path, home: Path) -> None:
    root = folder_of(tmp_path / "pets", {"cat": 2, "dog": 2, "owl": 2})
    image_folders.register("pets", image_folders.inspect(root))
    read = datasets.load("pets")
    assert datasets.load("pets") is read

    def write_in_place() -> None:
        file = home / "datasets" / "pets" / "dataset.json"
        file.write_text(file.read_text().replace('"licence": ""', '"licence": "mine"'))

    halves = {"train": read.splits["all"][:1], "val": read.splits["all"][:0], "test": read.splits["all"][1:]}
    for change, shows in (
        (lambda: saved.rename_dataset("pets", "Pets"), lambda d: d.title == "Pets"),
        (write_in_place, lambda d: d.licence == "mine"),
        (lambda: saved_splits.save_split(read, "halves", halves, {}), lambda d: "halves_test" in d.splits),
        (lambda: pixel_attributes.save(read, pixel_attributes.compute(read)), lambda d: "brightness" in d.attributes),
        (lambda: (home / "features" / "pets" / "net").mkdir(parents=True), lambda d: d.has_features),
        (lambda: root.rename(tmp_path / "gone"), lambda d: "not found at" in str(d.notes)),
        (lambda: (tmp_path / "gone").rename(root), lambda d: d.notes == read.notes),
        (lambda: saved_splits.remove_split("pets", "halves"), lambda d: "halves_test" not in d.splits),
    ):
        assert not shows(datasets.load("pets"))
        change()
        assert shows(datasets.load("pets")) and datasets.load("pets") is datasets.load("pets")

    shutil.copytree(home, tmp_path / "other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(tmp_path / "other"))
        saved.rename_dataset("pets", "Others")
        assert datasets.load("pets").title == "Others"
    assert datasets.load("pets").title == "Pets"
    saved.remove_dataset("pets")
    with pytest.raises(UnknownName):
        datasets.load("pets")


def test_a_damaged_dataset_says_so_and_the_others_still_load(tmp_path: Path, home: Path) -> None:
    preview = image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 2, "cat": 2}))
    image_folders.register("one", preview)
    image_folders.register("two", preview)
    (home / "datasets" / "one" / "classes.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(WorkspaceError, match="damaged"):
        datasets.load("one")
    (home / "datasets" / "one" / "dataset.json").write_text("{")
    with pytest.raises(WorkspaceError):
        datasets.load("one")
    assert datasets.load("two").n_images == 4


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, home: Path) -> None:
    """A limit on the size of files stands for a full disk: every write beyond it fails with an OSError."""
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    code = f"""
import resource, sys
from fsviz.datasets import image_folders
preview = image_folders.inspect({str(root)!r})
import pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    image_folders.register("pets", preview)
except Exception as error:
    print(type(error).__name__, error)
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert out.stdout.startswith("WorkspaceError"), out.stdout + out.stderr
    assert "could not be written" in out.stdout and "Free some space" in out.stdout
    assert list((home / "datasets").iterdir()) == []


def test_a_dataset_whose_replacement_fails_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kept"
    with workspace.atomic_folder(place) as first:
        (first / "old").write_text("old")
    real, calls = os.replace, []

    def fails_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails_second)
    with pytest.raises(WorkspaceError), workspace.atomic_folder(place) as second:
        (second / "new").write_text("new")
    assert [path.name for path in place.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    monkeypatch.undo()
    with workspace.atomic_folder(place) as third:
        (third / "new").write_text("new")
    assert [path.name for path in place.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_workspace_that_may_not_be_read_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "datasets").mkdir(parents=True)

    def closed(path="."):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", closed)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        datasets.names()
    with pytest.raises(WorkspaceError, match="cannot be read"):
        image_folders.register(
            "x", Preview("folder", home, pd.DataFrame({"path": ["a"], "class_name": "a", "split": "all"}))
        )
