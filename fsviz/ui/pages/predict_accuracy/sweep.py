"""Correlations and mean outcome as a setting varies: shots, ways, queries, neighbours, imbalance."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from fsviz.difficulty.measures import MEASURES, title
from fsviz.figures import prediction as figures
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import prediction as study
from fsviz.studies import sweep
from fsviz.studies.prediction import measured
from fsviz.studies.prediction.measured import CellSummary
from fsviz.ui.pages.predict_accuracy import cell_tasks
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape, responsive_columns


class Curve(NamedTuple):
    """A setting that can vary: its title, name, axis, and the question of every point."""

    title: str
    setting: str
    axis: str
    question: str = "correlations"


CURVES = {  # by their link value
    "shots": Curve("Shots", "n_shot", "support images per class (shots)"),
    "ways": Curve("Ways", "n_way", "classes per task (ways)"),
    "queries": Curve("Queries", "n_query", "queries per class"),
    "neighbours": Curve("Neighbours", "neighbours", "neighbours per image in the graph"),
    "imbalance": Curve(study.SHARE.title, study.SHARE.name, "share of the first class among the unlabelled images"),
    "eigenvalues": Curve("Best eigenvalue", "n_way", "classes per task (ways)", "eigenvalues"),
}


def show(dataset: Dataset, spec: study.PredictionSpec) -> sweep.SweepSpec:
    """Show the curves; returns the spec of the sweep."""
    st.subheader("When is accuracy predictable?", anchor=False)
    choices = {name: curve.title for name, curve in CURVES.items()}
    if spec["setting"] == "supervised":
        del choices["imbalance"]
    vary = pick(Setting("vary", "Vary", "", "choice", "shots", choices=choices))
    curve = CURVES[vary]
    swept = sweep.sweep(study.STUDY, {**spec, "question": curve.question}, curve.setting)
    result = answer(sweep.STUDY, swept, "Measuring tasks")
    if result is None:
        return swept
    summaries = {value: cached_call(study.summary, each) for value, each in result.results}
    cells: list[CellSummary] = [{**summary, "value": value} for value, summary in summaries.items()]  # type: ignore[typeddict-unknown-key]
    cells = [cell for cell in cells if cell["n_tasks"] > 3]
    if not cells:
        st.info("A correlation needs at least 4 tasks per point. Raise the number of tasks.", icon="🔍")
        return swept
    outcome = escape(measured.outcome_name(spec))
    values = [result.setting.text(cell["value"]) for cell in cells]
    value = drilldown.selection("value", values, vary)
    selection: Any = {
        "name": "value",
        "values": lambda point: str(point.at(2) or "").rpartition("@")[2],
        "texts": values,
        "already": value,
    }
    left, right = responsive_columns("varied", [3, 2], gap="large")
    with left:
        st.markdown(f"**Correlation with {outcome}** (expected sign: positive)")
        drilldown.chart(
            "Correlations as a setting varies",
            figures.plot_curves(_curves(cells), curve.axis, "correlation"),
            key=f"curves_{vary}",
            **selection,
        )
    with right:
        st.markdown(f"**Mean {outcome}**")
        means = [
            (
                float(cell["value"]),
                100 * cell["outcome"],
                100 * (cell["outcome"] - (cell["outcome_ci95"] or 0)),
                100 * (cell["outcome"] + (cell["outcome_ci95"] or 0)),
            )
            for cell in cells
        ]
        drilldown.chart(
            "Means as a setting varies",
            figures.plot_curves({outcome: means}, curve.axis, f"mean {outcome} (%)", percent=True),
            key=f"mean_{vary}",
            **selection,
        )
    if curve.question == "eigenvalues":
        lines = [
            f"{cell['value']:g} ways: eigenvalue {cell['best']:d} ({cell['best_pearson']:.2f}), the N-th "
            f"{cell['nth_pearson']:.2f}"
            for cell in cells
            if cell.get("best") and cell.get("nth_pearson") is not None
        ]
        st.markdown("**Eigenvalue with the strongest correlation**  \n" + "  \n".join(lines))
        st.caption("Selected among many on the same tasks, so slightly optimistic.")
    first = next(iter(summaries.values()))
    min_tasks, max_tasks = (pick_end(cell["n_tasks"] for cell in cells) for pick_end in (min, max))
    intervals = measured.describe_intervals(row for cell in cells for row in cell["correlations"].values())
    st.caption(
        f"{min_tasks:,}{f' to {max_tasks:,}' if max_tasks > min_tasks else ''} tasks per point. "
        + (f"{escape(study.describe_unlabelled(first))} " if first.get("n_unlabelled") else "")
        + "Click a point to list its tasks.",
        help=f"Correlations: {escape(intervals)}. Mean {outcome}: 95% CI over tasks. Missing points: the measure is "
        "undefined there, for example cluster overlap with one shot.",
    )
    if value:
        drilldown.heading(f"Tasks with {escape(curve.axis)} = {escape(value)}, hardest first", "value")
        cell_tasks.show(dataset, result.at(value), "", "varied_task")
    return swept


def _curves(cells: list[CellSummary]) -> dict[str, list[tuple]]:
    curves: dict[str, list[tuple]] = {}
    for cell in cells:
        for name, row in ((name, cell["correlations"][name]) for name in MEASURES if name in cell["correlations"]):
            curves.setdefault(title(name), []).append((cell["value"], *measured.as_expected(name, row)))
        if cell.get("best_pearson") is not None:
            ends = sorted((-cell["best_low"], -cell["best_high"])) if cell["best_low"] is not None else [None, None]
            point = (cell["value"], -cell["best_pearson"], *ends)
            curves.setdefault("Best eigenvalue", []).append(point)
    return curves
