"""Figures of searches for hard support sets: accuracy and time, step sizes, rarity, and chosen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fsviz.difficulty.objectives import OBJECTIVES, SUPPORT_SETS
from fsviz.figures.palette import ACCENT, QUIET, SET_SYMBOLS, meaning
from fsviz.figures.support_sets import MARGIN, SETS, faint
from fsviz.text import escape_plotly

_FIRST = next(iter(OBJECTIVES))  # not written in links


def plot_searches(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str], height: int | None = None) -> go.Figure:
    """Left: accuracy with the sets of every search and objective, random sets as a line. Right: time per task.

    rows    search ("random" for none), objective, accuracy, ci95 and seconds
    titles  of the searches
    """
    table = pd.DataFrame(rows)
    random = table[table["search"] == "random"].iloc[0]
    table = table[table["search"] != "random"]
    names = list(dict.fromkeys(table["search"]))[::-1]
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.05, column_widths=[0.62, 0.38])
    for objective in OBJECTIVES:
        part = table[table["objective"] == objective]
        figure.add_scatter(
            x=part["accuracy"],
            y=[titles[name] for name in part["search"]],
            error_x={"type": "data", "array": part["ci95"].fillna(0), "thickness": 1.5, "width": 4},
            mode="markers+text",
            text=[f"{value:.1f}" for value in part["accuracy"]],
            textposition="top center",
            name=f"{objective} supports",
            marker={"color": meaning(objective), "symbol": SET_SYMBOLS[objective], "size": 12},
            customdata=[selection_of(name, objective) for name in part["search"]],
            hovertemplate=f"%{{y}}: %{{x:.1f}}% correct, {objective} supports<extra></extra>",
            row=1,
            col=1,
        )
    figure.add_vline(
        x=random["accuracy"],
        line={"dash": "dot", "color": meaning("random"), "width": 2},
        annotation_text=f"random {random['accuracy']:.1f} ± {random['ci95']:.1f}%",
        annotation_position="top",
        annotation_font={"color": meaning("random"), "size": 12},
        row=1,
        col=1,
    )
    milliseconds = (1000 * table.groupby("search")["seconds"].mean()).reindex(names)
    figure.add_bar(
        x=milliseconds,
        y=[titles[name] for name in names],
        orientation="h",
        width=0.4,
        marker_color=QUIET,
        text=[_duration(value) for value in milliseconds],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
        customdata=names,
        hovertemplate="%{y}: %{x:.3g} ms per task<extra></extra>",
        row=1,
        col=2,
    )
    low = np.floor(np.log10(float(milliseconds.min())) - 0.2)
    high = np.log10(float(milliseconds.max()))
    figure.update_xaxes(title="accuracy (%)", ticksuffix="%", row=1, col=1)
    span = [low, high + 0.3 * (high - low)]
    figure.update_xaxes(title="time per task (ms, logarithmic)", type="log", dtick=1, range=span, row=1, col=2)
    order = [titles[name] for name in names]
    figure.update_yaxes(
        automargin=True, ticklabelstandoff=8, categoryorder="array", categoryarray=order, range=[-0.5, len(names) - 0.3]
    )
    figure.update_layout(
        height=height or 140 + 62 * len(names),
        margin=MARGIN | {"t": 64, "r": 30},
        legend={"orientation": "h", "y": 1, "yref": "container", "yanchor": "top", "x": 0},
    )
    return figure


def selection_of(name: str, objective: str) -> str:
    """Text of a search or step with an objective in links; hard sets by the name alone."""
    return name if objective == _FIRST else f"{name}@{objective}"


def parse_selection(text: str) -> tuple[str, str]:
    """Search or step, and objective, of a text of `selection_of`."""
    name, _, objective = text.partition("@")
    return name, objective or _FIRST


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def plot_step_sizes(
    table: pd.DataFrame, reference: Mapping[str, float], selected: float | None = None, height: int = 380
) -> go.Figure:
    """Accuracy of hard and easy sets by the size of the gradient step; dotted lines have no step size.

    selected  the step size that is marked
    """
    figure = go.Figure()
    for objective, rows in table.groupby("objective", sort=False):
        figure.add_scatter(
            x=rows["step"],
            y=rows["accuracy"],
            error_y={"type": "data", "array": rows["ci95"], "thickness": 1.2, "width": 3},
            mode="lines+markers",
            name=objective,
            line={"color": meaning(objective), "width": 2},
            marker={"symbol": SET_SYMBOLS[objective], "size": 9},
            customdata=[selection_of(f"{step:g}", objective) for step in rows["step"]],
            hovertemplate=f"step %{{x:~g}}: %{{y:.1f}}% correct, {objective} supports<extra></extra>",
        )
        last = rows.iloc[-1]
        figure.add_annotation(
            x=np.log10(last["step"]),
            y=last["accuracy"],
            text=f" {objective}",
            showarrow=False,
            xanchor="left",
            xshift=6,
            yshift=11,  # off the dotted line that ends nearby
            font={"color": meaning(objective), "size": 13},
        )
    for name, value in reference.items():
        figure.add_hline(
            y=value,
            line={"dash": "dot", "color": meaning(name.partition(",")[0]), "width": 1.5},
            annotation_text=f"{name} {value:.1f}%",
            annotation_position="top left" if SUPPORT_SETS[name.partition(",")[0]].sign < 0 else "bottom left",
            annotation_font={"color": meaning(name.partition(",")[0]), "size": 12},
        )
    if selected is not None:
        figure.add_vline(x=selected, line={"color": ACCENT, "width": 2})
        near = table.iloc[(np.log(table["step"]) - np.log(selected)).abs().argsort()[:1]]
        figure.add_annotation(
            x=np.log10(selected),
            y=1,
            yref="paper",
            text=f"step {selected:g}",
            showarrow=False,
            yshift=12,
            font={"color": ACCENT, "size": 13},
            hovertext=f"{near['accuracy'].iloc[0]:.1f}%",
        )
    figure.update_xaxes(title="step size (logarithmic)", type="log", dtick=1)
    figure.update_yaxes(title="accuracy (%)", rangemode="tozero")
    figure.update_layout(height=height, margin=MARGIN | {"r": 55}, showlegend=False)
    return figure


def plot_number_of_steps(table: pd.DataFrame, height: int = 330) -> go.Figure:
    """Left: accuracy of hard sets by number of gradient steps. Right: query loss of the weighted prototypes, which the
    steps increase, and of the selected images."""
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.12)
    curves = (
        (1, "accuracy", "selected sets", meaning("hard"), SET_SYMBOLS["hard"], "solid", "%{y:.1f}% correct"),
        (2, "selected", "selected sets", meaning("hard"), SET_SYMBOLS["hard"], "solid", "loss %{y:.2f} nats"),
        (2, "weighted", "weighted prototypes", QUIET, "circle", "dash", "loss %{y:.2f} nats"),
    )
    for column, name, title, colour, symbol, dash, value in curves:
        rows = table.dropna(subset=[name])
        figure.add_scatter(
            x=rows["n_steps"],
            y=rows[name],
            error_y={"type": "data", "array": rows[f"{name}_ci95"].fillna(0), "thickness": 1.2, "width": 3},
            mode="lines+markers",
            name=title,
            showlegend=column == 2,
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 8},
            customdata=rows["n_steps"].tolist(),
            hovertemplate=[f"{n} step{'s' * (n != 1)}: {value}, {title}<extra></extra>" for n in rows["n_steps"]],
            row=1,
            col=column,
        )
    figure.update_xaxes(title="gradient steps", dtick=1, range=[-0.3, table["n_steps"].max() + 0.3])
    figure.update_yaxes(title="accuracy of the selected sets (%)", row=1, col=1)
    figure.update_yaxes(title="query loss (nats)", rangemode="tozero", row=1, col=2)
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure


KINDS = {"random": "random tasks", "filtered": "hardest random tasks", "searched": "hard supports"}
_KIND_COLOURS = {"random": meaning("random"), "filtered": QUIET, "searched": meaning("hard")}
_KIND_SYMBOLS = {"random": SET_SYMBOLS["random"], "filtered": "diamond", "searched": SET_SYMBOLS["hard"]}


def plot_filtered(
    curve: pd.DataFrame, means: pd.DataFrame, at: float, second: str, axis: str = "", height: int = 360
) -> go.Figure:
    """Left: number of random tasks per task of an accuracy or below. Right: mean of another property by kind of task.

    curve   accuracy and draws
    means   kind, and the columns `second` and its ci95
    at      accuracy with hard supports, marked
    second  the property on the right, "" for none; axis is its title
    """
    widths = [0.62, 0.38] if second else [1.0]
    figure = make_subplots(rows=1, cols=len(widths), horizontal_spacing=0.2, column_widths=widths)
    figure.add_scatter(
        x=curve["accuracy"],
        y=curve["draws"],
        mode="lines+markers",
        line={"shape": "hv", "color": meaning("random"), "width": 2},
        marker={"size": 6},
        fill="tozeroy",
        fillcolor=faint(meaning("random"), 0.12),
        customdata=[f"random@{value:g}" for value in curve["accuracy"]],
        hovertemplate="%{x:.0f}% correct or less: 1 in %{y:,.0f} random tasks<extra></extra>",
        showlegend=False,
        row=1,
        col=1,
    )
    figure.add_vline(
        x=at,
        line={"dash": "dot", "color": meaning("hard"), "width": 2},
        annotation_text=f"hard supports {at:.1f}%",
        annotation_position="top",
        annotation_font={"color": meaning("hard"), "size": 12},
        row=1,
        col=1,
    )
    low = min(float(curve["accuracy"].min()), at)
    figure.update_xaxes(title="accuracy of a task (%)", range=[max(0.0, low - 5), 102], row=1, col=1)
    figure.update_yaxes(title="random tasks per such task (logarithmic)", type="log", dtick=1, row=1, col=1)
    figure.update_layout(height=height, margin=MARGIN)
    if not second:
        return figure
    means = means.set_index("kind").loc[[kind for kind in KINDS if kind in set(means["kind"])][::-1]]
    figure.add_scatter(
        x=means[second],
        y=[KINDS[kind] for kind in means.index],
        error_x={
            "type": "data",
            "array": means[f"{second}_ci95"].fillna(0),
            "thickness": 1.5,
            "width": 4,
            "color": QUIET,
        },
        mode="markers+text",
        text=[f"{value:.1f}" for value in means[second]],
        textposition="top center",
        marker={
            "size": 12,
            "color": [_KIND_COLOURS[kind] for kind in means.index],
            "symbol": [_KIND_SYMBOLS[kind] for kind in means.index],
        },
        customdata=list(means.index),
        hovertemplate="%{y}: %{x:.1f}<extra></extra>",
        showlegend=False,
        row=1,
        col=2,
    )
    figure.update_xaxes(title=axis, rangemode="tozero", row=1, col=2)
    figure.update_yaxes(automargin=True, ticklabelstandoff=8, range=[-0.5, len(means) - 0.3], row=1, col=2)
    return figure


def plot_shares(table: pd.DataFrame, values: Sequence[str], height: int | None = None) -> go.Figure:
    """Share of each attribute value in the hard, random and easy supports, for restricted queries.

    table   set, value, share and ci95 (percent)
    values  those of the queries; they are on top, marked
    """
    order = table[table["set"] == "random"].sort_values("share")["value"].tolist()
    order = [value for value in order if value not in values] + [value for value in order if value in values]
    labels = [f"<b>{escape_plotly(v)}</b> (queries)" if v in values else escape_plotly(v) for v in order]
    figure = go.Figure()
    for name in SETS:
        rows = table[table["set"] == name].set_index("value").loc[order]
        figure.add_scatter(
            x=rows["share"],
            y=labels,
            error_x={"type": "data", "array": rows["ci95"].fillna(0), "thickness": 1.5, "width": 4},
            mode="markers",
            name=f"{name} supports",
            marker={"color": meaning(name), "size": 11, "symbol": SET_SYMBOLS[name]},
            customdata=[escape_plotly(f"{name}: {value}") for value in order],
            hovertemplate=f"%{{y}}: %{{x:.0f}}% of images, {name} supports<extra></extra>",
        )
    figure.add_hrect(
        y0=len(order) - len(values) - 0.5, y1=len(order) - 0.5, fillcolor=ACCENT, opacity=0.12, line_width=0
    )
    figure.update_xaxes(title="support images (%)", rangemode="tozero", ticksuffix="%")
    figure.update_yaxes(automargin=True, ticklabelstandoff=8)
    figure.update_layout(
        height=height or 130 + 30 * len(order),
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure
