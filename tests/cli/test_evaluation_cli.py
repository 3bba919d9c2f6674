"""evaluate and runs from a terminal, as a user types them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fsviz import features, jobs, workspace
from fsviz.cli import build_parser, main
from fsviz.evaluation import evaluate as predict
from fsviz.evaluation import task_accuracy
from fsviz.studies import evaluate
from fsviz.tasks import snapshot
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy, save_toy_features

SAMPLER = ["--sampler", "uniform", "--n-way", "4", "--n-shot", "2", "--n-query", "5", "--n-tasks", "60"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    return make_toy()


def test_evaluate_prints_the_promised_json(toy, capsys) -> None:
    answer = run_json(
        capsys, "evaluate", "--dataset", "toy", "--backbone", "alpha_net", "--methods", "protonet,tim", *SAMPLER
    )
    assert {"run", "results"} <= set(answer)
    assert [r["method"] for r in answer["results"]] == ["protonet", "tim"]
    for result in answer["results"]:
        assert {"method", "backbone", "n_tasks", "accuracy", "ci95", "top5", "quartiles"} <= set(result)
        assert result["n_tasks"] == 60 and 25 < result["accuracy"] <= 100 and 0 < result["ci95"] < 20
        assert len(result["quartiles"]) == 4
    tasks = snapshot.tasks(jobs.folder(answer["run"]))
    accuracy = task_accuracy(predict(features.load(toy, "alpha_net"), tasks, "protonet"))
    assert answer["results"][0]["accuracy"] == pytest.approx(100 * accuracy.mean())


def test_methods_that_see_the_scale_of_features_are_named(toy, capsys) -> None:
    assert main(["evaluate", "--dataset", "toy", "--methods", "protonet,tim,pt_map,finetune", *SAMPLER]) == 0
    message = capsys.readouterr().out
    assert "TIM, Finetune: predictions depend on the scale of the features, because the learning rate" in message
    assert "PT-MAP: predictions depend on the scale" in message and "ProtoNet:" not in message


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(toy, capsys) -> None:
    base = ["evaluate", "toy", *SAMPLER]
    first, second = (run_json(capsys, *base, "--seed", "5") for _ in range(2))
    assert first["results"] == second["results"] and first["run"] != second["run"]
    assert run_json(capsys, *base, "--seed", "6")["results"] != first["results"]


def _words(parser: argparse.ArgumentParser) -> list[str]:
    return [action.dest for action in parser._get_positional_actions()]


def test_every_dataset_is_the_first_word_or_a_flag(capsys) -> None:
    parser = build_parser()
    (commands,) = (a.choices for a in parser._actions if isinstance(a.choices, dict))
    taking = [name for name, parser in commands.items() if "dataset" in _words(parser)]
    assert {"show", "extract", "distances", "coarsity", "sample", "evaluate", "hard", "stress"} <= set(taking)
    for name in taking:
        required = [a for a in commands[name]._actions if a.required]
        required.sort(key=lambda a: bool(a.option_strings))  # a further word comes right after the dataset
        needed = [w for a in required for w in (*a.option_strings[:1], next(iter(a.choices)) if a.choices else "1")]
        n_words = sum(not a.option_strings for a in required)
        last = [*needed[n_words:], "--json", "x", *needed[:n_words]]
        spellings = (["x", *needed], last, ["--dataset", "x", *needed])
        word, last, flag = (parser.parse_args([name, *words]) for words in spellings)
        assert word.dataset == last.dataset == flag.dataset == "x"
        for wrong in (needed, ["x", *needed, "--dataset", "y"]):
            with pytest.raises(SystemExit):
                parser.parse_args([name, *wrong])
            assert "DATASET" in capsys.readouterr().err


def test_the_dataset_as_a_flag_gives_the_same_run(toy, capsys) -> None:
    new, old = (run_json(capsys, "evaluate", *words, *SAMPLER) for words in (["toy"], ["--dataset", "toy"]))
    assert new["results"] == old["results"]


def test_tasks_of_variable_ways_are_evaluated(toy, capsys) -> None:
    answer = run_json(capsys, "evaluate", "toy", "--sampler", "variable", "--max-way", "7", "--n-tasks", "20")
    assert answer["results"][0]["n_tasks"] == 20 and len(answer["results"][0]["quartiles"]) == 4
    tasks = snapshot.tasks(jobs.folder(answer["run"]))
    assert tasks.n_way <= 7 and (tasks.class_ids < 0).any()


def test_a_flag_without_effect_is_named(toy, capsys) -> None:
    assert main(["evaluate", "toy", *SAMPLER, "--alpha", "2", "--max-way", "9"]) == 0
    assert "--alpha, --max-way have no effect with the sampler uniform" in capsys.readouterr().err


def test_a_testbed_file_and_parameters(toy, capsys, tmp_path) -> None:
    assert main(["sample", "toy", *SAMPLER, "--seed", "1", "--out", str(tmp_path / "bed.csv")]) == 0
    capsys.readouterr()
    more = ["--methods", "tim,protonet", "--set", "tim.steps=3", "--set", "protonet.distance=cosine"]
    more += ["--set", "tim.unit_length=true", "--set", "tim.marginal_weight=0.5"]
    answer = run_json(capsys, "evaluate", "toy", "--testbed", str(tmp_path / "bed.csv"), *more)
    assert answer["results"][0]["parameters"]["steps"] == 3
    assert answer["results"][0]["label"] == "TIM (marginal weight 0.5, steps 3, unit length)"
    assert answer["results"][1]["label"] == "ProtoNet (distance cosine)"
    assert answer["results"][0]["n_tasks"] == 60


def test_every_backbone_is_taken_when_none_is_named(toy, capsys) -> None:
    save_toy_features(toy, "beta_net", seed=3)
    answer = run_json(capsys, "evaluate", "toy", *SAMPLER)
    assert sorted(r["backbone"] for r in answer["results"]) == ["alpha_net", "beta_net"]


def test_runs_are_listed_shown_and_deleted(toy, capsys) -> None:
    assert main(["runs"]) == 0
    assert "No runs yet" in capsys.readouterr().out
    run_id = run_json(capsys, "evaluate", "toy", *SAMPLER)["run"]
    (listed,) = run_json(capsys, "runs")["runs"]
    assert listed["run"] == run_id and listed["state"] == "finished" and listed["study"] == "evaluate"
    visible = run_json(capsys, "runs", "show", run_id)
    assert visible["results"][0]["method"] == "protonet" and visible["spec"]["sampler"]["n_way"] == 4
    assert main(["runs", "show", run_id]) == 0
    text = capsys.readouterr().out
    assert "ProtoNet" in text and "Q1" in text
    assert run_json(capsys, "runs", "resume", run_id)["state"] == "finished"
    assert run_json(capsys, "runs", "cancel", run_id)["state"] == "finished"
    assert run_json(capsys, "runs", "delete", run_id)["state"] == "deleted"
    assert run_json(capsys, "runs")["runs"] == []


def test_kill_resume_from_the_terminal_gives_the_same_results(toy, capsys, tmp_path) -> None:
    command = ["evaluate", "toy", "--methods", "protonet,tim", "--set", "tim.steps=600"]
    command += [*SAMPLER[:-1], "600"]
    environment = {**os.environ, "FSVIZ_HOME": str(tmp_path / "ws"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "fsviz", *command], env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + 240
    while not (runs := jobs.list_runs()) or runs[0].n_done < 1:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = jobs.status(runs[0].id)
    assert run.state == "interrupted" and 0 < run.n_done < run.n_chunks
    resumed = run_json(capsys, "runs", "resume", run.id)
    whole = run_json(capsys, *command)
    assert resumed["state"] == "finished" and resumed["results"] == whole["results"]


def test_background_and_cancel(toy, capsys) -> None:
    more = ["--methods", "tim", "--set", "tim.steps=1000", *SAMPLER[:-1], "200000", "--background"]
    answer = run_json(capsys, "evaluate", "--dataset", "toy", *more)
    assert answer["state"] in ("queued", "running") and answer["results"] == []
    assert run_json(capsys, "runs", "cancel", answer["run"])["state"] == "cancelled"
    run = jobs.status(answer["run"])
    assert run.n_done < run.n_chunks  # it did not just wait for the end


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "toyy"], "Did you mean 'toy'"),
        (["evaluate", "toy", "--backbone", "nope"], "no nope features"),
        (["evaluate", "--dataset", "tiered_imagenet"], "no efficientnet_lite0 features"),
        (["evaluate", "toy", "--methods", "protonets"], "Did you mean 'protonet'"),
        (["evaluate", "toy", "--methods", "tim", "--set", "tim.steps=many"], "whole number"),
        (["evaluate", "toy", "--set", "tim.steps=3"], "Add tim to --methods"),
        (["evaluate", "toy", "--set", "steps"], "METHOD.PARAMETER=VALUE"),
        (["evaluate", "toy", "--testbed", "a", "--n-way", "3"], "--n-way has no effect"),
        (["evaluate", "toy", "--testbed", "nowhere.csv"], "nowhere.csv"),
        (["evaluate", "toy", "--n-shot", "30"], "fewer than n_shot + n_query"),
        (["evaluate", "toy", "--n-way", "99"], "16"),
        (["evaluate", "toy", "--device", "cuda:5"], "cuda:5"),
        (["evaluate", "toy", "--side-by-side", "one"], "such as 1,5"),
        (["evaluate", "toy", "--side-by-side", "--sampler", "uniform"], "Omit --sampler"),
        (["evaluate", "toy", "--side-by-side", "--testbed", "a"], "--side-by-side has no effect"),
        (["runs", "show", "nothing"], "Unknown run 'nothing'"),
        (["runs", "show"], "needs the ID"),
        (["runs", "resume", "../x"], "run id"),
        (["runs", "--workers", "0"], "1 to 64"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_sentence(toy, capsys, arguments, words) -> None:
    assert words in fails(capsys, *arguments)
    assert jobs.list_runs() == []


def test_damaged_runs_are_rows_and_their_advice_helps(toy, capsys) -> None:
    runs = [run_json(capsys, "evaluate", "toy", *SAMPLER) for _ in range(4)]
    folders = [jobs.folder(run["run"]) for run in runs]
    (folders[0] / "spec.json").write_text("{")
    (folders[1] / "results.json").write_text("")
    chunk = folders[2] / "chunks" / "000000.npz"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:100])
    states = {row["run"]: row["state"] for row in run_json(capsys, "runs")["runs"]}
    assert [states[run["run"]] for run in runs] == ["damaged", "interrupted", "finished", "finished"]
    assert main(["runs"]) == 0
    assert f"runs delete {runs[0]['run']}" in capsys.readouterr().out
    assert f"runs delete {runs[0]['run']}" in fails(capsys, "runs", "resume", runs[0]["run"])
    assert run_json(capsys, "runs", "delete", runs[0]["run"])["state"] == "deleted"
    assert f"runs resume {runs[1]['run']}" in run_json(capsys, "runs", "show", runs[1]["run"])["error"]
    for run in runs[1:3]:
        assert run_json(capsys, "runs", "resume", run["run"])["results"] == run["results"]
    assert chunk.read_bytes() == content


def test_clean_says_what_it_would_free_and_frees_it_when_told(toy, capsys, tmp_path) -> None:
    run_id = run_json(capsys, "evaluate", "toy", *SAMPLER)["run"]
    assert main(["clean"]) == 0
    assert "Nothing to clean" in capsys.readouterr().out
    remaining = tmp_path / "ws" / "runs" / run_id / "chunks" / ".tmp-abc.npz"
    remaining.write_bytes(b"x" * 2_000_000)
    assert run_json(capsys, "clean")["leftovers"] == []  # a process may still write it
    os.utime(remaining, (0, 0))
    results = run_json(capsys, "clean")
    assert [row["path"] for row in results["leftovers"]] == [str(remaining)] and results["n_bytes"] == 2_000_000
    assert main(["clean"]) == 0
    assert "'fsviz clean --yes' frees 2 MB" in capsys.readouterr().out
    assert remaining.exists() and run_json(capsys, "clean", "--yes")["freed"]
    assert not remaining.exists() and [r["run"] for r in run_json(capsys, "runs")["runs"]] == [run_id]


def test_clean_frees_small_images_of_training_and_sweeping_leaves_them(toy, capsys, tmp_path) -> None:
    saved = tmp_path / "ws" / "pixels" / "toy" / "abc" / "000000.npz"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(b"x" * 1000)
    assert run_json(capsys, "clean")["leftovers"] == []  # a run may have just read them
    os.utime(saved, (0, 0))
    os.utime(saved.parent, (0, 0))
    workspace.sweep("pixels")
    assert saved.exists()
    (results,) = run_json(capsys, "clean", "--yes")["leftovers"]
    assert results["path"] == str(saved.parent) and "read again" in results["what"] and not saved.parent.exists()


def test_a_saved_testbed_is_found_by_its_name_with_dots(toy, capsys) -> None:
    from fsviz.sampling.testbeds import list_testbeds, save_testbed

    save_testbed(evaluate.sample_testbed(toy, {"n_way": 4, "n_shot": 1, "n_query": 3, "n_tasks": 20}, 1))
    (name,) = list_testbeds()
    assert "." in name
    assert run_json(capsys, "evaluate", "toy", "--testbed", name)["results"][0]["n_tasks"] == 20


def test_tables_one_and_two_and_intervals_over_images_from_the_terminal(toy, capsys) -> None:
    shape = ["--n-way", "4", "--n-query", "5", "--n-tasks", "40"]
    answer = run_json(capsys, "evaluate", "toy", "--methods", "protonet,bd_cspn", *shape, "--side-by-side", "1,3")
    assert sorted(answer["side_by_side"]) == ["toy, 4-way 1-shot", "toy, 4-way 3-shot"]
    first = answer["side_by_side"]["toy, 4-way 1-shot"]
    assert [row["method"] for row in first] == ["ProtoNet", "BD-CSPN"]
    by_key = {(r["sampler"], r["setting"], r["label"]): r for r in answer["results"]}
    assert len(by_key) == 8
    semantic = by_key["semantic", "4-way 1-shot", "ProtoNet"]
    assert first[0]["semantic"] == semantic["accuracy"] and first[0]["Q1"] == semantic["quartiles"][0]
    assert first[0]["uniform"] == by_key["uniform", "4-way 1-shot", "ProtoNet"]["accuracy"]
    assert semantic["ci95_images"] >= semantic["ci95"] > 0 and semantic["ci95_classes"] > 0
    assert -1 <= semantic["correlations"]["coarsity"]["spearman"]["value"] <= 1
    assert main(["runs", "show", answer["run"]]) == 0
    visible = capsys.readouterr().out
    assert "Semantic vs uniform tasks" in visible and "± over images (points)" in visible and "Pearson" in visible
    item = run_json(capsys, "evaluate", "toy", *shape, "--n-shot", "5", "--side-by-side")
    assert sorted(item["side_by_side"]) == ["toy, 4-way 5-shot"]


def test_shots_and_queries_fit_small_classes_where_nothing_is_asked(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "f.npz", features=rng.normal(size=(48, 8)).astype(np.float32), labels=np.repeat(list("abcd"), 12)
    )
    run_json(capsys, "features", "import", "few", str(tmp_path / "f.npz"))
    assert main(["evaluate", "few", "--n-tasks", "10", "--sampler", "uniform", "--json"]) == 0
    captured = capsys.readouterr()
    why = "Split 'test' of few has 4 classes and class 'a' has 12 images"
    assert f"{why}, so n_way is 4 instead of 5 and n_query is 7 instead of 10." in captured.err
    recipe = run_json(capsys, "runs", "show", json.loads(captured.out)["run"])["spec"]["recipe"]
    assert (recipe["n_way"], recipe["n_shot"], recipe["n_query"]) == (4, 5, 7)
    assert "fewer than n_shot + n_query" in fails(capsys, "evaluate", "few", "--n-shot", "9", "--n-query", "9")
