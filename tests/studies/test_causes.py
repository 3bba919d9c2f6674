"""Causes of difficulty: measured tasks, planted causes that are named, and selected tasks that are described."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from fsviz import cli, jobs
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import BadInput, UnknownName
from fsviz.records import Tasks
from fsviz.studies import causes
from fsviz.studies.causes import MeasuredTasks
from tests.studies.toy_dataset import make_toy

SPEC = {"study": "causes", "dataset": "toy", "backbone": "alpha_net", "methods": ["protonet"]}
SPEC |= {"n_tasks": 60, "n_shot": 2, "n_query": 5}


@pytest.fixture
def toy() -> MeasuredTasks:
    make_toy(noise=2.0)
    return jobs.compute(SPEC)


def measured_tasks(n_tasks: int = 300, seed: int = 0, **weights: float) -> MeasuredTasks:
    """Tasks whose measures are noise, and whose accuracy these measures move."""
    rng = np.random.default_rng(seed)
    class_ids = np.stack([rng.choice(30, 5, replace=False) for _ in range(n_tasks)])
    query = np.zeros((n_tasks, 5, 10), dtype=np.int64)
    measures = {name: rng.normal(size=n_tasks) for name in MEASURES}
    accuracy = 0.7 + 0.04 * rng.normal(size=n_tasks) + sum(w * measures[name] for name, w in weights.items())
    spec = {**causes.check({"dataset": "demo", "backbone": "efficientnet_lite0"}), "digest": "made"}
    tasks = Tasks(class_ids, query[:, :, :1], query)
    return MeasuredTasks(spec, tasks, measures, {"ProtoNet": accuracy}, {}, {})


def test_measures_and_accuracies_are_those_of_the_engine(toy: MeasuredTasks) -> None:
    from fsviz import datasets, evaluation
    from fsviz.studies import evaluate, task_measures

    dataset = datasets.load("toy")
    predictions = evaluate.predict_tasks(dataset, "alpha_net", "protonet", {}, toy.tasks)
    np.testing.assert_array_equal(toy.accuracy["ProtoNet"], evaluation.task_accuracy(predictions))
    expected = task_measures.measure_tasks(toy.tasks, dataset, "alpha_net")
    assert set(toy.measures) == set(expected) and set(toy.unknown) == set(MEASURES) - set(expected)
    for name, values in toy.measures.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5, err_msg=name)
    assert (toy.n_queries == 25).all()


def test_a_run_finds_what_was_measured_at_once_and_the_first_tasks_are_the_first(toy: MeasuredTasks) -> None:
    run = jobs.run_in_foreground(SPEC)
    result = jobs.result(run.id)
    assert result.spec["digest"] == toy.spec["digest"]
    for name, values in result.measures.items():
        np.testing.assert_allclose(values, toy.measures[name], rtol=1e-6, err_msg=name)
    assert jobs.find({**SPEC, "most": 10}) == run
    few = jobs.compute({**SPEC, "most": 10})
    np.testing.assert_array_equal(few.tasks.support, toy.tasks.support[:10])
    results = jobs.results(run.id)
    assert results["methods"]["ProtoNet"]["accuracy"] == pytest.approx(float(toy.accuracy["ProtoNet"].mean()))
    assert set(results["methods"]["ProtoNet"]["explained"]) == {"before", "support", "labelled"}


def test_an_evaluation_brings_its_tasks_and_its_accuracies(
    toy: MeasuredTasks, capsys: pytest.CaptureFixture[str]
) -> None:
    sampler = {"sampler": "uniform", "n_tasks": 60, "n_shot": 2, "n_query": 5}
    spec = {"study": "evaluate", "dataset": "toy", "backbones": ["alpha_net"], "methods": ["protonet", "ridge"]}
    run = jobs.run_in_foreground({**spec, "sampler": sampler})
    assert cli.main(["causes", "toy", "--run", run.id, "--json"]) == 0
    captured = json.loads(capsys.readouterr().out)
    assert set(captured["methods"]) == {"ProtoNet", "Ridge regression (R2D2)"}
    expected = {row["label"]: row["accuracy"] / 100 for row in jobs.results(run.id)["results"]}
    assert {m: item["accuracy"] for m, item in captured["methods"].items()} == pytest.approx(expected)


def test_the_command_tells_every_number_and_writes_the_table(
    toy: MeasuredTasks, capsys: pytest.CaptureFixture[str], tmp_path
) -> None:
    command = causes.command(toy.spec).split()[1:]
    assert cli.main([*command, "--out", str(tmp_path / "tasks.csv")]) == 0
    text = capsys.readouterr().out
    assert "Coarsity" in text and "ProtoNet:" in text and "Query sampling noise: at most" in text
    assert "Context overlap: not available. Toy has no contexts of its images" in text
    rows = (tmp_path / "tasks.csv").read_text().splitlines()
    assert rows[0].startswith("task,coarsity,") and rows[0].endswith(",ProtoNet") and len(rows) == 61


@pytest.mark.parametrize("name", ["coarsity", "class_overlap", "attribute_gap", "train_distance"])
def test_the_planted_cause_is_the_one_that_is_named(name: str) -> None:
    measured = measured_tasks(**{name: 0.05})
    variance = causes.explained(measured, "ProtoNet")
    sentence, more = causes.headline(measured, "ProtoNet", variance)
    cause, total = MEASURES[name].cause, variance.total
    share = variance.lost[cause]
    assert sentence == (
        f"Main cause for ProtoNet: {causes.cause_name(cause)}. It uniquely explains {share.value:.0%} of the "
        f"variation in accuracy (95% CI {100 * share.low:.0f} to {100 * share.high:.0f}%)."
    )
    interval = f"95% CI {100 * total.low:.0f} to {100 * total.high:.0f}%"
    assert more == f"All measures together: {total.value:.0%} ({interval})."


def test_the_answer_lists_the_other_significant_causes_by_share() -> None:
    measured = measured_tasks(500, coarsity=0.05, class_overlap=0.03, attribute_gap=0.02)
    variance = causes.explained(measured, "ProtoNet")
    sentence, more = causes.headline(measured, "ProtoNet", variance)
    assert sentence.startswith("Main cause for ProtoNet: semantically close classes.")
    looks, shift = (variance.lost[cause].value for cause in ("looks", "shift"))
    assert looks > shift
    names = f"Next: class overlap in feature space ({looks:.0%}) and support–query shift ({shift:.0%})."
    assert more.startswith(names)


def test_shares_by_stage_and_noise_that_none_of_them_explains() -> None:
    measured = measured_tasks(coarsity=0.05)
    by_stage = {stage: causes.explained(measured, "ProtoNet", stage) for stage in causes.STAGE.choices}
    numbers = causes.explained_numbers(by_stage)
    assert [number.value for number in numbers] == [100 * variance.total.value for variance in by_stage.values()]
    most = max(variance.total.value for variance in by_stage.values())
    noise = causes.sampling_noise(measured, "ProtoNet")
    assert causes.unexplainable(measured, "ProtoNet", by_stage) == pytest.approx(min(noise, 1 - most))
    noisy = measured_tasks()
    nothing = {"before": causes.explained(noisy, "ProtoNet", "before")}
    (number,) = causes.explained_numbers(nothing)
    assert number.value is None and number.words == "not significant"
    assert causes.unexplainable(noisy, "ProtoNet", nothing) == causes.sampling_noise(noisy, "ProtoNet")


def test_the_strongest_measure_has_its_expected_sign_and_needs_no_predictions() -> None:
    harder = measured_tasks(class_overlap=-0.05, coarsity=0.03)
    assert causes.strongest_measure(harder, "ProtoNet") == "class_overlap"  # higher is harder
    wrong_sign = measured_tasks(class_overlap=0.05, coarsity=0.03, query_loss=-0.09)
    assert causes.strongest_measure(wrong_sign, "ProtoNet") == "coarsity"
    flat = replace(harder, accuracy={"ProtoNet": np.full(300, 0.5)})
    assert causes.strongest_measure(flat, "ProtoNet") == ""


def test_noise_is_called_noise() -> None:
    result = measured_tasks()
    expected = causes.explained(result, "ProtoNet")
    sentence, more = causes.headline(result, "ProtoNet", expected)
    assert sentence.startswith("No single cause for ProtoNet: all measures together explain")
    assert more == "This is not significant."
    assert "No cause explains accuracy significantly" in causes.describe_selection(
        result, "ProtoNet", expected, causes.select_tasks(result, "ProtoNet")
    )


def test_a_stage_knows_what_those_before_it_know_and_never_the_answers() -> None:
    result = measured_tasks()
    stages = [{n for group in causes.causes_at(result, s).values() for n in group} for s in causes.STAGE.choices]
    assert stages[0] < stages[1] < stages[2] == set(MEASURES) - {"query_loss"}
    assert stages[0] == {"coarsity", "closest_pair", "davies_bouldin", "graph_connectivity", "attribute_gap"}


def test_families_are_measures_that_say_the_same_whatever_their_direction() -> None:
    result = measured_tasks()
    turned = {
        **result.measures,
        "support_separation": -result.measures["support_loss"],
    }  # easier where the other is harder
    matrix, groups = causes.families(replace(result, measures=turned))
    assert matrix.loc["support_separation", "support_loss"] == pytest.approx(1)
    assert [set(group) for group in groups if len(group) > 1] == [{"support_separation", "support_loss"}]
    assert list(matrix.columns) == [name for group in groups for name in group]


def test_the_hardest_tenth_is_chosen_and_a_brush_chooses_by_ranges() -> None:
    result = measured_tasks(coarsity=0.05)
    accuracy = result.accuracy["ProtoNet"]
    which = causes.select_tasks(result, "ProtoNet")
    assert which.sum() == 30 and accuracy[which].max() <= accuracy[~which].min()
    brush = causes.brush_text({"coarsity": (0.5, -0.5), "accuracy": (0.0, 0.7)})
    values = result.measures["coarsity"]
    np.testing.assert_array_equal(
        causes.select_tasks(result, "ProtoNet", brush),
        (values >= -0.5) & (values <= 0.5) & (accuracy >= 0) & (accuracy <= 0.7),
    )
    by_rank = causes.select_tasks(result, "ProtoNet", "rank coarsity~0.9~1")
    assert by_rank.sum() == 30 and values[by_rank].max() <= values[~by_rank].min()  # low coarsity is hard
    expected = causes.explained(result, "ProtoNet")
    assert causes.select_tasks(result, "ProtoNet", "expected~0~1", expected).all()
    with pytest.raises(UnknownName, match="axis of selected tasks"):
        causes.select_tasks(result, "ProtoNet", "colour~0~1")
    with pytest.raises(BadInput, match="axis~low~high"):
        causes.select_tasks(result, "ProtoNet", "coarsity~1")


def test_chosen_tasks_stand_out_where_they_do_and_nowhere_else() -> None:
    result = measured_tasks(coarsity=0.06)
    means = causes.extremes(result, causes.select_tasks(result, "ProtoNet")).set_index("measure")
    assert means.loc["coarsity", "rank"] > 0.75 and means.loc["coarsity", "is_significant"]
    assert means["is_significant"].sum() == 1
    assert causes.extremes(result, np.ones(len(result), dtype=bool)).empty


def test_what_parts_chosen_tasks_from_all_adds_up() -> None:
    result = measured_tasks(coarsity=0.06)
    expected, which = causes.explained(result, "ProtoNet"), causes.select_tasks(result, "ProtoNet")
    parts = causes.selection_breakdown(result, "ProtoNet", expected, which)
    accuracy = result.accuracy["ProtoNet"]
    assert parts["below"] == pytest.approx(accuracy.mean() - accuracy[which].mean())
    assert parts["below"] == pytest.approx(sum(v for k, v in parts.items() if k != "below"))
    assert parts["meaning"] > 0.6 * parts["below"]
    words = causes.describe_selection(result, "ProtoNet", expected, which)
    assert f"{100 * parts['below']:.1f} points below the mean" in words and "semantically close classes" in words
    numbers = [float(n) for n in re.findall(r"-?\d+\.\d", words)]
    assert numbers[0] == pytest.approx(sum(numbers[1:]), abs=0.2), words
    easy = causes.select_tasks(result, "ProtoNet", "rank coarsity~0~0.1")
    words = causes.describe_selection(result, "ProtoNet", expected, easy)
    assert "above the mean" in words and "semantically close classes" in words
    with pytest.raises(BadInput, match="wider range"):
        causes.selection_breakdown(result, "ProtoNet", expected, np.zeros(len(result), dtype=bool))


def test_calibration_groups_hold_every_task_once() -> None:
    result = measured_tasks(coarsity=0.06)
    expected = causes.explained(result, "ProtoNet")
    table = causes.calibration(result, "ProtoNet", expected)
    assert table["n_tasks"].sum() == 300 and table["expected"].is_monotonic_increasing
    weighted = (table["accuracy"] * table["n_tasks"]).sum() / 300
    assert weighted == pytest.approx(result.accuracy["ProtoNet"].mean())
    assert (np.abs(table["accuracy"] - table["expected"]) < 0.05).all()


def test_bad_specs_are_refused_in_a_sentence(toy: MeasuredTasks) -> None:
    for bad, message in (
        ({"methods": ["proto"]}, "proto"),
        ({"methods": []}, "at least one method"),
        ({"testbed": "a", "run": "b"}, "not both"),
        ({"colour": 1}, "colour"),
        ({"backbone": ""}, "backbone"),
    ):
        with pytest.raises((BadInput, UnknownName), match=message):
            causes.check({**SPEC, **bad})
    with pytest.raises(BadInput, match="accuracies of 3 tasks"):
        causes.with_predictions(toy, {"mine": np.zeros(3)})
    with pytest.raises(BadInput, match="at least 50 tasks"):
        causes.explained(replace(toy, accuracy={"ProtoNet": np.full(60, np.nan)}), "ProtoNet")


def test_what_stands_out_by_the_classes_alone_is_chance() -> None:
    """Accuracy and measures both hang on the classes, though not on each other."""
    wrong = 0
    for seed in range(10):
        result, rng = measured_tasks(seed=seed), np.random.default_rng(100 + seed)
        of_class = {name: rng.normal(size=30)[result.tasks.class_ids].mean(axis=1) for name in (*MEASURES, "accuracy")}
        accuracy = {"ProtoNet": 0.7 + 0.1 * of_class.pop("accuracy")}
        result = replace(result, measures=of_class, accuracy=accuracy)
        wrong += bool(causes.extremes(result, causes.select_tasks(result, "ProtoNet"))["is_significant"].any())
    assert wrong <= 3
