"""Figures of the lessons: accuracy by control position, features of two classes, accuracy by measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, INK, QUIET, SERIES, meaning
from fsviz.text import escape_plotly, short_names

MARGIN = {"l": 0, "r": 10, "t": 24, "b": 0}


def plot_positions(
    titles: Sequence[str],
    means: Sequence[float],
    half_widths: Sequence[float],
    visited: Sequence[bool],
    at: int,
    x_title: str,
    chance_level: float | None = None,
    height: int = 340,
    in_order: bool = True,
) -> go.Figure:
    """Accuracy (%) with 95% CI at the visited positions of a control; a question mark at the others.

    at            current position of the control
    chance_level  accuracy of guessing (%)
    in_order      whether the positions have an order and are joined by a line
    """
    figure = go.Figure()
    names = [escape_plotly(title) for title in titles]
    tried = [i for i, is_visited in enumerate(visited) if is_visited]
    top = max(m + h for m, h in zip(means, half_widths, strict=True))
    low = min(m - h for m, h in zip(means, half_widths, strict=True))
    low = low if chance_level is None else min(low, chance_level)
    figure.add_scatter(
        x=[names[i] for i in tried],
        y=[means[i] for i in tried],
        mode="lines+markers+text" if in_order else "markers+text",
        text=[f"<b>{means[i]:.1f}</b>" if i == at else f"{means[i]:.1f}" for i in tried],
        textposition="top right",
        cliponaxis=False,
        error_y={"array": [half_widths[i] for i in tried], "color": INK, "thickness": 1.5, "width": 4},
        line={"color": QUIET, "width": 1, "dash": "dot"},
        marker={"size": [16 if i == at else 10 for i in tried], "color": [ACCENT if i == at else QUIET for i in tried]},
        customdata=[half_widths[i] for i in tried],
        hovertemplate="%{x}: %{y:.1f} ± %{customdata:.1f}% correct<extra></extra>",
        showlegend=False,
    )
    hidden = [i for i, is_visited in enumerate(visited) if not is_visited]
    if hidden:
        figure.add_scatter(
            x=[names[i] for i in hidden],
            y=[(low + top) / 2] * len(hidden),
            mode="text",
            text=["?"] * len(hidden),
            textfont={"size": 22, "color": QUIET},
            hovertemplate="%{x}: not tried yet<extra></extra>",
            showlegend=False,
        )
    pad = 0.08 * (top - low) + 1
    if chance_level is not None:
        figure.add_hline(
            y=chance_level,
            line={"color": QUIET, "dash": "dash", "width": 1},
            annotation_text=f"chance level {chance_level:.0f}%",
            annotation_position="top right",
        )
    figure.update_xaxes(
        title_text=escape_plotly(x_title), categoryorder="array", categoryarray=names, range=[-0.5, len(names) - 0.3]
    )
    figure.update_yaxes(title_text="accuracy (%)", range=[max(0, low - pad), top + pad])
    figure.update_layout(height=height, margin=MARGIN)
    return figure


def plot_clouds(points: np.ndarray, labels: np.ndarray, names: Sequence[str], height: int = 340) -> go.Figure:
    """Images (n, 2) of two classes on the first two principal components of their features."""
    figure = go.Figure()
    for label, (name, short, symbol) in enumerate(zip(names, short_names(names), ("circle", "diamond"), strict=True)):
        images = points[labels == label]
        figure.add_scatter(
            x=images[:, 0],
            y=images[:, 1],
            mode="markers",
            name=escape_plotly(short),
            marker={"color": SERIES[label], "symbol": symbol, "size": 8, "opacity": 0.75},
            hovertemplate=f"{escape_plotly(name)}<extra></extra>",
        )
    figure.update_xaxes(title_text="first principal component", showticklabels=False, zeroline=False)
    figure.update_yaxes(title_text="second principal component", showticklabels=False, zeroline=False)
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure


def plot_cause(
    values: np.ndarray,
    accuracy: np.ndarray,
    line: tuple[Sequence[float], Sequence[float]] | None,
    hard: int,
    easy: int,
    x_title: str,
    height: int = 380,
) -> go.Figure:
    """Accuracy (%) of tasks by a measure, with a linear fit; a hard and an easy task are marked."""
    figure = go.Figure()
    figure.add_scatter(
        x=values,
        y=accuracy,
        mode="markers",
        marker={"color": QUIET, "size": 7, "opacity": 0.6},
        hovertemplate=f"task: %{{y:.0f}}% correct, {escape_plotly(x_title)} %{{x:.2f}}<extra></extra>",
        showlegend=False,
    )
    if line is not None:
        figure.add_scatter(
            x=line[0], y=line[1], mode="lines", line={"color": INK, "dash": "dot"}, hoverinfo="skip", showlegend=False
        )
    middle = (float(values.min()) + float(values.max())) / 2
    for name, task, symbol in (("hard", hard, "x"), ("easy", easy, "circle")):
        figure.add_scatter(
            x=[values[task]],
            y=[accuracy[task]],
            mode="markers+text",
            text=[f"<b>{name} task</b>"],
            textposition="middle left" if values[task] > middle else "middle right",
            marker={"color": meaning(name), "size": 14, "symbol": symbol},
            hovertemplate=f"{name} task: %{{y:.0f}}% correct, {escape_plotly(x_title)} %{{x:.2f}}<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(title_text=escape_plotly(x_title))
    figure.update_yaxes(title_text="accuracy (%)")
    figure.update_layout(height=height, margin=MARGIN)
    return figure


def plot_guesses(options: Sequence[str], counts: Sequence[int], correct: int | None = None) -> go.Figure:
    """Number of guesses per answer, from the top; the correct one stands out once it is given."""
    names = [escape_plotly(option) + (" ✓" if i == correct else "") for i, option in enumerate(options)]
    colours = [meaning("correct") if i == correct else QUIET for i in range(len(options))]
    figure = go.Figure()
    figure.add_bar(
        x=list(counts),
        y=names,
        orientation="h",
        text=[f"{count:,}" if count else "" for count in counts],
        textposition="outside",
        cliponaxis=False,
        marker_color=colours,
        hovertemplate="%{y}: %{x:,}<extra></extra>",
    )
    figure.update_xaxes(visible=False, rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(height=26 * len(options) + 34, margin={"l": 0, "r": 30, "t": 4, "b": 4}, bargap=0.35)
    return figure
