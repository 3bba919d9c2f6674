"""Folders of the workspace that are replaced or removed: a kill loses nothing, and what cannot be removed is said."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, workspace
from fsviz.cli import main
from fsviz.datasets import image_folders, saved_splits, uploads
from fsviz.datasets.saved import remove_dataset
from fsviz.errors import UnknownName, WorkspaceError
from fsviz.features import store
from fsviz.user import images as user_images
from tests.cli.calling import run_json
from tests.datasets.test_image_folders import folder_of
from tests.studies.toy_dataset import make_toy

# A process that kills itself the moment before a folder takes the name it was told: with the old one aside.
KILLED = """
import os, signal, sys
from fsviz.cli import main

def die(event, told):
    if event == "os.rename" and os.fspath(told[1]).startswith(sys.argv[1]) and ".aside-" not in os.fspath(told[1]):
        if os.path.basename(os.fspath(told[0])).startswith(".tmp-") and os.path.isdir(told[0]):
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(die)
main(sys.argv[2:])
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def killed_before(name: Path, *words: str) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, str(name), *words], cwd=Path(__file__).parents[1])
    assert process.returncode == -signal.SIGKILL and not name.exists()


def age(folder: Path) -> None:
    """Makes all below a folder a year old: nobody can be using it any more."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (0, 0), follow_symlinks=False)


def test_a_kill_between_the_two_renames_of_a_replacement_loses_no_dataset(tmp_path: Path, home: Path, capsys) -> None:
    old, new = (folder_of(tmp_path / n, {"dog": 3, "cat": 3, n: 2}) for n in ("owl", "elk"))
    assert main(["add", "pets", str(old)]) == 0
    killed_before(home / "datasets" / "pets", "add", "pets", str(new), "--replace")
    age(home)
    assert not any("aside" in remaining.path.name for remaining in workspace.leftovers())  # the only copy is none
    assert main(["clean", "--yes"]) == 0
    assert not list((home / "datasets").glob(".tmp-*"))  # what was being written is
    capsys.readouterr()
    assert "pets" in [row["name"] for row in run_json(capsys, "datasets")["datasets"]]
    assert set(datasets.load("pets").classes["class_name"]) == {"dog", "cat", "owl"}
    assert main(["add", "pets", str(new), "--replace"]) == 0
    assert set(datasets.load("pets").classes["class_name"]) == {"dog", "cat", "elk"}
    assert [path.name for path in (home / "datasets").iterdir()] == ["pets"]


def test_a_dataset_that_a_kill_left_aside_is_found_by_its_name_alone(tmp_path: Path, home: Path) -> None:
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "a", {"dog": 2, "cat": 2})))
    (home / "datasets" / "pets").rename(home / "datasets" / ".aside-0123abcd-pets")
    assert datasets.load("pets").n_classes == 2 and (home / "datasets" / "pets").is_dir()


def test_a_kill_between_the_two_renames_of_features_loses_none(tmp_path: Path, home: Path, capsys) -> None:
    make_toy("toy", n_images=10)
    dataset = datasets.load("toy")
    before = store.load(dataset, "alpha_net").values.copy()
    (folder,) = [path for path in store.stored_paths("toy") if path.name.startswith("alpha_net")]
    about = json.loads((folder / "about.json").read_text())
    again = (
        "import sys; from fsviz.features import store; import numpy as np\n"
        f"store.save({about['key']!r}, 'alpha_net', np.zeros((10, 2)), np.arange(10), np.zeros(10, int))\n"
    )
    script = KILLED.replace("main(sys.argv[2:])", again)
    process = subprocess.run([sys.executable, "-c", script, str(folder)], cwd=Path(__file__).parents[1])
    assert process.returncode == -signal.SIGKILL and not folder.exists()
    age(home)
    workspace.clean()
    assert np.array_equal(store.load(dataset, "alpha_net").values, before) and folder.is_dir()


def test_what_was_replaced_is_no_leftover_for_long_and_never_comes_back(tmp_path: Path, home: Path) -> None:
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "a", {"dog": 2, "cat": 2})))
    aside = home / "datasets" / ".aside-0123abcd-pets"
    aside.mkdir()  # as a kill after the second rename leaves it
    (aside / "dataset.json").write_text("{}")
    age(home)
    assert [remaining.description for remaining in workspace.leftovers()] == ["replaced folder"]
    remove_dataset("pets")
    assert "pets" not in datasets.names() and not aside.exists()
    with pytest.raises(UnknownName):
        datasets.load("pets")


def test_a_reader_who_puts_a_folder_back_does_not_stop_its_successor(tmp_path: Path, monkeypatch) -> None:
    place = tmp_path / "place"
    with workspace.atomic_folder(place) as first:
        (first / "old").write_text("")
    renamed, calls = os.replace, []

    def replace(source, target) -> None:
        renamed(source, target)
        if ".aside-" in str(target) and len(calls) < 3:
            workspace.restore_aside(tmp_path)  # as a reader does it between the two renames
            calls.append(place.exists())

    monkeypatch.setattr(os, "replace", replace)
    with workspace.atomic_folder(place) as second:
        (second / "new").write_text("")
    assert calls == [True] * 3 and os.listdir(place) == ["new"] and os.listdir(tmp_path) == ["place"]


def test_a_folder_that_cannot_take_the_place_leaves_the_old_one(tmp_path: Path, monkeypatch) -> None:
    place = tmp_path / "place"
    with workspace.atomic_folder(place) as first:
        (first / "old").write_text("")
    renamed = os.replace

    def replace(source, target) -> None:
        if Path(target) == place:
            raise OSError(5, "Input/output error")
        renamed(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(WorkspaceError, match="Input/output error"), workspace.atomic_folder(place) as second:
        (second / "new").write_text("")
    assert os.listdir(place) == ["old"] and os.listdir(tmp_path) == ["place"]


@pytest.mark.parametrize(
    "words",
    [
        ("datasets", "remove", "toy"),
        ("features", "remove", "toy", "alpha_net"),
        ("split", "toy", "--delete", "mine"),
        ("testbeds", "remove", "few"),
    ],
)
def test_nothing_is_said_to_be_removed_from_a_read_only_workspace(small_disk, monkeypatch, capsys, words) -> None:
    small_disk.mount("8m")
    monkeypatch.setenv("FSVIZ_HOME", str(small_disk.path))
    dataset = make_toy("toy")
    saved_splits.save_split(dataset, "mine", {"train": [0, 1], "val": [2], "test": [3, 4]}, {})
    assert main(["sample", "toy", "--n-tasks", "5", "--n-way", "3", "--name", "few"]) == 0
    before = sorted(str(path) for path in small_disk.path.rglob("*"))
    capsys.readouterr()
    small_disk.remount("ro")
    assert main(list(words)) == 2
    captured = capsys.readouterr()
    assert "Removed" not in captured.out and "cannot be removed (Read-only file system)" in captured.err
    assert sorted(str(path) for path in small_disk.path.rglob("*")) == before
    small_disk.remount("rw")
    assert main(list(words)) == 0  # what the sentence advises helps
    assert sorted(str(path) for path in small_disk.path.rglob("*")) != before


def test_a_dataset_is_removed_with_all_that_was_made_of_it_or_not_at_all(home: Path, monkeypatch) -> None:
    make_toy("toy", n_images=10)
    before = sorted(str(path) for path in home.rglob("*"))
    renamed = os.replace

    def replace(source, target) -> None:
        if Path(source) == home / "datasets" / "toy":
            raise PermissionError(13, "Permission denied")
        renamed(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(WorkspaceError, match=r"cannot be removed \(Permission denied\), so nothing was"):
        remove_dataset("toy")
    assert sorted(str(path) for path in home.rglob("*")) == before
    monkeypatch.undo()
    monkeypatch.setenv("FSVIZ_HOME", str(home))
    remove_dataset("toy")
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_uploads_are_for_their_owner_alone(tmp_path: Path, home: Path) -> None:
    folder_of(tmp_path / "all" / "faces", {"me": 2, "you": 2})
    archive = shutil.make_archive(str(tmp_path / "faces"), "zip", tmp_path / "all")
    with open(archive, "rb") as file:
        folder, table = uploads.collect([file])
    assert table is None and mode(folder) == 0o700
    user_images.save("faces", image_folders.inspect(folder), upload=folder)
    assert mode(home / "datasets" / "faces" / "images") == 0o700
    assert len(datasets.load("faces").images) == 4
    weights = io.BytesIO(b"0" * 100)
    weights.name = "net.safetensors"
    assert mode(uploads.keep_weights(weights)) == 0o600


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
