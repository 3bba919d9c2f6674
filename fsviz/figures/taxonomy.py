"""Figures of the taxonomy: sunburst or graph of concepts, heat map of distances, tree of one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from fsviz.figures.palette import ACCENT, QUIET, SERIES, meaning
from fsviz.records import PAD
from fsviz.records.graphs import ClassMap, ConceptTree
from fsviz.text import escape_plotly, short_names

HEIGHT = 540  # pixels
MANY = 700  # nodes above which a graph has no animation
ENDS = {"radial": 80, "layered": 34}  # leaves that have room for their names
RINGS, SECTORS = 4, 110  # maximum number of rings, and of sectors in the last one
THUMBNAIL = 30  # pixels of an image at a leaf
MAX_LABEL = 24  # letters of a class
N_GROUPS = 8  # groups of classes with a colour of their own
_OTHERS = "others"
_DARK = "#1C2430"
_NEUTRAL = "#B4BCC6"  # concepts above several groups
_LETTER, _LEAF_LETTER = 6.2, 5.9  # approximate width of a letter in pixels, and of one at a leaf
_RADIUS = 262  # approximate radius in pixels


def group_colours(groups: Sequence[str]) -> dict[str, str]:
    """The colour of every group of classes, the largest first; "others" is grey and last."""
    sizes = Counter(groups)
    names = sorted((name for name in sizes if name != _OTHERS), key=lambda name: (-sizes[name], name))
    colours = [colour for colour in SERIES[:-1] if colour != ACCENT]  # blue is the selection
    by_size = {name: colours[i % len(colours)] for i, name in enumerate(names)}
    return by_size | ({_OTHERS: SERIES[-1]} if _OTHERS in sizes else {})


def plot_concept_sunburst(
    tree: ConceptTree,
    at: int,
    levels: int,
    selected: Sequence[int] = (),
    pictures: Mapping[int, str] | None = None,
    groups: Sequence[str] = (),
) -> dict[str, Any]:
    """ECharts sunburst of the subtree below one node, which is in the centre.

    Classes are in the outer ring, unless others are below them. The angle of a sector is its number of classes. Colours
    are those of the groups; if all classes here are of one group, each branch has its own. Clicks return positions in
    `sunburst_order`, counted from 1.

    selected  positions in the split of the selected classes
    groups    (C,) group of every class of the split
    pictures  node -> HTML of its pictures, for the tooltip
    """
    part = tree.part(at, levels).tolist()
    selected_nodes = {v for v in range(len(tree.ids)) if tree.class_position[v] in set(selected)} if selected else set()
    marked = {ancestor for v in selected_nodes for ancestor in tree.path_to(v)} - set(tree.path_to(at)[:-1])
    inside = set(part)
    children: dict[int, list[int]] = {}
    for v in part[1:]:
        children.setdefault(int(tree.parents[v]), []).append(v)
    colour_of = _sector_colours(tree, at, part, groups)
    nodes: dict[int, dict[str, Any]] = {}
    depth = int(tree.depth[part].max() - tree.depth[at])
    rings = _rings(depth)
    short = _short_names(
        tree.names, tree.class_position, int(rings[-1]["label"]["width"] / _LEAF_LETTER) if depth else 0
    )
    for v in part:
        ring = int(tree.depth[v] - tree.depth[at])
        colour = ACCENT if v in selected_nodes else _tint(colour_of.get(v, _NEUTRAL), 0.16 * (ring - 1))
        style: dict[str, Any] = {"color": colour if v != at else "transparent"}
        if v in marked and v != at:
            style |= {"borderColor": ACCENT, "borderWidth": 2.5}
        folded = tree.n_nodes[v] > 1 and v + 1 not in inside
        nodes[v] = {
            "name": tree.names[v] + (" ▸" if folded else ""),
            "value": int(tree.n_classes[v]),
            "itemStyle": style,
            "label": {"color": QUIET if v == at else "#FFFFFF" if v in selected_nodes or _is_dark(colour) else _DARK},
            "tooltip": {"formatter": _sector_tooltip(tree, v, (pictures or {}).get(v, ""))},
        }
        if v in short:
            nodes[v]["label"]["formatter"] = short[v] + (" ▸" if folded else "")
    for v in part[1:]:
        ring = int(tree.depth[v] - tree.depth[at])
        is_leaf = tree.n_nodes[v] == 1
        _rotate_label(nodes[v], rings[1 + (depth if is_leaf else ring)], int(tree.n_classes[at]))
        branch = _with_stems(nodes[v], depth - ring) if is_leaf else nodes[v]
        nodes[int(tree.parents[v])].setdefault("children", []).append(branch)
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
                "label": {"overflow": "truncate", "ellipsis": "…", "fontSize": 11, "textBorderWidth": 0},
                "levels": rings,
            }
        ],
    }


def sunburst_order(tree: ConceptTree, at: int, levels: int) -> list[int]:
    """The node of every sector of a sunburst: a class is repeated by the sectors that lead to the outer ring."""
    part = tree.part(at, levels)
    depth = int(tree.depth[part].max())
    n_stems = {int(v): depth - int(tree.depth[v]) for v in part[1:] if tree.n_nodes[v] == 1}
    return [v for v in part.tolist() for _ in range(1 + n_stems.get(v, 0))]


def _with_stems(node: dict[str, Any], n: int) -> dict[str, Any]:
    """A class below n sectors without names, which lead to the outer ring."""
    for _ in range(n):
        style = {**node["itemStyle"], "borderWidth": 0}
        node = {**node, "itemStyle": style, "label": {"show": False}, "children": [node]}
    return node


def _sector_colours(tree: ConceptTree, at: int, part: Sequence[int], groups: Sequence[str]) -> dict[int, str]:
    """The colour of every sector whose classes are of one group; by branch if all classes here are of the same."""
    inside = [_groups_below(tree, v, groups) for v in part]
    if len(inside[0]) > 1:
        colours = group_colours(groups)
        return {v: colours[next(iter(names))] for v, names in zip(part, inside, strict=True) if len(names) == 1}
    branches = [v for v in part if tree.parents[v] == at]
    return {
        v: SERIES[(1 + i) % len(SERIES)]
        for i, first in enumerate(branches)
        for v in part
        if first <= v < first + tree.n_nodes[first]
    }


def _groups_below(tree: ConceptTree, v: int, groups: Sequence[str]) -> set[str]:
    positions = tree.class_position[v : v + int(tree.n_nodes[v])]
    return {groups[p] for p in positions if p != PAD} if len(groups) else set()


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
        needed = 360 * 11 / (2 * np.pi * centre)
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
    width, length = ring["label"]["width"], _LETTER * len(node["label"].get("formatter", node["name"]))
    centre = _RADIUS * (float(ring["r0"][:-1]) + float(ring["r"][:-1])) / 200
    arc = 2 * np.pi * centre * node["value"] / total - 12
    if length > width and arc > width:
        node["label"] |= {"rotate": "tangential", "width": round(arc)}


def _is_dark(colour: str) -> bool:
    """Whether white text has more contrast to this colour than dark text."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.25


def _tint(colour: str, share: float) -> str:
    """Colour mixed with this share of white."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(channel + (255 - channel) * min(max(share, 0.0), 0.7)):02X}" for channel in channels)


def plot_class_map(
    graph: ClassMap,
    selected: Sequence[int] = (),
    pictures: Mapping[int, str] | None = None,
    groups: Sequence[str] = (),
    thumbnails: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """ECharts graph: the root is a diamond, concepts are grey, classes have the colours of their groups.

    Names that would overlap are hidden, concepts before classes; zooming in shows more of them.

    selected    positions in the graph of the selected classes
    pictures    node -> HTML of its pictures
    groups      (C,) group of every class of the graph
    thumbnails  node -> data URI of an image that stands for a class
    """
    selected_nodes = {int(graph.shown_at[p]) for p in selected}
    crowded = len(graph.names) > MANY
    size = 5 if crowded else 7 if len(graph.names) > 250 else 10
    radial = bool((graph.xy[:, 0] < -1e-9).any())
    categories = _class_map_categories(groups)
    order = {str(category["name"]): i for i, category in enumerate(categories)}
    nodes = _class_map_nodes(graph, selected_nodes, size, radial, pictures or {}, thumbnails or {}, groups, order)
    series = _class_map_style(size, radial, crowded) | {
        "data": nodes,
        "links": _tree_links(graph),
        "categories": categories,
    }
    return {
        "tooltip": {},
        "toolbox": {"feature": {"restore": {"title": "Reset zoom"}}, "right": 6, "top": 2, "itemSize": 18},
        "legend": _class_map_legend(categories, {node["category"] for node in nodes}),
        "animation": not crowded,
        "animationDurationUpdate": 400,
        "series": [series],
    }


def _class_map_categories(groups: Sequence[str]) -> list[dict[str, Any]]:
    """ECharts categories of the nodes: the root, concepts, the selection, and a category for every group of classes."""
    colours = group_colours(groups) if len(groups) else {"class": meaning("leaf")}
    return [
        {"name": "root", "itemStyle": {"color": meaning("root")}, "symbol": "diamond"},
        {"name": "concept", "itemStyle": {"color": QUIET}, "symbol": "circle"},
        {"name": "collapsed concept", "itemStyle": {"color": QUIET, "opacity": 0.75}, "symbol": "roundRect"},
        {"name": "selected", "itemStyle": {"color": ACCENT}, "symbol": "triangle"},
        *({"name": name, "itemStyle": {"color": colour}, "symbol": "circle"} for name, colour in colours.items()),
    ]


def _class_map_style(size: float, radial: bool, crowded: bool) -> dict[str, Any]:
    """Style of the class map's series, without its nodes and edges.

    size     of a symbol in pixels
    crowded  whether the graph has more than MANY nodes: it is drawn in steps and fades nothing on hover
    """
    style: dict[str, Any] = {
        "type": "graph",
        "layout": "none",
        "roam": True,
        "selectedMode": "single",
        "scaleLimit": {"min": 0.6, "max": 40},
        "nodeScaleRatio": 0.2,
        "preserveAspect": "contain",
        "symbolSize": size,
        "label": {
            "show": True,
            "position": "right",
            "fontSize": 11,
            "distance": 4,
            "width": 104,
            "overflow": "truncate",
        },
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"color": QUIET, "opacity": 0.55, "width": 1},
        "select": {"itemStyle": {"borderColor": ACCENT, "borderWidth": 3}},
        "emphasis": {"focus": "none" if crowded else "adjacency", "label": {"show": True}},
        "blur": {"itemStyle": {"opacity": 0.45}, "lineStyle": {"opacity": 0.2}, "label": {"opacity": 0.4}},
        "left": "27%" if radial else "4%",  # next to the legend
        "right": "13%" if radial else "19%",
        "top": "14%" if radial else "6%",
        "bottom": "14%" if radial else "3%",
    }
    return style | ({"progressive": 400} if crowded else {})


def _class_map_legend(categories: Sequence[Mapping[str, Any]], used: set[int]) -> dict[str, Any]:
    """Legend of the categories that nodes have; the root and concepts need no entry.

    used  positions of these categories
    """
    listed = [c for i, c in enumerate(categories) if i in used and c["name"] not in ("root", "concept")]
    return {
        "data": [{"name": category["name"], "icon": category["symbol"]} for category in listed],
        "orient": "vertical",
        "top": 0,
        "left": 0,
        "itemWidth": 12,
        "itemHeight": 12,
        "itemGap": 6,
        "textStyle": {"fontSize": 11},
    }


def _class_map_nodes(
    graph: ClassMap,
    selected_nodes: set[int],
    size: float,
    radial: bool,
    pictures: Mapping[int, str],
    thumbnails: Mapping[int, str],
    groups: Sequence[str],
    order: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Nodes of the class map.

    order  category -> its position
    """
    ends = np.ones(len(graph.names), dtype=bool)
    ends[graph.parents] = False
    all_labels = int(ends.sum()) <= 1.25 * ENDS["radial" if radial else "layered"]
    length = 0.68 * HEIGHT * np.pi if radial else 0.86 * HEIGHT  # of the line on which the leaves are
    room = float(min(THUMBNAIL, 0.94 * length / max(int(ends.sum()), 1)))
    colours = group_colours(groups) if thumbnails else {}
    short = _short_names(graph.names, graph.class_position)
    nodes = []
    for v, name in enumerate(graph.names):
        position = int(graph.class_position[v])
        is_class = position != PAD
        group = (groups[position] if len(groups) else "class") if is_class else ""
        category = (
            "selected"
            if v in selected_nodes
            else "root"
            if v == 0
            else group
            if is_class
            else "collapsed concept"
            if graph.folded[v]
            else "concept"
        )
        label: dict[str, Any] = {"show": all_labels}
        node: dict[str, Any] = {
            "id": str(v),
            "name": name,
            "x": round(float(graph.xy[v, 0]) * 100, 2),
            "y": round(float(graph.xy[v, 1]) * 100, 2),
            "category": order[category],
            "value": [int(graph.n_classes[v])],
            "symbolSize": size,
        }
        if v == 0 or v in selected_nodes:
            node["symbolSize"] = size * 2
            label = {"show": True, "fontWeight": "bold", "fontSize": 13}
            label |= {"position": "top"} if v == 0 and not radial else {}
        elif not is_class:
            growth = 1 + float(np.log2(1 + graph.n_classes[v])) / 3
            node["symbolSize"] = round(size * (min(growth, 2.6) if graph.folded[v] else min(growth, 1.8) / 1.5), 1)
            label |= {} if ends[v] else {"color": QUIET, "fontSize": 10.5}
        if v in thumbnails:
            node |= {
                "symbol": f"image://{thumbnails[v]}",
                "symbolSize": round(room * (1.4 if v in selected_nodes else 1), 1),
            }
        if is_class and v not in selected_nodes and group in colours:
            label["color"] = colours[group]
        if v in short:
            label["formatter"] = short[v]
        node["label"] = label | (_outward(graph.xy[v], radial, float(node["symbolSize"])) if ends[v] else {})
        node["tooltip"] = {"formatter": _node_tooltip(graph, v) + pictures.get(v, "")}
        nodes.append(node)
    return nodes


def _short_names(names: Sequence[str], class_position: np.ndarray, max_length: int = MAX_LABEL) -> dict[int, str]:
    """Node -> label of its class where it differs from the name; none with a {, which ECharts replaces."""
    classes = [v for v in range(len(names)) if class_position[v] != PAD]
    short = short_names([names[v] for v in classes], max_length)
    return {v: name for v, name in zip(classes, short, strict=True) if name != names[v] and "{" not in name}


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


def _outward(xy: np.ndarray, radial: bool, size: float) -> dict[str, Any]:
    """Label beyond a symbol of this size, away from the centre of the circle; on the right in a layered graph."""
    if not radial:
        return {"position": "right"}
    angle = float(np.arctan2(xy[1], xy[0]))
    away = 0.62 * size + 3
    place = {"position": [round(size / 2 + away * np.cos(angle), 1), round(size / 2 + away * np.sin(angle), 1)]}
    degrees = float(np.degrees(-angle))
    if abs(degrees) <= 90:
        return place | {"rotate": round(degrees, 1), "align": "left", "verticalAlign": "middle"}
    turned = degrees - 180 if degrees > 0 else degrees + 180
    return place | {"rotate": round(turned, 1), "align": "right", "verticalAlign": "middle"}


def plot_distance_map(
    distances: np.ndarray, names: Sequence[str], title: str, max_distance: float | None = None, height: int = 500
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
    ticks |= {"tickvals": labels, "ticktext": [escape_plotly(name) for name in short_names(names, 24)]}
    figure.update_xaxes(**ticks, tickangle=-45)
    figure.update_yaxes(**ticks, autorange="reversed", scaleanchor="x")
    figure.update_layout(height=height, margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def plot_task_distances(
    distances: np.ndarray, names: Sequence[str], title: str, max_distance: float, height: int = 300
) -> go.Figure:
    """Heat map of the distances between the classes of a task, with the numbers in the cells for up to ten classes."""
    few = len(names) <= 10
    labels = short_names(names, 18)
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
    short = _short_names(graph.names, graph.class_position)
    first = min(len(graph.names[0]), 20) if graph.names else 0  # its label is above it and extends to the left
    x_max = max(float(graph.xy[:, 0].max()), 1e-9)
    y_max = max(float(graph.xy[:, 1].max()), 1e-9)
    nodes = []
    for v, name in enumerate(graph.names):
        is_class = graph.class_position[v] != PAD
        right = {"position": "right", "distance": 6}
        above = {"position": "top", "distance": 4}
        text = {"formatter": short[v]} if v in short else {}
        nodes.append(
            {
                "id": str(v),
                "name": name,
                "x": round(float(graph.xy[v, 0]) / x_max * width, 2),
                "y": round(float(graph.xy[v, 1]) / y_max * 32 * max(n_classes - 1, 1), 2),
                "symbol": "circle" if is_class else "diamond" if v == 0 else "rect",
                "symbolSize": 12 if v == 0 else 9,
                "itemStyle": {"color": meaning("leaf") if is_class else meaning("root") if v == 0 else QUIET},
                "label": (right if is_class else above)
                | {"width": 150 if is_class else 110, "overflow": "truncate"}
                | text,
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
