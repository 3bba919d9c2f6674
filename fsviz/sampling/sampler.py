"""The declaration of a sampler, which pages and commands read, and the pool it samples from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fsviz.records import Tasks
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, Setting

Need = Literal["distances", "images", "contexts", "attributes", "concepts"]


@dataclass(frozen=True)
class Pool:
    """Classes and images to sample tasks from. Arrays only: samplers never see a taxonomy or features.

    class_ids        (C,) the classes that may be sampled
    distances        (C, C) between them, or None
    image_class_ids  (N,) class of every image_id, PAD if an image may not be sampled; None where images are unknown
    contexts         (N,) the context of every image ("" if it has none), or None
    attributes       name -> (N,) its value for every image
    groups           (N,) group of every image: images of a group must not stand on both sides of a task; None where
                     every image is its own
    class_names      by class_id, for sentences
    concepts         (V, C) which of class_ids each concept of the hierarchy above them holds, or None
    two_levels       those concepts stand side by side right above the classes, as alphabets above characters do
    """

    class_ids: np.ndarray
    distances: np.ndarray | None = None
    image_class_ids: np.ndarray | None = None
    contexts: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)
    groups: np.ndarray | None = None
    class_names: Sequence[str] | None = None
    concepts: np.ndarray | None = None
    two_levels: bool = False


@dataclass(frozen=True)
class Sampler:
    """A way to draw tasks.

    sample    sample(pool, n_tasks, seed, **its settings) -> Tasks; the same seed gives the same tasks
    settings  its own, in the order in which a page shows them
    needs     what the pool must hold in addition to classes
    needs_if  what it must hold too while a setting of this name is on
    samples_images  whether it samples images too; otherwise it samples classes, and n_shot and n_query images are added
    order     position on pages
    formula   LaTeX, if there is one; symbols names every symbol in it
    excluded  excluded(pool, **its settings) -> class_id: reason, of the classes that no task of it can hold
    """

    name: str
    title: str
    description: str
    sample: Callable[..., Tasks]
    settings: tuple[Setting, ...]
    needs: tuple[Need, ...] = ()
    needs_if: Mapping[str, Need] = field(default_factory=dict)
    samples_images: bool = False
    order: int = 100
    formula: str = ""
    symbols: str = ""
    paper: str = ""
    excluded: Callable[..., dict[int, str]] | None = None

    @property
    def varies(self) -> bool:
        """Its tasks differ in shape: it takes no number of classes that all of them have."""
        return N_WAY.name not in {setting.name for setting in self.settings}

    @property
    def all_settings(self) -> tuple[Setting, ...]:
        """Its own settings, and the images per class where they are dealt afterwards."""
        return self.settings if self.samples_images else (*self.settings, N_SHOT, N_QUERY)
