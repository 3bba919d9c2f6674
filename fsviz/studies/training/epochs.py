"""Epochs: each follows from the one before, whose state lies in the run's folder.

The weights and moments of Adam of the last epochs are kept (training/). If they are gone, epochs are repeated from the
first weights, which follow from the seed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz import training
from fsviz.errors import BadInput
from fsviz.numerics import chunk_seed, mean_and_ci95
from fsviz.studies.training.inputs import cache_stamp, class_ids_of, draw_tasks, images_of_run, tasks_of_run
from fsviz.studies.training.scoring import accuracies, predict
from fsviz.studies.training.stages import TrainingSpec
from fsviz.workspace import atomic_file

KEPT_STATES = 2  # epochs whose state is kept: a kill may fall between the state of an epoch and its chunk


State = dict[str, np.ndarray]  # of a learner (see training.networks), "best." weights, and numbers of the last epoch


def state_after(spec: TrainingSpec, epoch: int) -> State:
    """The state after so many epochs, from the folder; missing epochs are trained again. Training may have ended
    before."""
    saved = newest_state(spec, epoch)
    state = saved if saved is not None else _first_state(spec)
    while int(state["epoch"]) < epoch and not _is_over(spec, state):
        state = next_state(spec, state)
    return state


def _first_state(spec: TrainingSpec) -> State:
    learner = _learner(spec)
    numbers = {"epoch": np.array(0), "best_epoch": np.array(0), "best_val": np.array(-1.0)}
    return {**learner.arrays(), **_best_weights(learner.weights()), **numbers}


def _is_over(spec: TrainingSpec, state: State) -> bool:
    return int(state["epoch"]) - int(state["best_epoch"]) >= spec["patience"] and int(state["epoch"]) > 0


def next_state(spec: TrainingSpec, state: State) -> State:
    """One epoch further, measured on the validation tasks; the same state where training is over."""
    if _is_over(spec, state):
        return state
    epoch = int(state["epoch"])
    trainer = training.get(spec["method"])
    learner = _learner(spec)
    learner.restore(state)
    module, images = trainer.load(), images_of_run(spec)
    steps = [(module.step(learner, images.inputs, batch, spec), len(batch[0])) for batch in _batches(spec, epoch)]
    sizes = np.array([size for _, size in steps], dtype=float)
    losses, rights = np.array([sums for sums, _ in steps]).T @ (sizes / sizes.sum())
    if not np.isfinite(losses):
        raise BadInput(
            f"Training {trainer.title} left the range of numbers in epoch {epoch + 1} (loss {losses}). Lower --lr"
            + (" or --inner-lr." if trainer.adapts != "nothing" else ".")
        )
    val, half = mean_and_ci95(accuracies(predict(spec, learner, tasks_of_run(spec, "val"))))
    better = float(val) > float(state["best_val"])
    best = _best_weights(learner.weights()) if better else {n: v for n, v in state.items() if n.startswith("best.")}
    numbers = {"epoch": epoch + 1, "loss": losses, "accuracy": rights, "val": float(val), "val_ci95": float(half)}
    numbers |= {
        "best_epoch": epoch + 1 if better else int(state["best_epoch"]),
        "best_val": float(val) if better else float(state["best_val"]),
    }
    return {**learner.arrays(), **best, **{name: np.array(value) for name, value in numbers.items()}}


def _batches(spec: TrainingSpec, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and labels of images, or support and query rows of tasks, in the order of this epoch."""
    seed = chunk_seed(spec["seed"], epoch)
    draw = np.random.default_rng(seed)
    images = images_of_run(spec)
    train = class_ids_of(spec, "train")
    if training.get(spec["method"]).learns_from == "images":
        rows = np.flatnonzero(np.isin(images.class_ids, train))
        rows = rows[draw.permutation(len(rows))]
        labels = np.searchsorted(train, images.class_ids[rows])
        for start in range(0, len(rows), spec["batch"]):
            some = slice(start, start + spec["batch"])
            yield rows[some], labels[some]
        return
    tasks = draw_tasks(spec, train, spec["tasks_per_epoch"], epoch)
    shuffled = draw.permuted(np.tile(np.arange(spec["n_way"]), (len(tasks), 1)), axis=1)[
        ..., None
    ]  # labels mean nothing
    support, query = (np.take_along_axis(ids, shuffled, axis=1) for ids in (tasks.support, tasks.query))
    for start in range(0, len(tasks), spec["tasks_per_step"]):
        some = slice(start, start + spec["tasks_per_step"])
        yield images.rows_of(support[some]), images.rows_of(query[some])


def _best_weights(weights: Mapping[str, np.ndarray]) -> State:
    return {f"best.{name}": value for name, value in weights.items()}


def _learner(spec: TrainingSpec) -> Any:
    module = training.get(spec["method"]).load()
    return module.build(spec, len(spec["split"]["train"]), spec["device"])


def best_learner(spec: TrainingSpec) -> Any:
    """The network of the best epoch, with running statistics of the train images where it has none of its own."""
    return _best_learner_at(spec["folder"], cache_stamp(spec), json.dumps(spec, sort_keys=True))


@lru_cache(maxsize=1)
def _best_learner_at(folder: str, stamp: int, key: str) -> Any:
    from fsviz.training import networks

    spec = json.loads(key)
    state = state_after(spec, spec["epochs"])
    learner = _learner(spec)
    learner.load({name.removeprefix("best."): v for name, v in state.items() if name.startswith("best.")})
    if training.get(spec["method"]).adapts != "nothing":
        images = images_of_run(spec)
        rows = np.flatnonzero(np.isin(images.class_ids, class_ids_of(spec, "train")))
        networks.remember(learner, images.inputs, rows)
    return learner


def state_file(spec: TrainingSpec, epoch: int) -> Path:
    return Path(spec["folder"]) / "training" / f"{epoch:06d}.npz"


def save_state(spec: TrainingSpec, state: State) -> None:
    epoch = int(state["epoch"])
    with atomic_file(state_file(spec, epoch)) as temporary:
        np.savez(temporary, allow_pickle=False, **state)
    for path in state_file(spec, epoch).parent.glob("*.npz"):
        if path.stem.isdigit() and int(path.stem) <= epoch - KEPT_STATES:
            path.unlink(missing_ok=True)


def newest_state(spec: TrainingSpec, epoch: int) -> State | None:
    """The last state in the run's folder that is no later than this epoch; None where none can be read."""
    for path in sorted(state_file(spec, 0).parent.glob("*.npz"), reverse=True):
        if path.stem.isdigit() and int(path.stem) <= epoch:
            try:
                with np.load(path, allow_pickle=False) as arrays:
                    return {name: arrays[name] for name in arrays.files}
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                continue
    return None
