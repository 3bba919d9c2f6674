"""Figures of the taxonomy: rings or a graph of meanings, the heat map of distances, the small tree of one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, SERIES, meaning
from fsviz.records import PAD, ClassMap, ConceptTree
from fsviz.text import drawn, shorten

MANY = 700  # above this many nodes a graph is drawn without animation
ENDS = {"radial": 100, "layered": 48}  # ends of branches that have room for their names
RINGS, SECTORS = 4, 170  # at most so many rings, and so many sectors in the last one
_DARK = "#1C2430"
_LETTER = 6.2  # pixels that a letter of a name takes, about
_HALF = 330  # pixels from the middle to the edge of the rings, about


def plot_concept_rings(
    tree: ConceptTree, at: int, levels: int, selected: Sequence[int] = (), pictures: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """ECharts sunburst of the part of a tree below one node, which is the disc in the middle.

    The angle of a sector is its number of classes; names are written where there is room. Clicks are answered with
    places in `tree.part(at, levels)`, counted from one.

    selected  places in the split of the classes picked by the user
    pictures  node -> HTML of its pictures, for the box beside the pointer
    """
    shown = tree.part(at, levels).tolist()
    picked = {v for v in range(len(tree.ids)) if tree.class_position[v] in set(selected)} if selected else set()
    marked = {above for v in picked for above in tree.path_to(v)} - set(tree.path_to(at)[:-1])
    inside = set(shown)
    children: dict[int, list[int]] = {}
    for v in shown[1:]:
        children.setdefault(int(tree.parents[v]), []).append(v)
    branch: dict[int, int] = {}
    for i, first in enumerate(children.get(at, [])):
        branch[first] = i
    for v in shown[1:]:
        branch.setdefault(v, branch.get(int(tree.parents[v]), 0))
    nodes: dict[int, dict[str, Any]] = {}
    for v in shown:
        ring = int(tree.depth[v] - tree.depth[at])
        colour = ACCENT if v in picked else _tint(SERIES[(branch.get(v, 0) + 1) % len(SERIES)], 0.16 * (ring - 1))
        style: dict[str, Any] = {"color": colour if v != at else "transparent"}
        if v in marked and v != at:
            style |= {"borderColor": ACCENT, "borderWidth": 2.5}
        folded = tree.n_nodes[v] > 1 and v + 1 not in inside
        nodes[v] = {
            "name": tree.names[v] + (" ▸" if folded else ""),
            "value": int(tree.n_classes[v]),
            "itemStyle": style,
            "label": {"color": QUIET if v == at else "#FFFFFF" if v in picked or ring < 3 else _DARK},
            "tooltip": {"formatter": _about(tree, v, (pictures or {}).get(v, ""))},
        }
        if v != at:
            nodes[int(tree.parents[v])].setdefault("children", []).append(nodes[v])
    depth = int(tree.depth[shown].max() - tree.depth[at])
    levels_drawn = _rings(depth)
    for v in shown[1:]:
        _turn(nodes[v], levels_drawn[1 + int(tree.depth[v] - tree.depth[at])], int(tree.n_classes[at]))
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
                "levels": levels_drawn,
            }
        ],
    }


def _about(tree: ConceptTree, v: int, pictures: str) -> str:
    """What the box beside the pointer says of a sector; {b} is its name, which ECharts escapes."""
    is_class = tree.class_position[v] != PAD
    said = "a class" if is_class and tree.n_nodes[v] == 1 else f"{int(tree.n_classes[v]):,} classes"
    return f"<b>{{b}}</b><br>{said}{pictures}"


def _rings(depth: int) -> list[dict[str, Any]]:
    """Where each ring lies and how wide an angle a name needs in it; the last ring is the widest."""
    middle = 17.0
    shares = np.array([*([1.0] * max(depth - 1, 0)), 1.35][:depth])
    edges = middle + np.concatenate([[0.0], np.cumsum(shares / shares.sum())]) * (98 - middle) if depth else [middle]
    levels: list[dict[str, Any]] = [
        {},
        {"r0": "0%", "r": f"{middle}%", "label": {"rotate": 0, "width": 100, "fontSize": 13, "fontWeight": "bold"}},
    ]
    for inner, outer in pairwise(edges):
        centre = _HALF * (inner + outer) / 200
        needed = 360 * 13 / (2 * np.pi * centre)
        levels.append(
            {
                "r0": f"{inner:.1f}%",
                "r": f"{outer:.1f}%",
                "label": {
                    "rotate": "radial",
                    "minAngle": round(needed, 2),
                    "width": round(_HALF * (outer - inner) / 100 - 8),
                },
            }
        )
    return levels


def _turn(node: dict[str, Any], ring: dict[str, Any], whole: int) -> None:
    """Writes a name along its ring where it is too long to stand across it and the arc has room for it."""
    across, long = ring["label"]["width"], _LETTER * len(node["name"])
    centre = _HALF * (float(ring["r0"][:-1]) + float(ring["r"][:-1])) / 200
    arc = 2 * np.pi * centre * node["value"] / whole - 12
    if long > across and arc > across:
        node["label"] |= {"rotate": "tangential", "width": round(arc)}


def _tint(colour: str, share: float) -> str:
    """A colour mixed with so much white."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * min(max(share, 0.0), 0.7)):02X}" for part in parts)


def plot_class_map(
    graph: ClassMap, selected: Sequence[int] = (), pictures: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """ECharts graph: root green, classes red, concepts grey; first-level concepts in colours of their own.

    Names are written at the ends of branches where there is room for all of them, else of what is picked and of the
    first level; the box beside the pointer has every name.

    selected  places in the graph of the classes picked by the user
    pictures  node -> HTML of its pictures
    """
    picked = {int(graph.shown_at[p]) for p in selected}
    first_level = np.flatnonzero((graph.depth == 1) & (graph.class_position == PAD))
    colours = [colour for colour in SERIES if colour not in (ACCENT, meaning("leaf"))]  # red is a class, blue is picked
    few_branches = 1 < len(first_level) <= len(colours)
    branch_colour = {int(v): colour for v, colour in zip(first_level, colours)} if few_branches else {}
    crowded = len(graph.names) > MANY
    size = 5 if crowded else 7 if len(graph.names) > 250 else 10
    ends = np.ones(len(graph.names), dtype=bool)
    ends[graph.parents] = False
    radial = bool((graph.xy[:, 0] < -1e-9).any())
    room = int(ends.sum()) <= 1.25 * ENDS["radial" if radial else "layered"]
    nodes = []
    for v, name in enumerate(graph.names):
        is_class = graph.class_position[v] != PAD
        kind = 4 if v in picked else 0 if v == 0 else 3 if is_class else 2 if graph.folded[v] else 1
        label: dict[str, Any] = {"show": bool(ends[v] and room)}
        node: dict[str, Any] = {
            "id": str(v),
            "name": name,
            "x": round(float(graph.xy[v, 0]) * 100, 2),
            "y": round(float(graph.xy[v, 1]) * 100, 2),
            "category": kind,
            "value": [int(graph.n_classes[v])],
        }
        if v == 0 or kind == 4:
            node["symbolSize"] = size * 2
            label = {"show": True, "fontWeight": "bold", "fontSize": 13}
        elif v in branch_colour:
            node["symbolSize"] = size * 1.9
            node["itemStyle"] = {"color": branch_colour[v]}
            label = {"show": True, "fontSize": 12}
        elif kind == 2:
            node["symbolSize"] = min(size * (1 + float(np.log2(1 + graph.n_classes[v])) / 3), size * 2.6)
        node["label"] = label | (_outward(graph.xy[v], radial) if ends[v] else {})
        node["tooltip"] = {"formatter": _holds(graph, v) + (pictures or {}).get(v, "")}
        nodes.append(node)
    series: dict[str, Any] = {
        "type": "graph",
        "layout": "none",
        "roam": True,
        "selectedMode": "single",
        "scaleLimit": {"min": 0.6, "max": 40},
        "nodeScaleRatio": 0.2,
        "preserveAspect": "contain",
        "data": nodes,
        "links": [{"source": int(p), "target": int(c)} for p, c in zip(graph.parents, graph.children, strict=True)],
        "categories": [
            {"name": "root", "itemStyle": {"color": meaning("root")}, "symbol": "diamond"},
            {"name": "concept", "itemStyle": {"color": QUIET}},
            {"name": "folded concept", "itemStyle": {"color": QUIET, "opacity": 0.75}, "symbol": "roundRect"},
            {"name": "class", "itemStyle": {"color": meaning("leaf")}},
            {"name": "your task", "itemStyle": {"color": ACCENT}, "symbol": "triangle"},
        ],
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
        "toolbox": {"feature": {"restore": {"title": "Whole picture"}}, "right": 6, "top": 2, "itemSize": 18},
        "legend": {
            "data": [
                {"name": "root", "icon": "diamond"},
                {"name": "concept", "icon": "circle"},
                {"name": "folded concept", "icon": "roundRect"},
                {"name": "class", "icon": "circle"},
                {"name": "your task", "icon": "triangle"},
            ],
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


def _holds(graph: ClassMap, v: int) -> str:
    """What the box beside the pointer says of a node; {b} is its name, which ECharts escapes."""
    n = int(graph.n_classes[v])
    if graph.class_position[v] != PAD and n == 1:
        said = "a class"
    elif n:
        said = f"holds {n:,} {'class' if n == 1 else 'classes'} of the split"
    else:
        said = "its classes hang below nearer concepts"
    return f"<b>{{b}}</b><br>{said}"


def _outward(xy: np.ndarray, radial: bool) -> dict[str, Any]:
    """A label that reads away from the middle of the circle; upright in a layered graph."""
    if not radial:
        return {"position": "right"}
    angle = float(np.degrees(np.arctan2(-xy[1], xy[0])))
    if abs(angle) <= 90:
        return {"position": "right", "rotate": round(angle, 1)}
    return {"position": "left", "rotate": round(angle - 180 if angle > 0 else angle + 180, 1)}


def plot_distance_map(
    distances: np.ndarray, names: Sequence[str], title: str, most: float | None = None, height: int = 620
) -> go.Figure:
    """Heat map of distances, classes in the given order: bright is close."""
    shown = [drawn(name) for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(distances, 3),
            x=shown,
            y=shown,
            zmin=0,
            zmax=most,
            colorscale="Cividis_r",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 14, "len": 0.7},
            hovertemplate="<b>%{y}</b> and <b>%{x}</b> are %{z:.2f} apart<extra></extra>",
        )
    )
    ticks = {"type": "category", "automargin": True, "constrain": "domain", "showticklabels": len(names) <= 30}
    ticks |= {"tickvals": shown, "ticktext": [drawn(shorten(name, 24)) for name in names]}
    figure.update_xaxes(**ticks, tickangle=-45)
    figure.update_yaxes(**ticks, autorange="reversed", scaleanchor="x")
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_task_distances(
    distances: np.ndarray, names: Sequence[str], title: str, most: float, height: int = 300
) -> go.Figure:
    """Heat map of one task's pairwise distances with the numbers written in, for up to about ten classes."""
    few = len(names) <= 10
    shown = [shorten(name, 18) for name in names]
    figure = go.Figure(
        go.Heatmap(
            z=distances,
            showscale=not few,  # the numbers are in the cells: their room is worth more than a scale
            x=list(range(len(names))),
            y=list(range(len(names))),
            zmin=0,
            zmax=most,
            colorscale="Cividis_r",
            texttemplate=("%{z:.1f}" if most >= 2 else "%{z:.2f}") if few else None,
            customdata=[[drawn(f"{a} and {b}") for b in names] for a in names],
            hovertemplate="%{customdata}: %{z:.2f} apart<extra></extra>",
            colorbar={"title": {"text": title, "side": "right"}, "thickness": 12},
            xgap=1 if few else 0,
            ygap=1 if few else 0,
        )
    )
    ticks: dict[str, Any] = {"showticklabels": False}
    if len(names) <= 25:
        ticks = {"tickvals": list(range(len(names))), "ticktext": [drawn(name) for name in shown]}
    angle = -35 if max(map(len, shown), default=0) <= 12 else -90
    across = ticks if few else {"showticklabels": False}  # many are in the order of the rows
    figure.update_xaxes(**across, tickangle=angle, automargin=True)
    figure.update_yaxes(**ticks, autorange="reversed", automargin=True)
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_task_tree(graph: ClassMap) -> dict[str, Any]:
    """ECharts graph of the concepts above a few classes: the smallest shared concept left, the classes right."""
    n_classes = len(graph.shown_at)
    wide = 210 if n_classes <= 10 else 480
    first = min(len(graph.names[0]), 20) if graph.names else 0  # its name stands above it and reaches out to the left
    across = max(float(graph.xy[:, 0].max()), 1e-9)
    along = max(float(graph.xy[:, 1].max()), 1e-9)
    nodes = []
    for v, name in enumerate(graph.names):
        is_class = graph.class_position[v] != PAD
        beside = {"position": "right", "distance": 6}
        above = {"position": "top", "distance": 4}
        nodes.append(
            {
                "id": str(v),
                "name": name,
                "x": round(float(graph.xy[v, 0]) / across * wide, 2),
                "y": round(float(graph.xy[v, 1]) / along * 32 * max(n_classes - 1, 1), 2),
                "symbol": "circle" if is_class else "diamond" if v == 0 else "rect",
                "symbolSize": 12 if v == 0 else 9,
                "itemStyle": {"color": meaning("leaf") if is_class else meaning("root") if v == 0 else QUIET},
                "label": (beside if is_class else above) | {"width": 150 if is_class else 110, "overflow": "truncate"},
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
                "links": [
                    {"source": int(p), "target": int(c)} for p, c in zip(graph.parents, graph.children, strict=True)
                ],
                "label": {"show": True, "fontSize": 11.5},
                "lineStyle": {"color": QUIET, "width": 1.3, "opacity": 0.8},
                "left": max(50, 4 * first),
                "right": "40%",
                "top": 26,
                "bottom": 14,
            }
        ],
    }
