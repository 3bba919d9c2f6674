"""Archives and uploaded files of images."""

from __future__ import annotations

import io
import os
import shutil
import time
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from fsviz import datasets, workspace
from fsviz.datasets import image_folders, uploads
from fsviz.errors import BadInput
from tests.datasets import test_image_folders
from tests.datasets.test_image_folders import (
    coco_of,
    hugging_face,
)

home = test_image_folders.home  # a fixture


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
