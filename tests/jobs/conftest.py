from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fsviz import jobs
from fsviz.studies import RUNNABLE

STUDY = "tests.jobs.studies_for_tests"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace in which the study `numbers` is known, to this process and to its workers."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setenv("FSVIZ_STUDIES", f"numbers={STUDY}")
    monkeypatch.setitem(RUNNABLE, "numbers", STUDY)
    yield tmp_path / "ws"
    for run in jobs.list_runs():
        if run.active:
            jobs.cancel(run.id)


@pytest.fixture
def small_disk(workspace: Path) -> Callable[[str], None]:
    """Puts the workspace on a disk of its own of two megabytes; call it with mount options to change them."""
    workspace.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(workspace)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield lambda options: subprocess.run(["mount", "-o", f"remount,{options}", str(workspace)], check=True)
    subprocess.run(["mount", "-o", "remount,rw", str(workspace)], check=True)
    for run in jobs.list_runs():  # a worker would keep the disk busy
        if run.active:
            jobs.cancel(run.id)
    subprocess.run(["umount", "-l", str(workspace)], check=True)


@pytest.fixture
def numbers(workspace: Path, tmp_path: Path) -> Callable[..., dict]:
    """Specs of the study `numbers`; every computed chunk leaves a line in its trace file."""

    def spec(n: int = 5, trace: str = "trace", **more) -> dict:
        return {"study": "numbers", "n": n, "trace": str(tmp_path / trace), **more}

    return spec
