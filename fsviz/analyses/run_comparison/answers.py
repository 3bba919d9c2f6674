"""The answer to "Which method works best?" and "Is one method significantly better?": one sentence for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fsviz.analyses.run_comparison.comparison import RunComparison
from fsviz.sampling import SAMPLERS

MAX_RIVALS = 2  # methods that a sentence names


def best_method(rows: pd.DataFrame, differences: pd.DataFrame, n_missing: int = 0) -> str:
    """The most accurate method, and whether it is significantly better than each other one.

    rows         of `result_table` of the same tasks
    differences  see `differences`, to the most accurate method
    n_missing    methods that were chosen and have no results
    """
    top = rows.loc[rows["accuracy"].idxmax()]
    accuracy = f"{percent(top['accuracy'], top.get('ci95'))} ({_setting(top, rows)})"
    if differences.empty:
        only = f"{top['name']}: {accuracy}"
        return f"{only}; {_methods(n_missing)} not compared yet." if n_missing else f"{only}."
    among = f" of {len(rows)} of {len(rows) + n_missing} methods" if n_missing else ""
    rivals = differences[~differences["significant"].to_numpy(dtype=bool)].to_dict("records")
    if not rivals:
        second = differences.iloc[0]
        ahead = f"{_lead(second)} ahead of {second['name']} ({describe_p_value(second['p_holm'])})"
        return f"{top['name']} is best{among}: {accuracy}, {ahead}."
    is_tested = any(np.isfinite(row["p_holm"]) for row in rivals)
    names = [f"{row['name']} ({_lead(row)} behind{_p_value(row)})" for row in rivals[:MAX_RIVALS]]
    names += [_methods(len(rivals) - MAX_RIVALS, "other ")] if len(rivals) > MAX_RIVALS else []
    than = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
    verb = "is not significantly better than" if is_tested else "cannot be tested against"
    return f"No clear winner{among}: {top['name']}, {accuracy}, {verb} {than}."


def significance(comparison: RunComparison, n_missing: int = 0) -> tuple[str, str]:
    """The sentence of `best_method` for compared runs, and the tasks, intervals and methods that it is about."""
    rows, differences, over = comparison.main_table, comparison.differences, comparison.over
    top = rows.loc[rows["accuracy"].idxmax()]
    interval = f", 95% CI over {over}" if np.isfinite(top["ci95"]) else ""
    n_worse, n_others = int(differences["significant"].sum()), len(differences)
    more = [f"{_tasks(top['n_tasks'])}{interval}."]
    if not n_others:
        more.append("Evaluate a second method on the same tasks to compare.")
    if n_others > 1:
        more.append(f"Significantly better than {n_worse} of {n_others} other methods.")
    if n_missing:
        more.append(f"{_methods(n_missing).capitalize()} without results yet.")
    return best_method(rows, differences, n_missing), " ".join(more)


def _setting(top: Mapping[str, Any] | pd.Series, rows: pd.DataFrame) -> str:
    """The tasks and the backbone of a row: "semantic 5-way 1-shot, EfficientNet-Lite0"."""
    sampler = SAMPLERS.get(str(top["sampler"]))
    tasks = f"{sampler.name} {top['setting']}" if sampler else str(top["setting"])
    in_name = rows["backbone"].nunique() > 1  # names tell the rows apart
    return tasks if in_name else f"{tasks}, {top['backbone_title']}"


def _p_value(row: Mapping[str, Any]) -> str:
    return f", {describe_p_value(row['p_holm'])}" if np.isfinite(row["p_holm"]) else ""


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
