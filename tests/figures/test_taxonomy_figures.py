from __future__ import annotations

import json

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
    assert all(len(text) <= 18 and text.endswith("…") for text in figure.layout.xaxis.ticktext)
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
