"""Histograms and class balance of testbeds: bars and lines keep their numbers, and carry what a click needs."""

from __future__ import annotations

import numpy as np

from fsviz.figures import tasks
from fsviz.figures.palette import ACCENT

EDGES = np.array([0.0, 1.0, 2.0])


def panel(title: str) -> tasks.Panel:
    return tasks.Panel(title, np.array([25.0, 75.0]), np.array([1, 3]), 1.5, "#4477AA")


def test_histograms_share_their_axes_and_mark_medians() -> None:
    figure = tasks.plot_histograms(EDGES, [panel("uniform"), panel("semantic")], "coarsity", "mean squared distance")
    assert [tuple(bars.y) for bars in figure.data] == [(25.0, 75.0)] * 2
    assert [shape.x0 for shape in figure.layout.shapes] == [1.5, 1.5]
    assert figure.layout.xaxis.range == figure.layout.xaxis2.range == (0.0, 2.0)
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range
    assert figure.data[0].hovertext == ("coarsity 0 to 1: 1 tasks, 25.0%", "coarsity 1 to 2: 3 tasks, 75.0%")


def test_a_bar_carries_its_panel_and_bin_and_the_chosen_one_is_marked() -> None:
    figure = tasks.plot_histograms(EDGES, [panel("uniform"), panel("semantic")], "coarsity", "x", (1, 0))
    assert list(map(list, figure.data[1].customdata)) == [[1, 0], [1, 1]]
    assert figure.data[0].marker.color == ("#4477AA", "#4477AA")
    assert figure.data[1].marker.color == (ACCENT, "#4477AA")
    assert figure.data[1].marker.opacity == (1, tasks.DIMMED) and figure.data[0].marker.opacity == (tasks.DIMMED,) * 2


def test_a_point_of_the_balance_carries_its_line_and_class() -> None:
    shares = {"uniform": np.array([1.0, 2.0]), "semantic": np.array([0.0, 3.0])}
    figure = tasks.plot_balance(("cat", "dog"), shares, dict.fromkeys(shares, "#4477AA"), 1.5)
    assert [tuple(line.y) for line in figure.data] == [(1.0, 2.0), (0.0, 3.0)]
    assert list(map(list, figure.data[1].customdata)) == [[1, 0], [1, 1]]
    marked = tasks.plot_balance(("cat", "dog"), shares, dict.fromkeys(shares, "#4477AA"), 1.5, selected_point=(1, 0))
    assert marked.data[1].marker.color == (ACCENT, "#4477AA") and marked.data[0].marker.opacity == (tasks.DIMMED,) * 2
    assert figure.data[0].hovertext == ("cat", "dog") and figure.layout.shapes[0].y0 == 1.5
