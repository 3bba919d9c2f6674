"""The sidebar of the page: tasks, search and classifier."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz import features
from fsviz.records import Dataset
from fsviz.settings import N_TASKS, SEED
from fsviz.studies import support_sets as study
from fsviz.ui.parts import links, shell
from fsviz.ui.parts.controls import (
    pairs,
    pick_backbone,
    pick_groups,
    pick_images,
    pick_sampler,
    pick_sampler_settings,
    say_fit,
)
from fsviz.ui.parts.controls import pick as pick_setting


def pick(dataset: Dataset, backbones: list[str]) -> study.SupportSpec:
    """The checked spec of the sidebar."""
    split = shell.pick_split(dataset)
    with shell.side():
        backbone = pick_backbone(backbones, help="The network whose features are searched and classified.")
        common, rare = st.container(), st.expander("More settings")
    with common:
        sampler = pick_sampler(dataset, "uniform")
        places = pairs()
        n_classes = len(dataset.split_class_ids(split))
        sampling = {"split": split, "sampler": sampler}
        own = pick_sampler_settings(
            sampler,
            n_classes,
            where=lambda name: st if name == "repeats" else next(places),
            of=(dataset, split),
            **study.fit(dataset, backbone, sampling).values,
        )
        spec = {"sampler": sampler, **own}
        sizes = study.class_sizes(dataset, features.load(dataset, backbone))[dataset.split_class_ids(split)]
        skip = False
        if len(set(sizes.tolist())) > 1:
            skip = pick_setting(study.SKIP_SMALL, rare)
            spec["skip_small"] = skip
        fits = study.fit(dataset, backbone, {**sampling, "skip_small": skip})
        spec |= pick_images(sampler, places, fits)
        spec["n_tasks"] = pick_setting(N_TASKS.with_(default=int(study.TASK_DEFAULTS["n_tasks"])))
        say_fit(fits, spec)
    with rare:
        spec |= pick_groups(dataset)
        spec |= _search_settings()
        spec["seed"] = pick_setting(SEED)
    return study.check({"dataset": dataset.name, "split": split, "backbone": backbone, **spec})


def _search_settings() -> dict[str, Any]:
    spec = {s.name: pick_setting(s) for s in (study.CLASSIFIER, study.SEARCH, study.LOSS)}
    steps = [study.START, study.N_STEPS]
    used = {"accuracy": [], "greedy": [study.N_SWEEPS]}.get(spec["search"], steps)
    spec |= {s.name: pick_setting(s) for s in used}
    if spec.get("start") == "random" or spec["search"] == "literal":
        used.append(study.STEP)
        spec["step"] = pick_setting(study.STEP)
    search = (study.N_SWEEPS, study.START, study.N_STEPS, study.STEP)
    links.drop_from_link(*(s.name for s in search if s not in used))
    return spec
