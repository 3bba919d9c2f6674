"""About this page: on every page, closed at first, with every symbol named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fsviz.analyses.class_splits import DIVERGENCES
from fsviz.difficulty.measures import MEASURES
from fsviz.taxonomy import DISTANCES
from fsviz.text import escape_markdown
from fsviz.ui.parts import about
from fsviz.ui.parts.page import PAGES, Page
from tests.ui.pages import APP

SHOWN = {quantity.title: quantity for page in PAGES.values() for quantity in about.of_page(page)}
# LaTeX that is no symbol: layout, operators, and e of the exponential function.
_TEXT = re.compile(r"\\text\{[^}]*\}|\\\\\[[^]]*\]")
_ACCENTED = re.compile(r"\\(?:hat|bar)\{(\w)\}")


def symbols_in(latex: str) -> set[str]:
    """The letters of a formula, without what stands below them: a letter below is a place, or a symbol elsewhere."""
    latex = _ACCENTED.sub(r"\1", _TEXT.sub("", latex)).replace("e^{-", "^{-")
    bare = re.sub(r"_(\{[^}]*\}|\w)", " ", latex)
    greek = {name for name in re.findall(r"\\([a-zA-Z]+)", bare) if name in about.GREEK}
    return greek | set(re.findall(r"[A-Za-z]", re.sub(r"\\[a-zA-Z]+", " ", bare)))


@pytest.mark.parametrize("title", SHOWN)
def test_every_symbol_of_a_formula_is_named(title: str) -> None:
    quantity = SHOWN[title]
    symbol_names = " ".join(line.partition(": ")[0] for line in quantity.symbols.split("; "))
    missing = [s for s in symbols_in(quantity.formula) if not re.search(rf"(?<![a-z]){s}(?![a-z])", symbol_names)]
    assert not missing, (quantity.formula, quantity.symbols)
    assert bool(quantity.formula) == bool(quantity.symbols) and len(quantity.description) > 40


def test_symbols_are_read_from_a_formula() -> None:
    assert symbols_in(r"\frac{1}{W} \sum_{i} D(c_i, \mu_a)^2 + \bar{q} e^{-\alpha}") == {
        "W",
        "D",
        "c",
        "mu",
        "q",
        "alpha",
    }


def test_symbols_are_written_as_in_the_formula() -> None:
    assert about.as_written("mu_c: the centre; a, b: classes") == r"$\mu_{c}$: the centre; $a$, $b$: classes"
    assert about.as_written("hat{y}_m, bar{a}: guesses") == r"$\hat{y}_{m}$, $\bar{a}$: guesses"


def test_everything_with_a_formula_is_explained_somewhere() -> None:
    declared = [m.formula for m in MEASURES.values()] + [d.formula for d in DISTANCES.values()]
    declared += [d.formula for d in DIVERGENCES.values()]
    assert set(declared) <= {quantity.formula for quantity in SHOWN.values()} and all(declared)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A page on a class table, where what follows the explanation is quick."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))

    def open_page(page: Page, at_once: bool) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=600).switch_page(page.file)
        app.query_params["dataset"] = "dtd"
        app.session_state[f"about_{page.slug}"] = at_once
        app.run()
        assert not app.exception
        return app

    return open_page


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_page_says_what_its_numbers_are(opened, page: Page) -> None:
    app = opened(page, True)
    section = app.get("popover")[0]
    section_text = " ".join(element.value for element in section.markdown)
    quantities = about.of_page(page)
    assert quantities and all(f"**{quantity.title}**" in section_text for quantity in quantities)
    assert len(section.latex) == sum(bool(quantity.formula) for quantity in quantities)
    if page.paper:
        assert section.markdown[0].value == f"Paper: {escape_markdown(page.paper)}"
        assert page.paper.partition(" ")[0] in " ".join(element.value for element in section.markdown[1:])


def test_nothing_of_it_is_sent_while_it_is_closed(opened) -> None:
    section = opened(PAGES["overview"], False).get("popover")[0]
    assert not section.markdown and not section.latex
