"""The shell of all pages: their records, errors as sentences, and invalid links."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.ui.parts import shell
from fsviz.ui.parts.page import GROUPS, HOME, PAGES
from tests.sources import ROOT, nodes
from tests.ui.test_gallery_pages import run


def test_a_page_is_a_file_and_the_module_of_its_name() -> None:
    modules = {path.stem for path in (ROOT / "fsviz/ui/pages").iterdir()} - {"__init__", "__pycache__"}
    assert set(PAGES) == modules == {path.stem for path in (ROOT / "pages").glob("*.py")}
    for slug, page in PAGES.items():
        lines = (ROOT / page.file).read_text().split("\n")
        assert page.slug == slug and lines == [
            f"from fsviz.ui.pages import {slug}",
            "from fsviz.ui.parts import shell",
            "",
            f"shell.run({slug}.PAGE)",
            "",
        ]


def test_records_say_what_a_page_needs_in_the_words_of_the_shell() -> None:
    pages = list(PAGES.values())
    assert next(iter(PAGES)) == HOME and {page.group for page in pages} == set(GROUPS)
    assert all(page.question.endswith("?") and set(page.needs) <= set(shell.OFFERS) for page in pages)
    for kind in ("label", "icon", "question", "lead"):
        assert len({getattr(page, kind) for page in pages}) == len(pages), kind
    assert [p.group for p in pages] == sorted((p.group for p in pages), key=GROUPS.index)
    assert len({(page.group, page.order) for page in pages}) == len(pages)


def test_links_name_pages_that_exist() -> None:
    slugs = {
        node.args[0].value
        for path in (ROOT / "fsviz" / "ui").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "page_link" and node.args
        if isinstance(node.args[0], ast.Constant)
    }
    assert len(slugs) > 8 and slugs <= set(PAGES)


def test_the_records_of_all_pages_are_read_without_torch() -> None:
    code = "import sys; from fsviz.ui.parts.page import PAGES; n = len(PAGES); assert n and 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_settings_in_errors_have_the_titles_of_the_page() -> None:
    message = shell.with_setting_titles("Class n_ways has 3 images. Lower n_shot, max_way or n_query.")
    assert message == "Class n_ways has 3 images. Lower “Support images”, “Most classes” or “Query images”."


@pytest.mark.parametrize("dataset", ["df20", "dtd", "tierd_imagenet"])
@pytest.mark.parametrize("slug", PAGES)
def test_a_page_opens_on_class_tables_and_stays_up_on_nonsense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slug: str, dataset: str
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).switch_page(PAGES[slug].file)
    app.query_params["dataset"] = dataset
    app.query_params["n_way"] = "many" if dataset == "tierd_imagenet" else "5"
    few = {"n_tasks": "20", "n_shot": "1", "n_query": "5"}
    for name, value in few.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception and app.title[0].value.endswith("?")
    if dataset == "tierd_imagenet":
        messages = "\n".join(element.value for kind in (app.error, app.warning, app.info) for element in kind)
        assert "Unknown dataset" in messages and "tiered" in messages


def test_a_link_to_a_dataset_that_is_gone_says_which_is_shown_instead(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("classes", dataset="cifar100")
    app.query_params["dataset"] = "gone"
    app.run()
    assert app.sidebar.selectbox[0].value == "cifar100"
    assert any("Showing 'cifar100' instead." in element.value for element in app.warning)


def test_what_runs_again_without_its_page_turns_errors_into_sentences() -> None:
    """A fragment or dialog is run outside `shell.run`: without `errors_on_page` an error there is a traceback."""
    fragments = {}
    for path in (ROOT / "fsviz" / "ui").rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if any(mark.startswith(("st.fragment", "st.dialog")) for mark in marks):
                    fragments[f"{path.name}:{node.name}"] = marks[-1].endswith("errors_on_page()")
    assert len(fragments) >= 7
    assert [name for name, is_guarded in fragments.items() if not is_guarded] == []


def test_a_page_opened_by_its_own_address_knows_the_server() -> None:
    from fsviz.ui.parts import server

    assert all(server._is_page(f"/{slug}") for slug in PAGES)
    assert not any(map(server._is_page, ("/", "/images/_stcore/health", "/media/images", "/static/images.js")))
    page = server._page()
    assert page.index("BACKEND_BASE_URL") < page.index('type="module"')  # known before the app asks for it
