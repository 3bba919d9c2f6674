"""Images that arrive as one zip archive: checked whole before anything is unpacked, unpacked into the workspace."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from fsviz import workspace
from fsviz.datasets.images import HEADER, begins_as_image, has_no_ending, is_named_image
from fsviz.errors import BadInput, FsvizError

MAX_BYTES = 2_000_000_000
MAX_FILES = 200_000
_LISTS = frozenset((".csv", ".tsv", ".json"))


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
        with zipfile.ZipFile(archive) as opened:
            members = _checked_members(opened, max_bytes)
            with workspace.atomic_folder(folder) as temporary:
                for member in members:
                    target = temporary.joinpath(*PurePosixPath(member.filename).parts)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with opened.open(member) as source, open(target, "wb") as written:
                        shutil.copyfileobj(source, written, 1 << 20)
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError),
        *(NotImplementedError, EOFError, RuntimeError, ValueError),
    ) as error:
        raise BadInput(
            f"The upload cannot be read as a zip archive ({error}). Pack the folder again as .zip."
        ) from None
    return folder


@contextmanager
def kept_if_usable(folder: Path) -> Iterator[None]:
    """Deletes what an archive was unpacked to when its images are refused."""
    try:
        yield
    except FsvizError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _checked_members(opened: zipfile.ZipFile, max_bytes: int) -> list[zipfile.ZipInfo]:
    members = [m for m in opened.infolist() if not m.is_dir()]
    total = sum(m.file_size for m in members)
    if total > max_bytes:
        raise BadInput(
            f"The archive would unpack to {total / 1e6:,.0f} MB; at most {max_bytes / 1e6:,.0f} MB are taken. "
            "Unpack it yourself and give the folder's path instead."
        )
    if len(members) > MAX_FILES:
        raise BadInput(
            f"The archive holds {len(members):,} files; at most {MAX_FILES:,} are taken. "
            "Unpack it yourself and give the folder's path instead."
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
    wanted = [m for m in members if _is_wanted(opened, m)]
    if not wanted:
        raise BadInput("The archive holds no images. Pack a folder with one folder of images per class.")
    return wanted


def _is_wanted(opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(member.filename)
    if any(part.startswith(".") or part == "__MACOSX" for part in path.parts):
        return False
    if not has_no_ending(path.name):
        return is_named_image(path.name) or path.suffix.lower() in _LISTS
    with opened.open(member) as file:
        return begins_as_image(file.read(HEADER))


def _fingerprint(archive: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=10)
    archive.seek(0)
    while block := archive.read(1 << 20):
        digest.update(block)
    archive.seek(0)
    return digest.hexdigest()
