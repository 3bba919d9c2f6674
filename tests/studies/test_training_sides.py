"""The training side of a split: by name, and in everything that uses it, on a saved split of a dataset with its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import class_splits
from fsviz.datasets import catalog, saved_splits
from fsviz.datasets.saved import save_dataset
from fsviz.errors import Missing
from fsviz.evaluation import evaluate as predict
from fsviz.records import Dataset, Tasks
from fsviz.records.class_splits import is_training_side, sibling, training_classes, training_side
from fsviz.studies import evaluate, stress_finetuning, support_sets, task_measures
from fsviz.tasks import draw, snapshot
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import open_link

MINE = {"train": [1, 3, 5, 7, 9, 11, 13], "val": [0, 2, 15], "test": [4, 6, 8, 10, 12, 14]}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """A dataset whose own sides are crossed by those of the saved split mine."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    own = {"train": np.arange(8), "val": np.arange(8, 11), "test": np.arange(11, 16)}
    dataset = save_dataset(replace(make_toy(), splits=own), overwrite=True)
    saved_splits.save_split(dataset, "mine", {side: np.array(ids) for side, ids in MINE.items()}, {})
    return datasets.load("toy")


def sampled(dataset: Dataset, split: str, n_tasks: int = 12) -> Tasks:
    shape = {"n_way": 3, "n_shot": 2, "n_query": 4, "n_tasks": n_tasks, "sampler": "uniform"}
    return draw.sample(dataset, split=split, **shape).tasks


def mean_of(dataset: Dataset, class_ids: list[int] | np.ndarray) -> np.ndarray:
    table = features.load(dataset, "alpha_net")
    return table.values[np.isin(table.class_ids, class_ids)].mean(0, dtype=float)


def test_names_say_which_splits_belong_together(toy) -> None:
    assert training_side(toy, "mine_test") == training_side(toy, "mine_val") == "mine_train"
    assert training_side(toy, "test") == training_side(toy, "val") == "train"
    assert [training_side(toy, split) for split in ("train", "mine_train", "all")] == [None, None, None]
    assert sibling(toy, "mine_test", "val") == "mine_val" and sibling(toy, "test", "val") == "val"
    renamed = replace(toy, splits={"images_background": np.arange(8), "images_evaluation": np.arange(8, 16)})
    assert training_side(renamed, "images_evaluation") == "images_background"
    renamed = replace(toy, splits={"Base": np.arange(8), "novel": np.arange(8, 16), "easy": np.arange(9, 12)})
    assert training_side(renamed, "novel") == training_side(renamed, "easy") == "Base"
    assert is_training_side("mine_train") and not is_training_side("mine_test") and not is_training_side("trained")
    overlapping = replace(toy, splits={"train": np.arange(12), "test": np.arange(10, 16)})
    assert training_side(overlapping, "test") is None


def test_no_training_side_of_a_benchmark_shares_a_class_with_its_split() -> None:
    sides = {}
    for name in catalog.ENTRIES:
        dataset = catalog.load_entry(name)
        for split in (*dataset.splits, "all"):
            sides[name, split] = side = training_side(dataset, split)
            if side is not None:
                shared = np.intersect1d(dataset.split_class_ids(side), dataset.split_class_ids(split))
                assert len(shared) == 0, (name, split)
    assert sides["cifar100", "fc100_test"] == "fc100_train" and sides["cifar100", "test"] == "train"
    assert sides["mscoco", "test"] is None


def test_tasks_have_the_training_classes_of_their_split_else_of_their_classes(toy) -> None:
    inside_own_test = np.array([[12, 14]])  # of both test and mine_test
    own, mine = toy.split_class_ids("train"), toy.split_class_ids("mine_train")
    assert np.array_equal(training_classes(toy, Tasks(inside_own_test, split="mine_test")), mine)
    assert np.array_equal(training_classes(toy, Tasks(inside_own_test, split="test")), own)
    assert np.array_equal(training_classes(toy, Tasks(inside_own_test)), own)
    assert np.array_equal(training_classes(toy, Tasks(np.array([[9, 12]]))), own)  # val and test
    assert np.array_equal(training_classes(toy, Tasks(np.array([[4, 12, -1]]))), mine)  # 4 is in the own train
    assert training_classes(toy, Tasks(np.array([[4, 5]]))) is None
    assert training_classes(toy, Tasks(inside_own_test, split="all")) is None
    tasks = sampled(toy, "mine_test")
    assert tasks.split == tasks.take(slice(0, 1)).split == "mine_test"


def test_simpleshot_on_a_saved_test_side_is_centred_on_its_training_side_only(toy) -> None:
    run = jobs.run_in_foreground(
        {
            "study": "evaluate",
            "dataset": "toy",
            "backbones": ["alpha_net"],
            "methods": ["simpleshot"],
            "sampler": {
                "sampler": "uniform",
                "split": "mine_test",
                "n_way": 4,
                "n_shot": 2,
                "n_query": 4,
                "n_tasks": 30,
            },
            "device": "cpu",
        }
    )
    tasks = snapshot.tasks(jobs.folder(run.id))
    table, centre = features.load(toy, "alpha_net"), mean_of(toy, MINE["train"])
    np.testing.assert_allclose(evaluate.centre_for("simpleshot", toy, table, tasks), centre, rtol=1e-5)
    expected = predict(table, tasks, "simpleshot", centre=centre)
    saved = evaluate.predictions(jobs.spec(run.id), jobs.chunks(run.id), 0)
    single = evaluate.predict_tasks(toy, "alpha_net", "simpleshot", {}, tasks.take(slice(7, 8)))
    np.testing.assert_allclose(saved.confidence, expected.confidence, atol=1e-5)
    np.testing.assert_allclose(single.confidence, expected.confidence[7:8], atol=1e-5)
    uncentred = predict(table, tasks, "simpleshot")
    assert np.abs(uncentred.confidence - expected.confidence).max() > 1e-3  # the centre matters here


def test_hard_supports_of_a_saved_split_are_centred_on_its_training_side(toy) -> None:
    spec = support_sets.check(
        {"dataset": "toy", "backbone": "alpha_net", "split": "mine_test", "classifier": "simpleshot", "n_way": 3}
        | {"n_shot": 2, "n_query": 4, "n_tasks": 6}
    )
    tasks, table = support_sets.sample_tasks(spec)
    expected = predict(table, tasks, "simpleshot", centre=mean_of(toy, MINE["train"]))
    classified = support_sets.classify(spec, table, replace(tasks, split=""))
    np.testing.assert_allclose(classified.confidence, expected.confidence, atol=1e-5)


def test_the_distance_from_training_classes_is_measured_on_saved_splits(toy) -> None:
    tasks = sampled(toy, "mine_test")
    table = task_measures.measure_tasks(tasks, toy, "alpha_net", ["train_distance"])
    classes = class_splits.class_features(toy, "alpha_net")
    expected = task_measures.divergence_from(classes, np.array(MINE["train"]), tasks)
    np.testing.assert_allclose(table["train_distance"], expected, rtol=1e-9)
    with pytest.raises(Missing, match="no training classes"):
        task_measures.measure_tasks(sampled(toy, "mine_train"), toy, "alpha_net", ["train_distance"])


def test_validation_tasks_of_a_saved_split_hold_none_of_its_test_classes(toy) -> None:
    base = {"dataset": "toy", "backbone": "alpha_net", "split": "mine_test", "n_way": 3, "n_shot": 2, "n_query": 4}
    spec = {"dataset": "toy", "finetuning_validation": 8, "seed": 0}
    tasks = stress_finetuning._validation_tasks(spec, support_sets.check({**base, "n_tasks": 8}), "alpha_net")
    assert set(tasks.class_ids.ravel()) == set(MINE["val"])


def test_the_page_confusion_opens_with_the_training_side_of_a_saved_split(toy) -> None:
    page = open_link("confusion", "toy", split="mine_test", show="Training classes")
    assert not page.error and page.selectbox(key="base").value == "mine_train"
    assert "--base mine_train" in page.code[0].value
    page = open_link("confusion", "toy", split="test", show="Training classes")
    assert page.selectbox(key="base").value == "train"
