"""Figures of compared datasets: filled if significant, published results are hollow, names of users are text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fsviz.figures import compare_datasets as figures

NASTY = "<b>bold</b>"


def row(measure: str, side: str, **more: object) -> dict[str, object]:
    expected = {"title": measure, "side_title": f"{side} {NASTY}", "first_is": "", "here": "", "effect": np.nan}
    expected |= {"effect_ci95": np.nan, "difference": np.nan, "difference_ci95": np.nan, "mean": 1.0, "why": ""}
    return {"measure": measure, "side": side, **expected, **more}


def test_filled_is_significant_and_a_measure_without_values_has_no_row() -> None:
    expected = {"effect_ci95": 0.2, "difference": 1.0, "difference_ci95": 0.1}
    rows = [row(m, "mine") for m in ("a", "b", "c", "d")]
    rows += [
        row("a", "other", first_is="harder", here="harder", effect=1.0, **expected),
        row("b", "other", first_is="noise", here="easier", effect=-0.5, **expected),
        row("c", "other", first_is="noise", here="noise", effect=0.1, **expected),
        row("d", "other", first_is="unknown", here="unknown"),
    ]
    figure = figures.plot_differences(pd.DataFrame(rows), "mine", "b")
    (points,) = figure.data
    assert list(points.marker.symbol) == ["circle", "circle-open-dot", "circle-open"]
    assert list(points.x) == [1.0, -0.5, 0.1] and [m for (m,) in points.customdata] == ["a", "b", "c"]
    assert list(figure.layout.yaxis.ticktext) == ["a", "<b>b</b>", "c"]
    assert "is easier on these classes only" in points.hovertext[1]
    assert "not significantly different" in points.hovertext[2]
    assert NASTY not in figure.to_json() and "&lt;b&gt;bold" in points.name
    item = figures.plot_differences(pd.DataFrame([row("d", "mine"), row("d", "other", first_is="unknown")]), "mine")
    assert not len(item.data[0].x)


def test_published_rows_are_hollow_and_below_the_computed_ones() -> None:
    mine = {"title": NASTY, "published": False, "hard": 40.0, "random": 80.0, "easy": 90.0, "n_tasks": 9}
    mine |= {f"{name}_ci95": 1.0 for name in ("hard", "random", "easy")}
    theirs = {"title": "ORBIT", "published": True, "setting": "5-way", "source": "a table", "n_backbones": 3}
    theirs |= {"hard": 30.0, "hard_low": 20.0, "hard_high": 35.0, "random": np.nan}
    figure = figures.plot_suite([mine], [theirs])
    traces = {trace.name: trace for trace in figure.data if trace.name}
    assert tuple(traces["hard"].y) == (0,) and tuple(traces["hard, published"].y) == (1,)
    assert traces["hard, published"].marker.symbol == "triangle-down-open"
    assert tuple(traces["hard, published"].error_x.array) == (5.0,)
    assert tuple(traces["hard, published"].error_x.arrayminus) == (10.0,)
    assert not len(traces["random, published"].x) and not len(traces["easy, published"].x)
    assert "published in a table" in traces["hard, published"].hovertext[0]
    assert "(published)" in figure.layout.yaxis.ticktext[1] and NASTY not in figure.to_json()
