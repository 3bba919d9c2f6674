"""Lesson 4: hard and easy support images (Basu et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fsviz import evaluation
from fsviz.analyses.lessons.lesson import (
    HARDLY,
    N_TASKS,
    SEED,
    SHAPE,
    ControlPosition,
    Curve,
    Example,
    Lesson,
    Question,
    curve_of,
    example_of,
    load_features,
    mean_difference,
    paired_difference,
    predict,
    titles,
    typical,
)
from fsviz.records import Dataset, Features, Tasks
from fsviz.studies import support_sets
from fsviz.tasks import draw

N_SUPPORTS = 41  # random supports of the same queries: an odd number, so that percentiles are single supports
SUPPORTS: dict[str, tuple[str, float | None]] = {  # title, and rank among random supports
    "hard": ("hard", None),
    "unlucky": ("unlucky", 0.1),
    "typical": ("typical", 0.5),
    "lucky": ("lucky", 0.9),
    "easy": ("easy", None),
}


def measure(dataset: Dataset) -> list[ControlPosition]:
    """The same queries with the hard and the easy support of a search, and with random ones in between."""
    table = load_features(dataset)
    spec = _spec(dataset, table.backbone)
    tasks, _ = support_sets.sample_tasks(spec)
    searched = support_sets.search_and_classify(spec, tasks, table, spec["seed"])
    supports = random_supports(table, tasks)  # (R, T, W, S)
    again = tasks.take(np.tile(np.arange(len(tasks)), N_SUPPORTS))
    flat = replace(again, support=supports.reshape(-1, *supports.shape[2:]))
    accuracy = evaluation.task_accuracy(predict(dataset, table, flat)).reshape(N_SUPPORTS, len(tasks))
    ranked = np.argsort(accuracy, axis=0, kind="stable")
    positions = []
    for name, (title, rank) in SUPPORTS.items():
        if rank is None:
            position_tasks = searched.tasks[name]
        else:
            row = ranked[round(rank * (N_SUPPORTS - 1))]
            position_tasks = replace(tasks, support=supports[row, np.arange(len(tasks))])
        predictions = predict(dataset, table, position_tasks)
        positions.append(ControlPosition(name, title, position_tasks, predictions))
    return positions


def ask(positions: Sequence[ControlPosition]) -> Question:
    """Whether the loss to the hard or the gain to the easy support is larger."""
    by_name = {position.name: position for position in positions}
    hard, typical_, easy = by_name["hard"], by_name["typical"], by_name["easy"]
    down, up = paired_difference(typical_, hard), paired_difference(easy, typical_)
    asymmetry = mean_difference((typical_.accuracy - hard.accuracy) - (easy.accuracy - typical_.accuracy))
    correct = 2 if asymmetry.is_small else 0 if asymmetry.points > 0 else 1
    chance = paired_difference(by_name["lucky"], by_name["unlucky"])
    return Question(
        "Which is larger: the loss to the hard support or the gain to the easy one?",
        (
            "Loss to the hard one",
            "Gain to the easy one",
            f"About equal: less than {HARDLY:g} points apart",
        ),
        correct,
        f"Down {down}, up {up}. Luck alone (worst to best 10% of random supports) makes {chance}: mean accuracy hides "
        "this risk.",
        is_clear=asymmetry.is_small or asymmetry.low > HARDLY or asymmetry.high < -HARDLY,
    )


def _spec(dataset: Dataset, backbone: str) -> support_sets.SupportSpec:
    settings = {"split": draw.default_split(dataset), "n_tasks": N_TASKS // 4, "seed": SEED}
    shape = support_sets.fit(dataset, backbone, {"n_shot": SHAPE["n_shot"], "split": settings["split"]}).values
    shape = {name: min(size, shape.get(name, size)) for name, size in SHAPE.items()}
    return support_sets.check({"dataset": dataset.name, "backbone": backbone, **shape, **settings})


def random_supports(table: Features, tasks: Tasks) -> np.ndarray:
    """Random supports (R, T, W, S) of the same queries: images of the class without the queries and their groups."""
    rng = np.random.default_rng(SEED)
    n_tasks, n_way, n_shot = tasks.support.shape
    supports = np.empty((N_SUPPORTS, n_tasks, n_way, n_shot), dtype=np.int64)
    pools = {int(c): table.image_ids[table.class_ids == c] for c in np.unique(tasks.class_ids)}
    for t in range(n_tasks):
        for w in range(n_way):
            pool, query = pools[int(tasks.class_ids[t, w])], tasks.query[t, w]
            pool = pool[~np.isin(pool, query)]
            if table.groups is not None:
                pool = pool[~np.isin(table.groups[pool], table.groups[query])]
            supports[:, t, w] = pool[rng.random((N_SUPPORTS, len(pool))).argsort(axis=1)[:, :n_shot]]
    return supports


def command(dataset: Dataset, position: str) -> str:
    return support_sets.command(_spec(dataset, draw.default_backbone(dataset)))


def curve(positions: Sequence[ControlPosition]) -> Curve:
    return curve_of(positions, "support images of the same queries")


def _examples(dataset: Dataset, positions: Sequence[ControlPosition]) -> list[Example]:
    task = typical(positions, 0, paired=True)
    at = {"Hardest support": 0, "Easiest support": len(positions) - 1}
    return [example_of(dataset, title, positions[i], task) for title, i in at.items()]


LESSON = Lesson(
    order=4,
    cause="Support",
    title="How much depends on the support images?",
    text="The labelled images are chosen at random. The queries stay fixed; the support ranges from a **hard** to "
    "an **easy** one, both the result of a search.",
    paper="Basu et al. 2023",
    control="Support images",
    hint="What do the hard ones have in common?",
    measure=measure,
    positions=titles,
    ask=ask,
    command=command,
    curve=curve,
    examples=_examples,
)
