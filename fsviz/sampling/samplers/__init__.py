"""One file per sampler, with its declaration `SAMPLER` at the end: a file put here is found, listed nowhere else."""

from __future__ import annotations

import importlib
import pkgutil

from fsviz.sampling.sampler import Sampler

_FOUND: list[Sampler] = [
    importlib.import_module(f"{__name__}.{module.name}").SAMPLER for module in pkgutil.iter_modules(__path__)
]
SAMPLERS: dict[str, Sampler] = {s.name: s for s in sorted(_FOUND, key=lambda s: (s.order, s.name))}
