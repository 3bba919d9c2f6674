"""Fit ways, shots and queries to a dataset: the one rule of all commands, pages and functions.

A value that was set stays; the sampler refuses it if the dataset cannot give it. A default is lowered to what the
dataset can give, and `Fit.describe` says so. Ways are lowered to the number of classes; images until the
smallest class of the split has enough, in the order of `fsviz.settings.largest_images`. The default of shots is 1 if
tasks with the usual number are too easy (`fsviz.tasks.shots`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fsviz import datasets, features
from fsviz.records import Dataset
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import max_per_side
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, SHAPE, RawSettings, Schema, Setting, Settings, Value, largest_images
from fsviz.tasks import draw
from fsviz.tasks.shots import DefaultShots, default_shots
from fsviz.taxonomy import DISTANCE, DISTANCES

_FEW = 8  # classes: with fewer, tasks of the usual ways have nearly the same classes


@dataclass(frozen=True)
class Fit:
    """Ways, shots and queries that a dataset can give.

    values   by name, those that the sampler has; what was given is among them as it was given
    lowered  name -> the default that was lowered
    why      the reason, as the start of a sentence
    shots    a sentence if fewer shots are the default because tasks would be too easy
    """

    values: Settings
    lowered: Mapping[str, int]
    why: str = ""
    shots: str = ""

    def describe(self, used: RawSettings | None = None) -> str:
        """A sentence that says which defaults were lowered and why; "" if none was.

        used  the settings in use: one that somebody changed since is excluded
        """
        used = {**self.values, **(used or {})}
        changes = [
            f"{name} is {self.values[name]} instead of {default}"
            for name, default in self.lowered.items()
            if used[name] == self.values[name]
        ]
        return f"{self.why}, so {_joined(changes)}." if changes else ""


def fit(
    dataset: Dataset,
    requested: RawSettings,
    fallback: RawSettings,
    backbones: Sequence[str] = (),
    *,
    choice: bool = False,
    varied: bool = False,
    probed: bool = True,
) -> Fit:
    """The ways, shots and queries of tasks.

    requested  settings of tasks; those that are None are not requested
    fallback   defaults of the others
    backbones  whose features images must have
    choice     a search picks the support, out of at least twice as many images as shots
    varied     tasks are compared with each other by their classes, so they must not all hold the same ones
    probed     whether fewer shots are the default if tasks with the usual number are too easy
    """
    requested = {name: value for name, value in requested.items() if value is not None}
    probe = _probe(dataset) if probed and _has_usual_shots(requested, fallback) else None
    if probe is None or probe.n_shot == probe.n_probed:
        return _fit_sizes(dataset, requested, fallback, backbones, choice, varied)
    fallback = {**fallback, N_SHOT.name: probe.n_shot}
    fitted = _fit_sizes(dataset, requested, fallback, backbones, choice, varied)
    return replace(fitted, shots=probe.describe()) if N_SHOT.name in fitted.values else fitted


def _has_usual_shots(requested: RawSettings, fallback: RawSettings) -> bool:
    return N_SHOT.name not in requested and fallback.get(N_SHOT.name) == N_SHOT.default


def _probe(dataset: Dataset) -> DefaultShots | None:
    """The default shots of a dataset with features, whatever the split and backbone of a page."""

    def shape_of(split: str, backbone: str) -> Settings:
        uniform = {"sampler": "uniform", "split": split}
        return _fit_sizes(dataset, uniform, draw.IMAGE_DEFAULTS, [backbone], choice=False, varied=False).values

    return default_shots(dataset, shape_of) if dataset.has_features else None


def _fit_sizes(
    dataset: Dataset,
    requested: RawSettings,
    fallback: RawSettings,
    backbones: Sequence[str],
    choice: bool,
    varied: bool,
) -> Fit:
    """The ways, shots and queries that a dataset has images for; see `fit`."""
    split = str(requested.get("split") or draw.default_split(dataset))
    n_classes = draw.check_n_classes(dataset, split)
    sampler = SAMPLERS.get(str(requested.get("sampler") or fallback.get("sampler") or "uniform"))
    if sampler is None:  # the sampler refuses it
        return Fit({}, {})
    defaults = {N_WAY.name: N_WAY.default, **fallback}
    names = {setting.name for setting in sampler.all_settings}
    target = {
        name: int(draw.SETTINGS[name].check(requested.get(name, defaults.get(name))))
        for name in SHAPE
        if name in names and (name in requested or name in defaults)
    }
    values, reasons = dict(target), []
    free = [name for name in values if name not in requested]
    title = dataset.title if split == "all" else f"split {split!r} of {dataset.title}"
    if N_WAY.name in free:
        few = varied and n_classes < _FEW
        values[N_WAY.name] = min(values[N_WAY.name], max(2, n_classes // 2) if few else n_classes)
        rest = ", and tasks of more would hold nearly the same ones" if few else ""
        reasons += [f"{title} has {n_classes} classes{rest}"] if values[N_WAY.name] < target[N_WAY.name] else []
    images = [name for name in (N_SHOT.name, N_QUERY.name) if name in free and values.get(N_SHOT.name)]
    has_counts = dataset.images is not None or dataset.n_images is not None
    if images and has_counts and not requested.get("skip_small"):
        usable = _usable(dataset, backbones)
        if sampler.excluded is not None:
            count, needed = _in_contexts(dataset, {**requested, "sampler": sampler.name, "split": split}, usable), 2
            if N_WAY.name in free:  # classes that are seen in too few contexts are excluded
                needed = values[N_WAY.name] = max(2, min(values[N_WAY.name], count(1, 1)))
                if needed < min(target[N_WAY.name], n_classes):
                    reasons = [f"only {needed} classes of {title} can give such tasks"]
            reason = f"few classes of {title} have images enough in different contexts"
        else:
            sizes = _Sizes.of(dataset, split, usable, bool(requested.get("keep_groups", True)))
            count, needed = sizes.able, n_classes
            reason = sizes.describe(dataset, f" of {dataset.title}" if not reasons else "")
        shots, queries = values[N_SHOT.name], values[N_QUERY.name]
        largest = largest_images(shots, queries, lambda s, q: count((1 + choice) * s, q) >= needed, images)
        if largest is None:  # without a choice, then
            largest = largest_images(shots, queries, lambda s, q: count(s, q) >= needed, images)
        if largest is None and len(images) == 2:  # refused by the sampler: not even the smallest task fits
            return Fit(values | {N_SHOT.name: 1, N_QUERY.name: 1}, {})
        elif choice and largest != (shots, queries):
            reason += ", of which a search chooses from twice as many as n_shot"
        if largest is not None and largest != (shots, queries):
            values[N_SHOT.name], values[N_QUERY.name] = largest
            reasons.append(reason)
    lowered = {name: target[name] for name in free if values[name] < target[name]}
    why = _joined(reasons)
    return Fit(values, lowered, why[:1].upper() + why[1:])


def defaults(
    dataset: Dataset,
    requested: RawSettings,
    fallback: RawSettings,
    backbones: Sequence[str] = (),
    *,
    sampled: bool = True,
    choice: bool = False,
    varied: bool = False,
) -> dict[str, Value]:
    """Defaults of every setting of tasks that depends on the dataset: split, ways, shots, queries and alpha.

    sampled  False if the tasks come from elsewhere, so that nothing needs to fit
    """
    values = {**fallback, "split": draw.default_split(dataset)}
    if sampled:
        values |= fit(dataset, requested, fallback, backbones, choice=choice, varied=varied).values
    settings = {**values, **requested}
    alpha = DISTANCES[str(DISTANCE.check(settings.get("distance", DISTANCE.default)))].alpha
    return {**values, "alpha": alpha, **draw.alpha_for(dataset, settings)}


def check(
    settings: Schema, spec: RawSettings, usual: RawSettings, *, sampled: bool = True, choice: bool = False
) -> dict[str, Value]:
    """Every setting of a spec; those of its tasks fit its dataset and backbone if they are not given.

    sampled   False if the tasks come from elsewhere, so that nothing needs to fit
    choice  a search picks the support; otherwise tasks are compared with each other by their classes
    """
    requested = settings.requested(spec)
    dataset = datasets.load(requested["dataset"])
    fits = defaults(
        dataset, requested, usual, [requested["backbone"]], sampled=sampled, choice=choice, varied=not choice
    )
    return {**settings.check(requested, **fits), "dataset": dataset.name}


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
        class_of_image, class_ids = dataset.image_class_ids(), dataset.split_class_ids(split)
        ids = np.arange(len(class_of_image)) if usable is None else usable
        images = np.bincount(class_of_image[ids], minlength=dataset.n_classes)[class_ids]
        groups = dataset.image_groups() if keep_groups else None
        if groups is None:
            return cls(class_ids, images, None)
        ids = ids[np.argsort(class_of_image[ids], kind="stable")]
        ends = np.searchsorted(class_of_image[ids], [class_ids, class_ids + 1])
        group_sizes = [np.unique(groups[ids[low:high]], return_counts=True)[1] for low, high in ends.T]
        return cls(class_ids, images, group_sizes)

    def able(self, n_support: int, n_query: int) -> int:
        """Number of classes with enough images for support and query."""
        if self.groups is None:
            return int((self.images >= n_support + n_query).sum())
        return sum(max_per_side(sizes, n_support) >= n_query for sizes in self.groups)

    def describe(self, dataset: Dataset, owner: str) -> str:
        """A clause about the smallest class; `whose` follows the name of the class."""
        at = int((self.images if self.groups is None else np.array([len(g) for g in self.groups])).argmin())
        groups = "" if self.groups is None else f" in {len(self.groups[at])} groups that stay together"
        name = str(dataset.classes["class_name"].iloc[self.class_ids[at]])
        return f"class {name!r}{owner} has {self.images[at]} images{groups}"


def _usable(dataset: Dataset, backbones: Sequence[str]) -> np.ndarray | None:
    """The images with features of all these backbones; None for all images."""
    usable: np.ndarray | None = None
    for table in (features.load(dataset, name) for name in backbones):
        usable = table.image_ids if usable is None else np.intersect1d(usable, table.image_ids)
    return usable


def _in_contexts(dataset: Dataset, requested: RawSettings, usable: np.ndarray | None) -> Callable[[int, int], int]:
    """Number of classes that can give so many images, for samplers that use contexts."""
    task_settings = {
        name: value for name, value in requested.items() if name in draw.SETTINGS
    }  # studies have settings of their own
    recipe = draw.recipe_for(dataset, **{**task_settings, N_WAY.name: 2})  # ways play no part
    excluded = SAMPLERS[recipe.sampler].excluded
    assert excluded is not None
    pool = draw.pool(dataset, recipe, usable)
    return lambda n_shot, n_query: len(pool.class_ids) - len(excluded(pool, n_shot, n_query))


def _joined(parts: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def smallest(fits: Sequence[Fit]) -> Fit:
    """The fit for several datasets: the smallest value of each setting."""
    values = {
        name: min(item.values[name] for item in fits if name in item.values) for item in fits for name in item.values
    }
    lowered = {
        name: default
        for item in fits
        for name, default in item.lowered.items()
        if item.values[name] == values[name] < default
    }
    binding = [item.why for item in fits if any(item.values[name] == values[name] for name in item.lowered)]
    shots = next((item.shots for item in fits if item.shots), "")
    return Fit(values, lowered, "; ".join(dict.fromkeys(binding)), shots)


def with_defaults(settings: Mapping[str, Setting], fitted: Fit) -> dict[str, Setting]:
    """These settings with what fits as their defaults, and the reason in the help of the shots."""
    fitting_settings = {name: s.with_(default=fitted.values.get(name, s.default)) for name, s in settings.items()}
    if fitted.shots and N_SHOT.name in fitting_settings:
        shots = fitting_settings[N_SHOT.name]
        fitting_settings[N_SHOT.name] = shots.with_(help=f"{shots.help} {fitted.shots}")
    return fitting_settings
