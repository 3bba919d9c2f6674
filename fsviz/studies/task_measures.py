"""How hard is each task? Every measure that a dataset allows, for any tasks of it.

tasks -> what measures need of the dataset, each need found once -> one number per task and measure
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
from fsviz.splits.class_features import ClassFeatures, mean_features
from fsviz.splits.clustering import DIVERGENCES
from fsviz.studies import chunk_data, evaluate
from fsviz.studies.prediction.tasks import Spec, class_overlaps
from fsviz.studies.thread_limits import limit_threads
from fsviz.tasks import draw

OF_IMAGES = {"images", "support", "queries"}  # needs that features of the tasks' own images meet
TRAIN = "train"


def measure_tasks(
    tasks: Tasks, dataset: Dataset, backbone: str, wanted: Sequence[str] | None = None, method: str = "protonet"
) -> pd.DataFrame:
    """One row per task, one column per measure; a measure that was not asked for by name is left out where it cannot
    be known.

    method  whose answers those of "predictions" are about
    """
    table = features.load(dataset, backbone)
    evaluation.check_tasks(table, tasks)
    chosen = [get(name) for name in wanted] if wanted else list(MEASURES.values())
    values = of_images(tasks, table, chosen)
    for measure in (measure for measure in chosen if measure.name not in values):
        try:
            values[measure.name] = measured(measure, tasks, dataset, table, method)
        except FsvizError:
            if wanted:
                raise
    ordered = {measure.name: values[measure.name] for measure in chosen if measure.name in values}
    return pd.DataFrame(ordered, index=pd.RangeIndex(len(tasks), name="task"))


def unknown(tasks: Tasks, dataset: Dataset, backbone: str) -> dict[str, str]:
    """Measures that these tasks cannot have, and why, in a sentence; by a look at the first of them."""
    table, why = features.load(dataset, backbone), {}
    for measure in MEASURES.values():
        try:
            if not np.isfinite(measured(measure, tasks.take(slice(0, 2)), dataset, table)).any():
                why[measure.name] = "It is not defined for tasks like these."
        except FsvizError as error:
            why[measure.name] = str(error)
    return why


def measured(
    measure: Measure, tasks: Tasks, dataset: Dataset, table: Features, method: str | Predictions = "protonet"
) -> np.ndarray:
    """One measure (T,) of tasks whose images have features.

    method  whose answers a measure of answers is about, or the answers
    """
    if OF_IMAGES & set(measure.needs):
        return of_images(tasks, table, [measure])[measure.name]
    if "predictions" in measure.needs:
        said = (
            method
            if isinstance(method, Predictions)
            else evaluate.predict_tasks(dataset, table.backbone, method, {}, tasks)
        )
        return measure(MeasureInputs(predictions=said))
    (need,) = measure.needs
    return measure(MeasureInputs(**_FOUND[need](tasks, dataset, table)))


def of_images(tasks: Tasks, table: Features, chosen: Iterable[Measure] = MEASURES.values()) -> dict[str, np.ndarray]:
    """Those of the chosen measures that need features of the tasks' own images, by name (T,); what they share is found
    once for all of them."""
    from fsviz.difficulty.task_statistics import task_views

    values_by_name: dict[str, np.ndarray] = {}
    of_image = [measure for measure in chosen if OF_IMAGES & set(measure.needs)]
    with limit_threads():
        for setting in ("supervised", "semi"):
            seen = [m for m in of_image if (m.needs == ("support",)) == (setting == "supervised")]
            for where, view in task_views(table, tasks, setting) if seen else ():
                for measure in seen:
                    values_by_name.setdefault(measure.name, np.full(len(tasks), np.nan))[where] = measure(view)
    return values_by_name


# --- what measures need ------------------------------------------------------------------------------------------


def _distances(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    if dataset.taxonomy is None:
        raise Missing(f"{dataset.title} has no taxonomy that says how far apart these classes are in meaning.")
    split = dataset.split_of(tasks.class_ids)
    distances = _distances_at(dataset.name, split, "", chunk_data.stamp(dataset.name))
    return {"positions": tasks.positions(dataset.split_class_ids(split)), "distances": distances}


def _feature_distances(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    split = dataset.split_of(tasks.class_ids)
    distances = _distances_at(dataset.name, split, table.backbone, chunk_data.stamp(dataset.name))
    return {"positions": tasks.positions(dataset.split_class_ids(split)), "feature_distances": distances}


@lru_cache(maxsize=8)
def _distances_at(dataset: str, split: str, backbone: str, stamp: str) -> np.ndarray:
    known = datasets.load(dataset)
    return (
        draw.class_distances(known, split, "features", backbone=backbone)
        if backbone
        else draw.class_distances(known, split)
    )


def _overlaps(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    asked: Spec = {"dataset": dataset.name, "backbone": table.backbone, "split": dataset.split_of(tasks.class_ids)}
    class_ids, confusions = class_overlaps(asked)
    return {"positions": tasks.positions(class_ids), "overlaps": confusions}


def _train_divergence(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    train = dataset.splits.get(TRAIN)
    if train is None:
        raise Missing(f"{dataset.title} has no split {TRAIN!r}, so it is not known which classes are to be trained on.")
    if np.isin(tasks.class_ids, train).any():
        raise Missing("Classes of these tasks are among those to train on. Draw tasks from another split.")
    classes = _classes_at(dataset.name, table.backbone, chunk_data.stamp(dataset.name))
    return {"train_divergence": divergence_from(classes, train, tasks)}


@lru_cache(maxsize=4)
def _classes_at(dataset: str, backbone: str, stamp: str) -> ClassFeatures:
    loaded = datasets.load(dataset)
    return mean_features(loaded, features.load(loaded, backbone))


def divergence_from(classes: ClassFeatures, train: np.ndarray, tasks: Tasks) -> np.ndarray:
    """How far every task (T,) is from the classes to train on, by the symmetrised divergence of Kullback and Leibler:
    one distribution over the classes of both is around the centre of the train classes, one around the task's."""
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
        raise Missing(f"It is not known in which contexts the images of {dataset.title} were taken.")
    codes = pd.factorize(dataset.image_contexts())[0]
    codes[dataset.image_contexts() == ""] = PAD
    support, query = tasks.support, tasks.query
    of_support = np.where(support == PAD, PAD, codes[support])
    of_query = np.where(query == PAD, PAD, codes[query])
    same = (of_query[:, :, :, None] == of_support[:, :, None, :]).any(axis=3)
    return {"contexts": np.where(of_query == PAD, np.nan, same)}


def _text_margins(tasks: Tasks, dataset: Dataset, table: Features) -> dict[str, Any]:
    if dataset.images is None or "context" not in dataset.images.columns:
        raise Missing(f"It is not known in which contexts the images of {dataset.title} were taken.")
    models = text_similarity.possible_models(dataset)
    if not models:
        raise Missing(
            f"No image-text model has seen the images of {dataset.title}. Extract features of one, such as "
            f"'fsviz extract {dataset.name} --backbone open_clip:ViT-B-32/openai'."
        )
    pull = _pull_at(dataset.name, models[0], chunk_data.stamp(dataset.name))
    return {"text_margins": np.where(tasks.query == PAD, np.nan, pull[tasks.query])}


@lru_cache(maxsize=4)
def _pull_at(dataset: str, model: str, stamp: str) -> np.ndarray:
    """Of every image (N,), how much nearer it is to the word for its context than to that for its class."""
    similarity = text_similarity.measure(text_similarity.defaults(dataset, model, "all"))
    pull = np.full(len(datasets.load(dataset).image_class_ids()), np.nan)
    pull[similarity.image_ids] = similarity.context - similarity.concept
    return pull


_FOUND: dict[str, Callable[[Tasks, Dataset, Features], dict[str, Any]]] = {
    "distances": _distances,
    "feature_distances": _feature_distances,
    "overlaps": _overlaps,
    "train_divergence": _train_divergence,
    "attributes": _attributes,
    "contexts": _contexts,
    "text_margins": _text_margins,
}
