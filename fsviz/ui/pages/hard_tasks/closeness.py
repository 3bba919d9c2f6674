"""Are classes that mean nearly the same, and bad support images, two problems or one?"""

from __future__ import annotations

import streamlit as st

from fsviz.difficulty import measures
from fsviz.figures import support_sets as figures
from fsviz.records import Dataset
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.studies import support_sets as study
from fsviz.studies.support_sets import SupportSets
from fsviz.ui.parts.shell import plain


def show(dataset: Dataset, found: SupportSets) -> None:
    st.subheader("Are close classes and bad supports two problems or one?", anchor=False)
    table = study.coarsity_table(found)
    if table is None:
        st.info(
            f"**{plain(dataset.title)} has no taxonomy for these tasks**, so it is not known how close in meaning "
            "their classes are. Map its classes to WordNet when you add images.",
            icon="🧩",
        )
        return
    st.plotly_chart(figures.plot_by_coarsity(table), key="by_coarsity")
    st.caption(
        f"{len(found):,} tasks in four groups by {plain(measures.axis('coarsity'))}; means with 95% intervals over "
        f"tasks of these images. Coarsity: {plain(measures.get('coarsity').what)} Where hard supports cost about as "
        f"much at every distance, the two problems add up. Choose {SAMPLERS['semantic'].title} under “{SAMPLER.title}” "
        "in the sidebar for more tasks whose classes are close."
    )
