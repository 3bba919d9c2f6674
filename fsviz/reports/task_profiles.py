"""The report of one task: what its passport holds, as one file."""

from __future__ import annotations

import shlex

import numpy as np

from fsviz.analyses import task_profile as study
from fsviz.analyses.custom_task import GAPS
from fsviz.analyses.task_profile import MethodResult, TaskProfile, ValuesAmongTasks
from fsviz.difficulty.measures import MEASURES
from fsviz.features.backbones import title_of
from fsviz.figures import task_profile as figures
from fsviz.figures import taxonomy as taxonomy_figures
from fsviz.records import PAD
from fsviz.reports import html
from fsviz.reports.runs import made, strip
from fsviz.studies.support_sets import ACCURACIES, SETS, SupportSets
from fsviz.tables import TableData

MOST_IMAGES = 20  # of a class that stand in the file


def of_passport(passport: TaskProfile, among: ValuesAmongTasks, sets: SupportSets | None = None) -> str:
    """Everything that is known of a task, with figures that can be pointed at and the pictures inside."""
    passport = study.with_values_among_tasks(passport, among)
    title = f"Task {passport.position:,} of {passport.found.title}"
    backbone = f", seen by {title_of(passport.backbone)}" if passport.backbone else ""
    description = f"{made()} {passport.dataset.title}{backbone}. Name of the task: {passport.task_id}"
    sections = [*_images(passport), *_measures(passport, among), *_answers(passport), *_classes(passport)]
    sections += [*_surroundings(passport), *_supports(sets)]
    return str(html.page(title, sections, [study.command(passport), command(str(passport.task_id))], description))


def command(task: str) -> str:
    """The command that writes the report of a task."""
    return shlex.join(["fsviz", "report", "--task", task])


def _images(passport: TaskProfile) -> list[html.ReportSection]:
    answer = next((answer for answer in passport.answers if answer.predictions is not None), None)
    classes = []
    for way, name in enumerate(passport.names):
        pictures = []
        sentence = ""
        if passport.has_images:
            support, query = (of[0, way][of[0, way] != PAD] for of in (passport.tasks.support, passport.tasks.query))
            pictures = [
                (words, strip(passport.dataset, [int(i) for i in ids[:MOST_IMAGES]]))
                for words, ids in (("support", support), ("queries", query))
            ]
            sentence = _describe_predictions(passport, answer, way, len(query))
        classes.append(html.ReportTask(name, sentence, pictures))
    return [html.ReportSection("Its classes and images", classes)]


def _describe_predictions(passport: TaskProfile, answer: MethodResult | None, way: int, n_query: int) -> str:
    """How a method classified the queries of a class."""
    if answer is None or answer.predictions is None:
        return ""
    counts = study.predicted_pairs(answer, len(passport.names))[way]
    wrong = [f"{passport.names[i]} {int(n)}" for i, n in enumerate(counts) if n and i != way]
    sentence = f"{answer.label} classifies {int(counts[way])} of {n_query} queries correctly"
    return f"{sentence}; predicted as: {', '.join(wrong)}." if wrong else f"{sentence}."


def _measures(passport: TaskProfile, among: ValuesAmongTasks) -> list[html.ReportSection]:
    stands = study.percentiles(passport, among)
    rows = [
        {
            "title": value.measure.title,
            "value": value.value,
            "higher_is": value.measure.direction,
            "harder_than": 100 * stands[value.measure.name].harder if value.measure.name in stands else None,
            "why_not": value.why_not,
        }
        for value in passport.values
    ]
    table = TableData(study.MEASURE_VALUES, rows)
    parts = []
    n = len(among.positions)
    if stands and n > 1:
        standings = [
            {
                "title": MEASURES[name].title,
                "direction": MEASURES[name].direction,
                "harder": [100 * stand.harder],
                "value": [stand.value],
            }
            for name, stand in stands.items()
        ]
        of = f"all {n:,} tasks" if among.is_whole else f"{n:,} of {among.n_tasks:,} tasks"
        caption = f"Held against {of} of its testbed. To the right is harder, whichever way a measure runs."
        parts.append(
            html.ReportSection("Every measure beside the other tasks", figures.plot_percentiles(standings), caption)
        )
    return [*parts, html.ReportSection("Every measure", table)]


def _answers(passport: TaskProfile) -> list[html.ReportSection]:
    if not passport.answers:
        return []
    rows = [
        {
            "label": f"{answer.label} · {title_of(answer.backbone)}",
            "accuracy": [100 * answer.accuracy],
            "mean": 100 * answer.mean[0],
            "ci95": 100 * answer.mean[1],
            "n": int(np.isfinite(answer.others).sum()),
        }
        for answer in passport.answers
    ]
    caption = "On this task, beside the mean over tasks of its testbed with the 95% interval over tasks."
    return [html.ReportSection("What methods get right", figures.plot_accuracies(rows), caption)]


def _classes(passport: TaskProfile) -> list[html.ReportSection]:
    parts = []
    for pairs in study.class_pairs(passport):
        figure = taxonomy_figures.plot_task_distances(pairs.values, passport.names, pairs.title, float(pairs.most), 360)
        parts.append(html.ReportSection(f"{pairs.title} of its classes", figure, pairs.what))
    return parts


def _surroundings(passport: TaskProfile) -> list[html.ReportSection]:
    parts = []
    contexts = study.contexts(passport)
    if contexts is not None:
        caption = "How often each; shared: queries that were taken in a context of their class's support."
        parts.append(
            html.ReportSection("Contexts of support and queries", TableData(study.CONTEXTS, contexts), caption)
        )
    gaps = study.gap_rows(study.gaps(passport))
    if gaps:
        caption = "How far support and queries differ, class by class on average, beside other tasks of the testbed."
        parts.append(html.ReportSection("Attributes of support and queries", TableData(GAPS, gaps), caption))
    return parts


def _supports(sets: SupportSets | None) -> list[html.ReportSection]:
    if sets is None:
        return []
    called = {"random": "the task's own"}
    rows = [{"supports": called.get(n, n), "accuracy": 100 * float(sets.accuracy(n)[0])} for n in SETS]
    caption = "ProtoNet on the same queries; hard and easy supports are those that FastDiffSel finds."
    return [html.ReportSection("The same queries with other supports", TableData(ACCURACIES, rows), caption)]
