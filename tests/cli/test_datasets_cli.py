from __future__ import annotations

import json

import pytest

from fsviz.cli import main


def run_json(capsys, *argv: str) -> dict:
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


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
    shown = run_json(capsys, "show", "demo")
    assert len(shown["contexts"]) >= 12
    assert {"style", "blur", "brightness"} <= set(shown["attributes"])
    assert len(shown["classes"]) == shown["n_classes"]
    assert run_json(capsys, "show", "df20")["classes"][0]["n_images"] is None


def test_senses_prints_the_path(capsys) -> None:
    first = run_json(capsys, "senses", "dog")["senses"][0]
    assert first["synset"] == "n02084071"
    assert first["path"][0] == "entity"


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
