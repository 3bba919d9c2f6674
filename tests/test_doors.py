"""Which room may import which: the house plan's table, kept by a test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "fsviz"

ENGINE = {"datasets", "features", "taxonomy", "sampling", "methods", "evaluation", "difficulty"}
# `errors` and `settings` are open to all and not listed. A room may always import itself.
DOORS: dict[str, set[str]] = {
    "errors": set(),
    "settings": set(),
    "records": set(),
    "numerics": set(),
    "workspace": set(),
    "datasets": {"records", "workspace"},
    "features": {"datasets", "records", "workspace"},
    "taxonomy": {"records"},
    "sampling": {"records", "numerics", "workspace"},
    "methods": {"records", "numerics"},
    "evaluation": {"methods", "records", "numerics"},
    "difficulty": {"methods", "records", "numerics"},
    "figures": {"records"},
    "reports": {"records"},
    "studies": ENGINE | {"records", "numerics", "workspace"},
    "jobs": {"studies", "records", "workspace"},
    "ui": {"jobs", "studies", "figures", "reports", "records", "workspace", "datasets", "features", "taxonomy"}
    | {"methods", "sampling"},
    "cli": ENGINE | {"studies", "jobs", "reports", "records", "numerics", "workspace"},
}
STREAMLIT_ROOMS = {"ui"}
NO_DISK = {"records", "settings", "numerics", "methods", "figures"}


def imports_of(path: Path) -> set[str]:
    """Every module a file imports anywhere, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "fsviz":
                found |= {f"fsviz.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


FILES = sorted(p for p in HOUSE.rglob("*.py") if p.name != "__main__.py" and p != HOUSE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_a_room_uses_only_its_doors(path: Path) -> None:
    room = room_of(path)
    assert room in DOORS, f"{room} is not in the house plan"
    used = {m.split(".")[1] for m in imports_of(path) if m.startswith("fsviz.")}
    assert used - {room, "errors", "settings"} <= DOORS[room]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(HOUSE)))
def test_only_ui_knows_streamlit(path: Path) -> None:
    if room_of(path) not in STREAMLIT_ROOMS:
        assert not any(m.split(".")[0] == "streamlit" for m in imports_of(path))


@pytest.mark.parametrize("page", sorted([ROOT / "app.py", *(ROOT / "pages").glob("*.py")]), ids=lambda p: p.name)
def test_a_page_imports_only_the_ui_room(page: Path) -> None:
    used = {m for m in imports_of(page) if not m.startswith("__future__")}
    assert all(m.split(".")[0] in {"fsviz", "streamlit"} for m in used), used
    assert all(m.startswith("fsviz.ui") or m == "fsviz" for m in used if m.startswith("fsviz")), used


def test_rooms_without_disk_open_no_files() -> None:
    for path in FILES:
        if room_of(path) in NO_DISK:
            calls = {
                node.func.id
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert "open" not in calls, path


def test_importing_fsviz_and_its_command_line_is_light() -> None:
    code = (
        "import sys, fsviz, fsviz.cli; fsviz.cli.build_parser();"
        "print([m for m in ('torch', 'streamlit', 'torchvision', 'plotly', 'numba', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "[]"
