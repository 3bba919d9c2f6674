"""Clicks on points, rows, graphs, cells, boxes and lassos set declared settings."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from fsviz.settings import Setting
from fsviz.text import escape_plotly
from fsviz.ui.parts import clicks, links
from fsviz.ui.parts.clicks import Area, Click, Point

METHOD = Setting("method", "Method", "", "choice", "", choices={"": "none", "a&b": "A & <b>", "ridge": "Ridge"})
TASK = Setting("task", "Task", "", "int", -1, -1, 10)
NEAR = Setting("near", "Near", "", "text", "")
PICKED = Setting("classes", "Classes", "", "names", [])
RANGE = Setting("brush", "Brush", "", "text", "")


class Event(dict):
    """A selection as Streamlit keeps it under the key of a figure."""

    def __init__(self, **selection: Any) -> None:
        super().__init__(selection=selection)
        self.selection = selection


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    values: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", _State(values))
    return values


class _State:
    """The part of a session's state that clicks use."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values, name)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.values[key] = value


def click(state: dict[str, Any], sets: Setting | Click, key: str = "figure", **selection: Any) -> None:
    state[key] = Event(**selection)
    clicks.callback(key, sets)()


def point(data: object = None, **more: object) -> dict[str, object]:
    return {"customdata": data, **more}


def test_a_point_sets_one_setting_by_what_it_carries(state) -> None:
    click(state, METHOD, points=[point([escape_plotly("a&b"), "more"])])
    assert state["method"] == "a&b"
    click(state, METHOD, points=[point("Ridge")])  # a title stands for its identifier
    assert state["method"] == "ridge"
    for nothing in ([], [point()], [point("no such method")], [point("")]):
        click(state, METHOD, points=nothing)
        assert state["method"] == "ridge"
    click(state, Click(METHOD, clears=True), points=[])
    assert state["method"] == ""


def test_numbers_beyond_the_limits_of_a_setting_are_ignored(state) -> None:
    click(state, TASK, points=[point(7)])
    for impossible in (11, -5, "seven", 1.5):
        click(state, TASK, points=[point(impossible)])
        assert state["task"] == 7


def test_a_click_sets_several_settings(state) -> None:
    click(state, Click({1: METHOD, "x": NEAR}, also={"task": -1}), points=[point([0, "ridge"], x=2.5)])
    assert (state["method"], state["near"], state["task"]) == ("ridge", "2.5", -1)
    rows = Click((METHOD, TASK), [("a&b", 0), (None, 4)])
    click(state, rows, rows=[0])
    assert (state["method"], state["task"]) == ("a&b", 0)
    click(state, rows, rows=[1])  # a setting whose value is None stays as it is
    assert (state["method"], state["task"]) == ("a&b", 4)
    click(state, rows, rows=[2])  # of a list that is shorter by now
    assert (state["method"], state["task"]) == ("a&b", 4)


def test_a_function_says_what_a_point_stands_for(state) -> None:
    sets = Click(NEAR, lambda p: f"{p.at(0)}:{p.y}" if p.y else None)
    click(state, sets, points=[point(3, y=0), point(4, y=1.5)])
    assert state["near"] == "4:1.5"


def test_of_several_marked_points_the_first_new_one_counts(state) -> None:
    click(state, TASK, points=[point(1)])
    click(state, TASK, points=[point(1), point(2)])
    assert state["task"] == 2


def test_a_click_on_what_is_chosen_resets_it_where_that_is_declared(state) -> None:
    sets = Click((NEAR, TASK), {"here": ("1.5", 3)}, toggles=(NEAR,))
    for expected in (("1.5", 3), ("", 3), ("1.5", 3)):
        click(state, sets, points=[point("here")])
        assert (state["near"], state["task"]) == expected


def graph(kind: str, *indices: int, series: int = 0) -> dict[str, object]:
    return {"data_type": kind, "series_index": series, "data_indices": list(indices)}


def test_nodes_edges_and_series_of_a_graph_are_distinguished(state) -> None:
    parts = Click(PICKED, {"node": [["cat"], ["dog"]], "edge": [["cat", "dog"]]}, clears=True)
    click(state, parts, selected=[graph("node", 1)])
    assert state["classes"] == ["dog"]
    click(state, parts, selected=[graph("edge", 0)])
    assert state["classes"] == ["cat", "dog"]
    click(state, parts, selected=[])
    assert state["classes"] == []
    bars = Click(NEAR, {0: ["left 0", "left 1"], 1: ["right 0"]})
    click(state, bars, selected=[graph("main", 1), graph("main", 0, series=1)])
    assert state["near"] == "left 1"
    click(state, bars, selected=[graph("main", 1), graph("main", 0, series=1)])
    assert state["near"] == "right 0"
    click(state, Click(NEAR, ["only nodes"]), selected=[graph("edge", 0)])
    assert state["near"] == "right 0"


def test_a_function_is_called_and_a_graph_may_report_a_second_click_as_nothing(state) -> None:
    things: list[str] = []
    sets = Click(things.append, [None, "cat", "dog"], repeats=True)
    for indices in ([1], [], [2], [0], []):
        click(state, sets, selected=[graph("main", *indices)])
    assert things == ["cat", "cat", "dog"]


def test_a_cell_carries_its_row_and_column(state) -> None:
    assert clicks.apply(Click(NEAR, lambda cell: f"{cell.at(0)}-{cell.at(-1)}"), [Point((2, 5))])
    assert state["near"] == "2-5"


def test_a_box_or_a_lasso_sets_what_its_corners_mean(state) -> None:
    def text(x, y):
        return f"{x[0]:g}~{x[-1]:g}" if y[0] < 5 else None

    sets = Click(TASK, area=Area(RANGE, text))
    inside = [point(3), point(4)]
    click(state, sets, points=inside, box=[{"x": [1, 2], "y": [0, 1]}], lasso=[])
    assert state["brush"] == "1~2" and "task" not in state  # the points in a box are not clicked
    click(state, sets, points=inside, box=[], lasso=[{"x": [0, 4, 8], "y": [0, 1, 0]}])
    assert state["brush"] == "0~8"
    click(state, sets, points=inside, box=[{"x": [1, 2], "y": [9, 1]}])
    assert state["brush"] == "0~8"
    click(state, sets, points=inside)
    assert state["brush"] == "0~8" and state["task"] == 3
    click(state, Click(area=Area(RANGE, text, clears=True)), points=inside)
    assert state["brush"] == ""


def test_what_sets_the_same_loses_its_marks_and_so_does_all_after_going_back(state) -> None:
    for key, sets in (("one", METHOD), ("two", METHOD), ("three", TASK)):
        assert clicks.times_cleared(key, sets) == 0
    click(state, TASK, key="three", points=[point(1)])
    click(state, METHOD, key="one", points=[point("ridge")])
    click(state, METHOD, key="two", points=[point("a&b")])
    assert [clicks.times_cleared(key, METHOD) for key in ("one", "two")] == [1, 0]
    assert clicks.times_cleared("three", TASK) == 0
    links.forget_clicks()
    assert [clicks.times_cleared(key, METHOD) for key in ("one", "two")] == [2, 1]


def test_a_box_keeps_its_mark_while_only_a_point_is_chosen_elsewhere(state) -> None:
    sets = Click(TASK, area=Area(RANGE, lambda x, y: "range"))
    for key in ("left", "right"):
        clicks.times_cleared(key, sets)
    click(state, sets, key="left", points=[point(1)], box=[{"x": [1, 2], "y": [0, 1]}])
    click(state, sets, key="right", points=[point(2)])
    assert clicks.times_cleared("left", sets) == 0
    click(state, sets, key="right", points=[point(2)], box=[{"x": [1, 2], "y": [0, 1]}])
    assert clicks.times_cleared("left", sets) == 1
