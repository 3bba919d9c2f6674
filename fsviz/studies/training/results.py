"""The learning curve and the accuracy on test tasks, from finished chunks of a training run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

import numpy as np

from fsviz import evaluation, training
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import SIDES, Predictions
from fsviz.studies.study import Arrays
from fsviz.studies.training.inputs import tasks_of_run
from fsviz.studies.training.scoring import accuracies
from fsviz.studies.training.stages import TrainingSpec, entries
from fsviz.tables import Column, Table
from fsviz.training import FINETUNE, TITLES

ACCURACIES = Table(
    "Accuracy on test tasks",
    Column("label", "Method"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("ci95_classes", "± over classes", "points", 1, kind="number"),
)


class TrainingEpoch(TypedDict):
    """A point of the learning curve, accuracies in percent."""

    epoch: int
    loss: float
    train_accuracy: float
    val_accuracy: float
    val_ci95: float | None


class UnreadImage(TypedDict):
    """An image that could not be read."""

    image_id: int
    reason: str


class HeldOutResult(TypedDict, total=False):
    """Accuracy on test tasks of the trained method, or of Finetune; intervals over images and classes are
    there once the run is finished."""

    method: str
    label: str
    n_tasks: int
    accuracy: float
    ci95: float | None
    rate: float
    ci95_images: float | None
    ci95_classes: float | None


class TrainingSummary(TypedDict, total=False):
    """Partial results of a run; the backbone and its file are there once it is finished."""

    dataset: str
    method: str
    split: str
    requested: Any
    reached: Any
    n_classes: dict[str, int]
    settings: dict[str, Any]
    n_images: int
    skipped: list[UnreadImage]
    curve: list[TrainingEpoch]
    n_epochs: int
    best_epoch: int | None
    val_accuracy: float | None
    rates: dict[str, float]
    chance: float
    results: list[HeldOutResult]
    backbone: str
    checkpoint: str


def test_accuracy(spec: TrainingSpec, chunks: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """The accuracy of every test task of a finished run (T,), by what was measured; `test_tasks` are the tasks."""
    parts: dict[int, list[tuple[int, np.ndarray]]] = {}
    for chunk in chunks:
        if "entry" in chunk:
            predictions = Predictions.from_arrays(chunk)
            parts.setdefault(int(chunk["entry"]), []).append((int(chunk["start"]), accuracies(predictions)))
    ordered = {
        entry: sorted(parts_of_entry, key=lambda part: part[0]) for entry, parts_of_entry in sorted(parts.items())
    }
    names = entries(spec)
    return {
        names[entry]: np.concatenate([values for _, values in parts_of_entry])
        for entry, parts_of_entry in ordered.items()
    }


def summary_of(spec: TrainingSpec, chunks: list[Arrays], whole: bool = False) -> TrainingSummary:
    curve: list[TrainingEpoch] = []
    skipped: list[UnreadImage] = []
    rates: dict[str, float] = {}
    answers: dict[int, list[tuple[int, Arrays]]] = {}
    best: TrainingSummary = {"best_epoch": None, "val_accuracy": None}
    for chunk in chunks:
        if "reasons" in chunk:
            lost = zip(chunk["skipped"].tolist(), chunk["reasons"].tolist(), strict=True)
            skipped += [{"image_id": image_id, "reason": reason} for image_id, reason in lost]
        elif "best_val" in chunk:
            best = {"best_epoch": int(chunk["best_epoch"]), "val_accuracy": 100 * float(chunk["best_val"])}
            if np.isfinite(chunk["loss"]):
                curve.append(
                    {
                        "epoch": int(chunk["epoch"]),
                        "loss": float(chunk["loss"]),
                        "train_accuracy": 100 * float(chunk["accuracy"]),
                        "val_accuracy": 100 * float(chunk["val"]),
                        "val_ci95": finite(100 * chunk["val_ci95"]),
                    }
                )
        elif "rates" in chunk:
            rates = {f"{rate:g}": 100 * float(v) for rate, v in zip(chunk["rates"], chunk["val"], strict=True)}
        else:
            answers.setdefault(int(chunk["entry"]), []).append((int(chunk["start"]), chunk))
    split = spec["split"]
    return {
        "dataset": spec["dataset"],
        "method": spec["method"],
        "split": split["name"],
        "requested": split["recipe"].get("divergence"),
        "reached": split["recipe"].get("reached"),
        "n_classes": {side: len(split[side]) for side in SIDES},
        "settings": {name: spec[name] for name in training.get(spec["method"]).settings},
        "n_images": spec["n_images"] - len(skipped),
        "skipped": skipped,
        "curve": curve,
        "n_epochs": len(curve),
        **best,
        "rates": rates,
        "chance": 100 / spec["n_way"],
        "results": [_result(spec, entry, answers[entry], whole) for entry in sorted(answers)],
    }


def _result(spec: TrainingSpec, entry: int, parts: list[tuple[int, Arrays]], whole: bool) -> HeldOutResult:
    """Accuracy in percent with its 95% interval over test tasks; of all tasks also over images and over classes."""
    chunks = [chunk for _, chunk in sorted(parts, key=lambda pair: pair[0])]
    predictions = Predictions.join([Predictions.from_arrays(chunk) for chunk in chunks])
    accuracy = accuracies(predictions)
    mean, half = mean_and_ci95(accuracy)
    which = entries(spec)[entry]
    row: HeldOutResult = {"method": which, "label": TITLES[which], "n_tasks": len(predictions)}
    row |= {"accuracy": 100 * float(mean), "ci95": finite(100 * half)}
    if which == FINETUNE:
        row["rate"] = float(chunks[0]["rate"])
    if whole:
        tasks = tasks_of_run(spec, "test")
        right = evaluation.correct_queries(predictions)
        row["ci95_images"], row["ci95_classes"] = (
            finite(100 * evaluation.estimate(accuracy, over, right, tasks).ci95) for over in ("images", "classes")
        )
    return row
