from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fsviz import jobs
from fsviz.studies import RUNNABLE

HERE = Path(__file__).parent


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace in which the study `numbers` is known, to this process and to its workers."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setenv("FSVIZ_STUDIES", "numbers=studies_for_tests")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setitem(RUNNABLE, "numbers", "studies_for_tests")
    yield tmp_path / "ws"
    for run in jobs.list_runs():
        if run.active:
            jobs.cancel(run.id)


@pytest.fixture
def numbers(workspace: Path, tmp_path: Path) -> Callable[..., dict]:
    """Specs of the study `numbers`; every computed chunk leaves a line in its trace file."""

    def spec(n: int = 5, trace: str = "trace", **more) -> dict:
        return {"study": "numbers", "n": n, "trace": str(tmp_path / trace), **more}

    return spec
