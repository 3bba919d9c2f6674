"""Why accuracy varies from task to task: classes, support images, queries."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz.figures import prediction as figures
from fsviz.records import Dataset
from fsviz.studies import prediction as study
from fsviz.studies.prediction.spread import PARTS, parts_in_words
from fsviz.ui.pages.predict_accuracy import cell_tasks
from fsviz.ui.parts import drilldown
from fsviz.ui.parts.answers import answer
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.shell import escape, responsive_columns


def show(dataset: Dataset, spec: study.Spec) -> study.Spec:
    """What makes the accuracy vary; returns what was asked."""
    st.subheader("What makes the accuracy vary: the classes, the support, or the queries?", anchor=False)
    setting = "supervised" if spec["setting"] == "unsupervised" else spec["setting"]
    asked = study.check({**spec, "setting": setting, "question": "spread"})
    result = answer(study.STUDY, asked, "Measuring the spread")
    if result is None:
        return asked
    found = cached_call(study.summary, result)
    left, right = responsive_columns("spread", 2, gap="large")
    rows = [row for row in found["spread"] if row["std"] is not None]
    # what a part of the variance is told by: random tasks differ in classes, tasks of fixed classes in support images,
    # tasks of fixed support images in queries
    of_part = dict(zip(PARTS, study.CAUSES, strict=True))
    cause = drilldown.chosen("cause", study.CAUSES)
    of_data = {**of_part, **{cause: cause for cause in study.CAUSES}}
    leading: Any = {"name": "cause", "values": of_data, "texts": study.CAUSES, "already": cause}

    with left:
        st.markdown("**How far accuracies of tasks spread**")
        if rows:
            drilldown.chart("Spread of accuracies", figures.plot_spread(rows), key="spread", **leading)
        st.caption(
            "Standard deviation over random tasks, over tasks of the same classes, and over tasks that take the same "
            "support images for every class (of several sets or choices: the root of their mean variance); "
            f"{found['n_tasks']:,} tasks in all, 95% intervals over tasks of these images. The paper has 5.9, 2.0 and "
            "4.4 points on mini-ImageNet."
        )
    with right:
        st.markdown("**What the variance is due to**")
        if "parts" in found:
            chart = figures.plot_components(found["parts"]["parts"])
            drilldown.chart("What the variance is due to", chart, key="parts", **leading)
            st.caption(
                f"{escape(parts_in_words(found['parts']))} Tasks of the same classes vary less than random tasks by "
                "what the classes add. More tasks narrow the intervals."
            )
        else:
            st.info(escape(found["why"]), icon="🔍")
    if cause:
        drilldown.heading(f"Tasks: {escape(cause)}, the hardest first", "cause")
        cell_tasks.show(dataset, result, cause, "spread_task")
    return asked
