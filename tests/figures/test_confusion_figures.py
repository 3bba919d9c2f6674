"""Figures of class graphs: nodes and links by click, sizes and positions, names as text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsviz.figures import confusion as figures
from fsviz.records.graphs import ClassGraph

NAMES = ("<b>a</b>", "b", "c", "d")
WEIGHTS = np.array([[np.nan, 0.9, 0.1, 0], [0.9, np.nan, 0.5, 0], [0.1, 0.5, np.nan, 0], [0, 0, 0, np.nan]])
GRAPH = ClassGraph("confusion", "Confusion", "bits", "net", np.arange(4), np.arange(4), NAMES, NAMES, WEIGHTS)
XY = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])


def test_nodes_and_links_are_where_a_click_says() -> None:
    chart, nodes, ends = figures.plot_class_graph(GRAPH, XY, 2, np.array([0, 0, 0, 1]), selected=(1, 2))
    series = chart["series"][0]
    assert [series["data"][n]["name"] for n in range(len(nodes))] == [NAMES[place] for place in nodes] == list(NAMES)
    assert ends == [(0, 1), (1, 2)]  # the two heaviest, the heaviest first
    for link, (a, b) in zip(series["links"], ends, strict=True):
        assert nodes[link["source"]] == a and nodes[link["target"]] == b
        assert link["id"].startswith(f"{NAMES[a]} – {NAMES[b]}: ")
    wide, picked = (link["lineStyle"] for link in series["links"])
    assert picked["color"] == figures.ACCENT and wide["color"] != figures.ACCENT
    assert [category["name"] for category in series["categories"]] == ["cluster 1", "no cluster"]
    assert series["data"][3]["category"] == 1
    assert figures.plot_class_graph(GRAPH, XY, 99, np.zeros(4, int))[2] == [
        (0, 1),
        (1, 2),
        (0, 2),
    ]  # no weight, no link


def test_a_selection_is_emphasised_and_the_rest_dimmed() -> None:
    def opacities(selected: tuple[int, ...]) -> tuple[list[float], list[float]]:
        series = figures.plot_class_graph(GRAPH, XY, 3, np.zeros(4, int), selected)[0]["series"][0]
        nodes = [node.get("itemStyle", {}).get("opacity", 1) for node in series["data"]]
        return nodes, [link["lineStyle"]["opacity"] for link in series["links"]]

    assert opacities(())[0] == [1, 1, 1, 1]
    nodes, links = opacities((0,))  # joined with b and c
    assert nodes == [1, 1, 1, figures.DIMMED]
    assert links[1] < figures.DIMMED < min(links[0], links[2])  # b and c are not the selected class
    nodes, links = opacities((1, 2))
    assert nodes == [figures.DIMMED, 1, 1, figures.DIMMED] and links[1] == 1 > max(links[0], links[2])


def test_the_hover_of_a_class_has_its_picture_and_its_most_similar_classes_as_text() -> None:
    chart = figures.plot_class_graph(GRAPH, XY, 3, np.zeros(4, int), pictures={0: 'data:image/png;base64,AA"'})[0]
    first, *_, last = [node["tooltip"]["formatter"] for node in chart["series"][0]["data"]]
    assert first.startswith('<b>&lt;b&gt;a&lt;/b&gt;</b><img src="data:image/png;base64,AA&#34;"')
    assert first.endswith("b: 0.90 bits<br>c: 0.10 bits")  # d is not similar at all
    assert last == "<b>d</b><br>"
    braces = replace(GRAPH, row_names=("{b}", "b", "c", "d"))
    assert figures.class_hover(braces, 0).startswith("<b>&#123;b}</b>")


def test_labels_lose_folders_unless_echarts_would_replace_them() -> None:
    names = ("x/lime", "x/{lime}", "c", "d")
    graph = replace(GRAPH, row_names=names, column_names=names)
    nodes = figures.plot_class_graph(graph, XY, 3, np.zeros(4, int))[0]["series"][0]["data"]
    assert [node["label"].get("formatter") for node in nodes] == ["lime", None, None, None]
    assert [node["name"] for node in nodes] == [*names]


def test_the_selected_pair_is_marked_among_the_points() -> None:
    x, y = np.array([0.9, 0.1, 0.5]), np.array([0.2, 0.3, 0.1])
    pairs = [("a", "b"), ("b", "c"), ("c", "d")]
    plain = figures.plot_comparison(GRAPH, GRAPH, x, y, pairs, [0])
    marked = figures.plot_comparison(GRAPH, GRAPH, x, y, pairs, [0], selected=("c", "b"))
    assert list(marked.data[-1].x) == [0.1] and marked.data[-1].text[0] == "b – c"
    assert marked.data[0].marker.opacity < plain.data[0].marker.opacity
    assert len(figures.plot_comparison(GRAPH, GRAPH, x, y, pairs, [0], selected=("c",)).data[-1].x) == 2


def test_wider_and_redder_is_more_alike() -> None:
    links = figures.plot_class_graph(GRAPH, XY, 3, np.zeros(4, int))[0]["series"][0]["links"]
    widths = [link["lineStyle"]["width"] for link in links]
    assert widths == sorted(widths, reverse=True) and widths[0] > widths[-1]
    assert len({link["lineStyle"]["color"] for link in links}) == 3


def test_of_base_and_novel_classes_only_the_joined_are_drawn_in_two_columns() -> None:
    weights = np.array([[0.9, 0.0, 0.0], [0.2, 0.0, 0.8]])
    two = replace(
        GRAPH, rows=np.array([7, 8]), row_names=("A", "B"), columns=np.arange(3), column_names=("a", "b", "c")
    )
    two = replace(two, weights=weights)
    xy = np.array([[-1, -0.5], [-1, 0.5], [1, 0.7], [1, 0], [1, -0.7]])
    chart, nodes, ends = figures.plot_class_graph(two, xy, 2)
    assert nodes == [0, 1, 2, 4] and ends == [(0, 2), (1, 4)]
    at = {node["name"]: (node["x"], node["y"]) for node in chart["series"][0]["data"]}
    assert at["A"][0] == at["B"][0] < at["a"][0] == at["c"][0]
    assert at["A"][1] < at["B"][1] and at["c"][1] < at["a"][1]


def test_heat_map_and_scatter_hold_names_as_written() -> None:
    order = np.array([2, 0, 1, 3])
    heat = figures.plot_similarity_map(GRAPH, order, np.array([0, 0, 0, 1]))
    assert heat.data[0].z[1][2] == 0.9 and "<b>" not in heat.data[0].customdata[1][2]
    assert len(heat.data) == 1 + 2 + 1  # one cut, across and down, and what can be clicked
    squares = heat.data[-1]
    assert len(squares.x) == 12  # every cell but the diagonal
    first = [row[0] for row in squares.customdata if row[1:3] == [NAMES[1], NAMES[2]]]
    assert first == ["1,2"] and "<b>" not in str(squares.customdata)
    x, y = np.array([0.9, 0.1, 0.5]), np.array([0.2, 0.3, 0.1])
    pairs = [(NAMES[0], "b"), ("b", "c"), ("c", "d")]
    scatter = figures.plot_comparison(GRAPH, GRAPH, x, y, pairs, labelled=[0])
    assert scatter.data[1].customdata[0][0] == 0 and "<b>" not in scatter.data[1].customdata[0][1]
    assert "<b>" not in scatter.data[1].text[0] and "a" in scatter.data[1].text[0]
    assert sorted(row[0] for row in scatter.data[0].customdata) == [1, 2]


def test_a_name_stands_where_it_covers_least() -> None:
    xy = np.array([[0.0, 0.0], [100.0, 0.0], [400.0, 300.0]])
    sides = figures._free_sides(xy, ("from", "to", "alone"), [0, 1, 2], [(0, 1)])
    assert sides == {0: "left", 1: "right", 2: "right"}  # the edge between the two runs to the right of the first
    crossed = np.array([[0.0, 0.0], [-100.0, 0.0], [100.0, 0.0], [0.0, -100.0]])
    assert figures._free_sides(crossed, "abcd", [0, 1, 2, 3], [(0, 1), (0, 2), (0, 3)])[0] == "bottom"
    wide = np.array([[0.0, 0.0], [500.0, 0.0]])
    assert figures._free_sides(wide, ("a" * 30, "b" * 30), [0, 1], []) == {0: "right", 1: "left"}  # else it is cut
