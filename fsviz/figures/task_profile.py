"""Figures of one task: percentiles of its measures in the testbed, accuracy by method, confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, meaning
from fsviz.text import escape_plotly, short_names

SECOND = meaning("semantic")  # the second of two tasks
_MIDDLE = 50


def plot_percentiles(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ("This task",)) -> go.Figure:
    """One line per measure: difficulty percentile of a task in its testbed.

    rows   title, direction, and per task of `names`: harder (percentile, NaN if not available) and value
    names  one task, or two
    """
    figure = go.Figure()
    titles = [escape_plotly(row["title"]) for row in rows]
    for which, (name, colour) in enumerate(zip(names, (ACCENT, SECOND), strict=False)):
        harder = np.array([row["harder"][which] for row in rows], dtype=float)
        hover = [
            f"{escape_plotly(row['title'])}: {row['value'][which]:.4g}, harder than {h:.0f}% of tasks"
            f"<br>Higher is {row['direction']}."
            for row, h in zip(rows, harder, strict=True)
        ]
        if len(names) == 1:
            for y, h in zip(titles, harder, strict=True):
                side = "hard" if h > _MIDDLE else "easy"
                line = {"color": meaning(side), "width": 5}
                figure.add_trace(
                    go.Scatter(x=[_MIDDLE, h], y=[y, y], mode="lines", line=line, opacity=0.35, hoverinfo="skip")
                )
        figure.add_trace(
            go.Scatter(
                x=harder,
                y=titles,
                mode="markers+text" if len(names) == 1 else "markers",
                name=escape_plotly(name),
                text=[f"{h:.0f}%" if np.isfinite(h) else "" for h in harder],
                textposition="top center",
                marker={"size": 13, "color": colour, "symbol": ("circle", "diamond")[which]},
                customdata=hover,
                hovertemplate="%{customdata}<extra></extra>",
                cliponaxis=False,
                showlegend=len(names) > 1,
            )
        )
    figure.add_vline(x=_MIDDLE, line={"color": QUIET, "width": 1, "dash": "dot"})
    figure.update_xaxes(
        range=[0, 100],
        tickvals=[0, 25, 50, 75, 100],
        ticktext=["0<br>easiest", "25", "50", "75", "100<br>hardest"],
        title="difficulty percentile in the testbed (%)",
    )
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=6, categoryorder="array")
    figure.update_yaxes(categoryarray=titles)
    figure.update_layout(
        height=min(max(100 + 28 * len(rows), 300), 540),
        showlegend=len(names) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 0, "r": 24, "t": 28 if len(names) == 1 else 50, "b": 0},
    )
    return figure


def plot_accuracies(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ("This task",)) -> go.Figure:
    """One line per method: accuracy on the task, and the testbed mean with its 95% CI, in percent.

    rows  label, accuracy per task of `names`, mean, ci95 and n (NaN and 0 if not available)
    """
    labels = [escape_plotly(row["label"]) for row in rows]
    figure = go.Figure()
    mean = np.array([row["mean"] for row in rows], dtype=float)
    half_width = np.nan_to_num(np.array([row["ci95"] for row in rows], dtype=float))
    if np.isfinite(mean).any():
        figure.add_trace(
            go.Scatter(
                x=mean,
                y=labels,
                mode="markers",
                name="testbed mean",
                marker={"symbol": "line-ns-open", "size": 15, "color": QUIET, "line": {"width": 3}},
                error_x={"type": "data", "array": half_width, "thickness": 2, "width": 4, "color": QUIET},
                customdata=[
                    f"{row['mean']:.1f} ± {row['ci95']:.1f}% correct, mean of {row['n']:,} tasks" for row in rows
                ],
                hovertemplate="%{y}: %{customdata}<extra></extra>",
            )
        )
    for which, (name, colour) in enumerate(zip(names, (ACCENT, SECOND), strict=False)):
        values = np.array([row["accuracy"][which] for row in rows], dtype=float)
        figure.add_trace(
            go.Scatter(
                x=values,
                y=labels,
                mode="markers+text" if len(names) == 1 else "markers",
                name=escape_plotly(name),
                text=[f"{v:.0f}%" if np.isfinite(v) else "" for v in values],
                textposition="top center",
                marker={"size": 12, "color": colour, "symbol": ("circle", "diamond")[which]},
                hovertemplate=f"%{{y}}: %{{x:.1f}}% correct, {escape_plotly(name)}<extra></extra>",
                cliponaxis=False,
            )
        )
    values = np.concatenate([mean - half_width, *(np.array([row["accuracy"] for row in rows], dtype=float).T)])
    low = max(0.0, float(np.nanmin(values)) - 6)
    figure.update_xaxes(range=[low, 101], title="accuracy (%)")
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=6)
    figure.update_layout(
        height=min(max(130 + 30 * len(rows), 220), 540),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 0, "r": 20, "t": 44, "b": 0},
    )
    return figure


def plot_confusion_matrix(counts: np.ndarray, names: Sequence[str], height: int = 330) -> go.Figure:
    """Confusion matrix of the queries: rows are true classes, columns predicted classes."""
    labels = [escape_plotly(name) for name in names]
    correct = np.eye(len(names), dtype=bool)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = go.Figure(
        go.Heatmap(
            z=np.where(correct, -share, share),
            x=list(range(len(names))),
            y=list(range(len(names))),
            zmin=-1,
            zmax=1,
            colorscale=[[0, meaning("correct")], [0.5, "rgba(127,127,127,0.06)"], [1, meaning("incorrect")]],
            showscale=False,
            text=counts,
            customdata=[[f"{'✓' if a == b else '✗'} {a}, predicted as {b}" for b in labels] for a in labels],
            hovertemplate="%{customdata}: %{text} queries<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    if len(names) <= 15:  # text of its own: that of a heat map has too little contrast on faint cells
        rows, columns = np.nonzero(counts)
        texts = [f"{n} {'✓' if row == column else '✗'}" for row, column, n in zip(rows, columns, counts[rows, columns])]
        figure.add_scatter(x=columns, y=rows, text=texts, mode="text", hoverinfo="skip", showlegend=False)
    ticks: dict[str, Any] = {"tickvals": list(range(len(names))), "showgrid": False, "zeroline": False}
    ticks["ticktext"] = [escape_plotly(name) for name in short_names(names, 22)]
    figure.update_xaxes(**ticks, title="predicted class", tickangle=-35, automargin=True)
    figure.update_yaxes(**ticks, title="true class", autorange="reversed", automargin=True)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure
