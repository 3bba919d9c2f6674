"""Figures of compared datasets: differences by measure, one measure, and accuracy with hard supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fsviz.figures import significance
from fsviz.figures.palette import ACCENT, INK, QUIET, SERIES, SET_SYMBOLS, meaning
from fsviz.text import escape_plotly, shorten

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "bowtie")
MEAN = meaning("all")  # visible on light, on dark and on the bars
_NOTE = "Filled: significant over classes (95% CI).\nDot: on these classes only. Hollow: not significant."


def plot_differences(table: pd.DataFrame, first: str, selected_measure: str = "") -> go.Figure:
    """A row per measure: how much harder the first dataset is than each other one, in standard deviations of tasks.

    table             measure, title, side, side_title, first_is, here, effect, effect_ci95, difference,
                      difference_ci95, mean
    selected_measure  the marked measure
    Points carry the measure as customdata. Filled points are significant over classes, hollow ones are not, those with
    a dot are significant over tasks only. Measures without any value have no row.
    """
    measures = list(dict.fromkeys(table.loc[np.isfinite(table["effect"]), "measure"]))
    compared = [side for side in dict.fromkeys(table["side"]) if side != first]
    names = dict(zip(table["side"], table["side_title"], strict=True))
    titles = dict(zip(table["measure"], table["title"], strict=True))
    reach = _reach(table)
    figure = go.Figure()
    _add_effects(figure, table, measures, compared, first)
    _add_missing_notes(figure, table, measures, first, reach)
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    _add_directions(figure, names[first], reach)
    figure.update_xaxes(
        title=significance.with_note("standardised difference", _NOTE), range=[-reach, reach], zeroline=False
    )
    if selected_measure in measures:
        row = measures.index(selected_measure)
        figure.add_hrect(y0=row - 0.5, y1=row + 0.5, fillcolor=QUIET, opacity=0.14, line_width=0, layer="below")
    labels = {m: escape_plotly(titles[m]) for m in measures}
    figure.update_yaxes(
        tickvals=list(range(len(measures))),
        ticktext=[f"<b>{label}</b>" if m == selected_measure else label for m, label in labels.items()],
        range=[len(measures) - 0.5, -0.6],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(
        height=min(540, 118 + max(26, 14 * len(compared)) * len(measures)),
        margin={"l": 0, "r": 10, "t": 64, "b": 0},
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0},
        showlegend=True,
        hovermode="closest",
    )
    return figure


def _reach(table: pd.DataFrame) -> float:
    """The end of the symmetric axis of effects: beyond every interval, and at least 0.69."""
    ends = table["effect"].abs() + table["effect_ci95"].fillna(0)
    return 1.15 * max(float(ends[np.isfinite(ends)].max()) if np.isfinite(ends).any() else 1.0, 0.6)


def _add_effects(
    figure: go.Figure, table: pd.DataFrame, measures: Sequence[str], compared: Sequence[str], first: str
) -> None:
    """Adds the points of every compared dataset, one below the other within the row of a measure."""
    names = dict(zip(table["side"], table["side_title"], strict=True))
    means = table[table["side"] == first].set_index("measure")["mean"]
    step = 0.62 / max(len(compared), 1)
    for i, side in enumerate(compared):
        rows = table[table["side"] == side].set_index("measure")
        at = [m for m in measures if np.isfinite(rows.loc[m, "effect"])]
        colour = SERIES[(i + 1) % len(SERIES)]
        figure.add_scatter(
            x=rows.loc[at, "effect"],
            y=[measures.index(m) + step * (i - (len(compared) - 1) / 2) for m in at],
            name=f"vs {escape_plotly(names[side])}",
            mode="markers",
            marker={
                "size": 11,
                "symbol": [SYMBOLS[i % len(SYMBOLS)] + _filling(rows.loc[m]) for m in at],
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            error_x={"type": "data", "array": rows.loc[at, "effect_ci95"], "color": colour, "thickness": 1.5},
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            customdata=[[m] for m in at],
            hovertext=[_difference_hover(rows.loc[m], means[m], names[first], names[side]) for m in at],
            hovertemplate="%{hovertext}<extra></extra>",
        )


def _add_missing_notes(
    figure: go.Figure, table: pd.DataFrame, measures: Sequence[str], first: str, reach: float
) -> None:
    """Adds the names of the datasets for which a measure is not available, at the right end of its row."""
    for position, measure in enumerate(measures):
        rows = table[(table["measure"] == measure) & (table["side"] != first)]
        lacking = rows.loc[~np.isfinite(rows["effect"]), "side_title"]
        if len(lacking):
            figure.add_annotation(
                x=reach,
                y=position,
                text=escape_plotly(f"not available: {', '.join(shorten(n, 26) for n in lacking)}"),
                showarrow=False,
                xanchor="right",
                font={"size": 11, "color": QUIET},
            )


def _add_directions(figure: go.Figure, name: str, reach: float) -> None:
    """Adds the meaning of either end of the axis above it: the first dataset is harder, or easier."""
    for x, text, anchor in ((reach, "harder →", "right"), (-reach, "← easier", "left")):
        figure.add_annotation(
            x=x, y=1, yref="paper", yshift=14, text=f"{escape_plotly(name)} {text}" if x > 0 else text,
            showarrow=False, xanchor=anchor, font={"size": 13},
        )  # fmt: skip


def _filling(row: pd.Series) -> str:
    """Ending of a symbol's name: filled, hollow, or hollow with a dot."""
    return "" if row["first_is"] != "noise" else "-open" if row["here"] == "noise" else "-open-dot"


def _difference_hover(row: pd.Series, mean: float, first: str, second: str) -> str:
    verdict = {"harder": "harder", "easier": "easier", "noise": "not significantly different"}[row["here"]]
    if row["here"] != row["first_is"]:
        verdict += " on these classes only"
    return (
        f"{escape_plotly(row['title'])}: {escape_plotly(first)} is {verdict}<br>vs {escape_plotly(second)}, mean "
        f"{mean:.3g} vs {row['mean']:.3g}, difference {row['difference']:+.3g} ± {row['difference_ci95']:.2g}"
    )


def plot_measure(table: pd.DataFrame, axis: str, higher_is: str) -> go.Figure:
    """One measure by dataset: interquartile range (bar), median (line), mean with 95% CI (dot).

    table  side_title, q1, median, q3, mean, ci95, n_tasks
    """
    names = [escape_plotly(shorten(name, 40)) for name in table["side_title"]]
    colours = [ACCENT] + [QUIET] * (len(table) - 1)
    figure = go.Figure()
    figure.add_bar(
        y=names, x=table["q3"] - table["q1"], base=table["q1"], orientation="h", width=0.5, opacity=0.35,
        marker={"color": colours}, showlegend=False,
        hovertext=[
            f"{escape_plotly(row.side_title)}: median {row.median:.3g},<br>interquartile range {row.q1:.3g} to "
            f"{row.q3:.3g}, {row.n_tasks:,} tasks"
            for row in table.itertuples()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        y=names, x=table["median"], mode="markers", showlegend=False, hoverinfo="skip",
        marker={"symbol": "line-ns", "size": 26, "line": {"width": 3, "color": colours}},
    )  # fmt: skip
    figure.add_scatter(
        y=names, x=table["mean"], mode="markers", showlegend=False,
        marker={"size": 9, "color": MEAN},
        error_x={"type": "data", "array": table["ci95"], "color": MEAN, "thickness": 1.5},
        hovertext=[f"{escape_plotly(r.side_title)}: mean {r.mean:.3g} ± {r.ci95:.2g}" for r in table.itertuples()],
        hovertemplate="%{hovertext}<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(title=f"{escape_plotly(axis)}, higher is {higher_is}")
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_layout(height=110 + 46 * len(table), margin={"l": 0, "r": 10, "t": 10, "b": 0}, bargap=0.3)
    return figure


def plot_suite(computed: Sequence[Mapping[str, Any]], published: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy with hard, random and easy supports, a row per dataset; published results are hollow, below a line.

    computed   title, hard, random, easy and their _ci95
    published  title, setting, source, n_backbones, hard and random with _low and _high over backbones
    """
    figure = go.Figure()
    rows = [*computed, *published]
    labels = _labels(rows)
    for name, symbol in SET_SYMBOLS.items():
        own = [row for row in computed if np.isfinite(row[name])]
        figure.add_scatter(
            x=[row[name] for row in own],
            y=[rows.index(row) for row in own],
            name=name,
            mode="markers",
            marker={"symbol": symbol, "size": 12, "color": meaning(name)},
            error_x={"type": "data", "array": [row[f"{name}_ci95"] or 0 for row in own], "color": meaning(name)},
            hovertext=[
                f"{escape_plotly(row['title'])}, {name} supports: {row[name]:.1f}% correct, {row['n_tasks']:,} tasks"
                for row in own
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
        theirs = [row for row in published if np.isfinite(row.get(name, np.nan))]
        figure.add_scatter(
            x=[row[name] for row in theirs],
            y=[rows.index(row) for row in theirs],
            name=f"{name}, published",
            mode="markers",
            marker={"symbol": f"{symbol}-open", "size": 11, "color": meaning(name), "line": {"width": 2}},
            error_x={
                "type": "data",
                "array": [row[f"{name}_high"] - row[name] for row in theirs],
                "arrayminus": [row[name] - row[f"{name}_low"] for row in theirs],
                "color": QUIET,
                "thickness": 1,
            },
            hovertext=[
                f"{escape_plotly(row['title'])}, {name} supports, {escape_plotly(row['setting'])}: median "
                f"{row[name]:.1f}% correct,<br>{row[f'{name}_low']:.1f} to {row[f'{name}_high']:.1f}% over "
                f"{row['n_backbones']} backbones, published in {escape_plotly(row['source'])}"
                for row in theirs
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=bool(theirs),
        )
    for row in computed:
        figure.add_scatter(
            x=[row["hard"], row["easy"]], y=[rows.index(row)] * 2, mode="lines", line={"color": QUIET, "width": 1},
            showlegend=False, hoverinfo="skip",
        )  # fmt: skip
    if computed and published:
        figure.add_hline(y=len(computed) - 0.5, line={"color": QUIET, "width": 1, "dash": "dot"})
    figure.update_xaxes(title="accuracy (%)", range=[0, 102], ticksuffix="%")
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=labels, range=[len(rows) - 0.4, -0.6], showgrid=False, zeroline=False
    )
    figure.update_layout(
        height=110 + 27 * len(rows),
        margin={"l": 0, "r": 10, "t": 40, "b": 0},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        hovermode="closest",
    )
    return figure


def _labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"<i>{escape_plotly(row['title'])} (published)</i>"
        if row["published"]
        else f"<b>{escape_plotly(row['title'])}</b>"
        for row in rows
    ]
