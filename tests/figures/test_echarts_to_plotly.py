"""ECharts figures drawn again by Plotly: the same nodes, lines, bars and rings; names are text."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from fsviz.figures import confusion, tasks, taxonomy
from fsviz.figures.echarts_to_plotly import redraw
from tests.figures.test_names import CONCEPTS, EVIL, GRAPH, MAP, SQUARE, N, strings


def check_names(figure: go.Figure) -> None:
    seen = "\n".join(strings(figure.to_plotly_json()))
    assert "<i>" not in seen and "<a " not in seen and "&lt;i&gt;" in seen and EVIL not in seen


def test_a_graph_keeps_its_nodes_links_and_places() -> None:
    option = taxonomy.plot_class_map(MAP)
    figure = redraw(option)
    points = {(x, y) for trace in figure.data if "markers" in trace.mode for x, y in zip(trace.x, trace.y, strict=True)}
    assert points == {(node["x"], node["y"]) for node in option["series"][0]["data"]}
    (line,) = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(line.x) == 3 * len(option["series"][0]["links"])
    assert figure.layout.yaxis.autorange == "reversed"  # as on a canvas, y grows downwards
    check_names(figure)


def test_a_class_graph_keeps_the_width_of_its_links() -> None:
    option, nodes, ends = confusion.plot_class_graph(GRAPH, SQUARE, 1)
    figure = redraw(option)
    assert sum(len(trace.x) for trace in figure.data if "markers" in trace.mode) == len(nodes)
    assert sum(len(trace.x) // 3 for trace in figure.data if trace.mode == "lines") == len(ends)
    check_names(figure)


def test_rings_keep_every_sector() -> None:
    option = taxonomy.plot_concept_rings(CONCEPTS, 0, 1)
    (rings,) = redraw(option).data
    assert rings.type == "sunburst" and rings.values[0] == option["series"][0]["data"][0]["value"]
    assert len(rings.ids) == len(set(rings.ids)) == 1 + len(option["series"][0]["data"][0]["children"])
    check_names(redraw(option))


def test_bars_and_lines_keep_their_values_and_marks() -> None:
    shares, counts = np.array([25.0, 75.0]), np.array([1, 3])
    panels = [tasks.Panel(title, shares, counts, 1.5, "#000000") for title in ("uniform", "semantic")]
    figure = redraw(tasks.plot_histograms(np.array([0.0, 1.0, 2.0]), panels, "coarsity", "how far apart"))
    assert [tuple(bars.y) for bars in figure.data] == [(25.0, 75.0)] * 2
    assert [shape.x0 for shape in figure.layout.shapes] == [1.5, 1.5]  # the medians
    balance = redraw(tasks.plot_balance(N, {"uniform": np.array([1.0, 2.0])}, {"uniform": "#000000"}, 1.5))
    assert tuple(balance.data[0].y) == (1.0, 2.0) and balance.layout.shapes[0].y0 == 1.5
    check_names(balance)
