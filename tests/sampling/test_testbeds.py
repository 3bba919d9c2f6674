"""Testbed files: what is written is read back, and every bad row is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import PAD, Tasks, Testbed
from fsviz.sampling import assign_images, sample_uniform, sample_variable, testbeds
from tests.sampling.small import small_dataset

RECIPE = {"dataset": "small", "split": "test", "sampler": "uniform", "seed": 0}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))


def make(table: bool = True, n_shot: int = 1, n_query: int = 3, n_tasks: int = 6) -> tuple[Testbed, object]:
    dataset = small_dataset(table=table)
    tasks = sample_uniform(dataset.splits["test"], 3, n_tasks, 0)
    tasks = tasks.with_measure("coarsity", np.linspace(1, 2, n_tasks) ** 7)
    if n_shot:
        tasks = assign_images(tasks, dataset.image_class_ids(), n_shot, n_query, 0)
    return Testbed("bed", tasks, RECIPE), dataset


def same(a: Tasks, b: Tasks) -> None:
    for name in ("class_ids", "support", "query"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert np.array_equal(left, right), name


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("kind", testbeds.FORMATS)
def test_every_format_is_read_back(kind: str, table: bool, tmp_path: Path) -> None:
    bed, dataset = make(table)
    path = tmp_path / f"bed.{kind}"
    path.write_bytes(testbeds.export(bed, dataset, kind))
    read = testbeds.load_testbed(path, dataset)
    same(read.tasks, bed.tasks)
    assert read.dataset == "small"
    assert read.recipe["split"] == "test"
    assert "version" in read.recipe
    if kind != "json":  # which has no place for it
        assert np.array_equal(read.tasks.measures["coarsity"], bed.tasks.measures["coarsity"])
    if kind == "parquet":
        assert {k: read.recipe[k] for k in RECIPE} == RECIPE


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tasks_of_classes_only_are_read_back(kind: str) -> None:
    bed, dataset = make(n_shot=0)
    read = testbeds.parse_testbed(testbeds.export(bed, dataset, kind), f"x.{kind}", dataset)
    same(read.tasks, bed.tasks)
    with pytest.raises(Missing, match="classes only"):
        testbeds.to_json(bed, dataset)


@pytest.mark.parametrize("kind", testbeds.FORMATS)
def test_tasks_of_variable_way_and_shot_are_read_back(kind: str) -> None:
    dataset = datasets.load("cu_birds")
    tasks = sample_variable(dataset.image_class_ids(), dataset.split_class_ids("test"), 8, 0)
    assert (tasks.class_ids == PAD).any()
    bed = Testbed("v", tasks, RECIPE | {"dataset": "cu_birds"})
    content = testbeds.export(bed, dataset, kind)
    if kind == "parquet":
        same(testbeds.from_parquet(content, dataset).tasks, tasks)
        return
    with pytest.raises(BadInput, match=r"Row \d+|Task \d+"):
        testbeds.parse_testbed(content, f"v.{kind}", dataset)
    read = testbeds.parse_testbed(content, f"v.{kind}", dataset, uneven=True).tasks
    for t in range(len(tasks)):  # the order of classes and the padding may differ, the task may not
        assert task_as_sets(read, t) == task_as_sets(tasks, t)


def task_as_sets(tasks: Tasks, t: int) -> dict:
    return {
        int(c): (set(tasks.support[t, w].tolist()) - {PAD}, set(tasks.query[t, w].tolist()) - {PAD})
        for w, c in enumerate(tasks.class_ids[t])
        if c != PAD
    }


def test_the_csv_is_the_one_users_have() -> None:
    bed, dataset = make()
    frame = pd.read_csv(pd.io.common.StringIO(testbeds.to_csv(bed, dataset)))
    assert list(frame.columns) == ["task", "variance", "labels", "image_id", "support"]
    assert len(frame) == 6 * 3 * 4
    assert frame.groupby(["task", "labels"]).support.sum().eq(1).all()
    order = dataset.split_class_ids("test")
    of_image = dataset.image_class_ids()
    assert np.array_equal(of_image[frame["image_id"]], order[frame["labels"]])
    assert frame.groupby("task").variance.nunique().eq(1).all()


def test_a_csv_with_an_index_column_and_split_image_ids_is_understood() -> None:
    bed, dataset = make()
    text = testbeds.to_csv(bed, dataset, split_image_ids=True)
    frame = pd.read_csv(pd.io.common.StringIO(text))
    assert frame["image_id"].max() < 4 * 12  # counts through the split's images only
    shuffled = frame.sample(frac=1, random_state=0).to_csv()  # pandas' unnamed index in front, rows in any order
    read = testbeds.from_csv(shuffled, dataset)
    for t in range(len(bed.tasks)):
        assert task_as_sets(read.tasks, t) == task_as_sets(bed.tasks, t)


def supports_only(bed: Testbed, dataset, **change) -> str:
    """The file as the authors have it: pandas' index in front, no rows of queries, ids that count through the split."""
    frame = pd.read_csv(pd.io.common.StringIO(testbeds.to_csv(bed, dataset, split_image_ids=True)))
    return frame[frame["support"]].assign(**change).to_csv()


@pytest.mark.parametrize("table", [True, False])
def test_queries_are_drawn_for_a_file_of_supports_only(table: bool) -> None:
    bed, dataset = make(table, n_shot=2)
    text = supports_only(bed, dataset)
    read = testbeds.from_csv(text, dataset)
    assert [set(row) for row in read.tasks.support.reshape(-1, 2)] == [
        set(bed.tasks.support[t, w])
        for t in range(len(bed.tasks))
        for w in np.argsort(bed.tasks.class_ids[t], kind="stable")
    ]
    assert read.tasks.query.shape == (6, 3, 10)  # 12 images per class, 2 of them shots
    of_image = dataset.image_class_ids()
    both = np.concatenate([read.tasks.support, read.tasks.query], axis=2)
    assert np.array_equal(of_image[both], np.broadcast_to(read.tasks.class_ids[..., None], both.shape))
    assert all(len(set(row)) == 12 for row in both.reshape(-1, 12))
    assert np.allclose(read.tasks.measures["coarsity"], bed.tasks.measures["coarsity"])
    assert read.recipe["notes"] == [
        "The file holds support images only: 10 queries per class were drawn from its other images, with seed 0."
    ]
    again = testbeds.from_csv(text, dataset)
    same(read.tasks, again.tasks)
    same(testbeds.from_parquet(testbeds.to_parquet(read), dataset).tasks, read.tasks)


def test_ids_of_another_copy_are_set_aside_and_the_labels_decide() -> None:
    bed, dataset = make(table=False)
    frame = pd.read_csv(pd.io.common.StringIO(supports_only(bed, dataset)), index_col=0)
    beyond = [10**6, *frame["image_id"].iloc[1:]]
    read = testbeds.from_csv(supports_only(bed, dataset, image_id=beyond), dataset)
    whole = testbeds.from_csv(supports_only(bed, dataset), dataset)
    assert np.array_equal(np.sort(read.tasks.class_ids), np.sort(bed.tasks.class_ids))
    assert (read.tasks.support != whole.tasks.support).sum() == 1
    assert read.recipe["notes"][1].startswith("1 of its 18 image ids are of another class in this copy of Small")
    every = testbeds.from_csv(supports_only(bed, dataset, image_id=10**6), dataset)
    assert every.recipe["notes"][1].startswith("18 of its 18")
    of_image = dataset.image_class_ids()
    assert np.array_equal(of_image[every.tasks.support[:, :, 0]], every.tasks.class_ids)


def test_labels_count_through_the_benchmark_where_a_copy_lacks_classes() -> None:
    bed, dataset = make(table=False, n_tasks=8)
    text = supports_only(bed, dataset)
    gone = 3  # the second class of the split has no images in this copy
    classes = dataset.classes.assign(n_images=pd.array([12, 12, 12, 0, 12, 12], dtype="Int64"))
    copy = replace(dataset, classes=classes, splits={**dataset.splits, "test": np.array([2, 4, 5])})
    with_it = (bed.tasks.class_ids == gone).any(axis=1)
    assert 0 < with_it.sum() < 8
    read = testbeds.from_csv(text, copy)
    assert np.array_equal(read.tasks.class_ids, np.sort(bed.tasks.class_ids[~with_it], axis=1))
    assert (
        f"{with_it.sum()} of 8 tasks hold a class without images in Small and were excluded." in (read.recipe["notes"])
    )
    assert np.array_equal(
        np.sort(testbeds.from_csv(testbeds.to_csv(read, copy), copy).tasks.class_ids), read.tasks.class_ids
    )


def test_a_file_of_supports_without_an_image_left_is_refused() -> None:
    bed, dataset = make(table=False, n_shot=9)
    few = replace(dataset, classes=dataset.classes.assign(n_images=pd.array([9] * 6, dtype="Int64")))
    with pytest.raises(BadInput, match="has no image left for a query"):
        testbeds.from_csv(supports_only(bed, dataset), few)


def edited(change) -> tuple[str, object]:
    bed, dataset = make()
    frame = pd.read_csv(pd.io.common.StringIO(testbeds.to_csv(bed, dataset)), dtype=object)
    frame = change(frame, dataset)
    return frame.to_csv(index=False), dataset


def put(row: int, column: str, value) -> object:
    def change(frame: pd.DataFrame, dataset) -> pd.DataFrame:
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put(5, "labels", 4), r"Row 7: unknown class. labels must be 0 to 3"),
        (put(5, "labels", "dog"), r"Row 7: labels must be a whole number. Got 'dog'"),
        (put(2, "image_id", 99_999), r"Row 4: unknown image 99999"),
        (put(2, "image_id", ""), r"Row 4: image_id must be a whole number"),
        (put(3, "support", "maybe"), r"Row 5: support must be True or False. Got 'maybe'"),
        (put(3, "task", 1.5), r"Row 5: task must be a whole number"),
        (put(0, "support", "False"), r"uneven shots; class .* has 0 support images where others have 1"),
        (put(1, "support", "True"), r"Row 2: uneven shots; class .* has 2 support images where others have 1"),
        (put(4, "variance", 77), r"Row 6: variance 77 differs"),
        (put(4, "variance", "high"), r"Row 6: variance must be a number"),
        (lambda f, d: f.drop(index=range(4)), r"has 2 classes where others have 3"),
        (lambda f, d: f.drop(index=[7]), r"uneven shots; class .* has 2 query images where others have 3"),
        (lambda f, d: f.drop(columns="support"), r"Missing: support"),
        (lambda f, d: f.iloc[:0], r"no rows"),
    ],
)
def test_bad_rows_of_a_csv_are_named(change, message: str) -> None:
    text, dataset = edited(change)
    with pytest.raises(BadInput, match=message):
        testbeds.from_csv(text, dataset)


def test_an_image_of_another_class_is_named() -> None:
    def change(frame: pd.DataFrame, dataset) -> pd.DataFrame:
        frame.loc[6, "image_id"] = int(np.flatnonzero(dataset.image_class_ids() == 0)[0])
        return frame

    text, dataset = edited(change)
    with pytest.raises(BadInput, match=r"Row 8: image \d+ is of class 'dog', not"):
        testbeds.from_csv(text, dataset)


def test_overlap_of_support_and_query_is_named() -> None:
    def change(frame: pd.DataFrame, dataset) -> pd.DataFrame:
        frame.loc[1, "image_id"] = frame.loc[0, "image_id"]
        return frame

    text, dataset = edited(change)
    with pytest.raises(BadInput, match=r"Row 3: image \d+ is in both support and query \(the other one: Row 2\)"):
        testbeds.from_csv(text, dataset)


def test_bad_tasks_of_a_json_are_named() -> None:
    bed, dataset = make()
    good = json.loads(testbeds.to_json(bed, dataset))

    def refused(change, message: str) -> None:
        entries = json.loads(json.dumps(good))
        change(entries)
        with pytest.raises(BadInput, match=message):
            testbeds.from_json(json.dumps(entries), dataset)

    refused(lambda e: e[2]["Query"][1].__setitem__(0, "nowhere.png"), r"Task 2, Query row 1: unknown 'nowhere.png'")
    refused(lambda e: e[1]["Query"][0].__setitem__(0, e[1]["Query"][1][0]), r"Task 1, Query row 0: .* is of class")
    refused(
        lambda e: e[1]["Query"][0].__setitem__(0, e[1]["Support"][0][0]),
        r"Task 1, Query row 0: .* both support and query",
    )
    refused(lambda e: e[3]["Query"][2].pop(), r"Task 3, Support row 2: .* has 2 query images where others have 3")
    refused(lambda e: e[3].pop("Support"), r'Task 3: needs the keys "Support" and "Query"')
    refused(lambda e: e[0]["Support"].pop(), r"Task 0: .* Got 2 and 3")
    refused(lambda e: e[4]["Support"].__setitem__(0, "x"), r"Task 4, Support row 0: must be a list")
    with pytest.raises(BadInput, match="not readable JSON"):
        testbeds.from_json("{", dataset)
    with pytest.raises(BadInput, match="is a list"):
        testbeds.from_json("{}", dataset)


def test_a_testbed_of_another_dataset_is_refused() -> None:
    bed, _ = make()
    second = small_dataset(name="other")
    with pytest.raises(BadInput, match="belongs to dataset 'small', not to 'other'"):
        testbeds.from_parquet(testbeds.to_parquet(bed), second)


def test_a_parquet_file_that_is_no_testbed_is_refused(tmp_path: Path) -> None:
    _, dataset = make()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    for content in (b"not parquet", (tmp_path / "a.parquet").read_bytes()):
        with pytest.raises(BadInput, match="not a testbed of fsviz"):
            testbeds.from_parquet(content, dataset)


def test_a_tampered_native_file_is_checked_too() -> None:
    bed, dataset = make()
    support = bed.tasks.support.copy()
    support[2, 1, 0] = bed.tasks.query[2, 1, 0]
    tampered = Testbed("bed", Tasks(bed.tasks.class_ids, support, bed.tasks.query), RECIPE)
    with pytest.raises(BadInput, match=r"Task 2: image .* both support and query"):
        testbeds.from_parquet(testbeds.to_parquet(tampered), dataset)


def test_the_workspace_keeps_testbeds_by_name() -> None:
    bed, dataset = make()
    assert testbeds.list_testbeds() == []
    path = testbeds.save_testbed(bed)
    assert testbeds.list_testbeds() == ["bed"]
    same(testbeds.load_testbed("bed", dataset).tasks, bed.tasks)
    same(testbeds.load_testbed(path, dataset).tasks, bed.tasks)
    assert testbeds.read_recipe("bed")["sampler"] == "uniform"
    with pytest.raises(UnknownName, match="Did you mean 'bed'"):
        testbeds.load_testbed("bad", dataset)
    with pytest.raises(BadInput, match="testbed name"):
        testbeds.save_testbed(Testbed("../up", bed.tasks, RECIPE))
    with pytest.raises(BadInput, match="cannot be read"):
        testbeds.load_testbed("nowhere.csv", dataset)
    with pytest.raises(BadInput, match=r"ends in \.parquet"):
        testbeds.parse_testbed(b"", "bed.xlsx", dataset)
    testbeds.delete_testbed("bed")
    assert testbeds.list_testbeds() == []
