from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fsviz import datasets
from fsviz.datasets.catalog import ENTRIES, check_class_table, load_entry, read_class_table
from fsviz.datasets.sizes import split_by_size
from fsviz.errors import BadInput, Missing, UnknownName

COUNTS = {
    "tiered_imagenet": {"train": 351, "val": 97, "test": 160},
    "mini_imagenet": {"train": 64, "val": 16, "test": 20},
    "imagenet1k": {"all": 1000},
    "df20": {"test": 1604},
    "cifar100": {"train": 64, "val": 16, "test": 20, "fc100_train": 60, "fc100_val": 20, "fc100_test": 20},
    "omniglot": {"train": 883, "val": 81, "test": 659},
    "aircraft": {"train": 70, "val": 15, "test": 15},
    "cu_birds": {"train": 140, "val": 30, "test": 30},
    "dtd": {"train": 33, "val": 7, "test": 7},
    "quickdraw": {"train": 241, "val": 52, "test": 52},
    "fungi": {"train": 994, "val": 200, "test": 200},
    "vgg_flower": {"train": 71, "val": 15, "test": 16},
    "traffic_sign": {"test": 43},
    "mscoco": {"val": 40, "test": 40},
    "ilsvrc_2012": {"train": 712, "val": 158, "test": 130},
    "metacoco": {"train": 15, "val": 3, "test": 5},
}


def test_the_catalog_has_the_sixteen_benchmarks() -> None:
    assert set(COUNTS) == set(ENTRIES)
    assert set(ENTRIES) <= set(datasets.names())


@pytest.mark.parametrize("name", COUNTS)
def test_class_counts_and_splits(name: str) -> None:
    dataset = load_entry(name)
    assert {split: len(ids) for split, ids in dataset.splits.items()} == COUNTS[name]
    assert dataset.classes["class_name"].is_unique
    assert dataset.source
    assert dataset.licence
    assert dataset.summary


@pytest.mark.parametrize("name", [n for n, e in ENTRIES.items() if e.taxonomy])
def test_every_class_reaches_one_root(name: str) -> None:
    dataset = load_entry(name)
    up = dataset.taxonomy.groupby("child")["parent"].agg(list).to_dict()
    roots = set()
    for node in dataset.classes["node"]:
        assert node in up
        while node in up:
            node = up[node][0]
        roots.add(node)
    assert len(roots) == 1
    assert set(dataset.node_names) == set(dataset.taxonomy["child"]) | set(dataset.taxonomy["parent"])


def test_fc100_never_parts_a_superclass() -> None:
    dataset = load_entry("cifar100")
    parent = dataset.taxonomy.set_index("child")["parent"]
    superclass = dataset.classes["node"].map(parent)
    assert superclass.value_counts().tolist() == [5] * 20
    held = {split: set(superclass.iloc[dataset.splits[f"fc100_{split}"]]) for split in ("train", "val", "test")}
    assert {split: len(s) for split, s in held.items()} == {"train": 12, "val": 4, "test": 4}
    assert not held["train"] & held["test"]


def test_known_classes_stand_at_their_wordnet_node() -> None:
    mini = load_entry("mini_imagenet").classes.set_index("class_name")
    assert mini.loc["house finch", "node"] == "n01532829"
    assert mini.loc["house finch", "split"] == "train"
    assert load_entry("tiered_imagenet").n_images == 779_164


def test_metacoco_contexts_add_up_to_the_classes() -> None:
    dataset = load_entry("metacoco")
    assert dataset.contexts["context"].nunique() == 69
    total = dataset.contexts.groupby("class_id")["n_images"].sum()
    assert total.tolist() == dataset.classes["n_images"].tolist()
    sizes = dataset.classes.groupby("split")["n_images"]
    assert sizes.min()["train"] >= sizes.max()["test"] >= sizes.max()["val"]
    by_size = split_by_size(dataset.classes["n_images"].to_numpy())
    assert by_size.tolist() == dataset.classes["split"].tolist()
    assert Counter(split_by_size(list(range(100)))) == {"train": 64, "test": 20, "val": 16}


def test_titles_are_known_without_reading_the_tables() -> None:
    for name in datasets.names():
        assert datasets.title(name) == datasets.load(name).title


def test_unknown_dataset_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="'tiered_imagenet'"):
        datasets.load("tieredimagenet")


def test_a_benchmark_without_pixels_says_how_to_add_them() -> None:
    with pytest.raises(Missing, match="fsviz add"):
        datasets.open_image(load_entry("dtd"), 0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class_name,n_images\na,1\n", "'split' is missing"),
        ("class_name,split,split\na,x,y\n", "column 'split' is there twice"),
        ("class_name,split\na,x\na,y\n", "'a' stands again in row 3"),
        ("class_name,split,n_images\na,x,many\n", r"Row 2 \('a'\) has 'many'"),
        ("class_name,split,n_images\na,x,-4\n", "whole number"),
        ("", "cannot be read"),
    ],
)
def test_a_wrong_class_table_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=sentence):
        read_class_table(path)


def test_a_class_table_may_leave_counts_and_nodes_out(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("class_name,split\nNA,train\nnull,test\n")
    table = read_class_table(path)
    assert table["class_name"].tolist() == ["NA", "null"]
    assert table["n_images"].isna().all()
    assert check_class_table(table.astype({"n_images": object}).assign(n_images=""), "again").equals(table)
