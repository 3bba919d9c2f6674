"""Figures of hard and easy support sets: accuracies, attribute shifts, other classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fsviz.figures import significance
from fsviz.figures.palette import ACCENT, QUIET, SET_SYMBOLS, meaning
from fsviz.text import escape_plotly, shorten

SETS = tuple(SET_SYMBOLS)
MARGIN = {"l": 0, "r": 10, "t": 30, "b": 0}
DIMMED = 0.35  # opacity of what is not selected


def plot_distribution(
    histogram: Mapping[str, Any],
    mean: Mapping[str, float],
    ci95: Mapping[str, float | None],
    height: int = 400,
    selected: tuple[str, int] | None = None,
) -> go.Figure:
    """Number of tasks by accuracy, with hard, random and easy supports; dotted lines mark the means.

    selected  a set and the position of one of its bars: it is marked, the rest dimmed
    Points of the traces "bars of ..." carry (set, bar) as customdata.
    """
    edges = np.asarray(histogram["edges"])
    top = max(max(histogram[name]) for name in SETS) or 1
    places = _label_places(mean)
    figure = go.Figure()
    _add_outlines(figure, histogram, selected)
    if selected is not None and 0 <= selected[1] < len(edges) - 1:
        _add_selected_bar(figure, histogram, *selected)
    _add_bar_marks(figure, histogram, selected)
    _add_mean_lines(figure, mean, ci95, places, top)
    n_levels = max(1, *(level for _, _, level in places))
    room = 130 if max(mean.values()) > 90 else 70  # for the label at the highest mean
    lowest = min(float(edges[np.flatnonzero(histogram[name])].min(initial=100.0)) for name in SETS)
    low = max(-3.0, 10 * (lowest // 10) - 13)
    figure.update_xaxes(title="accuracy of a task (%)", range=[low, 103], ticksuffix="%")
    figure.update_yaxes(title="tasks", rangemode="tozero", range=[0, top * (1.18 + 0.14 * n_levels)])
    figure.update_layout(height=height, margin=MARGIN | {"t": 10, "r": room}, showlegend=False, hovermode="closest")
    return figure


def _bar_places(histogram: Mapping[str, Any]) -> tuple[np.ndarray, float]:
    """Centres of the bars of a histogram, and their width."""
    edges = np.asarray(histogram["edges"])
    return (edges[:-1] + edges[1:]) / 2, edges[1] - edges[0]


def _add_outlines(figure: go.Figure, histogram: Mapping[str, Any], selected: tuple[str, int] | None) -> None:
    """Adds the filled outline of the histogram of every set; a selected bar dims the other sets."""
    edges = np.asarray(histogram["edges"])
    centre, width = _bar_places(histogram)
    for name in SETS:
        figure.add_scatter(
            x=np.concatenate([[edges[0] - width / 2], centre, [edges[-1] + width / 2]]),
            y=[0, *histogram[name], 0],
            name=name,
            mode="lines",
            line={"shape": "hvh", "color": meaning(name), "width": 2},
            fill="tozeroy",
            fillcolor=faint(meaning(name), 0.22 if selected is None else 0.07),
            opacity=1.0 if selected is None or selected[0] == name else DIMMED,
            hoverinfo="skip",
        )


def _add_selected_bar(figure: go.Figure, histogram: Mapping[str, Any], name: str, bar: int) -> None:
    """Adds the selected bar of a set, filled and outlined."""
    centre, width = _bar_places(histogram)
    figure.add_bar(
        x=[centre[bar]],
        y=[histogram[name][bar]],
        width=width,
        marker={"color": faint(meaning(name), 0.55), "line": {"width": 2, "color": ACCENT}},
        hoverinfo="skip",
        showlegend=False,
    )


def _add_bar_marks(figure: go.Figure, histogram: Mapping[str, Any], selected: tuple[str, int] | None) -> None:
    """Adds a clickable point at the top of every bar that is not empty."""
    centre, _ = _bar_places(histogram)
    for name in SETS:
        filled = np.flatnonzero(histogram[name])
        at = [i for i, bar in enumerate(filled) if selected == (name, int(bar))]
        figure.add_scatter(
            x=centre[filled],
            y=np.asarray(histogram[name])[filled],
            name=f"bars of {name}",
            mode="markers",
            marker={
                "size": 9,
                "color": [ACCENT if i in at else meaning(name) for i in range(len(filled))],
                "opacity": [1.0 if selected is None or i in at else DIMMED for i in range(len(filled))],
                "symbol": SET_SYMBOLS[name],
                "line": {"width": [3 if i in at else 0 for i in range(len(filled))], "color": ACCENT},
            },
            selected={"marker": {"opacity": 1}},
            unselected={"marker": {"opacity": 1 if selected is None else DIMMED}},
            showlegend=False,
            customdata=[[name, int(bar)] for bar in filled],
            hovertemplate=f"{name} supports, %{{x:.0f}}% correct: %{{y}} tasks<extra></extra>",
        )


def _add_mean_lines(
    figure: go.Figure,
    mean: Mapping[str, float],
    ci95: Mapping[str, float | None],
    places: Sequence[tuple[str, str, int]],
    top: float,
) -> None:
    """Adds a dotted line at the mean of every set, with its label above the histogram.

    places  of the labels, from `_label_places`
    top     height of the highest bar
    """
    for name, anchor, level in places:
        interval = f" ± {ci95[name]:.1f}" if ci95[name] is not None else ""
        y = top * (1.06 + 0.14 * level)
        figure.add_scatter(
            x=[mean[name], mean[name]],
            y=[0, y],
            mode="lines",
            line={"color": meaning(name), "width": 2, "dash": "dot"},
            hoverinfo="skip",
            showlegend=False,
        )
        figure.add_annotation(
            x=mean[name],
            y=y,
            text=f"<b>{name}</b> {mean[name]:.1f}{interval}%",
            showarrow=False,
            xanchor=anchor,
            yshift=10,
            font={"color": meaning(name), "size": 13},
        )


def _label_places(mean: Mapping[str, float], near: float = 17.0) -> list[tuple[str, str, int]]:
    """Places of the labels of means, without overlaps: name, anchor, level above the curve."""
    low, *inner, high = sorted(mean, key=lambda name: mean[name])
    if len(inner) != 1:
        return [(low, "right", 0), *((name, "center", level) for level, name in enumerate(inner, 1)), (high, "left", 0)]
    middle = inner[0]
    below, above = mean[middle] - mean[low] < near, mean[high] - mean[middle] < near
    crowded = (below or above) and mean[high] - mean[low] < 2.2 * near  # the middle one leans towards the third
    between = {(True, True): "center", (True, False): "left", (False, True): "right"}.get((below, above), "center")
    return [
        (low, "right" if below else "center", 0),
        (middle, between, 1 if (below and above) or crowded else 0),
        (high, "left" if above else "center", 0),
    ]


def plot_gaps(table: pd.DataFrame, height: int | None = None) -> go.Figure:
    """Attribute shift between support and queries for hard, random and easy sets, with 95% of its chance variation.

    Values on the left (0 = the same distribution, 1 = nothing in common), numbers on the right in standard deviations.
    Hard and easy sets are filled if their shift differs significantly from that expected by chance; random sets are not
    tested and always filled.
    """
    kinds = [k for k in ("share", "deviations") if (table["kind"] == k).any()]
    titles = {"share": "values (contexts, styles, ...)", "deviations": "numbers (blur, size, ...)"}
    axes = {
        "share": "distribution difference (0 to 1)",
        "deviations": "shift (SD)",
    }
    titles_with_note = axes | {kinds[0]: significance.with_note(axes[kinds[0]], significance.HOLM)}
    figure = make_subplots(rows=1, cols=len(kinds), subplot_titles=[titles[k] for k in kinds], horizontal_spacing=0.17)
    n_rows = 1
    for column, kind in enumerate(kinds, start=1):
        part = table[table["kind"] == kind]
        hard = part[part["set"] == "hard"].sort_values("gap")
        order = hard["attribute"].tolist()
        n_rows = max(n_rows, len(order))
        for name in SETS:
            rows = part[part["set"] == name].set_index("attribute").loc[order]
            filled = rows["significant"] | (name == "random")
            figure.add_scatter(
                x=rows["gap"],
                y=[shortened(attribute) for attribute in order],
                name=name,
                mode="markers",
                marker={
                    "color": meaning(name),
                    "size": 11,
                    "symbol": [SET_SYMBOLS[name] + ("" if f else "-open") for f in filled],
                    "line": {"width": 2, "color": meaning(name)},
                },
                error_x={"type": "data", "array": rows["ci95"], "thickness": 1.5, "width": 4},
                showlegend=False,
                customdata=[
                    [expected, half_width, escape_plotly(attribute)]
                    for expected, half_width, attribute in zip(rows["chance"], rows["ci95"], order, strict=True)
                ],
                hovertemplate=f"%{{customdata[2]}}, {name} supports: shift %{{x:.2f}}, "
                "expected by chance %{customdata[0]:.2f} ± %{customdata[1]:.2f}<extra></extra>",
                row=1,
                col=column,
            )
        for attribute in order:
            values = part[part["attribute"] == attribute]["gap"]
            figure.add_scatter(
                x=[values.min(), values.max()],
                y=[shortened(attribute)] * 2,
                mode="lines",
                line={"color": faint(QUIET, 0.6), "width": 2},
                hoverinfo="skip",
                showlegend=False,
                row=1,
                col=column,
            )
        figure.update_xaxes(title=titles_with_note[kind], rangemode="tozero", row=1, col=column)
        figure.update_yaxes(ticklabelstandoff=8, automargin=True, row=1, col=column)
    _add_legend(figure, {name: (SET_SYMBOLS[name], meaning(name)) for name in SETS})
    figure.update_layout(
        height=height or 170 + 38 * n_rows,
        margin=MARGIN | {"t": 84},
        legend={"orientation": "h", "y": 1, "yref": "container", "yanchor": "top", "x": 0},
    )
    return figure


def plot_reasons(rows: Sequence[Mapping[str, Any]], height: int | None = None) -> go.Figure:
    """One task: cost of the shift of each attribute, in points of accuracy relative to random supports.

    rows  attribute, points, ci95 and real of the hard support, and easy: the points of the easy support; filled if real
    """
    rows = list(rows)[::-1]
    labels = [shortened(r["attribute"]) for r in rows]
    figure = go.Figure()
    for name, at in (("easy", "easy"), ("hard", "points")):
        hard = name == "hard"
        figure.add_scatter(
            x=[r[at] for r in rows],
            y=list(range(len(rows))),
            mode="markers",
            name=f"{name} support",
            showlegend=False,
            marker={
                "size": 12 if hard else 9,
                "color": meaning(name),
                "symbol": [SET_SYMBOLS[name] + ("" if hard and r["real"] else "-open") for r in rows],
                "line": {"width": 2, "color": meaning(name)},
            },
            error_x={"type": "data", "array": [r["ci95"] for r in rows], "thickness": 1.5, "width": 4} if hard else {},
            customdata=[escape_plotly(r["attribute"]) for r in rows],
            hovertemplate=f"%{{customdata}}, {name} support: costs %{{x:.1f}} points, vs random supports"
            "<extra></extra>",
        )
        _add_legend(figure, {f"{name} support": (SET_SYMBOLS[name] + ("" if hard else "-open"), meaning(name))})
    figure.add_vline(x=0, line={"color": meaning("random"), "width": 1.5, "dash": "dot"})
    note = "Filled: significant cost, and a shift larger than in 95% of random supports."
    figure.update_xaxes(title=significance.with_note("cost of the shift (points), vs random supports", note))
    figure.update_yaxes(
        automargin=True, ticklabelstandoff=6, tickvals=list(range(len(rows))), ticktext=labels, zeroline=False
    )
    figure.update_layout(
        height=height or 140 + 30 * len(rows),
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "reversed"},
    )
    return figure


def _add_legend(figure: go.Figure, entries: Mapping[str, tuple[str, str]]) -> None:
    """Legend entries name -> (symbol, colour): Plotly would show the first point, which may be hollow."""
    for name, (symbol, colour) in entries.items():
        figure.add_scatter(
            x=[None], y=[None], mode="markers", name=name, marker={"size": 11, "symbol": symbol, "color": colour}
        )


_PROTOCOLS = (  # suffix of the columns, name, symbol, colour and place in the row
    ("", "each class against the others", SET_SYMBOLS["hard"], meaning("hard"), 0.13),
    ("_alike", "all classes alike", "diamond", ACCENT, -0.13),
)


def plot_shift_cost(table: pd.DataFrame, height: int | None = None) -> go.Figure:
    """Points of accuracy that a shift of one attribute costs, by two protocols; the costliest attribute on top.

    table  attribute, and cost, ci95, significant and n_classes, again with the suffix _alike; NaN if not possible.
           Filled if the cost is significant, else hollow.
    """
    table = table.dropna(subset=["cost"]).sort_values("cost").reset_index(drop=True)
    figure = go.Figure()
    for suffix, name, symbol, colour, lift in _PROTOCOLS:
        rows = table.dropna(subset=[f"cost{suffix}"])
        figure.add_scatter(
            x=rows[f"cost{suffix}"],
            y=rows.index + lift,
            error_x={"type": "data", "array": rows[f"ci95{suffix}"].fillna(0), "thickness": 1.5, "width": 4},
            mode="markers+text",
            name=name,
            text=[f"{cost:.1f}" for cost in rows[f"cost{suffix}"]],
            textposition="top center" if lift > 0 else "bottom center",
            marker={
                "size": 11,
                "symbol": [symbol + ("" if real else "-open") for real in rows[f"significant{suffix}"]],
                "color": colour,
                "line": {"width": 2, "color": colour},
            },
            showlegend=False,
            customdata=[
                [
                    escape_plotly(r["attribute"]),
                    r[f"without_shift{suffix}"],
                    r[f"with_shift{suffix}"],
                    r[f"n_classes{suffix}"],
                ]
                for _, r in rows.iterrows()
            ],
            hovertemplate=f"%{{customdata[0]}}, {name}: %{{x:.1f}} points lost, from %{{customdata[1]:.1f}}% to "
            "%{customdata[2]:.1f}%, %{customdata[3]} classes<extra></extra>",
        )
        _add_legend(figure, {name: (symbol, colour)})
    figure.add_vline(x=0, line={"color": meaning("random"), "width": 1.5, "dash": "dot"})
    labels = [f"{shortened(r['attribute'])}<br>{_class_counts(r)}" for _, r in table.iterrows()]
    title = significance.with_note("points of accuracy lost by the shift", significance.HOLM)
    figure.update_xaxes(title=title, zeroline=False)
    figure.update_yaxes(
        automargin=True,
        ticklabelstandoff=8,
        tickvals=list(range(len(table))),
        ticktext=labels,
        range=[-0.6, len(table) - 0.4],
        zeroline=False,
    )
    figure.update_layout(
        height=height or 140 + 52 * len(table),
        margin=MARGIN,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure


def _class_counts(row: pd.Series) -> str:
    """The classes that the costs of an attribute rest on: "14 classes", or "14 and 9 classes" if they differ."""
    counts = dict.fromkeys(int(row[f"n_classes{suffix}"]) for suffix, *_ in _PROTOCOLS if row[f"n_classes{suffix}"])
    return f"{' and '.join(f'{n:,}' for n in counts)} classes"


def plot_by_coarsity(table: pd.DataFrame, height: int = 380) -> go.Figure:
    """Accuracy of hard, random and easy sets by quartile of coarsity."""
    figure = go.Figure()
    last = {name: float(table[table["set"] == name].sort_values("bin")["accuracy"].iloc[-1]) for name in SETS}
    lifts = dict.fromkeys(SETS, 0)
    if abs(last["easy"] - last["random"]) < 0.06:  # the two labels would cover each other
        lifts |= {"easy": 8, "random": -8} if last["easy"] >= last["random"] else {"easy": -8, "random": 8}
    for name in SETS:
        rows = table[table["set"] == name].sort_values("bin")
        digits = 0 if rows["high"].max() - rows["low"].min() > 12 else 1  # else two ends may read the same
        names = [
            f"{'closest' if b == 1 else 'farthest' if b == rows['bin'].max() else f'group {b}'}<br>"
            f"<span style='font-size:11px'>coarsity {low:.{digits}f} to {high:.{digits}f}</span>"
            for b, low, high in zip(rows["bin"], rows["low"], rows["high"], strict=True)
        ]
        figure.add_scatter(
            x=names,
            y=100 * rows["accuracy"],
            error_y={"type": "data", "array": 100 * rows["ci95"], "thickness": 1.2, "width": 4},
            mode="lines+markers",
            name=name,
            line={"color": meaning(name), "width": 2},
            marker={"symbol": SET_SYMBOLS[name], "size": 10},
            customdata=[[100 * half_width, int(b)] for half_width, b in zip(rows["ci95"], rows["bin"], strict=True)],
            hovertemplate=f"{name} supports: %{{y:.1f}} ± %{{customdata[0]:.1f}}% correct<extra></extra>",
        )
        below = name == "random"  # close to easy ones: a number above would cover theirs
        figure.add_scatter(
            x=names,
            y=100 * (rows["accuracy"] + (-1 if below else 1) * rows["ci95"].fillna(0)),  # clear of the interval
            mode="text",
            text=[f"{100 * a:.0f}" for a in rows["accuracy"]],
            textposition="bottom center" if below else "top center",
            hoverinfo="skip",
        )
        figure.add_annotation(
            x=len(names) - 1,
            y=100 * rows["accuracy"].iloc[-1],
            text=f"  {name}",
            showarrow=False,
            xanchor="left",
            xshift=8,
            yshift=lifts[name],
            font={"color": meaning(name), "size": 13},
        )
    figure.update_xaxes(title="quartile of semantic distance between the classes (coarsity)")
    figure.update_yaxes(title="accuracy (%)", rangemode="tozero", range=[0, 105])
    figure.update_layout(height=height, margin=MARGIN | {"r": 60}, showlegend=False)
    return figure


def plot_stress(
    matrix: Sequence[Mapping[str, Any]],
    adaptation_names: Mapping[str, str],
    source: str,
    titles: Mapping[str, str] | None = None,
) -> go.Figure:
    """Points lost from random to hard support sets, by backbone and classifier; cells show both accuracies.

    titles  of backbones; a name without one is its own title
    """
    titles = titles or {}
    rows = [r for r in matrix if r["source"] == source]
    backbones = list(dict.fromkeys(r["backbone"] for r in rows))
    adaptations = list(dict.fromkeys(r["adaptation"] for r in rows))
    drop = np.full((len(backbones), len(adaptations)), np.nan)
    text = np.full(drop.shape, "", dtype=object)
    hover = np.full(drop.shape, "", dtype=object)
    cells = []
    for r in rows:
        at = backbones.index(r["backbone"]), adaptations.index(r["adaptation"])
        drop[at] = r["drop"]
        interval = f" ± {r['drop_ci95']:.1f}" if r["drop_ci95"] is not None else ""
        text[at] = f"<b>{-r['drop']:+.1f}{interval}</b><br>{r['random']:.1f} → {r['hard']:.1f}"
        cells.append((at, escape_plotly(f"{r['backbone']} {r['adaptation']}")))
        hover[at] = escape_plotly(
            f"{_both(r['backbone'], titles)}, {adaptation_names[r['adaptation']]}: {r['random']:.1f}% with random, "
            f"{r['hard']:.1f}% with hard supports, {r['n_tasks']} tasks"
        )
    figure = go.Figure(
        go.Heatmap(
            z=drop,
            x=[adaptation_names[a] for a in adaptations],
            y=[shortened(titles.get(b, b)) + ("<br>(searched with)" if b == source else "") for b in backbones],
            text=text,
            texttemplate="%{text}",
            textfont={"size": 14},
            hoverinfo="skip",
            colorscale=[[0, _on_white(meaning("hard"), 0.06)], [1, _on_white(meaning("hard"), 0.9)]],
            zmin=0,
            zmax=max(30.0, float(np.nanmax(drop)) if np.isfinite(drop).any() else 30.0),
            xgap=3,
            ygap=3,
            colorbar={"title": {"text": "points lost"}, "thickness": 14},
        )
    )
    # invisible markers above the cells: a heat map alone reports no clicks
    figure.add_scatter(
        x=[adaptation_names[adaptations[at[1]]] for at, _ in cells],
        y=[figure.data[0].y[at[0]] for at, _ in cells],
        mode="markers",
        marker={"symbol": "square", "size": 60, "color": "rgba(0,0,0,0)"},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        customdata=[cell for _, cell in cells],
        text=[hover[at] for at, _ in cells],
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
    )
    figure.update_xaxes(title="classifier", side="top")
    figure.update_yaxes(autorange="reversed", automargin=True, ticklabelstandoff=8)
    figure.update_layout(height=140 + 84 * len(backbones), margin=MARGIN | {"t": 60})
    return figure


def plot_published(table: pd.DataFrame, height: int | None = None) -> go.Figure:
    """Published accuracies with random and with hard supports, a row per benchmark and backbone.

    table  columns label, random (NaN if not published) and hard
    """
    table = table.iloc[::-1]
    labels = [shortened(label, 40) for label in table["label"]]
    figure = go.Figure()
    for label, random, hard in zip(labels, table["random"], table["hard"], strict=True):
        line = {"color": QUIET, "width": 2}
        figure.add_scatter(x=[hard, random], y=[label] * 2, mode="lines", line=line, hoverinfo="skip", showlegend=False)
    for name, position in (("hard", "middle left"), ("random", "middle right")):
        figure.add_scatter(
            x=table[name],
            y=labels,
            mode="markers+text",
            name=f"{name} supports",
            text=["" if np.isnan(value) else f"{value:.1f}" for value in table[name]],
            textposition=position,
            marker={"color": meaning(name), "symbol": SET_SYMBOLS[name], "size": 12},
            hovertemplate=f"%{{y}}: %{{x:.1f}}% correct, {name} supports<extra></extra>",
        )
    figure.update_xaxes(title="published accuracy (%)", range=[0, 102], ticksuffix="%")
    figure.update_yaxes(automargin=True, ticklabelstandoff=8)
    figure.update_layout(
        height=height or max(300, 120 + 34 * len(table)),
        margin=MARGIN | {"t": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure


def plot_loss_accuracy(
    loss: Mapping[str, np.ndarray], accuracy: Mapping[str, np.ndarray], height: int = 380
) -> go.Figure:
    """Accuracy of every task by its query loss."""
    figure = go.Figure()
    for name in SETS:
        figure.add_scattergl(
            x=loss[name],
            y=100 * np.asarray(accuracy[name]),
            mode="markers",
            name=name,
            marker={"color": meaning(name), "symbol": SET_SYMBOLS[name], "size": 6, "opacity": 0.65},
            customdata=np.arange(len(loss[name])),
            hovertemplate=f"task %{{customdata}}, {name} supports: %{{y:.0f}}% correct, loss %{{x:.2f}}<extra></extra>",
        )
    figure.update_xaxes(title="query loss (nats, logarithmic)", type="log")
    figure.update_yaxes(title="accuracy (%)", range=[0, 103])
    figure.update_layout(
        height=height, margin=MARGIN, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    return figure


def _both(name: str, titles: Mapping[str, str]) -> str:
    """Title followed by the name, if they differ."""
    return name if titles.get(name, name) == name else f"{titles[name]} ({name})"


def shortened(name: Any, max_length: int = 28) -> str:
    """Tick label, cut to leave room for the figure; the hover has the full name."""
    return escape_plotly(shorten(str(name), max_length))


def faint(colour: str, opacity: float) -> str:
    """Colour with this opacity."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _on_white(colour: str, opacity: float) -> str:
    """Opaque mix of the colour with white, so that a cell's text has contrast on dark pages, too."""
    mixed = (round(255 + opacity * (int(colour[i : i + 2], 16) - 255)) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02X}" for part in mixed)
