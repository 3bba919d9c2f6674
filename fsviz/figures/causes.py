"""Figures of difficulty: measures against accuracy, shares of causes, chosen tasks among all, families of measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, INK, METHODS, QUIET, SERIES, meaning
from fsviz.text import drawn

MEANS = meaning("all")  # of many tasks, drawn over them: seen on white and on the dark page
MARGIN = {"l": 0, "r": 10, "t": 10, "b": 0}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")


def plot_correlations(rows: Sequence[Mapping[str, Any]], chosen: str, height: int | None = None) -> go.Figure:
    """A line per measure, on it a point per method: the correlation with its accuracy and the 95% interval, to the
    right where it is in the direction that was expected.

    rows  name (what a click hands out), title, method, value, low, high (turned so that expected is positive), shown
    """
    methods = list(dict.fromkeys(row["method"] for row in rows))
    first = {row["name"]: row["value"] for row in reversed(rows) if row["method"] == methods[0]}
    order = sorted(first, key=lambda name: np.nan_to_num(first[name], nan=-2))
    place = {name: i for i, name in enumerate(order)}
    titles = {row["name"]: row["title"] for row in rows}
    figure = go.Figure()
    for i, method in enumerate(methods):
        own = [row for row in rows if row["method"] == method and np.isfinite(row["value"])]
        away = (len(methods) - 1) / 2 - i
        value = np.array([row["value"] for row in own])
        low, high = (np.array([row[end] for row in own], dtype=float) for end in ("low", "high"))
        figure.add_scatter(
            x=value,
            y=[place[row["name"]] + 0.2 * away for row in own],
            mode="markers",
            name=drawn(method),
            marker={"size": 9, "color": _colour(method, i), "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": np.nan_to_num(high - value),
                "arrayminus": np.nan_to_num(value - low),
                "thickness": 1.5,
                "width": 3,
            },
            customdata=[[row["name"], row["shown"], drawn(row["title"]), drawn(method)] for row in own],
            hovertemplate="%{customdata[2]}: %{customdata[1]} with the accuracy of %{customdata[3]}<extra></extra>",
        )
    if chosen in place:
        figure.add_hrect(place[chosen] - 0.5, place[chosen] + 0.5, fillcolor=ACCENT, opacity=0.12, line_width=0)
    figure.add_vline(x=0, line={"color": QUIET, "width": 1})
    figure.update_xaxes(title="correlation with the accuracy (right: as expected)", range=[-1.02, 1.02])
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=["<br>".join(drawn(part) for part in wrap(titles[name], 24)) for name in order],
        range=[-0.6, len(order) - 0.4],
        automargin=True,
        showgrid=True,
    )
    figure.update_layout(
        height=height or 90 + 36 * len(order),
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="closest",
    )
    return figure


def plot_shares(rows: Sequence[Mapping[str, Any]], whole: float, height: int | None = None) -> go.Figure:
    """A bar per cause: the share of the differences in accuracy that is lost without it, with its 95% interval; a
    diamond where it would be alone.

    rows  name, title, value, low, high, alone, sure (whether it is beyond chance)
    """
    rows = sorted(rows, key=lambda row: row["value"])
    names = ["<br>".join(drawn(part) for part in wrap(row["title"], 30)) for row in rows]
    value, low, high, alone = (np.array([100 * row[k] for row in rows]) for k in ("value", "low", "high", "alone"))
    figure = go.Figure(
        go.Bar(
            x=value,
            y=names,
            orientation="h",
            width=0.5,
            name="what only it knows",
            marker_color=[ACCENT if row["sure"] else QUIET for row in rows],
            error_x={
                "color": INK,
                "type": "data",
                "symmetric": False,
                "array": high - value,
                "arrayminus": value - low,
                "thickness": 2,
                "width": 4,
            },
            customdata=[[row["name"]] for row in rows],
            hovertemplate="%{y}<br>%{x:.0f}% of the differences would be lost without it<extra></extra>",
        )
    )
    figure.add_scatter(
        x=alone,
        y=names,
        mode="markers",
        name="what it knows alone",
        marker={"symbol": "diamond-open", "size": 11, "color": meaning("all"), "line": {"width": 2}},
        customdata=[[row["name"]] for row in rows],
        hovertemplate="%{y}<br>alone it explains %{x:.0f}%<extra></extra>",
    )
    figure.add_vline(x=0, line={"color": QUIET, "width": 1})
    figure.add_vline(
        x=100 * max(whole, 0),
        line={"color": meaning("all"), "width": 1.5, "dash": "dot"},
        annotation={
            "text": f"all together {100 * max(whole, 0):.0f}%",
            "xanchor": "right",
            "yanchor": "bottom",
            "y": 1.0,
        },
    )
    lowest, highest = min(float(low.min()), 0.0), max(float(max(high.max(), alone.max())), 100 * whole)
    figure.update_xaxes(title="differences in accuracy explained (%)", range=[max(lowest - 2, -25), highest * 1.12 + 3])
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    figure.update_layout(
        height=height or 150 + 62 * len(rows),
        margin={**MARGIN, "t": 28},
        legend={"orientation": "h", "y": -0.28, "yanchor": "top", "x": 0},
    )
    return figure


def plot_tasks(
    x: np.ndarray,
    y: np.ndarray,
    tasks: np.ndarray,
    chosen: np.ndarray,
    x_title: str,
    y_title: str,
    groups: pd.DataFrame | None = None,
    height: int = 440,
) -> go.Figure:
    """A point per task, the chosen ones in colour; a box drawn over them hands out its ranges.

    tasks   (n,) their numbers, chosen (n,) which are chosen
    groups  columns expected, accuracy, ci95, n_tasks: x is then what was expected of y, and the diagonal is drawn
    """
    figure = go.Figure()
    if groups is not None and len(x):
        ends = [float(min(np.nanmin(x), np.nanmin(y))), float(max(np.nanmax(x), np.nanmax(y)))]
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line={"color": QUIET, "dash": "dot", "width": 1.5}, hoverinfo="skip",
            name="as expected",
        )  # fmt: skip
    for which, name, colour in ((~chosen, "other tasks", QUIET), (chosen, "chosen tasks", ACCENT)):
        figure.add_scatter(
            x=x[which],
            y=y[which],
            mode="markers",
            name=name,
            customdata=tasks[which],
            marker={"size": 7, "color": colour, "opacity": 0.6, "symbol": "diamond" if colour == ACCENT else "circle"},
            selected={"marker": {"opacity": 0.6}},
            unselected={"marker": {"opacity": 0.6}},
            hovertemplate="task %{customdata}: %{y:.1f}% at %{x:.3g}<extra></extra>",
        )
    if groups is not None:
        figure.add_scatter(
            x=100 * groups["expected"],
            y=100 * groups["accuracy"],
            mode="markers+lines",
            name="mean of an eighth",
            line={"color": MEANS, "width": 2.5},
            marker={"size": 10, "color": MEANS, "line": {"width": 1, "color": "#FFFFFF"}},
            error_y={"type": "data", "array": 100 * groups["ci95"], "thickness": 2, "width": 4, "color": MEANS},
            customdata=groups["n_tasks"],
            hovertemplate="%{customdata} tasks: expected %{x:.1f}%, measured %{y:.1f}%<extra></extra>",
        )
    figure.update_xaxes(title="<br>".join(drawn(line) for line in wrap(x_title, 52)))
    figure.update_yaxes(title=drawn(y_title))
    figure.update_layout(
        height=height,
        margin=MARGIN,
        dragmode="select",
        hovermode="closest",
        legend={"orientation": "h", "y": -0.3, "yanchor": "top", "x": 0},
    )
    return figure


def plot_ranks(
    ranks: Mapping[str, np.ndarray],
    chosen: np.ndarray,
    means: pd.DataFrame,
    titles: Mapping[str, str],
    height: int | None = None,
) -> go.Figure:
    """A strip per measure: where every task stands among all, the hardest at the right; the chosen ones in colour, and
    their mean with its 95% interval.

    means  columns measure, rank, low, high, beyond, as fsviz.studies.causes.extremes gives them
    """
    order = list(means.sort_values("rank")["measure"]) if len(means) else list(ranks)
    figure = go.Figure()
    rng = np.random.default_rng(0)
    for which, colour, size in ((~chosen, QUIET, 3), (chosen, ACCENT, 5)):
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
            hovertemplate="task %{customdata[0]}: harder than %{x:.0f}% of all<extra></extra>",
            name="other tasks" if colour == QUIET else "chosen tasks",
        )
    rows = means.set_index("measure").reindex(order)
    figure.add_scatter(
        x=100 * rows["rank"],
        y=list(range(len(order))),
        mode="markers",
        name="mean of the chosen",
        marker={
            "size": 12,
            "color": MEANS,
            "symbol": ["diamond" if known else "diamond-open" for known in rows["beyond"].fillna(False)],
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
        hovertemplate="the chosen stand at %{x:.0f} on average<extra></extra>",
    )
    figure.add_vline(x=50, line={"color": QUIET, "width": 1, "dash": "dot"})
    figure.update_xaxes(title="harder by this measure than so many of all tasks (%)", range=[-2, 102])
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=["<br>".join(drawn(part) for part in wrap(titles[name], 26)) for name in order],
        range=[-0.6, len(order) - 0.4],
        automargin=True,
    )
    figure.update_layout(
        height=height or 130 + 40 * max(len(order), 1),
        margin=MARGIN,
        dragmode="select",
        hovermode="closest",
        legend={
            "orientation": "h",
            "y": -60 / (40 * max(len(order), 1)),
            "yanchor": "top",
            "x": 0,
            "itemsizing": "constant",  # dots as small as in the figure would not be seen
        },
    )
    return figure


def plot_likeness(matrix: pd.DataFrame, titles: Mapping[str, str], families: Sequence[Sequence[str]]) -> go.Figure:
    """How alike measures are: rank correlations, each measure turned so that higher is harder; families are framed."""
    names = list(matrix.columns)
    labels = ["<br>".join(drawn(part) for part in wrap(titles[name], 26)) for name in names]
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
            hovertemplate="%{y}<br>and %{x}: %{z:.2f}<extra></extra>",
            colorbar={"title": {"text": "rank<br>correlation"}, "thickness": 12},
            xgap=1,
            ygap=1,
        )
    )
    start = 0
    for family in families:
        if len(family) > 1:
            low = len(names) - start - len(family)
            figure.add_shape(
                type="rect",
                x0=start - 0.5,
                x1=start + len(family) - 0.5,
                y0=low - 0.5,
                y1=low + len(family) - 0.5,
                line={"color": meaning("all"), "width": 3},
            )
        start += len(family)
    figure.update_xaxes(side="bottom", tickangle=-60, automargin=True)
    figure.update_yaxes(automargin=True)
    figure.update_layout(height=230 + 32 * len(names), margin=MARGIN)
    return figure


def _colour(method: str, place: int) -> str:
    return SERIES[METHODS.index(method) % len(SERIES)] if method in METHODS else SERIES[-1 - place % len(SERIES)]
