"""Reference for trained networks: ProtoNet on the frozen features of a backbone, on tasks of the same test classes.

    rows of finished training runs + the test classes of each run -> the same rows for the frozen backbone

Its accuracy says how hard the test classes are by themselves: a fall with the divergence that the frozen backbone has
too is no cost of training on distant classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fsviz import evaluation, features, sampling
from fsviz.analyses import class_splits, transfer
from fsviz.analyses.class_splits import ClassFeatures
from fsviz.analyses.transfer import COLUMNS, COMPARED, DIVERGENCE, FIRST, SECOND, TrainingGrid
from fsviz.errors import BadInput
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Dataset, Tasks
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, RawSettings
from fsviz.studies import evaluate
from fsviz.tasks import draw, fitting
from fsviz.text import percent

FROZEN = "frozen"  # the method of its rows
N_TASKS = 200
TOLERANCE = 1e-3  # of the divergence of a recorded split that is computed again


@dataclass(frozen=True)
class HeldOutClasses:
    """The test classes of a run, and the shape of its test tasks."""

    class_ids: tuple[int, ...]
    n_way: int = int(N_WAY.default)
    n_shot: int = int(N_SHOT.default)
    n_query: int = int(N_QUERY.default)


def held_out_of_runs(dataset: Dataset, specs: Mapping[str, RawSettings]) -> dict[str, HeldOutClasses]:
    """The test classes of runs of this workspace, by run: takes their specs."""
    at = {name: i for i, name in enumerate(dataset.distinct_names(np.arange(dataset.n_classes)))}
    held_out = {}
    for run, spec in specs.items():
        names = spec["split"]["test"]
        if all(name in at for name in names):
            class_ids = tuple(sorted(at[name] for name in names))
            held_out[run] = HeldOutClasses(class_ids, spec["n_way"], spec["n_shot"], spec["n_query"])
    return held_out


def held_out_of_grid(dataset: Dataset, classes: ClassFeatures, grid: TrainingGrid) -> dict[str, HeldOutClasses]:
    """The test classes of a recorded grid, by run. Its splits are computed again; one that differs is left out."""
    rows = grid.rows[grid.rows["comparison"] == DIVERGENCE]
    recipe = grid.facts["recipe"]
    shape = {name: int(recipe[name]) for name in ("n_way", "n_shot", "n_query") if name in recipe}
    targets = sorted(rows["asked"].unique())
    results = class_splits.splits_over(
        dataset, classes, [{"divergence": float(target)} for target in targets], penalty=transfer.PENALTY
    )
    held_out = {}
    for target, result in zip(targets, results, strict=True):
        sides = {FIRST: result.split, SECOND: transfer.mirrored(result)}
        own = rows[rows["asked"] == target]
        for run, side, reached in own[["run", "side", "reached"]].drop_duplicates().itertuples(index=False):
            if result.split.reached is not None and abs(reached - result.split.reached) < TOLERANCE:
                held_out[run] = HeldOutClasses(tuple(sides[side].on("test").tolist()), **shape)
    return held_out


def frozen_rows(
    dataset: Dataset, backbone: str, rows: pd.DataFrame, held_out: Mapping[str, HeldOutClasses]
) -> pd.DataFrame:
    """One row per divergence and side, and per other split, for ProtoNet on frozen features; columns as of `rows`."""
    is_reference = (rows["comparison"] == DIVERGENCE) | ((rows["comparison"] == "") & rows["mode"].isin(COMPARED))
    tested = rows[is_reference & rows["run"].isin(held_out)]
    modes = tested["mode"].where(tested["comparison"] == "", "")
    keys = tested.assign(mode=modes, held_out=tested["run"].map(held_out))
    keys = keys.drop_duplicates(["asked", "side", "mode", "held_out"])
    accuracies = {each: _accuracy(dataset, backbone, each) for each in keys["held_out"].unique()}
    table = [
        {name: row[name] for name in ("comparison", "asked", "reached", "side", "mode")}
        | {"method": FROZEN, "trained_on": "", "seed": 0, "run": "", "val_accuracy": np.nan}
        | accuracies[row["held_out"]]
        for row in keys.to_dict("records")
        if accuracies[row["held_out"]]
    ]
    numbers = ["asked", "reached", "accuracy", "ci95", "ci95_classes", "val_accuracy"]
    return pd.DataFrame(table, columns=list(COLUMNS)).astype(dict.fromkeys(numbers, float))


def _accuracy(dataset: Dataset, backbone: str, held_out: HeldOutClasses) -> dict[str, Any]:
    """Accuracy in percent with its intervals; {} if these classes have too few images with features."""
    table = features.load(dataset, backbone)
    of_image = np.full(len(dataset.image_class_ids()), PAD, dtype=np.int64)
    of_image[table.image_ids] = table.class_ids
    class_ids = np.array(held_out.class_ids, dtype=np.int64)
    groups, names = dataset.image_groups(), dataset.classes["class_name"].tolist()
    try:
        tasks: Tasks = sampling.sample_uniform(class_ids, held_out.n_way, N_TASKS, 0)
        tasks = sampling.assign_images(tasks, of_image, held_out.n_shot, held_out.n_query, 0, groups, names)
    except BadInput:
        return {}
    predictions = evaluate.predict_tasks(dataset, backbone, "protonet", {}, tasks)
    accuracy = evaluation.task_accuracy(predictions)
    mean, half = mean_and_ci95(accuracy)
    correct = evaluation.correct_queries(predictions)
    over_classes = evaluation.estimate(accuracy, "classes", correct, tasks).ci95
    return {
        "accuracy": 100 * float(mean),
        "ci95": finite(100 * half),
        "ci95_classes": finite(100 * over_classes),
        "n_tasks": len(tasks),
    }


def of_grid(dataset: Dataset, classes: ClassFeatures, grid: TrainingGrid, backbone: str) -> pd.DataFrame:
    """The rows of the frozen backbone for a recorded grid; `classes` has the features that its splits are made of."""
    return frozen_rows(dataset, backbone, grid.rows, held_out_of_grid(dataset, classes, grid))


def by_target(dataset: Dataset, classes: ClassFeatures, backbone: str) -> tuple[pd.DataFrame, float | None]:
    """Rows of the frozen backbone at every target, on both halves, and the chance level in percent.

    For a dataset on which nothing is trained yet; without enough images there are no rows and no chance level.
    """
    changes = [{"divergence": target} for target in transfer.TARGETS]
    results = class_splits.splits_over(dataset, classes, changes, penalty=transfer.PENALTY)
    cells = [
        (result.split.requested, result.split.reached, side, sides.on("test"))
        for result in results
        for side, sides in ((FIRST, result.split), (SECOND, transfer.mirrored(result)))
    ]
    halves = {str(i): cell[-1] for i, cell in enumerate(cells)}
    of_halves = replace(dataset, splits=halves)
    try:
        fits = [
            fitting.fit(of_halves, {"split": name, "sampler": "uniform"}, draw.IMAGE_DEFAULTS, [backbone], probed=False)
            for name in halves
        ]
    except BadInput:
        return pd.DataFrame(columns=list(COLUMNS)), None
    shape = fitting.smallest(fits).values
    held_out = {
        run: HeldOutClasses(tuple(ids.tolist()), shape["n_way"], shape["n_shot"], shape["n_query"])
        for run, ids in halves.items()
    }
    rows = pd.DataFrame(
        {
            "run": str(i),
            "comparison": DIVERGENCE,
            "asked": target,
            "reached": reached,
            "side": side,
            "mode": "stable",
        }
        for i, (target, reached, side, _) in enumerate(cells)
    )
    return frozen_rows(dataset, backbone, rows, held_out), usual_chance_level(list(held_out.values()))


def untrained_answer(title: str, frozen: pd.DataFrame, backbone: str) -> tuple[str, str]:
    """The answer if no network is trained on splits of a dataset; takes its title and that of the backbone."""
    sentence = f"No network is trained on splits of {title} yet."
    slopes = [slope for slope in transfer.slopes(frozen) if slope.sides == "both"] if len(frozen) else []
    if not slopes:
        return sentence, "Train some at two targets or more to see how accuracy changes with distance."
    half = "" if slopes[0].ci95 is None else f" ± {slopes[0].ci95:.2f}"
    return sentence, (
        f"Frozen {backbone} on the test classes of these splits: {slopes[0].slope:+.2f}{half} points per unit of "
        "divergence, without training."
    )


def cost_answer(rows: pd.DataFrame, frozen: pd.DataFrame, backbone: str) -> tuple[str, str]:
    """The change of accuracy with divergence beyond that of the frozen backbone; takes the title of the backbone.

    Divergent test sides can be hard by themselves, so only the difference from the frozen backbone, which is trained on
    neither side, is a cost of distance.
    """
    slopes = [slope for slope in transfer.slopes(rows) if slope.sides == "both" and slope.ci95 is not None]
    if not slopes:
        return "The cost of distance is not measured yet.", "It needs networks trained at three targets, on both sides."
    best = max(slopes, key=lambda slope: slope.at_zero)
    title = transfer.TITLES[best.method]
    reference = [slope for slope in transfer.slopes(frozen) if slope.sides == "both"] if len(frozen) else []
    beyond = transfer.slope_beyond(rows, frozen, best.method) if reference else None
    if beyond is None or beyond.ci95 is None:
        sentence = (
            f"The accuracy of {title} changes by {best.slope:+.2f} ± {best.ci95:.2f} points per unit of divergence."
        )
        more = ["Without frozen features of the same test classes, this is no cost of distance alone."]
    else:
        change = f"{beyond.slope:+.2f} ± {beyond.ci95:.2f} points per unit of divergence"
        sentence = (
            f"Compared with frozen {backbone} on the same test classes, {title} changes by {change}."
            if abs(beyond.slope) > beyond.ci95
            else f"Compared with frozen {backbone} on the same test classes, {title} shows no significant change: "
            f"{change}."
        )
        half = "" if reference[0].ci95 is None else f" ± {reference[0].ci95:.2f}"
        more = [f"{title} alone: {best.slope:+.2f} ± {best.ci95:.2f}; frozen: {reference[0].slope:+.2f}{half}."]
    lead = transfer.family_slope(rows)
    if lead is not None and lead.ci95 is not None:
        verdict = "hold up better" if lead.slope > 0 else "fall faster"
        if abs(lead.slope) <= lead.ci95:
            verdict = "do not differ significantly"
        more.append(f"Adaptive methods {verdict}: {lead.slope:+.2f} ± {lead.ci95:.2f} points per unit.")
    return sentence, " ".join(more)


def compared_accuracy(frozen: pd.DataFrame, chance_level: float, backbone: str) -> str:
    """Frozen backbone and chance level in words, as baselines of one accuracy; its change is to the first."""
    shares = [f"chance level {chance_level:.0f}%"]
    if len(frozen):
        shares.insert(0, f"vs frozen {backbone} {percent(float(frozen['accuracy'].iloc[0]) / 100)}")
    return ", ".join(shares)


def usual_chance_level(held_out: Sequence[HeldOutClasses]) -> float | None:
    """Chance level in percent if all runs have tasks of the same number of classes, else None."""
    ways = {tested.n_way for tested in held_out}
    return 100 / ways.pop() if len(ways) == 1 else None
