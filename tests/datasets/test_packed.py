"""Benchmarks in pickles and TFRecords: images come out as they were put in, and nothing of a pickle is run."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz import datasets
from fsviz.datasets import packed
from fsviz.errors import BadInput
from tests.cli.calling import fails, run_json


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path.with_name(f"{tmp_path.name}-ws")))
    return tmp_path.with_name(f"{tmp_path.name}-ws")


def pixels(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), dtype=np.uint8)


def encoded(image: np.ndarray, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, form)
    return buffer.getvalue()


def shown(dataset, class_name: str) -> list[np.ndarray]:
    class_id = dataset.classes["class_name"].tolist().index(class_name)
    ids = np.flatnonzero(dataset.image_class_ids() == class_id)
    return [np.asarray(datasets.open_image(dataset, int(i))) for i in ids]


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_mini_imagenets_pickles_become_a_copy_of_the_benchmark(
    tmp_path: Path,
    home: Path,
    capsys,
    protocol: int,
) -> None:
    parent = datasets.load("mini_imagenet")
    test, train = parent.splits["test"][:2], parent.splits["train"][:1]
    for split, ids in (("test", test), ("train", train)):
        images = pixels(3 * len(ids), len(split))
        rows = {str(parent.classes["node"][c]): list(range(3 * i, 3 * i + 3)) for i, c in enumerate(ids)}
        content = {"image_data": images, "class_dict": rows}
        (tmp_path / f"mini-imagenet-cache-{split}.pkl").write_bytes(pickle.dumps(content, protocol))
    told = run_json(capsys, "add", "mini_imagenet", str(tmp_path), "--groups", "none")
    assert told["n_images"] == 9 and len(told["missing"]) == 97
    mine = datasets.load("my_mini_imagenet")
    assert mine.splits["test"].tolist() == test.tolist() and mine.splits["train"].tolist() == train.tolist()
    name = str(parent.classes["class_name"][test[1]])
    assert np.array_equal(shown(mine, name), pixels(6, len("test"))[3:])
    assert not list((home / "datasets").glob(".upload-*")), "the images moved into the dataset"


def test_arrays_with_labels_and_names(tmp_path: Path, home: Path) -> None:
    images = pixels(4)
    content = {"data": images, "labels": [1, 0, 1, 0], "catname2label": {"n01440764": 0, "n01443537": 1}}
    path = tmp_path / "miniImageNet_category_split_val_phase_test.pickle"
    path.write_bytes(pickle.dumps(content))
    folder = packed.unpack(path)
    assert sorted(p.parent.name for p in folder.rglob("*.png")) == ["n01440764"] * 2 + ["n01443537"] * 2
    assert {p.parent.parent.name for p in folder.rglob("*.png")} == {"val"}
    first = sorted((folder / "val" / "n01443537").iterdir())[0]
    assert np.array_equal(np.asarray(Image.open(first)), images[0])


@pytest.mark.parametrize("kind", ["png", "npz"])
def test_tiered_imagenets_files_are_joined_with_their_labels(tmp_path: Path, home: Path, capsys, kind: str) -> None:
    parent = datasets.load("tiered_imagenet")
    ids = parent.splits["val"][:2]
    names = parent.classes["class_name"].iloc[ids].astype(str).tolist()
    images = pixels(5)
    if kind == "png":
        packs = [np.frombuffer(encoded(image), np.uint8) for image in images]
        (tmp_path / "val_images_png.pkl").write_bytes(pickle.dumps(packs, 2))
    else:
        np.savez(tmp_path / "val_images.npz", images=images)
    labels = {"label_specific": np.array([0, 1, 1, 0, 1]), "label_specific_str": names, "label_general": [0] * 5}
    (tmp_path / "val_labels.pkl").write_bytes(pickle.dumps(labels, 2))
    told = run_json(capsys, "add", "mine", str(tmp_path), "--like", "tiered_imagenet", "--groups", "none")
    assert told["n_images"] == 5 and told["splits"]["val"]["n_classes"] == 2
    assert np.array_equal(shown(datasets.load("mine"), names[0]), images[[0, 3]])


class Danger:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_nothing_of_a_pickle_is_run(tmp_path: Path, home: Path, capsys, protocol: int) -> None:
    mark, path = tmp_path / "was_run", tmp_path / "mini-imagenet-cache-test.pkl"
    path.write_bytes(pickle.dumps({"image_data": pixels(1), "class_dict": Danger(mark)}, protocol))
    sentence = fails(capsys, "add", "mini_imagenet", str(path))
    assert "mkdir, which opening it would run" in sentence and not mark.exists()
    assert not list((home / "datasets").glob(".upload-*"))
    pickle.loads(path.read_bytes())
    assert mark.exists(), "Python's own reader does run it"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"no pickle", "not a pickle that can be read"),
        (pickle.dumps([1, 2]), "none of the files that are known"),
        (pickle.dumps({"image_data": pixels(2), "class_dict": {"a": [7]}}), "does not hold"),
        (pickle.dumps({"image_data": np.zeros((1, 4, 4)), "class_dict": {"a": [0]}}), "whole numbers up to 255"),
        (pickle.dumps(pixels(2))[:-30], "not a pickle that can be read"),
        (pickle.dumps({"image_data": pixels(0), "class_dict": {}}), "holds no images"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, home: Path, content: bytes, told: str) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(BadInput, match=told):
        packed.unpack(tmp_path / "x.pkl")


def test_class_folders_beside_a_pickle_are_class_folders(tmp_path: Path, capsys) -> None:
    for name in ("dog", "cat"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        (tmp_path / "pets" / name / "1.png").write_bytes(encoded(pixels(1)[0]))
    (tmp_path / "pets" / "notes.pkl").write_bytes(b"whatever")
    assert run_json(capsys, "add", "pets", str(tmp_path / "pets"), "--groups", "none")["n_images"] == 2


def message(number: int, content: bytes) -> bytes:
    """A field of a protocol-buffer message that holds bytes."""
    size = b""
    n = len(content)
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return bytes([number << 3 | 2]) + size + bytes([n]) + content


def record(image: bytes, label: int) -> bytes:
    """A TFRecord of a tf.train.Example with label and image, as Meta-Dataset writes them."""
    number = message(1, b"label") + message(2, message(3, message(1, bytes([label]))))
    picture = message(1, b"image") + message(2, message(1, message(1, image)))
    content = message(1, message(1, number) + message(1, picture))
    return struct.pack("<QI", len(content), 0) + content + struct.pack("<I", 0)


def test_meta_datasets_records_become_a_copy_of_the_source(tmp_path: Path, home: Path, capsys) -> None:
    parent = datasets.load("cu_birds")
    names = parent.classes["class_name"].astype(str).tolist()[:3]
    spec = {"class_names": {str(i): n for i, n in enumerate(names)}, "classes_per_split": {"TRAIN": 1, "TEST": 2}}
    (tmp_path / "dataset_spec.json").write_text(json.dumps(spec))
    images = pixels(4)
    for number in (0, 2):
        content = b"".join(record(encoded(image), number) for image in images[number : number + 2])
        (tmp_path / f"{number}.tfrecords").write_bytes(content)
    told = run_json(capsys, "add", "birds", str(tmp_path), "--like", "cu_birds", "--groups", "none")
    assert told["n_images"] == 4 and told["n_classes"] == 2 and names[1] in told["missing"]
    assert np.array_equal(shown(datasets.load("birds"), names[2]), images[2:])
    (tmp_path / "0.tfrecords").write_bytes(content[:-30])
    assert "Convert" in fails(capsys, "add", "cut", str(tmp_path), "--like", "cu_birds")
