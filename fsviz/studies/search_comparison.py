"""Study search_comparison: searches for hard support sets compared with each other and with random tasks.

    random tasks -> every search, hard and easy -> predictions -> accuracy and time (Basu et al. 2023, figures 2 and 6)

A part is one search with one objective. Seconds are measured: they alone differ between two runs of a spec. The
functions below the run need no run: gradient steps (appendices A.2 and K) and random tasks that are as hard (appendix
Q). Accuracies are in percent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
import pandas as pd

from fsviz import datasets, evaluation
from fsviz.difficulty.objectives import OBJECTIVES, SUPPORT_SETS
from fsviz.difficulty.rarity import PAPER_SHARE, Rarity, draws_needed, hardest, rarity
from fsviz.numerics import holm, mean_and_ci95
from fsviz.records import PAD, HeadlineNumber, Progress, Tasks, Testbed
from fsviz.settings import N_TASKS, RawSettings, Schema, Setting, Settings
from fsviz.studies import chunk_data, support_sets
from fsviz.studies.study import Arrays, Part, Study, Work, joined
from fsviz.studies.support_sets import SEARCH
from fsviz.tables import Column, Table
from fsviz.tasks import snapshot

RANDOM = SUPPORT_SETS["random"].name
N_RANDOM = Setting(
    "n_random",
    "Random tasks",
    "Number of random tasks; the hardest 2% are compared with searched tasks. Paper: 10,000.",
    "int",
    2000,
    100,
    1_000_000,
    stops=(500, 1000, 2000, 5000, 10_000),
)
SEARCHES = Setting(
    "searches",
    "Searches",
    "The searches to compare.",
    "names",
    list(SEARCH.choices),
    choices=SEARCH.choices,
)
DEFAULT_TASKS = 200
SETTINGS = Schema(
    {name: s for name, s in support_sets.SETTINGS.settings.items() if s not in (SEARCH, support_sets.OBJECTIVE)}
    | {N_TASKS.name: N_TASKS.with_(default=DEFAULT_TASKS), SEARCHES.name: SEARCHES},
    required=support_sets.SETTINGS.required,
    of="the comparison of searches",
)
_CHUNK = {"greedy": 5}  # tasks per chunk; for other searches MAX_AT_ONCE
MAX_AT_ONCE = 100
_SHORT = 0.2  # seconds: a faster search is timed again, and the shortest time counts
_TELLING = 100  # tasks of a preview: fewer rarely tell searches apart, so greedy search waits for the run
_MIN_PREVIEW = 10  # tasks of a preview, however slow they are
_MOST_TASKS = 100_000  # beyond this, a difference is too small to look for
_POWER = 2.8 / 1.96  # 80% power: the half-width of a 95% CI must be this factor smaller than the difference
REFERENCE = "fastdiffsel"  # the paper's search, which all others are compared with


# --- the comparison, as a run -----------------------------------------------------------------------------------


class SearchSpec(support_sets.SupportSpec, total=False):
    """A checked spec: the settings of a search, and the names of the searches to compare."""

    searches: list[str]


COMPARED = Table(
    "Searches for hard and easy supports",
    Column("title", "Search"),
    Column("objective", "Support set"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("milliseconds", "Time per task", "ms", 2, kind="number"),
    Column("gain", "Beyond FastDiffSel", kind="points", interval="gain_ci95"),
)
MEANS = Table(
    "Random, filtered and searched tasks",
    Column("kind", "Tasks"),
    Column("n_tasks", "Number of tasks", kind="count"),
    Column("accuracy", "Accuracy", kind="percent", interval="accuracy_ci95"),
    Column("n_way", "Classes per task", digits=1, kind="number", interval="n_way_ci95"),
    Column("coarsity", "Coarsity", digits=1, kind="number", interval="coarsity_ci95"),
)
STEPS = Table(
    "More gradient steps",
    Column("n_steps", "Steps", kind="count"),
    Column("weighted", "Weighted loss", "nats", 3, kind="number", interval="weighted_ci95"),
    Column("selected", "Loss of the sets", "nats", 3, kind="number", interval="selected_ci95"),
    Column("accuracy", "Accuracy", kind="percent", interval="accuracy_ci95"),
    Column("change", "Change from one step", kind="points", interval="change_ci95"),
)


class SearchRow(TypedDict):
    """One search with one objective: accuracy in percent, seconds per task, points beyond FastDiffSel on its tasks.

    gain  how much harder, or easier, the sets are than those of FastDiffSel; None if that is not in the comparison
    """

    search: str
    objective: str
    accuracy: float
    ci95: float
    n_tasks: int
    seconds: Any
    gain: Any
    gain_ci95: Any


class SearchSummary(TypedDict):
    """The rows of a comparison, and the tasks they are of."""

    dataset: str
    backbone: str
    n_tasks: int
    rows: list[SearchRow]


@dataclass(frozen=True)
class SearchCell:
    """One search with one objective; the random supports are a cell of their own."""

    search: str
    objective: str


def check(spec: RawSettings) -> SearchSpec:
    """The spec with every setting; ways, shots and queries fit the dataset, and greedy search comes last."""
    requested = SETTINGS.requested(spec)
    names = requested.pop(SEARCHES.name, None) or SEARCHES.default
    of_search = support_sets.check({N_TASKS.name: DEFAULT_TASKS, **requested})
    return cast(SearchSpec, {**SETTINGS.pick(of_search), "searches": sorted(names, key=lambda name: name == "greedy")})


def prepare(spec: SearchSpec, folder: Path) -> SearchSpec:
    """Saves the random tasks of a spec in `folder`."""
    base = _base(spec, RANDOM)
    snapshot.freeze(
        folder, Testbed("random", support_sets.sample_tasks(base)[0], support_sets.recipe_of(base, "random"))
    )
    return spec


def cells(spec: SearchSpec) -> list[SearchCell]:
    """All cells in the order of computing: random supports, then the quick searches, greedy last."""
    return [SearchCell(RANDOM, RANDOM), *(SearchCell(s, o) for s in spec["searches"] for o in OBJECTIVES)]


def parts(spec: SearchSpec) -> list[Part]:
    """One part per cell."""
    return [Part(_title(cell), spec["n_tasks"], _CHUNK.get(cell.search, MAX_AT_ONCE)) for cell in cells(spec)]


def _title(cell: SearchCell) -> str:
    if cell.search == RANDOM:
        return "random supports"
    return f"{SEARCH.choices[cell.search]}, {cell.objective} supports"


def n_bytes(spec: SearchSpec) -> float:
    """About how large the results are: two numbers per task and cell, and a small file per chunk."""
    return float(16 * len(cells(spec)) * spec["n_tasks"] + 1500 * STUDY.n_chunks(spec))


def run_chunk(spec: SearchSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Accuracies of one range of tasks of one cell, and the seconds of the search per task."""
    cell, table = cells(spec)[part], chunk_data.features_of(spec["dataset"], spec["backbone"])
    tasks, seconds, base = snapshot.tasks(spec["folder"], start=start, stop=stop), 0.0, _base(spec, cell.search)
    if cell.search != RANDOM:
        support_sets.search(base, tasks.take(slice(0, 1)), table, cell.objective, spec["seed"])  # loads what is needed
        times: list[float] = []
        while len(times) < 3 and sum(times) < _SHORT:
            began = time.perf_counter()
            searched = support_sets.search(base, tasks, table, cell.objective, spec["seed"])
            times.append(time.perf_counter() - began)
        tasks, seconds = searched, min(times)
    accuracy = evaluation.task_accuracy(support_sets.classify(base, table, tasks))
    return {"seconds": np.full(len(tasks), seconds / len(tasks)), "accuracy": accuracy}


def collect(spec: SearchSpec, chunks: Sequence[Arrays]) -> SearchSummary:
    """Per search and objective: accuracy, seconds per task, and points beyond FastDiffSel on the same tasks."""
    all_cells, finished = cells(spec), joined(chunks)
    accuracy = np.full((len(all_cells), spec["n_tasks"]), np.nan)
    for part, arrays in finished.items():
        accuracy[part, arrays["positions"]] = 100 * arrays["accuracy"]
    rows: list[SearchRow] = []
    for which, arrays in finished.items():
        cell, done = all_cells[which], np.isfinite(accuracy[which])
        mean, half_width = mean_and_ci95(accuracy[which])
        row: SearchRow = {
            "search": cell.search,
            "objective": cell.objective,
            "accuracy": float(mean),
            "ci95": float(half_width),
            "n_tasks": int(done.sum()),
            "seconds": None if cell.search == RANDOM else float(arrays["seconds"].mean()),
            "gain": None,
            "gain_ci95": None,
        }
        reference = next(
            (i for i, c in enumerate(all_cells) if (c.search, c.objective) == (REFERENCE, cell.objective)), which
        )
        if reference != which and (done & np.isfinite(accuracy[reference])).sum() > 1:
            sign = OBJECTIVES[cell.objective].sign
            gain, gain_half_width = mean_and_ci95(sign * (accuracy[reference] - accuracy[which]))
            row["gain"], row["gain_ci95"] = float(gain), float(gain_half_width)
        rows.append(row)
    return {"dataset": spec["dataset"], "backbone": spec["backbone"], "n_tasks": spec["n_tasks"], "rows": rows}


def headline(summary: SearchSummary) -> list[HeadlineNumber]:
    """The accuracy of every search with every objective, and its seconds per task."""
    numbers = []
    for row in summary["rows"]:
        title = "Random supports" if row["search"] == RANDOM else SEARCH.choices[row["search"]]
        of = "" if row["search"] == RANDOM else f", {row['objective']} supports"
        name = f"{row['search']}_{row['objective']}"
        numbers.append(HeadlineNumber.around(f"accuracy_{name}", f"{title}{of}", row["accuracy"], row["ci95"]))
        if row["seconds"] is not None:
            numbers.append(HeadlineNumber(f"seconds_{name}", f"{title}{of}: time per task", row["seconds"], unit="s"))
    return numbers


def work(spec: SearchSpec) -> Work:
    return Work(spec["n_tasks"], "tasks", spec["n_tasks"] * _seconds_per_task(spec))


def shorten(spec: SearchSpec, n: int) -> SearchSpec | None:
    """Fewer tasks, without greedy search if that would leave too few to tell searches apart."""
    quick: SearchSpec = {**spec, "searches": [name for name in spec["searches"] if name != "greedy"]}
    if n < min(_TELLING, spec["n_tasks"]) and quick["searches"]:
        n, spec = int(max(n, 1) * _seconds_per_task(spec) / _seconds_per_task(quick)), quick
        return {**spec, "n_tasks": min(spec["n_tasks"], max(n, _MIN_PREVIEW))}
    return {**spec, "n_tasks": max(n, _MIN_PREVIEW)} if spec["n_tasks"] > max(n, _MIN_PREVIEW) else None


def _seconds_per_task(spec: SearchSpec) -> float:
    """For all searches and objectives; fast searches are timed several times."""
    dataset = datasets.load(spec["dataset"])
    classified = support_sets.seconds_to_classify(spec, dataset)
    total = classified
    for name in spec["searches"]:
        once = support_sets.seconds_to_search({**spec, "search": name}, dataset)
        timed = min(3 * once, once + _SHORT / min(spec["n_tasks"], _CHUNK.get(name, MAX_AT_ONCE)))
        total += len(OBJECTIVES) * (timed + classified)
    return total


def _base(spec: Settings, search: str) -> support_sets.SupportSpec:
    """The spec of the study `support_sets` for one of the searches."""
    own = {"search": SEARCH.default if search == RANDOM else search, "objective": support_sets.OBJECTIVE.default}
    return cast(support_sets.SupportSpec, {**support_sets.SETTINGS.pick(spec), **own})


STUDY = Study(
    name="search_comparison",
    title="search comparison",
    question="Do slower searches find harder support sets?",
    settings=SETTINGS,
    check=check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    headline=headline,
    work=work,
    shorten=shorten,
    n_bytes=n_bytes,
    version=3,
)


def describe_comparison(rows: Sequence[SearchRow]) -> str:
    """Every search compared with FastDiffSel, in accuracy and time, as sentences."""
    by_cell = {(row["search"], row["objective"]): row for row in rows}
    random = by_cell[RANDOM, RANDOM]["accuracy"]
    sentences = []
    for name, objective in OBJECTIVES.items():
        cells_of = [row for (_, of), row in by_cell.items() if of == name]
        gains = [_describe_gain(row) for row in cells_of if row["gain"] is not None]
        if gains:
            sentences.append(f"Points {objective.comparative} than FastDiffSel: {', '.join(gains)}.")
        for row in cells_of:
            if (row["accuracy"] > random) == (objective.sign > 0):
                title = SEARCH.choices[row["search"]]
                sentences.append(f"{title}: {name} sets are no {objective.comparative} than random ones.")
    times = {
        name: np.mean([row["seconds"] for (search, _), row in by_cell.items() if search == name])
        for name in dict.fromkeys(search for search, _ in by_cell if search != RANDOM)
    }
    if "greedy" in times and times.get(REFERENCE):
        ratio = times["greedy"] / times[REFERENCE]
        sentences.append(f"Greedy takes {ratio:,.{0 if ratio >= 10 else 1}f} times as long.")
    return " ".join(sentences)


def _describe_gain(row: SearchRow) -> str:
    """A search and its points beyond FastDiffSel; if these are not significant, the tasks that would tell."""
    gain, half_width = row["gain"], row["gain_ci95"]
    text = f"{support_sets.search_title(row['search']).removeprefix('FastDiffSel, ')} {gain:+.1f} ± {half_width:.1f}"
    if abs(gain) > half_width:
        return text
    needed = tasks_needed(gain, half_width, row["n_tasks"])
    return f"{text} (not significant{f'; about {needed:,} tasks would tell' if needed else ''})"


def tasks_needed(difference: float, half_width: float, n_tasks: int) -> int | None:
    """Tasks that show such a difference in four of five comparisons, two digits; None beyond `_MOST_TASKS`.

    half_width  of the 95% CI of the difference over n_tasks tasks
    """
    if abs(difference) * math.sqrt(_MOST_TASKS) <= _POWER * half_width * math.sqrt(n_tasks):
        return None
    needed = n_tasks * (_POWER * half_width / difference) ** 2
    digits = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return int(math.ceil(needed / digits) * digits)


# --- the number of gradient steps -------------------------------------------------------------------


def by_number_of_steps(spec: RawSettings, max_steps: int = 6, progress: Progress | None = None) -> pd.DataFrame:
    """Losses and accuracy of hard sets after one gradient step and more (appendix K).

    Columns n_steps, and means over tasks, each with its ci95:
    weighted   query loss (nats) under the weighted prototypes, which are means of the pool by the selection weights:
               the loss that the steps raise. Row 0, before any step, has nothing else.
    selected   the same loss under the prototypes of the selected images
    accuracy   of the selected sets; change is its difference from one step, paired by task
    """
    from fsviz.difficulty.fastdiffsel import support_loss, trace_steps

    spec = support_sets.check({**spec, "search": "fastdiffsel"})
    tasks, table = support_sets.sample_tasks(spec)
    table = support_sets.searched_features(spec, table)
    options = replace(support_sets.search_options(spec, spec["seed"]), n_steps=max_steps)
    report_progress = progress or (lambda *now: None)
    report_progress(0, max_steps, "following the weights")
    sets, weighted = trace_steps(table, tasks, "hard", options)
    accuracies = [100 * evaluation.task_accuracy(support_sets.classify(spec, table, tasks)) for tasks in sets]
    rows = [{"n_steps": 0, **_mean("weighted", weighted[0])}]
    for n, (selected_tasks, accuracy) in enumerate(zip(sets, accuracies, strict=True), start=1):
        selected = support_loss(table, selected_tasks, options)
        row = _mean("weighted", weighted[n]) | _mean("selected", selected) | _mean("accuracy", accuracy)
        rows.append({"n_steps": n, **row, **_mean("change", accuracy - accuracies[0])})
        report_progress(n, max_steps, "gradient steps")
    return pd.DataFrame(rows)


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    mean, half_width = mean_and_ci95(values)
    return {name: float(mean), f"{name}_ci95": float(half_width)}


def compared_rows(rows: Sequence[SearchRow]) -> list[dict[str, Any]]:
    """The rows of COMPARED, with titles of searches and milliseconds."""
    titles = {RANDOM: "none", **SEARCH.choices}
    return [
        {
            **row,
            "title": titles[row["search"]],
            "milliseconds": None if row["seconds"] is None else 1000 * row["seconds"],
        }
        for row in rows
    ]


def describe_steps(table: pd.DataFrame) -> str:
    """The effect of more steps on accuracy and on both losses, as sentences."""
    after = table[table["n_steps"] > 0].set_index("n_steps")
    more = after.loc[2:]
    hardest_at = int(after["accuracy"].idxmin())
    significant = holm(_p_of(more["change"], more["change_ci95"])) < 0.05  # over the numbers of steps
    harder, easier = more.index[significant & (more["change"] < 0)], more.index[significant & (more["change"] > 0)]
    if len(harder):
        best = int(more.loc[harder, "change"].idxmin())
        at = more.loc[best]
        text = f"{best} steps find harder sets than one ({at['change']:+.1f} ± {at['change_ci95']:.1f} points)."
    elif len(easier) == len(more):
        at = more.iloc[0]
        text = (
            f"One step finds harder sets than more, as in the paper: with two, accuracy changes by {at['change']:+.1f} "
            f"± {at['change_ci95']:.1f} points."
        )
    else:
        text = "No number of steps finds significantly harder sets than one."
    weighted = table.set_index("n_steps")["weighted"]
    top, selected = int(weighted.idxmax()), int(after["selected"].idxmax())
    text += f" Loss of the weighted prototypes: highest {_after(top)}; of the selected sets: {_after(selected)}"
    return text + f"; accuracy is lowest {_after(hardest_at)}."


def _p_of(mean: pd.Series, ci95: pd.Series) -> np.ndarray:
    """Two-sided p values of normal means against zero, from the half-widths of their intervals."""
    from scipy import stats

    with np.errstate(invalid="ignore", divide="ignore"):
        return 2 * stats.norm.sf(np.abs(1.96 * mean.to_numpy() / ci95.to_numpy()))


def _after(n_steps: int) -> str:
    return "before any step" if n_steps == 0 else f"after {n_steps} step{'s' if n_steps > 1 else ''}"


# --- random tasks as hard ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RarityResult:
    """Random tasks, the hardest of them, and tasks with searched supports.

    tasks    one row per task: kind ("random", "filtered" or "searched"), accuracy, n_way, coarsity if available
    curve    accuracy, draws: the average number of random tasks until one is as hard
    as_hard  how rare random tasks are that are as hard as the mean of the searched ones
    sets     the tasks by kind, in the order of their rows
    """

    tasks: pd.DataFrame
    curve: pd.DataFrame
    as_hard: Rarity
    sets: Mapping[str, Tasks] = field(default_factory=dict)

    def accuracy(self, kind: str) -> np.ndarray:
        """(T,) accuracy of the tasks of a kind, in percent."""
        return self.tasks.loc[self.tasks["kind"] == kind, "accuracy"].to_numpy()

    @property
    def second(self) -> str:
        """Another property of hard tasks: n_way if it varies, else coarsity if there is one, else ""."""
        names = ("n_way", "coarsity") if self.tasks["n_way"].nunique() > 1 else ("coarsity",)
        return next((name for name in names if name in self.tasks and self.tasks[name].notna().any()), "")

    @property
    def means(self) -> pd.DataFrame:
        """Per kind: n_tasks, and accuracy, n_way and coarsity (if available) with their ci95."""
        rows = []
        for kind, group in self.tasks.groupby("kind", sort=False):
            means = {k: v for name in group.columns if name != "kind" for k, v in _mean(name, group[name]).items()}
            rows.append({"kind": kind, "n_tasks": len(group), **means})
        return pd.DataFrame(rows)


def filtered_tasks(spec: RawSettings, progress: Progress | None = None) -> RarityResult:
    """The hardest of many random tasks, compared with tasks with searched supports.

    The spec is one of the study `support_sets` with "n_random", the number of random tasks (N_RANDOM); the
    first n_tasks of them get hard supports by the spec's search.
    """
    n_random = int(N_RANDOM.check(spec.get(N_RANDOM.name, N_RANDOM.default)))
    spec = support_sets.check({k: v for k, v in spec.items() if k != N_RANDOM.name})
    n_searched = min(spec["n_tasks"], n_random)
    random, table = support_sets.sample_tasks({**spec, "n_tasks": n_random})
    accuracies = []
    for start in range(0, n_random, MAX_AT_ONCE):
        batch = random.take(slice(start, start + MAX_AT_ONCE))
        accuracies.append(100 * evaluation.task_accuracy(support_sets.classify(spec, table, batch)))
        if progress is not None:
            progress(min(start + MAX_AT_ONCE, n_random), n_random + n_searched, "random tasks classified")
    accuracy = np.concatenate(accuracies)
    first = random.take(slice(0, n_searched))

    def report(done: int, total: int, message: str) -> object:
        return progress(n_random + done, n_random + total, message) if progress is not None else None

    with_search = support_sets.search(spec, first, table, "hard", spec["seed"], report)
    searched = 100 * evaluation.task_accuracy(support_sets.classify(spec, table, with_search))
    filtered = hardest(accuracy, max(1, n_random // PAPER_SHARE))
    tasks = pd.concat(
        [
            _task_rows("random", random, accuracy),
            _task_rows("filtered", random.take(filtered), accuracy[filtered]),
            _task_rows("searched", first, searched),
        ],
        ignore_index=True,
    )
    curve = pd.DataFrame(dict(zip(("accuracy", "draws"), draws_needed(accuracy), strict=True)))
    sets = {"random": random, "filtered": random.take(filtered), "searched": with_search}
    return RarityResult(tasks, curve, rarity(accuracy, float(searched.mean())), sets)


def _task_rows(kind: str, tasks: Tasks, accuracy: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({"kind": kind, "accuracy": accuracy, "n_way": (tasks.class_ids != PAD).sum(axis=1)})
    return table.assign(coarsity=tasks.measures["coarsity"]) if "coarsity" in tasks.measures else table


def describe_rarity(result: RarityResult) -> str:
    """The rarity of random tasks as hard as searched ones, and the difference of the two, as sentences."""
    rare, by = result.as_hard, result.means.set_index("kind")
    half_width = by.loc["searched", "accuracy_ci95"]
    interval = "" if np.isnan(half_width) else f" ± {half_width:.1f}"
    text = f"Searched supports give {rare.at_most:.1f}{interval}% accuracy. "
    if rare.n_found:
        text += (
            f"1 in {rare.draws:,.0f} random tasks is as hard ({rare.n_found:,} of {rare.n_drawn:,}; 95% CI 1 in "
            f"{rare.low:,.0f} to {rare.high:,.0f})."
        )
    else:
        text += f"None of {rare.n_drawn:,} random tasks is as hard (95% CI at most 1 in {rare.low:,.0f})."
    if not result.second:
        return text
    name = result.second
    filtered, searched = (f"{by.loc[k, name]:.1f} ± {by.loc[k, f'{name}_ci95']:.1f}" for k in ("filtered", "searched"))
    text += {
        "n_way": f" The hardest random tasks have {filtered} classes, searched ones {searched}",
        "coarsity": f" The hardest random tasks have a coarsity of {filtered}, searched ones of {searched}",
    }[name]
    gap = by.loc["filtered", name] - by.loc["searched", name]
    apart = abs(gap) > math.hypot(by.loc["filtered", f"{name}_ci95"], by.loc["searched", f"{name}_ci95"])
    if apart and (gap > 0) == (name == "n_way"):
        trait = {"n_way": "have many classes", "coarsity": "have semantically close classes"}[name]
        text += f": random tasks are hard if they {trait}, searched ones without that"
    return text + "."
