from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from fsviz import datasets
from fsviz.figures import taxonomy as figures
from fsviz.taxonomy import maps


def distances_of(n: int, largest: float) -> np.ndarray:
    values = np.full((n, n), largest)
    np.fill_diagonal(values, 0.0)
    return values


def test_a_small_task_has_its_numbers_in_the_cells_and_no_scale_beside_them() -> None:
    few = figures.plot_task_distances(distances_of(5, 6.0), list("abcde"), "Jiang-Conrath", 6.0).data[0]
    assert few.texttemplate == "%{z:.1f}" and few.showscale is False
    many = figures.plot_task_distances(distances_of(20, 6.0), [str(i) for i in range(20)], "Jiang-Conrath", 6.0).data[0]
    assert many.texttemplate is None and many.showscale is True


def test_small_distances_are_written_with_more_digits() -> None:
    small = figures.plot_task_distances(distances_of(3, 0.3), list("abc"), "Features", 0.6).data[0]
    assert small.texttemplate == "%{z:.2f}"


def test_long_names_are_cut_and_stand_upright_so_that_they_do_not_cross() -> None:
    names = ["Gymnopus acervatus (Fr.) Murrill", "Mycetinis querceus (Britzelm.) Antonín & Noordel."]
    figure = figures.plot_task_distances(distances_of(2, 6.0), names, "Jiang-Conrath", 6.0)
    assert figure.layout.xaxis.tickangle == -90
    assert all(len(text) <= 18 and "…" in text for text in figure.layout.xaxis.ticktext)
    short = figures.plot_task_distances(distances_of(2, 6.0), ["wolf", "fox"], "Jiang-Conrath", 6.0)
    assert short.layout.xaxis.tickangle == -35


def test_the_tooltip_shows_the_number_of_classes_of_a_concept() -> None:
    graph = maps.class_map(maps.spanning_graph(datasets.load("demo"), "all"))
    option = figures.plot_class_map(graph, pictures={0: "<br>picture"})
    assert "@[" not in json.dumps(option)  # ECharts fills in no values in the boxes of a graph
    tooltips = {node["name"]: node["tooltip"]["formatter"] for node in option["series"][0]["data"]}
    assert tooltips["entity"] == "<b>{b}</b>: 107 classes<br>picture"
    assert tooltips["mammal"] == "<b>{b}</b>: 30 classes"
    tiered = figures.plot_class_map(maps.class_map(maps.spanning_graph(datasets.load("tiered_imagenet"), "all")))
    tooltips |= {node["name"]: node["tooltip"]["formatter"] for node in tiered["series"][0]["data"]}
    assert tooltips["military vehicle"] == "<b>{b}</b>: its classes are below closer concepts"  # ships and planes
    assert tooltips["mushroom"] == "<b>{b}</b>: class"


def tree_of(dataset: str, split: str):
    return maps.concept_tree(maps.spanning_graph(datasets.load(dataset), split))


def leaves_of(node: dict, ring: int = 0) -> list[tuple[str, int]]:
    children = node.get("children", ())
    return [leaf for child in children for leaf in leaves_of(child, ring + 1)] if children else [(node["name"], ring)]


def test_all_classes_of_a_sunburst_are_in_its_outer_ring_and_each_is_named_once() -> None:
    tree = tree_of("demo", "test")
    levels = int(tree.depth.max())
    (root,) = figures.plot_concept_sunburst(tree, 0, levels)["series"][0]["data"]
    leaves = leaves_of(root)
    assert {ring for _, ring in leaves} == {levels}
    assert len(leaves) == len({name for name, _ in leaves}) == 30
    order = figures.sunburst_order(tree, 0, levels)
    assert len(order) - len(tree.ids) == sum(
        levels - int(tree.depth[v]) for v in range(len(tree.ids)) if tree.n_nodes[v] == 1
    )


def test_a_sector_has_the_colour_of_the_group_of_all_its_classes() -> None:
    tree = tree_of("demo", "test")
    n_classes = int(tree.n_classes[0])
    mammal = next(v for v, name in enumerate(tree.names) if name == "placental")
    inside = {int(p) for p in tree.class_position[mammal : mammal + tree.n_nodes[mammal]] if p >= 0}
    groups = ["mammals" if p in inside else "others" for p in range(n_classes)]
    colours = figures._sector_colours(tree, 0, list(range(len(tree.ids))), groups)
    of_group = figures.group_colours(groups)
    assert 0 not in colours, "the root has both"
    assert {v for v, colour in colours.items() if colour == of_group["mammals"]} == set(
        range(mammal, mammal + int(tree.n_nodes[mammal]))
    )


def test_group_colours_differ_and_are_never_that_of_the_selection() -> None:
    groups = [f"group {i}" for i in range(figures.N_GROUPS - 1) for _ in range(9 - i)] + ["others"] * 30
    colours = figures.group_colours(groups)
    assert len(set(colours.values())) == figures.N_GROUPS and figures.ACCENT not in colours.values()
    assert next(iter(colours)) == "group 0" and list(colours)[-1] == "others"


def test_class_names_are_written_without_the_path_above_them() -> None:
    graph = maps.class_map(maps.spanning_graph(datasets.load("demo"), "test"))
    names = tuple(
        f"Animal/{name}" if p >= 0 else name for name, p in zip(graph.names, graph.class_position, strict=True)
    )
    nodes = figures.plot_class_map(replace(graph, names=names))["series"][0]["data"]
    for node, p in zip(nodes, graph.class_position, strict=True):
        assert node["label"].get("formatter") == (node["name"].removeprefix("Animal/") if p >= 0 else None)
