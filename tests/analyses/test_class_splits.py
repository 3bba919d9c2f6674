"""Splits of a dataset: search, agreement, comparison, saving, and trees."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.analyses import class_splits as study
from fsviz.analyses.class_splits import stability
from fsviz.datasets import saved_splits
from fsviz.datasets.saved import remove_dataset, save_dataset
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import SIDES
from fsviz.splits import default_dims
from fsviz.tasks import draw
from tests.studies.toy_dataset import make_toy, save_toy_features


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return tmp_path / "ws"


@pytest.fixture
def toy(home):
    return make_toy(backbones=("alpha_net", "beta_net"))


@pytest.fixture(scope="module")
def demo():
    dataset = datasets.load("demo")
    return dataset, study.class_features(dataset, "efficientnet_lite0")


def test_the_demos_stable_split_is_the_same_for_ten_seeds_and_says_what_it_reached(demo) -> None:
    dataset, classes = demo
    published = study.find_split(dataset, classes, divergence=2.0, penalty=1.0)
    assert published.split.reached == pytest.approx(1.49, abs=0.01) and not published.is_reached
    assert "Target 2 not reached in 8 dimensions: the divergence is 1.49." in study.describe_split(published)
    result = study.find_split(dataset, classes, divergence=2.0)
    assert result.split.reached == pytest.approx(1.93, abs=0.01) and result.is_reached and not result.is_at_floor
    assert {side: len(ids) for side, ids in result.split.parts.items()} == {"train": 65, "val": 21, "test": 21}
    alike = study.agreement(dataset, classes, divergence=2.0)
    assert (alike.value, alike.on_test, alike.n_splits, alike.n_seeds) == (1.0, 1.0, 1, 10)
    assert alike.chance == pytest.approx((65**2 + 2 * 21**2) / 107**2)
    assert alike.chance_on_test == pytest.approx(21 / 107)
    animals = study.superclass_shares(dataset, result.split)[1]
    assert (animals.side, animals.concept, animals.n, animals.of) == ("test", "animal", 21, 21)
    assert study.superclass_table(dataset, result.split).loc["artifact"].tolist() == [30, 0, 0]
    tiered = datasets.load("tiered_imagenet")
    published = study.published_split(tiered, 0.96)
    first, bars = study.superclass_shares(tiered, published)[0], study.superclass_table(tiered, published)
    assert first.concept == "instrumentality" and first.n == bars.loc["instrumentality", "train"]


def test_the_default_divergence_is_reached_and_every_seed_finds_the_same_test_classes(demo, toy) -> None:
    for dataset, classes in (demo, (toy, study.class_features(toy))):
        result = study.find_split(dataset, classes)
        assert result.is_reached and study.describe_split(result) == "" and result.settings["penalty"] == 10
        seeds = study.splits_over(dataset, classes, [{"seed": seed} for seed in range(4)])
        assert len({tuple(item.split.on("test")) for item in seeds}) == 1
    assert study.find_split(*demo, mode="paper").settings["penalty"] == 1


def test_agreement_is_whole_only_if_test_classes_agree(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = study.class_features(toy, "alpha_net")
    result = study.find_split(toy, classes, starts=4)
    swapped = result.split.sides.copy()
    test, val = np.flatnonzero(swapped == 2)[0], np.flatnonzero(swapped == 1)[0]
    swapped[[test, val]] = swapped[[val, test]]
    second = replace(result, split=replace(result.split, sides=swapped))
    monkeypatch.setattr(stability, "splits_over", lambda *_, **__: [result, second])
    alike = study.agreement(toy, classes, 2)
    assert (alike.value, alike.on_test, alike.n_splits) == (14 / 16, 2 / 3, 2)  # the same classes are held out


def test_random_splits_say_how_near_training_classes_are_by_chance(demo) -> None:
    dataset, classes = demo
    low, high = study.nearest_at_random(classes, study.find_split(dataset, classes).split)
    sampled = [study.find_split(dataset, classes, mode="random", seed=seed).nearest for seed in range(40)]
    assert low < np.mean(sampled) < high and np.mean([low <= value <= high for value in sampled]) >= 0.8
    whole = study.find_split(dataset, classes, mode="superclasses")
    assert whole.nearest > study.nearest_at_random(classes, whole.split)[1]  # relatives are kept together


def test_few_classes_get_few_dimensions_so_that_seeds_still_agree(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    assert len(classes) == 16 and study.find_split(toy, classes, starts=2).settings["dims"] == 4
    assert study.agreement(toy, classes, 4).value == 1.0
    assert study.agreement(toy, classes, 4, dims=12).value < 0.8
    assert [study.find_split(toy, classes, dims=dims).is_at_floor for dims in (4, 12)] == [False, True]
    assert "--dims" not in study.command(toy, study.find_split(toy, classes, starts=2).settings)
    assert "--dims 8" in study.command(toy, study.find_split(toy, classes, starts=2, dims=8).settings)
    assert [default_dims(n) for n in (10, 14, 31, 32, 1604)] == [2, 3, 7, 8, 8]


def test_the_published_way_reaches_the_floor_and_agrees_by_chance(demo) -> None:
    dataset, classes = demo
    result = study.find_split(dataset, classes, mode="paper")
    assert result.is_at_floor and result.is_reached and study.describe_split(result) == ""
    alike = study.agreement(dataset, classes, 6, mode="paper")
    assert abs(alike.value - alike.chance) < 0.1 and alike.n_splits == 6


def test_a_sweep_over_dimensions_and_over_divergences(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    table = study.agreement_over_dims(toy, classes, n_seeds=3, starts=4, dims=3)
    assert table["dims"].tolist() == [2, 3, 4, 8, 12] and (table["above_floor"] > -1e-6).all()
    assert table["agreement"].between(0, 1).all() and table["on_test"].between(0, 1).all()
    assert table["chance"].iloc[0] == pytest.approx((10**2 + 2 * 3**2) / 16**2)
    assert table["chance_on_test"].iloc[0] == pytest.approx(3 / 16)
    many = study.over_targets(toy, classes, [0.1, 1.0], starts=4)
    assert [item.split.requested for item in many] == [0.1, 1.0] and many[0].split.title.startswith(
        "target 0.1, reached "
    )
    assert study.centroid_distance(many[1].split) > study.centroid_distance(many[0].split)
    alone = study.find_split(toy, classes, divergence=1.0, starts=4)
    assert np.array_equal(alone.split.sides, many[1].split.sides)  # whatever else was computed with it


def test_splits_to_compare_with(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    whole = study.find_split(toy, classes, mode="superclasses")
    groups = np.array(study.superclasses(toy, classes.class_ids, most=4))
    assert len(set(groups)) == 4 and all(len(set(whole.split.sides[groups == g])) == 1 for g in set(groups))
    assert whole.split.requested is None and whole.objective is None
    own = save_dataset(
        replace(toy, splits={"train": np.arange(8), "val": np.arange(8, 12), "test": np.arange(12, 16)}), overwrite=True
    )
    study.save(own, whole.split, "groups", study.recipe(whole))
    table = study.comparison_table(datasets.load("toy"), classes, study.find_split(own, classes))
    rows = ["this split", "random", "whole superclasses", "the dataset's own", "saved: groups"]
    assert table["split"].tolist() == rows and (table[["train", "val", "test"]].sum(axis=1) == 16).all()
    saved, rule = table.set_index("split").loc[["saved: groups", "whole superclasses"], "nearest"]
    assert saved == rule
    train, test = whole.split.sides == 0, whole.split.sides == 2
    by_hand = np.linalg.norm(classes.points[test][:, None] - classes.points[train][None], axis=-1).min(1).mean()
    assert rule == pytest.approx(by_hand)


def test_a_saved_split_is_a_split_of_the_dataset_everywhere(toy, home: Path) -> None:
    result = study.find_split(toy, study.class_features(toy, "alpha_net"))
    before = datasets.stamp("toy")
    assert study.save(toy, result.split, "hard", study.recipe(result)) == ["hard_train", "hard_val", "hard_test"]
    assert datasets.stamp("toy") != before
    again = datasets.load("toy")
    for side in SIDES:
        assert np.array_equal(again.split_class_ids(f"hard_{side}"), result.split.on(side))
    recipe = draw.recipe_for(again, split="hard_test", n_way=3, n_tasks=4, seed=0)
    tasks = draw.sample_testbed(again, recipe).tasks
    assert set(tasks.class_ids.ravel()) <= set(result.split.on("test"))
    assert saved_splits.split_recipe("toy", "hard")["divergence"] == 0.96
    assert "Stable" in study.describe_recipe(saved_splits.split_recipe("toy", "hard"))
    with pytest.raises(BadInput, match="has a split named 'hard' already"):
        study.save(again, result.split, "hard", {})
    study.save(again, result.split, "hard", {}, replace=True)
    with pytest.raises(BadInput, match="may have letters"):
        study.save(again, result.split, "../up", {})
    saved_splits.remove_split("toy", "hard")
    assert "hard_test" not in datasets.load("toy").splits
    with pytest.raises(UnknownName, match="Unknown saved split 'hard'"):
        saved_splits.remove_split("toy", "hard")
    study.save(toy, result.split, "hard", {})
    remove_dataset("toy")
    assert not (home / "splits" / "toy").exists()


def test_a_name_that_the_dataset_has_is_refused() -> None:
    cifar = datasets.load("cifar100")
    split = study.published_split(cifar, 0.96)
    with pytest.raises(BadInput, match="has a split named 'fc100' already"):
        study.save(cifar, split, "fc100", {})


def test_a_split_of_other_classes_is_left_out_and_told(toy, home: Path) -> None:
    result = study.find_split(toy, study.class_features(toy, "alpha_net"))
    study.save(toy, result.split, "hard", {})
    path = home / "splits" / "toy" / "hard.json"
    facts = json.loads(path.read_text())
    facts["test"][0] = "a stranger"
    path.write_text(json.dumps(facts))
    path.with_name("broken.json").write_text("{")
    path.with_name("empty.json").write_text("[]")
    loaded = datasets.load("toy")
    assert not any(name.startswith(("hard", "broken", "empty")) for name in loaded.splits)
    notes = " ".join(loaded.notes)
    assert "The saved split 'hard' is of other classes: 1 of its 16 classes" in notes and "'a stranger'" in notes
    assert "broken.json cannot be read" in notes and "'empty' is no split" in notes


def test_files_come_back_as_they_were_written(toy) -> None:
    result = study.find_split(toy, study.class_features(toy, "alpha_net"))
    for content in (study.as_json(toy, result.split, {}), study.as_csv(result.split)):
        parts = saved_splits.read_split(toy, content.encode(), "file")
        assert all(np.array_equal(parts[side], result.split.on(side)) for side in SIDES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "cannot be read as a split"),
        (b"\xff\xfe\x00", "cannot be read as a split"),
        (b"a,b\n1,2\n", "needs the columns class_name and split"),
        (b"class_name,split\nx,train\n", "is of other classes: 1 of its 1"),
        (b"class_name,split\nx,dev\n", "train, val or test. Got 'dev'"),
        (b'{"train": ["x"], "val": [], "test": 3}', "is no split"),
        (b'{"train": [], "val": [], "test": []}', "has no classes"),
        (b'{"train": ["group 0 <b>kind</b> 0"], "val": ["group 0 <b>kind</b> 0"], "test": []}', "is there twice"),
    ],
)
def test_files_that_are_no_split_are_one_sentence(toy, content: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        saved_splits.read_split(toy, content, "mine.csv")


def test_what_cannot_be_split_is_one_sentence(toy, home: Path) -> None:
    few = toy.images[toy.images["class_id"] < 9].reset_index(drop=True)
    small = save_dataset(
        replace(toy, name="small", images=few, classes=toy.classes.iloc[:9], splits={"all": np.arange(9)})
    )
    save_toy_features(small, "alpha_net")
    with pytest.raises(BadInput, match=r"at least 10 classes with features.*Small has 9|at least 10 classes.*has 9"):
        study.class_features(small)
    save_toy_features(toy, "flat_net", spoil=lambda values: values.__setitem__(slice(None), 1.0))
    with pytest.raises(BadInput, match="All 16 classes have the same mean feature"):
        study.class_features(toy, "flat_net")
    with pytest.raises(Missing, match=r"no efficientnet_lite0 features.*--published 0\.96"):
        study.class_features(datasets.load("cifar100"))
    with pytest.raises(UnknownName, match="setting of a split 'divergenc'"):
        study.checked({"divergenc": 3})
    with pytest.raises(BadInput, match="divergence must be a number from 0 to 100"):
        study.checked({"divergence": -1.0})


def test_a_dataset_without_taxonomy_or_own_splits_works(toy) -> None:
    bare = save_dataset(replace(toy, name="bare", taxonomy=None, splits={"all": np.arange(16)}))
    save_toy_features(bare, "alpha_net")
    classes = study.class_features(bare)
    result = study.find_split(bare, classes)
    assert study.superclass_shares(bare, result.split) == [] and "superclasses" not in study.possible_modes(bare)
    assert study.comparison_table(bare, classes, result)["split"].tolist() == ["this split", "random"]
    with pytest.raises(Missing, match="needs two trees"):
        study.hop_table(bare, study.known_trees(bare), classes.class_ids)


def test_trees_of_backbones_and_the_taxonomy(toy) -> None:
    which = study.known_trees(toy)
    assert which == ["alpha_net", "beta_net", "taxonomy"]
    class_ids = study.all_with_features(toy, which)
    assert np.array_equal(study.hops(toy, "taxonomy", class_ids)[0, [0, 1, 4]], [0, 2, 4])  # same class, group, other
    table = study.hop_table(toy, which, class_ids)
    assert len(table) == 3 and (table[["hops", "normalised", "chance"]] > 0).all().all()
    to_meaning = table[table["second"] == "taxonomy"]
    assert (to_meaning["normalised"] < to_meaning["chance"]).all()  # features follow the groups
    facing = study.tanglegram(toy, "alpha_net", "taxonomy", class_ids)
    assert facing.crossings == 0 and not facing.crossing.any()  # both trees know the groups
    swapped = toy.classes.assign(node=toy.classes["node"].iloc[[4, *range(1, 4), 0, *range(5, 16)]].to_numpy())
    crossed = study.tanglegram(replace(toy, classes=swapped), "alpha_net", "taxonomy", class_ids)
    assert crossed.crossings > 0 and crossed.crossing.sum() == 2  # the two classes that changed places
    assert [facing.trees[1].names[leaf] for leaf in facing.trees[1].leaves] == toy.classes["class_name"].tolist()


def test_classes_that_share_a_node_or_stand_above_others_have_leaves_of_their_own(toy) -> None:
    nodes = toy.classes["node"].tolist()
    nodes[1], nodes[2] = nodes[0], "g0"  # a twin, and the group itself
    odd = replace(toy, classes=toy.classes.assign(node=nodes))
    tree = study.class_tree(odd, study.TAXONOMY, np.arange(16))
    assert len(set(tree.leaves.tolist())) == 16 and not set(tree.leaves.tolist()) & set(tree.parents.tolist())
    assert len(study.superclasses(odd, np.arange(16), most=3)) == 16


def test_published_splits_are_whole_and_named() -> None:
    table = study.published_overview().set_index("dataset")
    assert table.loc["EMNIST", ["train", "val", "test"]].tolist() == [38, 12, 12]
    assert table.loc["tieredImageNet", ["train", "val", "test"]].tolist() == [366, 121, 121]
    for name in study.PUBLISHED:
        names = study.published_names(name)
        for target in study.published_targets(name):
            parts = study.published_parts(name, target)
            assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(len(names)))
    mini = datasets.load("mini_imagenet")
    hard = study.superclass_shares(mini, study.published_split(mini, 0.96))[0]
    assert (hard.concept, hard.n, hard.of, hard.n_rest) == ("artifact", 50, 60, 5)
    with pytest.raises(UnknownName, match=r"Did you mean 'mini_imagenet 0\.96'"):
        study.published_split(mini, 0.95)


def test_names_and_commands_follow_from_the_settings(demo) -> None:
    dataset, classes = demo
    result = study.find_split(dataset, classes, mode="random", seed=3)
    assert study.fitting_name(result) == "random-seed3"
    assert study.command(dataset, result.settings).endswith("split demo --mode random --seed 3")
    said_of = (("stable", 10.0, ""), ("stable", 1.0, " --penalty 1"), ("paper", 1.0, " --mode paper"))
    for mode, penalty, words in said_of:
        spec = study.checked({"divergence": 2.0, "penalty": penalty, "mode": mode, "dims": 8})
        command = study.command(dataset, spec)
        assert sorted(command.split()) == sorted(f"fsviz split demo --divergence 2 --seed 0{words}".split())
    spec = study.checked({"divergence": 2.0, "penalty": 4.0, "mode": "paper", "dims": 30})
    command = study.command(dataset, spec)
    assert command.endswith("split demo --divergence 2 --mode paper --seed 0 --penalty 4")
    assert study.safe_stem("my split (2).json") == "my-split-2" and study.safe_stem("…") == "mine"
    near = study.neighbours(classes, result.split, 0)
    assert isinstance(near, pd.DataFrame) and near["distance"].is_monotonic_increasing and len(near) == 6


# --- answers ------------------------------------------------------------------------------------------------------


def test_the_distance_is_answered_next_to_random_splits_and_the_target(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    result = study.find_split(toy, classes, starts=4)
    sentence, more = study.distance_answer(result, (0.4, 0.5))
    split = result.split
    assert sentence == (
        f"Test classes are {result.nearest:.2f} from their nearest training class (95% of random splits: 0.40 to "
        f"0.50). Divergence reached: {split.reached:.2f} of 0.96."
    )
    assert more == ""
    side, at_random = (
        study.HeldOutSide(0.51, 56.2, 55.1, 57.3, setting="5-way 1-shot"),
        study.HeldOutSide(0.85, 80.6, 78.4, 82.9, 0.81, 0.9),
    )
    assert study.distance_answer(result, (0.4, 0.5), (side, at_random), "Net")[1] == (
        "Frozen Net: 56.2 ± 1.1% on test (5-way 1-shot; 20 random splits: 78 to "
        "83%). Distance inside test: 0.51 (random: 0.81 to 0.90)."
    )
    without_target = study.find_split(toy, classes, mode="random")
    assert "Divergence" not in study.distance_answer(without_target, (0.4, 0.5))[0]


def test_the_nearest_class_of_every_class_by_hand() -> None:
    points = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]])
    table = study.nearest_classes(study.ClassFeatures("d", "b", np.arange(3), ("a", "b", "c"), points))
    assert table.to_dict("list") == {"class": ["a", "b", "c"], "nearest": ["b", "c", "b"], "distance": [5.0, 1.0, 1.0]}
    sentence, more = study.few_answer("Few", table, 10)
    assert "2.33 from their nearest class" in sentence and "at least 10 classes with features; there are 3" in more


def test_stability_comparison_and_trees_are_answered_next_to_chance() -> None:
    table = pd.DataFrame({"dims": [2, 8, 106], "on_test": [0.9, 0.8, 0.25], "chance_on_test": 0.2})
    assert study.stability_answer(table, 8) == (
        "With all 106 dimensions two seeds share 25% of test classes (20% expected by chance).",
        "With 8 dimensions they share 80%.",
    )
    assert study.stability_answer(table, 106)[1] == ""
    splits = pd.DataFrame({"split": ["this split", "random", "whole superclasses"], "nearest": [0.48, 0.47, 0.52]})
    assert study.comparison_answer(splits, (0.45, 0.5)) == (
        "Test classes are farthest from training classes in the split “whole superclasses”: 0.52.",
        "This split: 0.48. 95% of random splits: 0.45 to 0.50.",
    )
    assert "in this split: 0.48" in study.comparison_answer(splits[:2], (0.45, 0.5))[0]
    sentence, more = study.tree_answer({"hops": 3.07, "normalised": 0.24, "chance": 0.33}, "A", "B")
    assert "differ by 3.1 edges between the trees of A and B" in sentence and "0.33 expected by chance" in more


def test_the_sweep_is_answered_by_the_frozen_backbone_and_where_sides_swap(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    results = study.over_targets(toy, classes, [0.1, 0.5, 1.0], starts=4)
    sides = [study.HeldOutSide(inside, 100 * inside) for inside in (0.9, 0.8, 0.5)]
    at_random = study.HeldOutSide(0.85, 80.6, 78.4, 82.9, setting="5-way 1-shot")
    sentence, more = study.sweep_answer(results, sides, at_random, "Net")
    assert sentence == (
        "Frozen Net, trained on neither side, gets 50 to 90% on these test sides (5-way 1-shot; 20 random splits: "
        "78 to 83%)."
    )
    r = np.corrcoef([result.split.reached for result in results], [0.9, 0.8, 0.5])[0, 1]
    assert f"1.00 with the distance inside test, {r:.2f} with the divergence." in more
    swapped = [results[0], replace(results[1], split=replace(results[1].split, scores=-results[0].split.scores))]
    assert study.swaps(swapped) == [(0.1, 0.5)] and study.swaps([results[0], results[0]]) == []
    assert "Sides swap between R = 0.1 and 0.5." in study.sweep_answer(swapped, sides[:2], at_random, "Net")[1]
    unknown = [study.HeldOutSide(0.5)] * 3
    assert "From target 0.1 to 1, " in study.sweep_answer(results, unknown, at_random, "Net")[0]


def test_the_test_side_by_itself_is_classified_and_measured_like_random_ones(toy) -> None:
    classes = study.class_features(toy, "alpha_net")
    tight = study.split_of(toy, {"train": np.arange(9), "val": np.array([9, 10, 11]), "test": np.array([12, 13, 14])})
    wide = study.split_of(toy, {"train": np.arange(1, 8), "val": np.array([9, 10, 11]), "test": np.array([0, 8, 12])})
    (of_tight, of_wide), at_random = (
        study.held_out_sides(toy, classes, [tight, wide]),
        study.held_out_at_random(toy, classes, tight),
    )
    points = classes.points[[12, 13, 14]]
    by_hand = np.mean([np.linalg.norm(points[a] - points[b]) for a, b in ((0, 1), (0, 2), (1, 2))])
    assert of_tight.inside == pytest.approx(by_hand) and of_tight.setting == "3-way 1-shot"
    assert of_tight.inside < at_random.inside < of_wide.inside  # three of a group, of any, of three groups
    assert of_tight.accuracy < at_random.accuracy < of_wide.accuracy
    assert of_tight.low < of_tight.accuracy < of_tight.high
    assert study.held_out_side(toy, classes, tight) == of_tight  # whatever else was classified with it
    other_order = replace(tight, sides=tight.sides[::-1].copy())
    assert study.held_out_at_random(toy, classes, other_order) == at_random
    rows = study.target_table(study.over_targets(toy, classes, [0.1], starts=4), [of_tight], at_random)
    assert rows[0]["frozen"] == of_tight.accuracy and rows[1]["split"] == "random" and rows[1]["asked"] is None
    alone = replace(tight, sides=np.where(np.arange(len(tight.sides)) == 12, 2, 0))
    assert study.held_out_side(toy, classes, alone).accuracy is None
