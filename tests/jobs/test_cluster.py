"""Runs on a Ray cluster of two machines, which are two nodes on this one: the same bytes, whatever falls over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fsviz import datasets, features, jobs
from fsviz.datasets.saved import save_dataset
from fsviz.errors import BadInput, FsvizError
from fsviz.features.store import SHARD, remove_features
from fsviz.jobs import engines
from fsviz.records import Dataset
from fsviz.studies import OWN
from tests.cli.calling import run_json
from tests.jobs.conftest import STUDY
from tests.jobs.studies_for_tests import hurry, traced
from tests.jobs.test_jobs import chunk_bytes, pid_of, until

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra `cluster` is not installed")


def add_node(cluster, **more: object) -> object:
    """A further node of one core; the first is the head. On a busy machine Ray gives up after half a minute."""
    for attempts_left in range(4, -1, -1):
        try:
            return cluster.add_node(num_cpus=1, object_store_memory=10**8, include_log_monitor=False, **more)
        except (Exception, SystemExit):
            if not attempts_left:
                raise


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    """Two nodes of one core each; the first one claims a GPU, which nothing here computes on."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    started = Cluster()
    add_node(started, num_gpus=1, include_dashboard=False)
    add_node(started)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Iterator[Path]:
    """One workspace for all runs: a worker serves only what comes with the surroundings it was started with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSVIZ_HOME", str(tmp_path_factory.mktemp("cluster") / "ws"))
        patch.setenv("FSVIZ_STUDIES", f"numbers={STUDY}")
        patch.setitem(OWN, "numbers", STUDY)
        yield Path(os.environ["FSVIZ_HOME"])


@pytest.fixture(scope="module")
def connected(cluster, workspace) -> Iterator[jobs.Engine]:
    """One connection for many runs, as in a notebook: the workers of one serve the next."""
    import ray

    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    yield engines.pick("ray", cluster.address)
    assert ray.is_initialized()  # a run leaves a connection open that it has found
    ray.shutdown()


def n_alive(cluster) -> int:
    return sum(node["Alive"] for node in cluster.global_state.node_table())


def on_two_processes(spec: dict) -> bool:
    pids = {line.split()[1] for line in Path(spec["trace"]).read_text().splitlines()}
    return len(pids) > 1 and str(os.getpid()) not in pids


def test_no_cluster_and_no_ray_are_one_sentence(numbers, monkeypatch) -> None:
    with pytest.raises(BadInput, match=r"No Ray cluster answers at '127.0.0.1:9'.*ray start --head"):
        jobs.run_in_foreground(numbers(n=1), engine=engines.pick("ray", "127.0.0.1:9"))
    for address in ("a b", "http://x", "x:y"):
        with pytest.raises(BadInput, match="'auto' or HOST:PORT"):
            engines.pick("ray", address)
    with pytest.raises(BadInput, match="no address"):
        engines.pick("local", "auto")
    with pytest.raises(FsvizError, match="engine"):
        engines.pick("dask")
    assert engines.pick("ray", "head") == engines.pick("", "head:6379")
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert engines.available() == ["local"]
    with pytest.raises(BadInput, match="not installed"):
        engines.pick("ray")


def test_a_run_on_two_nodes_gives_the_bytes_of_this_machine(numbers, cluster) -> None:
    ray_engine = engines.pick("ray", cluster.address)
    here = jobs.run_in_foreground(numbers(n=8, seed=3, trace="here"))
    spec = numbers(n=8, seed=3, sleep=0.3)
    reports: list[int] = []
    there = jobs.run_in_foreground(spec, lambda done, total, message: reports.append(done), engine=ray_engine)
    assert chunk_bytes(there.id) == chunk_bytes(here.id)
    assert jobs.results(there.id) == jobs.results(here.id)
    assert on_two_processes(spec) and sorted(traced(spec)) == list(range(8))
    assert reports == sorted(reports) and reports[-1] == 8
    assert jobs.engine_of(there) == ray_engine and jobs.engine_of(here) == jobs.Engine()


def test_who_is_connected_elsewhere_is_not_computed_for_there(numbers, connected) -> None:
    with pytest.raises(BadInput, match=f"connected to the Ray cluster at {connected.address} .*'head:1'.*ray.shutdown"):
        jobs.run_in_foreground(numbers(n=1), engine=engines.pick("ray", "head:1"))


def test_a_node_that_is_removed_and_a_worker_that_dies_lose_nothing(numbers, cluster, connected) -> None:
    here = jobs.run_in_foreground(numbers(n=10, seed=5, trace="here"))
    lost = add_node(cluster)
    spec = numbers(n=10, seed=5, sleep=1.0, die_at=4)
    removed: list[int] = []

    def remove(done: int, total: int, message: str) -> None:
        if done >= 3 and not removed:
            removed.append(done)
            cluster.remove_node(lost, allow_graceful=False)
            hurry(spec)

    there = jobs.run_in_foreground(spec, remove, engine=connected)
    assert removed and there.state == "finished"
    assert chunk_bytes(there.id) == chunk_bytes(here.id)
    assert traced(spec).count(4) >= 2


def test_a_chunk_that_fails_three_times_and_a_refusal(numbers, connected) -> None:
    spec = numbers(n=4, crash_at=1)
    with pytest.raises(FsvizError, match=r"done, 1 chunk failed: number 1 failed 3 times .*ZeroDivisionError: by hand"):
        jobs.run_in_foreground(spec, engine=connected)
    run = jobs.list_runs()[0]
    assert run.message == "done, 1 chunk failed" and run.n_done == 3 and traced(spec).count(1) == 3
    assert "run_chunk" in (jobs.folder(run.id) / "error.txt").read_text()  # the report of the other machine
    Path(spec["trace"] + ".fixed").touch()
    assert jobs.resume_here(run.id, engine=jobs.Engine()).state == "finished"  # elsewhere, if wanted
    with pytest.raises(FsvizError, match="Chunk cannot be computed: fix it"):
        jobs.run_in_foreground(numbers(n=3, break_at=1, trace="refused"), engine=connected)


def test_chunks_that_wait_for_others_begin_after_them_and_not_after_a_failure(numbers, connected) -> None:
    spec = numbers(n=6, follow_from=2, sleep=0.2, crash_at=4)
    with pytest.raises(FsvizError, match="done, 1 chunk failed: number 4 failed 3 times"):
        jobs.run_in_foreground(spec, engine=connected)
    assert sorted(traced(spec)[:2]) == [0, 1] and traced(spec)[2:] == [2, 3, 4, 4, 4]
    assert jobs.list_runs()[0].n_done == 4


def test_cancelled_or_killed_in_the_background_it_goes_on_from_the_finished_chunks(numbers, connected) -> None:
    here = jobs.run_in_foreground(numbers(n=6, seed=2, trace="here"))
    spec = numbers(n=6, seed=2, sleep=60, sleep_from=2)
    run_id = jobs.submit(spec, connected)
    until(lambda: jobs.status(run_id).n_done >= 2 and len(traced(spec)) >= 3)
    assert jobs.cancel(run_id).state == "cancelled" and jobs.status(run_id).error == ""
    jobs.resume(run_id)
    until(lambda: len(traced(spec)) >= 5)
    os.kill(pid_of(run_id), 9)  # the process that gives the chunks out
    until(lambda: jobs.status(run_id).state == "interrupted")
    hurry(spec)
    jobs.resume(run_id)
    run = jobs.wait(run_id)
    assert run.state == "finished" and jobs.engine_of(run) == connected
    assert chunk_bytes(run_id) == chunk_bytes(here.id)
    assert traced(spec).count(0) == traced(spec).count(1) == 1  # finished before the end came twice: never again


def test_what_holds_a_model_or_a_gpu_runs_in_actors_that_stay(numbers, connected) -> None:
    spec = numbers(n=6, seed=7, device="cuda:0", die_at=3)
    there = jobs.run_in_foreground(spec, engine=connected)
    assert chunk_bytes(there.id) == chunk_bytes(jobs.run_in_foreground(numbers(n=6, seed=7, trace="here")).id)
    pids = [line.split()[1] for line in Path(spec["trace"]).read_text().splitlines()]
    assert len(set(pids)) == 2 and len(pids) == 7  # one actor, as there is one GPU, and the one that took its place


def test_a_machine_that_does_not_see_the_workspace_is_named(numbers, workspace, cluster, connected) -> None:
    """A third node, in whose file system another disk lies over the workspace."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    jobs.run_in_foreground(numbers(n=1, trace="first"))  # the folder is there
    script = f"mount -t tmpfs none {workspace} && exec {sys.executable} -m ray.scripts.scripts start --block"
    words = f"{script} --address={cluster.address} --num-cpus=1 --object-store-memory=100000000"
    node = subprocess.Popen(["unshare", "-m", "sh", "-c", words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        n_nodes = n_alive(cluster)
        until(lambda: n_alive(cluster) >= n_nodes + 1 or node.poll() is not None)
        with pytest.raises(BadInput, match=r"Machine .* cannot take part: it does not see .*All machines must see"):
            jobs.run_in_foreground(numbers(n=2), engine=connected)
    finally:
        node.terminate()
        node.wait(timeout=60)
    until(lambda: n_alive(cluster) == n_nodes)
    refused = jobs.list_runs()[0]
    assert refused.state == "failed" and jobs.resume_here(refused.id).state == "finished"


TASKS = {"n_way": 5, "n_shot": 2, "n_query": 5, "n_tasks": 30, "seed": 4}
SPLIT = {"name": "tiny", "train": ["zero", "one", "two"], "val": ["three", "four"], "test": ["five", "six"]}
SPECS = {
    "evaluate": {
        "backbones": ["efficientnet_lite0"],
        "methods": ["protonet", "logistic"],
        "sampler": {"sampler": "semantic", **{k: v for k, v in TASKS.items() if k != "seed"}},
        "device": "cpu",
        "chunk": 16,
    },
    "confusion": {"split": "val", "k": 10, "n_runs": 2},
    "support_sets": {"backbone": "efficientnet_lite0", **TASKS},
    "causes": {"backbone": "efficientnet_lite0", "methods": ["protonet"], **TASKS},
    "stress_test": {"sources": ["efficientnet_lite0"], "backbones": ["efficientnet_lite0"], "n_tasks": 20},
    "training": {"dataset": "digits", "split": SPLIT, "method": "protonet", "width": 8, "side": 16, "epochs": 2}
    | {"tasks_per_epoch": 4, "n_way": 2, "n_query": 5, "val_tasks": 10, "n_tasks": 30, "device": "cpu"},
}


@pytest.mark.parametrize("study", SPECS)
def test_studies_give_the_bytes_of_this_machine(connected, study) -> None:
    spec = {"study": study, "dataset": "demo", **SPECS[study]}
    here, there = jobs.run_in_foreground(spec), jobs.run_in_foreground(spec, engine=connected)
    assert there.state == "finished" and len(chunk_bytes(here.id)) == here.n_chunks
    assert chunk_bytes(there.id) == chunk_bytes(here.id)
    own = {"checkpoint", "backbone", "run"} if study == "training" else set()  # the second network has another name
    assert {k: v for k, v in there.summary.items() if k not in own} == {
        k: v for k, v in here.summary.items() if k not in own
    }


def test_features_extracted_there_are_those_extracted_here(connected, tmp_path, capsys) -> None:
    """Two shards of small pictures, in actors; the images lie outside of the workspace."""
    rng, names = np.random.default_rng(0), [f"{i:03}.png" for i in range(SHARD + 20)]
    for name in names:
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(tmp_path / name)
    classes = pd.DataFrame({"class_name": ["a", "b"], "split": "test", "n_images": len(names) // 2, "node": ""})
    images = pd.DataFrame({"class_id": np.arange(len(names)) % 2, "path": names})
    own = {"images": images, "origin": "folder", "root": tmp_path}
    dataset = save_dataset(Dataset("pictures", "Pictures", classes, {"test": np.arange(2)}, **own))
    words = ["extract", "pictures", "--backbone", "conv64f", "--device", "cpu", "--workers", "0"]
    matches = []
    for more in (["--engine", "local"], ["--address", connected.address]):
        assert run_json(capsys, *words, *more)["n_images"] == len(names)
        (name,) = features.available(datasets.load("pictures"))
        matches.append(features.load(dataset, name).values.tobytes())
        remove_features("pictures", name)
    listed = run_json(capsys, "runs")["runs"][:2]
    assert [(run["engine"], run["state"], run["n_chunks"]) for run in listed] == [
        ("ray", "finished", 2),
        ("local", "finished", 2),
    ]
    assert matches[0] == matches[1]
