"""The sidebar of the page: tasks, backbone and methods."""

from __future__ import annotations

from typing import Any

import streamlit as st

from fsviz import jobs
from fsviz.records import Dataset
from fsviz.settings import N_TASKS, SEED, Setting
from fsviz.studies import causes as study
from fsviz.studies import evaluate
from fsviz.ui.parts import controls, run_panel, shell
from fsviz.ui.parts.controls import pairs, pick_backbone, pick_groups, pick_images, pick_sampler, pick_sampler_settings

SAMPLED = "sampled"
METHODS: list[str] = study.METHODS_EXPLAINED.default
TASKS_OF = Setting(
    "tasks_of",
    "Tasks",
    "Sampled here, of a saved testbed, or of a finished evaluation with its accuracies.",
    "choice",
    SAMPLED,
)


def pick(dataset: Dataset, backbones: list[str]) -> study.CausesSpec:
    """Draw the settings of the tasks and return the checked spec."""
    with shell.side():
        backbone = pick_backbone(backbones, help="Features that are measured and classified.")
        source = controls.pick(_sources(dataset, backbone))
    kind, _, name = source.partition(":")
    spec: dict[str, Any] = {"dataset": dataset.name, "backbone": backbone, "methods": METHODS}
    if kind == "run":
        return study.check({**spec, "run": name, "methods": []})
    if kind == "testbed":
        spec["testbed"] = name
    else:
        split = shell.pick_split(dataset)
        with shell.side():
            sampler = pick_sampler(dataset, "uniform")
            places = pairs()
            n_classes = len(dataset.split_class_ids(split))
            fits = study.fit(dataset, backbone, {"split": split, "sampler": sampler})
            own = pick_sampler_settings(
                sampler,
                n_classes,
                where=lambda name: st if name == "repeats" else next(places),
                of=(dataset, split),
                **fits.values,
            )
            images = pick_images(sampler, places, fits)
            controls.say_fit(fits, {**own, **images})
            spec |= {"split": split, "sampler": sampler, **own, **images}
            spec["n_tasks"] = controls.pick(N_TASKS.with_(default=int(study.TASK_DEFAULTS["n_tasks"])))
    with shell.side():
        methods = controls.pick_methods(METHODS, study.METHODS_EXPLAINED.help)
        if kind == SAMPLED:
            with st.expander("More settings"):
                spec |= pick_groups(dataset)
                spec["seed"] = controls.pick(SEED)
    return study.check({**spec, "methods": methods or METHODS[:1]})


def _sources(dataset: Dataset, backbone: str) -> Setting:
    """Sources of tasks: sampled here, a saved testbed, a finished evaluation on this backbone."""
    choices = {SAMPLED: "Sampled here"}
    names = evaluate.testbeds(dataset)
    choices |= {f"testbed:{name}": f"Testbed {title}" for name, title in evaluate.testbed_titles(names).items()}
    for run in jobs.list_runs("evaluate"):
        if run.state != "finished" or run.spec.get("dataset") != dataset.name or not evaluate.is_complete(run.spec):
            continue
        if backbone in (run.spec.get("backbones") or ()) and len(evaluate.run_testbeds(run.spec)) == 1:
            choices[f"run:{run.id}"] = f"Run of {run_panel.when(run.created)}, {run.spec.get('testbed_name', run.id)}"
    return TASKS_OF.with_(choices=choices)
