"""Full fine-tuning in a stress test: trains all weights of a backbone on the support images of every task.

The learning rate is chosen on validation tasks once per backbone, and saved in the folder of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fsviz import datasets, evaluation
from fsviz.difficulty.full_finetuning import LEARNING_RATES
from fsviz.errors import BadInput, Missing, NotFinite
from fsviz.records import PAD, Dataset, Predictions, Tasks
from fsviz.records.class_splits import sibling
from fsviz.settings import SEED, Setting, Settings
from fsviz.studies import chunk_data, support_sets
from fsviz.workspace import read_json, write_json

__all__ = ["LEARNING_RATES"]

FINETUNING: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("finetuning_tasks", "Tasks", "Number of tasks for full fine-tuning.", "int", 10, 1, 10_000),
        Setting(
            "finetuning_validation",
            "Validation tasks",
            "Number of tasks that choose the learning rate.",
            "int",
            5,
            1,
            1000,
        ),
        Setting(
            "finetuning_steps", "Steps per task", "Training steps per task of full fine-tuning.", "int", 50, 0, 10_000
        ),
        Setting("finetuning_size", "Pixels per side", "Image size for full fine-tuning.", "int", 128, 16, 1024),
        Setting(
            "finetuning_augment",
            "Augmentation",
            "Share of the training steps on augmented images.",
            "float",
            0.9,
            0,
            1,
        ),
    )
}


def learning_rate(spec: Settings, base: support_sets.SupportSpec, backbone: str) -> float:
    """The best rate of LEARNING_RATES on random validation tasks, chosen once per run and saved in its folder."""
    from fsviz.difficulty.full_finetuning import choose_learning_rate

    path = _rate_file(spec, backbone)
    if path.exists():
        return float(read_json(path)["chosen"])
    tasks = _validation_tasks(spec, base, backbone)

    def accuracy_at(rate: float) -> float:
        try:
            return float(np.mean(evaluation.task_accuracy(finetuned(spec, backbone, tasks, rate, spec["seed"]))))
        except NotFinite:  # the network diverged
            return 0.0

    best, accuracies = choose_learning_rate(accuracy_at)
    write_json(path, {"chosen": best, "accuracy": {f"{rate:g}": value for rate, value in accuracies.items()}})
    return best


def _validation_tasks(spec: Settings, base: support_sets.SupportSpec, backbone: str) -> Tasks:
    """Random tasks of the validation classes if there are enough, else of the same split with another seed."""
    dataset = datasets.load(spec["dataset"])
    table = chunk_data.features_of(spec["dataset"], backbone)
    base = {
        **base,
        "n_tasks": spec["finetuning_validation"],
        "seed": (spec["seed"] + 1) % int(SEED.high),
        "sampler": "uniform",
    }
    counts = np.bincount(table.class_ids, minlength=dataset.n_classes)
    name = sibling(dataset, base["split"], "val")
    val = np.array([], dtype=np.int64) if name is None else dataset.split_class_ids(name)
    if name is not None and (counts[val] >= base["n_shot"] + base["n_query"]).all() and len(val) >= base["n_way"]:
        base["split"] = name
    return support_sets.draw_tasks(base, dataset, {backbone: table})


def finetuned(spec: Settings, backbone: str, tasks: Tasks, rate: float, seed: int, first: int = 0) -> Predictions:
    """Predictions after fine-tuning all weights of a backbone on the support images of each task."""
    import torch

    from fsviz.difficulty.full_finetuning import finetuned_scores

    dataset = datasets.load(spec["dataset"])
    trainable = _trainable(backbone, spec["device"])
    n_tasks, n_way, n_query = tasks.query.shape
    scores = torch.full((n_tasks, n_way, n_way * n_query), -torch.inf)
    for t in range(len(tasks)):
        support_at, query_at = tasks.support[t] != PAD, tasks.query[t] != PAD
        support = _pixels(dataset, tasks.support[t][support_at], trainable.preprocessing, spec["finetuning_size"])
        query = _pixels(dataset, tasks.query[t][query_at], trainable.preprocessing, spec["finetuning_size"])
        labels = torch.from_numpy(np.nonzero(support_at)[0])
        task_scores = finetuned_scores(
            trainable.network,
            trainable.forward,
            support,
            labels,
            query,
            rate,
            spec["finetuning_steps"],
            spec["finetuning_augment"],
            seed + t,
        )
        is_query = torch.from_numpy(np.flatnonzero(query_at))
        for way in labels.unique():
            scores[t, way, is_query] = task_scores[:, way].cpu()
    return evaluation.predictions_from(
        scores,
        torch.from_numpy((tasks.support != PAD).any(axis=2)),
        tasks.query != PAD,
        "Full fine-tuning",
        lambda _: f"{backbone} diverged at learning rate {rate:g}. Exclude it from full fine-tuning.",
        first,
    )


def _pixels(dataset: Dataset, image_ids: np.ndarray, preprocessing: Any, size: int) -> Any:
    """Images (n, 3, size, size) in [0, 1], cropped as by the backbone's own preprocessing."""
    import torch

    fitted = replace(preprocessing, size=(size, size), resize=size if preprocessing.resize else 0)
    stacked = np.stack([fitted.apply(datasets.open_image(dataset, int(i))) for i in image_ids])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255


@lru_cache(maxsize=1)
def _trainable(backbone: str, device: str) -> Any:
    from fsviz.features.backbones import load_trainable

    return load_trainable(backbone.removesuffix("@random"), on=device)


def require_trainable(dataset: Dataset, backbones: Sequence[str]) -> None:
    if not dataset.has_pixels:
        raise Missing(
            f"Full fine-tuning needs images, and {dataset.title} has none here. Leave it out, or add your copy: fsviz "
            "add NAME PATH"
        )
    for name in backbones:
        if "@" in name.removesuffix("@random"):
            raise BadInput(
                f"Full fine-tuning loads a backbone by its name, and {name!r} was made from a checkpoint file. Exclude "
                "it from full fine-tuning."
            )


def _rate_file(spec: Settings, backbone: str) -> Path:
    return Path(spec["folder"]) / "inputs" / f"rate{spec['backbones'].index(backbone)}.json"


def learning_rates(spec: Settings) -> dict[str, Any]:
    """The learning rates chosen so far, per backbone, with the validation accuracies."""
    return {b: read_json(_rate_file(spec, b)) for b in spec["backbones"] if _rate_file(spec, b).exists()}
