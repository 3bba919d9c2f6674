"""Semantic task sampling (Bennequin et al. 2022): how far apart in meaning are the classes of a task?

From top to bottom: distances between the classes of a split, a testbed drawn uniformly or by closeness, what the
testbed is like (coarsity, balance of classes), and the graph of meanings behind it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import fsviz
from fsviz import sampling, taxonomy
from fsviz.errors import BadInput, FsvizError, Missing, UnknownName
from fsviz.records import PAD, Dataset, Tasks, Testbed
from fsviz.sampling import testbeds
from fsviz.taxonomy import DISTANCES

SAMPLERS: dict[str, str] = {
    "uniform": "every set of classes is equally likely",
    "semantic": "classes close in meaning are drawn together, every class about equally often",
}


# Distances -------------------------------------------------------------------------------------------------------


def class_distances(
    dataset: Dataset,
    split: str,
    distance: str = "jiang_conrath",
    dag: str = "shortest_path",
    backbone: str | None = None,
) -> np.ndarray:
    """(C, C) distances between the classes of a split, in split order."""
    if distance not in DISTANCES:
        raise UnknownName("distance", distance, DISTANCES)
    if DISTANCES[distance].needs == "features":
        from fsviz import features

        table = features.load(dataset, backbone or default_backbone(dataset))
        return DISTANCES[distance].measure(table, dataset.split_class_ids(split))
    return taxonomy.class_distances(taxonomy.split_dag(dataset, split, dag), distance)


def default_backbone(dataset: Dataset) -> str:
    """The first backbone that has features of a dataset."""
    from fsviz import features

    known = features.available(dataset)
    if not known:
        raise Missing(
            f"{dataset.title} has no features, so classes cannot be compared by how they look. Extract them with "
            f"'python -m fsviz extract {dataset.name} --backbone efficientnet_lite0', or pick another distance."
        )
    return known[0]


def possible_distances(dataset: Dataset) -> list[str]:
    """The distances this dataset can give: by taxonomy, by features, both or none."""
    there = {"taxonomy": dataset.taxonomy is not None, "features": dataset.has_features}
    return [name for name, kind in DISTANCES.items() if there[kind.needs]]


# Testbeds --------------------------------------------------------------------------------------------------------


def sample_testbed(
    dataset: Dataset,
    split: str = "test",
    sampler: str = "semantic",
    alpha: float = 0.383,
    beta: float = 100.0,
    n_way: int = 5,
    n_shot: int | None = None,
    n_query: int | None = None,
    n_tasks: int = 5000,
    seed: int = 0,
    distance: str = "jiang_conrath",
    dag: str = "shortest_path",
    backbone: str | None = None,
    name: str | None = None,
    distances: np.ndarray | None = None,
    usable: np.ndarray | None = None,
) -> Testbed:
    """Draws a testbed and measures the coarsity of its tasks.

    n_shot     images a class in the support, 0 or None for tasks of classes only; then n_query images in the query
    distances  the matrix of `class_distances`, where the caller already has it
    usable     image_ids that may be drawn (those with features, say); all where None
    The uniform sampler needs no distance: without one its tasks carry no coarsity.
    """
    if sampler not in SAMPLERS:
        raise UnknownName("sampler", sampler, SAMPLERS)
    class_ids = dataset.split_class_ids(split)
    _check_ways(dataset, split, n_way, len(class_ids))
    if distances is None:
        try:
            distances = class_distances(dataset, split, distance, dag, backbone)
        except FsvizError:
            if sampler == "semantic":
                raise
    if sampler == "semantic":
        tasks = sampling.sample_semantic(distances, class_ids, n_way, n_tasks, alpha, beta, seed)
    else:
        tasks = sampling.sample_uniform(class_ids, n_way, n_tasks, seed)
    if distances is not None:
        tasks = measure_coarsity(tasks, class_ids, distances)
    recipe: dict[str, Any] = {"dataset": dataset.name, "split": split, "sampler": sampler}
    if sampler == "semantic":
        recipe |= {"alpha": float(alpha), "beta": float(beta)}
    if distances is not None:
        recipe |= {"distance": distance}
        if distance == "features":
            recipe |= {"backbone": backbone or default_backbone(dataset)}
        else:
            recipe |= {"dag": dag}
    recipe |= {"n_way": int(n_way), "n_tasks": int(n_tasks), "seed": int(seed)}
    recipe |= {"n_distinct": sampling.count_distinct(tasks.class_ids)}
    if n_shot:
        tasks = _with_images(dataset, tasks, n_shot, n_query, seed, usable)
        recipe |= {"n_shot": int(n_shot), "n_query": int(n_query)}
    recipe |= {"version": fsviz.__version__}
    return Testbed(name or default_name(recipe), tasks, recipe)


def measure_coarsity(tasks: Tasks, class_ids: np.ndarray, distances: np.ndarray) -> Tasks:
    """The tasks with their coarsity, given the distances between the classes class_ids (C,)."""
    positions = taxonomy.split_positions(tasks.class_ids, class_ids)
    return tasks.with_measure("coarsity", taxonomy.coarsity(distances, positions))


def default_name(recipe: Mapping[str, Any]) -> str:
    """A name that tells testbeds of different recipes apart."""
    parts = [str(recipe["dataset"]), str(recipe["split"]), str(recipe["sampler"])]
    if recipe["sampler"] == "semantic":
        parts += [f"a{recipe['alpha']:g}", f"b{recipe['beta']:g}"]
    if recipe.get("distance", "jiang_conrath") != "jiang_conrath":
        parts.append(str(recipe["distance"]))
    if recipe.get("dag") == "all_paths":
        parts.append("all_paths")
    parts.append(f"{recipe['n_way']}way")
    if "n_shot" in recipe:
        parts.append(f"{recipe['n_shot']}shot")
    return "_".join([*parts, f"{recipe['n_tasks']}tasks", f"seed{recipe['seed']}"])[:100]


def command(recipe: Mapping[str, Any], out: str = "") -> str:
    """The command line that draws the same testbed again."""
    words = ["python", "-m", "fsviz", "sample", str(recipe["dataset"]), "--split", str(recipe["split"])]
    words += ["--sampler", str(recipe["sampler"])]
    for key in ("alpha", "beta"):
        if key in recipe:
            words += [f"--{key}", f"{recipe[key]:g}" if float(f"{recipe[key]:g}") == recipe[key] else repr(recipe[key])]
    if recipe.get("distance", "jiang_conrath") != "jiang_conrath":
        words += ["--distance", str(recipe["distance"])]
    if "backbone" in recipe:
        words += ["--backbone", str(recipe["backbone"])]
    if recipe.get("dag", "shortest_path") != "shortest_path":
        words += ["--dag", str(recipe["dag"])]
    words += ["--n-way", str(recipe["n_way"])]
    words += ["--n-shot", str(recipe.get("n_shot", 0))]
    if "n_query" in recipe:
        words += ["--n-query", str(recipe["n_query"])]
    words += ["--n-tasks", str(recipe["n_tasks"]), "--seed", str(recipe["seed"])]
    return shlex.join([*words, *(["--out", out] if out else [])])


def summarise(testbed: Testbed, dataset: Dataset) -> dict[str, Any]:
    """Quartiles of the coarsity, and how often the rarest and the commonest class of the split occur."""
    if "coarsity" not in testbed.tasks.measures:
        raise Missing(f"The testbed {testbed.name!r} carries no coarsity. Choose a distance this dataset can give.")
    values = np.quantile(testbed.tasks.measures["coarsity"], [0, 0.25, 0.5, 0.75, 1])
    counts = class_counts(testbed, dataset)
    return {
        "n_tasks": len(testbed.tasks),
        "quantiles": {name: float(v) for name, v in zip(("0", "25", "50", "75", "100"), values, strict=True)},
        "class_counts": {"min": int(counts.min()), "max": int(counts.max())},
    }


def class_counts(testbed: Testbed, dataset: Dataset) -> np.ndarray:
    """(C,) number of tasks that hold each class of the testbed's split, in split order."""
    class_ids = dataset.split_class_ids(str(testbed.recipe["split"]))
    ids = testbed.tasks.class_ids
    return np.bincount(ids[ids != PAD], minlength=dataset.n_classes)[class_ids]


def testbed_coarsity(
    testbed: Testbed,
    dataset: Dataset,
    distance: str = "jiang_conrath",
    dag: str = "shortest_path",
    backbone: str | None = None,
) -> Testbed:
    """The testbed with its coarsity measured again, by this distance over the classes of its split."""
    split = str(testbed.recipe["split"])
    distances = class_distances(dataset, split, distance, dag, backbone)
    tasks = measure_coarsity(testbed.tasks, dataset.split_class_ids(split), distances)
    return Testbed(testbed.name, tasks, testbed.recipe)


save_testbed = testbeds.save_testbed
load_testbed = testbeds.load_testbed
list_testbeds = testbeds.list_testbeds
parse_testbed = testbeds.parse_testbed
export_testbed = testbeds.export


@dataclass(frozen=True)
class CoarsityBins:
    """Histograms of several testbeds over the same bins: edges (B + 1,), counts name -> (B,), medians."""

    edges: np.ndarray
    counts: Mapping[str, np.ndarray]
    medians: Mapping[str, float]

    def bin_of(self, values: np.ndarray) -> np.ndarray:
        """The bin of every value; the last bin holds its upper edge."""
        return np.clip(np.searchsorted(self.edges, values, side="right") - 1, 0, len(self.edges) - 2)


def coarsity_bins(testbeds_by_name: Mapping[str, Testbed], n_bins: int = 50) -> CoarsityBins:
    """Histograms of coarsity from zero to the largest value of all, over at most n_bins bins with round edges."""
    values = {name: testbed.tasks.measures["coarsity"] for name, testbed in testbeds_by_name.items()}
    most = max(float(v.max()) for v in values.values()) or 1.0
    scale = 10.0 ** np.floor(np.log10(most / n_bins))
    width = scale * next(step for step in (1, 2, 2.5, 5, 10) if most / (step * scale) <= n_bins)
    edges = np.arange(int(np.ceil(most / width - 1e-9)) + 1) * width
    bins = CoarsityBins(edges, {}, {name: float(np.median(v)) for name, v in values.items()})
    counts = {name: np.bincount(bins.bin_of(v), minlength=len(edges) - 1) for name, v in values.items()}
    return replace(bins, counts=counts)


def share_finer(testbed: Testbed, uniform: Testbed, quantile: float = 0.05) -> float:
    """Share of the tasks that are finer than all but this share of the uniform ones."""
    limit = np.quantile(uniform.tasks.measures["coarsity"], quantile)
    return float((testbed.tasks.measures["coarsity"] <= limit).mean())


def tasks_near_quantile(testbed: Testbed, quantile: float, n: int = 6) -> np.ndarray:
    """Positions of n tasks whose coarsity lies around this quantile of the testbed, the finest first."""
    order = np.argsort(testbed.tasks.measures["coarsity"], kind="stable")
    start = round(quantile * (len(order) - 1)) - n // 2
    start = min(max(start, 0), max(len(order) - n, 0))
    return order[start : start + n]


def example_images(dataset: Dataset, class_ids: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """(len(class_ids), n) images of some classes to look at, padded where a class has fewer."""
    of_image = dataset.image_class_ids()
    shown = np.full((len(class_ids), n), PAD, dtype=np.int64)
    for row, class_id in enumerate(class_ids):
        images = np.flatnonzero(of_image == class_id)
        chosen = np.random.default_rng((seed, int(class_id))).permutation(images)[:n]
        shown[row, : len(chosen)] = chosen
    return shown


def smallest_class(dataset: Dataset, split: str) -> int | None:
    """Images of the smallest class of a split, None where the counts are not known."""
    if dataset.images is None and dataset.n_images is None:
        return None
    sizes = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)
    return int(sizes[dataset.split_class_ids(split)].min())


def warm_up() -> None:
    """Loads the compiled samplers, so that the first real draw is quick."""
    line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    sampling.sample_semantic(line, np.arange(3), 2, 1, 1.0, 1.0, 0)
    sampling.assign_images(sampling.sample_uniform(np.arange(3), 2, 1, 0), np.arange(3).repeat(2), 1, 1, 0)


def _check_ways(dataset: Dataset, split: str, n_way: int, n_classes: int) -> None:
    if isinstance(n_way, int | np.integer) and n_way > n_classes:
        raise BadInput(
            f"n_way must be at most {n_classes}, the number of classes in split {split!r} of {dataset.title}. "
            f"Got {n_way}. Lower n_way or pick another split."
        )


def _with_images(
    dataset: Dataset, tasks: Tasks, n_shot: int, n_query: int | None, seed: int, usable: np.ndarray | None
) -> Tasks:
    of_image = dataset.image_class_ids()
    if usable is not None:
        masked = np.full(len(of_image), PAD, dtype=np.int64)
        masked[usable] = of_image[usable]
        of_image = masked
    hand = n_shot + (n_query or 0)
    used = np.unique(tasks.class_ids)
    sizes = np.bincount(of_image[of_image >= 0], minlength=dataset.n_classes)
    smallest = used[sizes[used].argmin()]
    if sizes[smallest] < hand:
        raise BadInput(
            f"A class needs n_shot + n_query = {hand} images. Class {dataset.classes['class_name'][smallest]!r} of "
            f"{dataset.title} has {sizes[smallest]}. Lower n_shot or n_query."
        )
    return sampling.assign_images(tasks, of_image, n_shot, n_query or 0, seed)


# A task made by hand -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassSet:
    """A hand-made task: its coarsity, its lowest superordinate, and the share of uniform tasks that are finer."""

    coarsity: float
    superordinate: str
    superordinate_classes: int
    share_finer: float


def class_set(graph: taxonomy.Dag, distances: np.ndarray, positions: Sequence[int]) -> ClassSet:
    """Measures the task of the classes at these places of the split."""
    coarsity = float(taxonomy.coarsity(distances, np.asarray(positions)))
    node = taxonomy.lowest_superordinate(graph, positions)
    uniform = sampling.sample_uniform(np.arange(len(distances)), len(positions), 2000, 0)
    finer = taxonomy.coarsity(distances, uniform.class_ids) < coarsity - 1e-9
    return ClassSet(coarsity, graph.names[node], int(graph.below[node].sum()), float(finer.mean()))
