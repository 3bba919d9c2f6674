"""The sidebar of the page: what divergence is asked for, and how the split is found."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.records import Dataset
from fsviz.settings import Setting, Value
from fsviz.ui.parts import access, links, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import pick, pick_backbone

CLASS = Setting("class", "Class", "The class that is looked at.", "choice", None)


def pick_spec(dataset: Dataset) -> dict[str, Value]:
    """Every setting of the study by name, as the sidebar has them; those without effect are at their default."""
    own = study.SETTINGS
    spec: dict[str, Any] = {}
    known = shell.known_backbones(dataset)
    with shell.side():
        modes = {name: title for name, title in own["mode"].choices.items() if name in study.possible_modes(dataset)}
        spec["mode"] = pick(own["mode"].with_(choices=modes))
        sought, stable = spec["mode"] in study.TARGETED_MODES, spec["mode"] == "stable"
        if sought:
            told = own["divergence"].help
            spec["divergence"] = pick(own["divergence"], as_slider=True, help=shell.escape(told))
        if stable:
            most = study.max_dims(dataset)
            dims = own["dims"]
            dims = dims.with_(high=most, default=study.default_dims(dataset), typical=min(dims.typical or most, most))
            spec["dims"] = pick(dims, as_slider=most > 1)
            spec["starts"] = pick(own["starts"], as_slider=True)
        spec["seed"] = pick(own["seed"])
        spec["backbone"] = pick_backbone(known, help=own["backbone"].help)
        if sought:
            with st.expander("How the divergence is measured"):
                told = "\n\n".join(f"**{d.title}**: {d.description}" for d in study.DIVERGENCES.values())
                spec["divergence_by"] = pick(own["divergence_by"], help=told)
                usual = study.default_penalty(spec["mode"])
                spec["penalty"] = pick(own["penalty"].with_(default=usual), as_slider=True, about=spec["mode"])
                spec["solver"] = pick(own["solver"])
        links.drop_from_link(*(name for name in own if name not in spec))
    return study.checked(spec)


def class_features(dataset: Dataset, backbone: str) -> study.ClassFeatures:
    """The mean features of the classes, computed once for all visitors."""
    return cached_call(study.class_features, dataset, backbone, words="Averaging the features of every class", keep=16)


def is_affordable(seconds: float) -> bool:
    """Whether so many seconds may be computed for this visitor at once; shows why not."""
    limit = access.limit("seconds")
    if seconds <= limit:
        return True
    st.info(
        f"This takes about {seconds:,.0f} s. Visitors of this shared server may ask for {limit:,.0f} s at a time: take "
        "fewer random starts or dimensions, at the left.",
        icon="⏳",
    )
    return False
