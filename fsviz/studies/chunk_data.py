"""Data that the chunks of a run share: features, read once for all of them, and the folder of the images."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from fsviz import datasets, features
from fsviz.records import Features
from fsviz.settings import RawSettings
from fsviz.workspace import home


def stamp(dataset: str) -> str:
    """A text that changes with the workspace or with the files of a dataset."""
    return f"{home()} {datasets.stamp(dataset)}"


def folder_of_images(spec: RawSettings) -> Path | None:
    """The folder of the images of a spec's dataset; None if they come with fsviz."""
    return datasets.load(str(spec["dataset"])).root


def features_of(dataset: str, backbone: str) -> Features:
    """The features, read once for all chunks of a run while the workspace does not change."""
    return _features_at(dataset, backbone, stamp(dataset))


@lru_cache(maxsize=4)
def _features_at(dataset: str, backbone: str, stamp: str) -> Features:
    return features.load(datasets.load(dataset), backbone)
