"""Figures of evaluations: accuracies with intervals, accuracy by coarsity, ranks, paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, METHODS, QUIET, SERIES, meaning
from fsviz.text import escape_plotly

# Beyond ten lines colours repeat; the dash then tells two lines of one colour apart.
_DASHES = ("solid", "dot", "dash", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def plot_accuracies(
    names: Sequence[str],
    accuracy: Sequence[float],
    ci95: Sequence[float],
    chance_level: float | None = None,
    top5: Sequence[float] | None = None,
    marked: bool = True,
    selected_method: str = "",
    height: int | None = None,
) -> go.Figure:
    """One dot per method with its 95% CI, the best on top; a dotted line marks the chance level. Percent.

    chance_level     accuracy of guessing
    top5             how often the true class is among the five most probable, written next to the accuracy
    marked           whether the best is highlighted
    selected_method  the method whose name is bold
    The names of methods are the second item of the customdata.
    """
    order = np.argsort(np.asarray(accuracy, dtype=float), kind="stable")
    rows = [_in_two_lines(names[i]) for i in order]
    labels = [f"<b>{row}</b>" if names[i] == selected_method else row for i, row in zip(order, rows, strict=True)]
    names = [escape_plotly(names[i]) for i in order]
    values = np.asarray(accuracy, dtype=float)[order]
    intervals = np.asarray(ci95, dtype=float)[order]
    intervals_text, half_width = [_plus_minus(h, 2) for h in intervals], np.nan_to_num(intervals)
    suffixes = [""] * len(names) if top5 is None else [f", top-5 {v:.1f}" for v in np.asarray(top5, dtype=float)[order]]
    top = len(names) - 1
    figure = go.Figure(
        go.Scatter(
            x=values,
            y=rows,
            mode="markers+text",
            text=[f"{v:.1f}{more}" for v, more in zip(values, suffixes, strict=True)],
            textposition="top center",
            marker={
                "size": 11,
                "color": [ACCENT if marked and i == top and top else QUIET for i in range(len(names))],
            },
            error_x={"type": "data", "array": half_width, "thickness": 2, "width": 5, "color": QUIET},
            customdata=[[text, name] for text, name in zip(intervals_text, names, strict=True)],
            hovertemplate="%{customdata[1]}: %{x:.2f}%{customdata[0]}% correct<extra></extra>",
            cliponaxis=False,
        )
    )
    if chance_level is not None and len(values):
        low = float((values - half_width).min())
        if chance_level > low - 25:
            figure.add_vline(x=chance_level, line={"dash": "dot", "color": QUIET}, annotation_text="chance level")
    figure.update_xaxes(title="accuracy (%)")
    figure.update_yaxes(automargin=True, ticklabelstandoff=6, tickvals=rows, ticktext=labels)
    tall = 110 + 44 * len(names) if height is None else max(height, 60 + 30 * len(names))
    figure.update_layout(height=tall, showlegend=False, margin={"l": 0, "r": 20, "t": 24, "b": 0})
    return figure


def plot_accuracy_by_measure(
    curves: Mapping[str, pd.DataFrame],
    points: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    quartiles: Sequence[tuple[float, float]] = (),
    axis: str = "",
    measure: str = "",
    height: int = 460,
    banded: str | None = None,
    at: float | None = None,
) -> go.Figure:
    """Accuracy by a measure: a rolling mean and its 95% band per method, labelled at its end.

    points     (measure, accuracy in percent, position) of single tasks, faint in the background
    quartiles  ranges of the measure, marked Q1 to Q4 along the top
    axis       title of the measure's axis; measure its short name for the hover
    banded     the one method with a band and a wider line; by default both of two, because more bands blend
    at         a value of the measure that is marked
    Points of a line carry the 95% half-width as text and the method's name, single tasks carry their position, so that
    a click can be followed.
    """
    figure = go.Figure()
    measure = escape_plotly(measure)
    if points is not None:
        figure.add_scatter(
            x=points[0],
            y=points[1],
            mode="markers",
            marker={"size": 5, "color": QUIET, "opacity": 0.35},
            name="tasks",
            customdata=points[2].tolist(),
            hovertemplate=f"task %{{customdata}}: %{{y:.0f}}% correct, {measure} %{{x:.1f}}<extra></extra>",
        )
    bands = set(curves if len(curves) <= 2 else ()) if banded is None else {banded} & set(curves)
    styles = _styles(list(curves))
    for name, curve in curves.items():
        if name in bands:
            _add_band(figure, curve, styles[name][0])
        _add_curve(figure, name, curve, styles[name], measure, banded == name and len(curves) > 1)
    for label, x, y, colour in _label_places(curves, bool(bands), points[1] if points is not None else ()):
        figure.add_annotation(
            x=1 if points is not None else x,  # next to single tasks, not among them
            xref="paper" if points is not None else "x",
            y=y,
            text=label,
            font={"color": colour, "size": 13},
            xanchor="left",
            xshift=8,
            showarrow=False,
        )
    values = [curve["measure"].to_numpy(dtype=float) for curve in curves.values()]
    values += [points[0]] if points is not None else []
    first, last = (float(f(np.concatenate(values))) if values else 0.0 for f in (np.nanmin, np.nanmax))
    _add_quartiles(figure, quartiles, first, last)
    if at is not None and first <= at <= last:
        figure.add_vline(x=at, line={"color": ACCENT, "width": 2})
    if values:  # names at the ends of lines are in the margin and must not stretch the axis
        pad = 0.02 * (last - first) or 1.0
        figure.update_xaxes(range=[first - pad, last + pad])
    figure.update_xaxes(title=escape_plotly(axis))
    figure.update_yaxes(title="accuracy (%)")
    longest = max((len(name) for name in curves), default=0)
    margin = {"l": 0, "r": min(320, 24 + 7 * longest), "t": 28, "b": 0}
    figure.update_layout(height=height, showlegend=False, margin=margin)
    return figure


def _add_band(figure: go.Figure, curve: pd.DataFrame, colour: str) -> None:
    """The 95% band of a rolling mean, where it is available."""
    x, y, half_width = (curve[c].to_numpy(dtype=float) for c in ("measure", "accuracy", "ci95"))
    finite = np.isfinite(half_width)
    if len(x) < 2 or not finite.any():
        return
    x, low, high = x[finite], (y - half_width)[finite], (y + half_width)[finite]
    figure.add_scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=_faded(colour, 0.15),
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
    )


def _add_curve(
    figure: go.Figure, name: str, curve: pd.DataFrame, style: tuple[str, str], measure: str, wide: bool
) -> None:
    """The rolling mean of one method."""
    colour, dash = style
    label = escape_plotly(name)
    opacity = 0 if len(curve) > 1 else 1  # invisible markers: a line alone cannot be clicked
    figure.add_scatter(
        x=curve["measure"].to_numpy(dtype=float),
        y=curve["accuracy"].to_numpy(dtype=float),
        mode="lines+markers",
        name=label,
        line={"color": colour, "width": 3.5 if wide else 2, "dash": dash},
        marker={"color": colour, "size": 9, "opacity": opacity},
        selected={"marker": {"opacity": opacity}},
        unselected={"marker": {"opacity": opacity}},
        customdata=[[_plus_minus(half_width, 1), label] for half_width in curve["ci95"].to_numpy(dtype=float)],
        hovertemplate=f"{label}: %{{y:.1f}}%{{customdata[0]}}% correct, {measure} about %{{x:.1f}}<extra></extra>",
    )


def _add_quartiles(figure: go.Figure, quartiles: Sequence[tuple[float, float]], first: float, last: float) -> None:
    """Labels Q1 to Q4 along the top, with dotted lines between them."""
    for i, ends in enumerate(quartiles):
        low, high = np.clip(ends, first, last)
        figure.add_annotation(
            x=(low + high) / 2,
            y=1,
            yref="paper",
            yanchor="bottom",
            text=f"Q{i + 1}",
            showarrow=False,
            font={"size": 12},
        )
        if i:
            figure.add_vline(x=low, line={"dash": "dot", "width": 1, "color": QUIET})


def plot_quartiles(results: pd.DataFrame, height: int = 340, source: str = "") -> go.Figure:
    """Accuracy by quartile of coarsity, one line per method; columns name, Q1 .. Q4 and their ci95.

    source  where the numbers were published, for the hover
    """
    figure = go.Figure()
    quartiles = ["Q1", "Q2", "Q3", "Q4"]
    styles = _styles([str(name) for name in results["name"]])
    for i, row in enumerate(results.to_dict("records")):
        colour, dash = styles[str(row["name"])]
        half_width = [row.get(f"{q}_ci95", np.nan) for q in quartiles]
        figure.add_scatter(
            x=["Q1 (finest)", "Q2", "Q3", "Q4 (coarsest)"],
            y=[row[q] for q in quartiles],
            error_y={"type": "data", "array": np.nan_to_num(half_width), "thickness": 1.5, "width": 4},
            mode="lines+markers",
            name=escape_plotly(row["name"]),
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": _SYMBOLS[i % len(_SYMBOLS)], "size": 9},
            customdata=np.nan_to_num(half_width),
            hovertemplate=f"{escape_plotly(row['name'])}, %{{x}}: %{{y:.1f}} ± %{{customdata:.1f}}%"
            f"{f' ({escape_plotly(source)})' if source else ''}<extra></extra>",
        )
    ends = {
        str(row["name"]): pd.DataFrame({"measure": [3] * 4, "accuracy": [row[q] for q in quartiles]})
        for row in results.to_dict("records")
    }
    for label, x, y, colour in _label_places(ends):
        figure.add_annotation(
            x=x, y=y, text=label, font={"color": colour, "size": 13}, xanchor="left", xshift=10, showarrow=False
        )
    longest = max((len(name) for name in ends), default=0)
    figure.update_xaxes(range=[-0.2, 3.05])
    figure.update_yaxes(title="accuracy (%)")
    figure.update_layout(
        height=height, showlegend=False, margin={"l": 0, "r": min(320, 24 + 7 * longest), "t": 8, "b": 0}
    )
    return figure


def _in_two_lines(name: str) -> str:
    """A method and its backbone on two lines, so that they leave room for the figure."""
    return "<br>".join(escape_plotly(part) for part in name.split(" · ", 1))


def plot_ranks(ranks: pd.DataFrame) -> go.Figure:
    """Rank of every method (rows) in every quartile of coarsity (columns), 1 is best."""
    wide = ranks.pivot(index="method", columns="bin", values="rank")
    accuracy = ranks.pivot(index="method", columns="bin", values="accuracy").loc[wide.index]
    order = wide.mean(axis=1).sort_values(kind="stable", ascending=False).index
    wide, accuracy = wide.loc[order], accuracy.loc[order]
    columns = [f"Q{b}" for b in wide]
    figure = go.Figure(
        go.Heatmap(
            z=wide.to_numpy(),
            x=columns,
            y=[_in_two_lines(name) for name in wide.index],
            text=[[f"{r:g}" for r in row] for row in wide.to_numpy()],
            texttemplate="%{text}",
            hoverinfo="skip",
            colorscale=[[0, ACCENT], [1, meaning("all")]],
            textfont={"color": "#FFFFFF", "size": 14},
            zmin=1,
            zmax=max(2, len(wide)),
            showscale=False,
            xgap=3,
            ygap=3,
        )
    )
    cells = [(name, b, r) for name, row in zip(wide.index, wide.to_numpy(), strict=True) for b, r in zip(wide, row)]
    # invisible markers above the cells: a heat map alone reports no clicks
    figure.add_scatter(
        x=[f"Q{b}" for _, b, _ in cells],
        y=[_in_two_lines(name) for name, _, _ in cells],
        mode="markers",
        marker={"symbol": "square", "size": 28, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[[escape_plotly(f"{name}@Q{b}"), accuracy.loc[name, b], f"{r:g}"] for name, b, r in cells],
        hovertemplate="%{y} in %{x}: rank %{customdata[2]}, %{customdata[1]:.1f}% correct<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(side="top", showgrid=False)
    figure.update_yaxes(automargin=True, showgrid=False)
    figure.update_layout(height=70 + 34 * len(wide), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_differences(differences: pd.DataFrame, height: int | None = None) -> go.Figure:
    """Paired differences to the reference with 95% CI; filled if significant (p < 0.05, Holm-corrected)."""
    table = differences.iloc[::-1]
    significant = table["significant"].to_numpy(dtype=bool)
    colours = np.where(significant, np.where(table["difference"] < 0, meaning("incorrect"), meaning("correct")), QUIET)
    figure = go.Figure(
        go.Scatter(
            x=table["difference"],
            y=table["name"].map(_in_two_lines),
            mode="markers",
            marker={
                "size": 11,
                "color": list(colours),
                "symbol": ["circle" if s else "circle-open" for s in significant],
                "line": {"width": 2, "color": list(colours)},
            },
            error_x={"type": "data", "array": np.nan_to_num(table["ci95"]), "thickness": 2, "width": 5, "color": QUIET},
            customdata=[
                list(row)
                for row in zip(
                    [_plus_minus(h, 2) for h in table["ci95"]],
                    ["p not available" if np.isnan(p) else f"p = {p:.2g}" for p in table["p_holm"]],
                    table["name"].map(escape_plotly),
                    strict=True,
                )
            ],
            hovertemplate="%{customdata[2]}: %{x:+.2f}%{customdata[0]} points, %{customdata[1]}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line={"color": QUIET, "width": 1.5})
    reference = escape_plotly(differences["reference"].iloc[0]) if len(differences) else ""
    figure.update_xaxes(title=f"difference in accuracy (points)<br>vs {reference}", zeroline=False)
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    tall = 150 + 36 * len(table) if height is None else max(height, 90 + 30 * len(table))
    figure.update_layout(height=tall, showlegend=False, margin={"l": 0, "r": 20, "t": 8, "b": 0})
    return figure


def _plus_minus(ci95: float, digits: int) -> str:
    """Half-width of an interval as written after its mean; "" if it is not available."""
    return f" ± {ci95:.{digits}f}" if np.isfinite(ci95) else ""


def _styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and dash of each line: the method's own; for other names and for repeats the first free one."""
    palette = [(colour, dash) for dash in _DASHES for colour in SERIES]
    styles: dict[str, tuple[str, str]] = {}
    for name in names:
        methods = [m for m in METHODS if name.casefold().startswith(m.casefold())]
        style = palette[METHODS.index(max(methods, key=len))] if methods else None
        if style is not None and style not in styles.values():
            styles[name] = style
    for i, name in enumerate(names):
        if name not in styles:
            styles[name] = next((style for style in palette if style not in styles.values()), palette[i % len(palette)])
    return styles


def _label_places(
    curves: Mapping[str, pd.DataFrame], band: bool = False, points: Sequence[float] | np.ndarray = ()
) -> list[tuple[str, float, float, str]]:
    """Places of the lines' names at their right ends, without overlaps: (label, x, y, colour).

    band    whether the axis also holds the intervals around the lines
    points  further accuracies on the axis
    """
    styles = _styles(list(curves))
    ends: list[list[Any]] = [
        [name, float(curve["measure"].iloc[-1]), float(curve["accuracy"].iloc[-1]), styles[name][0]]
        for name, curve in curves.items()
        if len(curve)
    ]
    if not ends:
        return []
    values = np.concatenate([curve["accuracy"].to_numpy(dtype=float) for curve in curves.values()])
    if band:
        half_width = np.nan_to_num(np.concatenate([curve["ci95"].to_numpy(dtype=float) for curve in curves.values()]))
        values = np.concatenate([values - half_width, values + half_width])
    values = np.concatenate([values, np.asarray(points, dtype=float)])
    gap = max(float(np.nanmax(values) - np.nanmin(values)), 4.0) * 0.062
    ends.sort(key=lambda end: end[2])
    for below, above in pairwise(ends):
        above[2] = max(above[2], below[2] + gap)
    return [(escape_plotly(name), x, y, colour) for name, x, y, colour in ends]


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
