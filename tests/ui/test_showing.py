"""What pages show can be taken along."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

from fsviz.ui.parts import showing

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted(p for p in (ROOT / "fsviz" / "ui").rglob("*.py") if p.name != "showing.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_figure_and_table_is_shown_so_that_it_can_be_taken_along(path: Path) -> None:
    around = [
        f"{path.name}:{node.lineno}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("plotly_chart", "dataframe", "echarts_chart")
    ]
    assert around == []
