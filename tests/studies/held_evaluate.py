"""The study `evaluate`, of which only two chunks are ever computed: a worker that runs it is at a known place."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from fsviz.studies import evaluate

COMPUTED = 2


def run_chunk(spec: evaluate.ResolvedSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    before = sum(p.n_chunks for p in evaluate.parts(spec)[:part])
    while before + start // spec["chunk_tasks"][part] >= COMPUTED:
        time.sleep(60)
    return evaluate.run_chunk(spec, part, start, stop)


STUDY = replace(evaluate.STUDY, run_chunk=run_chunk)
