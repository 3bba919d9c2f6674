"""The sidebar of Evaluate: methods, backbones, tasks and device, as a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

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
TASK_KINDS = Setting(
    "task_kinds",
    "Testbeds",
    "Reproduces tables 1 and 2 of Bennequin et al. (2022). The preview uses the sampler chosen above.",
    "choice",
    "one",
    choices={
        "one": "These tasks",
        "both": "Semantic + uniform",
        "tables": "Semantic + uniform, 1 and 5 shots",
    },
    advanced=True,
)
TASKS_FROM = Setting(
    "tasks_from",
    "Tasks",
    "Sample tasks here, or use a saved testbed.",
    "choice",
    "draw",
    choices={"draw": "Sample here", "saved": "Saved testbed"},
)
SHOTS_OF_KINDS: dict[str, tuple[int, ...]] = {"both": (), "tables": (1, 5)}  # (): the number chosen


class EvaluationRequest(NamedTuple):
    """The request of the sidebar: a spec, further testbeds, and the shots of several samplers in one run (or None)."""

    spec: evaluate.EvaluationSpec
    testbeds: list[str]
    shots: tuple[int, ...] | None


class TaskSource(NamedTuple):
    """The tasks of a request: settings of a spec, further testbeds, and shots (see EvaluationRequest)."""

    settings: dict[str, Any]
    testbeds: Sequence[str] = ()
    shots: tuple[int, ...] | None = None


def pick_settings(dataset: Dataset, names: list[str]) -> EvaluationRequest | None:
    """The sidebar: what to run; None if a method or a backbone has to be chosen first."""
    methods = _pick_methods()
    links.several_of({name: title_of(name) for name in names}, "backbones", names[:1])
    backbones = st.multiselect(
        "Backbones",
        names,
        key="backbones",
        format_func=title_of,
        **controls.BY_TYPING,
        help="Backbones with features for this dataset.",
    )
    tasks, more = st.container(), st.expander("More settings")
    with tasks:
        source = _pick_tasks(dataset, (backbones or names)[0], more)
    with more:
        device = _pick_device()
    if not methods or not backbones:
        return None
    spec: Any = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": backbones,
        "methods": methods,
        "device": device,
        **source.settings,
    }
    return EvaluationRequest(spec, list(source.testbeds), source.shots)


def _pick_methods() -> list[evaluate.MethodChoice]:
    """Method picker and the settings of every method."""
    names = controls.pick_methods(
        DEFAULT_METHODS, "Inductive: one query at a time. Transductive: all queries of a task at once."
    )
    choices: list[evaluate.MethodChoice] = []
    if names:
        with st.popover("Method settings", width="stretch"):
            for name in names:
                method = METHODS[name]
                st.markdown(f"**{escape(method.title)}** · {escape(method.kind)} · {escape(method.paper)}")
                st.caption(escape(method.description))
                _presets(method)
                parameters = {s.name: controls.pick(s, key=f"{name}_{s.name}") for s in method.settings}
                st.caption(escape(method.invariance(parameters)))
                choices.append({"name": name, "parameters": parameters})
        for note in evaluate.scale_notes(choices):
            st.caption(escape(note))
    unselected = (method for name, method in METHODS.items() if name not in names)
    links.drop_from_link(*(f"{method.name}_{setting.name}" for method in unselected for setting in method.settings))
    return choices


def _presets(method: Any) -> None:
    """Buttons that set all values of a paper or of a library."""
    if not method.presets:
        st.caption(escape(f"It {method.without_presets}."))
    else:
        with st.container(horizontal=True):
            for preset in method.presets:
                st.button(
                    f"Use {escape(preset)} values",
                    key=f"{method.name}_as_{preset}",
                    on_click=_fill_preset,
                    args=(method, preset),
                )


def _fill_preset(method: Any, preset: str) -> None:
    for name, value in method.checked(preset=preset).items():
        st.session_state[f"{method.name}_{name}"] = value


def _pick_tasks(dataset: Dataset, backbone: str, more: Any) -> TaskSource:
    """Tasks sampled here, or those of saved testbeds; rare settings are drawn in `more`."""
    saved = evaluate.testbeds(dataset)
    if not saved:
        links.drop_from_link(TASKS_FROM.name, "testbeds")
        return _pick_sampler(dataset, backbone, more)
    if controls.pick(TASKS_FROM) == "draw":
        links.drop_from_link("testbeds")
        return _pick_sampler(dataset, backbone, more)
    titles = evaluate.testbed_titles(saved)
    links.several_of(dict.fromkeys(saved, ""), "testbeds", saved[:1])
    names = st.multiselect(
        "Testbeds",
        saved,
        key="testbeds",
        format_func=titles.__getitem__,
        **controls.BY_TYPING,
        help="Saved on the page Sample tasks, or by 'fsviz sample'. Each becomes a run; the preview is of the first.",
    )
    for name in names:
        if titles[name] != name:
            st.caption(f"{escape(titles[name])}: {escape(name)}")
    return TaskSource({"testbed": (names or saved)[0], "seed": 0}, names[1:])


def _pick_sampler(dataset: Dataset, backbone: str, more: Any) -> TaskSource:
    start = evaluate.feasible_sampler(dataset, backbone)
    split = shell.pick_split(dataset, default=start["split"])
    sampler = controls.pick_sampler(dataset, start["sampler"])
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
    settings |= controls.pick_images(sampler, places, fits)
    seed = controls.pick(SEED, next(places))
    controls.say_fit(fits, settings)
    settings["n_tasks"] = controls.pick(N_TASKS.with_(title="Tasks in the run"))
    kinds = str(TASK_KINDS.default)
    if SAMPLERS[sampler].samples_images or "semantic" not in draw.possible_samplers(dataset):
        links.drop_from_link(TASK_KINDS.name)
    else:
        kinds = controls.pick(TASK_KINDS, more)
    settings |= controls.pick_groups(dataset, more)
    return TaskSource({"sampler": cast(draw.TaskSpec, settings), "seed": seed}, shots=SHOTS_OF_KINDS.get(kinds))


def _pick_device() -> str:
    names = {device["device"]: device["name"] for device in devices()}
    return st.selectbox(
        "Device",
        list(names),
        format_func=names.__getitem__,
        key="device",
        help="CUDA devices are listed by name if torch finds them.",
    )


@cache_data(most=1)
def devices() -> list[dict[str, str]]:
    return evaluate.devices()
