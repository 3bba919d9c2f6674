"""One method of one run, with its numbers per task; which of them have the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fsviz.features.backbones import title_of
from fsviz.records import PAD, Predictions, Tasks, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.studies import evaluate
from fsviz.tasks import snapshot

if TYPE_CHECKING:
    pass


QUARTERS = "coarsity"  # the measure whose quarters tables show, as the paper's do
CI95 = {"tasks": "ci95", "images": "ci95_images", "classes": "ci95_classes"}  # what an interval is over -> its column
MIN_CURVE_TASKS = 50  # tasks that rolling means and quarters need: with fewer they show noise
MIN_COMMON = 20  # tasks that a partial line must have finished to be compared
PREVIEW = "look"  # in the place of a run's id, of lines that belong to none


@dataclass(frozen=True)
class MethodRun:
    """One method on one backbone of one run.

    accuracy, top5, loss  (T,) of every task, fractions and nats, NaN where not done yet
    measures              name -> (T,) what is known of the tasks ("coarsity")
    right, tasks          (t, W, Q) 1 or 0 for every query of the first t tasks, NaN where there is none, and these
                          tasks: what intervals over images and classes come from. None if they are not available.
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
    result: evaluate.EntryResult = field(default_factory=evaluate.EntryResult)

    @property
    def key(self) -> str:
        return f"{self.run_id}/{self.entry}"

    @property
    def done(self) -> np.ndarray:
        """Whether each task is finished (T,)."""
        return ~np.isnan(self.accuracy)


def method_runs(
    run_id: str,
    spec: evaluate.ResolvedSpec,
    chunks: Sequence[Mapping[str, np.ndarray]],
    summary: evaluate.EvaluationSummary | None = None,
) -> list[MethodRun]:
    """The lines of one run, from its spec (with "folder") and its finished chunks; entries not begun are left out.

    summary  of the run, where it is finished
    """
    runs = []
    numbers = evaluate.task_numbers(spec, chunks)
    begun = [not np.isnan(values["accuracy"]).all() for values in numbers]
    results = [_with_nan(row) for row in (summary and summary.get("results")) or []]
    if len(results) != sum(begun) or any(set(CI95.values()) - set(row) for row in results):
        results = [{}] * sum(begun)  # only a finished run has all numbers
    stored_results = iter(results)
    first = evaluate.first_correct(spec, chunks)
    for which, (entry, values) in enumerate(zip(evaluate.entries(spec), numbers, strict=True)):
        if not begun[which]:
            continue
        part = evaluate.run_testbeds(spec)[entry.testbed]
        shape = part["tasks"]
        runs.append(
            MethodRun(
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
                result=next(stored_results),
            )
        )
    return runs


def preview_run(
    entry: evaluate.Entry, answer: Predictions, testbed: Testbed, run_id: str = PREVIEW, which: int = 0
) -> MethodRun:
    """The line of predictions that belong to no recorded run."""
    from fsviz import evaluation

    tasks = testbed.tasks
    return MethodRun(
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


def by_name(lines: Sequence[MethodRun]) -> dict[str, MethodRun]:
    """The lines under names that tell them apart: the backbone and the run are added only where needed."""
    parts = [[line.label] for line in lines]
    for extra in (backbone_title, testbed_title, lambda line: f"run {line.run_id}", lambda line: line.testbed):
        names = [" · ".join(p) for p in parts]
        if len(set(names)) == len(names):
            break
        if len({extra(line) for line in lines}) > 1:
            for part, line in zip(parts, lines, strict=True):
                part.append(extra(line))
    return {" · ".join(part): line for part, line in zip(parts, lines, strict=True)}


def backbone_title(line: MethodRun) -> str:
    return title_of(line.backbone)


def testbed_title(line: MethodRun) -> str:
    """The sampler and shape of the tasks of a line, for people; the testbed's name if no sampler drew them."""
    if line.sampler not in SAMPLERS:
        return line.testbed
    return f"{SAMPLERS[line.sampler].title}, {line.setting}"


def groups(lines: Sequence[MethodRun]) -> dict[str, list[MethodRun]]:
    """Lines of the same tasks together, in the order of their first line."""
    by_digest: dict[str, list[MethodRun]] = {}
    for line in lines:
        by_digest.setdefault(line.digest, []).append(line)
    return by_digest


def group_by_tasks(lines: Sequence[MethodRun]) -> tuple[dict[str, list[MethodRun]], list[str]]:
    """Lines of the same tasks together, on the tasks that all of them have finished, the most accurate first; and a
    sentence for every group in which a line has not finished all."""
    lines_of_testbed, notes = {}, []
    for digest, group in groups(lines).items():
        on_common = on_common_tasks(group)
        lines_of_testbed[digest] = sorted(on_common, key=lambda line: -np.nanmean(line.accuracy))
        if note := _unfinished_note(group, on_common):
            notes.append(note)
    return lines_of_testbed, notes


def on_common_tasks(lines: Sequence[MethodRun]) -> list[MethodRun]:
    """Lines of the same tasks, each on the tasks that all of them have finished.

    A line that has finished fewer than LEAST_COMMON tasks is left out where others have more: nothing would be left of
    them.
    """
    enough = [line for line in lines if line.done.sum() >= MIN_COMMON]
    lines = enough or list(lines)
    if not lines:
        return []
    common = np.logical_and.reduce([line.done for line in lines])
    if not common.any():  # each has finished others: none can be compared
        return [max(lines, key=lambda line: line.done.sum())]
    return [line if common.sum() == line.done.sum() else _masked(line, common) for line in lines]


def _masked(line: MethodRun, keep: np.ndarray) -> MethodRun:
    """A line on some of its tasks only; their positions stay what they are."""
    right = line.right
    if right is not None:
        right = np.where(keep[: len(right), None, None], right, np.nan)
    accuracy, top5, loss = (np.where(keep, values, np.nan) for values in (line.accuracy, line.top5, line.loss))
    return replace(line, accuracy=accuracy, top5=top5, loss=loss, right=right, result={})


def _unfinished_note(group: Sequence[MethodRun], compared: Sequence[MethodRun]) -> str:
    """A note on the lines of a group that have not finished all tasks, and the consequence; "" if all have."""
    total = len(group[0].accuracy)
    done = {name: int(line.done.sum()) for name, line in by_name(group).items()}
    behind = [f"{name} has finished {n:,}" for name, n in done.items() if n < total]
    if not behind:
        return ""
    note = f"Of {total:,} tasks {', '.join(behind)}."
    left_out = {line.key for line in group} - {line.key for line in compared}
    if left_out:
        names = [name for name, line in by_name(group).items() if line.key in left_out]
        note += f" Excluded, too few tasks: {', '.join(names)}."
    if len(compared) > 1:
        note += (
            f" All methods are compared on the {int(compared[0].done.sum()):,} tasks that every method has finished."
        )
    return note


def _with_nan(value: Any) -> Any:
    """The value with NaN in the place of null, as JSON keeps it."""
    if isinstance(value, dict):
        return {name: _with_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_nan(item) for item in value]
    return np.nan if value is None else value


def measures_of(lines: Sequence[MethodRun]) -> list[str]:
    """Measures that every method run has and that differ between its tasks, that of the quarters first.

    None of fewer than MIN_CURVE_TASKS tasks.
    """
    from fsviz.evaluation import varies

    if not lines or lines[0].done.sum() < MIN_CURVE_TASKS:
        return []
    names = [name for name in lines[0].measures if all(name in line.measures for line in lines)]
    varied = [name for name in names if varies(np.where(lines[0].done, lines[0].measures[name], np.nan))]
    return sorted(varied, key=lambda name: name != QUARTERS)


def no_curve_reason(lines: Sequence[MethodRun]) -> str:
    """Why accuracy is not shown by a measure of these tasks, in a sentence; "" if it is."""
    if measures_of(lines):
        return ""
    values = lines[0].measures.get(QUARTERS) if lines else None
    if values is None or not np.isfinite(values).any():
        return "No accuracy by coarsity: the dataset has no taxonomy."
    n_tasks = int(lines[0].done.sum())
    if n_tasks < MIN_CURVE_TASKS:
        finished = f"{n_tasks:,} {'is' if n_tasks == 1 else 'are'} finished"
        return f"Accuracy by {QUARTERS} needs at least {MIN_CURVE_TASKS} tasks; {finished}."
    reason = f"{QUARTERS.capitalize()} is {np.nanmean(values):.4g} in every task"
    tasks = lines[0].tasks
    ids = np.sort(tasks.class_ids, axis=1) if tasks is not None else None
    if ids is not None and len(ids) and (ids == ids[0]).all():
        reason = f"Every task has the same {(ids[0] != PAD).sum()} classes, so {reason[:1].lower()}{reason[1:]}"
    return f"{reason}: there is no accuracy by {QUARTERS}."
