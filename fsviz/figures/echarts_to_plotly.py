"""Graphs and sunbursts of ECharts as Plotly figures, for HTML files.

A file must work without a network and without the app. ECharts comes inside Streamlit's own scripts, which a file
cannot use, while Plotly's script can be written into it. Pictures (PNG, SVG) are taken from the ECharts chart itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from fsviz.figures.palette import QUIET
from fsviz.text import escape_plotly

_SYMBOLS = {
    "roundRect": "square",
    "rect": "square",
    "triangle": "triangle-up",
    "diamond": "diamond",
    "pin": "hexagon",
    "arrow": "arrow",
}
_SIDES = {"right": "middle right", "left": "middle left", "top": "top center", "bottom": "bottom center"}
_HEIGHT = 640
_INVISIBLE = "rgba(0,0,0,0)"


def to_plotly(option: Mapping[str, Any]) -> go.Figure:
    """Plotly figure of an ECharts graph with fixed positions, or of a sunburst."""
    (series,) = option["series"]
    return _graph(series) if series["type"] == "graph" else _sunburst(series)


def _graph(series: Mapping[str, Any]) -> go.Figure:
    nodes, categories = series["data"], series.get("categories") or [{"name": ""}]
    figure = go.Figure()
    _add_links(figure, series)
    for number, category in enumerate(categories):
        members = [node for node in nodes if node.get("category", 0) == number]
        if members:
            _add_nodes(figure, series, members, category)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, autorange="reversed", scaleanchor="x")  # on a canvas y grows downwards
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    margin = {"l": 90, "r": 130, "t": 40, "b": 30}
    figure.update_layout(height=_HEIGHT, margin=margin, legend=legend, hovermode="closest")
    return figure


def _add_links(figure: go.Figure, series: Mapping[str, Any]) -> None:
    """One trace for all links of the same style."""
    nodes = series["data"]
    styles: dict[tuple[Any, Any, Any], list[Any]] = {}
    for link in series["links"]:
        style = {**series.get("lineStyle", {}), **link.get("lineStyle", {})}
        key = (style.get("color", QUIET), round(style.get("width", 1)), round(style.get("opacity", 1.0), 1))
        styles.setdefault(key, []).append(link)
    for (colour, width, opacity), links in styles.items():
        ends = [(nodes[int(link["source"])], nodes[int(link["target"])]) for link in links]
        figure.add_scatter(
            x=[value for a, b in ends for value in (a["x"], b["x"], None)],
            y=[value for a, b in ends for value in (a["y"], b["y"], None)],
            mode="lines",
            line={"color": colour, "width": width},
            opacity=opacity,
            hoverinfo="skip",
            showlegend=False,
        )


def _add_nodes(
    figure: go.Figure, series: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], category: Mapping[str, Any]
) -> None:
    """The nodes of one category."""
    labels = [{**series.get("label", {}), **node.get("label", {})} for node in nodes]
    names, texts = [escape_plotly(node["name"]) for node in nodes], [_text(node) for node in nodes]
    styles = [node.get("itemStyle", {}) for node in nodes]
    default = category.get("itemStyle", {}).get("color") or QUIET
    figure.add_scatter(
        x=[node["x"] for node in nodes],
        y=[node["y"] for node in nodes],
        mode="markers+text",
        name=escape_plotly(str(category["name"])),
        text=[text if label.get("show", True) else "" for text, label in zip(texts, labels, strict=True)],
        textposition=[_SIDES.get(str(label.get("position")), "middle right") for label in labels],
        textfont={"size": [label.get("fontSize", 11) for label in labels]},
        hovertext=names,
        hoverinfo="text",
        marker={
            "size": [node.get("symbolSize", series.get("symbolSize", 10)) for node in nodes],
            "opacity": 1.0,  # points of different sizes are see-through otherwise
            "symbol": _SYMBOLS.get(str(category.get("symbol")), "circle"),
            "color": [str(style.get("color") or default) for style in styles],
            "line": {
                "color": [style.get("borderColor", _INVISIBLE) for style in styles],
                "width": [style.get("borderWidth", 0) for style in styles],
            },
        },
        cliponaxis=False,
    )


def _text(node: Mapping[str, Any]) -> str:
    """The label of a node: its name, or a shorter one."""
    return escape_plotly(node.get("label", {}).get("formatter", node["name"]))


def _sunburst(series: Mapping[str, Any]) -> go.Figure:
    rows: list[tuple[str, str, str, str, float, str]] = []

    def walk(nodes: Sequence[Mapping[str, Any]], parent: str) -> None:
        for position, node in enumerate(nodes):
            node_id = f"{parent}/{position}"
            colour = node.get("itemStyle", {}).get("color", QUIET)
            rows.append((node_id, parent, escape_plotly(node["name"]), _text(node), node["value"], colour))
            walk(node.get("children", ()), node_id)

    walk(series["data"], "")
    ids, parents, names, texts, values, colours = (list(column) for column in zip(*rows, strict=True))
    figure = go.Figure(
        go.Sunburst(
            ids=ids,
            parents=parents,
            labels=texts,
            hovertext=names,
            values=values,
            branchvalues="total",
            sort=False,
            marker={"colors": [_INVISIBLE if colour == "transparent" else colour for colour in colours]},
            hovertemplate="%{hovertext}: %{value} classes<extra></extra>",
        )
    )
    figure.update_layout(height=_HEIGHT, margin={"l": 0, "r": 0, "t": 10, "b": 10})
    return figure
