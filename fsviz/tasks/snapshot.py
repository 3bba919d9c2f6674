"""The tasks that a run froze into its folder at its start: a testbed may be deleted later, a run keeps its own.

They are ordinary testbed files (folder/inputs/NAME.parquet).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz.errors import BadInput, Missing
from fsviz.records import Tasks, Testbed
from fsviz.sampling import testbeds


def testbed_file(testbed: int) -> str:
    """The name of the file that holds the tasks of a run's testbed."""
    return f"tasks{testbed or ''}"


def digest(tasks: Tasks) -> str:
    """A short name for exactly these tasks: runs with the same digest can be compared task by task."""
    digest = hashlib.blake2b(digest_size=12)
    for array in (tasks.class_ids, tasks.support, tasks.query):
        values = np.ascontiguousarray(array, dtype=np.int64)
        digest.update(repr(values.shape).encode() + values.tobytes())
    return digest.hexdigest()


def freeze(folder: Path, testbed: Testbed, name: str = "tasks") -> None:
    """Writes the tasks of a run that is being made."""
    testbeds.write_testbed(folder / "inputs" / f"{name}.parquet", testbed)


def tasks(folder: str | Path, name: str = "tasks", start: int = 0, stop: int | None = None) -> Tasks:
    """The tasks of a run, all or those from `start` to `stop`."""
    return _from(folder, name, lambda path, stamp: _tasks_at(path, stamp, start, stop))


def measures(folder: str | Path, name: str = "tasks") -> dict[str, np.ndarray]:
    """The measures of every task of a run (T,), without reading the tasks."""
    return dict(_from(folder, name, _measures_at))


def _from(folder: str | Path, name: str, read: Callable[[Path, int], Any]) -> Any:
    path = Path(folder) / "inputs" / f"{name}.parquet"
    try:
        return read(path, path.stat().st_mtime_ns)
    except (OSError, BadInput) as error:
        raise Missing(f"The tasks of this run ({path}) cannot be read ({error}). Start a new run.") from error


@lru_cache(maxsize=8)
def _tasks_at(path: Path, stamp: int, start: int, stop: int | None) -> Tasks:
    return testbeds.read_testbed(path, start, stop).tasks


@lru_cache(maxsize=8)
def _measures_at(path: Path, stamp: int) -> dict[str, np.ndarray]:
    return testbeds.read_measures(path)
