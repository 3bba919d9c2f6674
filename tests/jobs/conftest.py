from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fsviz import jobs
from fsviz.studies import OWN
from tests.conftest import Disk

STUDY = "tests.jobs.studies_for_tests"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace in which the study `numbers` is known, to this process and to its workers."""
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "ws"))
    monkeypatch.setenv("FSVIZ_STUDIES", f"numbers={STUDY}")
    monkeypatch.setitem(OWN, "numbers", STUDY)
    yield tmp_path / "ws"
    for run in jobs.list_runs():
        if run.active:
            jobs.cancel(run.id)


@pytest.fixture
def disk(small_disk, numbers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """The workspace of `numbers` on a disk of its own of two megabytes."""
    small_disk.mount("2m")
    monkeypatch.setenv("FSVIZ_HOME", str(small_disk.path))
    yield small_disk
    small_disk.remount("rw")
    for run in jobs.list_runs():  # a worker would keep the disk busy
        if run.active:
            jobs.cancel(run.id)


@pytest.fixture
def numbers(workspace: Path, tmp_path: Path) -> Callable[..., dict]:
    """Specs of the study `numbers`; every computed chunk leaves a line in its trace file."""

    def spec(n: int = 5, trace: str = "trace", **more) -> dict:
        return {"study": "numbers", "n": n, "trace": str(tmp_path / trace), **more}

    return spec
