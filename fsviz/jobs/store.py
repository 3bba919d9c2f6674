"""What is known of every run: one folder a run, and an SQLite register of states and progress beside them.

The folders hold everything that must not be lost:
    spec.json      id, time of creation, number of chunks and the spec, inputs frozen by the study
    inputs/        what the study froze at the start (a testbed may be deleted later)
    chunks/*.npz   finished chunks, written under a temporary name and renamed
    state.json     the last change of state
    results.json   the summary of all chunks
    lock, cancel   the worker's lock; the wish to stop
The register (runs.sqlite) orders the queue and carries progress; when it is damaged or gone it is built again from
the folders, and the damaged file is kept beside the new one.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fsviz.errors import BadInput, FsvizError, UnknownName, WorkspaceError
from fsviz.jobs import locks
from fsviz.workspace import atomic_file, atomic_folder, checked_name, entries, folder, read_json, write_json

REGISTER = "runs.sqlite"
NOTICE = "notice.txt"
QUEUED, RUNNING, FINISHED, CANCELLED, FAILED, INTERRUPTED = (
    "queued",
    "running",
    "finished",
    "cancelled",
    "failed",
    "interrupted",
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, queued_at REAL, started REAL, ended REAL,
    n_done INTEGER NOT NULL, seconds REAL NOT NULL, message TEXT NOT NULL, error TEXT NOT NULL, summary TEXT
)"""


@dataclass(frozen=True)
class Run:
    """One recorded execution of a study.

    state     queued, running, finished, cancelled, failed or interrupted (its worker died).
    n_done    finished chunks of n_chunks; seconds is the computing time so far, over all resumes.
    summary   the study's summary of the chunks finished so far (of all of them when finished), or None.
    """

    id: str
    study: str
    state: str
    spec: Mapping[str, Any]
    n_chunks: int
    created: float
    n_done: int = 0
    started: float | None = None
    ended: float | None = None
    seconds: float = 0.0
    message: str = ""
    error: str = ""
    summary: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def active(self) -> bool:
        return self.state in (QUEUED, RUNNING)

    @property
    def resumable(self) -> bool:
        return self.state in (CANCELLED, FAILED, INTERRUPTED)

    @property
    def share_done(self) -> float:
        return self.n_done / self.n_chunks if self.n_chunks else 0.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Chunks(Sequence[dict[str, np.ndarray]]):
    """The finished chunks of a run in the order of their indices, each read from disk when asked for."""

    def __init__(self, run_folder: Path, indices: Sequence[int]) -> None:
        self.run_folder, self.indices = run_folder, list(indices)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, position: int) -> dict[str, np.ndarray]:  # type: ignore[override]
        return read_chunk(self.run_folder, self.indices[position])

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return (self[i] for i in range(len(self)))


# --- folders ---------------------------------------------------------------------------------------------------


def run_folder(run_id: str) -> Path:
    path = folder("runs") / checked_name(run_id, "run id")
    if not (path / "spec.json").exists():
        raise UnknownName("run", run_id, run_ids(), "'python -m fsviz runs' lists them.")
    return path


def run_ids() -> list[str]:
    """Every run in the workspace, oldest first."""
    return [p.name for p in entries("runs") if (p / "spec.json").exists()]


def create(spec: Mapping[str, Any], prepare, state: str) -> Run:
    """Writes the folder of a new run. `prepare(spec, folder)` freezes inputs; it returns (spec, number of chunks)."""
    try:
        json.dumps(spec)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"A run's spec must be plain JSON ({error}). Give names, numbers, lists and dictionaries."
        ) from error
    created = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(created))
    run_id = f"{stamp}-{secrets.token_hex(2)}"
    runs = folder("runs", create=True)
    with atomic_folder(runs / run_id) as temporary:
        (temporary / "chunks").mkdir()
        frozen, n_chunks = prepare(dict(spec), temporary)
        write_json(
            temporary / "spec.json", {"id": run_id, "created": created, "n_chunks": int(n_chunks), "spec": frozen}
        )
        write_json(temporary / "state.json", {"state": state})
    with register() as rows:
        rows.execute(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, NULL, NULL, 0, 0, '', '', NULL)", (run_id, state, created)
        )
    return get(run_id)


def chunk_path(path: Path, index: int) -> Path:
    return path / "chunks" / f"{index:06d}.npz"


def chunk_indices(path: Path) -> list[int]:
    """Indices of the chunks on disk, in order."""
    return sorted(int(p.stem) for p in (path / "chunks").glob("*.npz") if p.stem.isdigit())


def write_chunk(path: Path, index: int, arrays: Mapping[str, np.ndarray]) -> None:
    with atomic_file(chunk_path(path, index)) as temporary:
        np.savez(temporary, **{name: np.asarray(values) for name, values in arrays.items()})


def read_chunk(path: Path, index: int) -> dict[str, np.ndarray]:
    try:
        with np.load(chunk_path(path, index), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise WorkspaceError(
            f"Chunk {index} of run {path.name} is damaged ({error}). "
            f"'python -m fsviz runs resume {path.name}' computes it again."
        ) from error


def drop_damaged_chunks(path: Path) -> int:
    """Removes chunks that cannot be read, so that they are computed again; returns how many."""
    dropped = 0
    for index in chunk_indices(path):
        try:
            read_chunk(path, index)
        except WorkspaceError:
            chunk_path(path, index).unlink(missing_ok=True)
            dropped += 1
    return dropped


def delete(run_id: str) -> None:
    run = get(run_id)
    if run.active:
        raise BadInput(f"Run {run_id} is {run.state}. Cancel it before deleting it.")
    path = run_folder(run_id)
    aside = path.with_name(f".deleted-{run_id}")
    os.replace(path, aside)
    shutil.rmtree(aside, ignore_errors=True)
    with register() as rows:
        rows.execute("DELETE FROM runs WHERE id = ?", (run_id,))


# --- the register ----------------------------------------------------------------------------------------------


@contextmanager
def register(immediate: bool = False) -> Iterator[sqlite3.Connection]:
    """One short transaction on the register; a damaged register is rebuilt first."""
    path = folder("runs", create=True) / REGISTER
    try:
        connection = _connect(path)
    except sqlite3.DatabaseError as error:
        if _is_busy(error):
            raise _register_error(path, error) from error
        _rebuild(path)
        connection = _connect(path)
    try:
        connection.execute("BEGIN IMMEDIATE" if immediate else "BEGIN")
        yield connection
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise _register_error(path, error) from error
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    """An open, checked register. Raises sqlite3.DatabaseError when it is missing or damaged."""
    if not path.exists():
        raise sqlite3.DatabaseError("missing")
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous = NORMAL")
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        connection.execute("SELECT id, summary FROM runs LIMIT 1").fetchone()
        return connection
    except BaseException:
        connection.close()
        raise


def _rebuild(path: Path) -> None:
    """Makes the register from the run folders; a damaged one is moved aside, never deleted."""
    guard = locks.FileLock(path.with_name(".rebuild.lock"))
    if not guard.acquire(patience=30):
        raise WorkspaceError(f"The register of runs {path} is being rebuilt by another process. Try again in a minute.")
    try:
        try:
            _connect(path).close()
            return  # another process was faster
        except sqlite3.DatabaseError as error:
            if _is_busy(error):
                raise _register_error(path, error) from error
        damaged = path.exists()
        kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}")
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                os.replace(part, kept.with_name(kept.name + suffix))
        fresh = path.with_name(f".new-{os.getpid()}-{path.name}")
        fresh.unlink(missing_ok=True)
        connection = sqlite3.connect(fresh, isolation_level=None)
        connection.execute(_SCHEMA)
        count = 0
        for run_id in run_ids():
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row_from_folder(run_id))
            count += 1
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        os.replace(fresh, path)
        if damaged:
            text = (
                f"The register of runs was damaged and has been rebuilt from the run folders: {count} "
                f"run{'s' if count != 1 else ''} found, nothing lost. The damaged file is kept as {kept.name}."
            )
            path.with_name(NOTICE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise WorkspaceError(
            f"The register of runs {path} cannot be rebuilt ({error.strerror or error}). "
            "Free some space or mend the folder's permissions."
        ) from error
    finally:
        guard.release()


def _row_from_folder(run_id: str) -> tuple[Any, ...]:
    path = folder("runs") / run_id
    try:
        known = read_json(path / "state.json")
        created = float(read_json(path / "spec.json").get("created") or 0)
    except (FsvizError, TypeError, ValueError, AttributeError):
        known, created = {}, 0.0
    state = known.get("state", INTERRUPTED) if isinstance(known, dict) else INTERRUPTED
    if locks.is_held(path / "lock"):
        state = RUNNING
    elif state == RUNNING:
        state = INTERRUPTED
    summary = (path / "results.json").read_text(encoding="utf-8") if (path / "results.json").exists() else None
    return (
        run_id,
        state,
        known.get("queued_at", created),
        known.get("started"),
        known.get("ended"),
        len(chunk_indices(path)),
        known.get("seconds", 0.0),
        known.get("message", ""),
        known.get("error", ""),
        summary,
    )


def _is_busy(error: sqlite3.DatabaseError) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(
        word in str(error) for word in ("locked", "busy", "unable to open", "readonly", "full", "disk I/O")
    )


def _register_error(path: Path, error: Exception) -> WorkspaceError:
    return WorkspaceError(
        f"The register of runs {path} cannot be used now ({error}). "
        "Check free space and permissions of the workspace, then try again; the run folders are untouched."
    )


def notice() -> str:
    """What was mended since the user last looked, once; "" when nothing was."""
    path = folder("runs") / NOTICE
    try:
        text = path.read_text(encoding="utf-8")
        path.unlink()
        return text
    except OSError:
        return ""


# --- reading and changing runs -----------------------------------------------------------------------------------


def get(run_id: str) -> Run:
    """One run as it is now. A run whose worker died reads as interrupted."""
    path = run_folder(run_id)
    with register() as rows:
        row = rows.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None:  # a folder copied in by hand
        with register(immediate=True) as rows:
            rows.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row_from_folder(run_id))
            row = rows.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row["state"] == RUNNING and not locks.is_held(path / "lock"):
        with register(immediate=True) as rows:  # it may have ended between the two looks
            row = rows.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row["state"] == RUNNING and not locks.is_held(path / "lock"):
                found = _row_from_folder(run_id)
                if found[1] in (FINISHED, FAILED, CANCELLED):  # it ended while the register was being rebuilt
                    rows.execute("REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", found)
                else:
                    rows.execute(
                        "UPDATE runs SET state = ?, n_done = ? WHERE id = ?",
                        (INTERRUPTED, len(chunk_indices(path)), run_id),
                    )
                row = rows.execute("SELECT * FROM runs WHERE id = ?", (run_id,)).fetchone()
    return _run_of(path, row)


def all_runs() -> list[Run]:
    """Every run, newest first. A folder that cannot be read is listed as failed, with the reason."""
    ids = run_ids()
    if not ids:
        return []
    with register() as rows:
        known = {row["id"]: row for row in rows.execute("SELECT * FROM runs")}
    runs = []
    for run_id in ids:
        path, row = folder("runs") / run_id, known.get(run_id)
        try:
            settled = row is not None and (row["state"] != RUNNING or locks.is_held(path / "lock"))
            runs.append(_run_of(path, row) if settled else get(run_id))
        except (UnknownName, FileNotFoundError):
            continue  # deleted meanwhile
    return sorted(runs, key=lambda run: (run.created, run.id), reverse=True)


def _run_of(path: Path, row: sqlite3.Row) -> Run:
    try:
        stored = read_json(path / "spec.json")
        spec, n_chunks, created = dict(stored["spec"]), int(stored["n_chunks"]), float(stored["created"])
        state, error = row["state"], row["error"]
    except (FsvizError, KeyError, TypeError, ValueError):
        spec, n_chunks, created, state = {}, 0, path.stat().st_mtime, FAILED
        error = (
            f"spec.json of run {path.name} cannot be read; its chunks are untouched in {path}. "
            "Restore the file or delete the run."
        )
    summary = None
    if row["summary"]:
        try:
            summary = json.loads(row["summary"])
        except ValueError:
            summary = None
    return Run(
        id=path.name,
        study=str(spec.get("study", "?")),
        state=state,
        spec=spec,
        n_chunks=n_chunks,
        created=created,
        n_done=row["n_done"],
        started=row["started"],
        ended=row["ended"],
        seconds=row["seconds"],
        message=row["message"],
        error=error,
        summary=summary,
    )


def change_state(run_id: str, state: str, *, message: str = "", error: str = "", **values: Any) -> None:
    """Records a change of state in the folder first, then in the register."""
    path = run_folder(run_id)
    try:
        known = read_json(path / "state.json")
    except WorkspaceError:
        known = {}
    known = {**known, "state": state, "message": message, "error": error, **values}
    known.pop("summary", None)
    write_json(path / "state.json", known)
    columns = {"state": state, "message": message, "error": error, "n_done": len(chunk_indices(path)), **values}
    with register(immediate=True) as rows:
        rows.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _row_from_folder(run_id))
        rows.execute(
            f"UPDATE runs SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?", (*columns.values(), run_id)
        )


def set_progress(run_id: str, n_done: int, seconds: float, message: str, summary: str | None) -> None:
    with register(immediate=True) as rows:
        rows.execute(
            "UPDATE runs SET n_done = ?, seconds = ?, message = ?, summary = COALESCE(?, summary) WHERE id = ?",
            (n_done, seconds, message, summary, run_id),
        )


def claim_next() -> tuple[str, locks.FileLock] | None:
    """Takes the oldest queued run and its lock; None when the queue is empty.

    The lock is taken before the state changes, so that a running run without a holder always means a dead worker.
    """
    with register(immediate=True) as rows:
        waiting = rows.execute("SELECT id FROM runs WHERE state = ? ORDER BY queued_at, id", (QUEUED,)).fetchall()
        for row in waiting:
            path = folder("runs") / row["id"]
            if not (path / "spec.json").exists():
                rows.execute("DELETE FROM runs WHERE id = ?", (row["id"],))
                continue
            lock = locks.FileLock(path / "lock")
            if lock.acquire():
                rows.execute("UPDATE runs SET state = ? WHERE id = ?", (RUNNING, row["id"]))
                return row["id"], lock
    return None


def n_queued() -> int:
    if not (folder("runs") / REGISTER).exists():
        return 0
    with register() as rows:
        return rows.execute("SELECT COUNT(*) FROM runs WHERE state = ?", (QUEUED,)).fetchone()[0]
