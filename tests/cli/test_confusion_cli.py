"""confusion from a terminal, as a user types it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from fsviz.cli import main
from fsviz.datasets.saved import save_dataset
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy, save_toy_features


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    toy = make_toy(backbones=("alpha_net", "beta_net"))
    return save_dataset(replace(toy, splits={"train": np.arange(10), "test": np.arange(10, 16)}), overwrite=True)


def test_confusion_prints_the_promised_json(toy, capsys) -> None:
    words = ["confusion", "toy", "--backbone", "alpha_net", "--split", "test"]
    answer = run_json(capsys, *words)
    assert {"pairs", "mean", "most_similar", "listed"} <= set(answer)
    assert answer["pairs"] == 15 and 0 <= answer["mean"] <= 1
    bits = [bits for _, _, bits in answer["most_similar"]]
    assert bits == sorted(bits, reverse=True) and all(0 <= b <= 1 for b in bits)
    expected = set(toy.classes["class_name"])
    assert all(a in expected and b in expected for a, b, _ in answer["most_similar"])
    errors = [row["error"] for row in answer["listed"]]
    assert errors == sorted(errors, reverse=True) and answer["error_tasks"]["n_tasks"] == 100
    by_overlap = run_json(capsys, *words, "--pairs-by", "similarity")["listed"]
    assert [row["value"] for row in by_overlap] == bits
    based = run_json(capsys, *words, "--base", "train")
    assert based["pairs"] == 60
    slow = run_json(capsys, *words, "--backend", "python_louvain")
    assert slow["mean"] == pytest.approx(answer["mean"], abs=0.02)


def test_classes_of_few_images_get_the_edges_they_have_room_for(toy, capsys) -> None:
    few = toy.images.groupby("class_id").head(12).reset_index(drop=True)
    classes = toy.classes.assign(n_images=12)
    small = save_dataset(replace(toy, name="small", images=few, classes=classes, splits={}))
    save_toy_features(small, "alpha_net")
    assert main(["confusion", "small", "--n-shot", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Graphs keep 4 edges per image: k, at most a fifth" in printed and "120 pairs" in printed
    assert "Errors: ProtoNet, 100 2-way 1-shot tasks of each pair with 10 queries per class" in printed


def test_graphs_are_compared_and_written(toy, capsys, tmp_path: Path) -> None:
    out = tmp_path / "graph.graphml"
    answer = run_json(capsys, "confusion", "toy", "--versus-backbone", "beta_net", "--out", str(out), "--most", "3")
    assert len(answer["most_similar"]) == 3 and answer["versus"]["backbone"] == "beta_net"
    pearson = answer["versus"]["pearson"]
    assert -1 <= pearson["low"] <= pearson["value"] <= pearson["high"] <= 1
    assert nx.read_graphml(out).number_of_edges() == 15
    meaning = run_json(capsys, "confusion", "mini_imagenet", "--likeness", "jiang_conrath")
    assert meaning["likeness"] == "jiang_conrath" and meaning["pairs"] == 190
    assert main(["confusion", "toy", "--versus", "jiang_conrath", "--out", str(tmp_path / "g.csv")]) == 0
    printed = capsys.readouterr().out
    assert "Compared with jiang_conrath: pearson" in printed and "over classes" in printed
    assert len((tmp_path / "g.csv").read_text().splitlines()) == 16


def test_what_must_be_called_otherwise_is_one_sentence(toy, capsys, tmp_path: Path) -> None:
    assert "--out must end in" in fails(capsys, "confusion", "toy", "--out", str(tmp_path / "g.png"))
    assert "'most'. Available: error, similarity" in fails(capsys, "confusion", "toy", "--pairs-by", "most")
    assert "no efficientnet_lite0 features" in fails(capsys, "confusion", "tiered_imagenet")
    assert "Unknown split" in fails(capsys, "confusion", "toy", "--base", "nothing")
    assert "'smell'. Available: confusion" in fails(capsys, "confusion", "toy", "--versus", "smell")
    assert "--most" in fails(capsys, "confusion", "toy", "--most", "0")
