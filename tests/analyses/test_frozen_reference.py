"""The frozen backbone as a reference of trained networks: its test classes, its accuracy, and the answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, evaluation, features, sampling
from fsviz.analyses import class_splits, frozen_reference, transfer
from fsviz.analyses.frozen_reference import FROZEN, HeldOutClasses
from fsviz.studies import evaluate


@pytest.fixture(scope="module")
def demo():
    dataset = datasets.load("demo")
    return dataset, class_splits.class_features(dataset, "efficientnet_lite0")


def test_the_recorded_grid_is_held_out_as_its_splits_say(demo) -> None:
    dataset, classes = demo
    grid = transfer.training_grid("demo")[0]
    held_out = frozen_reference.held_out_of_grid(dataset, classes, grid)
    rows = grid.rows[grid.rows["comparison"] == transfer.DIVERGENCE]
    assert set(held_out) == set(rows["run"])
    result = class_splits.find_split(dataset, classes, divergence=2.0, penalty=transfer.PENALTY)
    run = rows[(rows["asked"] == 2) & (rows["side"] == "second")]["run"].iloc[0]
    assert held_out[run].class_ids == tuple(transfer.mirrored(result).on("test").tolist())
    moved = transfer.TrainingGrid(grid.name, grid.rows.assign(reached=grid.rows["reached"] + 0.1), grid.facts)
    assert frozen_reference.held_out_of_grid(dataset, classes, moved) == {}  # other splits: no reference


def test_its_accuracy_is_that_of_protonet_on_the_same_test_classes(demo) -> None:
    dataset, _ = demo
    held_out = {"a": HeldOutClasses(tuple(range(12)), 3, 2, 4), "b": HeldOutClasses(tuple(range(12)), 3, 2, 4)}
    columns = {"comparison": "divergence", "asked": 1.0, "reached": 0.9, "side": "first", "mode": ["", "stable"]}
    rows = pd.DataFrame({**columns, "run": ["a", "b"], "method": "maml", "seed": [0, 1]})
    frozen = frozen_reference.frozen_rows(dataset, "efficientnet_lite0", rows, held_out)
    assert len(frozen) == 1 and frozen["method"].tolist() == [FROZEN]  # two seeds share their test classes
    table = features.load(dataset, "efficientnet_lite0")
    of_image = np.full(len(dataset.image_class_ids()), -1)
    of_image[table.image_ids] = table.class_ids
    tasks = sampling.sample_uniform(np.arange(12), 3, frozen_reference.N_TASKS, 0)
    tasks = sampling.assign_images(tasks, of_image, 2, 4, 0, dataset.image_groups())
    predictions = evaluate.predict_tasks(dataset, "efficientnet_lite0", "protonet", {}, tasks)
    assert frozen["accuracy"][0] == pytest.approx(100 * evaluation.task_accuracy(predictions).mean())
    assert frozen["ci95_classes"][0] > frozen["ci95"][0] > 0
    assert transfer.accuracy_points(frozen, "first")["accuracy"].tolist() == frozen["accuracy"].tolist()
    too_few = {"a": HeldOutClasses((0, 1), 3, 2, 4)}
    assert frozen_reference.frozen_rows(dataset, "efficientnet_lite0", rows, too_few).empty


def test_the_cost_is_answered_with_its_interval_and_the_frozen_slope() -> None:
    def rows(method: str, slope: float, noise: tuple[float, ...] = (0.1, -0.1, -0.1, 0.1)) -> pd.DataFrame:
        x = np.array([0.0, 1.0, 2.0, 3.0])
        sides = [
            pd.DataFrame({"asked": x, "reached": x, "side": side, "accuracy": 60 + slope * x + np.array(noise)})
            for side in ("first", "second")
        ]
        own = {"method": method, "comparison": "divergence", "trained_on": "", "mode": "stable", "run": method}
        numbers = {"seed": 0, "ci95": 1.0, "ci95_classes": 2.0, "n_tasks": 200, "val_accuracy": 50.0}
        return pd.concat(sides, ignore_index=True).assign(**own, **numbers)[list(transfer.COLUMNS)]

    falling = pd.concat([rows("multiclass", -4.0), rows("maml", -1.0)])
    sentence, more = frozen_reference.cost_answer(falling, rows(FROZEN, -2.0), "Net")
    assert sentence.startswith("Compared with frozen Net on the same test classes, Multiclass changes by -2.00 ± ")
    assert more.startswith("Multiclass alone: -4.00 ± ") and "; frozen: -2.00 ± " in more
    assert "Adaptive methods hold up better: +3.00" in more
    same = frozen_reference.cost_answer(rows("multiclass", -4.0), rows(FROZEN, -4.0, (0.3, -0.2, 0.1, 0.2)), "Net")
    assert "Multiclass shows no significant change: " in same[0]  # a fall that the frozen backbone has too is no cost
    noisy = frozen_reference.cost_answer(rows("multiclass", -0.5, (5.0, -5.0, 5.0, -5.0)), falling[:0], "Net")
    assert noisy[0].startswith("The accuracy of Multiclass changes by ") and "no cost of distance alone" in noisy[1]
    assert "not measured yet" in frozen_reference.cost_answer(falling[:0], falling[:0], "Net")[0]


def test_without_networks_the_frozen_backbone_is_measured_at_every_target(demo) -> None:
    dataset, classes = demo
    rows, chance_level = frozen_reference.by_target(dataset, classes, "efficientnet_lite0")
    assert chance_level == 20 and len(rows) == 2 * len(transfer.TARGETS) and (rows["accuracy"] > 60).all()
    grid = transfer.training_grid("demo")[0]
    reference = frozen_reference.of_grid(dataset, classes, grid, "efficientnet_lite0")
    by_cell = rows.set_index(["asked", "side"])["accuracy"]
    assert by_cell[2.0, "first"] == pytest.approx(reference.set_index(["asked", "side"])["accuracy"][2.0, "first"])
    sentence, more = frozen_reference.untrained_answer("Demo", rows, "Net")
    (slope,) = [slope for slope in transfer.slopes(rows) if slope.sides == "both"]
    assert sentence == "No network is trained on splits of Demo yet."
    assert f"{slope.slope:+.2f} ± {slope.ci95:.2f} points per unit" in more
    assert "Train some" in frozen_reference.untrained_answer("Demo", rows[:0], "Net")[1]


def test_chance_level_is_known_if_all_tasks_have_as_many_classes() -> None:
    five, two = HeldOutClasses((0, 1, 2, 3, 4)), HeldOutClasses((0, 1), n_way=2)
    assert frozen_reference.usual_chance_level([five, five]) == 20
    assert frozen_reference.usual_chance_level([five, two]) is None
    reference = pd.DataFrame({"accuracy": [85.3]})
    assert frozen_reference.compared_accuracy(reference, 20.0, "Net") == "vs frozen Net 85%, chance level 20%"
    assert frozen_reference.compared_accuracy(reference[:0], 50.0, "Net") == "chance level 50%"
