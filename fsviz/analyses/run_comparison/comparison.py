"""RunComparison: what a page, a report and a command show of compared runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fsviz.analyses.run_comparison import paired, tables
from fsviz.analyses.run_comparison.intervals import widest
from fsviz.analyses.run_comparison.method_runs import MethodRun, by_name


@dataclass(frozen=True)
class RunComparison:
    """Runs compared.

    runs         every method on the tasks that all methods of these tasks have finished, the most accurate first
    main         those of the tasks that figures and paired tests are about
    over         what all intervals are over: "tasks", "images" or "classes"
    table        a row per method, as papers print it (see `result_table`)
    differences  of the methods of `main` to the most accurate one (see `differences`)
    notes        sentences about methods that have not finished all tasks
    """

    runs: Sequence[MethodRun]
    main: Sequence[MethodRun]
    over: str
    table: pd.DataFrame
    differences: pd.DataFrame
    notes: Sequence[str] = ()

    @property
    def main_table(self) -> pd.DataFrame:
        """The rows of `main`, under names that tell these apart."""
        rows = self.table[self.table["digest"] == self.main[0].digest]
        return rows.assign(name=list(by_name(self.main))).reset_index(drop=True)

    @property
    def pairs(self) -> dict[tuple[str, str], pd.DataFrame]:
        """Semantic next to uniform tasks, by dataset and setting (see `side_by_side`)."""
        return tables.side_by_side(self.table)


def compare(
    groups: Mapping[str, Sequence[MethodRun]],
    main: str = "",
    over: str = "",
    notes: Sequence[str] = (),
    *,
    result_table: Callable[..., pd.DataFrame] = tables.result_table,
    differences: Callable[..., pd.DataFrame] = paired.differences,
) -> RunComparison:
    """The comparison of grouped runs (see `group_by_tasks`).

    main                       the digest of the tasks of figures and paired tests; "" for the largest group
    over                       what intervals are over; "" for the widest that is known of all runs
    result_table, differences  the functions of these names, or cached ones
    """
    runs = [run for group in groups.values() for run in group]
    compared = groups[main] if main else max(groups.values(), key=len)
    over = over or widest(runs)
    table = tables.with_interval(result_table(runs, over=over), over)
    return RunComparison(runs, compared, over, table, differences(compared, over=over), notes)
