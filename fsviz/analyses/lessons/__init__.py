"""Lessons: what makes a task hard, one cause at a time and then combined.

    lesson -> positions of its control -> tasks and predictions at each -> accuracy with its interval
           -> a question with answers, of which the measured one is correct

A file of this folder that holds a LESSON is a lesson; the page Learn shows it with the file of the same name. No answer
is fixed: the correct one follows from the numbers of the dataset, and a lesson asks nothing where their interval holds
more than one answer. Intervals are 95% CI over tasks of the same images.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from fsviz.analyses.lessons.lesson import METHOD, SHAPE, ControlPosition, Curve, Example, Lesson, Question, typical
from fsviz.errors import UnknownName
from fsviz.records import Dataset

__all__ = [
    "LESSONS",
    "METHOD",
    "SHAPE",
    "ControlPosition",
    "Curve",
    "Example",
    "Lesson",
    "Question",
    "missing_by_reason",
    "possible_lessons",
    "typical",
]

_SHARED = {"lesson"}  # modules that are no lesson


def _declared_lessons() -> dict[int, Lesson]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _SHARED]
    lessons = [importlib.import_module(f"{__name__}.{name}").LESSON for name in modules]
    return {lesson.order: lesson for lesson in sorted(lessons, key=lambda lesson: lesson.order)}


LESSONS: dict[int, Lesson] = _declared_lessons()


def possible_lessons(dataset: Dataset, numbers: Sequence[int] = ()) -> list[Lesson]:
    """The lessons that the dataset can give, all of them or those of these numbers."""
    unknown = [number for number in numbers if number not in LESSONS]
    if unknown:
        raise UnknownName("lesson", str(unknown[0]), [str(number) for number in LESSONS])
    return [lesson for n, lesson in LESSONS.items() if (not numbers or n in numbers) and not lesson.missing(dataset)]


def missing_by_reason(dataset: Dataset) -> dict[str, list[Lesson]]:
    """The lessons that the dataset cannot give, by reason."""
    reasons: dict[str, list[Lesson]] = {}
    for lesson in LESSONS.values():
        if reason := lesson.missing(dataset):
            reasons.setdefault(reason, []).append(lesson)
    return reasons
