"""Lesson 1: semantically close classes (Bennequin et al. 2022)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from fsviz.analyses.lessons.lesson import (
    METHOD,
    SHAPE,
    ControlPosition,
    Curve,
    Difference,
    Example,
    Lesson,
    Question,
    curve_of,
    example_of,
    fitted_shape,
    load_features,
    predict,
    recipe_of,
    sample_tasks,
    titles,
    typical,
    unpaired_difference,
)
from fsviz.records import Dataset
from fsviz.settings import to_args
from fsviz.tasks import draw

ALPHAS = (0.0, 0.1, 0.2, 0.383, 0.7, 1.5)
EDGES = ((5, 10, 20), (5, 15, 25), (10, 20, 30))  # points that separate the answers: the first that fit the interval


def measure(dataset: Dataset) -> list[ControlPosition]:
    """Tasks of random classes, then of semantically closer and closer ones (semantic sampling)."""
    table, shape = load_features(dataset), _shape(dataset)
    positions = []
    for alpha in alphas(dataset):
        tasks = sample_tasks(dataset, table, shape, sampler="semantic", alpha=alpha)
        facts = {"coarsity": float(np.mean(tasks.measures["coarsity"]))}
        position = ControlPosition(f"{alpha:g}", f"α = {alpha:g}", tasks, predict(dataset, table, tasks), facts)
        positions.append(position)
    return positions


def alphas(dataset: Dataset) -> list[float]:
    """The weights of the control, on the scale of the dataset's distances."""
    fitted = draw.fitted_alpha(dataset, n_way=_shape(dataset)["n_way"])
    scale = 1.0 if fitted is None else fitted.alpha / fitted.usual_alpha
    return [float(f"{alpha * scale:.3g}") for alpha in ALPHAS]


def _shape(dataset: Dataset) -> dict[str, int]:
    """Fewer ways than classes: tasks with all of them would be equally close."""
    n_classes = len(dataset.split_class_ids(draw.default_split(dataset)))
    return {**fitted_shape(dataset), "n_way": min(SHAPE["n_way"], max(2, n_classes // 2))}


def ask(positions: Sequence[ControlPosition]) -> Question:
    """The question of how much accuracy drops from random to the closest classes."""
    first, last = positions[0], positions[-1]
    drop = unpaired_difference(first, last)
    options, correct = bands(drop)
    meaning = (
        "Semantically close classes tend to look alike; random-class testbeds rarely test this."
        if drop.low > 0
        else "Here semantically close classes are easier."
        if drop.high < 0
        else "No significant drop: here semantics does not predict difficulty."
    )
    return Question(
        "How much does accuracy drop from random to the closest classes?",
        options,
        max(correct, 0),
        f"{first.mean[0]:.1f}% → {last.mean[0]:.1f}%, a drop of {drop}. {meaning}",
        is_clear=correct >= 0,
    )


def bands(drop: Difference) -> tuple[tuple[str, ...], int]:
    """Answers by points lost, and the one that contains the whole interval; -1 if none does."""
    for low, middle, high in EDGES:
        cuts = (-low, low, middle, high)
        first, last = np.searchsorted(cuts, [drop.low, drop.high], side="right")
        if first == last:
            return _options(low, middle, high), int(first)
    return _options(*EDGES[0]), -1


def _options(low: int, middle: int, high: int) -> tuple[str, ...]:
    return (
        f"It rises by more than {low} points",
        f"It changes by less than {low} points",
        f"It drops by {low} to {middle} points",
        f"It drops by {middle} to {high} points",
        f"It drops by more than {high} points",
    )


def command(dataset: Dataset, position: str) -> str:
    recipe = recipe_of(dataset, _shape(dataset), sampler="semantic", alpha=float(position))
    arguments = to_args(recipe.arguments | {"backbone": draw.default_backbone(dataset)}, draw.SETTINGS)
    return shlex.join(["fsviz", "evaluate", dataset.name, *arguments, "--methods", METHOD])


def curve(positions: Sequence[ControlPosition]) -> Curve:
    return curve_of(positions, "semantic weight of the sampled classes")


def _examples(dataset: Dataset, positions: Sequence[ControlPosition]) -> list[Example]:
    at = {"Random classes": 0, "The closest classes": len(positions) - 1}
    return [example_of(dataset, title, positions[i], typical(positions, i, paired=False)) for title, i in at.items()]


LESSON = Lesson(
    order=1,
    cause="Semantics",
    title="Are tasks with similar classes harder?",
    text="Classes form a taxonomy: two dogs are close, a dog and a cup are not. **Coarsity** is the mean squared "
    "distance between a task's classes; α controls how close the sampled classes are.",
    paper="Bennequin et al. 2022",
    control="Semantic weight α",
    hint="0 samples classes at random. Move right.",
    measure=measure,
    positions=titles,
    ask=ask,
    command=command,
    needs=("features", "taxonomy"),
    min_classes=4,
    curve=curve,
    examples=_examples,
)
