"""Carries one run to its end, chunk by chunk. Whoever calls holds the run's lock.

A chunk is on disk before progress moves. Stopping (cancel, Ctrl-C, kill -9, a full disk) loses at most the chunk
at hand; the same function later computes only what is missing. Chunks follow from (spec, index) alone, so the
result does not depend on how often a run was stopped, nor on who computed which chunk.
"""

from __future__ import annotations

import importlib
import json
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fsviz.errors import BadInput, Cancelled, FsvizError, UnknownName
from fsviz.jobs import store
from fsviz.records import Progress
from fsviz.workspace import write_json

# A chunk runner yields (index, arrays) for the indices it is given, in any order: this process, a pool, a cluster.
ChunkRunner = Callable[[dict[str, Any], list[int]], Iterable[tuple[int, Mapping[str, np.ndarray]]]]

_TELL_EVERY = 0.4  # seconds between two writes of progress
_SUMMARISE_EVERY = 1.0  # seconds between two live summaries, more when they are costly


class Stopped(BaseException):
    """The process was asked to end; not an Exception, so that no study swallows it."""


def study_module(spec: Mapping[str, Any]) -> ModuleType:
    """The module that runs a spec: plan, run_chunk, summarise (and prepare, finish, describe where it has them)."""
    from fsviz.studies import RUNNABLE

    name = spec.get("study")
    if not isinstance(name, str) or name not in RUNNABLE:
        raise UnknownName("study", name, sorted(RUNNABLE), 'A run\'s spec needs "study".')
    return importlib.import_module(RUNNABLE[name])


def prepare(spec: dict[str, Any], folder: Path) -> tuple[dict[str, Any], int]:
    """The spec with its inputs checked and frozen into the run's folder, and its number of chunks."""
    study = study_module(spec)
    if hasattr(study, "prepare"):
        spec = study.prepare(spec, folder)
    n_chunks = int(study.plan({**spec, "folder": str(folder)}))
    if n_chunks < 1:
        raise BadInput("There is nothing to run: the plan has no chunk. Choose at least one task or image.")
    return spec, n_chunks


def run_in_this_process(spec: dict[str, Any], indices: list[int]) -> Iterator[tuple[int, Mapping[str, np.ndarray]]]:
    study = study_module(spec)
    for index in indices:
        yield index, study.run_chunk(spec, index)


def execute(run_id: str, progress: Progress | None = None, runner: ChunkRunner = run_in_this_process) -> store.Run:
    """Computes the missing chunks of a run, then its results. Raises what stopped it, after recording it."""
    run, path = store.get(run_id), store.run_folder(run_id)
    spec = {**run.spec, "folder": str(path)}
    clock = _Clock(run.seconds)
    try:
        with _ending_on_sigterm():
            if _wants_cancel(path):
                raise Cancelled
            store.change_state(
                run_id, store.RUNNING, message="starting", started=run.started or time.time(), ended=None
            )
            study = study_module(spec)
            store.drop_damaged_chunks(path)
            done = set(store.chunk_indices(path))
            teller = _Teller(run_id, study, spec, path, run.n_chunks, clock, progress)
            teller.tell(done, force=True)
            for index, arrays in runner(spec, [i for i in range(run.n_chunks) if i not in done]):
                store.write_chunk(path, index, arrays)
                done.add(index)
                if _wants_cancel(path):
                    raise Cancelled
                teller.tell(done, index)
            teller.tell(done, force=True)
            results = _plain(getattr(study, "finish", study.summarise)(spec, store.Chunks(path, range(run.n_chunks))))
            write_json(path / "results.json", results)
        text = json.dumps(results)
        store.change_state(
            run_id, store.FINISHED, message="finished", ended=time.time(), seconds=clock.seconds(), summary=text
        )
    except (Cancelled, Stopped, KeyboardInterrupt) as stop:
        wanted = _wants_cancel(path) or isinstance(stop, Cancelled)
        state = store.CANCELLED if wanted else store.INTERRUPTED
        store.change_state(
            run_id, state, message=f"{state}; resume to go on", ended=time.time(), seconds=clock.seconds()
        )
        if isinstance(stop, KeyboardInterrupt):
            raise
        raise Cancelled(
            f"Run {run_id} was {state}. Its finished chunks are kept: 'python -m fsviz runs resume {run_id}' goes on."
        ) from None
    except FsvizError as error:
        store.change_state(run_id, store.FAILED, error=str(error), ended=time.time(), seconds=clock.seconds())
        raise
    except Exception as error:
        (path / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        sentence = (
            f"Run {run_id} stopped on an unexpected error ({type(error).__name__}: {error}). "
            f"Its finished chunks are kept; the full report is in {path / 'error.txt'}."
        )
        store.change_state(run_id, store.FAILED, error=sentence, ended=time.time(), seconds=clock.seconds())
        raise FsvizError(sentence) from error
    return store.get(run_id)


class _Clock:
    """Seconds of computing, over all resumes."""

    def __init__(self, before: float) -> None:
        self.before, self.start = before, time.monotonic()

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.start


class _Teller:
    """Writes progress now and then, with a live summary that never takes more than about a tenth of the time."""

    def __init__(self, run_id, study, spec, path, n_chunks, clock, progress) -> None:
        self.run_id, self.study, self.spec, self.path = run_id, study, spec, path
        self.n_chunks, self.clock, self.progress = n_chunks, clock, progress
        self.next_tell = self.next_summary = 0.0

    def tell(self, done: set[int], index: int | None = None, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now < self.next_tell:
            return
        describe = getattr(self.study, "describe", None)
        message = describe(self.spec, index) if describe and index is not None else ""
        message = message or f"{len(done)} of {self.n_chunks} chunks"
        summary = None
        if done and len(done) < self.n_chunks and now >= self.next_summary:
            summary = json.dumps(_plain(self.study.summarise(self.spec, store.Chunks(self.path, sorted(done)))))
            spent = time.monotonic() - now
            self.next_summary = time.monotonic() + max(_SUMMARISE_EVERY, 10 * spent)
        store.set_progress(self.run_id, len(done), self.clock.seconds(), message, summary)
        if self.progress:
            self.progress(len(done), self.n_chunks, message)
        self.next_tell = time.monotonic() + _TELL_EVERY


def _plain(value: Any) -> Any:
    """A summary as plain JSON values: numpy numbers and arrays become numbers and lists, NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _wants_cancel(path: Path) -> bool:
    return (path / "cancel").exists()


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Turns SIGTERM into `Stopped` inside the block, where signals can be caught (the main thread)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum, frame):
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
