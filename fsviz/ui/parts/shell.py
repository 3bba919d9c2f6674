"""Parts of every page: set-up, navigation, the dataset picker, and one sentence instead of a traceback."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import StopException

from fsviz import datasets, features, text
from fsviz.datasets import published_images
from fsviz.datasets.catalog import ENTRIES
from fsviz.errors import FsvizError, UnknownName
from fsviz.features.backbones import DEFAULT
from fsviz.records import Dataset
from fsviz.sampling import SAMPLERS
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS
from fsviz.tasks import draw, task_ids
from fsviz.ui.parts import about, access, copy_link, export, links, navigation, scroll_state, selections
from fsviz.ui.parts.page import HOME, PAGES, Page
from fsviz.ui.parts.style import CLASSROOM_STYLE, PAGE_STYLE

DEFAULT_DATASET = "demo"
CLASSROOM = links.CLASSROOM
_PLACES = "_places"  # in the session state: where the sidebar and the answer of the page are drawn
SPLIT = draw.SPLIT.with_(
    help="A named set of classes. Few-shot methods train and test on different classes.",
    kind="choice",
    default="test",
)

OFFERS: dict[str, tuple[str, str]] = {
    "taxonomy": (
        "a taxonomy: how the classes relate",
        "Map its classes to WordNet, or give a child,parent CSV, when you add your own copy on the page Add images.",
    ),
    "contexts": (
        "contexts: the background of each image",
        "Name them on the page Contexts, or give a CSV with a column 'context' when you add images.",
    ),
    "attributes": (
        "attributes: brightness, blur, style, … per image",
        "Measure them with `fsviz attributes NAME`, or give a CSV with one column per attribute when you add images.",
    ),
    "images": (
        "images: pixels to show",
        "Add your own copy on the page Add images, or with `fsviz add NAME PATH`.",
    ),
    "features": (
        "features: one vector per image, from a backbone",
        "No images yet: attach your copy, or import features.",
    ),
}


def navigate() -> Any:
    """Draws the bar and returns the page that the address names, to be run."""
    dataset = None
    with suppress(FsvizError):  # the page says what is wrong with a dataset
        dataset = load_dataset(_dataset_name(datasets.names())) if access.mine().look else None
    return navigation.show(dataset)


def run(page: Page) -> None:
    """Draws a page: what all pages share, and what it shows. An FsvizError becomes one sentence on the page."""
    st.set_page_config(page_title=f"fsviz · {page.question}", page_icon=page.icon, layout="wide")
    st.html(PAGE_STYLE)
    st.html(navigation.style(page))
    access.check_access()
    if not access.shows(page.slug):
        _leave_hidden(page)
    is_other = links.is_another(page.slug)
    links.load_from_link(page.slug)
    export.begin(page.question)
    requested = dict(st.query_params)
    _arrive_in_class()
    _reserve_places()
    message = None
    with _dataset_in_link(), errors_on_page():
        dataset = pick_dataset()
        if is_other:
            selections.arrive(dataset, page.takes)
        _draw_foot()
        _draw_tools(page, dataset)
        navigation.show_siblings(page, dataset, link(dataset))
        st.title(page.question, anchor=False)
        st.caption(lead(page, dataset))
        st.session_state[_PLACES]["answer"] = st.container(key="fsviz_answer").empty()
        if message := st.session_state.get("_notice"):
            st.warning(escape(message), icon="⚠️")
        with access.compute_slot():
            page.show(dataset)
        if ignored := ", ".join(map(escape, links.ignored(requested))):
            st.toast(f"Ignored from the link: {ignored} does not apply here.", icon="⚠️")
    if message and st.session_state.get("_notice") == message:  # not yet if the page began again before its end
        st.session_state.pop("_notice")


@contextmanager
def _dataset_in_link() -> Iterator[None]:
    """Writes the dataset into the link when the page is drawn.

    A browser that gets it together with the new page adds it to the address of the old one: Back loses a setting.
    """
    try:
        yield
    except StopException:
        _write_dataset()
        raise
    _write_dataset()


def _write_dataset() -> None:
    name = st.session_state.get("_dataset", DEFAULT_DATASET)
    if st.query_params.get("dataset", DEFAULT_DATASET) != name:
        st.query_params["dataset"] = name


def _leave_hidden(page: Page) -> None:
    """Shows that a page is hidden; the address of the server leads on to the first page that is not."""
    query = {key: st.query_params[key] for key in ("dataset", CLASSROOM) if key in st.query_params}
    first = navigation.first_shown()
    if page.slug == HOME and first is not None:
        st.switch_page(first.file, query_params=query)
    navigation.show_hidden(query)
    with st.sidebar:
        access.render_login()
    st.stop()


def side(place: str = "page") -> Any:
    """A container in the sidebar: "dataset", "split", "backbone", "page" for the other settings of a page, or "foot".

    They keep this order, whatever the order in which a page draws.
    """
    return st.session_state.get(_PLACES, {}).get(place, st.sidebar)


def answer(sentence: str, more: str = "") -> None:
    """Shows the answer to the question of the page, below its lead; a second answer replaces it.

    more  an addition such as an interval or a baseline
    A class thinks first: in classroom mode the answer is in a closed section.
    """
    place = st.session_state.get(_PLACES, {}).get("answer", st)
    if classroom():
        place = place.expander("Show the answer")
    place.markdown(f"**{sentence}** {more}")


def answer_box() -> Any:
    """The place of the answer as a container, for an answer with images or a button; it replaces an earlier answer."""
    return st.session_state[_PLACES]["answer"].container()


def _reserve_places() -> None:
    with st.sidebar:
        data, page, foot = (st.container(key=f"side_{name}", gap="small") for name in ("data", "page", "foot"))
    with data:
        dataset, split, backbone = (st.container(gap=None) for _ in range(3))
    places = {"dataset": dataset, "split": split, "backbone": backbone, "page": page, "foot": foot}
    st.session_state[_PLACES] = places


def _draw_foot() -> None:
    with side("foot"):
        _pick_classroom()
        access.render_login()
        scroll_state.remember()


def _draw_tools(page: Page, dataset: Dataset) -> None:
    """Draws Search, About, Copy link and Export next to the menus of the bar."""
    with st.container(horizontal=True, gap="xsmall", key="fsviz_tools"):
        if not classroom():
            _search(link(dataset))
        if page.explains:
            _about(page)
        copy_link.button()
        _export()


def lead(page: Page, dataset: Dataset) -> str:
    """The line below the title of a page, for this dataset."""
    return page.lead.replace("{dataset}", f"**{escape(dataset.title)}**")


def classroom() -> bool:
    """Whether classroom mode is on: larger text, no advanced settings."""
    return bool(st.session_state.get("_classroom", False))


def _arrive_in_class() -> None:
    """Reads classroom mode from the link; without it, the mode of the last page stays and is written to the link."""
    if CLASSROOM in st.query_params:
        st.session_state["_classroom"] = st.query_params[CLASSROOM].lower() in ("true", "1")
    _write_classroom()


def _pick_classroom() -> None:
    st.session_state["classroom_switch"] = classroom()
    st.toggle(
        "Classroom mode",
        key="classroom_switch",
        on_change=_switch_classroom,
        help="Larger text and fewer controls for a projector. Overview becomes a guessing game.",
    )
    if classroom():
        st.html(CLASSROOM_STYLE)


def _switch_classroom() -> None:
    st.session_state["_classroom"] = st.session_state["classroom_switch"]
    _write_classroom()


def _write_classroom() -> None:
    if classroom():
        st.query_params[CLASSROOM] = "true"
    elif CLASSROOM in st.query_params:
        del st.query_params[CLASSROOM]


def command_popover(command: str, label: str = "Command line") -> None:
    """Shows the command with the same results in a popover; hidden in classroom mode.

    A popover draws its content when it is opened: a block of code loads a highlighter of 1.5 MB.
    """
    export.recipe(command)
    if not classroom():
        with st.popover(label):
            st.code(command, language="bash", wrap_lines=True)


@contextmanager
def errors_on_page() -> Iterator[None]:
    """Shows an FsvizError as one sentence; for fragments and dialogs, which rerun without their page."""
    try:
        yield
    except FsvizError as error:
        st.error(escape(with_setting_titles(error)), icon="⚠️")


@st.fragment
@errors_on_page()
def _search(query: Mapping[str, Any]) -> None:
    navigation.show_search(query)


@st.fragment
@errors_on_page()
def _export() -> None:
    export.button(classroom())


@st.fragment
@errors_on_page()
def _about(page: Page) -> None:
    """Shows the quantities of the page in a popover, which sends nothing until it is opened (formulas have fonts)."""
    key = f"about_{page.slug}"
    with st.popover("About", icon="ℹ️", key=key, on_change="rerun"):
        if st.session_state.get(key):
            about.show(page)


def useful_pages() -> list[Page]:
    """The pages that the visitor can use, in the order of the navigation."""
    return [page for page in PAGES.values() if navigation.is_useful(page)]


def page_link(
    slug: str,
    label: str = "",
    query: Mapping[str, Any] | None = None,
    *,
    icon: str = "",
    help: str | None = None,
    where: Any = st,
) -> None:
    """A link to another page, with the label and the icon of its record unless others are given.

    query  what the link says: `link` keeps the dataset
    """
    if not access.shows(slug):
        return
    icon, label = icon or PAGES[slug].icon, label or PAGES[slug].label
    where.page_link(PAGES[slug].file, label=label, icon=icon, help=help, query_params=query)


def pick_dataset() -> Dataset:
    """The dataset picker in the sidebar, kept in the URL (?dataset=NAME) and across pages."""
    names = known_names()
    requested = st.query_params.get("dataset") or _dataset_of_task(names)
    name = _dataset_name(names)
    if requested is not None and requested not in names:
        notice(str(UnknownName("dataset", requested, names)) + f" Showing {name!r} instead.")
        del st.query_params["dataset"]
    st.session_state["dataset_picker"] = name
    with side("dataset"):
        name = st.selectbox(
            "Dataset",
            names,
            format_func=dataset_title,
            key="dataset_picker",
            on_change=_picked,
            help="The demo has images and features. Published datasets come without images: add your own copy to use "
            "every page.",
        )
    st.session_state["_dataset"] = name
    try:
        return load_dataset(name)
    except FsvizError as error:
        st.error(f"{escape(str(error))} Showing the demo instead.", icon="⚠️")
        return load_dataset(DEFAULT_DATASET)


def _dataset_name(names: Sequence[str]) -> str:
    """The dataset of the link, else the one picked on another page, else the demo."""
    requested = st.query_params.get("dataset") or _dataset_of_task(names)
    return str(next(name for name in (requested, st.session_state.get("_dataset"), DEFAULT_DATASET) if name in names))


def _dataset_of_task(names: Sequence[str]) -> str | None:
    """The dataset of the link's task, if it exists here: such a link need not repeat it."""
    try:
        name = task_ids.dataset_of(st.query_params.get(task_ids.TASK_NAME.name, ""))
    except FsvizError:
        return None
    return name if name in names else None


def known_names() -> list[str]:
    """The names of all datasets; only built-in ones, with an error, if the workspace cannot be read."""
    try:
        return datasets.names()
    except FsvizError as error:
        st.error(f"{escape(str(error))} Until this is fixed, only built-in datasets are available.", icon="⚠️")
        return datasets.shipped_names()


def _picked() -> None:
    st.query_params["dataset"] = st.session_state["dataset_picker"]


def choose_dataset(name: str) -> None:
    """Selects a dataset from the next run on, on every page."""
    st.session_state["_dataset"] = st.query_params["dataset"] = name


def pick_split(
    dataset: Dataset, *, key: str = "split", where: Any = None, default: str = "test", titles: Mapping[str, str] = {}
) -> str:
    """A split of the dataset, kept in the URL; defaults to test if there is one.

    titles  what the options are called, if not by their names
    """
    options = [*dataset.splits, *([] if "all" in dataset.splits else ["all"])]
    start = default if default in options else options[0]
    links.value_of(SPLIT.with_(choices={name: name for name in options}, default=start), key)
    return (where or side("split")).selectbox(
        SPLIT.title, options, key=key, help=SPLIT.help, format_func=lambda name: titles.get(name, name)
    )


def require(dataset: Dataset, *offers: str) -> None:
    """Stops the page with an explanation and the next steps when the dataset lacks one of these."""
    for offer in offers:
        if offer in dataset.capabilities:
            continue
        name, _, meaning = OFFERS[offer][0].removeprefix("a ").partition(": ")
        how = missing_hint(dataset, offer)
        reasons = "".join(f" {escape(note)}" for note in dataset.notes if note.startswith(f"No {offer}:"))
        st.info(
            f"**{escape(dataset.title)} has no {name}** ({meaning}). This page needs them.{reasons} {how}"
            if name != "taxonomy"
            else f"**{escape(dataset.title)} has no taxonomy** ({meaning}). This page needs one.{reasons} {how}",
            icon="🧩",
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            link_to_fix(dataset, offer)
            page_link(HOME, "Dataset details", link(dataset))
            offer_demo(dataset)
        st.stop()


def known_backbones(dataset: Dataset) -> list[str]:
    """The backbones that have features; without any, the page stops with the next steps."""
    require(dataset, "features")
    return features.required(dataset)


def link_to_fix(dataset: Dataset, offer: str) -> None:
    """Shows a link to the section of the page Add images that adds what the dataset lacks."""
    if offer == "features" and dataset.has_pixels:
        link_to_add_images("Extract features", link(dataset, do="Extract features"))
    else:
        link_to_add_images()


def offer_demo(dataset: Dataset) -> None:
    """Shows a button that opens the same page on the demo."""
    if dataset.name != DEFAULT_DATASET and st.button("Open the demo", icon="🎈"):
        choose_dataset(DEFAULT_DATASET)
        st.rerun()


def missing_hint(dataset: Dataset, offer: str) -> str:
    """One sentence on how to add what the dataset lacks."""
    if offer == "features" and dataset.has_pixels:
        command = f"fsviz extract {shlex.quote(dataset.name)} --backbone {DEFAULT}"
        return f"Extract them on the page Add images, or with {text.code(command)}."
    if offer in ("images", "features") and dataset.name in ENTRIES:
        attach = text.code(published_images.command(dataset.name))
        return f"Attach your copy of the images on the page Add images, or with {attach}."
    if offer == "attributes" and dataset.has_pixels:
        command = f"fsviz attributes {shlex.quote(dataset.name)}"
        return f"Measure them with {text.code(command)}, or give a CSV when you add images."
    if offer == "attributes" and dataset.name in ENTRIES:
        return "They are measured when you attach images and extract features."
    return OFFERS[offer][1]


def link_to_add_images(label: str = "Add images", query: Mapping[str, str] | None = None) -> None:
    """Shows a link to the page Add images, for visitors who may add some."""
    if access.can("save"):
        page_link("add_images", label, query)
    access.show_denied("save")


def link(dataset: Dataset, **more: Any) -> Mapping[str, Any]:
    """Query parameters that keep the dataset and classroom mode on the way to another page."""
    return {"dataset": dataset.name, **_in_class(), **more}


def _in_class() -> dict[str, str]:
    return {CLASSROOM: "true"} if classroom() else {}


def dataset_title(name: str) -> str:
    """The readable name of a dataset, its own name when it cannot be loaded."""
    if name in datasets.shipped_names():
        return datasets.title(name)
    return _dataset_title(name, datasets.stamp(name))


@st.cache_data(show_spinner=False, max_entries=64)
def _dataset_title(name: str, stamp: str) -> str:
    try:
        return datasets.title(name)
    except FsvizError:
        return name


def load_dataset(name: str) -> Dataset:
    """The dataset, read again only when something of it changed in the workspace."""
    return _load_dataset(name, datasets.stamp(name))


@st.cache_resource(show_spinner=False, max_entries=32)
def _load_dataset(name: str, stamp: str) -> Dataset:
    return datasets.load(name)


def escape(value: Any) -> str:
    """A value escaped for a text of a page, without paths for visitors of a shared server."""
    return text.escape_markdown(access.without_paths(str(value)))


def responsive_columns(key: str, spec: Any, stack: str = "stack", **more: Any) -> list[Any]:
    """Columns that stand below each other in a narrow window ("stack"), or two by two ("pairs")."""
    return st.container(key=f"{stack}_{key}").columns(spec, **more)


_TITLES = {s.name: s.title for s in (N_SHOT, N_QUERY, N_TASKS, *(s for m in SAMPLERS.values() for s in m.settings))}
_NAMED = re.compile(rf"\b({'|'.join(name for name in _TITLES if '_' in name)})\b")


def with_setting_titles(error: Any) -> str:
    """The message of an error, with settings called by their titles as on pages; a terminal uses names."""
    return _NAMED.sub(lambda match: f"“{_TITLES[match[0]]}”", str(error))


notice = links.notice
