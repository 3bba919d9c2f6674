"""Lesson 2: contexts (Zhang et al. 2024, MetaCoCo)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fsviz.analyses.lessons.lesson import (
    HARDLY,
    METHOD,
    ControlPosition,
    Curve,
    Example,
    Lesson,
    Question,
    curve_of,
    example_of,
    fitted_shape,
    load_features,
    paired_difference,
    predict,
    recipe_of,
    sample_tasks,
    titles,
    typical,
)
from fsviz.records import Dataset
from fsviz.settings import RawSettings, Settings, to_args
from fsviz.tasks import draw

CONTEXTS: dict[str, tuple[str, RawSettings]] = {
    "same": ("same", {"sampler": "iid"}),
    "quarter": ("25% other", {"sampler": "context", "shift": 0.25}),
    "half": ("50% other", {"sampler": "context", "shift": 0.5}),
    "other": ("100% other", {"sampler": "ood"}),
    "swapped": ("swapped", {"sampler": "spurious"}),
}


def measure(dataset: Dataset) -> list[ControlPosition]:
    """The same queries with support of their contexts, of other contexts, and of those of other classes."""
    table, shape = load_features(dataset), _shape(dataset)
    positions = []
    for name, (title, sampler) in CONTEXTS.items():
        tasks = sample_tasks(dataset, table, shape, **sampler)
        positions.append(ControlPosition(name, title, tasks, predict(dataset, table, tasks)))
    return positions


def _shape(dataset: Dataset) -> Settings:
    """Ways, shots and queries that the most demanding position can give."""
    return fitted_shape(dataset, **CONTEXTS["swapped"][1])


def ask(positions: Sequence[ControlPosition]) -> Question:
    """The question of which support contexts hurt most."""
    same, different, swapped = (next(p for p in positions if p.name == name) for name in ("same", "other", "swapped"))
    loss, further = paired_difference(same, different), paired_difference(different, swapped)
    both = paired_difference(same, swapped)
    is_clear, correct = True, 0
    if max(loss.high, both.high) >= HARDLY:
        correct = 2 if further.low > 0 else 1
        is_clear = both.low > HARDLY if further.low > 0 else loss.low > HARDLY and further.high < HARDLY
    meaning = (
        "These features encode the object.",
        "Features encode the background. Swapped contexts do not cost significantly more.",
        "Features encode the background, so a query is pulled to the class shown there.",
    )
    return Question(
        "Which support contexts hurt most?",
        (
            f"None: the context costs less than {HARDLY:g} points",
            "Any context the queries do not have",
            "The context of another class",
        ),
        correct,
        f"Other contexts cost {loss}, swapped ones {further} more. {meaning[correct] if is_clear else ''}".strip(),
        is_clear=is_clear,
    )


def command(dataset: Dataset, position: str) -> str:
    recipe = recipe_of(dataset, _shape(dataset), **CONTEXTS[position][1])
    arguments = to_args(recipe.arguments | {"backbone": draw.default_backbone(dataset)}, draw.SETTINGS)
    return shlex.join(["fsviz", "evaluate", dataset.name, *arguments, "--methods", METHOD])


def curve(positions: Sequence[ControlPosition]) -> Curve:
    return curve_of(positions, "support contexts, relative to those of the queries")


def _examples(dataset: Dataset, positions: Sequence[ControlPosition]) -> list[Example]:
    task = typical(positions, 0, paired=True)
    at = {"Support in the contexts of the queries": 0, "Support in swapped contexts": len(positions) - 1}
    return [example_of(dataset, title, positions[i], task) for title, i in at.items()]


LESSON = Lesson(
    order=2,
    cause="Context",
    title="Does the classifier use the object or the background?",
    text="Every image shows an object (its class) in a place (its **context**). Classes and queries stay fixed; only "
    "the support's contexts change.",
    paper="Zhang et al. 2024 (MetaCoCo)",
    control="Support contexts",
    hint="Watch the first image of each row.",
    measure=measure,
    positions=titles,
    ask=ask,
    command=command,
    needs=("features", "contexts"),
    curve=curve,
    examples=_examples,
)
