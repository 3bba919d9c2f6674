"""The HTML report of a task: its profile in one file."""

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
from fsviz.reports.runs import date_line, strip
from fsviz.studies.support_sets import ACCURACIES, SETS, SupportSets
from fsviz.tables import TableData

MAX_IMAGES = 20  # of a class that are embedded


def profile_report(profile: TaskProfile, among: ValuesAmongTasks, sets: SupportSets | None = None) -> str:
    """The profile of a task as HTML, with interactive figures and embedded images."""
    profile = study.with_values_among_tasks(profile, among)
    title = f"Task {profile.position:,} of {profile.testbed.title}"
    backbone = f", {title_of(profile.backbone)} features" if profile.backbone else ""
    description = f"{date_line()} {profile.dataset.title}{backbone}. Task id: {profile.task_id}"
    sections = [*_images(profile), *_measures(profile, among), *_accuracies(profile), *_classes(profile)]
    sections += [*_surroundings(profile), *_supports(sets)]
    return str(html.page(title, sections, [study.command(profile), command(str(profile.task_id))], description))


def command(task: str) -> str:
    """The command that writes the report of a task."""
    return shlex.join(["fsviz", "report", "--task", task])


def _images(profile: TaskProfile) -> list[html.ReportSection]:
    result = next((result for result in profile.results if result.predictions is not None), None)
    classes = []
    for way, name in enumerate(profile.short_names):
        pictures = []
        sentence = ""
        if profile.has_images:
            support, query = (of[0, way][of[0, way] != PAD] for of in (profile.tasks.support, profile.tasks.query))
            pictures = [
                (words, strip(profile.dataset, [int(i) for i in ids[:MAX_IMAGES]]))
                for words, ids in (("support", support), ("queries", query))
            ]
            sentence = _describe_predictions(profile, result, way, len(query))
        classes.append(html.ReportTask(name, sentence, pictures))
    return [html.ReportSection("Classes and images", classes)]


def _describe_predictions(profile: TaskProfile, result: MethodResult | None, way: int, n_query: int) -> str:
    """Sentence on how a method classified the queries of a class."""
    if result is None or result.predictions is None:
        return ""
    counts = study.predicted_pairs(result, len(profile.names))[way]
    wrong = [f"{profile.short_names[i]} {int(n)}" for i, n in enumerate(counts) if n and i != way]
    sentence = f"{result.label} classifies {int(counts[way])} of {n_query} queries correctly"
    return f"{sentence}; predicted as: {', '.join(wrong)}." if wrong else f"{sentence}."


def _measures(profile: TaskProfile, among: ValuesAmongTasks) -> list[html.ReportSection]:
    percentiles = study.percentiles(profile, among)
    rows = [
        {
            "title": item.measure.title,
            "value": item.value,
            "higher_is": item.measure.direction,
            "harder_than": 100 * percentiles[item.measure.name].harder if item.measure.name in percentiles else None,
            "why_not": item.why_not,
        }
        for item in profile.values
    ]
    table = TableData(study.MEASURE_VALUES, rows)
    sections: list[html.ReportSection] = []
    n = len(among.positions)
    if percentiles and n > 1:
        standings = [
            {
                "title": MEASURES[name].title,
                "direction": MEASURES[name].direction,
                "harder": [100 * percentile.harder],
                "value": [percentile.value],
            }
            for name, percentile in percentiles.items()
        ]
        tasks = f"all {n:,}" if among.is_complete else f"{n:,} of {among.n_tasks:,}"
        caption = f"Percentile among {tasks} tasks of the testbed, harder to the right."
        sections.append(html.ReportSection("Percentiles of the measures", figures.plot_percentiles(standings), caption))
    return [*sections, html.ReportSection("Measures", table)]


def _accuracies(profile: TaskProfile) -> list[html.ReportSection]:
    if not profile.results:
        return []
    rows = [
        {
            "label": f"{result.label} · {title_of(result.backbone)}",
            "accuracy": [100 * result.accuracy],
            "mean": 100 * result.mean[0],
            "ci95": 100 * result.mean[1],
            "n": int(np.isfinite(result.testbed_accuracy).sum()),
        }
        for result in profile.results
    ]
    caption = "Dot: this task. Bar: testbed mean, 95% CI over tasks."
    return [html.ReportSection("Accuracy by method", figures.plot_accuracies(rows), caption)]


def _classes(profile: TaskProfile) -> list[html.ReportSection]:
    sections: list[html.ReportSection] = []
    for pairs in study.class_pairs(profile):
        figure = taxonomy_figures.plot_task_distances(pairs.values, profile.names, pairs.title, pairs.max_value, 360)
        sections.append(html.ReportSection(pairs.title, figure, pairs.description))
    return sections


def _surroundings(profile: TaskProfile) -> list[html.ReportSection]:
    sections: list[html.ReportSection] = []
    contexts = study.contexts(profile)
    if contexts is not None:
        caption = "Number of images per context. Shared: queries that share a context with their support."
        sections.append(
            html.ReportSection("Contexts of support and queries", TableData(study.CONTEXTS, contexts), caption)
        )
    gaps = study.gap_rows(study.gaps(profile))
    if gaps:
        caption = "Attribute shift, mean over classes (0 = none), compared with other tasks of the testbed."
        sections.append(html.ReportSection("Attributes of support and queries", TableData(GAPS, gaps), caption))
    return sections


def _supports(sets: SupportSets | None) -> list[html.ReportSection]:
    if sets is None:
        return []
    names = {"random": "this support"}
    rows = [{"supports": names.get(n, n), "accuracy": 100 * float(sets.accuracy(n)[0])} for n in SETS]
    caption = "Hard and easy support sets of a search by ProtoNet accuracy; harder and easier ones may exist."
    return [html.ReportSection("Same queries, other support sets", TableData(ACCURACIES, rows), caption)]
