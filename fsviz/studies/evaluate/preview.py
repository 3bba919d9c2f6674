"""A few tasks evaluated at once, and the recorded run that already has the results."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from fsviz import features
from fsviz.records import Dataset, Predictions, Tasks, Testbed
from fsviz.settings import RawSettings
from fsviz.studies.evaluate.requests import check_backbones, check_features, check_seed
from fsviz.studies.evaluate.run_features import centre_for, fingerprint_of
from fsviz.studies.evaluate.spec import EvaluationSpec, RunTestbed, entries, is_complete, run_testbeds
from fsviz.studies.evaluate.tasks import recipe_of, resolve_testbed
from fsviz.studies.thread_limits import limit_threads
from fsviz.tasks import snapshot


def matching_entries(spec: EvaluationSpec, recorded: Any, dataset: Dataset) -> list[int]:
    """Numbers of the recorded run's entries that are what a spec asks for, in the spec's order; none unless all are
    there, on the same tasks and on features that have not changed since.

    spec  one testbed or sampler, and methods with all their parameters
    """
    if not is_complete(recorded) or recorded["dataset"] != dataset.name or "predictions" in recorded:
        return []
    if set(recorded["backbones"]) != set(spec["backbones"]):  # the images that all of them have decide the tasks
        return []
    which = [i for i, testbed in enumerate(run_testbeds(recorded)) if _is_testbed(spec, testbed, dataset)]
    own = [(i, e) for i, e in enumerate(entries(recorded)) if which and e.testbed == which[0] and not e.own]
    entry_indices = [((e.backbone, e.method, e.parameters), i) for i, e in own]
    indices = [
        next((i for key, i in entry_indices if key == (e.backbone, e.method, e.parameters)), None)
        for e in entries(spec)
    ]
    if None in indices or not indices:
        return []
    same = (recorded["features"].get(b) == fingerprint_of(features.load(dataset, b)) for b in spec["backbones"])
    return cast(list[int], indices) if all(same) else []


def _is_testbed(spec: EvaluationSpec, testbed: RunTestbed, dataset: Dataset) -> bool:
    """Whether a recorded testbed is the one that a spec names or would draw: a name follows from all settings."""
    if spec.get("sampler") is not None:
        return testbed["testbed_name"] == recipe_of(dataset, spec["sampler"], check_seed(spec)).name
    if testbed["testbed_name"] != spec.get("testbed"):
        return False
    from fsviz.sampling.testbeds import load_testbed

    return testbed["tasks"]["digest"] == snapshot.digest(load_testbed(str(spec["testbed"]), dataset).tasks)


def preview_testbed(dataset: Dataset, spec: EvaluationSpec, n_tasks: int = 200) -> Testbed:
    """A few of the tasks a spec would evaluate: drawn like them, or spread evenly over its testbed."""
    tables = {name: features.load(dataset, name) for name in check_backbones(spec.get("backbones"))}
    if spec.get("sampler") is not None:
        few = min(n_tasks, recipe_of(dataset, spec["sampler"]).n_tasks)
        spec = {**spec, "sampler": {**spec["sampler"], "n_tasks": few}}
    testbed = resolve_testbed(spec, dataset, tables)
    for table in tables.values():
        check_features(table, testbed)
    if len(testbed.tasks) > n_tasks:
        which = spread_evenly(len(testbed.tasks), n_tasks)
        testbed = Testbed(testbed.name, testbed.tasks.take(which), testbed.recipe)
    return testbed


def spread_evenly(n_tasks: int, most: int) -> np.ndarray:
    """All positions of a testbed, or `most` of them that are evenly spread over it."""
    return np.unique(np.linspace(0, n_tasks - 1, min(n_tasks, most)).round().astype(int))


def predict_tasks(dataset: Dataset, backbone: str, method: str, parameters: RawSettings, tasks: Tasks) -> Predictions:
    """Predictions of one method for these tasks, not recorded."""
    from fsviz.evaluation import evaluate

    table = features.load(dataset, backbone)
    centre = centre_for(method, dataset, table, tasks, bool(parameters.get("unit_length")))
    with limit_threads():
        return evaluate(table, tasks, method, dict(parameters), centre=centre)
