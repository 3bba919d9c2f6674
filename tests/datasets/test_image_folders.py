"""Reading folders of images, also in the layouts of COCO, YOLO, VOC and Hugging Face."""

from __future__ import annotations

import io
import json
import os
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fsviz import datasets
from fsviz.datasets import image_folders
from fsviz.datasets.preview import Preview, look_alikes
from fsviz.errors import BadInput
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


# A clone with splits of images


def grocery_clone(root: Path) -> Path:
    """The layout of the Grocery Store Dataset: splits of images in dataset/, other pictures next to them."""
    classes = ("Fruit/Apple/Golden-Delicious", "Fruit/Apple/Pink-Lady", "Fruit/Kiwi", "Packages/Milk/Arla")
    for split, n in (("train", 6), ("val", 2), ("test", 4)):
        for name in classes[: 3 if split == "val" else 4]:
            for i in range(n):
                picture(root / "dataset" / split / name / f"{Path(name).name}_{split}_{i:03d}.png")
        (root / "dataset" / f"{split}.txt").write_text(f"{split}/{classes[0]}/Golden-Delicious_001.jpg, 0, 0\n")
    picture(root / "dataset" / "iconic-images-and-descriptions" / "Fruit" / "Kiwi" / "Kiwi_Iconic.png")
    picture(root / "sample_images" / "natural.png")
    (root / "dataset" / "classes.csv").write_text(
        "Class Name (str),Class ID (int),Coarse Class Name (str),Coarse Class ID (int)\nGolden-Delicious,0,Apple,0\n"
    )
    (root / "README.md").write_text("# The Grocery Store Dataset\n")
    return root


@pytest.mark.parametrize("inside", ["", "dataset"])
def test_a_clone_with_splits_of_images_is_one_set_of_classes(tmp_path: Path, inside: str) -> None:
    preview = image_folders.inspect(grocery_clone(tmp_path / "GroceryStoreDataset") / inside)
    assert preview.classes["class_name"].tolist() == [
        "Fruit/Apple/Golden-Delicious",
        "Fruit/Apple/Pink-Lady",
        "Fruit/Kiwi",
        "Packages/Milk/Arla",
    ]
    assert preview.classes["n_images"].tolist() == [12, 12, 12, 10] and set(preview.classes["split"]) == {"all"}
    assert preview.images["image_split"].value_counts().to_dict() == {"train": 24, "test": 16, "val": 6}
    assert preview.attributes == ("image_split",)
    assert "two_splits" in kinds(preview) and "Kiwi_Iconic.png" in items(preview, "left_out")


def test_folders_called_train_and_test_among_classes_stay_classes(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "toys", {"train": 20, "test": 20, "bus": 20})
    assert image_folders.inspect(root, first_level="class").classes["class_name"].tolist() == ["bus", "test", "train"]
    assert image_folders.inspect(root).classes["class_name"].tolist() == ["bus", "test", "train"]
