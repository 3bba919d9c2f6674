"""Lesson 5: test classes far from the training classes (Arnold & Sha 2021)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from fsviz.analyses import class_splits, transfer
from fsviz.analyses.lessons.lesson import HARDLY, Curve, Difference, Lesson, Question
from fsviz.errors import Missing
from fsviz.records import Dataset
from fsviz.training import TITLES

TRAINER = "multiclass"  # its recorded accuracies show the cost of distant test classes


@dataclass(frozen=True)
class TransferLesson:
    """Splits of increasing divergence, and the accuracy of networks trained on their training classes.

    splits   one per target divergence
    points   a row per divergence: x (reached), accuracy, ci95 over test classes; mean of a split and its mirror image
    slope    points of accuracy per unit of divergence
    n_runs   number of trained networks, with the date and the minutes of the complete grid
    """

    splits: tuple[class_splits.SplitResult, ...]
    points: pd.DataFrame
    slope: transfer.AccuracySlope
    n_runs: int
    date: str
    minutes: float


def measure(dataset: Dataset) -> TransferLesson:
    """Recorded accuracies of networks, which take an hour to train, and their splits."""
    grids = transfer.training_grid(dataset.name)
    if not grids:
        raise Missing(
            f"No networks were trained on splits of {dataset.title}. The page Train–test distance trains some."
        )
    grid = grids[0]
    points = transfer.accuracy_points(grid.rows)
    points = points[points["method"] == TRAINER].sort_values("asked", ignore_index=True)
    slope = next(s for s in transfer.slopes(grid.rows) if s.method == TRAINER and s.sides == "both")
    classes = class_splits.class_features(dataset, str(grid.facts["recipe"]["backbone"]))
    targets = [{"divergence": float(divergence)} for divergence in points["asked"]]
    splits = class_splits.splits_over(dataset, classes, targets, penalty=transfer.PENALTY)  # the weight of the grid
    date, minutes = str(grid.facts["date"]), float(grid.facts["seconds"]) / 60
    return TransferLesson(tuple(splits), points, slope, int(points["n_runs"].sum()), date, minutes)


def ask(lesson: TransferLesson) -> Question:
    """The effect of divergence on accuracy."""
    slope = lesson.slope
    change = _change(lesson)
    nearest = [split.nearest for split in lesson.splits]
    printed = transfer.printed("Table 5")
    published = printed["value"][printed["row"] == TITLES[TRAINER]]
    interval = "" if slope.ci95 is None else f" ± {slope.ci95:.1f}"
    return Question(
        "What happens to accuracy from the smallest to the largest divergence?",
        ("It falls", "It rises", f"It changes by less than {HARDLY:g} points"),
        2 if change.is_small else 0 if slope.slope < 0 else 1,
        f"{slope.slope:+.1f}{interval} points per unit of divergence over {lesson.n_runs:,} small networks (paper: "
        f"{published.min():+.1f} to {published.max():+.1f})."
        + ("" if change.is_significant else " The change is not significant.")
        + (" Each test class still has a training class about as close." if nearest[-1] < 1.1 * nearest[0] else ""),
        is_clear=change.is_small or change.low > HARDLY or change.high < -HARDLY,
    )


def _change(lesson: TransferLesson) -> Difference:
    """Points from the smallest to the largest divergence, by the slope."""
    span = float(lesson.points["x"].max() - lesson.points["x"].min())
    half_width = math.inf if lesson.slope.ci95 is None else lesson.slope.ci95 * span
    return Difference(lesson.slope.slope * span, half_width)


def command(dataset: Dataset, position: str) -> str:
    return shlex.join(["fsviz", "transfer", dataset.name, "--recorded"])


def _why_not(dataset: Dataset) -> str:
    return "" if transfer.training_grid(dataset.name) else "needs recorded networks"


def _positions(lesson: TransferLesson) -> Mapping[str, str]:
    return {f"{target:g}": f"R = {target:g}" for target in lesson.points["asked"]}


def curve(lesson: TransferLesson) -> Curve:
    return Curve(
        list(_positions(lesson).values()),
        lesson.points["accuracy"].tolist(),
        lesson.points["ci95"].tolist(),
        "target divergence between training and test classes",
    )


LESSON = Lesson(
    order=5,
    cause="Training classes",
    title="Is it harder if test classes differ from training classes?",
    text="A network trains on some classes and is tested on others. Here the two sets lie at a chosen **divergence**.",
    paper="Arnold & Sha 2021",
    control="Divergence R",
    hint="Watch the two sets move apart.",
    measure=measure,
    positions=_positions,
    ask=ask,
    command=command,
    why_not=_why_not,
    curve=curve,
)
