"""What came out, and is the difference real? Any set of evaluations side by side.

A line is one method on one backbone of one run, with its numbers per task. Lines of the same tasks (same digest)
form a group: only inside a group are numbers compared, task by task, over the tasks that all of them have finished.
Intervals and p are over tasks, images or classes: unless one is chosen, over the widest that is known (`widest`), so
that pages, commands and reports give one answer. Accuracies handed out are percentages.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.errors import BadInput, FsvizError
from fsviz.evaluation.intervals import CI_UNITS
from fsviz.features.backbones import title_of
from fsviz.numerics import holm
from fsviz.records import PAD, Dataset, Predictions, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.settings import SEED
from fsviz.settings import words as flags
from fsviz.studies import evaluate
from fsviz.tasks import draw, snapshot
from fsviz.taxonomy import DAG, DISTANCE
from fsviz.user.code import HERE

if TYPE_CHECKING:
    from fsviz.evaluation import Estimate

__all__ = ["CI_UNITS"]

QUARTERS = "coarsity"  # the measure whose quarters tables show, as the paper's do
QUARTILES = ("Q1", "Q2", "Q3", "Q4")
CI95 = {"tasks": "ci95", "images": "ci95_images", "classes": "ci95_classes"}  # what an interval is over -> its column
_SAID = ("n_way", "n_shot", "n_query")  # of a recipe, by what a setting such as "5-way 1-shot" says
_SIDES = ("semantic", "semantic_ci95", "uniform", "uniform_ci95")

MOST_CORRELATED = 200_000
_ENDS = ((0, "_low"), (1, "_high"))
MOST_POINTS = 400  # of a curve: a screen shows no more
MOST_BANDS = 41  # windows of a curve whose intervals are over images or classes: each is computed by itself
LEAST_COMMON = 20  # tasks that a partial line must have finished to be compared
LOOK = "look"  # in the place of a run's id, of lines that belong to none
VERDICTS = ("real", "may be chance", "not known")


@dataclass(frozen=True)
class Line:
    """One method on one backbone of one run.

    accuracy, top5, loss  (T,) of every task, fractions and nats, NaN where not done yet
    measures              name -> (T,) what is known of the tasks ("coarsity")
    right, tasks          (t, W, Q) 1 or 0 for every query of the first t tasks, NaN where there is none, and these
                          tasks: what intervals over images and classes come from. None where they are not at hand.
    sampler               how the tasks were drawn ("uniform", "semantic"), "" where unknown
    n_way                 classes per task, 0 where unknown
    result                what the finished run kept of it: numbers that need not be computed again
    """

    run_id: str
    entry: int
    method: str
    label: str
    backbone: str
    dataset: str
    testbed: str
    digest: str
    setting: str
    accuracy: np.ndarray
    top5: np.ndarray
    loss: np.ndarray
    measures: Mapping[str, np.ndarray] = field(default_factory=dict)
    right: np.ndarray | None = None
    tasks: Tasks | None = None
    sampler: str = ""
    n_way: int = 0
    result: evaluate.Result = field(default_factory=evaluate.Result)

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.entry}"

    @property
    def done(self) -> np.ndarray:
        """Which tasks are finished (T,)."""
        return ~np.isnan(self.accuracy)


def lines_of(
    run_id: str,
    spec: evaluate.Settled,
    chunks: Sequence[Mapping[str, np.ndarray]],
    summary: evaluate.Summary | None = None,
) -> list[Line]:
    """The lines of one run, from its spec (with "folder") and its finished chunks; entries not begun are left out.

    summary  of the run, where it is finished
    """
    found = []
    numbers = evaluate.task_numbers(spec, chunks)
    begun = [not np.isnan(values["accuracy"]).all() for values in numbers]
    results = [_with_nan(one) for one in (summary and summary.get("results")) or []]
    if len(results) != sum(begun) or any(set(CI95.values()) - set(one) for one in results):
        results = [{}] * sum(begun)  # only a finished run has all numbers
    kept = iter(results)
    first = evaluate.first_right(spec, chunks)
    for which, (entry, values) in enumerate(zip(evaluate.entries(spec), numbers, strict=True)):
        if not begun[which]:
            continue
        part = evaluate.run_testbeds(spec)[entry.testbed]
        shape = part["tasks"]
        found.append(
            Line(
                run_id,
                which,
                entry.method,
                entry.label,
                entry.backbone,
                spec["dataset"],
                part["testbed_name"],
                shape["digest"],
                shape["setting"],
                values["accuracy"],
                values["top5"],
                values["loss"],
                snapshot.measures(spec["folder"], snapshot.testbed_file(entry.testbed)),
                right=first[which][0] if first else None,
                tasks=first[which][1] if first else None,
                sampler=str(part["recipe"].get("sampler", "")),
                n_way=shape["n_way"],
                result=next(kept),
            )
        )
    return found


def line_of(entry: evaluate.Entry, answer: Predictions, testbed: Testbed, run_id: str = LOOK, which: int = 0) -> Line:
    """The line of predictions that belong to no recorded run."""
    from fsviz import evaluation

    tasks = testbed.tasks
    return Line(
        run_id,
        which,
        entry.method,
        entry.label,
        entry.backbone,
        testbed.dataset,
        testbed.name,
        snapshot.digest(tasks),
        tasks.setting,
        evaluation.task_accuracy(answer),
        evaluation.task_top_k(answer, 5),
        answer.loss(),
        tasks.measures,
        evaluation.correct_queries(answer),
        tasks,
        str(testbed.recipe.get("sampler", "")),
        tasks.n_way,
    )


def named(lines: Sequence[Line]) -> dict[str, Line]:
    """The lines under names that tell them apart: the backbone and the run are added only where needed."""
    parts = [[line.label] for line in lines]
    for extra in (_backbone, testbed_title, lambda line: f"run {line.run_id}", lambda line: line.testbed):
        names = [" · ".join(p) for p in parts]
        if len(set(names)) == len(names):
            break
        if len({extra(line) for line in lines}) > 1:
            for part, line in zip(parts, lines, strict=True):
                part.append(extra(line))
    return {" · ".join(part): line for part, line in zip(parts, lines, strict=True)}


def _backbone(line: Line) -> str:
    return title_of(line.backbone)


def testbed_title(line: Line) -> str:
    """How the tasks of a line were drawn and of what shape, for people; its name where no sampler drew them."""
    if line.sampler not in SAMPLERS:
        return line.testbed
    return f"{SAMPLERS[line.sampler].title}, {line.setting}"


def groups(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Lines of the same tasks together, in the order of their first line."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.digest, []).append(line)
    return found


def compared(lines: Sequence[Line]) -> tuple[dict[str, list[Line]], list[str]]:
    """Lines of the same tasks together, on the tasks that all of them have finished, the most accurate first; and a
    sentence for every group in which a line has not finished all."""
    found, notes = {}, []
    for digest, group in groups(lines).items():
        kept = on_common_tasks(group)
        found[digest] = sorted(kept, key=lambda line: -np.nanmean(line.accuracy))
        if note := _partial_in_words(group, kept):
            notes.append(note)
    return found, notes


def on_common_tasks(lines: Sequence[Line]) -> list[Line]:
    """Lines of the same tasks, each on the tasks that all of them have finished.

    A line that has finished fewer than LEAST_COMMON tasks is left out where others have more: nothing would be left of
    them.
    """
    enough = [line for line in lines if line.done.sum() >= LEAST_COMMON]
    lines = enough or list(lines)
    if not lines:
        return []
    common = np.logical_and.reduce([line.done for line in lines])
    if not common.any():  # each has finished others: none can be compared
        return [max(lines, key=lambda line: line.done.sum())]
    return [line if common.sum() == line.done.sum() else _masked(line, common) for line in lines]


def _masked(line: Line, keep: np.ndarray) -> Line:
    """A line on some of its tasks only; their positions stay what they are."""
    right = line.right
    if right is not None:
        right = np.where(keep[: len(right), None, None], right, np.nan)
    accuracy, top5, loss = (np.where(keep, values, np.nan) for values in (line.accuracy, line.top5, line.loss))
    return replace(line, accuracy=accuracy, top5=top5, loss=loss, right=right, result={})


def _partial_in_words(group: Sequence[Line], kept: Sequence[Line]) -> str:
    """Which lines of a group have not finished all tasks, and what follows; "" where all have."""
    total = len(group[0].accuracy)
    done = {name: int(line.done.sum()) for name, line in named(group).items()}
    behind = [f"{name} has finished {n:,}" for name, n in done.items() if n < total]
    if not behind:
        return ""
    told = f"Of {total:,} tasks {', '.join(behind)}."
    left_out = {line.key for line in group} - {line.key for line in kept}
    if left_out:
        names = [name for name, line in named(group).items() if line.key in left_out]
        told += f" Too few to compare, so left out: {', '.join(names)}."
    if len(kept) > 1:
        told += f" All are compared on the {int(kept[0].done.sum()):,} tasks that every one of them has finished."
    return told


def widest(lines: Sequence[Line]) -> str:
    """What intervals are over unless one is chosen: the widest of OVER that is known of all lines."""
    for over in reversed(CI_UNITS):
        if lines and all(np.isfinite(_half_width(line, over)) for line in lines):
            return over
    return next(iter(CI_UNITS))


def _half_width(line: Line, over: str) -> float:
    """Half-width of the interval of a line's accuracy, in points."""
    kept = cast(Any, line.result).get(CI95[over])
    return float(kept) if kept is not None else 100 * _difference(line, None, over).ci95


def result_table(lines: Sequence[Line], measure: str = QUARTERS, over: str = "tasks") -> pd.DataFrame:
    """One row per line, as papers print it: accuracy with intervals, quartiles of the measure, top-5, loss.

    Columns name, method, label, backbone, dataset and testbed with their titles for people (backbone_title,
    testbed_title), sampler, setting, run, n_way, n_tasks, accuracy, ci95 (over tasks of these images), ci95_images,
    ci95_classes (see evaluation.intervals), Q1 .. Q4 with their ci95, fine_to_coarse (Q4 minus Q1) with its ci95, top5,
    loss, digest; Q1 holds the tasks with the lowest measure. NaN where a number does not exist.
    over  what the intervals of the quarters are over
    """
    rows = []
    for name, line in named(lines).items():
        row: dict[str, Any] = {
            "name": name,
            "method": line.method,
            "label": line.label,
            "backbone": line.backbone,
            "backbone_title": _backbone(line),
            "dataset": line.dataset,
            "testbed": line.testbed,
            "testbed_title": testbed_title(line),
            "sampler": line.sampler,
            "setting": line.setting,
            "run": line.run_id,
            "n_way": line.n_way,
        }
        result = line.result if measure == QUARTERS and line.result else _computed(line, measure)
        row |= {name: cast(Any, result)[name] for name in ("n_tasks", "accuracy", *CI95.values(), "top5", "loss")}
        row |= _quarters(result)
        row |= _between_quarters(line, row, measure, over)
        row["digest"] = line.digest
        rows.append(row)
    return pd.DataFrame(rows)


def _quarters(result: evaluate.Result) -> dict[str, float]:
    """The quarters of a result as columns; NaN where the tasks have no measure, or are too few."""
    found = ((end, result.get(name)) for end, name in (("", "quartiles"), ("_ci95", "quartiles_ci95")))
    columns = {end: values if isinstance(values, list) else [np.nan] * 4 for end, values in found}
    return {f"{q}{end}": columns[end][i] for i, q in enumerate(QUARTILES) for end in columns}


def _between_quarters(line: Line, row: Mapping[str, Any], measure: str, over: str) -> dict[str, float]:
    """Accuracy in Q4 minus Q1 (points) with its ci95; and the ci95 of every quarter, where they are not over tasks."""
    found = {"fine_to_coarse": row["Q4"] - row["Q1"]}
    if over == "tasks" or np.isnan(row["Q1"]):  # quarters share no task
        return found | {"fine_to_coarse_ci95": float(np.hypot(row["Q1_ci95"], row["Q4_ci95"]))}
    from fsviz.evaluation import quantile_groups

    quarter = quantile_groups(line.measures[measure], 4, line.done)
    halves = [100 * _estimate(_at(line, np.flatnonzero(quarter == i + 1)), over).ci95 for i in range(4)]
    # The difference is the mean of deviations from either quarter's mean, the first quarter's with a minus: images and
    # classes that both quarters hold then count in both.
    ends = np.flatnonzero((quarter == 1) | (quarter == 4))
    share = np.zeros(len(quarter))
    middle = np.zeros(len(quarter))
    for q, sign in ((1, -1), (4, 1)):
        share[quarter == q] = sign * len(ends) / (quarter == q).sum()
        middle[quarter == q] = line.accuracy[quarter == q].mean()
    accuracy, right = share * (line.accuracy - middle), line.right
    if right is not None:
        n = len(right)
        right = share[:n, None, None] * (right - middle[:n, None, None])
    between = _estimate(_at(replace(line, accuracy=accuracy, right=right), ends), over)
    found["fine_to_coarse_ci95"] = 100 * between.ci95
    return found | {f"{q}_ci95": half for q, half in zip(QUARTILES, halves, strict=True)}


def _at(line: Line, tasks: np.ndarray) -> Line:
    """A line of some of its tasks, in this order of positions."""
    found = replace(line, accuracy=line.accuracy[tasks])
    if line.right is None or line.tasks is None:
        return found
    known = tasks[tasks < len(line.right)]
    return replace(found, right=line.right[known], tasks=line.tasks.take(known))


def _with_nan(value: Any) -> Any:
    """What JSON keeps as null is a number that does not exist."""
    if isinstance(value, dict):
        return {name: _with_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_nan(one) for one in value]
    return np.nan if value is None else value


def _computed(line: Line, measure: str) -> evaluate.Result:
    """What a finished run keeps of a line, from the numbers of its tasks."""
    numbers = {"accuracy": line.accuracy, "top5": line.top5, "loss": line.loss}
    intervals = {column: 100 * _difference(line, None, over).ci95 for over, column in CI95.items()}
    return cast(evaluate.Result, {**evaluate.result_of(numbers, line.measures.get(measure)), **intervals})


def summary_table(summary: evaluate.Summary) -> pd.DataFrame:
    """The results of a run's summary as rows like those of `result_table`, as far as `side_by_side` needs them."""
    rows = []
    kept = ("method", "label", "backbone", "sampler", "setting", "n_tasks", "accuracy", "ci95")
    for result in summary.get("results") or []:
        row = {name: value for name, value in result.items() if name in kept}
        rows.append({"dataset": summary.get("dataset", ""), **row, **_quarters(result)})
    return pd.DataFrame(rows, columns=["dataset", "setting", "sampler"] if not rows else None)


def with_interval(results: pd.DataFrame, over: str) -> pd.DataFrame:
    """The same table with its column ci95 over tasks, images or classes."""
    return results.assign(ci95=results[CI95[over]])


def side_by_side(results: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Methods on semantic and on uniform tasks beside each other, as tables 1 and 2 of Bennequin et al. (2022).

    results  rows of `result_table`; of those with the same method, backbone and sampler the first counts
    One table per dataset and setting ("demo", "5-way 1-shot") that has both kinds of tasks; inductive methods first.
    Columns method (its label), kind, backbone, n_tasks, semantic, semantic_ci95, Q1 .. Q4 (of the semantic tasks),
    uniform, uniform_ci95; NaN where a method has only one of the two.
    """
    from fsviz.methods import METHODS

    found = {}
    for (dataset, setting), part in results.groupby(["dataset", "setting"], sort=False):
        if not {"semantic", "uniform"} <= set(part["sampler"]):
            continue
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for row in part[part["sampler"].isin(("semantic", "uniform"))].to_dict("records"):
            kind = METHODS[row["method"]].kind if row["method"] in METHODS else "inductive"
            unknown = dict.fromkeys([*_SIDES, *QUARTILES], np.nan)
            key = (row["label"], row["backbone"])
            start = {"method": row["label"], "kind": kind, "backbone": title_of(row["backbone"])}
            start["n_tasks"] = row["n_tasks"]
            cells = rows.setdefault(key, start | unknown)
            if np.isnan(cells[row["sampler"]]):
                cells |= {row["sampler"]: row["accuracy"], f"{row['sampler']}_ci95": row["ci95"]}
                cells |= {q: row[q] for q in QUARTILES} if row["sampler"] == "semantic" else {}
        table = pd.DataFrame(sorted(rows.values(), key=lambda cells: cells["kind"] != "inductive"))
        found[str(dataset), str(setting)] = table
    return found


def curves(
    lines: Sequence[Line], measure: str = QUARTERS, window: int | None = None, over: str = "tasks"
) -> dict[str, pd.DataFrame]:
    """Rolling mean of accuracy (percent) against a measure, a line each: columns measure, accuracy, ci95.

    over  what ci95 is over; a curve has fewer points where that is not tasks
    A measure that is the same in all tasks gives no curve.
    """
    from fsviz.evaluation import rolling_accuracy, varies

    found = {}
    for name, line in named(lines).items():
        values = line.measures.get(measure)
        if values is None or not varies(np.where(line.done, values, np.nan)):
            continue
        curve = rolling_accuracy(line.accuracy, values, window, MOST_POINTS if over == "tasks" else MOST_BANDS)
        if over != "tasks":
            curve["ci95"] = _of_windows(line, values, window, over)
        curve[["accuracy", "ci95"]] *= 100
        found[name] = curve
    return found


def _of_windows(line: Line, values: np.ndarray, window: int | None, over: str) -> list[float]:
    """Half-width of the interval of every window of a curve, a fraction."""
    from fsviz.evaluation import window_starts
    from fsviz.numerics import sort_order

    known = np.flatnonzero(np.isfinite(values) & line.done)
    order = known[sort_order(values[known])]
    window = int(np.clip(window or max(20, len(order) // 10), 1, len(order)))
    starts = window_starts(len(order), window, MOST_BANDS)
    return [_estimate(_at(line, np.sort(order[start : start + window])), over).ci95 for start in starts]


def single_tasks(line: Line, measure: str = QUARTERS, most: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measure, accuracy (percent) and position of single tasks, at most so many, evenly taken: a screen shows no
    more."""
    step = slice(None, None, max(1, -(-len(line.accuracy) // most)))
    return line.measures[measure][step], 100 * line.accuracy[step], np.arange(len(line.accuracy))[step]


def ranks(lines: Sequence[Line], measure: str = QUARTERS, n_bins: int = 4) -> pd.DataFrame:
    """Rank of every line in each quantile group of a measure: columns method (name), bin, accuracy, ci95, rank.

    Lines must be of the same tasks. Accuracies in percent; empty where the tasks do not have the measure.
    """
    from fsviz.evaluation import method_ranks, varies

    _check_same_tasks(lines)
    values = lines[0].measures.get(measure) if lines else None
    if values is None or np.isfinite(values).sum() < n_bins or not varies(values):
        return pd.DataFrame(columns=["method", "bin", "accuracy", "ci95", "rank"])
    ranked = method_ranks({name: line.accuracy for name, line in named(lines).items()}, values, n_bins)
    ranked[["accuracy", "ci95"]] *= 100
    return ranked


def of_quarter(line: Line, quarter: int, measure: str = QUARTERS, n_bins: int = 4) -> np.ndarray:
    """The tasks of a quantile group of a measure (1 is the lowest), as `ranks` cuts them, the worst answered first."""
    from fsviz.evaluation import quantile_groups

    here = np.flatnonzero(quantile_groups(line.measures[measure], n_bins, np.isfinite(line.accuracy)) == quarter)
    return here[np.argsort(line.accuracy[here], kind="stable")]


def differences(lines: Sequence[Line], reference: str | None = None, over: str | None = None) -> pd.DataFrame:
    """Every line against the reference (the most accurate one unless named), on the tasks that all have finished.

    over  what the interval and p are over: "tasks", "images" or "classes" (see evaluation.intervals); the widest that
          is known unless said
    Columns name, reference, n_tasks, over, difference (points of accuracy), ci95, wins, ties, losses, p (over tasks the
    larger of a paired t test and Wilcoxon's signed-rank test), p_holm (corrected for the number of comparisons by
    Holm's method), significant (p_holm below 5%) and verdict (one of VERDICTS).
    """
    _check_same_tasks(lines)
    by_name = named(on_common_tasks(lines))
    over = over or widest(list(by_name.values()))
    if reference is not None and reference not in by_name:
        raise BadInput(f"The reference must be one of: {', '.join(by_name)}. Got {reference!r}.")
    if reference is None:
        reference = max(by_name, key=lambda name: np.nanmean(by_name[name].accuracy))
    rows = []
    for name, line in by_name.items():
        if name == reference:
            continue
        apart = _apart(line, by_name[reference])
        apart = apart[~np.isnan(apart)]
        found = _difference(line, by_name[reference], over)
        rows.append(
            {
                "name": name,
                "reference": reference,
                "n_tasks": len(apart),
                "over": over,
                "difference": 100 * found.mean,
                "ci95": 100 * found.ci95,
                "wins": int((apart > 0).sum()),
                "ties": int((apart == 0).sum()),
                "losses": int((apart < 0).sum()),
                "p": _p_over_tasks(line, by_name[reference]) if over == "tasks" else found.p,
            }
        )
    columns = ["name", "reference", "n_tasks", "over", "difference", "ci95", "wins", "ties", "losses", "p"]
    table = pd.DataFrame(rows, columns=columns)
    table["p_holm"] = holm(table["p"].to_numpy(dtype=float))
    table["significant"] = table["p_holm"] < 0.05
    verdict = np.where(table["significant"], VERDICTS[0], VERDICTS[1])
    table["verdict"] = np.where(table["p_holm"].isna(), VERDICTS[2], verdict)
    return table.sort_values("difference", ascending=False, ignore_index=True)


def _p_over_tasks(line: Line, reference: Line) -> float:
    from fsviz.evaluation import paired_difference

    found = paired_difference(line.accuracy, reference.accuracy)
    return float(np.fmax(found.p_t, found.p_wilcoxon))


def window_of(lines: Sequence[Line], share: float) -> int:
    """Tasks in a rolling window that takes a share (percent) of the shortest line's: at least 20, or all there are."""
    n = min(int(line.done.sum()) for line in lines)
    return min(max(20, round(n * share / 100)), n)


def measures_of(lines: Sequence[Line]) -> list[str]:
    """What is known of the tasks of every line and differs between them, that of the quarters first."""
    from fsviz.evaluation import varies

    names = [name for name in lines[0].measures if all(name in line.measures for line in lines)] if lines else []
    varied = [name for name in names if varies(np.where(lines[0].done, lines[0].measures[name], np.nan))]
    return sorted(varied, key=lambda name: name != QUARTERS)


def why_no_curve(lines: Sequence[Line]) -> str:
    """Why accuracy cannot be drawn against a measure of these tasks, in a sentence; "" where it can."""
    if measures_of(lines):
        return ""
    values = lines[0].measures.get(QUARTERS) if lines else None
    if values is None or not np.isfinite(values).any():
        return (
            "No measure of difficulty is known of these tasks (the dataset has no taxonomy), so there is none to draw "
            "accuracy against."
        )
    if int(lines[0].done.sum()) == 1:
        return "One task is finished, and a curve needs two."
    told = f"{QUARTERS.capitalize()} is {np.nanmean(values):.4g} in every task"
    tasks = lines[0].tasks
    ids = np.sort(tasks.class_ids, axis=1) if tasks is not None else None
    if ids is not None and len(ids) and (ids == ids[0]).all():
        told = f"Every task holds the same {(ids[0] != PAD).sum()} classes, so {told[:1].lower()}{told[1:]}"
    return f"{told}: there is nothing to draw accuracy against."


def p_in_words(over: str) -> str:
    """What the p of `differences` is, in a sentence."""
    test = "the larger p of a paired t test and Wilcoxon's signed-rank test" if over == "tasks" else "that of a t test"
    return f"p is {test} {CI_UNITS[over].partition(':')[0]}, corrected for the number of comparisons (Holm)."


def correlations(lines: Sequence[Line], measure: str = QUARTERS, over: str | None = None) -> pd.DataFrame:
    """How a measure of the tasks and accuracy go together, a row per line, with 95% intervals.

    over  "tasks", "images" or "classes"; unless said, classes, or tasks where classes cannot tell
    Columns name, n_tasks, over, pearson, pearson_low, pearson_high, spearman, spearman_low, spearman_high. The ends are
    NaN over images, which is not computed, and over classes where every task holds every class. Of more than
    MOST_CORRELATED tasks every second, third, ... is taken, and n_tasks says how many.
    """
    from fsviz.evaluation import correlation

    unknown = dict.fromkeys((f"{kind}{end}" for kind in evaluate.CORRELATIONS for _, end in _ENDS), np.nan)
    rows = []
    for name, line in named(lines).items():
        values = line.measures.get(measure)
        if values is None:
            continue
        kept = line.result.get("correlations", {}).get(measure)
        if kept and over in (None, kept["over"]):
            ends = {f"{kind}{end}": kept[kind]["ci95"][i] for kind in evaluate.CORRELATIONS for i, end in _ENDS}
            both = {kind: kept[kind]["value"] for kind in evaluate.CORRELATIONS}
            rows.append({"name": name, "n_tasks": line.result["n_tasks"], "over": kept["over"], **both, **ends})
            continue
        taken = slice(None, None, -(-len(values) // MOST_CORRELATED))
        values, accuracy = values[taken], line.accuracy[taken]
        class_ids = line.tasks.class_ids[taken] if line.tasks is not None and over in (None, "classes") else None
        row: dict[str, Any] = {"name": name, "n_tasks": int((np.isfinite(values) & np.isfinite(accuracy)).sum())}
        for kind in evaluate.CORRELATIONS:
            found = correlation(accuracy, values, class_ids, rank=kind == "spearman")
            row |= {kind: found.value, f"{kind}_low": found.low, f"{kind}_high": found.high, "over": over or found.over}
        rows.append(row if found.over == row["over"] else row | unknown)
    kinds = [f"{kind}{end}" for kind in evaluate.CORRELATIONS for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["name", "n_tasks", "over", *kinds])


# --- single tasks ------------------------------------------------------------------------------------------------


def extremes(line: Line, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The hardest and the easiest tasks of a line, as many of each, among those whose images are at hand."""
    n_known = len(line.tasks) if line.tasks is not None else 0
    done = np.flatnonzero(np.isfinite(line.accuracy[:n_known]))
    order = done[np.argsort(line.accuracy[done], kind="stable")]
    n = min(n, len(order) // 2)
    return order[:n], order[::-1][:n]


def around(line: Line, measure: str, at: float, n: int = 40) -> np.ndarray:
    """The tasks whose measure is nearest to a value, the hardest first; of those whose images are at hand."""
    n_known = len(line.tasks) if line.tasks is not None else 0
    values = line.measures[measure][:n_known]
    far = np.abs(values - at)
    known = np.flatnonzero(np.isfinite(far) & np.isfinite(line.accuracy[:n_known]))
    near = known[np.argsort(far[known], kind="stable")[:n]]
    return near[np.argsort(line.accuracy[near], kind="stable")]


# --- how to run it again -----------------------------------------------------------------------------------------


def in_words(spec: evaluate.Settled) -> list[tuple[str, str]]:
    """What a run evaluated, as a person says it: pairs of a title and words."""
    told = [("Dataset", _dataset_title(spec["dataset"]))]
    told.append(
        ("Backbones" if len(spec["backbones"]) > 1 else "Backbone", ", ".join(map(title_of, spec["backbones"])))
    )
    labels = dict.fromkeys(entry.label for entry in evaluate.entries(spec))
    told.append(("Methods" if len(labels) > 1 else "Method", ", ".join(labels)))
    for testbed in evaluate.run_testbeds(spec):
        told.append(("Tasks", _tasks_in_words(testbed)))
    told.append(("Device", spec["device"]))
    return told


def _tasks_in_words(testbed: evaluate.RunTestbed) -> str:
    shape, recipe = testbed["tasks"], testbed["recipe"]
    words = [f"{shape['n_tasks']:,} of {shape['setting']}, {shape['n_query']} query images per class"]
    sampler = SAMPLERS.get(str(recipe.get("sampler")))
    if sampler is None:
        words.append(f"of the testbed {testbed['testbed_name']}")
    else:
        words.append(f"drawn by the sampler {sampler.title}")
    if recipe.get("split"):
        words.append(f"from split {recipe['split']}")
    named = [s for s in (sampler.settings if sampler else ()) if s.name in recipe and s.name not in _SAID]
    named += [s for s in (DISTANCE, DAG, SEED) if s.name in recipe]
    words += [
        f"{s.title[:1].lower()}{s.title[1:]} {s.choices.get(recipe[s.name], s.text(recipe[s.name]))}" for s in named
    ]
    return ", ".join(words)


def _dataset_title(name: str) -> str:
    try:
        return datasets.title(name)
    except FsvizError:  # it is gone since
        return name


def command(spec: evaluate.Settled) -> str:
    """The command that runs the same evaluation; "" where there is none: its dataset or testbed is gone, its method
    was a function of a notebook, or its predictions were made elsewhere."""
    if "predictions" in spec:
        return ""
    words = ["python", "-m", "fsviz", "evaluate", spec["dataset"], "--backbone", ",".join(spec["backbones"])]
    given = [str((chosen.get("own") or {}).get("code") or chosen["name"]) for chosen in spec["methods"]]
    if any(name.startswith(HERE) for name in given):
        return ""
    words += ["--methods", ",".join(dict.fromkeys(given))]
    for entry in evaluate.entries({"backbones": spec["backbones"][:1], "methods": spec["methods"]}):
        for name, value in entry.changed.items():
            words += ["--set", f"{entry.method}.{name}={SEED.text(value)}"]
    every = evaluate.run_testbeds(spec)
    try:
        dataset = datasets.load(spec["dataset"])
        if spec.get("testbed"):
            words += ["--testbed", str(spec["testbed"])]
        else:
            first = {name: value for name, value in every[0]["recipe"].items() if name in draw.KNOWN}
            said = draw.recipe_for(dataset, **first).said
            beside = ("sampler", "n_shot") if len(every) > 1 else ()  # what --side-by-side says
            words += flags({name: value for name, value in said.items() if name not in beside}, draw.KNOWN)
            shots = dict.fromkeys(str(part["tasks"]["n_shot"]) for part in every if beside)
            words += ["--side-by-side", ",".join(shots)] if beside else []
    except FsvizError:
        return ""
    return shlex.join([*words, "--device", spec["device"]])


# --- why: the queries that went wrong ----------------------------------------------------------------------------


def pairs_table(answer: Predictions, tasks: Tasks, dataset: Dataset, n: int = 20) -> pd.DataFrame:
    """Pairs of classes by how often the first is taken for the second, among pairs met often enough to tell."""
    from fsviz.evaluation import pair_confusion

    confusion = pair_confusion(answer, tasks)
    met = confusion.asked[~np.eye(len(confusion.class_ids), dtype=bool)]
    least = max(1, int(np.median(met[met > 0]) // 2)) if (met > 0).any() else 1
    worst = confusion.worst(n, least)
    names = dataset.classes["class_name"].astype(str)
    worst.insert(1, "class_name", names.reindex(worst["class_id"]).fillna("?").to_numpy())
    worst.insert(3, "taken_for_name", names.reindex(worst["taken_for"]).fillna("?").to_numpy())
    worst["rate"] *= 100
    return worst


def class_table(answer: Predictions, tasks: Tasks, dataset: Dataset) -> pd.DataFrame:
    """Accuracy on the queries of every class, lowest first, in percent, with its interval over the class's tasks."""
    from fsviz.evaluation import class_accuracy

    found = class_accuracy(answer, tasks)
    names = dataset.classes["class_name"].astype(str)
    return pd.DataFrame(
        {
            "class": names.reindex(found["class_id"]).fillna("?").to_numpy(),
            "accuracy (%)": 100 * found["accuracy"],
            "± 95%": 100 * found["ci95"],
            "queries": found["n_queries"],
            "tasks": found["n_tasks"],
        }
    )


@dataclass(frozen=True)
class Confidence:
    """What the confidence of a method is worth on some tasks.

    low, high  between which 90% of its values lie
    auroc      how often a right answer has a higher confidence than a wrong one, ties half: 0.5 is chance; NaN where
               all are right or all wrong
    """

    low: float
    high: float
    auroc: float

    @property
    def is_told(self) -> bool:
        """Whether its values differ enough to be shown as percentages."""
        return self.high - self.low >= 0.05

    @property
    def orders(self) -> bool:
        """Whether it tells right from wrong answers clearly better than chance."""
        return bool(self.auroc >= 0.6)


def confidence_of(answer: Predictions) -> Confidence:
    """How far the confidence of the answers spreads, and how well it tells right from wrong ones."""
    from scipy.stats import rankdata

    there = answer.predicted != PAD
    values, right = answer.confidence[there].astype(float), answer.rank[there] == 0
    if not len(values):
        return Confidence(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(values, [0.05, 0.95])
    n_right, n_wrong = int(right.sum()), int((~right).sum())
    auroc = float("nan")
    if n_right and n_wrong:
        auroc = float((rankdata(values)[right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))
    return Confidence(float(low), float(high), auroc)


def misclassified(answer: Predictions, tasks: Tasks, class_id: int, taken_for: int, n: int = 60) -> pd.DataFrame:
    """Queries of one class that were taken for another, the most confident mistakes first.

    Columns image_id, task, confidence (percent), times: an image may be wrong in several tasks and is listed once.
    """
    t, w, q = np.nonzero((tasks.class_ids[:, :, None] == class_id) & (answer.predicted >= 0))
    said = tasks.class_ids[t, answer.predicted[t, w, q]]
    t, w, q = (index[said == taken_for] for index in (t, w, q))
    frame = pd.DataFrame(
        {"image_id": tasks.query[t, w, q], "task": t, "confidence": 100.0 * answer.confidence[t, w, q]}
    )
    if frame.empty:
        return frame.assign(times=pd.Series(dtype=int))
    frame = frame.sort_values("confidence", ascending=False, kind="stable")
    frame["times"] = frame.groupby("image_id")["image_id"].transform("size")
    return frame.drop_duplicates("image_id").head(n).reset_index(drop=True)


# --- steps -------------------------------------------------------------------------------------------------------


def _difference(line: Line, reference: Line | None, over: str) -> Estimate:
    """The line's mean accuracy, or its mean difference to the reference, with its error; unknown where queries are."""
    if reference is None:
        return _estimate(line, over)
    right, tasks = line.right, line.tasks
    if right is not None and tasks is not None and reference.right is not None:
        n = min(len(right), len(reference.right))
        right, tasks = right[:n] - reference.right[:n], tasks.take(slice(0, n))
    else:
        right = None
    return _estimate(replace(line, accuracy=_apart(line, reference), right=right, tasks=tasks), over)


def _apart(line: Line, reference: Line) -> np.ndarray:
    """Difference of accuracy of every task (T,), NaN where one has not finished it."""
    return np.round(line.accuracy - reference.accuracy, 9)  # 0.6 - 0.6 computed two ways is a tie


def _estimate(line: Line, over: str) -> Estimate:
    """The mean of a line's accuracies with its error; unknown over images and classes where queries are."""
    from fsviz.evaluation import Estimate, estimate

    right = line.right
    if over != "tasks" and (right is None or line.tasks is None or not np.isfinite(right).any()):
        return Estimate(float(np.nanmean(line.accuracy)), float("nan"), float("nan"))
    return estimate(line.accuracy, over, right, line.tasks)


def _check_same_tasks(lines: Sequence[Line]) -> None:
    if len({line.digest for line in lines}) > 1:
        raise BadInput(
            "Runs can be compared task by task only when they are of the same tasks. "
            f"Got {len({line.digest for line in lines})} different testbeds: choose runs of one, or evaluate on one."
        )
