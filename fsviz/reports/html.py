"""Results as HTML: the table of a page, and a report in one file that needs nothing else. No streamlit here.

Names come from users' datasets: every one of them is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from fsviz.reports import tables


def results_table(results: pd.DataFrame, published: pd.DataFrame | None = None) -> str:
    """The results as papers print them, best per column bold; published rows below, marked as such."""
    marks, columns = tables.best(results), tables.shown_columns(results)
    many = results["testbed"].nunique() > 1
    header = ["Method", "Backbone", *(["Testbed"] if many else []), "Tasks", *[tables.TITLES[c] for c in columns]]
    rows = []
    for i, row in enumerate(results.to_dict("records")):
        cells = [
            _text(tables.name_beside_columns(row)),
            _text(row["backbone"]),
            *([_text(row["testbed"])] if many else []),
        ]
        cells.append(f'<td class="n">{int(row["n_tasks"]):,}</td>')
        cells += [_number(row, c, c in marks and bool(marks[c][i])) for c in columns]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if published is not None and len(published):
        span = len(header)
        source = escape("; ".join(dict.fromkeys(published["source"])))
        rows.append(
            f'<tr class="divider"><td colspan="{span}">Published numbers, not computed here ({source})</td></tr>'
        )
        for row in published.to_dict("records"):
            cells = [
                _text(row["method"]),
                _text(row["backbone"]),
                *(["<td></td>"] if many else []),
                '<td class="n">–</td>',
            ]
            cells += [_number(row, c, False) for c in columns]
            rows.append(f'<tr class="published">{"".join(cells)}</tr>')
    head = "".join(f"<th{'' if i < 2 + many else ' class=n'}>{escape(h)}</th>" for i, h in enumerate(header))
    body = "".join(rows)
    return f'<div class="results"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{TABLE_STYLE}'


def plain_table(table: pd.DataFrame, titles: Mapping[str, str], formats: Mapping[str, str] | None = None) -> str:
    """Some columns of a table, numbers to the right."""
    formats = formats or {}
    head = "".join(f"<th>{escape(title)}</th>" for title in titles.values())
    rows = []
    for row in table.to_dict("records"):
        cells = []
        for column in titles:
            value = row[column]
            if isinstance(value, int | float) and not isinstance(value, bool):
                cells.append(f'<td class="n">{"–" if pd.isna(value) else format(value, formats.get(column, "g"))}</td>')
            else:
                cells.append(_text(value))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(rows)
    return f'<div class="results"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{TABLE_STYLE}'


def report(
    title: str,
    results: pd.DataFrame,
    figures: Sequence[tuple[str, Any, str]],
    recipes: Sequence[Mapping[str, Any]],
    differences: pd.DataFrame | None = None,
    published: pd.DataFrame | None = None,
    made: str = "",
) -> str:
    """One HTML file with plotly.js inside: opens anywhere, also without a network.

    figures  (heading, plotly figure, caption) in the order they are shown
    recipes  one dictionary a run: what was run, to run it again
    """
    from plotly.io import to_html
    from plotly.offline import get_plotlyjs

    parts = [f"<h1>{escape(title)}</h1>", f"<p class='made'>{escape(made)}</p>" if made else ""]
    parts += ["<h2>Results</h2>", results_table(results, published)]
    parts.append(
        "<p class='caption'>Accuracy in percent with 95% intervals over tasks; bold is the best of a column among rows "
        "of the same tasks. Q1 holds the quarter of tasks whose classes are closest in meaning, Q4 those farthest "
        "apart.</p>"
    )
    for heading, figure, caption in figures:
        figure.update_layout(template="plotly_white")
        parts.append(f"<h2>{escape(heading)}</h2>")
        parts.append(to_html(figure, full_html=False, include_plotlyjs=False, config={"displaylogo": False}))
        parts.append(f"<p class='caption'>{escape(caption)}</p>")
    if differences is not None and len(differences):
        parts.append("<h2>Paired differences, task by task</h2>")
        parts.append(plain_table(differences, DIFFERENCE_TITLES, DIFFERENCE_FORMATS))
        parts.append(
            "<p class='caption'>p is the larger of a paired t test and Wilcoxon's signed-rank test, corrected for the "
            "number of comparisons (Holm).</p>"
        )
    parts.append("<h2>How to run it again</h2>")
    for recipe in recipes:
        rows = "".join(f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in recipe.items())
        parts.append(f'<table class="recipe">{rows}</table>')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{_REPORT_STYLE}'
        f"<script>{get_plotlyjs()}</script></head><body>{''.join(parts)}</body></html>"
    )


DIFFERENCE_TITLES = {
    "name": "Method",
    "reference": "against",
    "difference": "difference (points)",
    "ci95": "± 95%",
    "wins": "tasks won",
    "ties": "tied",
    "losses": "lost",
    "p_holm": "p (Holm)",
    "verdict": "",
}
DIFFERENCE_FORMATS = {"difference": "+.2f", "ci95": ".2f", "wins": ",d", "ties": ",d", "losses": ",d", "p_holm": ".2g"}


def _text(value: Any) -> str:
    return f"<td>{escape(str(value))}</td>"


def _number(row: Mapping[str, Any], column: str, bold: bool) -> str:
    value = row.get(column)
    if value is None or pd.isna(value):
        return '<td class="n">–</td>'
    text = f"{value:.2f}"
    half = row.get("ci95") if column == "accuracy" else None
    if half is not None and not pd.isna(half):
        text += f" <small>± {half:.2f}</small>"
    return f'<td class="n">{f"<b>{text}</b>" if bold else text}</td>'


TABLE_STYLE = """
<style>
.results {overflow-x: auto}
.results table {border-collapse: collapse; width: 100%; font-size: .92rem}
.results th {text-align: left; font-weight: 600; border-bottom: 2px solid currentColor; padding: .35rem .7rem}
.results td {padding: .32rem .7rem; border-bottom: 1px solid rgba(128,140,155,.25); overflow-wrap: anywhere}
.results td, .results th {max-width: 22rem}
.results .n {text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums}
.results small {opacity: .7}
.results .divider td {padding-top: .9rem; font-size: .82rem; opacity: .75; font-style: italic}
.results .published td {opacity: .75}
</style>
"""

_REPORT_STYLE = """
<style>
body {font-family: system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem}
body {color: #1c2430; line-height: 1.5}
h1 {font-size: 1.7rem} h2 {font-size: 1.2rem; margin-top: 2.2rem}
.caption, .made {color: #5b6675; font-size: .88rem}
.recipe {border-collapse: collapse; font-size: .85rem; margin-bottom: 1.2rem}
.recipe th {text-align: left; padding: .15rem .9rem .15rem 0; vertical-align: top; font-weight: 600}
.recipe td {overflow-wrap: anywhere}
</style>
"""
