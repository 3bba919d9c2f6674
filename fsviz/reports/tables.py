"""Tables of results as papers print them: Markdown, LaTeX and plain records, the best of each column bold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fsviz import text
from fsviz.tables import Column, Rows, Table, cells

QUARTILES = ("Q1", "Q2", "Q3", "Q4")
TOP5_FROM = 6  # ways: of five classes or fewer the true one is always among five
METHOD = Column("method", "Method")
BACKBONE = Column("backbone", "Backbone")
BY_QUARTILE = tuple(Column(name, name, kind="percent", digits=2) for name in QUARTILES)

RESULTS = Table(
    "Results",
    METHOD,
    BACKBONE,
    Column("tasks_of", "Tasks of"),
    Column("sampler", "Sampler"),
    Column("setting", "Setting"),
    Column("n_tasks", "Tasks", kind="count"),
    Column("accuracy", "Accuracy", kind="percent", digits=2, interval="ci95"),
    Column("ci95_images", "± over images", "points", 2, kind="number"),
    Column("ci95_classes", "± over classes", "points", 2, kind="number"),
    *BY_QUARTILE,
    Column("top5", "Top-5", kind="percent", digits=2),
)
DIFFERENCES = Table(
    "Paired differences",
    Column("name", "Method"),
    Column("reference", "Compared with"),
    Column("accuracy", "Accuracy", kind="percent", digits=2),
    Column("difference", "Difference", kind="points", digits=2, interval="ci95"),
    Column("wins", "Tasks won", kind="count"),
    Column("ties", "Tied", kind="count"),
    Column("losses", "Lost", kind="count"),
    Column("p_holm", "p (Holm)", kind="p"),
    Column("verdict", "Verdict"),
)
CORRELATIONS = Table(
    "Correlations with accuracy",
    Column("name", "Method"),
    BACKBONE,
    Column("sampler", "Sampler"),
    Column("setting", "Setting"),
    Column("measure", "Measure"),
    Column("pearson", "Pearson's r", digits=2, interval=("pearson_low", "pearson_high"), kind="number"),
    Column("spearman", "Spearman's ρ", digits=2, interval=("spearman_low", "spearman_high"), kind="number"),
    Column("over", "95% CI over"),
)
RUNS = Table(
    "All runs",
    Column("created", "Started"),
    Column("name", "Name"),
    Column("run", "Run"),
    Column("study", "Study"),
    Column("state", "State"),
    Column("note", "Note", width=160),
    Column("error", "Problem", width=200),
    Column("progress", "Progress", "%", 0, kind="bar", high=100),
    Column("dataset", "Dataset"),
    Column("methods", "Methods", width=190),
    Column("backbones", "Backbones"),
    Column("sampler", "Sampler"),
    Column("tasks", "Tasks"),
    Column("accuracy", "Accuracy", kind="percent"),
    Column("chunks", "Chunks"),
    Column("seconds", "Time", "s", 2, kind="number"),
    Column("engine", "Compute"),
)
PAIRS = Table(
    "Semantic and uniform tasks",
    METHOD,
    BACKBONE,
    Column("semantic", "Semantic tasks", kind="percent", digits=2, interval="semantic_ci95"),
    *BY_QUARTILE,
    Column("uniform", "Uniform tasks", kind="percent", digits=2, interval="uniform_ci95"),
)
GROUPS = {  # of PAIRS, as Bennequin et al. (2022) print them: the header above, and the one below it
    "semantic": ("Semantic tasks (%)", "All"),
    **{name: ("Semantic tasks (%)", name) for name in QUARTILES},
    "uniform": ("Uniform tasks (%)", "All"),
}


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


def result_rows(results: pd.DataFrame) -> list[dict[str, Any]]:
    """The results as rows of RESULTS: the testbed only if there are several, top-5 only beyond five ways."""
    several = results["testbed"].nunique() > 1
    rows = []
    for row in results.to_dict("records"):
        row |= {"method": name_beside_columns(row), "backbone": row.get("backbone_title") or row["backbone"]}
        row |= {"tasks_of": (row.get("testbed_title") or row["testbed"]) if several else ""}
        row |= {"top5": row.get("top5") if row.get("n_way", TOP5_FROM) >= TOP5_FROM else None}
        rows.append(row)
    return rows


PRINTED = RESULTS.only("method", "backbone", "tasks_of", "n_tasks", "accuracy", *QUARTILES, "top5")


def printed(results: pd.DataFrame, like: pd.DataFrame | None = None) -> tuple[pd.DataFrame, list[bool]]:
    """The cells of a table as text, in the columns worth printing of these results or of others `like` them, and which
    columns are numbers."""
    return cells(PRINTED, result_rows(results), like=None if like is None else result_rows(like))


def bold(results: pd.DataFrame, body: pd.DataFrame) -> pd.DataFrame:
    """Mask of the printed cells that are the best of their column."""
    marks = best(results)
    by_header = {column.header: marks[column.name] for column in PRINTED.columns if column.name in marks}
    return pd.DataFrame({header: by_header.get(header, False) for header in body}, index=body.index)


def side_by_side(pairs: pd.DataFrame, backbone: bool | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of a table of semantic and uniform tasks as text, and which of them are the best of their column.

    pairs     columns as PAIRS names them (percent)
    backbone  whether there is a column for it; None: if there are several
    Columns are pairs: (group, title). Quartiles are of the semantic tasks, from the finest to the coarsest.
    """
    has_backbone = pairs["backbone"].nunique() > 1 if backbone is None else backbone
    columns = [column for column in PAIRS.columns if has_backbone or column is not BACKBONE]
    rows = pairs.to_dict("records")
    body = pd.DataFrame({GROUPS.get(c.name, ("", c.title)): [c.cell(row) for row in rows] for c in columns})
    marks = {}
    for column in columns:
        values = pairs[column.name].round(2) if column.is_number else None
        marks[GROUPS.get(column.name, ("", column.title))] = (
            False if values is None else (values == values.max()) & (len(pairs) > 1)
        )
    return body, pd.DataFrame(marks, index=pairs.index).set_axis(body.index)


def to_markdown(results: pd.DataFrame) -> str:
    """The results as a Markdown table, the best per column bold."""
    body, numbers = printed(results)
    return _markdown(body, numbers, bold(results, body))


def pairs_to_markdown(pairs: pd.DataFrame) -> str:
    """Semantic and uniform tasks as a Markdown table."""
    body, marks = side_by_side(pairs)
    numbers = [bool(group) for group, _ in body]
    for table in (body, marks):
        table.columns = [" · ".join(filter(None, key)) for key in table]
    return _markdown(body, numbers, marks)


def table_to_markdown(table: Table, rows: Rows) -> str:
    """Any declared table as Markdown."""
    return _markdown(*cells(table, rows))


def _markdown(body: pd.DataFrame, numbers: Sequence[bool], marks: pd.DataFrame | None = None) -> str:
    escaped = body.map(text.markdown)
    if marks is not None:
        escaped = escaped.mask(marks, "**" + escaped + "**")
    header = [text.markdown(str(title)) for title in body]
    rule = ["---:" if number else "---" for number in numbers]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *escaped.to_numpy().tolist()))


def to_latex(results: pd.DataFrame) -> str:
    """The results as a LaTeX table (booktabs), the best per column bold."""
    body, numbers = printed(results)
    return _latex(body, numbers, bold(results, body))


def pairs_to_latex(pairs: pd.DataFrame) -> str:
    """Semantic and uniform tasks as a LaTeX table (booktabs, multirow)."""
    body, marks = side_by_side(pairs)
    return _latex(body, [bool(group) for group, _ in body], marks)


def table_to_latex(table: Table, rows: Rows) -> str:
    """Any declared table as LaTeX (booktabs), numbers to the right."""
    return _latex(*cells(table, rows))


def _latex(body: pd.DataFrame, numbers: Sequence[bool], marks: pd.DataFrame | None = None) -> str:
    styled = body.style.hide(axis="index").format(text.latex, escape="latex")
    styled = styled.format_index(text.latex, escape="latex", axis="columns")
    if marks is not None:
        styled = styled.apply(lambda _: marks.replace({True: "textbf:--rwrap;", False: ""}), axis=None)
    columns = "".join("lr"[number] for number in numbers)
    latex = styled.to_latex(hrules=True, column_format=columns, multicol_align="c")
    return "% needs \\usepackage{booktabs}\n" + latex


def to_records(results: pd.DataFrame) -> list[dict[str, Any]]:
    """The results as plain dictionaries, None if a number does not exist."""
    return [
        {k: (None if isinstance(v, float) and not np.isfinite(v) else v) for k, v in row.items()}
        for row in results.to_dict("records")
    ]


def name_beside_columns(row: Mapping[str, Any]) -> str:
    """A line's name without the backbone and the testbed, for tables that have columns for them."""
    in_columns = [row.get(name) for name in ("backbone", "backbone_title", "testbed", "testbed_title")]
    first, *rest = str(row["name"]).split(" · ")
    return " · ".join([first, *(part for part in rest if part not in in_columns)])
