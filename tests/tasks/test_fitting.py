"""One rule for tasks of small datasets: what was given stays, defaults are lowered, and a sentence says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets
from fsviz.errors import BadInput
from fsviz.records import Dataset
from fsviz.settings import N_SHOT, Schema, images_advice, largest_images
from fsviz.tasks import draw, fitting
from tests.studies.small_dataset import make_small

USUAL = {"n_way": 5, "n_shot": 5, "n_query": 10}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return lambda *sizes: make_small("small", sizes, tmp_path / "images")


def fit(dataset: Dataset, choice: bool = False, varied: bool = False, **inputs: object) -> fitting.Fit:
    return fitting.fit(dataset, inputs, draw.IMAGE_DEFAULTS, ["net"], choice=choice, varied=varied)


@pytest.mark.parametrize(
    ("n_images", "shots", "queries"),
    [(40, 5, 10), (15, 5, 10), (14, 5, 9), (10, 5, 5), (9, 4, 5), (6, 1, 5), (5, 1, 4), (2, 1, 1)],
)
def test_queries_are_lowered_to_five_then_shots_to_one_then_queries(n_images: int, shots: int, queries: int) -> None:
    assert largest_images(5, 10, lambda s, q: s + q <= n_images) == (shots, queries)
    assert shots + queries == min(n_images, 15)


def test_what_may_not_be_lowered_stays() -> None:
    def holds_12(s: int, q: int) -> bool:
        return s + q <= 12

    assert largest_images(9, 10, holds_12, ["n_query"]) == (9, 3)
    assert largest_images(5, 11, holds_12, ["n_shot"]) == (1, 11)
    assert largest_images(12, 10, holds_12, ["n_query"]) is None
    assert largest_images(5, 10, lambda s, q: s + q <= 1) is None
    assert images_advice(9, 9, 12) == "The largest that fits all classes is n_shot 7 with n_query 5."
    assert images_advice(5, 10, 1).startswith("Remove the class from the split")


def test_a_large_dataset_takes_the_usual_tasks_without_a_word(small) -> None:
    result = fit(small(*[15] * 5))
    assert result.values == USUAL and not result.lowered and result.describe() == ""


def test_defaults_are_lowered_and_said_and_what_was_given_stays(small) -> None:
    dataset = small(30, 12, 30, 30)
    result = fit(dataset)
    assert result.values == {"n_way": 4, "n_shot": 5, "n_query": 7}
    why = "Split 'test' of Small has 4 classes and class 'class 1' has 12 images"
    assert result.describe() == f"{why}, so n_way is 4 instead of 5 and n_query is 7 instead of 10."
    assert result.describe({"n_query": 3}) == f"{why}, so n_way is 4 instead of 5."
    inputs = fit(dataset, n_way=3, n_shot=9)
    assert inputs.values == {"n_way": 3, "n_shot": 9, "n_query": 3} and set(inputs.lowered) == {"n_query"}
    assert fit(dataset, n_way=7, n_shot=20, n_query=20).values == {"n_way": 7, "n_shot": 20, "n_query": 20}
    assert fit(dataset, sampler="variable").values == {} and fit(dataset, n_shot=0).values["n_shot"] == 0


def test_a_search_keeps_a_choice_of_support_where_there_can_be_one(small) -> None:
    result = fit(small(*[12] * 5), choice=True)
    assert result.values == {"n_way": 5, "n_shot": 3, "n_query": 6}
    assert "chooses from twice as many as n_shot, so n_shot is 3 instead of 5" in result.describe()
    assert fit(small(*[2] * 5), choice=True).values == {"n_way": 5, "n_shot": 1, "n_query": 1}
    assert fit(small(*[12] * 5), choice=True, skip_small=True).values == USUAL


def test_tasks_that_are_compared_by_their_classes_do_not_all_hold_the_same(small) -> None:
    result = fit(small(*[20] * 6), varied=True)
    assert result.values["n_way"] == 3 and "6 classes, and tasks of more would hold nearly the same ones" in result.why
    assert fit(small(*[20] * 6)).values["n_way"] == 5 and fit(small(*[20] * 8), varied=True).values["n_way"] == 5


def test_groups_that_stay_together_count(small) -> None:
    dataset = small(*[12] * 5)
    assert dataset.images is not None
    grouped = replace(dataset, images=dataset.images.assign(group=np.arange(60) // 4))  # three groups of four a class
    result = fit(grouped)
    assert (result.values["n_shot"], result.values["n_query"]) == (
        4,
        8,
    )  # five shots would leave one group: four queries
    assert "in 3 groups that stay together" in result.describe()
    tasks = draw.sample(grouped, sampler="uniform", n_tasks=5, **result.values).tasks
    assert tasks.support.shape == (5, 5, 4)
    assert fit(grouped, keep_groups=False).values["n_query"] == 7


def test_fewer_than_two_classes_are_refused_with_advice_that_works(small) -> None:
    item = small(9)
    with pytest.raises(BadInput, match=r"at least 2 classes. Split 'test' of Small has 1. Add images of other classes"):
        fit(item)
    two = small(9, 9)
    halves = replace(two, splits={"test": np.array([0]), "val": np.array([1])})
    with pytest.raises(BadInput, match="Choose split 'all'"):
        fit(halves)
    assert fit(halves, split="all").values["n_way"] == 2


def test_several_datasets_take_what_fits_the_smallest(small, tmp_path: Path) -> None:
    large = small(*[20] * 8)
    few = make_small("few", [30] * 3, tmp_path / "few")
    tight = make_small("tight", [7] * 9, tmp_path / "tight")
    result = fitting.smallest([fit(dataset) for dataset in (large, few, tight)])
    assert result.values == {"n_way": 3, "n_shot": 2, "n_query": 5}
    text = result.describe()
    assert "Few has 3 classes" in text and "of Tight has 7 images" in text and "Small" not in text


def test_the_demo_has_enough_for_the_usual_tasks() -> None:
    demo = datasets.load("demo")
    assert fitting.fit(demo, {}, draw.IMAGE_DEFAULTS, choice=True, varied=True).values == USUAL


def test_samplers_of_contexts_lower_what_few_classes_can_give(small) -> None:
    dataset = small(*[12] * 6)  # six images of a class in each of two contexts
    testbed = fit(dataset, sampler="iid", loss="plain")
    assert testbed.values["n_way"] == 5 and testbed.values["n_shot"] < 5 and "different contexts" in testbed.describe()
    tasks = draw.sample(dataset, sampler="iid", n_tasks=5, **testbed.values).tasks
    assert tasks.support.shape == (5, 5, testbed.values["n_shot"])


SCHEMA = Schema({**draw.SETTINGS, "n_shot": N_SHOT}, required=("dataset",), of="the study of tests")


def test_a_checked_spec_has_every_setting_and_what_is_not_given_fits(small) -> None:
    dataset = small(*[9] * 10)
    values = fitting.check(SCHEMA, {"dataset": "small", "backbone": "net", "split": "", "n_way": 3}, USUAL)
    assert set(values) == {*SCHEMA.settings, "dataset"}
    assert [values[name] for name in ("n_way", "n_shot", "n_query")] == [3, 4, 5]
    assert values["split"] == draw.default_split(dataset)
    saved = fitting.check(SCHEMA, {"dataset": "small", "backbone": "net", "n_shot": 6}, USUAL)
    assert saved["n_shot"] == 6 and saved["n_query"] < 10  # what is given stays
    elsewhere = fitting.check(SCHEMA, {"dataset": "small", "backbone": "net"}, USUAL, sampled=False)
    assert [elsewhere[name] for name in ("n_way", "n_shot", "n_query")] == [5, 5, 10]
    selection = fitting.check(SCHEMA, {"dataset": "small", "backbone": "net"}, USUAL, choice=True)
    assert 2 * selection["n_shot"] + selection["n_query"] <= 9
