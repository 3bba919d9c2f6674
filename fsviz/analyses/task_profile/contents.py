"""The contents of a task: pairs of classes, taxonomy, contexts, and other support sets."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fsviz import features
from fsviz.analyses import custom_task
from fsviz.analyses.task_profile.profile import MethodResult, TaskProfile
from fsviz.errors import FsvizError, Missing
from fsviz.records import PAD
from fsviz.studies import support_sets
from fsviz.studies.support_sets import SupportSets
from fsviz.tasks import draw
from fsviz.taxonomy import DAG, DISTANCE, DISTANCES, Dag, maps

OVERLAP = "confusion"  # the name of the overlap of class pairs, in links
MAX_SHOWN = 25  # classes of a task that are compared pair by pair


# Its classes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassPairs:
    """A number for every pair of classes of the task (W, W).

    max_value  the end of a scale that is the same for every task
    """

    name: str
    title: str
    values: np.ndarray
    description: str
    max_value: float


def split_of(profile: TaskProfile) -> str:
    """The split of the task: that of its recipe, else the smallest that has its classes."""
    dataset, requested = profile.dataset, str(profile.recipe.get("split", ""))
    splits = [requested] if requested in dataset.splits else []
    splits += sorted(dataset.splits, key=lambda name: len(dataset.splits[name]))
    return next((s for s in splits if np.isin(profile.class_ids, dataset.split_class_ids(s)).all()), "all")


def class_pairs(profile: TaskProfile) -> list[ClassPairs]:
    """The distances and the overlap of every pair of classes, as far as they are available."""
    dataset, backbone, ids = profile.dataset, profile.backbone, profile.class_ids
    if not 2 <= len(ids) <= MAX_SHOWN:
        return []
    pairs, split, recipe = [], split_of(profile), profile.recipe
    positions = _positions(profile, split)
    requested = str(recipe.get("distance", DISTANCE.default))
    kinds = [requested] if requested in draw.possible_distances(dataset) else []
    kinds += [str(DISTANCE.default), "features"]
    for kind in dict.fromkeys(kinds):
        if kind not in draw.possible_distances(dataset) or (kind == "features" and not backbone):
            continue
        try:
            distances = draw.class_distances(dataset, split, kind, str(recipe.get("dag", DAG.default)), backbone)
        except FsvizError:  # a class outside the taxonomy
            continue
        title = DISTANCES[kind].title
        name = "Class distance (features)" if kind == "features" else "Semantic distance"
        pairs.append(
            ClassPairs(kind, name, distances[np.ix_(positions, positions)], f"{name} ({title}).", distances.max())
        )
    if backbone:
        try:
            bits = custom_task.pair_confusions(dataset, backbone, ids)
            description = "Class overlap (Louvain) of all their images: 0 bits separate, 1 bit fully mixed."
            pairs.append(ClassPairs(OVERLAP, "Class overlap (Louvain)", bits, description, 1.0))
        except FsvizError:
            pass
    return pairs


def predicted_pairs(result: MethodResult, n_way: int) -> np.ndarray:
    """The confusion matrix (W, W): number of queries by true class (rows) and predicted class."""
    assert result.predictions is not None
    predicted = result.predictions.predicted[0]
    counts = np.zeros((n_way, n_way), dtype=np.int64)
    for way in range(n_way):
        np.add.at(counts[way], predicted[way][predicted[way] != PAD], 1)
    return counts


def tree(profile: TaskProfile) -> tuple[Dag, list[int]] | None:
    """The taxonomy above the split's classes, and the positions of the task's classes; None without a taxonomy."""
    if profile.dataset.taxonomy is None or len(profile.class_ids) > MAX_SHOWN:
        return None
    split = split_of(profile)
    try:
        graph = maps.spanning_graph(profile.dataset, split, str(profile.recipe.get("dag", DAG.default)))
    except FsvizError:
        return None
    return graph, _positions(profile, split)


def _positions(profile: TaskProfile, split: str) -> list[int]:
    """The positions of the task's classes among those of a split."""
    ids = profile.dataset.split_class_ids(split).tolist()
    return [ids.index(int(c)) for c in profile.class_ids]


def contexts(profile: TaskProfile) -> pd.DataFrame | None:
    """Contexts of support and queries by class, with counts, and how many queries share a context with the support.

    None if contexts are not available.
    """
    images = profile.dataset.images
    if images is None or "context" not in images.columns or not profile.has_images:
        return None
    of_image = profile.dataset.image_contexts()
    rows = []
    for way, name in enumerate(profile.names):
        support, query = (side[0, way][side[0, way] != PAD] for side in (profile.tasks.support, profile.tasks.query))
        query_contexts = of_image[query]
        with_context = query_contexts[query_contexts != ""]
        rows.append(
            {
                "class": name,
                "support": _counted(of_image[support]),
                "query": _counted(query_contexts),
                "shared": int(np.isin(with_context, of_image[support]).sum()),
                "n": len(with_context),
            }
        )
    return pd.DataFrame(rows)


def _counted(values: np.ndarray) -> str:
    names, counts = np.unique(values[values != ""], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{names[i]} {counts[i]}" if counts[i] > 1 else str(names[i]) for i in order)


# Other support sets ------------------------------------------------------------------------------------------------


def support_sets_of(profile: TaskProfile, classifier: str = "protonet") -> SupportSets:
    """Hard and easy support sets for the same queries, by the accuracy search, with the task's own."""
    if not profile.backbone:
        raise Missing("Hard and easy support sets need features. Extract features first.")
    dataset, recipe = profile.dataset, profile.recipe
    table = features.load(dataset, profile.backbone)
    spec = support_sets.check(
        {
            "dataset": dataset.name,
            "backbone": profile.backbone,
            "split": split_of(profile),
            "n_way": len(profile.class_ids),
            "n_shot": profile.tasks.support.shape[2],
            "n_query": profile.tasks.query.shape[2],
            "classifier": classifier,
            "keep_groups": bool(recipe.get("keep_groups", True)),
        }
    )
    alone = replace(profile.tasks, measures={})
    return support_sets.search_and_classify(spec, alone, table, 0)
