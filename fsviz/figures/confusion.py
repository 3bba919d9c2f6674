"""Figures of class graphs: by force, base beside novel classes, as a heat map, two graphs compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, SERIES, meaning
from fsviz.records import ClassGraph
from fsviz.text import drawn, shorten

SYMBOLS = ("circle", "diamond", "triangle", "roundRect", "pin")  # of communities, beside their colour
MANY = 120  # classes above which labels that touch are left out and small
MOST_CLICKED = 64  # classes whose cells can be clicked in the heat map: four thousand of them
MOST_PLACED = 300  # classes whose names are placed one by one
LINE = 22  # height of a class in a column
_LETTER, _HIGH, _REACH = 11.0, 22.0, 14.0  # of a name in units of the drawing: a letter, a line, from the node to it
_MARGIN = (150.0, 60.0)  # room for names beyond the outermost nodes
_LIGHT, _STRONG = (0xC3, 0xC9, 0xD2), (0xB0, 0x1E, 0x0A)


def plot_class_graph(
    graph: ClassGraph,
    xy: np.ndarray,
    n_edges: int,
    communities: np.ndarray | None = None,
    selected: Sequence[int] = (),
) -> tuple[dict[str, Any], list[int], list[tuple[int, int]]]:
    """ECharts graph of the n_edges heaviest pairs, wider and redder the more alike; and what its nodes and links are.

    xy           (C, 2) where the classes stand; of a bipartite graph (R + C, 2), base classes first
    communities  (C,) colours and shapes
    selected     positions of one class or of two that are picked
    Returns the chart, the position of every node that is drawn, and the two positions of every link. In a bipartite
    graph positions count on from base to novel classes. Of many classes, those without an edge are left out.
    """
    two = graph.is_bipartite
    n_rows = len(graph.rows) if two else 0
    names = (*graph.row_names, *graph.column_names) if two else graph.column_names
    i, j, weights = graph.edges(n_edges)
    there = weights > 0
    ends = [(int(a), int(b) + n_rows) for a, b in zip(i[there], j[there], strict=True)]
    weights = weights[there]
    strength = np.zeros(len(names))
    for (a, b), w in zip(ends, weights, strict=True):
        strength[[a, b]] += w
    crowded = len(names) > MANY
    hidden = (strength == 0) & (crowded or two)
    hidden[list(selected)] = False
    nodes_at = np.flatnonzero(~hidden).tolist()
    xy = _columns(xy, nodes_at, n_rows) if two else xy * (460, 400)
    number = {position: n for n, position in enumerate(nodes_at)}
    largest, size = max(float(strength.max(initial=0.0)), 1e-9), 8 if crowded else 16
    kinds = _sides() if two else _communities(communities)
    beside = {} if two or len(nodes_at) > MOST_PLACED else _free_sides(xy, names, nodes_at, ends)
    nodes = []
    for position in nodes_at:
        kind = (0 if position < n_rows else 1) if two else int(communities[position]) if communities is not None else 0
        node: dict[str, Any] = {
            "id": str(position),
            "name": names[position],
            "x": round(float(xy[position, 0]), 2),
            "y": round(float(xy[position, 1]), 2),
            "category": min(kind, len(kinds) - 1),
            "symbolSize": 9 if two else round(size * (0.7 + 0.8 * float(strength[position]) / largest), 1),
        }
        if two:
            node["label"] = {"position": "left" if position < n_rows else "right"}
        elif position in beside:
            node["label"] = {"position": beside[position]}
        if position in selected:
            node["itemStyle"] = {"borderColor": ACCENT, "borderWidth": 4}
            node["label"] = node.get("label", {}) | {"fontWeight": "bold", "fontSize": 14}
        nodes.append(node)
    low, high = (float(weights.min()), float(weights.max())) if len(weights) else (0.0, 1.0)
    links = []
    for (a, b), w in zip(ends, weights, strict=True):
        share = (float(w) - low) / (high - low) if high > low else 1.0
        chosen = {a, b} == set(selected)
        links.append(
            {
                "id": f"{names[a]} and {names[b]}: {w:.2f} {graph.unit}".rstrip(),
                "source": number[a],
                "target": number[b],
                "lineStyle": {
                    "width": 7 if chosen else round(1 + 5 * share, 2),
                    "color": ACCENT if chosen else _blend(share),
                    "opacity": 1.0 if chosen else round(0.45 + 0.45 * share, 2),
                },
            }
        )
    series = {
        "type": "graph",
        "layout": "none",
        "roam": True,
        "selectedMode": "single",
        "scaleLimit": {"min": 0.5, "max": 12},
        "nodeScaleRatio": 0.4,
        "preserveAspect": "contain",
        "data": nodes,
        "links": links,
        "categories": kinds,
        "label": {
            "show": True,
            "position": "right",
            "distance": 4,
            "fontSize": 10.5 if crowded else 12,
            "width": 130,
            "overflow": "truncate",
        },
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"curveness": 0.0},
        "select": {"itemStyle": {"borderColor": ACCENT, "borderWidth": 4}, "lineStyle": {"color": ACCENT}},
        "emphasis": {"focus": "adjacency", "lineStyle": {"width": 7}},
        "blur": {"itemStyle": {"opacity": 0.35}, "lineStyle": {"opacity": 0.12}, "label": {"opacity": 0.35}},
        "left": "22%" if two else "12%",
        "right": "22%" if two else "12%",
        "top": 44,
        "bottom": 24,
    }
    chart = {
        "tooltip": {"formatter": "{b}"},
        "legend": {
            "data": [{"name": kind["name"], "icon": kind["symbol"]} for kind in kinds],
            "top": 0,
            "left": 0,
            "itemWidth": 14,
            "itemHeight": 12,
            "type": "scroll",
        },
        "animationDurationUpdate": 300,
        "series": [series],
    }
    return chart, nodes_at, ends


def _free_sides(
    xy: np.ndarray, names: Sequence[str], positions: Sequence[int], ends: Sequence[tuple[int, int]]
) -> dict[int, str]:
    """On which side of its node every name stands: where it lies on the fewest edges, nodes and other names."""
    along = np.linspace(0, 1, 25)[:, None]
    low, high = xy[positions].min(axis=0) - _MARGIN, xy[positions].max(axis=0) + _MARGIN
    on_edges = np.concatenate([np.zeros((0, 2)), *(xy[a] + along * (xy[b] - xy[a]) for a, b in ends)])
    written = np.zeros((0, 4))  # left, top, right, bottom
    sides = {}
    for position in sorted(positions, key=lambda p: -sum(p in pair for pair in ends)):
        x, y = xy[position]
        wide = _LETTER * min(len(names[position]), 20)
        boxes = {
            "right": (x + _REACH, y - _HIGH / 2, x + _REACH + wide, y + _HIGH / 2),
            "left": (x - _REACH - wide, y - _HIGH / 2, x - _REACH, y + _HIGH / 2),
            "top": (x - wide / 2, y - _REACH - _HIGH, x + wide / 2, y - _REACH),
            "bottom": (x - wide / 2, y + _REACH, x + wide / 2, y + _REACH + _HIGH),
        }
        costs = {
            side: _covered(np.array(box), on_edges, xy[positions], written)
            + 30 * bool((box[:2] < low).any() or (box[2:] > high).any())  # it would be cut
            for side, box in boxes.items()
        }
        sides[position] = min(costs, key=lambda side: costs[side])  # the first of equals
        written = np.concatenate([written, [boxes[sides[position]]]])
    return sides


def _covered(box: np.ndarray, on_edges: np.ndarray, nodes: np.ndarray, written: np.ndarray) -> float:
    """How much a name in a box would cover: bits of edges, and what is worse, nodes and names."""
    edges, over = (((of > box[:2]) & (of < box[2:])).all(axis=1).sum() for of in (on_edges, nodes))
    names = ((written[:, :2] < box[2:]) & (written[:, 2:] > box[:2])).all(axis=1).sum()
    return float(edges + 10 * over + 10 * names)


def _communities(communities: np.ndarray | None) -> list[dict[str, Any]]:
    """Kinds of nodes: communities of two classes or more have a colour and a shape, the rest is grey."""
    counts = np.bincount(communities) if communities is not None else np.array([1])
    shown = min(int((counts > 1).sum()), len(SERIES) - 1)
    kinds = [
        {"name": f"community {n + 1}", "itemStyle": {"color": SERIES[n]}, "symbol": SYMBOLS[n % len(SYMBOLS)]}
        for n in range(shown)
    ]
    rest = {"name": "in none" if shown else "classes", "itemStyle": {"color": QUIET}, "symbol": "circle"}
    return kinds + ([rest] if len(counts) > shown else [])


def _columns(xy: np.ndarray, shown: Sequence[int], n_rows: int) -> np.ndarray:
    """Places of two columns whose shown classes are evenly spread, in their order, over the same height."""
    positions = np.asarray(shown)
    sides = [positions[positions < n_rows], positions[positions >= n_rows]]
    tallest = max(map(len, sides))
    spread = np.zeros_like(xy)
    for x, side in zip((-220, 220), sides, strict=True):
        order = side[np.argsort(xy[side, 1], kind="stable")]
        spread[order, 0] = x
        spread[order, 1] = LINE * tallest * (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return spread


def _sides() -> list[dict[str, Any]]:
    sides = (("base class", "train", "roundRect"), ("novel class", "test", "circle"))
    return [{"name": name, "itemStyle": {"color": meaning(like)}, "symbol": symbol} for name, like, symbol in sides]


def _blend(share: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in zip(_LIGHT, _STRONG, strict=True))


def plot_likeness_map(graph: ClassGraph, order: np.ndarray, communities: np.ndarray, height: int = 640) -> go.Figure:
    """Heat map of a graph that is not bipartite, classes in this order; lines part the communities."""
    names = [drawn(graph.row_names[i]) for i in order]
    block = graph.weights[np.ix_(order, order)]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(block, 4),
            x=list(range(len(order))),
            y=list(range(len(order))),
            zmin=min(0.0, float(np.nanmin(block))),
            zmax=float(np.nanmax(block)),
            colorscale="Cividis",
            hoverongaps=False,
            customdata=[[f"{a} and {b}" for b in names] for a in names] if len(order) <= 300 else None,
            hovertemplate=("%{customdata}: " if len(order) <= 300 else "") + f"%{{z:.2f}} {graph.unit}<extra></extra>",
            colorbar={"title": {"text": _title(graph), "side": "right"}, "thickness": 14, "len": 0.7},
        )
    )
    found = communities[order]
    for cut in np.flatnonzero(np.diff(found)) + 0.5:
        for x, y in (([cut, cut], [-0.5, len(order) - 0.5]), ([-0.5, len(order) - 0.5], [cut, cut])):
            figure.add_scatter(
                x=x, y=y, mode="lines", line={"color": ACCENT, "width": 1.2}, hoverinfo="skip", showlegend=False
            )
    if len(order) <= MOST_CLICKED:  # a heat map hands out no clicks: squares that nobody sees lie on its cells
        at = [(x, y) for y in range(len(order)) for x in range(len(order)) if x != y and not np.isnan(block[y, x])]
        figure.add_scatter(
            x=[x for x, _ in at],
            y=[y for _, y in at],
            mode="markers",
            customdata=[[f"{order[y]},{order[x]}", names[y], names[x], f"{block[y, x]:.2f}"] for x, y in at],
            marker={"symbol": "square", "size": max(4, 480 // len(order)), "color": "rgba(0,0,0,0)"},
            hovertemplate=f"%{{customdata[1]}} and %{{customdata[2]}}: %{{customdata[3]}} {graph.unit}<extra></extra>",
            showlegend=False,
        )
    ticks: dict[str, Any] = {"showticklabels": len(order) <= 60, "automargin": True, "constrain": "domain"}
    ticks |= {"tickvals": list(range(len(order))), "ticktext": [drawn(shorten(graph.row_names[i])) for i in order]}
    ticks |= {"showgrid": False, "zeroline": False, "range": [-0.5, len(order) - 0.5]}
    figure.update_xaxes(**ticks, tickangle=-60)
    figure.update_yaxes(**ticks | {"range": [len(order) - 0.5, -0.5]}, scaleanchor="x")
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_comparison(
    first: ClassGraph,
    second: ClassGraph,
    x: np.ndarray,
    y: np.ndarray,
    pairs: Sequence[tuple[str, str]],
    named: Sequence[int] = (),
    height: int = 520,
) -> go.Figure:
    """Every pair of classes as a point, first likeness across and second up; those in `named` have their names."""
    words = [drawn(f"{a} and {b}") for a, b in pairs]
    told = [f"{name}: {u:.2f} {first.unit} and {v:.2f} {second.unit}" for name, u, v in zip(words, x, y, strict=True)]
    rest = np.setdiff1d(np.arange(len(x)), named)
    figure = go.Figure()
    for which, style in ((rest, {"color": QUIET, "size": 6, "opacity": 0.55}), (np.array(named, dtype=int), None)):
        if not len(which):
            continue
        figure.add_scatter(
            x=x[which],
            y=y[which],
            mode="markers" if style else "markers+text",
            marker=style or {"color": ACCENT, "size": 10, "symbol": "diamond"},
            text=None if style else _apart([shorten(" and ".join(pairs[e]), 34) for e in which], x, y, which),
            textposition=None if style else _beside(x[which], x),
            customdata=[[int(e), told[e]] for e in which],
            hovertemplate="%{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(title_text=_axis(first, second), zeroline=False)
    figure.update_yaxes(title_text=_axis(second, first), zeroline=False)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 12, "b": 0})
    return figure


def _apart(names: list[str], x: np.ndarray, y: np.ndarray, which: np.ndarray) -> list[str]:
    """Names of points, "" where one that comes before stands too near."""
    across, up = max(float(np.ptp(x)), 1e-9), max(float(np.ptp(y)), 1e-9)
    kept: list[int] = []
    for n, e in enumerate(which):
        near = [abs(x[e] - x[which[k]]) < 0.45 * across and abs(y[e] - y[which[k]]) < 0.05 * up for k in kept]
        kept += [] if any(near) else [n]
    return [drawn(name) if n in kept else "" for n, name in enumerate(names)]


def _axis(graph: ClassGraph, other: ClassGraph) -> str:
    whose = f", {graph.source}" if graph.source and (graph.kind == other.kind or graph.kind == "run") else ""
    return drawn(_title(graph, whose))


def _title(graph: ClassGraph, whose: str = "") -> str:
    return f"{graph.title}{whose}" + (f" ({graph.unit})" if graph.unit else "")


def _beside(x: np.ndarray, all_x: np.ndarray) -> list[str]:
    """Labels read towards the middle, so that none leaves the figure."""
    middle = (float(all_x.min()) + float(all_x.max())) / 2
    return ["middle right" if value < middle else "middle left" for value in x]
