"""The classes that tasks are sampled from, and their testbeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsviz.analyses import semantic_sampling as study
from fsviz.records import Dataset, Predictions, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.tasks import draw
from fsviz.tasks.draw import Recipe
from fsviz.tasks.repeats import RepeatCounts, count_repeats
from fsviz.taxonomy import DAG, Dag
from fsviz.ui.parts import caching, controls

MAX_IMAGES = 5_000_000  # images of a testbed that are sampled on the page


@dataclass(frozen=True)
class Classes:
    """The classes that tasks are sampled from, and their distance ("" if it is not available)."""

    dataset: Dataset
    split: str
    distance: str = ""
    dag: str = str(DAG.default)
    backbone: str = ""

    @property
    def n(self) -> int:
        return len(self.dataset.split_class_ids(self.split))

    @property
    def names(self) -> list[str]:
        return controls.class_names(self.dataset, self.split)

    @property
    def distances(self) -> np.ndarray | None:
        if not self.distance:
            return None
        return caching.distances(self.dataset, self.split, self.distance, self.dag, self.backbone)

    @property
    def graph(self) -> Dag | None:
        if self.dataset.taxonomy is None:
            return None
        return caching.graph(self.dataset, self.split, self.dag)

    def recipe(self, **settings: object) -> Recipe:
        how = {"distance": self.distance or None, "dag": self.dag, "backbone": self.backbone}
        return draw.recipe_for(self.dataset, split=self.split, **how, **settings)


def class_names(classes: Classes, class_ids: np.ndarray) -> list[str]:
    order = classes.dataset.split_class_ids(classes.split)
    names = dict(zip(order.tolist(), classes.names, strict=True))
    return [names[int(class_id)] for class_id in class_ids]


def draw_images(classes: Classes, recipe: Recipe) -> Testbed | None:
    """The testbed with its images; None if it has none, or too many to sample on the page."""
    if SAMPLERS[recipe.sampler].samples_images:
        return draw_testbed(classes, recipe)
    if "n_shot" not in recipe.settings or recipe.n_tasks * draw.max_images({**recipe.values}) > MAX_IMAGES:
        return None
    return _draw_with_images(classes.dataset, recipe, classes.distances)


@caching.cache_data("Sampling tasks", 24)
def _draw(dataset: Dataset, recipe: Recipe, _distances: np.ndarray | None) -> Testbed:
    return draw.sample_testbed(dataset, recipe, distances=_distances)


@caching.cache_data("Sampling images", 6)
def _draw_with_images(dataset: Dataset, recipe: Recipe, _distances: np.ndarray | None) -> Testbed:
    return draw.sample_testbed(dataset, recipe, distances=_distances)


@caching.cache_data(most=64, hashes={Testbed: lambda bed: bed.name})
def repeat_counts(dataset: Dataset, bed: Testbed, _distances: np.ndarray | None) -> RepeatCounts | None:
    return count_repeats(dataset, bed, _distances)


@caching.cache_data(most=64, hashes={Testbed: lambda bed: bed.name})
def quick_predictions(dataset: Dataset, bed: Testbed, positions: tuple[int, ...], backbone: str) -> Predictions | None:
    return study.quick_predictions(dataset, bed.tasks.take(np.array(positions)), backbone)


def draw_testbed(classes: Classes, recipe: Recipe) -> Testbed:
    return _draw(classes.dataset, recipe, classes.distances)
