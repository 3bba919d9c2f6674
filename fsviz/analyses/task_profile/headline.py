"""The answer to "why is this task hard?": its accuracy, and the measures by which it is hard, as two sentences.

Percentiles are positions among the tasks of the testbed, not causes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsviz.analyses.task_profile.among_tasks import ValuesAmongTasks, percentiles
from fsviz.analyses.task_profile.profile import MethodResult, TaskProfile
from fsviz.difficulty.measures import MEASURES
from fsviz.features.backbones import title_of
from fsviz.records import PAD

HARD, EASY = 0.75, 0.25  # percentiles from which on a task is called hard or easy by a measure
_MAX_HARD, _MAX_EASY = 2, 1  # measures that a sentence names


def headline(
    profile: TaskProfile, among: ValuesAmongTasks | None = None, result: MethodResult | None = None
) -> tuple[str, str]:
    """The accuracy of a method with the mean of the testbed, and the measures by which the task is hard or easy.

    among   None if the other tasks are not measured yet: the second sentence is then ""
    result  of the method; without predictions the classes are the answer
    """
    return _accuracy(profile, result), "" if among is None else _percentiles(profile, among)


def compare_headline(
    profiles: Sequence[TaskProfile],
    among: Sequence[ValuesAmongTasks] | None = None,
    results: Sequence[MethodResult | None] = (),
) -> tuple[str, str]:
    """The accuracy on two tasks, and the measures by which their percentiles differ most."""
    first, second = (results[which] if len(results) > which else None for which in (0, 1))
    sentence = f"Task {profiles[0].position:,} compared with task {profiles[1].position:,}."
    if first is not None and second is not None:
        values = [f"{100 * item.accuracy:.0f}%" for item in (first, second)]
        setting = profiles[0].tasks.setting
        sentence = f"{first.label} ({setting}): {values[0]} of the queries correct, {values[1]} in the other task."
    if among is None:
        return sentence, ""
    own, theirs = (percentiles(p, a) for p, a in zip(profiles, among, strict=True))
    names = [
        name
        for name in own
        if name in theirs and _is_cause(name) and np.isfinite(own[name].harder - theirs[name].harder)
    ]
    names.sort(key=lambda name: -abs(own[name].harder - theirs[name].harder))
    phrases = [
        f"{MEASURES[name].lower_title} (harder than {own[name].harder:.0%} vs {theirs[name].harder:.0%} of its testbed)"
        for name in names[:_MAX_HARD]
    ]
    return sentence, f"They differ most by {' and '.join(phrases)}." if phrases else ""


def _accuracy(profile: TaskProfile, result: MethodResult | None) -> str:
    if result is None:
        n_way = len(profile.class_ids)
        return f"A task of {n_way:,} classes without images." if not profile.has_images else f"A {n_way:,}-way task."
    n_queries = int((profile.tasks.query != PAD).sum())
    mean, _ = result.mean
    setting = f"{profile.tasks.setting}, {title_of(result.backbone)}" if result.backbone else profile.tasks.setting
    sentence = f"{result.label} ({setting}): {100 * result.accuracy:.0f}% of the {n_queries:,} queries correct"
    n_tasks = int(np.isfinite(result.testbed_accuracy).sum())
    if not np.isfinite(mean) or n_tasks < 2:
        return f"{sentence}."
    points = 100 * (result.accuracy - mean)
    size = f"{abs(points):.0f} point{'' if round(abs(points)) == 1 else 's'} {'above' if points > 0 else 'below'}"
    return (
        f"{sentence}, {size if abs(points) >= 0.5 else 'equal to'} the mean of {n_tasks:,} tasks ({100 * mean:.0f}%)."
    )


def _percentiles(profile: TaskProfile, among: ValuesAmongTasks) -> str:
    """The measures by which the task is among the hardest or easiest quarter of its testbed."""
    harder = {
        name: item.harder
        for name, item in percentiles(profile, among).items()
        if np.isfinite(item.harder) and _is_cause(name)
    }
    if len(among.positions) < 2:
        return "Only task in this testbed: no percentiles."
    if not harder:
        return "No measure is available to compare it with other tasks."
    ranked = sorted(harder, key=lambda name: -harder[name])
    hard = [f"{harder[n]:.0%}{{}} by {MEASURES[n].lower_title}" for n in ranked if harder[n] >= HARD][:_MAX_HARD]
    easy = [f"{harder[n]:.0%}{{}} by {MEASURES[n].lower_title}" for n in ranked[::-1] if harder[n] <= EASY][:_MAX_EASY]
    n_others = int((among.positions != profile.position).sum())
    tasks = " of the other tasks" if among.is_complete else f" of {n_others:,} other tasks"
    if not hard and not easy:
        return f"By every measure, harder than 25% to 75%{tasks}."
    if not hard:
        return f"Harder than only {easy[0].format(tasks)}."
    sentence = f"Harder than {' and '.join([hard[0].format(tasks), *(item.format('') for item in hard[1:])])}"
    return f"{sentence}, but only {easy[0].format('')}." if easy else f"{sentence}."


def _is_cause(name: str) -> bool:
    """Whether a measure can explain accuracy: one that is computed from the predictions restates it."""
    return "predictions" not in MEASURES[name].needs
