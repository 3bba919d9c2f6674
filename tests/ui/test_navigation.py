"""The bar, the row of the group, the search and the places of the sidebar."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz import sharing
from fsviz.ui.parts import navigation
from fsviz.ui.parts.page import GROUPS, PAGES
from tests.ui.pages import APP, open_link


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))


def row(app: AppTest) -> dict[str, str]:
    """Labels and query strings of the links in the row."""
    slugs = {page.slug for page in PAGES.values()}
    (siblings,) = [b for b in app.main.children.values() if _key(b) == "fsviz_siblings"] or [None]
    links = siblings.get("page_link") if siblings else []
    assert all(link.proto.page in slugs for link in links)
    return {link.proto.label: link.proto.query_string for link in links}


def _key(block: object) -> str:
    return getattr(getattr(block, "proto", None), "id", "").rpartition("-")[2]


@pytest.fixture
def menus(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Arguments of st.navigation, run after run."""
    calls: list[dict] = []
    show = navigation.st.navigation

    def note(groups: dict, position: str) -> object:
        calls.append({"groups": groups, "position": position})
        return show(groups, position=position)

    monkeypatch.setattr(navigation.st, "navigation", note)
    return calls


def test_the_bar_has_every_page_in_its_group(menus: list[dict]) -> None:
    open_link("classes", "demo")
    groups = menus[-1]["groups"]
    assert tuple(groups) == GROUPS and menus[-1]["position"] == "top"
    for group, entries in groups.items():
        records = [page for page in PAGES.values() if page.group == group]
        assert [entry.title for entry in entries] == [page.label for page in records]  # the demo lacks nothing
        assert [entry._visibility == "hidden" for entry in entries] == [page.is_view for page in records]


def test_what_a_dataset_leaves_empty_is_dimmed_and_says_why(menus: list[dict]) -> None:
    open_link("sample_tasks", "cifar100")
    entries = {entry.url_path: entry for group in menus[-1]["groups"].values() for entry in group}
    assert entries["causes"].title == ":gray[Causes · no features]"
    assert entries["contexts"].title == ":gray[Contexts · no contexts]"
    assert entries["confusion"].title == "Confusion"  # works by meaning
    help_text = navigation.help_of(PAGES["causes"], navigation_dataset("cifar100"))
    assert help_text == "Needs features: CIFAR-100 has none. What makes these tasks hard?"


def navigation_dataset(name: str) -> object:
    from fsviz import datasets

    return datasets.load(name)


def test_a_visitor_without_rights_sees_no_entry_but_the_page_is_there(
    menus: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sharing.Sharing(look=True).to_environment().items():
        monkeypatch.setenv(name, value)
    app = open_link("add_images", "demo")
    entries = {entry.url_path: entry for group in menus[-1]["groups"].values() for entry in group}
    assert entries["add_images"]._visibility == "hidden"
    assert app.title[0].value == PAGES["add_images"].question
    assert not any("Add images" in option for option in app.selectbox(key=navigation.SEARCH).options)


@pytest.fixture
def few_pages(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A server that was started with --pages."""
    pages = ("learn", "images", "classes")
    for name, value in sharing.Sharing(pages=pages).to_environment().items():
        monkeypatch.setenv(name, value)
    return pages


def test_hidden_pages_are_in_no_menu_row_or_search(menus: list[dict], few_pages: tuple[str, ...]) -> None:
    app = open_link("classes", "demo")
    entries = {entry.url_path: entry for group in menus[-1]["groups"].values() for entry in group}
    assert {slug for slug, entry in entries.items() if entry._visibility == "visible"} == set(few_pages)
    assert [name for name, group in menus[-1]["groups"].items() if group] == ["", "Data"]
    options = app.selectbox(key=navigation.SEARCH).options
    assert options and {option.rpartition(" · ")[2] for option in options} == {PAGES[slug].label for slug in few_pages}
    linked = {link.proto.page for link in app.main.get("page_link")}
    assert linked <= set(few_pages) and {"images", "classes"} <= linked


@pytest.mark.parametrize("slug", ["add_images", "causes", "image_map", "runs"])
def test_a_link_to_a_hidden_page_says_so_and_leads_to_the_others(slug: str, few_pages: tuple[str, ...]) -> None:
    app = open_link(slug, "demo", classroom="true")
    assert [title.value for title in app.title] == ["This page is hidden"] and len(app.info) == 1
    links = [link.proto for link in app.main.get("page_link")]
    assert {link.page for link in links} == set(few_pages) and all("classroom=true" in li.query_string for li in links)
    assert not app.selectbox and not app.get("plotly_chart")


def test_the_address_of_the_server_opens_the_first_page_that_is_shown(few_pages: tuple[str, ...]) -> None:
    app = open_link("overview", "demo")
    assert app.title[0].value == PAGES["learn"].question


def test_full_use_of_a_shared_server_sees_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = sharing.Sharing(True, sharing.hash_password("correct horse battery"), pages=("learn",))
    for name, value in rule.to_environment().items():
        monkeypatch.setenv(name, value)
    assert sharing.from_environment(rule.to_environment()) == rule
    app = open_link("classes", "demo")
    assert app.title[0].value == "This page is hidden"
    app.text_input(key="unlock_password").set_value("correct horse battery")
    next(button for button in app.button if button.label == "Unlock").click().run()
    assert app.title[0].value == PAGES["classes"].question


def test_a_locked_server_has_no_bar(menus: list[dict], monkeypatch: pytest.MonkeyPatch) -> None:
    rule = sharing.Sharing(password=sharing.hash_password("correct horse battery"))
    for name, value in rule.to_environment().items():
        monkeypatch.setenv(name, value)
    open_link("classes", "cifar100")
    assert menus[-1]["position"] == "hidden"


@pytest.mark.parametrize("slug", PAGES)
def test_every_page_has_its_row_and_opens_through_the_router(slug: str) -> None:
    app = open_link(slug, "dtd", fine=False)
    assert app.title[0].value == PAGES[slug].question
    siblings = [page for page in PAGES.values() if page.group and page.group == PAGES[slug].group]
    links = [link.proto for link in app.main.get("page_link")[: len(siblings)]]
    assert [link.page for link in links] == [page.slug for page in siblings]
    assert all("dataset=dtd" in link.query_string for link in links)


@pytest.mark.parametrize("word", ["hubness · Causes", f"{PAGES['causes'].question} · Causes"])
def test_the_search_leads_to_a_page_and_keeps_the_dataset(word: str) -> None:
    app = open_link("runs", "dtd")
    app.selectbox(key=navigation.SEARCH).set_value(word).run()
    assert not app.exception and app.title[0].value == PAGES["causes"].question
    assert app.query_params["dataset"] in ("dtd", ["dtd"])
    assert app.selectbox(key=navigation.SEARCH).value is None


def test_the_places_of_the_sidebar_keep_their_order() -> None:
    for slug in ("causes", "predict_accuracy", "train_test_distance", "confusion", "evaluate"):
        app = open_link(slug, "demo")
        labels = [w.label for kind in (app.sidebar.selectbox,) for w in kind]
        assert labels[0] == "Dataset"
        expected = [label for label in ("Dataset", "Split", "Backbone") if label in labels]
        assert labels[: len(expected)] == expected, slug
        assert app.sidebar.toggle[-1].label == "Classroom mode"


def test_an_answer_stands_below_the_lead_and_the_last_one_holds() -> None:
    def page() -> None:
        import streamlit as st

        from fsviz.ui.pages import learn
        from fsviz.ui.parts import shell

        def show(dataset: object) -> None:
            st.markdown("figure")
            shell.answer("At first.", "Perhaps.")
            shell.answer("In the end.", "±1.")

        from dataclasses import replace

        shell.run(replace(learn.PAGE, show=show))

    app = AppTest.from_function(page, default_timeout=600).run()
    assert not app.exception
    assert [element.value for element in app.markdown] == ["**In the end.** ±1.", "figure"]


def test_the_app_is_the_router() -> None:
    assert "navigation.take_over()" in APP.read_text()
