"""The tasks that a run froze into its folder at its start: a testbed may be deleted later, a run keeps its own.

They are ordinary testbed files (folder/inputs/NAME.parquet). Runs recorded by older versions have NAME.npz.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz.errors import BadInput, Missing
from fsviz.records import Tasks, Testbed
from fsviz.sampling import testbeds


def freeze(folder: Path, testbed: Testbed, name: str = "tasks") -> None:
    """Writes the tasks of a run that is being made."""
    testbeds.write_testbed(folder / "inputs" / f"{name}.parquet", testbed)


def tasks(folder: str | Path, name: str = "tasks", start: int = 0, stop: int | None = None) -> Tasks:
    """The tasks of a run, all or those from `start` to `stop`."""
    return _from(folder, name, lambda path, stamp: _tasks_at(path, stamp, start, stop))


def measures(folder: str | Path, name: str = "tasks") -> dict[str, np.ndarray]:
    """What is known of every task of a run (T,), without reading the tasks."""
    return dict(_from(folder, name, _measures_at))


def _from(folder: str | Path, name: str, read: Callable[[str, int], Any]) -> Any:
    path = Path(folder) / "inputs" / f"{name}.parquet"
    if not path.exists() and path.with_suffix(".npz").exists():
        path = path.with_suffix(".npz")
    try:
        return read(str(path), path.stat().st_mtime_ns)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, BadInput) as error:
        raise Missing(f"The tasks of this run ({path}) cannot be read ({error}). Start a new run.") from error


@lru_cache(maxsize=8)
def _tasks_at(path: str, stamp: int, start: int, stop: int | None) -> Tasks:
    if path.endswith(".parquet"):
        return testbeds.read_testbed(Path(path), start, stop).tasks
    return _older_at(path, stamp).take(slice(start, stop))


@lru_cache(maxsize=8)
def _measures_at(path: str, stamp: int) -> dict[str, np.ndarray]:
    if path.endswith(".parquet"):
        return testbeds.read_measures(Path(path))
    return dict(_older_at(path, stamp).measures)


@lru_cache(maxsize=2)
def _older_at(path: str, stamp: int) -> Tasks:
    with np.load(path, allow_pickle=False) as stored:
        known = {k.removeprefix("measure_"): stored[k] for k in stored.files if k.startswith("measure_")}
        return Tasks(stored["class_ids"], stored["support"], stored["query"], known)
