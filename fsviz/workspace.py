"""The workspace: the one folder that fsviz writes to.

Default `.fsviz/` in the current directory; the environment variable FSVIZ_HOME moves it. Nothing in it is
needed to start. Every write goes to a temporary name, is on the disk before it is renamed, and is renamed: neither
a kill nor a power cut leaves half a file. A folder that is replaced is moved aside first; where a kill leaves it there,
the next read puts it back. Reading writes nothing else, so a workspace that may not be written, or whose disk is full,
shows all it holds.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsviz.errors import BadInput, WorkspaceError

HOUR, DAY = 3600.0, 24 * 3600.0
KINDS = (
    "datasets",
    "features",
    "splits",
    "testbeds",
    "runs",
    "trained",
    "pixels",
    "attributes",
    "labels",
    "checkpoints",
)
# What a kill or a refused upload leaves behind: kind, pattern, what it is, whether it may be in use
_LEFT = (
    *((kind, pattern, "unfinished write", True) for kind in KINDS for pattern in (".tmp-*", "*/.tmp-*")),
    *((kind, pattern, "replaced folder", True) for kind in KINDS for pattern in (".aside-*", "*/.aside-*")),
    ("runs", "*/*/.tmp-*", "unfinished write", True),
    ("features", "*/*/.tmp-*", "unfinished write", True),
    ("pixels", "*/*/.tmp-*", "unfinished write", True),
    ("datasets", ".upload-*", "upload that was never added", True),
    ("runs", ".deleted-*", "deleted run", False),
)
# What is kept to save time and made again when it is missing: `clean` frees it, sweeping leaves it
_REMADE = (("pixels", "*/*", "images made small for training, read again when needed", True),)
_swept: dict[Path, float] = {}  # when this process swept each folder; once an hour is enough
_MANY = 100  # files of a folder; more are sent to the disk all at once
_ASIDE = re.compile(r"\.aside-[0-9a-f]{8}-(.+)")  # a folder that gives way to its successor, by its name
_TRIES = 10  # to take the place of a folder that others put back or replace at the same time
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+=-]{0,99}")


def home() -> Path:
    """The workspace folder; it may not exist yet."""
    return Path(os.environ.get("FSVIZ_HOME") or ".fsviz").expanduser().absolute()


def folder(kind: str, create: bool = False) -> Path:
    """The folder of one kind of thing; made on demand when something is about to be written."""
    if kind not in KINDS:
        raise ValueError(f"unknown workspace folder {kind!r}")
    path = home() / kind
    if create:
        try:
            path.mkdir(parents=True, exist_ok=True)
            if time.monotonic() - _swept.get(path, -HOUR) >= HOUR:
                sweep(kind)
        except OSError as error:
            raise WorkspaceError(
                f"The workspace {home()} cannot be written ({error.strerror or error}). "
                "Free the path or set FSVIZ_HOME to a folder you may write to."
            ) from error
    return path


def sweep(kind: str) -> None:
    """Removes what was left behind among one kind of things, once nobody can have been using it for a day."""
    _swept[folder(kind)] = time.monotonic()
    for leftover in _left_in(kind, DAY):
        _remove(leftover.path)


@dataclass(frozen=True)
class Leftover:
    """Something in the workspace that nothing needs any more: where, what it is, and its size."""

    path: Path
    description: str
    n_bytes: int


def leftovers() -> list[Leftover]:
    """All that `clean` would remove. What changed within the last hour may still be in use and is excluded."""
    return [leftover for kind in KINDS for leftover in _left_in(kind, HOUR, (*_LEFT, *_REMADE))]


def clean() -> list[Leftover]:
    """Removes the leftovers; returns those that are gone."""
    return [leftover for leftover in leftovers() if _remove(leftover.path)]


def _left_in(kind: str, age: float, rows: tuple[tuple[str, str, str, bool], ...] = _LEFT) -> list[Leftover]:
    removable: list[Leftover] = []
    for _, pattern, description, may_be_in_use in (row for row in rows if row[0] == kind):
        for path in sorted(folder(kind).glob(pattern)):
            if any(leftover.path in (path, *path.parents) for leftover in removable) or _is_the_only_copy(path):
                continue
            with suppress(OSError):  # removed meanwhile
                inside = [path, *(path.rglob("*") if path.is_dir() else ())]
                stats = [part.lstat() for part in inside]
                if not may_be_in_use or time.time() - max(stat.st_mtime for stat in stats) > age:
                    removable.append(Leftover(path, description, sum(stat.st_size for stat in stats)))
    return removable


def _remove(path: Path) -> bool:
    with suppress(OSError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return not path.exists()


def remove(paths: Iterable[Path]) -> None:
    """Removes files and folders of the workspace, all of them or none; one that is not there counts as removed."""
    moved: list[tuple[Path, Path]] = []
    try:
        for path in paths:
            trash = path.with_name(f".tmp-{secrets.token_hex(4)}")
            for aside in _asides(path):  # else the next read would put it back
                os.replace(aside, path.with_name(f".tmp-{secrets.token_hex(4)}"))
            if os.path.lexists(path):
                os.replace(path, trash)
                moved.append((path, trash))
    except OSError as error:
        for path, trash in reversed(moved):
            with suppress(OSError):
                os.replace(trash, path)
        raise WorkspaceError(
            f"{path} cannot be removed ({error.strerror or error}), so nothing was. Make {path.parent} writable, then "
            "remove it again."
        ) from error
    for _, trash in moved:
        _remove(trash)  # what stays is swept later


def restore_aside(parent: Path) -> None:
    """Gives folders their names again that a kill left aside before their successors were in place."""
    with suppress(OSError):  # there is no such folder, or it may not be written
        for name in os.listdir(parent):
            match = _ASIDE.fullmatch(name)
            if match and not (parent / match[1]).exists():
                with suppress(OSError):  # another process was faster
                    os.rename(parent / name, parent / match[1])


def _asides(path: Path) -> list[Path]:
    """The folders that `path` was moved to when others took its place."""
    with suppress(OSError):
        matches = (_ASIDE.fullmatch(name) for name in os.listdir(path.parent))
        return [path.with_name(match[0]) for match in matches if match and match[1] == path.name]
    return []


def _is_the_only_copy(path: Path) -> bool:
    match = _ASIDE.fullmatch(path.name)
    return match is not None and not path.with_name(match[1]).exists()


def require_space(n_bytes: float, contents: str) -> None:
    """Raises a sentence when the disk of the workspace has no room for `n_bytes` (a plural: "the results ...")."""
    existing = home()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if n_bytes > free:
        raise WorkspaceError(
            f"Not enough disk space. {contents} need {format_bytes(n_bytes)}; {format_bytes(free)} free in {home()}. "
            "Run fsviz clean or fsviz runs delete ID, ask for less, or set FSVIZ_HOME to a larger disk."
        )


def format_bytes(n: float) -> str:
    """A number of bytes for a person: "1.3 GB"."""
    for unit in ("bytes", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:,.1f} GB"


def entries(kind: str, pattern: str = "*") -> list[Path]:
    """Entries of one kind in the workspace, by name. Hidden and temporary names are excluded."""
    path = folder(kind)
    try:
        if not path.is_dir():
            return []
        os.listdir(path)  # glob would pass over a folder that may not be read, and all in it would seem gone
        restore_aside(path)
        return sorted(p for p in path.glob(pattern) if not p.name.startswith("."))
    except OSError as error:
        raise WorkspaceError(
            f"The workspace {home()} cannot be read ({error.strerror or error}). "
            "Fix its permissions or set FSVIZ_HOME to another folder."
        ) from error


def check_name(name: str, kind: str = "name") -> str:
    """A name that is safe as a file name everywhere: letters, digits, . _ + = - (at most 100)."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"A {kind} may have letters, digits, '.', '_', '+', '=' and '-' and must start with a letter or digit "
            f"(at most 100 characters). Got {name!r}. Choose another."
        )
    return name


@contextmanager
def atomic_file(path: Path, private: bool = False) -> Iterator[Path]:
    """Yields a temporary path next to `path`; on success it is renamed to `path`, on failure nothing remains.

    private  no other user of this computer may read it
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        if not private:
            os.chmod(temporary, 0o644)  # mkstemp gives files that no other user could read
        yield Path(temporary)
        _settle(temporary)
        os.replace(temporary, path)
        _settle(path.parent)
    except OSError as error:
        raise WorkspaceError(
            f"{path} could not be written ({error.strerror or error}). Free some space or choose another folder."
        ) from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def atomic_folder(path: Path, private: bool = False) -> Iterator[Path]:
    """Yields a temporary folder; on success it takes the place of `path`, on failure nothing remains.

    private  no other user of this computer may look into it
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        restore_aside(path.parent)
        temporary = tempfile.mkdtemp(prefix=".tmp-", dir=path.parent)
        if not private:
            os.chmod(temporary, 0o755)
        yield Path(temporary)
        _settle_all(temporary)
        _take_place(temporary, path)
        _settle(path.parent)
    except OSError as error:
        raise WorkspaceError(
            f"{path} could not be written ({error.strerror or error}). Free some space or choose another folder."
        ) from error
    finally:
        if temporary and os.path.exists(temporary):
            shutil.rmtree(temporary, ignore_errors=True)


def _take_place(temporary: str, path: Path) -> None:
    """Renames a folder to `path`; one that is there is moved aside first, under a name that tells where it belongs."""
    for tries_left in reversed(range(_TRIES)):
        stale = _asides(path)
        aside = path.with_name(f".aside-{secrets.token_hex(4)}-{path.name}")
        if path.exists():
            for old in stale:  # so that a kill leaves one folder to put back, and not an older one next to it
                _remove(old)
            with suppress(FileNotFoundError):
                os.replace(path, aside)
        try:
            os.replace(temporary, path)
            _remove(aside)
            return
        except OSError:
            if not tries_left or not path.exists():  # else another process put the folder back or replaced it
                restore_aside(path.parent)
                raise


def _settle(path: str | Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk itself."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not os.path.isdir(path):  # some file systems cannot do it for folders
            raise
    finally:
        os.close(handle)


def _settle_all(folder: str) -> None:
    inside = [os.path.join(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files)]
    if len(inside) > _MANY:
        os.sync()
        return
    for path in (*reversed(inside), folder):
        _settle(path)


def plain_json(value: Any) -> Any:
    """A value as JSON can say it: numpy's numbers and arrays as numbers and lists, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(inner) for inner in value]
    if hasattr(value, "tolist"):
        return plain_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(path: Path, value: Any) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True), encoding="utf-8")


def read_json(path: Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} cannot be read as JSON ({error}). Delete it and make it again.") from error
