"""The command passport: what the study says, in words and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsviz.cli import main
from fsviz.sampling import testbeds
from fsviz.tasks import draw, task_ids
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy

SHAPE = {"sampler": "uniform", "n_way": 3, "n_shot": 2, "n_query": 4, "n_tasks": 12}


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def test_a_task_by_its_name_or_by_that_of_a_saved_testbed(capsys) -> None:
    toy = make_toy("told", noise=2.0)
    bed = draw.sample(toy, name="mine", **SHAPE)
    testbeds.save_testbed(bed)
    name = task_ids.name_testbed(toy, bed.tasks, bed.recipe)
    captured = run_json(capsys, "passport", f"{name}:5")
    assert captured == run_json(capsys, "passport", "mine:5") and captured["task"] == f"{name}:5"
    assert captured["support"] == bed.tasks.support[5].tolist() and captured["query"] == bed.tasks.query[5].tolist()
    coarsity = bed.tasks.measures["coarsity"]
    (row,) = [m for m in captured["measures"] if m["measure"] == "coarsity"]
    rest = [c for i, c in enumerate(coarsity) if i != 5]
    below = sum(c < coarsity[5] - 1e-9 for c in rest) + sum(abs(c - coarsity[5]) < 1e-9 for c in rest) / 2
    assert row["value"] == coarsity[5] and row["percentile"] == pytest.approx(100 * below / 11)
    assert row["harder_than"] == pytest.approx(100 - row["percentile"])
    sets = captured["support_sets"]
    assert sets["random"] == next(m["accuracy"] for m in captured["methods"] if m["method"] == "ProtoNet")
    assert main(["passport", "mine:5"]) == 0
    visible = capsys.readouterr().out
    assert visible.startswith("Task 5 of Uniform 3-way 2-shot, 12 tasks, split test, seed 0, dataset told\n")
    assert "Harder than (% of tasks)" in visible and f"this support {sets['random']:.0f}%" in visible


def test_a_benchmark_and_what_is_no_task(capsys) -> None:
    assert "TESTBED:POSITION" in fails(capsys, "passport", "rubbish")
    assert "Copy the whole link" in fails(capsys, "passport", "nowhere:3")
    from fsviz import datasets

    cifar = datasets.load("cifar100")
    bed = draw.sample(cifar, sampler="uniform", n_way=4, n_tasks=9)
    name = task_ids.name_testbed(cifar, bed.tasks, bed.recipe)
    assert main(["passport", f"{name}:8"]) == 0
    assert "only classes are available" in capsys.readouterr().out
    assert "must be 0 to 8: this testbed has 9 tasks. Got 9" in fails(capsys, "passport", f"{name}:9")
