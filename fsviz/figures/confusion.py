"""Figures of class graphs: force layout, training vs test classes, heat map, two similarities compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup

from fsviz.figures.palette import ACCENT, QUIET, SERIES, meaning
from fsviz.records.graphs import ClassGraph
from fsviz.text import escape_plotly, short_names, shorten

SYMBOLS = ("circle", "diamond", "triangle", "roundRect", "pin")  # of clusters, in addition to their colour
MANY = 120  # classes in a large graph: labels are smaller
MAX_CLICKED = 64  # classes of a heat map with clickable cells, about 4,000 cells
MAX_PLACED = 300  # classes whose labels are placed one by one
LINE = 22  # height of a class in a column
N_PARTNERS = 3  # most similar classes in the hover of a class
DIMMED = 0.25  # opacity of nodes and links outside the selection
_LETTER, _LINE_HEIGHT, _GAP = 11.0, 22.0, 14.0  # of a label, in units of the layout; gap: from the node
_MARGIN = (150.0, 60.0)  # for labels outside the outermost nodes
_LIGHT, _STRONG = (0xC3, 0xC9, 0xD2), (0xB0, 0x1E, 0x0A)


def plot_class_graph(
    graph: ClassGraph,
    xy: np.ndarray,
    n_edges: int,
    communities: np.ndarray | None = None,
    selected: Sequence[int] = (),
    pictures: Mapping[int, str] | None = None,
) -> tuple[dict[str, Any], list[int], list[tuple[int, int]]]:
    """ECharts graph of the n_edges heaviest pairs, wider and redder the more similar; and its nodes and links.

    xy           (C, 2) positions of the classes; of a bipartite graph (R + C, 2), training classes first
    communities  (C,) colours and shapes
    selected     positions of one class or of two that are selected; the rest of the graph is dimmed
    pictures     data URIs by class position, for the hovers
    Returns the chart, the class position of every node, and the two class positions of every link. In a bipartite
    graph positions count on from training to test classes. In a large graph classes without an edge are hidden.
    """
    bipartite = graph.is_bipartite
    n_rows = len(graph.rows) if bipartite else 0
    names = (*graph.row_names, *graph.column_names) if bipartite else graph.column_names
    i, j, weights = graph.edges(n_edges)
    positive = weights > 0
    ends = [(int(a), int(b) + n_rows) for a, b in zip(i[positive], j[positive], strict=True)]
    weights = weights[positive]
    strength = np.zeros(len(names))
    for (a, b), w in zip(ends, weights, strict=True):
        strength[[a, b]] += w
    crowded = len(names) > MANY
    hidden = (strength == 0) & (crowded or bipartite)
    hidden[list(selected)] = False
    nodes_at = np.flatnonzero(~hidden).tolist()
    if bipartite:
        xy, categories = _columns(xy, nodes_at, n_rows), _sides()
        codes = (np.arange(len(names)) >= n_rows).astype(int)
        label_sides = {position: "left" if position < n_rows else "right" for position in nodes_at}
    else:
        xy, categories = xy * (460, 400), _communities(communities)
        codes = np.zeros(len(names), dtype=int) if communities is None else communities
        label_sides = {} if len(nodes_at) > MAX_PLACED else _free_sides(xy, short_names(names, 20), nodes_at, ends)
    codes = np.minimum(codes, len(categories) - 1)
    size = 8 if crowded else 16
    sizes = 9 * np.ones(len(names)) if bipartite else size * (0.7 + 0.8 * strength / max(float(strength.max()), 1e-9))
    labels = short_names(names, 20)
    near = _near(selected, ends)
    nodes = []
    for position in nodes_at:
        node: dict[str, Any] = {
            "id": str(position),
            "name": names[position],
            "x": round(float(xy[position, 0]), 2),
            "y": round(float(xy[position, 1]), 2),
            "category": int(codes[position]),
            "symbolSize": round(float(sizes[position]), 1),
        }
        label: dict[str, Any] = {"position": label_sides[position]} if position in label_sides else {}
        if labels[position] != names[position] and "{" not in labels[position]:  # ECharts replaces {b}
            label["formatter"] = labels[position]
        if not bipartite:
            node["tooltip"] = {"formatter": class_hover(graph, position, (pictures or {}).get(position, ""), labels)}
        if position in selected:
            node["itemStyle"] = {"borderColor": ACCENT, "borderWidth": 4}
            label |= {"fontWeight": "bold", "fontSize": 14}
        elif selected and position not in near:
            node["itemStyle"] = {"opacity": DIMMED}
            label["opacity"] = 2 * DIMMED
        nodes.append(node | ({"label": label} if label else {}))
    links = _links(names, nodes_at, ends, weights, graph.unit, selected)
    return _graph_option(nodes, links, categories, crowded, bipartite), nodes_at, ends


def class_hover(graph: ClassGraph, position: int, picture: str = "", partners: Sequence[str] = ()) -> str:
    """HTML of a class: its name, a picture and its most similar classes, by their names in `partners` if given."""
    row = graph.weights[position]
    order = [int(p) for p in np.argsort(-np.nan_to_num(row, nan=-np.inf), kind="stable") if row[p] > 0][:N_PARTNERS]
    names = partners or graph.column_names
    image = Markup('<img src="{}" alt="" style="display:block;margin:4px 0">').format(picture)
    similar = [f"{shorten(names[p], 60)}: {row[p]:.2f} {graph.unit}".rstrip() for p in order]
    name = Markup("<b>{}</b>").format(shorten(graph.row_names[position], 60))
    hover = name + (image if picture else Markup("<br>")) + Markup("<br>").join(similar)
    return str(hover).replace("{", "&#123;")  # ECharts replaces {a}, {b}, ...


def _near(selected: Sequence[int], ends: Sequence[tuple[int, int]]) -> set[int]:
    """The neighbours of one selected class; none of two, which are compared with each other."""
    if len(selected) != 1:
        return set()
    return {b if a == selected[0] else a for a, b in ends if selected[0] in (a, b)}


def _links(
    names: Sequence[str],
    nodes_at: Sequence[int],
    ends: Sequence[tuple[int, int]],
    weights: np.ndarray,
    unit: str,
    selected: Sequence[int],
) -> list[dict[str, Any]]:
    """Links of the graph: wider and redder the heavier, the selected pair in the accent colour."""
    number = {position: n for n, position in enumerate(nodes_at)}
    low, high = (float(weights.min()), float(weights.max())) if len(weights) else (0.0, 1.0)
    links = []
    for (a, b), w in zip(ends, weights, strict=True):
        share = (float(w) - low) / (high - low) if high > low else 1.0
        is_selected = {a, b} == set(selected)
        is_dimmed = bool(selected) and not is_selected and not (len(selected) == 1 and selected[0] in (a, b))
        links.append(
            {
                "id": f"{names[a]} – {names[b]}: {w:.2f} {unit}".rstrip(),
                "source": number[a],
                "target": number[b],
                "lineStyle": {
                    "width": 7 if is_selected else round(1 + 5 * share, 2),
                    "color": ACCENT if is_selected else _blend(share),
                    "opacity": 1.0 if is_selected else round((DIMMED if is_dimmed else 1) * (0.45 + 0.45 * share), 2),
                },
            }
        )
    return links


def _graph_option(
    nodes: list[dict[str, Any]],
    links: list[dict[str, Any]],
    categories: list[dict[str, Any]],
    crowded: bool,
    bipartite: bool,
) -> dict[str, Any]:
    """ECharts option of these nodes and links."""
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
        "categories": categories,
        "label": {
            "show": True,
            "position": "right",
            "distance": 4,
            "fontSize": 10.5 if crowded else 12,
            "width": 150,
            "overflow": "truncate",
        },
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"curveness": 0.0},
        "select": {"itemStyle": {"borderColor": ACCENT, "borderWidth": 4}, "lineStyle": {"color": ACCENT}},
        "emphasis": {"focus": "adjacency", "lineStyle": {"width": 7}},
        "blur": {"itemStyle": {"opacity": 0.35}, "lineStyle": {"opacity": 0.12}, "label": {"opacity": 0.35}},
        "left": "22%" if bipartite else "12%",
        "right": "22%" if bipartite else "12%",
        "top": 44,
        "bottom": 24,
    }
    return {
        "tooltip": {"formatter": "{b}"},
        "legend": {
            "data": [{"name": category["name"], "icon": category["symbol"]} for category in categories],
            "top": 0,
            "left": 0,
            "itemWidth": 14,
            "itemHeight": 12,
            "type": "scroll",
        },
        "animationDurationUpdate": 300,
        "series": [series],
    }


def _free_sides(
    xy: np.ndarray, names: Sequence[str], positions: Sequence[int], ends: Sequence[tuple[int, int]]
) -> dict[int, str]:
    """Side of each label: where it covers the fewest edges, nodes and other labels."""
    along = np.linspace(0, 1, 25)[:, None]
    low, high = xy[positions].min(axis=0) - _MARGIN, xy[positions].max(axis=0) + _MARGIN
    on_edges = np.concatenate([np.zeros((0, 2)), *(xy[a] + along * (xy[b] - xy[a]) for a, b in ends)])
    placed = np.zeros((0, 4))  # left, top, right, bottom
    sides = {}
    for position in sorted(positions, key=lambda p: -sum(p in pair for pair in ends)):
        x, y = xy[position]
        width = _LETTER * min(len(names[position]), 20)
        boxes = {
            "right": (x + _GAP, y - _LINE_HEIGHT / 2, x + _GAP + width, y + _LINE_HEIGHT / 2),
            "left": (x - _GAP - width, y - _LINE_HEIGHT / 2, x - _GAP, y + _LINE_HEIGHT / 2),
            "top": (x - width / 2, y - _GAP - _LINE_HEIGHT, x + width / 2, y - _GAP),
            "bottom": (x - width / 2, y + _GAP, x + width / 2, y + _GAP + _LINE_HEIGHT),
        }
        costs = {
            side: _covered(np.array(box), on_edges, xy[positions], placed)
            + 100 * bool((box[:2] < low).any() or (box[2:] > high).any())  # it would be cut off
            for side, box in boxes.items()
        }
        sides[position] = min(costs, key=lambda side: costs[side])  # the first of ties
        placed = np.concatenate([placed, [boxes[sides[position]]]])
    return sides


def _covered(box: np.ndarray, on_edges: np.ndarray, nodes: np.ndarray, placed: np.ndarray) -> float:
    """Cost of a label in a box: edge pieces, nodes and labels it covers."""
    edges, covered = (((xy > box[:2]) & (xy < box[2:])).all(axis=1).sum() for xy in (on_edges, nodes))
    names = ((placed[:, :2] < box[2:]) & (placed[:, 2:] > box[:2])).all(axis=1).sum()
    return float(edges + 10 * covered + 10 * names)


def _communities(communities: np.ndarray | None) -> list[dict[str, Any]]:
    """Categories of nodes: clusters of two or more classes have a colour and a shape, the rest is grey."""
    counts = np.bincount(communities) if communities is not None else np.array([1])
    n_clusters = min(int((counts > 1).sum()), len(SERIES) - 1)
    categories = [
        {"name": f"cluster {n + 1}", "itemStyle": {"color": SERIES[n]}, "symbol": SYMBOLS[n % len(SYMBOLS)]}
        for n in range(n_clusters)
    ]
    rest = {"name": "no cluster" if n_clusters else "classes", "itemStyle": {"color": QUIET}, "symbol": "circle"}
    return categories + ([rest] if len(counts) > n_clusters else [])


def _columns(xy: np.ndarray, nodes_at: Sequence[int], n_rows: int) -> np.ndarray:
    """Positions in two columns of the same height, evenly spread in their order."""
    positions = np.asarray(nodes_at, dtype=np.int64)  # there are none if no pair is similar
    sides = [positions[positions < n_rows], positions[positions >= n_rows]]
    tallest = max(map(len, sides))
    spread = np.zeros_like(xy)
    for x, side in zip((-220, 220), sides, strict=True):
        order = side[np.argsort(xy[side, 1], kind="stable")]
        spread[order, 0] = x
        spread[order, 1] = LINE * tallest * (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return spread


def _sides() -> list[dict[str, Any]]:
    sides = (("training class", "train", "roundRect"), ("test class", "test", "circle"))
    return [{"name": name, "itemStyle": {"color": meaning(side)}, "symbol": symbol} for name, side, symbol in sides]


def _blend(share: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in zip(_LIGHT, _STRONG, strict=True))


def plot_similarity_map(graph: ClassGraph, order: np.ndarray, communities: np.ndarray, height: int = 540) -> go.Figure:
    """Heat map of a non-bipartite graph, classes in this order; lines separate the clusters."""
    names, labels = [escape_plotly(graph.row_names[i]) for i in order], short_names(graph.row_names, 22)
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
            customdata=[[f"{a} – {b}" for b in names] for a in names] if len(order) <= 300 else None,
            hovertemplate=("%{customdata}: " if len(order) <= 300 else "") + f"%{{z:.2f}} {graph.unit}<extra></extra>",
            colorbar={"title": {"text": _title(graph), "side": "right"}, "thickness": 14, "len": 0.7},
        )
    )
    for cut in np.flatnonzero(np.diff(communities[order])) + 0.5:
        for x, y in (([cut, cut], [-0.5, len(order) - 0.5]), ([-0.5, len(order) - 0.5], [cut, cut])):
            figure.add_scatter(
                x=x, y=y, mode="lines", line={"color": ACCENT, "width": 1.2}, hoverinfo="skip", showlegend=False
            )
    if len(order) <= MAX_CLICKED:  # a heat map reports no clicks: invisible squares on its cells do
        at = [(x, y) for y in range(len(order)) for x in range(len(order)) if x != y and not np.isnan(block[y, x])]
        figure.add_scatter(
            x=[x for x, _ in at],
            y=[y for _, y in at],
            mode="markers",
            customdata=[[f"{order[y]},{order[x]}", names[y], names[x], f"{block[y, x]:.2f}"] for x, y in at],
            marker={"symbol": "square", "size": max(4, 480 // len(order)), "color": "rgba(0,0,0,0)"},
            hovertemplate=f"%{{customdata[1]}} – %{{customdata[2]}}: %{{customdata[3]}} {graph.unit}<extra></extra>",
            showlegend=False,
        )
    ticks: dict[str, Any] = {"showticklabels": len(order) <= 60, "automargin": True, "constrain": "domain"}
    ticks |= {
        "tickvals": list(range(len(order))),
        "ticktext": [escape_plotly(labels[i]) for i in order],
    }
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
    labelled: Sequence[int] = (),
    selected: Sequence[str] = (),
    height: int = 470,
) -> go.Figure:
    """Every pair of classes as a point: first similarity on the x axis, second on the y axis.

    labelled  positions of the pairs with labels
    selected  names of the two classes of the selected pair, or of one class; the other points are dimmed
    """
    hover = [
        escape_plotly(f"{a} – {b}: {u:.2f} {first.unit}, {v:.2f} {second.unit}")
        for (a, b), u, v in zip(pairs, x, y, strict=True)
    ]
    short = dict(zip(first.row_names, short_names(first.row_names, 16), strict=True))
    titles = [f"{short.get(a, a)} – {short.get(b, b)}" for a, b in pairs]
    at = [e for e, pair in enumerate(pairs) if selected and set(selected) <= set(pair)]
    labelled = [] if at else labelled
    rest = np.setdiff1d(np.arange(len(x)), labelled)
    figure = go.Figure()
    quiet = {"color": QUIET, "size": 6, "opacity": DIMMED if at else 0.55}
    for which, style in ((rest, quiet), (np.array(labelled, dtype=int), None)):
        if not len(which):
            continue
        figure.add_scatter(
            x=x[which],
            y=y[which],
            mode="markers" if style else "markers+text",
            marker=style or {"color": ACCENT, "size": 10, "symbol": "diamond"},
            text=None if style else _free_labels([titles[e] for e in which], x, y, which),
            textposition=None if style else _inward(x[which], x),
            customdata=[[int(e), hover[e]] for e in which],
            hovertemplate="%{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    if at:
        figure.add_scatter(
            x=x[at],
            y=y[at],
            mode="markers+text" if len(at) == 1 else "markers",
            marker={"color": ACCENT, "size": 12, "symbol": "diamond"},
            text=[escape_plotly(titles[e]) for e in at],
            textposition=_inward(x[at], x),
            customdata=[[e, hover[e]] for e in at],
            hovertemplate="%{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(title_text=_axis(first, second), zeroline=False)
    figure.update_yaxes(title_text=_axis(second, first), zeroline=False)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 12, "b": 0})
    return figure


def _free_labels(names: list[str], x: np.ndarray, y: np.ndarray, which: np.ndarray) -> list[str]:
    """Labels of points, "" if an earlier one is too near."""
    width, height = max(float(np.ptp(x)), 1e-9), max(float(np.ptp(y)), 1e-9)
    labelled: list[int] = []
    for n, e in enumerate(which):
        near = [abs(x[e] - x[which[k]]) < 0.45 * width and abs(y[e] - y[which[k]]) < 0.05 * height for k in labelled]
        labelled += [] if any(near) else [n]
    return [escape_plotly(name) if n in labelled else "" for n, name in enumerate(names)]


def _axis(graph: ClassGraph, second: ClassGraph) -> str:
    source = f", {graph.source}" if graph.source and (graph.kind == second.kind or graph.kind == "run") else ""
    return escape_plotly(_title(graph, source))


def _title(graph: ClassGraph, source: str = "") -> str:
    return f"{graph.title}{source}" + (f" ({graph.unit})" if graph.unit else "")


def _inward(x: np.ndarray, all_x: np.ndarray) -> list[str]:
    """Label positions towards the middle, so that none leaves the figure."""
    middle = (float(all_x.min()) + float(all_x.max())) / 2
    return ["middle right" if value < middle else "middle left" for value in x]
