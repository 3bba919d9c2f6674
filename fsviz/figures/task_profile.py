"""Figures of one task: where its measures stand among the tasks of its testbed, and what methods get right of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, meaning
from fsviz.text import drawn

OTHER = "#EE7733"  # the second of two tasks
_MIDDLE = 50


def plot_standings(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ("This task",)) -> go.Figure:
    """One line per measure: harder than which share of the testbed's tasks, in percent.

    rows   title, direction, and per task of `names`: harder (percent, NaN where it is not known) and value
    names  one task, or two
    """
    figure = go.Figure()
    titles = [drawn(row["title"]) for row in rows]
    for which, (name, colour) in enumerate(zip(names, (ACCENT, OTHER), strict=False)):
        harder = np.array([row["harder"][which] for row in rows], dtype=float)
        told = [
            f"{drawn(row['title'])} {row['value'][which]:.4g}: harder than {h:.0f}% of the tasks"
            f"<br>(a higher value is {row['direction']})"
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
                name=drawn(name),
                text=[f"{h:.0f}%" if np.isfinite(h) else "" for h in harder],
                textposition="top center",
                marker={"size": 13, "color": colour, "symbol": ("circle", "diamond")[which]},
                customdata=told,
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
        title="harder than this share of the testbed's tasks (%)",
    )
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=6, categoryorder="array")
    figure.update_yaxes(categoryarray=titles)
    figure.update_layout(
        height=130 + 38 * len(rows),
        showlegend=len(names) > 1,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 0, "r": 24, "t": 28 if len(names) == 1 else 50, "b": 0},
    )
    return figure


def plot_answers(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ("This task",)) -> go.Figure:
    """One line per method: accuracy on the task beside the testbed's mean with its 95% interval, in percent.

    rows  label, accuracy per task of `names`, mean, ci95 and n (NaN and 0 where they are not known)
    """
    labels = [drawn(row["label"]) for row in rows]
    figure = go.Figure()
    mean = np.array([row["mean"] for row in rows], dtype=float)
    half = np.nan_to_num(np.array([row["ci95"] for row in rows], dtype=float))
    if np.isfinite(mean).any():
        figure.add_trace(
            go.Scatter(
                x=mean,
                y=labels,
                mode="markers",
                name="mean of the testbed",
                marker={"symbol": "line-ns-open", "size": 15, "color": QUIET, "line": {"width": 3}},
                error_x={"type": "data", "array": half, "thickness": 2, "width": 4, "color": QUIET},
                customdata=[f"mean of {row['n']:,} tasks: {row['mean']:.1f} ± {row['ci95']:.1f}%" for row in rows],
                hovertemplate="%{y}, %{customdata}<extra></extra>",
            )
        )
    for which, (name, colour) in enumerate(zip(names, (ACCENT, OTHER), strict=False)):
        values = np.array([row["accuracy"][which] for row in rows], dtype=float)
        figure.add_trace(
            go.Scatter(
                x=values,
                y=labels,
                mode="markers+text" if len(names) == 1 else "markers",
                name=drawn(name),
                text=[f"{v:.0f}%" if np.isfinite(v) else "" for v in values],
                textposition="top center",
                marker={"size": 12, "color": colour, "symbol": ("circle", "diamond")[which]},
                hovertemplate="%{y}: %{x:.1f}% of its queries right<extra></extra>",
                cliponaxis=False,
            )
        )
    known = np.concatenate([mean - half, *(np.array([row["accuracy"] for row in rows], dtype=float).T)])
    low = max(0.0, float(np.nanmin(known)) - 6)
    figure.update_xaxes(range=[low, 101], title="accuracy (% of queries right)")
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=6)
    figure.update_layout(
        height=130 + 36 * len(rows),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        margin={"l": 0, "r": 20, "t": 44, "b": 0},
    )
    return figure


def plot_answered(counts: np.ndarray, names: Sequence[str], height: int = 330) -> go.Figure:
    """Heat map of what the queries of every class were named as, with the numbers written in."""
    shown = [drawn(name) for name in names]
    right = np.eye(len(names), dtype=bool)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure = go.Figure(
        go.Heatmap(
            z=np.where(right, -share, share),
            x=list(range(len(names))),
            y=list(range(len(names))),
            zmin=-1,
            zmax=1,
            colorscale=[[0, meaning("right")], [0.5, "rgba(127,127,127,0.06)"], [1, meaning("wrong")]],
            showscale=False,
            text=counts,
            customdata=[[f"{a} named as {b}" for b in shown] for a in shown],
            hovertemplate="%{customdata}: %{text} queries<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    if len(names) <= 15:  # in the colour of the page's text: that of a heat map's own cannot be read on faint cells
        rows, columns = np.nonzero(counts)
        told = [str(n) for n in counts[rows, columns]]
        figure.add_scatter(x=columns, y=rows, text=told, mode="text", hoverinfo="skip", showlegend=False)
    places = {"tickvals": list(range(len(names))), "ticktext": shown, "showgrid": False, "zeroline": False}
    figure.update_xaxes(**places, title="named as", tickangle=-35, automargin=True)
    figure.update_yaxes(**places, title="is", autorange="reversed", automargin=True)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure
