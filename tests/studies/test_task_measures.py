"""Every measure of any tasks: what a dataset has decides which; inputs agree with the studies that first had them."""

from __future__ import annotations

import numpy as np
import pytest

from fsviz import datasets, features
from fsviz.analyses import class_splits, transfer
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import Missing
from fsviz.records import PAD, Tasks
from fsviz.studies import task_measures
from fsviz.tasks import draw
from tests.studies.toy_dataset import make_toy

BACKBONE = "efficientnet_lite0"


@pytest.fixture(scope="module")
def tasks() -> Tasks:
    settings = {"split": "test", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 12, "seed": 3}
    return draw.sample(datasets.load("demo"), sampler="uniform", **settings).tasks


def test_the_demo_has_every_measure(tasks: Tasks) -> None:
    dataset = datasets.load("demo")
    result = task_measures.measure_tasks(tasks, dataset, BACKBONE)
    assert list(result.columns) == list(MEASURES)
    assert np.isfinite(result.to_numpy()).all()
    assert task_measures.undefined_measures(tasks, dataset, BACKBONE) == {}
    table = features.load(dataset, BACKBONE)
    for name, measure in MEASURES.items():  # each alone as all together
        np.testing.assert_allclose(task_measures.measured(measure, tasks, dataset, table), result[name], rtol=1e-6)


def test_the_divergence_is_that_of_the_study_of_transfer(tasks: Tasks) -> None:
    dataset = datasets.load("demo")
    classes = class_splits.class_features(dataset, BACKBONE)
    train = dataset.splits["train"]
    expected = transfer.task_divergences(classes, train, tasks)["symmetric_kl"]
    np.testing.assert_allclose(task_measures.divergence_from(classes, train, tasks), expected, rtol=1e-9)
    fewer = Tasks(np.where(np.arange(4) < 3, tasks.class_ids, PAD))  # tasks of three classes, one place empty
    expected = transfer.task_divergences(classes, train, Tasks(tasks.class_ids[:, :3]))["symmetric_kl"]
    np.testing.assert_allclose(task_measures.divergence_from(classes, train, fewer), expected, rtol=1e-9)


def test_tasks_of_training_classes_have_no_divergence_from_them() -> None:
    dataset = datasets.load("demo")
    of_train = draw.sample(dataset, sampler="uniform", split="train", n_way=3, n_shot=1, n_query=2, n_tasks=2).tasks
    with pytest.raises(Missing, match="no training classes"):
        task_measures.measure_tasks(of_train, dataset, BACKBONE, ["train_distance"])


def test_what_a_plain_dataset_lacks_is_said_in_sentences() -> None:
    dataset = make_toy()
    sampled = draw.sample(dataset, sampler="uniform", n_way=3, n_shot=2, n_query=3, n_tasks=3).tasks
    why = task_measures.undefined_measures(sampled, dataset, "alpha_net")
    assert set(why) == {"attribute_gap", "context_overlap", "context_bias", "train_distance"}
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in why.values())
    assert set(task_measures.measure_tasks(sampled, dataset, "alpha_net")) == set(MEASURES) - set(why)
