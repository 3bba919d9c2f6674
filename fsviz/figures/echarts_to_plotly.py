"""An ECharts figure drawn again by Plotly: the same points, lines and names, for files that need no page around them.

ECharts draws on a canvas, which can be taken as a picture only. What pages hand it (graphs with given places, bars,
lines, rings) is little enough to be drawn again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from fsviz.figures.palette import QUIET
from fsviz.text import drawn

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


def redraw(option: Mapping[str, Any]) -> go.Figure:
    """The Plotly figure of an ECharts option of this project."""
    series = option["series"]
    kind = series[0]["type"]
    if kind == "graph":
        return _graph(series[0])
    return _rings(series[0]) if kind == "sunburst" else _along_axes(option)


def _graph(series: Mapping[str, Any]) -> go.Figure:
    nodes, kinds = series["data"], series.get("categories") or [{"name": ""}]
    figure = go.Figure()
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
    for place, category in enumerate(kinds):
        own = [node for node in nodes if node.get("category", 0) == place]
        if not own:
            continue
        shown = [{**series.get("label", {}), **node.get("label", {})} for node in own]
        figure.add_scatter(
            x=[node["x"] for node in own],
            y=[node["y"] for node in own],
            mode="markers+text",
            name=drawn(str(category["name"])),
            text=[
                drawn(node["name"]) if label.get("show", True) else "" for node, label in zip(own, shown, strict=True)
            ],
            textposition=[_SIDES.get(str(label.get("position")), "middle right") for label in shown],
            textfont={"size": [label.get("fontSize", 11) for label in shown]},
            hovertext=[drawn(node["name"]) for node in own],
            hoverinfo="text",
            marker={
                "size": [node.get("symbolSize", series.get("symbolSize", 10)) for node in own],
                "opacity": 1.0,  # points of different sizes are see-through otherwise
                "symbol": _SYMBOLS.get(str(category.get("symbol")), "circle"),
                "color": [_colour(node, category) for node in own],
                "line": {
                    "color": [node.get("itemStyle", {}).get("borderColor", "rgba(0,0,0,0)") for node in own],
                    "width": [node.get("itemStyle", {}).get("borderWidth", 0) for node in own],
                },
            },
            cliponaxis=False,
        )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, autorange="reversed")
    return _laid_out(figure, _HEIGHT, {"l": 90, "r": 130, "t": 40, "b": 30})


def _rings(series: Mapping[str, Any]) -> go.Figure:
    rows: list[tuple[str, str, str, float, str]] = []

    def walk(nodes: Sequence[Mapping[str, Any]], above: str) -> None:
        for place, node in enumerate(nodes):
            own = f"{above}/{place}"
            colour = node.get("itemStyle", {}).get("color", QUIET)
            rows.append((own, above, drawn(node["name"]), node["value"], colour))
            walk(node.get("children", ()), own)

    walk(series["data"], "")
    ids, parents, names, values, colours = (list(column) for column in zip(*rows, strict=True))
    figure = go.Figure(
        go.Sunburst(
            ids=ids,
            parents=parents,
            labels=names,
            values=values,
            branchvalues="total",
            sort=False,
            marker={"colors": ["rgba(0,0,0,0)" if colour == "transparent" else colour for colour in colours]},
            hovertemplate="%{label}: %{value} classes<extra></extra>",
        )
    )
    return _laid_out(figure, _HEIGHT, {"l": 0, "r": 0, "t": 10, "b": 10})


def _along_axes(option: Mapping[str, Any]) -> go.Figure:
    x_axes, y_axes = (axis if isinstance(axis, list) else [axis] for axis in (option["xAxis"], option["yAxis"]))
    figure = go.Figure().set_subplots(1, len(x_axes), shared_yaxes=True, horizontal_spacing=0.04)
    for series in option["series"]:
        at = int(series.get("xAxisIndex", 0))
        own = {"row": 1, "col": at + 1}
        colour = series.get("itemStyle", {}).get("color", QUIET)
        if series["type"] == "bar":
            bars = series["data"]
            figure.add_bar(
                x=[bar["value"][0] for bar in bars],
                y=[bar["value"][1] for bar in bars],
                name=drawn(series["name"]),
                marker={"color": [bar.get("itemStyle", {}).get("color", colour) for bar in bars]},
                hovertext=[drawn(bar["name"]) for bar in bars],
                **own,
            )
        else:
            figure.add_scatter(
                x=[drawn(name) for name in x_axes[at]["data"]],
                y=series["data"],
                mode="lines+markers",
                name=drawn(series["name"]),
                line={"color": colour, "width": 1.6},
                **own,
            )
        for mark in series.get("markLine", {}).get("data", ()):
            dashed = {"line": {"color": QUIET, "dash": "dash", "width": 1.5}, **own}
            if "xAxis" in mark:
                figure.add_vline(x=mark["xAxis"], **dashed)
            else:
                figure.add_hline(y=mark["yAxis"], **dashed)
    for at, (x_axis, y_axis) in enumerate(zip(x_axes, y_axes, strict=True)):
        own = {"row": 1, "col": at + 1}
        labels = x_axis.get("axisLabel", {}).get("show", True)
        ends = [x_axis["min"], x_axis["max"]] if "min" in x_axis and "max" in x_axis else None
        figure.update_xaxes(title=drawn(x_axis.get("name", "")), showticklabels=labels, range=ends, **own)
        figure.update_yaxes(title=drawn(y_axis.get("name", "")), rangemode="tozero", **own)
    figure.update_layout(bargap=0.05)
    return _laid_out(figure, 380, {"l": 60, "r": 10, "t": 40, "b": 50})


def _colour(node: Mapping[str, Any], category: Mapping[str, Any]) -> str:
    return str(node.get("itemStyle", {}).get("color") or category.get("itemStyle", {}).get("color") or QUIET)


def _laid_out(figure: go.Figure, height: int, margin: Mapping[str, int]) -> go.Figure:
    legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    figure.update_layout(height=height, margin=dict(margin), legend=legend, hovermode="closest")
    return figure
