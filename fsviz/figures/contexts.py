"""Figures of contexts: the table of concepts and contexts, and what a change of context costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, meaning
from fsviz.records import ContextTable
from fsviz.text import drawn, shorten

ROW = 20  # height of a concept in pixels


def plot_context_table(
    table: ContextTable,
    rows: np.ndarray,
    columns: np.ndarray,
    bits: np.ndarray | None = None,
    picked: tuple[int | None, int | None] = (None, None),
) -> go.Figure:
    """Heat map of concepts (down) against contexts (across): images, or bits (R, K) against chance where given.

    rows, columns  which ones, in this order; picked  the row and column that are chosen, None for none
    Every cell has an unseen marker on top, which is what a click selects: its customdata are row, column. So have the
    sums of rows (right) and columns (below), with -1 for the other one.
    """
    counts = table.counts[np.ix_(rows, columns)]
    z = np.where(counts > 0, counts, np.nan) if bits is None else bits[np.ix_(rows, columns)]
    scale: dict[str, Any] = {"colorscale": "Cividis", "zmin": 0, "zmax": max(int(counts.max(initial=0)), 1)}
    if bits is not None:
        most = max(float(np.nanmax(np.abs(bits), initial=0.0)), 0.1)
        scale = {"colorscale": "RdBu_r", "zmin": -most, "zmax": most}
    title = "images" if bits is None else "bits against chance"
    names, contexts = [drawn(table.names[i]) for i in rows], [drawn(table.contexts[k]) for k in columns]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(z.astype(float), 3),
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            **scale,
            xgap=1,
            ygap=1,
            hoverinfo="skip",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 14, "len": 0.7},
        )
    )
    down, across = (part.ravel() for part in np.indices(counts.shape))
    told = [
        _words(names[i], contexts[k], int(counts[i, k]), None if bits is None else float(z[i, k]))
        for i, k in zip(down, across, strict=True)
    ]
    sums = table.counts[rows].sum(1), table.counts[:, columns].sum(0)
    n_seen = (table.counts[rows] > 0).sum(1), (table.counts[:, columns] > 0).sum(0)
    told += [f"{n:,} images of {name} in {k:,} contexts" for name, n, k in zip(names, sums[0], n_seen[0], strict=True)]
    told += [
        f"{n:,} images in {name}, of {k:,} concepts" for name, n, k in zip(contexts, sums[1], n_seen[1], strict=True)
    ]
    edge_x = [len(columns)] * len(rows) + list(range(len(columns)))
    edge_y = list(range(len(rows))) + [len(rows)] * len(columns)
    figure.add_scatter(
        x=edge_x,
        y=edge_y,
        mode="text",
        text=[f"{n:,}" for n in (*sums[0], *sums[1])],
        textfont={"size": 12, "color": QUIET},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_scatter(
        x=[*across, *edge_x],
        y=[*down, *edge_y],
        mode="markers",
        marker={"symbol": "square", "size": 17, "color": "rgba(0,0,0,0)"},
        customdata=[[int(rows[i]), int(columns[k])] for i, k in zip(down, across, strict=True)]
        + [[int(i), -1] for i in rows]
        + [[-1, int(k)] for k in columns],
        text=told,
        hovertemplate="%{text}<extra></extra>",
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        showlegend=False,
    )
    for which, chosen, ids in (("y", picked[0], rows), ("x", picked[1], columns)):
        for place in np.flatnonzero(ids == (-1 if chosen is None else chosen)):
            low, high = float(place) - 0.5, float(place) + 0.5
            box = {"x0": -0.5, "x1": len(columns) + 0.5, "y0": low, "y1": high}
            box = box if which == "y" else {"x0": low, "x1": high, "y0": -0.5, "y1": len(rows) + 0.5}
            figure.add_shape(type="rect", line={"color": ACCENT, "width": 2}, **box)
    ticks: dict[str, Any] = {"showgrid": False, "zeroline": False, "automargin": True}
    figure.update_xaxes(
        **ticks,
        tickvals=list(range(len(columns) + 1)),
        ticktext=[*(shorten(name) for name in contexts), "all"],
        tickangle=-50 if len(columns) <= 30 else -90,
        side="top",
        range=[-0.5, len(columns) + 0.5],
    )
    figure.update_yaxes(
        **ticks,
        tickvals=list(range(len(rows) + 1)),
        ticktext=[*(shorten(name) for name in names), "all"],
        range=[len(rows) + 0.5, -0.5],
    )
    figure.update_layout(height=max(320, 130 + ROW * (len(rows) + 1)), margin={"l": 0, "r": 0, "t": 8, "b": 8})
    return figure


def plot_shifted_methods(
    rows: Sequence[Mapping[str, Any]], supports: Mapping[str, str], chance: float, height: int = 0
) -> go.Figure:
    """Accuracy (%) of every method with each support, by name -> title, with 95% intervals; methods by family.

    rows  name (what a click hands out), title, family, accuracy: name -> mean and ci95 (None for no interval)
    """
    order = sorted(rows, key=lambda row: (row["family"], -row["accuracy"][next(iter(supports))]["mean"]))
    figure = go.Figure()
    styles = zip(supports.items(), ("easy", "hard", "wrong"), ("circle", "diamond", "x"), strict=True)
    labels = [drawn(f"{row['title']} · {row['family']}") for row in order]
    for (name, title), colour, symbol in styles:
        found = [row["accuracy"][name] for row in order]
        figure.add_scatter(
            x=[one["mean"] for one in found],
            y=labels,
            error_x={"array": [one["ci95"] or 0 for one in found], "thickness": 1.5},
            mode="markers",
            name=drawn(title),
            customdata=[[row["name"]] for row in order],
            marker={"color": meaning(colour) if name != "spurious" else QUIET, "symbol": symbol, "size": 11},
            hovertemplate=f"%{{y}}, {drawn(title)}: %{{x:.1f}}%<extra></extra>",
        )
    figure.add_vline(x=chance, line={"dash": "dot", "color": QUIET}, annotation_text="chance")
    figure.update_xaxes(title_text="accuracy (%)")
    figure.update_yaxes(automargin=True, autorange="reversed")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(
        height=height or 130 + 44 * len(order), margin={"l": 0, "r": 0, "t": 30, "b": 0}, legend=legend
    )
    return figure


def mark(figure: go.Figure, at: float) -> go.Figure:
    """The figure with an upright line in the colour of what is chosen."""
    figure.add_vline(x=at, line={"color": ACCENT, "width": 2})
    return figure


def plot_losses(names: Sequence[str], losses: Sequence[float], halves: Sequence[float], most: int = 15) -> go.Figure:
    """Points lost by a change of context, for the `most` classes or contexts that lose most, with 95% intervals."""
    labels = [drawn(shorten(name)) for name in names[:most]]
    figure = go.Figure(
        go.Bar(
            x=list(losses[:most]),
            y=list(range(len(labels))),
            orientation="h",
            error_x={"array": list(halves[:most]), "thickness": 2, "color": QUIET},
            marker={"color": meaning("hard")},
            text=[drawn(name) for name in names[:most]],
            textposition="none",
            customdata=[drawn(name) for name in names[:most]],
            hovertemplate="%{text}: %{x:.1f} points lost; click to see the queries<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="points lost", zeroline=True)
    figure.update_yaxes(
        tickvals=list(range(len(labels))), ticktext=labels, automargin=True, range=[len(labels) - 0.5, -0.5]
    )
    figure.update_layout(height=90 + 24 * len(labels), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_similarity(
    context: np.ndarray, concept: np.ndarray, told: Sequence[str], image_ids: np.ndarray, height: int = 520
) -> go.Figure:
    """Every image as a point: cosine with the text of its context across, of its concept up, and the diagonal.

    told  what an image is, for its hover; image_ids are the points' customdata
    """
    low = float(min(context.min(), concept.min())) - 0.01
    high = float(max(context.max(), concept.max())) + 0.01
    nearer = context > concept
    figure = go.Figure()
    figure.add_scatter(
        x=[low, high], y=[low, high], mode="lines", line={"dash": "dot", "color": QUIET}, hoverinfo="skip",
        showlegend=False,
    )  # fmt: skip
    for which, name, colour, symbol in (
        (~nearer, "nearer to its concept", meaning("easy"), "circle"),
        (nearer, "nearer to its context", meaning("hard"), "diamond"),
    ):
        at = np.flatnonzero(which).tolist()
        figure.add_scatter(
            x=np.round(context[at], 4),
            y=np.round(concept[at], 4),
            mode="markers",
            name=f"{name} ({len(at):,})",
            marker={"color": colour, "size": 6, "opacity": 0.6, "symbol": symbol},
            text=[drawn(told[i]) for i in at],
            customdata=[int(image_ids[i]) for i in at],
            hovertemplate="%{text}: %{x:.2f} with its context, %{y:.2f} with its concept<extra></extra>",
        )
    for update, values, what in ((figure.update_xaxes, context, "context"), (figure.update_yaxes, concept, "concept")):
        room = 0.05 * max(float(np.ptp(values)), 0.02)
        update(
            title_text=f"cosine with the text of its {what} (M<sub>{what}</sub>)",
            range=[float(values.min()) - room, float(values.max()) + room],
        )
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 30, "b": 0}, legend=legend, dragmode="lasso")
    return figure


def plot_benchmarks(
    names: Sequence[str], values: Sequence[float], here: tuple[str, str, float] | None = None
) -> go.Figure:
    """M_concept of published benchmarks, grey, with this dataset among them: its title, the model, and the value."""
    own = [(here[2], f"{shorten(here[0])} by {here[1]}", True)] if here else []
    every = sorted([*zip(values, names, [False] * len(names), strict=True), *own])
    figure = go.Figure(
        go.Bar(
            x=[one[0] for one in every],
            y=list(range(len(every))),
            orientation="h",
            marker={"color": [ACCENT if one[2] else QUIET for one in every]},
            text=[f"{one[0]:.3f}" for one in every],
            customdata=[drawn(one[1]) for one in every],
            hovertemplate=[
                "%{customdata}: %{x:.3f}" + ("" if one[2] else " (Zhang et al. 2024, table 1)") + "<extra></extra>"
                for one in every
            ],
        )
    )
    figure.update_xaxes(title_text="mean M<sub>concept</sub>")
    labels = [f"<b>{drawn(one[1])}</b>" if one[2] else drawn(shorten(one[1])) for one in every]
    figure.update_yaxes(tickvals=list(range(len(every))), ticktext=labels, automargin=True)
    figure.update_layout(height=100 + 22 * len(every), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def _words(name: str, context: str, n: int, bits: float | None) -> str:
    if not n:
        return f"no image of {name} in {context}"
    often = "" if bits is None else f", {2 ** abs(bits):.1f} times as {'often' if bits >= 0 else 'rarely'} as by chance"
    return f"{n:,} image{'' if n == 1 else 's'} of {name} in {context}{often}"
