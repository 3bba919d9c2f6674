"""No value reaches a page unescaped: read in the code of all pages, so that new code cannot forget."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.sources import ROOT, parsed
from tests.ui import escape_checker

FILES = sorted([*(ROOT / "fsviz" / "ui").rglob("*.py"), ROOT / "app.py", *(ROOT / "pages").glob("*.py")])


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: parsed(path) for path in FILES}


def test_every_value_in_a_text_is_escaped_or_a_number(trees) -> None:
    assert escape_checker.read(trees).problems() == []


@pytest.mark.parametrize(
    "line",
    [
        "st.markdown(f'**{dataset.title}**')",
        "st.caption('of ' + run.message)",
        "st.error('%s' % error)",
        "st.info('{}'.format(name))",
        "st.warning(str(error))",
        "column.metric(name, f'{x:.1f}')",
        "st.metric('Best', '1', top['name'])",
        "st.button('Go', help=f'{name}')",
        "st.page_link('app.py', label=name)",
        "more = {'key': name, 'help': name}\n    st.checkbox('x', **more)",
        "bar.progress(0.5, f'{message}: {done:,}')",
        "st.segmented_control('Which', names)",
        "st.pills('Which', names, format_func=str)",
        "st.tabs([name, 'other'])",
        "st.toast(' and '.join(names))",
        "words = f'{n} tasks'\n    st.caption(words)",
        "words = 'a'\n    words += name\n    st.caption(words)",
        "for word in names:\n        st.caption(word)",
        "def say(word):\n        st.caption(word)\n    say(name)",
        "def say(word):\n        st.caption(word)\n    run(progress=say)",
        "def label():\n        return f'{name}'\n    st.caption(label())",
        "a, b = label(name)\n    st.caption(a)",
    ],
)
def test_a_missing_escape_is_reported(line: str) -> None:
    assert len(escape_checker.read_text(f"import streamlit as st\ndef page(name, names):\n    {line}").problems()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "st.markdown(f'**{escape(dataset.title)}** has {n:,} images, {x:.1f} %')",
        "st.caption('one' if name else 'two')",
        "st.metric(TITLES[name], f'{x:+.{digits}f}', help=study.DISTANCES[name].title)",
        "for label, value in (('one', name), ('two', names)):\n        st.metric(label, f'{value:d}')",
        "for page in PAGES:\n        st.page_link(page.file, label=page.label)",
        "st.caption(', '.join(escape(n) for n in names) or 'none')",
        "st.segmented_control('Which', names, format_func=escape)",
        "st.segmented_control('Which', ('one', 'two'), format_func={'one': '1'}.get)",
        "def say(word):\n        st.caption(word)\n    say(escape(name))",
        "st.info(f'Run {code(name)}')",
        "st.selectbox('Which', names)",
        "datasets.title(name)",
        "def draw(page: Page):\n        st.title(page.question)\n    draw(name)",
    ],
)
def test_safe_values_are_not_reported(line: str) -> None:
    code = f"import streamlit as st\nfrom fsviz import datasets\ndef page(name, names):\n    {line}"
    assert escape_checker.read_text(code).problems() == []


def test_pages_take_escape_from_the_shell(trees) -> None:
    """The shell's `escape` also hides paths of the server from visitors."""
    direct = [path.name for path, tree in trees.items() if "escape_markdown" in imported(tree, "fsviz.text")]
    assert direct == []


def imported(tree: ast.Module, module: str) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module)
    return {alias.name for node in imports for alias in node.names}


def test_html_is_made_by_markupsafe_or_a_template(trees) -> None:
    """st.html gets a constant or Markup; Markup is made of constants, which escape the values they format."""
    makers = {
        node.name
        for tree in [*trees.values(), parsed(ROOT / "fsviz" / "reports" / "html.py")]
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) == "Markup"
    }
    n_seen = 0
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name == "Markup":
                assert isinstance(node.args[0], ast.Constant), f"{path}:{node.lineno}"
            elif name == "st.html":
                n_seen += 1
                (body,) = node.args
                from_maker = isinstance(body, ast.Call) and ast.unparse(body.func).rpartition(".")[2] in makers
                is_markup = ast.unparse(body).startswith("Markup(")
                is_constant = isinstance(body, ast.Constant) or ast.unparse(body).isupper()
                assert from_maker or is_markup or is_constant, f"{path}:{node.lineno}: {ast.unparse(body)}"
            assert not any(k.arg == "unsafe_allow_html" for k in node.keywords), f"{path}:{node.lineno}"
    assert n_seen > 3
