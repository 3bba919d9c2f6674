"""Tasks between IID and OOD: a share of the support is in other contexts than the queries."""

from __future__ import annotations

from fsviz.records import Tasks
from fsviz.sampling import context_tasks
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_QUERY, N_SHOT, N_WAY, Setting

SHIFT = Setting(
    "shift",
    "Context shift",
    "Share of support images from other contexts: 0 = same (IID), 1 = other (OOD).",
    "float",
    0.5,
    0.0,
    1.0,
    step=0.05,
    brief="shift{}",
)


def _sample(pool: Pool, n_tasks: int, seed: int, shift: float, n_way: int, n_shot: int, n_query: int) -> Tasks:
    shift = SHIFT.check(shift)
    return context_tasks.sample_with(pool, n_tasks, seed, n_way, n_shot, n_query, lambda tasks: tasks.mixed(shift))


SAMPLER = Sampler(
    "context",
    "Context shift",
    "Share of support images from other contexts: 0 = same (IID), 1 = other (OOD).",
    _sample,
    (SHIFT, N_WAY, N_SHOT, N_QUERY),
    needs=("images", "contexts"),
    samples_images=True,
    order=12,
    excluded=context_tasks.excluded_classes,
)
