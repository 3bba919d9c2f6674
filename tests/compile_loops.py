"""Compiles the loops of the engine into numba's cache: `python -m tests.compile_loops`, before the tests of a checkout.

A fresh checkout has no cache, and each of the many processes that the tests start would compile the same loops.
"""

from __future__ import annotations

import os
import tempfile

import numpy as np


def main() -> None:
    from fsviz import jobs
    from fsviz.sampling import assign_images, sample_uniform
    from fsviz.studies import confusion

    classes = np.repeat(np.arange(3), 4)
    assign_images(sample_uniform(np.arange(3), 2, 5, seed=0), classes, 1, 1, seed=0, groups=np.arange(12) // 2)
    confusion.warm_up()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FSVIZ_HOME"] = folder
        spec = {"study": "evaluate", "dataset": "demo", "backbones": ["demo_clip"], "methods": ["pt_map", "finetune"]}
        sampler = {"sampler": "semantic", "n_way": 3, "n_shot": 1, "n_query": 2, "n_tasks": 2}
        jobs.run_in_foreground({**spec, "sampler": sampler, "device": "cpu"})


if __name__ == "__main__":
    main()
