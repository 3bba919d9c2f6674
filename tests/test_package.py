"""The wheel in a new environment: its command, its data, its app; and that nothing is declared twice."""

from __future__ import annotations

import json
import os
import re
import signal
import site
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel alone; what fsviz depends on is looked up in the one that runs the tests."""
    base = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(base)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = base.glob("*.whl")
    venv.create(base / "env", with_pip=False)
    python = base / "env" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = (base / "env").glob("lib/*/site-packages")
    (packages / "tests.pth").write_text("\n".join(site.getsitepackages()))
    return base / "env"


def surroundings(env: Path) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"FSVIZ_HOME": str(env / "home")}


def run_fsviz(env: Path, *words: str, command: str = "fsviz") -> str:
    """Output of the installed command, far from any checkout."""
    words = (str(env / "bin" / command), *words)
    return subprocess.run(words, cwd=env, env=surroundings(env), check=True, capture_output=True, text=True).stdout


def test_the_command_alone_says_what_can_be_done(installed: Path) -> None:
    text = run_fsviz(installed)
    assert "fsviz app" in text and "python -m" not in text
    assert {"evaluate", "add", "hard"} <= {line.split()[0] for line in text.splitlines() if line.strip()}


def test_the_wheel_carries_its_data(installed: Path) -> None:
    names = {row["name"] for row in json.loads(run_fsviz(installed, "datasets", "--json"))["datasets"]}
    assert {"demo", "tiered_imagenet"} <= names
    tracked = subprocess.run(["git", "ls-files", "data"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    (files,) = installed.glob("lib/*/site-packages/fsviz/files")
    assert [name for name in tracked.stdout.split() if not (files / name).is_file()] == []


@pytest.fixture
def app(installed: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(installed / "bin" / "fsviz"), "app", "--no-browser", "--port", str(port)]
    with open(installed / "app.log", "wb") as log:
        server = subprocess.Popen(words, cwd=installed, env=surroundings(installed), stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}"
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=20)


def test_the_command_starts_the_app(installed: Path, app: str) -> None:
    for _ in range(300):
        try:
            with urlopen(f"{app}/_stcore/health", timeout=5) as answer:
                assert answer.read() == b"ok"
            break
        except OSError:
            time.sleep(0.2)
    else:
        pytest.fail((installed / "app.log").read_text())
    with urlopen(app, timeout=20) as page:
        assert b"<title>" in page.read()


def test_a_page_runs_from_the_installed_files(installed: Path) -> None:
    (files,) = installed.glob("lib/*/site-packages/fsviz/files")
    code = (
        f"import os; os.chdir({str(files)!r});"  # as the command does, for the settings of the server
        "from streamlit.testing.v1 import AppTest; import fsviz, json;"
        f"at = AppTest.from_file({str(files / 'app.py')!r}, default_timeout=300);"
        "at = at.switch_page('pages/classes.py').run();"
        "print(json.dumps([fsviz.__file__, [e.value for e in at.title], len(at.exception), len(at.error)]))"
    )
    out = run_fsviz(installed, "-c", code, command="python")
    where, titles, *problems = json.loads(out.splitlines()[-1])
    assert Path(where).is_relative_to(installed) and titles and problems == [0, 0]


def test_dependencies_are_declared_in_the_requirements_files_alone(installed: Path) -> None:
    (metadata,) = installed.glob("lib/*/site-packages/fsviz-*.dist-info/METADATA")
    lines = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist: ")]

    def names_in(text: str) -> set[str]:
        names = (re.match(r"[A-Za-z0-9_.-]+", line) for line in text.splitlines() if not line.startswith(("#", "-")))
        return {name[0].lower().replace("_", "-") for name in names if name}

    for extra, file in (
        ("", "requirements.txt"),
        ("dev", "requirements-dev.txt"),
        ("cluster", "requirements-cluster.txt"),
    ):
        of = [line for line in lines if ("extra ==" not in line if not extra else f"extra == '{extra}'" in line)]
        assert names_in("\n".join(line.removeprefix("Requires-Dist: ") for line in of)) == names_in(
            (ROOT / file).read_text()
        )
    assert "dependencies = [" not in (ROOT / "pyproject.toml").read_text()
