"""Does difficulty stay when the backbone or the adaptation changes? Hard against random testbeds, cell by cell.

    hard sets of one or more source backbones -> every backbone x every adaptation -> drop from random to hard

The spec of a run:
    {"study": "stress", "dataset": name, "sources": [backbones the hard sets are searched with], "backbones": [backbones
     they are classified with], "adaptations": names out of ADAPTATIONS, and the settings of the hard-tasks study,
     "finetuning": {"n_tasks", "n_validation", "n_steps", "size", "augment"} for full finetuning}
First the hard sets are searched, a chunk being a range of tasks for one source; what is found lies in the run's folder.
A cell is one set of tasks ("random" or a source) with one backbone and one adaptation; a chunk is a range of its
tasks. Full finetuning trains all weights of the backbone on every task, from its images; it takes about a minute per
task on a processor core, so it has its own, smaller number of tasks. After Basu et al. 2023, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from fsviz import datasets, evaluation, features
from fsviz.difficulty.full_finetuning import LEARNING_RATES
from fsviz.errors import BadInput, Missing, NotFinite, UnknownName
from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.numerics import finite, mean_and_ci95
from fsviz.records import PAD, Dataset, Features, Predictions, Progress, Tasks, Testbed
from fsviz.settings import SEED, Setting, Unchecked, Values
from fsviz.studies import chunked, frozen, support_sets
from fsviz.studies.support_sets import SupportSets
from fsviz.workspace import atomic_file, read_json, write_json

__all__ = ["LEARNING_RATES"]

FULL = "full_finetuning"
ADAPTATIONS: dict[str, str] = {
    **{name: METHODS[name].title for name in ("protonet", "finetune", "tim")},
    FULL: "Full finetuning",
}
FINETUNING: dict[str, Setting] = {  # of the whole backbone, under the names that a spec has
    "n_tasks": Setting(
        "finetuning_tasks", "Tasks", "Tasks that the whole backbone is finetuned on.", "int", 10, 1, 10_000
    ),
    "n_validation": Setting(
        "finetuning_validation", "Validation tasks", "Tasks that the learning rate is chosen on.", "int", 5, 1, 1000
    ),
    "n_steps": Setting(
        "finetuning_steps", "Steps per task", "Training steps per task of full finetuning.", "int", 50, 0, 10_000
    ),
    "size": Setting("finetuning_size", "Pixels per side", "Pixels per side for full finetuning.", "int", 128, 16, 1024),
    "augment": Setting(
        "finetuning_augment",
        "Augmentation",
        "Share of the steps on changed images: flipped, moved.",
        "float",
        0.9,
        0,
        1,
    ),
}
RANDOM = "random"
VERSION = 2  # runs of the first version searched before they began: their hard sets are frozen like the random tasks
READS_IMAGES = True  # where whole backbones are finetuned
_CHUNK = 50  # tasks of a cell that are classified together
_ON_ONE = ("dataset", "backbone", "classifier", "objective", "study", "version", "folder")


class Spec(support_sets.Spec, total=False):
    """A checked spec: that of a search without backbone and classifier, and what the cells are made of."""

    sources: list[str]
    backbones: list[str]
    adaptations: list[str]
    finetuning: dict[str, Any]


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
    n_chunks: int


def run_at_once(spec: Unchecked, progress: Progress | None = None) -> Summary:
    """The whole stress test in this process, nothing recorded; full finetuning is left to runs."""
    import tempfile

    if FULL in (spec.get("adaptations") or ()):
        raise BadInput("Full finetuning takes minutes: start it as a run.")
    with tempfile.TemporaryDirectory() as folder:
        settled: Spec = {**prepare(dict(spec), Path(folder)), "folder": folder}
        chunks, total = [], plan(settled)
        for index in range(total):
            if progress is not None:
                progress(index, total, describe(settled, index))
            chunks.append(run_chunk(settled, index))
        return summarise(settled, chunks)


def answers_of(
    spec: Unchecked, source: str, backbone: str, adaptation: str, progress: Progress | None = None
) -> tuple[SupportSets, dict[str, Predictions]]:
    """The tasks behind a cell: random and hard sets as found with `source`, and what `backbone` with an adaptation says
    of their queries, by set."""
    settled = checked_spec(dict(spec))
    dataset = datasets.load(settled["dataset"])
    tables = {name: features.load(dataset, name) for name in {*settled["sources"], *settled["backbones"]}}
    base = support_sets.check({**_base(settled), "backbone": source})
    tasks = support_sets.draw_tasks(_base(settled), dataset, tables)
    shared = _shared_images(tables[source], tables)
    sets = support_sets.search_and_classify(base, tasks, shared, base["seed"], progress)
    asked = support_sets.check({**base, "backbone": backbone, "classifier": adaptation})
    both = {name: sets.tasks[name] for name in ("random", "hard")}
    return sets, {name: support_sets.classify(asked, tables[backbone], own, dataset) for name, own in both.items()}


def prepare(spec: dict[str, Any], folder: Path) -> Spec:
    """Checks a spec, draws the tasks and freezes them into `folder`."""
    settled = checked_spec(spec)
    dataset = datasets.load(settled["dataset"])
    tables = {name: features.load(dataset, name) for name in {*settled["sources"], *settled["backbones"]}}
    if FULL in settled["adaptations"]:
        _require_trainable(dataset, settled["backbones"])
    base = _base(settled)
    tasks = support_sets.draw_tasks(base, dataset, tables)
    frozen.freeze(folder, Testbed(RANDOM, tasks, support_sets.recipe_of(base, "random")), RANDOM)
    return {**settled, "version": VERSION}


def _shared_images(table: Features, tables: Mapping[str, Features]) -> Features:
    """The images of a table that all tables have: every backbone must be able to classify what is found."""
    kept = np.ones(len(table.image_ids), dtype=bool)
    for other in tables.values():
        kept &= np.isin(table.image_ids, other.image_ids)
    if kept.all():
        return table
    return replace(table, values=table.values[kept], image_ids=table.image_ids[kept], class_ids=table.class_ids[kept])


def plan(spec: Spec) -> int:
    return _n_searches(spec) + sum(cell.n_chunks for cell in cells(spec))


def waits_for(spec: Spec, index: int) -> int:
    """The searches come before everything that uses them."""
    return 0 if index < _n_searches(spec) else _n_searches(spec)


def n_bytes(spec: Spec) -> float:
    """About how large the run's results are: supports, two numbers per task and cell, and a small file per chunk."""
    searched = 8.0 * frozen.tasks(spec["folder"], RANDOM).support.size * len(spec["sources"])
    return searched + 1500 * plan(spec) + sum(16 * cell.n_tasks for cell in cells(spec))


def run_chunk(spec: Spec, index: int) -> dict[str, np.ndarray]:
    """The hard sets of one range of tasks, or accuracy and query loss of one range of tasks of one cell."""
    if index < _n_searches(spec):
        source, start, stop = _search_at(spec, index)
        _hard_supports(spec, spec["sources"][source], start, stop)
        return {"source": np.array(source), "start": np.array(start)}
    which, start, stop = chunk_at(spec, index)
    cell = cells(spec)[which]
    tasks = hard_tasks(spec, cell.source, start, stop)
    if cell.adaptation == FULL:
        rate = learning_rate(spec, cell.backbone)
        said = _finetuned(spec, cell.backbone, tasks, rate, spec["seed"] + start, first=start)
    else:
        table = chunked.features_of(spec["dataset"], cell.backbone)
        said = evaluation.evaluate(table, tasks, cell.adaptation, device=spec["device"], first=start)
    return {
        "cell": np.array(which),
        "start": np.array(start),
        "accuracy": evaluation.task_accuracy(said),
        "loss": said.loss(),
    }


def describe(spec: Spec, index: int) -> str:
    if index < _n_searches(spec):
        source, _, stop = _search_at(spec, index)
        return f"searching tasks hard for {title_of(spec['sources'][source])}: {stop:,} of {spec['n_tasks']:,}"
    which, _, stop = chunk_at(spec, index)
    cell = cells(spec)[which]
    what = "random tasks" if cell.source == RANDOM else f"tasks hard for {title_of(cell.source)}"
    return f"{what}, {title_of(cell.backbone)}, {ADAPTATIONS[cell.adaptation]}: {stop:,} of {cell.n_tasks:,}"


# --- the hard sets -----------------------------------------------------------------------------------------------


def hard_tasks(spec: Spec, source: str, start: int = 0, stop: int | None = None) -> Tasks:
    """The random tasks from `start` to `stop`, with the hard sets that were searched with a source."""
    if source == RANDOM or spec.get("version") != VERSION:
        return frozen.tasks(spec["folder"], _input(spec, source), start, stop)
    stop = spec["n_tasks"] if stop is None else stop
    tasks, size = frozen.tasks(spec["folder"], RANDOM), _search_size(spec)
    parts = [
        _hard_supports(spec, source, first, min(first + size, spec["n_tasks"]))
        for first in range(start - start % size, stop, size)
    ]
    found = np.concatenate(parts)[start % size :][: stop - start]
    drawn = tasks.take(slice(start, stop))
    return Tasks(drawn.class_ids, found, drawn.query, drawn.measures)


def _hard_supports(spec: Spec, source: str, start: int, stop: int) -> np.ndarray:
    """Hard supports (t, W, S) of one range of tasks, searched once per run and kept in its folder."""
    path = Path(spec["folder"]) / "inputs" / f"{_input(spec, source)}-{start}.npy"
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        pass
    names = tuple(sorted({*spec["sources"], *spec["backbones"]}))
    table = _pool_of(spec["dataset"], source, names, chunked.stamp(spec["dataset"]))
    tasks = frozen.tasks(spec["folder"], RANDOM, start, stop)
    base = _base(spec)
    found = support_sets.search(base, tasks, table, "hard", base["seed"]).support
    with atomic_file(path) as temporary:
        np.save(temporary, found, allow_pickle=False)
    return found


@lru_cache(maxsize=2)
def _pool_of(dataset: str, source: str, names: tuple[str, ...], stamp: str) -> Features:
    return _shared_images(chunked.features_of(dataset, source), {n: chunked.features_of(dataset, n) for n in names})


def _search_size(spec: Spec) -> int:
    return support_sets.tasks_per_chunk(spec)


def _n_searches(spec: Spec) -> int:
    """Chunks in which hard sets are searched; none in a run of the first version."""
    if spec.get("version") != VERSION:
        return 0
    return len(spec["sources"]) * math.ceil(spec["n_tasks"] / _search_size(spec))


def _search_at(spec: Spec, index: int) -> tuple[int, int, int]:
    """Source (its place) and range of tasks of a chunk that searches."""
    return chunked.chunk_at(((spec["n_tasks"], _search_size(spec)) for _ in spec["sources"]), index)


# --- what came out -----------------------------------------------------------------------------------------------


def summarise(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]]) -> Summary:
    """The stress-test matrix in percent over what is finished, and how far difficulty carries over."""
    accuracy, loss = _numbers(spec, chunks)
    class_ids = frozen.tasks(spec["folder"], RANDOM).class_ids
    every = cells(spec)
    position = {(c.source, c.backbone, c.adaptation): i for i, c in enumerate(every)}
    rows = []
    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            for adaptation in spec["adaptations"]:
                random = accuracy[position[RANDOM, backbone, adaptation]]
                hard = accuracy[position[source, backbone, adaptation]]
                done = np.isfinite(random) & np.isfinite(hard)
                if done.any():
                    rows.append(_row(source, backbone, adaptation, random[done], hard[done]))
    return {
        "dataset": spec["dataset"],
        "n_tasks": spec["n_tasks"],
        "matrix": rows,
        "spearman": _correlations(spec, every, accuracy, loss, class_ids),
        "agreement": _agreement(spec, position, accuracy, loss, class_ids),
        "learning_rates": _known_rates(spec),
        "understated": _understated(spec),
    }


def cell_of_run(
    spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]], source: str, backbone: str, adaptation: str
) -> tuple[Tasks, np.ndarray, np.ndarray]:
    """The tasks behind a cell of a finished run with their hard sets, and the accuracies (T,) of a backbone with an
    adaptation on random and on hard sets."""
    accuracy, _ = _numbers(spec, chunks)
    place = {(c.source, c.backbone, c.adaptation): i for i, c in enumerate(cells(spec))}
    random, hard = (accuracy[place[sets, backbone, adaptation]] for sets in (RANDOM, source))
    return hard_tasks(spec, source, 0, len(hard)), random, hard


def _understated(spec: Spec) -> str:
    """A sentence where some classes leave no choice of support; "" where all do."""
    return support_sets.understated(_base(spec), frozen.tasks(spec["folder"], RANDOM), datasets.load(spec["dataset"]))


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


def _correlations(
    spec: Spec,
    every: Sequence[Cell],
    accuracy: Sequence[np.ndarray],
    loss: Sequence[np.ndarray],
    class_ids: np.ndarray,
) -> list[OwnLoss]:
    """Per backbone and adaptation: Spearman of accuracy with minus the query loss, over hard and random tasks."""
    found = []
    for backbone in spec["backbones"]:
        for adaptation in spec["adaptations"]:
            mine = [i for i, c in enumerate(every) if (c.backbone, c.adaptation) == (backbone, adaptation)]
            losses, accuracies = (np.stack([numbers[i] for i in mine], axis=1) for numbers in (loss, accuracy))
            rho = _told("loss_accuracy", -losses, accuracies, class_ids)
            found.append(cast(OwnLoss, {"backbone": backbone, "adaptation": adaptation, **rho}))
    return found


def _agreement(
    spec: Spec,
    position: Mapping[tuple[str, str, str], int],
    accuracy: Sequence[np.ndarray],
    loss: Sequence[np.ndarray],
    class_ids: np.ndarray,
) -> list[Agreement]:
    """Per source and other backbone, over random and hard tasks together: is what is hard for one hard for the other?

    Spearman of both backbones' accuracies, and of the source's minus query loss with the other's accuracy.
    """
    first = spec["adaptations"][0]

    def both(numbers: Sequence[np.ndarray], source: str, backbone: str) -> np.ndarray:
        return np.stack([numbers[position[s, backbone, first]] for s in (RANDOM, source)], axis=1)

    found = []
    for source in spec["sources"]:
        for backbone in spec["backbones"]:
            if source in spec["backbones"] and backbone != source:
                other = both(accuracy, source, backbone)
                told = _told("accuracy", both(accuracy, source, source), other, class_ids)
                told |= _told("loss", -both(loss, source, source), other, class_ids)
                found.append(cast(Agreement, {"source": source, "backbone": backbone, **told}))
    return found


def _told(name: str, measure: np.ndarray, accuracy: np.ndarray, class_ids: np.ndarray) -> dict[str, Any]:
    """A rank correlation of (T, S) numbers under its name, with its 95% interval and what that is over."""
    rho = support_sets.rank_correlation(measure, accuracy, class_ids[: len(accuracy)])
    interval = rho and [rho.low, rho.high]
    return {name: rho and rho.value, f"{name}_ci95": interval, f"{name}_over": rho and rho.over}


# --- cells and chunks --------------------------------------------------------------------------------------------


def cells(spec: Spec) -> list[Cell]:
    """All cells in the order they are computed: quick adaptations first."""
    found = []
    for adaptation in sorted(spec["adaptations"], key=lambda a: a == FULL):
        n_tasks = min(spec["n_tasks"], spec["finetuning"]["n_tasks"]) if adaptation == FULL else spec["n_tasks"]
        size = 1 if adaptation == FULL else _CHUNK
        for backbone in spec["backbones"]:
            for source in (RANDOM, *spec["sources"]):
                found.append(Cell(source, backbone, adaptation, n_tasks, math.ceil(n_tasks / size)))
    return found


def chunk_at(spec: Spec, index: int) -> tuple[int, int, int]:
    """Cell and range of tasks (start, stop) of a chunk that classifies."""
    sizes = ((cell.n_tasks, math.ceil(cell.n_tasks / cell.n_chunks)) for cell in cells(spec))
    return chunked.chunk_at(sizes, index - _n_searches(spec))


def _numbers(spec: Spec, chunks: Sequence[Mapping[str, np.ndarray]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Accuracy and loss (n_tasks,) of every cell, NaN where a task is not done yet."""
    every = cells(spec)
    accuracy = [np.full(cell.n_tasks, np.nan) for cell in every]
    loss = [np.full(cell.n_tasks, np.nan) for cell in every]
    for chunk in chunks:
        if "cell" not in chunk:  # it searched
            continue
        part = slice(int(chunk["start"]), int(chunk["start"]) + len(chunk["accuracy"]))
        accuracy[int(chunk["cell"])][part] = chunk["accuracy"]
        loss[int(chunk["cell"])][part] = chunk["loss"]
    return accuracy, loss


def _input(spec: Spec, source: str) -> str:
    """The name under which the tasks of a source were frozen."""
    return RANDOM if source == RANDOM else f"source{spec['sources'].index(source)}"


# --- full finetuning ---------------------------------------------------------------------------------------------


def learning_rate(spec: Spec, backbone: str) -> float:
    """The rate of LEARNING_RATES that is best on random validation tasks; found once per run and kept in its folder."""
    from fsviz.difficulty.full_finetuning import choose_learning_rate

    path = _rate_file(spec, backbone)
    if path.exists():
        return float(read_json(path)["chosen"])
    tasks = _validation_tasks(spec, backbone)

    def accuracy_at(rate: float) -> float:
        try:
            return float(np.mean(evaluation.task_accuracy(_finetuned(spec, backbone, tasks, rate, spec["seed"]))))
        except NotFinite:  # a network that diverges gets nothing right
            return 0.0

    chosen, reached = choose_learning_rate(accuracy_at)
    write_json(path, {"chosen": chosen, "accuracy": {f"{rate:g}": value for rate, value in reached.items()}})
    return chosen


def _validation_tasks(spec: Spec, backbone: str) -> Tasks:
    """Random tasks of split val where it is large enough, else of the same split with another seed."""
    dataset = datasets.load(spec["dataset"])
    table = chunked.features_of(spec["dataset"], backbone)
    base: support_sets.Spec = {
        **_base(spec),
        "n_tasks": spec["finetuning"]["n_validation"],
        "seed": (spec["seed"] + 1) % int(SEED.high),
        "sampler": "uniform",
    }
    counts = np.bincount(table.class_ids, minlength=dataset.n_classes)
    val = dataset.splits.get("val", np.array([], dtype=np.int64))
    if (counts[val] >= base["n_shot"] + base["n_query"]).all() and len(val) >= base["n_way"]:
        base["split"] = "val"
    return support_sets.draw_tasks(base, dataset, {backbone: table})


def _finetuned(spec: Spec, backbone: str, tasks: Tasks, rate: float, seed: int, first: int = 0) -> Predictions:
    """Predictions after finetuning all weights of a backbone on every task's support images."""
    import torch

    from fsviz.difficulty.full_finetuning import finetuned_scores

    dataset = datasets.load(spec["dataset"])
    settings = spec["finetuning"]
    trainable = _trainable(backbone, spec["device"])
    n_tasks, n_way, n_query = tasks.query.shape
    scores = torch.full((n_tasks, n_way, n_way * n_query), -torch.inf)
    for t in range(len(tasks)):
        support_at, query_at = tasks.support[t] != PAD, tasks.query[t] != PAD
        support = _pixels(dataset, tasks.support[t][support_at], trainable.preprocessing, settings["size"])
        query = _pixels(dataset, tasks.query[t][query_at], trainable.preprocessing, settings["size"])
        labels = torch.from_numpy(np.nonzero(support_at)[0])
        said = finetuned_scores(
            trainable.network,
            trainable.forward,
            support,
            labels,
            query,
            rate,
            settings["n_steps"],
            settings["augment"],
            seed + t,
        )
        asked = torch.from_numpy(np.flatnonzero(query_at))
        for way in labels.unique():
            scores[t, way, asked] = said[:, way].cpu()
    return evaluation.predictions_from(
        scores,
        torch.from_numpy((tasks.support != PAD).any(axis=2)),
        tasks.query != PAD,
        "Full finetuning",
        lambda _: f"{backbone} diverged at a learning rate of {rate:g}. Leave full finetuning out for this backbone.",
        first,
    )


def _pixels(dataset: Dataset, image_ids: np.ndarray, preprocessing: Any, size: int) -> Any:
    """Images as (n, 3, size, size) in [0, 1], cut out as the backbone's own preprocessing does."""
    import torch

    fitted = replace(preprocessing, size=(size, size), resize=size if preprocessing.resize else 0)
    stacked = np.stack([fitted.apply(datasets.open_image(dataset, int(i))) for i in image_ids])
    return torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255


@lru_cache(maxsize=1)
def _trainable(backbone: str, device: str) -> Any:
    from fsviz.features.backbones import load_trainable

    return load_trainable(backbone.removesuffix("@random"), on=device)


def _require_trainable(dataset: Dataset, backbones: Sequence[str]) -> None:
    if not dataset.has_pixels:
        raise Missing(
            f"Full finetuning trains on images, and {dataset.title} has none here. Leave it out, or add your own copy "
            "of the images with 'python -m fsviz add NAME PATH'."
        )
    for name in backbones:
        if "@" in name.removesuffix("@random"):
            raise BadInput(
                f"Full finetuning loads a backbone by its name, and {name!r} was made from a checkpoint file. "
                "Leave full finetuning out for it."
            )


def _rate_file(spec: Spec, backbone: str) -> Path:
    return Path(spec["folder"]) / "inputs" / f"rate{spec['backbones'].index(backbone)}.json"


def _known_rates(spec: Spec) -> dict[str, Any]:
    """What was chosen so far, per backbone, with the validation accuracies."""
    if FULL not in spec["adaptations"] or "folder" not in spec:
        return {}
    return {b: read_json(_rate_file(spec, b)) for b in spec["backbones"] if _rate_file(spec, b).exists()}


# --- checking ----------------------------------------------------------------------------------------------------


def checked_spec(spec: Unchecked) -> Spec:
    """The spec with its defaults filled in; what is impossible is named."""
    sources, backbones = _names(spec, "sources"), _names(spec, "backbones")
    adaptations = list(dict.fromkeys(spec.get("adaptations") or [a for a in ADAPTATIONS if a != FULL]))
    for name in adaptations:
        if name not in ADAPTATIONS:
            raise UnknownName("adaptation", name, ADAPTATIONS)
    asked = dict(spec.get("finetuning") or {})
    for name in asked:
        if name not in FINETUNING:
            raise UnknownName("setting of full finetuning", name, FINETUNING)
    finetuning = {name: s.check(asked.get(name, s.default)) for name, s in FINETUNING.items()}
    mine = ("sources", "backbones", "adaptations", "finetuning")
    rest = {k: v for k, v in spec.items() if k not in mine and k not in _ON_ONE}
    base = support_sets.check({**rest, "dataset": spec.get("dataset"), "backbone": sources[0]})
    settled: Any = {
        "study": "stress",
        "dataset": spec["dataset"],
        **{k: v for k, v in base.items() if k not in _ON_ONE},
        "sources": sources,
        "backbones": backbones,
        "adaptations": adaptations,
        "finetuning": finetuning,
    }
    return settled


def _base(spec: Values) -> support_sets.Spec:
    """The settings that the hard-tasks study understands."""
    known = {k: spec[k] for k in support_sets.SETTINGS.settings if k in spec}
    return support_sets.check({**known, "dataset": spec["dataset"], "backbone": spec["sources"][0]})


def _names(spec: Unchecked, key: str) -> list[str]:
    names = spec.get(key)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(n, str) and n for n in names):
        raise BadInput(f'A stress test needs "{key}", a list of one or more backbones that have features.')
    return list(dict.fromkeys(names))
