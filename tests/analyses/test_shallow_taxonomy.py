"""Folders in folders give groups of classes, not closeness, and the quarters of coarsity are made of these groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsviz import datasets
from fsviz.analyses import shallow_taxonomy as study
from fsviz.records import Dataset, Tasks
from fsviz.tasks import draw
from tests.taxonomy.test_everyday import folders


def grocery() -> Dataset:
    """26 classes in two levels of folders, all in one split."""
    dataset = folders({"fruit/apple": 6, "fruit/pear": 5, "fruit": 4, "food/milk": 6, "food": 5})
    return replace(dataset, splits={"test": np.arange(dataset.n_classes)})


def test_few_distances_of_folders_are_said_to_give_groups() -> None:
    dataset = grocery()
    distances = draw.class_distances(dataset, "test")
    n_values = len(np.unique(distances[np.triu_indices(26, 1)].round(6)))
    note = study.groups_note(dataset, "test", distances)
    assert note.startswith(f"Only {n_values} different distances for 325 pairs") and n_values <= 6
    assert "groups of classes, not closeness" in note
    many = np.random.default_rng(0).random((26, 26))
    assert study.groups_note(dataset, "test", many + many.T) == ""
    demo = datasets.load("demo")  # WordNet is deep, whatever the number of distances
    assert study.groups_note(demo, "test", draw.class_distances(demo, "test")) == ""


def test_quarters_name_the_share_of_tasks_inside_one_top_folder() -> None:
    dataset = grocery()
    fruit, mixed = [0, 1, 6], [0, 6, 20]
    tasks = Tasks(np.array([fruit] * 6 + [mixed] * 2), measures={"coarsity": np.arange(8.0)})
    sentence = study.composition(dataset, tasks)
    assert sentence == "Tasks inside one of the 2 top groups, finest to coarsest quarter: 100%, 100%, 100%, 0%."
    assert study.composition(dataset, Tasks(tasks.class_ids)) == ""
    demo = datasets.load("demo")
    assert study.composition(demo, tasks) == ""
