"""Figures of the lessons: accuracy position by position, two classes as clouds, tasks against a measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, INK, QUIET, SERIES, meaning
from fsviz.text import drawn

MARGIN = {"l": 0, "r": 10, "t": 24, "b": 0}


def plot_stops(
    titles: Sequence[str],
    means: Sequence[float],
    halves: Sequence[float],
    seen: Sequence[bool],
    at: int,
    x_title: str,
    chance: float | None = None,
    height: int = 340,
    in_order: bool = True,
) -> go.Figure:
    """Accuracy (%) with its interval at every position of a control that was seen; a question mark at the others.

    at        the position that the control is at
    chance    accuracy of guessing (%)
    in_order  whether the positions have an order, and are joined by a line
    """
    figure = go.Figure()
    names = [drawn(title) for title in titles]
    shown = [i for i, there in enumerate(seen) if there]
    top = max(m + h for m, h in zip(means, halves, strict=True))
    low = min(m - h for m, h in zip(means, halves, strict=True))
    low = min(low, chance) if chance is not None else low
    figure.add_scatter(
        x=[names[i] for i in shown],
        y=[means[i] for i in shown],
        mode="lines+markers+text" if in_order else "markers+text",
        text=[f"<b>{means[i]:.1f}</b>" if i == at else f"{means[i]:.1f}" for i in shown],
        textposition="top right",
        error_y={"array": [halves[i] for i in shown], "color": INK, "thickness": 1.5, "width": 4},
        line={"color": QUIET, "width": 1, "dash": "dot"},
        marker={"size": [16 if i == at else 10 for i in shown], "color": [ACCENT if i == at else QUIET for i in shown]},
        customdata=[halves[i] for i in shown],
        hovertemplate="%{x}: %{y:.1f} ± %{customdata:.1f}% of the queries right<extra></extra>",
        showlegend=False,
    )
    hidden = [i for i, there in enumerate(seen) if not there]
    if hidden:
        figure.add_scatter(
            x=[names[i] for i in hidden],
            y=[(low + top) / 2] * len(hidden),
            mode="text",
            text=["?"] * len(hidden),
            textfont={"size": 22, "color": QUIET},
            hovertemplate="%{x}: move the control here<extra></extra>",
            showlegend=False,
        )
    room = 0.08 * (top - low) + 1
    if chance is not None:
        figure.add_hline(
            y=chance,
            line={"color": QUIET, "dash": "dash", "width": 1},
            annotation_text=f"guessing, {chance:.0f}%",
            annotation_position="top right",
        )
    figure.update_xaxes(
        title_text=drawn(x_title), categoryorder="array", categoryarray=names, range=[-0.5, len(names) - 0.3]
    )
    figure.update_yaxes(title_text="queries named rightly (%)", range=[max(0, low - room), top + room])
    figure.update_layout(height=height, margin=MARGIN)
    return figure


def plot_clouds(points: np.ndarray, labels: np.ndarray, names: Sequence[str], height: int = 340) -> go.Figure:
    """The images (n, 2) of two classes as a backbone sees them, along the two directions in which they differ most."""
    figure = go.Figure()
    for label, (name, symbol) in enumerate(zip(names, ("circle", "diamond"), strict=True)):
        own = points[labels == label]
        figure.add_scatter(
            x=own[:, 0],
            y=own[:, 1],
            mode="markers",
            name=drawn(name),
            marker={"color": SERIES[label], "symbol": symbol, "size": 8, "opacity": 0.75},
            hovertemplate=f"an image of {drawn(name)}<extra></extra>",
        )
    figure.update_xaxes(title_text="what differs most between these images", showticklabels=False, zeroline=False)
    figure.update_yaxes(title_text="what differs next", showticklabels=False, zeroline=False)
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
    """Tasks by a measure and their accuracy (%), the line through them, and two of them marked."""
    figure = go.Figure()
    figure.add_scatter(
        x=values,
        y=accuracy,
        mode="markers",
        marker={"color": QUIET, "size": 7, "opacity": 0.6},
        hovertemplate="a task with %{x:.2f}: %{y:.0f}% of its queries right<extra></extra>",
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
            text=[f"<b>the {name} task</b>"],
            textposition="middle left" if values[task] > middle else "middle right",
            marker={"color": meaning(name), "size": 14, "symbol": symbol},
            hovertemplate=f"the {name} task: %{{x:.2f}}, %{{y:.0f}}% right<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(title_text=drawn(x_title))
    figure.update_yaxes(title_text="queries named rightly (%)")
    figure.update_layout(height=height, margin=MARGIN)
    return figure
