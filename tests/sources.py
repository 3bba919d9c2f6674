"""The code of the project as trees, for tests that read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(path: Path) -> Iterator[ast.AST]:
    """All that is in a file."""
    return ast.walk(parsed(path))


def near(path: Path) -> str:
    """Its name as messages of tests have it."""
    return str(path.relative_to(ROOT))
