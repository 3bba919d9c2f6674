"""Figures of predicted accuracy: the table of hard and easy tasks."""

from __future__ import annotations

import numpy as np

from fsviz.figures.prediction import plot_confusion_table


def test_shares_are_of_a_row_and_a_row_without_tasks_has_none() -> None:
    (cells,) = plot_confusion_table(np.array([[0, 0], [1, 3]])).data
    assert [list(row) for row in cells.text] == [["✗ 25%<br>1 task", "✓ 75%<br>3 tasks"], ["no such task"] * 2]
    (cells,) = plot_confusion_table(np.array([[2, 0], [0, 1]])).data
    assert [list(row) for row in cells.text] == [
        ["✗ 0%<br>0 tasks", "✓ 100%<br>1 task"],
        ["✓ 100%<br>2 tasks", "✗ 0%<br>0 tasks"],
    ]
