"""extract and features as a user types them."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fsviz.cli import main
from fsviz.datasets.saved import save_dataset
from fsviz.records import Dataset


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.fixture
def pictures(tmp_path: Path, home: Path) -> Dataset:
    """Six pictures of two classes in the workspace, one of them broken."""
    root = tmp_path / "pictures"
    root.mkdir()
    rng = np.random.default_rng(0)
    names = [f"{i}.jpg" for i in range(6)]
    for name in names:
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(root / name)
    (root / "3.jpg").write_bytes(b"")
    classes = pd.DataFrame({"class_name": ["a", "b"], "split": "test", "n_images": 3, "node": ""})
    images = pd.DataFrame({"class_id": [0, 1] * 3, "path": names})
    splits = {"test": np.arange(2)}
    return save_dataset(Dataset("pictures", "Pictures", classes, splits, images=images, origin="folder", root=root))


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(list(argv)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_extract_prints_one_object_and_features_lists_it(pictures, capsys) -> None:
    result = run(capsys, "extract", "pictures", "--backbone", "efficientnet_lite0", "--device", "cpu", "--batch", "2")
    assert result["dataset"] == "pictures"
    assert result["backbone"] == "efficientnet_lite0"
    assert (result["n_images"], result["dims"]) == (5, 1280)
    assert [s["image_id"] for s in result["skipped"]] == [3]
    assert result["images_per_second"] > 0
    assert Path(result["path"], "values.npy").is_file()
    rows = [r for r in run(capsys, "features")["features"] if r["dataset"] == "pictures"]
    assert [(r["backbone"], r["n_images"], r["skipped"]) for r in rows] == [("efficientnet_lite0", 5, 1)]
    assert main(["features"]) == 0
    assert "efficientnet_lite0" in capsys.readouterr().out


def test_extract_for_a_person(pictures, capsys) -> None:
    assert main(["extract", "pictures", "--backbone", "cnn4", "--device", "cpu"]) == 0
    captured = capsys.readouterr()
    assert "5 images of pictures under conv64f@random: 1600 dimensions" in captured.out
    assert "Images that could not be read:" in captured.out and "\n    3  " in captured.out
    assert "random weights" in captured.err
    assert "6 of 6 images" in captured.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["extract", "picture"], "Did you mean 'pictures'"),
        (["extract", "pictures", "--backbone", "resnet-12"], "'resnet12'"),
        (["extract", "mini_imagenet"], "no images here"),
        (["extract", "pictures", "--device", "abacus"], "device must be one of"),
        (["extract", "pictures", "--batch", "0"], "batch must be between"),
        (["extract", "pictures", "--workers", "-1"], "workers must be between"),
        (["extract", "pictures", "--backbone", "conv64f", "--checkpoint", "nowhere.pt"], "Checkpoint not found"),
        (["features", "import"], "needs a dataset name and a file"),
        (["features", "list", "pictures"], "to import, write"),
        (["features", "import", "mine", "nowhere.npz"], "Not found"),
        (["features", "import", "mine", "x.npz", "--split", "test"], "needs --like"),
    ],
)
def test_bad_input_is_one_sentence(pictures, capsys, argv: list[str], message: str) -> None:
    assert message in refused(capsys, *argv)


def test_features_are_imported_as_a_new_dataset_or_join_one(tmp_path: Path, home: Path, capsys) -> None:
    np.savez(tmp_path / "x.npz", features=np.eye(4, 3), labels=np.array(["ant", "bee", "ant", "bee"]))
    result = run(capsys, "features", "import", "mine", str(tmp_path / "x.npz"))
    assert result["dataset"] == "mine"
    assert (result["n_images"], result["n_classes"], result["dims"], result["attached"]) == (4, 2, 3, False)
    second = run(capsys, "features", "import", "mine", str(tmp_path / "x.npz"), "--backbone", "twin")
    assert second["attached"]
    assert main(["features", "import", "mine", str(tmp_path / "x.npz"), "--replace"]) == 0
    assert "4 features of 3 dimensions in 2 classes are the new dataset mine" in capsys.readouterr().out
    assert "already" in refused(capsys, "features", "import", "mine", str(tmp_path / "x.npz"))


@pytest.mark.parametrize("name", ["values.npy", "rows.parquet"])
@pytest.mark.parametrize("size", [0, 90, None], ids=["empty", "cut", "gone"])
def test_damaged_features_are_named_and_the_command_in_the_sentence_makes_them_again(
    pictures, capsys, tmp_path, name, size
) -> None:
    output = run(capsys, "extract", "pictures", "--backbone", "conv64f", "--device", "cpu")
    np.savez(tmp_path / "mine.npz", features=np.arange(24.0).reshape(6, 4) ** 1.5, labels=["a", "b"] * 3)
    there = run(capsys, "features", "import", "pictures", str(tmp_path / "mine.npz"), "--backbone", "mine")
    for path, backbone in ((output["path"], "conv64f"), (there["path"], "mine")):
        file = Path(path) / name
        content = (Path(path) / "values.npy").read_bytes()
        file.write_bytes(file.read_bytes()[:size]) if size is not None else file.unlink()
        assert main(["features"]) == 0
        assert "damaged" in capsys.readouterr().out
        sampler = ["--sampler", "uniform", "--split", "test", "--n-way", "2", "--n-shot", "1", "--n-query", "1"]
        captured = refused(capsys, "evaluate", "--dataset", "pictures", "--backbone", backbone, *sampler)
        command = shlex.split(re.search(r"'fsviz ([^']*)'", captured)[1].replace("FILE", str(tmp_path / "mine.npz")))
        run(capsys, *command)
        assert (Path(path) / "values.npy").read_bytes() == content
        run(capsys, "evaluate", "--dataset", "pictures", "--backbone", backbone, *sampler, "--n-tasks", "5")


def test_features_of_changed_images_are_named_and_the_command_in_the_sentence_makes_them_again(
    pictures, capsys, tmp_path
) -> None:
    np.savez(tmp_path / "mine.npz", features=np.arange(24.0).reshape(6, 4) ** 1.5, labels=["a", "b"] * 3)
    run(capsys, "extract", "pictures", "--backbone", "conv64f", "--device", "cpu")
    run(capsys, "features", "import", "pictures", str(tmp_path / "mine.npz"), "--backbone", "mine")
    images = pictures.images.assign(path=pictures.images["path"].iloc[::-1].to_numpy())
    save_dataset(dataclasses.replace(pictures, images=images), overwrite=True)
    sampler = ["--sampler", "uniform", "--split", "test", "--n-way", "2", "--n-shot", "1", "--n-query", "1"]
    for backbone in ("conv64f", "mine"):
        captured = refused(capsys, "evaluate", "--dataset", "pictures", "--backbone", backbone, *sampler)
        assert "older than its images" in captured
        command = re.search(r"'fsviz ([^']*)'", captured)[1].replace("FILE", str(tmp_path / "mine.npz"))
        run(capsys, *shlex.split(command))
        run(capsys, "evaluate", "--dataset", "pictures", "--backbone", backbone, *sampler, "--n-tasks", "5")
