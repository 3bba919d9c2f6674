from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from fsviz.cli import main
from tests.cli.calling import run_json


def test_datasets_lists_every_benchmark_with_its_splits(capsys) -> None:
    listed = {d["name"]: d for d in run_json(capsys, "datasets")["datasets"]}
    assert len(listed) >= 18
    assert listed["tiered_imagenet"]["splits"] == {"train": 351, "val": 97, "test": 160}
    assert listed["df20"]["n_classes"] == 1604
    assert listed["df20"]["n_images"] is None
    assert listed["omniglot"]["n_classes"] == 1623
    assert "taxonomy" in listed["mini_imagenet"]["offers"]
    assert {"taxonomy", "contexts", "attributes", "images", "features"} <= set(listed["demo"]["offers"])


def test_show_gives_contexts_attributes_and_classes(capsys) -> None:
    visible = run_json(capsys, "show", "demo")
    assert len(visible["contexts"]) >= 12
    assert {"style", "blur", "brightness"} <= set(visible["attributes"])
    assert len(visible["classes"]) == visible["n_classes"]
    assert run_json(capsys, "show", "df20")["classes"][0]["n_images"] is None


def test_senses_prints_the_path(capsys) -> None:
    first = run_json(capsys, "senses", "dog")["senses"][0]
    assert first["synset"] == "n02084071"
    assert first["path"][0] == "entity"


def test_senses_of_an_id(capsys) -> None:
    (only,) = run_json(capsys, "senses", "n04530566")["senses"]
    assert only["synset"] == "n04530566" and "vessel" in only["lemmas"]


@pytest.mark.parametrize("argv", [["datasets"], ["show", "metacoco"], ["show", "demo"], ["senses", "zzzz"]])
def test_text_output_is_for_people(capsys, argv: list[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert out.strip()
    assert not out.startswith("{")


def test_an_unknown_dataset_is_one_line_and_exit_code_2(capsys) -> None:
    assert main(["show", "tierd_imagenet"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Did you mean 'tiered_imagenet'" in error


@pytest.mark.parametrize(
    "argv", [["nonsense"], ["show"], ["show", "demo", "more"], ["extract", "digits", "--batch", "x"]]
)
def test_wrong_arguments_are_one_sentence(capsys, argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    captured = capsys.readouterr()
    assert ended.value.code == 2 and captured.out == ""
    assert captured.err.startswith("fsviz: ") and captured.err.count("\n") == 1 and "--help" in captured.err


def test_no_command_at_all_says_what_can_be_done(capsys) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    assert "fsviz app" in captured.out and "evaluate" in captured.out and captured.err == ""


def test_json_says_null_where_a_number_is_not_finite() -> None:
    from fsviz.workspace import plain_json

    inputs = {"a": [float("nan"), 1.5, np.float64("inf")], "b": (np.array([1.0, np.nan]), "x"), "c": np.int64(3)}
    assert plain_json(inputs) == {"a": [None, 1.5, None], "b": [[1.0, None], "x"], "c": 3}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "fsviz", "show", "digits", "--json"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("fsviz: the result could not be written") and ended.stderr.count("\n") == 1


def test_look_names_a_hard_and_an_easy_task_and_the_cause(capsys) -> None:
    captured = run_json(capsys, "look", "demo")
    assert (
        captured["hard"]["accuracy"] < captured["mean"] < captured["easy"]["accuracy"]
        and len(captured["hard"]["classes"]) == 5
    )
    assert main(["look", "demo"]) == 0
    out = capsys.readouterr().out
    assert captured["rule"] in out and f"mean accuracy: {100 * captured['mean']:.1f}" in out
    assert captured["answer"] in out
    assert sum(cause["is_main"] for cause in captured["causes"]) == out.count(" points: ") >= 1
