"""The sidebar of the page: labels used, tasks and graph."""

from __future__ import annotations

import streamlit as st

from fsviz.records import Dataset
from fsviz.settings import N_TASKS, SEED
from fsviz.studies import prediction as study
from fsviz.ui.parts import shell
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


def pick(dataset: Dataset, backbones: list[str]) -> study.PredictionSpec:
    """Draw the sidebar; returns the checked spec."""
    split = shell.pick_split(dataset)
    with shell.side():
        setting = pick_setting(study.SETTING)
        backbone = pick_backbone(backbones, help="Network whose features are measured and classified.")
        sampler = pick_sampler(dataset, "uniform")
        boxes, rest = st.container(), st.container()
        n_classes = len(dataset.split_class_ids(split))
        fits = study.fit(dataset, backbone, {"split": split, "sampler": sampler})
        more = st.expander("More settings")
        with boxes:
            places = pairs()
            own = pick_sampler_settings(
                sampler,
                n_classes,
                where=lambda name: next(places) if name == "n_way" else more,
                of=(dataset, split),
                **fits.values,
            )
            spec = {"sampler": sampler, **own}
            spec |= pick_images(sampler, places, fits)
        with rest:
            say_fit(fits, spec)
            spec["n_tasks"] = pick_setting(N_TASKS.with_(default=study.TASK_DEFAULTS["n_tasks"]))
        with more:
            spec |= pick_groups(dataset)
            spec |= {s.name: pick_setting(s) for s in (study.NEIGHBOURS, SEED)}
    sources = {"dataset": dataset.name, "split": split, "backbone": backbone, "setting": setting, **spec}
    return study.check(sources)
