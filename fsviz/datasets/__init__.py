"""Datasets: benchmarks as class tables, the embedded demo, photographs, digits, and the user's own images.

names()                      every dataset that can be loaded, the demo first
load(name)                   its record
open_image(dataset, id)      the pixels of one image
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fsviz.errors import Missing, UnknownName
from fsviz.records import Dataset

if TYPE_CHECKING:
    from PIL.Image import Image

BUILT_IN = {"demo": "EmojiCoCo (demo)", "fruit": "Grocery fruit (photographs)", "digits": "Handwritten digits"}
MAX_LOADED = 8  # records kept; a study asks for its dataset at several of its steps
_loaded: dict[str, tuple[object, Dataset]] = {}  # the state of the files, and the record that was read from them


def names() -> list[str]:
    """Every dataset that can be loaded: the built-in ones, the catalog, then the workspace."""
    from fsviz.datasets.saved import workspace_dataset_names

    return [*shipped_names(), *workspace_dataset_names()]


def shipped_names() -> list[str]:
    """The datasets that come with fsviz; they are there whatever happens to the workspace."""
    from fsviz.datasets.catalog import ENTRIES

    return [*BUILT_IN, *ENTRIES]


def load(name: str) -> Dataset:
    """The dataset of this name, with its saved labels and splits; an unknown name is answered with the nearest ones.

    As long as none of its files changes, the same record is given to all: nobody may change it.
    """
    from fsviz.datasets import labels, pixel_attributes
    from fsviz.datasets.saved_splits import with_saved_splits

    state = _state(name)
    cached = _loaded.get(name)
    if cached is None or cached[0] != (state, _is_rooted(cached[1])):
        dataset = with_saved_splits(labels.with_labels(pixel_attributes.with_pixel_attributes(_load(name))))
        cached = (state, _is_rooted(dataset)), dataset
        _loaded.pop(name, None)
        _loaded[name] = cached
        for oldest in list(_loaded)[:-MAX_LOADED]:
            _loaded.pop(oldest, None)
    return cached[1]


def load_with_contexts(name: str) -> Dataset:
    """The dataset of this name; refuses one without images that have contexts."""
    dataset = load(name)
    if dataset.contexts is None or dataset.images is None:
        raise Missing(
            f"{dataset.title} has no images with contexts. Name them with 'fsviz label NAME', or add "
            "images with a CSV that has a column 'context', or as folders concept/context/image."
        )
    return dataset


def _state(name: str) -> object:
    """Changes with the stamp, with the workspace, and when a file is written in its place, by hand for example."""
    from fsviz import workspace

    files = []
    for kind in ("datasets", "splits"):
        with suppress(OSError, ValueError):  # none, not to be read, or no possible name
            for entry in os.scandir(workspace.folder(kind) / name):
                status = entry.stat()
                files.append((entry.path, status.st_mtime_ns, status.st_size, status.st_ino))
    return workspace.home(), stamp(name), sorted(files)


def _is_rooted(dataset: Dataset) -> bool:
    """Whether its images are where the record says."""
    return dataset.root is None or dataset.root.is_dir()


def _load(name: str) -> Dataset:
    from fsviz.datasets.catalog import ENTRIES, load_entry

    if name == "demo":
        from fsviz.datasets.demo import load_demo

        return load_demo()
    if name == "fruit":
        from fsviz.datasets.fruit import load_fruit

        return load_fruit()
    if name == "digits":
        from fsviz.datasets.digits import load_digits_dataset
        from fsviz.datasets.saved import has_features

        return replace(load_digits_dataset(), has_features=has_features(name))
    if name in ENTRIES:
        return load_entry(name)

    from fsviz.datasets.saved import load_workspace_dataset, workspace_dataset_names

    if name not in workspace_dataset_names():
        raise UnknownName("dataset", name, names(), "Add your own with 'fsviz add NAME PATH'.")
    return load_workspace_dataset(name)


def title(name: str) -> str:
    """The readable name of a dataset, without reading its tables where the catalog knows it."""
    from fsviz.datasets.catalog import ENTRIES

    if name in BUILT_IN:
        return BUILT_IN[name]
    return ENTRIES[name].title if name in ENTRIES else load(name).title


def stamp(name: str) -> str:
    """Changes whenever the dataset must be read again: what ships never does, the workspace's parts by their times."""
    from fsviz import workspace

    times = []
    for kind in ("datasets", "features", "splits"):
        with suppress(OSError, ValueError):  # not there, not to be read, or no possible name
            times.append((workspace.folder(kind) / name).stat().st_mtime_ns)
    for kind in ("attributes", "labels"):
        with suppress(OSError, ValueError):
            times.append((workspace.folder(kind) / f"{name}.parquet").stat().st_mtime_ns)
    return "-".join(map(str, times))


def open_image(dataset: Dataset, image_id: int) -> Image:
    """The pixels of one image as RGB."""
    if not dataset.has_pixels or dataset.images is None:
        raise Missing(f"{dataset.title} has no images here. Add your copy with 'fsviz add NAME PATH'.")
    if not 0 <= image_id < len(dataset.images):
        raise UnknownName("image", image_id, [], f"{dataset.title} has images 0 to {len(dataset.images) - 1}.")
    if dataset.origin == "demo":
        from fsviz.datasets.demo import open_demo_image

        return open_demo_image(dataset, image_id)
    if dataset.origin == "fruit":
        from fsviz.datasets.fruit import open_fruit_image

        return open_fruit_image(image_id)
    if dataset.origin == "digits":
        from fsviz.datasets.digits import open_digit

        return open_digit(image_id)
    from fsviz.datasets.images import open_file

    return open_file(dataset.images["path"].iloc[image_id], root=dataset.root)
