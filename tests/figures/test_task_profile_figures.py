"""Figures of one task: harder is to the right, two tasks have two shapes, correct and incorrect have two signs."""

from __future__ import annotations

import numpy as np

from fsviz.figures import task_profile as figures

ROWS = [
    {"title": "Coarsity", "direction": "easier", "harder": [80.0, 30.0], "value": [12.0, 40.0]},
    {"title": "Query loss", "direction": "harder", "harder": [np.nan, 10.0], "value": [np.nan, 0.1]},
]


def test_one_task_has_a_bar_from_the_middle_and_two_have_shapes() -> None:
    item = figures.plot_percentiles(ROWS)
    bars = [trace for trace in item.data if trace.mode == "lines"]
    assert tuple(bars[0].x) == (50, 80.0) and bars[0].y[0] == "Coarsity"
    (dots,) = [trace for trace in item.data if "markers" in trace.mode]
    assert dots.x[0] == 80 and "Coarsity: 12, harder than 80% of tasks" in dots.customdata[0]
    assert "Higher is easier." in dots.customdata[0] and dots.text[1] == ""
    two = figures.plot_percentiles(ROWS, ("This task", "Other task"))
    assert [trace.marker.symbol for trace in two.data] == ["circle", "diamond"] and two.layout.showlegend
    assert [trace.x[1] for trace in two.data][1] == 10


def test_the_accuracy_of_a_task_is_next_to_the_mean_of_its_testbed() -> None:
    rows = [{"label": "ProtoNet", "accuracy": [60.0], "mean": 71.0, "ci95": 2.0, "n": 30}]
    mean, own = figures.plot_accuracies(rows).data
    assert (
        mean.x[0] == 71 and mean.error_x.array[0] == 2 and "71.0 ± 2.0% correct, mean of 30 tasks" in mean.customdata[0]
    )
    assert own.x[0] == 60 and own.text[0] == "60%"
    rows[0] |= {"mean": np.nan, "ci95": np.nan, "n": 0}
    assert len(figures.plot_accuracies(rows).data) == 1  # no mean is available


def test_correct_and_incorrect_predictions_have_different_signs() -> None:
    cells, written = figures.plot_confusion_matrix(np.array([[3, 1], [0, 4]]), ["a", "b"]).data
    assert list(zip(written.x, written.y, written.text, strict=True)) == [(0, 0, "3 ✓"), (1, 0, "1 ✗"), (1, 1, "4 ✓")]
    assert np.asarray(cells.z).tolist() == [[-0.75, 0.25], [0.0, -1.0]] and np.asarray(cells.text)[0, 1] == 1
