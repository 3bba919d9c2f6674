"""Printed tables: the best of a column bold, every name as it was written."""

from __future__ import annotations

import io
import re

import pandas as pd
import pytest

from fsviz.analyses import run_comparison
from fsviz.reports import tables
from fsviz.text import csv
from tests.analyses.test_run_comparison import line, two_samplers
from tests.hostile import NAMES


def test_printed_tables_are_bold_and_escaped() -> None:
    lines = [line("A_1 & <b>%x</b> | $y", [0.25, 0.75]), line("B", [0.1, 0.1])]
    table = run_comparison.result_table(lines)
    latex, markdown = tables.to_latex(table), tables.to_markdown(table)
    assert r"A\_1 \& \textless{}b\textgreater{}\%x\textless{}/b\textgreater{} \textbar{} \$y" in latex
    assert r"\textbf{50.00 $\pm$ 49.00}" in latex and r"\textbf{10.00" not in latex
    assert latex.count(r"\\") == 3 and r"\toprule" in latex
    assert r"A\_1 \& \<b\>%x\</b\> \| \$y" in markdown and "**50.00 ± 49.00**" in markdown
    rows = markdown.strip().splitlines()
    assert len(rows) == 4 and len({row.replace(r"\|", "").count("|") for row in rows}) == 1
    records = tables.to_records(table)
    assert records[0]["Q1"] is None and records[1]["accuracy"] == pytest.approx(10)


def test_semantic_beside_uniform_tasks_in_latex_and_markdown() -> None:
    (pairs,) = run_comparison.side_by_side(run_comparison.result_table(two_samplers())).values()
    pairs["method"] = ["A_1 | <b>", "TIM"]
    latex, markdown = tables.pairs_to_latex(pairs), tables.pairs_to_markdown(pairs)
    assert r"\multicolumn{5}{c}{Semantic tasks (\%)}" in latex and r"A\_1 \textbar{} \textless{}b" in latex
    assert (
        r"\textbf{60.00 $\pm$ 25.30}" in latex
        and r"\textbf{95.00" in latex
        and r"\textbf{50.00" not in latex.split("TIM")[0]
    )
    rows = markdown.strip().splitlines()
    assert len(rows) == 4 and len({row.replace(r"\|", "").count("|") for row in rows}) == 1
    assert "Semantic tasks (%) · Q1" in rows[0] and "**30.00**" in rows[3] and r"A\_1 \| \<b\>" in rows[2]
    assert "Backbone" not in rows[0]
    pairs["backbone"] = ["one", "two"]
    assert "Backbone" in tables.pairs_to_markdown(pairs)


def test_hostile_names_change_no_table() -> None:
    table = run_comparison.result_table(
        [line(name, [0.5, 0.6], backbone=name, testbed=name, digest=name) for name in NAMES]
    )
    latex, markdown = tables.to_latex(table), tables.to_markdown(table)
    body = latex.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert body.count(r"\\") == len(NAMES) and not re.search(r"[<>|]|(?<!\\)[$#_%&](?!\\pm|\s|\\cdot|$)", body)
    assert all(row.replace(r"\&", "").count("&") == 4 for row in body.strip().splitlines())
    rows = markdown.strip().splitlines()
    assert len(rows) == 2 + len(NAMES) and {re.sub(r"\\.", "", row).count("|") for row in rows} == {6}
    assert not re.search(r"(?<!\\)[<>\[\]`*$]", markdown.replace("**", ""))
    read = pd.read_csv(io.StringIO(csv(table)))
    assert len(read) == len(NAMES) and not read["name"].str.startswith(("=", "+", "-", "@")).any()


def test_a_table_does_not_repeat_in_the_name_what_its_columns_say() -> None:
    row = {"name": "TIM · small_net · my bed · run 7", "backbone": "small_net", "testbed": "my bed"}
    assert tables.name_beside_columns(row) == "TIM · run 7"
    assert tables.name_beside_columns({**row, "name": "TIM"}) == "TIM"
