"""The contents of a task: pairs of classes, its tree, contexts, and recorded support sets."""

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

MAX_SHOWN = 25  # classes of a task that are held against each other, pair by pair


# Its classes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassPairs:
    """A number for every two classes of the task (W, W).

    most  the largest number of its kind, for a scale that is the same for every task
    """

    name: str
    title: str
    values: np.ndarray
    what: str
    most: float


def split_of(passport: TaskProfile) -> str:
    """The split that the task is of: its recipe's, else the smallest that holds its classes."""
    dataset, said = passport.dataset, str(passport.found.testbed.recipe.get("split", ""))
    splits = [said] if said in dataset.splits else []
    splits += sorted(dataset.splits, key=lambda name: len(dataset.splits[name]))
    return next((s for s in splits if np.isin(passport.class_ids, dataset.split_class_ids(s)).all()), "all")


def class_pairs(passport: TaskProfile) -> list[ClassPairs]:
    """How far apart the classes are and how much they are mixed up, by everything that is known."""
    dataset, backbone, ids = passport.dataset, passport.backbone, passport.class_ids
    if not 2 <= len(ids) <= MAX_SHOWN:
        return []
    found, split, recipe = [], split_of(passport), passport.found.testbed.recipe
    places = _places(passport, split)
    asked = str(recipe.get("distance", DISTANCE.default))
    kinds = [asked] if asked in draw.possible_distances(dataset) else []
    kinds += [str(DISTANCE.default), "features"]
    for kind in dict.fromkeys(kinds):
        if kind not in draw.possible_distances(dataset) or (kind == "features" and not backbone):
            continue
        try:
            whole = draw.class_distances(dataset, split, kind, str(recipe.get("dag", DAG.default)), backbone)
        except FsvizError:  # a class outside the taxonomy
            continue
        title = DISTANCES[kind].title
        where = "in features" if kind == "features" else "in meaning"
        found.append(
            ClassPairs(
                kind, f"Distance {where}", whole[np.ix_(places, places)], f"Distance {where} ({title}).", whole.max()
            )
        )
    if backbone:
        try:
            bits = custom_task.pair_confusions(dataset, backbone, ids)
            told = "How much the backbone mixes up two classes, in bits: 1 is as much as can be. By all their images."
            found.append(ClassPairs("confusion", "Confusion", bits, told, 1.0))
        except FsvizError:
            pass
    return found


def predicted_pairs(answer: MethodResult, n_way: int) -> np.ndarray:
    """(W, W) how many queries of each class (rows) were named as each class."""
    assert answer.predictions is not None
    said = answer.predictions.predicted[0]
    found = np.zeros((n_way, n_way), dtype=np.int64)
    for way in range(n_way):
        named = said[way][said[way] != PAD]
        np.add.at(found[way], named, 1)
    return found


def tree(passport: TaskProfile) -> tuple[Dag, list[int]] | None:
    """The graph of meanings above the split's classes, and the task's places in it; None where there is none."""
    if passport.dataset.taxonomy is None or len(passport.class_ids) > MAX_SHOWN:
        return None
    split = split_of(passport)
    try:
        graph = maps.spanning_graph(passport.dataset, split, str(passport.found.testbed.recipe.get("dag", DAG.default)))
    except FsvizError:
        return None
    return graph, _places(passport, split)


def _places(passport: TaskProfile, split: str) -> list[int]:
    """Where the task's classes stand among those of a split."""
    ids = passport.dataset.split_class_ids(split).tolist()
    return [ids.index(int(c)) for c in passport.class_ids]


def contexts(passport: TaskProfile) -> pd.DataFrame | None:
    """Per class the contexts of its support and of its queries with how often each, and how many queries were taken in
    a context of the support; None where contexts are not known."""
    images = passport.dataset.images
    if images is None or "context" not in images.columns or not passport.has_images:
        return None
    of_image = passport.dataset.image_contexts()
    rows = []
    for way, name in enumerate(passport.names):
        support, query = (side[0, way][side[0, way] != PAD] for side in (passport.tasks.support, passport.tasks.query))
        seen = of_image[query]
        known = seen[seen != ""]
        rows.append(
            {
                "class": name,
                "support": _counted(of_image[support]),
                "query": _counted(seen),
                "shared": int(np.isin(known, of_image[support]).sum()),
                "n": len(known),
            }
        )
    return pd.DataFrame(rows)


def _counted(values: np.ndarray) -> str:
    names, counts = np.unique(values[values != ""], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return ", ".join(f"{names[i]} {counts[i]}" if counts[i] > 1 else str(names[i]) for i in order)


# Other support sets ------------------------------------------------------------------------------------------------


def support_sets_of(passport: TaskProfile, classifier: str = "protonet") -> SupportSets:
    """The hard and the easy support sets for the same queries, as FastDiffSel finds them, beside the task's own."""
    if not passport.backbone:
        raise Missing("Hard and easy support sets need features of the images.")
    dataset, recipe = passport.dataset, passport.found.testbed.recipe
    table = features.load(dataset, passport.backbone)
    spec = support_sets.check(
        {
            "dataset": dataset.name,
            "backbone": passport.backbone,
            "split": split_of(passport),
            "n_way": len(passport.class_ids),
            "n_shot": passport.tasks.support.shape[2],
            "n_query": passport.tasks.query.shape[2],
            "classifier": classifier,
            "keep_groups": bool(recipe.get("keep_groups", True)),
        }
    )
    alone = replace(passport.tasks, measures={})
    return support_sets.search_and_classify(spec, alone, table, 0)
