"""Filters and orders of the page Images, against a table small enough to check by eye."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.datasets import filtering
from fsviz.datasets.filtering import BY_CLASS, SHUFFLED, ImageFilter, select_images
from fsviz.errors import Missing, UnknownName
from fsviz.records import Dataset


@pytest.fixture
def toy() -> Dataset:
    classes = pd.DataFrame(
        {"class_name": ["a", "b", "c"], "split": ["train", "test", "test"], "n_images": 2, "node": ""}
    )
    images = pd.DataFrame(
        {
            "class_id": [2, 0, 1, 0, 2, 1],
            "path": list("uvwxyz"),
            "context": ["grass", "sand", "grass", "", "sand", "grass"],
            "blur": [0.5, np.nan, 0.1, 0.9, 0.1, 0.3],
            "night": pd.array([True, False, None, True, False, False], dtype="boolean"),
            "style": ["x", "y", "x", None, "y", "x"],
        }
    )
    splits = {"train": np.array([0]), "test": np.array([1, 2])}
    return Dataset("toy", "Toy", classes, splits, images=images, attributes=("blur", "night", "style"), origin="folder")


def ids(dataset: Dataset, order: str = BY_CLASS, **target: object) -> list[int]:
    return select_images(dataset, ImageFilter(**target), order).tolist()  # type: ignore[arg-type]


def test_each_filter_alone_and_together(toy: Dataset) -> None:
    assert ids(toy) == [1, 3, 2, 5, 0, 4]
    assert ids(toy, split="test") == [2, 5, 0, 4]
    assert ids(toy, class_ids=[0]) == [1, 3]
    assert ids(toy, contexts=["grass"]) == [2, 5, 0]
    assert ids(toy, attributes={"blur": (0.1, 0.3)}) == [2, 5, 4], (
        "a range includes its ends and leaves out the unknown"
    )
    assert ids(toy, attributes={"night": [False]}) == [1, 5, 4]
    assert ids(toy, attributes={"style": ["y"]}) == [1, 4]
    assert ids(toy, split="test", contexts=["grass"], attributes={"style": ["x"], "blur": (0.2, 1.0)}) == [5, 0]
    assert ids(toy, split="train", contexts=["grass"]) == []


def test_orders(toy: Dataset) -> None:
    assert ids(toy, "blur") == [2, 4, 5, 0, 3, 1], "images without a value come last"
    assert ids(toy, "style") == [0, 2, 5, 1, 4, 3]
    assert sorted(ids(toy, SHUFFLED)) == list(range(6))
    assert ids(toy, SHUFFLED) == ids(toy, SHUFFLED)
    with pytest.raises(UnknownName, match="attribute"):
        ids(toy, "size")
    with pytest.raises(UnknownName, match="split"):
        ids(toy, split="dev")


def test_attribute_values_and_rows(toy: Dataset) -> None:
    assert filtering.attribute_values(toy, "blur") == (0.1, 0.9)
    assert filtering.attribute_values(toy, "night") == [False, True]
    assert filtering.attribute_values(toy, "style") == ["x", "y"]
    expected = {"image": 0, "class": "c", "split": "test", "context": "grass"}
    expected |= {"blur": 0.5, "night": True, "style": "x", "file": "u"}
    assert filtering.image_row(toy, 0) == expected
    row = filtering.image_row(toy, 3)
    assert "context" not in row and row["style"] is None


def test_a_class_table_has_no_images_to_select() -> None:
    with pytest.raises(Missing, match="fsviz add"):
        select_images(datasets.load("dtd"), ImageFilter())


def test_the_demo_can_be_filtered_by_everything_it_offers() -> None:
    demo = datasets.load("demo")
    assert demo.images is not None
    for name in demo.attributes:
        values = filtering.attribute_values(demo, name)
        saved = select_images(demo, ImageFilter(attributes={name: values if isinstance(values, tuple) else values[:1]}))
        assert 0 < len(saved) <= len(demo.images)
        assert len(select_images(demo, ImageFilter(), name)) == len(demo.images)


def test_a_facet_counts_the_images_that_pass_all_other_filters(toy: Dataset) -> None:
    counts = filtering.facet_counts
    assert counts(toy, ImageFilter(), "split") == {"train": 2, "test": 4, "all": 6}
    assert counts(toy, ImageFilter(), "context") == {"grass": 3, "sand": 2}, "an empty context is none"
    grass = ImageFilter(contexts=["grass"])
    assert counts(toy, grass, "class") == {"b": 2, "c": 1}
    assert counts(toy, grass, "context") == {"grass": 3, "sand": 2}, "its own filter does not count"
    both = ImageFilter(split="test", attributes={"style": ["x"]})
    assert counts(toy, both, "style") == {"x": 3, "y": 1}
    assert counts(toy, both, "class") == {"b": 2, "c": 1}
    assert counts(toy, ImageFilter(image_ids=np.array([3, 4])), "class") == {"a": 1, "c": 1}
    with pytest.raises(UnknownName):
        counts(toy, ImageFilter(), "colour")


def test_facets_agree_with_the_filters_on_the_demo() -> None:
    demo = datasets.load("demo")
    conditions = ImageFilter("test", contexts=["grass", "snow"])
    for name, n in filtering.facet_counts(demo, conditions, "class").items():
        class_ids = np.flatnonzero(demo.classes["class_name"] == name)
        assert len(select_images(demo, ImageFilter("test", class_ids, ["grass", "snow"]))) == n
    assert sum(filtering.facet_counts(demo, ImageFilter(), "context").values()) == 5136


def test_only_the_named_images_pass(toy: Dataset) -> None:
    assert ids(toy, image_ids=np.array([0, 1, 4])) == [1, 0, 4]
    assert ids(toy, image_ids=np.array([0, 1, 4]), split="test") == [0, 4]
    assert ids(toy, image_ids=np.zeros(0, dtype=int)) == []


def test_the_answer_counts_images_classes_and_contexts(toy: Dataset) -> None:
    demo = datasets.load("demo")
    assert filtering.describe(demo, np.arange(5136)) == (
        "5,136 images of 107 classes, 14 contexts.",
        "48 images per class.",
    )
    dogs = np.flatnonzero(demo.image_class_ids() == 0)[:1]
    sentence, more = filtering.describe(demo, dogs)
    assert sentence == "1 image of 1 class, 1 context." and more == "0% of all 5,136 images. 1 image per class."
    assert filtering.describe(toy, np.array([0, 1, 4])) == (
        "3 images of 2 classes.",
        "50% of all 6 images. 1 to 2 images per class.",
    )
    assert filtering.describe(demo, np.zeros(0, dtype=int))[0] == "No images match."
