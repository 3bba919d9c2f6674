"""Study support_sets: hard, random and easy support sets for the same queries (Basu et al. 2023).

    dataset -> features -> tasks (queries fixed) -> a search -> predictions -> accuracy

A chunk holds the supports of its tasks and the predictions for their queries. Accuracies are fractions inside and
percentages in the summary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation, features
from fsviz.difficulty import attribute_effects
from fsviz.difficulty.accuracy_search import MAX_CANDIDATES
from fsviz.difficulty.objectives import OBJECTIVES, RANDOM
from fsviz.difficulty.search_options import SearchOptions
from fsviz.errors import BadInput
from fsviz.features.backbones import title_of
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, HeadlineNumber, Predictions, Progress, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import RawSettings, Settings, Value
from fsviz.studies import chunk_data
from fsviz.studies import evaluate as evaluation_study
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.studies.support_sets.search_settings import (
    CLASSIFIER,
    LOSS,
    LOSSES,
    N_STEPS,
    N_SWEEPS,
    OBJECTIVE,
    SEARCH,
    SEARCH_SETTINGS,
    SETS,
    SETTINGS,
    SKIP_SMALL,
    START,
    STEP,
    STEP_SIZES,
    TASK_DEFAULTS,
    TASK_SETTINGS,
    search_title,
)
from fsviz.studies.support_sets.set_testbeds import command, export_sets, recipe_of, save_sets, to_testbed
from fsviz.tables import Column, Table
from fsviz.tasks import draw, fitting, snapshot
from fsviz.text import split_title

__all__ = [
    "CLASSIFIER",
    "LOSS",
    "LOSSES",
    "N_STEPS",
    "N_SWEEPS",
    "OBJECTIVE",
    "SEARCH",
    "SEARCH_SETTINGS",
    "SETS",
    "SETTINGS",
    "SKIP_SMALL",
    "START",
    "STEP",
    "STEP_SIZES",
    "TASK_DEFAULTS",
    "TASK_SETTINGS",
    "command",
    "export_sets",
    "recipe_of",
    "save_sets",
    "search_title",
    "to_testbed",
]

_LARGE = "classes with enough images"  # the split that tasks are sampled from if small classes are skipped
_CHUNK_IMAGES = {"accuracy": 15_000, "fastdiffsel": 15_000, "literal": 15_000, "greedy": 300}  # seconds on one core
_LARGEST_CHUNK = 200  # tasks
PREVIEW = 200  # tasks, at most
_MIN_PREVIEW = 20  # tasks of a preview


class SupportSpec(draw.TaskSpec, total=False):
    """A checked spec; a prepared one has a folder, one with restricted queries their attribute and its values."""

    folder: str
    search: str
    loss: str
    start: str
    step: float
    n_steps: int
    n_sweeps: int
    classifier: str
    objective: str
    device: str
    skip_small: bool
    attribute: str
    values: list[str]


class SupportSummary(TypedDict, total=False):
    """Accuracies in percent by support set; a recorded run names its testbed.

    spearman_loss_accuracy  rank correlation of accuracy with minus the query loss, its 95% interval and the unit of
                            that; None if it is undefined
    histogram               "edges" of bins of accuracy, and the tasks per bin of every set
    failed                  a sentence if hard sets are easier than random ones, or easy ones harder; else ""
    """

    accuracy: dict[str, float]
    ci95: dict[str, float | None]
    drop: float
    drop_ci95: float | None
    n_tasks: int
    harder_than_random: float
    spearman_loss_accuracy: float | None
    spearman_ci95: list[float] | None
    spearman_over: str | None
    histogram: dict[str, list[float]]
    failed: str
    dataset: str
    backbone: str
    testbed: str


@dataclass(frozen=True)
class SupportSets:
    """For each of SETS the tasks (same classes and queries) and the predictions."""

    spec: SupportSpec
    tasks: Mapping[str, Tasks]
    predictions: Mapping[str, Predictions]

    def __len__(self) -> int:
        return len(self.tasks["random"])

    def accuracy(self, which: str) -> np.ndarray:
        """Accuracy of every task (T,), from 0 to 1."""
        return evaluation.task_accuracy(self.predictions[which])

    def loss(self, which: str) -> np.ndarray:
        """Mean query loss of every task (T,), in nats."""
        return self.predictions[which].loss()

    @property
    def cache_key(self) -> tuple[str, int, str]:
        """Changes when the tasks, the supports or the predictions do."""
        spec = {name: value for name, value in self.spec.items() if name != OBJECTIVE.name}
        return json.dumps(spec, sort_keys=True), len(self), datasets.stamp(self.spec["dataset"])


# --- tasks, searches and predictions --------------------------------------------------------------------------------


def sample_tasks(spec: SupportSpec) -> tuple[Tasks, Features]:
    """The random tasks of a checked spec, with coarsity if there is a taxonomy, and the features."""
    dataset = datasets.load(spec["dataset"])
    table = features.load(dataset, spec["backbone"])
    return draw_tasks(spec, dataset, {spec["backbone"]: table}), table


def draw_tasks(spec: Settings, dataset: Dataset, tables: Mapping[str, Features]) -> Tasks:
    """Random tasks of images that have all these features."""
    sampler = {name: spec[name] for name in (*TASK_SETTINGS, "backbone") if name in spec and name != "seed"}
    source = dataset
    if spec.get("skip_small") and not SAMPLERS[str(sampler["sampler"])].samples_images:
        class_ids = dataset.split_class_ids(sampler["split"])
        sizes = np.min([class_sizes(dataset, table)[class_ids] for table in tables.values()], axis=0)
        large = class_ids[sizes >= sampler["n_shot"] + sampler["n_query"]]
        if len(large) < sampler["n_way"]:
            raise BadInput(
                f"A task needs {sampler['n_way']} classes with n_shot + n_query = "
                f"{sampler['n_shot'] + sampler['n_query']} images. {dataset.title} has {len(large)}. Lower n_shot, "
                "n_query or n_way."
            )
        if len(large) < len(class_ids):
            source, sampler["split"] = replace(dataset, splits={**dataset.splits, _LARGE: large}), _LARGE
    tasks = evaluation_study.sample_testbed(source, sampler, spec["seed"], tables).tasks
    return draw.with_coarsity(replace(tasks, split=str(spec.get("split") or tasks.split)), dataset)


def class_sizes(dataset: Dataset, table: Features) -> np.ndarray:
    """Images with features (C,) of every class; a group that stays together counts as one."""
    if table.groups is None:
        return np.bincount(table.class_ids, minlength=dataset.n_classes)
    of_class = np.unique(np.stack([table.class_ids, table.groups[table.image_ids]]), axis=1)[0]
    return np.bincount(of_class, minlength=dataset.n_classes)


def fit(dataset: Dataset, backbone: str, requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of the tasks, lowered to what the dataset has.

    Every class keeps more images than shots, so that a search can choose. Skipping small classes keeps shots and
    queries as they are.
    """
    return fitting.fit(dataset, requested, TASK_DEFAULTS, [backbone], choice=True)


def search(
    spec: SupportSpec, tasks: Tasks, table: Features, objective: str, seed: int, progress: Progress | None = None
) -> Tasks:
    """The same queries with the support sets that the spec's search finds for an objective."""
    options = search_options(spec, seed)
    table = searched_features(spec, table)
    if spec["search"] == "greedy":
        from fsviz.difficulty.greedy import greedy_supports

        return greedy_supports(table, tasks, objective, options, progress=progress)
    from fsviz.difficulty.fastdiffsel import select_supports

    selected = select_supports(table, tasks, objective, options, progress=progress)
    if spec["search"] == "accuracy":
        from fsviz.difficulty.accuracy_search import search_by_accuracy

        selected = search_by_accuracy(table, selected, objective, options, progress=progress)
    return selected


def search_options(spec: Settings, seed: int) -> SearchOptions:
    """The options of the spec's search; greedy search computes on the processor, and only FastDiffSel varies steps."""
    loss, scale = LOSSES[spec["loss"]]
    steps = {} if spec["search"] == "accuracy" else {name: spec[name] for name in ("step", "n_steps", "start")}
    return SearchOptions(
        loss=loss,
        scale=scale,
        device="cpu" if spec["search"] == "greedy" else spec["device"],
        seed=seed,
        literal=spec["search"] == "literal",
        n_sweeps=spec["n_sweeps"],
        **steps,
    )


def searched_features(spec: SupportSpec, table: Features) -> Features:
    """The features that are searched; without groups if the spec does not keep groups together."""
    return table if spec.get("keep_groups", True) else replace(table, groups=None)


def search_and_classify(
    spec: SupportSpec, tasks: Tasks, table: Features, seed: int, progress: Progress | None = None
) -> SupportSets:
    """The tasks with random supports and with those searched for every objective, classified."""
    sets = {name: search(spec, tasks, table, name, seed, progress) if name in OBJECTIVES else tasks for name in SETS}
    predictions = {}
    for done, (name, variant) in enumerate(sets.items(), start=1):
        predictions[name] = classify(spec, table, variant)
        if progress is not None:
            progress(done, len(sets), "classifying the queries")
    return SupportSets(spec, sets, predictions)


def classify(spec: SupportSpec, table: Features, tasks: Tasks, dataset: Dataset | None = None) -> Predictions:
    dataset, tasks = dataset or datasets.load(spec["dataset"]), replace(tasks, split=spec["split"])
    centre = evaluation_study.centre_for(spec["classifier"], dataset, table, tasks)
    return evaluation.evaluate(table, tasks, spec["classifier"], device=spec["device"], centre=centre)


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: SupportSpec, folder: Path) -> SupportSpec:
    """Saves the random tasks of a spec in `folder`."""
    snapshot.freeze(folder, Testbed("random", sample_tasks(spec)[0], recipe_of(spec, "random")))
    return spec


def parts(spec: SupportSpec) -> list[Part]:
    names = f"{', '.join(SETS[:-1])} and {SETS[-1]}"
    return [Part(f"{names} support sets", spec["n_tasks"], tasks_per_chunk(spec))]


def n_bytes(spec: SupportSpec) -> float:
    """About how large the results are: support sets and predictions for every query, three times."""
    tasks = snapshot.tasks(spec["folder"])
    return float(len(SETS) * (8 * tasks.support.size + 12 * tasks.query.size))


def run_chunk(spec: SupportSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Support sets and predictions of one range of tasks."""
    tasks = snapshot.tasks(spec["folder"], start=start, stop=stop)
    table = chunk_data.features_of(spec["dataset"], spec["backbone"])
    sets = search_and_classify(spec, tasks, table, spec["seed"])
    arrays: dict[str, np.ndarray] = {}
    for name in SETS:
        arrays[f"{name}_support"] = sets.tasks[name].support
        arrays |= sets.predictions[name].arrays(f"{name}_")
    return arrays


def collect(spec: SupportSpec, chunks: Sequence[Arrays]) -> SupportSets:
    """The support sets of the finished chunks, in the order of the tasks."""
    if not chunks:
        raise BadInput("This run has no results yet. Wait for its first tasks.")
    rows = joined(chunks)[0]
    random = snapshot.tasks(spec["folder"]).take(rows["positions"])
    tasks = {n: replace(random, support=rows[f"{n}_support"]) for n in SETS}
    predictions = {name: Predictions.from_arrays(rows, f"{name}_") for name in SETS}
    return SupportSets(cast(SupportSpec, SETTINGS.pick(spec)), tasks, predictions)


def finish(spec: SupportSpec, sets: SupportSets) -> SupportSummary:
    """Saves the tasks of the spec's objective as a testbed; returns its name."""
    return {"testbed": save_sets(sets, spec["objective"])[0]}


# --- how long it takes -------------------------------------------------------------------------------------------


def work(spec: SupportSpec) -> Work:
    return Work(spec["n_tasks"], "tasks", spec["n_tasks"] * _seconds_per_task(spec))


def shorten(spec: SupportSpec, n: int) -> SupportSpec | None:
    """Fewer tasks, by FastDiffSel if a slower search has time for too few."""
    fast = quick_search(spec) if n < min(_MIN_PREVIEW, spec["n_tasks"]) else spec
    n = int(max(n, 1) * (_seconds_per_task(spec) / _seconds_per_task(fast)))  # exactly n if the search stays
    n_tasks = min(spec["n_tasks"], PREVIEW, max(n, _MIN_PREVIEW))
    return {**fast, "n_tasks": n_tasks} if n_tasks < spec["n_tasks"] or fast is not spec else None


def quick_search(spec: SupportSpec) -> SupportSpec:
    """The spec with FastDiffSel if its search is slower; else the spec itself."""
    return {**spec, "search": "fastdiffsel"} if spec["search"] in ("accuracy", "greedy") else spec


def tasks_per_chunk(spec: Settings) -> int:
    """Tasks that are searched together; depends on the spec alone."""
    return int(np.clip(_CHUNK_IMAGES[spec["search"]] // (draw.max_images(spec) * spec["n_steps"]), 1, _LARGEST_CHUNK))


def seconds_to_search(spec: Settings, dataset: Dataset) -> float:
    """About how long a search takes for one objective of one task on one ordinary core."""
    images = draw.max_images(spec)
    step = images * (1.2e-5 + 1.5e-5 * spec["n_steps"])
    if spec["search"] not in ("accuracy", "greedy"):
        return float(step)
    task = _largest_task(spec)
    in_class = len(dataset.image_class_ids()) / max(1, dataset.n_classes)
    if spec["search"] == "accuracy":
        tried = min(in_class, MAX_CANDIDATES)
        products = 1e-7 * task.n_way * tried * (tried + task.query.size)
        return float(step + products + 4e-8 * task.support.size * tried * task.query.size)
    slot = 4e-4 + 2e-7 * in_class * task.query.size
    return float(1e-4 * images + spec["n_sweeps"] * task.support.size * slot)


def seconds_to_classify(spec: Settings, dataset: Dataset) -> float:
    """About how long the classifier takes for one task."""
    return evaluation_study.guess_seconds(dataset, spec["backbone"], spec["classifier"], {}, _largest_task(spec))


def _seconds_per_task(spec: SupportSpec) -> float:
    """For the searches of all objectives, and for classifying the queries with all supports."""
    dataset = datasets.load(spec["dataset"])
    return len(OBJECTIVES) * seconds_to_search(spec, dataset) + len(SETS) * seconds_to_classify(spec, dataset)


def _largest_task(spec: Settings) -> Tasks:
    """One task of the largest shape that the spec's sampler draws, without images."""
    shape = {s.name: spec[s.name] for s in SAMPLERS[spec["sampler"]].all_settings if s.name in spec}
    n_way = int(shape["max_way"] if "max_way" in shape else spec["n_way"])
    n_shot = int(shape["max_support"] // n_way if "max_support" in shape else spec["n_shot"])
    n_query = int(shape["max_query"] if "max_query" in shape else spec["n_query"])
    blank = np.zeros((1, n_way, 1), dtype=np.int64)
    return Tasks(blank[:, :, 0], blank.repeat(max(1, n_shot), 2), blank.repeat(n_query, 2))


# --- results ----------------------------------------------------------------------------------------------------


def summary(sets: SupportSets) -> SupportSummary:
    """Mean accuracies in percent with 95% CI, the drop from random to hard, rank correlations."""
    spec = sets.spec
    accuracy, ci95 = {}, {}
    for name in SETS:
        mean, half_width = mean_and_ci95(100 * sets.accuracy(name))
        accuracy[name], ci95[name] = float(mean), finite(half_width)
    drop, drop_half_width = mean_and_ci95(100 * (sets.accuracy("random") - sets.accuracy("hard")))
    rho = loss_accuracy_correlation(sets)
    return {
        "accuracy": accuracy,
        "ci95": ci95,
        "drop": float(drop),
        "drop_ci95": finite(drop_half_width),
        "n_tasks": len(sets),
        "harder_than_random": float(np.mean(sets.accuracy("hard") < sets.accuracy("random"))),
        "spearman_loss_accuracy": rho.value if rho else None,
        "spearman_ci95": [rho.low, rho.high] if rho else None,
        "spearman_over": rho.ci_unit if rho else None,
        "histogram": accuracy_histogram(sets),
        "failed": failed_search(spec, accuracy),
        "dataset": spec["dataset"],
        "backbone": spec["backbone"],
    }


def describe(sets: SupportSets, numbers: SupportSummary) -> tuple[str, str]:
    """The cost of hard supports as a sentence, and its setting with the accuracy of easy ones and the chance level."""
    drop, half_width, accuracy = numbers["drop"], numbers["drop_ci95"], numbers["accuracy"]
    points = f"{drop:.1f} ± {half_width:.1f} points" if half_width is not None else f"{drop:.1f} points"
    means = f"{accuracy['hard']:.1f}% vs {accuracy['random']:.1f}% with random ones, on the same queries"
    if drop > (half_width or 0.0):
        sentence = f"Hard support sets cost {points}: {means}."
    elif drop < -(half_width or 0.0):
        sentence = f"The search found no hard support sets: {means}."
    else:
        sentence = f"Hard support sets have no significant cost ({points}): {means}."
    spec, sampler = sets.spec, SAMPLERS[sets.spec["sampler"]]
    shape = sampler.title.lower() if sampler.samples_images else f"{spec['n_way']}-way {spec['n_shot']}-shot"
    return sentence, (
        f"{len(sets):,} {shape} tasks of {split_title(spec['split'])}, {title_of(spec['backbone'])} features, "
        f"{CLASSIFIER.choices[spec['classifier']]}; easy ones: {accuracy['easy']:.1f}%; chance level: "
        f"{chance_level(sets):.1f}%. {SEARCH.choices[spec['search']]}: harder sets may exist."
    )


def chance_level(sets: SupportSets) -> float:
    """Mean accuracy in percent of random predictions."""
    return float(100 * np.mean(1 / (sets.tasks["random"].class_ids != PAD).sum(axis=1)))


def hardest_first(sets: SupportSets, tasks: np.ndarray) -> np.ndarray:
    """These tasks, those with the lowest accuracy with hard supports first."""
    return tasks[np.argsort(sets.accuracy("hard")[tasks], kind="stable")]


def headline(sets: SupportSets) -> list[HeadlineNumber]:
    """The cost of hard supports, and the accuracy with every set."""
    numbers = summary(sets)
    cost = HeadlineNumber.around("drop", "Cost of hard supports", numbers["drop"], numbers["drop_ci95"], "points")
    accuracies = [
        HeadlineNumber.around(
            f"accuracy_{name}", f"Accuracy, {name} supports", numbers["accuracy"][name], numbers["ci95"][name]
        )
        for name in SETS
    ]
    return [cost, *accuracies]


def sweeps(spec: SupportSpec) -> dict[str, Sequence[Value]]:
    return {STEP.name: STEP_SIZES}


def failed_search(spec: RawSettings, accuracy: Mapping[str, float]) -> str:
    """A sentence, with advice, if a search made its sets easier or harder than random the wrong way; else "".

    accuracy  mean accuracy in percent by set
    """
    random = accuracy[RANDOM.name]
    failed = [o for o in reversed(OBJECTIVES.values()) if o.sign * (accuracy[o.name] - random) > 0]
    if not failed:
        return ""
    missing = " or ".join(o.name for o in failed)
    means = ", ".join(f"{o.name} {accuracy[o.name]:.1f}%" for o in (*failed, RANDOM))
    remedies = ["the accuracy search"] if spec["search"] != "accuracy" else []
    remedies += [f"the loss {LOSS.choices['euclidean']}"] if spec["loss"] != "euclidean" else []
    advice = f"Try {' or '.join(remedies)}" if remedies else "Try more tasks or more images per class"
    return f"The search found no {missing} sets (mean accuracy: {means}). {advice}."


def accuracy_histogram(sets: SupportSets, n_bins: int = 20) -> dict[str, list[float]]:
    """Tasks per bin of accuracy (percent) for every set; the last bin includes 100."""
    edges = np.linspace(0, 100, n_bins + 1)
    counts = {name: np.histogram(100 * sets.accuracy(name), edges)[0].tolist() for name in SETS}
    return {"edges": edges.tolist(), **counts}


def bin_of(sets: SupportSets, which: str, edges: np.ndarray) -> np.ndarray:
    """(T,) the bin of accuracy_histogram of each task; the last one includes its end."""
    return np.minimum(np.searchsorted(edges, 100 * sets.accuracy(which), side="right") - 1, len(edges) - 2)


def loss_accuracy_correlation(sets: SupportSets) -> evaluation.Correlation | None:
    """Spearman's rank correlation of accuracy with minus the query loss, over hard, random and easy tasks together."""
    loss, accuracy = (np.stack([of(name) for name in SETS], axis=1) for of in (sets.loss, sets.accuracy))
    return rank_correlation(-loss, accuracy, sets.tasks["random"].class_ids)


def rank_correlation(measure: np.ndarray, accuracy: np.ndarray, class_ids: np.ndarray) -> evaluation.Correlation | None:
    """Spearman's correlation of a measure (T, S) with the accuracy (T, S) of S support sets of every task.

    The sets of a task count once, and tasks share classes: the interval is over classes where that is possible.
    None if one of the two is constant or there are too few tasks.
    """
    correlation = evaluation.correlation(accuracy, measure, class_ids, rank=True)
    return None if np.isnan(correlation.low) else correlation


def describe_correlation(value: float, interval: Sequence[float], over: str) -> str:
    """A correlation as text: "0.93 (95% CI over classes 0.90 to 0.95)"."""
    return f"{value:.2f} (95% CI over {over} {interval[0]:.2f} to {interval[1]:.2f})"


def coarsity_table(sets: SupportSets, n_bins: int = 4) -> pd.DataFrame | None:
    """Accuracy of hard, random and easy sets by quartile of coarsity; None if tasks have no coarsity.

    Columns set, bin (1 = semantically closest), low, high, n_tasks, accuracy, ci95 (fractions).
    """
    coarsity = sets.tasks["random"].measures.get("coarsity")
    if coarsity is None or np.isfinite(coarsity).sum() < 2 * n_bins:
        return None
    tables = [evaluation.accuracy_by_quantile(sets.accuracy(name), coarsity, n_bins).assign(set=name) for name in SETS]
    return pd.concat(tables, ignore_index=True)


def tasks_between(sets: SupportSets, low: float, high: float) -> np.ndarray:
    """The tasks with coarsity from `low` to `high`, hardest first."""
    coarsity = sets.tasks["random"].measures["coarsity"]
    return hardest_first(sets, np.flatnonzero((coarsity >= low) & (coarsity <= high)))


def without_choice(tasks: Tasks, table: Features, dataset: Dataset) -> tuple[list[str], float]:
    """Classes that leave no choice of support in some task, and their share of all classes of the tasks.

    Their pool holds no more images than shots, so that every support is the same.
    """
    used = tasks.class_ids != PAD
    is_fixed = used & (attribute_effects.pool_sizes(table, tasks) <= (tasks.support != PAD).sum(axis=2))
    names = dataset.short_names()
    return [names[class_id] for class_id in np.unique(tasks.class_ids[is_fixed])], float(is_fixed.sum() / used.sum())


def lower_bound_note(spec: SupportSpec, tasks: Tasks, dataset: Dataset) -> str:
    """A sentence if some classes of the tasks leave no choice of support; else ""."""
    table = searched_features(spec, chunk_data.features_of(dataset.name, spec["backbone"]))
    names, share = without_choice(tasks, table, dataset)
    if not names:
        return ""
    few = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"The cost of hard supports is a lower bound: {few} {'has' if len(names) == 1 else 'have'} no spare images "
        f"({share:.0%} of all classes of these tasks). Lower n_shot or n_query, or add images."
    )


# --- checking ----------------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> SupportSpec:
    """The spec with every setting; ways, shots and queries fit the dataset, alpha fits the sampler."""
    values = fitting.check(SETTINGS, spec, TASK_DEFAULTS, choice=True)
    values["device"] = evaluation.resolved_device(values["device"])
    return cast(SupportSpec, values)


ACCURACIES = Table(
    "Hard, random and easy supports",
    Column("supports", "Support set"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("n_tasks", "Tasks", kind="count"),
)


def accuracy_rows(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row per kind of support set."""
    columns = ("accuracy", "ci95")
    return [
        {"supports": name, **{of: summary[of][name] for of in columns}, "n_tasks": summary["n_tasks"]} for name in SETS
    ]


STUDY = Study(
    name="support_sets",
    title="hard supports",
    question="How much accuracy can a choice of support images cost?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    finish=finish,
    headline=headline,
    sweeps=sweeps,
    work=work,
    shorten=shorten,
    n_bytes=n_bytes,
    ignored=(OBJECTIVE.name,),
    version=2,
)
