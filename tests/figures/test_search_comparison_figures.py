"""Figures of searches: what is drawn is what the tables say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.figures import search_comparison as figures
from fsviz.figures.palette import meaning

TITLES = {"fastdiffsel": "FastDiffSel", "greedy": "Greedy"}


def test_searches_have_accuracies_on_the_left_and_times_on_the_right() -> None:
    rows = [{"search": "random", "objective": "random", "accuracy": 80.0, "ci95": 1.0, "seconds": None}]
    for search, hard, easy, seconds in (("fastdiffsel", 50.0, 88.0, 0.002), ("greedy", 45.0, 95.0, 0.1)):
        rows.append({"search": search, "objective": "hard", "accuracy": hard, "ci95": 2.0, "seconds": seconds})
        rows.append({"search": search, "objective": "easy", "accuracy": easy, "ci95": None, "seconds": 3 * seconds})
    figure = figures.plot_searches(rows, TITLES)
    hard, easy, times = figure.data
    assert dict(zip(hard.y, hard.x, strict=True)) == {"FastDiffSel": 50.0, "Greedy": 45.0}
    assert hard.marker.color == meaning("hard") and list(easy.error_x.array) == [0, 0]
    assert list(times.y) == ["Greedy", "FastDiffSel"] and np.allclose(times.x, [200, 4])
    assert list(times.text) == ["200 ms", "4 ms"]
    assert any("random 80.0 ± 1.0%" in a.text for a in figure.layout.annotations)
    assert len(figures.plot_searches(rows[:3], TITLES).data) == 3  # a run that has not come to greedy yet


def test_steps_show_both_losses_and_the_accuracy() -> None:
    table = pd.DataFrame({"n_steps": [0, 1, 2], "weighted": [1.0, 2.0, 1.5], "weighted_ci95": 0.1})
    for name, values in (("selected", [np.nan, 3.0, 2.0]), ("accuracy", [np.nan, 40.0, 45.0])):
        table[name], table[f"{name}_ci95"] = values, 0.2
    accuracy, selected, weighted = figures.plot_number_of_steps(table).data
    assert list(accuracy.x) == list(selected.x) == [1, 2] and list(weighted.x) == [0, 1, 2]
    assert list(accuracy.y) == [40, 45] and list(selected.y) == [3, 2] and list(weighted.y) == [1, 2, 1.5]


def test_filtered_shows_the_draws_and_what_else_is_hard() -> None:
    curve = pd.DataFrame({"accuracy": [60.0, 80.0], "draws": [10.0, 1.0]})
    means = pd.DataFrame({"kind": ["random", "filtered", "searched"], "n_way": [17.0, 27.0, 19.0], "n_way_ci95": 1.0})
    figure = figures.plot_filtered(curve, means, 45.0, "n_way", "classes per task")
    draws, ways = figure.data
    assert list(draws.y) == [10, 1]
    assert dict(zip(ways.y, ways.x, strict=True)) == {figures.KINDS[k]: w for k, w in means[["kind", "n_way"]].values}
    assert any("hard supports 45.0%" in a.text for a in figure.layout.annotations)
    assert figure.layout.xaxis.range[0] <= 45
    assert len(figures.plot_filtered(curve, means, 45.0, "").data) == 1


def test_shares_put_the_queries_values_on_top() -> None:
    shares = {"sand": 10.0, "snow": 60.0, "<b>": 30.0}
    rows = [
        (name, value, share, 1.0) for name in ("hard", "random", "easy", "query") for value, share in shares.items()
    ]
    table = pd.DataFrame(rows, columns=["set", "value", "share", "ci95"])
    figure = figures.plot_shares(table, ["sand"])
    assert [trace.name for trace in figure.data] == ["hard supports", "random supports", "easy supports"]
    assert list(figure.data[0].y) == ["&lt;b&gt;", "snow", "<b>sand</b> (queries)"]
    assert list(figure.data[0].x) == [30, 60, 10]
    band = figure.layout.shapes[0]
    assert (band.y0, band.y1) == (1.5, 2.5)
