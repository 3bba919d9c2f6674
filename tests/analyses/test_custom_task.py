"""One task made by hand: what its texts mean, what may be swapped, and what a swap changes, by hand-computed values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import features
from fsviz.analyses import custom_task as study
from fsviz.datasets.saved import save_dataset
from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.features import store
from fsviz.records import PAD, Dataset, Features, Tasks
from fsviz.sampling import testbeds
from fsviz.studies import evaluate
from tests.studies.toy_dataset import make_toy

NAMES = ["cat", "dog, small", "7", "cow"]
#               support of cat | queries of cat   | support of dog  | queries of dog
POINTS = {0: [0.0, 4.0, 9.0, 1.0, 6.0, 7.0], 1: [10.0, 30.0, 2.0, 9.5, 8.0, 12.0]}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def on_a_line(groups: list[int] | None = None) -> Dataset:
    """Four classes of six images, whose one feature is a place on a line; contexts are a or b."""
    values = np.array([*POINTS[0], *POINTS[1], *np.arange(100.0, 112.0)], dtype=np.float32)[:, None]
    class_ids = np.repeat(np.arange(4), 6)
    classes = pd.DataFrame({"class_name": NAMES, "split": "test", "n_images": pd.array([6] * 4, "Int64"), "node": ""})
    images = pd.DataFrame({"class_id": class_ids, "path": "", "context": ["a", "b", "b", "a", "a", "b"] * 4})
    if groups is not None:
        images["group"] = groups
    dataset = save_dataset(
        Dataset(
            name="line",
            title="Line",
            classes=classes,
            splits={"test": np.arange(4)},
            images=images,
            origin="features",
            has_features=True,
        ),
        overwrite=True,
    )
    key = {"version": store.VERSION, "dataset": "line", "fingerprint": store.fingerprint(dataset), "backbone": "place"}
    store.save(key, "place", values, np.arange(24), class_ids)
    return dataset


def table_of(dataset: Dataset) -> Features:
    return features.load(dataset, features.available(dataset)[0])


def cat_or_dog(dataset: Dataset) -> Tasks:
    """Support: cat at 0, dog at 10. Queries: cat at 1, 6 and 7; dog at 9.5, 8 and 12."""
    return study.build(dataset, table_of(dataset), [0, 1], support=[[0], [6]], query=[[3, 4, 5], [9, 10, 11]])


def test_classes_are_read_by_name_and_by_number() -> None:
    dataset = on_a_line()
    assert study.classes_in(dataset, "cow,cat,") == [3, 0]
    for text in ("cow,cat, cow", "0,0,1", "cat,#0"):  # a task of fewer classes than were named
        with pytest.raises(BadInput, match="is there twice"):
            study.classes_in(dataset, text)
    assert study.classes_in(dataset, "7") == [2]  # a name comes before a number
    assert study.classes_in(dataset, "#1,3") == [1, 3]
    text = study.classes_text(dataset, [3, 1, 2, 0])
    assert text == "cow,#1,7,cat" and study.classes_in(dataset, text) == [3, 1, 2, 0]
    with pytest.raises(UnknownName, match="caw"):
        study.classes_in(dataset, "caw")


def test_images_are_written_and_read_back() -> None:
    rows = [[4, 17], [90]]
    assert study.images_text(rows) == "4.17,90" and study.images_in("4.17,90") == rows
    assert study.swap_in("4.9") == (4, 9) and study.swap_in("") is None
    for text in ("4", "4.5.6", "x.y"):
        with pytest.raises(BadInput):
            study.swap_in(text)


def test_a_task_of_too_many_images_is_refused_with_the_number() -> None:
    images = np.zeros((1, 2, study.MAX_IMAGES // 4), dtype=np.int64)
    study.check_size(Tasks(np.array([[0, 1]]), images, images))
    more = np.concatenate([images, images], axis=2)
    with pytest.raises(BadInput, match=r"at most 4,000 images here\. Got 6,000\. Lower n_shot"):
        study.check_size(Tasks(np.array([[0, 1]]), more, images))


def test_a_swap_turns_the_queries_that_it_must() -> None:
    dataset = on_a_line()
    before = study.evaluate_task(dataset, "place", cat_or_dog(dataset))
    # the border between 0 and 10 is at 5: of the cats only the one at 1 is right, all dogs are
    assert before.correct.tolist() == [[True, False, False], [True, True, True]]
    assert before.n_queries == 6 and before.accuracy == pytest.approx(4 / 6)
    after = study.evaluate_task(dataset, "place", study.swap_image(before.tasks, 0, 1))
    # cat at 4: the border is at 7, where the lower label wins
    assert after.correct.tolist() == [[True, True, True], [True, True, True]]
    changed = study.compare_results(before, after)
    assert changed.gained.tolist() == [[0, 1], [0, 2]] and not len(changed.lost) and not len(changed.moved)
    assert changed.accuracy == pytest.approx(2 / 6)
    back = study.compare_results(after, before)
    assert back.lost.tolist() == changed.gained.tolist() and back.accuracy == -changed.accuracy


def test_the_headline_counts_the_queries_that_a_swap_changes() -> None:
    dataset = on_a_line()
    before = study.evaluate_task(dataset, "place", cat_or_dog(dataset))
    after = study.evaluate_task(dataset, "place", study.swap_image(before.tasks, 0, 1))
    assert study.headline(before) == ("4 of 6 queries correct (67%).", "2-way 1-shot, chance level: 50%.")
    gain = study.headline(after, study.compare_results(before, after))
    assert gain == (
        "Swap: +33 points. 2 queries now correct, 0 now incorrect.",
        "Now 6 of 6 queries correct (100%); 2-way 1-shot, chance level: 50%.",
    )
    loss = study.headline(before, study.compare_results(after, before))
    assert loss[0] == "Swap: −33 points. 0 queries now correct, 2 now incorrect."
    same = study.headline(before, study.compare_results(before, before))
    assert same[0] == "Swap: accuracy unchanged. 0 queries now correct, 0 now incorrect."


def test_effects_are_what_the_swaps_then_do() -> None:
    dataset = on_a_line()
    tasks = cat_or_dog(dataset)
    images = study.candidates(dataset, table_of(dataset), tasks, 0)
    assert images.tolist() == [1, 2]  # 0 is the support, 3 to 5 are asked
    result = study.swap_effects(dataset, "place", tasks, 0, images)
    one_by_one = [
        study.evaluate_task(dataset, "place", study.swap_image(tasks, 0, int(i))).correct.sum() for i in images
    ]
    assert result is not None and (result + 4).tolist() == one_by_one
    # with the cat at 9 the border is at 9.5: all cats are right, and of the dogs the one at 12 alone
    assert result.tolist() == [2, 0]


def test_context_overlap_is_the_share_of_queries_in_a_context_of_their_support() -> None:
    dataset = on_a_line()
    overlap = {c.name: c.value for c in study.evaluate_task(dataset, "place", cat_or_dog(dataset)).measures}[
        "context_overlap"
    ]
    # both supports are in context a; queries are in a, a, b for either class
    assert overlap == pytest.approx(4 / 6)
    swapped = study.swap_image(cat_or_dog(dataset), 0, 1)  # the cat's support is now in b
    overlap = {c.name: c.value for c in study.evaluate_task(dataset, "place", swapped).measures}["context_overlap"]
    assert overlap == pytest.approx(3 / 6)


def test_what_is_not_known_says_why() -> None:
    dataset = on_a_line()
    causes = {c.name: c for c in study.evaluate_task(dataset, "place", cat_or_dog(dataset)).measures}
    assert np.isnan(causes["coarsity"].value) and "no taxonomy" in causes["coarsity"].why_not
    assert np.isfinite(causes["query_loss"].value) and not causes["query_loss"].why_not
    toy = make_toy()
    causes = {
        c.name: c for c in study.evaluate_task(toy, "alpha_net", study.build(toy, table_of(toy), [0, 1, 5])).measures
    }
    assert "context" in causes["context_overlap"].why_not
    assert np.isfinite(causes["coarsity"].value) and np.isfinite(causes["class_overlap"].value)


def test_a_measure_of_a_built_task_is_that_of_the_same_task_in_a_testbed() -> None:
    toy = make_toy()
    tasks = study.build(toy, table_of(toy), [2, 7, 9], 2, 4, seed=3)
    result = study.evaluate_task(toy, "alpha_net", tasks, "ridge")
    second = evaluate.predict_tasks(toy, "alpha_net", "ridge", {}, tasks)
    assert np.array_equal(result.predictions.predicted, second.predicted)
    assert {c.name: c.value for c in result.measures}["query_loss"] == pytest.approx(float(second.loss()[0]))


def test_images_of_a_class_do_not_depend_on_the_other_classes() -> None:
    toy = make_toy()
    few, more = (study.build(toy, table_of(toy), ids, 2, 4, seed=1) for ids in ([3, 8], [8, 1, 3]))
    assert few.support[0, 0].tolist() == more.support[0, 2].tolist()
    assert few.query[0, 1].tolist() == more.query[0, 0].tolist()
    assert not np.isin(few.support, few.query).any()


def test_groups_stay_on_one_side() -> None:
    groups = [5, 5, PAD, 5, PAD, PAD, *[PAD] * 18]
    dataset = on_a_line(groups)
    with pytest.raises(BadInput, match="copies of one picture"):
        cat_or_dog(dataset)  # 0 is support, 3 is asked
    tasks = study.build(dataset, table_of(dataset), [0, 1], support=[[2], [6]], query=[[3, 4], [9]])
    assert study.candidates(dataset, table_of(dataset), tasks, 0).tolist() == [5]  # 0 and 1 are copies of query 3
    for seed in range(20):
        dealt = study.build(dataset, table_of(dataset), [0, 1], 2, 2, seed=seed)
        copies = [np.isin(side[0, 0], [0, 1, 3]).any() for side in (dealt.support, dealt.query)]
        assert not all(copies)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"class_ids": [0]}, "2 to 20 classes"),
        ({"class_ids": [0, 1], "support": [[0]]}, "each of the 2 classes"),
        ({"class_ids": [0, 1], "support": [[0], [1]]}, "image 1 is of class 'cat', not"),
        ({"class_ids": [0, 1], "n_shot": 4, "n_query": 3}, "has 6 images with features; n_shot \\+ n_query needs 7"),
        ({"class_ids": [0, 1], "support": [[0], [999]]}, "unknown image 999"),
    ],
)
def test_impossible_tasks_are_refused_in_a_sentence(more: dict, words: str) -> None:
    dataset = on_a_line()
    with pytest.raises(FsvizError, match=words):
        study.build(dataset, table_of(dataset), **{"n_shot": 1, "n_query": 2, **more})


def test_the_task_is_a_testbed_that_can_be_evaluated() -> None:
    dataset = on_a_line()
    bed = study.testbed(dataset, cat_or_dog(dataset), "mine")
    testbeds.save_testbed(bed)
    assert evaluate.testbeds(dataset) == ["mine"]
    back = testbeds.load_testbed("mine", dataset)
    assert np.array_equal(back.tasks.support, bed.tasks.support) and back.recipe["split"] == "test"


def test_selected_images_are_the_support_and_queries_are_others_of_their_classes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    dataset = make_toy(n_images=6)
    table = features.load(dataset, "alpha_net")
    tasks = study.of_support(dataset, table, [13, 0, 12, 1, 14, 0])
    assert tasks.class_ids[0].tolist() == [2, 0], "classes in the order of their first image"
    assert study.images_text(tasks.support[0]) == "13.12.14,0.1"
    assert tasks.query.shape == (1, 2, 3), "as many queries as the class with the fewest other images has"
    assert set(tasks.query[0, 0]) == {15, 16, 17} and set(tasks.query[0, 1]) < {2, 3, 4, 5}
    with pytest.raises(BadInput, match="no other images for queries"):
        study.of_support(dataset, table, [0, 1, 2, 3, 4, 5, 12])
    with pytest.raises(BadInput, match="2 to 20 classes"):
        study.of_support(dataset, table, [0, 1])


def test_copies_of_a_selected_image_are_never_queries() -> None:
    dataset = on_a_line([0, 0, 1, 2, 3, 4, *range(5, 23)])
    tasks = study.of_support(dataset, table_of(dataset), [0, 6])
    assert set(tasks.query[0, 0]) == {2, 3, 4, 5} and tasks.query.shape == (1, 2, 4)
