"""Tables of results as papers print them: Markdown, LaTeX and plain records, the best of each column bold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

QUARTILES = ("Q1", "Q2", "Q3", "Q4")


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


def to_markdown(results: pd.DataFrame) -> str:
    """The results as a Markdown table, the best per column bold."""
    header, rows = _printed(results, bold=lambda text: f"**{text}**", escape=_markdown, pm=" ± ")
    lines = ["| " + " | ".join(header) + " |", "|" + "|".join([" --- ", *[" ---: "] * (len(header) - 1)]) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def to_latex(results: pd.DataFrame) -> str:
    """The results as a LaTeX table (booktabs), the best per column bold."""
    header, rows = _printed(results, bold=lambda text: f"\\textbf{{{text}}}", escape=_latex, pm=r" $\pm$ ")
    body = [" & ".join(row) + r" \\" for row in rows]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{tabular}{l" + "r" * (len(header) - 1) + "}",
            r"\toprule",
            " & ".join(header) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def to_records(results: pd.DataFrame) -> list[dict[str, Any]]:
    """The results as plain dictionaries, None where a number does not exist."""
    return [
        {k: (None if isinstance(v, float) and not np.isfinite(v) else v) for k, v in row.items()}
        for row in results.to_dict("records")
    ]


def shown_columns(results: pd.DataFrame) -> list[str]:
    """The columns of numbers worth printing: quartiles only where known, top-5 only beyond five ways."""
    columns = ["accuracy"]
    columns += [q for q in QUARTILES if q in results and results[q].notna().any()]
    if "top5" in results and (results["top5"].dropna() < 100 - 1e-9).any():
        columns.append("top5")
    return columns


TITLES = {"accuracy": "Accuracy (%)", "top5": "Top-5 (%)", **{q: f"{q} (%)" for q in QUARTILES}}


def name_beside_columns(row: Mapping[str, Any]) -> str:
    """A line's name without the backbone and the testbed, for tables that have columns for them."""
    told = (row.get("backbone"), row.get("testbed"))
    first, *rest = str(row["name"]).split(" · ")
    return " · ".join([first, *(part for part in rest if part not in told)])


def _printed(results: pd.DataFrame, bold, escape, pm: str) -> tuple[list[str], list[list[str]]]:
    marks, columns = best(results), shown_columns(results)
    many = results["testbed"].nunique() > 1 if "testbed" in results else False
    header = ["Method", "Backbone", *(["Testbed"] if many else []), "Tasks", *[TITLES[c] for c in columns]]
    rows = []
    for i, row in enumerate(results.to_dict("records")):
        cells = [escape(name_beside_columns(row)), escape(str(row["backbone"]))]
        cells += [escape(str(row["testbed"]))] if many else []
        cells.append(f"{int(row['n_tasks']):d}" if pd.notna(row["n_tasks"]) else "")
        for column in columns:
            text = "" if pd.isna(row[column]) else f"{row[column]:.2f}"
            if text and column == "accuracy" and pd.notna(row["ci95"]):
                text += f"{pm}{row['ci95']:.2f}"
            cells.append(bold(text) if text and column in marks and marks[column][i] else text)
        rows.append(cells)
    return [escape(h) for h in header], rows


def _markdown(text: str) -> str:
    for mark in "\\`*_{}[]<>|#":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "·": r"$\cdot$",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
