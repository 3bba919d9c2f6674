"""The commands distances, coarsity and sample, run as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz.cli import main


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))


def run(capsys: pytest.CaptureFixture, *words: str) -> dict:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture, *words: str) -> str:
    assert main(list(words)) == 2
    return capsys.readouterr().err


def test_coarsity_prints_quantiles_and_class_counts(capsys) -> None:
    words = [
        "coarsity",
        "tiered_imagenet",
        "--split",
        "test",
        "--sampler",
        "uniform",
        "--n-way",
        "5",
        "--n-tasks",
        "2000",
        "--seed",
        "1",
    ]
    result = run(capsys, *words)
    assert set(result) == {"n_tasks", "quantiles", "class_counts", "repeats"}
    assert set(result["quantiles"]) == {"0", "25", "50", "75", "100"}
    assert set(result["class_counts"]) == {"min", "max"}
    assert result["n_tasks"] == 2000
    assert result["quantiles"]["50"] == pytest.approx(85.2, abs=0.8)
    assert run(capsys, *words) == result
    assert run(capsys, *words, "--dag", "all_paths")["quantiles"]["50"] == pytest.approx(83.7, abs=0.8)


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_a_sampled_file_is_measured_alike(capsys, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"bed.{ending}"
    words = [
        "--split",
        "test",
        "--sampler",
        "semantic",
        "--alpha",
        "0.383",
        "--beta",
        "100",
        "--n-way",
        "5",
        "--n-tasks",
        "60",
        "--seed",
        "0",
    ]
    output = run(capsys, "sample", "tiered_imagenet", *words, "--n-shot", "1", "--n-query", "10", "--out", str(out))
    assert output["out"] == str(out)
    assert output["n_tasks"] == 60
    measured = run(capsys, "coarsity", "tiered_imagenet", "--testbed", str(out))
    assert measured["quantiles"] == pytest.approx(output["quantiles"])
    assert measured["class_counts"] == output["class_counts"]
    if ending == "csv":
        frame = pd.read_csv(out)
        assert len(frame) == 60 * 5 * 11
        assert frame.groupby("task").labels.nunique().eq(5).all()


def test_sample_without_out_goes_to_the_workspace(capsys) -> None:
    output = run(capsys, "sample", "mini_imagenet", "--sampler", "uniform", "--n-tasks", "20", "--name", "mine")
    assert Path(output["out"]).name == "mine.parquet"
    assert run(capsys, "coarsity", "mini_imagenet", "--testbed", "mine")["n_tasks"] == 20


def test_tasks_of_variable_ways_and_shots(capsys, tmp_path: Path) -> None:
    out = tmp_path / "bed.parquet"
    words = ["cifar100", "--sampler", "variable", "--max-way", "8", "--n-tasks", "30", "--seed", "2"]
    output = run(capsys, "sample", *words, "--out", str(out))
    assert output["recipe"]["max_way"] == 8 and "n_way" not in output["recipe"]
    assert run(capsys, "coarsity", *words)["quantiles"] == output["quantiles"]
    assert run(capsys, "coarsity", "cifar100", "--testbed", str(out))["quantiles"] == pytest.approx(output["quantiles"])


def test_nothing_is_replaced(capsys) -> None:
    words = ["sample", "mini_imagenet", "--sampler", "uniform", "--n-tasks", "20"]
    first = run(capsys, *words, "--name", "mine")
    assert run(capsys, *words, "--name", "mine") == first
    assert "Choose another name" in refused(capsys, *words, "--name", "mine", "--seed", "1")
    assert run(capsys, *words, "--seed", "1")["name"] == "mini_imagenet_test_uniform_5way_5shot_10query_20tasks_seed1"


def test_distances_name_the_closest_pairs(capsys, tmp_path: Path) -> None:
    out = tmp_path / "matrix.csv"
    result = run(capsys, "distances", "cifar100", "--split", "test", "--out", str(out))
    assert result["n_classes"] == 20
    assert result["min"] == result["closest"][0]["distance"] <= result["median"] <= result["max"]
    assert result["farthest"][0]["distance"] == result["max"]
    matrix = pd.read_csv(out, index_col=0)
    assert matrix.shape == (20, 20)
    assert np.allclose(matrix, matrix.T)


def test_text_output_reads_as_lines(capsys) -> None:
    assert main(["coarsity", "mini_imagenet", "--n-tasks", "50"]) == 0
    assert "median" in capsys.readouterr().out
    assert main(["distances", "mini_imagenet"]) == 0
    assert "closest" in capsys.readouterr().out
    assert main(["sample", "mini_imagenet", "--n-way", "19", "--n-tasks", "50", "--n-shot", "0"]) == 0
    assert "only 20 different sets" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("coarsity tired_imagenet", "Did you mean 'tiered_imagenet'"),
        ("coarsity tiered_imagenet --split tset", "Unknown split 'tset'"),
        ("coarsity tiered_imagenet --n-way 200", "n_way must be at most 160"),
        ("coarsity tiered_imagenet --sampler semantic --alpha -1", "alpha must be a number from 0"),
        ("coarsity dtd", "has no taxonomy"),
        ("coarsity tiered_imagenet --testbed nowhere.csv", "cannot be read"),
        ("coarsity tiered_imagenet --testbed nothing", "Unknown testbed 'nothing'"),
        ("sample df20", "Danish Fungi 2020 lists classes only"),
        ("sample tiered_imagenet --out x.xlsx", "--out must end in"),
        ("sample tiered_imagenet --n-shot 0 --n-tasks 5 --out x.json", "classes only"),
        ("sample tiered_imagenet --n-tasks 0", "n_tasks must be"),
        ("sample tiered_imagenet --n-tasks many", "n_tasks must be a whole number from 1 to 1,000,000. Got 'many'"),
        ("sample tiered_imagenet --seed 1e400", "seed must be a whole number"),
        ("sample tiered_imagenet --sampler semntic", "Did you mean 'semantic'"),
        ("distances tiered_imagenet --distance features", "no efficientnet_lite0 features"),
    ],
)
def test_bad_input_is_one_sentence(capsys, words: str, message: str) -> None:
    error = refused(capsys, *words.split())
    assert message in error
    assert "Traceback" not in error


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fsviz", "coarsity", "cifar100", "--n-tasks", "20", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parent.parent.parent,
    )
    assert json.loads(done.stdout)["n_tasks"] == 20


def test_a_task_made_by_hand_before_and_after_a_swap(capsys, tmp_path: Path) -> None:
    from tests.studies.toy_dataset import make_toy

    make_toy("hand", noise=2.0)
    words = ["task", "hand", "--classes", "#0,#5", "--support", "0.1,120.121", "--query", "2.3.4,122.123.124"]
    plain = run(capsys, *words)
    assert main(["task", "hand", "--classes", "#0,#0,#5"]) == 2 and "is there twice" in capsys.readouterr().err
    assert plain["n_queries"] == 6 and plain["accuracy"] == plain["correct"] / 6 and "before" not in plain
    out = tmp_path / "one.csv"
    result = run(capsys, *words, "--swap", "0.9", "--out", str(out))
    assert result["before"]["correct"] == plain["correct"] and result["support"][0] == [9, 1]
    assert result["correct"] - plain["correct"] == len(result["gained"]) - len(result["lost"])
    assert len(out.read_text().splitlines()) == 1 + 10
    assert main([*words, "--swap", "0.9"]) == 0
    assert "replaced image 0" in capsys.readouterr().out
    assert "Image 7 is none" in refused(capsys, *words, "--swap", "7.9")
    assert "image 130 is of class" in refused(capsys, *words, "--swap", "0.130")
