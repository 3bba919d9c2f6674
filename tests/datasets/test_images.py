"""Safe opening of image files, good and bad."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fsviz.datasets import images
from fsviz.errors import BadInput


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "photo.jpg", quality=90)
    return tmp_path / "photo.jpg"


def solid_png(path: Path, width: int, height: int, rgba: bool = False) -> None:
    """A PNG of one colour (one bit, or four bytes a pixel), written without ever holding its pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    path.parent.mkdir(exist_ok=True)
    packer = zlib.compressobj(1 if rgba else 9)
    row = b"\x00" + (b"\x40\x80\xc0\x80" * width if rgba else b"\x00" * ((width + 7) // 8))
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, *((8, 6) if rgba else (1, 0)), 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def test_a_sound_photo_opens_as_rgb(photo: Path) -> None:
    image = images.open_file(photo)
    assert image.mode == "RGB" and image.size == (128, 96)
    assert images.find_problem(photo) == ""


def test_a_jpeg_can_be_decoded_smaller_but_not_below_the_size_asked_for(tmp_path: Path) -> None:
    Image.new("RGB", (1600, 800), "teal").save(tmp_path / "big.jpg")
    small = images.open_file(tmp_path / "big.jpg", at_least=90)
    assert small.width < 1600 and min(small.size) >= 90


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), "white")
    image.putpixel((0, 0), (0, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 270 degrees to stand upright
    image.save(tmp_path / "turned.png", exif=exif)
    upright = images.open_file(tmp_path / "turned.png")
    assert upright.size == (20, 40)
    assert upright.getpixel((19, 0)) == (0, 0, 0)


def test_transparency_is_laid_on_white(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (10, 20, 30, 0)).save(tmp_path / "clear.png")
    assert images.open_file(tmp_path / "clear.png").getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bit_grey_keeps_its_shades(tmp_path: Path) -> None:
    grey = np.array([[0, 128 * 256, 255 * 256]], dtype=np.uint16)
    Image.fromarray(grey).save(tmp_path / "deep.png")
    shades = np.asarray(images.open_file(tmp_path / "deep.png"))[0, :, 0]
    assert shades.tolist() == [0, 128, 255]


def test_a_zero_byte_file(tmp_path: Path) -> None:
    (tmp_path / "none.jpg").touch()
    with pytest.raises(BadInput, match="empty"):
        images.open_file(tmp_path / "none.jpg")
    assert "empty" in images.find_problem(tmp_path / "none.jpg")


@pytest.mark.parametrize("form", ["jpg", "png", "webp", "bmp", "gif", "tiff", "ppm"])
def test_a_file_cut_off_in_the_middle(form: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    whole = tmp_path / f"whole.{form}"
    Image.fromarray(noise).save(whole)
    assert images.find_problem(whole) == ""
    cut = tmp_path / f"cut.{form}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(BadInput, match=r"damaged|not an image"):
        images.open_file(cut)
    assert images.find_problem(cut)


def test_a_jpeg_with_bytes_after_its_end_is_sound(photo: Path) -> None:
    photo.write_bytes(photo.read_bytes() + b"appended by a camera")
    assert images.find_problem(photo) == ""


def test_text_named_jpg(tmp_path: Path) -> None:
    (tmp_path / "poem.jpg").write_text("not a picture at all " * 40)
    with pytest.raises(BadInput, match="not an image"):
        images.open_file(tmp_path / "poem.jpg")


def test_a_20000_by_20000_png_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.png"
    solid_png(bomb, 20_000, 20_000)
    assert bomb.stat().st_size < 200_000
    with pytest.raises(BadInput, match="too many pixels"):
        images.open_file(bomb)
    assert "too many pixels" in images.find_problem(bomb)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")  # pytest undoes the error filter
def test_the_limit_itself_lies_between_what_opens_and_what_does_not(tmp_path: Path) -> None:
    solid_png(tmp_path / "at.png", 8_000, 8_000)
    solid_png(tmp_path / "over.png", 8_001, 8_000)
    assert images.find_problem(tmp_path / "at.png") == ""
    assert "too many pixels" in images.find_problem(tmp_path / "over.png")


def test_strips_are_refused_by_their_shape(tmp_path: Path) -> None:
    for width, height in ((20_000, 1), (1, 20_000), (101, 1), (1_000, 9)):
        solid_png(tmp_path / "strip.png", width, height)
        text = images.find_problem(tmp_path / "strip.png")
        assert f"a strip of {width:,} x {height:,} pixels" in text and "at most 100 times the shorter" in text
        with pytest.raises(BadInput, match="a strip of"):
            images.open_file(tmp_path / "strip.png", at_least=8)
    for width, height in ((100, 1), (1, 100), (1, 1), (1_000, 10)):
        solid_png(tmp_path / "long.png", width, height)
        assert images.find_problem(tmp_path / "long.png") == ""
        assert images.open_file(tmp_path / "long.png").size == (width, height)


def test_symbolic_links_that_leave_the_root(tmp_path: Path, photo: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.jpg").symlink_to(photo)
    with pytest.raises(BadInput, match="leads out"):
        images.open_file("link.jpg", root)
    with pytest.raises(BadInput, match="leads out"):
        images.open_file("../photo.jpg", root)
    with pytest.raises(BadInput, match="leads out"):
        images.open_file(photo, root)
    (root / "inner.jpg").write_bytes(photo.read_bytes())
    (root / "alias.jpg").symlink_to(root / "inner.jpg")
    assert images.open_file("alias.jpg", root).size == (128, 96)


def test_missing_files_folders_and_pipes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Not found"):
        images.open_file(tmp_path / "gone.jpg")
    with pytest.raises(BadInput, match="not a file"):
        images.open_file(tmp_path)
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(BadInput, match="not a file"):
        images.open_file(tmp_path / "pipe.jpg")
    with pytest.raises(BadInput):
        images.open_file("nul\0byte.jpg", tmp_path)


def test_every_message_is_one_short_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb.jpg").write_text("text")
    message = images.find_problem(tmp_path / "a\nb.jpg")
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize(
    ("values", "grey"),
    [
        (np.array([[0.0, 0.5, 1.0]], np.float32), [0, 127, 255]),
        (np.array([[0.0, 100.0, 250.0]], np.float32), [0, 100, 250]),
        (np.array([[-1.0, 0.0, 1.0]], np.float32), [0, 127, 255]),
        (np.array([[0, 25_600, 65_535]], np.int32), [0, 100, 255]),
        (np.array([[0, 50_000, 100_000]], np.int32), [0, 127, 255]),
    ],
)
def test_grey_of_32_bits_keeps_its_shades(tmp_path: Path, values: np.ndarray, grey: list[int]) -> None:
    Image.fromarray(values).save(tmp_path / "grey.tif")
    pixels = np.asarray(images.open_file(tmp_path / "grey.tif"))[0, :, 0]
    assert np.abs(pixels.astype(int) - grey).max() <= 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory of a process is read from /proc")
def test_a_large_transparent_image_takes_little_memory(tmp_path: Path) -> None:
    """7990 x 7990 RGBA: the decoder alone needs 256 MB, and each copy as much again (it was 1.6 GB)."""
    solid_png(tmp_path / "a" / "large.png", 7990, 7990, rgba=True)
    code = (
        "import re, sys; from fsviz.datasets import image_folders, images;"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024;"
        "assert len(image_folders.inspect(sys.argv[1]).images) == 1;"
        "added = peak();"
        "small = images.open_file(sys.argv[1] + '/a/large.png', at_least=96);"
        "assert small.getpixel((50, 50)) == (159, 191, 223) and min(small.size) >= 96;"
        "print(added, peak())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    at_add, at_thumbnail = map(int, done.stdout.split())
    assert at_add < 300 and at_thumbnail < 600


def test_strips_give_the_pixels_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(3).integers(0, 255, (37, 23, 4), dtype=np.uint8)
    for name, image in {
        "clear.png": Image.fromarray(noise),
        "grey.png": Image.fromarray(noise[:, :, 0].astype(np.uint16) * 257),
        "real.tif": Image.fromarray(noise[:, :, 0].astype(np.float32) - 40),
        "palette.gif": Image.fromarray(noise).convert("P"),
    }.items():
        image.save(tmp_path / name)
        whole = np.asarray(images.open_file(tmp_path / name))
        with monkeypatch.context() as patch:
            patch.setattr(images, "_STRIP", 100)
            assert np.array_equal(np.asarray(images.open_file(tmp_path / name)), whole), name


def test_a_cut_off_webp_is_seen_without_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGBA", (64, 64), (1, 2, 3, 4)).save(tmp_path / "x.webp", lossless=True)
    monkeypatch.setattr(images, "_loaded", lambda *_: pytest.fail("the pixels were decoded"))
    assert images.find_problem(tmp_path / "x.webp") == ""
    (tmp_path / "x.webp").write_bytes((tmp_path / "x.webp").read_bytes()[:-3])
    assert images.find_problem(tmp_path / "x.webp")


@pytest.mark.parametrize(
    ("form", "ending"), [("AVIF", "avif"), ("JPEG2000", "jp2"), ("HEIF", "heic"), ("PNG", ""), ("TIFF", "0001")]
)
def test_formats_of_phones_cameras_and_archives_are_read(tmp_path: Path, form: str, ending: str) -> None:
    import pillow_heif

    pillow_heif.register_heif_opener()
    path = tmp_path / ".".join(filter(None, ("photo", ending)))
    Image.new("RGB", (64, 48), (0, 128, 128)).save(path, form)
    assert images.is_image(path) and images.find_problem(path) == ""
    opened = images.open_file(path, at_least=16)
    assert np.abs(np.asarray(opened).astype(int) - (0, 128, 128)).max() < 12
    assert images.read_thumbnail(path, None, 8)[1] is not None
    path.write_bytes(path.read_bytes()[:-40])
    assert images.find_problem(path), "cut off"


def test_files_without_ending_are_known_by_how_they_begin(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("P is no picture")
    (tmp_path / "photo.0001").write_bytes(b"RIFF1234WEBPVP8 ")
    (tmp_path / "sound").write_bytes(b"RIFF1234WAVEfmt ")
    (tmp_path / "notes.txt").write_bytes(b"\xff\xd8\xff\xe0")
    assert [images.is_image(tmp_path / n) for n in ("README", "photo.0001", "sound", "notes.txt", "gone")] == [
        *(False, True, False, False, False)
    ]


@pytest.mark.parametrize(("most", "bits"), [(255, 8), (1023, 10), (4095, 12), (16_383, 14), (65_535, 16)])
def test_grey_of_cameras_is_stretched_to_its_depth(tmp_path: Path, most: int, bits: int) -> None:
    grey = np.array([[0, (most + 1) // 2, most]], dtype=np.uint16)
    Image.fromarray(grey).save(tmp_path / "deep.tif")
    assert np.asarray(images.open_file(tmp_path / "deep.tif"))[0, :, 0].tolist() == [0, 128, 255]
    assert bits == np.log2(most + 1)


def test_a_tiff_of_twelve_bits_says_so_itself(tmp_path: Path) -> None:
    """Two grey values packed into three bytes; dark, so that only the header tells their depth."""
    import struct

    first, second = 0x200, 0x100
    packed = bytes([first >> 4, (first & 15) << 4 | second >> 8, second & 255])
    tags = [(256, 3, 1, 2), (257, 3, 1, 1), (258, 3, 1, 12), (259, 3, 1, 1), (262, 3, 1, 1)]
    tags += [(273, 4, 1, 8), (277, 3, 1, 1), (278, 3, 1, 1), (279, 4, 1, 3)]
    directory = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + b"\0" * 4
    (tmp_path / "twelve.tif").write_bytes(b"II*\0" + struct.pack("<I", 12) + packed + b"\0" + directory)
    assert np.asarray(images.open_file(tmp_path / "twelve.tif"))[0, :, 0].tolist() == [first >> 4, second >> 4]


@pytest.mark.parametrize("packed", [False, True], ids=["as it is", "deflated"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("most", [255, 1023, 4095, 16_383, 65_535])
def test_colours_of_48_bits_are_stretched_to_their_depth(tmp_path: Path, most: int, order: str, packed: bool) -> None:
    import struct
    import zlib

    values = np.array([[[most, 0, (most + 1) // 2], [0, most, (most + 1) // 4]]] * 3, dtype=f"{order}u2")
    body = zlib.compress(values.tobytes()) if packed else values.tobytes()
    data = 8 + 8  # behind the header and the three depths, padded
    tags = [(256, 3, 1, 2), (257, 3, 1, 3), (258, 3, 3, 8), (259, 3, 1, 8 if packed else 1), (262, 3, 1, 2)]
    tags += [(273, 4, 1, data), (277, 3, 1, 3), (278, 3, 1, 3), (279, 4, 1, len(body))]
    short = {(3, 1): "HHIHxx", (3, 3): "HHII", (4, 1): "HHII"}
    directory = struct.pack(order + "H", len(tags))
    directory += b"".join(struct.pack(order + short[tag[1:3]], *tag) for tag in tags) + b"\0" * 4
    body += b"\0" * (len(body) % 2)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IHHHH", data + len(body), 16, 16, 16, 0)
    (tmp_path / "deep.tif").write_bytes(head + body + directory)
    pixels = np.asarray(images.open_file(tmp_path / "deep.tif"))
    assert pixels[0].tolist() == pixels[2].tolist() == [[255, 0, 128], [0, 255, 64]]
    _, small = images.read_thumbnail(tmp_path / "deep.tif", None, 1)
    assert small is not None and small.max() > 60


@pytest.mark.parametrize("form", ["ICO", "TGA"])
def test_formats_that_are_not_read_are_one_sentence(tmp_path: Path, form: str) -> None:
    Image.new("RGB", (32, 32), "teal").save(tmp_path / "photo.jpg", form)
    for message in (images.find_problem(tmp_path / "photo.jpg"), decoded_message(tmp_path / "photo.jpg")):
        assert "is not an image that can be read (JPEG, PNG" in message and "\n" not in message
        assert message.endswith("Replace or remove it.")


def decoded_message(path: Path) -> str:
    with pytest.raises(BadInput) as caught:
        images.open_file(path)
    return str(caught.value)
