"""What every page shares."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.ui.parts import shell
from tests.sources import nodes
from tests.ui.test_gallery_pages import run


def test_the_sidebar_leads_to_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("2_Taxonomy.py", dataset="cifar100")
    assert [link.proto.label for link in app.sidebar.get("page_link")] == [page.label for page in shell.PAGES]
    assert all((shell.ROOT / page.file).is_file() for page in shell.PAGES)


def test_every_page_has_a_number_of_its_own_and_the_sidebar_leads_to_each_once() -> None:
    numbers = [int(Path(page.file).name.partition("_")[0]) for page in shell.PAGES[1:]]
    assert len(set(numbers)) == len(numbers)
    assert {page.file for page in shell.PAGES[1:]} == {f"pages/{p.name}" for p in (shell.ROOT / "pages").glob("*.py")}


def test_settings_in_errors_have_the_titles_of_the_page() -> None:
    told = shell.in_titles("Class n_ways has 3 images. Lower n_shot, max_way or n_query.")
    assert told == "Class n_ways has 3 images. Lower “Support images”, “Most classes” or “Query images”."


@pytest.mark.parametrize("dataset", ["df20", "dtd", "tierd_imagenet"])
@pytest.mark.parametrize("file", [page.file for page in shell.PAGES], ids=lambda file: Path(file).stem)
def test_a_page_opens_on_class_tables_and_stays_up_on_nonsense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, dataset: str
) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = AppTest.from_file(str(shell.ROOT / "app.py"), default_timeout=600)
    if file != "app.py":
        app.switch_page(file)
    app.query_params["dataset"] = dataset
    app.query_params["n_way"] = "many" if dataset == "tierd_imagenet" else "5"
    few = {"n_tasks": "20", "n_shot": "1", "n_query": "5"}
    for name, value in few.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception and app.title[0].value.endswith("?")
    if dataset == "tierd_imagenet":
        said = "\n".join(element.value for kind in (app.error, app.warning, app.info) for element in kind)
        assert "There is no dataset named" in said and "tiered" in said


def test_a_link_to_a_dataset_that_is_gone_says_which_is_shown_instead(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    app = run("2_Taxonomy.py", dataset="cifar100")
    app.query_params["dataset"] = "gone"
    app.run()
    assert app.sidebar.selectbox[0].value == "cifar100"
    assert any("Shown is 'cifar100'." in element.value for element in app.warning)


def test_what_runs_again_without_its_page_turns_errors_into_sentences() -> None:
    """A fragment or dialog is run outside `shell.page`: without `sentences` an error there is a traceback."""
    found = {}
    for path in (shell.ROOT / "fsviz" / "ui").rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if any(mark.startswith(("st.fragment", "st.dialog")) for mark in marks):
                    found[f"{path.name}:{node.name}"] = marks[-1].endswith("sentences()")
    assert len(found) >= 7 and all(found.values()), [name for name, kept in found.items() if not kept]


def test_a_page_opened_by_its_own_address_is_told_where_the_server_is() -> None:
    from fsviz.ui.parts import server

    names = [Path(page.file).stem.partition("_")[2] for page in shell.PAGES[1:]]
    assert all(server._is_page(f"/{name}") for name in names)
    assert not any(map(server._is_page, ("/", "/Gallery/_stcore/health", "/media/Gallery", "/static/Gallery.js")))
    page = server._page()
    assert page.index("BACKEND_BASE_URL") < page.index('type="module"')  # known before the app asks for it
