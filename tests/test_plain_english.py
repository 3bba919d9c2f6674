"""Plain English: the phrases and names that crept in before stay out. A reminder, not a style police."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import ROOT

PHRASES = re.compile(r"\b(rightly|(is|are) told|at hand|beside)\b", re.I)  # correctly, reports, available, next to
QUESTIONS = re.compile(r"(What|How|Which|Where)\b")  # a docstring says what the function returns or does
VAGUE = re.compile(
    "_?(found|told|said|asked|known|given|one|others?|those|shown|made|kept|taken|seen|what|whose|chosen|drawn|meant"
    "|named|wanted|left)_?"
)
SIDES = {"right", "top", "width"}  # next to one of these, `left` is a side

PYTHON = [p for d in ("fsviz", "pages", "scripts", "benchmarks", "tests") for p in sorted((ROOT / d).rglob("*.py"))]
TEXTS = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "fsviz").rglob("*.html"))]


def to_read(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path != Path(__file__):
            yield name, path


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that assignments, loops, arguments, functions and classes bind, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def test_no_phrase_of_the_old_dialect() -> None:
    assert [
        f"{name}:{number}: {line.strip()}"
        for name, path in to_read([*PYTHON, *TEXTS])
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PHRASES.search(line)
    ] == []


def test_docstrings_say_what_a_function_returns_or_does() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    assert [
        f"{name}: {(ast.get_docstring(node) or '').splitlines()[0]}"
        for name, path in to_read(PYTHON)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, documented) and QUESTIONS.match(ast.get_docstring(node) or "")
    ] == []


def test_names_are_nouns_or_verbs() -> None:
    vague = []
    for name, path in to_read(PYTHON):
        names = list(bound_names(ast.parse(path.read_text(encoding="utf-8"))))
        fine = {"left"} if SIDES & {word for word, _ in names} else set()
        vague += [f"{name}:{line}: {word}" for word, line in names if VAGUE.fullmatch(word) and word not in fine]
    assert vague == []


@pytest.mark.parametrize(
    "source", ["found = 1", "def f(told): ...", "self._kept = 1", "def chosen(): ...", "[y for one in y]"]
)
def test_the_check_finds_vague_names(source: str) -> None:
    assert any(VAGUE.fullmatch(word) for word, _ in bound_names(ast.parse(source)))
