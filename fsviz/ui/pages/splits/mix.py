"""What the sides of a split are made of, in a line each."""

from __future__ import annotations

import streamlit as st

from fsviz.records import ClassSplit, Dataset
from fsviz.studies import splits as study
from fsviz.ui.parts.shell import plain


def say(dataset: Dataset, split: ClassSplit) -> bool:
    """Says which kind of classes tells train and test from the rest; False where there is no taxonomy to say it by."""
    found = study.mixes(dataset, split)
    for mix in found:
        st.markdown(
            f"**{plain(mix.side)}**: {mix.n:,} of {mix.of:,} classes are kinds of *{plain(mix.concept)}* (elsewhere "
            f"{mix.n_rest:,} of {mix.of_rest:,})."
        )
    return bool(found)
