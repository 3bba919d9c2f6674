"""Concepts as sets of classes: a graph by hand, and Meta-Dataset's own splits of ImageNet and Omniglot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.taxonomy import class_concepts, span
from fsviz.taxonomy.concepts import concepts


def sets_of(edges: str, classes: str) -> tuple[set[str], bool]:
    """The classes of every concept of a graph, edges written as child-parent; and whether it has two levels."""
    table = pd.DataFrame([edge.split("-") for edge in edges.split()], columns=["child", "parent"])
    names = classes.split()
    held, two_levels = concepts(span(table, names, np.ones(len(names)), "all_paths"))
    result = [" ".join(np.array(names)[row]) for row in held]
    assert len(result) == len(set(result))
    return set(result), two_levels


def test_concepts_of_a_graph_by_hand() -> None:
    # top - animal - {canine - {dog, wolf}, feline - cat, pet - {dog, cat}}: the single child of top says nothing new,
    # pet is reached by the second parent of dog and cat
    edges = "animal-top canine-animal feline-animal pet-animal dog-canine wolf-canine cat-feline dog-pet cat-pet"
    assert sets_of(edges, "dog wolf cat") == ({"dog wolf cat", "dog wolf", "cat", "dog cat"}, False)
    # of dog and wolf alone the lowest concept is canine: pet, which is not below it, is no concept of theirs
    assert sets_of(edges, "dog wolf") == ({"dog wolf"}, False)
    # a class that others are below is in the set of its own concept
    assert sets_of("dog-top cat-top pug-dog lab-dog", "dog cat pug lab") == ({"dog cat pug lab", "dog pug lab"}, False)


def test_groups_of_one_level_stand_without_their_root() -> None:
    assert sets_of("latin-all greek-all a-latin b-latin alpha-greek", "a b alpha") == ({"a b", "alpha"}, True)
    assert sets_of("latin-all a-latin b-latin", "a b") == ({"a b"}, True)
    assert sets_of("latin-all a-latin b-latin c-all", "a b c") == ({"a b c", "a b"}, False)
    assert sets_of("a-all b-all", "a b") == ({"a b"}, False)


@pytest.mark.parametrize(("split", "n_eligible", "largest"), [("train", 113, 392), ("val", 18, 158), ("test", 15, 130)])
def test_meta_datasets_limit_of_392_is_what_lets_every_class_of_imagenet_be_drawn(
    split: str, n_eligible: int, largest: int
) -> None:
    """Meta-Dataset chose 392 as the least number of classes of a concept that leaves no training class out."""
    held, two_levels = class_concepts(datasets.load("ilsvrc_2012"), split)
    sizes = held.sum(axis=1)
    enough = sizes >= 5
    smallest = np.where(held[enough], sizes[enough][:, None], np.inf).min(axis=0)  # concept that holds a class
    assert smallest.max() == largest and not two_levels
    assert (enough & (sizes <= 392)).sum() == n_eligible


def test_the_concepts_of_omniglot_are_its_alphabets() -> None:
    omniglot = datasets.load("omniglot")
    for split, n_alphabets in (("train", 25), ("val", 5), ("test", 20)):
        held, two_levels = class_concepts(omniglot, split)
        assert two_levels and len(held) == n_alphabets and (held.sum(axis=0) == 1).all()
        names = omniglot.classes["class_name"].to_numpy()[omniglot.split_class_ids(split)]
        for row in held:
            assert len({name.rsplit("-", 1)[0] for name in names[row]}) == 1
