"""The sidebar of Evaluate: methods, backbones, tasks and device, as a spec."""

from __future__ import annotations

from typing import Any, cast

import streamlit as st

from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.records import Dataset
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_TASKS, SEED, Setting
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.ui.parts import (
    controls,
    links,
    shell,
)
from fsviz.ui.parts.caching import cache_data
from fsviz.ui.parts.shell import escape

DEFAULT_METHODS = ("protonet", "simpleshot", "ridge", "bd_cspn")
BESIDE = Setting(
    "beside",
    "In one run",
    "Semantic and uniform tasks beside each other are tables 1 (1 shot) and 2 (5 shots) of Bennequin et al. (2022). "
    "The first look below is at the tasks chosen above.",
    "choice",
    "alone",
    choices={
        "alone": "These tasks only",
        "both": "Semantic and uniform tasks",
        "tables": "Semantic and uniform, 1 and 5 shots",
    },
    advanced=True,
)
TASKS_FROM = Setting(
    "tasks_from",
    "Tasks",
    "Drawn here, or those of a testbed that was saved before.",
    "choice",
    "draw",
    choices={"draw": "Draw here", "saved": "Saved testbed"},
)
BESIDE_SHOTS: dict[str, tuple[int, ...]] = {"both": (), "tables": (1, 5)}  # none: the number chosen


class EvaluationRequest(evaluate.EvaluationSpec, total=False):
    """The request of the sidebar: a spec, further testbeds, and the shots of several samplers in one run."""

    more_testbeds: list[str]
    beside: tuple[int, ...] | None


def pick_settings(dataset: Dataset, names: list[str]) -> EvaluationRequest | None:
    """The sidebar: what to run. Returns the spec, None when something has to be chosen first."""
    chosen = _pick_methods()
    links.several_of({name: title_of(name) for name in names}, "backbones", names[:1])
    backbones = st.multiselect(
        "Backbones",
        names,
        key="backbones",
        format_func=title_of,
        **controls.BY_TYPING,
        help="Frozen networks whose features of these images are at hand. More of them: page Add images.",
    )
    source = _pick_tasks(dataset, (backbones or names)[0])
    device = _pick_device()
    if not chosen or not backbones:
        return None
    spec: EvaluationRequest = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": backbones,
        "methods": chosen,
        "device": device,
        **source,
    }
    return spec


def _pick_methods() -> list[evaluate.MethodChoice]:
    """Method picker and, for each one chosen, the controls its parameters ask for."""
    names = controls.pick_methods(
        DEFAULT_METHODS,
        "Inductive methods judge each query image alone; transductive ones look at all queries of a task at once.",
    )
    chosen: list[evaluate.MethodChoice] = []
    if names:
        with st.popover("Parameters of the methods", width="stretch"):
            for name in names:
                method = METHODS[name]
                st.markdown(f"**{escape(method.title)}** · {escape(method.kind)} · {escape(method.paper)}")
                st.caption(escape(method.description))
                _presets(method)
                parameters = {s.name: controls.pick(s, key=f"{name}_{s.name}") for s in method.settings}
                st.caption(escape(method.invariance(parameters)))
                chosen.append({"name": name, "parameters": parameters})
        for note in evaluate.scale_notes(chosen):
            st.caption(escape(note))
    others = (method for name, method in METHODS.items() if name not in names)
    links.drop_from_link(*(f"{method.name}_{setting.name}" for method in others for setting in method.settings))
    return chosen


def _presets(method: Any) -> None:
    """Buttons that fill in whole sets of values: those of the paper, those of a library."""
    if not method.presets:
        st.caption(escape(f"It {method.without_presets}."))
    else:
        with st.container(horizontal=True):
            for preset in method.presets:
                st.button(
                    f"As in {escape(preset)}",
                    key=f"{method.name}_as_{preset}",
                    on_click=_fill_preset,
                    args=(method, preset),
                )


def _fill_preset(method: Any, preset: str) -> None:
    for name, value in method.checked(preset=preset).items():
        st.session_state[f"{method.name}_{name}"] = value


def _pick_tasks(dataset: Dataset, backbone: str) -> EvaluationRequest:
    """Where tasks come from: drawn here, or a saved testbed."""
    saved = evaluate.testbeds(dataset)
    if not saved:
        links.drop_from_link(TASKS_FROM.name, "testbeds")
        return _pick_sampler(dataset, backbone)
    if controls.pick(TASKS_FROM) == "draw":
        links.drop_from_link("testbeds")
        return _pick_sampler(dataset, backbone)
    titles = evaluate.testbed_titles(saved)
    links.several_of(dict.fromkeys(saved, ""), "testbeds", saved[:1])
    names = st.multiselect(
        "Testbeds",
        saved,
        key="testbeds",
        format_func=titles.__getitem__,
        **controls.BY_TYPING,
        help="Saved on the page Sample tasks, or by 'fsviz sample'. Each one becomes a run of its own; the "
        "first look is at the first.",
    )
    for name in names:
        if titles[name] != name:
            st.caption(f"{escape(titles[name])}: {escape(name)}")
    return {"testbed": (names or saved)[0], "more_testbeds": names[1:], "seed": 0}


def _pick_sampler(dataset: Dataset, backbone: str) -> EvaluationRequest:
    start = evaluate.feasible_sampler(dataset, backbone)
    split = shell.pick_split(dataset, default=start["split"])
    sampler = controls.pick_sampler(dataset, start["sampler"])
    boxes, slider = st.container(), st.container()
    rest = any(setting.name != "n_way" for setting in SAMPLERS[sampler].settings)
    more = st.popover("More of the sampler", width="stretch") if rest else st
    with boxes:
        places = controls.pairs()
        settings: dict[str, Any] = {"sampler": sampler, "split": split}
        fits = evaluate.fit(dataset, [backbone], settings)
        settings |= controls.pick_sampler_settings(
            sampler,
            len(dataset.split_class_ids(split)),
            where=lambda name: next(places) if name == "n_way" else more,
            of=(dataset, split),
            **fits.values,
        )
        settings |= controls.pick_images(sampler, places, **fits.values)
        seed = controls.pick(SEED, next(places))
        controls.say_fit(fits, settings)
    beside = str(BESIDE.default)
    if SAMPLERS[sampler].samples_images or "semantic" not in draw.possible_samplers(dataset):
        links.drop_from_link(BESIDE.name)
    else:
        beside = controls.pick(BESIDE, slider)
    settings["n_tasks"] = controls.pick(N_TASKS.with_(title="Tasks in the run"), slider)
    settings |= controls.pick_groups(dataset, more)
    return {"sampler": cast(draw.TaskSpec, settings), "seed": seed, "beside": BESIDE_SHOTS.get(beside)}


def _pick_device() -> str:
    choices = devices()
    names = {d["device"]: d["name"] for d in choices}
    device = st.selectbox(
        "Device",
        list(names),
        format_func=lambda device: names[device],
        key="device",
        help="CUDA devices are listed by name when torch sees them.",
    )
    if len(choices) == 1:
        st.caption("No CUDA device is visible to torch here, so this runs on the CPU.")
    return device


@cache_data(most=1)
def devices() -> list[dict[str, str]]:
    return evaluate.devices()
