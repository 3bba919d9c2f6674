"""Runs: studies as recorded work that survives the browser, the server and a kill.

A run is a JSON spec {"study": name, ...} of a study (see fsviz.studies.study), carried out chunk by chunk. The chunks
of a run are a sequence that reads from disk on demand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fsviz import studies
from fsviz.errors import BadInput, Missing, WorkspaceError
from fsviz.jobs import engines, local, store
from fsviz.jobs.engines import Engine
from fsviz.jobs.execute import Progress, compute, execute, is_complete, prepare, run_side_by_side
from fsviz.jobs.local import MAX_WORKERS, n_workers, set_workers
from fsviz.jobs.store import MAX_LABEL, Chunks, Run, delete, label
from fsviz.settings import RawSettings

__all__ = [
    "MAX_LABEL",
    "MAX_WORKERS",
    "Chunks",
    "Engine",
    "Run",
    "cancel",
    "chunks",
    "compute",
    "delete",
    "find",
    "folder",
    "label",
    "list_runs",
    "n_workers",
    "result",
    "results",
    "resume",
    "resume_here",
    "run_in_foreground",
    "set_workers",
    "status",
    "submit",
    "wait",
]


def submit(spec: RawSettings, engine: Engine | None = None) -> str:
    """Queues a run and starts a worker process when a place is free; returns the run's id."""
    if reason := studies.of(spec).requires_local(spec):
        raise BadInput(f"{reason}: not in the background.")
    run = store.create(spec, prepare, store.QUEUED, asdict(_engine_for(spec, engine or Engine())))
    local.start()
    return run.id


def run_in_foreground(
    spec: RawSettings,
    progress: Progress | None = None,
    started: Callable[[Run], object] | None = None,
    engine: Engine | None = None,
) -> Run:
    """Records a run and executes it, in this process unless another engine is set.

    `started(run)` is called before the first chunk.
    """
    engine = _engine_for(spec, engine or Engine())
    run = store.create(spec, prepare, store.INTERRUPTED, asdict(engine))
    if started:
        started(run)
    with store.held(run.id):
        execute(run.id, progress, engines.runner(engine, run_side_by_side))
    return store.get(run.id)


def resume(run_id: str, engine: Engine | None = None) -> Run:
    """Queues a stopped run again, or a finished one that lost a chunk; only the missing chunks are computed.

    engine  where they are computed; where the run was before unless given
    """
    run = store.get(run_id)
    if run.state != store.QUEUED and _has_work(run):
        if reason := studies.of(run.spec).requires_local(run.spec):
            raise BadInput(f"{reason}: 'fsviz runs resume {run_id}'.")
        with store.held(run_id) as path:
            _resume(path, store.QUEUED, "waiting for a worker", _engine_for(run.spec, engine or engine_of(run)))
    local.start()
    return store.get(run_id)


def resume_here(run_id: str, progress: Progress | None = None, engine: Engine | None = None) -> Run:
    """Carries a stopped run on in this process, its chunks on the engine it had before unless another is given."""
    run = store.get(run_id)
    if not _has_work(run):
        return run
    engine = _engine_for(run.spec, engine or engine_of(run))
    with store.held(run_id) as path:
        _resume(path, store.INTERRUPTED, "starting", engine)
        execute(run_id, progress, engines.runner(engine, run_side_by_side))
    return store.get(run_id)


def cancel(run_id: str) -> Run:
    """Stops a queued or running run within two seconds. Finished chunks are kept; `resume` goes on from there."""
    if store.get(run_id).active:
        store.ask_to_stop(store.run_folder(run_id))
        local.stop(run_id)
        if store.get(run_id).active:  # a worker had just taken it from the queue
            local.stop(run_id)
        local.start()
    return store.get(run_id)


def engine_of(run: Run) -> Engine:
    """The engine that computes a run."""
    return Engine(**{name: run.engine[name] for name in ("name", "address") if name in run.engine})


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


def find(spec: RawSettings) -> Run | None:
    """The newest run of a spec, finished or not; settings that its study ignores may differ.

    A run of another version of the study is not taken: its numbers may differ.
    """
    study = studies.of(spec)
    settings = {name: value for name, value in study.check(spec).items() if name not in study.ignored}
    settings |= {"study": spec["study"], "version": study.version}
    return next((run for run in list_runs(spec["study"]) if has_same_spec(settings, run.spec)), None)


def result(run_id: str) -> Any:
    """The result of a run's finished chunks, of the type that `compute` returns."""
    run = store.get(run_id)
    if run.state == store.DAMAGED:
        raise WorkspaceError(run.error)
    return studies.of(run.spec).collect(spec(run_id), chunks(run_id))


def has_same_spec(spec: RawSettings, recorded: RawSettings) -> bool:
    """Whether a run's spec has all these settings with these values."""
    return all(name in recorded and recorded[name] == value for name, value in spec.items())


def results(run_id: str) -> Any:
    """The summary of a finished run, or of the chunks finished so far."""
    run = store.get(run_id)
    if run.state == store.DAMAGED:
        raise WorkspaceError(run.error)
    if run.summary is None:
        raise Missing(
            f"Run {run_id} is {run.state}: no results yet. "
            + ("Wait for its first chunk." if run.active else f"Resume with: fsviz runs resume {run_id}")
        )
    return dict(run.summary)


def chunks(run_id: str, only: Collection[int] | None = None) -> Chunks:
    """The finished chunks of a run, or those of some indices, read from disk on demand."""
    run, path = store.get(run_id), store.run_folder(run_id)
    there = range(run.n_chunks) if run.state == store.FINISHED else store.chunk_indices(path)
    return Chunks(path, [index for index in there if only is None or index in only])


def folder(run_id: str) -> Path:
    return store.run_folder(run_id)


def spec(run_id: str) -> Any:
    """The settled spec of a run with its folder, as its study's functions take it."""
    return {**status(run_id).spec, "folder": str(folder(run_id))}


def wait(run_id: str, seconds: float = 600.0, every: float = 0.05) -> Run:
    """Waits until a run is neither queued nor running, or the time is over."""
    end = time.monotonic() + seconds
    while (run := status(run_id)).active and time.monotonic() < end:
        time.sleep(every)
    return run


def _engine_for(spec: RawSettings, engine: Engine) -> Engine:
    """The engine, checked: it is there, and may run this spec."""
    engine = engines.pick(engine.name, engine.address)
    if engine != Engine() and (reason := studies.of(spec).requires_local(spec)):
        raise BadInput(f"{reason}: not on a cluster.")
    return engine


def _has_work(run: Run) -> bool:
    """Whether a run has something left to do. Raises WorkspaceError if the run cannot be read."""
    if run.state == store.DAMAGED:
        raise WorkspaceError(run.error)
    return run.state != store.FINISHED or not is_complete(run)


def _resume(path: Path, state: str, message: str, engine: Engine) -> None:
    (path / "cancel").unlink(missing_ok=True)
    more = {"queued_at": time.time(), "ended": None, "engine": asdict(engine)}
    store.change(path, state=state, message=message, error="", **more)
