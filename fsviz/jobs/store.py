"""Runs on disk: one folder per run and nothing else. The folders are the only truth.

    spec.json      id, time of creation, number of chunks and the spec, inputs frozen by the study
    inputs/        what the study froze at the start (a testbed may be deleted later)
    chunks/*.npz   finished chunks, written under a temporary name and renamed
    state.json     the last change of state and, while it runs, how far it is
    results.json   the summary of all chunks
    lock           held by whoever works on the run, for as long as that process lives
    cancel         a request to stop
    label.json     the name and the note that a user gave the run
Only the holder of a run's lock changes it; anybody may label it or ask it to stop. Reading never writes.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz.errors import BadInput, UnknownName, WorkspaceError
from fsviz.jobs import locks
from fsviz.settings import RawSettings
from fsviz.workspace import atomic_file, atomic_folder, check_name, entries, folder, write_json

QUEUED, RUNNING, FINISHED, CANCELLED, FAILED, INTERRUPTED, DAMAGED = (
    "queued",
    "running",
    "finished",
    "cancelled",
    "failed",
    "interrupted",
    "damaged",
)


MAX_LABEL = {"name": 80, "note": 500}  # characters


@dataclass(frozen=True)
class Run:
    """One recorded execution of a study.

    state     queued, running, finished, cancelled, failed, interrupted (its worker died) or damaged (its spec cannot
              be read, so that nothing is known of it but its folder).
    n_done    finished chunks of n_chunks; seconds is the computing time so far, over all resumes.
    engine    which machines compute it: {"name": "local"} or {"name": "ray", "address": where}.
    summary   the study's summary of the chunks finished so far (of all of them when finished), or None.
    name      given by a user, as the note; "" for none.
    """

    id: str
    study: str
    state: str
    spec: Any
    n_chunks: int
    created: float
    n_done: int = 0
    queued: float = 0.0
    started: float | None = None
    ended: float | None = None
    seconds: float = 0.0
    message: str = ""
    error: str = ""
    engine: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    note: str = ""
    summary: Any = field(default=None, compare=False)  # None before the first chunk; else as its study declares

    @property
    def active(self) -> bool:
        return self.state in (QUEUED, RUNNING)

    @property
    def resumable(self) -> bool:
        """Whether `resume` may do something: a finished run may have lost a chunk since."""
        return not self.active and self.state != DAMAGED

    @property
    def share_done(self) -> float:
        return self.n_done / self.n_chunks if self.n_chunks else 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds that the missing chunks take at the pace so far; one second each before the first."""
        pace = self.seconds / self.n_done if self.n_done and self.seconds else 1.0
        return pace * (self.n_chunks - self.n_done)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Chunk(Mapping[str, np.ndarray]):
    """The arrays of one finished chunk by name, each read from disk when requested."""

    def __init__(self, run_folder: Path, index: int) -> None:
        self.run_folder, self.index = run_folder, index

    def __getitem__(self, name: str) -> np.ndarray:
        with self._opened() as stored:
            return stored[name]

    def __iter__(self) -> Iterator[str]:
        with self._opened() as stored:
            names = stored.files
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with np.load(chunk_path(self.run_folder, self.index), allow_pickle=False) as stored:
                yield stored
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            run_id = self.run_folder.name
            raise WorkspaceError(
                f"Chunk {self.index} of run {run_id} is damaged ({error}). "
                f"'fsviz runs resume {run_id}' computes it again."
            ) from error


class Chunks(Sequence[Chunk]):
    """The finished chunks of a run in the order of their indices."""

    def __init__(self, run_folder: Path, indices: Sequence[int]) -> None:
        self.run_folder, self.indices = run_folder, list(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> Chunk:  # type: ignore[override]
        return Chunk(self.run_folder, self.indices[position])


# --- folders -----------------------------------------------------------------------------------------------------


def run_folder(run_id: str) -> Path:
    path = folder("runs") / check_name(run_id, "run id")
    if not path.is_dir():
        raise UnknownName("run", run_id, run_ids(), "'fsviz runs' lists them.")
    return path


def run_ids() -> list[str]:
    """Every run in the workspace, oldest first."""
    return [path.name for path in entries("runs") if path.is_dir()]


def create(spec: RawSettings, prepare: Any, state: str, engine: Mapping[str, str] | None = None) -> Run:
    """Writes the folder of a new run. `prepare(spec, folder)` freezes inputs; it returns (spec, number of chunks)."""
    try:
        json.dumps(spec)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"A run's spec must be plain JSON ({error}). Give names, numbers, lists and dictionaries."
        ) from error
    created = time.time()
    run_id = f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(created))}-{secrets.token_hex(2)}"
    with atomic_folder(folder("runs", create=True) / run_id) as temporary:
        (temporary / "chunks").mkdir()
        frozen, n_chunks = prepare(dict(spec), temporary)
        about = {"id": run_id, "created": created, "n_chunks": int(n_chunks), "spec": frozen}
        write_json(temporary / "spec.json", about)
        write_json(temporary / "state.json", {"state": state, "queued_at": created, "engine": dict(engine or {})})
    return get(run_id)


def delete(run_id: str) -> None:
    """Removes a run and frees its space, also on a full disk: nothing is written for it."""
    run = get(run_id)
    if run.active:
        raise BadInput(f"Run {run_id} is {run.state}. Cancel it before deleting it: 'fsviz runs cancel {run_id}'.")
    with held(run_id) as path:
        aside = path.with_name(f".deleted-{run_id}")
        try:
            os.replace(path, aside)
        except OSError as error:
            raise WorkspaceError(
                f"Run {run_id} cannot be deleted ({error.strerror or error}). Fix the permissions of {path.parent}."
            ) from error
    shutil.rmtree(aside, ignore_errors=True)  # what stays is swept later


@contextmanager
def held(run_id: str) -> Iterator[Path]:
    """The folder of a run, its lock held: nobody else changes the run meanwhile."""
    path = run_folder(run_id)
    lock = locks.FileLock(path / "lock")
    if not lock.acquire():
        pid = locks.holder(path / "lock")
        raise BadInput(
            f"Run {run_id} is already running{f' (process {pid})' if pid else ''}; a run has one worker at a time. "
            f"Wait for it, or cancel it first with 'fsviz runs cancel {run_id}'."
        )
    try:
        yield path
    finally:
        lock.release()


# --- chunks ------------------------------------------------------------------------------------------------------


def chunk_path(path: Path, index: int) -> Path:
    return path / "chunks" / f"{index:06d}.npz"


def chunk_indices(path: Path) -> list[int]:
    """Indices of the chunks on disk, in order."""
    try:
        names = os.listdir(path / "chunks")
    except OSError:
        return []
    stems = (name.removesuffix(".npz") for name in names if name.endswith(".npz"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def write_chunk(path: Path, index: int, arrays: Mapping[str, np.ndarray]) -> None:
    with atomic_file(chunk_path(path, index)) as temporary:
        np.savez(temporary, allow_pickle=False, **{name: np.asarray(values) for name, values in arrays.items()})


def damaged_chunks(path: Path) -> list[int]:
    """Indices of the chunks on disk that cannot be read to their end."""
    indices = []
    for index in chunk_indices(path):
        try:
            for _ in Chunk(path, index).values():
                pass
        except WorkspaceError:
            indices.append(index)
    return indices


def tidy(path: Path) -> None:
    """Removes chunks that cannot be read, to be computed again, and what a kill left half-written."""
    spoiled = [chunk_path(path, index) for index in damaged_chunks(path)]
    for file in (*spoiled, *(path / "chunks").glob(".tmp-*")):
        file.unlink(missing_ok=True)


# --- reading and changing runs -----------------------------------------------------------------------------------


def get(run_id: str) -> Run:
    """One run as it is now. A run whose worker died reads as interrupted."""
    return _read(run_folder(run_id))


def all_runs() -> list[Run]:
    """Every run, newest first; one that cannot be read is listed with the reason."""
    runs = [_read(path) for path in entries("runs") if path.is_dir()]
    return sorted(runs, key=lambda run: (run.created, run.id), reverse=True)


def _read(path: Path) -> Run:
    state, recorded = _state(path)
    name, note = _label(path).values()
    try:
        stored = _json(path / "spec.json")
        spec, n_chunks, created = dict(stored["spec"]), int(stored["n_chunks"]), float(stored["created"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        message = (
            f"spec.json of run {path.name} cannot be read ({error}), so it is not known what was run; the chunks are "
            f"untouched in {path}. Restore the file from a copy, or 'fsviz runs delete {path.name}'."
        )
        return Run(path.name, "?", DAMAGED, {}, 0, _modified(path), error=message, name=name, note=note)
    summary, trouble = recorded.get("summary"), str(recorded.get("error", ""))
    if state == FINISHED:
        try:
            summary = _json(path / "results.json")
            rows = summary.get("results", [])
            if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
                raise ValueError("its results are no list of rows")
        except (OSError, ValueError) as reason:
            state, summary = INTERRUPTED, None
            trouble = (
                f"The results of run {path.name} cannot be read ({reason}). "
                f"'fsviz runs resume {path.name}' makes them again."
            )
    return Run(
        id=path.name,
        study=str(spec.get("study", "?")),
        state=state,
        spec=spec,
        n_chunks=n_chunks,
        created=created,
        n_done=n_chunks if state == FINISHED else len(chunk_indices(path)),
        queued=_number(recorded.get("queued_at")) or created,
        started=_number(recorded.get("started")),
        ended=_number(recorded.get("ended")),
        seconds=_number(recorded.get("seconds")) or 0.0,
        message=str(recorded.get("message", "")),
        error=trouble,
        engine=_engine(recorded.get("engine")),
        name=name,
        note=note,
        summary=summary if isinstance(summary, dict) else None,
    )


def _state(path: Path) -> tuple[str, dict[str, Any]]:
    """The state of a run and what else its state.json says."""
    if locks.is_held(path / "lock"):
        return RUNNING, _recorded_state(path)
    recorded = _recorded_state(path)
    if recorded.get("state") == RUNNING:  # its worker died, or it began or ended between the two looks
        if locks.is_held(path / "lock"):
            return RUNNING, recorded
        recorded = _recorded_state(path)
    state = recorded.get("state") or (FINISHED if (path / "results.json").exists() else INTERRUPTED)
    if state in (QUEUED, RUNNING) and wants_cancel(path):
        return CANCELLED, recorded
    return INTERRUPTED if state == RUNNING else str(state), recorded


def _recorded_state(path: Path) -> dict[str, Any]:
    try:
        return _json(path / "state.json")
    except (OSError, ValueError):
        return {}


def label(run_id: str, name: str | None = None, note: str | None = None) -> Run:
    """Gives a run a name or a note; None keeps the present one, "" removes it."""
    path = run_folder(run_id)
    values = {"name": name, "note": note}
    changes = {key: " ".join(value.split()) for key, value in values.items() if value is not None}
    for key, value in changes.items():
        if len(value) > MAX_LABEL[key]:
            raise BadInput(f"The {key} of a run has at most {MAX_LABEL[key]} characters. Got {len(value)}.")
    write_json(path / "label.json", {**_label(path), **changes})
    return get(run_id)


def _label(path: Path) -> dict[str, str]:
    """The name and the note of a run, "" if it has none."""
    try:
        stored = _json(path / "label.json")
    except (OSError, ValueError):
        stored = {}
    return {key: str(stored.get(key) or "") for key in MAX_LABEL}


def is_queued(path: Path) -> bool:
    """Whether a run waits for a worker; for the holder of its lock, to whom `get` says that it runs."""
    return _recorded_state(path).get("state") == QUEUED and not wants_cancel(path)


def change(path: Path, **values: Any) -> None:
    """Writes new values into the state of a run; the caller holds its lock."""
    write_json(path / "state.json", {**_recorded_state(path), **values})


def ask_to_stop(path: Path) -> None:
    try:
        (path / "cancel").touch()
    except OSError as error:
        raise WorkspaceError(
            f"Run {path.name} cannot be stopped ({error.strerror or error}). "
            f"Make room or fix the permissions of {path}, then try again."
        ) from error


def wants_cancel(path: Path) -> bool:
    return (path / "cancel").exists()


def _engine(value: Any) -> dict[str, str]:
    """As recorded; nothing where state.json is damaged."""
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _json(path: Path) -> dict[str, Any]:
    """A JSON object, read again only when its file changed. Raises OSError or ValueError."""
    at = path.stat()
    return dict(_json_at(str(path), at.st_mtime_ns, at.st_ino, at.st_size))


@lru_cache(maxsize=4096)
def _json_at(path: str, *stamp: int) -> dict[str, Any]:
    value = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value
