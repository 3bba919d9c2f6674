"""The study `evaluate`, of which only two chunks are ever computed: a worker that runs it is at a known place."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from fsviz.studies import evaluate

COMPUTED = 2


def run_chunk(spec: evaluate.Settled, index: int) -> dict[str, np.ndarray]:
    while index >= COMPUTED:
        time.sleep(60)
    return evaluate.run_chunk(spec, index)


def __getattr__(name: str) -> Any:
    return getattr(evaluate, name)
