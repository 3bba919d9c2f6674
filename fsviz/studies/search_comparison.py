"""How good is a search for hard support sets? All searches side by side, step by step, and against mere filtering.

    random tasks -> every search, hard and easy -> predictions -> accuracy and time (Basu et al. 2023, figures 2 and 6)

A part is one search at one end; seconds are measured, so they alone differ between two runs of one spec. The functions
below the run answer at once: steps of the gradient (appendices A.2 and K) and filtered random tasks (appendix Q).
Accuracies are in percent.
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
    "Random tasks to filter",
    "How many random tasks are drawn; one in fifty, those of lowest accuracy, is kept. The paper draws 10,000.",
    "int",
    2000,
    100,
    1_000_000,
    stops=(500, 1000, 2000, 5000, 10_000),
)
SEARCHES = Setting(
    "searches",
    "Searches",
    "The searches that are compared.",
    "names",
    list(SEARCH.choices),
    choices=SEARCH.choices,
)
DEFAULT_TASKS = 50
SETTINGS = Schema(
    {name: s for name, s in support_sets.SETTINGS.settings.items() if s not in (SEARCH, support_sets.OBJECTIVE)}
    | {N_TASKS.name: N_TASKS.with_(default=DEFAULT_TASKS), SEARCHES.name: SEARCHES},
    required=support_sets.SETTINGS.required,
    of="the comparison of searches",
)
_CHUNK = {"greedy": 5}  # tasks per chunk; of the others MOST at a time
MOST = 100
_SHORT = 0.2  # seconds: what takes less is timed again, and the fastest counts
_FEWEST = 10  # tasks of a preview


# --- searches side by side, as a run -----------------------------------------------------------------------------


class Spec(support_sets.Spec, total=False):
    """A checked spec: that of one search without the search, and the names of those that are compared."""

    searches: list[str]


COMPARED = Table(
    "Searches for hard and easy supports",
    Column("title", "Search"),
    Column("objective", "Support set"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("milliseconds", "Time per task", "ms", 2, kind="number"),
    Column("behind", "Behind greedy search", kind="points", interval="behind_ci95"),
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


class Row(TypedDict):
    """What the summary says of one search at one end: accuracy in percent, seconds per task, and how many points it
    stays behind greedy search on the same tasks; None where that is not known."""

    search: str
    objective: str
    accuracy: float
    ci95: float
    n_tasks: int
    seconds: Any
    behind: Any
    behind_ci95: Any


class Summary(TypedDict):
    """What came out of a run."""

    dataset: str
    backbone: str
    n_tasks: int
    rows: list[Row]


@dataclass(frozen=True)
class Cell:
    """One search with one objective; the random supports are a cell of their own."""

    search: str
    objective: str


def check(spec: RawSettings) -> Spec:
    """The spec with every setting; ways, shots and queries fit the dataset, and greedy search comes last."""
    requested = SETTINGS.requested(spec)
    names = requested.pop(SEARCHES.name, None) or SEARCHES.default
    of_search = support_sets.check({N_TASKS.name: DEFAULT_TASKS, **requested})
    return cast(Spec, {**SETTINGS.pick(of_search), "searches": sorted(names, key=lambda name: name == "greedy")})


def prepare(spec: Spec, folder: Path) -> Spec:
    """Freezes the random tasks of a spec into `folder`."""
    base = _base(spec, RANDOM)
    snapshot.freeze(
        folder, Testbed("random", support_sets.sample_tasks(base)[0], support_sets.recipe_of(base, "random"))
    )
    return spec


def cells(spec: Spec) -> list[Cell]:
    """All cells in the order they are computed: random supports, then the quick searches, greedy last."""
    return [Cell(RANDOM, RANDOM), *(Cell(s, o) for s in spec["searches"] for o in OBJECTIVES)]


def parts(spec: Spec) -> list[Part]:
    """One part per cell."""
    return [Part(_title(cell), spec["n_tasks"], _CHUNK.get(cell.search, MOST)) for cell in cells(spec)]


def _title(cell: Cell) -> str:
    if cell.search == RANDOM:
        return "random supports"
    return f"{SEARCH.choices[cell.search]}, {cell.objective} supports"


def n_bytes(spec: Spec) -> float:
    """About how large the run's results are: two numbers per task and cell, and a small file per chunk."""
    return float(16 * len(cells(spec)) * spec["n_tasks"] + 1500 * STUDY.n_chunks(spec))


def run_chunk(spec: Spec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """Accuracies of one range of tasks of one cell, and the seconds that the search took for each."""
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


def collect(spec: Spec, chunks: Sequence[Arrays]) -> Summary:
    """Per search and end: accuracy, seconds per task, and how far the search stays behind greedy on the same tasks."""
    every, finished = cells(spec), joined(chunks)
    accuracy = np.full((len(every), spec["n_tasks"]), np.nan)
    for part, arrays in finished.items():
        accuracy[part, arrays["positions"]] = 100 * arrays["accuracy"]
    rows: list[Row] = []
    for which, arrays in finished.items():
        cell, done = every[which], np.isfinite(accuracy[which])
        mean, half = mean_and_ci95(accuracy[which])
        row: Row = {
            "search": cell.search,
            "objective": cell.objective,
            "accuracy": float(mean),
            "ci95": float(half),
            "n_tasks": int(done.sum()),
            "seconds": None if cell.search == RANDOM else float(arrays["seconds"].mean()),
            "behind": None,
            "behind_ci95": None,
        }
        greedy = next((i for i, c in enumerate(every) if (c.search, c.objective) == ("greedy", cell.objective)), which)
        if greedy != which and (done & np.isfinite(accuracy[greedy])).sum() > 1:
            sign = OBJECTIVES[cell.objective].sign
            behind, behind_half = mean_and_ci95(sign * (accuracy[which] - accuracy[greedy]))
            row["behind"], row["behind_ci95"] = float(behind), float(behind_half)
        rows.append(row)
    return {"dataset": spec["dataset"], "backbone": spec["backbone"], "n_tasks": spec["n_tasks"], "rows": rows}


def headline(summary: Summary) -> list[HeadlineNumber]:
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


def work(spec: Spec) -> Work:
    return Work(spec["n_tasks"], "tasks", spec["n_tasks"] * _seconds_per_task(spec))


def shorten(spec: Spec, n: int) -> Spec | None:
    """Fewer tasks, and no greedy search if it leaves time for too few."""
    quick: Spec = {**spec, "searches": [name for name in spec["searches"] if name != "greedy"]}
    if n < min(_FEWEST, spec["n_tasks"]) and quick["searches"]:
        n, spec = int(max(n, 1) * _seconds_per_task(spec) / _seconds_per_task(quick)), quick
        return {**spec, "n_tasks": min(spec["n_tasks"], max(n, _FEWEST))}
    return {**spec, "n_tasks": max(n, _FEWEST)} if spec["n_tasks"] > max(n, _FEWEST) else None


def _seconds_per_task(spec: Spec) -> float:
    """For all searches, at both ends; what is short is timed several times."""
    dataset = datasets.load(spec["dataset"])
    classified = support_sets.seconds_to_classify(spec, dataset)
    total = classified
    for name in spec["searches"]:
        once = support_sets.seconds_to_search({**spec, "search": name}, dataset)
        timed = min(3 * once, once + _SHORT / min(spec["n_tasks"], _CHUNK.get(name, MOST)))
        total += len(OBJECTIVES) * (timed + classified)
    return total


def _base(spec: Settings, search: str) -> support_sets.Spec:
    """The spec of the study `support_sets` for one of the searches."""
    own = {"search": SEARCH.default if search == RANDOM else search, "objective": support_sets.OBJECTIVE.default}
    return cast(support_sets.Spec, {**support_sets.SETTINGS.pick(spec), **own})


STUDY = Study(
    name="search_comparison",
    title="searches for hard tasks",
    question="Does a slower search find harder sets?",
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
    version=2,
)


def compared_in_words(rows: Sequence[Row]) -> str:
    """What the comparison shows: how near to greedy search FastDiffSel comes, and how much sooner."""
    rows_of = {(row["search"], row["objective"]): row for row in rows}
    random = rows_of[RANDOM, RANDOM]["accuracy"]
    sentences = []
    for name, objective in OBJECTIVES.items():
        mine = rows_of.get(("fastdiffsel", name))
        if mine is None:
            continue
        if (mine["accuracy"] > random) == (objective.sign > 0):
            sentences.append(f"FastDiffSel's {name} sets are no {objective.comparative} than random ones here.")
        if mine["behind"] is None:
            continue
        behind, half = mine["behind"], mine["behind_ci95"]
        if abs(behind) <= half:
            sentences.append(
                f"FastDiffSel's {name} sets cannot be told from greedy's ({behind:+.1f} ± {half:.1f} points)."
            )
        else:
            more = f"less {name}" if behind > 0 else objective.comparative
            sentences.append(
                f"FastDiffSel's {name} sets are {abs(behind):.1f} ± {half:.1f} points {more} than greedy's."
            )
    times = {
        name: np.mean([row["seconds"] for (search, _), row in rows_of.items() if search == name])
        for name in dict.fromkeys(search for search, _ in rows_of if search != RANDOM)
    }
    if "greedy" in times and times.get("fastdiffsel"):
        ratio = times["greedy"] / times["fastdiffsel"]
        sentences.append(f"Greedy search takes {ratio:,.{0 if ratio >= 10 else 1}f} times as long.")
    return " ".join(sentences)


# --- the number of gradient steps -------------------------------------------------------------------


def by_number_of_steps(spec: RawSettings, most: int = 6, progress: Progress | None = None) -> pd.DataFrame:
    """Hard sets after one gradient step and more: what the steps raise, and what comes of it (appendix K).

    Columns n_steps, and means over tasks, each with its ci95:
    weighted   query loss (nats) of the weighted prototypes, means of the whole pool by the selection weights: what the
               steps climb. Row 0, before any step, has nothing else.
    selected   the same loss under the prototypes of the images that are then selected
    accuracy   of the selected sets; change is its difference to that of one step, task by task
    """
    from fsviz.difficulty.fastdiffsel import support_loss, trace_steps

    spec = support_sets.check({**spec, "search": "fastdiffsel"})
    tasks, table = support_sets.sample_tasks(spec)
    table = support_sets.searched_features(spec, table)
    options = replace(support_sets.search_options(spec, spec["seed"]), n_steps=most)
    report_progress = progress or (lambda *now: None)
    report_progress(0, most, "following the weights")
    sets, weighted = trace_steps(table, tasks, "hard", options)
    accuracies = [100 * evaluation.task_accuracy(support_sets.classify(spec, table, part)) for part in sets]
    rows = [{"n_steps": 0, **_mean("weighted", weighted[0])}]
    for n, (part, accuracy) in enumerate(zip(sets, accuracies, strict=True), start=1):
        selected = support_loss(table, part, options)
        row = _mean("weighted", weighted[n]) | _mean("selected", selected) | _mean("accuracy", accuracy)
        rows.append({"n_steps": n, **row, **_mean("change", accuracy - accuracies[0])})
        report_progress(n, most, "gradient steps")
    return pd.DataFrame(rows)


def _mean(name: str, values: np.ndarray) -> dict[str, float]:
    mean, half = mean_and_ci95(values)
    return {name: float(mean), f"{name}_ci95": float(half)}


def compared_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of COMPARED: searches by their titles, milliseconds."""
    titles = {RANDOM: "none", **SEARCH.choices}
    return [
        {
            **row,
            "title": titles[row["search"]],
            "milliseconds": None if row["seconds"] is None else 1000 * row["seconds"],
        }
        for row in rows
    ]


def steps_in_words(table: pd.DataFrame) -> str:
    """What more steps do to the hard sets and to both losses, as this table has it."""
    after = table[table["n_steps"] > 0].set_index("n_steps")
    more = after.loc[2:]
    hardest_at = int(after["accuracy"].idxmin())
    clear = holm(_p_of(more["change"], more["change_ci95"])) < 0.05  # several numbers of steps are tried
    harder, easier = more.index[clear & (more["change"] < 0)], more.index[clear & (more["change"] > 0)]
    if len(harder):
        best = int(more.loc[harder, "change"].idxmin())
        at = more.loc[best]
        text = f"Here {best} steps find harder sets than one ({at['change']:+.1f} ± {at['change_ci95']:.1f} points)."
    elif len(easier) == len(more):
        at = more.iloc[0]
        text = (
            f"Here, as in the paper, one step finds the hardest sets: with two, accuracy is {at['change']:+.1f} ± "
            f"{at['change_ci95']:.1f} points."
        )
    else:
        text = "Here no number of steps finds clearly harder sets than one."
    weighted = table.set_index("n_steps")["weighted"]
    top, chosen = int(weighted.idxmax()), int(after["selected"].idxmax())
    text += f" The loss of the weighted prototypes is highest {_after(top)}, that of the selected sets {_after(chosen)}"
    return text + f"; accuracy is lowest {_after(hardest_at)}."


def _p_of(mean: pd.Series, ci95: pd.Series) -> np.ndarray:
    """Two-sided p values of normal means against zero, from the half-widths of their intervals."""
    from scipy import stats

    with np.errstate(invalid="ignore", divide="ignore"):
        return 2 * stats.norm.sf(np.abs(1.96 * mean.to_numpy() / ci95.to_numpy()))


def _after(n_steps: int) -> str:
    return "before any step" if n_steps == 0 else f"after {n_steps} step{'s' if n_steps > 1 else ''}"


# --- filtered random tasks ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filtered:
    """Random tasks, the hardest of them, and tasks with searched supports.

    tasks    one row per task: kind ("random", "filtered" or "searched"), accuracy, n_way, coarsity where it is known
    curve    accuracy, draws: after how many random tasks, on average, one is as hard
    as_hard  how rare a random task is that is as hard as the mean of the searched ones
    sets     the tasks themselves by kind, in the order of their rows
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
        """What else may make tasks hard: their number of classes where it varies, else how close these are; or ""."""
        names = ("n_way", "coarsity") if self.tasks["n_way"].nunique() > 1 else ("coarsity",)
        return next((name for name in names if name in self.tasks and self.tasks[name].notna().any()), "")

    @property
    def means(self) -> pd.DataFrame:
        """Per kind: n_tasks, and accuracy, n_way and coarsity (where known) with their ci95."""
        rows = []
        for kind, part in self.tasks.groupby("kind", sort=False):
            means = {k: v for name in part.columns if name != "kind" for k, v in _mean(name, part[name]).items()}
            rows.append({"kind": kind, "n_tasks": len(part), **means})
        return pd.DataFrame(rows)


def filtered_tasks(spec: RawSettings, progress: Progress | None = None) -> Filtered:
    """The hardest of many random tasks beside tasks with searched supports.

    The spec is one of the study `support_sets` with "n_random", the number of random tasks to draw (N_RANDOM); the
    first n_tasks of them get hard supports by the spec's search.
    """
    n_random = int(N_RANDOM.check(spec.get(N_RANDOM.name, N_RANDOM.default)))
    spec = support_sets.check({k: v for k, v in spec.items() if k != N_RANDOM.name})
    n_searched = min(spec["n_tasks"], n_random)
    drawn, table = support_sets.sample_tasks({**spec, "n_tasks": n_random})
    parts = []
    for start in range(0, n_random, MOST):
        part = drawn.take(slice(start, start + MOST))
        parts.append(100 * evaluation.task_accuracy(support_sets.classify(spec, table, part)))
        if progress is not None:
            progress(min(start + MOST, n_random), n_random + n_searched, "random tasks classified")
    accuracy = np.concatenate(parts)
    first = drawn.take(slice(0, n_searched))

    def say(done: int, total: int, message: str) -> object:
        return progress(n_random + done, n_random + total, message) if progress is not None else None

    with_search = support_sets.search(spec, first, table, "hard", spec["seed"], say)
    searched = 100 * evaluation.task_accuracy(support_sets.classify(spec, table, with_search))
    kept = hardest(accuracy, max(1, n_random // PAPER_SHARE))
    tasks = pd.concat(
        [
            _described("random", drawn, accuracy),
            _described("filtered", drawn.take(kept), accuracy[kept]),
            _described("searched", first, searched),
        ],
        ignore_index=True,
    )
    curve = pd.DataFrame(dict(zip(("accuracy", "draws"), draws_needed(accuracy), strict=True)))
    sets = {"random": drawn, "filtered": drawn.take(kept), "searched": with_search}
    return Filtered(tasks, curve, rarity(accuracy, float(searched.mean())), sets)


def _described(kind: str, tasks: Tasks, accuracy: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame({"kind": kind, "accuracy": accuracy, "n_way": (tasks.class_ids != PAD).sum(axis=1)})
    return table.assign(coarsity=tasks.measures["coarsity"]) if "coarsity" in tasks.measures else table


def filtered_in_words(result: Filtered) -> str:
    """How many random tasks it takes, and what filtering picks that the search does not."""
    rare, by = result.as_hard, result.means.set_index("kind")
    half = by.loc["searched", "accuracy_ci95"]
    within = "" if np.isnan(half) else f" ± {half:.1f}"
    text = f"Tasks with searched supports have a mean accuracy of {rare.at_most:.1f}{within}%. "
    if rare.n_found:
        text += (
            f"One random task in {rare.draws:,.0f} is as hard ({rare.n_found:,} of {rare.n_drawn:,}; 95% interval: one "
            f"in {rare.low:,.0f} to {rare.high:,.0f})."
        )
    else:
        text += f"None of {rare.n_drawn:,} random tasks is as hard (95% interval: at most one in {rare.low:,.0f})."
    if not result.second:
        return text
    name = result.second
    filtered, searched = (f"{by.loc[k, name]:.1f} ± {by.loc[k, f'{name}_ci95']:.1f}" for k in ("filtered", "searched"))
    text += {
        "n_way": f" Filtered tasks have {filtered} classes, searched ones {searched}",
        "coarsity": f" Filtered tasks have a coarsity of {filtered}, searched ones of {searched}",
    }[name]
    gap = by.loc["filtered", name] - by.loc["searched", name]
    apart = abs(gap) > math.hypot(by.loc["filtered", f"{name}_ci95"], by.loc["searched", f"{name}_ci95"])
    if apart and (gap > 0) == (name == "n_way"):
        picked = {"n_way": "tasks of many classes", "coarsity": "classes that are close in meaning"}[name]
        text += f": filtering picks {picked}, the search has no need of them"
    return text + "."
