"""Repeated class sets: counted among the sampled tasks, with their effect on coarsity."""

from __future__ import annotations

import numpy as np

from fsviz import datasets
from fsviz.tasks import draw
from fsviz.tasks.repeats import count_repeats


def test_dropped_repeats_are_counted() -> None:
    demo = datasets.load("demo")
    shares = {}
    for repeats in (False, True):
        for n_tasks in (100, 5000):
            settings = {"split": "test", "n_tasks": n_tasks, "repeats": repeats}
            bed = draw.sample(demo, sampler="semantic", **settings)
            shares[repeats, n_tasks] = float(np.median(bed.tasks.measures["coarsity"]))
            result = count_repeats(demo, bed)
            assert (result is None) == repeats
            if result is not None:
                again = draw.sample(demo, sampler="semantic", **{**settings, "n_tasks": 2 * n_tasks, "repeats": True})
                assert (result.n_drawn, result.n_repeated) == (2 * n_tasks, 2 * n_tasks - again.recipe["n_distinct"])
                assert f"{result.n_repeated:,}" in result.describe()
                changed = "This changes how hard the tasks are" in result.describe()
                assert changed == (n_tasks == 5000)  # 4 repeats of 200 change nothing that can be told from chance
    assert shares[False, 5000] > shares[False, 100] + 2  # coarser, because the finest sets came before
    assert abs(shares[True, 5000] - shares[True, 100]) < 2
