"""The local engine: detached worker processes on this machine, at most a chosen number at a time.

A worker lives for one run. It holds one of the slot locks, takes a queued run, carries it to its end, frees its slot
and starts a successor when runs are waiting. Short runs do not wait behind long ones: the run with the least left to
do goes first, and between two chunks a long run gives its slot up for a short one. A run that has waited long goes
before all others, so that none waits for ever.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import fsviz
from fsviz.errors import BadInput, WorkspaceError
from fsviz.jobs import locks, store
from fsviz.workspace import folder, home, read_json, write_json

MAX_WORKERS = 64
_RESTART_AFTER = 15.0  # seconds to wait before a poll starts a worker again
_LONG_WAIT = 600.0  # seconds in the queue after which a run goes before shorter ones
_TURN = 3.0  # seconds that a run has at least before it gives way, for a start costs some
_SHORTER = 0.1  # a run gives way to those that take less than this share of what it still needs
_TERM_GRACE = 1.0  # seconds between asking a worker to stop and ending it


def n_workers() -> int:
    """Number of runs that may go at the same time; half of the processors unless set."""
    try:
        return max(1, min(MAX_WORKERS, int(read_json(folder("runs") / ".workers.json")["workers"])))
    except (WorkspaceError, KeyError, TypeError, ValueError):
        return max(1, (os.cpu_count() or 1) // 2)


def set_workers(n: int) -> None:
    if not 1 <= n <= MAX_WORKERS:
        raise BadInput(f"The number of workers must be 1 to {MAX_WORKERS}. Got {n}.")
    write_json(folder("runs", create=True) / ".workers.json", {"workers": int(n)})
    start()


def start(polling: bool = False) -> None:
    """Starts workers for queued runs while slots are free. With `polling`, only when nobody else did so lately.

    A workspace that may not be written has no workers: whoever only looks at it is not told.
    """
    waiting = len(queue())
    if not waiting or not os.access(folder("runs"), os.W_OK):
        return
    started = folder("runs") / ".started"
    if polling:
        with suppress(OSError):
            if time.time() - started.stat().st_mtime < _RESTART_AFTER:
                return
    for _ in range(min(waiting, _n_free())):
        with suppress(OSError):  # a full disk
            started.touch()
        _spawn()


def queue() -> list[store.Run]:
    """The queued runs in the order in which they are taken: who waited long, then who has the least left to do."""
    now = time.time()

    def place(run: store.Run) -> tuple[float, ...]:
        waited_long = now - run.queued > _LONG_WAIT
        return (0, run.queued) if waited_long else (1, run.seconds_left, run.queued)

    return sorted((run for run in store.all_runs() if run.state == store.QUEUED), key=place)


def claim() -> tuple[str, locks.FileLock] | None:
    """Takes the first run of the queue and its lock; None when there is none to take."""
    for run in queue():
        path = folder("runs") / run.id
        lock = locks.FileLock(path / "lock")
        try:
            acquired = lock.acquire(patience=0)
        except WorkspaceError:  # deleted between the two looks
            continue
        if acquired and store.is_queued(path):  # nor taken and ended, nor cancelled
            store.change(path, state=store.RUNNING)
            return run.id, lock
        lock.release()
    return None


def should_yield(run_id: str) -> Callable[[], bool]:
    """For `execute`: whether a run that now takes its turn should let a shorter one go first."""
    looked = time.monotonic() + _TURN

    def shorter_run_waits() -> bool:
        nonlocal looked
        if time.monotonic() < looked:
            return False
        looked = time.monotonic() + 1.0
        seconds_left = store.get(run_id).seconds_left
        return _n_free() == 0 and any(run.seconds_left < _SHORTER * seconds_left for run in queue())

    return shorter_run_waits


def slots() -> list[Path]:
    return [folder("runs") / f".slot-{i}.lock" for i in range(n_workers())]


def _n_free() -> int:
    return sum(not locks.is_held(slot) for slot in slots())


def _spawn() -> None:
    root = str(Path(fsviz.__file__).resolve().parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "FSVIZ_HOME": str(home()), "PYTHONPATH": path}
    try:
        log = open(folder("runs") / ".worker.log", "ab")  # noqa: SIM115  (closed below)
    except OSError:  # a full disk: the worker will say so in the state of its run, once there is room
        log = open(os.devnull, "ab")  # noqa: SIM115
    with log:
        subprocess.Popen(
            [sys.executable, "-m", "fsviz.jobs.worker"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def stop(run_id: str) -> None:
    """Ends the process that works on a run, politely first; returns when its lock is free (about a second at most).

    Chunks are renamed into place, so even a killed worker leaves nothing half-written.
    """
    lock = store.run_folder(run_id) / "lock"
    pid = locks.holder(lock)
    if pid is None:
        return
    if pid == os.getpid():
        raise BadInput(f"Run {run_id} belongs to this very process. Stop it with Ctrl-C.")
    _signal(pid, signal.SIGTERM)
    if _freed(lock, _TERM_GRACE):
        return
    _signal(pid, signal.SIGKILL)
    _freed(lock, 1.0)


def _signal(pid: int, number: int) -> None:
    """To the worker's whole session when it leads one, so that its children end with it."""
    with suppress(ProcessLookupError):
        if number == signal.SIGKILL and os.getsid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _freed(lock: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not locks.is_held(lock):
            return True
        time.sleep(0.02)
    return not locks.is_held(lock)
