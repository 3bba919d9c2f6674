"""Runs survive kills, cancels, damage and company, and end with the same numbers whatever happened on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fsviz import jobs
from fsviz.errors import BadInput, Cancelled, FsvizError, Missing, UnknownName, WorkspaceError
from fsviz.jobs import local, locks, store
from tests.jobs import studies_for_tests
from tests.jobs.studies_for_tests import hurry, traced

LONG = 600  # seconds that a chunk sleeps which is woken or ended by the test


def until(condition, seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def pid_of(run_id: str) -> int:
    until(lambda: locks.holder(jobs.folder(run_id) / "lock") is not None)
    return locks.holder(jobs.folder(run_id) / "lock")


def chunk_bytes(run_id: str) -> list[bytes]:
    return [p.read_bytes() for p in sorted((jobs.folder(run_id) / "chunks").glob("*.npz"))]


def test_a_submitted_run_finishes_in_another_process(numbers) -> None:
    spec = numbers(n=4, seed=3)
    run = jobs.wait(jobs.submit(spec))
    assert run.state == "finished" and run.n_done == run.n_chunks == 4
    assert run.error == "" and run.share_done == 1.0
    expected = sum(float(chunk["values"].sum()) for chunk in jobs.chunks(run.id))
    assert jobs.results(run.id) == {"n": 4, "total": expected, "array": [0, 1], "none": None}
    worker = {int(line.split()[1]) for line in Path(spec["trace"]).read_text().splitlines()}
    assert worker and os.getpid() not in worker
    assert [r.id for r in jobs.list_runs()] == [run.id]
    assert jobs.list_runs("evaluate") == []


def test_the_same_spec_here_and_in_a_worker_gives_the_same_bytes(numbers) -> None:
    reports = []
    here = jobs.run_in_foreground(
        numbers(n=3, seed=9), lambda done, total, message: reports.append((done, total, message))
    )
    there = jobs.wait(jobs.submit(numbers(n=3, seed=9, trace="other")))
    assert chunk_bytes(here.id) == chunk_bytes(there.id)
    assert jobs.results(here.id) == jobs.results(there.id)
    assert reports[0][:2] == (0, 3) and reports[-1][:2] == (3, 3)


def test_chunks_side_by_side_are_the_same_and_an_error_keeps_what_is_done(numbers, monkeypatch) -> None:
    alone = jobs.run_in_foreground(numbers(n=9, seed=9, trace="alone"))
    monkeypatch.setattr(studies_for_tests, "STUDY", replace(studies_for_tests.STUDY, threads=3))
    spec = numbers(n=9, seed=9, sleep=0.05)
    second = jobs.run_in_foreground(spec)
    assert chunk_bytes(second.id) == chunk_bytes(alone.id)
    assert jobs.results(second.id) == jobs.results(alone.id)
    assert sorted(traced(spec)) == list(range(9))
    with pytest.raises(BadInput, match="fix it"):
        jobs.run_in_foreground(numbers(n=9, seed=9, sleep=0.05, break_at=6, trace="broken"))
    broken = jobs.list_runs()[0]
    assert broken.state == "failed" and broken.n_done >= 4
    Path(broken.spec["trace"] + ".fixed").touch()
    assert chunk_bytes(jobs.resume_here(broken.id).id) == chunk_bytes(alone.id)


def test_killed_and_resumed_is_bit_identical_and_redoes_nothing(numbers) -> None:
    whole = jobs.run_in_foreground(numbers(n=8, seed=1, trace="whole"))
    spec = numbers(n=8, seed=1, sleep=LONG, sleep_from=2)
    run_id = jobs.submit(spec)
    pid = pid_of(run_id)
    until(lambda: 2 in traced(spec))
    os.kill(pid, signal.SIGKILL)
    until(lambda: jobs.status(run_id).state == "interrupted")
    before = store.chunk_indices(jobs.folder(run_id))
    stamps = [store.chunk_path(jobs.folder(run_id), i).stat().st_mtime_ns for i in before]
    assert jobs.status(run_id).n_done == len(before) == 2
    (jobs.folder(run_id) / "chunks" / ".tmp-half.npz").write_bytes(b"half")  # a kill may leave such a file
    hurry(spec)
    jobs.resume(run_id)
    assert jobs.wait(run_id).state == "finished"
    assert not list((jobs.folder(run_id) / "chunks").glob(".tmp-*"))
    assert [store.chunk_path(jobs.folder(run_id), i).stat().st_mtime_ns for i in before] == stamps
    assert traced(spec) == [0, 1, 2, 2, 3, 4, 5, 6, 7]  # only the current chunk starts twice
    assert chunk_bytes(run_id) == chunk_bytes(whole.id)
    assert (jobs.folder(run_id) / "results.json").read_bytes() == (jobs.folder(whole.id) / "results.json").read_bytes()


def test_killed_at_random_points_again_and_again_it_ends_with_the_same_bytes(numbers) -> None:
    whole = jobs.run_in_foreground(numbers(n=12, seed=8, trace="whole"))
    spec = numbers(n=12, seed=8, sleep=0.15)
    run_id, moments = jobs.submit(spec), np.random.default_rng(8)
    for _ in range(4):
        pid = pid_of(run_id)
        time.sleep(moments.uniform(0, 0.5))
        if jobs.status(run_id).state == "finished":
            break
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not jobs.status(run_id).active)
        assert jobs.status(run_id).state in ("interrupted", "finished")
        jobs.resume(run_id)
    hurry(spec)
    assert jobs.wait(run_id).state == "finished"
    assert chunk_bytes(run_id) == chunk_bytes(whole.id)
    assert jobs.results(run_id) == jobs.results(whole.id)


def test_cancel_takes_effect_at_once_and_resume_goes_on(numbers) -> None:
    spec = numbers(n=6, sleep=LONG, sleep_from=1, seed=2)
    run_id = jobs.submit(spec)
    until(lambda: 1 in traced(spec))
    assert jobs.cancel(run_id).state == "cancelled"
    assert not locks.is_held(jobs.folder(run_id) / "lock")
    saved = store.chunk_indices(jobs.folder(run_id))
    hurry(spec)
    time.sleep(0.4)  # a worker that had outlived its cancel would go on now
    assert store.chunk_indices(jobs.folder(run_id)) == saved
    assert jobs.resume_here(run_id).state == "finished"
    assert jobs.results(run_id) == jobs.results(jobs.run_in_foreground(numbers(n=6, seed=2, trace="t2")).id)


@pytest.mark.parametrize("more", [{"sleep": LONG}, {"deaf": 1, "sleep": 0}], ids=["long chunk", "deaf chunk"])
def test_cancel_ends_a_long_chunk(numbers, more) -> None:
    spec = numbers(n=3, **more)
    run_id = jobs.submit(spec)
    until(lambda: (more.get("deaf") or 0) in traced(spec))
    run = jobs.cancel(run_id)
    assert run.state == "cancelled" and not locks.is_held(jobs.folder(run_id) / "lock")


def test_two_workers_on_one_run_are_impossible(numbers) -> None:
    spec = numbers(n=3, sleep=LONG)
    run_id = jobs.submit(spec)
    pid = pid_of(run_id)
    until(lambda: jobs.status(run_id).state == "running")
    with pytest.raises(BadInput, match=f"already running \\(process {pid}\\)"):
        jobs.resume(run_id)
    with pytest.raises(BadInput, match="one worker at a time"):
        jobs.resume_here(run_id)
    with pytest.raises(BadInput, match="Cancel it before deleting"):
        jobs.delete(run_id)
    for _ in range(3):  # three more workers find nothing to do
        local._spawn()
    hurry(spec)
    assert jobs.wait(run_id).state == "finished"
    assert traced(spec) == [0, 1, 2]


def test_many_processes_resume_one_run_and_one_wins(numbers) -> None:
    spec = numbers(n=3, sleep=0.2)
    run = store.create(spec, jobs.prepare, store.INTERRUPTED)
    code = "import sys; from fsviz import jobs; jobs.resume_here(sys.argv[1])"
    rest = [subprocess.Popen([sys.executable, "-c", code, run.id], stderr=subprocess.DEVNULL) for _ in range(3)]
    for second in rest:
        second.wait()
    assert jobs.status(run.id).state == "finished"
    assert traced(spec) == [0, 1, 2]


def test_the_queue_keeps_to_the_chosen_number_of_workers(numbers) -> None:
    jobs.set_workers(2)
    assert jobs.n_workers() == 2
    specs = [numbers(n=2, sleep=LONG, trace=f"t{i}") for i in range(4)]
    ids = [jobs.submit(spec) for spec in specs]

    def at_work() -> int:
        return sum(run.state == "running" for run in jobs.list_runs())

    until(lambda: at_work() >= 2)
    for spec in specs:
        time.sleep(0.1)
        assert at_work() <= 2
        hurry(spec)
    while any(jobs.status(i).active for i in ids):
        assert at_work() <= 2
        time.sleep(0.02)
    assert [jobs.status(i).state for i in ids] == ["finished"] * 4
    starts = [jobs.status(i).started for i in ids]
    assert starts == sorted(starts)
    with pytest.raises(BadInput, match="must be 1 to 64"):
        jobs.set_workers(0)


def test_a_queued_run_is_cancelled_without_ever_starting(numbers) -> None:
    jobs.set_workers(1)
    slow = numbers(n=2, sleep=LONG, trace="a")
    first = jobs.submit(slow)
    until(lambda: jobs.status(first).state == "running")
    second = numbers(n=2, trace="b")
    run_id = jobs.submit(second)
    assert jobs.status(run_id).state == "queued"
    assert jobs.cancel(run_id).state == "cancelled"
    hurry(slow)
    assert jobs.wait(first).state == "finished"
    assert traced(second) == []
    assert jobs.resume_here(run_id).state == "finished"


def test_a_short_run_does_not_wait_behind_a_long_one(numbers) -> None:
    jobs.set_workers(1)
    whole = jobs.run_in_foreground(numbers(n=400, seed=6, trace="whole"))
    long = numbers(n=400, seed=6, sleep=0.2, trace="long")
    long_id = jobs.submit(long)
    until(lambda: jobs.status(long_id).n_done >= 3)
    short_id = jobs.submit(numbers(n=2, trace="short"))
    until(lambda: not jobs.status(short_id).active)
    assert jobs.status(short_id).state == "finished"
    waiting = jobs.status(long_id)
    assert waiting.active and waiting.n_done < 400
    hurry(long)
    assert jobs.wait(long_id).state == "finished"
    assert sorted(traced(long)) == list(range(400))  # giving way lost nothing
    assert chunk_bytes(long_id) == chunk_bytes(whole.id)


def test_the_queue_takes_who_waited_long_then_who_has_least_to_do(numbers, monkeypatch) -> None:
    monkeypatch.setattr(local, "_spawn", lambda: None)
    ids = [jobs.submit(numbers(n=n, trace=f"t{n}")) for n in (50, 5, 500)]
    assert [run.n_chunks for run in local.queue()] == [5, 50, 500]
    store.change(jobs.folder(ids[2]), queued_at=time.time() - 2 * local._LONG_WAIT)
    assert [run.n_chunks for run in local.queue()] == [500, 5, 50]
    claimed = local.claim()
    assert claimed is not None and claimed[0] == ids[2]
    second = local.claim()
    assert second is not None and second[0] == ids[1]
    for _, lock in (claimed, second):
        lock.release()


def test_the_queue_moves_on_after_a_worker_is_killed(numbers, monkeypatch) -> None:
    monkeypatch.setattr(local, "_RESTART_AFTER", 3.0)
    jobs.set_workers(1)
    spec = numbers(n=1, sleep=LONG, trace="a")
    first = jobs.submit(spec)
    second = jobs.submit(numbers(n=1, trace="b"))
    until(lambda: traced(spec))
    os.kill(pid_of(first), signal.SIGKILL)
    until(lambda: jobs.status(second).state == "finished")
    assert jobs.status(first).state == "interrupted"


def test_live_summary_of_the_chunks_so_far(numbers) -> None:
    run_id = jobs.submit(numbers(n=4, sleep=0.5))
    with pytest.raises(Missing, match="no results yet"):
        jobs.results(run_id)
    until(lambda: (jobs.status(run_id).summary or {}).get("n", 0) in (1, 2, 3))
    run = jobs.status(run_id)
    assert run.state == "running" and run.message.startswith("number")
    jobs.cancel(run_id)


def test_a_failure_says_why_and_can_be_resumed_after_fixing(numbers) -> None:
    spec = numbers(n=3, break_at=1)
    run = jobs.wait(jobs.submit(spec))
    assert run.state == "failed" and run.error == "Chunk cannot be computed: fix it."
    Path(spec["trace"] + ".fixed").touch()
    jobs.resume(run.id)
    run = jobs.wait(run.id)
    assert run.state == "finished" and run.error == ""
    assert traced(spec) == [0, 1, 1, 2]


@pytest.mark.parametrize("side_by_side", [1, 2])
def test_a_chunk_that_fails_three_times_is_reported_and_the_others_are_kept(numbers, monkeypatch, side_by_side) -> None:
    monkeypatch.setattr(studies_for_tests, "STUDY", replace(studies_for_tests.STUDY, threads=side_by_side))
    whole = jobs.run_in_foreground(numbers(n=4, trace="whole"))
    spec = numbers(n=4, crash_at=1)
    with pytest.raises(FsvizError, match=r"done, 1 chunk failed: number 1 failed 3 times \(ZeroDivisionError: by"):
        jobs.run_in_foreground(spec)
    run = jobs.list_runs()[0]
    assert run.state == "failed" and run.message == "done, 1 chunk failed" and run.n_done == 3
    assert sorted(traced(spec)) == [0, 1, 1, 1, 2, 3]
    assert run.summary["n"] == 3
    assert "Traceback" in (jobs.folder(run.id) / "error.txt").read_text()
    Path(spec["trace"] + ".fixed").touch()
    assert chunk_bytes(jobs.resume_here(run.id).id) == chunk_bytes(whole.id)
    assert sorted(traced(spec)) == [0, 1, 1, 1, 1, 2, 3]


def test_a_chunk_that_fails_once_is_tried_again(numbers) -> None:
    spec = numbers(n=3, stumble_at=1)
    run = jobs.run_in_foreground(spec)
    assert run.state == "finished" and traced(spec) == [0, 1, 1, 2]


def test_a_run_in_which_nothing_succeeds_stops_soon(numbers) -> None:
    spec = numbers(n=50, crash_from=0)
    with pytest.raises(FsvizError, match="failed: ZeroDivisionError: by hand"):
        jobs.run_in_foreground(spec)
    (run,) = jobs.list_runs()
    assert run.state == "failed" and run.n_done == 0 and traced(spec) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert "Traceback" in (jobs.folder(run.id) / "error.txt").read_text()


def test_a_damaged_chunk_is_computed_again(numbers) -> None:
    spec = numbers(n=3, seed=4, break_at=2)
    with pytest.raises(BadInput):
        jobs.run_in_foreground(spec)
    (run,) = jobs.list_runs()
    good = chunk_bytes(run.id)
    store.chunk_path(jobs.folder(run.id), 0).write_bytes(good[0][:200])
    with pytest.raises(WorkspaceError, match=r"Chunk 0 .* is damaged"):
        _ = jobs.chunks(run.id)[0]["values"]
    Path(spec["trace"] + ".fixed").touch()
    assert jobs.resume_here(run.id).state == "finished"
    assert traced(spec) == [0, 1, 2, 0, 2]
    assert chunk_bytes(run.id)[:2] == good


@pytest.mark.parametrize("damage", ["cut", "empty", "middle", "gone"])
def test_a_finished_run_that_lost_a_chunk_computes_it_again_as_its_error_says(numbers, damage) -> None:
    spec = numbers(n=4, seed=4)
    run = jobs.run_in_foreground(spec)
    good = chunk_bytes(run.id)
    path = store.chunk_path(jobs.folder(run.id), 2)
    spoiled = {"cut": good[2][:900], "empty": b"", "middle": good[2][:3000] + b"x" * 200 + good[2][3200:]}
    path.write_bytes(spoiled[damage]) if damage in spoiled else path.unlink()
    with pytest.raises(WorkspaceError, match=f"'fsviz runs resume {run.id}' computes it again"):
        jobs.chunks(run.id)[2]["values"]
    assert jobs.status(run.id).state == "finished"  # its results are whole
    again = jobs.wait(jobs.resume(run.id).id)
    assert again.state == "finished" and again.summary == run.summary
    assert chunk_bytes(run.id) == good and traced(spec) == [0, 1, 2, 3, 2]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"results": [3]}', None], ids=["empty", "half", "other", "rows", "gone"]
)
def test_damaged_results_are_made_again_from_the_chunks(numbers, content) -> None:
    spec = numbers(n=3)
    run = jobs.run_in_foreground(spec)
    path = jobs.folder(run.id) / "results.json"
    path.write_bytes(content) if content is not None else path.unlink()
    (listed,) = jobs.list_runs()
    assert listed.state == "interrupted" and f"runs resume {run.id}' makes them again" in listed.error
    with pytest.raises(Missing, match="no results yet"):
        jobs.results(run.id)
    assert jobs.resume_here(run.id).summary == run.summary
    assert traced(spec) == [0, 1, 2]


def test_a_damaged_state_says_no_more_than_the_other_files(numbers) -> None:
    finished, stopped = (
        jobs.run_in_foreground(numbers(n=2)),
        store.create(numbers(n=2), jobs.prepare, store.INTERRUPTED),
    )
    for run, content in ((finished, "{"), (stopped, "[1]")):
        (jobs.folder(run.id) / "state.json").write_text(content)
    assert [run.state for run in jobs.list_runs()] == ["interrupted", "finished"]
    (jobs.folder(finished.id) / "state.json").write_text('{"state": "finished", "seconds": "x", "error": null}')
    assert jobs.status(finished.id).seconds == 0


@pytest.mark.parametrize("content", ["{", "[]", '{"spec": 3}', None], ids=["half", "list", "number", "gone"])
def test_a_run_with_an_unreadable_spec_is_one_damaged_row_and_can_be_deleted(numbers, content) -> None:
    whole = jobs.run_in_foreground(numbers(n=1))
    run = jobs.run_in_foreground(numbers(n=1))
    path = jobs.folder(run.id) / "spec.json"
    path.write_text(content) if content is not None else path.unlink()
    assert {r.id: r.state for r in jobs.list_runs()} == {run.id: "damaged", whole.id: "finished"}
    for act in (jobs.resume, jobs.resume_here):
        with pytest.raises(WorkspaceError, match=rf"spec\.json of run .* cannot be read.*runs delete {run.id}"):
            act(run.id)
    with pytest.raises(WorkspaceError, match=f"runs delete {run.id}"):
        jobs.results(run.id)
    assert jobs.cancel(run.id).state == "damaged"
    jobs.delete(run.id)
    assert [r.id for r in jobs.list_runs()] == [whole.id]


def test_bad_specs_leave_no_folder(numbers, workspace) -> None:
    with pytest.raises(UnknownName, match=r"Unknown study 'number'\. Did you mean 'numbers'"):
        jobs.submit({"study": "number"})
    with pytest.raises(UnknownName, match="study"):
        jobs.submit({})
    with pytest.raises(BadInput, match="at most 10,000"):
        jobs.submit(numbers(n=20_000))
    with pytest.raises(BadInput, match="nothing to run"):
        jobs.submit(numbers(n=0))
    with pytest.raises(BadInput, match="plain JSON"):
        jobs.submit(numbers(n=1, bad=np.arange(3)))
    assert jobs.list_runs() == []
    assert [p for p in (workspace / "runs").iterdir() if p.is_dir()] == []


@pytest.mark.parametrize("name", ["20200101-000000-0000", "../../etc", "", "a/b"])
def test_unknown_runs_are_named(workspace, name) -> None:
    for act in (jobs.status, jobs.cancel, jobs.resume, jobs.results, jobs.delete):
        with pytest.raises(FsvizError):
            act(name)


def test_inputs_are_frozen_and_the_workspace_may_move(numbers, workspace, monkeypatch) -> None:
    spec = numbers(n=2, offset=7, break_at=1)
    with pytest.raises(BadInput):
        jobs.run_in_foreground(spec)
    (run,) = jobs.list_runs()
    moved = workspace.with_name("moved")
    workspace.rename(moved)
    monkeypatch.setenv("FSVIZ_HOME", str(moved))
    Path(spec["trace"] + ".fixed").touch()
    assert jobs.resume_here(run.id).state == "finished"
    assert abs(np.mean([chunk["values"].mean() for chunk in jobs.chunks(run.id)]) - 7) < 0.2


def test_deleting_a_run(numbers) -> None:
    run = jobs.run_in_foreground(numbers(n=1))
    jobs.delete(run.id)
    assert jobs.list_runs() == []
    with pytest.raises(UnknownName):
        jobs.status(run.id)


def test_sigterm_without_a_cancel_reads_as_interrupted(numbers) -> None:
    spec = numbers(n=3, sleep=LONG)
    run_id = jobs.submit(spec)
    until(lambda: traced(spec))
    os.kill(pid_of(run_id), signal.SIGTERM)
    until(lambda: jobs.status(run_id).state == "interrupted")


def test_finished_runs_are_not_run_again(numbers) -> None:
    spec = numbers(n=2)
    run = jobs.run_in_foreground(spec)
    assert jobs.resume(run.id).state == "finished"
    assert jobs.resume_here(run.id).state == "finished"
    assert jobs.cancel(run.id).state == "finished"
    assert traced(spec) == [0, 1]


def test_a_cancelled_foreground_run_raises_cancelled(numbers) -> None:
    code = (
        "import sys, json; from fsviz import jobs\n"
        "from fsviz.errors import Cancelled\n"
        "try: jobs.run_in_foreground(json.loads(sys.argv[1]))\n"
        "except Cancelled as e: print(e); sys.exit(7)"
    )
    spec = numbers(n=3, sleep=LONG)
    process = subprocess.Popen([sys.executable, "-c", code, json.dumps(spec)], stdout=subprocess.PIPE, text=True)
    until(lambda: traced(spec))
    (run,) = jobs.list_runs()
    assert jobs.cancel(run.id).state == "cancelled"
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 7 and "was cancelled" in out
    assert issubclass(Cancelled, FsvizError)


def test_an_unwritable_workspace_is_one_sentence(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FSVIZ_HOME", str(tmp_path / "file"))
    with pytest.raises(WorkspaceError):
        jobs.submit({"study": "evaluate"})
    assert jobs.list_runs() == []
