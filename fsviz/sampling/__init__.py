"""Drawing tasks: samplers of classes and images, and testbed files.

Samplers take arrays (see Pool): class ids, a distance matrix, the class of every image. SAMPLERS names them.
"""

from __future__ import annotations

from fsviz.sampling.draw import assign_images, count_distinct
from fsviz.sampling.sampler import Need, Pool, Sampler
from fsviz.sampling.samplers import SAMPLERS
from fsviz.sampling.samplers.semantic import sample_semantic
from fsviz.sampling.samplers.uniform import sample_uniform
from fsviz.sampling.samplers.variable import sample_variable
from fsviz.settings import Setting

SAMPLER = Setting(
    "sampler",
    "Sampler",
    "Sampler of the tasks.",
    "choice",
    "semantic",
    choices={sampler.name: sampler.title for sampler in SAMPLERS.values()},
)

__all__ = [
    "SAMPLER",
    "SAMPLERS",
    "Need",
    "Pool",
    "Sampler",
    "assign_images",
    "count_distinct",
    "sample_semantic",
    "sample_uniform",
    "sample_variable",
]
