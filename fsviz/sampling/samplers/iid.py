"""IID tasks: support and query of a class share contexts (Zhang et al. 2024)."""

from __future__ import annotations

from fsviz.records import Tasks
from fsviz.sampling import context_tasks
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_QUERY, N_SHOT, N_WAY


def _sample(pool: Pool, n_tasks: int, seed: int, n_way: int, n_shot: int, n_query: int) -> Tasks:
    return context_tasks.sample_with(pool, n_tasks, seed, n_way, n_shot, n_query, lambda tasks: tasks.same)


SAMPLER = Sampler(
    "iid",
    "Same contexts (IID)",
    "Support shares the queries' contexts (after Zhang et al. 2024).",
    _sample,
    (N_WAY, N_SHOT, N_QUERY),
    needs=("images", "contexts"),
    samples_images=True,
    order=10,
    excluded=context_tasks.excluded_classes,
)
