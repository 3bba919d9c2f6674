"""The local engine: detached worker processes on this machine, at most a chosen number at a time.

A worker lives for one run. It holds one of the slot locks, takes the oldest queued run, carries it to its end,
frees its slot and starts a successor when runs are waiting. A cluster engine has the same three functions.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import fsviz
from fsviz.errors import BadInput, WorkspaceError
from fsviz.jobs import locks, store
from fsviz.workspace import folder, home, read_json, write_json

MAX_WORKERS = 64
_RESTART_AFTER = 15.0  # seconds to wait before a poll starts a worker again
_TERM_GRACE = 1.0  # seconds between asking a worker to stop and ending it


def n_workers() -> int:
    """How many runs may go at the same time; half of the processors unless chosen."""
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
    """Starts workers for queued runs while slots are free. With `polling`, only when nobody else did so lately."""
    waiting = store.n_queued()
    if not waiting:
        return
    free = sum(not locks.is_held(slot) for slot in slots())
    started = folder("runs") / ".started"
    if polling:
        with suppress(OSError):
            if time.time() - started.stat().st_mtime < _RESTART_AFTER:
                return
    for _ in range(min(waiting, free)):
        started.touch()
        _spawn()


def slots() -> list[Path]:
    return [folder("runs", create=True) / f".slot-{i}.lock" for i in range(n_workers())]


def _spawn() -> None:
    root = str(Path(fsviz.__file__).resolve().parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "FSVIZ_HOME": str(home()), "PYTHONPATH": path}
    log = folder("runs", create=True) / ".worker.log"
    with open(log, "ab") as out:
        subprocess.Popen(
            [sys.executable, "-m", "fsviz.jobs.worker"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
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
