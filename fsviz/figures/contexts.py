"""Figures of contexts: the class–context table, and the cost of a context change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, meaning
from fsviz.records import ContextTable
from fsviz.text import escape_plotly, short_names, shorten

ROW, LEAST_ROW = 20, 12  # height of a class in pixels, and at least so that its name can be read
MAX_LABEL = 22  # letters of a class at an axis
HEADER = 130  # height of the names of the contexts
MAX_HEIGHT = 514
MAX_TOTALS = 30  # contexts whose totals fit next to each other
COUNTS = ((0.0, "#FFFFFF"), (0.02, "#DCE8F8"), (0.35, "#8DB4E2"), (0.7, "#2F6DB5"), (1.0, "#08306B"))
EMPTY = "#D5DAE1"  # cells without images where white means as often as by chance


def plot_context_table(
    table: ContextTable,
    rows: np.ndarray,
    columns: np.ndarray,
    bits: np.ndarray | None = None,
    selected: tuple[int | None, int | None] = (None, None),
) -> go.Figure:
    """Heat map of classes (rows) by contexts (columns): images, or bits (R, K) relative to chance.

    rows, columns  the ones to show, in this order
    selected       the selected row and column, None for none
    Every cell has an invisible marker on top, which a click selects; its customdata are (row, column). So have the
    totals of rows (right) and columns (below), with -1 for the missing one.
    """
    counts = table.counts[np.ix_(rows, columns)]
    z = counts.astype(float) if bits is None else bits[np.ix_(rows, columns)]
    scale: dict[str, Any] = {"colorscale": COUNTS, "zmin": 0, "zmax": max(int(counts.max(initial=0)), 1)}
    if bits is not None:
        limit = max(float(np.nanmax(np.abs(bits), initial=0.0)), 0.1)
        scale = {"colorscale": "RdBu_r", "zmin": -limit, "zmax": limit}
    title = "images" if bits is None else "bits vs chance"
    figure = go.Figure(
        go.Heatmap(
            z=np.round(z, 3),
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            **scale,
            xgap=1,
            ygap=1,
            hoverinfo="skip",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 14}
            | {"lenmode": "pixels", "len": 300, "y": 1, "yanchor": "top"},
        )
    )
    _add_cells(figure, table, rows, columns, None if bits is None else z)
    if bits is not None:
        figure.add_heatmap(
            z=np.where(counts == 0, 0.0, np.nan),
            colorscale=((0, EMPTY), (1, EMPTY)),
            showscale=False,
            xgap=1,
            ygap=1,
            hoverinfo="skip",
        )
    for axis, mark, ids in (("y", selected[0], rows), ("x", selected[1], columns)):
        for position in np.flatnonzero(ids == (-1 if mark is None else mark)):
            low, high = float(position) - 0.5, float(position) + 0.5
            box = {"x0": -0.5, "x1": len(columns) + 0.5, "y0": low, "y1": high}
            box = box if axis == "y" else {"x0": low, "x1": high, "y0": -0.5, "y1": len(rows) + 0.5}
            figure.add_shape(type="rect", line={"color": ACCENT, "width": 2}, **box)
    ticks: dict[str, Any] = {"showgrid": False, "zeroline": False, "automargin": True}
    labels = short_names(table.names, MAX_LABEL)
    figure.update_xaxes(
        **ticks,
        tickvals=list(range(len(columns) + 1)),
        ticktext=[*(escape_plotly(shorten(table.contexts[k])) for k in columns), "all"],
        tickangle=-50 if len(columns) <= 30 else -90,
        side="top",
        range=[-0.5, len(columns) + 0.5],
    )
    figure.update_yaxes(
        **ticks,
        tickvals=list(range(len(rows) + 1)),
        ticktext=[*(escape_plotly(labels[i]) for i in rows), "all"],
        range=[len(rows) + 0.5, -0.5],
    )
    n = len(rows) + 1
    height = max(320, min(HEADER + ROW * n, MAX_HEIGHT), HEADER + LEAST_ROW * n)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 8})
    return figure


def _add_cells(
    figure: go.Figure, table: ContextTable, rows: np.ndarray, columns: np.ndarray, bits: np.ndarray | None
) -> None:
    """Totals at the edges, and invisible markers with the hover texts of all cells."""
    names, contexts = [escape_plotly(table.names[i]) for i in rows], [escape_plotly(table.contexts[k]) for k in columns]
    counts = table.counts[np.ix_(rows, columns)]
    down, across = (part.ravel() for part in np.indices(counts.shape))
    row_totals, column_totals = table.counts[rows].sum(1), table.counts[:, columns].sum(0)
    n_contexts, n_classes = (table.counts[rows] > 0).sum(1), (table.counts[:, columns] > 0).sum(0)
    hover = [
        _cell_hover(names[i], contexts[k], int(counts[i, k]), None if bits is None else float(bits[i, k]))
        for i, k in zip(down, across, strict=True)
    ]
    hover += [f"{name}: {_images(n)}, {k:,} contexts" for name, n, k in zip(names, row_totals, n_contexts, strict=True)]
    hover += [
        f"{name}: {_images(n)}, {k:,} classes" for name, n, k in zip(contexts, column_totals, n_classes, strict=True)
    ]
    edge_x = [len(columns)] * len(rows) + list(range(len(columns)))
    edge_y = list(range(len(rows))) + [len(rows)] * len(columns)
    figure.add_scatter(
        x=edge_x,
        y=edge_y,
        mode="text",
        text=[f"{n:,}" for n in row_totals] + [f"{n:,}" if len(columns) <= MAX_TOTALS else "" for n in column_totals],
        textfont={"size": 12},
        cliponaxis=False,
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
        text=hover,
        hovertemplate="%{text}<extra></extra>",
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        showlegend=False,
    )


def plot_shifted_methods(
    rows: Sequence[Mapping[str, Any]],
    supports: Mapping[str, str],
    chance_level: float,
    selected: str = "",
    height: int = 0,
) -> go.Figure:
    """Accuracy (%) of every method with each support, with 95% CI; methods by family.

    rows      name (the customdata), title, family, accuracy: support -> mean and ci95 (None for no interval)
    supports  name -> title
    selected  the name of the method that is emphasised, "" for none
    """
    order = sorted(rows, key=lambda row: (row["family"], -row["accuracy"][next(iter(supports))]["mean"]))
    figure = go.Figure()
    styles = zip(supports.items(), ("easy", "hard", "incorrect"), ("circle", "diamond", "x"), strict=True)
    strong = [not selected or row["name"] == selected for row in order]
    for (name, title), colour, symbol in styles:
        accuracies = [row["accuracy"][name] for row in order]
        figure.add_scatter(
            x=[accuracy["mean"] for accuracy in accuracies],
            y=list(range(len(order))),
            error_x={"array": [accuracy["ci95"] or 0 for accuracy in accuracies], "thickness": 1.5},
            mode="markers",
            name=escape_plotly(title),
            customdata=[[row["name"], escape_plotly(row["title"])] for row in order],
            marker={
                "color": meaning(colour) if name != "spurious" else QUIET,
                "symbol": symbol,
                "size": [12 if is_strong else 9 for is_strong in strong],
                "opacity": [1.0 if is_strong else 0.5 for is_strong in strong],
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 0.5}},
            hovertemplate=f"%{{customdata[1]}}: %{{x:.1f}}% correct, {escape_plotly(title)}<extra></extra>",
            showlegend=False,
        )
    for trace in list(figure.data):  # a legend takes the opacity of the first mark, which may be dimmed
        marker = {"color": trace.marker.color, "symbol": trace.marker.symbol, "size": 10}
        figure.add_scatter(x=[None], y=[None], mode="markers", name=trace.name, marker=marker)
    for at, row in enumerate(order):  # above its marks: names on the left would take half of a narrow figure
        title = escape_plotly(row["title"])
        text = f"{f'<b>{title}</b>' if row['name'] == selected else title} · {escape_plotly(row['family'])}"
        figure.add_annotation(
            x=0, xref="paper", y=at, yshift=18, text=text, xanchor="left", showarrow=False, font={"size": 12}
        )
    figure.add_vline(
        x=chance_level,
        line={"dash": "dot", "color": QUIET},
        annotation_text="chance level",
        annotation_position="bottom right",
    )
    figure.update_xaxes(title_text="accuracy (%)")
    figure.update_yaxes(
        tickvals=list(range(len(order))), showticklabels=False, range=[len(order) - 0.4, -0.6], zeroline=False
    )
    height = height or min(MAX_HEIGHT, max(300, 130 + 44 * len(order)))
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 30, "b": 0}, legend=legend)
    return figure


def plot_losses(
    names: Sequence[str], losses: Sequence[float], half_widths: Sequence[float], max_rows: int = 15
) -> go.Figure:
    """Points lost by a context change, with 95% CI, for the classes or contexts that lose most."""
    labels = [escape_plotly(name) for name in short_names(names[:max_rows], MAX_LABEL)]
    figure = go.Figure(
        go.Bar(
            x=list(losses[:max_rows]),
            y=list(range(len(labels))),
            orientation="h",
            error_x={"array": list(half_widths[:max_rows]), "thickness": 2, "color": QUIET},
            marker={"color": meaning("hard")},
            text=[escape_plotly(name) for name in names[:max_rows]],
            textposition="none",
            customdata=[escape_plotly(name) for name in names[:max_rows]],
            hovertemplate="%{text}: %{x:.1f} points lost<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="points lost", zeroline=True)
    figure.update_yaxes(
        tickvals=list(range(len(labels))), ticktext=labels, automargin=True, range=[len(labels) - 0.5, -0.5]
    )
    figure.update_layout(height=90 + 24 * len(labels), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_similarity(
    context: np.ndarray, concept: np.ndarray, texts: Sequence[str], image_ids: np.ndarray, height: int = 460
) -> go.Figure:
    """Every image as a point: cosine similarity to the texts of its context (x) and of its class (y).

    texts      hover texts of the images
    image_ids  customdata of the points
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
        (~nearer, "closer to class text", meaning("easy"), "circle"),
        (nearer, "closer to context text", meaning("hard"), "diamond"),
    ):
        at = np.flatnonzero(which).tolist()
        figure.add_scatter(
            x=np.round(context[at], 4),
            y=np.round(concept[at], 4),
            mode="markers",
            name=f"{name} ({len(at):,})",
            marker={"color": colour, "size": 6, "opacity": 0.6, "symbol": symbol},
            text=[escape_plotly(texts[i]) for i in at],
            customdata=[int(image_ids[i]) for i in at],
            hovertemplate="%{text}: %{x:.2f} to context text, %{y:.2f} to class text<extra></extra>",
        )
    figure.update_xaxes(title_text="cosine similarity to context text (M<sub>context</sub>)", range=[low, high])
    figure.update_yaxes(
        title_text="cosine similarity to class text (M<sub>concept</sub>)",
        range=[low, high],
        scaleanchor="x",
        constrain="domain",
    )
    figure.update_xaxes(constrain="domain")
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 30, "b": 0}, legend=legend, dragmode="lasso")
    return figure


def plot_benchmarks(names: Sequence[str], values: Sequence[float]) -> go.Figure:
    """M_concept of published datasets, by the model of the paper."""
    order = np.argsort(values, kind="stable").tolist()
    titles = [escape_plotly(names[i]) for i in order]
    figure = go.Figure(
        go.Bar(
            x=[values[i] for i in order],
            y=list(range(len(order))),
            orientation="h",
            marker={"color": QUIET},
            text=[f"{values[i]:.3f}" for i in order],
            customdata=titles,
            hovertemplate="%{customdata}: %{x:.3f}, Zhang et al. 2024, table 1<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="mean similarity to class text (M<sub>concept</sub>), CLIP")
    labels = [escape_plotly(shorten(names[i])) for i in order]
    figure.update_yaxes(tickvals=list(range(len(order))), ticktext=labels, automargin=True)
    figure.update_layout(height=min(540, 100 + 22 * len(order)), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def _cell_hover(name: str, context: str, n: int, bits: float | None) -> str:
    """Hover text of a cell; bits say how much more often than expected by chance."""
    ratio = "" if bits is None or not n else f", {2**bits:.2g}x as often as expected by chance"
    return f"{name} in {context}: {_images(n)}{ratio}"


def _images(n: int) -> str:
    return f"{n:,} image{'' if n == 1 else 's'}"
