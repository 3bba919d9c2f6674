"""Figures of the taxonomy: sunburst or graph of concepts, heat map of distances, tree of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, SERIES, meaning
from fsviz.records import PAD
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.text import escape_plotly, shorten

MANY = 700  # nodes above which a graph has no animation
ENDS = {"radial": 100, "layered": 48}  # leaves that have room for their names
RINGS, SECTORS = 4, 170  # maximum number of rings, and of sectors in the last one
_DARK = "#1C2430"
_LETTER = 6.2  # approximate width of a letter in pixels
_RADIUS = 330  # approximate radius in pixels


def plot_concept_sunburst(
    tree: ConceptTree, at: int, levels: int, selected: Sequence[int] = (), pictures: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """ECharts sunburst of the subtree below one node, which is in the centre.

    The angle of a sector is its number of classes. Clicks return positions in `tree.part(at, levels)`, counted from 1.

    selected  positions in the split of the selected classes
    pictures  node -> HTML of its pictures, for the tooltip
    """
    part = tree.part(at, levels).tolist()
    chosen = {v for v in range(len(tree.ids)) if tree.class_position[v] in set(selected)} if selected else set()
    marked = {ancestor for v in chosen for ancestor in tree.path_to(v)} - set(tree.path_to(at)[:-1])
    inside = set(part)
    children: dict[int, list[int]] = {}
    for v in part[1:]:
        children.setdefault(int(tree.parents[v]), []).append(v)
    branch: dict[int, int] = {}
    for i, first in enumerate(children.get(at, [])):
        branch[first] = i
    for v in part[1:]:
        branch.setdefault(v, branch.get(int(tree.parents[v]), 0))
    nodes: dict[int, dict[str, Any]] = {}
    for v in part:
        ring = int(tree.depth[v] - tree.depth[at])
        colour = ACCENT if v in chosen else _tint(SERIES[(branch.get(v, 0) + 1) % len(SERIES)], 0.16 * (ring - 1))
        style: dict[str, Any] = {"color": colour if v != at else "transparent"}
        if v in marked and v != at:
            style |= {"borderColor": ACCENT, "borderWidth": 2.5}
        folded = tree.n_nodes[v] > 1 and v + 1 not in inside
        nodes[v] = {
            "name": tree.names[v] + (" ▸" if folded else ""),
            "value": int(tree.n_classes[v]),
            "itemStyle": style,
            "label": {"color": QUIET if v == at else "#FFFFFF" if v in chosen or ring < 3 else _DARK},
            "tooltip": {"formatter": _sector_tooltip(tree, v, (pictures or {}).get(v, ""))},
        }
        if v != at:
            nodes[int(tree.parents[v])].setdefault("children", []).append(nodes[v])
    depth = int(tree.depth[part].max() - tree.depth[at])
    rings = _rings(depth)
    for v in part[1:]:
        _rotate_label(nodes[v], rings[1 + int(tree.depth[v] - tree.depth[at])], int(tree.n_classes[at]))
    return {
        "animation": False,
        "tooltip": {},
        "series": [
            {
                "type": "sunburst",
                "data": [nodes[at]],
                "radius": ["0%", "98%"],
                "sort": None,
                "nodeClick": False,
                "selectedMode": "single",
                "emphasis": {"focus": "none"},
                "itemStyle": {"borderWidth": 0.6},
                "label": {"overflow": "truncate", "ellipsis": "…", "fontSize": 11.5, "textBorderWidth": 0},
                "levels": rings,
            }
        ],
    }


def _sector_tooltip(tree: ConceptTree, v: int, pictures: str) -> str:
    """Tooltip of a sector; {b} is its name, which ECharts escapes."""
    is_class = tree.class_position[v] != PAD
    text = "class" if is_class and tree.n_nodes[v] == 1 else _n_classes(int(tree.n_classes[v]))
    return f"<b>{{b}}</b>: {text}{pictures}"


def _rings(depth: int) -> list[dict[str, Any]]:
    """Radii of the rings and the minimum angle of a label in each; the last ring is the widest."""
    middle = 17.0
    shares = np.array([*([1.0] * max(depth - 1, 0)), 1.35][:depth])
    edges = middle + np.concatenate([[0.0], np.cumsum(shares / shares.sum())]) * (98 - middle) if depth else [middle]
    levels: list[dict[str, Any]] = [
        {},
        {"r0": "0%", "r": f"{middle}%", "label": {"rotate": 0, "width": 100, "fontSize": 13, "fontWeight": "bold"}},
    ]
    for inner, outer in pairwise(edges):
        centre = _RADIUS * (inner + outer) / 200
        needed = 360 * 13 / (2 * np.pi * centre)
        levels.append(
            {
                "r0": f"{inner:.1f}%",
                "r": f"{outer:.1f}%",
                "label": {
                    "rotate": "radial",
                    "minAngle": round(needed, 2),
                    "width": round(_RADIUS * (outer - inner) / 100 - 8),
                },
            }
        )
    return levels


def _rotate_label(node: dict[str, Any], ring: dict[str, Any], total: int) -> None:
    """Writes a label along its ring if it is too long to fit across it and the arc has room."""
    width, length = ring["label"]["width"], _LETTER * len(node["name"])
    centre = _RADIUS * (float(ring["r0"][:-1]) + float(ring["r"][:-1])) / 200
    arc = 2 * np.pi * centre * node["value"] / total - 12
    if length > width and arc > width:
        node["label"] |= {"rotate": "tangential", "width": round(arc)}


def _tint(colour: str, share: float) -> str:
    """Colour mixed with this share of white."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * min(max(share, 0.0), 0.7)):02X}" for channel in channels)


def plot_class_map(
    graph: ClassMap, selected: Sequence[int] = (), pictures: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """ECharts graph: root green, classes red, concepts grey; first-level concepts have their own colours.

    Leaves are labelled if there is room for all of them, else only the selection and the first level; tooltips have
    every name.

    selected  positions in the graph of the selected classes
    pictures  node -> HTML of its pictures
    """
    chosen = {int(graph.shown_at[p]) for p in selected}
    crowded = len(graph.names) > MANY
    size = 5 if crowded else 7 if len(graph.names) > 250 else 10
    radial = bool((graph.xy[:, 0] < -1e-9).any())
    nodes = _class_map_nodes(graph, chosen, size, radial, pictures or {})
    categories = [
        {"name": "root", "itemStyle": {"color": meaning("root")}, "symbol": "diamond"},
        {"name": "concept", "itemStyle": {"color": QUIET}, "symbol": "circle"},
        {"name": "collapsed concept", "itemStyle": {"color": QUIET, "opacity": 0.75}, "symbol": "roundRect"},
        {"name": "class", "itemStyle": {"color": meaning("leaf")}, "symbol": "circle"},
        {"name": "selected", "itemStyle": {"color": ACCENT}, "symbol": "triangle"},
    ]
    series: dict[str, Any] = {
        "type": "graph",
        "layout": "none",
        "roam": True,
        "selectedMode": "single",
        "scaleLimit": {"min": 0.6, "max": 40},
        "nodeScaleRatio": 0.2,
        "preserveAspect": "contain",
        "data": nodes,
        "links": _tree_links(graph),
        "categories": categories,
        "symbolSize": size,
        "label": {
            "show": True,
            "position": "right",
            "fontSize": 10.5,
            "distance": 4,
            "width": 104,  # in a figure of 600 pixels the margins at its sides have so much room
            "overflow": "truncate",
        },
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"color": QUIET, "opacity": 0.55, "width": 1},
        "select": {"itemStyle": {"borderColor": ACCENT, "borderWidth": 3}},
        "emphasis": {"focus": "none" if crowded else "adjacency", "label": {"show": True}},
        "blur": {"itemStyle": {"opacity": 0.45}, "lineStyle": {"opacity": 0.2}, "label": {"opacity": 0.4}},
        "left": "19%" if radial else "4%",
        "right": "19%",
        "top": "17%" if radial else "9%",
        "bottom": "13%" if radial else "3%",
    }
    if crowded:
        series["progressive"] = 400
    return {
        "tooltip": {},
        "toolbox": {"feature": {"restore": {"title": "Reset zoom"}}, "right": 6, "top": 2, "itemSize": 18},
        "legend": {
            "data": [{"name": category["name"], "icon": category["symbol"]} for category in categories],
            "orient": "vertical",
            "top": 0,
            "left": 0,
            "itemWidth": 13,
            "itemHeight": 13,
        },
        "animation": not crowded,
        "animationDurationUpdate": 400,
        "series": [series],
    }


def _class_map_nodes(
    graph: ClassMap, chosen: set[int], size: float, radial: bool, pictures: Mapping[int, str]
) -> list[dict[str, Any]]:
    """Nodes of the class map; category 0 is the root, 1 concepts, 2 collapsed ones, 3 classes, 4 the selection."""
    first_level = np.flatnonzero((graph.depth == 1) & (graph.class_position == PAD))
    colours = [colour for colour in SERIES if colour not in (ACCENT, meaning("leaf"))]  # red: class, blue: selected
    few_branches = 1 < len(first_level) <= len(colours)
    branch_colour = {int(v): colour for v, colour in zip(first_level, colours)} if few_branches else {}
    ends = np.ones(len(graph.names), dtype=bool)
    ends[graph.parents] = False
    all_labels = int(ends.sum()) <= 1.25 * ENDS["radial" if radial else "layered"]
    nodes = []
    for v, name in enumerate(graph.names):
        is_class = graph.class_position[v] != PAD
        category = 4 if v in chosen else 0 if v == 0 else 3 if is_class else 2 if graph.folded[v] else 1
        label: dict[str, Any] = {"show": bool(ends[v] and all_labels)}
        node: dict[str, Any] = {
            "id": str(v),
            "name": name,
            "x": round(float(graph.xy[v, 0]) * 100, 2),
            "y": round(float(graph.xy[v, 1]) * 100, 2),
            "category": category,
            "value": [int(graph.n_classes[v])],
        }
        if v == 0 or category == 4:
            node["symbolSize"] = size * 2
            label = {"show": True, "fontWeight": "bold", "fontSize": 13}
        elif v in branch_colour:
            node["symbolSize"] = size * 1.9
            node["itemStyle"] = {"color": branch_colour[v]}
            label = {"show": True, "fontSize": 12}
        elif category == 2:
            node["symbolSize"] = min(size * (1 + float(np.log2(1 + graph.n_classes[v])) / 3), size * 2.6)
        node["label"] = label | (_outward(graph.xy[v], radial) if ends[v] else {})
        node["tooltip"] = {"formatter": _node_tooltip(graph, v) + pictures.get(v, "")}
        nodes.append(node)
    return nodes


def _tree_links(graph: ClassMap) -> list[dict[str, int]]:
    return [{"source": int(p), "target": int(c)} for p, c in zip(graph.parents, graph.children, strict=True)]


def _node_tooltip(graph: ClassMap, v: int) -> str:
    """Tooltip of a node; {b} is its name, which ECharts escapes."""
    n = int(graph.n_classes[v])
    if graph.class_position[v] != PAD and n == 1:
        text = "class"
    else:
        text = _n_classes(n) if n else "its classes are below closer concepts"
    return f"<b>{{b}}</b>: {text}"


def _n_classes(n: int) -> str:
    return f"{n:,} {'class' if n == 1 else 'classes'}"


def _outward(xy: np.ndarray, radial: bool) -> dict[str, Any]:
    """Label that points away from the centre of the circle; upright in a layered graph."""
    if not radial:
        return {"position": "right"}
    angle = float(np.degrees(np.arctan2(-xy[1], xy[0])))
    if abs(angle) <= 90:
        return {"position": "right", "rotate": round(angle, 1)}
    return {"position": "left", "rotate": round(angle - 180 if angle > 0 else angle + 180, 1)}


def plot_distance_map(
    distances: np.ndarray, names: Sequence[str], title: str, max_distance: float | None = None, height: int = 620
) -> go.Figure:
    """Heat map of distances, classes in this order; bright is close."""
    labels = [escape_plotly(name) for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(distances, 3),
            x=labels,
            y=labels,
            zmin=0,
            zmax=max_distance,
            colorscale="Cividis_r",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 14, "len": 0.7},
            hovertemplate="%{y} – %{x}: distance %{z:.2f}<extra></extra>",
        )
    )
    ticks = {"type": "category", "automargin": True, "constrain": "domain", "showticklabels": len(names) <= 30}
    ticks |= {"tickvals": labels, "ticktext": [escape_plotly(shorten(name, 24)) for name in names]}
    figure.update_xaxes(**ticks, tickangle=-45)
    figure.update_yaxes(**ticks, autorange="reversed", scaleanchor="x")
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_task_distances(
    distances: np.ndarray, names: Sequence[str], title: str, max_distance: float, height: int = 300
) -> go.Figure:
    """Heat map of the distances between the classes of a task, with the numbers in the cells for up to ten classes."""
    few = len(names) <= 10
    labels = [shorten(name, 18) for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=distances,
            showscale=not few,  # the numbers are in the cells
            x=list(range(len(names))),
            y=list(range(len(names))),
            zmin=0,
            zmax=max_distance,
            colorscale="Cividis_r",
            texttemplate=("%{z:.1f}" if max_distance >= 2 else "%{z:.2f}") if few else None,
            customdata=[[escape_plotly(f"{a} – {b}") for b in names] for a in names],
            hovertemplate="%{customdata}: distance %{z:.2f}<extra></extra>",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 12},
            xgap=1 if few else 0,
            ygap=1 if few else 0,
        )
    )
    ticks: dict[str, Any] = {"showticklabels": False}
    if len(names) <= 25:
        ticks = {"tickvals": list(range(len(names))), "ticktext": [escape_plotly(label) for label in labels]}
    angle = -35 if max(map(len, labels), default=0) <= 12 else -90
    x_ticks = ticks if few else {"showticklabels": False}  # columns are in the order of the rows
    figure.update_xaxes(**x_ticks, tickangle=angle, automargin=True)
    figure.update_yaxes(**ticks, autorange="reversed", automargin=True)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_task_tree(graph: ClassMap) -> dict[str, Any]:
    """ECharts graph of the concepts above a few classes: the closest shared concept left, the classes right."""
    n_classes = len(graph.shown_at)
    width = 210 if n_classes <= 10 else 480
    first = min(len(graph.names[0]), 20) if graph.names else 0  # its label is above it and extends to the left
    x_max = max(float(graph.xy[:, 0].max()), 1e-9)
    y_max = max(float(graph.xy[:, 1].max()), 1e-9)
    nodes = []
    for v, name in enumerate(graph.names):
        is_class = graph.class_position[v] != PAD
        right = {"position": "right", "distance": 6}
        above = {"position": "top", "distance": 4}
        nodes.append(
            {
                "id": str(v),
                "name": name,
                "x": round(float(graph.xy[v, 0]) / x_max * width, 2),
                "y": round(float(graph.xy[v, 1]) / y_max * 32 * max(n_classes - 1, 1), 2),
                "symbol": "circle" if is_class else "diamond" if v == 0 else "rect",
                "symbolSize": 12 if v == 0 else 9,
                "itemStyle": {"color": meaning("leaf") if is_class else meaning("root") if v == 0 else QUIET},
                "label": (right if is_class else above) | {"width": 150 if is_class else 110, "overflow": "truncate"},
            }
        )
    return {
        "animation": False,
        "tooltip": {"formatter": "{b}"},
        "series": [
            {
                "type": "graph",
                "layout": "none",
                "selectedMode": "single",
                "preserveAspect": "contain",
                "data": nodes,
                "links": _tree_links(graph),
                "label": {"show": True, "fontSize": 11.5},
                "lineStyle": {"color": QUIET, "width": 1.3, "opacity": 0.8},
                "left": max(50, 4 * first),
                "right": "40%",
                "top": 26,
                "bottom": 14,
            }
        ],
    }
