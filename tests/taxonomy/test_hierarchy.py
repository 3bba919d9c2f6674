from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fsviz import datasets
from fsviz.datasets import sizes
from fsviz.figures import overview as figures
from fsviz.taxonomy import hierarchy


@pytest.mark.parametrize("name", ["mini_imagenet", "df20", "dtd", "cifar100", "digits"])
def test_the_hierarchy_holds_every_class_once(name: str) -> None:
    dataset = datasets.load(name)
    tree = hierarchy.class_hierarchy(dataset)
    assert tree.n_classes[0] == dataset.n_classes
    assert len(set(tree.ids)) == len(tree.ids)
    assert set(dataset.classes["class_name"]) <= set(tree.labels)
    place = {node: i for i, node in enumerate(tree.ids)}
    below = np.zeros(len(tree.ids), dtype=int)
    for i, parent in enumerate(tree.parents):
        if parent is not None:
            assert place[parent] < i
            below[place[parent]] += tree.n_classes[i]
    inner = below > 0
    assert (np.asarray(tree.n_classes)[inner] >= below[inner]).all()


def test_tiered_imagenet_keeps_train_and_test_apart_and_mini_does_not() -> None:
    """The reason tieredImageNet exists: its test classes have no close relatives among the training classes."""

    def share_of_pure_parents(name: str) -> float:
        tree = hierarchy.class_hierarchy(datasets.load(name))
        inner = {p for p in tree.parents if p is not None}
        kinds = [split for node, split in zip(tree.ids, tree.split) if node in inner]
        return sum(kind != "mixed" for kind in kinds) / len(kinds)

    assert share_of_pure_parents("tiered_imagenet") > 0.75
    assert share_of_pure_parents("mini_imagenet") < 0.5


def test_class_sizes_count_every_class() -> None:
    for name in ("tiered_imagenet", "quickdraw", "mini_imagenet", "fungi"):
        dataset = datasets.load(name)
        histogram = sizes.class_sizes(dataset)
        assert sum(int(n.sum()) for n in histogram.bars.values()) == dataset.n_classes
        assert figures.plot_class_sizes(histogram).data
    assert sizes.class_sizes(datasets.load("df20")) is None


def test_bars_of_class_sizes_stand_at_whole_numbers_and_say_them() -> None:
    demo = datasets.load("demo")
    few = replace(demo, classes=demo.classes.assign(n_images=[14, 15, 17, *[14] * (demo.n_classes - 3)]))
    bar = figures.plot_class_sizes(sizes.class_sizes(few)).data[0]
    assert list(bar.x) == [14, 15, 16, 17] and [text for _, text in bar.customdata] == ["14", "15", "16", "17"]
    wide = replace(demo, classes=demo.classes.assign(n_images=range(10, 10 + demo.n_classes)))
    histogram = sizes.class_sizes(wide, n_bins=2)
    text = [text for _, text in figures.plot_class_sizes(histogram).data[0].customdata]
    assert text == ["10 to 62", "63 to 116"] and histogram.edges.tolist() == [9.5, 63, 116.5]


def test_sampled_images_are_of_different_classes_and_repeat() -> None:
    demo = datasets.load("demo")
    ids = sizes.sample_image_ids(demo, 12)
    assert len(set(demo.image_class_ids()[ids])) == 12
    assert ids.tolist() == sizes.sample_image_ids(demo, 12).tolist()


def test_sampled_images_are_spread_over_the_given_classes() -> None:
    demo = datasets.load("demo")
    ids = sizes.sample_image_ids(demo, 10, classes=[3, 7, 9])
    counts = np.bincount(demo.image_class_ids()[ids], minlength=demo.n_classes)
    assert len(set(ids.tolist())) == 10 and sorted(counts[[3, 7, 9]].tolist()) == [3, 3, 4]
    assert counts.sum() == 10
    few = sizes.sample_image_ids(demo, 10_000, classes=[3])
    assert sorted(few.tolist()) == np.flatnonzero(demo.image_class_ids() == 3).tolist()


@pytest.mark.parametrize("name", ["demo", "digits", "cifar100"])
def test_the_classes_below_a_box_are_those_it_counts(name: str) -> None:
    dataset = datasets.load(name)
    tree = hierarchy.class_hierarchy(dataset)
    for node, n_classes in zip(tree.ids, tree.n_classes, strict=True):
        assert len(set(tree.classes_below(node))) == n_classes
    leaves = [i for i, class_id in enumerate(tree.class_ids) if class_id >= 0]
    names = dataset.classes["class_name"].tolist()
    assert all(tree.labels[i] == names[tree.class_ids[i]] for i in leaves)
    assert sorted(tree.class_ids[i] for i in leaves) == list(range(dataset.n_classes))


def test_the_tree_map_says_which_colour_is_which_split_where_there_are_several() -> None:
    def key(name: str) -> str:
        figure = figures.plot_hierarchy(hierarchy.class_hierarchy(datasets.load(name)))
        return " ".join(note.text for note in figure.layout.annotations)

    assert all(split in key("demo") for split in ("train", "val", "test", "several splits"))
    assert key("df20").endswith("split test") and "train" not in key("df20")
