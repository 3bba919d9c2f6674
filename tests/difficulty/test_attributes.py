from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fsviz.difficulty import attribute_gaps as gaps_room
from fsviz.difficulty.attribute_gaps import (
    differences,
    gap_table,
    measure_gap,
    measure_gaps,
    read_attribute,
    shuffled_gaps,
)
from fsviz.difficulty.shifted_tasks import attribute_groups, sample_curated
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import PAD, Dataset, Tasks


def small_dataset(images: pd.DataFrame, attributes: tuple[str, ...]) -> Dataset:
    classes = pd.DataFrame({"class_name": ["a", "b"], "split": "test", "n_images": 8, "node": ""})
    return Dataset("small", "Small", classes, {"test": np.arange(2)}, images=images, attributes=attributes)


IMAGES = pd.DataFrame(
    {
        "class_id": np.repeat([0, 1], 8),
        "path": "",
        "context": ["night"] * 5 + ["day"] * 3 + ["day"] * 7 + ["night"],
        "blur": np.arange(16.0),
        "blurred": np.arange(16) % 2 == 0,
    }
)
DATASET = small_dataset(IMAGES, ("blur", "blurred"))
# two tasks of both classes, two shots and two queries per class; the last query of the second task is missing
TASKS = Tasks(
    np.array([[0, 1], [0, 1]]),
    np.array([[[0, 1], [15, 8]], [[0, 5], [8, 15]]]),
    np.array([[[5, 6], [9, 10]], [[1, 6], [9, PAD]]]),
)


def test_shares_and_gap_by_hand() -> None:
    gap = measure_gap(read_attribute(DATASET, "context"), TASKS)
    assert gap.attribute.values == ("day", "night")
    np.testing.assert_allclose(gap.support, [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(gap.query, [[1.0, 0.0], [2 / 3, 1 / 3]])
    np.testing.assert_allclose(gap.gap, [0.75, 1 / 6])


def test_gap_by_class_sees_opposite_shifts() -> None:
    opposite = Tasks(np.array([[0, 1]]), np.array([[[0, 1], [8, 9]]]), np.array([[[5, 6], [15, PAD]]]))
    attribute = read_attribute(DATASET, "context")
    whole = measure_gap(attribute, opposite)
    each = measure_gap(attribute, opposite, by="class")
    np.testing.assert_allclose(whole.gap, [1 / 6])
    np.testing.assert_allclose(each.gap, [1.0])


def test_numeric_shift_in_standard_deviations_by_hand() -> None:
    gap = measure_gap(read_attribute(DATASET, "blur"), TASKS)
    np.testing.assert_allclose(gap.support, [6.0, 7.0])
    np.testing.assert_allclose(gap.query, [7.5, 16 / 3])
    np.testing.assert_allclose(gap.gap, np.abs([1.5, 5 / 3]) / np.arange(16.0).std())


def test_missing_entries_are_left_out() -> None:
    images = IMAGES.assign(
        context=IMAGES["context"].where(IMAGES.index != 0), blur=IMAGES["blur"].where(IMAGES.index > 1)
    )
    dataset = small_dataset(images, ("blur",))
    gaps = measure_gaps(dataset, TASKS)
    np.testing.assert_allclose(gaps["context"].support[0], [1 / 3, 2 / 3])
    np.testing.assert_allclose(gaps["blur"].support[0], 11.5)
    nothing = Tasks(np.array([[0]]), np.array([[[0]]]), np.array([[[5]]]))
    assert np.isnan(measure_gap(read_attribute(dataset, "context"), nothing).gap).all()


def test_words_say_what_differs_most_first() -> None:
    result = differences(measure_gaps(DATASET, TASKS), 0)
    assert result[0].words == "context: support 75% night, query 0% night"
    assert (result[0].value, result[0].support, result[0].query) == ("night", 0.75, 0.0)
    assert {d.attribute for d in result} == {"context", "blur", "blurred"}
    blur = next(d for d in result if d.attribute == "blur")
    assert "support 6.00 on average, query 7.50 (0.3 standard deviations lower in the support)" in blur.words
    assert "blurred" in next(d for d in result if d.attribute == "blurred").words
    assert len(differences(measure_gaps(DATASET, TASKS), 0, most=1)) == 1


def test_differences_class_by_class() -> None:
    night, day = gaps_room.class_differences(DATASET, TASKS, 0)
    assert night[0].short == "context: 100% night, query 0%"
    context = next(d for d in day if d.attribute == "context")
    assert context.words == "context: support 50% night, query 0% night"
    assert next(d for d in night if d.attribute == "blur").short == "blur: 0.50, query 5.50"


def test_table_over_sets() -> None:
    table = gap_table(DATASET, {"hard": TASKS, "random": TASKS.take([1])})
    row = table[(table["attribute"] == "context") & (table["set"] == "hard")].iloc[0]
    assert row["gap"] == pytest.approx((0.75 + 1 / 6) / 2)
    assert (row["kind"], row["n_tasks"]) == ("share", 2)
    assert len(table) == 6


def test_shuffles_keep_every_class_its_values_and_leave_constant_ones_alone() -> None:
    attributes = [read_attribute(DATASET, name) for name in ("context", "blur")]
    shuffled = shuffled_gaps(attributes, TASKS, DATASET.image_class_ids(), n_shuffles=500)
    assert shuffled.shape == (2, 500)
    # a class of one value keeps it however values are dealt out: no gap but between the classes' own shares
    fixed = small_dataset(IMAGES.assign(context=np.repeat(["night", "day"], 8)), ())
    gaps = shuffled_gaps([read_attribute(fixed, "context")], TASKS, fixed.image_class_ids(), n_shuffles=20)
    np.testing.assert_allclose(gaps, measure_gap(read_attribute(fixed, "context"), TASKS).gap.mean(), rtol=1e-6)


def test_a_name_for_every_image_is_not_compared_with_chance() -> None:
    images = pd.DataFrame({"class_id": np.repeat([0, 1], 40), "path": "", "file": [f"{i}.jpg" for i in range(80)]})
    table = gap_table(small_dataset(images, ("file",)), {"hard": TASKS})
    assert table["gap"].tolist() == [1.0] and np.isnan(table["ci95"]).all() and not table["significant"].any()


def test_shuffled_gaps_are_the_gaps_of_shuffled_columns() -> None:
    """Against the plain way: deal the column out anew, then measure."""
    rng = np.random.default_rng(0)
    images = IMAGES.assign(blur=IMAGES["blur"].where(IMAGES.index != 3))
    for name, by in (("context", "class"), ("blur", "task")):
        means = []
        for _ in range(200):
            dealt = images[name].to_numpy().copy()
            for rows in (slice(0, 8), slice(8, 16)):
                dealt[rows] = rng.permutation(dealt[rows])
            attribute = read_attribute(small_dataset(images.assign(**{name: dealt}), ("blur",)), name)
            means.append(np.nanmean(measure_gap(attribute, TASKS, by).gap))
        attribute = read_attribute(small_dataset(images, ("blur",)), name)
        result = shuffled_gaps([attribute], TASKS, DATASET.image_class_ids(), by, n_shuffles=4000)[0]
        assert result.mean() == pytest.approx(np.mean(means), abs=4 * np.std(means) / 14)
        assert result.std() == pytest.approx(np.std(means), rel=0.2)


def test_gaps_of_noise_stay_within_chance_in_95_of_100_and_a_chosen_shift_does_not() -> None:
    """Tasks that share images: 60 columns of coin flips and 60 of random numbers on 320 images."""
    rng = np.random.default_rng(3)
    noise = {f"flip {i}": rng.random(320) < 0.5 for i in range(60)}
    noise |= {f"number {i}": rng.random(320) for i in range(60)}
    images = pd.DataFrame({"class_id": np.repeat(np.arange(16), 20), "path": "", **noise})
    classes = pd.DataFrame({"class_name": list("abcdefghijklmnop"), "split": "test", "n_images": 20, "node": ""})
    dataset = Dataset("noise", "Noise", classes, {"test": np.arange(16)}, images=images, attributes=tuple(noise))
    class_ids = np.argsort(rng.random((300, 16)), axis=1)[:, :4]
    sampled = class_ids[:, :, None] * 20 + np.argsort(rng.random((300, 4, 20)), axis=2)
    random = Tasks(class_ids, sampled[:, :, :3], sampled[:, :, 10:])
    # a search that takes the first images of each class that are not queries: few images, the same in most tasks
    result = Tasks(class_ids, np.sort(sampled[:, :, :10], axis=2)[:, :, :3], random.query)
    table = gap_table(dataset, {"hard": result, "random": random})
    inside = (np.abs(table["gap"] - table["chance"]) <= table["ci95"]).groupby(table["set"]).mean()
    assert 0.88 <= inside["hard"] <= 0.99 and 0.88 <= inside["random"] <= 1  # 95 of 100, three deviations either way
    assert table["significant"].sum() <= 1  # a family of noise is allowed one mistake in twenty times
    shifted = replace(dataset, images=images.assign(chosen=images.index % 20 < 4), attributes=("chosen", "flip 0"))
    table = gap_table(shifted, {"hard": result, "random": random})
    assert table.loc[table["significant"], "attribute"].tolist() == ["chosen"]


def test_a_dataset_without_attributes_says_how_to_add_them() -> None:
    bare = small_dataset(IMAGES[["class_id", "path"]], ())
    with pytest.raises(Missing, match="fsviz add"):
        measure_gaps(bare, TASKS)
    with pytest.raises(UnknownName, match="blur"):
        read_attribute(DATASET, "blurr")
    with pytest.raises(BadInput, match="'task' or by 'class'"):
        measure_gap(read_attribute(DATASET, "blur"), TASKS, by="image")


def many_images() -> Dataset:
    rng = np.random.default_rng(0)
    n = 8 * 60
    images = pd.DataFrame(
        {
            "class_id": np.repeat(np.arange(8), 60),
            "path": "",
            "context": rng.choice(["water", "sand", "snow"], n),
            "brightness": rng.random(n),
        }
    )
    classes = pd.DataFrame({"class_name": list("abcdefgh"), "split": "test", "n_images": 60, "node": ""})
    return Dataset("many", "Many", classes, {"test": np.arange(8)}, images=images, attributes=("brightness",))


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("name", ["context", "brightness"])
def test_curated_pairs_differ_in_the_attribute_only(name: str, alike: bool) -> None:
    dataset = many_images()
    attribute = read_attribute(dataset, name)
    groups, names = attribute_groups(attribute)
    class_of = dataset.image_class_ids()
    pair = sample_curated(attribute, class_of, np.arange(8), 5, 3, 5, 40, seed=0, alike=alike)
    same, shifted = pair.without_shift, pair.with_shift
    assert (same.class_ids == shifted.class_ids).all()
    assert (same.query == shifted.query).all()
    for tasks in (same, shifted):
        assert (class_of[tasks.support] == tasks.class_ids[:, :, None]).all()
        for support, query in zip(tasks.support, tasks.query, strict=True):
            assert not set(support.ravel()) & set(query.ravel())
            assert len(set(support.ravel())) == support.size
    assert (groups[same.query] == pair.groups[:, :, None]).all()
    assert (groups[same.support] == pair.groups[:, :, None]).all()
    assert (groups[shifted.support] != pair.groups[:, :, None]).all()
    assert (pair.groups == pair.groups[:, :1]).all() == alike and len(np.unique(pair.groups)) > 1
    if name == "brightness":
        assert names == ("low brightness", "middle brightness", "high brightness")
        assert (groups[shifted.support] == 2 - pair.groups[:, :, None]).all()
    low = measure_gap(attribute, same, by="class").gap.mean()
    assert measure_gap(attribute, shifted, by="class").gap.mean() > 3 * max(low, 0.1)


def test_curated_queries_can_be_fixed_to_a_group_and_bad_requests_are_named() -> None:
    dataset = many_images()
    attribute = read_attribute(dataset, "context")
    pair = sample_curated(attribute, dataset.image_class_ids(), np.arange(8), 5, 2, 5, 10, 0, query_group="snow")
    assert (dataset.images["context"].to_numpy()[pair.with_shift.query] == "snow").all()
    with pytest.raises(UnknownName, match="snow"):
        sample_curated(attribute, dataset.image_class_ids(), np.arange(8), 5, 2, 5, 10, 0, query_group="snoww")
    with pytest.raises(BadInput, match="Lower n_query"):
        sample_curated(attribute, dataset.image_class_ids(), np.arange(8), 5, 5, 50, 10, 0)
    with pytest.raises(BadInput, match="needs 5 classes with 55 images of one value, the same for all, and 5"):
        sample_curated(attribute, dataset.image_class_ids(), np.arange(8), 5, 5, 50, 10, 0, alike=True)
