"""The one folder that fsviz writes to: imported datasets, features, testbeds, runs.

Default `.fsviz/` in the current directory; the environment variable FSVIZ_HOME moves it. Nothing in it is
needed to start. Every write goes to a temporary name and is renamed, so a kill never leaves half a file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from fsviz.errors import BadInput, WorkspaceError

A_DAY = 24 * 3600.0
KINDS = ("datasets", "features", "testbeds", "runs")
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
            _sweep(path)
        except OSError as error:
            raise WorkspaceError(
                f"The workspace {home()} cannot be written ({error.strerror or error}). "
                "Free the path or set FSVIZ_HOME to a folder you may write to."
            ) from error
    return path


@cache
def _sweep(path: Path) -> None:
    """Removes what a kill in the middle of a write left behind, once nobody can still be writing it.

    Once a process: the folder of runs is asked for at every look at their progress.
    """
    for left in (*path.glob(".tmp-*"), *path.glob("*/.tmp-*")):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > A_DAY:
                shutil.rmtree(left) if left.is_dir() else left.unlink()


def entries(kind: str, pattern: str = "*") -> list[Path]:
    """What the workspace holds of one kind, by name; empty when there is none. Hidden and temporary names stay out."""
    path = folder(kind)
    try:
        if not path.is_dir():
            return []
        os.listdir(path)  # glob would pass over a folder that may not be read, and all in it would seem gone
        return sorted(p for p in path.glob(pattern) if not p.name.startswith("."))
    except OSError as error:
        raise WorkspaceError(
            f"The workspace {home()} cannot be read ({error.strerror or error}). "
            "Mend its permissions or set FSVIZ_HOME to another folder."
        ) from error


def checked_name(name: str, kind: str = "name") -> str:
    """A name that is safe as a file name everywhere: letters, digits, . _ + = - (at most 100)."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"A {kind} may have letters, digits, '.', '_', '+', '=' and '-' and must start with a letter or digit "
            f"(at most 100 characters). Got {name!r}. Choose another."
        )
    return name


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`; on success it is renamed to `path`, on failure nothing remains."""
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".tmp-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        os.chmod(temporary, 0o644)  # mkstemp gives files that no other user could read
        yield Path(temporary)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise WorkspaceError(
            f"{path} could not be written ({error.strerror or error}). Free some space or choose another folder."
        ) from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yields a temporary folder; on success it takes the place of `path`, on failure nothing remains."""
    path = Path(path)
    temporary = aside = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.mkdtemp(prefix=".tmp-", dir=path.parent)
        os.chmod(temporary, 0o755)
        yield Path(temporary)
        if path.exists():
            aside = tempfile.mkdtemp(prefix=".tmp-", dir=path.parent)
            os.replace(path, aside)  # two renames: the time without either is too short to be killed in
        try:
            os.replace(temporary, path)
        except OSError:
            if aside:
                os.replace(aside, path)
            raise
    except OSError as error:
        raise WorkspaceError(
            f"{path} could not be written ({error.strerror or error}). Free some space or choose another folder."
        ) from error
    finally:
        for left in (temporary, aside):
            if left and os.path.exists(left):
                shutil.rmtree(left, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True), encoding="utf-8")


def read_json(path: Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} cannot be read as JSON ({error}). Delete it and make it again.") from error
