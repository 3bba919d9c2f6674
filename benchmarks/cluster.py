"""The Ray engine against the local one on the same work: 4,000 tasks of the demo in twenty chunks, one core each.

A Ray cluster of one core is started on this machine, so that both compute one chunk at a time and the ratio is what
Ray itself costs: processes, sending, collecting. Joining the cluster and loading torch there is measured separately.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

N_TASKS, CHUNK, REPEATS = 4_000, 200, 3


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", OMP_NUM_THREADS="1")
    from ray.cluster_utils import Cluster

    from fsviz import jobs
    from fsviz.jobs import engines

    head = {"num_cpus": 1, "object_store_memory": 10**8, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    begins: dict[str, list[float]] = {"local": [], "ray": []}
    answers = {}
    try:
        with tempfile.TemporaryDirectory() as home:
            os.environ["FSVIZ_HOME"] = home
            for repeat in range(REPEATS + 1):  # the first of each loads what the others find loaded
                for engine in (jobs.Engine(), engines.pick("ray", cluster.address)):
                    first, took, run_id = _timed(engine)
                    answers[engine.name] = jobs.results(run_id)["results"]
                    if repeat:
                        seconds[engine.name].append(took)
                        begins[engine.name].append(first)
                    progress(f"{engine.name}: first chunk after {first:.1f} s, the others in {took:.1f} s")
    finally:
        cluster.shutdown()
    if answers["local"] != answers["ray"]:
        raise AssertionError("the engines give different results")
    ratios = [r / here for r, here in zip(seconds["ray"], seconds["local"], strict=True)]
    return {
        "ratio": median(ratios),
        "ratios": ratios,
        "seconds": seconds,
        "seconds_to_first_chunk": begins,
        "chunks": N_TASKS // CHUNK,
    }


def _timed(engine: Any) -> tuple[float, float, str]:
    """Seconds until the first chunk, seconds from there to the last one, and the run."""
    from fsviz import jobs

    spec = {"study": "evaluate", "dataset": "demo", "backbones": ["efficientnet_lite0"], "methods": ["logistic"]}
    tasks = {"sampler": "uniform", "n_way": 5, "n_shot": 5, "n_query": 10, "n_tasks": N_TASKS}
    moments = {}
    start = time.perf_counter()

    def tell(done: int, total: int, message: str) -> None:
        moments.setdefault(min(done, 1) if done < total else total, time.perf_counter())

    spec |= {"sampler": tasks, "device": "cpu", "threads": 1, "chunk": CHUNK}
    run = jobs.run_in_foreground(spec, tell, engine=engine)
    return moments[1] - start, moments[N_TASKS // CHUNK] - moments[1], run.id
