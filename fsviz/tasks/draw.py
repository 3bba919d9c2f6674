"""Sample testbeds from settings, the same way for pages, commands and studies.

    settings -> recipe -> classes, and images for them (a sampler) -> coarsity -> testbed

A recipe decides the tasks: sampling it twice gives the same ones. The name of the testbed, the command that samples it
and the link that shows it follow from the recipe.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import numpy as np
import pandas as pd

import fsviz
from fsviz import sampling, taxonomy
from fsviz.difficulty import measures
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records import PAD, Dataset, Tasks, Testbed
from fsviz.sampling import SAMPLER, SAMPLERS, Pool, testbeds
from fsviz.settings import (
    N_QUERY,
    N_SHOT,
    N_TASKS,
    SEED,
    RawSettings,
    Setting,
    Settings,
    Value,
    images_advice,
    name_parts,
    to_args,
)
from fsviz.taxonomy import DAG, DISTANCE, DISTANCES

SPLIT = Setting("split", "Split", "Classes to sample from: test if the dataset has it, else all.", "text", "")
SHOTS = N_SHOT.with_(low=0, default=0, help="Labelled images per class (shots). 0 samples classes only.")
BACKBONE = Setting("backbone", "Backbone", "Backbone of the distance 'features'.", "text", "")
KEEP_GROUPS = Setting(
    "keep_groups",
    "Keep groups together",
    "Duplicates and video frames never appear in both support and query. No effect on datasets without groups.",
    "flag",
    True,
    advanced=True,
)
# Settings of all samplers, each once.
SAMPLER_SETTINGS: dict[str, Setting] = {s.name: s for sampler in SAMPLERS.values() for s in sampler.settings}
IMAGE_SETTINGS: dict[str, Setting] = {s.name: s for s in (SHOTS, N_QUERY)}
SETTINGS: dict[str, Setting] = {
    **{s.name: s for s in (SPLIT, SAMPLER)},
    **SAMPLER_SETTINGS,
    **IMAGE_SETTINGS,
    **{s.name: s for s in (KEEP_GROUPS, N_TASKS, SEED, DISTANCE, DAG, BACKBONE)},
}
IMAGE_DEFAULTS: dict[str, Value] = {s.name: s.default for s in (N_SHOT, N_QUERY)}  # defaults of the image settings
_LONGEST_NAME = 100


class TaskSpec(TypedDict, total=False):
    """The settings of tasks in the checked spec of a study, for all samplers."""

    dataset: str
    backbone: str
    split: str
    sampler: str
    n_way: int
    n_shot: int
    n_query: int
    n_tasks: int
    seed: int
    distance: str
    dag: str
    keep_groups: bool


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the tasks of a testbed.

    settings  of the sampler; n_shot and n_query if images are sampled for its classes, keep_groups if the dataset has
              groups of images
    distance  between classes, for the semantic sampler and coarsity; dag and backbone complete it
    """

    dataset: str
    split: str
    sampler: str
    settings: Mapping[str, Value]
    n_tasks: int
    seed: int
    distance: str = str(DISTANCE.default)
    dag: str = str(DAG.default)
    backbone: str = ""

    @property
    def values(self) -> dict[str, Value]:
        """Every setting by name, for a command or a link, without those that have no effect here."""
        by_features = DISTANCES[self.distance].needs == "features"
        classes_only = "n_shot" not in self.settings and not SAMPLERS[self.sampler].samples_images
        return {
            "split": self.split,
            "sampler": self.sampler,
            **self.settings,
            **({"n_shot": 0} if classes_only else {}),
            "n_tasks": self.n_tasks,
            "seed": self.seed,
            "distance": self.distance,
            **({"backbone": self.backbone} if by_features else {"dag": self.dag}),
        }

    @property
    def name(self) -> str:
        """A name made of all settings: another recipe has another name."""
        return safe_name([self.dataset, self.split, self.sampler, *self.parts], asdict(self))

    @property
    def parts(self) -> list[str]:
        """The parts of the name after dataset, split and sampler."""
        values = {name: value for name, value in self.values.items() if name not in ("split", "sampler")}
        return name_parts({n: v for n, v in values.items() if n != "n_shot" or v}, SETTINGS)

    @property
    def arguments(self) -> dict[str, Value]:
        """The settings of the command: all but a distance at its default."""
        return {n: v for n, v in self.values.items() if n not in ("distance", "dag") or v != SETTINGS[n].default}

    def command(self, out: str = "") -> str:
        """The command that samples the same testbed."""
        to = ["--out", out] if out else []
        return shlex.join(["fsviz", "sample", self.dataset, *to_args(self.arguments, SETTINGS), *to])

    @property
    def link(self) -> dict[str, str]:
        """The query of a link to the page Sample tasks that shows these tasks."""
        return {"dataset": self.dataset} | {name: SETTINGS[name].text(value) for name, value in self.values.items()}


def check_settings(requested: Mapping[str, object], **defaults: Value) -> dict[str, Value]:
    """Every setting of tasks by name: as requested, else these defaults, else its own default.

    alpha follows the distance; split and backbone are "" if the dataset decides.
    """
    requested = {name: value for name, value in requested.items() if value is not None}
    unknown = [name for name in requested if name not in SETTINGS]
    if unknown:
        raise UnknownName("setting of the sampler", unknown[0], SETTINGS)
    distance = str(DISTANCE.check(requested.get("distance", DISTANCE.default)))
    defaults = {"alpha": DISTANCES[distance].alpha, **defaults}
    return {name: s.check(requested.get(name, defaults.get(name, s.default))) for name, s in SETTINGS.items()}


def recipe_for(dataset: Dataset, **requested: object) -> Recipe:
    """The recipe of these settings, checked against the dataset. Settings of other samplers have no effect.

    Without n_shot, tasks have classes only.
    """
    requested = {name: value for name, value in requested.items() if value is not None}
    values = check_settings(requested, **alpha_for(dataset, requested))
    sampler = SAMPLERS[str(values["sampler"])]
    split = str(values["split"] or default_split(dataset))
    n_classes = check_n_classes(dataset, split)
    image_defaults = {
        s.name: s.default for s in sampler.settings if s.name in IMAGE_SETTINGS and s.name not in requested
    }
    settings = {s.name: s.check(image_defaults.get(s.name, values[s.name])) for s in sampler.settings}
    off = [s.name for s in sampler.settings if s.kind == "flag" and settings[s.name] == s.default]
    settings = {name: value for name, value in settings.items() if name not in off}  # as published: names stay short
    if values["n_shot"] and not sampler.samples_images:
        settings |= {name: values[name] for name in IMAGE_SETTINGS}
    if (sampler.samples_images or values["n_shot"]) and dataset.image_groups() is not None:
        settings["keep_groups"] = values["keep_groups"]
    if settings.get("n_way", 0) > n_classes:
        raise BadInput(
            f"n_way must be at most {n_classes} (classes in split {split!r} of {dataset.title}). "
            f"Got {settings['n_way']}. Lower n_way or choose another split."
        )
    distance, backbone = str(values["distance"]), str(values["backbone"])
    if DISTANCES[distance].needs == "features":
        backbone = backbone or default_backbone(dataset)
    return Recipe(
        dataset.name,
        split,
        sampler.name,
        settings,
        int(values["n_tasks"]),
        int(values["seed"]),
        distance,
        str(values["dag"]),
        backbone,
    )


def recipe_of(testbed: Testbed, dataset: Dataset) -> Recipe:
    """The recipe of a testbed; refuses testbeds that no sampler made (imported, searched)."""
    if testbed.recipe.get("sampler") not in SAMPLERS:
        raise Missing(
            f"The testbed {testbed.name!r} was not sampled, so it cannot be sampled again. Choose another testbed."
        )
    return recipe_for(dataset, **{name: value for name, value in testbed.recipe.items() if name in SETTINGS})


# The semantic weight alpha --------------------------------------------------------------------------------------

FALL = 1 / 3  # share by which the median coarsity of tieredImageNet's test tasks falls at the paper's alpha
FEW_CLASSES = 100  # splits with fewer classes have an alpha of their own


@dataclass(frozen=True)
class FittedAlpha:
    """The alpha of a split with few classes, and the share by which it lowers the median coarsity (`fall`)."""

    alpha: float
    fall: float
    usual_alpha: float
    usual_fall: float

    def describe(self) -> str:
        return f"α = {self.alpha:g} chosen for this dataset (few classes)."

    @property
    def details(self) -> str:
        return (
            f"The median coarsity is {self.fall:.0%} below that of uniform tasks, and {self.usual_fall:.0%} with the "
            f"usual α = {self.usual_alpha:g}. Paper: {FALL:.0%} on tieredImageNet."
        )


def alpha_for(dataset: Dataset, requested: Mapping[str, object]) -> dict[str, Value]:
    """{"alpha": ...} if tasks of these settings need another than the usual one, else {}; see `fitted_alpha`."""
    sampler = str(SAMPLER.check(requested.get("sampler") or SAMPLER.default))
    if requested.get("alpha") is not None or not any(s.name == "alpha" for s in SAMPLERS[sampler].settings):
        return {}
    names = ("split", "distance", "dag", "backbone", "n_way")
    fitted = fitted_alpha(dataset, **{name: requested[name] for name in names if requested.get(name)})
    return {} if fitted is None else {"alpha": fitted.alpha}


def fitted_alpha(
    dataset: Dataset,
    split: object = "",
    distance: object = DISTANCE.default,
    dag: object = DAG.default,
    backbone: object = "",
    n_way: object = SAMPLER_SETTINGS["n_way"].default,
) -> FittedAlpha | None:
    """The alpha that lowers the median coarsity by FALL compared with uniform tasks, or as far as possible.

    For splits with fewer than FEW_CLASSES classes of datasets that the user added. None for built-in datasets: the
    paper's alpha keeps their numbers comparable.
    """
    from fsviz.datasets import shipped_names, stamp

    split, distance = str(split or default_split(dataset)), str(DISTANCE.check(distance))
    n_way = int(SAMPLER_SETTINGS["n_way"].check(n_way))
    has_few = n_way < len(dataset.split_class_ids(split)) < FEW_CLASSES
    if dataset.name in shipped_names() or not has_few:
        return None
    key = (dataset.name, stamp(dataset.name), split, distance, str(dag), str(backbone), n_way)
    if key not in _FITTED:
        try:
            distances = class_distances(dataset, split, distance, str(dag), str(backbone) or None)
            fitted = fit_alpha(distances, n_way, DISTANCES[distance].alpha)
        except FsvizError:  # no taxonomy, or no features: sampling then fails with a message
            fitted = None
        if len(_FITTED) > 100:
            _FITTED.clear()
        _FITTED[key] = fitted
    return _FITTED[key]


_FITTED: dict[tuple[Any, ...], FittedAlpha | None] = {}


def fit_alpha(distances: np.ndarray, n_way: int, usual_alpha: float, n_tasks: int = 1000) -> FittedAlpha:
    """The alpha for these distances between classes, with two digits: the usual one if it is large enough.

    If no alpha lowers the median coarsity by FALL, the smallest one that lowers it as far as any.
    """
    class_ids = np.arange(len(distances))

    def median(tasks: Tasks) -> float:
        return float(np.median(measure_coarsity(tasks, class_ids, distances).measures["coarsity"]))

    uniform = median(sampling.sample_uniform(class_ids, n_way, n_tasks, 0))

    def fall(alpha: float) -> float:
        sampled = sampling.sample_semantic(
            distances, class_ids, n_way, n_tasks, alpha, float(SAMPLER_SETTINGS["beta"].default), 0
        )
        return 1 - median(sampled) / uniform if uniform else 0.0

    usual_fall = fall(usual_alpha)
    if usual_fall >= FALL or uniform == 0:
        return FittedAlpha(usual_alpha, usual_fall, usual_alpha, usual_fall)
    falls = {usual_alpha: usual_fall}
    alpha = usual_alpha
    while alpha < 32 * usual_alpha and falls[alpha] < FALL:
        alpha *= 2
        falls[alpha] = fall(alpha)
    if falls[alpha] >= FALL:
        low, high = alpha / 2, alpha
        for _ in range(5):
            middle = (low + high) / 2
            low, high = (low, middle) if fall(middle) >= FALL else (middle, high)
        digit = 10.0 ** (np.floor(np.log10(high)) - 1)
        alpha = float(f"{np.ceil(high / digit - 1e-9) * digit:.2g}")
    else:
        max_fall = max(falls.values())
        alpha = float(f"{min(a for a, value in falls.items() if value >= max_fall - 0.01):.3g}")
    return FittedAlpha(alpha, fall(alpha), usual_alpha, usual_fall)


# Sampling ---------------------------------------------------------------------------------------------------------


def sample(
    dataset: Dataset,
    *,
    name: str = "",
    distances: np.ndarray | None = None,
    usable: np.ndarray | None = None,
    **settings: object,
) -> Testbed:
    """A testbed of these settings: `recipe_for` and `sample_testbed` in one."""
    return sample_testbed(dataset, recipe_for(dataset, **settings), name=name, distances=distances, usable=usable)


def sample_testbed(
    dataset: Dataset,
    recipe: Recipe,
    *,
    name: str = "",
    distances: np.ndarray | None = None,
    usable: np.ndarray | None = None,
) -> Testbed:
    """Samples the tasks of a recipe and measures their coarsity.

    distances  the matrix of `class_distances`, if the caller has it
    usable     image_ids that may be sampled, such as those with features; None for all
    Without distances, samplers that need none give tasks without coarsity.
    """
    sampler = SAMPLERS[recipe.sampler]
    pool = _pool(dataset, recipe, distances, usable)
    own = {s.name: recipe.settings.get(s.name, s.default) for s in sampler.settings}
    tasks = sampler.sample(pool, recipe.n_tasks, recipe.seed, **own)
    record: dict[str, Any] = {"dataset": recipe.dataset, **recipe.values}
    if pool.distances is None:
        for name_without_effect in ("distance", "dag", "backbone"):
            record.pop(name_without_effect, None)
    else:
        tasks = measure_coarsity(tasks, pool.class_ids, pool.distances)
    record |= {"n_distinct": sampling.count_distinct(tasks.class_ids), "version": fsviz.__version__}
    if "n_shot" in recipe.settings and not sampler.samples_images:
        tasks = _add_images(dataset, tasks, recipe, usable)
    elif not sampler.samples_images:
        del record["n_shot"]
    return Testbed(name or recipe.name, tasks, record)


def pool(dataset: Dataset, recipe: Recipe, usable: np.ndarray | None = None) -> Pool:
    """The pool that the recipe's sampler would sample from; `usable` as in `draw`."""
    return _pool(dataset, recipe, None, usable)


def excluded_classes(dataset: Dataset, recipe: Recipe) -> dict[int, str]:
    """Classes of the split that no task of the recipe can hold, with a sentence for each."""
    sampler = SAMPLERS[recipe.sampler]
    own = {s.name: recipe.settings[s.name] for s in sampler.settings if s.name in recipe.settings}
    return sampler.excluded(pool(dataset, recipe), **own) if sampler.excluded else {}


def _pool(dataset: Dataset, recipe: Recipe, distances: np.ndarray | None, usable: np.ndarray | None) -> Pool:
    """The pool of the recipe's sampler; refuses a dataset that lacks something the sampler needs."""
    sampler = SAMPLERS[recipe.sampler]
    if distances is None:
        try:
            distances = class_distances(dataset, recipe.split, recipe.distance, recipe.dag, recipe.backbone)
        except FsvizError:
            if "distances" in sampler.needs:
                raise
    capabilities = _offers(dataset, recipe.distance) | ({"distances"} if distances is not None else set())
    missing = [need for need in sampler.needs if need not in capabilities]
    if missing:
        raise Missing(
            f"Sampler {sampler.title!r} needs {' and '.join(missing)}, which {dataset.title} lacks. "
            f"Use {' or '.join(repr(name) for name in possible_samplers(dataset))}."
        )
    concepts, two_levels = _concepts(dataset, recipe)
    images = pd.DataFrame() if dataset.images is None else dataset.images
    return Pool(
        dataset.split_class_ids(recipe.split),
        distances,
        _image_class_ids(dataset, usable) if "images" in sampler.needs else None,
        dataset.image_contexts() if "contexts" in sampler.needs else None,
        {name: images[name].to_numpy() for name in dataset.attributes} if "attributes" in sampler.needs else {},
        _groups(dataset, recipe),
        dataset.classes["class_name"].tolist(),
        concepts,
        two_levels,
    )


def _concepts(dataset: Dataset, recipe: Recipe) -> tuple[np.ndarray | None, bool]:
    """The concepts that a setting of the recipe samples classes from, and whether they are one level; None without."""
    names = [name for name, need in SAMPLERS[recipe.sampler].needs_if.items() if need == "concepts"]
    names = [name for name in names if recipe.settings.get(name)]
    if not names:
        return None, False
    if dataset.taxonomy is None:
        off = " ".join(SAMPLER_SETTINGS[names[0]].to_args(False))
        raise Missing(f"{names[0]} needs a taxonomy; {dataset.title} has none. Use {off}, or add a taxonomy.")
    return taxonomy.class_concepts(dataset, recipe.split)


def _groups(dataset: Dataset, recipe: Recipe) -> np.ndarray | None:
    return dataset.image_groups() if recipe.settings.get("keep_groups") else None


def _image_class_ids(dataset: Dataset, usable: np.ndarray | None) -> np.ndarray:
    class_ids = dataset.image_class_ids()
    if usable is None:
        return class_ids
    masked = np.full(len(class_ids), PAD, dtype=np.int64)
    masked[usable] = class_ids[usable]
    return masked


def _add_images(dataset: Dataset, tasks: Tasks, recipe: Recipe, usable: np.ndarray | None) -> Tasks:
    class_of_image = _image_class_ids(dataset, usable)
    n_shot, n_query = recipe.settings["n_shot"], recipe.settings["n_query"]
    used = np.unique(tasks.class_ids)
    sizes = np.bincount(class_of_image[class_of_image >= 0], minlength=dataset.n_classes)
    smallest = used[sizes[used].argmin()]
    if sizes[smallest] < n_shot + n_query:
        raise BadInput(
            f"Class {dataset.classes['class_name'][smallest]!r} of {dataset.title} has {sizes[smallest]} images; "
            f"n_shot + n_query needs {n_shot + n_query}. "
            f"{images_advice(n_shot, n_query, int(sizes[smallest]))}"
        )
    names = dataset.classes["class_name"].tolist()
    return sampling.assign_images(tasks, class_of_image, n_shot, n_query, recipe.seed, _groups(dataset, recipe), names)


def max_images(settings: Settings) -> int:
    """Images of one task at most, support and queries together, by the settings of its sampler."""
    has = {s.name: settings.get(s.name, s.default) for s in SAMPLERS[settings["sampler"]].all_settings}
    ways = has.get("n_way", has.get("max_way", 1))
    return has.get("max_support", ways * has.get("n_shot", 1)) + ways * has.get("n_query", has.get("max_query", 1))


# Capabilities of a dataset -----------------------------------------------------------------------------------------


def default_split(dataset: Dataset) -> str:
    return "test" if "test" in dataset.splits else "all"


def check_n_classes(dataset: Dataset, split: str, subject: str = "A task") -> int:
    """The number of classes of a split; refused if there are fewer than two. subject: what needs them."""
    n_classes = len(dataset.split_class_ids(split))
    if n_classes < 2:
        title = dataset.title if split == "all" else f"Split {split!r} of {dataset.title}"
        alternatives = [name for name in (*dataset.splits, "all") if len(dataset.split_class_ids(name)) > 1]
        advice = (
            f"Choose split {alternatives[0]!r}"
            if alternatives
            else "Add images of other classes, or choose another dataset"
        )
        raise BadInput(f"{subject} needs at least 2 classes. {title} has {n_classes}. {advice}.")
    return n_classes


def default_backbone(dataset: Dataset) -> str:
    """The first backbone that has features of a dataset."""
    from fsviz import features

    return features.required(dataset)[0]


def default_sampler(dataset: Dataset) -> str:
    """Semantically close classes if the dataset has a taxonomy, else uniform."""
    return str(SAMPLER.default) if SAMPLER.default in possible_samplers(dataset) else "uniform"


def possible_distances(dataset: Dataset) -> list[str]:
    """The distances that this dataset supports: by taxonomy, by features, both or none."""
    has = {"taxonomy": dataset.taxonomy is not None, "features": dataset.has_features}
    return [name for name, kind in DISTANCES.items() if has[kind.needs]]


def possible_samplers(dataset: Dataset, distance: str = str(DISTANCE.default)) -> list[str]:
    """The samplers that this dataset supports, with this distance between classes."""
    capabilities = _offers(dataset, distance)
    return [name for name, sampler in SAMPLERS.items() if set(sampler.needs) <= capabilities]


def supports_setting(dataset: Dataset, sampler: str, setting: str) -> bool:
    """Whether the dataset meets what a setting of the sampler needs when it is on."""
    need = SAMPLERS[sampler].needs_if.get(setting)
    return need is None or need in _offers(dataset, str(DISTANCE.default))


def _offers(dataset: Dataset, distance: str) -> set[sampling.Need]:
    images = dataset.images
    has: dict[sampling.Need, bool] = {
        "distances": distance in possible_distances(dataset),
        "images": images is not None or dataset.n_images is not None,
        "contexts": images is not None and "context" in images.columns,
        "attributes": images is not None and bool(dataset.attributes),
        "concepts": dataset.taxonomy is not None,
    }
    return {name for name, is_there in has.items() if is_there}


def class_distances(
    dataset: Dataset,
    split: str,
    distance: str = str(DISTANCE.default),
    dag: str = str(DAG.default),
    backbone: str | None = None,
) -> np.ndarray:
    """(C, C) distances between the classes of a split, in split order."""
    DISTANCE.check(distance)
    if DISTANCES[distance].needs == "features":
        from fsviz import features

        table = features.load(dataset, backbone or default_backbone(dataset))
        return DISTANCES[distance].measure(table, dataset.split_class_ids(split))
    return taxonomy.class_distances(taxonomy.split_dag(dataset, split, dag), distance)


def measure_coarsity(tasks: Tasks, class_ids: np.ndarray, distances: np.ndarray) -> Tasks:
    """The tasks with their coarsity, given the distances between the classes class_ids (C,)."""
    inputs = measures.MeasureInputs(positions=tasks.positions(class_ids), distances=distances)
    return tasks.with_measure("coarsity", measures.MEASURES["coarsity"](inputs))


def with_coarsity(tasks: Tasks, dataset: Dataset) -> Tasks:
    """The tasks with their coarsity, if the dataset has a taxonomy and they have none yet."""
    if "coarsity" in tasks.measures or dataset.taxonomy is None:
        return tasks
    split = dataset.split_of(tasks.class_ids)
    try:
        return measure_coarsity(tasks, dataset.split_class_ids(split), class_distances(dataset, split))
    except FsvizError:  # a class outside the taxonomy, or a task of one way: no coarsity
        return tasks


def explain(measure: str, recipe: RawSettings) -> str:
    """Sentences for a caption about a measure in a testbed; "" if it was read from a file."""
    if measure not in measures.MEASURES:
        return ""
    spec = measures.MEASURES[measure]
    sentence = f"{spec.title}: {spec.description}"
    kind = DISTANCES.get(str(recipe.get("distance", DISTANCE.default)))
    if "distances" not in spec.needs or kind is None:
        return sentence
    by_features = "between class means in feature space, not semantic"
    return f"{sentence} Distances are {by_features if kind.needs == 'features' else f'by {kind.title}'}."


# Names and saving -----------------------------------------------------------------------------------------------


def safe_name(parts: Sequence[str], settings: Settings, between: str = "_") -> str:
    """A testbed name that is valid as a file name; if it is cut, a digest of all settings keeps it unique."""
    name = between.join(parts)
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.+=-") else "_" for c in name)
    if plain == name and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True, default=str).encode(), digest_size=4).hexdigest()
    return f"{plain[: _LONGEST_NAME - 9]}-{digest}"


def title_of(name: str, recipe: RawSettings) -> str:
    """A readable title of a testbed that is named after its recipe; any other name stays."""
    sampler = SAMPLERS.get(str(recipe.get("sampler", "")))
    start = safe_name([str(recipe.get(part, "")) for part in ("dataset", "split", "sampler")], {})
    if sampler is None or not name.startswith(f"{start}_"):
        return name
    ways = [f"{recipe[key]}-{word}" for key, word in (("n_way", "way"), ("n_shot", "shot")) if recipe.get(key)]
    parts = [f"{sampler.title} {' '.join(ways)}".strip(), f"{int(recipe.get('n_tasks', 0)):,} tasks"]
    parts += [f"α {recipe['alpha']:g}"] if "alpha" in recipe else []
    parts += [f"split {recipe['split']}", f"seed {recipe.get('seed', 0)}"]
    return ", ".join(parts)


def save(testbed: Testbed, number: bool = False) -> tuple[str, str]:
    """Save a testbed without replacing another (see testbeds.save_testbed); returns its name and a message."""
    name = testbeds.save_testbed(testbed, number).stem
    note = "" if name == testbed.name else f" {testbed.name} is the name of another testbed."
    return name, f"Saved as {name}.{note}"
