"""contexts from a terminal, as a user types it."""

from __future__ import annotations

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
