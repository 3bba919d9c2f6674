"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

# Several test processes share the cores: each computes on one (must stand before torch is imported).
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What Python compiles is kept, also where the environment says otherwise: the tests start some hundred processes, and
# pytest rewrites every module of tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

MAIN = sys.modules["__main__"]
# Folders whose modules share one process, the longest first: what a page shows first is computed once for all of them,
# and there is one server and one browser, which has compiled Streamlit's scripts before.
TOGETHER = [Path(__file__).parent / folder for folder in ("browser", "ui")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """A module runs in one process, and so does a folder of modules that share more than time; whoever asks for another
    way than `--dist loadfile` gets it."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    together = [f"{folder.relative_to(config.rootpath).as_posix()}/" for folder in TOGETHER]

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in together if nodeid.startswith(folder)), super()._split_scope(nodeid))

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs long tests first, and tests that wait for a browser or a cluster next to those that compute."""

    def place(item: pytest.Item) -> int:
        together = [item.path.is_relative_to(folder) for folder in TOGETHER]
        return together.index(True) if any(together) else len(TOGETHER) + (item.path.stem != "test_cluster")

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Freezes imported and collected objects, which stay until the end, and collects garbage less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20)


@pytest.fixture(scope="session", autouse=True)
def installed_components() -> Iterator[None]:
    """Every AppTest reads the metadata of all installed packages in search of components: most of the time that a page
    takes, and the same answer every time. And it asks a thousand times a second whether the page has run. And every
    page asks who is looking: nobody does, which a mock of a browser takes long to say."""
    from streamlit.components.v2 import manifest_scanner
    from streamlit.runtime import Runtime
    from streamlit.testing.v1 import app_test, local_script_runner

    until_it_has_run = local_script_runner.require_widgets_deltas

    def waiting(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
        if runner._script_thread is not None:
            runner._script_thread.join(timeout)
        until_it_has_run(runner, timeout)

    def runtime(spec: type[Runtime]) -> MagicMock:
        output = MagicMock(spec=spec)
        output.get_client = lambda session_id: None
        return output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        patch.setattr(local_script_runner, "require_widgets_deltas", waiting)
        patch.setattr(app_test, "MagicMock", runtime)
        yield


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """Streamlit's AppTest puts its page in the place of `__main__`, which processes started later would run again."""
    sys.modules["__main__"] = MAIN
    yield
    sys.modules["__main__"] = MAIN


class Disk:
    """A small disk of its own in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, size: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.path)]
        if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("mounting a small disk needs root")

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.path)], check=True)

    def fill(self, leave: int = 0) -> None:
        """Writes until the disk has about `leave` bytes left."""
        remaining = shutil.disk_usage(self.path).free - leave
        with open(self.path / "ballast", "wb", buffering=0) as file:
            try:
                while remaining > 0:
                    remaining -= file.write(b"\0" * min(remaining, 1 << 16))
            except OSError:
                pass

    def empty(self) -> None:
        os.unlink(self.path / "ballast")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk that is not mounted yet, at an empty folder."""
    disk = Disk(tmp_path / "disk")
    disk.path.mkdir()
    yield disk
    if os.path.ismount(disk.path):
        subprocess.run(["umount", "-l", str(disk.path)], check=True)
