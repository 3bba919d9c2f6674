"""The first check of a dataset, on planted mistakes, and the neighbours of its own class against brute force."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features
from fsviz.analyses import image_check
from fsviz.datasets import image_folders
from fsviz.features import neighbours, store
from fsviz.records import Dataset
from tests.cli.calling import run_json
from tests.datasets.test_image_folders import folder_of, home, picture  # noqa: F401

pytestmark = pytest.mark.usefixtures("home")
STRANGER = 3  # an image of the first class that looks like the third


def planted(tmp_path: Path) -> Dataset:
    """Two folders called apple, a copy, a small class, and an image whose features are those of another class."""
    root = folder_of(tmp_path / "shop", {"bio/apple": 24, "plain/apple": 24, "plain/pear": 22, "plain/kiwi": 12})
    (root / "plain" / "pear" / "copy.png").write_bytes((root / "plain" / "kiwi" / "00.png").read_bytes())
    dataset = image_folders.register("shop", image_folders.inspect(root))
    class_ids = dataset.image_class_ids()
    looks = np.where(np.arange(len(class_ids)) == STRANGER, 2, class_ids)
    centres = np.eye(4, 16)
    centres[1] = 0.9 * centres[0] + 0.2 * centres[1]  # both apples look much the same
    values = centres[looks] + 0.15 * np.random.default_rng(0).normal(size=(len(looks), 16))
    key = {"version": store.VERSION, "dataset": "shop", "fingerprint": store.fingerprint(dataset), "backbone": "net"}
    store.save(key, "net", values.astype("f4"), np.arange(len(looks)), class_ids)
    return datasets.load("shop")


def test_planted_mistakes_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop = planted(tmp_path)
    names = shop.classes["class_name"]
    result = {finding.kind: finding for finding in image_check.check(shop, "net")}
    assert [names[c] for c in result["names"].class_ids] == ["bio/apple", "plain/apple"]
    assert result["names"].sentence == "1 name in several folders: 2 classes."
    assert result["copies"].n == 2 and "1 group in more than one class" in result["copies"].sentence
    assert [names[c] for c in result["small"].class_ids] == ["plain/kiwi"]
    assert result["strangers"].image_ids == (STRANGER,)
    row = result["strangers"].rows[0]
    assert row.image_ids[0] == STRANGER and row.captions[0] == "bio/apple" and set(row.captions[1:]) == {"kiwi"}
    printed = run_json(capsys, "check", "shop")
    assert printed["headline"] == "4 of 4 checks found something to look at."
    assert printed["findings"][3]["images"] == [STRANGER]


def test_without_features_there_are_three_checks_and_a_clean_set_passes(tmp_path: Path) -> None:
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 20, "cat": 20})))
    pets = datasets.load("pets")
    findings = image_check.check(pets)
    assert [finding.kind for finding in findings] == ["names", "copies", "small"]
    assert image_check.headline(findings) == "Nothing stands out in 3 checks."


def test_classes_of_one_name_are_told_apart_as_their_centres_do(tmp_path: Path) -> None:
    stored = features.load(planted(tmp_path), "net")
    values = np.asarray(stored.values, float)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    correct = []
    rows = np.flatnonzero(stored.class_ids < 2)
    for row in rows:
        rest = rows[rows != row]
        far = [((values[row] - values[rest[stored.class_ids[rest] == c]].mean(0)) ** 2).sum() for c in (0, 1)]
        correct.append(int(np.argmin(far)) == stored.class_ids[row])
    assert image_check.told_apart(stored, np.array([0, 1])) == pytest.approx(np.mean(correct))
    assert np.mean(correct) < 1


@pytest.mark.parametrize("rows", [16_384, 7])
def test_neighbours_of_its_own_class_are_those_of_brute_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    shop = planted(tmp_path)
    monkeypatch.setattr(neighbours, "_ROWS", rows)
    monkeypatch.setattr(neighbours, "_QUERIES", 11)
    near = neighbours.own_class_neighbours(shop, "net")
    class_ids = shop.image_class_ids()
    expected, cosines = neighbours.nearest_images(features.load(shop, "net"), np.arange(len(class_ids)), k=10)
    assert not near.is_sample and near.near.shape == expected.shape
    assert (np.sort(near.near) == np.sort(expected)).mean() > 0.99, "but for ties in float32"
    assert np.abs(near.counts - (class_ids[expected] == class_ids[:, None]).sum(axis=1)).max() <= 1
    assert np.isfinite(cosines).all()


def test_many_images_are_sampled_and_the_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = planted(tmp_path)
    monkeypatch.setattr(neighbours, "_MOST_PRODUCTS", 0)
    monkeypatch.setattr(neighbours, "_QUERIES", 20)
    near = neighbours.own_class_neighbours(shop, "net")
    assert near.is_sample and len(near.image_ids) == 20
    assert np.isnan(near.among(len(shop.image_class_ids()))).sum() == len(shop.image_class_ids()) - 20
    assert "sampled from" in image_check.check(shop, "net")[3].sentence


def test_a_copy_does_not_vouch_for_its_class(tmp_path: Path) -> None:
    """An image whose only look-alike of its class is its own copy is a stranger."""
    root = folder_of(tmp_path / "pets", {"dog": 20, "cat": 20})
    (root / "dog" / "copy.png").write_bytes((root / "dog" / "00.png").read_bytes())
    pets = image_folders.register("pets", image_folders.inspect(root))
    assert pets.images is not None
    copies = np.flatnonzero(pets.images["group"] == 0)
    class_ids = pets.image_class_ids()
    values = np.eye(2, 8)[class_ids] + 0.1 * np.random.default_rng(1).normal(size=(len(class_ids), 8))
    values[copies] = np.eye(2, 8)[1 - class_ids[copies]]
    key = {"version": store.VERSION, "dataset": "pets", "fingerprint": store.fingerprint(pets), "backbone": "net"}
    store.save(key, "net", values.astype("f4"), np.arange(len(class_ids)), class_ids)
    assert neighbours.own_class_neighbours(datasets.load("pets"), "net").strangers.tolist() == copies.tolist()
