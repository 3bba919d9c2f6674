"""How far are the test classes from the training classes? Splits of a dataset's classes with a wanted divergence.

    dataset -> features -> mean feature of every class -> two centroids a divergence apart -> train, val, test classes
    the same classes -> other seeds, dimensions and divergences; random and superclass-wise splits beside them
    the same classes -> Ward's tree of their features against the taxonomy, and against another backbone's

After Arnold & Sha 2021 (ATG), sections 4 and 5, figures 1 and 3, table 3.
"""

from __future__ import annotations

import json
import re
import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from fsviz import datasets, features, splits, taxonomy
from fsviz.datasets import published, saved_splits
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.features.backbones import title_of
from fsviz.records import PAD, SIDES, ClassSplit, Dataset, Progress
from fsviz.records.graphs import ClassTree, Tanglegram
from fsviz.settings import RawSettings, Setting, Value, to_args
from fsviz.splits import SOUGHT, assignment, clustering, trees
from fsviz.tasks import draw
from fsviz.taxonomy import Dag
from fsviz.text import csv

BACKBONE = draw.BACKBONE.with_(help="Whose features say which classes are alike: the first that the dataset has.")
SETTINGS: dict[str, Setting] = {BACKBONE.name: BACKBONE, **splits.SETTINGS}
SEEDS = Setting(
    "seeds",
    "Seeds compared",
    "Over how many seeds the agreement is taken, from the chosen one on.",
    "int",
    10,
    2,
    50,
)
DIVERGENCES = clustering.DIVERGENCES
TARGETS = (0.04, 0.32, 0.64, 0.96, 1.28, 2.56)  # of the small multiples; figure 3 of the paper goes to 1.28
DIMS = (2, 4, 8, 16, 32, 64)  # looked at beside all
NEAR = 0.05  # share of the asked divergence that the reached one may be off
SIDE_RULE = (
    "Of the two sides, train is the one whose distribution over classes is wider (has the higher entropy), so that "
    "test classes are the tighter group; where the divergence is not symmetric (Kullback-Leibler), it decides itself."
)
TREE = Setting("tree", "Tree on the left", "The classes by features of a backbone, or by meaning.", "choice", "")
PART = Setting(
    "part",
    "Classes",
    "Which classes of the split the two trees have.",
    "choice",
    "test",
    choices={"test": "test classes", "val": "val classes", "train": "train classes", "all": "all classes"},
)
PUBLISHED = {
    "cifar100": "CIFAR-100",
    "mini_imagenet": "miniImageNet",
    "tiered_imagenet": "tieredImageNet",
    "emnist": "EMNIST",
    "lfw10": "LFW10",
}
PRINTED = Setting(
    "printed", "Dataset of the paper", "Whose splits are shown.", "choice", "mini_imagenet", choices=PUBLISHED
)
PRINTED_AT = Setting("printed_at", "Published split", "The divergence that was asked for.", "choice", "")
SWEEP_SEEDS = 6  # seeds of every number of dimensions that is looked at
FEW_SEEDS = 3  # the same where little time is given
TAXONOMY = "taxonomy"  # the name of its tree beside those of backbones


@dataclass(frozen=True)
class ClassFeatures:
    """Mean features of the classes of a dataset under a backbone.

    points   (M, d) of unit length, then centred and along their principal axes (see splits.clustering.class_points)
    without  names of classes that have no features: they are on no side
    """

    dataset: str
    backbone: str
    class_ids: np.ndarray
    names: tuple[str, ...]
    points: np.ndarray
    without: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.class_ids)

    def rows_of(self, class_ids: np.ndarray) -> np.ndarray:
        """Where these classes stand among the points."""
        missing = np.setdiff1d(class_ids, self.class_ids)
        if len(missing):
            raise Missing(f"{len(missing):,} of these classes have no features under {self.backbone}. Extract them.")
        return np.searchsorted(self.class_ids, class_ids)


@dataclass(frozen=True)
class SplitResult:
    """A split and how it was found.

    split      the classes and their sides
    settings   all that decided it, checked
    objective  at the best start, and `floor`, the least it can ever be: M log M, where the two distributions together
               describe every class equally well. None for splits that no objective was minimised for.
    nearest    mean distance of a test class to the nearest train class, and `farthest` the test class that is farthest
               from any: features of unit length, all dimensions
    """

    split: ClassSplit
    settings: Mapping[str, Value]
    objective: float | None
    floor: float
    nearest: float
    farthest: str

    @property
    def is_reached(self) -> bool:
        """Whether the divergence is the asked one, but for a twentieth of it (or for 0.02, where little is asked)."""
        asked, reached = self.split.requested, self.split.reached
        return asked is None or reached is None or abs(reached - asked) <= max(NEAR * asked, 0.02)

    @property
    def is_at_floor(self) -> bool:
        """Whether the random start chose: measured on small and large datasets, splits that seeds agree on stay a
        hundred thousandth of the floor above it, others get within a ten millionth."""
        return self.objective is not None and self.objective - self.floor < 1e-6 * self.floor


def class_features(dataset: Dataset, backbone: str = "") -> ClassFeatures:
    """The mean feature of every class that has any."""
    try:
        table = features.load(dataset, backbone or features.required(dataset)[0])
    except Missing as error:
        printed = published_targets(dataset.name)
        if not printed:
            raise
        raise Missing(f"{error} Or take the split that the paper prints (--published {printed[-1]:g}).") from error
    of = table.class_ids
    counts = np.bincount(of, minlength=dataset.n_classes)
    class_ids = np.flatnonzero(counts)
    if len(class_ids) < clustering.LEAST_CLASSES:
        raise BadInput(
            f"A split with a wanted divergence needs at least {clustering.LEAST_CLASSES} classes with features: one "
            f"fifth of them are test classes. {dataset.title} has {len(class_ids)}. Choose a larger dataset."
        )
    means = np.stack([np.asarray(table.values[of == c], dtype=float).mean(axis=0) for c in class_ids])
    names = np.array(dataset.distinct_names(np.arange(dataset.n_classes)), dtype=object)
    return ClassFeatures(
        dataset.name,
        table.backbone,
        class_ids,
        tuple(names[class_ids]),
        clustering.class_points(means),
        tuple(names[counts == 0]),
    )


def checked(given: RawSettings) -> dict[str, Value]:
    """Every setting by name, the given ones (None is not given) checked, the others at their default."""
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in SETTINGS:
            raise UnknownName("setting of a split", name, sorted(SETTINGS))
    penalty = splits.fitting_penalty(str(given.get("mode", SETTINGS["mode"].default)))
    usual = {name: s.default for name, s in SETTINGS.items()} | {"penalty": penalty}
    return {name: s.check(given.get(name, usual[name])) for name, s in SETTINGS.items()}


def possible_modes(dataset: Dataset) -> list[str]:
    """The modes that this dataset can have: superclasses need a taxonomy."""
    try:
        spanning(dataset, np.arange(dataset.n_classes))
    except FsvizError:
        return [name for name in splits.MODES if name != "superclasses"]
    return list(splits.MODES)


def max_dims(dataset: Dataset) -> int:
    """Along how many axes the classes of a dataset can differ at most."""
    return max(1, min(dataset.n_classes - 1, int(splits.DIMS.high)))


def default_dims(dataset: Dataset) -> int:
    """As many as let the classes choose their split."""
    return min(splits.fitting_dims(dataset.n_classes), max_dims(dataset))


def default_penalty(mode: str) -> float:
    """The weight λ of a mode: with that of stable the asked divergence is reached, that of paper is published."""
    return splits.fitting_penalty(mode)


def faces(dataset: Dataset, class_ids: np.ndarray) -> np.ndarray:
    """The image that stands for each of these classes: its first."""
    of = dataset.image_class_ids()
    return np.array([int(np.argmax(of == c)) for c in class_ids])


def centroid_distance(split: ClassSplit) -> float:
    """Between the two centroids, in units of the features."""
    assert split.centroids is not None
    return float(np.linalg.norm(split.centroids[0] - split.centroids[1]))


# --- one split, and many -----------------------------------------------------------------------------------------


def find_split(dataset: Dataset, classes: ClassFeatures, **settings: Any) -> SplitResult:
    """The split of these settings."""
    return splits_over(dataset, classes, [{}], **settings)[0]


def splits_over(
    dataset: Dataset, classes: ClassFeatures, changes: Sequence[Mapping[str, Any]], **settings: Any
) -> list[SplitResult]:
    """A split for each of these changes to the settings; those that differ in seed or divergence alone are found in
    one go."""
    fitting = {} if settings.get("dims") is not None else {"dims": splits.fitting_dims(len(classes))}
    asked = [checked({**settings, **fitting, **change}) for change in changes]
    found: dict[int, SplitResult] = {}
    batches: dict[str, list[int]] = {}
    for i, spec in enumerate(asked):
        if spec["mode"] in SOUGHT:
            rest = {name: value for name, value in spec.items() if name not in ("seed", "divergence")}
            batches.setdefault(json.dumps(rest), []).append(i)
        else:
            found[i] = _compared(dataset, classes, spec)
    for batch in batches.values():
        specs = [asked[i] for i in batch]
        seeds = list(dict.fromkeys(int(spec["seed"]) for spec in specs))
        targets = list(dict.fromkeys(float(spec["divergence"]) for spec in specs))
        result = _clustered(classes, specs[0], seeds, targets)
        for i, spec in zip(batch, specs, strict=True):
            found[i] = _sought(classes, spec, result, seeds.index(spec["seed"]), targets.index(spec["divergence"]))
    return [found[i] for i in range(len(asked))]


def _clustered(
    classes: ClassFeatures, spec: Mapping[str, Value], seeds: list[int], targets: list[float]
) -> clustering.Clustering:
    stable = spec["mode"] == "stable"
    return clustering.cluster(
        classes.points[:, : spec["dims"]] if stable else classes.points,
        targets,
        seeds=seeds,
        starts=spec["starts"] if stable else 1,
        penalty=spec["penalty"],
        divergence=spec["divergence_by"],
        solver=spec["solver"],
    )


def _sought(
    classes: ClassFeatures, spec: Mapping[str, Value], result: clustering.Clustering, seed: int, target: int
) -> SplitResult:
    split = ClassSplit(
        classes.class_ids,
        classes.names,
        assignment.assign(result.scores[seed, target], spec["seed"]),
        result.points,
        result.centroids[seed, target],
        float(result.targets[target]),
        float(result.divergence[seed, target]),
        result.scores[seed, target],
    )
    return _found(classes, spec, split, float(result.objective[seed, target]))


def _compared(dataset: Dataset, classes: ClassFeatures, spec: Mapping[str, Value]) -> SplitResult:
    """A random split, or one along the taxonomy."""
    if spec["mode"] == "random":
        sides = assignment.random_sides(len(classes), spec["seed"])
    else:
        groups = superclasses(dataset, classes.class_ids, most=len(classes) // 5)
        sides = assignment.group_sides(np.array(groups, dtype=object).astype(str), spec["seed"])
    return _found(classes, spec, ClassSplit(classes.class_ids, classes.names, sides, classes.points))


def of_parts(classes: ClassFeatures, parts: Mapping[str, np.ndarray]) -> SplitResult | None:
    """A split that is given: the dataset's own, a saved or a published one; None where a side has no class."""
    sides = np.full(len(classes), PAD)
    for number, side in enumerate(SIDES):
        sides[np.isin(classes.class_ids, parts[side])] = number
    kept = sides != PAD
    if not ((sides == assignment.TRAIN).any() and (sides == assignment.TEST).any()):
        return None
    names = tuple(np.array(classes.names, dtype=object)[kept])
    part = replace(classes, class_ids=classes.class_ids[kept], names=names, points=classes.points[kept])
    return _found(part, {}, ClassSplit(part.class_ids, part.names, sides[kept], part.points))


def _found(
    classes: ClassFeatures, spec: Mapping[str, Value], split: ClassSplit, objective: float | None = None
) -> SplitResult:
    test, train = split.sides == assignment.TEST, split.sides == assignment.TRAIN
    apart = distances(classes.points[test], classes.points[train]).min(axis=1)
    names = np.array(split.names, dtype=object)[test]
    floor = len(classes) * np.log(len(classes))
    return SplitResult(split, dict(spec), objective, float(floor), float(apart.mean()), str(names[apart.argmax()]))


def nearest_at_random(classes: ClassFeatures, split: ClassSplit, n_splits: int = 200) -> tuple[float, float]:
    """Between what 95% of random splits have as `nearest`: the same classes, and as many on every side."""
    points = classes.points[classes.rows_of(split.class_ids)]
    apart = distances(points, points)
    rng = np.random.default_rng(0)
    nearest = []
    for _ in range(n_splits):
        sides = rng.permutation(split.sides)
        nearest.append(apart[sides == assignment.TEST][:, sides == assignment.TRAIN].min(axis=1).mean())
    low, high = np.quantile(nearest, [0.025, 0.975])
    return float(low), float(high)


def distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Euclidean distances of every point of the first to every point of the second."""
    from scipy.spatial.distance import cdist

    return cdist(first, second)


@dataclass(frozen=True)
class SplitAgreement:
    """How far several seeds find the same split.

    value     mean share of classes that two seeds put on the same side; 1 only if all find the same split
    chance    the same for two random splits, on average
    on_test   mean share of test classes that two seeds have in common, and `chance_on_test` of two random splits
    n_splits  different splits among n_seeds
    """

    value: float
    chance: float
    on_test: float
    chance_on_test: float
    n_splits: int
    n_seeds: int


def agreement(
    dataset: Dataset, classes: ClassFeatures, n_seeds: int = int(SEEDS.default), **settings: Any
) -> SplitAgreement:
    """Agreement over `n_seeds` seeds, from the chosen one on."""
    first = checked(settings)["seed"]
    found = splits_over(dataset, classes, [{"seed": first + i} for i in range(SEEDS.check(n_seeds))], **settings)
    sides = np.stack([one.split.sides for one in found])
    n_splits = len(np.unique(sides, axis=0))
    shared = _agreement(sides)
    on_test = (shared["on_test"], shared["chance_on_test"])
    return SplitAgreement(shared["agreement"], shared["chance"], *on_test, n_splits, len(sides))


def _agreement(sides: np.ndarray) -> dict[str, float]:
    """Agreement of splits (S, M), and what it is by chance: of all sides, then of test classes."""
    return {
        "agreement": assignment.agreement(sides),
        "chance": assignment.chance(sides.shape[1]),
        "on_test": assignment.agreement_on_test(sides),
        "chance_on_test": assignment.chance_on_test(sides.shape[1]),
    }


def agreement_over_dims(
    dataset: Dataset,
    classes: ClassFeatures,
    n_seeds: int = SWEEP_SEEDS,
    progress: Progress | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """What the number of dimensions does: columns dims, those of `Agreement`, reached, above_floor (the objective less
    M log M, mean over seeds). The last row has all dimensions."""
    spec = {**checked(settings), "mode": "stable"}
    most = classes.points.shape[1]
    rows: list[dict[str, Any]] = []
    tried = sorted({*(d for d in (*DIMS, spec["dims"]) if d < most), most})
    for i, dims in enumerate(tried):
        if progress:
            progress(i, len(tried), f"{dims:,} dimensions")
        seeds = [{"seed": spec["seed"] + s, "dims": dims} for s in range(n_seeds)]
        found = splits_over(dataset, classes, seeds, **spec)
        rows.append(
            {
                "dims": dims,
                **_agreement(np.stack([one.split.sides for one in found])),
                "reached": float(np.mean([cast(float, one.split.reached) for one in found])),
                "above_floor": float(np.mean([cast(float, one.objective) - one.floor for one in found])),
            }
        )
    return pd.DataFrame(rows)


def over_targets(
    dataset: Dataset, classes: ClassFeatures, targets: Sequence[float] = TARGETS, **settings: Any
) -> list[SplitResult]:
    """The same settings with other divergences asked for (figure 3)."""
    found = splits_over(dataset, classes, [{"divergence": target} for target in targets], **settings)
    return [replace(one, split=replace(one.split, title=_title(one))) for one in found]


def _title(found: SplitResult) -> str:
    return f"asked {found.split.requested:g}, reached {found.split.reached:.2f}"


def neighbours(classes: ClassFeatures, split: ClassSplit, position: int, n: int = 6) -> pd.DataFrame:
    """The classes nearest to one (its position in the split): columns class, side, distance of unit-length features."""
    apart = distances(classes.points[[position]], classes.points)[0]
    order = np.argsort(apart, kind="stable")
    order = order[order != position][:n]
    names = np.array(split.names, dtype=object)[order]
    return pd.DataFrame({"class": names, "side": assignment.side_names(split.sides[order]), "distance": apart[order]})


def seconds(classes: ClassFeatures, spec: Mapping[str, Value], n_splits: int = 1) -> float:
    """About how long so many splits of these settings take, found in one go; measured on one core of 2024."""
    if spec["mode"] not in SOUGHT:
        return 0.0
    stable = spec["mode"] == "stable"
    most = classes.points.shape[1]
    numbers = (
        n_splits
        * (spec["starts"] if stable else 1)
        * len(classes)
        * (10 + (min(spec["dims"], most) if stable else most))
    )
    return 7.0 + 2e-5 * numbers if spec["solver"] == "sgd" else 0.1 + 1.5e-6 * numbers


def sweep_seconds(classes: ClassFeatures, spec: Mapping[str, Value], n_seeds: int = SWEEP_SEEDS) -> float:
    """The same for `agreement_over_dims`."""
    return sum(seconds(classes, {**spec, "mode": "stable", "dims": dims}, n_seeds) for dims in DIMS)


def describe_split(found: SplitResult) -> str:
    """One sentence where the asked divergence was not reached: the nearest one, and what comes nearer. Else ""."""
    split = found.split
    if found.is_reached or split.requested is None or split.reached is None:
        return ""
    n_dims = split.points.shape[1]
    nearer = "a larger weight λ" if n_dims >= len(split.names) - 1 else "more dimensions, or a larger weight λ,"
    return (
        f"A divergence of {split.requested:g} is not reached in {n_dims:,} dimensions: the nearest reached, where the "
        f"centroids still describe the classes, is {split.reached:.2f}. "
        f"{nearer[:1].upper()}{nearer[1:]} would come nearer."
    )


def comparison_table(dataset: Dataset, classes: ClassFeatures, found: SplitResult) -> pd.DataFrame:
    """The split beside others of the same classes: columns split, train, val, test (numbers of classes), nearest (mean
    distance of a test class to its nearest train class), gap (between the means of train and of held-out classes)."""
    table = []
    for name, one in compared_splits(dataset, classes, found).items():
        parts = one.split.parts
        train, held = (
            classes.points[_positions(classes, one.split.on(*on))].mean(axis=0) for on in (("train",), ("val", "test"))
        )
        sizes = {side: len(ids) for side, ids in parts.items()}
        table.append({"split": name, **sizes, "nearest": one.nearest, "gap": float(np.linalg.norm(train - held))})
    return pd.DataFrame(table)


def compared_splits(dataset: Dataset, classes: ClassFeatures, found: SplitResult) -> dict[str, SplitResult]:
    """The split and others of the same classes, by what they are: random, by superclasses, the dataset's own, saved."""
    spec = found.settings
    rows = {"this split": found}
    kinds = {"random": "at random", "superclasses": "whole superclasses"}
    for mode in kinds:
        if mode != spec.get("mode"):
            try:
                rows[kinds[mode]] = find_split(dataset, classes, **{**spec, "mode": mode})
            except FsvizError:  # without a taxonomy there are no superclasses
                continue
    own = {side: dataset.splits.get(side, np.array([], int)) for side in SIDES}
    original = of_parts(classes, own)
    if original is not None:
        rows["the dataset's own"] = original
    for name in saved_splits.saved_split_names(dataset.name):
        try:
            kept = of_parts(classes, saved_splits.load_split(dataset, name))
        except FsvizError:  # of other classes: the dataset's notes say so
            continue
        if kept is not None:
            rows[f"saved: {name}"] = kept
    return rows


# --- what is on which side ---------------------------------------------------------------------------------------


def spanning(dataset: Dataset, class_ids: np.ndarray, mode: str = "shortest_path") -> Dag:
    """The part of the taxonomy above these classes."""
    if dataset.taxonomy is None:
        raise Missing(f"{dataset.title} has no taxonomy, so its classes have no superclasses.")
    nodes = dataset.classes["node"].astype(str).to_numpy()[class_ids]
    if (nodes == "").any():
        raise Missing(f"Some classes of {dataset.title} have no place in its taxonomy.")
    return taxonomy.span(dataset.taxonomy, nodes.tolist(), dataset.class_weights()[class_ids], mode, dataset.node_names)


def superclasses(dataset: Dataset, class_ids: np.ndarray, most: int = 0, n_groups: int = 0) -> list[str]:
    """The superclass of every class, by name: from the root down, the largest concept is replaced by those below it,
    until none has more than `most` classes, or until there are `n_groups`. Concepts right above classes stay whole."""
    dag = taxonomy.collapse(spanning(dataset, class_ids))
    parents = dag.tree_parent
    children: dict[int, list[int]] = {}
    for node in np.flatnonzero(dag.holds).tolist():
        children.setdefault(int(parents[node]), []).append(node)
    at, under = dag.class_nodes, dag.held
    groups = {0: under[0]}
    while True:
        open_groups = [g for g in groups if any(under[child].sum() > 1 for child in children.get(g, ()))]
        largest = max(open_groups, key=lambda g: groups[g].sum(), default=None)
        if largest is None or (most and groups[largest].sum() <= most) or (n_groups and len(groups) >= n_groups):
            break
        own = groups.pop(largest)
        rest = own.copy()
        for child in children[largest]:
            groups[child] = own & under[child]
            rest &= ~under[child]
        if rest.any():  # a class at the concept itself
            groups[-1 - largest] = rest
    names = [""] * len(at)
    for group, inside in groups.items():
        node = group if group >= 0 else -1 - group
        for position in np.flatnonzero(inside):
            names[position] = dag.names[node]
    return names


@dataclass(frozen=True)
class SuperclassShare:
    """The concept that tells a side from the rest: `n` of its `of` classes are below it, `n_rest` of `of_rest`."""

    side: str
    concept: str
    n: int
    of: int
    n_rest: int
    of_rest: int


def superclass_shares(dataset: Dataset, split: ClassSplit) -> list[SuperclassShare]:
    """Of train and of test, the concept whose share is the most above that among the other classes, where there is one;
    [] without a taxonomy. Val and test classes are drawn from one side in turn, so val says nothing more."""
    try:
        dag = taxonomy.collapse(spanning(dataset, split.class_ids))
    except FsvizError:
        return []
    below = dag.held
    sizes = below.sum(axis=1)
    usable = np.flatnonzero((sizes >= _smallest(split)) & (sizes < len(split.names)))
    if not len(usable):
        return []
    found = []
    for number, side in ((0, "train"), (2, "test")):
        here = split.sides == number
        inside, outside = below[usable][:, here], below[usable][:, ~here]
        above = inside.mean(axis=1) - outside.mean(axis=1)
        best = int(np.argmax(above))
        if above[best] <= 0:
            continue
        counts = (int(inside[best].sum()), int(here.sum()), int(outside[best].sum()), int((~here).sum()))
        found.append(SuperclassShare(side, dag.names[usable[best]], *counts))
    return found


def groups_of(dataset: Dataset, split: ClassSplit, n_groups: int = 8) -> list[str]:
    """The superclass of every class of a split, "others" for those of small ones."""
    groups = superclasses(dataset, split.class_ids, n_groups=n_groups)
    return [name if groups.count(name) >= _smallest(split) else "others" for name in groups]


def _smallest(split: ClassSplit) -> int:
    """How many classes a superclass has at least to be named: of few classes, two are many."""
    return 3 if len(split.names) >= 30 else 2


def superclass_table(dataset: Dataset, split: ClassSplit, n_groups: int = 8) -> pd.DataFrame:
    """Classes of every superclass (rows, the largest first) on every side (columns)."""
    groups = groups_of(dataset, split, n_groups)
    sides = np.array(SIDES, dtype=object)[split.sides]
    table = pd.crosstab(pd.Series(groups, name="superclass"), pd.Series(sides, name="side"))
    table = table.reindex(columns=list(SIDES), fill_value=0)
    return table.loc[table.sum(axis=1).sort_values(ascending=False, kind="stable").index]


# --- trees -------------------------------------------------------------------------------------------------------


def class_tree(dataset: Dataset, which: str, class_ids: np.ndarray, classes: ClassFeatures | None = None) -> ClassTree:
    """The tree of these classes by the taxonomy, or by Ward's clustering of a backbone's features (given or loaded)."""
    if which == TAXONOMY:
        return replace(_taxonomy_tree(dataset, class_ids), title="the taxonomy")
    classes = classes if classes is not None and classes.backbone == which else class_features(dataset, which)
    position = _positions(classes, class_ids)
    tree = trees.ward_tree(classes.points[position], [classes.names[p] for p in position])
    return replace(tree, title=title_of(classes.backbone))


def hops(dataset: Dataset, which: str, class_ids: np.ndarray, classes: ClassFeatures | None = None) -> np.ndarray:
    """Edges between every two of these classes, in the taxonomy with all its paths or in a backbone's tree."""
    if which == TAXONOMY:
        dag = spanning(dataset, class_ids, "all_paths")
        return trees.graph_hops(dag.parents, dag.children, dag.class_nodes, len(dag))
    return trees.tree_hops(class_tree(dataset, which, class_ids, classes))


def known_trees(dataset: Dataset) -> list[str]:
    """Whose trees there are: backbones, and the taxonomy where there is one."""
    known = features.available(dataset)
    try:
        spanning(dataset, np.arange(dataset.n_classes))
    except FsvizError:
        return known
    return [*known, TAXONOMY]


def tanglegram(dataset: Dataset, left: str, right: str, class_ids: np.ndarray) -> Tanglegram:
    """Two trees of these classes facing each other."""
    return trees.facing(class_tree(dataset, left, class_ids), class_tree(dataset, right, class_ids))


def hop_table(dataset: Dataset, which: Sequence[str], class_ids: np.ndarray) -> pd.DataFrame:
    """Every two of these trees (table 3): columns first, second, hops, normalised, chance."""
    if len(which) < 2:
        raise Missing(
            f"Two trees are compared, and {dataset.title} has {len(which)}: one per backbone, and one of its taxonomy. "
            "Extract features with another backbone, or give the dataset a taxonomy."
        )
    between = {name: hops(dataset, name, class_ids) for name in which}
    rows = []
    for i, first in enumerate(which):
        for second in which[i + 1 :]:
            found = trees.hop_distance(between[first], between[second])
            rows.append({"first": first, "second": second, **vars(found)})
    return pd.DataFrame(rows)


def all_with_features(dataset: Dataset, which: Sequence[str]) -> np.ndarray:
    """class_ids of the classes that all of these trees can have."""
    kept = np.arange(dataset.n_classes)
    for name in which:
        if name != TAXONOMY:
            kept = np.intersect1d(kept, class_features(dataset, name).class_ids)
    return kept


def _positions(classes: ClassFeatures, class_ids: np.ndarray) -> np.ndarray:
    missing = np.setdiff1d(class_ids, classes.class_ids)
    if len(missing):
        raise Missing(f"{len(missing):,} of these classes have no features under {classes.backbone}. Extract them.")
    return np.searchsorted(classes.class_ids, class_ids)


def _taxonomy_tree(dataset: Dataset, class_ids: np.ndarray) -> ClassTree:
    """One parent per node (`Dag.tree_parent`), and a leaf of its own for every class."""
    dag = taxonomy.collapse(spanning(dataset, class_ids))
    names = dataset.distinct_names(class_ids)
    holds = dag.holds  # the others would be leaves without a class
    place = np.append(np.cumsum(holds) - 1, PAD)
    above = place[dag.tree_parent[holds]]
    parents, labels = above.tolist(), [name for name, held in zip(dag.names, holds) if held]
    has_child = np.bincount(np.maximum(above, 0), minlength=len(above)) > (np.arange(len(above)) == 0)
    leaves: list[int] = []
    for name, node in zip(names, place[dag.class_nodes].tolist(), strict=True):
        if has_child[node] or node in leaves:
            parents.append(node)
            labels.append(name)
            leaves.append(len(parents) - 1)
        else:
            labels[node] = name
            leaves.append(node)
    shared = [node for node in leaves[: len(above)] if node in parents]  # a leaf that a later class was put below
    for node in dict.fromkeys(shared):
        parents.append(node)
        labels.append(labels[node])
        leaves[leaves.index(node)] = len(parents) - 1
    heights = np.zeros(len(parents))
    for leaf in leaves:
        node, height = leaf, 0
        while parents[node] != PAD:
            node, height = parents[node], height + 1
            heights[node] = max(heights[node], height)
    return ClassTree(np.array(parents), heights, np.array(leaves), tuple(map(str, labels)))


# --- published, saved, exported ----------------------------------------------------------------------------------


def published_targets(dataset: str) -> list[float]:
    """The divergences at which Arnold & Sha 2021 print splits of a dataset; [] where they print none."""
    return [float(d) for d in sorted(published.published_splits(dataset)["divergence"].unique())]


def published_parts(dataset: str, divergence: float) -> dict[str, np.ndarray]:
    """Train, val and test class_ids as printed."""
    table = published.published_splits(dataset)
    known = published_targets(dataset)
    if divergence not in known:
        raise UnknownName("published split", f"{dataset} {divergence:g}", [f"{dataset} {d:g}" for d in known])
    table = table[table["divergence"] == divergence]
    return {side: np.sort(table.loc[table["split"] == side, "class_index"].to_numpy()) for side in SIDES}


def published_names(name: str) -> list[str]:
    """Names of the classes of a printed dataset: the catalog's, EMNIST's characters as torchvision orders them, or
    numbers where names are not known here."""
    if name in datasets.shipped_names():
        known = datasets.load(name)
        return known.distinct_names(np.arange(known.n_classes))
    if name == "emnist":
        return list(string.digits + string.ascii_uppercase + string.ascii_lowercase)
    return [f"class {i}" for i in range(int(published.published_splits(name)["class_index"].max()) + 1)]


def published_split(dataset: Dataset, divergence: float) -> ClassSplit:
    """A printed split of a dataset that is here; its classes have no features."""
    return replace(split_of(dataset, published_parts(dataset.name, divergence)), requested=divergence)


def split_of(dataset: Dataset, parts: Mapping[str, np.ndarray]) -> ClassSplit:
    """The record of given class_ids by side, without features."""
    class_ids = np.sort(np.concatenate([parts[side] for side in SIDES]))
    sides = np.zeros(dataset.n_classes, dtype=int)
    for number, side in enumerate(SIDES):
        sides[parts[side]] = number
    names = np.array(dataset.distinct_names(np.arange(dataset.n_classes)), dtype=object)[class_ids]
    return ClassSplit(class_ids, tuple(names), sides[class_ids], np.zeros((len(class_ids), 0)))


def published_command(dataset: Dataset, divergence: float) -> str:
    return shlex.join(["fsviz", "split", dataset.name, "--published", f"{divergence:g}"])


def published_overview() -> pd.DataFrame:
    """All printed splits, a row per dataset: dataset, classes on every side, divergences."""
    rows = []
    for name, title in PUBLISHED.items():
        targets = published_targets(name)
        sizes = {side: len(ids) for side, ids in published_parts(name, targets[0]).items()}
        rows.append({"dataset": title, **sizes, "divergences": ", ".join(f"{t:g}" for t in targets)})
    return pd.DataFrame(rows)


def save(dataset: Dataset, split: ClassSplit, name: str, recipe: RawSettings, replace: bool = False) -> list[str]:
    """Keeps a split; returns the names of the splits that the dataset has more from now on."""
    saved_splits.save_split(dataset, name, split.parts, recipe, overwrite=replace)
    return [f"{name}_{side}" for side in SIDES]


def recipe(found: SplitResult) -> dict[str, Any]:
    """What made a split, and what came out: kept in its file."""
    spec = found.settings
    sought = spec.get("mode") in SOUGHT
    kept = {name: value for name, value in spec.items() if sought or name in ("mode", "seed")}
    return {**kept, **({"reached": found.split.reached, "objective": found.objective} if sought else {})}


def describe_recipe(recipe: RawSettings) -> str:
    """How a saved split was made, in a line."""
    mode = str(recipe.get("mode", ""))
    told = {"published": "as the paper prints it", "file": f"from the file {recipe.get('file', '')}"}
    words = [told.get(mode, splits.MODES.get(mode, "made elsewhere"))]
    if "divergence" in recipe:
        words.append(f"asked for {recipe['divergence']}")
    if isinstance(recipe.get("reached"), int | float):
        words.append(f"reached {recipe['reached']:.2f}")
    return ", ".join(words + [f"backbone {recipe['backbone']}" for _ in [0] if recipe.get("backbone")])


def safe_stem(file: str) -> str:
    """A name for a split from that of its file."""
    stem = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", file.rsplit(".", 1)[0]).strip("-.")[:60]
    return stem if stem[:1].isalnum() else "mine"


def as_json(dataset: Dataset, split: ClassSplit, recipe: RawSettings) -> str:
    """The split as a file that `split --from` reads: class names by side, and what made it."""
    return json.dumps(saved_splits.split_record(dataset, split.parts, recipe), indent=2)


def as_csv(split: ClassSplit) -> str:
    """One row per class: class_name, split."""
    return csv(pd.DataFrame({"class_name": split.names, "split": assignment.side_names(split.sides)}))


def fitting_name(found: SplitResult) -> str:
    """A name for a split that follows from what decides it: "r0.96", "r0.96-paper-seed3", "random-seed0"."""
    spec = found.settings
    if spec["mode"] not in SOUGHT:
        return f"{spec['mode']}-seed{spec['seed']}"
    said = {n: v for n, v in spec.items() if n not in ("backbone", "divergence", "mode", "seed")}
    usual = _usual(len(found.split.names), spec["mode"])
    parts = [f"{name.replace('_', '')}{SETTINGS[name].text(v)}" for name, v in said.items() if v != usual[name]]
    mode = [] if spec["mode"] == "stable" else [spec["mode"]]
    seed = [f"seed{spec['seed']}"] if spec["seed"] or mode else []
    return "-".join([f"r{SETTINGS['divergence'].text(spec['divergence'])}", *mode, *seed, *parts])[:80]


def command(dataset: Dataset, spec: Mapping[str, Value], more: Sequence[str] = ()) -> str:
    """The command that finds the same split."""
    sought = spec["mode"] in SOUGHT
    own = [name for name in spec if sought or name in ("mode", "seed", "backbone")]
    own = [name for name in own if spec["mode"] == "stable" or name not in ("dims", "starts")]
    always = ("divergence", "seed")
    usual = _usual(dataset.n_classes, spec["mode"])
    said = {n: spec[n] for n in own if (n in always and sought) or spec[n] != usual[n]}
    return shlex.join(["fsviz", "split", dataset.name, *to_args(said, SETTINGS), *more])


def _usual(n_classes: int, mode: str) -> dict[str, Value]:
    """What every other setting is for so many classes and this mode where nothing is given."""
    fitting = {"dims": splits.fitting_dims(n_classes), "penalty": splits.fitting_penalty(mode)}
    return {name: setting.default for name, setting in SETTINGS.items()} | fitting
