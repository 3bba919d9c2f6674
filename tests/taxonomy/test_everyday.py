"""Groups of classes by everyday names, and the most familiar class."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fsviz import datasets
from fsviz.taxonomy.everyday import OTHERS, everyday_groups, familiar_class
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


def test_the_familiar_class_is_the_shortest_word() -> None:
    assert familiar_class(["Norwegian elkhound", "wolf", "fox", "ox", "T-shirt"]) == 2
    assert familiar_class(["Fruit/Golden-Delicious", "Fruit/Kiwi", "Fruit/Lemon"]) == 1
    assert familiar_class(["n01_a", "b-2 c"]) == 0, "without any word the shortest"
