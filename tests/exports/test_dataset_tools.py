"""Predictions made elsewhere, backbones from files, and exports: right numbers out and in, wrong rows refused."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fsviz import datasets, features, jobs
from fsviz.analyses import run_comparison
from fsviz.cli import main
from fsviz.errors import BadInput, NotAllowed
from fsviz.exports import dataset_tools
from fsviz.features.backbones import load_backbone
from fsviz.records import PAD
from fsviz.sampling.testbeds import load_testbed, write_testbed
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.user import code as user_code
from fsviz.user import predictions as user_predictions
from tests.cli.calling import fails, run_json
from tests.studies.toy_dataset import make_toy
from tests.ui.pages import APP, open_link

NET = """
import torch

class Net(torch.nn.Module):
    size = 8
    mean, std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)

    def forward(self, images):
        return torch.stack([images.mean((1, 2, 3)), images.amax((1, 2, 3))], 1)

def build():
    return Net()

def plain():
    return lambda images: images.flatten(1)[:, :5].numpy()

def broken():
    return lambda images: images / images.missing
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setattr(user_code, "_allowed", True)
    monkeypatch.chdir(tmp_path)
    dataset = make_toy()
    settings = {"sampler": "uniform", "n_way": 4, "n_shot": 2, "n_query": 3, "n_tasks": 20}
    write_testbed(Path("t.parquet"), draw.sample(dataset, **settings))
    return dataset


def predicted_by(run_id: str, which: int = 0) -> pd.DataFrame:
    """Predictions of a run, as the table that another program would write."""
    spec = jobs.spec(run_id)
    answer = evaluate.predictions(spec, jobs.chunks(run_id), which)
    tasks = evaluate.entry_tasks(spec, evaluate.entries(spec)[which])
    names = datasets.load(spec["dataset"]).classes["class_name"].astype(str).to_numpy()
    task, way, place = np.nonzero(tasks.query != PAD)
    at = (task, way, place)
    predictions = names[tasks.class_ids[task, answer.predicted[at]]]
    table = {"task": task, "image_id": tasks.query[at], "predicted": predictions, "confidence": answer.confidence[at]}
    return pd.DataFrame(table).sample(frac=1, random_state=0)


# --- predictions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_predictions_of_a_run_come_back_with_its_numbers(toy, capsys, kind: str) -> None:
    words = ["evaluate", "toy", "--backbone", "alpha_net", "--methods", "protonet,simpleshot", "--testbed", "t.parquet"]
    run = run_json(capsys, *words)
    table = predicted_by(run["run"])
    table.to_csv("theirs.csv", index=False) if kind == "csv" else table.to_parquet("theirs.parquet")
    answer = run_json(capsys, "import-predictions", "toy", f"theirs.{kind}", "--testbed", "t.parquet")
    own, twin = answer["results"][0], run["results"][0]
    for name in ("accuracy", "ci95", "ci95_images", "ci95_classes", "quartiles", "top5"):
        assert own[name] == twin[name], name
    assert own["confidence"] == pytest.approx(twin["confidence"], rel=1e-5) and own["loss"] is None
    assert own["label"] == "theirs" and answer["compared_with"] == [run["run"]]
    assert set(answer["accuracy"]) == {"theirs", "ProtoNet", "SimpleShot"}
    compared = run_json(capsys, "compare", run["run"], answer["run"], "--reference", "ProtoNet")
    same = next(row for row in compared["differences"] if row["name"] == "theirs")
    assert same["difference"] == 0 and same["ties"] == 20 and not same["significant"]
    assert jobs.spec(answer["run"])["predictions"] == f"theirs.{kind}"  # no path of the user's disk
    assert run_comparison.command(jobs.spec(answer["run"])) == ""


def test_imported_predictions_stand_beside_the_others_on_the_page(toy, capsys, monkeypatch) -> None:
    run = run_json(capsys, "evaluate", "toy", "--backbone", "alpha_net", "--testbed", "t.parquet")
    predicted_by(run["run"]).drop(columns="confidence").to_csv("theirs.csv", index=False)
    run_json(capsys, "import-predictions", "toy", "theirs.csv", "--testbed", "t.parquet", "--name", "*mine*")
    monkeypatch.chdir(APP.parent)
    page = open_link("runs", "toy", show="Errors")
    visible = " ".join(str(e.value) for e in [*page.get("html"), *page.caption, *page.metric, *page.markdown])
    visible += " ".join(caption.proto.help for caption in page.caption)
    assert "nan%" not in visible and "Confidence is not available" in visible
    page = open_link("runs", "toy")
    assert "mine" in page.markdown[0].value + "".join(str(e.value) for e in page.get("html"))
    assert len(page.get("plotly_chart")) >= 2


def test_rows_that_do_not_fit_are_refused_with_counts(toy, capsys) -> None:
    run = run_json(capsys, "evaluate", "toy", "--backbone", "alpha_net", "--testbed", "t.parquet")
    good = predicted_by(run["run"]).sort_values(["task", "image_id"], ignore_index=True)
    bad = good.iloc[5:].reset_index(drop=True).astype({"predicted": object})
    bad.loc[:1, "task"] = [999, -1]
    bad.loc[2, "predicted"] = "nothing like it"
    bad.loc[3, "image_id"] = 10**9
    bad.loc[4, "confidence"] = 1.5
    pd.concat([bad, bad.iloc[-1:]]).to_csv("bad.csv", index=False)
    message = fails(capsys, "import-predictions", "toy", "bad.csv", "--testbed", "t.parquet")
    for words in (
        "2 rows of a task that it does not have (the first is row 1: task 999",
        "1 row with a class that its task does not have (the first is row 3",
        "1 row of an image that is no query of its task (the first is row 4",
        "1 row with a confidence that is not from 0 to 1",
        "1 query predicted more than once",
        "8 queries without a prediction",
    ):
        assert words in message, message
    assert "\n" not in message
    good.drop(columns="task").to_csv("bad.csv", index=False)
    assert "no task" in fails(capsys, "import-predictions", "toy", "bad.csv", "--testbed", "t.parquet")
    assert "cannot be read" in fails(capsys, "import-predictions", "toy", "absent.csv", "--testbed", "t.parquet")
    assert len(jobs.list_runs()) == 1  # nothing is left of what was refused


def test_class_ids_and_names_mean_the_same_and_the_template_is_filled(toy, capsys) -> None:
    queries = run_json(capsys, "queries", "toy", "--testbed", "t.parquet", "--out", "q.csv")
    table = pd.read_csv("q.csv", keep_default_na=False)
    assert queries["queries"] == len(table) == 20 * 4 * 3 and (table["predicted"] == "").all()
    table["predicted"] = [classes.split("|")[0] for classes in table["classes"]]
    table.to_csv("names.csv", index=False)
    ids = {name: i for i, name in enumerate(toy.classes["class_name"].astype(str))}
    table.assign(predicted=table["predicted"].map(ids)).to_csv("ids.csv", index=False)
    testbed = load_testbed("t.parquet", toy)
    by_name, by_id = (user_predictions.read(Path(f), testbed, toy) for f in ("names.csv", "ids.csv"))
    assert np.array_equal(by_name.predicted, by_id.predicted) and (by_name.predicted == 0).all()
    assert (by_name.rank[:, 0] == 0).all() and (by_name.rank[:, 1:] == 1).all()  # always the first class: a quarter


def test_top5_is_not_told_where_a_file_cannot_tell_it() -> None:
    from fsviz.records import Predictions

    numbers = np.ones((4, 3))
    few, many = (user_predictions.only_available(numbers, Predictions.blank((3, ways, 2))) for ways in (5, 6))
    assert np.isnan(few[2]).all() and np.isnan(many[2]).all()
    assert (few[1] == 1).all() and np.isnan(many[1]).all()


# --- backbones ---------------------------------------------------------------------------------------------------


def test_a_file_builds_a_backbone(toy, capsys, monkeypatch) -> None:
    Path("net.py").write_text(NET)
    backbone = load_backbone("./net.py:build", on="cpu")
    assert backbone.dims == 2 and backbone.preprocessing.size == (8, 8) and backbone.preprocessing.mean == (0.5,) * 3
    pixels = np.full((1, 8, 8, 3), 255, np.uint8)
    pixels[0, :4] = 0
    assert np.allclose(backbone.features(pixels), [[0.0, 2.0]], atol=1e-5)  # (x - 0.5) / 0.25 of half black, half white
    plain = load_backbone("./net.py:plain", on="cpu")
    assert plain.dims == 5 and plain.preprocessing.size == (224, 224)
    assert backbone.label.startswith("net.py:build@") and plain.label != backbone.label
    answer = run_json(capsys, "extract", "digits", "--backbone", "./net.py:build", "--workers", "0")
    assert (answer["dataset"], answer["n_images"], answer["dims"], answer["skipped"]) == ("digits", 1797, 2, [])
    assert answer["backbone"] == backbone.label
    stored = features.load(datasets.load("digits"), backbone.label)
    assert len(stored.values) == 1797 and "--checkpoint" not in stored.remake
    Path("net.py").write_text(NET + "\n# another version")
    assert load_backbone("./net.py:build", on="cpu").label != backbone.label
    assert "broken fails on a first image, images -> features (n, D): AttributeError" in fails(
        capsys, "extract", "digits", "--backbone", "./net.py:broken"
    )
    assert "Say which function" in fails(capsys, "extract", "digits", "--backbone", "./net.py")
    monkeypatch.setattr(user_code, "_allowed", False)
    with pytest.raises(NotAllowed, match="from the command line"):
        load_backbone("./net.py:build", on="cpu")


# --- exports -----------------------------------------------------------------------------------------------------


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Some of the digits as a folder of images, with features, and a run on them."""
    from fsviz.datasets.digits import open_digit
    from fsviz.user import images as user_images

    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setattr(user_code, "_allowed", True)
    monkeypatch.chdir(tmp_path)
    source = datasets.load("digits").image_class_ids()
    for class_id in range(4):
        Path(f"images/digit {class_id}").mkdir(parents=True)
        for image_id in np.flatnonzero(source == class_id)[:8]:
            open_digit(int(image_id)).save(f"images/digit {class_id}/{image_id}.png")
    user_images.add("mine", "images")
    Path("net.py").write_text(NET)
    dataset = datasets.load("mine")
    backbone = features.extract(dataset, "./net.py:build", workers=0, device="cpu").features.backbone
    spec = {"study": "evaluate", "dataset": "mine", "backbones": [backbone], "methods": ["protonet"], "device": "cpu"}
    sampler = {"sampler": "uniform", "split": "all", "n_way": 3, "n_shot": 2, "n_query": 3, "n_tasks": 30}
    return dataset, backbone, jobs.run_in_foreground({**spec, "sampler": sampler})


def test_fiftyone_and_atlas_hold_features_places_predictions_and_accuracies(digits, capsys) -> None:
    dataset, backbone, run = digits
    answer = run_json(capsys, "export", "mine", "--to", "fiftyone", "--out", "fo", "--runs", run.id)
    assert answer["samples"] == 32
    samples = json.loads(Path("fo/samples.json").read_text())["samples"]
    meta = json.loads(Path("fo/metadata.json").read_text())
    assert "version" not in meta and meta["media_type"] == "image"  # with a version, FiftyOne expects its own database
    stored = features.load(dataset, backbone)
    names = dataset.classes["class_name"].astype(str).to_numpy()
    accuracy = _accuracy_of(run)
    for sample in samples:
        image_id = sample["image_id"]
        assert Path(sample["filepath"]).is_file() and not list(Path("fo/data").iterdir())  # the user's own files
        assert sample["ground_truth"] == {"_cls": "Classification", "label": names[dataset.image_class_ids()[image_id]]}
        packed = base64.b64decode(sample["features"]["$binary"]["base64"])
        vector = np.load(io.BytesIO(zlib.decompress(packed)))
        assert np.allclose(vector, stored.values[stored.image_ids == image_id][0])
        assert {"x", "y"} <= set(sample)
        if image_id in accuracy:
            assert sample["right_protonet"] == pytest.approx(accuracy[image_id])
            assert sample["taken_for_protonet"]["label"] in names
    assert "not empty" in fails(capsys, "export", "mine", "--to", "fiftyone", "--out", "fo")

    answer = run_json(capsys, "export", "mine", "--to", "atlas", "--out", "a.parquet", "--runs", run.id)
    table = pd.read_parquet("a.parquet")
    assert len(table) == answer["rows"] == 32 and np.isfinite(table[["x", "y"]].to_numpy()).all()
    from PIL import Image

    assert Image.open(io.BytesIO(table["image"][0]["bytes"])).size
    values = stored.values.astype(float)
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    group = np.arange(32) if stored.groups is None else stored.groups  # copies of a picture are no neighbours of it
    apart = 1 - unit @ unit.T + 9 * (group[:, None] == group)
    first = table["neighbors"][3]  # row numbers of the table, nearest first, as the tool's --neighbors reads them
    assert list(first["ids"]) == np.argsort(apart[3])[:15].tolist()
    assert np.allclose(first["distances"], np.sort(apart[3])[:15], atol=1e-3)
    assert main(["export", "mine", "--to", "atlas", "--out", "b.parquet", "--no-pictures"]) == 0
    assert "embedding-atlas b.parquet --x x --y y --neighbors neighbors\n" in capsys.readouterr().out
    by_id = table.set_index("image_id")["right ProtoNet"].dropna().to_dict()
    assert by_id == pytest.approx(accuracy)
    assert table.set_index("image_id")["asked ProtoNet"].sum() == 30 * 9


def _accuracy_of(run) -> dict[int, float]:
    """By image how often its queries were right, counted one by one."""
    spec = jobs.spec(run.id)
    answer = evaluate.predictions(spec, jobs.chunks(run.id), 0)
    tasks = evaluate.entry_tasks(spec, evaluate.entries(spec)[0])
    values: dict[int, list[bool]] = {}
    for t, w, q in np.ndindex(tasks.query.shape):
        values.setdefault(int(tasks.query[t, w, q]), []).append(int(answer.predicted[t, w, q]) == w)
    return {image_id: float(np.mean(right)) for image_id, right in values.items()}


def test_figures_are_written_as_plotly_json(digits, capsys) -> None:
    import plotly.io

    _, _, run = digits
    run_json(capsys, "plot", run.id, "--out", "run.json")
    run_json(capsys, "plot", "mine", "--out", "map.json")
    for name in ("run.json", "map.json"):
        assert plotly.io.from_json(Path(name).read_text()).data
    assert ".json" in fails(capsys, "plot", run.id, "--out", "run.png")


def test_runs_of_another_dataset_and_names_of_fields(digits) -> None:
    _, _, run = digits
    second = datasets.load("digits")
    with pytest.raises(BadInput, match="Leave it out"):
        dataset_tools.images_table(second, runs=[(run.id, jobs.spec(run.id), jobs.chunks(run.id))])
    assert dataset_tools._field("right mine.py (scale 2)") == "right_mine_py__scale_2"
    assert dataset_tools._field("éclat") == "clat" and dataset_tools._field("_7") == "attribute_7"
