"""Training as a run: one network, trained one way on the train classes of a split, measured on its test classes.

    dataset -> images made small -> epochs on the train classes, the best kept by validation tasks -> test tasks
                                                              -> the backbone trained:NAME

"split" in a spec is "own", the name of a saved split, or what a split file holds. A chunk reads a part of the images,
trains an epoch, or answers some test tasks: `stages` says which, `inputs` reads images and draws tasks, `epochs`
trains, `testing` answers test tasks, and `results` reads finished chunks. After Arnold & Sha 2021, section 5.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fsviz import datasets, features, training
from fsviz.datasets import saved_splits
from fsviz.features import trained
from fsviz.numerics import threads
from fsviz.records import SIDES
from fsviz.settings import RawSettings, Schema, Setting, Settings, to_args
from fsviz.studies.study import Arrays, Study
from fsviz.studies.thread_limits import half
from fsviz.studies.training.class_split import METHOD, OWN, check_classes, fit, read_split, split_of
from fsviz.studies.training.epochs import (
    KEPT_STATES,
    best_learner,
    newest_state,
    next_state,
    save_state,
    state_after,
    state_file,
)
from fsviz.studies.training.inputs import class_ids_of, dataset_of_run, image_ids_of, tasks_of_run, test_tasks
from fsviz.studies.training.results import ACCURACIES, TrainingSummary, summary_of, test_accuracy
from fsviz.studies.training.stages import TrainingSpec, entries, parts, stage_of
from fsviz.studies.training.testing import RATE_TASKS, answers, finetune_rate, rate_accuracies
from fsviz.training import FINETUNE, TRAINERS

__all__ = [
    "ACCURACIES",
    "METHOD",
    "OWN",
    "SETTINGS",
    "STUDY",
    "TrainingSummary",
    "class_ids_of",
    "command",
    "fit",
    "partial",
    "read_split",
    "seconds",
    "split_of",
    "test_accuracy",
    "test_tasks",
]

SETTINGS: dict[str, Setting] = {name: s for trainer in TRAINERS.values() for name, s in trainer.settings.items()}
NAME = Setting("name", "Name", "What the trained backbone is called; chosen from the settings if empty.", "text", "")
DEVICE = Setting("device", "Device", "Where the network is trained: auto, cpu, cuda, mps.", "text", "auto")


def check(spec: RawSettings) -> TrainingSpec:
    """The spec with the settings of its method; its split is resolved when the run is prepared."""
    from fsviz.features.extraction import check_pixels

    trainer = training.get(str(spec.get("method") or METHOD.default))
    own = {s.name: s for s in (METHOD, NAME, DEVICE)}
    schema = Schema({**own, **trainer.settings}, required=("dataset",), of=trainer.title, nested=("split",))
    dataset = datasets.load(schema.requested(spec)["dataset"])
    check_pixels(dataset)
    return {**schema.check(spec, **fit(dataset, spec).values), "split": spec.get("split") or OWN}


def prepare(spec: TrainingSpec, folder: Path) -> TrainingSpec:
    """The spec with its split by class names, and how much there is to do."""
    from fsviz.features import device, pixels

    trainer = training.get(spec["method"])
    dataset = datasets.load(spec["dataset"])
    parts, split, recipe = split_of(dataset, spec["split"])
    check_classes(dataset, trainer, spec, parts, split)
    if spec["name"]:
        trained.check_free(spec["name"])
    used = image_ids_of(dataset, np.concatenate([parts[side] for side in SIDES]))
    return {
        **spec,
        "split": {**saved_splits.split_record(dataset, parts, recipe), "name": split},
        "device": device.choose(spec["device"]),
        "threads": half(),
        "fingerprint": features.fingerprint(dataset),
        "n_images": len(used),
        "n_parts": len(pixels.parts_of(used)),
    }


def command(spec: Settings, split: str = "") -> str:
    """The command that trains the same."""
    trainer = training.get(spec["method"])
    settings = {n: spec[n] for n, s in trainer.settings.items() if n in spec and spec[n] != s.default}
    name = split or (spec["split"]["name"] if isinstance(spec["split"], Mapping) else str(spec["split"]))
    words_ = ["fsviz", "train", spec["dataset"], "--method", trainer.name]
    return shlex.join([*words_, *(["--split", name] if name != OWN else []), *to_args(settings, trainer.settings)])


def n_bytes(spec: TrainingSpec) -> float:
    """Small images, and the weights with what Adam keeps of them for the last epochs."""
    weights = 4e6 * (spec["width"] / 64) ** 2 * (12.5 if spec["network"] == "resnet12" else 0.5)
    return 3.0 * spec["n_images"] * spec["side"] ** 2 + (KEPT_STATES + 1) * 4 * weights


def seconds(spec: Settings, n_train: int) -> float:
    """About how long a run takes on one core, from what an image cost on one machine: a word for a page, no promise.

    n_train  images of the train classes
    """
    image = 1.1e-3 * (spec["width"] / 32) ** 1.5 * (spec["side"] / 32) ** 2
    image *= 30 if spec["network"] == "resnet12" else 1
    trainer = training.get(spec["method"])
    learning, answering = {"nothing": (1.0, 0.35), "head": (1.8, 1.1), "all": (4.3, 3.4)}[trainer.adapts]
    if spec.get("order") == "second" and trainer.adapts == "all":
        learning *= 2
    task = spec["n_way"] * (spec["n_shot"] + spec["n_query"])
    per_epoch = n_train if trainer.learns_from == "images" else spec["tasks_per_epoch"] * task
    tests = spec["epochs"] * spec["val_tasks"] + spec["n_tasks"]
    finetuned = (spec["n_tasks"] + 4 * RATE_TASKS) * 2.7 * task if spec.get("finetune_steps") else 0
    return image * (spec["epochs"] * per_epoch * learning + tests * task * answering + finetuned)


def run_chunk(spec: TrainingSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Images that were read, or the losses of an epoch and the accuracy of validation tasks, or answers to tasks."""
    stage, place = stage_of(spec, part)
    if stage == "read":
        return _read(spec, start)
    with threads(int(spec["threads"])):
        if stage == "epoch":
            return _epoch_chunk(spec, place)
        if stage == "rate":
            return _rate_chunk(spec)
        return _test_chunk(spec, place, start, stop)


def message(spec: TrainingSpec, part: int, start: int, stop: int) -> str:
    """The progress of an epoch, or the name of the chunk that finds a learning rate; "" for other chunks."""
    stage, place = stage_of(spec, part)
    if stage != "epoch":
        return "the learning rate of Finetune" if stage == "rate" else ""
    state = newest_state(spec, place + 1)
    if state is None:
        return f"epoch {place + 1} of {spec['epochs']}"
    n, best = int(state["epoch"]), float(state["best_val"])
    if n <= place:
        return f"ended after epoch {n}, best on validation tasks {best:.1%}"
    return (
        f"epoch {n} of {spec['epochs']}: loss {float(state['loss']):.3f}, validation tasks {float(state['val']):.1%}, "
        f"best {best:.1%}"
    )


def _read(spec: TrainingSpec, place: int) -> dict[str, np.ndarray]:
    from fsviz.features import pixels

    dataset = dataset_of_run(spec)
    ids = image_ids_of(dataset, class_ids_of(spec, *SIDES))
    part = pixels.read_part(dataset, spec["side"], pixels.parts_of(ids)[place])
    lost = [pair for pair in part.skipped if pair[0] in set(ids.tolist())]
    return {
        "skipped": np.array([image_id for image_id, _ in lost], np.int64),
        "reasons": np.array([reason for _, reason in lost], np.str_),
    }


def _epoch_chunk(spec: TrainingSpec, place: int) -> dict[str, np.ndarray]:
    before = state_after(spec, place)
    state = next_state(spec, before)
    trained_now = int(state["epoch"]) > int(before["epoch"])
    if trained_now:
        save_state(spec, state)
    names = ("loss", "accuracy", "val", "val_ci95")
    best = {name: state[name] if trained_now else np.array(np.nan) for name in names}
    return {**best, "epoch": state["epoch"], "best_epoch": state["best_epoch"], "best_val": state["best_val"]}


def _rate_chunk(spec: TrainingSpec) -> dict[str, np.ndarray]:
    from fsviz.training import finetuning

    return {"rates": np.array(finetuning.RATES), "val": np.array(rate_accuracies(spec))}


def _test_chunk(spec: TrainingSpec, entry: int, start: int, stop: int) -> dict[str, np.ndarray]:
    tasks = tasks_of_run(spec, "test").take(slice(start, stop))
    which = entries(spec)[entry]
    rate = finetune_rate(spec) if which == FINETUNE else 0.0
    return {"entry": np.array(entry), "rate": np.array(rate)} | answers(spec, which, tasks, rate).arrays()


@dataclass(frozen=True)
class TrainingResult:
    """Finished chunks of a training run."""

    spec: TrainingSpec
    chunks: Sequence[Arrays]


def partial(spec: TrainingSpec, chunks: Sequence[Arrays]) -> TrainingSummary:
    """The learning curve so far, and the accuracy on the test tasks that were answered."""
    return summary_of(spec, list(chunks))


def summarise(result: TrainingResult) -> TrainingSummary:
    """The learning curve, and the accuracy on the test tasks with all intervals."""
    return summary_of(result.spec, list(result.chunks), whole=True)


def finish(spec: TrainingSpec, result: TrainingResult) -> TrainingSummary:
    """Saves the network of the best epoch as a backbone; returns its name and file."""
    learner = best_learner(spec)
    weights = {n.removeprefix("backbone."): v for n, v in learner.weights().items() if n.startswith("backbone.")}
    run = Path(spec["folder"]).name
    name = trained.free_name(spec["name"] or fitting_name(spec), run)
    accuracy = 100 * float(test_accuracy(spec, result.chunks)[spec["method"]].mean())
    facts = {name: spec[name] for name in ("network", "width", "side", "dataset", "method")}
    facts |= {"run": run, "split": spec["split"]["name"], "recipe": spec["split"]["recipe"]}
    facts |= {"train": spec["split"]["train"], "accuracy": accuracy}
    path = trained.save(name, {n: v for n, v in weights.items() if not n.endswith("num_batches_tracked")}, facts)
    n_epochs = sum(1 for chunk in result.chunks if "best_val" in chunk and np.isfinite(chunk["loss"]))
    for file in state_file(spec, 0).parent.glob("*.npz"):
        if not file.stem.isdigit() or int(file.stem) < n_epochs:
            file.unlink(missing_ok=True)
    return {"backbone": f"{trained.PREFIX}{name}", "checkpoint": str(path)}


def fitting_name(spec: TrainingSpec) -> str:
    """A name for the trained network: demo-maml-hard-seed0."""
    parts = (spec["dataset"], spec["method"], spec["split"]["name"], f"seed{spec['seed']}")
    return "-".join("".join(c if c.isalnum() or c in "._+=" else "-" for c in part).strip("-.") for part in parts)[:90]


STUDY = Study(
    name="training",
    title="training",
    settings=Schema({s.name: s for s in (METHOD, NAME, DEVICE)} | SETTINGS, required=("dataset", "split")),
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=TrainingResult,
    summarise=summarise,
    partial=partial,
    finish=finish,
    message=message,
    n_bytes=n_bytes,
    reads_images=True,
)
