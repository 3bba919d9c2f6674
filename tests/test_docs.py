"""The documentation: its commands parse, its Python runs, its links lead somewhere, and the site asks no network."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import torch

from fsviz import methods, studies
from fsviz.cli import build_parser
from fsviz.difficulty.measures import MEASURES
from fsviz.sampling import SAMPLERS
from fsviz.taxonomy import DISTANCES
from fsviz.ui.parts.page import HOME, PAGES
from tests.sources import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
GENERATED = runpy.run_path(str(ROOT / "scripts" / "docs_reference.py"))["PAGES"]
BY_HAND = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if str(path.relative_to(ROOT / "docs")) not in GENERATED),
]
PROGRAMS = {
    "fsviz",
    "python3",
    "docker",
    "pip",
    "ray",
    "embedding-atlas",
    ".",
    "export",
    ".venv/bin/ruff",
    ".venv/bin/mkdocs",
}

(COMMANDS,) = (action.choices or () for action in build_parser()._actions if action.dest == "command")


def blocks(path: Path, language: str) -> list[str]:
    """The code blocks of a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)


def shell_commands(path: Path) -> Iterator[str]:
    """Every command of the shell blocks of a page, comments removed, and every `fsviz ...` in its sentences."""
    for block in blocks(path, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.join(shlex.split(line, comments=True))
            words = re.sub(r"^eval '\$\((.*)\)'$", r"\1", words)
            yield from (part.strip() for part in re.split(r" '?&&'? ", words) if part.strip())
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for code in re.findall(r"`(fsviz [^`]+)`", prose):
        if "COMMAND" not in code and "..." not in code:
            yield code


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_parser_takes_every_command(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in shell_commands(path):
        words = shlex.split(command)
        while re.fullmatch(r"[A-Z_]+=.*", words[0]):
            del words[0]
        if words[0] == "fsviz" and len(words) == 2 and not words[1].startswith("-"):
            assert words[1] in COMMANDS, command  # a command named in a sentence needs no arguments
        elif words[0] == "fsviz" and len(words) > 2:
            try:
                build_parser().parse_args(words[1:])
            except SystemExit:
                pytest.fail(f"{command}: {capsys.readouterr().err}")
        else:
            assert words[0] in PROGRAMS or words[0].startswith(".venv/bin/"), command


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "how-to" / "methods.md"])
def test_the_method_on_the_page_is_nearest_class_mean(path: Path) -> None:
    (block,) = blocks(path, "python")
    names: dict = {}
    exec(compile(block, str(path), "exec"), names)
    generator = torch.Generator().manual_seed(0)
    support, query = torch.randn(4, 5, 3, 16, generator=generator), torch.randn(4, 20, 16, generator=generator)
    masks = torch.ones(4, 5, 3, dtype=torch.bool), torch.ones(4, 20, dtype=torch.bool)
    masks[0][1, 2, 1] = False
    inputs = (support, masks[0], query, masks[1])
    scores = names["predict"](*inputs)
    assert scores.shape == (4, 5, 20)
    assert scores.argmax(1).equal(methods.get("protonet").load()(*inputs).argmax(1))


def test_every_python_block_is_run_by_a_test() -> None:
    pages = {str(path.relative_to(ROOT)) for path in BY_HAND if blocks(path, "python")}
    assert pages == {"README.md", "docs/how-to/methods.md", "docs/how-to/notebook.md"}  # the last one: test_api.py


def test_readme_is_a_front_door() -> None:
    assert len(README.splitlines()) <= 130


def test_readme_lists_pages_as_their_records_do() -> None:
    """A new page needs no row: the reference of the site has all of them."""
    rows = [line for line in README.splitlines() if re.match(r"\| [^|]*\(`/", line)]
    expected = [
        f"| {page.label} (`/{'' if page.slug == HOME else page.slug}`) | {page.group} | {page.question} |"
        for page in PAGES.values()
    ]
    assert rows and rows == [row for row in expected if row in rows]


def test_the_two_commands_of_readme(tmp_path: Path) -> None:
    start, test, *_ = [block.strip() for block in blocks(ROOT / "README.md", "sh")]
    setup = "python3 -m venv .venv && .venv/bin/pip install -r {} -e . && "
    assert start == setup.format("requirements.txt") + ".venv/bin/streamlit run app.py"
    assert test == setup.format("requirements-dev.txt") + ".venv/bin/python -m pytest"
    steps = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert all(step.replace("install", "install -q") in steps for step in test.split(" && "))
    venv.create(tmp_path / "env", with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "env" / "bin" / "python")]
    (site,) = (tmp_path / "env").glob("lib/*/site-packages")
    (site / "tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    install = [*pip, "install", "--no-deps", "--no-index", "--no-build-isolation", "-e", str(ROOT)]
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path)
    command = [str(tmp_path / "env" / "bin" / "fsviz"), "datasets", "--json"]
    out = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert '"demo"' in out


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_of_the_project(path: Path) -> None:
    """Pages of the reference that are generated have no file: only the index of the reference links to them."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if not urlsplit(target).scheme and path != ROOT / "docs" / "reference" / "index.md":
            assert (path.parent / target.partition("#")[0]).exists(), target


def test_the_table_of_benchmarks_has_them_all() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    names = {path.stem for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_")}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == names


class Requests(HTMLParser):
    """The addresses that a browser asks for when it opens a page; links that a reader may follow are none."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("src", "srcset", "data", "poster") + (("href",) if tag == "link" else ())
        self.addresses += [value for name, value in attrs if name in names and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as a reader of README builds it; a warning fails."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_no_page_of_the_site_asks_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        reader = Requests()
        reader.feed(page.read_text(encoding="utf-8"))
        assert reader.addresses
        for address in reader.addresses:
            parts = urlsplit(address)
            assert parts.scheme in ("", "data") and not parts.netloc, f"{page.name}: {address}"
            if not parts.scheme and page.name != "404.html":
                assert (page.parent / unquote(parts.path)).exists(), f"{page.name}: {address}"
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")) == []


def test_the_reference_has_everything_that_is_declared(site: Path) -> None:
    def content(name: str) -> str:
        return (site / "reference" / f"{name}.html").read_text(encoding="utf-8")

    for page, expected in {
        "commands": [f"fsviz {name}" for name in COMMANDS],
        "methods": [f"<code>{name}</code>" for name in methods.METHODS],
        "measures": [f"<code>{name}</code>" for name in MEASURES],
        "samplers": [f"<code>{name}</code>" for name in (*SAMPLERS, *DISTANCES)],
        "settings": studies.names(),
        "pages": [page.label for page in PAGES.values()],
    }.items():
        assert [words for words in expected if words not in content(page)] == [], page
    formulas = re.findall(r"<math.*?</math>", content("measures") + content("samplers"), re.S)
    assert len(formulas) > len(MEASURES) and not any("\\" in formula for formula in formulas)


@pytest.mark.browser
def test_the_site_opens_from_the_disk_and_can_be_searched(site: Path) -> None:
    from tests.browser.conftest import CHROMIUM, FLAGS

    if not CHROMIUM:
        pytest.skip("no Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        tab = browser.new_page()
        tab.set_default_timeout(60_000)
        addresses: list[str] = []
        tab.on("request", lambda request: addresses.append(request.url))
        tab.goto((site / "index.html").as_uri())
        tab.locator("input[name=query]").press_sequentially("coarsity")
        tab.locator(".md-search-result__item").first.wait_for()
        browser.close()
    assert [address for address in addresses if urlsplit(address).scheme not in ("file", "data", "about")] == []
