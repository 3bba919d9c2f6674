"""Runs side by side: hand-computed tables, corrections and ranks; names escaped wherever they are printed."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.analyses.run_comparison import MethodRun, by_measure, intervals
from fsviz.errors import BadInput, Missing
from fsviz.records import Dataset, Predictions, Tasks
from fsviz.reports import tables
from fsviz.studies import evaluate
from fsviz.tasks import snapshot
from tests.studies.toy_dataset import make_toy


def line(label: str, accuracy, digest: str = "same", coarsity=None, **more) -> MethodRun:
    accuracy = np.asarray(accuracy, dtype=float)
    measures = {} if coarsity is None else {"coarsity": np.asarray(coarsity, dtype=float)}
    values = {
        "run_id": "r1",
        "entry": 0,
        "method": label.lower(),
        "backbone": "net",
        "dataset": "toy",
        "testbed": "bed",
    }
    values |= {"setting": "4-way 1-shot"} | more
    return MethodRun(
        label=label,
        digest=digest,
        accuracy=accuracy,
        top5=np.ones(len(accuracy)),
        loss=1 - accuracy,
        measures=measures,
        **values,
    )


EIGHT = [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_table_by_hand() -> None:
    lines = [line("A", [0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], coarsity=EIGHT), line("B", [0.5] * 8, coarsity=EIGHT)]
    table = run_comparison.result_table(lines).set_index("name")
    assert table.loc["A", "accuracy"] == pytest.approx(62.5)
    assert table.loc["A", ["Q1", "Q2", "Q3", "Q4"]].tolist() == pytest.approx([10, 50, 90, 100])
    assert table.loc["B", "ci95"] == 0 and table.loc["B", "n_tasks"] == 8
    marks = tables.best(run_comparison.result_table(lines))
    assert marks["accuracy"].tolist() == [True, False]
    assert marks["Q1"].tolist() == [False, True] and marks["Q2"].tolist() == [True, True]
    assert marks["loss"].tolist() == [True, False]


def test_the_best_is_sought_among_the_same_tasks_only() -> None:
    lines = [
        line("A", [0.5]),
        line("B", [0.6]),
        line("C", [0.9], digest="other"),
        line("D", [0.1, 0.2], digest="third"),
    ]
    marks = tables.best(run_comparison.result_table(lines))
    assert marks["accuracy"].tolist() == [False, True, False, False]  # a line alone has nothing to win against


def test_lines_get_names_that_tell_them_apart() -> None:
    same = [line("A", [1]), line("B", [1])]
    assert list(run_comparison.by_name(same)) == ["A", "B"]
    assert list(run_comparison.by_name([line("A", [1]), line("A", [1], backbone="big")])) == ["A · net", "A · big"]
    twice = [line("A", [1]), line("A", [1], run_id="r2")]
    assert list(run_comparison.by_name(twice)) == ["A · run r1", "A · run r2"]


def test_paired_differences_by_hand() -> None:
    random = np.random.default_rng(0)
    base = random.uniform(0.3, 0.7, 400)
    better, same = base + 0.05 + 0.02 * random.standard_normal(400), base + 0.02 * random.standard_normal(400)
    result = run_comparison.differences([line("Base", base), line("Better", better), line("Same", same)], "Base")
    result = result.set_index("name")
    assert result.loc["Better", "difference"] == pytest.approx(100 * (better - base).mean())
    assert result.loc["Better", "significant"] and not result.loc["Same", "significant"]
    assert result.loc["Better", ["wins", "ties", "losses"]].sum() == 400
    assert run_comparison.differences([line("Base", base), line("Better", better)])["reference"].tolist() == ["Better"]
    assert run_comparison.differences([line("Base", base)]).empty


def test_different_tasks_are_not_compared() -> None:
    lines = [line("A", [1, 0]), line("B", [1, 0], digest="other")]
    for act in (run_comparison.differences, run_comparison.ranks):
        with pytest.raises(BadInput, match="These runs use 2 different testbeds"):
            act(lines)
    assert [len(group) for group in run_comparison.groups(lines).values()] == [1, 1]


def test_ranks_per_quartile() -> None:
    first = line("Fine", [1, 1, 0.5, 0.5, 0.2, 0.2, 0, 0], coarsity=EIGHT)
    second = line("Coarse", [0, 0, 0.5, 0.5, 0.3, 0.3, 1, 1], coarsity=EIGHT)
    ranks = run_comparison.ranks([first, second]).pivot(index="method", columns="bin", values="rank")
    assert ranks.loc["Fine"].tolist() == [1, 1.5, 2, 2]
    assert run_comparison.ranks([line("A", [1.0] * 8)]).empty  # no coarsity, no quartiles


def test_curves_are_rolling_means_in_percent() -> None:
    accuracy = np.linspace(0, 1, 1000)
    curve = run_comparison.curves([line("A", accuracy, coarsity=np.arange(1000.0))], window=101)["A"]
    assert len(curve) <= 400
    assert np.allclose(curve["accuracy"], 100 * curve["measure"] / 999)
    assert run_comparison.curves([line("A", accuracy)]) == {}


def test_confusions_lead_to_the_images() -> None:
    tasks = Tasks(
        np.array([[4, 7], [7, 4]]),
        np.array([[[0], [10]], [[11], [1]]]),
        np.array([[[2, 3], [12, 13]], [[14, 15], [2, 5]]]),
    )
    predicted = np.array(
        [[[1, 0], [1, 1]], [[0, 0], [0, 0]]], dtype=np.int16
    )  # class 4 is taken for 7: 2, then 2 and 5
    confidence = np.array([[[0.9, 0.8], [1, 1]], [[1, 1], [0.6, 0.7]]], dtype=np.float32)
    answer = Predictions(predicted, (predicted != np.arange(2)[:, None]).astype(np.int16), confidence, confidence)
    wrong = run_comparison.misclassified(answer, tasks, 4, 7)
    assert wrong["image_id"].tolist() == [2, 5] and wrong["times"].tolist() == [2, 1]
    assert wrong["confidence"].tolist() == pytest.approx([90, 70]) and wrong["task"].tolist() == [0, 1]
    assert run_comparison.misclassified(answer, tasks, 7, 4).empty
    names = pd.DataFrame({"class_name": list("abcdefgh"), "n_images": 1})
    classes = run_comparison.class_table(answer, tasks, Dataset("d", "D", names, {}))
    assert classes["class"].tolist() == ["e", "h"] and classes["accuracy"].tolist() == pytest.approx([25, 100])
    assert classes["queries"].tolist() == [4, 4] and classes["tasks"].tolist() == [2, 2]
    assert classes["instead"].tolist() == ["h", ""] and np.isnan(classes["instead_share"][1])


def test_the_most_common_error_of_a_class_by_hand() -> None:
    tasks = Tasks(np.array([[5, 2, 9]]), np.zeros((1, 3, 1), int), np.arange(12).reshape(1, 3, 4))
    predicted = np.array([[[0, 1, 2, 2], [1, 1, 1, 1], [0, 1, 1, 1]]], dtype=np.int16)
    rank = (predicted != np.arange(3)[:, None]).astype(np.int16)
    values = np.ones(predicted.shape, np.float32)
    names = pd.DataFrame({"class_name": list("abcdefghij"), "n_images": 1})
    answer = Predictions(predicted, rank, values, values)
    table = run_comparison.class_table(answer, tasks, Dataset("d", "D", names, {})).set_index("class")
    assert table.index.tolist() == ["j", "f", "c"] and table["accuracy"].tolist() == [0, 25, 100]
    assert table["instead"].tolist() == ["c", "j", ""]
    assert table["instead_share"].tolist()[:2] == pytest.approx([75, 200 / 3])


def test_lines_of_a_real_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    toy = make_toy(noise=2.0)
    spec = {
        "study": "evaluate",
        "dataset": "toy",
        "backbones": ["alpha_net"],
        "methods": ["protonet", "simpleshot"],
        "sampler": {"sampler": "semantic", "n_way": 4, "n_shot": 1, "n_query": 5, "n_tasks": 80, "beta": 10.0},
    }
    run = jobs.run_in_foreground(spec)
    settled = jobs.spec(run.id)
    lines = run_comparison.method_runs(run.id, settled, jobs.chunks(run.id))
    table = run_comparison.result_table(lines)
    assert table["accuracy"].tolist() == pytest.approx([r["accuracy"] for r in run.summary["results"]])
    assert table["Q1"].tolist() == pytest.approx([r["quartiles"][0] for r in run.summary["results"]])
    saved = run_comparison.method_runs(run.id, settled, jobs.chunks(run.id), run.summary)
    assert all(line.result for line in saved) and not any(line.result for line in lines)
    pd.testing.assert_frame_equal(
        run_comparison.result_table(saved), table, check_like=True, rtol=1e-4
    )  # 1.96, or 1.95996
    pd.testing.assert_frame_equal(run_comparison.correlations(saved), run_comparison.correlations(lines))
    answer = evaluate.predictions(settled, jobs.chunks(run.id), 0)
    tasks = snapshot.tasks(jobs.folder(run.id))
    pairs = run_comparison.pairs_table(answer, tasks, toy)
    low = (pairs["rate"] - pairs["ci95"])[pairs["ci95"].notna()]
    assert (pairs["rate"] > 0).all() and low.is_monotonic_decreasing and (pairs["tasks"][: len(low)] >= 3).all()
    top = pairs.iloc[0]
    has_both = [{int(top["class_id"]), int(top["taken_for"])} <= set(row) for row in tasks.class_ids.tolist()]
    way = (tasks.class_ids == top["class_id"]) & np.array(has_both)[:, None]
    assert top["queries"] == tasks.query[way].size and top["query_images"] == len(np.unique(tasks.query[way]))
    wrong = run_comparison.misclassified(answer, tasks, int(top["class_id"]), int(top["taken_for"]))
    assert wrong["times"].sum() == top["confused"] and len(wrong) == top["confused_images"]
    assert set(toy.image_class_ids()[wrong["image_id"]]) == {top["class_id"]}
    with pytest.raises(Missing, match="No task of this method"):
        evaluate.predictions(settled, [], 0)


def two_samplers() -> list[MethodRun]:
    both = {"semantic": ([0.2, 0.4, 0.6, 0.8], "s"), "uniform": ([0.9, 0.9, 0.8, 0.8], "u")}
    matches = []
    for sampler, (accuracy, digest) in both.items():
        for label, method, more in (("TIM", "tim", 0.1), ("ProtoNet", "protonet", 0.0)):
            output = line(label, np.array(accuracy) + more, digest, coarsity=[1, 2, 3, 4], sampler=sampler)
            matches.append(replace(output, method=method, testbed=f"{sampler} bed"))
    return matches


def test_semantic_and_uniform_tasks_stand_side_by_side_as_in_the_paper() -> None:
    (key, pairs), *more = run_comparison.side_by_side(run_comparison.result_table(two_samplers())).items()
    assert key == ("toy", "4-way 1-shot") and not more
    assert pairs["method"].tolist() == ["ProtoNet", "TIM"]  # inductive methods first
    assert pairs["semantic"].tolist() == pytest.approx([50, 60]) and pairs["uniform"].tolist() == pytest.approx(
        [85, 95]
    )
    assert pairs.loc[0, ["Q1", "Q2", "Q3", "Q4"]].tolist() == pytest.approx([20, 40, 60, 80])
    assert pairs.loc[0, "uniform_ci95"] == pytest.approx(
        1.96 * 100 * np.std([0.9, 0.9, 0.8, 0.8], ddof=1) / 2, rel=1e-4
    )
    assert run_comparison.side_by_side(run_comparison.result_table(two_samplers()[:2])) == {}
    lonely = run_comparison.side_by_side(run_comparison.result_table(two_samplers()[:3]))[key].set_index("method")
    assert np.isnan(lonely.loc["ProtoNet", "uniform"]) and lonely.loc["TIM", "uniform"] == pytest.approx(95)


def test_correlations_of_a_measure_with_accuracy_by_hand() -> None:
    lines = [line("Up", [0.1, 0.2, 0.4, 0.8], coarsity=[1, 2, 3, 4]), line("Flat", [0.5] * 4, coarsity=[1, 2, 3, 4])]
    correlations = run_comparison.correlations(lines).set_index("name")
    assert correlations.loc["Up", "pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [0.1, 0.2, 0.4, 0.8])[0, 1])
    assert correlations.loc["Up", "spearman"] == pytest.approx(1) and correlations.loc["Up", "n_tasks"] == 4
    assert (
        correlations.loc["Up", "pearson_low"]
        < correlations.loc["Up", "pearson"]
        < correlations.loc["Up", "pearson_high"]
        < 1
    )
    assert correlations.loc["Flat", ["pearson", "spearman_low"]].isna().all()
    assert run_comparison.correlations(lines, "unknown").empty


def test_intervals_over_images_are_wider_and_decide_what_is_real() -> None:
    """Two methods that differ on the images of a few classes: many tasks make it certain, other images need not."""
    rng = np.random.default_rng(0)
    class_ids = np.argsort(rng.random((2000, 8)), axis=1)[:, :4]
    images = class_ids[:, :, None] * 12 + np.argsort(rng.random((2000, 4, 12)), axis=2)
    tasks = Tasks(class_ids, images[:, :, :2], images[:, :, 2:7])
    ease = rng.random(96)  # how often each image is classified correctly, whatever the task
    second = np.clip(ease + rng.normal(0.01, 0.15, 96), 0, 1)
    right = [(rng.random(tasks.query.shape) < chance[tasks.query]).astype(float) for chance in (ease, second)]
    lines = [
        replace(line(label, values.mean((1, 2)), coarsity=rng.random(2000)), right=values, tasks=tasks)
        for label, values in zip("AB", right, strict=True)
    ]
    table = run_comparison.result_table(lines)
    assert (table["ci95_images"] > 3 * table["ci95"]).all() and (table["ci95_classes"] > table["ci95"]).all()
    assert run_comparison.with_interval(table, "images")["ci95"].equals(table["ci95_images"].rename("ci95"))
    over_tasks, over_images = (run_comparison.differences(lines, over=over).iloc[0] for over in ("tasks", "images"))
    assert over_tasks["difference"] == over_images["difference"]
    assert over_tasks["significant"] and not over_images["significant"]
    unknown = run_comparison.result_table([replace(lines[0], right=None, tasks=None)])
    assert unknown["ci95"].notna().all() and unknown["ci95_images"].isna().all()


def test_correlations_of_very_many_tasks_take_every_nth(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    accuracy, noise = rng.random(1000), rng.random(1000)
    whole = run_comparison.correlations([line("A", accuracy, coarsity=accuracy + noise)])
    monkeypatch.setattr(by_measure, "MAX_CORRELATED", 300)
    part = run_comparison.correlations([line("A", accuracy, coarsity=accuracy + noise)])
    assert whole["n_tasks"].tolist() == [1000] and part["n_tasks"].tolist() == [250]
    assert part["pearson"][0] == pytest.approx(whole["pearson"][0], abs=0.1)


def test_a_run_in_words_and_as_a_command_that_runs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsviz.cli import build_parser
    from fsviz.cli.evaluation import _methods

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    make_toy()
    sampler = {"sampler": "semantic", "n_way": 4, "n_shot": 2, "n_query": 5, "n_tasks": 20, "alpha": 0.5}
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "sampler": sampler, "device": "cpu"}
    spec |= {"methods": [{"name": "protonet"}, {"name": "tim", "parameters": {"steps": 5}}], "seed": 3}
    run = jobs.run_in_foreground(spec)
    values = dict(run_comparison.describe(run.spec))
    assert values["Dataset"] == "Toy" and values["Backbone"] == "alpha_net" and "TIM (steps 5)" in values["Methods"]
    assert values["Tasks"].startswith("20 of 4-way 2-shot, 5 query images per class, drawn by the sampler ")
    assert "jiang_conrath" not in values["Tasks"] and "seed 3" in values["Tasks"]
    args = build_parser().parse_args(shlex.split(run_comparison.command(run.spec))[1:])
    assert (args.dataset, args.backbone, args.alpha, args.seed, args.n_tasks) == ("toy", "alpha_net", 0.5, 3, 20)
    assert [m["parameters"].get("steps") for m in _methods(args.methods, args.set)][1] == 5
    both = {**spec, "sampler": None, "samplers": evaluate.both_samplers({**sampler, "n_shot": 1}, [1, 2])}
    assert "--side-by-side 1,2" in run_comparison.command(
        jobs.run_in_foreground({k: v for k, v in both.items() if v}).spec
    )
    assert run_comparison.command({**run.spec, "dataset": "gone"}) == ""


def test_extremes_and_tasks_around_a_value() -> None:
    tasks = Tasks(np.zeros((8, 2), int), np.zeros((8, 2, 1), int), np.zeros((8, 2, 1), int))
    item = replace(line("A", [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.8, np.nan], coarsity=EIGHT), tasks=tasks)
    hard, easy = run_comparison.extremes(item, 2)
    assert hard.tolist() == [1, 5] and easy.tolist() == [2, 6]
    near = run_comparison.nearest_tasks(item, "coarsity", EIGHT[2], 3)
    assert set(near.tolist()) == {1, 2, 3} and near.tolist() == [1, 3, 2]  # the hardest first
    assert [len(part) for part in run_comparison.extremes(replace(item, tasks=None))] == [0, 0]


def test_lines_are_named_by_titles_and_stay_apart() -> None:
    first = line("TIM", [0.5] * 8, coarsity=EIGHT, testbed="a_very_long_name_of_a_testbed_that_nobody_reads_1")
    lines = [replace(first, backbone="efficientnet_lite0", sampler="uniform"), replace(first, backbone="conv64f")]
    lines.append(replace(lines[0], testbed="another", digest="other", sampler="semantic"))
    lines.append(replace(lines[2], testbed="a third"))
    names = list(run_comparison.by_name(lines))
    assert len(names) == 4 and not any("efficientnet_lite0" in name for name in names)
    assert run_comparison.testbed_title(lines[0]).endswith(lines[0].setting)
    assert run_comparison.testbed_title(replace(first, sampler="imported")) == first.testbed


def test_confidence_is_held_against_right_and_wrong_answers_by_hand() -> None:
    from fsviz.records import Predictions

    shape = (1, 2, 2)
    rank = np.array([[[0, 0], [1, 0]]])
    sure = np.array([[[0.9, 0.4], [0.5, 0.5]]], dtype=np.float32)
    result = run_comparison.confidence_of(Predictions(np.zeros(shape, np.int16), rank, sure, sure))
    assert result.auroc == pytest.approx((1 + 0 + 0.5) / 3) and not result.orders and result.is_told
    flat = np.full(shape, 0.22, dtype=np.float32)
    result = run_comparison.confidence_of(Predictions(np.zeros(shape, np.int16), rank, flat, flat))
    assert result.auroc == 0.5 and not result.is_told
    result = run_comparison.confidence_of(Predictions(np.zeros(shape, np.int16), np.zeros(shape), sure, sure))
    assert np.isnan(result.auroc) and not result.orders


# --- partial lines, and what intervals are over ------------------------------------------------------------------


def queries(n_tasks: int = 400, n_classes: int = 12, seed: int = 0, easier: float = 0.0) -> tuple[np.ndarray, Tasks]:
    """Right answers (T, 3, 4) of tasks whose classes and images differ in how hard they are, and the tasks."""
    random = np.random.default_rng(seed)
    ids = np.array([random.permutation(n_classes)[:3] for _ in range(n_tasks)])
    images = ids[:, :, None] * 20 + np.argsort(random.random((n_tasks, 3, 20)), axis=2)[:, :, :5]
    hard = np.random.default_rng(1)
    chance = (
        0.6 + 0.2 * hard.standard_normal(n_classes)[ids][:, :, None] + 0.1 * hard.standard_normal(240)[images[..., 1:]]
    )
    right = (random.random(chance.shape) < chance + easier).astype(float)
    return right, Tasks(ids, images[:, :, :1], images[:, :, 1:])


def with_queries(label: str, n_done: int = 400, **more) -> MethodRun:
    right, tasks = queries(**more)
    accuracy = right.mean(axis=(1, 2))
    accuracy[n_done:] = np.nan
    right[n_done:] = np.nan
    coarsity = np.random.default_rng(2).random(len(tasks))
    return replace(line(label, accuracy, coarsity=coarsity), right=right, tasks=tasks)


def test_partial_lines_are_compared_on_the_tasks_that_all_have_finished() -> None:
    whole, half = line("Whole", [0.2] * 50 + [1.0] * 50), line("Half", [0.4] * 50 + [np.nan] * 50, entry=1)
    groups, notes = run_comparison.group_by_tasks([whole, half])
    (group,) = groups.values()
    assert [item.label for item in group] == ["Half", "Whole"]  # on the common tasks: over its own, Whole has 60%
    assert notes == [
        "Of 100 tasks Half has finished 50. All methods are compared on the 50 tasks that every method has finished."
    ]
    table = run_comparison.result_table(group).set_index("name")
    assert table["n_tasks"].tolist() == [50, 50] and table.loc["Whole", "accuracy"] == pytest.approx(20)
    assert run_comparison.differences([whole, half], over="tasks")["reference"].tolist() == ["Half"]
    assert run_comparison.group_by_tasks([whole])[1] == []


def test_a_line_that_has_hardly_begun_is_left_out_and_named() -> None:
    whole, begun = line("Whole", [0.5] * 100), line("Begun", [1.0] * 5 + [np.nan] * 95, entry=1)
    groups, notes = run_comparison.group_by_tasks([whole, begun])
    assert [item.label for item in groups["same"]] == ["Whole"] and np.isfinite(groups["same"][0].accuracy).all()
    assert notes == ["Of 100 tasks Begun has finished 5. Excluded, too few tasks: Begun."]
    assert run_comparison.differences([whole, begun]).empty


def test_a_partial_line_has_the_intervals_of_its_common_tasks() -> None:
    both = [with_queries("A"), with_queries("B", 200, easier=0.1)]
    (group,) = run_comparison.group_by_tasks(both)[0].values()
    first = [
        replace(
            item,
            accuracy=item.accuracy[:200],
            right=item.right[:200],
            tasks=item.tasks.take(slice(0, 200)),
            measures={},
        )
        for item in both
    ]
    for over in run_comparison.CI_UNITS:
        mine, theirs = (run_comparison.differences(lines, "A", over).iloc[0] for lines in (group, first))
        assert mine["difference"] == pytest.approx(theirs["difference"]) and mine["ci95"] == pytest.approx(
            theirs["ci95"]
        )


def test_intervals_are_over_the_widest_that_is_known_unless_one_is_chosen() -> None:
    lines = [with_queries("A"), with_queries("B", easier=0.05)]
    assert run_comparison.widest(lines) == "classes"
    assert run_comparison.differences(lines)["over"].tolist() == ["classes"]
    same_classes = np.tile(np.arange(3), (400, 1))
    always = [replace(item, tasks=Tasks(same_classes, item.tasks.support, item.tasks.query)) for item in lines]
    assert run_comparison.widest(always) == "images"
    unknown = [replace(item, right=None, tasks=None) for item in lines]
    assert run_comparison.widest(unknown) == "tasks" and run_comparison.differences(unknown)["over"].tolist() == [
        "tasks"
    ]
    assert run_comparison.differences(unknown, over="classes")["verdict"].tolist() == ["not available"]


def test_every_interval_follows_the_choice() -> None:
    item = with_queries("A")
    tables_ = {over: run_comparison.result_table([item], over=over).iloc[0] for over in run_comparison.CI_UNITS}
    for column in ("Q1_ci95", "Q4_ci95", "fine_to_coarse_ci95"):
        assert 0 < tables_["tasks"][column] < tables_["images"][column] and tables_["classes"][column] > 0
        assert tables_["tasks"][column] < tables_["classes"][column]
    assert len({table["fine_to_coarse"] for table in tables_.values()}) == 1
    bands = {over: run_comparison.curves([item], window=80, over=over)["A"] for over in run_comparison.CI_UNITS}
    assert bands["tasks"]["ci95"].mean() < bands["images"]["ci95"].mean()
    assert bands["tasks"]["ci95"].mean() < bands["classes"]["ci95"].mean()
    whole = run_comparison.curves([item], window=400, over="classes")[
        "A"
    ]  # one window of all tasks: the whole's interval
    assert whole["ci95"].tolist() == pytest.approx([100 * intervals.difference(item, None, "classes").ci95])
    over_tasks, over_classes = (run_comparison.correlations([item], over=over).iloc[0] for over in ("tasks", "classes"))
    assert over_tasks["over"] == "tasks" and over_tasks["pearson_low"] != over_classes["pearson_low"]
    assert np.isnan(run_comparison.correlations([item], over="images").iloc[0]["pearson_low"])


def test_the_interval_between_quarters_holds_the_truth_as_often_as_it_says() -> None:
    """Quarters by chance differ by nothing; they share classes and images, so the interval of independent quarters
    would be too wide."""
    held, halves, apart = [], [], []
    for seed in range(60):
        item = with_queries("A", seed=seed)
        item = replace(item, measures={"coarsity": np.random.default_rng(seed).random(400)})
        row = run_comparison.result_table([item], over="classes").iloc[0]
        held.append(abs(row["fine_to_coarse"]) <= row["fine_to_coarse_ci95"])
        halves.append(row["fine_to_coarse_ci95"])
        apart.append(np.hypot(row["Q1_ci95"], row["Q4_ci95"]))
    assert np.mean(held) >= 0.9 and np.median(halves) < 0.75 * np.median(apart)


def test_a_measure_that_is_the_same_in_all_tasks_gives_no_curve_no_quarters_and_says_why() -> None:
    """Sums in another order differ in the sixteenth digit, which is no difference."""
    constant = 8.25 + 1e-15 * np.arange(60)
    lines = [replace(with_queries(name, n_tasks=60), measures={"coarsity": constant}) for name in ("A", "B")]
    assert (
        run_comparison.measures_of(lines) == []
        and run_comparison.curves(lines) == {}
        and run_comparison.ranks(lines).empty
    )
    assert run_comparison.result_table(lines)[["Q1", "Q4"]].isna().all(axis=None)
    assert run_comparison.no_curve_reason(lines) == "Coarsity is 8.25 in every task: there is no accuracy by coarsity."
    ids = np.array([np.random.default_rng(t).permutation(3) for t in range(60)])
    all_classes = [replace(item, tasks=Tasks(ids, item.tasks.support, item.tasks.query)) for item in lines]
    assert run_comparison.no_curve_reason(all_classes).startswith(
        "Every task has the same 3 classes, so coarsity is 8.25"
    )
    assert "no taxonomy" in run_comparison.no_curve_reason([replace(lines[0], measures={})])
    assert run_comparison.no_curve_reason([with_queries("A")]) == ""


def test_curves_need_enough_tasks() -> None:
    """A rolling mean of 20 tasks out of 49 says little."""
    few, enough = (
        line("A", np.linspace(0, 1, n), coarsity=np.arange(n)) for n in (run_comparison.MIN_CURVE_TASKS - 1, 50)
    )
    assert run_comparison.measures_of([few]) == [] == run_comparison.measures_of([line("A", [0.5] * 60)])
    assert run_comparison.no_curve_reason([few]) == "Accuracy by coarsity needs at least 50 tasks; 49 are finished."
    assert run_comparison.measures_of([enough]) == ["coarsity"] and run_comparison.no_curve_reason([enough]) == ""


def compared(*lines: MethodRun) -> run_comparison.RunComparison:
    return run_comparison.compare(run_comparison.groups(lines), over="tasks")


def test_the_answer_names_the_best_method_and_every_method_that_it_does_not_beat() -> None:
    rng = np.random.default_rng(0)
    best = rng.uniform(0.6, 1, 200)
    near = line("Near", best - rng.normal(0.001, 0.1, 200))
    far = line("Far", best - rng.normal(0.2, 0.1, 200))
    clear, close = compared(line("Best", best), far), compared(line("Best", best), near, far)
    (row,) = clear.differences.to_dict("records")
    lead = f"{-row['difference']:.1f} ± {row['ci95']:.1f} points"
    top = clear.main_table.iloc[0]
    accuracy = f"{top['accuracy']:.1f} ± {top['ci95']:.1f}% (4-way 1-shot, net)"
    assert row["significant"] and row["p_holm"] < 0.001
    sentence = run_comparison.best_method(clear.main_table, clear.differences)
    assert sentence == f"Best is best: {accuracy}, {lead} ahead of Far (p < 0.001)."
    assert run_comparison.significance(clear) == (sentence, "200 tasks, 95% CI over tasks.")

    assert close.differences["significant"].tolist() == [False, True]
    row = close.differences.iloc[0]
    lead = f"{abs(row['difference']):.1f} ± {row['ci95']:.1f} points"
    name, second = row["reference"], row["name"]
    p = run_comparison.describe_p_value(row["p_holm"])
    sentence = run_comparison.best_method(close.main_table, close.differences, n_missing=1)
    assert sentence.startswith(f"No clear winner of 3 of 4 methods: {name}, ")
    assert sentence.endswith(f"% (4-way 1-shot, net), is not significantly better than {second} ({lead} behind, {p}).")
    both = run_comparison.significance(close, n_missing=2)
    assert both[0] == run_comparison.best_method(close.main_table, close.differences, n_missing=2)
    assert both[1].endswith("Significantly better than 1 of 2 other methods. 2 methods without results yet.")


def test_the_answer_names_the_sampler_and_the_backbone_unless_the_methods_do() -> None:
    sampled = compared(line("A", [0.5, 0.7], sampler="semantic"))
    assert "(semantic 4-way 1-shot, net)" in run_comparison.best_method(sampled.main_table, sampled.differences)
    two = compared(line("A", [0.5, 0.7]), line("A", [0.4, 0.7], backbone="wide", entry=1))
    sentence = run_comparison.best_method(two.main_table, two.differences)
    assert "A · net" in sentence and "A · wide" in sentence and "(4-way 1-shot)" in sentence


def test_the_answer_of_one_method_and_of_what_cannot_be_tested() -> None:
    alone = compared(line("Only", [0.5, 0.7]))
    sentence = "Only: 60.0 ± 19.6% (4-way 1-shot, net)."
    assert run_comparison.best_method(alone.main_table, alone.differences) == sentence
    more = "2 tasks, 95% CI over tasks. Evaluate a second method on the same tasks to compare."
    assert run_comparison.significance(alone) == (sentence, more)
    assert run_comparison.best_method(alone.main_table, alone.differences, 1).endswith("1 method not compared yet.")
    one_task = compared(line("A", [1.0]), line("B", [0.5]))
    assert run_comparison.significance(one_task) == (
        "No clear winner: A, 100.0% (4-way 1-shot, net), cannot be tested against B (50.0 points behind).",
        "1 task.",
    )
    quarters = compared(line("A", [0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], coarsity=EIGHT)).main_table.iloc[0]
    assert run_comparison.describe_quarters(quarters).startswith("fine-grained tasks (Q1) 10.0 ± 19.6%, coarse tasks")
    assert run_comparison.describe_quarters(quarters).endswith("(Q4) 100.0 ± 0.0%, +90.0 ± 19.6 points")
    assert run_comparison.describe_quarters(alone.main_table.iloc[0]) == ""


def test_top5_is_printed_from_six_ways_up() -> None:
    five, six = line("Five", [0.5] * 8, n_way=5), line("Six", [0.5] * 8, n_way=6)
    assert "Top-5 (%)" not in tables.printed(run_comparison.result_table([five]))[0]
    both, _ = tables.printed(run_comparison.result_table([five, replace(six, digest="other")]))
    assert both["Top-5 (%)"].tolist() == ["–", "100.00"]


def test_a_comparison_is_of_the_largest_group_and_its_tables_agree() -> None:
    same = [line("A", [0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1], coarsity=EIGHT), line("B", [0.5] * 8, coarsity=EIGHT)]
    several = [*same, line("A", [0.1] * 8, "other", EIGHT, testbed="other")]
    comparison = run_comparison.compare(run_comparison.groups(several), over="tasks")
    assert len(comparison.runs) == len(comparison.table) == len(several)
    assert {run.digest for run in comparison.main} == {"same"}
    own = run_comparison.with_interval(run_comparison.result_table(comparison.main), "tasks")
    pd.testing.assert_frame_equal(comparison.main_table, own)
    pd.testing.assert_frame_equal(comparison.differences, run_comparison.differences(comparison.main, over="tasks"))
    second = run_comparison.compare(run_comparison.groups(several), "other", "tasks")
    assert len(second.main) == 1 and second.differences.empty and second.main_table["testbed"].tolist() == ["other"]


def test_coarsity_without_effect_is_reported() -> None:
    effect = run_comparison.no_coarsity_effect
    none = {"value": 0.01, "ci95": [-0.1, 0.12]}
    positive = {"value": 0.4, "ci95": [0.2, 0.55]}
    sentence = effect({"ProtoNet": none}, {"ProtoNet": [78.9, 77.5, 78.5, 77.7]})
    assert sentence.startswith("Coarsity does not predict accuracy here")
    assert "ProtoNet 0.01, 95% CI -0.10 to 0.12; accuracy by quarter" in sentence
    assert "78.9, 77.5, 78.5, 77.7%" in sentence and "--distance features" in sentence
    assert effect({"ProtoNet": positive}) == effect({}) == ""
    assert effect({"ProtoNet": none, "TIM": positive}) == "", "one method that follows it is enough"
    assert effect({"ProtoNet": {"value": 0.1, "ci95": [float("nan")] * 2}}) == ""
    assert effect({"ProtoNet": {"value": -0.4, "ci95": [-0.5, -0.3]}}), "a negative correlation is no effect either"
