"""Figures of predicted accuracy: measures and outcome, correlations, ROC curves, sources of variance, labelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, INK, QUIET, SERIES, meaning
from fsviz.text import escape_plotly

MARGIN = {"l": 0, "r": 10, "t": 24, "b": 0}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def plot_scatter(
    x: np.ndarray,
    y: np.ndarray,
    line: tuple[Sequence[float], Sequence[float]] | None,
    x_title: str,
    y_title: str,
    selected_task: int | None = None,
    tasks: np.ndarray | None = None,
    diagonal: bool = False,
    height: int = 380,
) -> go.Figure:
    """One point per task: the outcome in percent by a measure, and a linear fit.

    tasks     (n,) numbers of the tasks, the customdata of their points; selected_task is one of them
    diagonal  whether x is a prediction of y, so that the line y = x is shown
    """
    tasks = np.arange(len(x)) if tasks is None else tasks
    figure = go.Figure()
    if diagonal:
        low, high = float(min(x.min(), y.min())), float(max(x.max(), y.max()))
        figure.add_scatter(
            x=[low, high],
            y=[low, high],
            mode="lines",
            line={"color": QUIET, "dash": "dot", "width": 1.5},
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        customdata=tasks,
        marker={"size": 8, "color": ACCENT, "opacity": 0.5, "line": {"width": 0}},
        selected={"marker": {"opacity": 0.5}},
        unselected={"marker": {"opacity": 0.5}},
        hovertemplate="task %{customdata}: %{y:.1f}% at %{x:.3g}<extra></extra>",
    )
    if line is not None:
        figure.add_scatter(x=line[0], y=line[1], mode="lines", line={"color": QUIET, "width": 2.5}, hoverinfo="skip")
    at = np.flatnonzero(tasks == selected_task) if selected_task is not None else np.arange(0)
    if len(at):
        figure.add_scatter(
            x=x[at],
            y=y[at],
            mode="markers+text",
            text=[f"task {selected_task}"],
            textposition="top center",
            marker={"size": 15, "color": "rgba(0,0,0,0)", "line": {"width": 3, "color": meaning("hard")}},
            hoverinfo="skip",
            cliponaxis=False,
        )
    figure.update_xaxes(title="<br>".join(escape_plotly(line) for line in wrap(x_title, 48)))
    figure.update_yaxes(title=escape_plotly(y_title))
    figure.update_layout(height=height, showlegend=False, margin=MARGIN, hovermode="closest")
    return figure


def plot_correlations(rows: Sequence[Mapping[str, Any]], outcome: str, height: int = 380) -> go.Figure:
    """A bar per measure: its correlation with the outcome, with its sign; the first row is on top.

    rows  name (the customdata), title, pearson, low, high (None if unavailable), why (there is no correlation),
          is_best, needs_classes (hatched), is_expected (the sign)
    """
    rows = list(rows)[::-1]
    values = np.array([0.0 if row["pearson"] is None else row["pearson"] for row in rows])
    low, high = (
        np.array([v if row[end] is None else row[end] for row, v in zip(rows, values, strict=True)])
        for end in ("low", "high")
    )
    colours = [ACCENT if row["is_best"] else QUIET for row in rows]
    figure = go.Figure(
        go.Bar(
            x=values,
            y=list(range(len(rows))),
            orientation="h",
            width=0.4,
            marker={
                "color": colours,
                "line": {"color": colours, "width": 1},
                "pattern": {"shape": ["/" if row["needs_classes"] else "" for row in rows], "fillmode": "replace"},
            },
            error_x={
                "color": INK,
                "type": "data",
                "symmetric": False,
                "array": high - values,
                "arrayminus": values - low,
                "thickness": 2,
                "width": 4,
            },
            customdata=[[row["name"], escape_plotly(row["title"]), _note(row)] for row in rows],
            hovertemplate=f"%{{customdata[1]}}: r = %{{x:.2f}} with {escape_plotly(outcome)}%{{customdata[2]}}"
            "<extra></extra>",
        )
    )
    for at, row in enumerate(rows):
        number = escape_plotly(row["why"]) if row["pearson"] is None else f"r = {row['pearson']:.2f}"
        figure.add_annotation(
            x=0,
            xref="paper",
            xanchor="left",
            y=at + 0.24,
            yanchor="bottom",
            text=f"{escape_plotly(row['title'])}: {number}{'' if row['is_expected'] else ' (unexpected sign)'}",
            font={"color": ACCENT} if row["is_best"] else None,
            showarrow=False,
            align="left",
        )
        figure.add_shape(type="line", x0=0, x1=0, y0=at - 0.28, y1=at + 0.24, line={"color": QUIET, "width": 1})
    reach = max(1.0, float(np.abs(np.concatenate([low, high])).max(initial=0)))
    figure.update_xaxes(title=f"correlation with {escape_plotly(outcome)} (r)", range=[-reach, reach], dtick=0.5)
    figure.update_yaxes(showticklabels=False, showgrid=False, range=[-0.45, len(rows) - 0.1])
    figure.update_layout(height=height, showlegend=False, margin=MARGIN)
    return figure


def _note(row: Mapping[str, Any]) -> str:
    """The end of the hover of a measure: its interval, and whether it needs to know the classes."""
    interval = "" if row["pearson"] is None or row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return interval + (", needs to know the classes" if row["needs_classes"] else "")


def plot_curves(
    curves: Mapping[str, Sequence[tuple[float, float | None, float | None, float | None]]],
    x_title: str,
    y_title: str,
    percent: bool = False,
    height: int = 340,
) -> go.Figure:
    """A line per name with its 95% band: (x, value, low, high), with gaps if there is no value.

    Points carry low, high and "NAME@X" as customdata.
    """
    figure = go.Figure()
    for i, (name, points) in enumerate(curves.items()):
        colour = SERIES[i % len(SERIES)]
        x = np.array([p[0] for p in points], dtype=float)
        y, low, high = (np.array([p[k] for p in points], dtype=float) for k in (1, 2, 3))
        finite = np.isfinite(y)
        band = finite & np.isfinite(low) & np.isfinite(high)
        if band.sum() > 1:
            figure.add_scatter(
                x=np.concatenate([x[band], x[band][::-1]]),
                y=np.concatenate([high[band], low[band][::-1]]),
                mode="lines",
                fill="toself",
                fillcolor=_faint(colour),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        unit = "%" if percent else ""
        figure.add_scatter(
            x=x[finite],
            y=y[finite],
            mode="lines+markers",
            name=escape_plotly(name),
            line={"color": colour, "width": 2.5},
            marker={"symbol": _SYMBOLS[i % len(_SYMBOLS)], "size": 8},
            customdata=[
                [a, b, escape_plotly(f"{name}@{at:g}")]
                for a, b, at in zip(np.nan_to_num(low[finite]), np.nan_to_num(high[finite]), x[finite], strict=True)
            ],
            hovertemplate=f"{escape_plotly(name)} at %{{x:~g}}: %{{y:.2f}}{unit}, 95% CI %{{customdata[0]:.2f}} to "
            "%{customdata[1]:.2f}<extra></extra>",
        )
    figure.update_xaxes(title=escape_plotly(x_title))
    figure.update_yaxes(title=escape_plotly(y_title))
    figure.update_layout(
        height=height,
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={**MARGIN, "t": 50 if len(curves) > 1 else 24},
    )
    return figure


def plot_roc(
    fpr: np.ndarray, tpr: np.ndarray, at: tuple[float, float], carried: tuple[float, float] | None, height: int = 340
) -> go.Figure:
    """ROC curve with the threshold, and the same threshold on the other half of the classes.

    at, carried  (false positive rate, true positive rate) on the fitted and on the other half
    """
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": QUIET, "dash": "dot", "width": 1.5}, hoverinfo="skip"
    )
    figure.add_scatter(
        x=fpr,
        y=tpr,
        mode="lines+markers",
        line={"color": ACCENT, "width": 3},
        marker={"color": ACCENT, "size": 5},
        customdata=np.round(100 * np.asarray(tpr)).astype(int).tolist(),
        hovertemplate="threshold: true positive rate %{y:.0%}, false positive rate %{x:.0%}<extra></extra>",
    )
    for point, text, symbol, position in (
        (at, "threshold", "circle", "bottom right"),
        (carried, "on the other half", "diamond", "top left"),
    ):
        if point is not None:
            figure.add_scatter(
                x=[point[0]],
                y=[point[1]],
                mode="markers+text",
                text=[text],
                textposition=position,
                marker={"size": 13, "color": meaning("hard"), "symbol": symbol},
                hovertemplate=f"{text}: true positive rate %{{y:.0%}}, false positive rate %{{x:.0%}}<extra></extra>",
                cliponaxis=False,
            )
    figure.update_xaxes(title="false positive rate", range=[-0.02, 1.02], tickformat=".0%")
    figure.update_yaxes(title="true positive rate", range=[-0.02, 1.02], tickformat=".0%")
    figure.update_layout(height=height, showlegend=False, margin=MARGIN)
    return figure


def plot_confusion_table(table: np.ndarray, height: int = 300) -> go.Figure:
    """Actually (rows) and predicted (columns) hard and easy tasks: shares of a row, and counts."""
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    rows, columns = ["hard", "easy"], ["predicted hard", "predicted easy"]

    def label(row: int, column: int) -> str:
        n = int(table[row, column])
        mark = "✓" if row == column else "✗"
        return f"{mark} {share[row, column]:.0%}<br>{n:,} task{'s' * (n != 1)}" if table[row].any() else "no such task"

    signed = np.array([[share[0, 0], -share[0, 1]], [-share[1, 0], share[1, 1]]])
    figure = go.Figure(
        go.Heatmap(
            z=signed[::-1],
            x=columns,
            y=rows[::-1],
            text=[[label(i, j) for j in (0, 1)] for i in (1, 0)],
            texttemplate="%{text}",
            textfont={"size": 15},
            colorscale=[[0, meaning("incorrect")], [0.5, "#E3E7EC"], [1, meaning("correct")]],
            zmin=-1,
            zmax=1,
            showscale=False,
            xgap=4,
            ygap=4,
            hoverinfo="none",  # "skip" would ignore clicks, too
        )
    )
    figure.update_xaxes(side="top", showgrid=False)
    figure.update_yaxes(title="actual", showgrid=False)
    figure.update_layout(height=height, margin={**MARGIN, "t": 30})
    return figure


def plot_spread(rows: Sequence[Mapping[str, Any]], height: int = 250) -> go.Figure:
    """Standard deviation of accuracy in points with 95% CI: random tasks, fixed classes, fixed support."""
    rows = sorted(rows, key=lambda row: row["std"])
    figure = go.Figure(
        go.Scatter(
            x=[100 * row["std"] for row in rows],
            y=[escape_plotly(row["cause"]) for row in rows],
            mode="markers+text",
            text=[f"{100 * row['std']:.1f}" for row in rows],
            textposition="top center",
            marker={"size": 12, "color": ACCENT},
            error_x={"type": "data", "array": [100 * (row["ci95"] or 0) for row in rows], "width": 5, "color": QUIET},
            customdata=[escape_plotly(row["cause"]) for row in rows],
            hovertemplate="%{y}: SD %{x:.2f} points<extra></extra>",
            cliponaxis=False,
        )
    )
    figure.update_xaxes(title="SD of accuracy (points)", rangemode="tozero")
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    figure.update_layout(height=height, margin=MARGIN)
    return figure


def plot_components(components: Sequence[Mapping[str, Any]], height: int = 190) -> go.Figure:
    """One stacked bar: shares of the variance of accuracy by source."""
    figure = go.Figure()
    for component, colour in zip(components, (meaning("semantic"), meaning("support"), meaning("query")), strict=True):
        share = 100 * component["share"]
        figure.add_bar(
            x=[share],
            y=[""],
            orientation="h",
            name=escape_plotly(component["cause"]),
            marker_color=colour,
            text=f"<b>{escape_plotly(component['cause'])}</b><br>{share:.0f}%" if share > 12 else "",
            textposition="inside",
            textangle=0,
            insidetextanchor="middle",
            textfont={"color": "#FFFFFF", "size": 14},
            customdata=[escape_plotly(component["cause"])],
            hovertemplate=f"{escape_plotly(component['cause'])}: {share:.0f}% of the variance, "
            f"95% CI {100 * component['low']:.0f} to {100 * component['high']:.0f}%<extra></extra>",
        )
    figure.update_xaxes(title="share of the variance of accuracy (%)", range=[0, 100])
    figure.update_yaxes(showticklabels=False)
    figure.update_layout(
        height=height,
        barmode="stack",
        margin={**MARGIN, "t": 40},
        legend={"orientation": "h", "y": 1.05, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    )
    return figure


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
