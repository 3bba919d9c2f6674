"""predict from a terminal, as a user types it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fsviz.cli import main
from fsviz.datasets import load
from fsviz.datasets.saved import save_dataset
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy, save_toy_features

TASKS = ["--backbone", "alpha_net", "--n-way", "3", "--n-shot", "3", "--n-query", "6", "--n-tasks", "20"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy(noise=2.0)


@pytest.mark.parametrize("setting", ["supervised", "semi", "unsupervised"])
def test_predict_prints_the_promised_json(toy, capsys, setting: str) -> None:
    answer = run_json(capsys, "predict", "toy", *TASKS, "--setting", setting)
    assert answer["n_tasks"] == 20
    assert ("prediction_uncertainty" in answer["correlations"]) == (setting == "semi")
    for correlations in answer["correlations"].values():
        assert {"pearson", "spearman", "low", "high"} <= set(correlations)
        assert -1 <= correlations["low"] <= correlations["pearson"] <= correlations["high"] <= 1


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("correlations", "Prediction error of the mean confidence"),
        ("eigenvalues", "Best eigenvalue: number"),
        (
            "spread",
            "Variance components need at least 20 sets of classes (100 tasks). Got 4.",
        ),
        ("hard", "Hard predicted hard, second half (%)"),
        ("labelling", "Mean accuracy over 20 tasks"),
    ],
)
def test_every_question_has_an_answer_for_a_person(toy, capsys, question: str, words: str) -> None:
    assert main(["predict", "toy", *TASKS, "--question", question]) == 0
    assert words in capsys.readouterr().out


def test_intervals_over_classes_task_counts_and_missing_images_are_said(toy, capsys) -> None:
    def printed(*request: str) -> str:
        assert main(["predict", "toy", *TASKS, *request]) == 0
        return capsys.readouterr().out

    assert "); 95% CI over classes." in printed()
    for vary, title in (("n_way", "Classes per task"), ("n_shot", "Support images"), ("n_query", "Query images")):
        assert main(["sweep", "prediction", "toy", *TASKS, "--vary", vary]) == 0
        header, _, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
        assert header.startswith(title) and "Mean accuracy (%)" in header
        assert len(rows) > 3
    fewer = printed("--share", "0.9", "--n-query", "15")
    assert "23 unlabelled images per task instead of 45 (3 ways x 15 queries)" in fewer


def test_bad_input_is_one_sentence(toy, capsys) -> None:
    assert "no images to extract them from. Add your copy" in fails(capsys, "predict", "tiered_imagenet")
    assert "fewer than n_shot + n_query = 63" in fails(capsys, "predict", "toy", *TASKS, "--n-query", "60")
    assert "Available: supervised, semi, unsupervised" in fails(capsys, "predict", "toy", "--setting", "x" * 20)


def test_images_without_splits_are_drawn_from_all_classes(toy, capsys) -> None:
    save_dataset(replace(toy, name="plain", splits={}), overwrite=True)
    save_toy_features(load("plain"), "alpha_net")
    assert run_json(capsys, "predict", "plain", *TASKS)["n_tasks"] == 20
    assert "Available: all. " in fails(capsys, "predict", "plain", *TASKS, "--split", "test")
    few = run_json(capsys, "predict", "plain", "--backbone", "alpha_net", "--n-tasks", "5")
    assert few["n_tasks"] == 5, "shots and queries that are not asked for are what the smallest class can give"


@pytest.mark.parametrize("question", ["correlations", "eigenvalues", "spread", "hard", "labelling"])
def test_one_task_is_too_few_and_no_error(toy, capsys, question: str) -> None:
    assert main(["predict", "toy", *TASKS, "--n-tasks", "1", "--question", question]) == 0
    assert "nan" not in capsys.readouterr().out


def test_accuracies_that_are_all_the_same_have_no_spread_to_part(toy, capsys) -> None:
    make_toy("easy", noise=0.001)
    assert main(["predict", "easy", *TASKS, "--n-tasks", "100", "--question", "spread"]) == 0
    message = capsys.readouterr().out
    assert "random tasks" in message and "Share of the variance" not in message
    assert "All random tasks have the same accuracy: there is no variance." in message


def test_the_parts_of_the_spread_are_said_with_their_intervals(toy, capsys) -> None:
    request = ["predict", "toy", *TASKS, "--n-tasks", "100", "--question", "spread"]
    parts = run_json(capsys, *request)["parts"]["parts"]
    assert main(request) == 0
    captured = capsys.readouterr().out
    words = ", ".join(f"{p['cause']} {p['share']:.0%} ({p['low']:.0%} to {p['high']:.0%})" for p in parts)
    assert f"Share of the variance: {words}; 95% CI from 20 sets of classes with 5 tasks." in captured
