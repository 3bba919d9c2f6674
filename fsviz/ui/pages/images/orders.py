"""Orders of the page Images: shuffled, by class, by an attribute, by neighbours, or by the errors of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from fsviz import features
from fsviz.datasets import filtering
from fsviz.datasets.filtering import BY_ERRORS, BY_NEIGHBOURS
from fsviz.features import neighbours
from fsviz.features.backbones import title_of
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.tasks import draw
from fsviz.ui.parts import image_runs, links
from fsviz.ui.parts.caching import cached_call

ORDER = Setting("order", "Sort by", "", "choice", filtering.SHUFFLED)
_TITLES = {BY_NEIGHBOURS: "neighbours of its own class", BY_ERRORS: "errors in the selected run"}


@dataclass(frozen=True)
class Order:
    """An order of the images.

    name    shuffled, class, an attribute, BY_NEIGHBOURS or BY_ERRORS
    values  the numbers (N,) that it goes by, low to high, NaN last; None if the engine knows them
    of      the denominators (N,) of the badges
    note    the source of the numbers, one sentence
    """

    name: str
    values: np.ndarray | None = None
    of: np.ndarray | None = None
    note: str = ""

    def badges(self, dataset: Dataset, image_ids: np.ndarray) -> list[str]:
        """The value of each image; blank in an order without values."""
        if self.values is not None and self.of is not None:
            pairs = zip(np.abs(self.values[image_ids]), self.of[image_ids], strict=True)
            return ["–" if np.isnan(value) else f"{value:.0f} of {of:.0f}" for value, of in pairs]
        if self.name not in dataset.attributes or dataset.images is None:
            return [""] * len(image_ids)
        values = dataset.images[self.name].iloc[image_ids]
        return ["–" if pd.isna(v) else f"{v:.3g}" if isinstance(v, float) else str(v) for v in values]


def pick(dataset: Dataset, run: str) -> Order:
    """The order that the visitor picks; `run` is the selected run, the newest counts if there is none."""
    runs = image_runs.methods(dataset)
    options = [filtering.SHUFFLED, filtering.BY_CLASS, *dataset.attributes]
    options += [BY_NEIGHBOURS] if features.available(dataset) else []
    options += [BY_ERRORS] if runs else []
    links.value_of(ORDER.with_(choices={name: name for name in options}), ORDER.name)
    name = st.selectbox(
        ORDER.title,
        options,
        key=ORDER.name,
        format_func=lambda name: _TITLES.get(name, name.replace("_", " ")),
        help="By neighbours: images with the fewest of their class first. By errors: most errors first.",
    )
    if name == BY_NEIGHBOURS:
        return _by_neighbours(dataset)
    if name == BY_ERRORS:
        run = run or next(iter(runs))
        return _by_errors(dataset, run, runs[run])
    return Order(name)


def as_listed(dataset: Dataset, image_ids: np.ndarray) -> Order:
    """The images in the order of a link that lists them."""
    places = np.full(len(dataset.image_class_ids()), np.nan)
    places[image_ids] = np.arange(len(image_ids))
    return Order("as listed", places)


def _by_neighbours(dataset: Dataset) -> Order:
    backbone = draw.default_backbone(dataset)
    near = cached_call(neighbours.own_class_neighbours, dataset, backbone, words="Comparing features", keep=4)
    n = len(dataset.image_class_ids())
    sample = f" of a sample of {len(near.image_ids):,} images, the others last" if near.is_sample else ""
    note = f"Number: images of its class among the nearest{sample}, {title_of(backbone)} features."
    return Order(BY_NEIGHBOURS, near.among(n), np.full(n, near.near.shape[1]), note)


def _by_errors(dataset: Dataset, run: str, title: str) -> Order:
    accuracy, n_queries = image_runs.accuracy(dataset, run)
    errors = np.rint((1 - accuracy) * n_queries)
    return Order(BY_ERRORS, -errors, n_queries, f"Number: errors as a query in {title}.")
