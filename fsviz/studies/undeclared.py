"""Wraps the module of a study that is not declared yet into a Study.

Such a module has `plan(spec)`, `run_chunk(spec, index)` and `summarise(spec, chunks)`, and where needed `prepare`,
`finish`, `describe`, `n_bytes`, `here_only`, `waits_for`, SIDE_BY_SIDE, TRANSIENT, HOLDS_A_MODEL and READS_IMAGES.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from types import ModuleType
from typing import Any

from fsviz.settings import Schema
from fsviz.studies.study import Part, Study


@cache
def wrap(name: str, title: str, module: ModuleType) -> Study[Any]:
    """The study that a module describes by the names it has."""
    found = vars(module)

    def parts(spec: Any) -> list[Part]:
        n_chunks = int(module.plan(spec))
        if "waits_for" not in found:
            return [Part("", n_chunks, 1, "parts")]
        grouped = groupby(range(n_chunks), key=lambda index: module.waits_for(spec, index))
        return [Part("", len(list(chunks)), 1, "parts", sequential=needed > 0) for needed, chunks in grouped]

    def index_of(spec: Any, part: int, start: int) -> int:
        return start + (sum(p.n for p in parts(spec)[:part]) if part else 0)

    def message(spec: Any, part: int, start: int, stop: int) -> str:
        return str(module.describe(spec, index_of(spec, part, start)))

    summarise = found.get("finish", module.summarise)
    return Study(
        name=name,
        title=title,
        settings=Schema({}),
        check=dict,
        prepare=found.get("prepare", lambda spec, folder: spec),
        parts=parts,
        run_chunk=lambda spec, part, start, stop: module.run_chunk(spec, index_of(spec, part, start)),
        collect=lambda spec, chunks: (spec, chunks),
        summarise=lambda result: summarise(*result),
        partial=module.summarise,
        message=message if "describe" in found else None,
        n_bytes=found.get("n_bytes", lambda spec: 0.0),
        requires_local=found.get("here_only", lambda spec: ""),
        version=found.get("VERSION", 1),
        threads=found.get("SIDE_BY_SIDE", 1),
        is_transient=found.get("TRANSIENT", False),
        holds_model=found.get("HOLDS_A_MODEL", False),
        reads_images=found.get("READS_IMAGES", False),
    )
