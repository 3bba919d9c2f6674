from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from fsviz.features.preprocessing import Preprocessing


def gradient(width: int, height: int) -> Image.Image:
    rows, columns = np.mgrid[0:height, 0:width]
    pixels = np.stack([rows * 255 // height, columns * 255 // width, np.full_like(rows, 90)], axis=2)
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.mark.parametrize("size", [(400, 200), (200, 400), (84, 84), (9, 7)])
def test_the_size_is_what_the_backbone_takes(size: tuple[int, int]) -> None:
    for resize in (0, 84, 92):
        pixels = Preprocessing((84, 84), resize=resize).apply(gradient(*size))
        assert pixels.shape == (84, 84, 3)
        assert pixels.dtype == np.uint8


def test_a_picture_of_the_right_size_is_left_as_it_is() -> None:
    image = gradient(64, 64)
    assert np.array_equal(Preprocessing((64, 64), resize=64).apply(image), np.asarray(image))


def test_the_centre_is_kept_and_the_sides_are_cut() -> None:
    wide = Image.new("RGB", (300, 100), "red")
    wide.paste("blue", (100, 0, 200, 100))
    pixels = Preprocessing((50, 50), resize=50, interpolation="nearest").apply(wide)
    assert (pixels == (0, 0, 255)).all()
    squashed = Preprocessing((50, 50), resize=0, interpolation="nearest").apply(wide)
    assert tuple(squashed[25, 2]) == (255, 0, 0)
    assert tuple(squashed[25, 25]) == (0, 0, 255)


def test_it_is_resize_then_centre_crop() -> None:
    image = gradient(300, 200)
    resized = np.asarray(image.resize((138, 92), Image.Resampling.BILINEAR))[4:88, 27:111]
    ours = Preprocessing((84, 84), resize=92, interpolation="bilinear").apply(image)
    assert np.abs(resized.astype(int) - ours.astype(int)).max() <= 2


def test_grey_and_transparent_pictures_become_three_channels() -> None:
    assert Preprocessing((8, 8)).apply(Image.new("L", (8, 8), 7)).tolist()[0][0] == [7, 7, 7]


def test_the_key_form_is_plain() -> None:
    assert Preprocessing((8, 9), (0.5,) * 3, (0.25,) * 3, "bicubic", 8).as_dict() == {
        "size": [8, 9],
        "mean": [0.5, 0.5, 0.5],
        "std": [0.25, 0.25, 0.25],
        "interpolation": "bicubic",
        "resize": 8,
    }
