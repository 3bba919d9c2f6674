"""Copies of a picture are found, whatever they were saved as; different pictures are never taken for copies."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from fsviz import datasets
from fsviz.datasets import duplicates, image_folders
from fsviz.datasets.images import read_thumbnail
from fsviz.errors import BadInput
from fsviz.records import PAD
from tests.datasets.test_image_folders import home, items, kinds, picture  # noqa: F401

RNG = np.random.default_rng(0)


def photograph(seed: int, width: int = 240, height: int = 180) -> Image.Image:
    """Smooth light and shade with edges in it, as photographs have."""
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)).resize((width, height), Image.BICUBIC)
    pen = ImageDraw.Draw(image)
    for _ in range(6):
        x, y = rng.integers(0, width), rng.integers(0, height)
        pen.ellipse([x, y, x + rng.integers(20, 90), y + rng.integers(20, 90)], fill=tuple(rng.integers(0, 256, 3)))
    return image


def saved(image: Image.Image, form: str, **options: object) -> Image.Image:
    file = io.BytesIO()
    image.save(file, form, **options)
    return Image.open(file).convert("RGB")


def hashes(images: list[Image.Image], folder: Path, ending: str = "png") -> np.ndarray:
    """Glimpses as `add` takes them, from files."""
    folder.mkdir(parents=True, exist_ok=True)
    matches = []
    for i, image in enumerate(images):
        image.save(folder / f"{i}.{ending}")
        problem, pixels = read_thumbnail(folder / f"{i}.{ending}", None, duplicates.SIDE)
        assert problem == ""
        matches.append(pixels)
    return np.stack(matches)


AGAIN: dict[str, Callable[[Image.Image], Image.Image]] = {
    "the same": lambda image: image.copy(),
    "JPEG 90": lambda image: saved(image, "JPEG", quality=90),
    "JPEG 40": lambda image: saved(image, "JPEG", quality=40),
    "WebP": lambda image: saved(image, "WEBP", quality=60),
    "half size": lambda image: image.resize((image.width // 2, image.height // 2), Image.LANCZOS),
    "larger": lambda image: image.resize((350, 270), Image.BICUBIC),
    "84 x 84": lambda image: image.resize((84, 84), Image.BILINEAR),
}


@pytest.mark.parametrize("how", AGAIN)
def test_a_picture_saved_again_is_a_copy(tmp_path: Path, how: str) -> None:
    originals = [photograph(seed) for seed in range(12)]
    glimpses = hashes([*originals, *(AGAIN[how](image) for image in originals)], tmp_path)
    assert duplicates.find_copies(glimpses).tolist() == [*range(12), *range(12)]
    as_jpeg = hashes([AGAIN[how](image) for image in originals], tmp_path / "jpeg", "jpg")  # decoded at a smaller size
    assert duplicates.find_copies(np.concatenate([glimpses[:12], as_jpeg])).tolist() == [*range(12), *range(12)]


def test_no_two_digits_are_copies() -> None:
    digits = datasets.load("digits")
    images = [datasets.open_image(digits, i).resize((16, 16), Image.BILINEAR) for i in range(len(digits.images))]
    assert (duplicates.find_copies(np.stack([np.asarray(image) for image in images])) == PAD).all()


def test_no_two_images_of_the_demo_are_copies() -> None:
    """One class in all its contexts and styles, and one context with all that stands before it."""
    demo = datasets.load("demo")
    table = demo.images
    some = table.index[(table["class_id"] == 3) | (table["context"] == table["context"].iloc[0])][::2]
    assert len(some) > 150
    images = [datasets.open_image(demo, int(i)).resize((16, 16), Image.BILINEAR) for i in some]
    assert (duplicates.find_copies(np.stack([np.asarray(image) for image in images])) == PAD).all()


def test_drawings_of_one_character_are_not_copies(tmp_path: Path) -> None:
    """Strokes on white: most pixels are the same in any two of them."""
    rng = np.random.default_rng(1)
    drawings = []
    for _ in range(6):
        strokes = rng.uniform(15, 90, (2, 4, 2))
        for _ in range(20):
            image = Image.new("RGB", (105, 105), "white")
            for stroke in strokes + rng.normal(0, 4, strokes.shape):
                ImageDraw.Draw(image).line([tuple(point) for point in stroke], fill="black", width=3)
            drawings.append(image)
    assert (duplicates.find_copies(hashes(drawings, tmp_path)) == PAD).all()


def test_a_small_difference_in_one_place_is_another_picture(tmp_path: Path) -> None:
    ground = photograph(5)
    spots = [ground]
    for x in (20, 100, 180):
        spot = ground.copy()
        ImageDraw.Draw(spot).ellipse([x, 80, x + 16, 96], fill="white" if x != 100 else "black")
        spots.append(spot)
    assert (duplicates.find_copies(hashes(spots, tmp_path)) == PAD).all()


def test_blank_pictures_and_fine_textures_are_left_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    dots = []
    for _ in range(4):
        paper = np.full((600, 600, 3), 255, np.uint8)
        paper[tuple(rng.integers(0, 600, 2))] = 0
        dots.append(Image.fromarray(paper))
    grain = [Image.fromarray(rng.integers(90, 110, (600, 600, 3), dtype=np.uint8)) for _ in range(4)]
    assert (duplicates.find_copies(hashes([*dots, *grain], tmp_path)) == PAD).all()


def test_a_crowd_of_copies_is_one_group() -> None:
    """Far more copies than neighbours are looked at, each with noise of its own."""
    base = np.stack([np.asarray(photograph(seed).resize((16, 16), Image.BILINEAR)) for seed in range(3)]).astype(int)
    crowd = np.repeat(base, 300, axis=0) + RNG.integers(-1, 2, (900, 16, 16, 3))
    result = duplicates.find_copies(np.clip(crowd, 0, 255).astype(np.uint8))
    assert result.tolist() == np.repeat(np.arange(3), 300).tolist()


def test_labels_join_into_groups_numbered_by_their_first_image() -> None:
    together = duplicates.merge_groups(np.array([7, PAD, 7, 3, 3, PAD, 9]), np.array([PAD, 1, PAD, 2, PAD, 1, PAD]))
    assert together.tolist() == [0, 1, 0, 2, 2, 1, PAD]
    chained = duplicates.merge_groups(np.array([0, 0, 1, 1, PAD]), np.array([PAD, 5, 5, PAD, PAD]))
    assert chained.tolist() == [0, 0, 0, 0, PAD]


# What `add` makes of them


def test_add_reports_groups_of_copies_and_keeps_them(tmp_path: Path, home: Path) -> None:  # noqa: F811
    root = tmp_path / "pets"
    for c, name in enumerate(("cat", "dog")):
        for i in range(4):
            (root / name).mkdir(parents=True, exist_ok=True)
            photograph(10 * c + i).save(root / name / f"{i}.png")
    (root / "cat" / "z.png").write_bytes((root / "cat" / "0.png").read_bytes())
    photograph(10).save(root / "dog" / "0_small.jpg", quality=60)
    photograph(13).resize((120, 90), Image.LANCZOS).save(root / "cat" / "dog.webp")
    preview = image_folders.inspect(root)
    text = next(p.message for p in preview.problems if p.kind == "copies")
    assert text.startswith("3 groups of duplicates (6 images, 2 byte by byte, at most 2 together)")
    assert "cat/0.png = cat/z.png" in items(preview, "copies")
    assert items(preview, "two_classes") == "cat/dog.webp = dog/3.png"
    dataset = image_folders.register("pets", preview)
    by_path = dict(zip(dataset.images["path"], dataset.images["group"]))
    assert by_path["cat/0.png"] == by_path["cat/z.png"] != PAD
    assert by_path["dog/0.png"] == by_path["dog/0_small.jpg"] != PAD
    assert by_path["dog/3.png"] == by_path["cat/dog.webp"] != PAD
    assert by_path["dog/2.png"] == PAD
    groups = datasets.load("pets").image_groups()
    assert len(groups) == 11 and len(np.unique(groups)) == 8
    paths = dataset.images["path"].to_numpy()
    assert [paths[ids].tolist() for ids in duplicates.largest_groups(dataset, 1)] == [["cat/0.png", "cat/z.png"]]
    assert [paths[ids].tolist() for ids in duplicates.largest_groups(dataset, 9, across=True)] == [
        ["cat/dog.webp", "dog/3.png"]
    ]
    assert "6 images in 3 groups" in " ".join(dataset.notes)
    assert "group" not in dataset.attributes


def test_without_copies_there_are_no_groups(tmp_path: Path, home: Path) -> None:  # noqa: F811
    for i in range(6):
        picture(tmp_path / "set" / f"c{i % 2}" / f"{i}.png")
    dataset = image_folders.register("set", image_folders.inspect(tmp_path / "set"))
    assert "group" not in dataset.images and dataset.image_groups() is None
    assert dataset.notes == ()


def video(folder: Path, seed: int, n: int = 6) -> None:
    """Frames of a camera that moves slowly over a picture."""
    folder.mkdir(parents=True)
    wide = photograph(seed, 400, 200)
    for i in range(n):
        wide.crop((4 * i, 0, 4 * i + 200, 200)).save(folder / f"{i:03d}.jpg")


def test_frames_of_videos_become_groups_by_folder(tmp_path: Path, home: Path) -> None:  # noqa: F811
    root = tmp_path / "clips"
    for c, name in enumerate(("run", "jump")):
        for v in range(3):
            video(root / name / f"video{v}", 10 * c + v)
    hint = image_folders.inspect(root)
    assert len(hint.classes) == 6, "without a word, folders in folders are classes"
    assert "--groups folder" in next(p.message for p in hint.problems if p.kind == "frames")
    preview = image_folders.inspect(root, groups="folder")
    assert preview.classes["class_name"].tolist() == ["jump", "run"]
    assert preview.images.groupby("group")["path"].apply(lambda p: p.str.rpartition("/")[0].nunique()).eq(1).all()
    assert preview.images["group"].nunique() == 6 and (preview.images["group"] != PAD).all()
    assert "frames" not in kinds(preview)
    dataset = image_folders.register("clips", preview)
    assert len(np.unique(dataset.image_groups())) == 6


def test_folders_in_folders_that_are_no_videos_get_no_hint(tmp_path: Path) -> None:
    for i in range(24):
        folder = tmp_path / "birds" / ("big" if i % 2 else "small") / f"kind{i % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        photograph(i).save(folder / f"{i}.png")
    assert "frames" not in kinds(image_folders.inspect(tmp_path / "birds"))


def test_groups_by_folder_need_folders_in_the_classes(tmp_path: Path) -> None:
    picture(tmp_path / "set" / "a" / "1.png")
    picture(tmp_path / "set" / "b" / "1.png")
    with pytest.raises(BadInput, match="no folders inside the class folders"):
        image_folders.inspect(tmp_path / "set", groups="folder")
    with pytest.raises(BadInput, match="auto, folder, none"):
        image_folders.inspect(tmp_path / "set", groups="video")


def test_a_column_of_groups_wins(tmp_path: Path, home: Path) -> None:  # noqa: F811
    rows = ["path,class,group,clip"]
    for i in range(8):
        picture(tmp_path / f"{i}.png", "teal")  # all the same picture, but the table knows better
        rows.append(f"{i}.png,{'ab'[i % 2]},{('x', 'x', 'y', '')[i // 2]},{i % 2}")
    (tmp_path / "list.csv").write_text("\n".join(rows))
    preview = image_folders.inspect(tmp_path / "list.csv")
    assert preview.images["group"].tolist() == [0, 0, 0, 0, 1, 1, PAD, PAD]
    assert "copies" not in kinds(preview) and preview.attributes == ("clip",)
    names = image_folders.inspect(tmp_path / "list.csv", columns={"group": "clip"})
    assert names.images["group"].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]


def test_looking_for_copies_can_be_left_out(tmp_path: Path) -> None:
    for i in range(4):
        picture(tmp_path / "set" / f"c{i % 2}" / f"{i}.png", "teal")
    assert "copies" in kinds(image_folders.inspect(tmp_path / "set"))
    assert "group" not in image_folders.inspect(tmp_path / "set", groups="none").images


def test_a_class_that_is_one_group_is_told(tmp_path: Path) -> None:
    for i in range(3):
        picture(tmp_path / "set" / "copies" / f"{i}.png", "teal")
        picture(tmp_path / "set" / "others" / f"{i}.png")
    preview = image_folders.inspect(tmp_path / "set")
    text = next(p for p in preview.problems if "single group" in p.message)
    assert text.items == ("copies: 3 images",)


def test_very_large_images_are_compared_by_their_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsviz.datasets.images._GLIMPSE", 10_000)
    (tmp_path / "set" / "a").mkdir(parents=True)
    photograph(0).save(tmp_path / "set" / "a" / "0.png")
    photograph(0).save(tmp_path / "set" / "a" / "1.png")
    photograph(0).resize((120, 90)).save(tmp_path / "set" / "a" / "2.png")
    preview = image_folders.inspect(tmp_path / "set")
    assert preview.images["group"].tolist() == [0, 0, PAD]
    assert items(preview, "not_compared") == "a/0.png\na/1.png\na/2.png"


@pytest.mark.parametrize("ending", ["png", "jpg", "tiff"])
def test_a_picture_turned_by_its_camera_is_a_copy_of_the_upright_one(tmp_path: Path, ending: str) -> None:
    upright = photograph(3, 950, 701)
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / f"turned.{ending}", exif=exif)
    upright.save(tmp_path / f"upright.{ending}")
    both = [read_thumbnail(tmp_path / f"{name}.{ending}", None, duplicates.SIDE)[1] for name in ("upright", "turned")]
    assert np.abs(both[0].astype(int) - both[1]).max() <= 6
    assert duplicates.find_copies(np.stack(both)).tolist() == [0, 0]
