"""Training as a run on sixteen classes of the demo: every method learns, stops and goes on, and becomes a backbone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from fsviz import datasets, features, jobs
from fsviz.datasets import saved_splits
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.features import backbones, trained
from fsviz.features.checkpoints import load_tensors
from fsviz.studies import extraction, training
from fsviz.training import TRAINERS, anil
from tests.cli.calling import fails, run_json

SPLIT = {
    "name": "tiny",
    "train": ["koala", "monkey", "peacock", "crocodile", "lizard", "squid"],
    "val": ["whale", "chicken", "snake", "fish", "snail"],
    "test": ["penguin", "flamingo", "frog", "octopus", "lobster"],
    "recipe": {"mode": "stable", "divergence": 0.96, "reached": 0.9},
}
TINY = {"width": 8, "side": 16, "n_query": 5, "val_tasks": 10, "n_tasks": 60, "device": "cpu"}
OF_TASKS = {"tasks_per_epoch": 24, "epochs": 6, "lr": 0.01}
OF_METHOD = {
    "multiclass": {"epochs": 6, "batch": 32, "lr": 0.01, "finetune_lr": 0.001},
    "protonet": OF_TASKS,
    "maml": {**OF_TASKS, "order": "first", "inner_steps": 3, "inner_lr": 0.3},
    "anil": {**OF_TASKS, "inner_lr": 0.3},
}


def spec(method: str = "protonet", **more) -> dict:
    return {
        "study": "training",
        "dataset": "demo",
        "method": method,
        "split": SPLIT,
        **TINY,
        **OF_METHOD[method],
        **more,
    }


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory) -> Iterator[Path]:
    """One workspace for all: drawing the images of the demo takes longer than training on them."""
    home = tmp_path_factory.mktemp("training")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(home))
        yield home
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def finished(workspace) -> dict[str, jobs.Run]:
    """A finished run of every method."""
    return {method: jobs.run_in_foreground(spec(method)) for method in TRAINERS}


def weights(run: jobs.Run) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in load_tensors(jobs.results(run.id)["checkpoint"]).items()}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(value, second[name]) for name, value in first.items())


def chunk_bytes(run: jobs.Run) -> list[bytes]:
    return [path.read_bytes() for path in sorted((jobs.folder(run.id) / "chunks").glob("*.npz"))]


@pytest.mark.parametrize("method", list(TRAINERS))
def test_a_short_training_beats_chance_clearly(finished, method: str) -> None:
    result = jobs.results(finished[method].id)
    measured = ["multiclass", "finetune"] if method == "multiclass" else [method]
    assert [row["method"] for row in result["results"]] == measured
    for row in result["results"]:
        assert row["n_tasks"] == 60
        assert row["accuracy"] - 5 * row["ci95"] > result["chance"] == 20
        assert row["accuracy"] > 38
    curve = result["curve"]
    assert [point["epoch"] for point in curve] == list(range(1, len(curve) + 1))
    assert curve[-1]["loss"] < curve[0]["loss"] and curve[-1]["train_accuracy"] > curve[0]["train_accuracy"]
    best = max(curve, key=lambda point: point["val_accuracy"])
    assert (result["best_epoch"], result["val_accuracy"]) == (best["epoch"], best["val_accuracy"])
    assert (result["requested"], result["reached"]) == (0.96, 0.9)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(finished) -> None:
    again, second = jobs.run_in_foreground(spec()), jobs.run_in_foreground(spec(seed=1))
    assert same(weights(again), weights(finished["protonet"]))
    assert not same(weights(second), weights(finished["protonet"]))
    assert chunk_bytes(again) == chunk_bytes(finished["protonet"])


@pytest.mark.parametrize("method", ["multiclass", "maml"])
def test_stopped_and_resumed_gives_the_same_bits(finished, method: str, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["fsviz.jobs.execute"], "_WRITE_EVERY", 0.0)

    def stop(done: int, total: int, message: str) -> None:
        if message.startswith("epoch 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run_in_foreground(spec(method), stop)
    run = jobs.list_runs("training")[0]
    so_far = training.partial(jobs.spec(run.id), jobs.chunks(run.id))
    assert run.state == "interrupted" and [point["epoch"] for point in so_far["curve"]] == [1, 2]
    assert so_far["results"] == [] and so_far["best_epoch"] in (1, 2)
    last = sorted((jobs.folder(run.id) / "chunks").glob("*.npz"))[-1]
    last.unlink()  # a kill between the state of an epoch and its chunk
    run = jobs.resume_here(run.id)
    assert run.state == "finished"
    assert same(weights(run), weights(finished[method]))
    assert chunk_bytes(run) == chunk_bytes(finished[method])


def test_a_chunk_that_was_lost_is_computed_again_from_the_first_weights(finished) -> None:
    run = jobs.run_in_foreground(spec())
    expected = chunk_bytes(run)
    lost = sorted((jobs.folder(run.id) / "chunks").glob("*.npz"))[4]  # the second epoch: its states are gone
    lost.unlink()
    jobs.resume_here(run.id)
    assert chunk_bytes(run) == expected


def test_training_ends_early_and_keeps_the_best_epoch(workspace) -> None:
    run = jobs.run_in_foreground(
        spec(lr=1e-7, patience=1, epochs=6)
    )  # learns nothing: no epoch is better than the first
    result = jobs.results(run.id)
    assert result["n_epochs"] == len(result["curve"]) < 6
    assert result["best_epoch"] == result["n_epochs"] - 1
    assert run.n_chunks == run.n_done


def test_what_was_trained_is_a_backbone_like_any_other(finished) -> None:
    result = jobs.results(finished["maml"].id)
    name = result["backbone"]
    assert name == "trained:demo-maml-tiny-seed0" and name.removeprefix("trained:") in trained.names()
    backbone = backbones.load_backbone(name, on="cpu")
    assert backbone.dims == 8 and backbone.preprocessing.size == (16, 16) and not backbone.warning
    demo = datasets.load("demo")
    assert name in [row["backbone"] for row in extraction.choices(demo)]
    pixels = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
    assert np.allclose(backbone.features(pixels)[:1], backbone.features(pixels[:1]), atol=1e-5)  # images do not mix
    with pytest.raises(BadInput, match="own weights"):
        backbones.load_backbone(name, checkpoint=result["checkpoint"])
    with pytest.raises(UnknownName, match="Unknown trained network 'nothing'"):
        backbones.load_backbone("trained:nothing")


def test_its_features_can_be_extracted_and_evaluated_by_name(finished, tmp_path: Path) -> None:
    from PIL import Image

    from fsviz.datasets import image_folders

    rng = np.random.default_rng(0)
    for concept in ("a", "b"):
        (tmp_path / concept).mkdir()
        for i in range(3):
            Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(tmp_path / concept / f"{i}.png")
    image_folders.register("few", image_folders.inspect(tmp_path))
    dataset = datasets.load("few")
    done = extraction.extract_now(dataset, "trained:demo-protonet-tiny-seed0", device="cpu", workers=0)
    assert done["n_images"] == 6 and done["dims"] == 8
    assert "trained:demo-protonet-tiny-seed0" in features.available(datasets.load("few"))


def test_splits_of_every_origin_are_taken(workspace) -> None:
    demo = datasets.load("demo")
    own, name, _ = training.split_of(demo, None)
    assert name == "own" and {side: len(ids) for side, ids in own.items()} == {"train": 62, "val": 15, "test": 30}
    parts, _, recipe = training.split_of(demo, SPLIT)
    saved_splits.save_split(demo, "kept", parts, recipe)
    again, name, text = training.split_of(datasets.load("demo"), "kept")
    assert name == "kept" and text["divergence"] == 0.96
    assert all(np.array_equal(again[side], parts[side]) for side in parts)
    with pytest.raises(UnknownName, match=r"Unknown saved split 'kepd'\. Did you mean 'kept'"):
        training.split_of(datasets.load("demo"), "kepd")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"method": "mamml"}, "Unknown method of training 'mamml'. Did you mean 'maml'"),
        ({"method": "finetune"}, "Finetune is what Multiclass gives too"),
        ({"inner_lr": 0.1}, "Unknown setting of ProtoNet 'inner_lr'"),
        ({"split": {**SPLIT, "val": []}}, "'tiny' of EmojiCoCo.* has no val classes to end training in time"),
        ({"split": {**SPLIT, "train": []}}, "has no train classes to train on"),
        ({"split": {**SPLIT, "test": ["unicorn"]}}, "is of other classes: 1 of its 12 classes are not in"),
        (
            {"split": {**SPLIT, "test": ["frog", "lobster"]}, "n_way": 3},
            "n_way must be at most 2, the number of test classes",
        ),
        ({"n_shot": 40, "n_query": 10}, "needs n_shot . n_query = 50 images. Class '.*' .* has 48"),
        ({"side": 15}, "side must be a whole number from 16 to 224"),
        ({"dataset": "mini_imagenet", "split": "own"}, "miniImageNet has no images here"),
        ({"name": "no/path"}, "name of a trained network may have letters"),
        ({"device": "abacus"}, "device must be one of"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_sentence(workspace, changes: dict, sentence: str) -> None:
    before = len(jobs.list_runs())
    with pytest.raises(FsvizError, match=sentence):
        jobs.run_in_foreground({**spec(), **changes})
    assert len(jobs.list_runs()) == before


def test_losses_that_are_no_numbers_end_the_run_with_a_sentence(workspace, monkeypatch) -> None:
    monkeypatch.setattr(anil, "step", lambda *arguments: (float("nan"), 0.2))
    with pytest.raises(
        BadInput, match=r"Training ANIL left the range of numbers in epoch 1 .* Lower --lr or --inner-lr"
    ):
        jobs.run_in_foreground(spec("anil"))


def test_images_that_changed_are_not_trained_on(finished, tmp_path: Path) -> None:
    study = training.STUDY
    settled = {**study.prepare(study.check(spec()), tmp_path), "folder": str(tmp_path), "fingerprint": "other"}
    with pytest.raises(BadInput, match="changed since this run was made"):
        study.chunk(settled, 0)
    with pytest.raises(Missing, match="has no images here"):
        study.prepare(study.check({**spec(), "dataset": "cifar100"}), tmp_path)


# --- the command -------------------------------------------------------------------------------------------------


def test_the_command_trains_on_a_file_of_a_split(capsys, tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(SPLIT), encoding="utf-8")
    flags = "--width 8 --side 16 --n-query 5 --val-tasks 5 --n-tasks 10 --tasks-per-epoch 4 --epochs 1 --device cpu"
    result = run_json(
        capsys, "train", "demo", "--method", "anil", "--split", str(path), "--name", "mine", *flags.split()
    )
    assert result["backbone"] == "trained:mine" and result["split"] == "tiny"
    assert result["n_epochs"] == 1 and result["results"][0]["method"] == "anil"
    assert result["n_classes"] == {"train": 6, "val": 5, "test": 5}
    table = tmp_path / "tiny.csv"
    table.write_text("class_name,split\nfrog,train\nunicorn,test\n", encoding="utf-8")
    assert "of other classes" in fails(capsys, "train", "demo", "--split", str(table))
    assert "cannot be read" in fails(capsys, "train", "demo", "--split", str(tmp_path / "none.json"))
    assert "already" in fails(capsys, "train", "demo", "--split", str(path), "--name", "mine")
    assert "Unknown method of training 'mal'" in fails(capsys, "train", "demo", "--method", "mal")
    assert "Unknown saved split 'hardd'" in fails(capsys, "train", "demo", "--split", "hardd")


def test_the_command_says_what_came_out(finished) -> None:
    from fsviz.cli.training import show_train

    run = finished["multiclass"]
    results = show_train({"run": run.id, "seconds": run.seconds, **jobs.results(run.id)})
    assert "Finetune" in results and "60 test tasks of 5 classes; chance level 20%." in results
    assert "trained:demo-multiclass-tiny-seed0" in results
    assert training.command(run.spec).startswith("fsviz train demo --method multiclass --split tiny --width 8")


def test_the_command_transfer_compares_finished_runs(capsys, finished) -> None:
    run = finished["multiclass"]
    result = run_json(capsys, "transfer", "demo", "--tasks-of", run.id, "--backbone", "efficientnet_lite0")
    assert {row["method"] for row in result["accuracy"]} >= {"multiclass", "finetune", "protonet", "maml", "anil"}
    assert {row["asked"] for row in result["accuracy"]} == {0.96} and result["slopes"] == []  # one divergence, no line
    assert {row["divergence"] for row in result["correlations"]} >= {"symmetric_kl", "euclidean"}
    accuracy = training.test_accuracy(jobs.spec(run.id), jobs.chunks(run.id))
    results = jobs.results(run.id)["results"]
    assert [100 * accuracy[row["method"]].mean() for row in results] == pytest.approx(
        [row["accuracy"] for row in results]
    )
    assert "No finished training run" in fails(capsys, "transfer", "digits")
    assert "No grid of training runs" in fails(capsys, "transfer", "digits", "--recorded")
