"""hard and stress from a terminal, as a user types them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsviz import jobs
from fsviz.cli import main
from fsviz.datasets.saved import save_dataset
from fsviz.sampling.testbeds import list_testbeds, load_testbed
from tests.cli.calling import fails, run_json
from tests.studies.shifted_dataset import make_shifted
from tests.studies.toy_dataset import make_toy

TASKS = ["--n-way", "4", "--n-shot", "3", "--n-query", "6", "--n-tasks", "30"]


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_shifted()


def test_hard_prints_the_promised_json_and_saves_the_testbed(shifted, capsys) -> None:
    answer = run_json(capsys, "hard", "shifted", "--backbone", "first", *TASKS)
    assert {"accuracy", "n_tasks", "testbed"} <= set(answer)
    assert answer["n_tasks"] == 30
    assert set(answer["accuracy"]) == {"hard", "random", "easy"}
    assert answer["accuracy"]["hard"] < answer["accuracy"]["random"] <= 100
    assert answer["testbed"] in list_testbeds()
    assert load_testbed(answer["testbed"], shifted).tasks.support.shape == (30, 4, 3)


def test_without_a_backbone_the_first_with_features_is_taken_and_devices_are_checked_first(shifted, capsys) -> None:
    assert "-hard-first-" in run_json(capsys, "hard", "shifted", "--device", "auto", *TASKS)["testbed"]
    before = len(jobs.list_runs())
    assert "Unknown device 'banana'" in fails(capsys, "hard", "shifted", "--device", "banana", *TASKS)
    assert len(jobs.list_runs()) == before, "found before anything is recorded"


def test_images_without_splits_are_drawn_from_all_classes(shifted, capsys) -> None:
    save_dataset(replace(shifted, splits={}), overwrite=True)
    assert "-all-" in run_json(capsys, "hard", "shifted", "--backbone", "first", *TASKS)["testbed"]
    assert run_json(capsys, "stress", "shifted", "--backbones", "first", "--adaptations", "protonet", *TASKS)["matrix"]


@pytest.mark.parametrize(
    "more",
    [
        ["--search", "greedy", "--n-sweeps", "1", "--n-tasks", "6"],
        ["--sampler", "variable"],
        ["--search", "fastdiffsel", "--start", "random", "--n-steps", "1"],
    ],
)
def test_other_searches_and_samplers(shifted, capsys, more: list[str]) -> None:
    answer = run_json(capsys, "hard", "shifted", "--backbone", "first", *TASKS, *more)
    assert answer["accuracy"]["hard"] < answer["accuracy"]["random"]


def test_the_easy_objective_saves_the_easy_sets(shifted, capsys) -> None:
    answer = run_json(capsys, "hard", "shifted", "--backbone", "first", *TASKS, "--objective", "easy")
    assert "-easy-" in answer["testbed"]
    assert load_testbed(answer["testbed"], shifted).recipe["sampler"] == "easy_sets"


def test_the_text_for_a_person(shifted, capsys) -> None:
    assert main(["hard", "shifted", "--backbone", "first", *TASKS]) == 0
    out = capsys.readouterr().out
    assert "Hard supports cost" in out
    assert "random" in out


def test_stress_prints_a_matrix(shifted, capsys) -> None:
    answer = run_json(
        capsys, "stress", "shifted", "--backbones", "first,second", "--adaptations", "protonet,tim", *TASKS
    )
    assert len(answer["matrix"]) == 4
    assert all(row["drop"] > 0 for row in answer["matrix"])
    assert main(["stress", "shifted", "--adaptations", "protonet", *TASKS]) == 0
    assert "Rank correlation" in capsys.readouterr().out


def test_bad_input_is_one_sentence(shifted, capsys) -> None:
    assert "Unknown dataset 'shiftd'" in fails(capsys, "hard", "shiftd")
    assert "n_shot" in fails(capsys, "hard", "shifted", "--backbone", "first", "--n-shot", "60")
    assert "features" in fails(capsys, "hard", "shifted", "--backbone", "resnet12")
    assert "features" in fails(capsys, "stress", "tiered_imagenet")
    assert "adaptation" in fails(capsys, "stress", "shifted", "--adaptations", "svm")


FEW = ["--backbone", "first", *TASKS[:-1], "8"]


def test_searches_side_by_side(shifted, capsys) -> None:
    answer = run_json(capsys, "searches", "shifted", *FEW, "--searches", "fastdiffsel,greedy")
    assert [(row["search"], row["objective"]) for row in answer["rows"][1:]] == [
        ("fastdiffsel", "hard"),
        ("fastdiffsel", "easy"),
        ("greedy", "hard"),
        ("greedy", "easy"),
    ]
    assert "times as long" in answer["words"]
    assert main(["searches", "shifted", *FEW, "--searches", "fastdiffsel"]) == 0
    assert "Time per task (ms)" in capsys.readouterr().out
    assert "Unknown searches 'quick'" in fails(capsys, "searches", "shifted", *FEW, "--searches", "quick")


def test_filtered_restricted_and_steps(shifted, capsys) -> None:
    answer = run_json(capsys, "filtered", "shifted", *FEW, "--n-random", "200")
    assert answer["as_hard"]["n_drawn"] == 200 and [row["n_tasks"] for row in answer["means"]] == [200, 4, 8]
    assert main(["filtered", "shifted", *FEW, "--n-random", "200"]) == 0
    assert "random tasks" in capsys.readouterr().out
    target = ["--attribute", "context", "--value", "sand", "--value", "snow"]
    answer = run_json(capsys, "restricted", "shifted", *FEW, *target)
    water = [row["share"] for row in answer["shares"] if (row["set"], row["value"]) == ("query", "water")]
    assert water == [0] and set(answer["accuracy"]) == {"hard", "random", "easy"}
    assert main(["restricted", "shifted", *FEW, *target]) == 0
    assert "Support images with the same values: " in capsys.readouterr().out
    assert "attribute" in fails(capsys, "restricted", "shifted", *FEW, "--attribute", "colour", "--value", "red")
    answer = run_json(capsys, "steps", "shifted", *FEW)
    assert [row["n_steps"] for row in answer["steps"]] == list(range(7)) and answer["steps"][0]["selected"] is None
    assert main(["steps", "shifted", *FEW]) == 0
    assert "Weighted loss (nats)" in capsys.readouterr().out


def test_a_plain_folder_of_small_classes_takes_fewer_images_and_says_where_there_is_no_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    small = make_toy(n_images=12, noise=2.0)
    save_dataset(replace(small, splits={}), overwrite=True)
    few = ["--n-tasks", "10"]
    answer = run_json(capsys, "hard", "toy", *few)
    tasks = load_testbed(answer["testbed"], small).tasks
    assert tasks.support.shape == (10, 5, 3) and tasks.query.shape == (10, 5, 6) and answer["understated"] == ""
    assert answer["accuracy"]["hard"] < answer["accuracy"]["random"]
    assert main(["hard", "toy", *few]) == 0
    assert "so n_shot is 3 instead of 5 and n_query is 6 instead of 10." in capsys.readouterr().err
    # shots that leave no choice are allowed, and reported as a lower bound of the cost
    forced = run_json(capsys, "hard", "toy", "--n-shot", "2", "--n-query", "10", *few)
    assert forced["drop"] == 0 and "lower bound" in forced["understated"] and "100%" in forced["understated"]
    captured = run_json(capsys, "stress", "toy", "--n-shot", "2", "--n-query", "10", "--adaptations", "protonet", *few)
    assert captured["understated"] == forced["understated"]
    assert run_json(capsys, "stress", "toy", "--adaptations", "protonet", *few)["understated"] == ""


def test_small_classes_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    toy = make_toy(small_class=3)
    images = ["--n-shot", "5", "--n-query", "10", "--n-tasks", "20"]
    assert "fewer than n_shot + n_query" in fails(capsys, "hard", "toy", *images)
    answer = run_json(capsys, "hard", "toy", "--skip-small", *images)
    assert 3 not in load_testbed(answer["testbed"], toy).tasks.class_ids and answer["understated"] == ""
    assert "has 15" in fails(capsys, "hard", "toy", "--skip-small", "--n-way", "16", *images)


def test_reasons_are_printed_with_what_gaps_cost(shifted, capsys) -> None:
    results = run_json(capsys, "hard", "shifted", "--backbone", "first", "--reasons", "--n-tasks", "60")["reasons"]
    costs = {row["attribute"]: row for row in results["costs"]}
    assert costs["context"]["p_holm"] < 0.05 < costs["noise"]["p_holm"] and costs["noise"]["explains"] == 0
    assert results["hardest"].startswith("Task ") and "noise" not in results["hardest"]
    assert main(["hard", "shifted", "--reasons", "--n-tasks", "20"]) == 0
    assert "Cost of a gap of one (points)" in capsys.readouterr().out


def test_a_search_that_finds_the_opposite_says_so(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One step with the plain loss takes "easy" sets of the demo that are harder than random ones."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    easy = ["hard", "demo", "--objective", "easy", "--n-tasks", "60"]
    assert main([*easy, "--search", "fastdiffsel", "--loss", "plain"]) == 0
    captured = capsys.readouterr().out
    assert "The search found no easy sets (mean accuracy: easy " in captured
    assert "Try the accuracy search or the loss Euclidean." in captured
    for advice in (["--loss", "plain"], ["--search", "fastdiffsel", "--loss", "euclidean"]):
        answer = run_json(capsys, *easy, *advice)
        assert answer["failed"] == "" and answer["accuracy"]["easy"] > answer["accuracy"]["random"]
