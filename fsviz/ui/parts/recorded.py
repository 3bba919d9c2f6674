"""Recorded evaluations, read once for all visitors: method runs, predictions, ids of tasks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.records import Dataset, Predictions, TaskId, Tasks
from fsviz.studies import evaluate
from fsviz.tasks import task_ids
from fsviz.ui.parts.caching import cache_data

MAX_PREDICTED = 20_000  # tasks whose queries are looked at one by one


def method_runs(run: jobs.Run) -> list[run_comparison.MethodRun]:
    """The lines of a run, as far as it is."""
    return _lines(run.id, run.n_done, str(jobs.folder(run.id)))


def predictions_of(line: run_comparison.MethodRun) -> tuple[Predictions, Tasks]:
    """Predictions of a method run for its first tasks, and these tasks."""
    return _answer(line.run_id, line.entry, int(line.done.sum()), str(jobs.folder(line.run_id)))


def task_id(dataset: Dataset, line: run_comparison.MethodRun, task: int) -> TaskId | None:
    """The id of a task of a run, for links."""
    spec = jobs.spec(line.run_id)
    entry = evaluate.entries(spec)[line.entry]
    testbed = evaluate.run_testbeds(spec)[entry.testbed]
    backbones = [name for name in spec["backbones"] if name in spec["features"]]
    tasks_of_run = evaluate.entry_tasks(spec, entry)
    saved = str(testbed["testbed_name"])
    return task_ids.name_task(
        dataset, tasks_of_run, task, testbed["recipe"], backbones, saved, (line.run_id, entry.testbed)
    )


def identity(line: run_comparison.MethodRun) -> tuple[Any, ...]:
    """The key of a method run in a cache: it changes when others of its tasks are compared. Those that belong to no run
    share their keys, so their numbers count."""
    numbers = line.accuracy if line.run_id == run_comparison.PREVIEW else np.packbits(line.done)
    return line.key, line.digest, line.label, hashlib.blake2b(numbers.tobytes(), digest_size=12).digest()


cache_of_method_runs = cache_data(most=64, hashes={run_comparison.MethodRun: identity})
result_table, differences = (
    cache_of_method_runs(run_comparison.result_table),
    cache_of_method_runs(run_comparison.differences),
)
ranks, correlations = cache_of_method_runs(run_comparison.ranks), cache_of_method_runs(run_comparison.correlations)
curves, widest = cache_of_method_runs(run_comparison.curves), cache_of_method_runs(run_comparison.widest)


def compare(
    groups: Mapping[str, Sequence[run_comparison.MethodRun]], main: str, over: str, notes: Sequence[str]
) -> run_comparison.RunComparison:
    """The comparison of grouped runs, from cached tables."""
    return run_comparison.compare(groups, main, over, notes, result_table=result_table, differences=differences)


@cache_data("Reading the run…", 64)
def _lines(run_id: str, n_done: int, folder: str) -> list[run_comparison.MethodRun]:
    """n_done and folder tell one state of a run from another in the cache."""
    run = jobs.status(run_id)
    return run_comparison.method_runs(
        run_id, jobs.spec(run_id), jobs.chunks(run_id), run.summary if run.state == "finished" else None
    )


@cache_data(most=16)
def _answer(run_id: str, which: int, n_done: int, folder: str) -> tuple[Predictions, Tasks]:
    spec = jobs.spec(run_id)
    answer = evaluate.predictions(spec, jobs.chunks(run_id, evaluate.chunks_of(spec, which, MAX_PREDICTED)), which)
    return answer, evaluate.entry_tasks(spec, evaluate.entries(spec)[which], stop=len(answer))
