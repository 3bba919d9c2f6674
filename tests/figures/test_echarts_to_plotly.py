"""ECharts graphs and sunbursts as Plotly figures: the same nodes, links and sectors; names are text."""

from __future__ import annotations

import plotly.graph_objects as go

from fsviz.figures import confusion, taxonomy
from fsviz.figures.echarts_to_plotly import to_plotly
from tests.figures.test_names import CONCEPTS, EVIL, GRAPH, MAP, SQUARE, strings


def check_names(figure: go.Figure) -> None:
    text = "\n".join(strings(figure.to_plotly_json()))
    assert "<i>" not in text and "<a " not in text and "&lt;i&gt;" in text and EVIL not in text


def test_a_graph_keeps_its_nodes_links_and_places() -> None:
    option = taxonomy.plot_class_map(MAP)
    figure = to_plotly(option)
    points = {(x, y) for trace in figure.data if "markers" in trace.mode for x, y in zip(trace.x, trace.y, strict=True)}
    assert points == {(node["x"], node["y"]) for node in option["series"][0]["data"]}
    (line,) = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(line.x) == 3 * len(option["series"][0]["links"])
    assert figure.layout.yaxis.autorange == "reversed"  # as on a canvas, y grows downwards
    assert figure.layout.yaxis.scaleanchor == "x"  # circles stay circles
    check_names(figure)


def test_a_class_graph_keeps_the_width_of_its_links() -> None:
    option, nodes, ends = confusion.plot_class_graph(GRAPH, SQUARE, 1)
    figure = to_plotly(option)
    assert sum(len(trace.x) for trace in figure.data if "markers" in trace.mode) == len(nodes)
    assert sum(len(trace.x) // 3 for trace in figure.data if trace.mode == "lines") == len(ends)
    check_names(figure)


def test_rings_keep_every_sector() -> None:
    option = taxonomy.plot_concept_sunburst(CONCEPTS, 0, 1)
    (rings,) = to_plotly(option).data
    assert rings.type == "sunburst" and rings.values[0] == option["series"][0]["data"][0]["value"]
    assert len(rings.ids) == len(set(rings.ids)) == 1 + len(option["series"][0]["data"][0]["children"])
    check_names(to_plotly(option))
