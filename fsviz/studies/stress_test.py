"""Does difficulty stay when the backbone or the adaptation changes? Hard against random testbeds, cell by cell.

    hard sets of one or more source backbones -> every backbone x every adaptation -> drop from random to hard

First the hard sets are searched, one part per source; then every cell is classified, when all searches are finished.
A cell is one set of tasks ("random" or a source) with one backbone and one adaptation. Full finetuning trains all
weights of the backbone on every task, from its images; it takes about a minute per task on a processor core, so it has
its own, smaller number of tasks. After Basu et al. 2023, section 5.
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
    FULL: "Full finetuning",
}
SOURCES = Setting(
    "sources",
    "Hard sets searched with",
    "Backbones that hard sets are searched with; the first if none is named.",
    "names",
    [],
)
BACKBONES = Setting(
    "backbones", "Backbones", "Backbones that classify; all with features if none is named.", "names", []
)
ADAPTED = Setting(
    "adaptations",
    "Adaptations",
    "How the classifier learns a task from its support images.",
    "names",
    [name for name in ADAPTATIONS if name != FULL],
    choices=ADAPTATIONS,
)
# A stress test has classifiers of its own and keeps no testbed.
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
_FEWEST = 10  # tasks of a preview
_FULL_SECONDS = 60.0  # of full finetuning per task, at the usual steps and size, on one ordinary core


class Spec(support_sets.Spec, total=False):
    """A checked spec: that of a search without backbone and classifier, and what the cells are made of; work on it adds
    a folder."""

    sources: list[str]
    backbones: list[str]
    adaptations: list[str]
    finetuning_tasks: int
    finetuning_validation: int
    finetuning_steps: int
    finetuning_size: int
    finetuning_augment: float


class Row(TypedDict):
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


class OwnLoss(TypedDict):
    """How the query loss of a backbone with an adaptation goes with its accuracy: a rank correlation, its 95% interval
    and what that is over; None where they cannot be known."""

    backbone: str
    adaptation: str
    loss_accuracy: Any
    loss_accuracy_ci95: Any
    loss_accuracy_over: Any


class Agreement(TypedDict):
    """How the accuracy of a backbone goes with the accuracy and with the loss of a source, in the same way."""

    source: str
    backbone: str
    accuracy: Any
    accuracy_ci95: Any
    accuracy_over: Any
    loss: Any
    loss_ci95: Any
    loss_over: Any


class Summary(TypedDict):
    """What came out of a run so far."""

    dataset: str
    n_tasks: int
    matrix: list[Row]
    spearman: list[OwnLoss]
    agreement: list[Agreement]
    learning_rates: dict[str, dict[str, Any]]
    understated: str


@dataclass(frozen=True)
class Cell:
    """One set of tasks, classified with one backbone and one adaptation."""

    source: str  # RANDOM, or the backbone that the hard sets were searched with
    backbone: str
    adaptation: str
    n_tasks: int


@dataclass(frozen=True)
class StressTest:
    """Random tasks, and tasks that are hard for each source, classified with every backbone and adaptation.

    tasks           by source, RANDOM among them; hard ones as far as they are searched
    accuracy, loss  (T,) by (source, backbone, adaptation); NaN for a task that is not classified yet
    learning_rates  of full finetuning, by backbone: what was chosen, and the validation accuracies
    """

    spec: Spec
    tasks: Mapping[str, Tasks]
    accuracy: Mapping[tuple[str, str, str], np.ndarray]
    loss: Mapping[tuple[str, str, str], np.ndarray]
    learning_rates: Mapping[str, dict[str, Any]]

    @property
    def cache_key(self) -> tuple[str, int, str]:
        """Changes when the tasks or the answers do."""
        n_done = sum(int(np.isfinite(values).sum()) for values in self.accuracy.values())
        return json.dumps(self.spec, sort_keys=True), n_done, datasets.stamp(self.spec["dataset"])

    def cell(self, source: str, backbone: str, adaptation: str) -> tuple[Tasks, np.ndarray, np.ndarray]:
        """The hard tasks of a cell of a finished test, and the accuracies (T,) on the random and the hard ones."""
        random, hard = (self.accuracy[sets, backbone, adaptation] for sets in (RANDOM, source))
        return self.tasks[source].take(slice(0, len(hard))), random, hard


def answers_of(found: StressTest, source: str, backbone: str, adaptation: str) -> Predictions | None:
    """What a backbone with an adaptation says of the queries of the tasks that are hard for a source; None of full
    finetuning, which takes too long to be repeated."""
    if adaptation == FULL:
        return None
    return _classified(found.spec, backbone, adaptation, found.tasks[source])


def _classified(spec: Spec, backbone: str, adaptation: str, tasks: Tasks, first: int = 0) -> Predictions:
    table = chunk_data.features_of(spec["dataset"], backbone)
    return evaluation.evaluate(table, tasks, adaptation, device=spec["device"], first=first)


# --- the run -----------------------------------------------------------------------------------------------------


def prepare(spec: Spec, folder: Path) -> Spec:
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
    """The images of a table that all tables have: every backbone must be able to classify what is found."""
    kept = np.ones(len(table.image_ids), dtype=bool)
    for other in tables.values():
        kept &= np.isin(table.image_ids, other.image_ids)
    if kept.all():
        return table
    return replace(table, values=table.values[kept], image_ids=table.image_ids[kept], class_ids=table.class_ids[kept])


def parts(spec: Spec) -> list[Part]:
    """One part per source for the searches, then one per cell: these wait for the hard sets."""
    size = support_sets.tasks_per_chunk(spec)
    searches = [Part(f"searching {_title(source)}", spec["n_tasks"], size) for source in spec["sources"]]
    every = cells(spec)
    return [
        *searches,
        *(
            Part(
                f"{_title(cell.source)}, {title_of(cell.backbone)}, {ADAPTATIONS[cell.adaptation]}",
                cell.n_tasks,
                1 if cell.adaptation == FULL else _CHUNK,
                sequential=cell == every[0],
            )
            for cell in every
        ),
    ]


def _title(source: str) -> str:
    return "random tasks" if source == RANDOM else f"tasks hard for {title_of(source)}"


def n_bytes(spec: Spec) -> float:
    """About how large the run's results are: supports, in its folder and in its chunks, two numbers per task and cell,
    and a small file per chunk."""
    searched = 16.0 * snapshot.tasks(spec["folder"], RANDOM).support.size * len(spec["sources"])
    return searched + 1500 * STUDY.n_chunks(spec) + sum(16 * cell.n_tasks for cell in cells(spec))


def run_chunk(spec: Spec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The hard supports of one range of tasks, or accuracy and query loss of one range of tasks of one cell."""
    n_searches = len(spec["sources"])
    if part < n_searches:
        return {"support": _hard_supports(spec, spec["sources"][part], start, stop)}
    cell = cells(spec)[part - n_searches]
    tasks = hard_tasks(spec, cell.source, start, stop)
    if cell.adaptation == FULL:
        rate = learning_rate(spec, _base(spec), cell.backbone)
        said = finetuned(spec, cell.backbone, tasks, rate, spec["seed"] + start, first=start)
    else:
        said = _classified(spec, cell.backbone, cell.adaptation, tasks, start)
    return {"accuracy": evaluation.task_accuracy(said), "loss": said.loss()}


def collect(spec: Spec, chunks: Sequence[Arrays]) -> StressTest:
    """The searched tasks and the classified cells of the finished chunks."""
    finished, random = joined(chunks), snapshot.tasks(spec["folder"], RANDOM)
    tasks = {RANDOM: random}
    for part, source in enumerate(spec["sources"]):
        if part in finished:
            drawn = random.take(finished[part]["positions"])
            tasks[source] = Tasks(drawn.class_ids, finished[part]["support"], drawn.query, drawn.measures)
    accuracy, loss = {}, {}
    for part, cell in enumerate(cells(spec), start=len(spec["sources"])):
        key = cell.source, cell.backbone, cell.adaptation
        accuracy[key], loss[key] = np.full(cell.n_tasks, np.nan), np.full(cell.n_tasks, np.nan)
        if part in finished:
            at = finished[part]["positions"]
            accuracy[key][at], loss[key][at] = finished[part]["accuracy"], finished[part]["loss"]
    return StressTest(
        cast(Spec, SETTINGS.pick(spec)),
        tasks,
        accuracy,
        loss,
        learning_rates(spec) if FULL in spec["adaptations"] else {},
    )


def work(spec: Spec) -> Work:
    return Work(spec["n_tasks"], "tasks", _seconds(spec))


def shorten(spec: Spec, n: int) -> Spec | None:
    """Fewer tasks, without full finetuning, and by FastDiffSel if the search is a slower one."""
    adaptations = [name for name in spec["adaptations"] if name != FULL] or ADAPTED.default[:1]
    search = "fastdiffsel" if spec["search"] in ("refined", "greedy") else spec["search"]
    fast: Spec = {**spec, "adaptations": adaptations, "search": search}
    n = int(max(n, 1) * _seconds(spec) / _seconds(fast))
    fast["n_tasks"] = min(spec["n_tasks"], max(n, _FEWEST))
    return fast if fast != spec else None


def _seconds(spec: Spec) -> float:
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
                asked = {**spec, "backbone": backbone, "classifier": adaptation}
                total += n_sets * spec["n_tasks"] * support_sets.seconds_to_classify(asked, dataset)
    return float(total)


# --- the hard sets -----------------------------------------------------------------------------------------------


def hard_tasks(spec: Spec, source: str, start: int = 0, stop: int | None = None) -> Tasks:
    """The random tasks from `start` to `stop`, with the hard sets that were searched with a source."""
    if source == RANDOM:
        return snapshot.tasks(spec["folder"], RANDOM, start, stop)
    stop = spec["n_tasks"] if stop is None else stop
    tasks, size = snapshot.tasks(spec["folder"], RANDOM), support_sets.tasks_per_chunk(spec)
    parts = [
        _hard_supports(spec, source, first, min(first + size, spec["n_tasks"]))
        for first in range(start - start % size, stop, size)
    ]
    found = np.concatenate(parts)[start % size :][: stop - start]
    drawn = tasks.take(slice(start, stop))
    return Tasks(drawn.class_ids, found, drawn.query, drawn.measures)


def _hard_supports(spec: Spec, source: str, start: int, stop: int) -> np.ndarray:
    """Hard supports (t, W, S) of one range of tasks, searched once per run and kept in its folder."""
    path = Path(spec["folder"]) / "inputs" / f"source{spec['sources'].index(source)}-{start}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        pass
    names = tuple(sorted({*spec["sources"], *spec["backbones"]}))
    table = _pool_of(spec["dataset"], source, names, chunk_data.stamp(spec["dataset"]))
    tasks = snapshot.tasks(spec["folder"], RANDOM, start, stop)
    base = _base(spec)
    found = support_sets.search(base, tasks, table, "hard", base["seed"]).support
    with atomic_file(path) as temporary:
        np.save(temporary, found, allow_pickle=False)
    return found


@lru_cache(maxsize=2)
def _pool_of(dataset: str, source: str, names: tuple[str, ...], stamp: str) -> Features:
    return _shared_images(
        chunk_data.features_of(dataset, source), {n: chunk_data.features_of(dataset, n) for n in names}
    )


# --- what came out -----------------------------------------------------------------------------------------------


def summary(found: StressTest) -> Summary:
    """The stress-test matrix in percent over what is finished, and how far difficulty carries over."""
    spec, rows = found.spec, []
    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            for adaptation in spec["adaptations"]:
                random, hard = (found.accuracy[sets, backbone, adaptation] for sets in (RANDOM, source))
                done = np.isfinite(random) & np.isfinite(hard)
                if done.any():
                    rows.append(_row(source, backbone, adaptation, random[done], hard[done]))
    return {
        "dataset": spec["dataset"],
        "n_tasks": spec["n_tasks"],
        "matrix": rows,
        "spearman": _correlations(found),
        "agreement": _agreement(found),
        "learning_rates": dict(found.learning_rates),
        "understated": _understated(found),
    }


def headline(found: StressTest) -> list[HeadlineNumber]:
    """What hard supports cost in every cell."""
    numbers = []
    for row in summary(found)["matrix"]:
        cell = f"{row['source']}_{row['backbone']}_{row['adaptation']}"
        title = f"{title_of(row['backbone'])}, {ADAPTATIONS[row['adaptation']]}: drop on {_title(row['source'])}"
        numbers.append(HeadlineNumber.around(f"drop_{cell}", title, row["drop"], row["drop_ci95"], "points"))
    return numbers


def _understated(found: StressTest) -> str:
    """A sentence where some classes leave no choice of support; "" where all do."""
    return support_sets.understated(_base(found.spec), found.tasks[RANDOM], datasets.load(found.spec["dataset"]))


def _row(source: str, backbone: str, adaptation: str, random: np.ndarray, hard: np.ndarray) -> Row:
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


def _correlations(found: StressTest) -> list[OwnLoss]:
    """Per backbone and adaptation: Spearman of accuracy with minus the query loss, over hard and random tasks."""
    spec, told = found.spec, []
    for backbone in spec["backbones"]:
        for adaptation in spec["adaptations"]:
            mine = [(source, backbone, adaptation) for source in (RANDOM, *spec["sources"])]
            losses, accuracies = (np.stack([of[key] for key in mine], axis=1) for of in (found.loss, found.accuracy))
            rho = _told("loss_accuracy", -losses, accuracies, found.tasks[RANDOM].class_ids)
            told.append(cast(OwnLoss, {"backbone": backbone, "adaptation": adaptation, **rho}))
    return told


def _agreement(found: StressTest) -> list[Agreement]:
    """Per source and other backbone, over random and hard tasks together: is what is hard for one hard for the other?

    Spearman of both backbones' accuracies, and of the source's minus query loss with the other's accuracy.
    """
    spec, class_ids, rows = found.spec, found.tasks[RANDOM].class_ids, []
    first = spec["adaptations"][0]

    def both(numbers: Mapping[tuple[str, str, str], np.ndarray], source: str, backbone: str) -> np.ndarray:
        return np.stack([numbers[sets, backbone, first] for sets in (RANDOM, source)], axis=1)

    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            if source in spec["backbones"] and backbone != source:
                other = both(found.accuracy, source, backbone)
                told = _told("accuracy", both(found.accuracy, source, source), other, class_ids)
                told |= _told("loss", -both(found.loss, source, source), other, class_ids)
                rows.append(cast(Agreement, {"source": source, "backbone": backbone, **told}))
    return rows


def _told(name: str, measure: np.ndarray, accuracy: np.ndarray, class_ids: np.ndarray) -> dict[str, Any]:
    """A rank correlation of (T, S) numbers under its name, with its 95% interval and what that is over."""
    rho = support_sets.rank_correlation(measure, accuracy, class_ids[: len(accuracy)])
    interval = rho and [rho.low, rho.high]
    return {name: rho and rho.value, f"{name}_ci95": interval, f"{name}_over": rho and rho.ci_unit}


# --- cells and chunks --------------------------------------------------------------------------------------------


def cells(spec: Spec) -> list[Cell]:
    """All cells in the order they are computed: quick adaptations first."""
    found = []
    for adaptation in sorted(spec["adaptations"], key=lambda a: a == FULL):
        n_tasks = min(spec["n_tasks"], spec["finetuning_tasks"]) if adaptation == FULL else spec["n_tasks"]
        for backbone in spec["backbones"]:
            for source in (RANDOM, *spec["sources"]):
                found.append(Cell(source, backbone, adaptation, n_tasks))
    return found


# --- checking ----------------------------------------------------------------------------------------------------


def check(spec: RawSettings) -> Spec:
    """The spec with every setting; ways, shots and queries fit the dataset and the first source."""
    given = {name: value for name, value in SETTINGS.requested(spec).items() if value != []}
    backbones = given.get("backbones") or features.required(datasets.load(given["dataset"]))
    sources = given.get("sources") or backbones[:1]
    search = {name: value for name, value in given.items() if name in support_sets.SETTINGS.settings}
    base = support_sets.check({**search, "dataset": given["dataset"], "backbone": sources[0]})
    return cast(Spec, SETTINGS.check({**given, **SETTINGS.pick(base), "sources": sources, "backbones": backbones}))


def _base(spec: Settings) -> support_sets.Spec:
    """The spec of the search for tasks that are hard for the first source."""
    own = {s.name: s.default for s in (support_sets.CLASSIFIER, support_sets.OBJECTIVE)}
    return cast(support_sets.Spec, {**support_sets.SETTINGS.pick(spec), "backbone": spec["sources"][0], **own})


MATRIX = Table(
    "Accuracy on hard and on random tasks",
    Column("source", "Hard for"),
    Column("backbone", "Backbone"),
    Column("adaptation", "Adaptation"),
    Column("random", "Random tasks", kind="percent", interval="random_ci95"),
    Column("hard", "Hard tasks", kind="percent", interval="hard_ci95"),
    Column("drop", "Drop", kind="points", interval="drop_ci95"),
    Column("n_tasks", "Tasks", kind="count"),
)


STUDY = Study(
    name="stress_test",
    title="stress test",
    question="Is a task that is hard for one classifier hard for all?",
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
    reads_images=True,  # where whole backbones are finetuned
    version=3,
)
