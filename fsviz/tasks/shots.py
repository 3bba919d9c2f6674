"""The default number of support images of a dataset: 1 if ProtoNet classifies almost everything with 5.

Near 100%, tasks hardly differ in accuracy and methods cannot be told apart. A probe of a few uniform tasks decides: the
whole 95% interval of its accuracy must be above TOO_EASY.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fsviz import datasets, evaluation, features, sampling
from fsviz.errors import FsvizError
from fsviz.records import Dataset, Features
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, TOO_EASY, Settings
from fsviz.tasks import draw

N_TASKS = 300
TOO_HARD = 0.5  # accuracy of ProtoNet with 1 shot below which the usual shots stay
CEILING = 0.95  # accuracy above which pages offer fewer shots
METHOD = "protonet"


@dataclass(frozen=True)
class DefaultShots:
    """The default number of support images of a dataset.

    title     of the dataset
    n_probed  support images per class of the probe
    accuracy  mean accuracy of ProtoNet in the probe, from 0 to 1
    """

    title: str
    n_shot: int
    n_probed: int
    accuracy: float

    def describe(self) -> str:
        """The reason in a sentence; "" if the default is as usual."""
        if self.n_shot == self.n_probed:
            return ""
        return (
            f"With {self.n_probed}, ProtoNet classifies {self.accuracy:.0%} of the queries of {self.title} correctly."
        )


def default_shots(dataset: Dataset, shape_of: Callable[[str, str], Settings]) -> DefaultShots | None:
    """The default for tasks of this dataset; None if no probe is possible.

    shape_of  ways, shots and queries that a split has with the features of a backbone
    """
    try:
        split, backbone = draw.default_split(dataset), draw.default_backbone(dataset)
        table, class_ids = features.load(dataset, backbone), dataset.split_class_ids(split)
        version = (datasets.stamp(dataset.name), json.dumps(table.key, sort_keys=True), table.values.shape)
        key = (dataset.name, backbone, *version, class_ids.tobytes())
        if key not in _PROBED:
            if len(_PROBED) > 100:
                _PROBED.clear()
            _PROBED[key] = _choose(dataset, table, class_ids, shape_of(split, backbone))
        return _PROBED[key]
    except FsvizError:  # features that cannot be read: whoever needs them says so
        return None


_PROBED: dict[tuple[object, ...], DefaultShots] = {}


def _choose(dataset: Dataset, table: Features, class_ids: np.ndarray, shape: Settings) -> DefaultShots:
    n_shot = shape[N_SHOT.name]
    accuracy, half_width = _probe(dataset, table, class_ids, shape)
    is_too_easy = n_shot > 1 and accuracy - half_width > TOO_EASY
    if is_too_easy and _probe(dataset, table, class_ids, {**shape, N_SHOT.name: 1})[0] >= TOO_HARD:
        return DefaultShots(dataset.title, 1, n_shot, accuracy)
    return DefaultShots(dataset.title, n_shot, n_shot, accuracy)


def _probe(dataset: Dataset, table: Features, class_ids: np.ndarray, shape: Settings) -> tuple[float, float]:
    """Mean accuracy of ProtoNet on uniform tasks of these classes, and the half-width of its 95% interval."""
    tasks = sampling.sample_uniform(class_ids, shape[N_WAY.name], N_TASKS, seed=0)
    tasks = sampling.assign_images(
        tasks,
        table.image_class_ids(len(dataset.image_class_ids())),
        shape[N_SHOT.name],
        shape[N_QUERY.name],
        seed=0,
        groups=dataset.image_groups(),
        class_names=dataset.classes["class_name"].tolist(),
    )
    summary = evaluation.summary(evaluation.evaluate(table, tasks, METHOD))
    return summary["accuracy"], summary["ci95"]
