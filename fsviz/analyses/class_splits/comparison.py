"""The split next to others of the same classes: random, by superclasses, the dataset's own, saved."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.analyses.class_splits.held_out import held_out_sides, side_facts
from fsviz.analyses.class_splits.search import RANDOM, THIS, SplitResult, find_split, of_parts, positions_of
from fsviz.datasets import saved_splits
from fsviz.errors import FsvizError
from fsviz.records import SIDES, Dataset
from fsviz.splits.class_features import ClassFeatures


def comparison_table(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> pd.DataFrame:
    """The split and others of the same classes.

    Columns split, train, val, test (numbers of classes), nearest (mean distance of a test class to its nearest train
    class), gap (between the means of train and of held-out classes), and the test side by itself (see `side_facts`).
    """
    compared_by_name = compared_splits(dataset, classes, result)
    sides = held_out_sides(dataset, classes, [compared.split for compared in compared_by_name.values()])
    table = []
    for side, (name, compared) in zip(sides, compared_by_name.items(), strict=True):
        parts = compared.split.parts
        train, held = (
            classes.points[positions_of(classes, compared.split.on(*on))].mean(axis=0)
            for on in (("train",), ("val", "test"))
        )
        sizes = {side: len(ids) for side, ids in parts.items()}
        gap = float(np.linalg.norm(train - held))
        table.append({"split": name, **sizes, "nearest": compared.nearest, "gap": gap, **side_facts(side)})
    return pd.DataFrame(table)


def compared_splits(dataset: Dataset, classes: ClassFeatures, result: SplitResult) -> dict[str, SplitResult]:
    """The split and others of the same classes, by title: random, by superclasses, the dataset's own, saved."""
    spec = result.settings
    rows = {THIS: result}
    kinds = {"random": RANDOM, "superclasses": "whole superclasses"}
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
            saved = of_parts(classes, saved_splits.load_split(dataset, name))
        except FsvizError:  # of other classes: the dataset's notes say so
            continue
        if saved is not None:
            rows[f"saved: {name}"] = saved
    return rows
