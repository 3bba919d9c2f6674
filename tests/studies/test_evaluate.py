"""An evaluation as a run: right numbers, frozen inputs, resumable without a trace, and clear about bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import run_comparison
from fsviz.datasets.saved import save_dataset
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.evaluation import evaluate as predict
from fsviz.evaluation import task_accuracy
from fsviz.jobs import locks, store
from fsviz.records import Tasks
from fsviz.sampling.testbeds import delete_testbed, load_testbed, save_testbed, to_csv
from fsviz.studies import evaluate
from fsviz.studies.study import locate
from fsviz.tasks import snapshot
from tests.studies import held_evaluate
from tests.studies.toy_dataset import make_toy, save_toy_features


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    yield make_toy()
    for run in jobs.list_runs():
        if run.active:
            jobs.cancel(run.id)


def spec_of(methods=("protonet",), n_tasks: int = 60, **more) -> dict:
    sampler = {"sampler": "uniform", "n_way": 4, "n_shot": 3, "n_query": 5, "n_tasks": n_tasks}
    sampler |= more.pop("sampler", {})
    spec = {
        "study": "evaluate",
        "dataset": "toy",
        "backbones": ["alpha_net"],
        "methods": [m if isinstance(m, dict) else {"name": m, "parameters": {}} for m in methods],
        "sampler": sampler,
        "seed": 0,
        "device": "cpu",
    }
    return {k: v for k, v in {**spec, **more}.items() if v is not None}


def test_results_equal_a_plain_evaluation_of_the_same_tasks(toy) -> None:
    run = jobs.run_in_foreground(spec_of(("protonet", "simpleshot"), n_tasks=70))
    tasks = snapshot.tasks(jobs.folder(run.id))
    table = features.load(toy, "alpha_net")
    for result in run.summary["results"]:
        accuracy = task_accuracy(predict(table, tasks, result["method"]))
        assert result["n_tasks"] == 70
        assert result["accuracy"] == pytest.approx(100 * accuracy.mean())
        assert result["ci95"] == pytest.approx(100 * 1.96 * accuracy.std(ddof=1) / np.sqrt(70))
        assert result["top5"] == pytest.approx(100.0)  # four ways: the true class is always among five
        assert np.mean(result["quartiles"]) == pytest.approx(result["accuracy"], abs=1.0)
        # classes close in meaning are close in feature space here: the finest quarter is the hardest
        assert result["quartiles"][0] < result["quartiles"][3]


def test_simpleshot_centres_on_split_train_and_never_on_the_classes_of_the_tasks(toy) -> None:
    table = features.load(toy, "alpha_net")
    parted = replace(toy, splits={"train": np.arange(8), "test": np.arange(8, 16)})
    centre = evaluate.centre_for("simpleshot", parted, table, Tasks(np.arange(8, 16)[None]))
    np.testing.assert_allclose(centre, table.values[table.class_ids < 8].mean(0, dtype=float), rtol=1e-5)
    for dataset, used in ((toy, np.arange(8, 16)), (parted, np.arange(7, 16))):  # no split train, or tasks of it
        centre = evaluate.centre_for("simpleshot", dataset, table, Tasks(used[None]))
        np.testing.assert_allclose(centre, table.values.mean(0, dtype=float), rtol=1e-5)
    assert evaluate.centre_for("protonet", parted, table, Tasks(np.arange(8, 16)[None])) is None
    # a run and a first look of the same tasks agree
    save_dataset(parted, overwrite=True)
    run = jobs.run_in_foreground(spec_of(("simpleshot",), n_tasks=20))
    tasks = snapshot.tasks(jobs.folder(run.id))
    answers = evaluate.predict_tasks(parted, "alpha_net", "simpleshot", {}, tasks)
    expected = predict(table, tasks, "simpleshot", centre=table.values[table.class_ids < 8].mean(0, dtype=float))
    saved = evaluate.predictions(jobs.spec(run.id), jobs.chunks(run.id), 0)
    for answer in (answers, saved):
        np.testing.assert_allclose(answer.confidence, expected.confidence, atol=1e-5)


def test_predictions_are_kept_with_image_ids(toy) -> None:
    run = jobs.run_in_foreground(spec_of(n_tasks=20))
    spec = jobs.spec(run.id)
    answer = evaluate.predictions(spec, jobs.chunks(run.id), 0)
    tasks = snapshot.tasks(jobs.folder(run.id))
    assert answer.predicted.shape == tasks.query.shape
    again = predict(features.load(toy, "alpha_net"), tasks, "protonet")
    assert np.array_equal(answer.predicted, again.predicted) and np.array_equal(answer.rank, again.rank)
    assert np.array_equal(
        toy.image_class_ids()[tasks.query], np.broadcast_to(tasks.class_ids[..., None], tasks.query.shape)
    )


def test_every_method_and_backbone_is_an_entry_in_order(toy) -> None:
    save_toy_features(toy, "beta_net", seed=7)
    run = jobs.run_in_foreground(
        spec_of(
            ("protonet", {"name": "protonet", "parameters": {"distance": "cosine"}}),
            backbones=["alpha_net", "beta_net"],
        )
    )
    rows = [(r["backbone"], r["label"]) for r in run.summary["results"]]
    cosine = "ProtoNet (distance cosine)"
    assert rows == [("alpha_net", "ProtoNet"), ("alpha_net", cosine), ("beta_net", "ProtoNet"), ("beta_net", cosine)]


def test_chunks_cover_every_task_once(toy) -> None:
    spec = evaluate.prepare(
        spec_of(("protonet", "tim", "pt_map"), n_tasks=333), Path(jobs.store.folder("runs", True)) / "x"
    )
    view = [np.zeros(333, int) for _ in spec["methods"]]
    n_chunks = evaluate.STUDY.n_chunks(spec)
    for index in range(n_chunks):
        which, start, stop = locate(evaluate.parts(spec), index)
        assert stop > start
        view[which][start:stop] += 1
    assert all((counts == 1).all() for counts in view)
    with pytest.raises(IndexError):
        locate(evaluate.parts(spec), n_chunks)


def test_the_testbed_is_frozen_when_the_run_starts(toy) -> None:
    testbed = evaluate.sample_testbed(toy, spec_of(n_tasks=30)["sampler"], 3)
    save_testbed(testbed)
    run_id = jobs.store.create(
        spec_of(sampler={}, testbed=testbed.name) | {"sampler": None}, jobs.prepare, store.INTERRUPTED
    ).id
    delete_testbed(testbed.name)
    run = jobs.resume_here(run_id)
    assert run.state == "finished" and run.summary["testbed"] == testbed.name
    assert np.array_equal(snapshot.tasks(jobs.folder(run_id)).query, testbed.tasks.query)


def test_a_testbed_file_gives_the_same_numbers_as_the_saved_one(toy, tmp_path) -> None:
    testbed = evaluate.sample_testbed(toy, spec_of(n_tasks=30)["sampler"], 3)
    save_testbed(testbed)
    (tmp_path / "tasks.csv").write_text(to_csv(testbed, toy))
    names = jobs.run_in_foreground(spec_of(testbed=testbed.name) | {"sampler": None})
    filed = jobs.run_in_foreground(spec_of(testbed=str(tmp_path / "tasks.csv")) | {"sampler": None})
    assert names.spec["tasks"]["digest"] == filed.spec["tasks"]["digest"]
    assert [r["accuracy"] for r in names.summary["results"]] == [r["accuracy"] for r in filed.summary["results"]]
    assert load_testbed(testbed.name, toy).recipe["sampler"] == "uniform"


def test_killed_and_resumed_gives_identical_results(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"methods": [{"name": "tim", "parameters": {"steps": 20}}], "sampler": {"n_tasks": 64}, "chunk": 16}
    whole = jobs.run_in_foreground(spec_of(**more))
    monkeypatch.setenv("FSVIZ_STUDIES", f"evaluate={held_evaluate.__name__}")  # for the worker
    run_id = jobs.submit(spec_of(**more))
    end = time.monotonic() + 240
    while len(store.chunk_indices(jobs.folder(run_id))) < held_evaluate.COMPUTED:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(locks.holder(jobs.folder(run_id) / "lock"), signal.SIGKILL)
    assert jobs.wait(run_id).state == "interrupted"
    assert jobs.status(run_id).n_done == held_evaluate.COMPUTED < whole.n_chunks
    jobs.resume_here(run_id)
    first, two = (jobs.folder(i) / "results.json" for i in (whole.id, run_id))
    assert first.read_bytes() == two.read_bytes()
    for name in sorted(p.name for p in (jobs.folder(run_id) / "chunks").glob("*.npz")):
        assert (jobs.folder(run_id) / "chunks" / name).read_bytes() == (
            jobs.folder(whole.id) / "chunks" / name
        ).read_bytes()


def test_live_summaries_hold_the_tasks_done_so_far(toy) -> None:
    run = jobs.run_in_foreground(spec_of(("protonet", "tim"), n_tasks=50))
    spec = jobs.spec(run.id)
    spec["chunk_tasks"] = [20, 20]
    chunks = [evaluate.STUDY.chunk(spec, i) for i in range(4)]
    part = evaluate.partial(spec, chunks)["results"]
    assert [(r["method"], r["n_tasks"]) for r in part] == [("protonet", 50), ("tim", 20)]
    assert part[0]["accuracy"] == pytest.approx(run.summary["results"][0]["accuracy"])
    assert evaluate.partial(spec, [])["results"] == []
    assert evaluate.STUDY.describe(spec, 3) == "TIM on alpha_net: 20 of 50 tasks"


def test_the_estimate_names_every_entry_and_is_of_the_right_size(toy) -> None:
    spec = spec_of(("protonet", "tim"), n_tasks=4000)
    rows = evaluate.estimate(spec, seconds=0.1)
    assert [r["method"] for r in rows] == ["protonet", "tim"]
    assert all(r["seconds"] == pytest.approx(4000 * r["per_task"]) for r in rows)
    assert rows[1]["per_task"] > rows[0]["per_task"] > 0


def test_the_guess_for_logistic_regression_grows_with_its_steps(toy) -> None:
    def guess(n_shot: int) -> float:
        spec = {"sampler": "uniform", "split": "all", "n_way": 5, "n_shot": n_shot, "n_query": 5, "n_tasks": 4}
        tasks = evaluate.sample_testbed(toy, spec, 0).tasks
        return evaluate.guess_seconds(toy, "alpha_net", "logistic", {}, tasks)

    assert guess(19) == pytest.approx(950 / 250 * guess(5), rel=0.05)


def test_a_first_look_draws_like_the_run_and_fits_any_dataset(toy) -> None:
    tiny = make_toy("tiny", n_images=3)
    for dataset, shots in ((toy, 5), (tiny, 1)):
        sampler = evaluate.feasible_sampler(dataset, "alpha_net")
        assert sampler["n_shot"] == shots
        testbed = evaluate.preview_testbed(dataset, {"backbones": ["alpha_net"], "sampler": sampler}, n_tasks=50)
        answer = evaluate.predict_tasks(dataset, "alpha_net", "protonet", {}, testbed.tasks)
        assert len(answer) == 50 and "coarsity" in testbed.tasks.measures
        assert 0.25 < task_accuracy(answer).mean() <= 1
        guess = [evaluate.guess_seconds(dataset, "alpha_net", m, {}, testbed.tasks) for m in ("protonet", "tim")]
        assert 0 < guess[0] < guess[1]


def test_a_first_look_at_a_testbed_spreads_over_it(toy) -> None:
    testbed = evaluate.sample_testbed(toy, spec_of(n_tasks=30)["sampler"], 3)
    save_testbed(testbed)
    assert evaluate.testbeds(toy) == [testbed.name]
    few = evaluate.preview_testbed(toy, {"backbones": ["alpha_net"], "testbed": testbed.name}, n_tasks=4)
    assert np.array_equal(few.tasks.query, testbed.tasks.query[[0, 10, 19, 29]])
    make_toy("other")
    assert evaluate.testbeds(datasets.load("other")) == []


def test_devices_are_named_honestly() -> None:
    import torch

    result = evaluate.devices()
    assert result[-1]["device"] == "cpu" and result[-1]["name"].startswith("CPU")
    assert len(result) == 1 + (torch.cuda.device_count() if torch.cuda.is_available() else 0)


@pytest.mark.parametrize("damage", ["none", "gone", "cut", "shape"])
def test_the_numbers_of_tasks_are_the_same_from_their_file_and_from_the_chunks(toy, damage) -> None:
    run = jobs.run_in_foreground(spec_of(methods=["protonet", "ridge"], n_tasks=50) | {"chunk": 20})
    spec = jobs.spec(run.id)
    path = jobs.folder(run.id) / "numbers.npy"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:500])
    elif damage == "shape":
        np.save(path, np.zeros((2, 4, 49)))
    elif damage == "gone":
        path.unlink()
    numbers = evaluate.task_numbers(spec, [] if damage == "none" else jobs.chunks(run.id))
    for which in range(2):
        answer = evaluate.predictions(spec, jobs.chunks(run.id, evaluate.chunks_of(spec, which)), which)
        assert np.array_equal(numbers[which]["accuracy"], task_accuracy(answer)) and len(answer) == 50
    so_far = evaluate.partial(spec, jobs.chunks(run.id))["results"]
    for live, whole in zip(so_far, run.summary["results"], strict=True):
        assert live == {name: whole[name] for name in live}


def test_predictions_end_before_the_first_missing_chunk(toy) -> None:
    run = jobs.run_in_foreground(spec_of(methods=["protonet", "ridge"], n_tasks=50) | {"chunk": 20})
    spec = jobs.spec(run.id)
    whole = evaluate.predictions(spec, jobs.chunks(run.id), 1)
    assert list(evaluate.chunks_of(spec, 0)) == [0, 1, 2] and list(evaluate.chunks_of(spec, 1, 21)) == [3, 4]
    first = evaluate.predictions(spec, jobs.chunks(run.id, [3, 5]), 1)
    assert len(first) == 20 and np.array_equal(first.predicted, whole.predicted[:20])
    with pytest.raises(Missing, match="No task of this method"):
        evaluate.predictions(spec, jobs.chunks(run.id, [4, 5]), 1)


# --- bad input ---------------------------------------------------------------------------------------------------


def refused(spec: dict, error: type[FsvizError], match: str) -> None:
    before = [run.id for run in jobs.list_runs()]
    with pytest.raises(error, match=match):
        jobs.submit(spec)
    assert [run.id for run in jobs.list_runs()] == before


def test_nan_in_features_is_named(toy) -> None:
    def spoil(values: np.ndarray) -> None:
        values[17, 3] = np.nan

    save_toy_features(toy, "spoiled", spoil=spoil)
    with pytest.raises(BadInput, match=r"NaN or infinity .first: image 17 of class 0.*Extract them again"):
        jobs.run_in_foreground(spec_of(backbones=["spoiled"], n_tasks=200))
    (run,) = jobs.list_runs()
    assert run.state == "failed" and "image 17" in run.error


def test_a_class_with_too_few_images_is_named_with_what_would_fit(toy) -> None:
    make_toy("uneven", small_class=5)
    refused(
        spec_of(dataset="uneven"),
        BadInput,
        r"'group 1 <b>kind</b> 1' has 3 images.*n_shot \+ n_query = 8.*n_shot 1 with n_query 2",
    )


def test_a_testbed_of_another_dataset_is_refused(toy) -> None:
    second = make_toy("other", n_images=30)
    testbed = evaluate.sample_testbed(second, spec_of()["sampler"], 0)
    save_testbed(testbed)
    refused(spec_of(testbed=testbed.name) | {"sampler": None}, FsvizError, "other")


def test_deleted_features_are_named_and_nothing_is_lost(toy, tmp_path) -> None:
    run = jobs.run_in_foreground(spec_of(n_tasks=40))
    store.chunk_path(jobs.folder(run.id), 0).unlink()
    folder = tmp_path / "ws" / "features" / "toy"
    shutil.move(folder, tmp_path / "aside")
    with pytest.raises(Missing, match=r"no alpha_net features.*resume it afterwards"):
        jobs.resume_here(run.id)
    assert jobs.status(run.id).state == "failed"
    refused(spec_of(), Missing, "no alpha_net features")
    shutil.move(tmp_path / "aside", folder)
    again = jobs.resume_here(run.id)
    assert again.state == "finished" and again.summary == run.summary


def test_features_that_changed_meanwhile_are_refused(toy, tmp_path) -> None:
    run = jobs.run_in_foreground(spec_of(n_tasks=40))
    store.chunk_path(jobs.folder(run.id), 0).unlink()
    shutil.rmtree(tmp_path / "ws" / "features" / "toy")
    save_toy_features(toy, "alpha_net", seed=99)
    with pytest.raises(BadInput, match="not the ones this run started with"):
        jobs.resume_here(run.id)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"dataset": "toyy"}, UnknownName, "Did you mean 'toy'"),
        ({"dataset": None}, BadInput, 'needs "dataset"'),
        ({"methods": []}, BadInput, "at least one method"),
        ({"methods": [{"name": "protonets"}]}, UnknownName, "Did you mean 'protonet'"),
        ({"methods": [{"name": "tim", "parameters": {"steps": -1}}]}, BadInput, "steps of TIM"),
        ({"methods": [{"name": "tim", "parameters": {"step": 1}}]}, UnknownName, "parameter of TIM"),
        ({"methods": ["protonet", "protonet"]}, BadInput, "listed twice"),
        ({"methods": "protonet"}, BadInput, "at least one method"),
        ({"methods": [3]}, BadInput, "A method is"),
        ({"backbones": []}, BadInput, "at least one backbone"),
        ({"backbones": ["nope"]}, Missing, "no nope features"),
        ({"sampler": None}, BadInput, "either"),
        ({"sampler": "uniform"}, BadInput, '"sampler" is a dictionary'),
        ({"sampler": {"sampler": "easy"}}, UnknownName, "sampler"),
        ({"sampler": {"ways": 3}}, UnknownName, "setting of the sampler"),
        ({"sampler": {"n_way": 40}}, FsvizError, "16"),
        ({"sampler": {"split": "tset"}}, UnknownName, "split"),
        ({"testbed": "no-such-testbed", "sampler": None}, UnknownName, "testbed"),
        ({"testbed": "a", "sampler": {}}, BadInput, "not both"),
        ({"seed": -1}, BadInput, "seed must be"),
        ({"chunk": -1}, BadInput, "chunk must be a whole number"),
        ({"device": "tpu-9"}, BadInput, "device"),
        ({"device": "cuda:7"}, BadInput, "not found"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else None,
)
def test_bad_specs_are_one_sentence_and_leave_nothing(toy, change, error, match) -> None:
    spec = spec_of()
    spec.update(change)
    refused({k: v for k, v in spec.items() if v is not None}, error, match)


def test_coarsity_is_named_by_the_distance_it_was_measured_with() -> None:
    from fsviz.tasks.draw import explain

    assert explain("coarsity", {}).endswith("Distances are by Jiang-Conrath.")
    assert "by Path length" in explain("coarsity", {"distance": "path_length"})
    words = explain("coarsity", {"distance": "features"})
    assert "between class means in feature space" in words and "Jiang" not in words
    assert explain("query_loss", {}).startswith("Query loss: ") and explain("my_own", {}) == ""


def test_one_run_of_semantic_and_uniform_tasks_is_each_of_them_alone(toy) -> None:
    sampler = spec_of(n_tasks=30)["sampler"]
    both = evaluate.both_samplers(sampler, (1, 3))
    assert [(s["sampler"], s["n_shot"]) for s in both] == [
        ("semantic", 1),
        ("uniform", 1),
        ("semantic", 3),
        ("uniform", 3),
    ]
    spec = {**spec_of(("protonet", "simpleshot")), "sampler": None, "samplers": both, "chunk": 20}
    run = jobs.run_in_foreground({k: v for k, v in spec.items() if v is not None})
    result = run.summary["results"]
    assert [(r["sampler"], r["setting"], r["method"]) for r in result][:3] == [
        ("semantic", "4-way 1-shot", "protonet"),
        ("semantic", "4-way 1-shot", "simpleshot"),
        ("uniform", "4-way 1-shot", "protonet"),
    ]
    for i, item in enumerate(both):
        alone = jobs.run_in_foreground({**spec_of(("protonet", "simpleshot")), "sampler": item, "chunk": 20})
        assert alone.summary["results"] == result[2 * i : 2 * i + 2]
    folder = jobs.folder(run.id)
    settled = {**run.spec, "folder": str(folder)}
    assert [part["recipe"]["n_shot"] for part in evaluate.run_testbeds(settled)] == [1, 1, 3, 3]
    lines = run_comparison.method_runs(run.id, settled, jobs.chunks(run.id))
    assert len(run_comparison.groups(lines)) == 4 and len({line.key for line in lines}) == 8
    pairs = run_comparison.side_by_side(run_comparison.result_table(lines))
    assert list(pairs) == [("toy", "4-way 1-shot"), ("toy", "4-way 3-shot")]
    from_summary = run_comparison.side_by_side(run_comparison.summary_table(run.summary))
    for key, pair in pairs.items():
        np.testing.assert_allclose(from_summary[key]["semantic"], pair["semantic"])
        np.testing.assert_allclose(from_summary[key]["Q1"], pair["Q1"])
    with pytest.raises(BadInput, match="as many tasks"):
        jobs.run_in_foreground({**spec, "samplers": [both[0], {**both[1], "n_tasks": 7}]})
    with pytest.raises(BadInput, match="stands alone"):
        jobs.run_in_foreground({**spec, "sampler": sampler})


@pytest.mark.parametrize("damage", ["none", "gone", "cut"])
def test_intervals_over_images_are_the_same_from_the_file_and_from_the_chunks(toy, damage) -> None:
    run = jobs.run_in_foreground(spec_of(("protonet", "ridge"), n_tasks=80) | {"chunk": 30})
    folder = jobs.folder(run.id)
    spec = {**run.spec, "folder": str(folder)}
    path = folder / "right.npy"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "gone":
        path.unlink()
    right, tasks = evaluate.first_correct(spec, [] if damage == "none" else jobs.chunks(run.id))[0]
    assert right.shape == (80, 4, 5) and len(tasks) == 80
    table = run_comparison.result_table(run_comparison.method_runs(run.id, spec, jobs.chunks(run.id)))
    for (_, row), result in zip(table.iterrows(), run.summary["results"], strict=True):
        assert row["ci95_images"] == pytest.approx(result["ci95_images"]) and result["ci95_images"] > 0
        assert row["ci95_classes"] == pytest.approx(result["ci95_classes"])
        text = result["correlations"]["coarsity"]["pearson"]
        assert text["ci95"][0] < text["value"] < text["ci95"][1]
    half_done = run_comparison.result_table(
        run_comparison.method_runs(run.id, {**spec, "folder": str(folder)}, jobs.chunks(run.id, [0]))
    )
    if damage != "none":
        assert half_done["ci95_images"].notna().tolist() == [True, False] and half_done["ci95"].notna().all()
