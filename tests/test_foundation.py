"""Records, errors, numerics and the workspace: what every room stands on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import numerics, workspace
from fsviz.errors import BadInput, Missing, UnknownName, WorkspaceError
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks


def small_dataset(**changes) -> Dataset:
    classes = pd.DataFrame(
        {
            "class_name": ["ant", "bee", "cat"],
            "split": ["train", "test", "test"],
            "n_images": pd.array([2, 1, 3], dtype="Int64"),
            "node": ["", "", ""],
        }
    )
    splits = {"train": np.array([0]), "test": np.array([1, 2])}
    return Dataset(**{"name": "small", "title": "Small", "classes": classes, "splits": splits, **changes})


def test_unknown_name_says_the_nearest() -> None:
    error = UnknownName("dataset", "tiered", ["tiered_imagenet", "dtd"])
    assert error.near == ["tiered_imagenet"]
    assert str(error) == "Unknown dataset 'tiered'. Did you mean 'tiered_imagenet'?"
    assert "Available: a, b." in str(UnknownName("split", "zzz", ["a", "b"]))
    assert "There are none yet." in str(UnknownName("run", "x", []))


def test_image_ids_count_through_the_classes_in_table_order() -> None:
    assert small_dataset().image_class_ids().tolist() == [0, 0, 1, 2, 2, 2]
    assert small_dataset().n_images == 6


def test_unknown_counts_weigh_the_same_and_cannot_give_images() -> None:
    classes = small_dataset().classes.assign(n_images=pd.array([pd.NA] * 3, dtype="Int64"))
    dataset = small_dataset(classes=classes)
    assert dataset.n_images is None
    assert dataset.class_weights().tolist() == [1, 1, 1]
    with pytest.raises(Missing, match="Small lists classes only"):
        dataset.image_class_ids()


def test_splits_by_name_and_all() -> None:
    assert small_dataset().split_class_ids("test").tolist() == [1, 2]
    assert small_dataset().split_class_ids("all").tolist() == [0, 1, 2]
    with pytest.raises(UnknownName, match=r"Unknown split 'tset'.*'test'"):
        small_dataset().split_class_ids("tset")


def test_predictions_start_blank_and_pass_through_the_arrays_of_chunks_unchanged() -> None:
    blank = Predictions.blank((2, 3, 1))
    assert len(blank) == 2 and (blank.predicted == PAD).all() and np.isnan(blank.likelihood).all()
    assert [array.dtype for array in blank.arrays().values()] == [np.int16, np.int16, np.float32, np.float32]
    ones, twos = (Predictions(*(np.full((n, 3, 1), n) for _ in range(4))) for n in (1, 2))
    joined = Predictions.join([ones, twos])
    assert joined.rank[:, 0, 0].tolist() == [1, 2, 2]
    assert joined.take(np.array([2, 0])).confidence[:, 1, 0].tolist() == [2, 1]
    stored = {"start": np.array(0), **ones.arrays("hard_"), **twos.arrays("easy_")}
    assert sorted(stored)[0] == "easy_confidence"
    assert Predictions.from_arrays(stored, "hard_").arrays().keys() == ones.arrays().keys()
    assert Predictions.from_arrays(stored, "hard_").predicted is ones.predicted


def test_offers_follow_from_what_is_there() -> None:
    assert small_dataset().capabilities == ()
    images = pd.DataFrame({"class_id": [0], "path": [""], "blur": [0.1]})
    full = small_dataset(images=images, attributes=("blur",), origin="demo", has_features=True)
    assert full.capabilities == ("attributes", "images", "features")
    assert "images" not in small_dataset(images=images, origin="features").capabilities


def test_rows_of_features_by_image_id() -> None:
    features = Features("d", "b", np.zeros((3, 2)), np.array([5, 2, 9]), np.array([0, 0, 1]))
    image_ids = np.array([[2, 9], [PAD, 5], [3, 100]])
    assert features.rows_of(image_ids).tolist() == [[1, 2], [PAD, 0], [PAD, PAD]]


def test_tasks_take_keeps_measures_beside_their_task() -> None:
    tasks = Tasks(np.array([[0, 1], [1, 2], [0, 2]])).with_measure("coarsity", np.array([3.0, 1.0, 2.0]))
    subset = tasks.take(np.array([2, 0]))
    assert subset.class_ids.tolist() == [[0, 2], [0, 1]]
    assert subset.measures["coarsity"].tolist() == [2.0, 3.0]
    with pytest.raises(BadInput, match=r"one number per task \(3\). Got 2"):
        tasks.with_measure("x", np.zeros(2))


def test_mean_and_interval_by_hand() -> None:
    mean, half = numerics.mean_and_ci95(np.array([1.0, 2.0, 3.0, np.nan]))
    assert mean == 2.0
    assert half == pytest.approx(1.96 * 1.0 / 3**0.5)
    assert np.isnan(numerics.mean_and_ci95(np.array([4.0]))[1])


def test_interval_covers_the_mean_about_95_times_of_100() -> None:
    samples = np.random.default_rng(0).normal(0.3, 1.0, size=(4000, 60))
    mean, half = numerics.mean_and_ci95(samples)
    assert 0.93 < np.mean(np.abs(mean - 0.3) <= half) < 0.97


def test_the_order_of_an_array_that_cannot_change_is_remembered_and_of_others_not() -> None:
    values = np.array([3.0, 1.0, 2.0, 1.0])
    assert numerics.sort_order(values).tolist() == [1, 3, 2, 0]
    values[0] = 0.0
    assert numerics.sort_order(values).tolist() == [0, 1, 3, 2]
    values.setflags(write=False)
    assert numerics.sort_order(values) is numerics.sort_order(values)
    for _ in range(9):
        second = np.random.default_rng(0).random(5)
        second.setflags(write=False)
        assert numerics.sort_order(second).tolist() == np.argsort(second).tolist()


def test_rolling_mean_by_hand() -> None:
    assert numerics.rolling_mean(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist() == [1.5, 2.5, 3.5]
    assert numerics.rolling_mean(np.array([1.0, 3.0]), 9).tolist() == [2.0]


def test_chunk_seeds_differ_and_repeat() -> None:
    def draw(chunk: int) -> list[int]:
        return np.random.default_rng(numerics.chunk_seed(7, chunk)).integers(0, 1 << 30, 3).tolist()

    assert draw(0) == draw(0)
    assert draw(0) != draw(1)


def test_workspace_follows_the_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "there"))
    assert workspace.home() == tmp_path / "there"
    assert workspace.entries("runs") == []
    assert not (tmp_path / "there").exists()
    monkeypatch.delenv("FSVIZ_HOME")
    monkeypatch.chdir(tmp_path)
    assert workspace.home() == tmp_path / ".fsviz"


def test_a_failed_write_leaves_nothing_and_keeps_the_old(tmp_path: Path) -> None:
    target = tmp_path / "value.json"
    workspace.write_json(target, {"a": 1})
    with pytest.raises(RuntimeError), workspace.atomic_file(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("killed")
    assert json.loads(target.read_text()) == {"a": 1}
    assert os.listdir(tmp_path) == ["value.json"]
    with pytest.raises(RuntimeError), workspace.atomic_folder(tmp_path / "folder") as folder:
        (folder / "part").write_text("half")
        raise RuntimeError("killed")
    assert os.listdir(tmp_path) == ["value.json"]


def test_an_unwritable_workspace_is_one_sentence(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "file"))
    with pytest.raises(WorkspaceError, match=r"cannot be written.*set FSVIZ_HOME"):
        workspace.folder("runs", create=True)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(WorkspaceError, match="cannot be read as JSON"):
        workspace.read_json(tmp_path / "broken.json")


def test_what_a_kill_left_is_swept_after_a_day(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    old, fresh, nested = tmp_path / "features/.tmp-old", tmp_path / "features/.tmp-new", tmp_path / "features/d/.tmp-x"
    for path in (old, fresh, nested):
        path.mkdir(parents=True)
        (path / "part").write_text("half")
    for path in (old, nested):
        os.utime(path / "part", (0, 0))
        os.utime(path, (0, 0))
    workspace.folder("features", create=True)
    assert not old.exists() and not nested.exists()
    assert (fresh / "part").exists()


def test_leftovers_are_named_with_their_size_and_cleaned_but_not_what_may_be_in_use(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    remaining = {
        "runs/20260101-000000-abcd/chunks/.tmp-x.npz": "unfinished write",
        "features/pets/.partial-128-net/.tmp-y.npz": "unfinished write",
        "datasets/.upload-0123": "upload that was never added",
        "runs/.deleted-20250101-000000-abcd": "deleted run",
    }
    for name in remaining:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.startswith(("datasets", "runs/.deleted")):
            (path / "a").mkdir(parents=True)
            path = path / "a" / "b"
        path.write_bytes(b"x" * 5000)
        os.utime(path, (0, 0))
        for folder in (path, *path.parents[:2]):
            os.utime(folder, (0, 0))
    saved = ["features/pets/.partial-128-net/00001.npz", "runs/20260101-000000-abcd/chunks/000001.npz"]
    saved += ["testbeds/.tmp-young"]
    for name in saved:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("kept")
    result = workspace.leftovers()
    assert {str(item.path.relative_to(tmp_path)): item.description for item in result} == remaining
    assert all(item.n_bytes >= 5000 for item in result)
    assert {item.path for item in workspace.clean()} == {item.path for item in result}
    assert workspace.leftovers() == [] and not any((tmp_path / name).exists() for name in remaining)
    assert all((tmp_path / name).exists() for name in saved)


def test_a_write_is_on_the_disk_before_it_takes_its_name(monkeypatch, tmp_path: Path) -> None:
    reports: list[tuple[str, str]] = []
    fsync, replace, opened = os.fsync, os.replace, os.open
    names: dict[int, str] = {}

    def noting_open(path, *more, **options):
        handle = opened(path, *more, **options)
        names[handle] = str(path)
        return handle

    monkeypatch.setattr(os, "open", noting_open)
    monkeypatch.setattr(os, "fsync", lambda handle: (reports.append(("sync", names[handle])), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (reports.append(("rename", str(a))), replace(a, b))[1])
    workspace.write_json(tmp_path / "a.json", 1)
    (_, temporary), *rest = reports
    assert reports[0][0] == "sync" and rest == [("rename", temporary), ("sync", str(tmp_path))]
    reports.clear()
    with workspace.atomic_folder(tmp_path / "folder") as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "part").write_text("whole")
    before = reports[: reports.index(("rename", str(folder)))]
    assert {path for _, path in before} == {str(folder), str(folder / "inner"), str(folder / "inner" / "part")}
    assert reports[-1] == ("sync", str(tmp_path))


def test_room_is_asked_for_before_the_work(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "not" / "yet"))
    workspace.require_space(1000, "The results")
    with pytest.raises(WorkspaceError, match=r"The results need 9,000,000,000.0 GB; .* free in .* Run fsviz clean"):
        workspace.require_space(9e18, "The results")
    values = {999: "999 bytes", 1600: "2 KB", 2.4e6: "2 MB", 3.21e9: "3.2 GB"}
    assert {n: workspace.format_bytes(n) for n in values} == values


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a" * 101, "a b", 'x"y'])
def test_unsafe_names_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match="Choose another"):
        workspace.check_name(name, "testbed name")


def test_tasks_of_different_shapes_say_so_and_know_their_chance() -> None:
    fixed = Tasks(np.zeros((3, 5), int), np.zeros((3, 5, 2), int), np.zeros((3, 5, 4), int))
    assert (fixed.setting, fixed.chance_level) == ("5-way 2-shot", pytest.approx(0.2))
    class_ids = np.array([[0, 1, PAD, PAD], [0, 1, 2, 3]])
    support = np.where((class_ids == PAD)[:, :, None], PAD, np.zeros((2, 4, 3), int))
    support[1, 2, 1:] = PAD
    mixed = Tasks(class_ids, support, support)
    assert mixed.setting == "2 to 4-way 1 to 3-shot"
    assert mixed.chance_level == pytest.approx((1 / 2 + 1 / 4) / 2)  # not one in four, the widest task
    assert Tasks(class_ids).setting == "2 to 4-way"
