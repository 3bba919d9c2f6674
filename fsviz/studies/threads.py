"""How many threads of torch a piece of work may use on the processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from fsviz.features.device import cores

_lock = Lock()
_inside, _before = 0, 0  # blocks that are open in this process, and the threads before the first of them


def half() -> int:
    """Threads on half of the cores."""
    return max(1, cores() // 2)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """The number of threads torch uses: part of a run's spec, so that its sums are added in the same order again.

    Blocks may lie beside one another in several Python threads, not in one another; what was before the first returns
    after the last.
    """
    import torch

    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(n)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                torch.set_num_threads(_before)


@contextmanager
def half_the_cores() -> Iterator[None]:
    """Leaves the other half to the page or to another run: threads that wait for a busy core cost more than they do."""
    with threads(half()):
        yield
