"""The sidebar of the page: classes, similarity, comparison, and how class overlap is measured."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from fsviz import features
from fsviz.records import Dataset
from fsviz.settings import Setting
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
        else:
            links.drop_from_link("backbone")
        place = st.container()
        if kind != "confusion":
            links.drop_from_link(*(setting.name for setting in OVERLAP_SETTINGS))
            return spec, place
        max_k = study.max_k(dataset, spec["backbone"], split)
        with st.expander("More settings"):
            cast(dict[str, Any], spec).update({s.name: pick(_fitted(s, max_k)) for s in OVERLAP_SETTINGS})
            if 0 < max_k < study.SETTINGS["k"].default:
                st.caption(f"The smallest classes allow at most {max_k:,} edges per image. Paper: 20.")
    return spec, place


def _fitted(setting: Setting, max_k: int) -> Setting:
    """A setting, with k lowered to what the classes allow."""
    if setting.name != "k" or max_k <= 0:
        return setting
    return setting.with_(high=max_k, default=min(setting.default, max_k))
