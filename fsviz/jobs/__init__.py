"""Runs: studies as recorded work that survives the browser, the server and a kill.

A run is a JSON spec {"study": name, ...}. Its study's module (named in fsviz.studies.RUNNABLE) has
    plan(spec) -> int                       number of chunks
    run_chunk(spec, index) -> dict          arrays of one chunk; pure, picklable, follows from (spec, index) alone
    summarise(spec, chunks) -> dict         JSON summary of the finished chunks, in the order of their indices
and, where needed,
    prepare(spec, folder) -> spec           once at the start: check, resolve names, freeze inputs into `folder`
    finish(spec, chunks) -> dict            once at the end instead of `summarise` (to save what was made)
    describe(spec, index) -> str            what the chunk was about, for the line of progress
All but `prepare` get the spec with "folder", the run's folder. `chunks` is a sequence that reads from disk on demand.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsviz.errors import BadInput, Missing
from fsviz.jobs import local, locks, store
from fsviz.jobs.execute import Progress, execute, prepare
from fsviz.jobs.local import n_workers, set_workers
from fsviz.jobs.store import Chunks, Run, delete, notice

__all__ = [
    "Chunks",
    "Run",
    "cancel",
    "chunks",
    "delete",
    "folder",
    "list_runs",
    "n_workers",
    "notice",
    "results",
    "resume",
    "resume_here",
    "run_here",
    "set_workers",
    "status",
    "submit",
    "wait",
]


def submit(spec: Mapping[str, Any]) -> str:
    """Queues a run and starts a worker process when a place is free; returns the run's id."""
    run = store.create(spec, prepare, store.QUEUED)
    local.start()
    return run.id


def run_here(spec: Mapping[str, Any], progress: Progress | None = None, started=None) -> Run:
    """Records a run and carries it out in this process; `started(run)` is told its id first."""
    run = store.create(spec, prepare, store.INTERRUPTED)
    if started:
        started(run)
    return _execute_here(run.id, progress)


def resume(run_id: str) -> Run:
    """Queues a stopped run again; only the missing chunks are computed."""
    run = _resumable(run_id)
    if run.state != store.FINISHED:
        (store.run_folder(run_id) / "cancel").unlink(missing_ok=True)
        store.change_state(run_id, store.QUEUED, message="waiting for a worker", queued_at=time.time(), ended=None)
        local.start()
    return store.get(run_id)


def resume_here(run_id: str, progress: Progress | None = None) -> Run:
    """Carries a stopped run on in this process."""
    run = _resumable(run_id)
    if run.state == store.FINISHED:
        return run
    (store.run_folder(run_id) / "cancel").unlink(missing_ok=True)
    return _execute_here(run_id, progress)


def cancel(run_id: str) -> Run:
    """Stops a queued or running run within two seconds. Finished chunks are kept; `resume` goes on from there."""
    run = store.get(run_id)
    path = store.run_folder(run_id)
    if not run.active:
        return run
    (path / "cancel").touch()
    local.stop(run_id)
    run = store.get(run_id)
    if run.active or run.state == store.INTERRUPTED:  # it waited in the queue, or had to be killed
        lock = locks.FileLock(path / "lock")
        if not lock.acquire():  # a worker has just taken it; it reads the flag before its first chunk
            local.stop(run_id)
        lock.release()
        if store.get(run_id).state != store.FINISHED:
            store.change_state(run_id, store.CANCELLED, message="cancelled; resume to go on", ended=time.time())
    local.start()
    return store.get(run_id)


def status(run_id: str) -> Run:
    """The run as it is now."""
    run = store.get(run_id)
    if run.state == store.QUEUED:
        local.start(polling=True)
    return run


def list_runs(study: str | None = None) -> list[Run]:
    """Every run of the workspace, newest first."""
    runs = store.all_runs()
    if any(run.state == store.QUEUED for run in runs):
        local.start(polling=True)
    return [run for run in runs if study is None or run.study == study]


def results(run_id: str) -> dict[str, Any]:
    """The summary of a finished run, or of the chunks finished so far."""
    run = store.get(run_id)
    if run.summary is None:
        raise Missing(
            f"Run {run_id} is {run.state} and has no results yet. "
            + ("Wait for its first chunk." if run.active else f"Go on with 'python -m fsviz runs resume {run_id}'.")
        )
    return dict(run.summary)


def chunks(run_id: str) -> Chunks:
    """The finished chunks of a run, read from disk on demand."""
    path = store.run_folder(run_id)
    return Chunks(path, store.chunk_indices(path))


def folder(run_id: str) -> Path:
    return store.run_folder(run_id)


def wait(run_id: str, seconds: float = 600.0, every: float = 0.05) -> Run:
    """Waits until a run is neither queued nor running, or the time is over."""
    end = time.monotonic() + seconds
    while (run := status(run_id)).active and time.monotonic() < end:
        time.sleep(every)
    return run


def _resumable(run_id: str) -> Run:
    run = store.get(run_id)
    if run.state == store.RUNNING:
        pid = locks.holder(store.run_folder(run_id) / "lock")
        raise BadInput(
            f"Run {run_id} is already running{f' (process {pid})' if pid else ''}; a run has one worker at a time. "
            f"Wait for it, or cancel it first with 'python -m fsviz runs cancel {run_id}'."
        )
    return run


def _execute_here(run_id: str, progress: Progress | None) -> Run:
    lock = locks.FileLock(store.run_folder(run_id) / "lock")
    if not lock.acquire():
        _resumable(run_id)
        raise BadInput(
            f"Run {run_id} is held by another process; a run has one worker at a time. Try again in a moment."
        )
    try:
        return execute(run_id, progress)
    finally:
        lock.release()
