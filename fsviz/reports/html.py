"""Results as HTML: the tables of a page, and reports in one file that need nothing else. No streamlit here.

Names come from users' datasets: Jinja2 escapes whatever enters a template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from fsviz.reports import tables
from fsviz.tables import Rows, Table, TableData, cells


@dataclass(frozen=True)
class RunRecipe:
    """Settings of a run (pairs of title and value), and the command that repeats it ("" if none can)."""

    run: str
    words: Sequence[tuple[str, str]]
    command: str = ""


@dataclass(frozen=True)
class ReportTask:
    """One task in a report: a heading, its classes, and pictures (title, data URI)."""

    heading: str
    classes: str
    pictures: Sequence[tuple[str, str]] = ()


def results_table(results: pd.DataFrame, published: pd.DataFrame | None = None) -> Markup:
    """The results as papers print them, best per column bold; published rows below, marked as such."""
    body, numbers = tables.printed(results)
    source, below = "", []
    if published is not None and len(published):
        source = "; ".join(dict.fromkeys(published["source"]))
        rows = published.assign(name=published["method"], testbed="", n_tasks=float("nan"))
        below = tables.printed(rows, like=results)[0].to_numpy().tolist()
    return _rendered(
        "results",
        header=list(body),
        numbers=numbers,
        rows=body.to_numpy().tolist(),
        bold=tables.bold(results, body).to_numpy().tolist(),
        source=source,
        published=below,
    )


def side_by_side_table(pairs: pd.DataFrame, published: pd.DataFrame | None = None) -> Markup:
    """Methods on semantic and on uniform tasks, as Bennequin et al. (2022) print them; published rows below."""
    printed = published if published is not None and len(published) else None
    body, marks = tables.side_by_side(pairs, backbone=printed is not None or None)
    groups: list[list[Any]] = []
    for group, _ in body:
        if groups and groups[-1][0] == group:
            groups[-1][1] += 1
        else:
            groups.append([group, 1])
    return _rendered(
        "results",
        groups=groups,
        header=[title for _, title in body],
        numbers=[bool(group) for group, _ in body],
        rows=body.to_numpy().tolist(),
        bold=marks.to_numpy().tolist(),
        rules=(pairs["kind"] != pairs["kind"].shift(fill_value=pairs["kind"].iloc[0])).tolist(),
        source="; ".join(dict.fromkeys(printed["source"])) if printed is not None else "",
        published=tables.side_by_side(printed, backbone=True)[0].to_numpy().tolist() if printed is not None else [],
    )


def declared_table(table: Table, rows: Rows) -> Markup:
    """Any declared table, numbers to the right."""
    body, numbers = cells(table, rows)
    return _rendered("results", header=list(body), numbers=numbers, rows=body.to_numpy().tolist())


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The contents of the report of compared runs.

    results    a row per method
    figures    (heading, plotly figure, caption) in the order they are shown
    recipes    one per run: what was run, to run it again
    date_line  when the report was made
    over       what the intervals of the results are over, in words
    pairs      heading -> semantic next to uniform tasks (see tables.side_by_side)
    tested     what the p of the differences is, in a sentence
    correlations, correlated  rows as tables.CORRELATIONS names them, and a caption
    caveat     what to know of the published rows
    tasks      single tasks with their pictures, which must be data URIs: a report asks no network for anything
    notes      sentences above the results: what is not finished
    """

    title: str
    results: pd.DataFrame
    figures: Sequence[tuple[str, Any, str]]
    recipes: Sequence[RunRecipe]
    differences: pd.DataFrame | None = None
    published: pd.DataFrame | None = None
    date_line: str = ""
    over: str = "over tasks of these images"
    pairs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    tested: str = ""
    correlations: pd.DataFrame = field(default_factory=pd.DataFrame)
    correlated: str = ""
    caveat: str = ""
    tasks: Sequence[ReportTask] = ()
    notes: Sequence[str] = ()


def run_report(contents: RunReport) -> str:
    """One HTML file with plotly.js inside: opens anywhere, also without a network."""
    from plotly.offline import get_plotlyjs

    differences, correlations, published = contents.differences, contents.correlations, contents.published
    compared = differences is not None and len(differences) > 0
    return _rendered(
        "report",
        title=contents.title,
        date_line=contents.date_line,
        plotly=Markup(get_plotlyjs()),
        over=contents.over,
        results=results_table(contents.results, published),
        pairs=[(heading, side_by_side_table(pair)) for heading, pair in contents.pairs.items()],
        figures=[(heading, _figure_html(figure), caption) for heading, figure, caption in contents.figures],
        differences=declared_table(tables.DIFFERENCES, differences) if compared else "",
        tested=contents.tested,
        correlations=declared_table(tables.CORRELATIONS.without("over"), correlations) if len(correlations) else "",
        correlated=contents.correlated,
        recipes=contents.recipes,
        caveat=contents.caveat if published is not None and len(published) else "",
        tasks=[_own_pictures(task) for task in contents.tasks],
        notes=contents.notes,
    )


@dataclass(frozen=True)
class ReportSection:
    """A section of a page: a plotly figure, a table, or pictures (ReportTask), and the caption below it."""

    heading: str
    content: Any = None
    caption: str = ""


def page(title: str, sections: Sequence[ReportSection], commands: Sequence[str] = (), date_line: str = "") -> Markup:
    """Figures, tables and pictures as one file with plotly.js inside, and the commands that give the same."""
    from plotly.offline import get_plotlyjs

    rendered = [(section, *_content(section.content)) for section in sections]
    has_figures = any(body and not table for _, body, table, _ in rendered)
    script = Markup(get_plotlyjs()) if has_figures else ""
    return _rendered("page", title=title, date_line=date_line, plotly=script, sections=rendered, commands=commands)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A lesson on a worksheet.

    examples  title -> rows of a name and a strip of images (data URI, "" without pixels)
    figure    plotly figure above the question, None for none
    choices   letter -> answer
    correct   the answer, with its letter
    solution  plotly figure or table with all numbers
    """

    heading: str
    text: str
    examples: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    figure: Any
    question: str
    choices: Sequence[tuple[str, str]]
    correct: str
    takeaway: str
    solution: Any


def worksheet(title: str, sheets: Sequence[Sheet], left_out: Sequence[str], date_line: str) -> Markup:
    """Lessons to print, a page each, and their answers on separate pages at the end."""
    from plotly.offline import get_plotlyjs

    rendered = [
        (sheet, None if sheet.figure is None else _figure_html(sheet.figure), _content(sheet.solution)[0])
        for sheet in sheets
    ]
    plotly = Markup(get_plotlyjs())
    return _rendered("worksheet", title=title, date_line=date_line, plotly=plotly, sheets=rendered, left_out=left_out)


def _content(content: Any) -> tuple[Markup | None, bool, Sequence[ReportTask]]:
    """The contents of a section: HTML, whether that is a table, and pictures."""
    if isinstance(content, TableData):
        return declared_table(content.table, content.rows), True, ()
    if isinstance(content, list | tuple):
        return None, False, [_own_pictures(task) for task in content]
    return (None if content is None else _figure_html(content)), False, ()


def _own_pictures(task: ReportTask) -> ReportTask:
    """Without pictures that are elsewhere: a page asks no network for anything."""
    return replace(task, pictures=[p for p in task.pictures if p[1].startswith("data:image/")])


def _figure_html(figure: Any) -> Markup:
    from plotly.io import to_html

    light = type(figure)(figure).update_layout(template="plotly_white")
    return Markup(to_html(light, full_html=False, include_plotlyjs=False, config={"displaylogo": False}))


@cache
def _templates() -> jinja2.Environment:
    folder = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    return jinja2.Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)


def _rendered(template: str, **values: Any) -> Markup:
    return Markup(_templates().get_template(f"{template}.html").render(values))
