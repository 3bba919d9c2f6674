"""Figures of splits: class means and centroids, small multiples, agreement, superclasses, two trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fsviz.figures.palette import ACCENT, QUIET, meaning
from fsviz.records import PAD, SIDES, ClassSplit
from fsviz.records.graphs import ClassTree, Tanglegram
from fsviz.text import escape_plotly, percent, short_names, shorten

SYMBOLS = {"train": "circle", "val": "diamond", "test": "triangle-up", "all": "circle"}
MARGIN_FACTOR = 1.18  # size of the frame relative to the classes
LINE = 15  # height of a class in a tanglegram
LINE_END = 0.3  # of a line between two trees: beyond the names of the classes


def plot_split(
    split: ClassSplit, customdata: Sequence[int], selected: int | None = None, height: int = 480, names: bool = True
) -> go.Figure:
    """Classes on the first two principal components, coloured and shaped by side, with both centroids.

    customdata  one number per class, for pictures and clicks
    selected    position of the marked class
    names       whether classes are labelled
    """
    figure = go.Figure()
    _add_split(figure, split, customdata, 10, names, selected=selected)
    if selected is not None:
        x, y = _plane(split.points)[selected]
        figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers+text",
            marker={"size": 22, "color": "rgba(0,0,0,0)", "line": {"color": ACCENT, "width": 3}},
            text=[f"<b>{escape_plotly(short_names(split.names)[selected])}</b>"],
            textposition="bottom center",
            hoverinfo="skip",
            showlegend=False,
        )
    reach = _reach(split)
    figure.update_xaxes(title_text="first principal component of the class means", range=[-reach[0], reach[0]])
    figure.update_yaxes(title_text="second principal component", range=[-reach[1], reach[1]])
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        clickmode="event+select",
        dragmode="pan",
    )
    return figure


def plot_small_multiples(
    splits: Sequence[ClassSplit], notes: Sequence[str] = (), columns: int = 3, height: int = 480
) -> go.Figure:
    """The same classes split at several divergences, one panel each, on the same axes.

    notes  a line below the title of every panel
    """
    rows = -(-len(splits) // columns)
    titles = [escape_plotly(split.title) for split in splits]
    if notes:
        titles = [f"{title}<br><sub>{escape_plotly(note)}</sub>" for title, note in zip(titles, notes, strict=True)]
    figure = make_subplots(
        rows,
        columns,
        subplot_titles=titles,
        horizontal_spacing=0.03,
        vertical_spacing=0.14 if notes else 0.1,
    )
    for n, split in enumerate(splits):
        at = {"row": n // columns + 1, "col": n % columns + 1}
        _add_split(figure, split, np.arange(len(split.names)), 6, False, at)
        reach = _reach(split)
        figure.update_xaxes(range=[-reach[0], reach[0]], showticklabels=False, **at)
        figure.update_yaxes(range=[-reach[1], reach[1]], showticklabels=False, **at)
    figure.update_layout(
        height=height,
        margin={"l": 0, "r": 0, "t": 80 if notes else 50, "b": 0},
        legend={"orientation": "h", "y": 1, "yanchor": "top", "yref": "container", "x": 0},
    )
    return figure


def _add_split(
    figure: go.Figure,
    split: ClassSplit,
    customdata: Sequence[int] | np.ndarray,
    size: int,
    names: bool,
    at: dict[str, int] | None = None,
    selected: int | None = None,
) -> None:
    at = at or {}
    numbers = np.asarray(customdata)
    first = not at or at == {"row": 1, "col": 1}
    xy = _plane(split.points)
    labels = _free_labels(split, selected) if names else [""] * len(xy)
    opacity = 0.9 if selected is None else 0.45
    is_unsplit = bool((split.sides == PAD).all())
    for number, side in [(PAD, "all")] if is_unsplit else enumerate(SIDES):
        here = np.flatnonzero(split.sides == number)
        title = "classes" if is_unsplit else side
        figure.add_trace(
            go.Scatter(
                x=xy[here, 0],
                y=xy[here, 1],
                mode="markers+text" if names else "markers",
                name=f"{title} ({len(here)})" if not at else title,
                legendgroup=side,
                showlegend=first,
                marker={
                    "color": meaning(side),
                    "symbol": SYMBOLS[side],
                    "size": size,
                    "opacity": opacity,
                },
                text=[labels[i] for i in here] if names else None,
                textposition="top center",
                textfont={"size": 11},
                customdata=[int(numbers[i]) for i in here],
                hovertext=[escape_plotly(split.names[i]) + ("" if is_unsplit else f": {side} class") for i in here],
                hovertemplate="%{hovertext}<extra></extra>",
                selected={"marker": {"opacity": opacity}},
                unselected={"marker": {"opacity": opacity}},
            ),
            **at,
        )
    if split.centroids is not None:
        _add_centroids(figure, split, size, first, at)


def _add_centroids(figure: go.Figure, split: ClassSplit, size: int, first: bool, at: dict[str, int]) -> None:
    """Both centroids; one outside the frame is an arrow head at its edge."""
    assert split.centroids is not None
    reach = np.array(_reach(split)) * 0.96
    for side, position, norm in zip(
        ("train", "test"), _plane(split.centroids), np.linalg.norm(split.centroids, axis=1), strict=True
    ):
        beyond = float(np.max(np.abs(position) / reach))
        end = position / max(beyond, 1.0)
        outside = beyond > 1
        angle = float(np.degrees(np.arctan2(end[0] / reach[0], end[1] / reach[1])))
        note = ", outside the frame" if outside else ""
        figure.add_trace(
            go.Scatter(
                x=[0, end[0]],
                y=[0, end[1]],
                mode="lines+markers+text" if not at else "lines+markers",
                name=f"{side} centroid",
                showlegend=False,
                line={"color": meaning(side), "width": 1.5, "dash": "dot"},
                marker={
                    "color": meaning(side),
                    "size": [0, size * 2],
                    "symbol": ["circle", "arrow" if outside else "cross"],
                    "angle": [0, angle if outside else 0],
                    "line": {"width": 1, "color": "white"},
                    "opacity": 1,
                },
                text=["", f"<b>{side} centroid</b>"] if not at else None,
                textposition=("bottom " if end[1] > 0.8 * reach[1] else "top ") + ("right" if end[0] < 0 else "left"),
                hovertext=["", f"{side} centroid: {norm:.2f} from the mean of all classes{note}"],
                hovertemplate="%{hovertext}<extra></extra>",
            ),
            **at,
        )


def _plane(points: np.ndarray) -> np.ndarray:
    """First two coordinates (n, 2); the second is zero if there is only one axis."""
    return np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))[:, :2]


def _reach(split: ClassSplit) -> tuple[float, float]:
    """Half the width and height of the frame around all classes."""
    extent = np.abs(_plane(split.points)).max(axis=0)
    return tuple(MARGIN_FACTOR * max(float(m), 0.2 * float(extent.max()), 1e-9) for m in extent)  # type: ignore[return-value]


def _free_labels(split: ClassSplit, selected: int | None = None) -> list[str]:
    """Names of classes, "" if another label or point is too near; those at the rim come first.

    selected  a class with a label of its own, below it
    """
    labels, names = [""] * len(split.names), short_names(split.names, 18)
    reach = np.array(_reach(split))
    scaled = _plane(split.points) / reach
    placed: list[tuple[float, float, float]] = []  # centres and half-widths of the labels so far
    if split.centroids is not None:
        for x, y in _plane(split.centroids) / reach:
            beyond = max(abs(x), abs(y), 0.96) / 0.96
            above = -0.05 if y / beyond > 0.8 * 0.96 else 0.05  # as in _add_centroids
            placed.append((x / beyond + (0.16 if x < 0 else -0.16), y / beyond + above, 0.16))
    if selected is not None:
        x, y = scaled[selected]
        placed.append((x, y - 0.05, 0.011 * len(short_names(split.names)[selected]) + 0.01))
    for i in np.argsort(-np.abs(scaled).max(axis=1), kind="stable"):
        if i == selected:
            continue
        x, y, half_width = float(scaled[i, 0]), float(scaled[i, 1]) + 0.05, 0.011 * len(names[i]) + 0.01
        free = all(abs(x - kx) > half_width + kh or abs(y - ky) > 0.055 for kx, ky, kh in placed)
        near = (np.abs(scaled[:, 0] - x) < half_width) & (np.abs(scaled[:, 1] - y) < 0.03)
        if free and not near.any() and abs(x) + half_width < 1 and y < 0.98:
            labels[i] = escape_plotly(names[i])
            placed.append((x, y, half_width))
    return labels


def plot_agreement(table: pd.DataFrame, n_dims: int, height: int = 380) -> go.Figure:
    """Agreement across seeds by number of dimensions, with the agreement of random splits."""
    x = [f"{d:,}" for d in table["dims"]]
    figure = go.Figure()
    figure.add_scatter(
        x=x,
        y=table["chance"],
        mode="lines",
        line={"color": QUIET, "dash": "dash"},
        name="random splits",
        hovertemplate="random splits: %{y:.0%} of classes on the same side, %{x} dimensions<extra></extra>",
    )
    sizes = [15 if d == n_dims else 9 for d in table["dims"]]
    figure.add_scatter(
        x=x,
        y=table["agreement"],
        mode="lines+markers+text",
        marker={"color": [ACCENT if d == n_dims else meaning("test") for d in table["dims"]], "size": sizes},
        line={"color": meaning("test")},
        text=[percent(value) for value in table["agreement"]],
        textposition="top center",
        name="two seeds",
        customdata=table[["reached", "above_floor", "dims"]].values.tolist(),
        hovertext=[
            f"{percent(side)} of classes on the same side, {percent(test)} of test classes shared"
            for side, test in zip(table["agreement"], table["on_test"], strict=True)
        ],
        hovertemplate="%{x} dimensions: %{hovertext},<br>divergence %{customdata[0]:.2f}, objective "
        "%{customdata[1]:.4f} above M log M<extra></extra>",
    )
    figure.update_xaxes(title_text="dimensions (last: all)", type="category")
    figure.update_yaxes(title_text="classes on the same side (%)", tickformat=".0%", range=[0, 1.12])
    figure.update_layout(
        height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0}, legend={"orientation": "h", "y": 1.05, "x": 0}
    )
    return figure


def plot_superclasses(table: pd.DataFrame, height: int = 300) -> go.Figure:
    """Number of classes by superclass and side, as stacked bars."""
    figure = go.Figure()
    names = [escape_plotly(shorten(str(name), 24)) for name in table.index]
    for side in SIDES:
        figure.add_bar(
            y=list(range(len(table))),
            x=table[side],
            orientation="h",
            name=side,
            marker={"color": meaning(side)},
            text=[str(n) if n else "" for n in table[side]],
            textposition="inside",
            textangle=0,
            insidetextanchor="middle",
            customdata=[
                [name, escape_plotly(f"{side}: {kind}")] for name, kind in zip(names, table.index, strict=True)
            ],
            hovertemplate=f"%{{customdata[0]}}: %{{x}} {side} classes<extra></extra>",
        )
    figure.update_yaxes(tickvals=list(range(len(table))), ticktext=names, autorange="reversed", automargin=True)
    figure.update_xaxes(title_text="classes")
    figure.update_layout(
        barmode="stack",
        height=height,
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1.05, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        uniformtext={"minsize": 10, "mode": "hide"},  # without room for a number the hover has it
    )
    return figure


def plot_tanglegram(facing: Tanglegram, sides: Sequence[str]) -> go.Figure:
    """Two trees facing each other, a line per class; classes behind the crossings are coloured.

    sides  of every class, for the hover
    """
    n = len(facing.crossing)
    figure = go.Figure()
    for which, (tree, middles) in enumerate(zip(facing.trees, facing.middles, strict=True)):
        height = _heights(tree)
        _add_branches(figure, tree, -1 - height if which == 0 else 1 + height, middles)
    left, right = facing.ranks
    names = [tree_names(facing.trees[0], c) for c in range(n)]
    labels = [escape_plotly(name) for name in short_names(names, 20)]
    for crosses in (False, True):
        x: list[float | None] = []
        y: list[float | None] = []
        for c in np.flatnonzero(facing.crossing == crosses):
            x += [-LINE_END, LINE_END, None]
            y += [left[c], right[c], None]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": meaning("hard") if crosses else QUIET, "width": 1.6 if crosses else 1.0},
            opacity=0.75 if crosses else 0.55,
            name="crossing" if crosses else "same order",
            hoverinfo="skip",
        )
    for ranks, edge, anchor in ((left, -0.97, "middle right"), (right, 0.97, "middle left")):
        figure.add_scatter(
            x=[edge] * n,
            y=ranks,
            mode="markers+text",
            marker={"size": 5, "color": QUIET},
            text=[
                f"<b>{label} ×</b>" if crosses else label
                for label, crosses in zip(labels, facing.crossing, strict=True)
            ],
            textposition=anchor,
            textfont={"size": 10.5},
            customdata=list(range(n)),
            hovertext=[
                f"{escape_plotly(name)}: {side} class{', crossing' if crosses else ''}"
                for name, side, crosses in zip(names, sides, facing.crossing, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    hidden: dict[str, Any] = {"showgrid": False, "zeroline": False, "showticklabels": False, "ticks": ""}
    figure.update_xaxes(range=[-2.02, 2.02], **hidden)
    figure.update_yaxes(range=[n - 0.3, -1.6], **hidden)
    for tree, edge, anchor in ((facing.trees[0], -2, "left"), (facing.trees[1], 2, "right")):
        figure.add_annotation(
            x=edge, y=-1.2, text=f"<b>{escape_plotly(shorten(tree.title, 34))}</b>", showarrow=False, xanchor=anchor
        )
    figure.update_layout(
        height=max(320, LINE * n + 90),
        margin={"l": 0, "r": 0, "t": 8, "b": 0},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0.5, "xanchor": "center"},
    )
    return figure


def tree_names(tree: ClassTree, position: int) -> str:
    """Name of the class at this position."""
    return tree.names[int(tree.leaves[position])]


def _heights(tree: ClassTree) -> np.ndarray:
    """Square roots of the heights relative to the root, so that low branches are visible."""
    return np.sqrt(tree.heights / max(float(tree.heights.max()), 1e-12))


def _add_branches(figure: go.Figure, tree: ClassTree, x: np.ndarray, y: np.ndarray) -> None:
    lines_x: list[float | None] = []
    lines_y: list[float | None] = []
    for node, parent in enumerate(tree.parents):
        if parent != PAD:
            lines_x += [float(x[node]), float(x[parent]), float(x[parent]), None]
            lines_y += [float(y[node]), float(y[node]), float(y[parent]), None]
    figure.add_scatter(
        x=lines_x,
        y=lines_y,
        mode="lines",
        line={"color": QUIET, "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    inner = [v for v in range(len(tree.parents)) if tree.names[v] and v not in set(tree.leaves.tolist())]
    if inner:
        figure.add_scatter(
            x=[float(x[v]) for v in inner],
            y=[float(y[v]) for v in inner],
            mode="markers",
            marker={"size": 6, "color": QUIET, "symbol": "square"},
            hovertext=[escape_plotly(tree.names[v]) for v in inner],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
