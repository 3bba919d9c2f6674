"""Section Semantic distance: do hard supports cost more if the classes are semantically close?"""

from __future__ import annotations

import streamlit as st

from fsviz.analyses.shallow_taxonomy import composition
from fsviz.difficulty import measures
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset
from fsviz.sampling import SAMPLERS
from fsviz.settings import Setting
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.pages.hard_supports import task_table, tasks
from fsviz.ui.parts import export, links
from fsviz.ui.parts.clicks import Click
from fsviz.ui.parts.shell import escape

CHART = "by_coarsity"
QUARTER = Setting("quarter", "Group", "The quarter of the tasks by coarsity that is listed; 0 for none.", "int", 0, 0)


def show(dataset: Dataset, sets: SupportSets) -> None:
    st.subheader("Semantic distance and hard supports", anchor=False)
    table = study.coarsity_table(sets)
    if table is None:
        st.info(
            f"**{escape(dataset.title)} has no taxonomy for these tasks**, so semantic distance is not available. Map "
            "its classes to WordNet when you add images.",
            icon="🧩",
        )
        return
    export.chart(
        "Accuracy by semantic distance",
        figures.plot_by_coarsity(table),
        key=CHART,
        sets=Click({1: QUARTER}, also={task_table.TASK.name: task_table.TASK.default}),
    )
    if note := composition(dataset, sets.tasks["random"]):
        st.caption(escape(note))
    st.caption(
        f"{len(sets):,} tasks in four groups by {escape(measures.lower_title('coarsity'))}. Equal gaps at every "
        "distance: the two effects add up. Click a point to list its tasks.",
        help=f"{escape(measures.get('coarsity').description)} 95% CI over tasks. The sampler "
        f"{SAMPLERS['semantic'].title} gives more tasks with close classes.",
    )
    quarter = int(links.value_of(QUARTER.with_(high=int(table["bin"].max())), QUARTER.name, task_table.about(sets)))
    if quarter:
        row = table[(table["bin"] == quarter) & (table["set"] == "hard")].iloc[0]
        st.markdown(f"**Tasks with coarsity {row['low']:.1f} to {row['high']:.1f}, hardest first**")
        task = task_table.show_some(dataset, sets, study.tasks_between(sets, row["low"], row["high"]), "quarter_table")
        if task is not None:
            tasks.one_task(dataset, sets, task, task_table.explained(sets, dataset))
