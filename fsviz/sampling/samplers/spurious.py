"""Spurious tasks: the support of a class is in the contexts in which other classes are asked, the worst case."""

from __future__ import annotations

from fsviz.records import Tasks
from fsviz.sampling import context_tasks
from fsviz.sampling.sampler import Pool, Sampler
from fsviz.settings import N_QUERY, N_SHOT, N_WAY


def _sample(pool: Pool, n_tasks: int, seed: int, n_way: int, n_shot: int, n_query: int) -> Tasks:
    return context_tasks.sample_with(pool, n_tasks, seed, n_way, n_shot, n_query, lambda tasks: tasks.swapped)


SAMPLER = Sampler(
    "spurious",
    "Swapped contexts",
    "Support shows the contexts of another class's queries.",
    _sample,
    (N_WAY, N_SHOT, N_QUERY),
    needs=("images", "contexts"),
    samples_images=True,
    order=13,
    excluded=context_tasks.excluded_classes,
)
