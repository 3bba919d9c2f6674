"""File locks that live as long as their process: a dead holder is visible at once, whatever its number."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from fsviz.errors import FsvizError, WorkspaceError

_PATIENCE = 0.5  # seconds; longer than any probe of `is_held`


class FileLock:
    """An exclusive lock on a file, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._handle: int | None = None

    def acquire(self, patience: float = _PATIENCE) -> bool:
        """Takes the lock; False when another process keeps it for longer than `patience` seconds."""
        fcntl = _fcntl()
        handle = _opened(self.path)
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    os.close(handle)
                    return False
                time.sleep(0.01)
        with suppress(OSError):  # a full disk: the lock holds all the same, only its holder has no name
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._handle = handle
        return True

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock on this file."""
    fcntl = _fcntl()
    try:
        handle = os.open(path, os.O_RDONLY)  # looking needs no right to write
    except OSError:  # nobody ever held it, or it may not be looked at
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: nobody can hold one
        return False
    finally:
        os.close(handle)


def holder(path: Path) -> int | None:
    """The process number of the living holder, None when nobody holds the lock."""
    if not is_held(path):
        return None
    try:
        return int(path.read_text() or 0) or None
    except (OSError, ValueError):
        return None


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be opened ({error.strerror or error}). Fix the workspace's permissions and try again."
        ) from error


def _fcntl() -> ModuleType:
    try:
        import fcntl
    except ImportError as error:  # Windows
        raise FsvizError(
            "Runs need file locks as Linux and macOS have them. On Windows, start fsviz inside WSL."
        ) from error
    return fcntl
