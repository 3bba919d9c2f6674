"""Exports of a comparison: CSV, JSON, LaTeX, Markdown, figures and the HTML report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.reports import html as report
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.text import csv
from fsviz.ui.pages.runs.results import only_over_tasks
from fsviz.ui.parts import (
    access,
    export,
    recorded,
    run_panel,
)
from fsviz.ui.parts.shell import escape

FORMATS = ("CSV", "JSON", "LaTeX", "Markdown", "Figures", "HTML report")


def show_exports(
    comparison: run_comparison.RunComparison,
    selected_runs: Sequence[jobs.Run],
    section: run_report.MeasureSection,
    published: run_report.Published,
) -> None:
    """Downloads of the comparison, and the commands that reproduce it."""
    over = comparison.over
    flags = () if over == recorded.widest(comparison.runs) else ("--over", over)
    export.command("report", *(run.id for run in selected_runs), *flags)
    st.subheader("Export", anchor=False)
    stem = f"fsviz-{selected_runs[0].id}" if len(selected_runs) == 1 else f"fsviz-{len(selected_runs)}-runs"
    recipes = [_recipe(run) for run in selected_runs]
    files: list[tuple[Callable[[], str], str, str]] = [
        (lambda: csv(comparison.table.drop(columns=["digest"])), "csv", "text/csv"),
        (lambda: _as_json(comparison, selected_runs, section, published), "json", "application/json"),
        (lambda: _as_text(comparison, tables.to_latex, tables.pairs_to_latex), "tex", "text/plain"),
        (lambda: _as_text(comparison, tables.to_markdown, tables.pairs_to_markdown), "md", "text/markdown"),
        (lambda: _as_figures(comparison, section), "plotly.json", "application/json"),
        (lambda: _as_report(comparison, recipes, section, published), "html", "text/html"),
    ]
    columns = st.columns([1, 1, 1, 1.2, 1, 1.4])  # by their labels, which a narrow page would cut
    for column, label, (data, suffix, mime) in zip(columns, FORMATS, files, strict=True):
        column.download_button(
            label, data, f"{stem}.{suffix}", mime, key=f"export_{suffix}", width="stretch", on_click="ignore"
        )
    st.caption("HTML report: self-contained, opens offline. Figures: Plotly JSON.")
    with st.popover("Reproduce", width="content"):
        for recipe in recipes:
            st.markdown(f"**Run {escape(recipe.run)}**")
            st.markdown("\n".join(f"- {escape(title)}: {escape(words)}" for title, words in recipe.words))
            if recipe.command:
                st.code(recipe.command, language="bash", wrap_lines=True)


def _as_json(
    comparison: run_comparison.RunComparison,
    selected_runs: Sequence[jobs.Run],
    section: run_report.MeasureSection,
    published: run_report.Published,
) -> str:
    body = {
        "results": tables.to_records(comparison.table.drop(columns=["digest"])),
        "differences": tables.to_records(comparison.differences),
        "intervals_over": comparison.over,
        "correlations": tables.to_records(section.correlations),
        "side_by_side": {", ".join(key): tables.to_records(pair) for key, pair in comparison.pairs.items()},
        "runs": [_record(run) for run in selected_runs],
    }
    if published.rows is not None:
        body["published"] = tables.to_records(published.rows)
    return json.dumps(body, indent=2)


def _as_text(
    comparison: run_comparison.RunComparison,
    of_results: Callable[[pd.DataFrame], str],
    of_pairs: Callable[[pd.DataFrame], str],
) -> str:
    return "\n".join([of_results(comparison.table), *map(of_pairs, comparison.pairs.values())])


def _as_figures(comparison: run_comparison.RunComparison, section: run_report.MeasureSection) -> str:
    figures = run_report.figures_of(comparison, section.figure)
    return json.dumps({title: json.loads(figure.to_json()) for title, figure, _ in figures})


def _as_report(
    comparison: run_comparison.RunComparison,
    recipes: Sequence[report.RunRecipe],
    section: run_report.MeasureSection,
    published: run_report.Published,
) -> str:
    rows = only_over_tasks(published.rows, comparison.over)
    return run_report.report(comparison, recipes, section, run_report.Published(rows, published.note))


def _recipe(run: jobs.Run) -> report.RunRecipe:
    words = [*run_comparison.describe(run.spec), ("Took", run_panel.duration(run.seconds))]
    return report.RunRecipe(run.id, words, access.without_paths(run_comparison.command(run.spec)))


def _record(run: jobs.Run) -> dict[str, Any]:
    names = ("dataset", "backbones", "testbed_name", "recipe", "samplers", "seed", "device", "threads")
    return {
        "run": run.id,
        "state": run.state,
        "seconds": round(run.seconds, 1),
        **{name: run.spec[name] for name in names if name in run.spec},
        "methods": [{key: method[key] for key in ("name", "parameters")} for method in run.spec["methods"]],
    }
