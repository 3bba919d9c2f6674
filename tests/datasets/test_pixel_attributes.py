"""Attributes from pixels: values by hand, and what a plain folder gains from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz import datasets
from fsviz.datasets import image_folders, pixel_attributes
from fsviz.datasets.saved import remove_dataset
from fsviz.features.decoding import decode
from fsviz.features.preprocessing import Preprocessing
from tests.cli.calling import fails, run_json
from tests.datasets.test_image_folders import folder_of, home  # noqa: F401

FLAT = np.full((16, 16, 3), 51, np.uint8)  # 0.2 grey
BOARD = np.repeat((np.indices((16, 16)).sum(axis=0) % 2 * 255).astype(np.uint8)[..., None], 3, axis=2)
RAMP = np.repeat(np.tile(np.arange(16) * 15, (16, 1)).astype(np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize(
    ("name", "flat", "board", "ramp"),
    [
        ("brightness", 0.2, 0.5, 7.5 * 15 / 255),
        ("contrast", 0.0, 0.5, np.arange(16).std() * 15 / 255),
        ("sharpness", 0.0, 4.0, 0.0),  # the Laplacian of a board is 4 and -4 in turn, that of a ramp 0
        ("colourfulness", 0.0, 0.0, 0.0),
        ("edge density", 0.0, 1.0, 0.0),  # a ramp's step is 15/255 = 0.06
    ],
)
def test_values_by_hand(name: str, flat: float, board: float, ramp: float) -> None:
    measure = pixel_attributes.OF_PIXELS[name]
    together = measure(np.stack([FLAT, BOARD, RAMP]))  # several at once, as one by one
    assert together == pytest.approx([flat, board, ramp], abs=1e-9)
    assert [measure(item) for item in (FLAT, BOARD, RAMP)] == pytest.approx(together.tolist(), abs=1e-12)


def test_colour_by_hand() -> None:
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 255
    # red - green is 1 and yellow - blue 0.5 everywhere: no spread, 0.3 times the length of (1, 0.5)
    assert pixel_attributes.colourfulness(red) == pytest.approx(0.3 * np.hypot(1, 0.5))


def test_blur_lowers_sharpness_and_size_changes_little() -> None:
    from PIL import ImageFilter

    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 255, (300, 200, 3), dtype=np.uint8)).filter(ImageFilter.GaussianBlur(2))
    blurred = image.filter(ImageFilter.GaussianBlur(6))
    expected = dict(zip(pixel_attributes.NAMES, pixel_attributes.measure_image(image)))
    assert (
        dict(zip(pixel_attributes.NAMES, pixel_attributes.measure_image(blurred)))["sharpness"]
        < expected["sharpness"] / 2
    )
    assert expected["aspect ratio"] == pytest.approx(2 / 3) and expected["resolution"] == pytest.approx(np.sqrt(60_000))


def test_the_longer_side_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setitem(pixel_attributes.OF_PIXELS, "brightness", lambda pixels: calls.append(pixels.shape) or 0.0)
    for size in ((400, 300), (2_000, 250), (2_000, 100), (20_000, 1), (1, 20_000)):
        pixel_attributes.measure_image(Image.new("RGB", size))
    assert calls == [(128, 171, 3), (128, 1_024, 3), (51, 1_024, 3), (3, 1_024, 3), (1_024, 3, 3)]


def test_a_strip_among_the_images_is_left_without_attributes_and_features(tmp_path: Path, capsys) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    image_folders.register("pets", image_folders.inspect(root))
    Image.new("RGB", (20_000, 1)).save(root / "cat" / "01.png")  # its place was taken after it was added
    assert run_json(capsys, "attributes", "pets")["unreadable"] == 1
    decoded = decode(datasets.load("pets"), range(4), Preprocessing((8, 8)), attributes=True)
    assert decoded.image_ids.tolist() == [0, 2, 3] and "a strip of 20,000 x 1" in decoded.skipped[0][1]


def test_a_plain_folder_gains_attributes_by_a_command(tmp_path: Path, capsys) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 3, "cat": 3})
    image_folders.register("pets", image_folders.inspect(root))
    assert "attributes" not in datasets.load("pets").capabilities
    before = datasets.stamp("pets")
    captured = run_json(capsys, "attributes", "pets")
    assert captured["n_images"] == 6 and set(captured["attributes"]) == set(pixel_attributes.NAMES)
    dataset = datasets.load("pets")
    assert "attributes" in dataset.capabilities and datasets.stamp("pets") != before
    assert dataset.images["aspect ratio"].notna().all()
    assert "demo) comes with its attributes" in fails(capsys, "attributes", "demo")
    assert "no images here" in fails(capsys, "attributes", "tiered_imagenet")
    remove_dataset("pets")
    shutil.rmtree(root)
    image_folders.register("pets", image_folders.inspect(folder_of(tmp_path / "others", {"dog": 2, "cat": 2})))
    assert "attributes" not in datasets.load("pets").capabilities


def test_columns_that_the_user_gave_win(tmp_path: Path) -> None:
    root = folder_of(tmp_path / "pets", {"dog": 2, "cat": 2})
    files = sorted(root.rglob("*.png"))
    lines = [f"{p.relative_to(root)},{p.parent.name},{i}.5,{i}" for i, p in enumerate(files)]
    (root / "table.csv").write_text("\n".join(["path,class,brightness,edge_density", *lines]))
    dataset = image_folders.register("pets", image_folders.inspect(root / "table.csv"))
    pixel_attributes.save(dataset, pixel_attributes.compute(dataset))
    there = datasets.load("pets")
    assert sorted(there.images["brightness"]) == [0.5, 1.5, 2.5, 3.5]
    computed = set(pixel_attributes.NAMES) - {"edge density"}
    assert there.attributes[0] == "brightness" and computed <= set(there.attributes)
    assert "edge_density" in there.attributes and "edge density" not in there.attributes


def test_an_extraction_brings_them_along(tmp_path: Path) -> None:
    from fsviz.features.extraction import extract

    root = folder_of(tmp_path / "pets", {"dog": 3, "cat": 3})
    dataset = image_folders.register("pets", image_folders.inspect(root))
    (root / "cat" / "00.png").write_text("broken since")
    extract(dataset, "conv64f", device="cpu", workers=0)
    there = datasets.load("pets")
    assert set(pixel_attributes.NAMES) <= set(there.attributes)
    by_hand = pixel_attributes.compute(there)
    np.testing.assert_allclose(there.images[list(pixel_attributes.NAMES)], by_hand, rtol=1e-5, atol=1e-6)
    assert by_hand["contrast"].isna().sum() == 1
