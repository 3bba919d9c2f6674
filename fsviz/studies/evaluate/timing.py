"""The duration of an evaluation, from a count of operations or a trial of a few tasks."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from fsviz import datasets, features
from fsviz.evaluation import resolved_device
from fsviz.features.device import cores
from fsviz.methods import METHODS
from fsviz.numerics import threads
from fsviz.records import Dataset, Features, Tasks
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import RawSettings
from fsviz.studies.evaluate.requests import check_backbones, check_features, check_methods
from fsviz.studies.evaluate.spec import Entry, EvaluationSpec, entries
from fsviz.studies.evaluate.tasks import recipe_of, resolve_testbed, sample_testbed
from fsviz.studies.thread_limits import half
from fsviz.tasks import draw

_CHUNK_SECONDS = 0.7  # what a chunk should take on one ordinary core
MAX_CHUNK = 2048


class EntryTiming(TypedDict):
    """The expected duration of one entry, in seconds."""

    label: str
    method: str
    backbone: str
    per_task: float
    seconds: float


def guess_seconds(dataset: Dataset, backbone: str, method: str, parameters: RawSettings, tasks: Tasks) -> float:
    """About how long these tasks take on one ordinary core, from a count of operations; `estimate` measures it."""
    spec = METHODS[method]
    entry = Entry(backbone, method, spec.title, spec.checked(parameters))
    return len(tasks) * _seconds_per_task(entry, tasks, features.load(dataset, backbone).values.shape[1])


def estimate(spec: EvaluationSpec, seconds: float = 0.25) -> list[EntryTiming]:
    """The expected duration of every entry of a spec on this machine, from a trial of a few tasks.

    seconds  about how long one entry's trial may take
    Rows: label, method, backbone, per_task, seconds.
    """
    dataset = datasets.load(spec["dataset"])
    choices, _ = check_methods(spec.get("methods"))
    tables = {name: features.load(dataset, name) for name in check_backbones(spec.get("backbones"))}
    device = resolved_device(str(spec.get("device", "auto")))
    n_tasks, tasks = _trial_tasks(spec, dataset, tables)
    rows: list[EntryTiming] = []
    with threads(int(spec.get("threads") or half())):
        for entry in entries({"backbones": list(tables), "methods": choices}):
            total = _timed(entry, tables[entry.backbone], tasks, n_tasks, device, seconds)
            rows.append(
                {
                    "label": entry.label,
                    "method": entry.method,
                    "backbone": entry.backbone,
                    "per_task": total / n_tasks,
                    "seconds": total,
                }
            )
    return rows


def _timed(entry: Entry, table: Features, tasks: Tasks, n_tasks: int, device: str, seconds: float) -> float:
    """Seconds for n_tasks. They are worked on in batches, and a batch costs something before its first task.

    A whole batch is timed where that is quick; else the answer lies between what the largest one tried says (its
    share of the cost of a batch is too large) and what two sizes say (their difference is the cost of tasks alone).
    """
    from fsviz.evaluation import chunk_size, evaluate, features_mean

    method = entry.code
    centre = features_mean(table) if method.wants_centre else None  # once per run, not per batch

    def measured(n: int) -> float:
        part, settings = tasks.take(slice(0, n)), dict(entry.parameters)
        start = time.perf_counter()
        evaluate(table, part, method, settings, device=device, centre=centre)
        return time.perf_counter() - start

    shape = (tasks.n_way, tasks.support.shape[2], tasks.query.shape[2], table.values.shape[1])
    batch = max(1, min(chunk_size(*shape, entry.pairwise), n_tasks))
    measured(1)  # the first call loads what later ones have
    small, large = 1, min(batch, len(tasks), 4)
    before = after = measured(small)
    while large > small:
        before, after = after, measured(large)
        if after > seconds / 2 or large >= min(batch, len(tasks)):
            break
        small, large = large, min(4 * large, batch, len(tasks))
    at_most = n_tasks * after / large
    if large in (small, batch):
        return at_most
    per_task = max(after - before, 0.0) / (large - small)
    at_least = math.ceil(n_tasks / batch) * max(after - large * per_task, 0.0) + n_tasks * per_task
    return math.sqrt(at_most * max(at_least, at_most / 16))


def _trial_tasks(spec: EvaluationSpec, dataset: Dataset, tables: Mapping[str, Features]) -> tuple[int, Tasks]:
    if spec.get("testbed") is None and spec.get("sampler") is not None:
        n_tasks = recipe_of(dataset, spec["sampler"]).n_tasks
        few: draw.TaskSpec = {**spec["sampler"], "n_tasks": min(n_tasks, 256)}
        if "distances" in SAMPLERS[str(few.get("sampler", SAMPLER.default))].needs:
            few["sampler"] = "uniform"  # quicker, and as long to classify
        return n_tasks, sample_testbed(dataset, few, 0, tables).tasks
    testbed = resolve_testbed(spec, dataset, tables)
    for table in tables.values():
        check_features(table, testbed)
    return len(testbed.tasks), testbed.tasks.take(slice(0, 256))


def devices() -> list[dict[str, str]]:
    """Devices of this machine, the fastest first: torch's name of each and a title."""
    import torch

    cuda = [
        {"device": f"cuda:{i}", "name": f"{torch.cuda.get_device_name(i)} (cuda:{i})"}
        for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
    ]
    n = cores()
    return [*cuda, {"device": "cpu", "name": f"CPU, {n} core{'s' if n != 1 else ''}"}]


def chunk_tasks(entry: Entry, tasks: Tasks, dims: int) -> int:
    """Tasks per chunk, so that one takes about a second: a rough count of operations, the same on every machine."""
    from fsviz.evaluation import chunk_size

    size = int(np.clip(_CHUNK_SECONDS / _seconds_per_task(entry, tasks, dims), 1, MAX_CHUNK))
    batch = chunk_size(tasks.n_way, tasks.support.shape[2], tasks.query.shape[2], dims, entry.pairwise)
    return size - size % batch if size >= batch else size


def _seconds_per_task(entry: Entry, tasks: Tasks, dims: int) -> float:
    """Gathering the images, then steps of matrix products over ways, then pairs of images where a method needs them."""
    images = tasks.n_way * (tasks.support.shape[2] + tasks.query.shape[2])
    steps = sum(
        int(value)
        for name, value in entry.parameters.items()
        if any(word in name for word in ("step", "iter", "epoch")) and isinstance(value, int | float)
    )
    in_a_step = images
    if entry.batch:
        steps, in_a_step = steps * math.ceil(tasks.n_way * tasks.support.shape[2] / entry.batch), entry.batch
    seconds = images * dims / 2e8 + steps * in_a_step * dims * tasks.n_way * 4 / 2.5e10
    seconds += steps * (in_a_step * tasks.n_way * 3e-8 + 3e-6)  # what a step does to scores, and its own overhead
    if entry.batch:
        seconds += steps * dims * tasks.n_way * 2e-9  # moving the weights is most of a step on few images
    if entry.pairwise:
        seconds += images**2 * (dims + 20 * max(steps, 10)) / 1e10
    return seconds
