"""Fit ways, shots and queries to a dataset: the one rule of all commands, pages and functions.

A value that was given stays; whoever draws the tasks refuses it if the dataset cannot give it. A default is lowered to
what the dataset can give, and `Fit.describe` says so. Ways are lowered to the number of classes; images until the
smallest class of the split has enough, in the order of `fsviz.settings.largest_images`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsviz import features
from fsviz.records import Dataset
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import max_per_side
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, SHAPE, RawSettings, Setting, Settings, Value, largest_images
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCE, DISTANCES

_FEW = 8  # classes: with fewer, tasks of the usual ways have nearly the same classes


@dataclass(frozen=True)
class Fit:
    """Ways, shots and queries that a dataset can give.

    values   by name, those that the sampler has; what was given is among them as it was given
    lowered  name -> the default that was lowered
    why      the reason, as the start of a sentence
    """

    values: Settings
    lowered: Mapping[str, int]
    why: str = ""

    def describe(self, used: RawSettings | None = None) -> str:
        """A sentence that says which defaults were lowered and why; "" if none was.

        used  the settings in use: one that somebody changed since is left out
        """
        used = {**self.values, **(used or {})}
        told = [
            f"{name} is {self.values[name]} instead of {usual}"
            for name, usual in self.lowered.items()
            if used[name] == self.values[name]
        ]
        return f"{self.why}, so {_joined(told)}." if told else ""


def fit(
    dataset: Dataset,
    given: RawSettings,
    usual: RawSettings,
    backbones: Sequence[str] = (),
    *,
    choice: bool = False,
    varied: bool = False,
) -> Fit:
    """The ways, shots and queries of tasks.

    given      settings of tasks as somebody gave them; None is not given
    usual      defaults of the others
    backbones  whose features images must have
    choice     a search picks the support, out of at least twice as many images as shots
    varied     tasks are compared with each other by their classes, so they must not all hold the same ones
    """
    given = {name: value for name, value in given.items() if value is not None}
    split = str(given.get("split") or draw.default_split(dataset))
    n_classes = draw.check_n_classes(dataset, split)
    sampler = SAMPLERS.get(str(given.get("sampler") or usual.get("sampler") or "uniform"))
    if sampler is None:  # whoever draws refuses it
        return Fit({}, {})
    defaults = {N_WAY.name: N_WAY.default, **usual}
    has = {setting.name for setting in sampler.all_settings}
    wanted = {
        name: int(draw.SETTINGS[name].check(given.get(name, defaults.get(name))))
        for name in SHAPE
        if name in has and (name in given or name in defaults)
    }
    values, reasons = dict(wanted), []
    free = [name for name in values if name not in given]
    whose = dataset.title if split == "all" else f"split {split!r} of {dataset.title}"
    if N_WAY.name in free:
        few = varied and n_classes < _FEW
        values[N_WAY.name] = min(values[N_WAY.name], max(2, n_classes // 2) if few else n_classes)
        rest = ", and tasks of more would hold nearly the same ones" if few else ""
        reasons += [f"{whose} has {n_classes} classes{rest}"] if values[N_WAY.name] < wanted[N_WAY.name] else []
    images = [name for name in (N_SHOT.name, N_QUERY.name) if name in free and values.get(N_SHOT.name)]
    known = dataset.images is not None or dataset.n_images is not None
    if images and known and not given.get("skip_small"):
        usable = _usable(dataset, backbones)
        if sampler.unable is not None:
            count, needed = _in_contexts(dataset, {**given, "sampler": sampler.name, "split": split}, usable), 2
            if N_WAY.name in free:  # classes that are seen in too few contexts are left out
                needed = values[N_WAY.name] = max(2, min(values[N_WAY.name], count(1, 1)))
                if needed < min(wanted[N_WAY.name], n_classes):
                    reasons = [f"only {needed} classes of {whose} can give such tasks"]
            reason = f"few classes of {whose} have images enough in different contexts"
        else:
            sizes = _Sizes.of(dataset, split, usable, bool(given.get("keep_groups", True)))
            count, needed = sizes.able, n_classes
            reason = sizes.describe(dataset, f" of {dataset.title}" if not reasons else "")
        shots, queries = values[N_SHOT.name], values[N_QUERY.name]
        found = largest_images(shots, queries, lambda s, q: count((1 + choice) * s, q) >= needed, images)
        if found is None:  # without a choice, then
            found = largest_images(shots, queries, lambda s, q: count(s, q) >= needed, images)
        if found is None and len(images) == 2:  # refused by who draws: not even the smallest task fits
            return Fit(values | {N_SHOT.name: 1, N_QUERY.name: 1}, {})
        elif choice and found != (shots, queries):
            reason += ", of which a search chooses from twice as many as n_shot"
        if found is not None and found != (shots, queries):
            values[N_SHOT.name], values[N_QUERY.name] = found
            reasons.append(reason)
    lowered = {name: wanted[name] for name in free if values[name] < wanted[name]}
    why = _joined(reasons)
    return Fit(values, lowered, why[:1].upper() + why[1:])


def defaults(
    dataset: Dataset,
    given: RawSettings,
    usual: RawSettings,
    backbones: Sequence[str] = (),
    *,
    drawn: bool = True,
    choice: bool = False,
    varied: bool = False,
) -> dict[str, Value]:
    """Defaults of every setting of tasks that depends on the dataset: split, ways, shots, queries and alpha.

    drawn  False if the tasks come from elsewhere, so that nothing needs to fit
    """
    found = {**usual, "split": draw.default_split(dataset)}
    if drawn:
        found |= fit(dataset, given, usual, backbones, choice=choice, varied=varied).values
    known = {**found, **given}
    alpha = DISTANCES[str(DISTANCE.check(known.get("distance", DISTANCE.default)))].alpha
    return {**found, "alpha": alpha, **draw.alpha_for(dataset, known)}


@dataclass(frozen=True)
class _Sizes:
    """Images of the classes of a split.

    class_ids  (C,)
    images     (C,) images of every class
    groups     the sizes of every class's groups, which stay on one side of a task; None where images are single
    """

    class_ids: np.ndarray
    images: np.ndarray
    groups: Sequence[np.ndarray] | None

    @classmethod
    def of(cls, dataset: Dataset, split: str, usable: np.ndarray | None, keep_groups: bool) -> _Sizes:
        of_image, class_ids = dataset.image_class_ids(), dataset.split_class_ids(split)
        ids = np.arange(len(of_image)) if usable is None else usable
        images = np.bincount(of_image[ids], minlength=dataset.n_classes)[class_ids]
        groups = dataset.image_groups() if keep_groups else None
        if groups is None:
            return cls(class_ids, images, None)
        ids = ids[np.argsort(of_image[ids], kind="stable")]
        ends = np.searchsorted(of_image[ids], [class_ids, class_ids + 1])
        each = [np.unique(groups[ids[low:high]], return_counts=True)[1] for low, high in ends.T]
        return cls(class_ids, images, each)

    def able(self, n_support: int, n_query: int) -> int:
        """How many classes have so many images for support and query."""
        if self.groups is None:
            return int((self.images >= n_support + n_query).sum())
        return sum(max_per_side(sizes, n_support) >= n_query for sizes in self.groups)

    def describe(self, dataset: Dataset, whose: str) -> str:
        """What the smallest class has, as a part of a sentence; `whose` follows the name of the class."""
        at = int((self.images if self.groups is None else np.array([len(g) for g in self.groups])).argmin())
        groups = "" if self.groups is None else f" in {len(self.groups[at])} groups that stay together"
        name = str(dataset.classes["class_name"].iloc[self.class_ids[at]])
        return f"class {name!r}{whose} has {self.images[at]} images{groups}"


def _usable(dataset: Dataset, backbones: Sequence[str]) -> np.ndarray | None:
    """The images with features of all these backbones; None for all images."""
    usable: np.ndarray | None = None
    for table in (features.load(dataset, name) for name in backbones):
        usable = table.image_ids if usable is None else np.intersect1d(usable, table.image_ids)
    return usable


def _in_contexts(dataset: Dataset, given: RawSettings, usable: np.ndarray | None) -> Callable[[int, int], int]:
    """How many classes can give so many images for support and query, by a sampler that looks at contexts."""
    known = {
        name: value for name, value in given.items() if name in draw.SETTINGS
    }  # studies have settings of their own
    recipe = draw.recipe_for(dataset, **{**known, N_WAY.name: 2})  # ways play no part
    unable = SAMPLERS[recipe.sampler].unable
    assert unable is not None
    pool = draw.pool(dataset, recipe, usable)
    return lambda n_shot, n_query: len(pool.class_ids) - len(unable(pool, n_shot, n_query))


def _joined(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def smallest(fits: Sequence[Fit]) -> Fit:
    """What fits all of several datasets: the smallest value of each setting."""
    values = {name: min(one.values[name] for one in fits if name in one.values) for one in fits for name in one.values}
    lowered = {
        name: usual for one in fits for name, usual in one.lowered.items() if one.values[name] == values[name] < usual
    }
    binding = [one.why for one in fits if any(one.values[name] == values[name] for name in one.lowered)]
    return Fit(values, lowered, "; ".join(dict.fromkeys(binding)))


def with_defaults(settings: Mapping[str, Setting], found: Fit) -> dict[str, Setting]:
    """These settings with what fits as their defaults."""
    return {name: s.with_(default=found.values.get(name, s.default)) for name, s in settings.items()}
