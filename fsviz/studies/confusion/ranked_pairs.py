"""Pairs of classes in order: by their measured errors or by their similarity, as a table and as a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from fsviz.records.graphs import ClassGraph
from fsviz.settings import Setting
from fsviz.studies.confusion.similarities import SIMILARITIES, PairErrors, mean
from fsviz.tables import Column, Table
from fsviz.text import short_names

BY_ERROR = "error"
PAIR_ORDER = Setting(
    "pairs_by",
    "Order pairs by",
    "Errors: the pairs that ProtoNet confuses most come first. Similarity: the most similar ones.",
    "choice",
    BY_ERROR,
    choices={BY_ERROR: "Errors", "similarity": "Similarity"},
)


def ranked_pairs(graph: ClassGraph, errors: PairErrors | None = None, order: str = BY_ERROR) -> pd.DataFrame:
    """Every pair with a similarity, the first in this order first; by similarity if errors are not measured.

    Columns i, j (positions in rows and columns), value (similarity), error and error_ci95 (percent, NaN if not
    measured), and the ranks of both: value_rank, error_rank, from 1, ties with the same rank.
    """
    i, j, values = graph.edges()
    missing = np.full(len(values), np.nan)
    table = pd.DataFrame({"i": i, "j": j, "value": values, "error": missing, "error_ci95": missing})
    if errors is not None and graph.kind != "error":
        table["error"], table["error_ci95"] = errors.graph.weights[i, j], errors.ci95[i, j]
    elif errors is not None:
        table["error_ci95"] = errors.ci95[i, j]
    for name in ("value", "error"):
        table[f"{name}_rank"] = table[name].rank(method="min", ascending=False)
    if order == BY_ERROR and table["error"].notna().any():
        table = table.sort_values("error", ascending=False, kind="stable", na_position="last")
    return table.reset_index(drop=True)


def pair_table(kind: str, high: float | None = None) -> Table:
    """Pairs of classes with their numbers, which come first, so that long names cannot hide them.

    high  where the bar of the similarity ends; None: a number, next to measured errors
    """
    error = Column("error", "error", "%", digits=1, kind="number", interval="error_ci95", width=66)
    names = Column("a", "Class", kind="class"), Column("b", "Other class", kind="class")
    if kind == "error":
        return Table("Pairs of classes", replace(error, name="value"), *names)
    similarity = Column("value", SIMILARITIES[kind].unit or "similarity", digits=2, kind="number", width=52)
    if high is not None:
        return Table("Pairs of classes", replace(similarity, kind="bar", high=high, width=75), *names)
    return Table("Pairs of classes", error, similarity, *(replace(column, width=86) for column in names))


def describe(graph: ClassGraph, errors: PairErrors | None = None, order: str = BY_ERROR) -> tuple[str, str]:
    """The first pair of classes in this order with its error, and the mean similarity of all pairs, as sentences."""
    table = ranked_pairs(graph, errors, order)
    if table.empty:
        return "No two classes can be compared.", ""
    similarity, first = SIMILARITIES[graph.kind], table.iloc[0]
    more = _mean_sentence(graph, len(table))
    rows, columns = short_names(graph.row_names), short_names(graph.column_names)
    pair = f"{rows[int(first['i'])]} and {columns[int(first['j'])]}"
    if errors is not None and order == BY_ERROR and graph.kind != "error" and first["error"] == first["error"]:
        if first["error"] == 0:
            return f"No two classes are confused: ProtoNet makes no error in {errors.brief}.", more
        number = f"{_with_unit(graph, first['value'])}, rank {int(first['value_rank']):,} of {len(table):,}"
        answer = f"Most confused: {pair} ({_error(first)} errors in {errors.brief}){_tied(table, 'error')}."
        return answer, f"Their {_noun(graph)}: {number}. {more}"
    if first["value"] <= 0:
        return f"No two classes are similar: {similarity.title} is 0 for every pair.", more
    of_one = " of 1" if graph.unit in ("bits", "") else ""
    measured = f"; {_error(first)} errors in {errors.brief}" if errors and first["error"] == first["error"] else ""
    answer = f"{similarity.superlative}: {pair} ({_number(graph, first, errors)}{of_one}{measured})"
    return f"{answer}{_tied(table, 'value')}.", more


def _mean_sentence(graph: ClassGraph, n_pairs: int) -> str:
    """The mean over all pairs with its 95% CI."""
    average = mean(graph)
    digits = 2 if not average.ci95 < 0.005 else 3
    interval = f" ± {average.ci95:.{digits}f}" if np.isfinite(average.ci95) else ""
    unit = graph.unit if graph.unit.startswith("%") else f" {graph.unit}".rstrip()
    return f"{SIMILARITIES[graph.kind].title}, mean over {n_pairs:,} pairs: {average.mean:.{digits}f}{interval}{unit}."


def _number(graph: ClassGraph, row: pd.Series, errors: PairErrors | None) -> str:
    if graph.kind == "error" and errors is not None:
        return f"{row['value']:.1f} ± {row['error_ci95']:.1f}% errors in {errors.brief}"
    return _with_unit(graph, row["value"])


def _with_unit(graph: ClassGraph, value: float) -> str:
    unit = graph.unit if graph.unit.startswith("%") else f" {graph.unit}".rstrip()
    return f"{value:.2f}{unit}"


def _noun(graph: ClassGraph) -> str:
    return "overlap" if graph.kind == "confusion" else "similarity"


def _error(row: pd.Series) -> str:
    half = row["error_ci95"]
    return f"{row['error']:.1f} ± {half:.1f}%" if np.isfinite(half) else f"{row['error']:.1f}%"


def _tied(table: pd.DataFrame, name: str) -> str:
    tied = int((table[name] == table[name].iloc[0]).sum()) - 1
    return f", tied with {tied:,} other pair{'s' * (tied > 1)}" if tied else ""
