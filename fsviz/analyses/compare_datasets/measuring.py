"""Samples tasks with the same settings from several datasets or splits and measures them on one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features, taxonomy
from fsviz.analyses import custom_task
from fsviz.difficulty.measures import MEASURES, MeasureInputs
from fsviz.errors import BadInput, FsvizError, UnknownName
from fsviz.evaluation import Estimate
from fsviz.features.backbones import title_of
from fsviz.records import Dataset, Progress, Tasks
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, SHAPE, RawSettings, Setting
from fsviz.studies import evaluate, task_measures
from fsviz.tasks import draw, fitting
from fsviz.taxonomy import DISTANCE, DISTANCES, Dag

METHOD = custom_task.METHOD.with_(help="Method whose accuracy is compared.", advanced=True)
BACKBONE = draw.BACKBONE.with_(
    help="Backbone of the features, by default the one that most of the datasets have. Values of different backbones "
    "are not comparable.",
    advanced=True,
)
BY = DISTANCE.with_(choices={name: d.title for name, d in DISTANCES.items() if d.needs == "taxonomy"}, advanced=True)
# A side may be classes without images.
OF_CLASSES = {name: sampler.title for name, sampler in SAMPLERS.items() if set(sampler.needs) <= {"distances"}}
SAMPLED = SAMPLER.with_(choices=OF_CLASSES, default="uniform")
SETTINGS: dict[str, Setting] = {
    s.name: s for s in (N_WAY, N_SHOT, N_QUERY, N_TASKS.with_(default=100), SAMPLED, SEED, BY, BACKBONE, METHOD)
}
ACCURACY = "accuracy"
MAX_SPLITS = 8
WORDNET = "n00001740"  # entity, the root of every taxonomy that was taken from WordNet
OTHER_DISTANCE = {"jiang_conrath": "path_length"}  # checks the verdict on coarsity; for others: the default


class ComparisonSpec(TypedDict, total=False):
    """A checked spec."""

    sides: list[str]
    n_way: int
    n_shot: int
    n_query: int
    n_tasks: int
    sampler: str
    seed: int
    distance: str
    backbone: str
    method: str


@dataclass(frozen=True)
class DatasetSplit:
    """A split of a dataset."""

    name: str
    dataset: Dataset
    split: str

    @property
    def title(self) -> str:
        return self.dataset.title if self.split == "all" else f"{self.dataset.title}, {self.split}"

    @property
    def class_ids(self) -> np.ndarray:
        return self.dataset.split_class_ids(self.split)


@dataclass(frozen=True)
class MeasureEstimate:
    """One measure of the tasks of one side.

    values    (T,) of every task
    here      its mean with the error over tasks: what other tasks of these very classes and images would give
    estimate  with the error over classes, or over tasks where every task holds all classes
    """

    values: np.ndarray
    here: Estimate
    estimate: Estimate
    ci_unit: str

    @property
    def quartiles(self) -> tuple[float, float, float]:
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)


@dataclass(frozen=True)
class DatasetComparison:
    """Results of a comparison.

    numbers   measure -> dataset -> its estimate, if available
    unknown   measure -> dataset -> reason why it is not available
    own       dataset -> coarsity (T,) on its own taxonomy, as on other pages, if it has one
    check     dataset -> coarsity by another distance, to check the verdict on coarsity
    """

    spec: ComparisonSpec
    sides: tuple[DatasetSplit, ...]
    backbone: str
    numbers: Mapping[str, Mapping[str, MeasureEstimate]]
    unknown: Mapping[str, Mapping[str, str]]
    own: Mapping[str, np.ndarray]
    check: Mapping[str, MeasureEstimate]

    @property
    def measures(self) -> list[str]:
        """Measures available for at least one dataset, accuracy first."""
        return list(self.numbers)

    @property
    def requested(self) -> list[str]:
        """The same with those that are available for no dataset."""
        return [name for name in (ACCURACY, *MEASURES) if name in self.numbers or name in self.unknown]

    def side(self, name: str) -> DatasetSplit:
        return next(side for side in self.sides if side.name == name)


def check(spec: RawSettings) -> ComparisonSpec:
    """The spec with its defaults; unknown names and impossible values are refused."""
    for name in spec:
        if name not in {"sides", "study", *SETTINGS}:
            raise UnknownName("setting of a comparison of datasets", name, ["sides", *SETTINGS])
    names = [side.name for side in dataset_splits(spec.get("sides") or [])]
    if not 2 <= len(names) <= MAX_SPLITS:
        raise BadInput(
            f"A comparison needs 2 to {MAX_SPLITS} different datasets or splits. Got {len(names)}. Name them as "
            "'demo:test tiered_imagenet:test'."
        )
    settings = fitting.with_defaults(SETTINGS, fit(dataset_splits(names), spec))
    inputs = {name: value for name, value in spec.items() if value is not None}
    values = {name: s.check(inputs.get(name, s.default)) for name, s in settings.items()}
    return cast(ComparisonSpec, {"sides": names, **values})


def fit(sides: Sequence[DatasetSplit], requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries that every side can give: those given, else the defaults, lowered to the smallest."""
    backbone = common_backbone(sides, str(requested.get("backbone") or ""))
    shape = {name: requested.get(name) for name in (*SHAPE, SAMPLER.name)}
    classes_only = {name: value for name, value in shape.items() if name not in draw.IMAGE_SETTINGS}
    each = []
    for side in sides:
        has = backbone in features.available(side.dataset)  # without them, tasks of this side are of classes alone
        own, usual = (shape, draw.IMAGE_DEFAULTS) if has else (classes_only, {})
        each.append(fitting.fit(side.dataset, {**own, "split": side.split}, usual, [backbone] if has else []))
    return fitting.smallest(each)


def dataset_splits(names: Sequence[str]) -> list[DatasetSplit]:
    """Sides by name, each once: "demo:train", or "demo" for its split test (all classes where it has none)."""
    by_name: dict[str, DatasetSplit] = {}
    for text in names:
        name, _, split = text.partition(":")
        dataset = datasets.load(name)
        split = split or draw.default_split(dataset)
        dataset.split_class_ids(split)
        by_name[f"{name}:{split}"] = DatasetSplit(f"{name}:{split}", dataset, split)
    return list(by_name.values())


def common_backbone(sides: Sequence[DatasetSplit], requested: str = "") -> str:
    """The backbone with features of most datasets; "" if none has features."""
    counts: dict[str, int] = {}
    for side in sides:
        for name in features.available(side.dataset):
            counts[name] = counts.get(name, 0) + 1
    if requested and requested not in counts:
        raise UnknownName("backbone with features of these datasets", requested, counts)
    return requested or max(counts, key=lambda name: counts[name], default="")


def compare(spec: RawSettings, progress: Progress | None = None, semantic_only: bool = False) -> DatasetComparison:
    """Samples tasks with the same settings from every dataset and measures them.

    semantic_only  skips measures that need features, which take longer
    """
    spec = check(spec)
    sides = tuple(dataset_splits(spec["sides"]))
    backbone = common_backbone(sides, str(spec["backbone"]))
    blocks, apart = joint_distances(sides, spec["distance"])
    check_blocks, _ = joint_distances(sides, other_distance(spec["distance"]))
    numbers: dict[str, dict[str, MeasureEstimate]] = {}
    unknown: dict[str, dict[str, str]] = {}
    own, verified = {}, {}
    steps = [name for name in (ACCURACY, *MEASURES) if not semantic_only or is_semantic(name)]
    for place, side in enumerate(sides):
        tasks = draw_tasks(side, spec, backbone, blocks.get(side.name))
        if "coarsity" in tasks.measures:
            own[side.name] = np.asarray(tasks.measures["coarsity"])
        if side.name in check_blocks:
            verified[side.name] = number(_by_distance("coarsity", tasks, side, check_blocks[side.name]), tasks)
        for done, name in enumerate(steps):
            if progress is not None:
                title = "Accuracy" if name == ACCURACY else MEASURES[name].title
                progress(place * len(steps) + done, len(sides) * len(steps), f"{side.title}: {title}")
            try:
                if is_semantic(name):
                    values = _by_distance(name, tasks, side, _distances_of(side, blocks, apart))
                else:
                    values = _by_features(name, tasks, side, backbone, spec["method"])
                numbers.setdefault(name, {})[side.name] = number(values, tasks)
            except FsvizError as error:
                unknown.setdefault(name, {})[side.name] = str(error)
    ordered = {name: numbers[name] for name in steps if name in numbers}
    return DatasetComparison(spec, sides, backbone, ordered, unknown, own, verified)


def draw_tasks(side: DatasetSplit, spec: ComparisonSpec, backbone: str, distances: np.ndarray | None) -> Tasks:
    """The side's tasks: with images where features of them are compared, else of classes alone.

    Coarsity, which they carry, is that of the side's own taxonomy.
    """
    settings: dict[str, Any] = {name: spec[name] for name in ("n_way", "sampler", "seed", "n_tasks")}
    has = backbone in features.available(side.dataset)
    if has:
        settings |= {name: spec[name] for name in ("n_shot", "n_query")}
    usable = features.load(side.dataset, backbone).image_ids if has else None
    needed = distances if "distances" in SAMPLERS[spec["sampler"]].needs else None
    tasks = draw.sample(side.dataset, split=side.split, usable=usable, distances=needed, **settings).tasks
    if needed is not None:
        tasks = draw.with_coarsity(replace(tasks, measures={}), side.dataset)
    return tasks


def is_semantic(measure: str) -> bool:
    return measure in MEASURES and MEASURES[measure].needs == ("distances",)


def _distances_of(side: DatasetSplit, blocks: Mapping[str, np.ndarray], reasons: Mapping[str, str]) -> np.ndarray:
    """Distances between the classes of a split on the joint scale; refused with the reason if there are none."""
    if side.name not in blocks:
        raise BadInput(reasons[side.name])
    return blocks[side.name]


def _by_distance(name: str, tasks: Tasks, side: DatasetSplit, distances: np.ndarray) -> np.ndarray:
    return MEASURES[name](MeasureInputs(positions=tasks.positions(side.class_ids), distances=distances))


def _by_features(name: str, tasks: Tasks, side: DatasetSplit, backbone: str, method: str) -> np.ndarray:
    available = features.available(side.dataset)
    if backbone not in available:
        available_note = f" Its {', '.join(map(title_of, available))} features are not comparable." if available else ""
        raise BadInput(
            f"{side.dataset.title} has no {title_of(backbone)} features.{available_note}"
            if backbone
            else "No dataset has features."
        )
    if name == ACCURACY:
        return evaluation.task_accuracy(evaluate.predict_tasks(side.dataset, backbone, method, {}, tasks)) * 100
    return task_measures.measure_tasks(tasks, side.dataset, backbone, [name], method)[name].to_numpy()


def number(values: np.ndarray, tasks: Tasks) -> MeasureEstimate:
    """The mean of a measure with its error over the tasks for which it is defined."""
    values = np.asarray(values, dtype=float)
    is_defined = np.isfinite(values)
    if not is_defined.any():
        raise BadInput("It is not defined for these tasks.")
    values, tasks = values[is_defined], tasks.take(is_defined)
    here = evaluation.estimate(values, "tasks")
    wider = evaluation.estimate(values, "classes", values[:, None, None], tasks)
    return (
        MeasureEstimate(values, here, wider, "classes")
        if np.isfinite(wider.error)
        else MeasureEstimate(values, here, here, "tasks")
    )


# One graph for all taxonomies -------------------------------------------------------------------------------------


def joint_distances(sides: Sequence[DatasetSplit], distance: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Distances between the classes of every side (C, C) in one graph that holds the classes of all, each once; and
    the reason for sides that are not in it. The first side with a taxonomy decides which one it is."""
    graphs: dict[str, Dag] = {}
    apart: dict[str, str] = {}
    for side in sides:
        if side.dataset.taxonomy is None:
            apart[side.name] = f"{side.dataset.title} has no taxonomy."
            continue
        try:
            graphs[side.name] = taxonomy.split_dag(side.dataset, side.split)
        except FsvizError as error:
            apart[side.name] = str(error)
    if not graphs:
        return {}, apart
    kinds = {name: _kind(graph, name) for name, graph in graphs.items()}
    first = next(iter(kinds))
    inside = [side for side in sides if kinds.get(side.name) == kinds[first]]
    for side in sides:
        if side.name in kinds and side not in inside:
            apart[side.name] = (
                f"Its taxonomy shares no root with that of {next(s.title for s in sides if s.name == first)}, so "
                "semantic distances are not comparable."
            )
    nodes = {side.name: side.dataset.classes.loc[side.class_ids, "node"].astype(str).tolist() for side in inside}
    every = list(dict.fromkeys(node for of_side in nodes.values() for node in of_side))
    edges = pd.concat([cast(pd.DataFrame, side.dataset.taxonomy) for side in inside]).drop_duplicates()
    joint = taxonomy.class_distances(taxonomy.span(edges, every, np.ones(len(every))), distance)
    place = {node: i for i, node in enumerate(every)}
    return {name: joint[np.ix_(at := [place[node] for node in of_side], at)] for name, of_side in nodes.items()}, apart


def _kind(graph: Dag, name: str) -> str:
    """The taxonomy that a graph is part of: WordNet, or one that only its dataset has."""
    return "WordNet" if graph.nodes[0] == WORDNET else name.rpartition(":")[0]


def other_distance(distance: str) -> str:
    return OTHER_DISTANCE.get(distance, str(DISTANCE.default))


# Example images ----------------------------------------------------------------------------------------------------


def example_images(side: DatasetSplit, n: int) -> list[int]:
    """The first image of up to n classes, evenly spaced over the split; [] without images."""
    if not side.dataset.has_pixels:
        return []
    class_ids, first = np.unique(side.dataset.image_class_ids(), return_index=True)
    image_of_class = dict(zip(class_ids.tolist(), first.tolist(), strict=True))
    images = [image_of_class[c] for c in side.class_ids.tolist() if c in image_of_class]
    places = np.linspace(0, len(images) - 1, min(n, len(images))).round().astype(int)
    return [images[place] for place in places]
