"""Are classes that mean nearly the same, and bad support images, two problems or one?"""

from __future__ import annotations

import streamlit as st

from fsviz.difficulty import measures
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import Setting
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table, tasks
from fsviz.ui.parts import export, links
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.shell import escape

CHART = "by_coarsity"
QUARTER = Setting("quarter", "Group", "The group of tasks by coarsity that is listed; 0 for none.", "int", 0, 0)


def show(dataset: Dataset, found: SupportSets) -> None:
    st.subheader("Are close classes and bad supports two problems or one?", anchor=False)
    table = study.coarsity_table(found)
    if table is None:
        st.info(
            f"**{escape(dataset.title)} has no taxonomy for these tasks**, so it is not known how close in meaning "
            "their classes are. Map its classes to WordNet when you add images.",
            icon="🧩",
        )
        return
    export.chart(
        "Accuracy by closeness in meaning",
        figures.plot_by_coarsity(table),
        key=CHART,
        sets=Click({1: QUARTER}, also={task_table.TASK.name: task_table.TASK.default}),
    )
    st.caption(
        f"{len(found):,} tasks in four groups by {escape(measures.lower_title('coarsity'))}; means with 95% intervals "
        "over "
        f"tasks of these images. Coarsity: {escape(measures.get('coarsity').description)} Where hard supports cost "
        "about as "
        f"much at every distance, the two problems add up. Choose {SAMPLERS['semantic'].title} under “{SAMPLER.title}” "
        "in the sidebar for more tasks whose classes are close. Click a point to list its tasks."
    )
    quarter = int(links.value_of(QUARTER.with_(high=int(table["bin"].max())), QUARTER.name, task_table.about(found)))
    if quarter:
        row = table[(table["bin"] == quarter) & (table["set"] == "hard")].iloc[0]
        st.markdown(f"**Tasks with a coarsity of {row['low']:.1f} to {row['high']:.1f}, hardest first**")
        task = task_table.show_some(
            dataset, found, study.tasks_between(found, row["low"], row["high"]), "quarter_table"
        )
        if task is not None:
            tasks.one_task(dataset, found, task, task_table.explained(found, dataset))
