"""Lesson 3: classes that overlap in feature space (Bontonou et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsviz.analyses.lessons.lesson import (
    N_PRINTED,
    N_TASKS,
    SEED,
    ControlPosition,
    Curve,
    Example,
    Lesson,
    Question,
    curve_of,
    fitted_shape,
    load_features,
    predict,
    tie_note,
    titles,
    unpaired_difference,
)
from fsviz.records import Dataset, Features, Tasks
from fsviz.sampling import assign_images
from fsviz.studies import confusion
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES

N_PARTNERS = 7


@dataclass(frozen=True)
class ClassPairs:
    """One class with partners, from the most similar to the least similar one, in alphabetical order.

    name       of the first class
    class_id   of the first class; partners are those of the second classes
    positions  one per partner; facts: "confusion" in bits
    points     (n, 2) per position: images of both classes on two principal components
    labels     (n,) per position: 0 for the first class
    images     (n,) per position: image_ids
    """

    name: str
    class_id: int
    partners: tuple[int, ...]
    positions: tuple[ControlPosition, ...]
    points: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...]
    images: tuple[np.ndarray, ...]


def measure(dataset: Dataset) -> ClassPairs:
    """The class with the most similar neighbour in feature space, paired with that one and with less similar ones."""
    table, shape = load_features(dataset), fitted_shape(dataset)
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    distances = DISTANCES["features"].measure(table, class_ids)
    np.fill_diagonal(distances, np.inf)
    first = int(np.unravel_index(distances.argmin(), distances.shape)[0])
    order = np.argsort(-distances[first], kind="stable")[1:]  # without the class itself
    names = dataset.short_names(class_ids)
    indices = order[np.unique(np.linspace(0, len(order) - 1, N_PARTNERS).round().astype(int))]
    partners = sorted(indices.tolist(), key=lambda at: names[at])  # the ends of the slider must not give the answer
    spec = {"dataset": dataset.name, "backbone": table.backbone, "split": split}
    class_of_image = np.full(len(dataset.image_class_ids()), -1)
    class_of_image[table.image_ids] = table.class_ids
    positions, points, labels, images = [], [], [], []
    for partner in partners:
        pair = class_ids[[first, partner]]
        classes_only = Tasks(np.tile(pair, (N_TASKS, 1)))
        n_shot, n_query = shape["n_shot"], shape["n_query"]
        tasks = assign_images(classes_only, class_of_image, n_shot, n_query, SEED, dataset.image_groups())
        overlap = confusion.pair(spec, int(pair[0]), int(pair[1]))
        facts = {"confusion": float(overlap.bits.mean())}
        predictions = predict(dataset, table, tasks)
        positions.append(ControlPosition(str(int(pair[1])), names[partner], tasks, predictions, facts))
        points.append(_plane(table, overlap.image_ids))
        labels.append(overlap.labels)
        images.append(overlap.image_ids)
    partner_ids = tuple(int(class_ids[partner]) for partner in partners)
    arrays = (tuple(points), tuple(labels), tuple(images))
    return ClassPairs(names[first], int(class_ids[first]), partner_ids, tuple(positions), *arrays)


def ask(pairs: ClassPairs) -> Question:
    """The question of which class is hardest to separate from the first one."""
    positions = pairs.positions
    correct = min(range(len(positions)), key=lambda i: positions[i].mean[0])
    hardest, least = positions[correct], min(positions, key=_overlap)
    tied = tuple(
        i for i, p in enumerate(positions) if i != correct and not unpaired_difference(p, hardest).is_significant
    )
    is_clear = 2 * len(tied) < len(positions) - 1
    follows_overlap = hardest is max(positions, key=_overlap) or hardest.mean[0] < least.mean[0] - least.mean[1]
    return Question(
        f"Which class is hardest to separate from {pairs.name}?",
        tuple(position.title for position in positions),
        correct,
        f"{hardest.title}: {hardest.mean[0]:.1f}%, {_overlap(hardest):.2f} bits of overlap (chance level 50%). "
        f"Least overlap: {least.title}, {_overlap(least):.2f} bits, {least.mean[0]:.1f}%. "
        + (
            "Overlapping classes cannot be separated by one image each."
            if follows_overlap
            else "Here overlap does not predict which class is hard."
        )
        + tie_note([positions[i].title for i in tied]),
        tied,
        is_clear,
    )


def _overlap(position: ControlPosition) -> float:
    return position.facts["confusion"]


def _plane(table: Features, image_ids: np.ndarray) -> np.ndarray:
    """First two principal components (n, 2) of the images' features at unit length."""
    rows = np.searchsorted(table.image_ids, image_ids)
    values = np.asarray(table.values[rows], dtype=float)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    values -= values.mean(axis=0)
    scale, vectors = np.linalg.eigh(values @ values.T)
    return vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(scale[::-1][:2], 0))


def command(dataset: Dataset, position: str) -> str:
    spec = {"dataset": dataset.name, "backbone": draw.default_backbone(dataset), "split": draw.default_split(dataset)}
    return confusion.command(confusion.SCHEMA.check(spec))


def _positions(pairs: ClassPairs) -> Mapping[str, str]:
    return titles(pairs.positions)


def curve(pairs: ClassPairs) -> Curve:
    return curve_of(pairs.positions, f"second class, with {pairs.name}", in_order=False)


def _examples(dataset: Dataset, pairs: ClassPairs) -> list[Example]:
    """The first class, and the second class of every pair."""
    own, *_ = (images[labels == 0] for images, labels in zip(pairs.images, pairs.labels, strict=True))
    partners = [images[labels == 1] for images, labels in zip(pairs.images, pairs.labels, strict=True)]
    names = [pairs.name, *(position.title for position in pairs.positions)]
    rows = list(zip(names, (ids[: N_PRINTED + 1].tolist() for ids in (own, *partners)), strict=True))
    half = (len(rows) + 1) // 2
    return [Example("The classes", rows[:half]), Example("", rows[half:])]


LESSON = Lesson(
    order=3,
    cause="Confusion",
    title="Which classes does the backbone confuse?",
    text="A **backbone** turns images into features. If two classes form one cloud of features, one labelled image "
    "each cannot separate them.",
    paper="Bontonou et al. 2020",
    control="Second class",
    hint="Try them all.",
    measure=measure,
    positions=_positions,
    ask=ask,
    command=command,
    min_classes=4,
    curve=curve,
    examples=_examples,
    by_position=True,
)
