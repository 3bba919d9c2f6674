"""Figures of evaluations: accuracies with intervals, accuracy against coarsity, ranks, paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, METHODS, QUIET, SERIES, meaning
from fsviz.text import drawn

# Beyond ten lines colours repeat; the dash then tells two lines of one colour apart.
_DASHES = ("solid", "dot", "dash", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def plot_accuracies(
    names: Sequence[str],
    accuracy: Sequence[float],
    ci95: Sequence[float],
    chance: float | None = None,
    top5: Sequence[float] | None = None,
    marked: bool = True,
) -> go.Figure:
    """One dot per method with its 95% interval, the best on top; a dotted line marks guessing. Percent.

    top5    how often the true class is among the five most probable, written beside the accuracy
    marked  whether the best stands out
    """
    order = np.argsort(np.asarray(accuracy, dtype=float), kind="stable")
    names = [drawn(names[i]) for i in order]
    values = np.asarray(accuracy, dtype=float)[order]
    half = np.asarray(ci95, dtype=float)[order]
    told, half = [_half(h, 2) for h in half], np.nan_to_num(half)
    beside = [""] * len(names) if top5 is None else [f", top-5 {v:.1f}" for v in np.asarray(top5, dtype=float)[order]]
    top = len(names) - 1
    figure = go.Figure(
        go.Scatter(
            x=values,
            y=names,
            mode="markers+text",
            text=[f"{v:.1f}{more}" for v, more in zip(values, beside, strict=True)],
            textposition="top center",
            marker={
                "size": 11,
                "color": [ACCENT if marked and i == top and top else QUIET for i in range(len(names))],
            },
            error_x={"type": "data", "array": half, "thickness": 2, "width": 5, "color": QUIET},
            customdata=[[text, name] for text, name in zip(told, names, strict=True)],
            hovertemplate="%{y}: %{x:.2f}%{customdata[0]}% of queries right<extra></extra>",
            cliponaxis=False,
        )
    )
    if chance is not None and len(values):
        low = float((values - half).min())
        if chance > low - 25:
            figure.add_vline(x=chance, line={"dash": "dot", "color": QUIET}, annotation_text="guessing")
    figure.update_xaxes(title="accuracy (% of queries right)")
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    figure.update_layout(height=110 + 44 * len(names), showlegend=False, margin={"l": 0, "r": 20, "t": 24, "b": 0})
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
    """Accuracy against a measure: a rolling mean and its 95% band per method, labelled at its end.

    points     (measure, accuracy in percent, position) of single tasks, drawn faintly behind
    quartiles  ranges of the measure, marked Q1 to Q4 along the top
    axis       what stands along the measure's axis, and measure what it is called beside a number
    banded     the one method whose band is drawn, and whose line is wider; unless said, both of two: more bands blend
    at         a value of the measure that is marked
    Points of a line have its 95% half-width as text and its name as customdata, single tasks their position, so that a
    click can be followed.
    """
    figure = go.Figure()
    if points is not None:
        figure.add_scatter(
            x=points[0],
            y=points[1],
            mode="markers",
            marker={"size": 5, "color": QUIET, "opacity": 0.35},
            name="single tasks",
            customdata=points[2].tolist(),
            hovertemplate=f"task %{{customdata}}: {drawn(measure)} %{{x:.1f}}, %{{y:.0f}}% right; click to see it"
            "<extra></extra>",
        )
    bands = set(curves if len(curves) <= 2 else ()) if banded is None else {banded} & set(curves)
    looks = _looks(list(curves))
    for name, curve in curves.items():
        colour, dash = looks[name]
        x, y, half = (curve[c].to_numpy(dtype=float) for c in ("measure", "accuracy", "ci95"))
        told, known = [_half(h, 1) for h in half], np.isfinite(half)
        if name in bands and len(x) > 1 and known.any():
            figure.add_scatter(
                x=np.concatenate([x[known], x[known][::-1]]),
                y=np.concatenate([(y + half)[known], (y - half)[known][::-1]]),
                mode="lines",
                fill="toself",
                fillcolor=_faded(colour, 0.15),
                line={"width": 0},
                hoverinfo="skip",
                showlegend=False,
            )
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines+markers",
            name=drawn(name),
            line={"color": colour, "width": 3.5 if banded == name and len(curves) > 1 else 2, "dash": dash},
            # markers nobody sees: a line alone cannot be clicked
            marker={"color": colour, "size": 9, "opacity": 0 if len(x) > 1 else 1},
            selected={"marker": {"opacity": 0 if len(x) > 1 else 1}},
            unselected={"marker": {"opacity": 0 if len(x) > 1 else 1}},
            customdata=[[text, drawn(name)] for text in told],
            hovertemplate=f"{drawn(name)}: %{{y:.1f}}%{{customdata[0]}}% right around {drawn(measure)} "
            "%{x:.1f}<extra></extra>",
        )
    for label, x, y, colour in _spread(curves, bool(bands), points[1] if points is not None else ()):
        figure.add_annotation(
            x=1 if points is not None else x,  # beside single tasks, not among them
            xref="paper" if points is not None else "x",
            y=y,
            text=label,
            font={"color": colour, "size": 13},
            xanchor="left",
            xshift=8,
            showarrow=False,
        )
    everything = [curve["measure"].to_numpy(dtype=float) for curve in curves.values()]
    everything += [points[0]] if points is not None else []
    first, last = (float(f(np.concatenate(everything))) if everything else 0.0 for f in (np.nanmin, np.nanmax))
    for i, (low, high) in enumerate(quartiles):
        low, high = np.clip([low, high], first, last)
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
    if at is not None and first <= at <= last:
        figure.add_vline(x=at, line={"color": ACCENT, "width": 2})
    longest = max((len(name) for name in curves), default=0)
    if everything:  # names at the ends of lines stand in the margin and must not stretch the axis
        pad = 0.02 * (last - first) or 1.0
        figure.update_xaxes(range=[first - pad, last + pad])
    figure.update_xaxes(title=drawn(axis))
    figure.update_yaxes(title="accuracy (% of queries right)")
    figure.update_layout(
        height=height,
        showlegend=False,
        margin={"l": 0, "r": min(320, 24 + 7 * longest), "t": 28, "b": 0},
    )
    return figure


def plot_quartiles(results: pd.DataFrame, height: int = 340, source: str = "") -> go.Figure:
    """Accuracy by quartile of coarsity, one line per method; columns name, Q1 .. Q4 and their ci95.

    source  where the numbers were published, for the hover: nothing is behind them here
    """
    figure = go.Figure()
    quartiles = ["Q1", "Q2", "Q3", "Q4"]
    looks = _looks([str(name) for name in results["name"]])
    for i, row in enumerate(results.to_dict("records")):
        colour, dash = looks[str(row["name"])]
        half = [row.get(f"{q}_ci95", np.nan) for q in quartiles]
        figure.add_scatter(
            x=["Q1 (finest)", "Q2", "Q3", "Q4 (coarsest)"],
            y=[row[q] for q in quartiles],
            error_y={"type": "data", "array": np.nan_to_num(half), "thickness": 1.5, "width": 4},
            mode="lines+markers",
            name=drawn(row["name"]),
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": _SYMBOLS[i % len(_SYMBOLS)], "size": 9},
            customdata=np.nan_to_num(half),
            hovertemplate=f"{drawn(row['name'])}, %{{x}}: %{{y:.1f}} ± %{{customdata:.1f}}%"
            f"{f' ({drawn(source)})' if source else ''}<extra></extra>",
        )
    ends = {
        str(row["name"]): pd.DataFrame({"measure": [3] * 4, "accuracy": [row[q] for q in quartiles]})
        for row in results.to_dict("records")
    }
    for label, x, y, colour in _spread(ends):
        figure.add_annotation(
            x=x, y=y, text=label, font={"color": colour, "size": 13}, xanchor="left", xshift=10, showarrow=False
        )
    longest = max((len(name) for name in ends), default=0)
    figure.update_xaxes(range=[-0.2, 3.05])
    figure.update_yaxes(title="accuracy (% of queries right)")
    figure.update_layout(
        height=height, showlegend=False, margin={"l": 0, "r": min(320, 24 + 7 * longest), "t": 8, "b": 0}
    )
    return figure


def _in_two_lines(name: str) -> str:
    """A method and its backbone, one above the other: beside each other they take the room of the figure."""
    return "<br>".join(drawn(part) for part in name.split(" · ", 1))


def plot_ranks(ranks: pd.DataFrame) -> go.Figure:
    """Who is best where: rank of every method (rows) in every quartile (columns), 1 is best."""
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
    # unseen markers above the cells: a heat map alone reports no clicks
    figure.add_scatter(
        x=[f"Q{b}" for _, b, _ in cells],
        y=[_in_two_lines(name) for name, _, _ in cells],
        mode="markers",
        marker={"symbol": "square", "size": 28, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[[drawn(f"{name}@Q{b}"), accuracy.loc[name, b], f"{r:g}"] for name, b, r in cells],
        hovertemplate="%{y} in %{x}: rank %{customdata[2]}, %{customdata[1]:.1f}% right<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(side="top", showgrid=False)
    figure.update_yaxes(automargin=True, showgrid=False)
    figure.update_layout(height=70 + 34 * len(wide), margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_differences(differences: pd.DataFrame) -> go.Figure:
    """Paired differences to the reference with 95% intervals: filled where significant, hollow where chance will do or
    nothing is known."""
    table = differences.iloc[::-1]
    significant = table["significant"].to_numpy(dtype=bool)
    colours = np.where(significant, np.where(table["difference"] < 0, meaning("wrong"), meaning("right")), QUIET)
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
                    [_half(h, 2) for h in table["ci95"]],
                    ["p not known" if np.isnan(p) else f"p = {p:.2g}" for p in table["p_holm"]],
                    table["name"].map(drawn),
                    strict=True,
                )
            ],
            hovertemplate="%{customdata[2]}: %{x:+.2f}%{customdata[0]} points, %{customdata[1]}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line={"color": QUIET, "width": 1.5})
    reference = _in_two_lines(differences["reference"].iloc[0]) if len(differences) else ""
    figure.update_xaxes(title=f"points of accuracy<br>against {reference}", zeroline=False)
    figure.update_yaxes(automargin=True, ticklabelstandoff=6)
    figure.update_layout(height=130 + 36 * len(table), showlegend=False, margin={"l": 0, "r": 20, "t": 8, "b": 0})
    return figure


def _half(ci95: float, digits: int) -> str:
    """The half-width of an interval as it stands behind its mean; "" where it is not known."""
    return f" ± {ci95:.{digits}f}" if np.isfinite(ci95) else ""


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and dash of each line: a method's own one, for other names and for repeats the first that is free."""
    every = [(colour, dash) for dash in _DASHES for colour in SERIES]
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        known = [m for m in METHODS if name.casefold().startswith(m.casefold())]
        look = every[METHODS.index(max(known, key=len))] if known else None
        if look is not None and look not in found.values():
            found[name] = look
    for i, name in enumerate(names):
        if name not in found:
            found[name] = next((look for look in every if look not in found.values()), every[i % len(every)])
    return found


def _spread(
    curves: Mapping[str, pd.DataFrame], band: bool = False, points: Sequence[float] | np.ndarray = ()
) -> list[tuple[str, float, float, str]]:
    """Where to write each line's name at its right end so that names do not overlap: (label, x, y, colour).

    band    whether the axis also holds the intervals around the lines
    points  what else the axis holds
    """
    looks = _looks(list(curves))
    ends: list[list[Any]] = [
        [name, float(curve["measure"].iloc[-1]), float(curve["accuracy"].iloc[-1]), looks[name][0]]
        for name, curve in curves.items()
        if len(curve)
    ]
    if not ends:
        return []
    everything = np.concatenate([curve["accuracy"].to_numpy(dtype=float) for curve in curves.values()])
    if band:
        half = np.nan_to_num(np.concatenate([curve["ci95"].to_numpy(dtype=float) for curve in curves.values()]))
        everything = np.concatenate([everything - half, everything + half])
    everything = np.concatenate([everything, np.asarray(points, dtype=float)])
    gap = max(float(np.nanmax(everything) - np.nanmin(everything)), 4.0) * 0.062
    ends.sort(key=lambda end: end[2])
    for below, above in pairwise(ends):
        above[2] = max(above[2], below[2] + gap)
    return [(drawn(name), x, y, colour) for name, x, y, colour in ends]


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
