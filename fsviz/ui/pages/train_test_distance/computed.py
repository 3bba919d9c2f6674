"""Cached results of the page, shared by all visitors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.records import ClassSplit, Dataset, Progress
from fsviz.records.graphs import Tanglegram
from fsviz.settings import RawSettings, Value
from fsviz.ui.parts import access, shell
from fsviz.ui.parts.caching import cache_data

Spec = tuple[tuple[str, Value], ...]  # settings by name, as a cache can hold them


def key(spec: Mapping[str, Value]) -> Spec:
    return tuple(sorted(spec.items()))


def fits(wanted: float) -> bool:
    """Whether so many seconds may be computed for this visitor at once; says why not."""
    most = access.limit("seconds")
    if wanted <= most:
        return True
    st.info(
        f"This takes about {wanted:,.0f} s. Visitors of this shared server may ask for {most:,.0f} s at a time: take "
        "fewer random starts or dimensions, at the left.",
        icon="⏳",
    )
    return False


@cache_data("Averaging the features of every class", 16)
def classes(dataset: Dataset, backbone: str) -> study.ClassFeatures:
    return study.class_features(dataset, backbone)


@cache_data("Looking for the split", 256)
def found(dataset: Dataset, spec: Spec) -> study.SplitResult:
    return study.find_split(dataset, classes(dataset, str(dict(spec)["backbone"])), **dict(spec))


@cache_data(most=256)
def agreement(dataset: Dataset, spec: Spec) -> study.SplitAgreement:
    return study.agreement(dataset, classes(dataset, str(dict(spec)["backbone"])), **dict(spec))


@cache_data(most=256)
def nearest_at_random(dataset: Dataset, spec: Spec) -> tuple[float, float]:
    known = classes(dataset, str(dict(spec)["backbone"]))
    return study.nearest_at_random(known, found(dataset, spec).split)


def over_targets(dataset: Dataset, spec: Spec) -> list[study.SplitResult]:
    """Other divergences than the one asked for: the same whichever that is."""
    return _over_targets(dataset, tuple(pair for pair in spec if pair[0] != "divergence"))


@cache_data("Looking for splits with other divergences", 64)
def _over_targets(dataset: Dataset, spec: Spec) -> list[study.SplitResult]:
    return study.over_targets(dataset, classes(dataset, str(dict(spec)["backbone"])), **dict(spec))


def over_dims(spec: RawSettings, progress: Progress) -> pd.DataFrame:
    """For `compute_with_progress`: settings and the dataset's name in one."""
    dataset = shell.load_dataset(str(spec["dataset"]))
    settings = {name: value for name, value in spec.items() if name != "dataset"}
    known = classes(dataset, str(settings["backbone"]))
    return study.agreement_over_dims(dataset, known, progress=progress, **settings)


@cache_data("Setting splits beside each other", 64)
def comparisons(dataset: Dataset, spec: Spec) -> pd.DataFrame:
    return study.comparison_table(dataset, classes(dataset, str(dict(spec)["backbone"])), found(dataset, spec))


@cache_data("Setting splits beside each other", 64)
def beside(dataset: Dataset, spec: Spec, name: str) -> ClassSplit:
    """One of the splits that stand beside the one that is shown."""
    known = classes(dataset, str(dict(spec)["backbone"]))
    return study.compared_splits(dataset, known, found(dataset, spec))[name].split


@cache_data("Turning the branches", 64)
def tanglegram(dataset: Dataset, left: str, right: str, class_ids: tuple[int, ...]) -> Tanglegram:
    return study.tanglegram(dataset, left, right, np.array(class_ids))


@cache_data("Comparing trees", 32)
def hop_table(dataset: Dataset, which: tuple[str, ...]) -> pd.DataFrame:
    return study.hop_table(dataset, list(which), study.all_with_features(dataset, which))
