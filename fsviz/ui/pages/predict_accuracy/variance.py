"""Sources of variance of the accuracy: classes, support, queries."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz.figures import prediction as figures
from fsviz.records import Dataset
from fsviz.studies import prediction as study
from fsviz.studies.prediction.spread import COMPONENTS, describe_components
from fsviz.ui.pages.predict_accuracy import cell_tasks
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape, responsive_columns


def show(dataset: Dataset, spec: study.PredictionSpec) -> study.PredictionSpec:
    """Show the spread of accuracies and its components; returns the spec."""
    st.subheader("Sources of variance: classes, support, queries", anchor=False)
    setting = "supervised" if spec["setting"] == "unsupervised" else spec["setting"]
    checked = study.check({**spec, "setting": setting, "question": "spread"})
    result = answer(study.STUDY, checked, "Measuring the spread")
    if result is None:
        return checked
    summary = cached_call(study.summary, result)
    left, right = responsive_columns("spread", 2, gap="large")
    rows = [row for row in summary["spread"] if row["std"] is not None]
    # random tasks differ in classes, tasks with fixed classes in support images, tasks with fixed support in queries
    cause_of_component = dict(zip(COMPONENTS, study.CAUSES, strict=True))
    cause = drilldown.selection("cause", study.CAUSES)
    cause_of_mark = {**cause_of_component, **{cause: cause for cause in study.CAUSES}}
    selection: Any = {"name": "cause", "values": cause_of_mark, "texts": study.CAUSES, "already": cause}

    with left:
        st.markdown("**Spread of accuracies**")
        if rows:
            drilldown.chart("Spread of accuracies", figures.plot_spread(rows), key="spread", **selection)
        st.caption(
            f"{summary['n_tasks']:,} tasks. SD of accuracy over random tasks, fixed classes, fixed support. "
            "Click a mark to list its tasks.",
            help="95% CI over tasks. Of several sets: the root of their mean variance. Paper, mini-ImageNet: 5.9, 2.0 "
            "and 4.4 points.",
        )
    with right:
        st.markdown("**Share of the variance**")
        if "parts" in summary:
            chart = figures.plot_components(summary["parts"]["parts"])
            drilldown.chart("Share of the variance", chart, key="parts", **selection)
            st.caption(
                escape(describe_components(summary["parts"])),
                help="Classes: how much more random tasks vary than tasks with the same classes. Queries: variance "
                "over the choice of queries. Support: the rest.",
            )
        else:
            st.info(escape(summary["why"]), icon="🔍")
    if cause:
        drilldown.heading(f"Tasks: {escape(cause)}, hardest first", "cause")
        cell_tasks.show(dataset, result, cause, "spread_task")
    return checked
