"""The sidebar of the page: which classes, alike by what, and how confusion is measured."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from fsviz import features
from fsviz.records import Dataset
from fsviz.studies import confusion as study
from fsviz.ui.parts import links, shell
from fsviz.ui.parts.controls import pick, pick_backbone

HOW = [study.SETTINGS[name] for name in ("k", "preprocess", "n_runs", "seed")]


def pick_spec(dataset: Dataset) -> study.ConfusionRequest:
    """What the sidebar asks for, as a spec of the study."""
    possible = study.possible_similarities(dataset)
    split = shell.pick_split(dataset)
    with shell.side():
        told = "\n\n".join(
            f"**{study.SIMILARITIES[name].title}**: {study.SIMILARITIES[name].what}" for name in possible
        )
        choices = {name: study.SIMILARITIES[name].title for name in possible}
        kind = pick(study.SIMILARITY.with_(choices=choices, default=possible[0]), help=told)
        spec: study.ConfusionRequest = {"dataset": dataset.name, "split": split, "likeness": kind}
        if study.SIMILARITIES[kind].needs == "features":
            spec["backbone"] = pick_backbone(features.available(dataset), help="The network that looks at the images.")
        else:
            links.drop_from_link("backbone")
        if kind == "confusion":
            most = study.max_k(dataset, spec["backbone"], split)
            with st.expander("How confusion is measured"):
                for setting in HOW:
                    if setting.name == "k" and most > 0:
                        setting = setting.with_(high=most, default=min(setting.default, most))
                    cast(dict[str, Any], spec)[setting.name] = pick(setting)
                if 0 < most < study.SETTINGS["k"].default:
                    st.caption(f"The smallest classes have room for {most:,} edges per image; the paper takes 20.")
        else:
            links.drop_from_link(*(setting.name for setting in HOW))
    return spec
