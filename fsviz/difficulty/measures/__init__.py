"""Measures of difficulty: one file each, with its declaration MEASURE and one pure function, batched over tasks.

    measure(given) -> (T,)

A file in this folder that holds a MEASURE is a measure: nothing else lists it. Listing imports no torch.
"""

from __future__ import annotations

import importlib
import pkgutil

from fsviz.difficulty.measures.declaration import CAUSES, EASED, NEEDS, STAGES, Cause, Given, Measure, Need, Stage
from fsviz.errors import UnknownName
from fsviz.tables import Column

__all__ = [
    "CAUSES",
    "EASED",
    "MEASURES",
    "NEEDS",
    "STAGES",
    "Cause",
    "Given",
    "Measure",
    "Need",
    "Stage",
    "axis",
    "column",
    "get",
    "title",
]

_PIECES = {"declaration"}  # what measures are built from


def _found() -> dict[str, Measure]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _PIECES]
    declared = [importlib.import_module(f"{__name__}.{name}").MEASURE for name in modules]
    return {measure.name: measure for measure in sorted(declared, key=lambda measure: measure.place)}


MEASURES: dict[str, Measure] = _found()


def get(name: str) -> Measure:
    """The measure of that name."""
    if name not in MEASURES:
        raise UnknownName("measure", name, MEASURES)
    return MEASURES[name]


def title(name: str) -> str:
    """What a number that tasks carry is called: a measure's title, or its own name in words where it came in a file."""
    return MEASURES[name].title if name in MEASURES else name.replace("_", " ")


def axis(name: str) -> str:
    """The same for an axis, where there is room for what it tells."""
    return MEASURES[name].axis if name in MEASURES else title(name)


def column(name: str) -> Column:
    """The column of a table that holds a measure, a row per task."""
    return Column(name, title(name), kind="number", help=MEASURES[name].what if name in MEASURES else "")
