"""Exports of a comparison: CSV, JSON, LaTeX, Markdown, figures and the HTML report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from fsviz import jobs
from fsviz.analyses import run_comparison
from fsviz.reports import html as report
from fsviz.reports import runs as run_report
from fsviz.reports import tables
from fsviz.text import csv
from fsviz.ui.pages.runs.curves import PageExports
from fsviz.ui.pages.runs.results import only_over_tasks
from fsviz.ui.parts import (
    access,
    export,
    recorded,
    run_panel,
)
from fsviz.ui.parts.shell import plain


def show_exports(
    table: pd.DataFrame,
    lines: list[run_comparison.Line],
    main: list[run_comparison.Line],
    differences: pd.DataFrame,
    published: pd.DataFrame | None,
    chosen: Sequence[jobs.Run],
    over: str,
    pairs: Mapping[tuple[str, str], pd.DataFrame],
    shown: PageExports,
    caveat: str,
    notes: Sequence[str],
) -> None:
    asked = () if over == recorded.widest(lines) else ("--over", over)
    export.command("report", *(run.id for run in chosen), *asked)
    st.subheader("Take it along", anchor=False)
    stem = f"fsviz-{chosen[0].id}" if len(chosen) == 1 else f"fsviz-{len(chosen)}-runs"
    rows = table.drop(columns=["digest"])
    recipes = [_recipe(run) for run in chosen]
    beside = list(pairs.values())

    def as_json() -> str:
        body = {
            "results": tables.to_records(rows),
            "differences": tables.to_records(differences),
            "intervals_over": over,
            "correlations": tables.to_records(shown.correlations),
            "side_by_side": {", ".join(key): tables.to_records(pair) for key, pair in pairs.items()},
            "runs": [_record(run) for run in chosen],
        }
        if published is not None:
            body["published"] = tables.to_records(published)
        return json.dumps(body, indent=2)

    def as_report() -> str:
        return run_report.composed(
            *(lines, main, table, differences, recipes, over, pairs, shown.figure, shown.told, shown.correlated),
            only_over_tasks(published, over),
            caveat,
            notes,
        )

    def as_figures() -> str:
        found = run_report.figures_of(table, main, differences, over, shown.figure)
        return json.dumps({title: json.loads(figure.to_json()) for title, figure, _ in found})

    columns = st.columns([1, 1, 1, 1.2, 1, 1.4])  # by their labels, which a narrow page would cut
    for column, (label, data, suffix, mime) in zip(
        columns,
        (
            ("CSV", lambda: csv(rows), "csv", "text/csv"),
            ("JSON", as_json, "json", "application/json"),
            (
                "LaTeX",
                lambda: "\n".join([tables.to_latex(table), *map(tables.pairs_to_latex, beside)]),
                "tex",
                "text/plain",
            ),
            (
                "Markdown",
                lambda: "\n".join([tables.to_markdown(table), *map(tables.pairs_to_markdown, beside)]),
                "md",
                "text/markdown",
            ),
            ("Figures", as_figures, "plotly.json", "application/json"),
            ("HTML report", as_report, "html", "text/html"),
        ),
        strict=True,
    ):
        column.download_button(
            label, data, f"{stem}.{suffix}", mime, key=f"export_{suffix}", width="stretch", on_click="ignore"
        )
    st.caption(
        "The report is one file with its figures and pictures inside; it opens without a network. Figures are Plotly "
        "JSON by their titles, for a notebook or another page."
    )
    with st.popover("How to run the compared runs again", width="content"):
        for recipe in recipes:
            st.markdown(f"**Run {plain(recipe.run)}**")
            st.markdown("\n".join(f"- {plain(title)}: {plain(words)}" for title, words in recipe.words))
            if recipe.command:
                st.code(recipe.command, language="bash", wrap_lines=True)


def _recipe(run: jobs.Run) -> report.Recipe:
    words = [*run_comparison.in_words(run.spec), ("Took", run_panel.duration(run.seconds))]
    return report.Recipe(run.id, words, access.without_paths(run_comparison.command(run.spec)))


def _record(run: jobs.Run) -> dict[str, Any]:
    keep = ("dataset", "backbones", "testbed_name", "recipe", "samplers", "seed", "device", "threads")
    return {
        "run": run.id,
        "state": run.state,
        "seconds": round(run.seconds, 1),
        **{name: run.spec[name] for name in keep if name in run.spec},
        "methods": [{name: one[name] for name in ("name", "parameters")} for one in run.spec["methods"]],
    }
