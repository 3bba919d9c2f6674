"""Study stress_test: do tasks that are hard for one classifier transfer to other backbones and adaptations?

    hard sets of one or more source backbones -> every backbone x every adaptation -> drop from random to hard

First the hard sets are searched, one part per source; when all searches are finished, every cell is classified. A cell
is one set of tasks ("random" or a source) with one backbone and one adaptation. Full fine-tuning trains all weights of
the backbone on the images of every task. It takes about a minute per task and core, so it has its own, smaller number
of tasks. After Basu et al. 2023, section 5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets, evaluation, features
from fsviz.difficulty.full_finetuning import LEARNING_RATES
from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import Features, HeadlineNumber, Predictions, Tasks, Testbed
from fsviz.settings import RawSettings, Schema, Setting, Settings
from fsviz.studies import chunk_data, support_sets
from fsviz.studies.stress_finetuning import FINETUNING, finetuned, learning_rate, learning_rates, require_trainable
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.tables import Column, Table
from fsviz.tasks import snapshot
from fsviz.workspace import atomic_file

__all__ = ["LEARNING_RATES"]

FULL = "full_finetuning"
ADAPTATIONS: dict[str, str] = {
    **{name: METHODS[name].title for name in ("protonet", "finetune", "tim")},
    FULL: "Full fine-tuning",
}
SOURCES = Setting(
    "sources",
    "Searched with",
    "Backbones that hard sets are searched with (default: the first).",
    "names",
    [],
)
BACKBONES = Setting("backbones", "Backbones", "Backbones that classify (default: all with features).", "names", [])
ADAPTED = Setting(
    "adaptations",
    "Classifiers",
    "How the classifier learns a task from its support images.",
    "names",
    [name for name in ADAPTATIONS if name != FULL],
    choices=ADAPTATIONS,
)
# A stress test has its own classifiers and saves no testbed.
SEARCH_SETTINGS = [
    s for s in support_sets.SEARCH_SETTINGS.values() if s not in (support_sets.CLASSIFIER, support_sets.OBJECTIVE)
]
SETTINGS = Schema(
    {s.name: s for s in (SOURCES, BACKBONES, ADAPTED)}
    | FINETUNING
    | {name: s for name, s in support_sets.SETTINGS.settings.items() if name in support_sets.TASK_SETTINGS}
    | {s.name: s for s in SEARCH_SETTINGS},
    required=("dataset",),
    of="the stress test",
)
RANDOM = "random"
_CHUNK = 50  # tasks of a cell that are classified together
_MIN_PREVIEW = 10  # tasks of a preview
_FULL_SECONDS = 60.0  # of full fine-tuning per task, with default steps and size, on one ordinary core


class StressSpec(support_sets.SupportSpec, total=False):
    """A checked spec: that of a search without backbone and classifier, and the cells; a prepared one has a folder."""

    sources: list[str]
    backbones: list[str]
    adaptations: list[str]
    finetuning_tasks: int
    finetuning_validation: int
    finetuning_steps: int
    finetuning_size: int
    finetuning_augment: float


class StressRow(TypedDict):
    """One cell of the matrix: a backbone with an adaptation on tasks hard for a source, and on random ones; percent."""

    source: str
    backbone: str
    adaptation: str
    n_tasks: int
    random: float
    random_ci95: float | None
    hard: float
    hard_ci95: float | None
    drop: float
    drop_ci95: float | None


class LossCorrelation(TypedDict):
    """Rank correlation of accuracy with low query loss, for a backbone with an adaptation.

    With its 95% interval and the unit of that; None if it is undefined.
    """

    backbone: str
    adaptation: str
    loss_accuracy: Any
    loss_accuracy_ci95: Any
    loss_accuracy_over: Any


class Agreement(TypedDict):
    """Rank correlations of the accuracy of a backbone with the accuracy and the low query loss of a source."""

    source: str
    backbone: str
    accuracy: Any
    accuracy_ci95: Any
    accuracy_over: Any
    loss: Any
    loss_ci95: Any
    loss_over: Any


class StressSummary(TypedDict):
    """Results of a stress test, over the finished tasks."""

    dataset: str
    n_tasks: int
    matrix: list[StressRow]
    spearman: list[LossCorrelation]
    agreement: list[Agreement]
    learning_rates: dict[str, dict[str, Any]]
    understated: str


@dataclass(frozen=True)
class StressCell:
    """One set of tasks, classified with one backbone and one adaptation."""

    source: str  # RANDOM, or the backbone that the hard sets were searched with
    backbone: str
    adaptation: str
    n_tasks: int


@dataclass(frozen=True)
class StressTest:
    """Random tasks, and tasks that are hard for each source, classified with every backbone and adaptation.

    tasks           by source, RANDOM included; hard ones if they are searched already
    accuracy, loss  (T,) by (source, backbone, adaptation); NaN for tasks that are not classified yet
    learning_rates  of full fine-tuning by backbone: the chosen one, and the validation accuracies
    """

    spec: StressSpec
    tasks: Mapping[str, Tasks]
    accuracy: Mapping[tuple[str, str, str], np.ndarray]
    loss: Mapping[tuple[str, str, str], np.ndarray]
    learning_rates: Mapping[str, dict[str, Any]]

    @property
    def cache_key(self) -> tuple[str, int, str]:
        """Changes with the tasks and the predictions."""
        n_done = sum(int(np.isfinite(values).sum()) for values in self.accuracy.values())
        return json.dumps(self.spec, sort_keys=True), n_done, datasets.stamp(self.spec["dataset"])

    def cell(self, source: str, backbone: str, adaptation: str) -> tuple[Tasks, np.ndarray, np.ndarray]:
        """The hard tasks of a cell of a finished test, and the accuracies (T,) on the random and the hard ones."""
        random, hard = (self.accuracy[sets, backbone, adaptation] for sets in (RANDOM, source))
        return self.tasks[source].take(slice(0, len(hard))), random, hard


def predictions_of(test: StressTest, source: str, backbone: str, adaptation: str) -> Predictions | None:
    """Predictions of a backbone with an adaptation on the tasks that are hard for a source.

    None for full fine-tuning, which takes too long to be repeated.
    """
    if adaptation == FULL:
        return None
    return _classified(test.spec, backbone, adaptation, test.tasks[source])


def _classified(spec: StressSpec, backbone: str, adaptation: str, tasks: Tasks, first: int = 0) -> Predictions:
    table = chunk_data.features_of(spec["dataset"], backbone)
    return evaluation.evaluate(table, tasks, adaptation, device=spec["device"], first=first)


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: StressSpec, folder: Path) -> StressSpec:
    """Freezes the random tasks of a spec into `folder`."""
    dataset = datasets.load(spec["dataset"])
    tables = {name: features.load(dataset, name) for name in {*spec["sources"], *spec["backbones"]}}
    if FULL in spec["adaptations"]:
        require_trainable(dataset, spec["backbones"])
    base = _base(spec)
    tasks = support_sets.draw_tasks(base, dataset, tables)
    snapshot.freeze(folder, Testbed(RANDOM, tasks, support_sets.recipe_of(base, "random")), RANDOM)
    return spec


def _shared_images(table: Features, tables: Mapping[str, Features]) -> Features:
    """The features of the images that all tables have: every backbone must be able to classify the hard sets."""
    is_shared = np.ones(len(table.image_ids), dtype=bool)
    for features_of_backbone in tables.values():
        is_shared &= np.isin(table.image_ids, features_of_backbone.image_ids)
    if is_shared.all():
        return table
    return replace(
        table,
        values=table.values[is_shared],
        image_ids=table.image_ids[is_shared],
        class_ids=table.class_ids[is_shared],
    )


def parts(spec: StressSpec) -> list[Part]:
    """One part per source for the searches, then one per cell; cells wait for the hard sets."""
    size = support_sets.tasks_per_chunk(spec)
    searches = [Part(f"searching {_title(source)}", spec["n_tasks"], size) for source in spec["sources"]]
    all_cells = cells(spec)
    return [
        *searches,
        *(
            Part(
                f"{_title(cell.source)}, {title_of(cell.backbone)}, {ADAPTATIONS[cell.adaptation]}",
                cell.n_tasks,
                1 if cell.adaptation == FULL else _CHUNK,
                sequential=cell == all_cells[0],
            )
            for cell in all_cells
        ),
    ]


def _title(source: str) -> str:
    return "random tasks" if source == RANDOM else f"tasks hard for {title_of(source)}"


def n_bytes(spec: StressSpec) -> float:
    """About how large the results are: supports in folder and chunks, two numbers per task and cell, chunk files."""
    searched = 16.0 * snapshot.tasks(spec["folder"], RANDOM).support.size * len(spec["sources"])
    return searched + 1500 * STUDY.n_chunks(spec) + sum(16 * cell.n_tasks for cell in cells(spec))


def run_chunk(spec: StressSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The hard supports of one range of tasks, or accuracy and query loss of one range of tasks of one cell."""
    n_searches = len(spec["sources"])
    if part < n_searches:
        return {"support": _hard_supports(spec, spec["sources"][part], start, stop)}
    cell = cells(spec)[part - n_searches]
    tasks = hard_tasks(spec, cell.source, start, stop)
    if cell.adaptation == FULL:
        rate = learning_rate(spec, _base(spec), cell.backbone)
        predictions = finetuned(spec, cell.backbone, tasks, rate, spec["seed"] + start, first=start)
    else:
        predictions = _classified(spec, cell.backbone, cell.adaptation, tasks, start)
    return {"accuracy": evaluation.task_accuracy(predictions), "loss": predictions.loss()}


def collect(spec: StressSpec, chunks: Sequence[Arrays]) -> StressTest:
    """The searched tasks and the classified cells of the finished chunks."""
    finished, random = joined(chunks), snapshot.tasks(spec["folder"], RANDOM)
    tasks = {RANDOM: random}
    for part, source in enumerate(spec["sources"]):
        if part in finished:
            own = random.take(finished[part]["positions"])
            tasks[source] = replace(own, support=finished[part]["support"])
    accuracy, loss = {}, {}
    for part, cell in enumerate(cells(spec), start=len(spec["sources"])):
        key = cell.source, cell.backbone, cell.adaptation
        accuracy[key], loss[key] = np.full(cell.n_tasks, np.nan), np.full(cell.n_tasks, np.nan)
        if part in finished:
            at = finished[part]["positions"]
            accuracy[key][at], loss[key][at] = finished[part]["accuracy"], finished[part]["loss"]
    return StressTest(
        cast(StressSpec, SETTINGS.pick(spec)),
        tasks,
        accuracy,
        loss,
        learning_rates(spec) if FULL in spec["adaptations"] else {},
    )


def work(spec: StressSpec) -> Work:
    return Work(spec["n_tasks"], "tasks", _seconds(spec))


def shorten(spec: StressSpec, n: int) -> StressSpec | None:
    """Fewer tasks, without full fine-tuning, and by FastDiffSel if a slower search has time for too few."""
    adaptations = [name for name in spec["adaptations"] if name != FULL] or ADAPTED.default[:1]
    fast: StressSpec = {**spec, "adaptations": adaptations}
    seconds = _seconds(spec)
    if int(max(n, 1) * (seconds / _seconds(fast))) < min(_MIN_PREVIEW, spec["n_tasks"]):
        fast = cast(StressSpec, {**fast, **support_sets.quick_search(fast)})
    n_tasks = int(max(n, 1) * (seconds / _seconds(fast)))  # exactly n if nothing is faster
    fast["n_tasks"] = min(spec["n_tasks"], max(n_tasks, _MIN_PREVIEW))
    return fast if fast != spec else None


def _seconds(spec: StressSpec) -> float:
    """About how long all searches and cells take on one ordinary core."""
    dataset = datasets.load(spec["dataset"])
    n_sets = 1 + len(spec["sources"])
    total = spec["n_tasks"] * len(spec["sources"]) * support_sets.seconds_to_search(spec, dataset)
    for backbone in spec["backbones"]:
        for adaptation in spec["adaptations"]:
            if adaptation == FULL:
                steps, size = (FINETUNING[name].default for name in ("finetuning_steps", "finetuning_size"))
                task = _FULL_SECONDS * spec["finetuning_steps"] / steps * (spec["finetuning_size"] / size) ** 2
                n_validated = spec["finetuning_validation"] * len(LEARNING_RATES)
                total += task * (n_validated + n_sets * min(spec["n_tasks"], spec["finetuning_tasks"]))
            else:
                own = {**spec, "backbone": backbone, "classifier": adaptation}
                total += n_sets * spec["n_tasks"] * support_sets.seconds_to_classify(own, dataset)
    return float(total)


# --- the hard sets -----------------------------------------------------------------------------------------------


def hard_tasks(spec: StressSpec, source: str, start: int = 0, stop: int | None = None) -> Tasks:
    """The random tasks from `start` to `stop` with the hard sets that were searched with a source."""
    if source == RANDOM:
        return snapshot.tasks(spec["folder"], RANDOM, start, stop)
    stop = spec["n_tasks"] if stop is None else stop
    tasks, size = snapshot.tasks(spec["folder"], RANDOM), support_sets.tasks_per_chunk(spec)
    chunks = [
        _hard_supports(spec, source, first, min(first + size, spec["n_tasks"]))
        for first in range(start - start % size, stop, size)
    ]
    support = np.concatenate(chunks)[start % size :][: stop - start]
    random = tasks.take(slice(start, stop))
    return replace(random, support=support)


def _hard_supports(spec: StressSpec, source: str, start: int, stop: int) -> np.ndarray:
    """Hard supports (t, W, S) of one range of tasks, searched once per run and saved in its folder."""
    path = Path(spec["folder"]) / "inputs" / f"source{spec['sources'].index(source)}-{start}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        pass
    names = tuple(sorted({*spec["sources"], *spec["backbones"]}))
    table = _pool_of(spec["dataset"], source, names, chunk_data.stamp(spec["dataset"]))
    tasks = snapshot.tasks(spec["folder"], RANDOM, start, stop)
    base = _base(spec)
    support = support_sets.search(base, tasks, table, "hard", base["seed"]).support
    with atomic_file(path) as temporary:
        np.save(temporary, support, allow_pickle=False)
    return support


@lru_cache(maxsize=2)
def _pool_of(dataset: str, source: str, names: tuple[str, ...], stamp: str) -> Features:
    return _shared_images(
        chunk_data.features_of(dataset, source), {n: chunk_data.features_of(dataset, n) for n in names}
    )


# --- results ----------------------------------------------------------------------------------------------------


def summary(test: StressTest) -> StressSummary:
    """The matrix of accuracies in percent over the finished tasks, and how far difficulty transfers."""
    spec, rows = test.spec, []
    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            for adaptation in spec["adaptations"]:
                random, hard = (test.accuracy[sets, backbone, adaptation] for sets in (RANDOM, source))
                done = np.isfinite(random) & np.isfinite(hard)
                if done.any():
                    rows.append(_row(source, backbone, adaptation, random[done], hard[done]))
    return {
        "dataset": spec["dataset"],
        "n_tasks": spec["n_tasks"],
        "matrix": rows,
        "spearman": _correlations(test),
        "agreement": _agreement(test),
        "learning_rates": dict(test.learning_rates),
        "understated": _lower_bound_note(test),
    }


def headline(test: StressTest) -> list[HeadlineNumber]:
    """The cost of hard supports in every cell."""
    numbers = []
    for row in summary(test)["matrix"]:
        cell = f"{row['source']}_{row['backbone']}_{row['adaptation']}"
        title = f"{title_of(row['backbone'])}, {ADAPTATIONS[row['adaptation']]}: drop on {_title(row['source'])}"
        numbers.append(HeadlineNumber.around(f"drop_{cell}", title, row["drop"], row["drop_ci95"], "points"))
    return numbers


def _lower_bound_note(test: StressTest) -> str:
    """A sentence if some classes leave no choice of support; else ""."""
    return support_sets.lower_bound_note(_base(test.spec), test.tasks[RANDOM], datasets.load(test.spec["dataset"]))


def _row(source: str, backbone: str, adaptation: str, random: np.ndarray, hard: np.ndarray) -> StressRow:
    of_random, of_hard, lost = (mean_and_ci95(100 * values) for values in (random, hard, random - hard))
    return {
        "source": source,
        "backbone": backbone,
        "adaptation": adaptation,
        "n_tasks": len(hard),
        "random": float(of_random[0]),
        "random_ci95": finite(of_random[1]),
        "hard": float(of_hard[0]),
        "hard_ci95": finite(of_hard[1]),
        "drop": float(lost[0]),
        "drop_ci95": finite(lost[1]),
    }


def _correlations(test: StressTest) -> list[LossCorrelation]:
    """Per backbone and adaptation: Spearman of accuracy with low query loss, over random and hard tasks."""
    spec, rows = test.spec, []
    for backbone in spec["backbones"]:
        for adaptation in spec["adaptations"]:
            keys = [(source, backbone, adaptation) for source in (RANDOM, *spec["sources"])]
            losses, accuracies = (np.stack([of[key] for key in keys], axis=1) for of in (test.loss, test.accuracy))
            rho = _correlation("loss_accuracy", -losses, accuracies, test.tasks[RANDOM].class_ids)
            rows.append(cast(LossCorrelation, {"backbone": backbone, "adaptation": adaptation, **rho}))
    return rows


def _agreement(test: StressTest) -> list[Agreement]:
    """Per source and other backbone: do the same tasks have low accuracy, over random and hard tasks together?

    Spearman of both backbones' accuracies, and of the source's low query loss with the other's accuracy.
    """
    spec, class_ids, rows = test.spec, test.tasks[RANDOM].class_ids, []
    first = spec["adaptations"][0]

    def both(numbers: Mapping[tuple[str, str, str], np.ndarray], source: str, backbone: str) -> np.ndarray:
        return np.stack([numbers[sets, backbone, first] for sets in (RANDOM, source)], axis=1)

    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            if source in spec["backbones"] and backbone != source:
                accuracy = both(test.accuracy, source, backbone)
                rho = _correlation("accuracy", both(test.accuracy, source, source), accuracy, class_ids)
                rho |= _correlation("loss", -both(test.loss, source, source), accuracy, class_ids)
                rows.append(cast(Agreement, {"source": source, "backbone": backbone, **rho}))
    return rows


def _correlation(name: str, measure: np.ndarray, accuracy: np.ndarray, class_ids: np.ndarray) -> dict[str, Any]:
    """A rank correlation of (T, S) numbers, with its 95% interval and the unit of that, by name."""
    rho = support_sets.rank_correlation(measure, accuracy, class_ids[: len(accuracy)])
    interval = rho and [rho.low, rho.high]
    return {name: rho and rho.value, f"{name}_ci95": interval, f"{name}_over": rho and rho.ci_unit}


# --- cells and chunks --------------------------------------------------------------------------------------------


def cells(spec: StressSpec) -> list[StressCell]:
    """All cells in the order of computing: quick adaptations first."""
    rows = []
    for adaptation in sorted(spec["adaptations"], key=lambda a: a == FULL):
        n_tasks = min(spec["n_tasks"], spec["finetuning_tasks"]) if adaptation == FULL else spec["n_tasks"]
        for backbone in spec["backbones"]:
            for source in (RANDOM, *spec["sources"]):
                rows.append(StressCell(source, backbone, adaptation, n_tasks))
    return rows


# --- checking ----------------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> StressSpec:
    """The spec with every setting; ways, shots and queries fit the dataset and the first source."""
    requested = {name: value for name, value in SETTINGS.requested(spec).items() if value != []}
    backbones = requested.get("backbones") or features.required(datasets.load(requested["dataset"]))
    sources = requested.get("sources") or backbones[:1]
    search = {name: value for name, value in requested.items() if name in support_sets.SETTINGS.settings}
    base = support_sets.check({**search, "dataset": requested["dataset"], "backbone": sources[0]})
    return cast(
        StressSpec, SETTINGS.check({**requested, **SETTINGS.pick(base), "sources": sources, "backbones": backbones})
    )


def _base(spec: Settings) -> support_sets.SupportSpec:
    """The spec of the search for tasks that are hard for the first source."""
    own = {s.name: s.default for s in (support_sets.CLASSIFIER, support_sets.OBJECTIVE)}
    return cast(support_sets.SupportSpec, {**support_sets.SETTINGS.pick(spec), "backbone": spec["sources"][0], **own})


MATRIX = Table(
    "Accuracy on hard and on random tasks",
    Column("source", "Hard for"),
    Column("backbone", "Backbone"),
    Column("adaptation", "Classifier"),
    Column("random", "Random tasks", kind="percent", interval="random_ci95"),
    Column("hard", "Hard tasks", kind="percent", interval="hard_ci95"),
    Column("drop", "Drop", kind="points", interval="drop_ci95"),
    Column("n_tasks", "Tasks", kind="count"),
)


STUDY = Study(
    name="stress_test",
    title="stress test",
    question="Do hard tasks transfer to other classifiers?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summary,
    headline=headline,
    work=work,
    shorten=shorten,
    n_bytes=n_bytes,
    reads_images=True,  # for full fine-tuning
    version=3,
)
