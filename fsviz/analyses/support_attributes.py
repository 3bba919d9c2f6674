"""Which attributes explain that hard support sets are hard? Gaps between support and query, and what they cost.

support sets -> gaps of every attribute -> what gaps cost, on random supports -> reasons, task by task
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz import evaluation, features
from fsviz.difficulty import attribute_effects, attribute_gaps
from fsviz.difficulty.attribute_effects import AttributeEffect, AttributeEffects
from fsviz.difficulty.attribute_gaps import AttributeDifference, attribute_names
from fsviz.records import PAD, Dataset, Progress, Tasks
from fsviz.studies import evaluate
from fsviz.studies.support_sets import SupportSets, classify, searched_features
from fsviz.tables import Column, Table

__all__ = ["AttributeDifference", "AttributeEffect", "AttributeEffects", "attribute_names"]

COSTS = Table(
    "What a gap in an attribute costs",
    Column("attribute", "Attribute"),
    Column("kind", "Kind"),
    Column("cost", "Cost of a gap of one", kind="points", interval="ci95"),
    Column("p_holm", "p (Holm)", kind="p"),
    Column("explains", "Explains", "% of tasks", 0, kind="share"),
)
_COST_SECONDS = 3.0  # that random supports may take to be classified for what gaps cost
_FEWEST_COSTED = 40  # tasks that costs are measured on even where that takes longer


def gap_table(sets: SupportSets, dataset: Dataset, by: str = "task") -> pd.DataFrame:
    """Mean gap of every attribute between support and query, for every set, against what chance gives
    (see difficulty.attribute_gaps)."""
    return attribute_gaps.gap_table(dataset, dict(sets.tasks), by)


def explain(sets: SupportSets, dataset: Dataset, progress: Progress | None = None) -> AttributeEffects | None:
    """Which attributes explain that the hard supports of every task are hard (see difficulty.reasons).

    Costs are measured by the study's own classifier on random supports of the first tasks, as many as take a few
    seconds. None where the dataset has no attributes.
    """
    if not attribute_names(dataset):
        return None
    spec, tasks = sets.spec, sets.tasks["hard"]
    table = searched_features(spec, features.load(dataset, spec["backbone"]))
    attributes = [attribute_gaps.read_attribute(dataset, name) for name in attribute_names(dataset)]
    seconds = evaluate.guess_seconds(dataset, spec["backbone"], spec["classifier"], {}, tasks) / len(tasks)
    affordable = int(_COST_SECONDS / max(1e-9, seconds * attribute_effects.N_CLASSIFIED))
    first = tasks.take(slice(0, max(_FEWEST_COSTED, min(attribute_effects.N_TASKS, affordable))))
    supports = attribute_effects.random_supports(table, first, attribute_effects.N_CLASSIFIED, spec["seed"])
    if progress is not None:
        progress(0, 1, "classifying random supports")
    said = classify(spec, table, attribute_effects.one_by_one(first, supports), dataset)
    accuracy = evaluation.task_accuracy(said).reshape(supports.shape[:2])
    costs = attribute_effects.cost_table(attributes, first, supports, accuracy, dataset.image_class_ids(), progress)
    return attribute_effects.explain(attributes, tasks, costs, table, spec["seed"], progress)


def points_of(sets: SupportSets, explained: AttributeEffects, which: str) -> np.ndarray:
    """(T, A) what the gaps of another set cost beyond those of random supports of the same tasks, in points."""
    gaps = [attribute_gaps.measure_gap(a, sets.tasks[which], by="class").gap for a in explained.attributes]
    return (np.stack(gaps, axis=1) - explained.by_chance) * explained.costs["cost"].to_numpy(dtype=float)


def describe_effects(sets: SupportSets, explained: AttributeEffects, task: int) -> str:
    """The share of a hard support's cost that its attribute shifts explain, as a sentence."""
    lost = 100 * float(sets.accuracy("random")[task] - sets.accuracy("hard")[task])
    reasons = explained.reasons(task)
    total = f"the {lost:.0f} points that this hard support costs compared with the random one"
    if not reasons:
        return "No attribute explains it: every costly shift is within the range of 95% of random supports."
    if lost <= 0:
        return "Hard and random supports are equally good here." if lost == 0 else "The hard support is better here."
    if len(reasons) == 1:
        return f"This is about {reasons[0].points:.1f} of {total}."
    points = sum(reason.points for reason in reasons)
    return f"Together at most {points:.1f} of {total}: costs of associated attributes overlap."


def format_values(dataset: Dataset, image_ids: np.ndarray, attribute: str) -> list[tuple[int, str]]:
    """Images in the order of an attribute, each with its value as text."""
    assert dataset.images is not None  # it has attributes
    values = dataset.images[attribute].loc[image_ids].sort_values(kind="stable")
    return [(int(i), f"{v:.2f}" if isinstance(v, float) else str(v)) for i, v in values.items()]


def class_differences(
    sets: SupportSets, dataset: Dataset, explained: AttributeEffects | None, task: int, which: str
) -> list[AttributeDifference | None]:
    """For every class of one task the difference between its support and query images that costs most beyond what
    random supports of this class show; None where no attribute with a real cost differs more than these."""
    tasks = sets.tasks[which].take(slice(task, task + 1))
    used = np.flatnonzero(tasks.class_ids[0] != PAD)
    if explained is None:
        return [None] * len(used)
    costs = explained.costs.set_index("attribute")["cost"].where(explained.costs["significant"].to_numpy())
    table = searched_features(sets.spec, features.load(dataset, sets.spec["backbone"]))
    supports = attribute_effects.random_supports(table, tasks, attribute_effects.N_RANDOM, sets.spec["seed"])[0]
    # every class a task of its own: what its support would be by chance
    alone = Tasks(tasks.class_ids[0][used, None], tasks.support[0][used, None], tasks.query[0][used, None])
    by_chance = attribute_effects.gaps_of_supports(
        explained.attributes, alone, np.moveaxis(supports[:, used], 0, 1)[:, :, None]
    )
    place = {attribute.name: a for a, attribute in enumerate(explained.attributes)}
    chosen: list[AttributeDifference | None] = []
    for way, of_class in enumerate(attribute_gaps.class_differences(dataset, tasks, 0)):
        cost = {d: (d.gap - by_chance[way, :, place[d.attribute]].mean()) * costs[d.attribute] for d in of_class}
        rare = {
            d: np.mean(by_chance[way, :, place[d.attribute]] < d.gap - 1e-9) >= 1 - attribute_effects.LEVEL
            for d in of_class
        }
        real = [d for d in of_class if cost[d] > 0 and rare[d]]
        chosen.append(max(real, key=cost.__getitem__, default=None))
    return chosen


def task_gap(sets: SupportSets, dataset: Dataset, attribute: str, which: str = "hard") -> np.ndarray:
    """Gap (T,) of one attribute in every task of a set: what tasks can be filtered by."""
    return attribute_gaps.measure_gap(attribute_gaps.read_attribute(dataset, attribute), sets.tasks[which]).gap
