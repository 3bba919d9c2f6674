"""Limits on the threads that torch may use on the processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fsviz.features.device import cores
from fsviz.numerics import threads


def half() -> int:
    """Threads on half of the cores."""
    return max(1, cores() // 2)


def as_here() -> dict[str, str]:
    """The environment in which another machine computes with as many threads as this one, so that sums are added in the
    same order."""
    import torch

    return {"FSVIZ_CORES": str(cores()), "OMP_NUM_THREADS": str(torch.get_num_threads())}


@contextmanager
def limit_threads() -> Iterator[None]:
    """Leaves the other half to the page or to another run: threads that wait for a busy core cost more than they do."""
    with threads(half()):
        yield
