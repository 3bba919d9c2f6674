"""Widgets of settings: one function draws any of them, and the groups of them that several pages share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from fsviz import features
from fsviz.analyses.shallow_taxonomy import groups_note
from fsviz.features.backbones import title_of
from fsviz.methods import METHODS
from fsviz.records import Dataset
from fsviz.sampling import SAMPLER, SAMPLERS
from fsviz.settings import N_QUERY, N_SHOT, Setting, Value
from fsviz.tasks import draw, fitting, shots
from fsviz.taxonomy import DAG, DISTANCE, DISTANCES
from fsviz.text import short_names
from fsviz.ui.parts import caching, links, shell
from fsviz.ui.parts.shell import classroom, escape, link, page_link, side, with_setting_titles

# What several pages draw under the same key of the link, each with its own choices
MEASURE = Setting("measure", "Measure", "Measure of the tasks.", "choice", "")


def pick(
    setting: Setting,
    where: Any = st,
    *,
    key: str = "",
    as_slider: bool = False,
    as_buttons: bool = False,
    about: str = "",
    help: str = "",
    **more: Any,
) -> Any:
    """Draws a setting and returns its value, which is in the link under `key` (the setting's name by default).

    as_slider   a slider instead of a box with a number
    as_buttons  a button per choice instead of a box with a list
    about       what the value belongs to: when that changes, the setting starts over
    help        tooltip in Markdown instead of the setting's own
    more        other arguments of the widget, such as disabled or placeholder

    In classroom mode an advanced setting is not drawn, unless the link has another value than its default.
    """
    key = key or setting.name
    value = links.value_of(setting, key, about)
    if setting.advanced and classroom() and value == setting.default:
        return setting.check(value)
    common = {"label": escape(setting.title), "key": key, "help": help or escape(setting.help) or None, **more}
    if setting.kind == "choice":
        titles = _unique_titles(setting.choices)
        offered = {"options": list(titles), "format_func": lambda name: titles.get(name, name)}
        if as_buttons:
            picked = where.segmented_control(**common, **offered, required=True)
        else:
            picked = where.selectbox(**common, **offered)
    elif setting.kind == "flag":
        picked = where.toggle(**common)
    elif setting.kind == "text":
        picked = where.text_input(**common)
    elif setting.stops:
        stops = {stop for stop in setting.stops if setting.low <= stop <= setting.high}
        words = "{:,}" if setting.kind == "int" else "{:g}"
        picked = where.select_slider(**common, options=sorted({*stops, value}), format_func=words.format)
    else:
        picked = _number(setting, where, common, as_slider, links.end_of(key))
    return setting.check(picked)


def _unique_titles(titles: Mapping[str, str]) -> dict[str, str]:
    """Titles, with the name added where two are the same: a box cannot tell equal options apart."""
    counts = Counter(titles.values())
    return {name: title if counts[title] == 1 else f"{title} ({name})" for name, title in titles.items()}


def _number(setting: Setting, where: Any, common: dict[str, Any], as_slider: bool, end: float) -> int | float:
    number = int if setting.kind == "int" else float
    step = setting.step or (1 if number is int else abs(setting.default) / 10 or 0.01)
    decimals = max(0, -math.floor(math.log10(setting.step))) if setting.step else 3
    small = setting.step is None and abs(setting.default) < 0.01
    number_format = "%d" if number is int else "%.2e" if small else f"%.{decimals}f"
    limits = {"min_value": number(setting.low), "step": number(step), "format": number_format}
    if as_slider:
        picked = where.slider(**common, **limits, max_value=number(end))
        if setting.typical is not None and end > setting.typical and picked > setting.typical:
            where.caption(f"⚠️ {picked:g}, from the link, is beyond the usual maximum of {setting.typical:g}.")
        return picked
    most = None if math.isinf(setting.high) else number(setting.high)
    return where.number_input(**common, **limits, max_value=most)


# Groups ----------------------------------------------------------------------------------------------------------


def pick_section(label: str, sections: Sequence[str], default: str = "", **more: Any) -> str:
    """The section of a page below its answer; in the link as show."""
    choices = {name: name for name in sections}
    return pick(Setting("show", label, "", "choice", default or sections[0], choices=choices), as_buttons=True, **more)


def pick_distance(dataset: Dataset, where: Any = None) -> tuple[str, str, str]:
    """Distance, taxonomy paths and backbone ("" if not used), picked in the sidebar or in `where`."""
    possible = draw.possible_distances(dataset)
    descriptions = "\n\n".join(f"**{DISTANCES[name].title}**: {DISTANCES[name].description}" for name in possible)
    choices = {name: DISTANCES[name].title for name in possible}
    with where or side():
        distance = pick(DISTANCE.with_(choices=choices, default=possible[0]), help=descriptions)
        backbone = ""
        if DISTANCES[distance].needs == "features":
            backbone = pick_backbone(features.available(dataset), help=draw.BACKBONE.help)
        dag = pick(DAG) if dataset.taxonomy is not None else str(DAG.default)
        if dataset.n_images is None and DISTANCES[distance].by_counts:
            st.caption(
                "Image counts are unknown: classes count equally, so distances and coarsity differ from published ones."
            )
    return distance, dag, backbone


def say_groups(dataset: Dataset, split: str, distance: str, distances: np.ndarray | None) -> None:
    """Says if a shallow taxonomy gives groups, not closeness, and offers the distance between features."""
    if distances is None or DISTANCES[distance].needs == "features":
        return
    note = groups_note(dataset, split, distances)
    if not note:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(escape(note), width="content")
        if dataset.has_features:
            st.button("Use distance between features", key="use_features", on_click=_use_features, type="tertiary")


def _use_features() -> None:
    st.session_state[DISTANCE.name] = "features"


def pick_backbone(names: list[str], help: str, where: Any = None) -> str:
    """A backbone, picked below the split in the sidebar unless it belongs to a part of the page."""
    choices = {name: title_of(name) for name in names}
    setting = draw.BACKBONE.with_(kind="choice", choices=choices, default=names[0], help=help, advanced=True)
    return pick(setting, where or side("backbone"))


# Of a box in which names are found by typing: Enter takes the first match, not all of them, and every choice is shown.
BY_TYPING: dict[str, Any] = {"filter_mode": "contains", "select_all": False, "wrap": True}


def pick_methods(default: Sequence[str], help: str | None = None) -> list[str]:
    """Names of few-shot methods, several of them."""
    titles = {name: method.title for name, method in METHODS.items()}
    links.several_of(titles, "methods", default)
    return st.multiselect(
        "Methods",
        list(titles),
        format_func=titles.__getitem__,
        key="methods",
        placeholder="Choose methods",
        help=help,
        **BY_TYPING,
    )


def pick_sampler(
    dataset: Dataset, default: str, distance: str = str(DISTANCE.default), suffix: str = "", more: str = ""
) -> str:
    """Picks a sampler, of those that the dataset supports with this distance; `more` ends the title."""
    possible = draw.possible_samplers(dataset, distance)
    setting = SAMPLER.with_(
        title=f"{SAMPLER.title}{more}",
        choices={name: SAMPLERS[name].title for name in possible},
        default=default if default in possible else possible[0],
    )
    descriptions = "\n\n".join(f"**{SAMPLERS[name].title}**: {SAMPLERS[name].description}" for name in possible)
    return pick(setting, key=f"sampler{suffix}", help=descriptions)


def pick_sampler_settings(
    sampler: str,
    n_classes: int,
    distance: str = str(DISTANCE.default),
    *,
    where: Callable[[str], Any] = lambda name: st,
    sliders: bool = False,
    suffix: str = "",
    more: str = "",
    of: tuple[Dataset, str] | None = None,
    **defaults: Value,
) -> dict[str, Value]:
    """The sampler's own settings, by name; those of other samplers leave the link. `where` places them by name.

    of  the dataset and split that are drawn from: alpha then suits their number of classes, and settings that need
        what the dataset lacks are not drawn
    """
    values: dict[str, Value] = {}
    for setting in SAMPLERS[sampler].settings:
        if of and not draw.supports_setting(of[0], sampler, setting.name):
            continue
        about = ""
        if setting.name in ("n_way", "min_way"):
            setting = setting.with_(high=min(setting.high, n_classes), default=min(setting.default, n_classes))
        if setting.name == "alpha":
            kind, about = DISTANCES[distance], distance
            step = 0.001 if kind.alpha_most <= 2 else 0.1
            own = {"n_way": values["n_way"]} if values.get("n_way") else {}
            fitted = caching.cached_call(draw.fitted_alpha, *of, distance, keep=64, **own) if of else None
            start = fitted.alpha if fitted else kind.alpha
            setting = setting.with_(default=start, typical=max(kind.alpha_most, 2 * start), step=step)
        setting = setting.with_(title=f"{setting.title}{more}", default=defaults.get(setting.name, setting.default))
        values[setting.name] = pick(
            setting,
            where(setting.name),
            key=f"{setting.name}{suffix}",
            as_slider=sliders,
            about=about,
        )
        if setting.name == "alpha" and fitted and values["alpha"] == fitted.alpha != fitted.usual_alpha:
            where(setting.name).caption(escape(fitted.describe()), help=escape(fitted.details))
    links.drop_from_link(
        *(f"{name}{suffix}" for name in draw.SAMPLER_SETTINGS if name not in values and name not in draw.IMAGE_SETTINGS)
    )
    return values


def say_fit(fitted: fitting.Fit, used: Mapping[str, Value]) -> None:
    """A caption that says which ways, shots and queries in use are lowered defaults."""
    if message := fitted.describe(used):
        st.caption(escape(with_setting_titles(message)))


def show_answer(sentence: str, more: str, accuracy: float, n_shot: int) -> None:
    """Shows the answer of a page; near 100% with a button to 1 support image, where tasks differ more.

    accuracy  mean, from 0 to 1
    n_shot    of the page's setting; 1 if the page cannot lower it
    """
    if n_shot <= 1 or not accuracy > shots.CEILING:
        shell.answer(sentence, more)
        return
    with shell.answer_box():
        text, button = st.columns([17, 3], vertical_alignment="center", gap="small")
        text.markdown(f"**{sentence}** {more}")
        button.button(
            "Use 1 shot",
            key="fewer_shots",
            on_click=st.session_state.update,
            args=({N_SHOT.name: 1},),
            width="stretch",
            help=f"Mean accuracy is above {shots.CEILING:.0%}, so methods and tasks hardly differ. With fewer support "
            "images they differ more.",
        )


def pick_images(sampler: str, places: Iterator[Any], fits: fitting.Fit) -> dict[str, Value]:
    """Images per class, by name, for a sampler of classes; others have settings of their own."""
    if SAMPLERS[sampler].samples_images:
        release_images(sampler)
        return {}
    settings = fitting.with_defaults({s.name: s for s in (N_SHOT, N_QUERY)}, fits)
    return {name: pick(setting, next(places)) for name, setting in settings.items()}


def release_images(sampler: str) -> None:
    """Drops numbers of images from the link that are not settings of this sampler."""
    own = {setting.name for setting in SAMPLERS[sampler].settings}
    links.drop_from_link(*(name for name in draw.IMAGE_SETTINGS if name not in own))


def pick_groups(dataset: Dataset, where: Any = st) -> dict[str, Value]:
    """Whether duplicates and frames stay on one side of a task; {} if the dataset has no groups."""
    return {"keep_groups": pick(draw.KEEP_GROUPS, where)} if dataset.image_groups() is not None else {}


def pairs() -> Iterator[Any]:
    """Columns for small widgets, two in a row."""
    while True:
        yield from st.columns(2, gap="xsmall", vertical_alignment="bottom")


def multiselect_classes(label: str, names: Sequence[str], key: str, where: Any = st, **more: Any) -> list[str]:
    """Classes picked by their short names, in alphabetical order; returns their whole names, as links have them."""
    short = dict(zip(names, short_names(names), strict=True))
    return where.multiselect(
        label,
        sorted(names, key=lambda name: short[name].lower()),
        key=key,
        format_func=lambda name: short.get(name, name),
        **BY_TYPING,
        **more,
    )


def pick_class(setting: Setting, names: Sequence[str], nothing: str, where: Any = st) -> str:
    """The whole name of a class picked by its short name, by a click or by the link; "" for none."""
    short = sorted(zip(short_names(names), names, strict=True), key=lambda pair: pair[0].lower())
    return str(pick(setting.with_(choices={"": nothing, **{name: title for title, name in short}}), where))


def class_names(dataset: Dataset, split: str) -> list[str]:
    """Names of a split's classes, made different where two classes share one."""
    return dataset.distinct_names(dataset.split_class_ids(split))


def link_to_evaluate(dataset: Dataset, testbed: str, label: str = "Evaluate on this testbed") -> None:
    """Shows a link to the page Evaluate with this saved testbed chosen."""
    query = link(dataset, tasks_from="saved", testbeds=testbed)
    page_link("evaluate", label, query)
