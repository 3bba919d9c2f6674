"""The report of runs: the page Runs as one file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.analyses import run_comparison
from fsviz.datasets import images
from fsviz.difficulty import measures
from fsviz.errors import FsvizError
from fsviz.figures import runs as figures
from fsviz.figures import significance
from fsviz.figures import support_sets as support_figures
from fsviz.records import PAD, Dataset
from fsviz.reports import html
from fsviz.studies import support_sets
from fsviz.tables import TableData
from fsviz.tasks import draw
from fsviz.text import split_title

PICTURE_PX = 72
MAX_CLASSES = 10  # of a task in a report, an image each
N_TASKS = 3  # hardest and easiest tasks, as many of each
WINDOW = 10  # percent of the tasks in a rolling mean

Figure = tuple[str, Any, str]  # heading, plotly figure, caption


def date_line() -> str:
    return f"Made by fsviz on {time.strftime('%d %B %Y, %H:%M')}."


@dataclass(frozen=True)
class MeasureSection:
    """Accuracy by a measure of the tasks, as page and report show it; empty if the tasks have no measure.

    figure        with its heading and caption
    correlations  a row per method, in numbers
    caption       of the correlations
    """

    figure: Figure | None = None
    correlations: pd.DataFrame = field(default_factory=pd.DataFrame)
    caption: str = ""


@dataclass(frozen=True)
class Published:
    """Published rows next to the results, and a note about them."""

    rows: pd.DataFrame | None = None
    note: str = ""


def of_method_runs(
    method_runs: Sequence[run_comparison.MethodRun], recipes: Sequence[html.RunRecipe], over: str | None = None
) -> str:
    """The report of evaluated methods, with the settings that the page Runs begins with."""
    groups, notes = run_comparison.group_by_tasks(method_runs)
    comparison = run_comparison.compare(groups, over=over or "", notes=notes)
    names = run_comparison.measures_of(comparison.main)
    section = measure_section(comparison, names[0]) if names else MeasureSection()
    return report(comparison, recipes, section)


def measure_section(comparison: run_comparison.RunComparison, measure: str) -> MeasureSection:
    """Accuracy by a measure, and the correlation of both."""
    correlations = run_comparison.correlations(comparison.main, measure, comparison.over)
    caption = describe_correlations(correlations, measures.lower_title(measure))
    return MeasureSection(by_measure(comparison.main, measure, comparison.over), correlations, caption)


def by_measure(main: Sequence[run_comparison.MethodRun], measure: str, over: str) -> Figure:
    """Accuracy by a measure of the tasks, with intervals over tasks, images or classes."""
    window = run_comparison.window_of(main, WINDOW)
    curves = run_comparison.curves(main, measure, window, over)
    values = main[0].measures[measure]
    edges = np.quantile(values[np.isfinite(values)], [0, 0.25, 0.5, 0.75, 1])
    points = run_comparison.single_tasks(main[0], measure) if len(main) == 1 else None
    title = measures.lower_title(measure)
    figure = figures.plot_accuracy_by_measure(
        curves, points, list(pairwise(edges)), measures.lower_title(measure), title, banded=next(iter(curves))
    )
    return (
        f"Accuracy by {title}",
        figure,
        f"Rolling mean over {window:,} of {int(main[0].done.sum()):,} tasks sorted by {title}, with the 95% band of "
        f"{next(iter(curves))} over {over}. Dotted lines separate quarters of the tasks. "
        f"{draw.explain(measure, {})}",
    )


def describe_correlations(correlations: pd.DataFrame, measure: str) -> str:
    """Caption of a table of correlations."""
    over = correlations["over"].iloc[0] if len(correlations) else "tasks"
    interval = "no CI over images" if over == "images" else f"95% CI over {over}"
    return f"Correlation of {measure} with accuracy ({correlations['n_tasks'].max():,} tasks, {interval})."


def figures_of(comparison: run_comparison.RunComparison, first: Figure | None = None) -> list[Figure]:
    """The exported figures, `first` before the others."""
    main, over = comparison.main, comparison.over
    exported = [first] if first else []
    rows = comparison.main_table
    exported.append(
        (
            "Mean accuracies",
            figures.plot_accuracies(rows["name"], rows["accuracy"], rows["ci95"]),
            f"The same {int(main[0].done.sum()):,} tasks, 95% CI over {over}.",
        )
    )
    ranks = run_comparison.ranks(main)
    if run_comparison.measures_of(main) and len(ranks) and len(main) > 1:
        title = f"Ranks by quarter of {measures.lower_title(run_comparison.QUARTERS)}"
        exported.append((title, figures.plot_ranks(ranks), "1 is best."))
    if len(comparison.differences):
        caption = f"95% CI over {over}. {significance.HOLM}"
        exported.append(("Paired differences", figures.plot_differences(comparison.differences), caption))
    return exported


def report(
    comparison: run_comparison.RunComparison,
    recipes: Sequence[html.RunRecipe],
    section: MeasureSection = MeasureSection(),
    published: Published = Published(),
) -> str:
    """The report of a comparison as one HTML file."""
    names = dict.fromkeys(_title(run.dataset) for run in comparison.runs)
    return html.run_report(
        html.RunReport(
            title=f"Few-shot evaluation on {', '.join(names)}",
            results=comparison.table,
            figures=figures_of(comparison, section.figure),
            recipes=recipes,
            differences=comparison.differences,
            published=published.rows,
            date_line=date_line(),
            over=run_comparison.CI_UNITS[comparison.over],
            pairs={", ".join((_title(key[0]), key[1])): pair for key, pair in comparison.pairs.items()},
            tested=run_comparison.describe_p(comparison.over),
            correlations=section.correlations,
            correlated=section.caption,
            caveat=published.note,
            tasks=_hardest_and_easiest(comparison.main[0]),
            notes=comparison.notes,
        )
    )


def _hardest_and_easiest(line: run_comparison.MethodRun) -> list[html.ReportTask]:
    """Some tasks of the most accurate method, with the first support and query image of each class."""
    try:
        dataset = datasets.load(line.dataset)
    except FsvizError:
        return []
    names, tasks = pd.Series(dataset.short_names()), line.tasks
    tasks_of_report = []
    for kind, which in zip(("Hard", "Easy"), run_comparison.extremes(line, N_TASKS), strict=True):
        for task in which:
            assert tasks is not None  # it has extremes
            ids = tasks.class_ids[task]
            sides = (("support, one image per class", tasks.support), ("queries", tasks.query))
            pictures = [(title, strip(dataset, faces(of_class[task], MAX_CLASSES))) for title, of_class in sides]
            heading = f"{kind}: task {task:,}, {100 * line.accuracy[task]:.0f}% correct ({line.label})"
            tasks_of_report.append(
                html.ReportTask(heading, ", ".join(names.reindex(ids[ids != PAD]).fillna("?")), pictures)
            )
    return tasks_of_report


def faces(image_ids: np.ndarray, most: int) -> list[int]:
    """The first image of each class (W, n)."""
    return [int(ids[ids != PAD][0]) for ids in image_ids if (ids != PAD).any()][:most]


def strip(dataset: Dataset, image_ids: Sequence[int]) -> str:
    """Images side by side as text in the file; "" if there are no pixels."""
    if not dataset.has_pixels or not len(image_ids):
        return ""
    return images.data_uri(images.image_strip(dataset, image_ids, PICTURE_PX), 70)


def _title(name: str) -> str:
    try:
        return datasets.title(name)
    except FsvizError:
        return name


# Support sets --------------------------------------------------------------------------------------------------------


def of_support_sets(sets: support_sets.SupportSets, run: str) -> str:
    """The report of hard, random and easy support sets."""
    numbers = support_sets.summary(sets)
    spec = sets.spec
    figure = support_figures.plot_distribution(numbers["histogram"], numbers["accuracy"], numbers["ci95"])
    caption = (
        f"{len(sets):,} tasks of {split_title(spec['split'])}: the same queries with hard, random and easy support "
        f"images. Means with 95% CI over tasks. {numbers['failed']}".strip()
    )
    parts = [
        html.ReportSection("Accuracy with hard, random and easy supports", figure, caption),
        html.ReportSection(
            "In numbers", TableData(support_sets.ACCURACIES, support_sets.accuracy_rows(numbers)), f"Run {run}."
        ),
    ]
    title = f"Hard, random and easy support sets of {_title(spec['dataset'])}"
    return str(html.page(title, parts, [support_sets.command(spec)], date_line()))
