"""The navigation: menus in the bar, a row with the pages of the current group, and a search over questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st
from markupsafe import Markup
from streamlit.runtime.pages_manager import PagesManager

from fsviz import text
from fsviz.datasets import labels
from fsviz.records import Dataset
from fsviz.ui.parts import access
from fsviz.ui.parts.page import HOME, PAGES, Page

SEARCH, _GOAL = "find_question", "_search_goal"
_BETWEEN = " · "
# An image has the fonts of the system only. Its colours are between those of the light and the dark theme.
_SIGN = """<g fill="none" stroke="#4675E8" stroke-width="2.6"><circle cx="8" cy="26" r="5"/>
<circle cx="23" cy="29" r="5"/><circle cx="17" cy="11" r="5"/>
<path d="M10 21.5 15 15.7M18.2 16 21.5 24.2"/></g>
"""
_ICON = f'<svg xmlns="http://www.w3.org/2000/svg" width="32" height="40" viewBox="0 0 32 40">{_SIGN}</svg>'
_LOGO = f"""
<svg xmlns="http://www.w3.org/2000/svg" width="250" height="40" viewBox="0 0 250 40">
<g font-family="system-ui, sans-serif">{_SIGN}
<text x="36" y="20" font-size="20" font-weight="700" fill="#4675E8">fsviz</text>
<text x="36" y="37" font-size="13" fill="#7B8794">why is a few-shot task hard?</text>
</g></svg>
"""


def take_over() -> None:
    """Makes app.py the router of every visitor: the first one would get pages without the bar otherwise."""
    PagesManager.uses_pages_directory = False


def show(dataset: Dataset | None) -> Any:
    """Draws the navigation bar and returns the page of the address; pages that the dataset leaves empty are dimmed.

    Every page is registered: any other would open as the first page, below "Page not found".
    """
    st.logo(_LOGO, size="large", icon_image=_ICON)
    menus: dict[str, list[Any]] = {}
    for page in PAGES.values():
        group = page.group if access.shows(page.slug) else ""  # a group without pages would stay in the bar
        menus.setdefault(group, []).append(_entry(page, dataset))
    return st.navigation(menus, position="top" if access.mine().look else "hidden")


def is_useful(page: Page) -> bool:
    """Whether the visitor sees the page and may do what it is for."""
    return access.shows(page.slug) and (not page.action or access.can(page.action))


def show_hidden(query: Mapping[str, Any]) -> None:
    """Shows, instead of a hidden page, that it is hidden, and links to the pages that are shown."""
    st.title("This page is hidden", anchor=False)
    pages = [page for page in PAGES.values() if is_useful(page)]
    st.info("Whoever started this server chose which pages it shows.", icon="🙈")
    with st.container(horizontal=True, gap="small"):
        for page in pages:
            st.page_link(page.file, label=page.label, icon=page.icon, query_params=query)


def first_shown() -> Page | None:
    """The first page of the bar that is shown, None if all of them are hidden."""
    return next((page for page in PAGES.values() if is_useful(page)), None)


def title_of(page: Page, dataset: Dataset | None) -> str:
    """The name of a page in the navigation, in grey if the dataset leaves it empty."""
    missing = _missing(page, dataset)
    return f":gray[{page.label} · no {missing}]" if missing else page.label


def help_of(page: Page, dataset: Dataset | None) -> str:
    """The question of a page, after the reason why the dataset leaves it empty."""
    missing = _missing(page, dataset)
    if missing and dataset is not None:
        title = text.escape_markdown(access.without_paths(dataset.title))
        return f"Needs {'a taxonomy' if missing == 'taxonomy' else missing}: {title} has none. {page.question}"
    return page.question


def show_siblings(here: Page, dataset: Dataset, query: Mapping[str, Any]) -> None:
    """The row below the bar: the pages of this group, with links that keep the dataset."""
    siblings = [page for page in PAGES.values() if page.group == here.group and is_useful(page)]
    if not here.group:
        return
    with st.container(horizontal=True, gap="xsmall", key="fsviz_siblings"):
        for page in siblings:
            label, help = title_of(page, dataset), help_of(page, dataset)
            st.page_link(page.file, label=label, help=help, query_params=query)


def show_search(query: Mapping[str, Any]) -> None:
    """A box over the questions and the keywords of all pages; a choice opens its page."""
    entries = _entries()
    st.selectbox(
        "Find a question",
        list(entries),
        index=None,
        placeholder="Find a question…",
        label_visibility="collapsed",
        key=SEARCH,
        filter_mode="contains",
        on_change=_choose,
    )
    goal = st.session_state.pop(_GOAL, None)
    if goal is not None:
        st.switch_page(PAGES[entries[goal]].file, query_params=query)


def style(here: Page) -> Markup:
    """The rule that marks the menu of the group of a page; the menus come after the pages in the bar itself."""
    pages = [page for page in PAGES.values() if is_useful(page) and not page.is_view]
    groups = list(dict.fromkeys(["", *(page.group for page in pages)]))
    n_in_bar = sum(not page.group for page in pages)
    return Markup(
        "<style>[data-testid='stTopNav'] > :nth-child({}) [data-testid='stTopNavSection'] "
        "{{font-weight: 600; background: color-mix(in srgb, currentColor 9%, transparent)}}</style>"
    ).format(n_in_bar + groups.index(here.group) if here.group in groups[1:] else 0)


def _entry(page: Page, dataset: Dataset | None) -> Any:
    is_hidden = page.is_view or not is_useful(page)
    return st.Page(
        page.file,
        title=title_of(page, dataset),
        icon=page.icon,
        help=help_of(page, dataset),
        default=page.slug == HOME,
        visibility="hidden" if is_hidden else "visible",
    )


def can_name_contexts(dataset: Dataset) -> bool:
    """Whether the visitor may name contexts of this dataset, of groups that look alike."""
    return labels.is_possible(dataset) and dataset.has_features and access.can("save")


def _missing(page: Page, dataset: Dataset | None) -> str:
    """The first requirement of this page that the dataset lacks; "" for none, or without a dataset."""
    if dataset is None:
        return ""
    present = {*dataset.capabilities, *(["contexts"] if can_name_contexts(dataset) else [])}
    return next((need for need in page.needs if need not in present), "")


def _entries() -> dict[str, str]:
    """The slug of a page by everything that the search finds it by."""
    pages = [page for page in PAGES.values() if is_useful(page)]
    questions = {f"{page.question}{_BETWEEN}{page.label}": page.slug for page in pages}
    return questions | {f"{word}{_BETWEEN}{page.label}": page.slug for page in pages for word in page.keywords}


def _choose() -> None:
    st.session_state[_GOAL] = st.session_state[SEARCH]
    st.session_state[SEARCH] = None
