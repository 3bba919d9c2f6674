"""What recorded evaluations hold, read once for all visitors: their lines, their answers, the names of their tasks."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fsviz import jobs
from fsviz.records import Dataset, Predictions, TaskId, Tasks
from fsviz.studies import comparison, evaluate, named_tasks
from fsviz.ui.parts.cached import remember

MISTAKES_OF = 20_000  # tasks whose queries are looked at one by one


def lines_of(run: jobs.Run) -> list[comparison.Line]:
    """The lines of a run, as far as it is."""
    return _lines(run.id, run.n_done, str(jobs.folder(run.id)))


def answer_of(line: comparison.Line) -> tuple[Predictions, Tasks]:
    """What a line said of the queries of its first tasks, and these tasks."""
    return _answer(line.run_id, line.entry, int(line.done.sum()), str(jobs.folder(line.run_id)))


def task_name(dataset: Dataset, line: comparison.Line, task: int) -> TaskId | None:
    """What names a task of a run in links."""
    spec = jobs.spec(line.run_id)
    entry = evaluate.entries(spec)[line.entry]
    part, backbones = evaluate.parts(spec)[entry.part], [b for b in spec["backbones"] if b in spec["features"]]
    whole = evaluate.part_tasks(spec, entry)
    saved = str(part["testbed_name"])
    return named_tasks.name_task(dataset, whole, task, part["recipe"], backbones, saved, (line.run_id, entry.part))


def identity(line: comparison.Line) -> tuple[Any, ...]:
    """What stands for a line in a cache: it changes when others of its tasks are compared. Lines that belong to no run
    share their keys, so their numbers count."""
    numbers = line.accuracy if line.run_id == comparison.LOOK else np.packbits(line.done)
    return line.key, line.digest, line.label, hashlib.blake2b(numbers.tobytes(), digest_size=12).digest()


of_lines = remember(most=64, hashes={comparison.Line: identity})
result_table, differences = of_lines(comparison.result_table), of_lines(comparison.differences)
ranks, correlations = of_lines(comparison.ranks), of_lines(comparison.correlations)
curves, widest = of_lines(comparison.curves), of_lines(comparison.widest)


@remember("Reading the run…", 64)
def _lines(run_id: str, n_done: int, folder: str) -> list[comparison.Line]:
    """n_done and folder tell one state of a run from another in the cache."""
    run = jobs.status(run_id)
    return comparison.lines_of(
        run_id, jobs.spec(run_id), jobs.chunks(run_id), run.summary if run.state == "finished" else None
    )


@remember(most=16)
def _answer(run_id: str, which: int, n_done: int, folder: str) -> tuple[Predictions, Tasks]:
    spec = jobs.spec(run_id)
    answer = evaluate.predictions(spec, jobs.chunks(run_id, evaluate.chunks_of(spec, which, MISTAKES_OF)), which)
    return answer, evaluate.part_tasks(spec, evaluate.entries(spec)[which], stop=len(answer))
