"""The image's recipe, followed without an engine: the files it copies, started with its words, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from fsviz.cli import app, build_parser
from tests.browser.conftest import PATIENCE, ROOT, free_port, start_app
from tests.browser.test_sharing import visiting

STEPS = [
    (step.partition(" ")[0], step.partition(" ")[2])
    for step in (ROOT / "Dockerfile").read_text().splitlines()
    if step and not step.startswith("#")
]


def step(name: str) -> list[str]:
    return [rest for kind, rest in STEPS if kind == name]


def is_sent(path: str) -> bool:
    """Whether .dockerignore lets a file or folder through to the engine; the last rule that fits counts."""
    sent = True
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = rule.removeprefix("!")
        fits = (
            fnmatch(path, pattern) or path.startswith(f"{pattern}/") or fnmatch(f"/{path}", pattern.replace("**", "*"))
        )
        if rule and not rule.startswith("#") and fits:
            sent = rule.startswith("!")
    return sent


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Path:
    """A folder with exactly what the recipe copies into the image."""
    folder = tmp_path_factory.mktemp("image")
    for source, target in (line.split() for line in step("COPY")):
        assert is_sent(source), f".dockerignore keeps {source} from the engine"
        if target.startswith("/tmp/"):
            continue
        (folder / target).parent.mkdir(exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, folder / target)
    return folder


def test_the_image_is_for_looking_as_an_ordinary_user() -> None:
    kinds = [kind for kind, _ in STEPS]
    assert step("USER") == ["fsviz"] and "useradd --uid 1000" in step("RUN")[-1]
    assert kinds.index("USER") < kinds.index("ENTRYPOINT") and "RUN" not in kinds[kinds.index("USER") :]
    entry, flags = (json.loads(step(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    args = build_parser().parse_args([*entry[3:], *flags])
    assert args.address == "0.0.0.0" and str(args.port) == step("EXPOSE")[0]
    rule = app.rule_of(args)
    assert rule.look and not rule.password and rule.login is None


def test_no_secret_and_no_workspace_goes_to_the_engine() -> None:
    for path in (".git", ".fsviz", ".venv", ".streamlit/secrets.toml", "tests", "docs", "fsviz/__pycache__"):
        assert not is_sent(path), path


def test_what_is_copied_starts_and_writes_only_into_the_workspace(image: Path, tmp_path: Path) -> None:
    before = sorted(str(path) for path in image.rglob("*"))
    settings = dict(word.split("=", 1) for word in step("ENV")[0].split())
    settings = {name: value.replace("/tmp", str(tmp_path / "tmp")) for name, value in settings.items()}
    (tmp_path / "tmp").mkdir()
    words = ("fsviz", "app", "--address", "0.0.0.0", "--no-browser", *json.loads(step("CMD")[0]))
    port = free_port()
    settings["FSVIZ_HOME"] = str(tmp_path / "workspace")
    process, url = start_app(tmp_path / "workspace", tmp_path / "log.txt", *words, port=port, cwd=image, **settings)
    try:
        with visiting(url, "sample_tasks") as (_, page_text):  # compiles a loop, kept outside the image's folder
            assert "median coarsity" in page_text and "Read-only: no uploads" in page_text
        probe = json.loads(step("HEALTHCHECK")[0].partition("CMD ")[2])
        code = re.sub(r":8501/", f":{port}/", probe[2])
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "no_proxy": "*"})
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE / 1000)
    assert sorted(str(path) for path in image.rglob("*")) == before
