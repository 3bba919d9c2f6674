"""Groups of classes by everyday names, and the most familiar class."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.records import Dataset
from fsviz.taxonomy.everyday import OTHERS, even_groups, everyday_groups, familiar_class
from fsviz.taxonomy.superclasses import superclasses


def test_classes_of_wordnet_are_in_groups_that_people_name() -> None:
    demo = datasets.load("demo")
    groups = dict(zip(demo.classes["class_name"], everyday_groups(demo, np.arange(demo.n_classes), 15), strict=True))
    assert [groups[name] for name in ("dog", "wolf", "owl", "bee", "shark")] == [
        "mammals",
        "mammals",
        "birds",
        "insects",
        "fish",
    ]
    assert [groups[name] for name in ("bicycle", "taxi", "guitar", "hammer", "doughnut", "lemon")] == [
        "vehicles",
        "vehicles",
        "musical instruments",
        "tools",
        "food",
        "food",
    ]


@pytest.mark.parametrize("name", ["demo", "tiered_imagenet", "imagenet1k", "cifar100", "omniglot"])
@pytest.mark.parametrize("n_groups", [3, 8])
def test_small_groups_beyond_the_limit_are_others(name: str, n_groups: int) -> None:
    dataset = datasets.load(name)
    class_ids = dataset.split_class_ids("test" if "test" in dataset.splits else "all")
    sizes = Counter(everyday_groups(dataset, class_ids, n_groups))
    assert 2 <= len(sizes) <= n_groups and sum(sizes.values()) == len(class_ids)
    if name in ("demo", "tiered_imagenet", "imagenet1k"):
        all_sizes = Counter(everyday_groups(dataset, class_ids, 100))
        smallest = min(n for group, n in sizes.items() if group != OTHERS)
        assert all(n <= smallest for group, n in all_sizes.items() if group not in sizes)


def test_a_taxonomy_without_wordnet_gives_its_own_concepts() -> None:
    dataset = datasets.load("cifar100")
    class_ids = dataset.split_class_ids("test")
    assert set(everyday_groups(dataset, class_ids, 8)) - {OTHERS} <= set(superclasses(dataset, class_ids, n_groups=8))


def folders(sizes: dict[str, int]) -> Dataset:
    """A dataset of nested folders with so many classes in each."""
    names = [f"{folder}/c{n}" for folder, size in sizes.items() for n in range(size)]
    parents = sorted({"/".join(name.split("/")[:i]) for name in names for i in range(1, name.count("/") + 1)})
    edges = [(node, node.rpartition("/")[0] or "top") for node in [*parents, *names]]
    classes = pd.DataFrame({"class_name": names, "split": "all", "n_images": 24, "node": names})
    node_names = {node: node.rpartition("/")[2] for node in [*parents, *names]}
    taxonomy = pd.DataFrame(edges, columns=["child", "parent"])
    return Dataset("toy", "Toy", classes, {}, taxonomy=taxonomy, node_names=node_names)


def test_the_largest_groups_are_divided_until_about_ten_are_even() -> None:
    sizes = {"fruit/apple": 12, "fruit/pear": 8, "fruit": 14, "food/milk": 10, "food/juice": 9, "roots": 5}
    dataset = folders(sizes)
    class_ids = np.arange(dataset.n_classes)
    assert max(Counter(everyday_groups(dataset, class_ids, 3)).values()) > 0.5 * len(class_ids)
    groups = Counter(even_groups(dataset, class_ids, 6))
    assert groups == {"other fruit": 14, "apple": 12, "milk": 10, "juice": 9, "pear": 8, "roots": 5}
    assert sum(Counter(even_groups(dataset, class_ids, 3)).values()) == len(class_ids)


@pytest.mark.parametrize("name", ["demo", "fruit", "imagenet1k", "cifar100"])
def test_even_groups_are_at_most_so_many_and_not_less_even(name: str) -> None:
    dataset = datasets.load(name)
    class_ids = np.arange(dataset.n_classes)
    even, everyday = (Counter(groups(dataset, class_ids, 10)) for groups in (even_groups, everyday_groups))
    assert 2 <= len(even) <= 10 and sum(even.values()) == dataset.n_classes
    sizes = [size for group, size in even.items() if group != OTHERS]
    assert max(sizes) <= max(size for group, size in everyday.items() if group != OTHERS)


def test_the_familiar_class_is_the_shortest_word() -> None:
    assert familiar_class(["Norwegian elkhound", "wolf", "fox", "ox", "T-shirt"]) == 2
    assert familiar_class(["Fruit/Golden-Delicious", "Fruit/Kiwi", "Fruit/Lemon"]) == 1
    assert familiar_class(["n01_a", "b-2 c"]) == 0, "without any word the shortest"
