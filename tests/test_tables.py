"""Declared tables: each kind of column by hand-computed cells, on every way out."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from fsviz import tables
from fsviz.reports import html
from fsviz.reports.tables import table_to_latex, table_to_markdown
from fsviz.tables import Column, Table, to_csv, to_text
from fsviz.ui.parts import export
from tests.hostile import NAMES

NAN = float("nan")


@pytest.mark.parametrize(
    ("column", "row", "cell"),
    [
        (Column("x", "X"), {"x": "two\n lines"}, "two lines"),
        (Column("x", "X"), {"x": ["a", "b"]}, "a, b"),
        (Column("x", "X"), {"x": np.bool_(True)}, "yes"),
        (Column("x", "X"), {"x": False}, "no"),
        (Column("x", "X", kind="number"), {"x": 12.34567}, "12.35"),
        (Column("x", "X", kind="number"), {"x": 0.000123456}, "0.0001235"),
        (Column("x", "X", kind="number"), {"x": 12345.6}, "12,346"),
        (Column("x", "X", kind="number", digits=3), {"x": 2}, "2.000"),
        (Column("x", "X", kind="number", digits=0), {"x": -1234.5}, "-1,234"),
        (Column("x", "X", kind="percent"), {"x": 59.04}, "59.0"),
        (Column("x", "X", kind="percent", interval="half"), {"x": 59.04, "half": 0.66}, "59.0 ± 0.7"),
        (Column("x", "X", kind="percent", interval="half"), {"x": 59.04, "half": None}, "59.0"),
        (Column("x", "X", kind="number", interval="half"), {"x": 45.789, "half": 8.616}, "45.79 ± 8.6"),
        (Column("x", "X", kind="number", interval="half"), {"x": 4578.9, "half": 861.6}, "4,579 ± 861.6"),
        (Column("x", "X", kind="share", interval="half"), {"x": 0.5904, "half": 0.0066}, "59.0 ± 0.7"),
        (Column("x", "X", kind="points", interval="half"), {"x": 8.81, "half": 2.62}, "+8.8 ± 2.6"),
        (Column("x", "X", kind="points"), {"x": -0.31}, "-0.3"),
        (Column("x", "X", kind="bits"), {"x": 0.3579}, "0.36"),
        (Column("x", "X", kind="count"), {"x": 1234}, "1,234"),
        (Column("x", "X", kind="count"), {"x": 1234.0}, "1,234"),
        (Column("x", "X", kind="p"), {"x": 0.000012345}, "1.2e-05"),
        (Column("x", "X", kind="bar", digits=0), {"x": 66.7}, "67"),
        (
            Column("x", "X", kind="number", digits=2, interval=("a", "b")),
            {"x": 0.5, "a": 0.4, "b": 0.61},
            "0.50 (0.40 to 0.61)",
        ),
        (Column("x", "X", kind="number", digits=2, interval=("a", "b")), {"x": 0.5, "a": NAN, "b": NAN}, "0.50"),
        (Column("x", "X", kind="count"), {"x": "3 of 4"}, "3 of 4"),
        *((Column("x", "X", kind=kind), {"x": nothing}, "–") for kind in ("text", "number") for nothing in (None, NAN)),
        (Column("x", "X", kind="number"), {"x": float("inf")}, "–"),
        (Column("x", "X"), {}, "–"),
        (Column("x", "X"), {"x": ""}, "–"),
        (Column("x", "X"), {"x": pd.NA}, "–"),
    ],
)
def test_a_cell(column: Column, row: dict[str, object], cell: str) -> None:
    assert column.cell(row) == cell


def test_headers_name_the_unit_once() -> None:
    columns = (
        Column("a", "Accuracy", kind="percent", interval="h"),
        Column("b", "Time", "s", 1, kind="number"),
        Column("c", "Gain", kind="points"),
        Column("d", "Association", kind="bits"),
        Column("e", "r", kind="number", interval=("low", "high")),
        Column("f", "r", kind="number"),
    )
    table = Table("T", *columns)
    rows = [dict.fromkeys("abcdefh", 1.0) | {"low": 0.0, "high": 2.0}]
    headers = [
        "Accuracy (%)",
        "± 95%",
        "Time (s)",
        "Gain (points)",
        "Association (bits)",
        "r",
        "r from",
        "r to",
        "r (2)",
    ]
    assert list(tables.exported(table, rows)) == headers
    assert list(tables.cells(table, rows)[0]) == [*headers[:1], *headers[2:6], "r (2)"]
    two = table.with_(replace(columns[0], name="z", title="Hard", interval="zh"), before="b")
    rows[0] |= {"z": 2.0, "zh": 0.1}
    assert list(tables.exported(two, rows))[:4] == ["Accuracy (%)", "± accuracy", "Hard (%)", "± hard"]
    assert [c.name for c in two.only("z", "a").columns] == ["z", "a"]
    assert [c.name for c in two.without("b", "z").columns] == list("acdef")


TABLE = Table(
    "Methods",
    Column("name", "Method"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("share", "Share", kind="share"),
    Column("n", "Tasks", kind="count"),
    Column("empty", "Empty"),
    Column("face", "Image", kind="image"),
)
ROWS = [
    {"name": "ProtoNet", "accuracy": 59.04, "ci95": 0.66, "share": 0.333, "n": 1200, "face": "data:image/png;base64,x"},
    {"name": "=1+1", "accuracy": None, "ci95": None, "share": None, "n": None, "face": ""},
]


@pytest.mark.parametrize("rows", [ROWS, pd.DataFrame(ROWS), {name: [row[name] for row in ROWS] for name in ROWS[0]}])
def test_one_declaration_for_every_outlet(rows: tables.Rows) -> None:
    assert to_text(TABLE, rows).splitlines() == [
        "Method    Accuracy (%)  Share (%)  Tasks",
        "--------  ------------  ---------  -----",
        "ProtoNet    59.0 ± 0.7       33.3  1,200",
        "=1+1                 -          -      -",
    ]
    assert to_csv(TABLE, rows).splitlines() == [
        "Method,Accuracy (%),± 95%,Share (%),Tasks",
        "ProtoNet,59.04,0.66,33.3,1200.0",
        "'=1+1,,,,",
    ]
    assert table_to_markdown(TABLE, rows).splitlines()[1:] == [
        "| --- | ---: | ---: | ---: |",
        "| ProtoNet | 59.0 ± 0.7 | 33.3 | 1,200 |",
        "| =1+1 | – | – | – |",
    ]
    latex = table_to_latex(TABLE, rows)
    assert r"\begin{tabular}{lrrr}" in latex and r"Method & Accuracy (\%) & Share (\%) & Tasks \\" in latex
    assert r"ProtoNet & 59.0 $\pm$ 0.7 & 33.3 & 1,200 \\" in latex
    page = html.declared_table(TABLE, rows)
    assert '<td class="n">59.0 <small>± 0.7</small></td>' in page and "data:image" not in page
    frame = tables.frame(TABLE, rows)
    assert list(frame) == ["name", "accuracy", "ci95", "share", "n", "face"]  # what is empty is not shown
    assert all(pd.api.types.is_numeric_dtype(frame[name]) for name in ("accuracy", "ci95", "share", "n"))  # they sort
    assert frame["share"].iloc[0] == pytest.approx(33.3)


def test_no_rows_keep_their_headers() -> None:
    assert to_text(TABLE, []) == "(none)"
    assert list(tables.frame(TABLE, [])) == ["name", "accuracy", "share", "n", "empty", "face"]
    assert to_csv(TABLE, []) == "Method,Accuracy (%),Share (%),Tasks,Empty\n"


def test_how_a_page_draws_the_columns() -> None:
    table = TABLE.with_(
        Column("points", "Gain", kind="points", help="h"),
        Column("bar", "Bar", digits=0, kind="bar", high=100, width=70),
        Column("p", "p", kind="p"),
        Column("value", "Value", kind="number"),
        Column("correct", "Correct"),
    )
    rows = [{**ROWS[0], "points": 1.0, "bar": 30.0, "p": 0.1, "value": 2.0, "correct": True}]
    config = export.column_config(table, tables.frame(table, rows))
    assert config["name"] == st.column_config.TextColumn("Method")
    assert config["accuracy"] == st.column_config.NumberColumn("Accuracy (%)", format="%.1f")
    assert config["ci95"] == st.column_config.NumberColumn("± 95%", format="%.1f")
    assert config["n"] == st.column_config.NumberColumn("Tasks", format="localized")
    assert config["face"] == st.column_config.ImageColumn("Image")
    assert config["points"] == st.column_config.NumberColumn("Gain (points)", format="%+.1f", help="h")
    bar = {"min_value": 0.0, "max_value": 100, "width": 70}
    assert config["bar"] == st.column_config.ProgressColumn("Bar", format="%.0f", **bar)
    assert config["p"] == st.column_config.NumberColumn("p", format="%.2g")
    assert config["value"] == st.column_config.NumberColumn("Value", format="%.4g")
    assert config["correct"] == st.column_config.CheckboxColumn("Correct")


def test_names_of_classes_are_short_to_read_and_whole_in_csv() -> None:
    sides = (Column("a", "Class", kind="class"), Column("b", "Other class", kind="class"))
    table = Table("Pairs", *sides, Column("task", "Classes", kind="class"), Column("n", "Name"))
    rows = [
        {"a": "Fruit/Lime", "b": "Veg/Beet", "task": ["Fruit/Lime", "Veg/Lime"], "n": "x/y"},
        {"a": "Veg/Lime", "b": "Fruit/Kiwi", "task": ("Veg/Beet", "Fruit/Lime"), "n": "plain"},
    ]
    short = [["Fruit/Lime", "Beet", "Fruit/Lime, Veg/Lime", "x/y"], ["Veg/Lime", "Kiwi", "Beet, Lime", "plain"]]
    for listed in (rows, pd.DataFrame(rows), {name: [row[name] for row in rows] for name in rows[0]}):
        assert tables.frame(table, listed).to_numpy().tolist() == short
        assert tables.cells(table, listed)[0].to_numpy().tolist() == short
        assert "Veg/Beet" not in to_text(table, listed) and "Fruit/Kiwi" not in html.declared_table(table, listed)
        read = pd.read_csv(io.StringIO(to_csv(table, listed)))
        assert read["Class"].tolist() == ["Fruit/Lime", "Veg/Lime"] and read["Other class"][1] == "Fruit/Kiwi"
        assert read["Classes"].tolist() == ["Fruit/Lime, Veg/Lime", "Veg/Beet, Fruit/Lime"]
    assert rows[0]["b"] == "Veg/Beet" and to_text(table, []) == "(none)"


def test_hostile_names_stay_as_they_were_written() -> None:
    table = Table(NAMES[0], Column("name", "Name"), *(Column(n, n, kind="percent") for n in NAMES))
    rows = [{"name": name, **dict.fromkeys(NAMES, 1.0)} for name in NAMES]
    text = to_text(table, [*rows, {**rows[0], "name": "two\nlines\x1b[2J"}])
    assert len(text.splitlines()) == len(rows) + 3 and "\x1b" not in text and "two lines?[2J" in text
    read = pd.read_csv(io.StringIO(to_csv(table, rows)))
    assert len(read) == len(rows) and not read["Name"].str.startswith(("=", "+", "-", "@")).any()
    markdown = table_to_markdown(table, rows).strip().splitlines()
    assert len({line.replace(r"\|", "").count("|") for line in markdown}) == 1
    assert not any(mark in line.replace(r"\<", "") for line in markdown for mark in ("<b>", "<img", "<script"))
    latex = table_to_latex(table, rows)
    assert latex.count(r"\\") == len(rows) + 1 and "<" not in latex and r"\textless{}b\textgreater{}" in latex
    page = html.declared_table(table, rows)
    assert "<b>" not in page and "<script>" not in page and "&lt;b&gt;" in page
