"""Accuracy against divergence: slopes, both sides and matched pairs on numbers that are known, splits on the demo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets
from fsviz.analyses import class_splits, transfer
from fsviz.errors import BadInput, Missing, UnknownName
from fsviz.records import Tasks
from fsviz.splits import clustering, gaussians
from fsviz.workspace import plain_json, read_json, write_json

ROOT = Path(__file__).resolve().parents[2]


def run(number: int, method: str, recipe: dict, accuracy: float, seed: int = 0) -> tuple[str, dict, dict]:
    row = {"method": method, "accuracy": accuracy, "ci95": 1.0, "n_tasks": 100, "label": method.title()}
    return f"run{number}", {"split": {"recipe": recipe}, "seed": seed}, {"results": [row]}


def at(divergence: float, side: str = "first", **more) -> dict:
    return {"comparison": "divergence", "divergence": divergence, "reached": divergence, "side": side, **more}


@pytest.fixture
def rows() -> pd.DataFrame:
    """MAML falls by 2 per unit on the first side and by 4 on the second; its second seed is 1 higher everywhere."""
    runs = [
        run(i, "maml", at(r, side), 70 - fall * r + seed, seed)
        for i, (r, (side, fall), seed) in enumerate(
            (r, side, seed) for r in (0.0, 1.0, 2.0, 4.0) for side in (("first", 2), ("second", 4)) for seed in (0, 1)
        )
    ]
    noisy = zip((0.0, 1.0, 2.0), (80.0, 76.0, 78.0))
    return transfer.run_table([*runs, *(run(100 + i, "multiclass", at(r), a) for i, (r, a) in enumerate(noisy))])


def test_slopes_of_one_side_and_of_both(rows) -> None:
    result = {(s.method, s.sides): s for s in transfer.slopes(rows)}
    assert set(result) == {("maml", "first"), ("maml", "second"), ("maml", "both"), ("multiclass", "first")}
    for sides, slope, n_runs in (("first", -2, 8), ("second", -4, 8), ("both", -3, 16)):
        item = result["maml", sides]
        assert item.slope == pytest.approx(slope) and item.at_zero == pytest.approx(70.5)
        assert (item.n_points, item.n_runs) == (4, n_runs) and item.ci95 == pytest.approx(0, abs=1e-6)
    # by hand: slope -1 through (1, 78); residuals 1, -2, 1; error sqrt(6 / 1 / 2); t of one degree of freedom 12.706
    noisy = result["multiclass", "first"]
    assert noisy.slope == pytest.approx(-1) and noisy.ci95 == pytest.approx(12.706 * np.sqrt(3), rel=1e-4)


def test_slopes_may_be_by_the_divergence_asked_for(rows) -> None:
    rows = rows.assign(reached=rows["reached"] / 2)
    assert transfer.slopes(rows)[1].slope == pytest.approx(-4)
    by_target = transfer.slopes(rows, by="asked")
    assert [s.slope for s in by_target if s.sides == "first"] == pytest.approx([-1, -2])
    with pytest.raises(BadInput, match="reached or asked"):
        transfer.slopes(rows, by="wished")


def test_two_points_have_a_slope_and_no_interval() -> None:
    few = transfer.run_table(run(i, "anil", at(r), 60 - r) for i, r in enumerate((0.0, 2.0)))
    (item,) = transfer.slopes(few)
    assert item.slope == pytest.approx(-1) and item.ci95 is None
    assert transfer.slopes(few[:1]) == []


def test_a_table_by_divergence_has_both_sides_only_where_both_are(rows) -> None:
    table = transfer.by_divergence(rows)
    assert table["method"].tolist() == ["multiclass"] * 3 + ["maml"] * 4
    last = table.iloc[-1]
    assert (last["asked"], last["first"], last["second"], last["both"]) == (4, 62.5, 54.5, 58.5)
    assert table["both"].isna().tolist() == [True] * 3 + [False] * 4
    with pytest.raises(Missing, match="No finished training run"):
        transfer.by_divergence(rows[:0])


def test_methods_on_easy_and_hard_splits_stand_beside_random_ones(rows) -> None:
    rest = [run(200 + i, "maml", {"mode": "random", "seed": i}, a) for i, a in enumerate((71.0, 73.0))]
    mine = transfer.run_table([*rest, run(210, "maml", {"mode": "own"}, 69.0), run(211, "anil", {"mode": "file"}, 1.0)])
    result = transfer.by_split(pd.concat([rows, mine]))
    accuracies = dict(zip(result["split"], result["accuracy"]))
    assert accuracies == pytest.approx(
        {"R = 0": 70.5, "R = 1": 67.5, "R = 2": 64.5, "R = 4": 58.5, "random": 72.0, "the dataset's own": 69.0}
    )
    assert set(result["method"]) == {"maml"} and result["asked"].isna().sum() == 2  # a file says nothing of its split


def test_published_tables_are_named_as_ours_are() -> None:
    slopes = transfer.printed("Table 5").set_index(["row", "benchmark"])["value"]
    assert slopes["MAML", "CIFAR-100"] == -11.53 and slopes["Multiclass", "LFW10"] == -4.91 and len(slopes) == 16
    tasks = transfer.printed("Table 2")
    assert set(tasks["row"]) == {transfer.divergence_title(name) for name in clustering.DIVERGENCES}
    cells = transfer.printed_easy_and_hard().set_index(["row", "benchmark"])["value"]
    assert cells["ProtoNet", "CIFAR-100"] == "63.7 → 50.5" and cells["Finetune", "miniImageNet"] == "– → 70.5"
    assert "EMNIST" not in cells.index.get_level_values(1)  # no easy split of it is printed


def test_points_of_both_sides_have_the_interval_of_their_mean(rows) -> None:
    rows = rows.assign(ci95_classes=np.where(rows["side"] == "first", 3.0, 4.0))
    both = transfer.accuracy_points(rows)
    assert both["method"].unique().tolist() == ["maml"] and both["n_runs"].tolist() == [4] * 4  # two sides, two seeds
    assert both["ci95"].tolist() == pytest.approx([2.5] * 4)  # sqrt(9 + 16) / 2: seeds make it no smaller
    assert both["accuracy"].tolist() == pytest.approx([70.5, 67.5, 64.5, 58.5])
    row = transfer.accuracy_points(rows, "second")
    assert row["ci95"].tolist() == pytest.approx([4.0] * 4) and row["accuracy"].iloc[-1] == pytest.approx(54.5)


def test_the_lead_of_a_family_is_compared_split_by_split() -> None:
    """Splits differ by 20 points among each other, which cancels: MAML's lead grows by 1 per unit."""
    luck = {0.0: 0.0, 1.0: 20.0, 2.0: -20.0}
    runs = []
    for i, (r, more) in enumerate(luck.items()):
        for j, side in enumerate(("first", "second")):
            runs.append(run(10 * i + j, "maml", at(r, side), 50 + more + r))
            runs.append(run(10 * i + j + 5, "protonet", at(r, side), 50 + more))
    rows = transfer.run_table(runs)
    lead = transfer.family_slope(rows)
    assert lead is not None and lead.slope == pytest.approx(1) and lead.ci95 == pytest.approx(0, abs=1e-6)
    assert all(slope.ci95 > 100 for slope in transfer.slopes(rows))
    assert transfer.family_slope(rows[rows["method"] == "maml"]) is None


def test_matched_pairs_by_hand() -> None:
    def pair(side: str, which: str, accuracy: float, seed: int = 0) -> tuple[str, dict, dict]:
        return run(0, "protonet", at(2.0, side, comparison="matched", trained_on=which), accuracy, seed)

    measured = [pair("first", "nearest", 76.0), pair("first", "farthest", 72.5)]
    measured += [
        pair("second", "nearest", 70.2),
        pair("second", "farthest", 67.4),
        pair("second", "nearest", 99, seed=1),
    ]
    (result,) = transfer.matched_differences(transfer.run_table(measured))
    assert (result.n_pairs, result.difference) == (2, pytest.approx(3.15))  # the seed without a partner is left out
    assert result.ci95 == pytest.approx(12.706 * 0.35, rel=1e-3)  # 3.5 and 2.8: their error is 0.35
    twice = [*measured[:4], pair("first", "nearest", 77.0, 1), pair("first", "farthest", 72.5, 1)]
    (more,) = transfer.matched_differences(transfer.run_table(twice))
    assert (more.n_pairs, more.n_splits, more.difference) == (3, 2, pytest.approx(3.4))  # 4.0 of two seeds, and 2.8
    assert more.ci95 == pytest.approx(12.706 * 0.6, rel=1e-3)  # seeds of one split are no further splits
    (item,) = transfer.matched_differences(transfer.run_table(measured[:2]))
    assert item.ci95 is None and transfer.slopes(transfer.run_table(measured)) == []


def test_runs_on_other_splits_are_in_the_table_and_in_no_comparison() -> None:
    table = transfer.run_table([run(0, "maml", {"mode": "own"}, 60.0), ("run1", {"split": {}}, None)])
    assert len(table) == 1 and table["comparison"].tolist() == [""]
    assert transfer.slopes(table) == transfer.matched_differences(table) == []


@pytest.fixture(scope="module")
def demo() -> tuple:
    dataset = datasets.load("demo")
    return dataset, class_splits.class_features(dataset, "efficientnet_lite0")


def test_the_mirror_image_holds_out_the_other_side(demo) -> None:
    dataset, classes = demo
    result = class_splits.find_split(dataset, classes, divergence=2.0)
    second = transfer.mirrored(result)
    assert {s: len(ids) for s, ids in second.parts.items()} == {s: len(ids) for s, ids in result.split.parts.items()}
    assert not set(second.on("val", "test")) & set(result.split.on("val", "test"))
    with pytest.raises(BadInput, match="two sides to swap"):
        transfer.mirrored(class_splits.find_split(dataset, classes, mode="random"))


def test_matched_splits_share_the_test_classes_and_no_train_class(demo) -> None:
    dataset, classes = demo
    split = class_splits.find_split(dataset, classes, divergence=2.0).split
    parts = transfer.matched_splits(classes, split)
    near, far = parts["nearest"], parts["farthest"]
    for side in ("val", "test"):
        assert np.array_equal(near.on(side), split.on(side)) and np.array_equal(far.on(side), split.on(side))
    assert len(near.on("train")) == len(far.on("train")) == len(split.on("train")) // 2
    assert not set(near.on("train")) & set(far.on("train"))
    apart = [class_splits.of_parts(classes, part.parts).nearest for part in (near, far)]
    assert apart[0] < apart[1]
    with pytest.raises(BadInput, match="share no class"):
        transfer.matched_splits(classes, split, 0.6)


def test_a_grid_has_a_run_for_every_cell(demo) -> None:
    dataset, classes = demo
    specs = transfer.grid(dataset, classes, ["maml", "anil"], (0.0, 2.0), (0, 1), matched_at=2.0, epochs=3)
    assert len(specs) == 2 * 2 * (2 * 2 + 2 * 2)
    assert {spec["epochs"] for spec in specs} == {3} and {spec["seed"] for spec in specs} == {0, 1}
    names = {spec["split"]["name"] for spec in specs}
    assert {"r0-first", "r2-second", "r2-first-nearest", "r2-second-farthest"} <= names and len(names) == 8
    table = transfer.run_table((f"run{i}", spec, {"results": []}) for i, spec in enumerate(specs))
    assert table.empty
    assert transfer.training_grid("nothing") == []
    own = transfer.grid(dataset, classes, ["multiclass", "maml"], (0.0,), order="first", batch=32)
    assert {s["method"]: ("order" in s, "batch" in s) for s in own} == {
        "multiclass": (False, True),
        "maml": (True, False),
    }
    with pytest.raises(UnknownName, match="epochs"):
        transfer.grid(dataset, classes, ["maml"], (0.0,), epoch=3)
    compared = transfer.grid(dataset, classes, ["anil"], (), compared=["random", "superclasses", "own"])
    assert [spec["split"]["recipe"]["mode"] for spec in compared] == ["random", "superclasses", "own"]
    assert len(compared[2]["split"]["test"]) == len(dataset.splits["test"])
    with pytest.raises(UnknownName, match="superclasses"):
        transfer.grid(dataset, classes, ["anil"], (), compared=["superclass"])


def test_a_split_without_divergence_can_be_trained_on_and_stands_in_no_curve(demo) -> None:
    dataset, classes = demo
    result = class_splits.find_split(dataset, classes, mode="random", seed=3)
    facts = transfer.split_to_train(dataset, classes, result)
    assert facts["name"] == "random-seed3" and "comparison" not in facts["recipe"]
    half = transfer.split_to_train(dataset, classes, result, trained_on="nearest")
    assert half["test"] == facts["test"] and set(half["train"]) < set(facts["train"])
    assert half["recipe"]["comparison"] == "matched"


def test_the_recorded_grid_is_whole() -> None:
    """Every method at every divergence on both sides, matched pairs, and correlations of every run."""
    (first, *rest) = transfer.training_grid("demo")
    rows, facts = first.rows, first.facts
    recipe = facts["recipe"]
    cells = rows[rows["comparison"] == "divergence"].groupby(["method", "asked", "side", "seed"]).size()
    methods = [*recipe["methods"], "finetune"]
    assert len(cells) == len(methods) * len(recipe["targets"]) * 2 * len(recipe["seeds"]) and (cells == 1).all()
    assert {pair.method for pair in transfer.matched_differences(rows)} == set(methods)
    assert rows["accuracy"].between(25, 100).all() and (rows["ci95_classes"] > rows["ci95"]).mean() > 0.9
    for grid in (first, *rest):
        assert {row["run"] for row in grid.facts["correlations"]} == set(grid.rows["run"])
        slopes = [slope for slope in transfer.slopes(grid.rows) if slope.sides == "both"]
        assert slopes and all(slope.ci95 is not None for slope in slopes)
        assert transfer.matched_differences(grid.rows) and len({g.title for g in (first, *rest)}) == 1 + len(rest)


def grid_of(seed: int, **more) -> dict:
    rows = [{"method": "anil", "seed": seed, "accuracy": 50.0 + seed, "run": f"run{seed}"}]
    recipe = {"methods": ["anil"], "seeds": [seed], "epochs": 2, **more}
    values = {"date": f"2026-11-{17 + seed}", "seconds": 10.0 * (seed + 1), "correlations": [{"run": f"run{seed}"}]}
    return {"dataset": "demo", "recipe": recipe, "rows": rows, **values}


def test_recorded_grids_of_other_seeds_are_joined() -> None:
    both = transfer.joined(grid_of(0), grid_of(1, compared=[]))  # the demo's recorded grid does not say an empty list
    assert both["recipe"] == {"methods": ["anil"], "seeds": [0, 1], "epochs": 2} and both["seconds"] == 30
    assert [row["accuracy"] for row in both["rows"]] == [50, 51] and len(both["correlations"]) == 2
    assert both["date"] == "2026-11-17, 2026-11-18"
    three = transfer.joined(both, {**grid_of(2), "date": "2026-11-18"})
    assert three["recipe"]["seeds"] == [0, 1, 2] and three["date"] == both["date"]
    with pytest.raises(BadInput, match="Seed 1 is recorded already"):
        transfer.joined(both, grid_of(1))
    with pytest.raises(BadInput, match="differ in: epochs 2 and 3; width None and 8"):
        transfer.joined(both, grid_of(2, epochs=3, width=8))
    with pytest.raises(BadInput, match="dataset 'demo' and 'pets'"):
        transfer.joined(both, {**grid_of(2), "dataset": "pets"})


def test_the_script_joins_a_grid_that_is_finished(tmp_path: Path) -> None:
    recorded = transfer.training_grid("demo")[0]
    facts = {**recorded.facts, "rows": recorded.rows.to_dict("records")}
    recipe = {**facts["recipe"], "seeds": [9]}
    rows = [{**row, "seed": 9, "accuracy": row["accuracy"] + 2} for row in facts["rows"]]
    for name, item in (("old", facts), ("new", {**facts, "recipe": recipe, "rows": rows})):
        write_json(tmp_path / name, plain_json(item))
    script = [sys.executable, str(ROOT / "scripts" / "train_grid.py")]
    target = ["--add-to", str(tmp_path / "old"), "--from", str(tmp_path / "new")]
    subprocess.run([*script, *target], check=True, capture_output=True, cwd=tmp_path)
    both = read_json(tmp_path / "old")
    assert both["recipe"]["seeds"] == [*facts["recipe"]["seeds"], 9] and len(both["rows"]) == 2 * len(rows)
    again = subprocess.run([*script, *target], capture_output=True, text=True, cwd=tmp_path)
    assert again.returncode == 2 and "Seed 9 is recorded already" in again.stderr
    before, after = (transfer.slopes(pd.DataFrame(r, columns=list(transfer.COLUMNS))) for r in (rows, both["rows"]))
    assert [s.slope for s in after] == pytest.approx([s.slope for s in before])  # all higher by 1, as steep
    assert [s.ci95 for s in after] == pytest.approx([s.ci95 for s in before])  # and no more certain


def test_the_divergence_of_a_task_grows_with_its_distance_from_the_train_classes() -> None:
    around = np.array([0.0, 0.1, 0.2, 0.5, 1.5, 2.5])  # directions of six classes: three train, three to ask for
    means = np.stack([np.cos(around), np.sin(around)], axis=1)
    classes = class_splits.ClassFeatures("toy", "toy", np.arange(6), tuple("abcdef"), means)
    tasks = Tasks(np.array([[0, 2], [3, 3], [4, 4], [5, 5]]))
    result = transfer.task_divergences(classes, np.arange(3), tasks)
    assert set(result) == {*clustering.DIVERGENCES, *gaussians.TITLES}
    for values in result.values():
        assert (np.diff(values) > 0).all()
    centre = np.stack([np.cos(around), np.sin(around)], axis=1)[:3].mean(axis=0)
    assert result["euclidean"][3] == pytest.approx(np.linalg.norm(centre - [np.cos(2.5), np.sin(2.5)]), abs=1e-5)
    # KL by hand: softmax of minus squared distances over the three train classes and the task's, here twice
    points = np.stack([np.cos(around), np.sin(around)], axis=1)[[0, 1, 2, 5, 5]]
    logits = -((points[None] - np.stack([centre, points[-1]])[:, None]) ** 2).sum(-1)
    p, q = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert result["kl"][3] == pytest.approx((p * np.log(p / q)).sum())
    assert result["symmetric_kl"][3] == pytest.approx(((p - q) * np.log(p / q)).sum())
    with pytest.raises(Missing, match="no features under toy"):
        transfer.task_divergences(classes, np.arange(3), Tasks(np.array([[7, 8]])))
