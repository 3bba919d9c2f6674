"""Evaluates every selected method on every selected backbone, on the same tasks.

    dataset -> features (backbones) -> tasks (a testbed, or drawn here) -> predictions -> accuracy by coarsity

`spec` says what an evaluation is made of, `requests` checks it, `tasks` finds or draws its tasks, `run_features` and
`timing` serve its chunks, `results` reads what they hold, and `preview` evaluates a few tasks at once. `prepare`
resolves a spec once and freezes the tasks into the run's folder, so that deleting the testbed later does not matter.
A user method is a file as a name, "./mine.py" (see fsviz.user.methods). If it fails it has no results, and the others
go on. Predictions made elsewhere are a run too (see fsviz.user.predictions).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from fsviz import datasets, features
from fsviz.errors import BrokenCode, NotFinite
from fsviz.evaluation import resolved_device
from fsviz.numerics import threads
from fsviz.records import Dataset, Predictions, Testbed
from fsviz.settings import RawSettings
from fsviz.studies.evaluate.preview import matching_entries, predict_tasks, preview_testbed, spread_evenly
from fsviz.studies.evaluate.requests import (
    SETTINGS,
    check_backbones,
    check_features,
    check_methods,
    check_seed,
    check_text,
    requires_local,
    scale_notes,
)
from fsviz.studies.evaluate.results import (
    CORRELATIONS,
    NUMBERS,
    EntryResult,
    Evaluation,
    EvaluationSummary,
    correct_file,
    correct_in,
    failures,
    first_correct,
    numbers_file,
    numbers_in,
    numbers_of,
    predictions,
    result_of,
    summary_of,
    task_numbers,
)
from fsviz.studies.evaluate.run_features import centre_for, centre_of_run, features_of_run, fingerprint_of
from fsviz.studies.evaluate.spec import (
    Entry,
    EvaluationSpec,
    MethodChoice,
    ResolvedSpec,
    RunTestbed,
    TasksShape,
    chunks_of,
    entries,
    entry_tasks,
    is_complete,
    parts,
    run_testbeds,
)
from fsviz.studies.evaluate.tasks import (
    DEFAULTS,
    TASK_SETTINGS,
    both_samplers,
    feasible_sampler,
    fit,
    resolve_testbed,
    resolve_testbeds,
    sample_testbed,
    testbed_titles,
    testbeds,
)
from fsviz.studies.evaluate.timing import MAX_CHUNK, EntryTiming, chunk_tasks, devices, estimate, guess_seconds
from fsviz.studies.study import Arrays, Study
from fsviz.studies.thread_limits import half
from fsviz.tasks import snapshot
from fsviz.user import predictions as user_predictions
from fsviz.workspace import atomic_file

__all__ = [
    "CORRELATIONS",
    "DEFAULTS",
    "TASK_SETTINGS",
    "Entry",
    "EntryResult",
    "EntryTiming",
    "EvaluationSpec",
    "EvaluationSummary",
    "MethodChoice",
    "ResolvedSpec",
    "RunTestbed",
    "both_samplers",
    "centre_for",
    "chunks_of",
    "devices",
    "entries",
    "entry_tasks",
    "estimate",
    "feasible_sampler",
    "first_correct",
    "fit",
    "guess_seconds",
    "is_complete",
    "matching_entries",
    "parts",
    "predict_tasks",
    "predictions",
    "preview_testbed",
    "requires_local",
    "resolve_testbed",
    "result_of",
    "run_testbeds",
    "sample_testbed",
    "scale_notes",
    "spread_evenly",
    "task_numbers",
    "testbed_titles",
    "testbeds",
]


def check(spec: RawSettings) -> EvaluationSpec:
    """The settings that a spec gives, checked; methods and tasks are checked when the run is prepared."""
    return cast(EvaluationSpec, SETTINGS.requested(spec))


def prepare(spec: dict[str, Any], folder: Path) -> ResolvedSpec:
    """Checks a spec, resolves its names and freezes its tasks into `folder`/inputs."""
    dataset = datasets.load(spec["dataset"])
    if "predictions" in spec:
        return _prepare_predictions(spec, dataset, folder)
    choices, failed = check_methods(spec.get("methods"))
    tables = {name: features.load(dataset, name) for name in check_backbones(spec.get("backbones"))}
    testbeds = resolve_testbeds(cast(EvaluationSpec, spec), dataset, tables)
    device = resolved_device(str(spec.get("device", "auto")))
    settled_testbeds = []
    for i, testbed in enumerate(testbeds):
        for table in tables.values():
            check_features(table, testbed)
        snapshot.freeze(folder, testbed, snapshot.testbed_file(i))
        settled_testbeds.append(_run_testbed(testbed))
    settled: Any = {
        **spec,
        "methods": choices,
        "backbones": list(tables),
        "device": device,
        "seed": check_seed(spec),
        "threads": int(spec.get("threads") or half()),
        **{name: settled_testbeds[0][name] for name in ("recipe", "testbed_name", "tasks")},
        **({"testbeds": settled_testbeds} if len(settled_testbeds) > 1 else {}),
        "features": {name: fingerprint_of(table) for name, table in tables.items()},
        **({"failed": failed} if failed else {}),
    }
    settled["chunk_tasks"] = [
        spec.get("chunk") or chunk_tasks(entry, testbeds[entry.testbed].tasks, tables[entry.backbone].values.shape[1])
        for entry in entries(settled)
    ]
    return settled


def _prepare_predictions(spec: dict[str, Any], dataset: Dataset, folder: Path) -> ResolvedSpec:
    """Freezes predictions that were made elsewhere next to their tasks; only counting is left to do."""
    testbed = resolve_testbed(cast(EvaluationSpec, {**spec, "testbed": check_text(spec, "testbed")}), dataset, {})
    file = Path(check_text(spec, "predictions")).expanduser().absolute()
    answer = user_predictions.read(file, testbed, dataset)
    snapshot.freeze(folder, testbed, snapshot.testbed_file(0))
    user_predictions.save_snapshot(folder, answer)
    settled: Any = {
        **spec,
        "predictions": file.name,
        "methods": [{"name": check_text(spec, "name"), "parameters": {}, "own": {"predictions": file.name}}],
        "backbones": [str((spec.get("backbones") or [user_predictions.ELSEWHERE])[0])],
        "device": user_predictions.ELSEWHERE,
        "seed": check_seed(spec),
        "threads": 1,
        **_run_testbed(testbed),
        "features": {},
        "chunk_tasks": [MAX_CHUNK],
    }
    return settled


def _run_testbed(testbed: Testbed) -> RunTestbed:
    """The entry of one saved testbed in a resolved spec."""
    tasks = testbed.tasks
    shape: TasksShape = {
        "n_tasks": len(tasks),
        "n_way": tasks.n_way,
        "n_shot": tasks.support.shape[2],
        "n_query": tasks.query.shape[2],
        "setting": tasks.setting,
        "digest": snapshot.digest(tasks),
    }
    return {"testbed_name": testbed.name, "recipe": dict(testbed.recipe), "tasks": shape}


def n_bytes(spec: ResolvedSpec) -> float:
    """About how large the run's results are: twelve bytes per query and entry, and four numbers per task, twice."""
    shape = spec["tasks"]
    return len(entries(spec)) * shape["n_tasks"] * (12 * shape["n_way"] * shape["n_query"] + 64)


def run_chunk(spec: ResolvedSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The predictions of one entry for the queries of one range of tasks."""
    from fsviz.evaluation import evaluate

    entry = entries(spec)[part]
    tasks = entry_tasks(spec, entry, start, stop)
    if "predictions" in entry.own:
        answer = user_predictions.load_snapshot(spec["folder"], start, stop)
        return _chunk_of(user_predictions.only_available(numbers_of(answer), answer), answer)
    fingerprint = tuple(sorted(spec["features"][entry.backbone].items()))
    stored = (spec["dataset"], entry.backbone, fingerprint, datasets.stamp(spec["dataset"]))
    table = features_of_run(*stored)
    unit_length = bool(entry.parameters.get("unit_length"))
    method = entry.code
    centre = None
    if method.wants_centre:
        centre = centre_of_run(*stored, spec["folder"], snapshot.testbed_file(entry.testbed), unit_length)
    try:
        with threads(spec["threads"]):
            answer = evaluate(table, tasks, method, dict(entry.parameters), spec["device"], centre=centre, first=start)
    except (BrokenCode, NotFinite) as error:
        if not entry.own:
            raise
        none = Predictions.blank(tasks.query.shape)
        unknown = np.full((len(NUMBERS), len(tasks)), np.nan)
        return {**_chunk_of(unknown, none), "failed": np.array(str(error))}
    return _chunk_of(numbers_of(answer), answer)


def _chunk_of(numbers: np.ndarray, answer: Predictions) -> dict[str, np.ndarray]:
    return {"numbers": numbers, **answer.arrays()}


def collect(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> Evaluation:
    right = correct_in(spec, chunks)
    files = [snapshot.testbed_file(i) for i in range(len(run_testbeds(spec)))]
    return Evaluation(
        spec,
        numbers_in(spec, chunks),
        right,
        [snapshot.measures(spec["folder"], file) for file in files],
        [snapshot.tasks(spec["folder"], file, stop=right.shape[1]) for file in files],
        failures(spec, chunks),
    )


def partial(spec: ResolvedSpec, chunks: Sequence[Arrays]) -> EvaluationSummary:
    """Accuracy, interval, top-5 and quartiles of every entry over the tasks finished so far."""
    measures = [snapshot.measures(spec["folder"], snapshot.testbed_file(i)) for i in range(len(run_testbeds(spec)))]
    return summary_of(spec, numbers_in(spec, chunks), measures, failures(spec, chunks))


def summarise(result: Evaluation) -> EvaluationSummary:
    """The same with intervals over images and classes, and correlations with the measures of tasks."""
    return summary_of(result.spec, result.numbers, result.measures, result.failed, result)


def finish(spec: ResolvedSpec, result: Evaluation) -> dict[str, Any]:
    """Saves the numbers of every task and which first queries were right: who compares runs need not read chunks."""
    if result.failed and np.isnan(result.numbers[:, 0]).all():
        raise BrokenCode(" ".join(dict.fromkeys(result.failed.values())))
    for path, array in ((numbers_file(spec), result.numbers), (correct_file(spec), result.right)):
        with atomic_file(path) as temporary:
            np.save(temporary, array, allow_pickle=False)
    return {}


STUDY = Study(
    name="evaluate",
    title="evaluation",
    question="Which method works best here?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summarise,
    partial=partial,
    finish=finish,
    n_bytes=n_bytes,
    requires_local=requires_local,
)
