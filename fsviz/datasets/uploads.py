"""Uploads from a browser: images, zipped or not, with or without a table of their classes; and weights.

An archive is checked whole before anything is unpacked. All of it is written into the workspace under names that follow
from the content, so the same upload is kept once. Other users of this computer cannot read it.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from fsviz import workspace
from fsviz.datasets import tables
from fsviz.datasets.images import HEADER, begins_as_image, has_no_ending, is_named_image
from fsviz.errors import BadInput, FsvizError

MAX_BYTES = 2_000_000_000
MAX_FILES = 200_000
_LISTS = frozenset((".csv", ".tsv", ".json", ".jsonl"))
WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".tar")


def collect(files: Sequence[BinaryIO], max_bytes: int = MAX_BYTES) -> tuple[Path, Path | None]:
    """Files of an upload in a hidden folder of the workspace, and the table among them, if there is one.

    Understood are one zip archive, an archive with a table (CSV) of its images, and image files with a table.
    """
    by_kind: dict[str, list[BinaryIO]] = {"zip": [], "table": [], "image": []}
    for file in files:
        name = _name_of(file)
        kind = "zip" if name.lower().endswith(".zip") else "table" if _is_list(name) else "image"
        by_kind[kind].append(file)
    archives, lists, images = by_kind.values()
    if len(archives) > 1 or (archives and images) or len(lists) > 1:
        raise BadInput(
            "An upload is one zip archive, or one with a CSV, or image files with a CSV. Got "
            f"{len(archives)} archives, {len(lists)} tables and {len(images)} other files. Pack all into one zip."
        )
    if archives and not lists:
        folder = unpack(archives[0], max_bytes)
        return folder, _own_table(folder)
    if not lists:
        raise BadInput(
            f"{len(images)} files without a table that says their classes. Add a CSV with the columns path and class "
            "to the upload, or pack the images as a zip archive with a folder per class."
        )
    if archives:
        folder = unpack(archives[0], max_bytes)
        table = folder / f".{_fingerprint(lists[0])}.csv"
        with workspace.atomic_file(table) as temporary:
            temporary.write_bytes(lists[0].read())
        return folder, table
    names = [_name_of(file) for file in images]
    if len(set(names)) < len(names):
        raise BadInput("Two of the files have the same name. Pack the images as a zip archive with their folders.")
    digest = hashlib.blake2b(digest_size=10)
    for file in files:
        digest.update(f"{_name_of(file)} {_fingerprint(file)}".encode())
    folder = workspace.folder("datasets", create=True) / f".upload-{digest.hexdigest()}"
    table = folder / "list.csv"
    if not folder.is_dir():
        workspace.sweep("datasets")
        with workspace.atomic_folder(folder, private=True) as temporary:
            for file, name in ((lists[0], table.name), *zip(images, names, strict=True)):
                file.seek(0)
                with open(temporary / name, "wb") as target:
                    shutil.copyfileobj(file, target, 1 << 20)
    return folder, table


def _own_table(folder: Path) -> Path | None:
    """The one CSV of an archive where it names the archive's images, whatever folders they lie in."""
    candidates = [path for path in folder.rglob("*.csv") if len(path.relative_to(folder).parts) < 3]
    return candidates[0] if len(candidates) == 1 and tables.lists_images(candidates[0]) else None


def keep_weights(file: BinaryIO) -> Path:
    """A checkpoint of an upload as a file of the workspace, which runs can come back to."""
    ending = PurePosixPath(_name_of(file)).suffix.lower()
    if ending not in WEIGHTS:
        raise BadInput(f"A checkpoint ends in {', '.join(WEIGHTS)}. Got {_name_of(file)!r}.")
    path = workspace.folder("checkpoints", create=True) / f"{_fingerprint(file)}{ending}"
    if not path.is_file():
        with workspace.atomic_file(path, private=True) as temporary, open(temporary, "wb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
    return path


def _name_of(file: BinaryIO) -> str:
    """The last part of an upload's name, whatever system it comes from."""
    name = re.split(r"[/\\]", str(getattr(file, "name", "") or "upload"))[-1].replace("\0", "")
    return name.lstrip(".") or "upload"


def _is_list(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in _LISTS


def unpack(archive: BinaryIO, max_bytes: int = MAX_BYTES) -> Path:
    """Unpacks the images and tables of a zip archive into a hidden folder of the workspace and returns it.

    Refused before a byte is written: archives that would grow beyond max_bytes, encrypted ones, and names that leave
    the folder. The folder's name follows from the content, so the same upload is unpacked once.
    """
    folder = workspace.folder("datasets", create=True) / f".upload-{_fingerprint(archive)}"
    if folder.is_dir():
        os.utime(folder)
        return folder
    workspace.sweep("datasets")
    try:
        with zipfile.ZipFile(archive) as zipped:
            members = _checked_members(zipped, max_bytes)
            with workspace.atomic_folder(folder, private=True) as temporary:
                for member in members:
                    _extract_member(zipped, member, temporary)
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError),
        *(NotImplementedError, EOFError, RuntimeError, ValueError),
    ) as error:
        raise BadInput(
            f"The upload cannot be read as a zip archive ({error}). Pack the folder again as .zip."
        ) from None
    return folder


def _extract_member(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
    target = folder.joinpath(*PurePosixPath(member.filename).parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipped.open(member) as source, open(target, "wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)


@contextmanager
def delete_if_unusable(folder: Path) -> Iterator[None]:
    """Deletes what an archive was unpacked to when its images are refused."""
    try:
        yield
    except FsvizError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _checked_members(zipped: zipfile.ZipFile, max_bytes: int) -> list[zipfile.ZipInfo]:
    members = [m for m in zipped.infolist() if not m.is_dir()]
    total = sum(m.file_size for m in members)
    if total > max_bytes:
        raise BadInput(
            f"Archive too large: {total / 1e6:,.0f} MB unpacked, limit {max_bytes / 1e6:,.0f} MB. "
            "Unpack it and give the path of the folder."
        )
    if len(members) > MAX_FILES:
        raise BadInput(
            f"Archive too large: {len(members):,} files, limit {MAX_FILES:,}. "
            "Unpack it and give the path of the folder."
        )
    for member in members:
        name = member.filename
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name or (parts and ":" in parts[0]):
            raise BadInput(f"The archive names a file outside its own folder ({name[:100]!r}). Pack the folder again.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise BadInput(f"The archive holds a symbolic link ({name[:100]!r}). Pack the files themselves.")
        if member.flag_bits & 0x1:
            raise BadInput("The archive is encrypted. Pack the folder again without a password.")
    usable = [m for m in members if _is_wanted(zipped, m)]
    if not usable:
        raise BadInput("The archive holds no images. Pack a folder with one folder of images per class.")
    return usable


def _is_wanted(zipped: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(member.filename)
    if any(part.startswith(".") or part == "__MACOSX" for part in path.parts):
        return False
    if not has_no_ending(path.name):
        return is_named_image(path.name) or path.suffix.lower() in _LISTS
    with zipped.open(member) as file:
        return begins_as_image(file.read(HEADER))


def _fingerprint(archive: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=10)
    archive.seek(0)
    while block := archive.read(1 << 20):
        digest.update(block)
    archive.seek(0)
    return digest.hexdigest()
