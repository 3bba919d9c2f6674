"""Correlations as one thing varies: shots, ways, queries, neighbours, balance; and the mean outcome behind them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz.difficulty.measures import MEASURES, title
from fsviz.figures import prediction as figures
from fsviz.records import Dataset
from fsviz.settings import Setting
from fsviz.studies import prediction as study
from fsviz.studies.prediction import measured
from fsviz.ui.pages.predict_accuracy import cell_tasks
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import pick
from fsviz.ui.parts.shell import escape, responsive_columns

AXES = {
    "shots": "support images per class (shots)",
    "ways": "classes per task (ways)",
    "queries": "queries per class",
    "neighbours": "neighbours of an image in the graph",
    "imbalance": "share of the first class among the unlabelled images",
    "eigenvalues": "classes per task (ways)",
}


def show(dataset: Dataset, spec: study.Spec) -> study.Spec:
    """The curves; returns what was asked."""
    st.subheader("When can the accuracy be told?", anchor=False)
    choices = {name: study.QUESTION.choices[name] for name in AXES}
    if spec["setting"] == "supervised":
        del choices["imbalance"]
    question = pick(Setting("vary", "Vary", "What differs from point to point.", "choice", "shots", choices=choices))
    asked = study.check({**spec, "question": question})
    result = answer(study.STUDY, asked, "Measuring tasks")
    if result is None:
        return asked
    found = cached_call(study.summary, result)
    cells = [cell for cell in found["cells"] if cell["n_tasks"] > 3]
    if not cells:
        st.info("A correlation needs at least 4 tasks per point. Raise the number of tasks at the left.", icon="🔍")
        return asked
    what = escape(measured.outcome_name(found))
    values = [study.cell_text(cell["value"]) for cell in cells]
    value = drilldown.chosen("value", values, question)
    leading: Any = {
        "name": "value",
        "values": lambda point: str(point.at(2) or "").rpartition("@")[2],
        "texts": values,
        "already": value,
    }
    left, right = responsive_columns("varied", [3, 2], gap="large")
    with left:
        st.markdown(f"**Correlation of the measures with the {what}, in the direction expected**")
        drilldown.chart(
            "Correlations as a setting varies",
            figures.plot_curves(_curves(cells), AXES[question], "correlation"),
            key=f"curves_{question}",
            **leading,
        )
    with right:
        st.markdown(f"**Mean {what} behind every point**")
        mean = [
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
            figures.plot_curves({what: mean}, AXES[question], f"mean {what} (%)", percent=True),
            key=f"mean_{question}",
            **leading,
        )
    if question == "eigenvalues":
        words = [
            f"{cell['value']:g} ways: eigenvalue {cell['best']:d} ({cell['best_pearson']:.2f}), the N-th "
            f"{cell['nth_pearson']:.2f}"
            for cell in cells
            if cell.get("best") and cell.get("nth_pearson") is not None
        ]
        st.markdown("**The eigenvalue that follows the outcome best**  \n" + "  \n".join(words))
        st.caption("It is picked among many on these very tasks: on others it would follow a little less well.")
    fewest, most = (pick_end(cell["n_tasks"] for cell in cells) for pick_end in (min, max))
    intervals = measured.intervals_in_words(row for cell in cells for row in cell["correlations"].values())
    st.caption(
        f"{fewest:,}{f' to {most:,}' if most > fewest else ''} tasks per point. Correlations: "
        f"{escape(intervals)}. Mean "
        f"{what}: 95% intervals over tasks of these images. Where a measure has no point it is not defined, as the "
        "Davies-Bouldin score with one shot."
        + (f" {escape(study.unlabelled_in_words(found))}" if found.get("n_unlabelled") else "")
        + " Click a point for its tasks."
    )
    if value:
        drilldown.heading(f"Some tasks with {escape(AXES[question])}: {escape(value)}, the hardest first", "value")
        cell_tasks.show(dataset, result, value, "varied_task")
    return asked


def _curves(cells: list[measured.CellSummary]) -> dict[str, list[tuple]]:
    curves: dict[str, list[tuple]] = {}
    for cell in cells:
        for name, row in ((name, cell["correlations"][name]) for name in MEASURES if name in cell["correlations"]):
            curves.setdefault(title(name), []).append((cell["value"], *measured.as_expected(name, row)))
        if cell.get("best_pearson") is not None:
            ends = sorted((-cell["best_low"], -cell["best_high"])) if cell["best_low"] is not None else [None, None]
            point = (cell["value"], -cell["best_pearson"], *ends)
            curves.setdefault("Best eigenvalue", []).append(point)
    return curves
