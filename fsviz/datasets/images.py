"""Opening image files that somebody else made: every way a file can be bad ends in one sentence, never in a crash.

Pillow only warns of a decompression bomb; here too many pixels are an error before a single one is decoded, and so is
a strip of pixels: made larger by its shorter side, it would grow beyond any memory.
"""

from __future__ import annotations

import base64
import io
import math
import os
import stat
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image, ImageFile, ImageOps

from fsviz.errors import BadInput, FsvizError
from fsviz.records import Dataset

MAX_PIXELS = 64_000_000  # 8,000 x 8,000: more than any camera picture a few-shot dataset holds
MAX_RATIO = 100  # of the longer side to the shorter one: panoramas and lines of text stay far below
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF", "JPEG2000", "HEIF")
READ = "JPEG, PNG, WebP, AVIF, HEIC, JPEG 2000, TIFF, BMP, GIF or PPM"
_DEPTHS = (8, 10, 12, 14)  # bits of cameras whose values are kept in 16
_STRIP = 2_000_000  # pixels converted at a time
_GLIMPSE = 9_000_000  # pixels decoded for a glimpse; a JPEG that is not progressive gives one without its full size
SUFFIXES = frozenset(
    (
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"),
        *(".avif", ".heic", ".heif", ".hif", ".jp2", ".j2k", ".j2c", ".jpf", ".jpx"),
    )
)
# How files of these formats begin; of AVIF and HEIC the brand stands after the length of the first box.
_BEGIN = (
    *(b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*"),
    *(b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51", b"P4", b"P5", b"P6"),
)
_BRANDS = (b"avif", b"avis", b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1")
HEADER = 32  # bytes that tell what a file is

Image.MAX_IMAGE_PIXELS = MAX_PIXELS
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)


def is_named_image(name: str) -> bool:
    """Whether a file's name has the ending of an image."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


def has_no_ending(name: str) -> bool:
    """Whether a name says nothing of what a file is: no dot, or only digits behind it (photo.0001)."""
    ending = os.path.splitext(name)[1][1:]
    return not ending or ending.isdecimal()


def begins_as_image(header: bytes) -> bool:
    """Whether these first HEADER bytes are those of an image file."""
    boxed = header[4:8] == b"ftyp" and header[8:12] in _BRANDS
    return header.startswith(_BEGIN) or boxed or (header[:4] == b"RIFF" and header[8:12] == b"WEBP")


def is_image(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an image by its name or, where the name has no ending, by how it begins."""
    name = os.path.basename(os.fspath(path))
    if not has_no_ending(name):
        return is_named_image(name)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return begins_as_image(file.read(HEADER))
    except (OSError, ValueError):
        return False


def open_file(
    path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None, at_least: int = 0
) -> Image.Image:
    """One image file as RGB, upright (EXIF orientation applied), transparency laid on white.

    root      the file must lie below it, also after following symbolic links
    at_least  the image may be opened smaller, as long as no side falls below this (0: full size)
    """
    path = path_below(path, root)
    with _opened(path) as image:
        return _pixels(image, path, at_least)[0]


def thumbnail(dataset: Dataset, image_id: int, px: int) -> Image.Image:
    """One image of a dataset, no side longer than px; never enlarged."""
    if dataset.origin == "folder" and dataset.images is not None and 0 <= image_id < len(dataset.images):
        image = open_file(dataset.images["path"].iat[image_id], dataset.root, at_least=px)
    elif dataset.origin == "demo":  # drawn at the size it is shown in
        from fsviz.datasets.demo import open_demo_image

        image = open_demo_image(dataset, image_id, size=px)
    else:
        from fsviz import datasets

        image = datasets.open_image(dataset, image_id)
    image.thumbnail((px, px))
    return image


def image_strip(dataset: Dataset, image_ids: Sequence[int], px: int) -> Image.Image:
    """Images side by side, their middles px high and as wide; the place of one that cannot be opened stays grey."""
    gap = max(1, px // 16)
    result = Image.new("RGB", (len(image_ids) * (px + gap) - gap, px), "white")
    for n, image_id in enumerate(image_ids):
        try:
            part = thumbnail(dataset, int(image_id), 2 * px).convert("RGB")
            coarse = 2 * max(part.size) <= px  # its pixels are shown as they are
            how = Image.Resampling.NEAREST if coarse else Image.Resampling.BICUBIC
            part = ImageOps.fit(part, (px, px), how)
        except FsvizError:
            part = Image.new("RGB", (px, px), "#D5DAE0")
        result.paste(part, (n * (px + gap), 0))
    return result


def data_uri(image: Image.Image, quality: int = 82) -> str:
    """A picture as text that a page can hold: small ones as PNG, others as JPEG."""
    buffer = io.BytesIO()
    tiny = max(image.size) <= 64  # JPEG would smear it, PNG is as small
    image.save(buffer, "PNG" if tiny else "JPEG", **({} if tiny else {"quality": quality}))
    return f"data:image/{'png' if tiny else 'jpeg'};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def image_identity(dataset: Dataset, image_id: int) -> str:
    """A text that changes when the picture behind an image_id does: what a cache of thumbnails is keyed by."""
    where = ""
    if dataset.images is not None and 0 <= image_id < len(dataset.images):
        where = str(dataset.images["path"].iat[image_id])
    if dataset.origin != "folder" or dataset.root is None:
        return f"{dataset.name}:{image_id}:{where}"
    path = dataset.root / where
    try:
        status = path.stat()
        return f"{path}:{status.st_size}:{status.st_mtime_ns}"
    except (OSError, ValueError):
        return f"{path}:missing"


def find_problem(path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None) -> str:
    """Why a file cannot be used, or "" when it looks sound.

    Reads the header and looks for the end of the file; decodes the pixels only where the end is not as it should be.
    Damage in the middle of a file shows when its pixels are first needed.
    """
    try:
        path = path_below(path, root)
        with _opened(path) as image:
            if not _ends_well(path, image.format or ""):
                _loaded(image, path)
    except BadInput as error:
        return str(error)
    return ""


def read_thumbnail(
    path: str | os.PathLike[str], root: str | os.PathLike[str] | None, side: int
) -> tuple[str, np.ndarray | None]:
    """Why a file cannot be used ("" when it can), and its picture as (side, side, 3) uint8.

    No picture where there is a problem, and none of images so large that looking at all would take long.
    """
    try:
        path = path_below(path, root)
        with _opened(path) as image:
            easy = image.format in ("JPEG", "MPO") and not image.info.get("progressive")
            if image.width * image.height > _GLIMPSE and not easy:
                return find_problem(path), None
            small, (width, height) = _pixels(image, path, at_least=2 * side)
    except BadInput as error:
        return str(error), None
    return "", np.asarray(small.resize((side, side), Image.Resampling.BILINEAR, box=(0, 0, width, height)))


def path_below(path: str | os.PathLike[str], root: str | os.PathLike[str] | None) -> Path:
    """The path (taken from root when relative), refused when it leaves root, directly or through a symbolic link."""
    path = Path(path)
    if root is None:
        return path
    path = Path(root) / path
    if not Path(root).is_dir():
        raise BadInput(
            f"Images not found at {root}. Restore the folder, or add the images again with "
            "'fsviz add NAME PATH --replace'."
        )
    try:
        leaves = not path.resolve().is_relative_to(Path(root).resolve())
    except (OSError, RuntimeError, ValueError):
        raise BadInput(f"{_printable(path)} is not a usable path. Rename or remove it.") from None
    if leaves:
        raise BadInput(
            f"{_printable(path)} leads out of the dataset's folder {root}. Only files below that folder are read: "
            "copy the file into it or remove the link."
        )
    return path


def _opened(path: Path) -> Image.Image:
    """The image with its header read and its size checked; pixels come later."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        raise BadInput(
            f"Not found, or no read permission: {_printable(path)}. Restore it or remove it from the list."
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{_printable(path)} is not a file. Give the path of an image file.")
    if status.st_size == 0:
        raise BadInput(f"{_printable(path)} is empty (0 bytes). Replace or remove it.")
    try:
        _register()
        image = Image.open(path, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path) from None
    except PermissionError:
        raise BadInput(f"No read permission: {_printable(path)}. Change its permissions.") from None
    except Exception:  # decoders raise whatever broken bytes lead them to
        raise BadInput(f"{_printable(path)} is not an image that can be read ({READ}). Replace or remove it.") from None
    if image.width * image.height > MAX_PIXELS:
        size = f"{image.width:,} x {image.height:,}"
        image.close()
        raise _too_large(path, size)
    longer, shorter = max(image.size), max(1, min(image.size))
    if longer > MAX_RATIO * shorter:
        image.close()
        raise BadInput(
            f"{_printable(path)} is a strip of {image.width:,} x {image.height:,} pixels: the longer side of an image "
            f"may be at most {MAX_RATIO} times the shorter one. Crop it or remove it."
        )
    return image


@cache
def _register() -> None:
    """Registers every format; HEIC comes with pillow-heif."""
    Image.init()
    from pillow_heif import register_heif_opener

    register_heif_opener(thumbnails=False)


def _loaded(image: Image.Image, path: Path) -> None:
    """Decodes the pixels, or says in one sentence that they cannot be."""
    try:
        image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path) from None
    except Exception:
        raise BadInput(f"Cannot decode {_printable(path)}: damaged or truncated. Replace or remove it.") from None


def _pixels(image: Image.Image, path: Path, at_least: int = 0) -> tuple[Image.Image, tuple[float, float]]:
    """RGB, upright, and the width and height it stands for: made smaller, the last pixel may be a part of one.

    What the decoder gave is never copied whole: it may have 256 MB, and its copies as much each.
    """
    drafted = image.draft("RGB", (at_least, at_least)) if at_least else None
    deep = _is_deep(image)
    _loaded(image, path)
    try:
        if deep:
            _brighten(image, path)
        turned = image.getexif().get(ExifTags.Base.Orientation, 1) > 4
        ImageOps.exif_transpose(image, in_place=True)
        width, height = map(float, image.size)
        if drafted:
            width, height = drafted[1][3:1:-1] if turned else drafted[1][2:]
        factor = max(1, min(image.size) // (2 * at_least)) if at_least else 1
        return _rgb(image, factor), (width / factor, height / factor)
    except Exception:  # a broken EXIF block or palette, grey values that are not finite
        raise BadInput(f"{_printable(path)} is damaged: its colours cannot be read. Replace or remove it.") from None


def _rgb(image: Image.Image, factor: int = 1) -> Image.Image:
    """The image as RGB, strip by strip, `factor` times smaller: each pixel is the mean of a square of pixels."""
    if image.mode == "RGB":
        return image if factor == 1 else image.reduce(factor)
    grey = image.mode in ("I", "F") or image.mode.startswith("I;16")
    scale_and_shift = _grey_range(image) if grey else (1.0, 0.0)
    result = Image.new("RGB", (-(-image.width // factor), -(-image.height // factor)))
    height = factor * max(1, _STRIP // (factor * image.width))
    for top in range(0, image.height, height):
        strip = image.crop((0, top, image.width, min(top + height, image.height)))
        strip = _strip_rgb(strip, *scale_and_shift)
        result.paste(strip if factor == 1 else strip.reduce(factor), (0, top // factor))
    return result


def _strip_rgb(image: Image.Image, scale: float, shift: float) -> Image.Image:
    if image.mode.startswith("I;16"):  # 16-bit grey would be clipped to white
        return image.convert("I").point(lambda value: value * scale + shift).convert("L").convert("RGB")
    if image.mode in ("I", "F"):
        return image.convert("F").point(lambda value: value * scale + shift).convert("L").convert("RGB")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _grey_range(image: Image.Image) -> tuple[float, float]:
    """Scale and shift to 8 bits of grey of 16 or 32 bits: values up to 1, 255 or 65,535 keep their meaning, others are
    stretched. Whole numbers that fit in 10, 12 or 14 bits are those of a camera of so many."""
    low, high = np.asarray(image.getextrema(), dtype=float).tolist()
    if low >= 0 and high <= 1 and image.mode == "F":
        scale, shift = 255.0, 0.0
    elif low >= 0 and high <= 255:
        scale, shift = 1.0, 0.0
    elif low >= 0 and high <= 65_535 and image.mode != "F":
        scale, shift = 1 / 2 ** (_depth(image, high) - 8), 0.0
    else:
        scale = 255 / (high - low) if high > low else 0.0
        shift = -low * scale
    if not (math.isfinite(scale) and math.isfinite(shift)):
        raise ValueError("the grey values are not finite")
    return scale, shift


_OTHER_BYTE = {"RGB;16L": "RGB;16B", "RGB;16B": "RGB;16L"}
_OTHER_BYTE["RGB;16N"] = _OTHER_BYTE["RGB;16L" if sys.byteorder == "little" else "RGB;16B"]


def _is_deep(image: Image.Image) -> bool:
    """Whether the file has colours of 16 bits, of which Pillow gives the higher 8. To be asked before decoding."""
    tiles = getattr(image, "tile", ())
    return image.mode == "RGB" and bool(tiles) and all(_raw(tile) in _OTHER_BYTE for tile in tiles)


def _raw(tile: Any) -> str:
    args = tile.args
    return str(args[0] if isinstance(args, tuple) else args)


def _brighten(image: Image.Image, path: Path) -> None:
    """Colours of a camera of 8, 10, 12 or 14 bits, kept in 16, are nearly black in their higher bytes: takes the 8
    bits that matter, by decoding the lower bytes as well."""
    darkest = 2 ** max(_DEPTHS) // 256
    if np.asarray(image.getextrema())[:, 1].max() >= darkest:
        return
    with _opened(path) as lower:
        assert isinstance(lower, ImageFile.ImageFile)
        lower.tile = [
            tile._replace(args=(_OTHER_BYTE[_raw(tile)], *(tile.args[1:] if isinstance(tile.args, tuple) else ())))
            for tile in lower.tile
        ]
        _loaded(lower, path)
        strips = range(0, image.height, max(1, _STRIP // image.width))
        boxes = [(0, top, image.width, min(top + strips.step, image.height)) for top in strips]
        bits = _depth(image, max(int(_words(image, lower, box).max()) for box in boxes))
        for box in boxes:
            image.paste(Image.fromarray((_words(image, lower, box) >> (bits - 8)).astype(np.uint8)), box)


def _words(higher: Image.Image, lower: Image.Image, box: tuple[int, int, int, int]) -> np.ndarray:
    """The 16-bit colours of a part of an image, from its two bytes."""
    return np.asarray(higher.crop(box)).astype(np.uint16) << 8 | np.asarray(lower.crop(box))


def _depth(image: Image.Image, high: float) -> int:
    """Bits of grey values up to `high` in 16: those that a TIFF declares, else the fewest that hold them."""
    bits = getattr(image, "tag_v2", {}).get(ExifTags.Base.BitsPerSample, (16,))[0]
    return int(bits) if bits in _DEPTHS else next((depth for depth in _DEPTHS if high < 2**depth), 16)


def _ends_well(path: Path, form: str) -> bool:
    """Whether a file ends as its format does (JPEG, PNG, WebP; others are decoded to be sure)."""
    if form == "WEBP":  # decoding takes 16 bytes a pixel; the second word of the file says how long it is
        with open(path, "rb") as file:
            return path.stat().st_size >= int.from_bytes(file.read(8)[4:], "little") + 8
    ending = {"JPEG": b"\xff\xd9", "MPO": b"\xff\xd9", "PNG": b"IEND\xaeB`\x82"}.get(form)
    if ending is None:
        return False
    with open(path, "rb") as file:
        file.seek(-len(ending), os.SEEK_END)
        return file.read() == ending


def _too_large(path: Path, size: str = "") -> BadInput:
    return BadInput(
        f"{_printable(path)} has too many pixels{f' ({size})' if size else ''}: at most {MAX_PIXELS:,} "
        "(8,000 x 8,000) are opened. Save it smaller or remove it."
    )


def _printable(path: Path) -> str:
    """A path as text that fits into a sentence, whatever bytes its name is made of."""
    text = str(path).encode("utf-8", "replace").decode("utf-8")
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= 160 else "..." + text[-157:]
