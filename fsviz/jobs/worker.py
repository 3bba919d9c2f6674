"""fsviz.jobs.worker: takes one queued run and carries it to its end. Started by the local engine."""

from __future__ import annotations

import os
from contextlib import suppress

from fsviz import jobs
from fsviz.errors import FsvizError
from fsviz.jobs import engines, local, locks
from fsviz.jobs.execute import execute, run_in_this_process


def main() -> int:
    os.nice(5)  # the app that shows the progress comes first
    slot = next((lock for lock in map(locks.FileLock, local.slots()) if lock.acquire(patience=0.1)), None)
    if slot is None:
        return 0  # every holder of a slot looks at the queue again after freeing it
    claimed = local.claim()  # on a full disk it raises, and this worker has no successor
    if claimed is not None:
        run_id, lock = claimed
        try:
            engine = jobs.engine_of(jobs.status(run_id))
            on_this_machine = engine == jobs.Engine()
            should_yield = (
                local.should_yield(run_id) if on_this_machine else lambda: False
            )  # a cluster's cores are not ours
            execute(run_id, runner=engines.runner(engine, run_in_this_process), should_yield=should_yield)
        except FsvizError as error:
            with suppress(OSError):
                print(f"{run_id}: {error}", flush=True)
        finally:
            lock.release()
    slot.release()
    local.start()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
