"""The built-in photographs: what they hold, their places in WordNet, and that no two are the same picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz import datasets
from fsviz.analyses import headline
from fsviz.datasets import duplicates, pixel_attributes
from fsviz.datasets.fruit import FOLDER, open_fruit_image
from fsviz.errors import UnknownName
from fsviz.features import maps
from fsviz.taxonomy.places import place_in_taxonomy


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_every_class_has_as_many_photographs() -> None:
    dataset = datasets.load("fruit")
    assert dataset.classes["n_images"].tolist() == [56] * 14
    assert np.bincount(dataset.image_class_ids()).tolist() == [56] * 14
    assert dataset.split_class_ids("test").tolist() == list(range(14))
    assert dataset.capabilities == ("taxonomy", "attributes", "images", "features")
    assert set(dataset.images["published split"]) == {"train", "val", "test"}


def test_every_class_is_a_fruit_in_wordnet() -> None:
    dataset = datasets.load("fruit")
    for class_id, name in enumerate(dataset.classes["class_name"]):
        place = place_in_taxonomy(dataset, class_id)
        assert place is not None
        assert "edible fruit" in place.path, name


def test_photographs_are_colour_pictures_of_the_stated_size() -> None:
    images = [open_fruit_image(image_id) for image_id in range(0, 784, 97)]
    assert {image.mode for image in images} == {"RGB"}
    assert {min(image.size) for image in images} == {224}
    with pytest.raises(UnknownName, match="0 to 783"):
        open_fruit_image(784)


def test_no_two_photographs_are_copies() -> None:
    side = (duplicates.SIDE, duplicates.SIDE)
    glimpses = [np.asarray(open_fruit_image(i).resize(side, Image.Resampling.BOX)) for i in range(784)]
    assert (duplicates.find_copies(np.stack(glimpses)) == -1).all()


def test_attributes_are_those_of_the_pixels() -> None:
    dataset = datasets.load("fruit")
    for image_id in (0, 300, 783):
        expected = pixel_attributes.measure_image(datasets.open_image(dataset, image_id))
        saved = dataset.images.loc[image_id, list(pixel_attributes.NAMES)].to_numpy(float)
        assert np.allclose(saved, expected, atol=1e-4)


def test_the_licence_ships() -> None:
    assert "Marcus Klasson" in (FOLDER / "LICENSE").read_text(encoding="utf-8")


def test_a_map_ships(home: Path) -> None:
    stored = maps.find(datasets.load("fruit"), "efficientnet_lite0")
    assert stored is not None
    assert len(stored.image_ids) == 784
    assert not home.exists()


def test_random_tasks_leave_room_for_better_and_worse(home: Path) -> None:
    """1-shot ProtoNet is far from chance and from the ceiling: 69.7% was measured on all 1,393 photographs."""
    contrast = headline.contrast(datasets.load("fruit"))
    mean, half = contrast.mean
    assert half < 0.02
    assert 0.66 < mean < 0.73
