"""Reading folders, tables, specs and archives of images; saving them and reading them back."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fsviz import datasets, workspace
from fsviz.datasets import image_folders, pixel_attributes, saved, saved_splits, tables, uploads
from fsviz.datasets.preview import Preview, look_alikes
from fsviz.errors import BadInput, UnknownName, WorkspaceError
from fsviz.sampling import testbed_tables
from fsviz.user import predictions as user_predictions
from tests.datasets.test_images import solid_png

ROOT = Path(__file__).resolve().parent.parent.parent
ODD_NAMES = [
    'it\'s "quoted"',
    "<script>alert(1)</script>",
    "<b>bold</b> & more",
    "🐶 puppy",
    "a, b; c",
    "NA",
    "007",
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def picture(path: Path, colour: str = "", size: int = 16) -> None:
    """A picture of one colour, or one that no other path has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if colour:
        Image.new("RGB", (size, size), colour).save(path)
    else:
        noise = np.random.default_rng(zlib.crc32(os.fsencode(path))).integers(0, 256, (size, size, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)


def folder_of(root: Path, classes: dict[str, int], splits: tuple[str, ...] = ("",)) -> Path:
    for split in splits:
        for name, n in classes.items():
            for i in range(n):
                picture(root / split / name / f"{i:02d}.png")
    return root


def kinds(preview: Preview) -> set[str]:
    return {problem.kind for problem in preview.problems}


def items(preview: Preview, kind: str) -> str:
    return "\n".join(item for problem in preview.problems if problem.kind == kind for item in problem.items)


# Folders


def test_a_folder_of_classes(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 21, "cat": 20})
    preview = image_folders.inspect(root)
    assert preview.classes.to_dict("list") == {"class_name": ["cat", "dog"], "split": ["all"] * 2, "n_images": [20, 21]}
    assert preview.problems == ()
    assert preview.split_counts == {"all": {"n_classes": 2, "n_images": 41}}
    assert not (tmp_path / "home").exists(), "a preview writes nothing"


def test_a_folder_of_splits_orders_train_val_test_and_classes_as_people_count(tmp_path: Path) -> None:
    root = tmp_path / "set"
    folder_of(root / "train", {"class10": 20, "class9": 20})
    folder_of(root / "test", {"dog": 20})
    folder_of(root / "valid", {"cat": 20})
    preview = image_folders.inspect(root)
    assert preview.classes["class_name"].tolist() == ["class9", "class10", "cat", "dog"]
    assert preview.classes["split"].tolist() == ["train", "train", "val", "test"]


def test_what_the_first_folders_are_can_be_said(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"a": 2, "b": 2}, splits=("north", "south"))
    assert image_folders.inspect(root).classes["class_name"].tolist() == ["north/a", "north/b", "south/a", "south/b"]
    both = image_folders.inspect(root, first_level="split")
    assert both.classes["class_name"].tolist() == ["a", "b"]
    assert "two_splits" in kinds(both) and "image_split" in both.attributes
    assert both.images["image_split"].value_counts().to_dict() == {"north": 4, "south": 4}
    with pytest.raises(BadInput, match="first_level"):
        image_folders.inspect(root, first_level="other")


def test_folders_of_contexts_are_recognised(tmp_path: Path) -> None:
    root = tmp_path / "coco"
    for concept, contexts in {"dog": ("grass", "snow"), "cat": ("grass", "sofa"), "cow": ("grass", "snow")}.items():
        folder_of(root / concept, dict.fromkeys(contexts, 2))
    preview = image_folders.inspect(root)
    assert preview.classes["class_name"].tolist() == ["cat", "cow", "dog"]
    assert "contexts" in kinds(preview) and "sofa" in items(preview, "contexts")
    dataset = image_folders.preview_dataset("coco", preview)
    assert dataset.contexts is not None
    result = {(r.class_id, r.context): r.n_images for r in dataset.contexts.itertuples()}
    assert result == dict.fromkeys(((0, "grass"), (0, "sofa"), (1, "grass"), (1, "snow"), (2, "grass"), (2, "snow")), 2)
    assert (root / dataset.images["path"][0]).is_file()
    assert len(image_folders.inspect(root, first_level="class").classes) == 6
    assert (
        "context" not in image_folders.inspect(root, groups="folder").images
    )  # what is asked for as groups stays that
    for side in ("train", "test"):
        for concept in ("dog", "cat", "cow"):
            folder_of(tmp_path / "two" / side / f"{concept} {side}", {"grass": 1, "snow": 1})
    both = image_folders.inspect(tmp_path / "two")
    assert set(both.images["context"]) == {"grass", "snow"} and set(both.classes["split"]) == {"train", "test"}


def test_folders_that_are_no_contexts_stay_classes(tmp_path: Path) -> None:
    for concept in ("dog", "cat", "cow"):
        folder_of(tmp_path / "videos" / concept, {"video1": 2, "video2": 2})
        folder_of(tmp_path / "kinds" / concept, {f"small {concept}": 2, f"large {concept}": 2})
    for name in ("videos", "kinds"):
        assert "context" not in image_folders.inspect(tmp_path / name).images
    message = image_folders.inspect(tmp_path / "videos", first_level="concept")
    assert set(message.images["context"]) == {"video1", "video2"} and len(message.classes) == 3
    with pytest.raises(BadInput, match="cannot be contexts"):
        image_folders.inspect(folder_of(tmp_path / "flat", {"dog": 2, "cat": 2}), first_level="concept")


def test_a_wrapper_folder_is_skipped(tmp_path: Path) -> None:
    folder_of(tmp_path / "download" / "pets", {"dog": 2, "cat": 2})
    assert image_folders.inspect(tmp_path / "download").root == tmp_path / "download" / "pets"
    folder_of(tmp_path / "one", {"dog": 2})
    assert image_folders.inspect(tmp_path / "one").classes["class_name"].tolist() == ["dog"]


def test_every_bad_file_is_listed_and_left_out(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"dog": 20, "cat": 20})
    picture(tmp_path / "outside.png")
    (root / "dog" / "empty.jpg").touch()
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 60).convert("RGB").save(whole, "JPEG")
    (root / "dog" / "cut.jpg").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    (root / "dog" / "poem.jpg").write_text("roses are red")
    (root / "dog" / "notes.txt").write_text("not an image, and not called one")
    solid_png(root / "cat" / "bomb.png", 20_000, 20_000)
    solid_png(root / "cat" / "strip.png", 20_000, 1)
    (root / "cat" / "link.png").symlink_to(tmp_path / "outside.png")
    (root / "cat" / "dangling.png").symlink_to(tmp_path / "gone.png")
    (root / "loop").symlink_to(root)
    (root / "away").symlink_to(tmp_path)
    (root / "loose.png").write_bytes((tmp_path / "outside.png").read_bytes())
    preview = image_folders.inspect(root)
    assert preview.classes["n_images"].tolist() == [20, 20]
    broken = items(preview, "broken")
    for name in (
        "empty.jpg is empty",
        "cut.jpg: damaged",
        "poem.jpg is not an image",
        "bomb.png has too many pixels",
        "strip.png is a strip of 20,000 x 1 pixels",
    ):
        assert name in broken
    outside = items(preview, "leaves_root")
    for name in ("link.png", "dangling.png", "away", "loop"):
        assert name in outside
    assert "loose.png" in items(preview, "left_out") and ".txt: 1 file" in items(preview, "left_out")


def test_thousands_of_tiny_images_in_one_class(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"one": 1, "many": 1})
    tiny = (root / "many" / "00.png").read_bytes()
    for i in range(1, 3_000):
        (root / "many" / f"{i}.png").write_bytes(tiny)
    calls: list[tuple[int, int, str]] = []
    preview = image_folders.inspect(root, progress=lambda *text: calls.append(text))
    assert preview.classes["n_images"].tolist() == [3_000, 1]
    assert calls[-1][0] == calls[-1][1] == 3_001
    assert "single image" in next(p.message for p in preview.problems if p.kind == "too_few")
    assert "3,000 images" in next(p.message for p in preview.problems if p.kind == "copies")
    dataset = image_folders.register("tiny", preview)
    assert dataset.n_images == 3_001


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_class_names_survive_the_way_through_the_workspace(name: str, tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {name: 2, "plain": 2})
    image_folders.register("odd", image_folders.inspect(root))
    dataset = datasets.load("odd")
    assert set(dataset.classes["class_name"]) == {name, "plain"}
    assert datasets.open_image(dataset, 3).size == (16, 16)


def test_names_that_are_easily_confused_are_named(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"Golden_Retriever": 2, "golden retriever": 2, "pug": 2})
    preview = image_folders.inspect(root)
    assert "'Golden_Retriever' / 'golden retriever'" in items(preview, "duplicate_name")
    assert len(preview.classes) == 3


def test_names_that_look_the_same_are_told_apart_by_their_letters(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9", "cafe\u0301"
    names = [composed, apart, "do\u200bg", "dog", "bird", "bird\u00a0", "\u0915\u093f", "\u0915\u0940"]
    for i, _ in enumerate(names):
        picture(tmp_path / f"{i}.png")
    rows = "".join(f'{i}.png,"{name}"\n' for i, name in enumerate(names[:5] + names[6:]))
    (tmp_path / "list.csv").write_text("path,class\n" + rows, encoding="utf-8")
    text = items(image_folders.inspect(tmp_path / "list.csv"), "duplicate_name").splitlines()
    assert text == [r"'caf\xe9' / 'cafe\u0301'", r"'do\u200bg' / 'dog'"]  # vowels of Hindi are letters
    assert look_alikes(names[4:6]) == (r"'bird' / 'bird\xa0'",)


def test_a_folder_whose_name_is_blank_is_no_class(tmp_path: Path) -> None:
    preview = image_folders.inspect(folder_of(tmp_path / "set", {"dog": 2, "cat": 2, " ": 2}))
    assert sorted(preview.classes["class_name"]) == ["cat", "dog"] and " /00.png" in items(preview, "left_out")


def test_names_that_are_not_utf8_are_left_out(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "set", {"dog": 2, "cat": 2})
    try:
        picture(root / "dog" / os.fsdecode(b"caf\xe9.png"))
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    preview = image_folders.inspect(root)
    assert "not valid UTF-8" in items(preview, "broken")
    image_folders.register("ok", preview)


def test_folders_without_images(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="No images found"):
        image_folders.inspect(tmp_path / "empty")
    with pytest.raises(BadInput, match="Not found"):
        image_folders.inspect(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="Got nothing"):
        image_folders.inspect("  ")
    (tmp_path / "bad" / "dog").mkdir(parents=True)
    (tmp_path / "bad" / "dog" / "x.jpg").write_text("text")
    with pytest.raises(BadInput, match=r"No readable images.*Skipped 1 unreadable file"):
        image_folders.inspect(tmp_path / "bad")
    (tmp_path / "film.mp4").write_text("film")
    with pytest.raises(BadInput, match=r"Got film\.mp4"):
        image_folders.inspect(tmp_path / "film.mp4")


# Tables


def table_of(root: Path, n: int = 4) -> pd.DataFrame:
    rows = []
    for i in range(n):
        picture(root / f"img{i}.png")
        rows.append(
            {
                "path": f"img{i}.png",
                "class": "NA" if i % 2 else "007",
                "split": "test",
                "context": ["grass", ""][i // 2],
            }
        )
    return pd.DataFrame(rows)


def test_a_csv_with_context_and_attributes(tmp_path: Path) -> None:
    table = table_of(tmp_path).assign(
        blur=["0.5", "1", "", "2"], night=["yes", "no", "yes", "no"], style=["a", "b", "", "c"]
    )
    table.to_csv(tmp_path / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "list.csv")
    assert set(preview.classes["class_name"]) == {"NA", "007"}
    assert preview.attributes == ("blur", "night", "style")
    dataset = image_folders.register("listed", preview)
    again = datasets.load("listed")
    assert again.contexts is not None and again.contexts["n_images"].sum() == 2
    assert again.images is not None
    assert again.images["path"].tolist() == ["img0.png", "img2.png", "img1.png", "img3.png"]
    assert again.images["blur"].isna().tolist() == [False, True, False, False]
    assert again.images["blur"].dropna().tolist() == [0.5, 1.0, 2.0]
    assert again.images["night"].sum() == 2
    assert again.images["style"].isna().sum() == 1
    assert again.splits.keys() == {"test"} and dataset.capabilities == ("contexts", "attributes", "images")


def test_missing_files_are_named_by_row(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.loc[2, "path"] = "gone.png"
    table.to_csv(tmp_path / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "list.csv")
    assert items(preview, "missing_file") == "list.csv row 4: gone.png"
    assert len(preview.images) == 3
    table["path"] = "gone" + table.index.astype(str)
    table.to_csv(tmp_path / "list.csv", index=False)
    with pytest.raises(BadInput, match=r"No file in the table exists.*row 2: gone0"):
        image_folders.inspect(tmp_path / "list.csv")


def test_rows_that_repeat_are_left_out_or_leave_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    picture(tmp_path / "secret.png")
    table = table_of(root)
    table.loc[4] = ["img0.png", "other", "test", ""]
    table.loc[5] = ["../secret.png", "007", "test", ""]
    table.loc[6] = [str(tmp_path / "secret.png"), "007", "test", ""]
    table.loc[7] = ["", "007", "test", ""]
    table.to_csv(root / "list.csv", index=False)
    for bound in ({"confined": True}, {"images": root}):
        preview = image_folders.inspect(root / "list.csv", **bound)
        assert preview.root == root
        assert "row 6: img0.png (class other, before 007)" in items(preview, "listed_twice")
        assert items(preview, "leaves_root").count("secret.png") == 2
        assert items(preview, "left_out") == "list.csv row 9"
        assert len(preview.images) == 4
    free = image_folders.inspect(root / "list.csv")  # a list of one's own may name files anywhere
    assert free.root == tmp_path and len(free.images) == 5 and "leaves_root" not in kinds(free)
    table.iloc[5:7].to_csv(root / "list.csv", index=False)
    with pytest.raises(BadInput, match=r"lead out of .*first is list\.csv row 2: \.\./secret\.png.*--images"):
        image_folders.inspect(root / "list.csv", confined=True)


def test_lists_and_specs_take_absolute_paths_by_one_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder of images the dataset's folder holds all files; with one, nothing outside of it is read."""
    pets = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    lists = tmp_path / "lists"
    lists.mkdir()
    rows = "".join(f"{path},{path.parent.name}\n" for path in sorted(pets.rglob("*.png")))
    (lists / "list.csv").write_text("path,class\n" + rows)
    roots = {"class_names": ["cat", "dog"], "class_roots": [str(pets / "cat"), str(pets / "dog")]}
    (lists / "spec.json").write_text(json.dumps(roots))
    for name in ("list.csv", "spec.json"):
        for options in ({}, {"images": pets}, {"images": tmp_path}):
            preview = image_folders.inspect(lists / name, **options)
            assert preview.root == options.get("images", pets) and len(preview.images) == 4
            dataset = image_folders.register("own", preview, overwrite=True)
            assert [datasets.open_image(dataset, i).size for i in range(4)] == [(16, 16)] * 4
        for options in ({"confined": True}, {"images": lists}):
            with pytest.raises(BadInput, match="--images"):
                image_folders.inspect(lists / name, **options)
    (tmp_path / "link").symlink_to(tmp_path)  # a way there through a link to a folder
    (lists / "list.csv").write_text("path,class\n" + rows.replace(str(pets), str(tmp_path / "link" / "pets")))
    assert image_folders.inspect(lists / "list.csv").root == pets
    monkeypatch.setattr(os.path, "commonpath", lambda paths: "/")  # files on two disks
    for name in ("list.csv", "spec.json"):
        with pytest.raises(BadInput, match=r"no folder in common but /.*--images /\)"):
            image_folders.inspect(lists / name)
        assert len(image_folders.inspect(lists / name, images="/").images) == 4  # as the sentence says


def test_column_names_can_be_given(tmp_path: Path) -> None:
    table_of(tmp_path).rename(columns={"path": "where", "class": "what"}).to_csv(
        tmp_path / "l.csv", index=False, sep=";"
    )
    with pytest.raises(BadInput, match=r"has no path column.*--path-column"):
        image_folders.inspect(tmp_path / "l.csv")
    preview = image_folders.inspect(tmp_path / "l.csv", columns={"path": "where", "class": "what"})
    assert len(preview.images) == 4
    with pytest.raises(BadInput, match="no column 'nope'"):
        image_folders.inspect(tmp_path / "l.csv", columns={"path": "nope"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"path,class\n", "no rows"),
        (b"\xff\xfe\x00p", "not UTF-8"),
        (b'path,class\na,b\n"x,y,z\n1,2,3,4', "cannot be read"),
    ],
)
def test_broken_tables(content: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_bytes(content)
    with pytest.raises(BadInput, match=text):
        image_folders.inspect(tmp_path / "list.csv")


def test_mini_imagenet_style_lists_beside_a_folder_of_images(tmp_path: Path) -> None:
    for split, name in {"train": "n01532829", "val": "n01855672", "test": "n01930112"}.items():
        rows = []
        for i in range(3):
            picture(tmp_path / "images" / f"{name}{i}.jpg")
            rows.append({"filename": f"{name}{i}.jpg", "label": name})
        pd.DataFrame(rows).to_csv(tmp_path / f"{split}.csv", index=False)
    preview = image_folders.inspect(tmp_path)
    assert preview.classes["split"].tolist() == ["train", "val", "test"]
    assert preview.classes["n_images"].tolist() == [3, 3, 3]
    item = image_folders.inspect(tmp_path / "test.csv")
    assert item.classes["class_name"].tolist() == ["n01930112"]


def test_one_table_beside_its_images_is_found_in_the_folder(tmp_path: Path) -> None:
    table_of(tmp_path / "download" / "set" / "images").to_csv(tmp_path / "download" / "set" / "list.csv", index=False)
    preview = image_folders.inspect(tmp_path / "download")
    assert preview.source == "CSV table" and len(preview.images) == 4
    assert preview.images["path"].str.startswith("images/").all()


def test_easyfsl_specs(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "data" / "CUB" / "images", {"001.albatross": 3, "002.auklet": 2})
    spec = {
        "class_names": ["Albatross", "Auklet"],
        "class_roots": ["./data/CUB/images/001.albatross", str(root / "002.auklet")],
    }
    (tmp_path / "data" / "CUB" / "test.json").write_text(json.dumps(spec))
    preview = image_folders.inspect(tmp_path / "data" / "CUB" / "test.json")
    assert preview.root == root
    assert preview.classes.to_dict("list") == {
        "class_name": ["Albatross", "Auklet"],
        "split": ["test"] * 2,
        "n_images": [3, 2],
    }
    spec["class_roots"][0] = "./elsewhere"
    (tmp_path / "data" / "CUB" / "train.json").write_text(json.dumps(spec))
    preview = image_folders.inspect(tmp_path / "data" / "CUB" / "train.json")
    assert "elsewhere (class Albatross)" in items(preview, "missing_file")
    assert easyfsl_reads(tmp_path / "data" / "CUB" / "test.json", tmp_path) == 5


def easyfsl_reads(spec: Path, start: Path) -> int:
    """Number of images that easyfsl itself reads through the spec, as an oracle."""
    code = (
        "from fsviz.features import torchvision_guard; torchvision_guard.install();"
        "from easyfsl.datasets import EasySet;"
        f"print(len(EasySet({str(spec)!r})))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run([sys.executable, "-c", code], cwd=start, env=env, capture_output=True, text=True)
    if out.returncode:
        pytest.skip(f"easyfsl does not run here: {out.stderr[-200:]}")
    return int(out.stdout.split()[-1])


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"class_names": ["a"], "class_roots": []}', '{"class_names": [1], "class_roots": [2]}']
)
def test_broken_specs(text: str, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(text)
    with pytest.raises(BadInput, match="not an easyfsl spec"):
        image_folders.inspect(tmp_path / "spec.json")


def test_a_spec_without_a_common_folder_or_with_none_there(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps({"class_names": ["a"], "class_roots": ["nowhere"]}))
    with pytest.raises(BadInput, match=r"None of the class folders.*--images"):
        image_folders.inspect(tmp_path / "spec.json")
    with pytest.raises(BadInput, match=r"None of the class folders"):
        (tmp_path / "inside").mkdir()
        (tmp_path / "spec.json").write_text(json.dumps({"class_names": ["a"], "class_roots": [".."]}))
        image_folders.inspect(tmp_path / "spec.json", images=tmp_path / "inside")


def test_a_taxonomy_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Child,Parent,note\ndog,animal,x\ncat,animal,\n,animal,\ndog,animal,\n")
    edges = tables.read_edges(tmp_path / "t.csv")
    assert edges.to_dict("list") == {"child": ["dog", "cat"], "parent": ["animal", "animal"]}
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="columns child and parent"):
        tables.read_edges(tmp_path / "t.csv")


# Layouts of others


def coco_of(root: Path, n: int = 6) -> Path:
    """A folder as COCO's: images in val2017, objects of three categories in annotations."""
    for i in range(n):
        picture(root / "val2017" / f"{i:012d}.png")
    content = {
        "images": [{"id": i, "file_name": f"{i:012d}.png"} for i in range(n)],
        "annotations": [{"id": k, "image_id": k % n, "category_id": k % 3, "bbox": [0, 0, 5, 5]} for k in range(2 * n)],
        "categories": [{"id": k, "name": name} for k, name in enumerate(("dog", "cat", "cow"))],
    }
    (root / "annotations").mkdir()
    (root / "annotations" / "instances_val2017.json").write_text(json.dumps(content))
    return root


def test_folders_that_name_no_class_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        image_folders.inspect(coco_of(tmp_path / "coco"))
    assert "images in val2017 and COCO annotations (annotations/instances_val2017.json: 12 objects of 3" in str(
        error.value
    )
    assert "root/class/image" in str(error.value) and "--first-level class" in str(error.value)
    yolo = folder_of(tmp_path / "yolo", {"images": 2}, splits=("train", "valid"))
    (yolo / "train" / "labels").mkdir()
    (yolo / "train" / "labels" / "00.txt").write_text("0 0.5 0.5 1 1")
    voc = folder_of(tmp_path / "voc", {"JPEGImages": 2})
    (voc / "Annotations").mkdir()
    (voc / "Annotations" / "00.xml").write_text("<annotation/>")
    bare = folder_of(tmp_path / "bare", {"train": 2, "test": 2})
    for root, error in ((yolo, "YOLO"), (voc, "Pascal VOC"), (bare, "images in test, train, and these folders")):
        with pytest.raises(BadInput, match=error):
            image_folders.inspect(root)
        assert len(image_folders.inspect(root, first_level="class").images) == (4 if root != voc else 2)
    assert len(image_folders.inspect(folder_of(tmp_path / "kept", {"test": 2, "dog": 2})).classes) == 2


def test_the_table_that_the_refusal_of_coco_asks_for_is_read(tmp_path: Path) -> None:
    coco = coco_of(tmp_path / "coco")
    rows = "".join(f"val2017/{i:012d}.png,{('dog', 'cat')[i % 2]}\n" for i in range(6))
    (coco / "list.csv").write_text("path,class\n" + rows)
    assert image_folders.inspect(coco / "list.csv").classes["n_images"].tolist() == [3, 3]


def hugging_face(root: Path, form: str, splits: tuple[str, ...] = ("",), label: str = "label", **more: object) -> Path:
    """An image folder with metadata next to the images: 0.png dog, 1.png cat, ..."""
    for split in splits:
        rows = []
        for i in range(4):
            picture(root / split / f"{i}.png")
            rows.append({"file_name": f"{i}.png", label: ("dog", "cat")[i % 2] + split, "sharp": i % 2 == 0, **more})
        if form == "csv":
            pd.DataFrame(rows).to_csv(root / split / "metadata.csv", index=False)
        else:
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (root / split / "metadata.jsonl").write_text(lines, encoding="utf-8")
    return root


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_hugging_face_folders_take_their_classes_from_the_metadata(tmp_path: Path, form: str) -> None:
    flat = image_folders.inspect(hugging_face(tmp_path / "flat", form))
    assert flat.source == "Hugging Face image folder" and flat.attributes == ("sharp",)
    assert flat.classes.to_dict("list") == {"class_name": ["cat", "dog"], "split": ["all"] * 2, "n_images": [2, 2]}
    root = hugging_face(tmp_path / "splits", form, ("train", "test"))
    both = image_folders.inspect(root)
    assert both.classes["class_name"].tolist() == ["cattrain", "dogtrain", "cattest", "dogtest"]
    assert both.classes["split"].tolist() == ["train", "train", "test", "test"]
    assert dict(zip(both.images["path"], both.images["class_name"]))["test/3.png"] == "cattest"
    dataset = image_folders.register("faces", both)
    assert datasets.open_image(dataset, 7).size == (16, 16)
    second = hugging_face(tmp_path / "data" / "data", form, ("train", "test"))
    assert second.parent == tmp_path / "data" and len(image_folders.inspect(tmp_path / "data").classes) == 4


def test_metadata_beside_a_folder_of_images(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        for i in range(2):
            picture(tmp_path / split / f"{i}.png")
    rows = [{"file_name": f"{s}/{i}.png", "label": f"{s} {i}"} for s in ("train", "validation") for i in range(2)]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert image_folders.inspect(tmp_path).classes["split"].tolist() == ["train", "train", "val", "val"]
    (tmp_path / "metadata.jsonl").write_text(json.dumps({"file_name": "../../etc/x.png", "label": "a"}))
    with pytest.raises(BadInput, match="lead out of"):
        image_folders.inspect(tmp_path)


def test_metadata_without_a_class_says_which_columns_it_has(tmp_path: Path) -> None:
    root = hugging_face(tmp_path / "text", "jsonl", ("train", "test"), label="says")
    with pytest.raises(BadInput, match=r"metadata\.jsonl has no class column.*file_name, says, sharp.*--class-column"):
        image_folders.inspect(root)
    assert len(image_folders.inspect(root, columns={"class": "says"}).classes) == 4  # as the sentence says
    boxes = hugging_face(tmp_path / "boxes", "jsonl", ("train",), label="says", label_boxes=[[0, 0, 1, 1]])
    with pytest.raises(BadInput, match=r"Columns: file_name, says, sharp\."):
        image_folders.inspect(boxes)
    classes = folder_of(tmp_path / "classes", {"owl": 2, "elk": 2})
    (classes / "metadata.csv").write_text("file_name,text\nowl/00.png,an owl\n")
    assert sorted(image_folders.inspect(classes).classes["class_name"]) == ["elk", "owl"], (
        "folders that name classes do"
    )
    for text in ("[1]\n", "{\n", "[" * 100_000):
        (tmp_path / "x.jsonl").write_text(text)
        with pytest.raises(BadInput, match="a line"):
            image_folders.inspect(tmp_path / "x.jsonl")


# The workspace


def test_a_dataset_reads_back_as_it_was_saved(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 3, "cat": 2})
    edges = pd.DataFrame({"child": ["cat", "dog"], "parent": ["animal", "animal"]})
    saved = image_folders.register(
        "pets",
        image_folders.inspect(root),
        {"cat": "cat", "dog": "dog"},
        edges,
        {"cat": "cat"},
        title="Pets",
        licence="mine",
    )
    loaded = datasets.load("pets")
    pd.testing.assert_frame_equal(saved.classes, loaded.classes)
    assert loaded.taxonomy is not None and loaded.taxonomy.equals(edges)
    assert loaded.images is not None and loaded.images["class_id"].tolist() == [0, 0, 1, 1, 1]
    assert loaded.classes["node"].tolist() == ["cat", "dog"]
    assert (loaded.title, loaded.licence, loaded.origin, loaded.root) == ("Pets", "mine", "folder", root)
    assert "pets" in datasets.names() and image_folders.workspace_dataset_names() == ["pets"]
    assert [p.name for p in (tmp_path / "home" / "datasets").iterdir()] == ["pets"], "nothing half-written remains"
    assert np.asarray(datasets.open_image(loaded, 0)).shape == (16, 16, 3)


def test_names_that_are_taken_or_impossible(tmp_path: Path) -> None:
    preview = image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 2, "cat": 2}))
    for name in ("demo", "digits", "tiered_imagenet"):
        with pytest.raises(BadInput, match="comes with fsviz"):
            image_folders.register(name, preview)
    for name in ("../x", "", ".hidden", "a b", "x" * 101):
        with pytest.raises(BadInput, match="dataset name may have"):
            image_folders.register(name, preview)
    image_folders.register("pets", preview)
    with pytest.raises(BadInput, match="already"):
        image_folders.register("pets", preview)
    image_folders.register("pets", preview, title="Second", overwrite=True)
    assert datasets.load("pets").title == "Second"
    image_folders.remove_dataset("pets")
    assert image_folders.workspace_dataset_names() == [] and (tmp_path / "pets" / "dog" / "00.png").exists()


def test_a_folder_that_has_moved(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    image_folders.register("pets", image_folders.inspect(root))
    shutil.move(root, tmp_path / "elsewhere")
    dataset = datasets.load("pets")
    assert "not found at" in dataset.notes[0] and "--replace" in dataset.notes[0]
    with pytest.raises(BadInput, match="Images not found at"):
        datasets.open_image(dataset, 0)


def test_a_record_is_read_once_until_one_of_its_files_changes(tmp_path: Path, home: Path) -> None:
    root = folder_of(tmp_path / "pets", {"cat": 2, "dog": 2, "owl": 2})
    image_folders.register("pets", image_folders.inspect(root))
    read = datasets.load("pets")
    assert datasets.load("pets") is read

    def write_in_place() -> None:
        file = home / "datasets" / "pets" / "dataset.json"
        file.write_text(file.read_text().replace('"licence": ""', '"licence": "mine"'))

    halves = {"train": read.splits["all"][:1], "val": read.splits["all"][:0], "test": read.splits["all"][1:]}
    for change, shows in (
        (lambda: saved.rename_dataset("pets", "Pets"), lambda d: d.title == "Pets"),
        (write_in_place, lambda d: d.licence == "mine"),
        (lambda: saved_splits.save_split(read, "halves", halves, {}), lambda d: "halves_test" in d.splits),
        (lambda: pixel_attributes.save(read, pixel_attributes.compute(read)), lambda d: "brightness" in d.attributes),
        (lambda: (home / "features" / "pets" / "net").mkdir(parents=True), lambda d: d.has_features),
        (lambda: root.rename(tmp_path / "gone"), lambda d: "not found at" in str(d.notes)),
        (lambda: (tmp_path / "gone").rename(root), lambda d: d.notes == read.notes),
        (lambda: saved_splits.remove_split("pets", "halves"), lambda d: "halves_test" not in d.splits),
    ):
        assert not shows(datasets.load("pets"))
        change()
        assert shows(datasets.load("pets")) and datasets.load("pets") is datasets.load("pets")

    shutil.copytree(home, tmp_path / "other")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(tmp_path / "other"))
        saved.rename_dataset("pets", "Others")
        assert datasets.load("pets").title == "Others"
    assert datasets.load("pets").title == "Pets"
    saved.remove_dataset("pets")
    with pytest.raises(UnknownName):
        datasets.load("pets")


def test_a_damaged_dataset_says_so_and_the_others_still_load(tmp_path: Path, home: Path) -> None:
    preview = image_folders.inspect(folder_of(tmp_path / "pets", {"dog": 2, "cat": 2}))
    image_folders.register("one", preview)
    image_folders.register("two", preview)
    (home / "datasets" / "one" / "classes.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(WorkspaceError, match="damaged"):
        datasets.load("one")
    (home / "datasets" / "one" / "dataset.json").write_text("{")
    with pytest.raises(WorkspaceError):
        datasets.load("one")
    assert datasets.load("two").n_images == 4


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, home: Path) -> None:
    """A limit on the size of files stands for a full disk: every write beyond it fails with an OSError."""
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    code = f"""
import resource, sys
from fsviz.datasets import image_folders
preview = image_folders.inspect({str(root)!r})
import pyarrow.parquet
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    image_folders.register("pets", preview)
except Exception as error:
    print(type(error).__name__, error)
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert out.stdout.startswith("WorkspaceError"), out.stdout + out.stderr
    assert "could not be written" in out.stdout and "Free some space" in out.stdout
    assert list((home / "datasets").iterdir()) == []


def test_an_archive_of_a_hugging_face_folder_keeps_its_metadata(tmp_path: Path) -> None:
    for form in ("csv", "jsonl"):
        root = hugging_face(tmp_path / form, form, ("train", "test"))
        content = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*.*")}
        folder, listed = uploads.collect([as_upload("faces.zip", archive_of(content).getvalue())])
        assert listed is None and image_folders.inspect(folder, confined=True).classes["n_images"].tolist() == [2] * 4
    coco = coco_of(tmp_path / "coco")
    content = {str(path.relative_to(coco)): path.read_bytes() for path in coco.rglob("*.*")}
    folder, _ = uploads.collect([as_upload("coco.zip", archive_of(content).getvalue())])
    with pytest.raises(BadInput, match="12 objects of 3 categories"):
        image_folders.inspect(folder, confined=True)


# Archives


def archive_of(names: dict[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    buffer.seek(0)
    return buffer


@pytest.fixture
def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    return buffer.getvalue()


def test_an_upload_becomes_a_dataset_with_its_own_images(png: bytes, home: Path) -> None:
    archive = archive_of({f"pets/{c}/{i}.png": png for c in ("dog", "cat") for i in range(3)} | {"pets/read.me": b"x"})
    place = uploads.unpack(archive)
    assert uploads.unpack(archive) == place, "the same upload is unpacked once"
    assert not list(place.rglob("read.me"))
    preview = image_folders.inspect(place)
    dataset = image_folders.register("pets", preview, move_images=preview.root)
    assert dataset.root == home / "datasets" / "pets" / "images"
    assert datasets.open_image(datasets.load("pets"), 5).size == (8, 8)
    moved = home.with_name("moved")  # a workspace can be moved as a whole
    shutil.move(home, moved)
    os.environ["FSVIZ_HOME"] = str(moved)
    assert datasets.open_image(datasets.load("pets"), 5).size == (8, 8)


@pytest.mark.parametrize("name", ["../evil.png", "/etc/evil.png", "a/../../evil.png", "a\\..\\evil.png", "C:/evil.png"])
def test_archives_that_leave_their_folder_are_refused_whole(name: str, png: bytes, home: Path) -> None:
    with pytest.raises(BadInput, match="outside its own folder"):
        uploads.unpack(archive_of({"dog/1.png": png, name: png}))
    assert not list(home.rglob("*.png")) and not list((home / "datasets").iterdir())


def test_files_without_ending_are_images_by_how_they_begin(png: bytes, tmp_path: Path) -> None:
    content = {"dog/1": png, "dog/LICENSE": b"no image", "dog/2.0003": png, "cat/1": png}
    upload = uploads.unpack(archive_of(content))
    for name, data in content.items():
        (tmp_path / "zoo" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "zoo" / name).write_bytes(data)
    for root in (upload, tmp_path / "zoo"):
        result = image_folders.inspect(root, groups="none")
        assert sorted(result.images["path"]) == ["cat/1", "dog/1", "dog/2.0003"]


def as_upload(name: str, content: bytes) -> io.BytesIO:
    file = io.BytesIO(content)
    file.name = name
    return file


def test_files_of_an_upload_take_their_classes_from_a_table(png: bytes, home: Path) -> None:
    table = as_upload("my list.csv", b"path,class\n1.png,dog\nsub/2.png,cat\n")
    archive = as_upload(
        "all.zip", archive_of({"1.png": png, "sub/2.png": png, "list.csv": table.getvalue()}).getvalue()
    )
    folder, listed = uploads.collect([archive])
    assert listed == folder / "list.csv", "the table of an archive says more than its folders"
    assert set(image_folders.inspect(listed, images=folder, confined=True).classes["class_name"]) == {"dog", "cat"}
    second = archive_of({"a/1.png": png, "b/2.png": png, "notes.csv": b"path,class\nelsewhere.png,dog\n"})
    assert uploads.collect([as_upload("other.zip", second.getvalue())])[1] is None
    bare = as_upload("all.zip", archive_of({"1.png": png, "sub/2.png": png}).getvalue())
    folder, listed = uploads.collect([bare, table])
    result = image_folders.inspect(listed, images=folder, confined=True)
    dataset = image_folders.register("zipped", result, move_images=result.root)
    assert sorted(dataset.classes["class_name"]) == ["cat", "dog"] and datasets.open_image(dataset, 1).size == (8, 8)
    flat = as_upload("list.csv", b"path,class\n1.png,dog\n2.png,cat\n")
    folder, listed = uploads.collect([as_upload("C:\\pictures\\1.png", png), flat, as_upload("../2.png", png)])
    assert sorted(p.name for p in folder.iterdir()) == ["1.png", "2.png", "list.csv"]
    assert len(image_folders.inspect(listed, images=folder, confined=True).images) == 2
    assert uploads.collect([as_upload("1.png", png), flat, as_upload("2.png", png)])[0] == folder, (
        "the same upload is kept once"
    )


def test_uploads_that_say_too_little_are_refused(png: bytes, home: Path) -> None:
    archive = archive_of({"a/1.png": png}).getvalue()
    for files, text in (
        ([as_upload("1.png", png), as_upload("2.png", png)], "2 files without a table"),
        ([as_upload("a.zip", archive), as_upload("b.zip", archive)], "Got 2 archives"),
        ([as_upload("a.zip", archive), as_upload("1.png", png)], "one zip archive"),
        ([as_upload("x/1.png", png), as_upload("y/1.png", png), as_upload("l.csv", b"path,class\n")], "the same name"),
    ):
        with pytest.raises(BadInput, match=text):
            uploads.collect(files)
    assert not home.exists(), "refused before anything is written"


def test_a_checkpoint_of_an_upload_is_kept_once(home: Path) -> None:
    first = uploads.keep_weights(as_upload("a/net.pth", b"weights"))
    assert first.read_bytes() == b"weights" and first == uploads.keep_weights(as_upload("other.pth", b"weights"))
    with pytest.raises(BadInput, match=r"ends in \.safetensors"):
        uploads.keep_weights(as_upload("net.exe", b"x"))


def test_links_bombs_and_other_archives(png: bytes, home: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        link = zipfile.ZipInfo("dog/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(BadInput, match="symbolic link"):
        uploads.unpack(buffer)
    with pytest.raises(BadInput, match="limit 1 MB"):
        uploads.unpack(archive_of({"dog/1.png": b"\0" * 2_000_000}), max_bytes=1_000_000)
    with pytest.raises(BadInput, match="zip archive"):
        uploads.unpack(io.BytesIO(b"not a zip"))
    with pytest.raises(BadInput, match="no images"):
        uploads.unpack(archive_of({"readme.md": b"x"}))
    whole = archive_of({"dog/1.png": os.urandom(4000)}).getvalue()
    with pytest.raises(BadInput, match="zip archive"):
        uploads.unpack(io.BytesIO(whole[:60] + b"\0" * 50 + whole[110:]))
    deflated = bytearray(archive_of({"dog/1.png": b"ab" * 4000}).getvalue())
    deflated[39:50] = b"\xff" * 11  # the packed bytes themselves are damaged
    with pytest.raises(BadInput, match="zip archive"):
        uploads.unpack(io.BytesIO(deflated))
    assert not list((home / "datasets").iterdir()), "nothing half-written remains"


def test_an_archive_whose_images_are_refused_leaves_nothing_behind(png: bytes, home: Path) -> None:
    place = uploads.unpack(archive_of({"1.png": png, "2.png": png}))
    assert place.is_dir()
    with pytest.raises(BadInput, match="No images found"), uploads.delete_if_unusable(place):
        image_folders.inspect(place)
    assert not list((home / "datasets").iterdir())
    usable = uploads.unpack(archive_of({"dog/1.png": png, "cat/2.png": png}))
    with uploads.delete_if_unusable(usable):
        image_folders.inspect(usable)
    assert usable.is_dir()


def test_uploads_never_saved_are_forgotten_after_a_day(png: bytes) -> None:
    old = uploads.unpack(archive_of({"dog/1.png": png}))
    for path in (*old.rglob("*"), old):
        os.utime(path, (time.time() - 2 * 86400,) * 2)
    uploads.unpack(archive_of({"cat/1.png": png}))
    assert not old.exists()
    assert workspace.entries("datasets") == []


def test_links_in_a_circle_are_passed_over(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pictures", {"cat": 2, "dog": 2})
    os.symlink("circle", root / "circle")
    os.symlink("circle.png", root / "cat" / "circle.png")
    assert len(image_folders.inspect(root).images) == 4


def test_folders_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder_of(tmp_path / "pictures", {"cat": 2, "dog": 2})
    real = os.scandir

    def guarded(path):
        if str(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", guarded)  # root, who runs the tests in a container, may read everything
    broken = [problem for problem in image_folders.inspect(root).problems if problem.kind == "broken"]
    assert len(broken) == 1 and "without read permission" in broken[0].message and "dog" in broken[0].items[0]
    monkeypatch.setattr(os, "scandir", lambda path: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
    with pytest.raises(BadInput, match="No read permission"):
        image_folders.inspect(root)


def list_of(root: Path, text: str) -> Path:
    for i in range(4):
        picture(root / "sub" / f"{i}.png")
    (root / "list.csv").write_text(text, encoding="utf-8")
    return root / "list.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,class,class\nsub/0.png,a,b\n", "more than one column named 'class'"),
        ("path,class,Path\nsub/0.png,a,sub/1.png\n", "more than one column named 'path'"),
        ("path,class\nsub/0.png,a,3,4\nsub/1.png,a\n", "more cells than its header"),
        ("path,class" + ",x" * 200_000 + "\nsub/0.png,a\n", "has 200,002 columns; at most 1,000"),
        ("path,class\nsub/0.png,a" + ",1" * 200_000 + "\n", "more cells than its header"),
        ("path,class\nsub/0.png,a\nsub/1.png,a" + ",1" * 200_000 + "\n", "cannot be read as CSV"),
        ("path,class\n" + "x" * 2_000_000, "more than 1,000,000 letters"),
        ('path,class\n"' + "x" * 200_000 + '",a\n', "field larger than field limit"),
    ],
)
def test_tables_that_leave_a_column_unclear_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        image_folders.inspect(list_of(tmp_path, text))


def test_other_tables_are_read_without_columns_that_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 20,000 columns pandas makes only those that are wanted, which takes a thirtieth of the time."""
    widths, real = [], pd.read_csv

    def counted(*args, **options):
        table = real(*args, **options)
        widths.append(table.shape[1])
        return table

    monkeypatch.setattr(pd, "read_csv", counted)
    more, cells = "".join(f",c{i}" for i in range(20_000)), ",1" * 20_000
    demo = datasets.load("demo")
    with pytest.raises(BadInput, match="other classes"):
        saved_splits.read_split(demo, f"class_name,split{more}\nno class,train{cells}\n".encode(), "split.csv")
    with pytest.raises(BadInput, match="unknown class"):
        testbed_tables.from_csv(f"task,variance,labels,image_id,support{more}\n0,,9999,0,True{cells}\n", demo)
    (tmp_path / "said.csv").write_text(f"task,image_id,predicted,confidence{more}\n0,0,a,1{cells}\n")
    assert user_predictions._table(tmp_path / "said.csv").columns.tolist() == [*user_predictions.COLUMNS, "confidence"]
    assert widths[-3:] == [2, 5, 4]


def test_columns_without_a_name_are_no_attributes_and_infinities_no_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{i},sub/{i}.png,{'ab'[i % 2]},inf,{i},x\n" for i in range(4))
    preview = image_folders.inspect(list_of(tmp_path, ",path,class,price,weight,n_bytes\n" + rows))
    assert preview.attributes == ("price", "weight")  # n_bytes is what fsviz calls the size of a file
    assert preview.images["weight"].tolist() == [0, 1, 2, 3]
    assert preview.images["price"].tolist() == ["inf"] * 4  # nothing to draw a slider from


def test_paths_written_on_windows_are_found(tmp_path: Path) -> None:
    preview = image_folders.inspect(list_of(tmp_path, "path,class\n.\\sub\\0.png,a\nsub\\1.png,b\n"))
    assert sorted(os.path.normpath(p) for p in preview.images["path"]) == ["sub/0.png", "sub/1.png"]


def test_problems_name_the_row_of_the_file(tmp_path: Path) -> None:
    preview = image_folders.inspect(list_of(tmp_path, "path,class\n,a\nsub/0.png,a\nsub/gone.png,a\n"))
    gone = next(problem for problem in preview.problems if problem.kind == "missing_file")
    assert gone.items == ("list.csv row 4: sub/gone.png",)


def test_a_dataset_whose_replacement_fails_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kept"
    with workspace.atomic_folder(place) as first:
        (first / "old").write_text("old")
    real, calls = os.replace, []

    def fails_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", fails_second)
    with pytest.raises(WorkspaceError), workspace.atomic_folder(place) as second:
        (second / "new").write_text("new")
    assert [path.name for path in place.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    monkeypatch.undo()
    with workspace.atomic_folder(place) as third:
        (third / "new").write_text("new")
    assert [path.name for path in place.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_workspace_that_may_not_be_read_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "datasets").mkdir(parents=True)

    def closed(path="."):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", closed)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        datasets.names()
    with pytest.raises(WorkspaceError, match="cannot be read"):
        image_folders.register(
            "x", Preview("folder", home, pd.DataFrame({"path": ["a"], "class_name": "a", "split": "all"}))
        )
