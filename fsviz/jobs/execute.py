"""Carries one run to its end, chunk by chunk. Whoever calls holds the run's lock.

A chunk is on disk before progress moves. Stopping (cancel, Ctrl-C, kill -9, a full disk, yielding to a shorter run)
loses at most the current chunk; the same function later computes only what is missing. Chunks follow from (spec,
index) alone, so the result does not depend on how often a run was stopped, nor on who computed which chunk.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np

from fsviz import studies
from fsviz.errors import BadInput, Cancelled, FsvizError, WorkspaceError
from fsviz.jobs import store
from fsviz.records import Progress
from fsviz.settings import RawSettings
from fsviz.studies.study import Study
from fsviz.workspace import plain_json, require_space, write_json

# The outcome of a chunk: its arrays, or the error that it ended in. A sentence for the user is raised instead.
Outcome: TypeAlias = Mapping[str, np.ndarray] | Exception
# A chunk runner takes the indices that wait, yields (index, outcome) in any order, and goes on until none
# waits: this process, a pool, a cluster. Whoever asks may put a chunk back between two answers, to have it tried again.
ChunkRunner = Callable[[dict[str, Any], deque[int]], Iterable[tuple[int, Outcome]]]

_ATTEMPTS = 3  # times that a chunk is tried
_HOPELESS = 3  # chunks that fail before the first one succeeds: the others would, too
_WRITE_EVERY = 0.4  # seconds between two writes of progress
_SUMMARISE_EVERY = 1.0  # seconds between two live summaries, more when they are costly


class Stopped(BaseException):
    """The process was asked to end; not an Exception, so that no study swallows it."""


def prepare(spec: RawSettings, folder: Path) -> tuple[dict[str, Any], int]:
    """A spec checked and settled, its inputs frozen into the run's folder, and its number of chunks."""
    study = studies.of(spec)
    settled = study.prepare(study.check(spec), folder)
    settled = {**settled, "study": spec["study"], "version": study.version}
    at_work = {**settled, "folder": str(folder)}
    n_chunks = study.n_chunks(at_work)
    if n_chunks < 1:
        raise BadInput("There is nothing to run: the plan has no chunk. Choose at least one task or image.")
    check_space(study, at_work)
    return settled, n_chunks


def compute(spec: RawSettings, progress: Progress | None = None) -> Any:
    """The result of a spec, computed in this process and not recorded: what `jobs.result` gives for a run of it."""
    study = studies.of(spec)
    with tempfile.TemporaryDirectory(prefix="fsviz-") as folder:
        settled, n_chunks = prepare(spec, Path(folder))
        at_work = {**settled, "folder": folder}
        chunks = []
        for index in range(n_chunks):
            chunks.append(study.chunk(at_work, index))
            if progress is not None:
                progress(index + 1, n_chunks, study.describe(at_work, index))
        return study.collect(at_work, chunks)


def run_in_this_process(spec: dict[str, Any], waiting: deque[int]) -> Iterator[tuple[int, Outcome]]:
    study = studies.of(spec)
    while waiting:
        index = waiting.popleft()
        try:
            outcome: Outcome = study.chunk(spec, index)
        except FsvizError:
            raise
        except Exception as error:
            outcome = error
        yield index, outcome


def run_side_by_side(spec: dict[str, Any], waiting: deque[int]) -> Iterator[tuple[int, Outcome]]:
    """In threads of this process, as many as the study declares; one for most studies."""
    study = studies.of(spec)
    n_threads = study.threads
    if n_threads == 1:
        yield from run_in_this_process(spec, waiting)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        begun: dict[Future, int] = {}
        while waiting or begun:
            while waiting and len(begun) < n_threads:
                index = waiting.popleft()
                begun[pool.submit(study.chunk, spec, index)] = index
            for ended in wait(begun, return_when=FIRST_COMPLETED).done:
                error = ended.exception()
                if error is not None and (isinstance(error, FsvizError) or not isinstance(error, Exception)):
                    raise error
                yield begun.pop(ended), error or ended.result()


def execute(
    run_id: str,
    progress: Progress | None = None,
    runner: ChunkRunner = run_in_this_process,
    should_yield: Callable[[], bool] = lambda: False,
) -> None:
    """Computes the missing chunks of a run, then its results. Raises what stopped it, after recording it.

    should_yield  asked between chunks; True puts the run back into the queue and returns
    """
    run, path = store.get(run_id), store.run_folder(run_id)
    if run.state == store.DAMAGED:
        raise WorkspaceError(run.error)
    spec = {**run.spec, "folder": str(path)}
    clock = _Clock(run.seconds)
    with _recorded_end(run_id, path, clock):
        with _ending_on_sigterm():
            if store.wants_cancel(path):
                raise Cancelled
            store.change(
                path, state=store.RUNNING, message="starting", error="", started=run.started or time.time(), ended=None
            )
            study = studies.of(spec)
            store.tidy(path)
            writer = _ProgressWriter(study, spec, path, run.n_chunks, clock, progress)
            if not _compute_missing(writer, runner, should_yield):
                yielded = {"state": store.QUEUED, "message": "lets a shorter run go first", "queued_at": time.time()}
                store.change(path, **yielded, seconds=clock.seconds())
                return
            result = study.collect(spec, store.Chunks(path, range(run.n_chunks)))
            write_json(path / "results.json", plain_json({**study.summarise(result), **study.finish(spec, result)}))
        ended = {"message": "finished", "ended": time.time(), "seconds": clock.seconds(), "summary": None}
        store.change(path, state=store.FINISHED, **ended)
        if study.is_transient:  # all that is worth keeping is what `finish` saved
            shutil.rmtree(path / "chunks", ignore_errors=True)


def _compute_missing(writer: _ProgressWriter, runner: ChunkRunner, should_yield: Callable[[], bool]) -> bool:
    """Computes the chunks that are not on disk; False if another run goes first.

    A chunk that fails is tried again, then left out. If the first ones all fail, the error ends the run.
    """
    path, n_chunks, spec = writer.path, writer.n_chunks, writer.spec
    done = set(store.chunk_indices(path))
    missing = [index for index in range(n_chunks) if index not in done]
    check_space(writer.study, spec, len(missing) / n_chunks)
    writer.write(done, force=True)
    waiting, n_before, attempts = deque(missing), len(done), Counter[int]()
    failed: dict[int, Exception] = {}
    for index, outcome in runner(spec, waiting):
        if not isinstance(outcome, Exception):
            store.write_chunk(path, index, outcome)
            done.add(index)
        else:
            attempts[index] += 1
            if attempts[index] < _ATTEMPTS:
                waiting.appendleft(index)
            else:
                failed[index] = outcome
            if len(failed) >= _HOPELESS and len(done) == n_before:
                raise outcome
        if store.wants_cancel(path):
            raise Cancelled
        writer.write(done, index)
        if len(done) < n_chunks and should_yield():
            return False
    if failed and not done:
        raise next(iter(failed.values()))
    writer.write(done, force=True)
    if failed:
        raise _SomeFailed(failed)
    return True


@contextmanager
def _recorded_end(run_id: str, path: Path, clock: _Clock) -> Iterator[None]:
    """Records what stops a run inside the block, and raises it as a sentence."""
    try:
        yield
    except (Cancelled, Stopped, KeyboardInterrupt) as stop:
        was_cancelled = store.wants_cancel(path) or isinstance(stop, Cancelled)
        state = store.CANCELLED if was_cancelled else store.INTERRUPTED
        _record(path, clock, state=state, message=f"{state}; resume to go on")
        if isinstance(stop, KeyboardInterrupt):
            raise
        raise Cancelled(
            f"Run {run_id} was {state}. Finished parts are saved; resume with: fsviz runs resume {run_id}"
        ) from None
    except _SomeFailed as some:
        _report(path, *some.errors.values())
        _record(path, clock, state=store.FAILED, message=f"done, {some}", error=some.sentence(run_id, path))
        raise FsvizError(some.sentence(run_id, path)) from None
    except FsvizError as error:
        _record(path, clock, state=store.FAILED, error=str(error))
        raise
    except Exception as error:
        _report(path, error)
        sentence = (
            f"Run {run_id} failed: {type(error).__name__}: {error}. Finished parts are saved; resume with: "
            f"fsviz runs resume {run_id}. Details: {path / 'error.txt'}"
        )
        _record(path, clock, state=store.FAILED, error=sentence)
        raise FsvizError(sentence) from error


class _SomeFailed(Exception):
    """Chunks that failed every time, by index; all others are done."""

    def __init__(self, errors: dict[int, Exception]) -> None:
        super().__init__(f"{len(errors)} chunk{'s' if len(errors) > 1 else ''} failed")
        self.errors = errors

    def sentence(self, run_id: str, path: Path) -> str:
        index, error = next(iter(self.errors.items()))
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) < 300 else f"{reason[:300]}..."
        return (
            f"Run {run_id} is done, {self}: number {index} failed {_ATTEMPTS} times ({reason}). All others are saved, "
            f"and results show them. Retry with: fsviz runs resume {run_id}. Details: {path / 'error.txt'}"
        )


def _report(path: Path, *errors: Exception) -> None:
    report = "\n".join("".join(traceback.format_exception(error)) for error in errors)
    with suppress(OSError):
        (path / "error.txt").write_text(report, encoding="utf-8")


def is_complete(run: store.Run) -> bool:
    """Whether a finished run still has every chunk, readable to its end, where its study keeps them."""
    if studies.of(run.spec).is_transient:
        return True
    path = store.run_folder(run.id)
    return len(store.chunk_indices(path)) == run.n_chunks and not store.damaged_chunks(path)


def check_space(study: Study[Any], spec: RawSettings, share: float = 1.0) -> None:
    """Raises a sentence when the disk has no room for this share of a run's results."""
    if n_bytes := study.n_bytes(spec):
        require_space(share * n_bytes, "The results of this run")


def _record(path: Path, clock: _Clock, **values: Any) -> None:
    """Records how a run ended. If the disk is full, the run reads as interrupted and the first error is raised."""
    with suppress(WorkspaceError):
        store.change(path, ended=time.time(), seconds=clock.seconds(), **values)


class _Clock:
    """Seconds of computing, over all resumes."""

    def __init__(self, before: float) -> None:
        self.before, self.start = before, time.monotonic()

    def seconds(self) -> float:
        return self.before + time.monotonic() - self.start


class _ProgressWriter:
    """Writes progress now and then, with a live summary that never takes more than about a tenth of the time."""

    def __init__(
        self, study: Study[Any], spec: Any, path: Path, n_chunks: int, clock: _Clock, progress: Progress | None
    ) -> None:
        self.study, self.spec, self.path = study, spec, path
        self.n_chunks, self.clock, self.progress = n_chunks, clock, progress
        self.next_write = self.next_summary = 0.0

    def write(self, done: set[int], index: int | None = None, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now < self.next_write:
            return
        message = self.study.describe(self.spec, index) if index is not None else ""
        message = message or f"{len(done)} of {self.n_chunks} parts"
        values: dict[str, Any] = {"seconds": self.clock.seconds(), "message": message}
        if done and len(done) < self.n_chunks and (force or now >= self.next_summary):
            values["summary"] = plain_json(self._summary(store.Chunks(self.path, sorted(done))))
            spent = time.monotonic() - now
            self.next_summary = time.monotonic() + max(_SUMMARISE_EVERY, 10 * spent)
        store.change(self.path, **values)
        if self.progress:
            self.progress(len(done), self.n_chunks, message)
        self.next_write = time.monotonic() + _WRITE_EVERY

    def _summary(self, chunks: store.Chunks) -> Mapping[str, Any]:
        if self.study.partial is not None:
            return self.study.partial(self.spec, chunks)
        return self.study.summarise(self.study.collect(self.spec, chunks))


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Turns SIGTERM into `Stopped` inside the block, where signals can be caught (the main thread)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
