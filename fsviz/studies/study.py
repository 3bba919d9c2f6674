"""Study: work that can be run, recorded, resumed and shown, declared once.

A study's module holds one `STUDY`. Jobs, pages and commands know nothing else of it:

    spec -> check -> prepare -> parts -> run_chunk, as often as the parts say -> collect -> summarise, finish

A spec is a dictionary of settings, plain JSON. `check` and `prepare` complete it once; every later function gets
the prepared spec with "folder", where `prepare` may have put files. A chunk follows from (spec, part, start, stop)
alone, so one process, several and a cluster give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from fsviz.records import HeadlineNumber
from fsviz.settings import RawSettings, Schema, Value

Arrays: TypeAlias = Mapping[str, np.ndarray]
Spec: TypeAlias = Any  # a checked spec, typed by its study
Result = TypeVar("Result")


@dataclass(frozen=True)
class Part:
    """A stretch of a study's work, cut into chunks.

    label       the part in a line of progress
    n, size     items in the part, and in each of its chunks
    items       the noun for the items
    sequential  this part and all after it begin when all parts before it are finished
    """

    label: str
    n: int
    size: int
    items: str = "tasks"
    sequential: bool = False

    @property
    def n_chunks(self) -> int:
        return math.ceil(self.n / self.size)


@dataclass(frozen=True)
class Work:
    """The amount of work of a spec; `seconds` is an estimate for one ordinary core."""

    n: int
    items: str
    seconds: float


def _nothing(spec: Spec, result: Any) -> dict[str, Any]:
    return {}


def _no_sweeps(spec: Spec) -> dict[str, Sequence[Value]]:
    return {}


def _no_bytes(spec: Spec) -> float:
    return 0.0


def _no_reason(spec: RawSettings) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Study(Generic[Result]):
    """The declaration of a study.

    name            the name of its module, and "study" in a spec
    title           the name of its runs on pages
    question        the question that it answers
    settings        what can be set
    check           a spec with defaults that fit the dataset; unknown settings and impossible values are refused
    prepare         completes a checked spec: samples tasks and writes inputs into a folder
    parts           the work of a prepared spec
    run_chunk       arrays of items `start` to `stop` of a part, one row per item; pure and picklable
    collect         the result of finished chunks: what pages, reports and notebooks use
    summarise       a result as a dictionary of plain JSON; a result that is one needs no function
    work            the amount of work of a checked spec
    shorten         a spec of about n items for a preview, None if there is no shorter one
    partial         a cheaper summary while a run is under way
    finish          saves what a recorded run made; returns what it adds to the summary
    headline        the numbers that sum up a result: points of a curve if a setting is swept; None if there are none
    sweeps          by setting, the default values of a sweep, of those that fit the dataset
    message         the line of progress after a chunk; "" or None for the default one
    n_bytes         about how large chunks and results are, to check the free disk space first
    requires_local  the reason why no worker may run the spec, such as user code; "" if one may
    ignored         settings that do not change what is computed
    version         raised if the same spec gives other chunks; a run of another version is not used again
    threads         chunks that a command computes side by side in threads of its process
    is_transient    chunks are deleted after `finish`
    holds_model     chunks share a model that is slow to load: on a cluster they run in actors
    reads_images    chunks open image files, which all machines of a cluster must see
    """

    name: str
    title: str
    question: str = ""
    settings: Schema
    check: Callable[[RawSettings], Spec]
    prepare: Callable[[Spec, Path], Spec]
    parts: Callable[[Spec], Sequence[Part]]
    run_chunk: Callable[[Spec, int, int, int], Arrays]
    collect: Callable[[Spec, Sequence[Arrays]], Result]
    summarise: Callable[[Any], Mapping[str, Any]] = dict
    work: Callable[[Spec], Work] | None = None
    shorten: Callable[[Spec, int], Spec | None] | None = None
    partial: Callable[[Spec, Sequence[Arrays]], Mapping[str, Any]] | None = None
    finish: Callable[[Spec, Result], Mapping[str, Any]] = _nothing
    headline: Callable[[Any], Sequence[HeadlineNumber]] | None = None
    sweeps: Callable[[Spec], Mapping[str, Sequence[Value]]] = _no_sweeps
    message: Callable[[Spec, int, int, int], str] | None = None
    n_bytes: Callable[[Spec], float] = _no_bytes
    requires_local: Callable[[RawSettings], str] = _no_reason
    ignored: tuple[str, ...] = ()
    version: int = 1
    threads: int = 1
    is_transient: bool = False
    holds_model: bool = False
    reads_images: bool = False

    def n_chunks(self, spec: Spec) -> int:
        return sum(part.n_chunks for part in self.parts(spec))

    def chunk(self, spec: Spec, index: int) -> Arrays:
        """The arrays of a chunk, with the index of its part and its first item."""
        part, start, stop = locate(self.parts(spec), index)
        arrays = self.run_chunk(spec, part, start, stop)
        return {"part": np.array(part), "start": np.array(start), **arrays}

    def describe(self, spec: Spec, index: int) -> str:
        """The line of progress after a chunk."""
        parts = self.parts(spec)
        part, start, stop = locate(parts, index)
        message = self.message(spec, part, start, stop) if self.message else ""
        if message:
            return message
        done = f"{stop:,} of {parts[part].n:,} {parts[part].items}"
        return f"{parts[part].label}: {done}" if parts[part].label else done


def locate(parts: Sequence[Part], index: int) -> tuple[int, int, int]:
    """The part of a chunk, and its range of items (start, stop) there."""
    for which, part in enumerate(parts):
        if index < part.n_chunks:
            return which, index * part.size, min(part.n, (index + 1) * part.size)
        index -= part.n_chunks
    raise IndexError("no such chunk")


def first_needed(parts: Sequence[Part], index: int) -> int:
    """The number of chunks, counted from the first, that must be finished before this one begins."""
    needed = before = 0
    for part in parts:
        needed = before if part.sequential else needed
        before += part.n_chunks
        if index < before:
            return needed
    raise IndexError("no such chunk")


def joined(chunks: Sequence[Arrays]) -> dict[int, dict[str, np.ndarray]]:
    """The arrays of each part in the order of its items, with the "positions" of these."""
    by_part: dict[int, list[Arrays]] = {}
    for chunk in chunks:
        by_part.setdefault(int(chunk["part"]), []).append(chunk)
    return {which: _joined(by_part[which]) for which in sorted(by_part)}


def _joined(chunks: list[Arrays]) -> dict[str, np.ndarray]:
    ordered = sorted(({**chunk} for chunk in chunks), key=lambda arrays: int(arrays["start"]))
    names = [name for name in ordered[0] if name not in ("part", "start")]
    rows = {name: np.concatenate([arrays[name] for arrays in ordered]) for name in names}
    starts = [int(arrays["start"]) + np.arange(len(arrays[names[0]])) for arrays in ordered]
    return {**rows, "positions": np.concatenate(starts)}
