"""The sidebar of the page: classes, similarity, comparison, and how class overlap is measured."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from fsviz import features
from fsviz.records import Dataset
from fsviz.studies import confusion as study
from fsviz.ui.parts import links, shell
from fsviz.ui.parts.controls import pick, pick_backbone

OVERLAP_SETTINGS = [study.SETTINGS[name] for name in ("k", "preprocess", "n_runs", "seed")]


def pick_spec(dataset: Dataset) -> tuple[study.ConfusionRequest, Any]:
    """The spec of the sidebar, and the place there for the settings of the graph."""
    possible = study.possible_similarities(dataset)
    split = shell.pick_split(dataset)
    with shell.side():
        descriptions = "\n\n".join(
            f"**{study.SIMILARITIES[name].title}**: {study.SIMILARITIES[name].description}" for name in possible
        )
        choices = {name: study.SIMILARITIES[name].title for name in possible}
        kind = pick(study.SIMILARITY.with_(choices=choices, default=possible[0]), help=descriptions)
        spec: study.ConfusionRequest = {"dataset": dataset.name, "split": split, "likeness": kind}
        if study.SIMILARITIES[kind].needs == "features":
            spec["backbone"] = pick_backbone(features.available(dataset), help="The network that gives the features.")
            spec["n_shot"] = int(pick(study.N_SHOT, help="Support images per class of the tasks that measure errors."))
        else:
            links.drop_from_link("backbone", study.N_SHOT.name, study.PAIR_ORDER.name)
        place = st.container()
        if kind != "confusion":
            links.drop_from_link(*(setting.name for setting in OVERLAP_SETTINGS))
            return spec, place
        with st.expander("More settings"):
            cast(dict[str, Any], spec).update({s.name: pick(s) for s in OVERLAP_SETTINGS})
            low, high = study.edges_per_image(spec)
            edges = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            st.caption(f"Graphs keep {edges} edges per image: at most a fifth of a pair's images.")
    return spec, place
