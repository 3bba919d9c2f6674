"""Tasks between IID and OOD: a share of the support is in other contexts than the queries."""

from __future__ import annotations

from fsviz.records import Tasks
from fsviz.sampling import context_tasks
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, Setting

SHIFT = Setting(
    "shift",
    "Shift of contexts",
    "Share of the support images that are in other contexts than the queries of their class: 0 is none (IID), 1 is all "
    "of them (OOD). An image that changes does so once on the way.",
    "float",
    0.5,
    0.0,
    1.0,
    step=0.05,
    brief="shift{}",
)


def _sample(pool: Pool, n_tasks: int, seed: int, shift: float, n_way: int, n_shot: int, n_query: int) -> Tasks:
    shift = SHIFT.check(shift)
    return context_tasks.sample_with(pool, n_tasks, seed, n_way, n_shot, n_query, lambda drawn: drawn.mixed(shift))


SAMPLER = Sampler(
    "context",
    "Contexts by a dial",
    "From the same contexts (0) to other contexts (1): the share of support images that are in another context than "
    "the queries of their class.",
    _sample,
    (SHIFT, N_WAY, N_SHOT, N_QUERY),
    needs=("images", "contexts"),
    deals=True,
    order=12,
    unable=context_tasks.excluded_classes,
)
