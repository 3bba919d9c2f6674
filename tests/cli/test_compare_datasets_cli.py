"""compare-datasets from a terminal, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.cli import main
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy


def test_benchmarks_are_compared_in_meaning_and_the_rest_is_null(capsys) -> None:
    results = run_json(capsys, "compare-datasets", "mini_imagenet", "tiered_imagenet:val", "--n-tasks", "50")
    assert [side["side"] for side in results["sides"]] == ["mini_imagenet:test", "tiered_imagenet:val"]
    assert len(results["in_words"]) == 1 and "coarsity" in results["in_words"][0]
    rows = {(row["measure"], row["side"]): row for row in results["measures"]}
    assert rows["coarsity", "tiered_imagenet:val"]["n_tasks"] == 50
    assert rows["accuracy", "mini_imagenet:test"]["mean"] is None
    assert "No dataset has features" in rows["accuracy", "tiered_imagenet:val"]["why"]


def test_for_a_person_every_number_has_its_interval(capsys) -> None:
    assert main(["compare-datasets", "mini_imagenet", "cu_birds", "--n-tasks", "50", "--n-way", "3"]) == 0
    out = capsys.readouterr().out
    assert "Coarsity" in out and " ± " in out and "CI over classes" in out and "not comparable" in out


def test_the_suite_marks_what_was_published(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    make_toy("toy")
    request = ("compare-datasets", "toy", "mini_imagenet", "--suite", "--n-tasks", "10", "--n-shot", "2")
    results = run_json(capsys, *request)
    (row,) = results["suite"]
    assert row["hard"] < row["random"] and list(results["excluded"]) == ["mini_imagenet:test"]
    assert all(row["published"] for row in results["published"])
    assert main(list(request)) == 0
    assert "Published (median and range" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused_in_a_sentence(capsys) -> None:
    assert "needs 2 to 8" in fails(capsys, "compare-datasets", "demo")
    assert "demmo" in fails(capsys, "compare-datasets", "demo", "demmo")
    assert "split" in fails(capsys, "compare-datasets", "demo", "demo:tset")
