"""A workspace that is read-only, full or too small: what is there is shown, deleting frees space, advice helps."""

from __future__ import annotations

import shutil

import pytest

from fsviz import jobs
from fsviz.cli import main
from fsviz.errors import WorkspaceError
from fsviz.jobs import locks, store
from tests.cli.calling import run_json
from tests.jobs.studies_for_tests import traced


def test_a_read_only_workspace_is_shown_and_nothing_is_written(numbers, disk, capsys) -> None:
    finished = jobs.run_in_foreground(numbers(n=2))
    store.create(numbers(n=2, trace="b"), jobs.prepare, store.QUEUED)
    damaged = jobs.run_in_foreground(numbers(n=1, trace="c"))
    (jobs.folder(damaged.id) / "spec.json").write_text("")
    before = sorted(str(p) for p in disk.path.rglob("*"))
    disk.remount("ro")
    listed = run_json(capsys, "runs")["runs"]
    assert sorted(run["state"] for run in listed) == ["damaged", "finished", "queued"]
    assert run_json(capsys, "runs", "show", finished.id)["state"] == "finished"
    assert jobs.results(finished.id) == finished.summary
    for command in ("datasets", "features", "clean"):
        assert main([command]) == 0
    capsys.readouterr()
    assert len(jobs.chunks(finished.id)[1]["values"]) == 1000
    for command in (["delete", finished.id], ["cancel", listed[1]["run"]]):
        assert main(["runs", *command]) == 2
        assert "Read-only file system" in capsys.readouterr().err
    with pytest.raises(WorkspaceError, match="Read-only file system"):
        jobs.submit(numbers(n=1))
    assert sorted(str(p) for p in disk.path.rglob("*")) == before


def test_deleting_a_run_frees_space_on_a_full_disk(numbers, disk, capsys) -> None:
    spec = numbers(n=40)
    runs = [jobs.run_in_foreground(numbers(n=20)), jobs.run_in_foreground(numbers(n=1))]
    disk.fill()
    assert shutil.disk_usage(disk.path).free < 4096
    assert len(run_json(capsys, "runs")["runs"]) == 2
    with pytest.raises(WorkspaceError, match="No space left"):
        jobs.run_in_foreground(spec)
    assert run_json(capsys, "runs", "delete", runs[0].id) == {"run": runs[0].id, "state": "deleted"}
    assert shutil.disk_usage(disk.path).free > 20 * 8000
    assert jobs.run_in_foreground(numbers(n=1, trace="after")).state == "finished"


def test_a_disk_that_fills_up_stops_a_run_and_room_lets_it_go_on(numbers, disk) -> None:
    whole = jobs.run_in_foreground(numbers(n=30, seed=2, trace="whole"))
    expected = [p.read_bytes() for p in sorted((jobs.folder(whole.id) / "chunks").iterdir())]
    spec = numbers(n=30, seed=2, unforeseen=True)
    disk.fill(leave=100_000)
    with pytest.raises(WorkspaceError, match="No space left on device"):
        jobs.run_in_foreground(spec)
    run = jobs.list_runs()[0]
    assert run.resumable and 0 < run.n_done < 30 and not locks.is_held(jobs.folder(run.id) / "lock")
    assert not list((jobs.folder(run.id) / "chunks").glob(".tmp-*"))
    disk.empty()
    assert jobs.resume_here(run.id).state == "finished"
    assert [p.read_bytes() for p in sorted((jobs.folder(run.id) / "chunks").iterdir())] == expected
    assert len(traced(spec)) == 31  # the chunk that did not fit was computed twice


def test_a_run_that_cannot_fit_is_refused_before_it_begins(numbers, disk, capsys) -> None:
    spec = numbers(n=1000)  # eight megabytes of numbers
    with pytest.raises(WorkspaceError, match=r"results of this run need 8 MB; 2 MB free in .* Run fsviz clean"):
        jobs.run_in_foreground(spec)
    assert traced(spec) == [] and jobs.list_runs() == []
    run = jobs.run_in_foreground(numbers(n=150, trace="fits"))
    (jobs.folder(run.id) / "chunks" / "000149.npz").unlink()
    disk.fill(leave=30_000)
    assert jobs.resume_here(run.id).state == "finished"  # only what is missing is asked for
    shutil.rmtree(jobs.folder(run.id) / "chunks")
    disk.fill(leave=50_000)
    with pytest.raises(WorkspaceError, match="Not enough disk space"):
        jobs.resume_here(run.id)
