"""Figures of hard tasks: what is drawn is what the tables say, and labels keep out of each other's way."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.figures import support_sets as figures
from fsviz.figures.palette import meaning

SETS = ("hard", "random", "easy")


def test_distribution_draws_every_count_in_the_colour_of_its_set() -> None:
    histogram = {"edges": [0, 25, 50, 75, 100], "hard": [1, 2, 0, 0], "random": [0, 0, 2, 1], "easy": [0, 0, 0, 3]}
    mean = {"hard": 30.0, "random": 70.0, "easy": 90.0}
    figure = figures.plot_distribution(histogram, mean, {"hard": 3.0, "random": None, "easy": 1.0})
    curves = {trace.name: trace for trace in figure.data if trace.name in SETS}
    for name in SETS:
        assert list(curves[name].y)[1:-1] == histogram[name]
        assert curves[name].line.color == meaning(name)
    texts = [a.text for a in figure.layout.annotations]
    assert any("30.0 ± 3.0" in t for t in texts)
    assert any("70.0%" in t for t in texts)


def test_a_selected_bar_is_marked_and_the_rest_dimmed() -> None:
    histogram = {"edges": [0, 25, 50, 75, 100], "hard": [0, 2, 1, 0], "random": [0, 0, 2, 1], "easy": [0, 0, 0, 3]}
    mean = {"hard": 50.0, "random": 70.0, "easy": 90.0}
    plain = figures.plot_distribution(histogram, mean, dict.fromkeys(SETS))
    figure = figures.plot_distribution(histogram, mean, dict.fromkeys(SETS), selected=("hard", 2))
    (bar,) = (trace for trace in figure.data if trace.type == "bar")
    assert (list(bar.x), list(bar.y), bar.width) == ([62.5], [1], 25)
    assert not any(trace.type == "bar" for trace in plain.data)
    marks = {trace.name: trace.marker.opacity for trace in figure.data if (trace.name or "").startswith("bars of")}
    assert marks["bars of hard"] == (figures.DIMMED, 1.0) and set(marks["bars of easy"]) == {figures.DIMMED}
    assert plain.layout.xaxis.range[0] == 10 * 2 - 13  # empty accuracies at the left are cut off


def test_published_accuracies_join_random_and_hard() -> None:
    table = pd.DataFrame({"label": ["a", "<b>"], "random": [60.0, np.nan], "hard": [40.0, 20.0]})
    figure = figures.plot_published(table)
    hard, random = (next(t for t in figure.data if t.name == f"{name} supports") for name in ("hard", "random"))
    assert list(hard.x) == [20.0, 40.0] and list(hard.y) == list(random.y) and "<b>" not in hard.y
    assert random.text == ("", "60.0")
    assert [list(t.x) for t in figure.data if t.mode == "lines"][1] == [40.0, 60.0]


def test_labels_of_close_means_point_away_from_each_other() -> None:
    places = {
        name: (anchor, level) for name, anchor, level in figures._label_places({"hard": 40, "random": 84, "easy": 88})
    }
    assert places == {"hard": ("center", 0), "random": ("right", 0), "easy": ("left", 0)}
    wide = {"hard": 49, "random": 73.7, "easy": 77.8}  # the middle label would reach the left one
    assert {name: level for name, _, level in figures._label_places(wide)} == {"hard": 0, "random": 1, "easy": 0}
    crowded = {
        name: (anchor, level) for name, anchor, level in figures._label_places({"hard": 80, "random": 84, "easy": 88})
    }
    assert crowded == {"hard": ("right", 0), "random": ("center", 1), "easy": ("left", 0)}


def test_stress_matrix_writes_drop_and_both_accuracies() -> None:
    row = {"source": "a", "adaptation": "protonet", "n_tasks": 9, "drop_ci95": 2.0}
    matrix = [
        {**row, "backbone": "a", "random": 80.0, "hard": 45.0, "drop": 35.0},
        {**row, "backbone": "b", "random": 70.0, "hard": 55.0, "drop": 15.0},
        {**row, "source": "b", "backbone": "a", "random": 80.0, "hard": 60.0, "drop": 20.0},
    ]
    figure = figures.plot_stress(matrix, {"protonet": "prototypes"}, "a")
    scale = [colour for _, colour in figure.data[0].colorscale]
    assert all(colour.startswith("#") and len(colour) == 7 for colour in scale), "seen through, text loses contrast"
    heat = figure.data[0]
    assert np.asarray(heat.z, dtype=float).tolist() == [[35.0], [15.0]]
    assert "-35.0 ± 2.0" in heat.text[0][0]
    assert "80.0 → 45.0" in heat.text[0][0]
    assert list(heat.y) == ["a<br>(searched with)", "b"]


def test_gaps_shift_costs_and_differences_are_ordered_by_size() -> None:
    rows = [
        (attribute, kind, name, gap + 0.1 * (name == "hard"), 0.01, 9)
        for attribute, kind, gap in (("style", "share", 0.2), ("context", "share", 0.4), ("blur", "deviations", 0.5))
        for name in SETS
    ]
    table = pd.DataFrame(rows, columns=["attribute", "kind", "set", "gap", "ci95", "n_tasks"])
    table = table.assign(chance=0.2, significant=(table["set"] == "hard") & (table["attribute"] == "context"))
    figure = figures.plot_gaps(table)
    hard, random, easy = (next(trace for trace in figure.data if trace.name == name) for name in SETS)
    assert list(hard.y) == ["style", "context"]  # the largest is drawn on top, which is last
    assert list(hard.marker.symbol) == ["triangle-down-open", "triangle-down"]  # filled if significant
    assert list(random.marker.symbol) == ["circle"] * 2 and list(easy.marker.symbol) == ["triangle-up-open"] * 2


def test_shift_costs_show_both_protocols_and_the_classes_they_rest_on() -> None:
    costs = pd.DataFrame(
        {"attribute": ["x", "y", "z"], "cost": [10.0, 30.0, np.nan], "cost_alike": [4.0, np.nan, np.nan]}
    ).assign(n_classes=[14, 20, 0], n_classes_alike=[9, 0, 0], significant=[False, True, False])
    for suffix in ("", "_alike"):
        costs = costs.assign(**{f"{name}{suffix}": 1.0 for name in ("ci95", "without_shift", "with_shift")})
    costs["significant_alike"] = True
    figure = figures.plot_shift_cost(costs)
    against, alike = (t for t in figure.data if t.x[0] is not None)
    assert list(against.x) == [10.0, 30.0] and list(alike.x) == [4.0]  # the costliest is drawn on top, which is last
    assert list(figure.layout.yaxis.ticktext) == ["x<br>14 and 9 classes", "y<br>20 classes"]
    assert list(against.marker.symbol) == ["triangle-down-open", "triangle-down"]  # filled if significant
    assert [entry[0] for entry in against.customdata] == ["x", "y"] and alike.customdata[0][0] == "x"
    names = [t.name for t in figure.data if t.x[0] is None]
    assert names == ["each class against the others", "all classes alike"]


def test_reasons_are_points_of_accuracy_filled_if_significant() -> None:
    rows = [
        {"attribute": "context", "points": 4.2, "ci95": 1.1, "real": True, "easy": -0.5},
        {"attribute": "a name of an attribute that is far too long", "points": 0.3, "ci95": 2.0, "real": False}
        | {"easy": 0.1},
    ]
    figure = figures.plot_reasons(rows)
    easy, hard = (t for t in figure.data if t.x[0] is not None)
    assert list(hard.x) == [0.3, 4.2] and list(hard.error_x.array) == [2.0, 1.1]  # the first is drawn on top
    assert list(hard.marker.symbol) == ["triangle-down-open", "triangle-down"] and list(easy.x) == [0.1, -0.5]
    assert figure.layout.yaxis.ticktext[0] == "a name of an a…far too long"
    assert hard.customdata[0] == rows[1]["attribute"]  # hover says it all


def test_bars_of_the_distribution_can_be_clicked_and_the_chosen_one_is_marked() -> None:
    histogram = {"edges": [0, 50, 100], "hard": [3, 1], "random": [0, 4], "easy": [0, 4]}
    mean = dict.fromkeys(SETS, 50.0)
    figure = figures.plot_distribution(histogram, mean, dict.fromkeys(SETS), selected=("hard", 1))
    points = {t.name: t for t in figure.data if t.name and t.name.startswith("bars of")}
    assert [tuple(c) for c in points["bars of hard"].customdata] == [("hard", 0), ("hard", 1)]
    assert [tuple(c) for c in points["bars of random"].customdata] == [("random", 1)]  # no point without a task
    assert list(points["bars of hard"].marker.line.width) == [0, 3]
