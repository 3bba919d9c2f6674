"""Figures of causes: correlations, explained variation, selected tasks, redundant measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fsviz.figures import significance
from fsviz.figures.palette import ACCENT, INK, METHODS, QUIET, SERIES, meaning
from fsviz.text import escape_plotly

MEANS = meaning("all")  # means of many tasks, on top of them
MARGIN = {"l": 0, "r": 10, "t": 10, "b": 0}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def plot_correlations(rows: Sequence[Mapping[str, Any]], selected: str, height: int = 480) -> go.Figure:
    """A line per measure with a point per method: correlation with accuracy and its 95% CI; expected sign to the right.

    rows      name (the customdata), title, method, value, low, high (positive: expected sign), text (with its own sign)
    selected  name of the measure to mark
    """
    methods = list(dict.fromkeys(row["method"] for row in rows))
    first = {row["name"]: row["value"] for row in reversed(rows) if row["method"] == methods[0]}
    order = sorted(first, key=lambda name: np.nan_to_num(first[name], nan=-2))
    position = {name: i for i, name in enumerate(order)}
    titles = {row["name"]: row["title"] for row in rows}
    figure = go.Figure()
    for i, method in enumerate(methods):
        own = [row for row in rows if row["method"] == method and np.isfinite(row["value"])]
        offset = (len(methods) - 1) / 2 - i
        value = np.array([row["value"] for row in own])
        low, high = (np.array([row[end] for row in own], dtype=float) for end in ("low", "high"))
        figure.add_scatter(
            x=value,
            y=[position[row["name"]] + 0.2 * offset for row in own],
            mode="markers",
            name=escape_plotly(method),
            marker={"size": 9, "color": _colour(method, i), "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.nan_to_num(high - value),
                "arrayminus": np.nan_to_num(value - low),
                "thickness": 1.5,
                "width": 3,
            },
            customdata=[[row["name"], row["text"], escape_plotly(row["title"]), escape_plotly(method)] for row in own],
            hovertemplate="%{customdata[2]}: correlation %{customdata[1]}, %{customdata[3]}<extra></extra>",
        )
    if selected in position:
        _mark_row(figure, position[selected])
    figure.add_vline(x=0, line={"color": QUIET, "width": 1})
    figure.update_xaxes(title="correlation with accuracy (expected sign: right)", range=[-1.02, 1.02])
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=["<br>".join(escape_plotly(part) for part in wrap(titles[name], 24)) for name in order],
        range=[-0.6, len(order) - 0.4],
        automargin=True,
        showgrid=True,
    )
    figure.update_layout(
        height=height,
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="closest",
    )
    return figure


def plot_shares(rows: Sequence[Mapping[str, Any]], total: float, selected: str = "", height: int = 380) -> go.Figure:
    """A bar per cause: variation in accuracy that is lost without it, with its 95% CI; diamond: with this cause only.

    rows      name (the customdata), title, value, low, high, alone, is_significant, measures (their titles)
    total     share explained by all causes
    selected  name of the cause to mark
    """
    rows = sorted(rows, key=lambda row: row["value"])
    names = ["<br>".join(escape_plotly(part) for part in wrap(row["title"], 30)) for row in rows]
    value, low, high, alone = (np.array([100 * row[k] for row in rows]) for k in ("value", "low", "high", "alone"))
    data = [
        [row["name"], escape_plotly(row["title"]), f"{lost:.0f}", f"{own:.0f}", "<br>".join(wrap(row["measures"], 60))]
        for row, lost, own in zip(rows, value, alone, strict=True)
    ]
    hover = (
        "%{customdata[1]}: %{customdata[2]}% lost without it; %{customdata[3]}% by itself"
        "<br>%{customdata[4]}<extra></extra>"
    )
    figure = go.Figure(
        go.Bar(
            x=value,
            y=names,
            orientation="h",
            width=0.5,
            name="unique share",
            marker_color=[ACCENT if row["is_significant"] else QUIET for row in rows],
            error_x={
                "color": INK,
                "type": "data",
                "symmetric": False,
                "array": high - value,
                "arrayminus": value - low,
                "thickness": 2,
                "width": 4,
            },
            customdata=data,
            hovertemplate=hover,
        )
    )
    figure.add_scatter(
        x=alone,
        y=names,
        mode="markers",
        name="this cause only",
        marker={"symbol": "diamond-open", "size": 11, "color": meaning("all"), "line": {"width": 2}},
        customdata=data,
        hovertemplate=hover,
    )
    figure.add_vline(x=0, line={"color": QUIET, "width": 1})
    figure.add_vline(
        x=100 * max(total, 0),
        line={"color": meaning("all"), "width": 1.5, "dash": "dot"},
        annotation={
            "text": f"all causes {100 * max(total, 0):.0f}%",
            "xanchor": "right",
            "yanchor": "bottom",
            "y": 1.0,
        },
    )
    for i, row in enumerate(rows):
        if row["name"] == selected:
            _mark_row(figure, i)
    lowest, highest = min(float(low.min()), 0.0), max(float(max(high.max(), alone.max())), 100 * total)
    figure.update_xaxes(title="variation in accuracy explained (%)", range=[max(lowest - 2, -25), highest * 1.12 + 3])
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    figure.update_layout(
        height=height,
        margin={**MARGIN, "t": 28},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    )
    return figure


def plot_tasks(
    x: np.ndarray,
    y: np.ndarray,
    tasks: np.ndarray,
    selected: np.ndarray,
    x_title: str,
    groups: pd.DataFrame | None = None,
    classes: Sequence[str] = (),
    current: int = -1,
    height: int = 380,
) -> go.Figure:
    """A point per task at its accuracy (%), the selected ones in colour; a box over them returns its ranges.

    tasks    (n,) their numbers (the customdata), selected (n,) whether they are selected
    groups   expected, accuracy, ci95, n_tasks of groups: x is then the predicted accuracy, and the diagonal is shown
    classes  names of the classes of every task, for the hover
    current  number of the task whose images are on the page
    """
    figure = go.Figure()
    if groups is not None and len(x):
        ends = [float(min(np.nanmin(x), np.nanmin(y))), float(max(np.nanmax(x), np.nanmax(y)))]
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line={"color": QUIET, "dash": "dot", "width": 1.5}, hoverinfo="skip",
            name="prediction = accuracy",
        )  # fmt: skip
    lines = ["<br>".join(escape_plotly(line) for line in wrap(text, 60)) for text in classes]
    names = np.array(lines or [""] * len(tasks), dtype=object)
    for which, name, colour in ((~selected, "other tasks", QUIET), (selected, "selected tasks", ACCENT)):
        figure.add_scatter(
            x=x[which],
            y=y[which],
            mode="markers",
            name=name,
            customdata=tasks[which],
            text=names[which],
            marker={"size": 7, "color": colour, "opacity": 0.6, "symbol": "diamond" if colour == ACCENT else "circle"},
            selected={"marker": {"opacity": 0.6}},
            unselected={"marker": {"opacity": 0.6}},
            hovertemplate="task %{customdata}: %{y:.1f}% correct at %{x:.3g}<br>%{text}<extra></extra>",
        )
    at = np.flatnonzero(tasks == current)
    if len(at):
        figure.add_scatter(
            x=x[at],
            y=y[at],
            mode="markers",
            marker={"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2.5}},
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1}},
            hoverinfo="skip",
            showlegend=False,
        )
    if groups is not None:
        figure.add_scatter(
            x=100 * groups["expected"],
            y=100 * groups["accuracy"],
            mode="markers+lines",
            name="mean of 1/8 of the tasks",
            line={"color": MEANS, "width": 2.5},
            marker={"size": 10, "color": MEANS, "line": {"width": 1, "color": "#FFFFFF"}},
            error_y={"type": "data", "array": 100 * groups["ci95"], "thickness": 2, "width": 4, "color": MEANS},
            customdata=groups["n_tasks"],
            hovertemplate="%{customdata} tasks: %{y:.1f}% correct, %{x:.1f}% predicted<extra></extra>",
        )
    figure.update_xaxes(title="<br>".join(escape_plotly(line) for line in wrap(x_title, 52)))
    figure.update_yaxes(title="accuracy (%)")
    figure.update_layout(
        height=height,
        margin=MARGIN,
        dragmode="select",
        hovermode="closest",
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
    )
    return figure


def plot_ranks(
    ranks: Mapping[str, np.ndarray],
    selected: np.ndarray,
    means: pd.DataFrame,
    titles: Mapping[str, str],
    height: int = 520,
) -> go.Figure:
    """A strip per measure: difficulty percentile of every task; the selected ones in colour, with mean and 95% CI.

    means  measure, rank, low, high and is_significant of fsviz.studies.causes.extremes
    """
    order = list(means.sort_values("rank")["measure"]) if len(means) else list(ranks)
    figure = go.Figure()
    rng = np.random.default_rng(0)
    for which, colour, size in ((~selected, QUIET, 3), (selected, ACCENT, 5)):
        at = np.flatnonzero(which)
        x = np.concatenate([100 * ranks[name][at] for name in order] or [np.zeros(0)])
        y = np.concatenate([i + rng.uniform(-0.28, 0.28, len(at)) for i in range(len(order))] or [np.zeros(0)])
        data = [[int(task), name] for name in order for task in at]
        figure.add_scattergl(
            x=x,
            y=y,
            mode="markers",
            customdata=data,
            marker={"size": size, "color": colour, "opacity": 0.35 if colour == QUIET else 0.75},
            hovertemplate="task %{customdata[0]}: harder than %{x:.0f}% of tasks<extra></extra>",
            name="other tasks" if colour == QUIET else "selected tasks",
        )
    rows = means.set_index("measure").reindex(order)
    figure.add_scatter(
        x=100 * rows["rank"],
        y=list(range(len(order))),
        mode="markers",
        name="mean of the selection",
        marker={
            "size": 12,
            "color": MEANS,
            "symbol": ["diamond" if s else "diamond-open" for s in rows["is_significant"].fillna(False)],
            "line": {"width": 2.5, "color": MEANS},
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": 100 * (rows["high"] - rows["rank"]),
            "arrayminus": 100 * (rows["rank"] - rows["low"]),
            "color": MEANS,
            "thickness": 2.5,
            "width": 5,
        },
        hovertemplate="selected tasks: mean percentile %{x:.0f}<extra></extra>",
    )
    figure.add_vline(x=50, line={"color": QUIET, "width": 1, "dash": "dot"})
    title = significance.with_note("percentile by difficulty (%)", significance.BONFERRONI)
    figure.update_xaxes(title=title, range=[-2, 102])
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=["<br>".join(escape_plotly(part) for part in wrap(titles[name], 26)) for name in order],
        range=[-0.6, len(order) - 0.4],
        automargin=True,
    )
    figure.update_layout(
        height=height,
        margin=MARGIN,
        dragmode="select",
        hovermode="closest",
        legend={
            "orientation": "h",
            "y": -0.2,
            "yanchor": "top",
            "x": 0,
            "itemsizing": "constant",  # dots as small as in the figure are too small for a legend
        },
    )
    return figure


def plot_redundancy(matrix: pd.DataFrame, titles: Mapping[str, str], groups: Sequence[Sequence[str]]) -> go.Figure:
    """Rank correlations of measures, signs flipped so that higher is harder; groups of similar measures are framed."""
    names = list(matrix.columns)
    labels = ["<br>".join(escape_plotly(part) for part in wrap(titles[name], 26)) for name in names]
    values = matrix.to_numpy()
    figure = go.Figure(
        go.Heatmap(
            z=values[::-1],
            x=labels,
            y=labels[::-1],
            zmin=-1,
            zmax=1,
            colorscale=[[0, "#B2182B"], [0.5, "#F2F2F2"], [1, "#2166AC"]],
            text=[[f"{value:.1f}".replace("-0.0", "0.0") for value in row] for row in values[::-1]],
            texttemplate="%{text}",
            customdata=[[[row, column] for column in names] for row in names[::-1]],
            hovertemplate="%{y} – %{x}: rank correlation %{z:.2f}<extra></extra>",
            colorbar={"title": {"text": "rank<br>correlation"}, "thickness": 12},
            xgap=1,
            ygap=1,
        )
    )
    start = 0
    for group in groups:
        if len(group) > 1:
            low = len(names) - start - len(group)
            figure.add_shape(
                type="rect",
                x0=start - 0.5,
                x1=start + len(group) - 0.5,
                y0=low - 0.5,
                y1=low + len(group) - 0.5,
                line={"color": meaning("all"), "width": 3},
            )
        start += len(group)
    figure.update_xaxes(side="bottom", tickangle=-60, automargin=True)
    figure.update_yaxes(automargin=True)
    figure.update_layout(height=230 + 32 * len(names), margin=MARGIN)
    return figure


def _mark_row(figure: go.Figure, position: int) -> None:
    """Mark a row of a figure with a band across it."""
    figure.add_hrect(position - 0.5, position + 0.5, fillcolor=ACCENT, opacity=0.12, line_width=0)


def _colour(method: str, position: int) -> str:
    return SERIES[METHODS.index(method) % len(SERIES)] if method in METHODS else SERIES[-1 - position % len(SERIES)]
