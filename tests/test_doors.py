"""Imports allowed between rooms: the table of the house plan, kept by a test."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sources import ROOT, near, nodes, parsed

HOUSE = ROOT / "fsviz"

ENGINE = {"datasets", "features", "taxonomy", "sampling", "methods", "evaluation", "difficulty", "splits", "training"}
COMPUTE = ENGINE | {"tasks", "user", "records", "numerics", "workspace"}
# `errors`, `settings`, `shipped`, `tables` and `text` are open to all and not listed. A room may always import itself.
DOORS: dict[str, set[str]] = {
    "errors": set(),
    "settings": set(),
    "shipped": set(),
    "tables": set(),
    "text": set(),
    "records": set(),
    "numerics": set(),
    "workspace": set(),
    "sharing": set(),
    "datasets": {"records", "workspace"},
    "features": {"datasets", "records", "workspace", "user"},
    "taxonomy": {"records"},
    "sampling": {"records", "numerics", "workspace"},
    "methods": {"records", "numerics"},
    "evaluation": {"methods", "records", "numerics", "user"},
    "difficulty": {"methods", "records", "numerics"},
    "splits": {"records", "numerics"},
    "training": {"features"},
    "tasks": ENGINE | {"records", "workspace"},
    "user": ENGINE | {"records", "workspace"},
    "figures": {"records", "methods", "difficulty"},
    "studies": COMPUTE,
    "analyses": COMPUTE | {"studies"},
    "jobs": {"studies", "records", "workspace"},
    "exports": COMPUTE | {"studies"},
    "reports": {"records", "datasets", "features", "difficulty", "figures", "studies", "analyses", "tasks"},
    "ui": {"jobs", "studies", "analyses", "tasks", "user", "figures", "reports", "records", "workspace", "datasets"}
    | {"features", "taxonomy", "methods", "sampling", "difficulty", "training", "sharing"},
    "api": COMPUTE | {"studies", "analyses", "jobs", "exports", "figures"},
    "cli": COMPUTE | {"studies", "analyses", "jobs", "exports", "reports", "sharing", "api"},
}
STREAMLIT_ROOMS = {"ui"}
NO_DISK = {"records", "settings", "tables", "numerics", "methods", "splits", "training", "figures"}


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module a file imports anywhere, also inside functions."""
    return frozenset(imported(nodes(path)))


def imported(lines: Iterable[ast.AST]) -> Iterator[str]:
    """The modules that these lines import, those that are taken from a folder ("from fsviz.ui.pages import runs") too.

    They are whole names: the linter lets no "from . import runs" pass.
    """
    for node in lines:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if is_module(node.module, alias.name))


@cache
def is_module(folder: str, name: str) -> bool:
    """Whether a name that is taken from a folder of ours is a module in it, rather than something it defines."""
    place = ROOT.joinpath(*folder.split("."), name)
    return place.is_dir() or place.with_name(f"{name}.py").is_file()


def room_of(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def without_empty(result: Iterable[tuple[Path, set[str]]]) -> dict[str, set[str]]:
    """Matches per file, without the files that have none."""
    return {near(path): matches for path, matches in result if matches}


FILES = sorted(p for p in HOUSE.rglob("*.py") if p.name != "__main__.py" and p != HOUSE / "__init__.py")


def test_every_room_is_in_the_house_plan() -> None:
    assert {room_of(path) for path in FILES} == set(DOORS)


def test_a_room_uses_only_its_doors() -> None:
    def other_rooms(path: Path) -> set[str]:
        used = {m.split(".")[1] for m in imports_of(path) if m.startswith("fsviz.")}
        return used - {room_of(path), "errors", "settings", "shipped", "tables", "text"} - DOORS[room_of(path)]

    assert without_empty((path, other_rooms(path)) for path in FILES) == {}


def test_pages_and_figures_read_of_difficulty_only_what_is_declared() -> None:
    objectives = {"fsviz.difficulty", "fsviz.difficulty.objectives"}
    open_ = {"ui": objectives | {"fsviz.difficulty.measures"}, "figures": objectives}
    result = [
        (path, {m for m in imports_of(path) if m.startswith("fsviz.difficulty")} - declared)
        for room, declared in open_.items()
        for path in (HOUSE / room).rglob("*.py")
    ]
    assert result and without_empty(result) == {}


def test_the_engine_knows_of_user_only_their_code() -> None:
    result = [
        (path, {m for m in imports_of(path) if m.startswith("fsviz.user")} - {"fsviz.user", "fsviz.user.code"})
        for room in sorted(ENGINE)
        for path in (HOUSE / room).rglob("*.py")
    ]
    assert result and without_empty(result) == {}


def test_only_ui_knows_streamlit() -> None:
    knows = [path for path in FILES if any(m.split(".")[0] == "streamlit" for m in imports_of(path))]
    assert {room_of(path) for path in knows} == STREAMLIT_ROOMS, list(map(near, knows))


def test_a_page_imports_only_the_ui_room() -> None:
    def other_imports(page: Path) -> set[str]:
        used = {m for m in imports_of(page) if not m.startswith("__future__")}
        return {m for m in used if m.split(".")[0] != "streamlit" and m != "fsviz" and not m.startswith("fsviz.ui")}

    result = [(page, other_imports(page)) for page in (ROOT / "app.py", *(ROOT / "pages").glob("*.py"))]
    assert len(result) > 1 and without_empty(result) == {}


def test_no_page_imports_another_page() -> None:
    pages = HOUSE / "ui" / "pages"

    def other_imports(path: Path) -> set[str]:
        own = f"fsviz.ui.pages.{path.relative_to(pages).parts[0].removesuffix('.py')}"
        used = {m for m in imports_of(path) if m.startswith("fsviz.ui.pages.")}
        return {m for m in used if m != own and not m.startswith(f"{own}.")}

    result = [(path, other_imports(path)) for path in pages.rglob("*.py")]
    assert result and without_empty(result) == {}


@pytest.mark.parametrize(
    "line",
    [
        "import fsviz.ui.pages.runs",
        "from fsviz.ui.pages import runs",
        "from fsviz.ui.pages import gallery, runs as other",
        "from fsviz.ui.pages.runs import show",
        "def show():\n    from fsviz.ui.pages import runs",
    ],
)
def test_importing_a_page_is_seen(line: str) -> None:
    assert "fsviz.ui.pages.runs" in set(imported(ast.walk(ast.parse(line))))


def test_what_a_module_defines_is_no_module() -> None:
    line = "from fsviz.difficulty import MEASURES, measures\nfrom fsviz import ui"
    result = {"fsviz", "fsviz.ui", "fsviz.difficulty", "fsviz.difficulty.measures"}
    assert set(imported(ast.walk(ast.parse(line)))) == result


def test_no_study_uses_the_private_helpers_of_another() -> None:
    result = [(path, private_helpers(path)) for path in (HOUSE / "studies").rglob("*.py")]
    assert result and without_empty(result) == {}


def private_helpers(path: Path) -> set[str]:
    """Names with an underscore that a study takes from another."""
    tree = parsed(path)
    modules, used = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fsviz.studies"):
            names = [(alias.name, alias.asname or alias.name) for alias in node.names]
            used |= {name for name, _ in names if name.startswith("_")}
            modules |= {called for _, called in names} if node.module == "fsviz.studies" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            used |= {node.attr} if node.attr.startswith("_") else set()
    return used


DISK_CALLS = {"open", "mkdir", "unlink", "rename", "glob", "rglob", "iterdir", "exists", "is_file"} | {
    f"{verb}_{kind}"
    for verb in ("read", "write", "to", "scan")
    for kind in ("text", "bytes", "csv", "parquet", "json", "pickle", "table", "excel", "hdf", "feather")
}
DISK_MODULES = {"os", "io", "shutil", "tempfile", "sqlite3", "zipfile", "h5py", "pickle"}


def disk_uses(tree: ast.Module) -> set[str]:
    """Calls and imports by which a module would touch the disk, whatever object they are called on."""
    values = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            owner = getattr(getattr(node.func, "value", None), "id", "")
            if name in DISK_CALLS or (
                owner in ("np", "numpy", "torch") and name in ("load", "save", "savez", "memmap")
            ):
                values.add(name)
        elif isinstance(node, ast.Import):
            values |= {alias.name for alias in node.names if alias.name.split(".")[0] in DISK_MODULES}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in DISK_MODULES:
            values.add(node.module)
    return values


def test_rooms_without_disk_touch_no_files() -> None:
    result = [(path, disk_uses(parsed(path))) for path in FILES if room_of(path) in NO_DISK]
    assert result and without_empty(result) == {}


@pytest.mark.parametrize(
    "line",
    ["open('x')", "Path('x').read_text()", "np.load('x')", "table.to_csv('x')", "import os", "from shutil import move"],
)
def test_touching_the_disk_is_seen(line: str) -> None:
    assert disk_uses(ast.parse(line))


def test_importing_fsviz_and_its_command_line_is_light() -> None:
    code = (
        "import sys, fsviz, fsviz.cli; fsviz.cli.build_parser();"
        "print([m for m in ('torch', 'streamlit', 'torchvision', 'plotly', 'numba', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "[]"
