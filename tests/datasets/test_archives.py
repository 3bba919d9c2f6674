"""Benchmarks in pickles and TFRecords: images come out as they were put in, and nothing of a pickle is run."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz import datasets
from fsviz.datasets import archives
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


def images_of_class(dataset, class_name: str) -> list[np.ndarray]:
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
    captured = run_json(capsys, "add", "mini_imagenet", str(tmp_path), "--groups", "none")
    assert captured["n_images"] == 9 and len(captured["missing"]) == 97
    mine = datasets.load("my_mini_imagenet")
    assert mine.splits["test"].tolist() == test.tolist() and mine.splits["train"].tolist() == train.tolist()
    name = str(parent.classes["class_name"][test[1]])
    assert np.array_equal(images_of_class(mine, name), pixels(6, len("test"))[3:])
    assert not list((home / "datasets").glob(".upload-*")), "the images moved into the dataset"


def test_arrays_with_labels_and_names(tmp_path: Path, home: Path) -> None:
    images = pixels(4)
    content = {"data": images, "labels": [1, 0, 1, 0], "catname2label": {"n01440764": 0, "n01443537": 1}}
    path = tmp_path / "miniImageNet_category_split_val_phase_test.pickle"
    path.write_bytes(pickle.dumps(content))
    folder = archives.unpack(path)
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
    captured = run_json(capsys, "add", "mine", str(tmp_path), "--like", "tiered_imagenet", "--groups", "none")
    assert captured["n_images"] == 5 and captured["splits"]["val"]["n_classes"] == 2
    assert np.array_equal(images_of_class(datasets.load("mine"), names[0]), images[[0, 3]])


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
    ("content", "text"),
    [
        (b"no pickle", "not a pickle that can be read"),
        (pickle.dumps([1, 2]), "must hold image_data and class_dict"),
        (pickle.dumps({"image_data": pixels(2), "class_dict": {"a": [7]}}), "does not hold"),
        (pickle.dumps({"image_data": np.zeros((1, 4, 4)), "class_dict": {"a": [0]}}), "whole numbers up to 255"),
        (pickle.dumps(pixels(2))[:-30], "not a pickle that can be read"),
        (pickle.dumps({"image_data": pixels(0), "class_dict": {}}), "holds no images"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, home: Path, content: bytes, text: str) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(BadInput, match=text):
        archives.unpack(tmp_path / "x.pkl")


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
    captured = run_json(capsys, "add", "birds", str(tmp_path), "--like", "cu_birds", "--groups", "none")
    assert captured["n_images"] == 4 and captured["n_classes"] == 2 and names[1] in captured["missing"]
    assert np.array_equal(images_of_class(datasets.load("birds"), names[2]), images[2:])
    (tmp_path / "0.tfrecords").write_bytes(content[:-30])
    assert "Convert" in fails(capsys, "add", "cut", str(tmp_path), "--like", "cu_birds")


GOOD = {
    "image_data": pixels(2),
    "class_dict": {"a": [0], "b": [1]},
    "data": pixels(2),
    "labels": [0, 1],
    "catname2label": {"a": 0, "b": 1},
    "images": list(pixels(2)),
    "label_specific": [0, 1],
    "label_specific_str": ["a", "b"],
}


def benchmark_files(folder: Path, content: dict, npz: bytes | None = None) -> Path:
    """One file in the form of each key of `content`, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    if "class_dict" in content or "data" in content:
        (folder / "mini-test.pkl").write_bytes(pickle.dumps(content, 2))
    else:
        labels = {key: content[key] for key in ("label_specific", "label_specific_str") if key in content}
        (folder / "test_labels.pkl").write_bytes(pickle.dumps(labels, 2))
        if npz is None:
            (folder / "test_images.pkl").write_bytes(pickle.dumps(content["images"], 2))
        else:
            (folder / "test_images.npz").write_bytes(npz)
    return folder


FORMS = (
    ("image_data", "class_dict"),
    ("data", "labels", "catname2label"),
    ("images", "label_specific", "label_specific_str"),
)
ODD = [
    *(None, True, 3, -1, 10**30, 1.5, "text", b"bytes", [], [-1, 0], [0, 7], [0, 1.5], ["x", "y"], [[0], [1, 2]], (0,)),
    *({}, {0: 0}, {"a": None}, {"a": [99]}, {"a": [-1]}, {"a": [[0]]}, {"a": [0], "b": [0, 1, 1]}, {(1,): [0]}),
    *({"": [0]}, {"x" * 300: [0]}, {"\ud800": [0]}, {"a/b": [0], "a b": [1]}, {"a": 0, "b": 0}, {"images": 3}),
    *(np.array(3), np.zeros(0), np.zeros((2, 2)), pixels(2)[..., 0], np.array([2**63], np.uint64), [pixels(1)[0], "x"]),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0])
def test_every_other_structure_is_one_sentence(tmp_path: Path, home: Path, form: tuple[str, ...]) -> None:
    """Each part of each form is put in turn in place of each odd thing; what is read all the same is whole."""
    refused = 0
    for n, (key, odd) in enumerate((key, odd) for key in form for odd in ODD):
        content = {key: GOOD[key] for key in form} | {key: odd}
        try:
            folder = archives.unpack(benchmark_files(tmp_path / str(n), content))
        except BadInput as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            refused += 1
        else:  # no names for the labels, or names as numbers
            assert len(list(folder.rglob("*.png"))) == 2 or (key, odd) == ("class_dict", {"a": [-1]}), (key, odd)
    assert refused > 0.85 * len(form) * len(ODD)
    assert not [path for path in (home / "datasets").iterdir() if path.name.startswith(".tmp")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"image_data": pixels(2), "class_dict": [[0], [1]]}, "class_dict must hold a table of class names"),
        ({"image_data": pixels(2), "class_dict": {"a": [0, 2]}}, "class_dict go from 0 to 1. Got 2"),
        ({"image_data": pixels(2), "class_dict": {"a": [-1]}}, "class_dict go from 0 to 1. Got -1"),
        ({"image_data": pixels(2), "class_dict": {"a": [0, 1], "b": [0]}}, "belongs to one class"),
        ({"image_data": pixels(2), "class_dict": {"a/b": [0], "a b": [1]}}, "become the same folder, 'a b'"),
        ({"data": pixels(2), "labels": [0]}, "Got 1 labels for 2 images"),
        ({"data": pixels(2), "labels": [0, 5], "catname2label": {"a": 0}}, "Got none for label 5"),
        ({"images": list(pixels(2)), "label_specific": [0, 2], "label_specific_str": ["a", "b"]}, "from 0 to 1. Got 2"),
        ({"images": list(pixels(2)), "label_specific": [0, -1], "label_specific_str": ["a", "b"]}, "Got -1"),
        ({"images": list(pixels(2)), "label_specific": 4, "label_specific_str": ["a", "b"]}, "Got int"),
    ],
)
def test_the_sentence_says_which_part_is_wrong(tmp_path: Path, home: Path, content: dict, text: str) -> None:
    with pytest.raises(BadInput, match=text):
        archives.unpack(benchmark_files(tmp_path / "files", content))


def npz_of(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def test_broken_archives_of_arrays_are_one_sentence(tmp_path: Path, home: Path) -> None:
    good, rng = npz_of(images=pixels(2)), np.random.default_rng(0)
    broken = [good[:n] for n in range(0, len(good) - 1, 29)]
    broken += [npz_of(other=pixels(2)), npz_of(images=np.array("x")), npz_of(images=np.zeros(2)), b"PK\x03\x04"]
    for n, content in enumerate(broken):
        with pytest.raises(BadInput):
            archives.unpack(benchmark_files(tmp_path / str(n), {key: GOOD[key] for key in FORMS[2][1:]}, content))
    for n in range(60):  # bytes that may not matter
        bent = bytearray(good)
        bent[rng.integers(len(bent))] ^= int(rng.integers(1, 256))
        with suppress(BadInput):
            archives.unpack(benchmark_files(tmp_path / f"b{n}", {key: GOOD[key] for key in FORMS[2][1:]}, bytes(bent)))
    bomb = npz_of(images=np.zeros((2_000, 84, 84, 3), np.uint8))
    with pytest.raises(BadInput, match="at most 100 times its own size"):
        archives.unpack(benchmark_files(tmp_path / "bomb", {key: GOOD[key] for key in FORMS[2][1:]}, bomb))


def laughs(depth: int, width: int) -> list:
    """A list of lists that a pickle names once each, and that would be width ** depth lists when written out."""
    nested: list = [0]
    for _ in range(depth):
        nested = [nested] * width
    return nested


# an array whose bytes are the number 2 ** 31 - 1: bytes(n) would be so many zeros
ZEROS = b"\x80\x02cnumpy\nndarray\n)R(K\x01K\x01\x85cnumpy\ndtype\nX\x02\x00\x00\x00u1\x85RI00\nJ\xff\xff\xff\x7ftb."
PEAK = """
import resource, sys
from fsviz.datasets import archives
from fsviz.errors import BadInput
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    archives.unpack(sys.argv[1])
except BadInput as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, error)
"""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\x80\x02Nr\xff\xff\xff\x0f.", "numbers a part 268,435,455"),  # a table of as many places
        (b"Np268435455\n.", "numbers a part 268,435,455"),
        (b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".", "nests lists deeper than 20"),
        (pickle.dumps(laughs(12, 10), 2), "must hold image_data and class_dict"),
        (pickle.dumps(laughs(30, 2), 2), "nests lists deeper than 20"),
        (ZEROS, "TypeError"),
        (b"\x80\x02B\xff\xff\xff\x7fabc.", "EOFError"),
    ],
    ids=["memo", "memo in text", "deep", "shared", "shared and deep", "array of zeros", "cut bytes"],
)  # fmt: skip
def test_a_small_pickle_takes_little_memory(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    out = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "x.pkl")], capture_output=True, text=True)
    grown, _, sentence = out.stdout.partition(" ")
    assert text in sentence, out.stdout + out.stderr
    assert int(grown) < 200, "MB"


def test_a_pickle_of_too_many_operations_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "_MOST_OPERATIONS", 50)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps(list(range(300))))
    with pytest.raises(BadInput, match="more than 50 operations"):
        archives.unpack(tmp_path / "x.pkl")
    monkeypatch.setattr(archives, "_MOST_BYTES", 1_000)
    (tmp_path / "y.pkl").write_bytes(
        pickle.dumps({"image_data": [pixels(1)[0]] * 9, "class_dict": {"a": list(range(9))}})
    )
    monkeypatch.setattr(archives, "_MOST_OPERATIONS", 5_000)
    with pytest.raises(BadInput, match="the same images again and again"):
        archives.unpack(tmp_path / "y.pkl")


def test_a_pickle_cannot_change_the_functions_that_read_it(tmp_path: Path) -> None:
    change = b"\x80\x02c_codecs\nencode\n}X\x0c\x00\x00\x00__defaults__X\x05\x00\x00\x00utf-7\x85s\x86b."
    (tmp_path / "x.pkl").write_bytes(change.replace(b"encode\n}", b"encode\nN}"))
    with pytest.raises(BadInput, match="TypeError"):
        archives.read_pickle(tmp_path / "x.pkl")
    (tmp_path / "y.pkl").write_bytes(pickle.dumps(pixels(1), 2))  # its bytes are written through _codecs.encode
    assert np.array_equal(archives.read_pickle(tmp_path / "y.pkl"), pixels(1))


@pytest.mark.parametrize(
    "spec",
    [
        b"[" * 100_000,
        b"[]",
        b'{"class_names": []}',
        b'{"class_names": {"x": "a"}}',
        b'{"class_names": {"0": "a", "1": "a"}}',
        b'{"class_names": {"0": "a"}, "classes_per_split": {"TRAIN": 10000000000000}}',
        b'{"class_names": {"0": "a"}, "classes_per_split": {"TRAIN": -1}}',
        b'{"class_names": {"0": "a"}, "classes_per_split": {"TRAIN": Infinity}}',
        b'{"class_names": {"0": "a"}, "classes_per_split": [1]}',
    ],
    ids=lambda spec: spec[:50].decode(),
)
def test_specs_that_are_something_else(tmp_path: Path, home: Path, spec: bytes) -> None:
    (tmp_path / "dataset_spec.json").write_bytes(spec)
    (tmp_path / "0.tfrecords").write_bytes(record(encoded(pixels(1)[0]), 0))
    with pytest.raises(BadInput, match="not Meta-Dataset's"):
        archives.unpack(tmp_path)
