"""Tables of results as papers print them: Markdown, LaTeX and plain records, the best of each column bold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from fsviz import text

QUARTILES = ("Q1", "Q2", "Q3", "Q4")
TITLES = {"accuracy": "Accuracy (%)", "top5": "Top-5 (%)", **{q: f"{q} (%)" for q in QUARTILES}}
TOP5_FROM = 6  # ways: of five classes or fewer the true one is always among five
NOTHING = "–"


def best(results: pd.DataFrame) -> dict[str, np.ndarray]:
    """Column -> mask of the rows to print bold: the best of the column among rows of the same tasks, ties included."""
    marks = {}
    for column in ("accuracy", *QUARTILES, "top5", "loss"):
        if column not in results or results[column].isna().all():
            continue
        rounded = results[column].round(2)
        top = rounded.groupby(results["digest"]).transform("min" if column == "loss" else "max")
        alone = results.groupby("digest")["digest"].transform("size") == 1
        marks[column] = ((rounded == top) & ~alone).to_numpy()
    return marks


def printed(results: pd.DataFrame, like: pd.DataFrame | None = None) -> pd.DataFrame:
    """The cells of a table as text, in the columns worth printing of these results or of others `like` them.

    Quartiles only where known, top-5 only beyond five ways, the testbed only where there are several.
    """
    like = results if like is None else like
    columns = ["accuracy", *(q for q in QUARTILES if q in like and like[q].notna().any())]
    if "n_way" in like and like.loc[like["n_way"] >= TOP5_FROM, "top5"].notna().any():
        columns.append("top5")
    rows = []
    for row in results.to_dict("records"):
        cells = {"Method": name_beside_columns(row), "Backbone": row.get("backbone_title") or row["backbone"]}
        if like["testbed"].nunique() > 1:
            cells["Tasks of"] = row.get("testbed_title") or row["testbed"]
        cells["Tasks"] = number(row["n_tasks"], ",.0f")
        for column in columns:
            half = row["ci95"] if column == "accuracy" else np.nan
            value = np.nan if column == "top5" and row.get("n_way", TOP5_FROM) < TOP5_FROM else row[column]
            cells[TITLES[column]] = number(value, ".2f") + ("" if pd.isna(half) else f" ± {half:.2f}")
        rows.append({title: " ".join(str(cell).split()) for title, cell in cells.items()})
    return pd.DataFrame(rows)


def bold(results: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Which of the printed cells are the best of their column."""
    marks = {TITLES[column]: mask for column, mask in best(results).items() if column in TITLES}
    return pd.DataFrame({title: marks.get(title, False) for title in cells}, index=cells.index)


def side_by_side(pairs: pd.DataFrame, backbone: bool | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of a table of semantic beside uniform tasks as text, and which of them are the best of their column.

    pairs     columns method, backbone, semantic, semantic_ci95, Q1 .. Q4, uniform, uniform_ci95 (percent)
    backbone  whether there is a column for it; where there are several unless said
    Columns are pairs: (group, title). Quartiles are of the semantic tasks, from the finest to the coarsest.
    """
    told = {("", "Method"): pairs["method"].astype(str)}
    if pairs["backbone"].nunique() > 1 if backbone is None else backbone:
        told["", "Backbone"] = pairs["backbone"].astype(str)
    bests = {}
    for column, group, title in (
        ("semantic", "Semantic tasks (%)", "All"),
        *((q, "Semantic tasks (%)", q) for q in QUARTILES),
        ("uniform", "Uniform tasks (%)", "All"),
    ):
        half = pairs[f"{column}_ci95"] if f"{column}_ci95" in pairs else [np.nan] * len(pairs)
        told[group, title] = [
            number(v, ".2f") + ("" if pd.isna(h) else f" ± {h:.2f}") for v, h in zip(pairs[column], half, strict=True)
        ]
        bests[group, title] = (pairs[column].round(2) == pairs[column].round(2).max()) & (len(pairs) > 1)
    cells = pd.DataFrame(told).map(lambda cell: " ".join(cell.split()))
    return cells, pd.DataFrame({key: bests.get(key, False) for key in cells}, index=cells.index)


def to_markdown(results: pd.DataFrame) -> str:
    """The results as a Markdown table, the best per column bold."""
    cells = printed(results)
    return _markdown(cells, bold(results, cells))


def pairs_to_markdown(pairs: pd.DataFrame) -> str:
    """Semantic beside uniform tasks as a Markdown table."""
    cells, marks = side_by_side(pairs)
    for table in (cells, marks):
        table.columns = [" · ".join(filter(None, key)) for key in table]
    return _markdown(cells, marks)


def _markdown(cells: pd.DataFrame, marks: pd.DataFrame) -> str:
    cells = cells.map(text.markdown)
    rows = cells.mask(marks, "**" + cells + "**").to_numpy().tolist()
    rule = ["---", *["---:"] * (len(cells.columns) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (list(cells), rule, *rows))


def to_latex(results: pd.DataFrame) -> str:
    """The results as a LaTeX table (booktabs), the best per column bold."""
    cells = printed(results)
    return _latex(cells, bold(results, cells))


def pairs_to_latex(pairs: pd.DataFrame) -> str:
    """Semantic beside uniform tasks as a LaTeX table (booktabs, multirow)."""
    return _latex(*side_by_side(pairs))


def frame_to_latex(table: pd.DataFrame) -> str:
    """Any table as LaTeX (booktabs): numbers to four digits and to the right, texts as they are."""
    numbers = [is_numeric_dtype(table[name]) and not is_bool_dtype(table[name]) for name in table]
    cells = pd.DataFrame({str(name): [cell_text(value) for value in table[name]] for name in table})
    return _latex(cells, pd.DataFrame(False, cells.index, cells.columns), "".join("lr"[n] for n in numbers))


def cell_text(value: Any) -> str:
    """A cell of any table as text: a dash where there is nothing, numbers that are no counts to four digits."""
    if isinstance(value, float | np.floating):
        number = float(value)
        return NOTHING if not np.isfinite(number) else f"{number:.4g}" if abs(number) < 1000 else f"{number:.0f}"
    return NOTHING if value is None or value is pd.NA else " ".join(str(value).split())


def _latex(cells: pd.DataFrame, marks: pd.DataFrame, columns: str = "") -> str:
    styled = cells.style.hide(axis="index").format(text.latex, escape="latex")
    styled = styled.format_index(text.latex, escape="latex", axis="columns")
    styled = styled.apply(lambda _: marks.replace({True: "textbf:--rwrap;", False: ""}), axis=None)
    body = styled.to_latex(
        hrules=True, column_format=columns or "l" + "r" * (len(cells.columns) - 1), multicol_align="c"
    )
    return "% needs \\usepackage{booktabs}\n" + body


def to_records(results: pd.DataFrame) -> list[dict[str, Any]]:
    """The results as plain dictionaries, None where a number does not exist."""
    return [
        {k: (None if isinstance(v, float) and not np.isfinite(v) else v) for k, v in row.items()}
        for row in results.to_dict("records")
    ]


def name_beside_columns(row: Mapping[str, Any]) -> str:
    """A line's name without the backbone and the testbed, for tables that have columns for them."""
    told = [row.get(name) for name in ("backbone", "backbone_title", "testbed", "testbed_title")]
    first, *rest = str(row["name"]).split(" · ")
    return " · ".join([first, *(part for part in rest if part not in told)])


def number(value: float, form: str) -> str:
    """A number as text, a dash where it does not exist."""
    return NOTHING if pd.isna(value) else format(value, form)
