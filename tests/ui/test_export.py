"""Every figure and table of a page can be exported."""

from __future__ import annotations

import ast

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from fsviz.tables import Column, Table, TableData
from fsviz.ui.parts import export
from fsviz.ui.parts.page import PAGES
from tests.reports.test_html import loaded
from tests.sources import ROOT, near, nodes

FILES = sorted(p for p in (ROOT / "fsviz" / "ui").rglob("*.py") if p.name != "export.py")


def test_every_figure_and_table_goes_through_export() -> None:
    around = [
        f"{near(path)}:{node.lineno}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("plotly_chart", "dataframe", "echarts_chart")
    ]
    assert len(FILES) > 50 and around == []


def item_of(rows: object, *columns: Column) -> export.Item:
    return export.Item("table", "T", TableData(Table("T", *columns), rows))


def test_a_table_is_exported_as_displayed() -> None:
    rows = {"n": [3, 4], "hidden": [0, 0], "face": ["data:image/png;base64,x"] * 2, "share": [0.5, None]}
    item = item_of(
        rows,
        Column("share", "Share", kind="share"),
        Column("n", "Images", kind="count"),
        Column("face", "", kind="image"),
        Column("none", "Nothing"),
    )
    assert export.csv_of(item) == "Share (%),Images\n50.0,3\n,4\n"


def test_names_of_users_are_no_code_in_files() -> None:
    item = item_of(
        {"class": ["=1+1", "a_b & <i>"], "accuracy": [12.34567, float("nan")]},
        Column("class", "Class"),
        Column("accuracy", "Accuracy", kind="percent"),
    )
    assert export.csv_of(item).splitlines() == ["Class,Accuracy (%)", "'=1+1,12.34567", "a_b & <i>,"]
    latex = export.latex_of(item)
    assert r"=1+1 & 12.3 \\" in latex and r"a\_b \& \textless{}i\textgreater{} & – \\" in latex
    assert r"\begin{tabular}{lr}" in latex
    page = export.to_page([item, export.Item("recipe", "", "fsviz show '<b>'")])
    assert "a_b &amp; &lt;i&gt;" in page and "<b>" not in page and "&lt;b&gt;" in page
    assert export.file_name("Where? a/b..\\c") == "where-a-b-c" and export.file_name("…") == "fsviz"


def test_a_figure_is_a_page_of_its_own_that_loads_nothing() -> None:
    page = export.to_html(export.Item("chart", "A <title>", go.Figure(go.Bar(y=[1, 2])), "key"))
    assert loaded(page) == [] and "Plotly.newPlot" in page and "<h1>A &lt;title&gt;</h1>" in page


def test_items_of_a_page_are_listed_once_and_their_files_made_on_request() -> None:
    app = AppTest.from_function(_page)
    app.session_state["n"] = 2
    app.run()
    assert not app.exception
    assert [(i.kind, i.title) for i in app.session_state["_shown_here"].items.values()] == [
        ("chart", "Bars"),
        ("table", "Numbers"),
        ("table", "Numbers (2)"),
        ("recipe", "Command line"),
    ]
    assert not app.get("download_button")  # nothing of the list is drawn before it is opened
    app.session_state["n"] = 0
    app.run()
    assert [i.kind for i in app.session_state["_shown_here"].items.values()] == ["chart", "recipe"]


def _page() -> None:
    import plotly.graph_objects as go
    import streamlit as st

    from fsviz.tables import Column, Table
    from fsviz.ui.parts import export

    export.begin("What is it?")
    export.button()
    export.chart("Bars", go.Figure(go.Bar(y=[1, 2])), key="bars")
    for i in range(st.session_state["n"]):
        export.table(Table("Numbers", Column("n", "n", kind="count")), {"n": [i]})
    export.recipe("fsviz show demo")
    export.recipe("fsviz show demo")


@pytest.mark.parametrize("slug", PAGES)
def test_every_page_names_a_command_that_gives_the_same(slug: str) -> None:
    folder = ROOT / "fsviz" / "ui" / "pages"
    files = [folder / f"{slug}.py", *(folder / slug).rglob("*.py")]
    called = {
        ast.unparse(node.func) for path in files if path.exists() for node in nodes(path) if isinstance(node, ast.Call)
    }
    assert called & {"shell.command_popover", "export.command", "export.recipe"}
