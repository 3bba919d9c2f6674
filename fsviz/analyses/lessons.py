"""Lessons: what makes a task hard, one cause at a time and then combined.

    lesson -> positions of its control -> tasks and predictions at each -> accuracy with its interval
           -> a question with answers, of which the measured one is correct

No answer is fixed: the correct one follows from the numbers of the dataset. Differences that are not significant have
an answer of their own. Intervals are 95% CI over tasks of the same images.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from fsviz import evaluation, features
from fsviz.analyses import class_splits, transfer
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import FsvizError, Missing
from fsviz.numerics import mean_and_ci95
from fsviz.records import Dataset, Features, Predictions, Tasks
from fsviz.sampling import assign_images
from fsviz.settings import RawSettings, to_args
from fsviz.studies import causes, confusion, evaluate, support_sets, task_measures
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES
from fsviz.training import TITLES

METHOD = "protonet"
SHAPE: dict[str, int] = {"n_way": 5, "n_shot": 1, "n_query": 10}
N_TASKS = 200
N_SUPPORTS = 41  # random supports of the same queries: an odd number, so that percentiles are single supports
SEED = 0
ALPHAS = (0.0, 0.1, 0.2, 0.383, 0.7, 1.5)
CONTEXTS: dict[str, tuple[str, RawSettings]] = {
    "same": ("same", {"sampler": "iid"}),
    "quarter": ("25% other", {"sampler": "context", "shift": 0.25}),
    "half": ("50% other", {"sampler": "context", "shift": 0.5}),
    "other": ("100% other", {"sampler": "ood"}),
    "swapped": ("swapped", {"sampler": "spurious"}),
}
SUPPORTS: dict[str, tuple[str, float | None]] = {  # title, and rank among random supports
    "hard": ("hardest", None),
    "unlucky": ("unlucky", 0.1),
    "typical": ("typical", 0.5),
    "lucky": ("lucky", 0.9),
    "easy": ("easiest", None),
}
N_PARTNERS = 7
BANDS = (5.0, 10.0, 20.0)  # points of accuracy that separate the answers
TRAINER = "multiclass"  # its recorded accuracies show the cost of distant test classes


@dataclass(frozen=True)
class Difference:
    """A difference in points of accuracy, and the half-width of its 95% CI."""

    points: float
    half_width: float

    @property
    def low(self) -> float:
        return self.points - self.half_width

    @property
    def high(self) -> float:
        return self.points + self.half_width

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.points:.1f} ± {self.half_width:.1f} points"


@dataclass(frozen=True)
class ControlPosition:
    """A position of a control with its tasks and predictions.

    name   used in links
    facts  further numbers of the position by name
    """

    name: str
    title: str
    tasks: Tasks
    predictions: Predictions
    facts: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def accuracy(self) -> np.ndarray:
        """(T,) in percent."""
        return 100 * evaluation.task_accuracy(self.predictions)

    @cached_property
    def mean(self) -> tuple[float, float]:
        """Mean accuracy in percent and the half-width of its interval."""
        mean, half_width = mean_and_ci95(self.accuracy)
        return float(mean), float(half_width)

    @property
    def summary(self) -> str:
        """Mean accuracy with its interval."""
        return f"{self.mean[0]:.1f} ± {self.mean[1]:.1f}%"


@dataclass(frozen=True)
class Question:
    """A question about the measurements of a lesson.

    correct   position of the correct answer among the options
    tied      positions of answers that are not significantly different from it
    takeaway  the numbers and what they mean, shown after the answer
    """

    text: str
    options: tuple[str, ...]
    correct: int
    takeaway: str
    tied: tuple[int, ...] = ()


def command(dataset: Dataset, lesson: int, position: str) -> str:
    """Command that measures what a lesson shows at a position of its control."""
    backbone, split = _features(dataset).backbone, draw.default_split(dataset)
    if lesson in (1, 2):
        sampler = {"sampler": "semantic", "alpha": float(position)} if lesson == 1 else CONTEXTS[position][1]
        arguments = to_args(_recipe(dataset, **sampler).arguments | {"backbone": backbone}, draw.SETTINGS)
        return shlex.join(["fsviz", "evaluate", dataset.name, *arguments, "--methods", METHOD])
    shape = {"dataset": dataset.name, "backbone": backbone, "split": split, **SHAPE, "seed": SEED}
    if lesson == 3:
        return confusion.command(confusion.SCHEMA.check({n: shape[n] for n in ("dataset", "backbone", "split")}))
    if lesson == 4:
        return support_sets.command(support_sets.check({**shape, "n_tasks": N_TASKS // 4}))
    if lesson == 5:
        return shlex.join(["fsviz", "transfer", dataset.name, "--recorded"])
    return causes.command(causes.check({**shape, "n_tasks": N_TASKS, "methods": [METHOD]}))


# --- 1: semantics --------------------------------------------------------------------------------------------------


def measure_semantics(dataset: Dataset) -> list[ControlPosition]:
    """Tasks of random classes, then of semantically closer and closer ones (semantic sampling)."""
    table = _features(dataset)
    positions = []
    for alpha in ALPHAS:
        recipe = _recipe(dataset, sampler="semantic", alpha=alpha)
        tasks = draw.sample_testbed(dataset, recipe, usable=table.image_ids).tasks
        facts = {"coarsity": float(np.mean(tasks.measures["coarsity"]))}
        position = ControlPosition(f"{alpha:g}", f"α = {alpha:g}", tasks, _predict(dataset, table, tasks), facts)
        positions.append(position)
    return positions


def ask_semantics(positions: Sequence[ControlPosition]) -> Question:
    """The question of how much accuracy drops from random to the closest classes."""
    first, last = positions[0], positions[-1]
    drop = _independent(first, last)
    options, correct = _bands(drop)
    return Question(
        "How many points does accuracy drop from random to the closest classes?",
        options,
        correct,
        f"{first.mean[0]:.1f}% → {last.mean[0]:.1f}%, a drop of {drop}. "
        + (
            "Semantically close classes tend to look alike; random-class testbeds rarely test this."
            if drop.low > 0
            else "No significant drop here: semantics does not predict difficulty."
        ),
    )


# --- 2: context ----------------------------------------------------------------------------------------------------


def measure_context(dataset: Dataset) -> list[ControlPosition]:
    """The same queries with support of their contexts, of other contexts, and of those of other classes."""
    table = _features(dataset)
    positions = []
    for name, (title, sampler) in CONTEXTS.items():
        tasks = draw.sample_testbed(dataset, _recipe(dataset, **sampler), usable=table.image_ids).tasks
        positions.append(ControlPosition(name, title, tasks, _predict(dataset, table, tasks)))
    return positions


def ask_context(positions: Sequence[ControlPosition]) -> Question:
    """The question of which support contexts hurt most."""
    same, different, swapped = (next(p for p in positions if p.name == name) for name in ("same", "other", "swapped"))
    loss, further, both = _paired(same, different), _paired(different, swapped), _paired(same, swapped)
    correct = 0 if max(loss.low, both.low) <= 0 else 2 if min(further.low, both.low) > 0 else 1
    meaning = (
        "Neither cost is significant: these features encode the object.",
        "Features encode the background. Swapped contexts do not cost significantly more.",
        "Features encode the background, so a query is pulled to the class shown there.",
    )
    return Question(
        "Which support contexts hurt most?",
        (
            "None: the context does not matter",
            "Any context the queries do not have",
            "The context of another class",
        ),
        correct,
        f"Other contexts cost {loss}, swapped ones {further} more. {meaning[correct]}",
    )


# --- 3: confusion in features --------------------------------------------------------------------------------------


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


def measure_confusion(dataset: Dataset) -> ClassPairs:
    """The class with the most similar neighbour in feature space, paired with that one and with less similar ones."""
    table = _features(dataset)
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    distances = DISTANCES["features"].measure(table, class_ids)
    np.fill_diagonal(distances, np.inf)
    first = int(np.unravel_index(distances.argmin(), distances.shape)[0])
    order = np.argsort(-distances[first], kind="stable")[1:]  # without the class itself
    names = dataset.distinct_names(class_ids)
    indices = order[np.unique(np.linspace(0, len(order) - 1, N_PARTNERS).round().astype(int))]
    partners = sorted(indices.tolist(), key=lambda at: names[at])  # the ends of the slider must not give the answer
    spec = {"dataset": dataset.name, "backbone": table.backbone, "split": split}
    class_of_image = np.full(len(dataset.image_class_ids()), -1)
    class_of_image[table.image_ids] = table.class_ids
    positions, points, labels, images = [], [], [], []
    for partner in partners:
        pair = class_ids[[first, partner]]
        classes_only = Tasks(np.tile(pair, (N_TASKS, 1)))
        tasks = assign_images(classes_only, class_of_image, SHAPE["n_shot"], SHAPE["n_query"], SEED)
        overlap = confusion.pair(spec, int(pair[0]), int(pair[1]))
        facts = {"confusion": float(overlap.bits.mean())}
        predictions = _predict(dataset, table, tasks)
        positions.append(ControlPosition(str(int(pair[1])), names[partner], tasks, predictions, facts))
        points.append(_plane(table, overlap.image_ids))
        labels.append(overlap.labels)
        images.append(overlap.image_ids)
    partner_ids = tuple(int(class_ids[partner]) for partner in partners)
    arrays = (tuple(points), tuple(labels), tuple(images))
    return ClassPairs(names[first], int(class_ids[first]), partner_ids, tuple(positions), *arrays)


def ask_confusion(pairs: ClassPairs) -> Question:
    """The question of which class is hardest to separate from the first one."""
    positions = pairs.positions
    correct = min(range(len(positions)), key=lambda i: positions[i].mean[0])
    hardest, least = positions[correct], min(positions, key=_overlap)
    tied = tuple(i for i, p in enumerate(positions) if i != correct and not _independent(p, hardest).is_significant)
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
        + _tie_note([positions[i].title for i in tied]),
        tied,
    )


def _overlap(position: ControlPosition) -> float:
    return position.facts["confusion"]


def _tie_note(names: Sequence[str]) -> str:
    return f" Not significantly different: {', '.join(names)}." if names else ""


def _plane(table: Features, image_ids: np.ndarray) -> np.ndarray:
    """First two principal components (n, 2) of the images' features at unit length."""
    rows = np.searchsorted(table.image_ids, image_ids)
    values = np.asarray(table.values[rows], dtype=float)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    values -= values.mean(axis=0)
    scale, vectors = np.linalg.eigh(values @ values.T)
    return vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(scale[::-1][:2], 0))


# --- 4: support images ---------------------------------------------------------------------------------------------


def measure_support(dataset: Dataset) -> list[ControlPosition]:
    """The same queries with the hardest and easiest support of a search, and with random ones in between."""
    table = _features(dataset)
    settings = {**SHAPE, "split": draw.default_split(dataset), "n_tasks": N_TASKS // 4, "seed": SEED}
    spec = support_sets.check({"dataset": dataset.name, "backbone": table.backbone, **settings})
    tasks, _ = support_sets.sample_tasks(spec)
    searched = support_sets.search_and_classify(spec, tasks, table, spec["seed"])
    supports = _random_supports(table, tasks)  # (R, T, W, S)
    flat = Tasks(
        np.tile(tasks.class_ids, (N_SUPPORTS, 1)),
        supports.reshape(-1, *supports.shape[2:]),
        np.tile(tasks.query, (N_SUPPORTS, 1, 1)),
    )
    accuracy = evaluation.task_accuracy(_predict(dataset, table, flat)).reshape(N_SUPPORTS, len(tasks))
    ranked = np.argsort(accuracy, axis=0, kind="stable")
    positions = []
    for name, (title, rank) in SUPPORTS.items():
        if rank is None:
            position_tasks = searched.tasks[name]
        else:
            row = ranked[round(rank * (N_SUPPORTS - 1))]
            position_tasks = Tasks(tasks.class_ids, supports[row, np.arange(len(tasks))], tasks.query)
        predictions = _predict(dataset, table, position_tasks)
        positions.append(ControlPosition(name, title, position_tasks, predictions))
    return positions


def ask_support(positions: Sequence[ControlPosition]) -> Question:
    """Whether the loss to the hardest or the gain to the easiest support is larger."""
    by_name = {position.name: position for position in positions}
    hard, typical_, easy = by_name["hard"], by_name["typical"], by_name["easy"]
    down, up = _paired(typical_, hard), _paired(easy, typical_)
    asymmetry = _difference((typical_.accuracy - hard.accuracy) - (easy.accuracy - typical_.accuracy))
    correct = 2 if not asymmetry.is_significant else 0 if asymmetry.points > 0 else 1
    chance = _paired(by_name["lucky"], by_name["unlucky"])
    return Question(
        "Which is larger: the loss to the hardest support or the gain to the easiest?",
        ("Loss to the hardest", "Gain to the easiest", "About equal"),
        correct,
        f"Down {down}, up {up}. Luck alone (worst to best 10% of random supports) makes {chance}: mean accuracy hides "
        "this risk.",
    )


def _random_supports(table: Features, tasks: Tasks) -> np.ndarray:
    """Random supports (R, T, W, S) of the same queries: images of the class that are no query of the task."""
    rng = np.random.default_rng(SEED)
    n_tasks, n_way, n_shot = tasks.support.shape
    supports = np.empty((N_SUPPORTS, n_tasks, n_way, n_shot), dtype=np.int64)
    pools = {int(c): table.image_ids[table.class_ids == c] for c in np.unique(tasks.class_ids)}
    for t in range(n_tasks):
        for w in range(n_way):
            pool = np.setdiff1d(pools[int(tasks.class_ids[t, w])], tasks.query[t, w])
            supports[:, t, w] = pool[rng.random((N_SUPPORTS, len(pool))).argsort(axis=1)[:, :n_shot]]
    return supports


# --- 5: training classes ---------------------------------------------------------------------------------------------


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


def measure_transfer(dataset: Dataset) -> TransferLesson:
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


def ask_transfer(lesson: TransferLesson) -> Question:
    """The effect of divergence on accuracy."""
    slope = lesson.slope
    is_significant = slope.ci95 is not None and abs(slope.slope) > slope.ci95
    nearest = [split.nearest for split in lesson.splits]
    printed = transfer.printed("Table 5")
    published = printed["value"][printed["row"] == TITLES[TRAINER]]
    interval = "" if slope.ci95 is None else f" ± {slope.ci95:.1f}"
    return Question(
        "What happens to accuracy as divergence grows?",
        ("It falls", "It rises", "No significant change"),
        2 if not is_significant else 0 if slope.slope < 0 else 1,
        f"{slope.slope:+.1f}{interval} points per unit of divergence over {lesson.n_runs:,} small networks (paper: "
        f"{published.min():+.1f} to {published.max():+.1f})."
        + ("" if is_significant else " The change is not significant.")
        + (" Each test class still has a training class about as close." if nearest[-1] < 1.1 * nearest[0] else ""),
    )


# --- 6: combined ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CombinedLesson:
    """Random tasks with every measure that does not need predictions.

    measures      (T,) per measure
    correlations  of each with accuracy
    hard, easy    positions of two tasks, in the middle of the hardest and of the easiest 10%
    """

    position: ControlPosition
    measures: pd.DataFrame
    correlations: Mapping[str, evaluation.Correlation]
    hard: int
    easy: int

    def percentile(self, name: str, task: int) -> float:
        """Share of tasks (0 to 100) that are easier by this measure, ties counted half."""
        values = self.measures[name].to_numpy() * (1 if MEASURES[name].direction == "harder" else -1)
        below, equal = (values < values[task]).sum(), (values == values[task]).sum() - 1
        return float(100 * (below + equal / 2) / (len(values) - 1))

    def points(self, name: str) -> float:
        """Points of accuracy between the two tasks that a linear fit on this measure accounts for."""
        values = self.measures[name].to_numpy()
        slope = self.correlations[name].value * self.position.accuracy.std() / values.std()
        return float(slope * (values[self.easy] - values[self.hard]))


def measure_combined(dataset: Dataset) -> CombinedLesson:
    """Random tasks, and every measure that needs neither predictions nor the overlap of all class pairs."""
    table = _features(dataset)
    tasks = draw.sample_testbed(dataset, _recipe(dataset, sampler="uniform"), usable=table.image_ids).tasks
    position = ControlPosition("random", "random tasks", tasks, _predict(dataset, table, tasks))
    measures = _fast_measures(tasks, dataset, table.backbone)
    correlations = {
        name: evaluation.correlation(position.accuracy, measures[name].to_numpy(), tasks.class_ids) for name in measures
    }
    order = np.argsort(position.accuracy, kind="stable")
    at = round(0.05 * (len(order) - 1))
    return CombinedLesson(position, measures, correlations, int(order[at]), int(order[-1 - at]))


def ask_combined(lesson: CombinedLesson) -> Question:
    """The question of which measure correlates most with accuracy."""
    names = list(lesson.measures)
    expected = {name: _expected_sign(name, lesson.correlations[name]) for name in names}
    significant = [name for name in names if expected[name][1] > 0]
    best = max(significant, key=lambda name: expected[name][0], default=None)
    tied: list[str] = []
    takeaway = "No measure correlates significantly with accuracy here."
    if best is not None:
        tied = [name for name in significant if name != best and expected[name][2] >= expected[best][0]]
        r = lesson.correlations[best]
        gap = lesson.position.accuracy[lesson.easy] - lesson.position.accuracy[lesson.hard]
        takeaway = (
            f"{MEASURES[best].title}: r = {r.value:.2f} (95% CI {r.low:.2f} to {r.high:.2f}), {r.value**2:.0%} of the "
            f"variance, {lesson.points(best):.0f} of the {gap:.0f} points between the two tasks. No single measure "
            f"explains a task.{_tie_note([MEASURES[name].title for name in tied])}"
        )
    return Question(
        "Which measure correlates most with accuracy?",
        (*(MEASURES[name].title for name in names), "None significantly"),
        len(names) if best is None else names.index(best),
        takeaway,
        tuple(names.index(name) for name in tied),
    )


def _fast_measures(tasks: Tasks, dataset: Dataset, backbone: str) -> pd.DataFrame:
    """Every measure that is fast and needs no predictions, without those that are not available here."""
    measures = {}
    for name, measure in MEASURES.items():
        if {"predictions", "overlaps"} & set(measure.needs):
            continue
        with suppress(FsvizError):
            values = task_measures.measure_tasks(tasks, dataset, backbone, [name], METHOD)[name]
            if np.isfinite(values).all() and values.std() > 0:
                measures[name] = values
    return pd.DataFrame(measures)


def _expected_sign(name: str, correlation: evaluation.Correlation) -> tuple[float, float, float]:
    """A correlation and its interval, positive if it has the expected sign."""
    if MEASURES[name].direction == "easier":
        return correlation.value, correlation.low, correlation.high
    return -correlation.value, -correlation.high, -correlation.low


# --- steps ---------------------------------------------------------------------------------------------------------


def typical(positions: Sequence[ControlPosition], at: int, paired: bool) -> int:
    """Task with an accuracy nearest to the mean at a position.

    paired  whether all positions have the same queries: then nearest to the means of all of them
    """
    compared = positions if paired else [positions[at]]
    return int(np.sum([(position.accuracy - position.mean[0]) ** 2 for position in compared], axis=0).argmin())


def _features(dataset: Dataset) -> Features:
    return features.load(dataset, draw.default_backbone(dataset))


def _recipe(dataset: Dataset, **sampler: object) -> draw.Recipe:
    settings = {**SHAPE, "split": draw.default_split(dataset), "n_tasks": N_TASKS, "seed": SEED}
    return draw.recipe_for(dataset, **settings, **sampler)


def _predict(dataset: Dataset, table: Features, tasks: Tasks) -> Predictions:
    return evaluate.predict_tasks(dataset, table.backbone, METHOD, {}, tasks)


def _difference(values: np.ndarray) -> Difference:
    """Mean of differences task by task."""
    mean, half_width = mean_and_ci95(values)
    return Difference(float(mean), float(half_width))


def _paired(first: ControlPosition, second: ControlPosition) -> Difference:
    """Points lost from the first to the second position, paired by task: they have the same queries."""
    return _difference(first.accuracy - second.accuracy)


def _independent(first: ControlPosition, second: ControlPosition) -> Difference:
    """Points lost from the first to the second position, which have different tasks."""
    return Difference(first.mean[0] - second.mean[0], float(np.hypot(first.mean[1], second.mean[1])))


def _bands(drop: Difference) -> tuple[tuple[str, ...], int]:
    """Answers by points lost, and the one that contains the number as shown, with one decimal."""
    options = (
        "No significant drop",
        f"Less than {BANDS[0]:g} points",
        *(f"{low:g} to {high - 0.1:g} points" for low, high in pairwise(BANDS)),
        f"{BANDS[-1]:g} points or more",
    )
    return options, 0 if drop.low <= 0 else 1 + int(np.searchsorted(BANDS, round(drop.points, 1), side="right"))
