"""The sidebar of the page: the target divergence, and how the split is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from fsviz.analyses import class_splits as study
from fsviz.records import ClassSplit, Dataset
from fsviz.settings import Setting, Value
from fsviz.ui.parts import access, controls, links, shell
from fsviz.ui.parts.caching import cached_call
from fsviz.ui.parts.controls import pick, pick_backbone

CLASS = Setting("class", "Class", "Class whose neighbours and images are shown.", "choice", "")


def pick_spec(dataset: Dataset, first: Any) -> dict[str, Value]:
    """Every setting of the study by name; those without effect at their default.

    first  where the target is drawn
    """
    declared = study.SETTINGS
    spec: dict[str, Any] = {}
    backbones = shell.known_backbones(dataset)
    with shell.side():
        modes = {name: declared["mode"].choices[name] for name in study.possible_modes(dataset)}
        spec["mode"] = pick(declared["mode"].with_(choices=modes))
        has_target, is_stable = spec["mode"] in study.TARGETED_MODES, spec["mode"] == "stable"
        if has_target:
            text = shell.escape(declared["divergence"].help)
            spec["divergence"] = pick(declared["divergence"], first, as_slider=True, help=text)
        spec["backbone"] = pick_backbone(backbones, help=declared["backbone"].help)
        with st.expander("More settings"):
            spec["seed"] = pick(declared["seed"])
            if is_stable:
                spec |= _pick_search(dataset)
            if has_target:
                spec |= _pick_objective(str(spec["mode"]))
        links.drop_from_link(*(name for name in declared if name not in spec))
    return study.checked(spec)


def pick_few(dataset: Dataset) -> dict[str, Value]:
    """The backbone alone: these classes are too few to split."""
    backbones = shell.known_backbones(dataset)
    return {"backbone": pick_backbone(backbones, help=study.SETTINGS["backbone"].help)}


def _pick_search(dataset: Dataset) -> dict[str, Value]:
    """Dimensions and random starts of mode stable."""
    high, dims = study.max_dims(dataset), study.SETTINGS["dims"]
    dims = dims.with_(high=high, default=study.default_dims(dataset), typical=min(dims.typical or high, high))
    return {"dims": pick(dims, as_slider=high > 1), "starts": pick(study.SETTINGS["starts"], as_slider=True)}


def _pick_objective(mode: str) -> dict[str, Value]:
    """The divergence measure, its weight and the solver."""
    declared = study.SETTINGS
    descriptions = "\n\n".join(f"**{d.title}**: {d.description}" for d in study.DIVERGENCES.values())
    penalty = declared["penalty"].with_(default=study.default_penalty(mode))
    return {
        "divergence_by": pick(declared["divergence_by"], help=descriptions),
        "penalty": pick(penalty, as_slider=True, about=mode),
        "solver": pick(declared["solver"]),
    }


def pick_class(names: tuple[str, ...], where: Any) -> int | None:
    """Position of the class picked by name, click or link; a class of another dataset is dropped."""
    name = controls.pick_class(CLASS, names, "none", where)
    return names.index(name) if name else None


def class_features(dataset: Dataset, backbone: str) -> study.ClassFeatures:
    """Mean features of the classes, also of classes that are too few to split; cached for all visitors."""
    return cached_call(
        study.class_features, dataset, backbone, 2, words="Averaging the features of every class", keep=16
    )


def held_out_at_random(dataset: Dataset, classes: study.ClassFeatures, split: ClassSplit) -> study.HeldOutSide:
    """The test sides of random splits of these sizes; cached for all visitors, the same for every target."""
    return cached_call(_held_out_at_random, dataset, classes, tuple(np.sort(split.sides).tolist()), keep=64)


def _held_out_at_random(dataset: Dataset, classes: study.ClassFeatures, sides: tuple[int, ...]) -> study.HeldOutSide:
    split = replace(study.unsplit(classes), sides=np.array(sides))
    return study.held_out_at_random(dataset, classes, split)


def is_affordable(seconds: float) -> bool:
    """Whether this visitor may compute for so many seconds at once; shows a message if not."""
    limit = access.limit("seconds")
    if seconds <= limit:
        return True
    st.info(
        f"Too large for this shared server: about {seconds:,.0f} s, limit {limit:,.0f} s. Use fewer random starts or "
        "dimensions.",
        icon="⏳",
    )
    return False
