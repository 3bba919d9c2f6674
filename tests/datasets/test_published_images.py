"""Images on disk for benchmarks that ship as class tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets
from fsviz.datasets import published_images
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.dag import split_dag
from tests.cli.calling import fails, run_json
from tests.datasets.test_image_folders import home, picture  # noqa: F401


def folders(root: Path, *names: str, n: int = 2) -> Path:
    for name in names:
        for i in range(n):
            path = root / name / f"{i}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture(path)
    return root


def test_folders_of_synsets_take_the_benchmarks_ids_splits_and_taxonomy(tmp_path: Path, home: Path, capsys) -> None:  # noqa: F811
    parent = datasets.load("tiered_imagenet")
    test = parent.splits["test"][:3].tolist()
    train = parent.splits["train"][:2].tolist()
    root = folders(tmp_path / "train", *parent.classes["node"].iloc[[*test, *train]], "n00000000", "holiday")
    captured = run_json(capsys, "add", "tiered_imagenet", str(root))
    assert captured["name"] == "my_tiered_imagenet" and captured["n_images"] == 10
    assert set(captured["unknown"]) == {"n00000000", "holiday"} and len(captured["missing"]) == 603
    mine = datasets.load("my_tiered_imagenet")
    assert {s: ids.tolist() for s, ids in mine.splits.items()} == {"train": sorted(train), "test": sorted(test)}
    assert mine.classes["node"].tolist() == parent.classes["node"].tolist()
    assert sorted(set(mine.image_class_ids().tolist())) == sorted([*test, *train])
    assert split_dag(mine, "test").n_classes == 3
    assert datasets.open_image(mine, 0).size[0] > 0


def test_names_numbers_and_like(tmp_path: Path, home: Path, capsys) -> None:  # noqa: F811
    root = folders(tmp_path / "signs", "00000", "00014", "Stop sign somewhere")
    captured = run_json(capsys, "add", "signs", str(root), "--like", "traffic_sign")
    assert captured["n_classes"] == 2 and captured["unknown"] == ["Stop sign somewhere"]
    assert "no images there" in captured["problems"][0]["message"]
    sentence = fails(capsys, "add", "other", str(folders(tmp_path / "b", "x", "y")), "--like", "dtd")
    assert "is a class of Describable Textures" in sentence
    assert "nonsense" in fails(capsys, "add", "other", str(root), "--like", "nonsense")


@pytest.mark.parametrize(
    ("benchmark", "folder", "class_name"),
    [
        ("tiered_imagenet", "n01530575", "brambling"),
        ("mini_imagenet", "house finch", "house finch"),
        ("mini_imagenet", "House_Finch", "house finch"),
        ("cu_birds", "190.Red_cockaded_Woodpecker", "190.Red_cockaded_Woodpecker"),
        ("cu_birds", "Red cockaded Woodpecker", "190.Red_cockaded_Woodpecker"),
        ("omniglot", "Anglo-Saxon_Futhorc/character01", "Anglo-Saxon_Futhorc-character01"),
        ("quickdraw", "police_car", "police car"),
    ],
)
def test_spellings_of_folders(benchmark: str, folder: str, class_name: str) -> None:
    parent = datasets.load(benchmark)
    result = published_images.match_folders(parent, [folder])
    assert parent.classes["class_name"].iat[result.class_ids[folder]] == class_name


def test_every_class_of_every_benchmark_is_found_by_its_own_name() -> None:
    for name in datasets.shipped_names():
        parent = datasets.load(name)
        if parent.has_pixels:
            continue
        names = parent.classes["class_name"].astype(str)
        result = published_images.match_folders(parent, names)
        wrong = [n for i, n in enumerate(names) if result.class_ids.get(n) != i]
        assert len(wrong) <= 0.01 * len(names), (name, wrong[:5])


def test_a_split_that_is_only_all_becomes_what_is_present(tmp_path: Path, home: Path, capsys) -> None:  # noqa: F811
    root = folders(tmp_path / "train", "n01440764", "n01443537")
    run_json(capsys, "add", "imagenet1k", str(root))
    mine = datasets.load("my_imagenet1k")
    assert list(mine.splits) == ["present"] and np.array_equal(mine.splits["present"], [0, 1])


@pytest.mark.parametrize(
    ("benchmark", "class_name", "gloss"),
    [
        ("cu_birds", "085.Horned_Lark", "Old World birds noted for their singing"),
        ("cu_birds", "048.European_Goldfinch", "small European finch"),
        ("vgg_flower", "008.bird of paradise", "South Africa"),
        ("quickdraw", "door", "swinging or sliding barrier"),
    ],
)
def test_class_names_have_the_sense_that_pictures_show(benchmark: str, class_name: str, gloss: str) -> None:
    classes = datasets.load(benchmark).classes
    node = classes.loc[classes["class_name"] == class_name, "node"].iat[0]
    assert gloss in wordnet.sense(node).gloss
