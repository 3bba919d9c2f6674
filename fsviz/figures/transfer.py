"""Figures of trained networks: accuracy by divergence, near and far training classes, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from fsviz.figures.palette import QUIET, SERIES, meaning
from fsviz.text import escape_plotly

MARGIN = {"l": 0, "r": 10, "t": 8, "b": 0}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def plot_transfer(
    points: pd.DataFrame,
    lines: Mapping[str, tuple[float, float]],
    titles: Mapping[str, str],
    height: int = 420,
    reference: tuple[str, pd.DataFrame] | None = None,
    chance_level: float | None = None,
) -> go.Figure:
    """Accuracy (%) by divergence, a colour and a shape per method, and a line through its points.

    points        method, x, accuracy, ci95, val_accuracy, n_runs
    lines         by method: accuracy at a divergence of 0, and points per unit
    titles        of the methods, in their order
    reference     title and points (x, accuracy, ci95) of a frozen backbone on the same test classes
    chance_level  accuracy of random guesses
    """
    figure = go.Figure()
    every_x = points["x"] if reference is None else pd.concat([points["x"], reference[1]["x"]])
    ends = (float(every_x.min()), float(every_x.max())) if len(every_x) else (0.0, 1.0)
    room = ends[1] - ends[0]
    methods = [name for name in titles if (points["method"] == name).any()]
    for name in methods:
        own = points[points["method"] == name]
        number = list(titles).index(name)
        colour = SERIES[number % len(SERIES)]
        offset = (methods.index(name) - (len(methods) - 1) / 2) * 0.012 * room  # so that intervals do not overlap
        figure.add_scatter(
            x=own["x"] + offset,
            y=own["accuracy"],
            mode="markers",
            name=escape_plotly(titles[name]),
            legendgroup=name,
            marker={"color": colour, "symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 11},
            error_y={"array": own["ci95"], "color": colour, "thickness": 1, "width": 3},
            customdata=[[*row, f"{name}@{row[3]:g}"] for row in own[["x", "ci95", "n_runs", "asked"]].values.tolist()],
            hovertemplate=f"{escape_plotly(titles[name])}: %{{y:.1f}} ± %{{customdata[1]:.1f}}% correct, divergence "
            "%{customdata[0]:.2f}, %{customdata[2]} runs<extra></extra>",
        )
        if name in lines:
            start, slope = lines[name]
            own_ends = [float(own["x"].min()), float(own["x"].max())]
            figure.add_scatter(
                x=own_ends,
                y=[start + slope * x for x in own_ends],
                mode="lines",
                legendgroup=name,
                showlegend=False,
                line={"color": colour, "width": 2, "dash": "dot"},
                hoverinfo="skip",
            )
    if reference is not None:
        _add_reference(figure, *reference)
    if chance_level is not None:
        figure.add_hline(
            y=chance_level,
            line={"dash": "dot", "color": QUIET},
            annotation={"text": "chance level", "yanchor": "bottom", "xanchor": "right", "x": 1},
        )
    figure.update_xaxes(
        title_text="train–test divergence", range=[min(0.0, ends[0]) - 0.06 * room, ends[1] + 0.06 * room]
    )
    figure.update_yaxes(title_text="accuracy on test tasks (%)")
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure


def _add_reference(figure: go.Figure, title: str, points: pd.DataFrame) -> None:
    """A grey dashed line of a frozen backbone, which no click selects."""
    figure.add_scatter(
        x=points["x"],
        y=points["accuracy"],
        mode="lines+markers",
        name=escape_plotly(title),
        line={"color": QUIET, "dash": "dash", "width": 2},
        marker={"color": QUIET, "symbol": "x", "size": 9},
        error_y={"array": points["ci95"], "color": QUIET, "thickness": 1, "width": 3},
        customdata=[[float(half)] for half in points["ci95"]],
        hovertemplate=f"{escape_plotly(title)}: %{{y:.1f}} ± %{{customdata[0]:.1f}}% correct<extra></extra>",
    )


def plot_matched(pairs: Sequence[Any], titles: Mapping[str, str], height: int = 300) -> go.Figure:
    """Accuracy (%) after training on the nearest and on the farthest classes, a line per method.

    pairs  method, nearest, farthest, difference, ci95
    """
    figure = go.Figure()
    rows = list(range(len(pairs)))
    for row, pair in zip(rows, pairs, strict=True):
        figure.add_scatter(
            x=[pair.farthest, pair.nearest],
            y=[row, row],
            mode="lines",
            line={"color": QUIET, "width": 3},
            showlegend=False,
            hoverinfo="skip",
        )
    for which, colour, symbol in (("nearest", meaning("easy"), "circle"), ("farthest", meaning("hard"), "diamond")):
        figure.add_scatter(
            x=[getattr(pair, which) for pair in pairs],
            y=rows,
            mode="markers",
            name=f"{which} training classes",
            marker={"color": colour, "symbol": symbol, "size": 13},
            customdata=[[escape_plotly(titles[pair.method]), f"{pair.method}@matched"] for pair in pairs],
            hovertemplate=f"%{{customdata[0]}}: %{{x:.1f}}% correct, {which} training classes<extra></extra>",
        )
    names = [escape_plotly(titles[pair.method]) for pair in pairs]
    figure.update_yaxes(tickvals=rows, ticktext=names, autorange="reversed", automargin=True, zeroline=False)
    figure.update_xaxes(title_text="accuracy on test tasks (%)")
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure


def plot_learning(curve: Sequence[Mapping[str, Any]], best_epoch: int | None, height: int = 280) -> go.Figure:
    """Accuracy (%) by epoch, on training batches and on validation tasks.

    curve       epoch, train_accuracy, val_accuracy, val_ci95 of every epoch
    best_epoch  marked with a larger point
    """
    epochs = [row["epoch"] for row in curve]
    figure = go.Figure()
    figure.add_scatter(
        x=epochs,
        y=[row["train_accuracy"] for row in curve],
        mode="lines",
        name="training batches",
        line={"color": meaning("train"), "width": 2},
        hovertemplate="epoch %{x}: %{y:.1f}% correct, training batches<extra></extra>",
    )
    figure.add_scatter(
        x=epochs,
        y=[row["val_accuracy"] for row in curve],
        mode="lines+markers",
        name="validation tasks",
        line={"color": meaning("val"), "width": 2, "dash": "dash"},
        marker={"size": [13 if row["epoch"] == best_epoch else 6 for row in curve], "symbol": "diamond"},
        error_y={"array": [row["val_ci95"] or 0 for row in curve], "thickness": 1, "width": 2},
        hovertemplate="epoch %{x}: %{y:.1f}% correct, validation tasks<extra></extra>",
    )
    figure.update_xaxes(title_text="epoch", dtick=1 if len(epochs) < 15 else None)
    figure.update_yaxes(title_text="accuracy (%)")
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure
