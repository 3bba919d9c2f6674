"""Difficulty measures of any tasks of a dataset.

tasks -> inputs that the measures need, computed once -> one number per task and measure
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.difficulty import attribute_gaps
from fsviz.difficulty.measures import MEASURES, Measure, MeasureInputs, get
from fsviz.errors import FsvizError, Missing
from fsviz.features import text_similarity
from fsviz.records import PAD, Dataset, Features, Predictions, Tasks
from fsviz.records.class_splits import training_classes
from fsviz.splits.class_features import ClassFeatures, mean_features
from fsviz.splits.clustering import DIVERGENCES
from fsviz.studies import chunk_data, evaluate
from fsviz.studies.prediction.tasks import PredictionSpec, class_overlaps
from fsviz.studies.thread_limits import limit_threads
from fsviz.tasks import draw

OF_IMAGES = {"images", "support", "queries"}  # needs that features of the tasks' own images meet
UNDEFINED = "Undefined for these tasks."


def measure_tasks(
    tasks: Tasks, dataset: Dataset, backbone: str, names: Sequence[str] | None = None, method: str = "protonet"
) -> pd.DataFrame:
    """Measure tasks: one row per task, one column per measure.

    names   measures to compute; without names, every measure that the dataset allows
    method  method whose predictions are measured
    """
    table = features.load(dataset, backbone)
    evaluation.check_tasks(table, tasks)
    measures = [get(name) for name in names] if names else list(MEASURES.values())
    values = of_images(tasks, table, measures)
    for measure in (measure for measure in measures if measure.name not in values):
        try:
            values[measure.name] = measured(measure, tasks, dataset, table, method)
        except FsvizError:
            if names:
                raise
    ordered = {measure.name: values[measure.name] for measure in measures if measure.name in values}
    return pd.DataFrame(ordered, index=pd.RangeIndex(len(tasks), name="task"))


def undefined_measures(tasks: Tasks, dataset: Dataset, backbone: str) -> dict[str, str]:
    """Measures that are undefined for these tasks, with the reason, judged by the first two tasks."""
    table, reasons = features.load(dataset, backbone), {}
    for measure in MEASURES.values():
        try:
            if not np.isfinite(measured(measure, tasks.take(slice(0, 2)), dataset, table)).any():
                reasons[measure.name] = UNDEFINED
        except FsvizError as error:
            reasons[measure.name] = str(error)
    return reasons


def measured(
    measure: Measure, tasks: Tasks, dataset: Dataset, table: Features, method: str | Predictions = "protonet"
) -> np.ndarray:
    """One measure (T,) of tasks whose images have features.

    method  method whose predictions are measured, or its predictions
    """
    if OF_IMAGES & set(measure.needs):
        return of_images(tasks, table, [measure])[measure.name]
    if "predictions" in measure.needs:
        predictions = (
            method
            if isinstance(method, Predictions)
            else evaluate.predict_tasks(dataset, table.backbone, method, {}, tasks)
        )
        return measure(MeasureInputs(predictions=predictions))
    (need,) = measure.needs
    return measure(MeasureInputs(**_INPUTS[need](tasks, dataset, table)))


def of_images(tasks: Tasks, table: Features, measures: Iterable[Measure] = MEASURES.values()) -> dict[str, np.ndarray]:
    """Measures (T,) by name, of those that need features of the tasks' own images; shared inputs are computed once."""
    from fsviz.difficulty.task_statistics import task_views

    values_by_name: dict[str, np.ndarray] = {}
    of_image = [measure for measure in measures if OF_IMAGES & set(measure.needs)]
    with limit_threads():
        for setting in ("supervised", "semi"):
            of_setting = [m for m in of_image if (m.needs == ("support",)) == (setting == "supervised")]
            for where, view in task_views(table, tasks, setting) if of_setting else ():
                for measure in of_setting:
                    values_by_name.setdefault(measure.name, np.full(len(tasks), np.nan))[where] = measure(view)
    return values_by_name


# --- what measures need ------------------------------------------------------------------------------------------


def _distances(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    if dataset.taxonomy is None:
        raise Missing(f"{dataset.title} has no taxonomy, so semantic distances are not available.")
    split = dataset.split_of(tasks.class_ids)
    distances = _distances_at(dataset.name, split, "", chunk_data.stamp(dataset.name))
    return {"positions": tasks.positions(dataset.split_class_ids(split)), "distances": distances}


def _feature_distances(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    split = dataset.split_of(tasks.class_ids)
    distances = _distances_at(dataset.name, split, table.backbone, chunk_data.stamp(dataset.name))
    return {"positions": tasks.positions(dataset.split_class_ids(split)), "feature_distances": distances}


@lru_cache(maxsize=8)
def _distances_at(dataset: str, split: str, backbone: str, stamp: str) -> np.ndarray:
    loaded = datasets.load(dataset)
    return (
        draw.class_distances(loaded, split, "features", backbone=backbone)
        if backbone
        else draw.class_distances(loaded, split)
    )


def _overlaps(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    spec: PredictionSpec = {
        "dataset": dataset.name,
        "backbone": table.backbone,
        "split": dataset.split_of(tasks.class_ids),
    }
    class_ids, overlaps = class_overlaps(spec)
    return {"positions": tasks.positions(class_ids), "overlaps": overlaps}


def _train_divergence(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    train = training_classes(dataset, tasks)
    if train is None:
        raise Missing(
            f"These tasks have no training classes apart from their own in {dataset.title}. Sample tasks from a test "
            "split, or save a split on the page Train–test distance."
        )
    classes = _classes_at(dataset.name, table.backbone, chunk_data.stamp(dataset.name))
    return {"train_divergence": divergence_from(classes, train, tasks)}


@lru_cache(maxsize=4)
def _classes_at(dataset: str, backbone: str, stamp: str) -> ClassFeatures:
    loaded = datasets.load(dataset)
    return mean_features(loaded, features.load(loaded, backbone))


def divergence_from(classes: ClassFeatures, train: np.ndarray, tasks: Tasks) -> np.ndarray:
    """Symmetrised Kullback-Leibler divergence of every task (T,) from the training classes.

    Both distributions are over the classes of both; one is around the centre of the training classes, one around the
    centre of the task.
    """
    import torch

    base = classes.points[classes.rows_of(train)]
    divergences = np.full(len(tasks), np.nan)
    n_ways = (tasks.class_ids != PAD).sum(axis=1)
    for ways in np.unique(n_ways):
        which = np.flatnonzero(n_ways == ways)
        class_ids = tasks.class_ids[which]
        own = classes.points[classes.rows_of(class_ids[class_ids != PAD])].reshape(len(which), ways, -1)
        centres = np.stack([np.broadcast_to(base.mean(axis=0), own[:, 0].shape), own.mean(axis=1)], axis=1)
        squared = np.concatenate([_squared(centres, base[None]), _squared(centres, own)], axis=2)
        log_p = torch.log_softmax(-torch.from_numpy(squared), dim=-1)
        divergences[which] = DIVERGENCES["symmetric_kl"].of(log_p, log_p, log_p).numpy()
    return divergences


def _squared(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Squared distances (T, a, b) of points (T, a, d) and (T or 1, b, d)."""
    lengths = np.square(first).sum(-1)[:, :, None] + np.square(second).sum(-1)[:, None, :]
    return np.maximum(lengths - 2 * first @ np.swapaxes(second, 1, 2), 0.0)


def _attributes(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    return {"attributes": {name: gap.gap for name, gap in attribute_gaps.measure_gaps(dataset, tasks).items()}}


def _contexts(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    if dataset.images is None or "context" not in dataset.images.columns:
        raise Missing(f"{dataset.title} has no contexts of its images.")
    codes = pd.factorize(dataset.image_contexts())[0]
    codes[dataset.image_contexts() == ""] = PAD
    support, query = tasks.support, tasks.query
    of_support = np.where(support == PAD, PAD, codes[support])
    of_query = np.where(query == PAD, PAD, codes[query])
    same = (of_query[:, :, :, None] == of_support[:, :, None, :]).any(axis=3)
    return {"contexts": np.where(of_query == PAD, np.nan, same)}


def _text_margins(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    if dataset.images is None or "context" not in dataset.images.columns:
        raise Missing(f"{dataset.title} has no contexts of its images.")
    models = text_similarity.possible_models(dataset)
    if not models:
        raise Missing(
            f"{dataset.title} has no features of an image-text model. Extract them: "
            f"fsviz extract {dataset.name} --backbone open_clip:ViT-B-32/openai"
        )
    margins = _context_margins_at(dataset.name, models[0], chunk_data.stamp(dataset.name))
    return {"text_margins": np.where(tasks.query == PAD, np.nan, margins[tasks.query])}


@lru_cache(maxsize=4)
def _context_margins_at(dataset: str, model: str, stamp: str) -> np.ndarray:
    """Similarity of every image (N,) to its context text minus its class text."""
    similarity = text_similarity.measure(text_similarity.defaults(dataset, model, "all"))
    margins = np.full(len(datasets.load(dataset).image_class_ids()), np.nan)
    margins[similarity.image_ids] = similarity.context - similarity.concept
    return margins


_INPUTS: dict[str, Callable[[Tasks, Dataset, Features], dict[str, Any]]] = {
    "distances": _distances,
    "feature_distances": _feature_distances,
    "overlaps": _overlaps,
    "train_divergence": _train_divergence,
    "attributes": _attributes,
    "contexts": _contexts,
    "text_margins": _text_margins,
}
