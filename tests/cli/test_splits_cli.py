"""split and trees from a terminal, as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.cli import main
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy(backbones=("alpha_net", "beta_net"))


def test_split_prints_the_promised_json(toy, capsys) -> None:
    words = ["--backbone", "alpha_net", "--divergence", "0.96", "--dims", "4", "--starts", "8", "--seed", "0"]
    answer = run_json(capsys, "split", "toy", *words)
    assert {"asked", "reached", "train", "val", "test", "agreement"} <= set(answer)
    assert {"agreement_on_test", "chance_on_test", "different_splits", "nearest_at_random"} <= set(answer)
    assert answer["asked"] == 0.96 and answer["reached"] > 0 and 0 <= answer["agreement"] <= 1
    assert [len(answer[side]) for side in ("train", "val", "test")] == [10, 3, 3]
    assert sorted(answer["train"] + answer["val"] + answer["test"]) == sorted(toy.classes["class_name"])


def test_a_split_is_saved_used_written_read_and_deleted(toy, capsys, tmp_path: Path) -> None:
    out = tmp_path / "split.json"
    first = run_json(capsys, "split", "toy", "--starts", "4", "--seeds", "2", "--save", "hard", "--out", str(out))
    assert first["saved"] == ["hard_train", "hard_val", "hard_test"]
    sampled = run_json(capsys, "sample", "toy", "--split", "hard_test", "--n-way", "3", "--n-tasks", "5")
    assert sampled["recipe"]["split"] == "hard_test"
    assert "already" in fails(capsys, "split", "toy", "--starts", "1", "--seeds", "2", "--save", "hard")
    again = run_json(capsys, "split", "toy", "--from", str(out), "--save", "copy")
    assert [again[side] for side in ("train", "val", "test")] == [first[side] for side in ("train", "val", "test")]
    assert again["reached"] is None
    assert main(["split", "toy", "--delete", "hard"]) == 0
    assert "deleted the split hard" in capsys.readouterr().out
    assert "Unknown split" in fails(capsys, "sample", "toy", "--split", "hard_test")
    assert "Unknown saved split" in fails(capsys, "split", "toy", "--delete", "hard")


def test_what_a_person_reads(toy, capsys) -> None:
    assert main(["split", "toy", "--starts", "4", "--seeds", "3", "--compare", "--over", "divergence"]) == 0
    message = capsys.readouterr().out
    assert "from its nearest training class (95% of random splits:" in message
    assert "3 seeds put" in message and "of the test classes" in message
    assert "Frozen " in message and "Frozen accuracy" in message and "Inside test" in message
    assert "target 0.96" in message and "random" in message and "test (3):" in message
    assert main(["trees", "toy"]) == 0
    assert "taxonomy" in capsys.readouterr().out
    results = run_json(capsys, "trees", "toy", "--backbones", "alpha_net")
    assert [(row["first"], row["second"]) for row in results["trees"]] == [("alpha_net", "taxonomy")]
    swept = run_json(capsys, "split", "toy", "--starts", "2", "--seeds", "2", "--over", "dims")
    assert [row["dims"] for row in swept["over"]] == [2, 4, 8, 12]


def test_published_splits_need_no_features(toy, capsys) -> None:
    results = run_json(capsys, "split", "cifar100", "--published", "0.96", "--save", "p")
    assert [len(results[side]) for side in ("train", "val", "test")] == [60, 20, 20]
    assert run_json(capsys, "show", "cifar100")["splits"]["p_test"] == 20


def test_what_must_be_called_otherwise_is_one_sentence(toy, capsys, tmp_path: Path) -> None:
    assert "--out must end in" in fails(capsys, "split", "toy", "--out", str(tmp_path / "s.txt"))
    assert "--published 0.96" in fails(capsys, "split", "cifar100")
    assert "Did you mean" in fails(capsys, "split", "cifar100", "--published", "0.9")
    assert "not both" in fails(capsys, "split", "cifar100", "--published", "0.96", "--from", "x")
    assert "cannot be read" in fails(capsys, "split", "toy", "--from", str(tmp_path / "none.json"))
    (tmp_path / "other.csv").write_text("class_name,split\ncat,train\n")
    assert "other classes" in fails(capsys, "split", "toy", "--from", str(tmp_path / "other.csv"))
    assert "Unknown tree" in fails(capsys, "trees", "toy", "--backbones", "gamma_net")
    assert "A comparison needs two trees" in fails(capsys, "trees", "cu_birds")
