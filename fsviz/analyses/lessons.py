"""What makes a task hard, one cause at a time: five measurements small enough to try, and one of several causes.

    a lesson -> the positions of its one control -> tasks and answers at each -> accuracy with its interval
             -> a question, the answers to choose from, and the one that is right

Nothing is known beforehand: which answer is right follows from the numbers of the dataset. Where chance would explain a
difference as well, "cannot be told" is the right answer. Intervals are over tasks of these images, at 95%.
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
from fsviz.analyses import class_splits, task_measures, transfer
from fsviz.difficulty.measures import MEASURES
from fsviz.errors import FsvizError, Missing
from fsviz.numerics import mean_and_ci95
from fsviz.records import Dataset, Features, Predictions, Tasks
from fsviz.sampling import assign_images
from fsviz.settings import RawSettings, to_args
from fsviz.studies import causes, confusion, evaluate, support_sets
from fsviz.tasks import draw
from fsviz.taxonomy import DISTANCES
from fsviz.training import TITLES

METHOD = "protonet"
SHAPE: dict[str, int] = {"n_way": 5, "n_shot": 1, "n_query": 10}
N_TASKS = 200
N_SUPPORTS = 41  # random supports of the same queries: so many that the fifth is an unlucky one
SEED = 0
ALPHAS = (0.0, 0.1, 0.2, 0.383, 0.7, 1.5)
CONTEXTS: dict[str, tuple[str, RawSettings]] = {
    "same": ("same", {"sampler": "iid"}),
    "quarter": ("a quarter other", {"sampler": "context", "shift": 0.25}),
    "half": ("half other", {"sampler": "context", "shift": 0.5}),
    "other": ("all other", {"sampler": "ood"}),
    "swapped": ("swapped", {"sampler": "spurious"}),
}
LUCK: dict[str, tuple[str, float | None]] = {  # by name: in words, and its rank among random supports
    "hard": ("hardest found", None),
    "unlucky": ("unlucky", 0.1),
    "typical": ("typical", 0.5),
    "lucky": ("lucky", 0.9),
    "easy": ("easiest found", None),
}
N_PARTNERS = 7
BANDS = (5.0, 10.0, 20.0)  # points of accuracy, where answers part
TRAINED = "multiclass"  # whose recorded accuracies tell what far test classes cost


@dataclass(frozen=True)
class Difference:
    """A difference in points of accuracy, and the half-width of its 95% interval."""

    points: float
    half: float

    @property
    def low(self) -> float:
        return self.points - self.half

    @property
    def high(self) -> float:
        return self.points + self.half

    @property
    def is_known(self) -> bool:
        """Whether chance would not explain it as well."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.points:.1f} ± {self.half:.1f} points"


@dataclass(frozen=True)
class ControlPosition:
    """A position of a control, and what is measured there.

    name   as links have it; title in words
    facts  further numbers of the position, by what they are
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
        mean, half = mean_and_ci95(self.accuracy)
        return float(mean), float(half)

    @property
    def told(self) -> str:
        return f"{self.mean[0]:.1f} ± {self.mean[1]:.1f}%"


@dataclass(frozen=True)
class Question:
    """A question about what was measured, with answers of which exactly one is right.

    right  position of the right answer among the options
    why    the number and what it means, in a few sentences
    """

    text: str
    options: tuple[str, ...]
    right: int
    why: str


def command(dataset: Dataset, place: int, stop: str) -> str:
    """The command that measures what a lesson shows where its control stands."""
    backbone, split = _features(dataset).backbone, draw.default_split(dataset)
    if place in (1, 2):
        sampler = {"sampler": "semantic", "alpha": float(stop)} if place == 1 else CONTEXTS[stop][1]
        said = to_args(_recipe(dataset, **sampler).arguments | {"backbone": backbone}, draw.SETTINGS)
        return shlex.join(["fsviz", "evaluate", dataset.name, *said, "--methods", METHOD])
    shape = {"dataset": dataset.name, "backbone": backbone, "split": split, **SHAPE, "seed": SEED}
    if place == 3:
        return confusion.command(confusion.SCHEMA.check({n: shape[n] for n in ("dataset", "backbone", "split")}))
    if place == 4:
        return support_sets.command(support_sets.check({**shape, "n_tasks": N_TASKS // 4}))
    if place == 5:
        return shlex.join(["fsviz", "transfer", dataset.name, "--recorded"])
    return causes.command(causes.check({**shape, "n_tasks": N_TASKS, "methods": [METHOD]}))


# --- 1: meaning ----------------------------------------------------------------------------------------------------


def by_meaning(dataset: Dataset) -> list[ControlPosition]:
    """Tasks of random classes, then of classes closer and closer in meaning (semantic sampling)."""
    table = _features(dataset)
    stops = []
    for alpha in ALPHAS:
        recipe = _recipe(dataset, sampler="semantic", alpha=alpha)
        tasks = draw.draw(dataset, recipe, usable=table.image_ids).tasks
        facts = {"coarsity": float(np.mean(tasks.measures["coarsity"]))}
        stops.append(ControlPosition(f"{alpha:g}", f"α = {alpha:g}", tasks, _answers(dataset, table, tasks), facts))
    return stops


def ask_meaning(stops: Sequence[ControlPosition]) -> Question:
    first, last = stops[0], stops[-1]
    lost = _apart(first, last)
    options, right = _bands(lost)
    return Question(
        f"From classes at random ({first.title}) to the closest in meaning ({last.title}): how much accuracy does it "
        "cost, beyond chance?",
        options,
        right,
        f"{first.told} of the queries are right at {first.title} and {last.told} at {last.title}: a loss of {lost}. "
        + (
            f"The classes came closer (coarsity {first.facts['coarsity']:.0f} to {last.facts['coarsity']:.0f}), and "
            "what means nearly the same tends to look alike. A benchmark of random classes never asks for that."
            if lost.low > 0
            else "Chance would explain it as well: here closeness in meaning does not tell which tasks are hard."
        ),
    )


# --- 2: context ----------------------------------------------------------------------------------------------------


def by_context(dataset: Dataset) -> list[ControlPosition]:
    """The same queries, with support of their contexts, of others, and of those of other classes."""
    table = _features(dataset)
    stops = []
    for name, (title, sampler) in CONTEXTS.items():
        tasks = draw.draw(dataset, _recipe(dataset, **sampler), usable=table.image_ids).tasks
        stops.append(ControlPosition(name, title, tasks, _answers(dataset, table, tasks)))
    return stops


def ask_context(stops: Sequence[ControlPosition]) -> Question:
    same, other, swapped = (next(s for s in stops if s.name == name) for name in ("same", "other", "swapped"))
    lost, more, both = _paired(same, other), _paired(other, swapped), _paired(same, swapped)
    right = 0 if max(lost.low, both.low) <= 0 else 2 if min(more.low, both.low) > 0 else 1
    return Question(
        "The queries stay the same. What of the background does harm?",
        (
            "Nothing: the background does not matter",
            "A background that was not seen, whosever it is",
            "Most of all the background of another class",
        ),
        right,
        f"Support from other contexts costs {lost}, and swapped ones, in which another class of the task is asked, "
        f"{more} more ({same.title} {same.told}, {other.title} {other.told}, {swapped.title} {swapped.told}). "
        + (
            "The features hold the background as well as the thing, so a query is drawn to the class that was shown on "
            "its background."
            if right == 2
            else "Whose background it is cannot be told to matter beyond that."
            if right == 1
            else "Chance would explain that as well: here these features hold more of the thing."
        ),
    )


# --- 3: confusion in features --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassPairs:
    """One class beside others, from one that looks nothing like it to the one that looks most like it, by name.

    name     of the class that stays
    stops    a partner each; facts: "confusion" in bits
    class_id of the class that stays, and `partners` those of the others
    points   (n, 2) per stop: both classes' images along the two directions in which they differ most
    labels   (n,) per stop: 0 for the class that stays
    images   (n,) per stop: image_ids
    """

    name: str
    class_id: int
    partners: tuple[int, ...]
    stops: tuple[ControlPosition, ...]
    points: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...]
    images: tuple[np.ndarray, ...]


def by_looks(dataset: Dataset) -> ClassPairs:
    """The class that has the most alike neighbour of all, beside that one and beside others ever less like it."""
    table = _features(dataset)
    split = draw.default_split(dataset)
    class_ids = dataset.split_class_ids(split)
    apart = DISTANCES["features"].measure(table, class_ids)
    np.fill_diagonal(apart, np.inf)
    stays = int(np.unravel_index(apart.argmin(), apart.shape)[0])
    order = np.argsort(-np.where(np.isinf(apart[stays]), np.inf, apart[stays]), kind="stable")[1:]  # without itself
    names = dataset.distinct_names(class_ids)
    chosen = order[np.unique(np.linspace(0, len(order) - 1, N_PARTNERS).round().astype(int))]
    chosen = sorted(chosen.tolist(), key=lambda place: names[place])  # the slider's ends are to tell nothing
    k = min(int(confusion.SETTINGS["k"].default), confusion.max_k(dataset, table.backbone, split))
    spec = {"dataset": dataset.name, "backbone": table.backbone, "split": split, "k": k}
    of_image = np.full(len(dataset.image_class_ids()), -1)
    of_image[table.image_ids] = table.class_ids
    stops, points, labels, images = [], [], [], []
    for place in chosen:
        both = class_ids[[stays, place]]
        drawn = Tasks(np.tile(both, (N_TASKS, 1)))
        tasks = assign_images(drawn, of_image, SHAPE["n_shot"], SHAPE["n_query"], SEED)
        seen = confusion.pair(spec, int(both[0]), int(both[1]))
        facts = {"confusion": float(seen.bits.mean())}
        stops.append(ControlPosition(str(int(both[1])), names[place], tasks, _answers(dataset, table, tasks), facts))
        points.append(_plane(table, seen.image_ids))
        labels.append(seen.labels)
        images.append(seen.image_ids)
    partners = tuple(int(class_ids[place]) for place in chosen)
    known = (tuple(points), tuple(labels), tuple(images))
    return ClassPairs(names[stays], int(class_ids[stays]), partners, tuple(stops), *known)


def ask_looks(pairs: ClassPairs) -> Question:
    stops = pairs.stops
    worst = min(range(len(stops)), key=lambda i: stops[i].mean[0])
    others = [i for i in range(len(stops)) if i != worst and not _apart(stops[i], stops[worst]).is_known]
    most, least = max(stops, key=_bits), min(stops, key=_bits)
    told = f"{stops[worst].title} ({stops[worst].told} right, {_bits(stops[worst]):.2f} bits of confusion)"
    also = ", ".join(stops[i].title for i in others)
    return Question(
        f"Tasks of {pairs.name} and which partner have the lowest accuracy? Move the control to it.",
        tuple(stop.title for stop in stops),
        worst,
        f"It is {told}; guessing would get 50%. "
        + (f"With so many tasks {also} cannot be told from it. " if others else "All others do better beyond chance. ")
        + f"The least confused partner, {least.title}, has {_bits(least):.2f} bits and {least.told}"
        + (
            ": where the images of two classes form one cloud, one labelled image of each does not part them."
            if most is stops[worst] or stops[worst].mean[0] < least.mean[0] - least.mean[1]
            else ": here confusion does not tell which partner is hard."
        ),
    )


def _bits(stop: ControlPosition) -> float:
    return stop.facts["confusion"]


def _plane(table: Features, image_ids: np.ndarray) -> np.ndarray:
    """The images (n, 2) along the two directions in which they differ most, at unit length; labels play no part."""
    rows = np.searchsorted(table.image_ids, image_ids)
    values = np.asarray(table.values[rows], dtype=float)
    values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    values -= values.mean(axis=0)
    scale, vectors = np.linalg.eigh(values @ values.T)
    return vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(scale[::-1][:2], 0))


# --- 4: luck with the support --------------------------------------------------------------------------------------


def by_support(dataset: Dataset) -> list[ControlPosition]:
    """The same queries with the hardest and the easiest support that a search finds, and with random ones between."""
    table = _features(dataset)
    asked = {**SHAPE, "split": draw.default_split(dataset), "n_tasks": N_TASKS // 4, "seed": SEED}
    spec = support_sets.check({"dataset": dataset.name, "backbone": table.backbone, **asked})
    tasks, _ = support_sets.sample_tasks(spec)
    found = support_sets.search_and_classify(spec, tasks, table, spec["seed"])
    others = _random_supports(table, tasks)  # (R, T, W, S)
    flat = Tasks(
        np.tile(tasks.class_ids, (N_SUPPORTS, 1)),
        others.reshape(-1, *others.shape[2:]),
        np.tile(tasks.query, (N_SUPPORTS, 1, 1)),
    )
    right = evaluation.task_accuracy(_answers(dataset, table, flat)).reshape(N_SUPPORTS, len(tasks))
    ranked = np.argsort(right, axis=0, kind="stable")
    stops = []
    for name, (title, rank) in LUCK.items():
        if rank is None:
            of = found.tasks[name]
        else:
            row = ranked[round(rank * (N_SUPPORTS - 1))]
            of = Tasks(tasks.class_ids, others[row, np.arange(len(tasks))], tasks.query)
        stops.append(ControlPosition(name, title, of, _answers(dataset, table, of)))
    return stops


def ask_support(stops: Sequence[ControlPosition]) -> Question:
    by_name = {stop.name: stop for stop in stops}
    hard, typical, easy = by_name["hard"], by_name["typical"], by_name["easy"]
    down, up = _paired(typical, hard), _paired(easy, typical)
    farther = _effect((typical.accuracy - hard.accuracy) - (easy.accuracy - typical.accuracy))
    right = 2 if not farther.is_known else 0 if farther.points > 0 else 1
    unlucky = _paired(by_name["lucky"], by_name["unlucky"])
    return Question(
        "The queries stay the same; only the one labelled image per class changes. From a typical support, which way "
        "is it farther?",
        ("Down to the hardest support", "Up to the easiest support", "Neither, beyond chance"),
        right,
        f"Down it is {down} ({typical.told} to {hard.told}), up {up} (to {easy.told}). Chance alone, from an unlucky "
        f"tenth to a lucky tenth of random supports, already makes {unlucky}: a mean over random tasks hides what a "
        "user with five images may meet.",
    )


def _random_supports(table: Features, tasks: Tasks) -> np.ndarray:
    """Further supports (R, T, W, S) of the same queries: images of the class that are no query of the task."""
    rng = np.random.default_rng(SEED)
    n_tasks, n_way, n_shot = tasks.support.shape
    found = np.empty((N_SUPPORTS, n_tasks, n_way, n_shot), dtype=np.int64)
    pools = {int(c): table.image_ids[table.class_ids == c] for c in np.unique(tasks.class_ids)}
    for t in range(n_tasks):
        for w in range(n_way):
            pool = np.setdiff1d(pools[int(tasks.class_ids[t, w])], tasks.query[t, w])
            found[:, t, w] = pool[rng.random((N_SUPPORTS, len(pool))).argsort(axis=1)[:, :n_shot]]
    return found


# --- 5: test classes far from training classes -----------------------------------------------------------------------


@dataclass(frozen=True)
class TransferLesson:
    """Splits of ever more divergence, and what networks got that were trained on their train classes.

    found     a split per divergence that was asked for
    points    a row per divergence: x (reached), accuracy, ci95 over test classes; mean of a split and its mirror image
    slope     points of accuracy per unit of divergence
    n_runs    networks that were trained, the date when, and the minutes that it took with those of other methods
    """

    found: tuple[class_splits.SplitResult, ...]
    points: pd.DataFrame
    slope: transfer.AccuracySlope
    n_runs: int
    date: str
    minutes: float


def by_divergence(dataset: Dataset) -> TransferLesson:
    """Networks take an hour to train: these were, once, and are told as recorded."""
    grids = transfer.training_grid(dataset.name)
    if not grids:
        raise Missing(
            f"No networks were trained on splits of {dataset.title}. The page Train–test distance trains some."
        )
    grid = grids[0]
    points = transfer.accuracy_points(grid.rows)
    points = points[points["method"] == TRAINED].sort_values("asked", ignore_index=True)
    slope = next(s for s in transfer.slopes(grid.rows) if s.method == TRAINED and s.sides == "both")
    classes = class_splits.class_features(dataset, str(grid.facts["recipe"]["backbone"]))
    asked = [{"divergence": float(divergence)} for divergence in points["asked"]]
    found = class_splits.splits_over(
        dataset, classes, asked, penalty=transfer.PENALTY
    )  # the weight that the grid was trained with
    when = (str(grid.facts["date"]), float(grid.facts["seconds"]) / 60)
    return TransferLesson(tuple(found), points, slope, int(points["n_runs"].sum()), *when)


def ask_divergence(trained: TransferLesson) -> Question:
    slope, points = trained.slope, trained.points
    known = slope.ci95 is not None and abs(slope.slope) > slope.ci95
    right = 2 if not known else 0 if slope.slope < 0 else 1
    first, last = points.iloc[0], points.iloc[-1]
    nearest = [one.nearest for one in trained.found]
    printed = transfer.printed("Table 5")
    published = printed["value"][printed["row"] == TITLES[TRAINED]]
    return Question(
        "The test classes move away from those the networks were trained on. What happens to their accuracy?",
        ("It falls", "It rises", "These networks cannot tell"),
        right,
        f"{slope.slope:+.1f} ± {slope.ci95 or float('nan'):.1f} points per unit of divergence over "
        f"{trained.n_runs:,} small networks ({first['accuracy']:.1f} ± {first['ci95']:.1f}% at "
        f"{first['x']:.1f}, {last['accuracy']:.1f} ± {last['ci95']:.1f}% at {last['x']:.1f}; intervals over test "
        "classes). "
        + ("" if known else "The interval holds 0, so it could be chance. ")
        + f"The paper, with larger networks on other images, found {published.min():+.1f} to {published.max():+.1f} "
        "points per unit. On the map the two sides part; the mean distance of a test class to its nearest training "
        f"class goes from {nearest[0]:.2f} to {nearest[-1]:.2f} (features of unit length)"
        + (": it still has one about as near, and so little is new." if nearest[-1] < 1.1 * nearest[0] else "."),
    )


# --- 6: several causes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CombinedLesson:
    """Random tasks with every measure that is known before the answers are.

    measures      (T,) per measure
    correlations  of each with the accuracy
    hard, easy    positions of two tasks, in the middle of the hardest and of the easiest tenth
    """

    stop: ControlPosition
    measures: pd.DataFrame
    correlations: Mapping[str, evaluation.Correlation]
    hard: int
    easy: int

    def percentile(self, name: str, task: int) -> float:
        """Share of tasks (0 to 100) that this measure calls easier, equal ones counted half."""
        values = self.measures[name].to_numpy() * (1 if MEASURES[name].direction == "harder" else -1)
        below, equal = (values < values[task]).sum(), (values == values[task]).sum() - 1
        return float(100 * (below + equal / 2) / (len(values) - 1))

    def points(self, name: str) -> float:
        """Points of accuracy between the two tasks that go with a measure, by its line over all tasks."""
        values = self.measures[name].to_numpy()
        slope = self.correlations[name].value * self.stop.accuracy.std() / values.std()
        return float(slope * (values[self.easy] - values[self.hard]))


def by_causes(dataset: Dataset) -> CombinedLesson:
    """One set of random tasks, every measure that needs neither the answers nor all pairs of classes compared."""
    table = _features(dataset)
    tasks = draw.draw(dataset, _recipe(dataset, sampler="uniform"), usable=table.image_ids).tasks
    stop = ControlPosition("random", "random tasks", tasks, _answers(dataset, table, tasks))
    measured = _measured(tasks, dataset, table.backbone)
    found = {
        name: evaluation.correlation(stop.accuracy, measured[name].to_numpy(), tasks.class_ids) for name in measured
    }
    order = np.argsort(stop.accuracy, kind="stable")
    tenth = round(0.05 * (len(order) - 1))
    return CombinedLesson(stop, measured, found, int(order[tenth]), int(order[-1 - tenth]))


def ask_together(found: CombinedLesson) -> Question:
    names = list(found.measures)
    told = {name: _as_expected(name, found.correlations[name]) for name in names}
    known = [name for name in names if told[name][1] > 0]
    best = max(known, key=lambda name: told[name][0], default=None)
    gap = found.stop.accuracy[found.easy] - found.stop.accuracy[found.hard]
    if best is None:
        why = "No measure goes with the accuracy of these tasks beyond chance: none of them explains which are hard."
    else:
        equals = [name for name in known if name != best and told[name][2] >= told[best][0]]
        also = ", ".join(MEASURES[name].title for name in equals)
        how = found.correlations[best]
        why = (
            f"{MEASURES[best].title}: correlation {how.value:.2f} ({how.low:.2f} to {how.high:.2f} over {how.over}), "
            f"which explains {how.value**2:.0%} of the differences between tasks. By its line, "
            f"{found.points(best):.0f} of the {gap:.0f} points between the two tasks below go with it. "
            + (f"{also} cannot be told from it. " if also else "The others say less beyond chance. ")
            + "No single cause explains a task: they overlap, and much is left."
        )
    return Question(
        "Which measure explains best, beyond chance, which tasks are hard? Move the control to it.",
        (*(MEASURES[name].title for name in names), "None of them, beyond chance"),
        len(names) if best is None else names.index(best),
        why,
    )


def _measured(tasks: Tasks, dataset: Dataset, backbone: str) -> pd.DataFrame:
    """Every measure that takes a moment and does not know the answers; those that are not known here are left out."""
    found = {}
    for name, measure in MEASURES.items():
        if {"predictions", "confusions"} & set(measure.needs):
            continue
        with suppress(FsvizError):
            values = task_measures.measure_tasks(tasks, dataset, backbone, [name], METHOD)[name]
            if np.isfinite(values).all() and values.std() > 0:
                found[name] = values
    return pd.DataFrame(found)


def _as_expected(name: str, how: evaluation.Correlation) -> tuple[float, float, float]:
    """A correlation and its interval, positive where a measure goes with the accuracy as it should."""
    if MEASURES[name].direction == "easier":
        return how.value, how.low, how.high
    return -how.value, -how.high, -how.low


# --- steps ---------------------------------------------------------------------------------------------------------


def typical(stops: Sequence[ControlPosition], at: int, paired: bool) -> int:
    """The task to show at a position: its accuracy is nearest to the mean there, or where all positions have the same
    queries, nearest to the means of all of them."""
    shown = stops if paired else [stops[at]]
    return int(np.sum([(stop.accuracy - stop.mean[0]) ** 2 for stop in shown], axis=0).argmin())


def _features(dataset: Dataset) -> Features:
    return features.load(dataset, draw.default_backbone(dataset))


def _recipe(dataset: Dataset, **sampler: object) -> draw.Recipe:
    asked = {**SHAPE, "split": draw.default_split(dataset), "n_tasks": N_TASKS, "seed": SEED}
    return draw.recipe_for(dataset, **asked, **sampler)


def _answers(dataset: Dataset, table: Features, tasks: Tasks) -> Predictions:
    return evaluate.predict_tasks(dataset, table.backbone, METHOD, {}, tasks)


def _effect(differences: np.ndarray) -> Difference:
    mean, half = mean_and_ci95(differences)
    return Difference(float(mean), float(half))


def _paired(first: ControlPosition, second: ControlPosition) -> Difference:
    """What is lost from the first to the second, task by task: they have the same queries."""
    return _effect(first.accuracy - second.accuracy)


def _apart(first: ControlPosition, second: ControlPosition) -> Difference:
    """What is lost from the first to the second, whose tasks are different ones."""
    return Difference(first.mean[0] - second.mean[0], float(np.hypot(first.mean[1], second.mean[1])))


def _bands(lost: Difference) -> tuple[tuple[str, ...], int]:
    """Answers by how many points are lost, and the one that holds the number as it is shown."""
    options = (
        "Nothing",
        f"Something, but less than {BANDS[0]:g} points",
        *(f"{low:g} to less than {high:g} points" for low, high in pairwise(BANDS)),
        f"{BANDS[-1]:g} points or more",
    )
    return options, 0 if lost.low <= 0 else 1 + int(np.searchsorted(BANDS, round(lost.points, 1), side="right"))
