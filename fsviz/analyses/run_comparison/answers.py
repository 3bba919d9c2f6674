"""The answers to "Which method works best?" and "Is one method significantly better?" in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fsviz.analyses.run_comparison.comparison import RunComparison

MAX_RIVALS = 2  # methods that a sentence names


def best_method(table: pd.DataFrame, differences: pd.DataFrame, n_missing: int = 0) -> str:
    """The most accurate method, and whether it is significantly better than each other one.

    table        rows of `result_table` of the same tasks
    differences  see `differences`, to the most accurate method
    n_missing    methods that were chosen and have no results
    """
    top = table.loc[table["accuracy"].idxmax()]
    accuracy = percent(top["accuracy"], top.get("ci95"))
    if differences.empty:
        only = f"{top['name']}: {accuracy}"
        return f"{only}; {_methods(n_missing)} not compared yet." if n_missing else f"{only}."
    start = f"Of {len(table)} of {len(table) + n_missing} methods, {top['name']}" if n_missing else str(top["name"])
    rivals = differences[~differences["significant"].to_numpy(dtype=bool)].to_dict("records")
    if not rivals:
        second = differences.iloc[0]
        return f"{start} is best: {accuracy}, {_lead(second)} ahead of {second['name']}."
    is_tested = any(np.isfinite(row["p_holm"]) for row in rivals)
    names = [f"{row['name']} ({_lead(row)} behind)" for row in rivals[:MAX_RIVALS]]
    names += [_methods(len(rivals) - MAX_RIVALS, "other ")] if len(rivals) > MAX_RIVALS else []
    than = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
    verb = "is not significantly better than" if is_tested else "cannot be tested against"
    return f"{start} is most accurate, {accuracy}, but {verb} {than}."


def significance(comparison: RunComparison, n_missing: int = 0) -> tuple[str, str]:
    """Whether the most accurate method is significantly better than the next one, and the accuracies of both."""
    rows, differences, over = comparison.main_table, comparison.differences, comparison.over
    top = rows.loc[rows["accuracy"].idxmax()]
    missing = f" {_methods(n_missing).capitalize()} without results yet." if n_missing else ""
    if differences.empty:
        sentence = f"{top['name']}: {percent(top['accuracy'], top['ci95'])} over {_tasks(top['n_tasks'])}."
        interval = f"95% CI over {over}. " if np.isfinite(top["ci95"]) else ""
        return sentence, f"{interval}Evaluate a second method on the same tasks to compare.{missing}"
    second = differences.iloc[0]
    rival = rows[rows["name"] == second["name"]].iloc[0]
    test = f"{describe_p_value(second['p_holm'])}, {_tasks(second['n_tasks'])}"
    if second["significant"]:
        sentence = f"{top['name']} beats {second['name']} by {_lead(second)} ({test})."
    elif np.isfinite(second["p_holm"]):
        sentence = f"No significant difference: {top['name']} is {_lead(second)} ahead of {second['name']} ({test})."
    else:
        start = f"{top['name']} is {_lead(second)} ahead of {second['name']} on {_tasks(second['n_tasks'])}"
        sentence = f"{start}; the difference cannot be tested."
    accuracies = f"{percent(top['accuracy'], top['ci95'])} vs {percent(rival['accuracy'], rival['ci95'])}"
    accuracies += f", 95% CI over {over}." if np.isfinite(top["ci95"]) else "."
    n_worse, n_others = int(differences["significant"].sum()), len(differences)
    worse = f" Significantly better than {n_worse} of {n_others} other methods." if n_others > 1 else ""
    return sentence, f"{accuracies}{worse}{missing}"


def describe_quarters(top: Mapping[str, Any]) -> str:
    """The accuracy of a method on fine-grained and on coarse tasks; "" if the tasks have no quarters."""
    if np.isnan(top["Q1"]):
        return ""
    apart, half = top["fine_to_coarse"], top["fine_to_coarse_ci95"]
    return (
        f"fine-grained tasks (Q1) {percent(top['Q1'], top.get('Q1_ci95'))}, coarse tasks (Q4) "
        f"{percent(top['Q4'], top.get('Q4_ci95'))}, {apart:+.1f}{_plus_minus(half)} points"
    )


def describe_p_value(p: float) -> str:
    """A p value as text."""
    return "p not available" if not np.isfinite(p) else "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def percent(value: float, half_width: float | None) -> str:
    """An accuracy in percent with the half-width of its interval, if there is one."""
    return f"{value:.1f}{_plus_minus(half_width)}%"


def _lead(row: Mapping[str, Any] | pd.Series) -> str:
    return f"{abs(row['difference']):.1f}{_plus_minus(row['ci95'])} points"


def _plus_minus(half_width: float | None) -> str:
    return f" ± {half_width:.1f}" if half_width is not None and np.isfinite(half_width) else ""


def _tasks(n_tasks: float) -> str:
    return f"{int(n_tasks):,} task{'s' * (int(n_tasks) != 1)}"


def _methods(n: int, kind: str = "") -> str:
    return f"{n} {kind}method{'s' * (n != 1)}"
