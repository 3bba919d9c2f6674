"""contexts from a terminal, as a user types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz.cli import main
from tests.cli.calling import fails, run_json


def test_contexts_prints_the_promised_json(capsys) -> None:
    results = run_json(capsys, "contexts", "demo", "--split", "test")
    assert results["n_concepts"] == 30 and results["n_contexts"] == 14 and results["n_images"] == 1440
    assert results["association"]["low"] < results["association"]["v"] < results["association"]["high"]
    assert {"concept", "context", "n_images", "bits"} == set(results["cells"][0])


def test_contexts_for_a_person(capsys) -> None:
    assert main(["contexts", "metacoco"]) == 0
    out = capsys.readouterr().out
    assert "Cramér's V" in out and "23 of 100 concepts" in out


def test_a_dataset_without_contexts_is_refused(capsys) -> None:
    assert "column 'context'" in fails(capsys, "contexts", "digits")


def test_a_question_is_a_run(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path))
    request = ["--question", "dial", "--methods", "protonet", "--n-tasks", "60", "--n-way", "3"]
    results = run_json(capsys, "contexts", "demo", *request)
    assert results["run"] and list(results["rows"][0]["accuracy"]) == ["0", "0.25", "0.5", "0.75", "1"]
    assert results["rows"][0]["n_tasks"] == 60
    assert main(["contexts", "demo", *request]) == 0
    assert "95% CI over tasks" in capsys.readouterr().out


def test_unknown_methods_and_tables_of_counts_are_refused(capsys) -> None:
    assert "protonett" in fails(capsys, "contexts", "demo", "--question", "methods", "--methods", "protonett")
    assert "no images with contexts" in fails(capsys, "contexts", "metacoco", "--question", "dial")


def test_similarity(capsys) -> None:
    results = run_json(capsys, "similarity", "demo")
    assert results["model"] == "demo_clip" and len(results["classes"]) == 30 and 0 < results["m_concept"]["mean"] < 1
    assert main(["similarity", "demo"]) == 0
    out = capsys.readouterr().out
    assert "zero-shot" in out and "correlation of task accuracy with the M_context" in out
    assert "must contain" in fails(capsys, "similarity", "demo", "--context-prompt", "")


def test_folders_of_concepts_and_contexts_from_disk_to_tasks(capsys, tmp_path: Path, monkeypatch) -> None:
    """concept/context/image with splits by size; a class of one context is named, the others go on."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    for c, name in enumerate(["dog", "cat", "cow", "owl", "hen", "bee"]):
        for context in ("grass", "snow")[: 1 if name == "dog" else 2]:
            folder = tmp_path / "source" / name / context
            folder.mkdir(parents=True)
            for i in range((24 if name == "dog" else 10) - c):
                Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    added = run_json(capsys, "add", "mine", str(tmp_path / "source"), "--splits-by-size")
    assert {name: row["n_classes"] for name, row in added["splits"].items()} == {"train": 4, "val": 1, "test": 1}
    results = run_json(capsys, "contexts", "mine", "--split", "train")
    assert results["single_context"] == ["dog"] and results["n_contexts"] == 2
    shape = ["--n-way", "3", "--n-shot", "2", "--n-query", "3", "--n-tasks", "10"]
    sampled = run_json(capsys, "sample", "mine", "--split", "train", "--sampler", "ood", *shape)
    assert (
        sampled["n_tasks"] == 10
        and len(sampled["left_out"]) == 1
        and "'dog' needs two contexts" in sampled["left_out"][0]
    )
    captured = fails(capsys, "contexts", "mine", "--split", "train", "--question", "methods", *shape)
    assert "Extract them with 'fsviz extract mine" in captured
