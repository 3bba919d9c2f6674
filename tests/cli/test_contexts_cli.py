"""contexts from a terminal, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.cli import main
from tests.cli.calling import fails, run_json


def test_contexts_prints_the_promised_json(capsys) -> None:
    found = run_json(capsys, "contexts", "demo", "--split", "test")
    assert found["n_concepts"] == 30 and found["n_contexts"] == 14 and found["n_images"] == 1440
    assert found["association"]["low"] < found["association"]["v"] < found["association"]["high"]
    assert {"concept", "context", "n_images", "bits"} == set(found["cells"][0])


def test_contexts_for_a_person(capsys) -> None:
    assert main(["contexts", "metacoco"]) == 0
    out = capsys.readouterr().out
    assert "Cramer's V" in out and "23 of 100 concepts" in out


def test_a_dataset_without_contexts_is_refused(capsys) -> None:
    assert "column 'context'" in fails(capsys, "contexts", "digits")


def test_a_question_is_a_run(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    asked = ["--question", "dial", "--methods", "protonet", "--n-tasks", "60", "--n-way", "3"]
    found = run_json(capsys, "contexts", "demo", *asked)
    assert found["run"] and list(found["rows"][0]["accuracy"]) == ["0", "0.25", "0.5", "0.75", "1"]
    assert found["rows"][0]["n_tasks"] == 60
    assert main(["contexts", "demo", *asked]) == 0
    assert "intervals over tasks" in capsys.readouterr().out


def test_unknown_methods_and_tables_of_counts_are_refused(capsys) -> None:
    assert "protonett" in fails(capsys, "contexts", "demo", "--question", "methods", "--methods", "protonett")
    assert "no images with contexts" in fails(capsys, "contexts", "metacoco", "--question", "ways")


def test_similarity(capsys) -> None:
    found = run_json(capsys, "similarity", "demo")
    assert found["model"] == "demo_clip" and len(found["classes"]) == 30 and 0 < found["m_concept"]["mean"] < 1
    assert main(["similarity", "demo"]) == 0
    out = capsys.readouterr().out
    assert "zero-shot" in out and "accuracy of tasks against the M_context" in out
    assert "must hold" in fails(capsys, "similarity", "demo", "--context-prompt", "")
