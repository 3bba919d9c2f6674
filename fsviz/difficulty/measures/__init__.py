"""Measures of difficulty: one file each, with its declaration MEASURE and one pure function, batched over tasks.

    measure(inputs) -> (T,)

A file in this folder that holds a MEASURE is a measure: nothing else lists it. Listing imports no torch.
"""

from __future__ import annotations

import importlib
import pkgutil

from fsviz.difficulty.measures.declaration import (
    CAUSE_TITLES,
    NEEDS,
    STAGE_TITLES,
    Cause,
    Measure,
    MeasureInputs,
    Need,
    Stage,
)
from fsviz.errors import UnknownName
from fsviz.tables import Column

__all__ = [
    "CAUSE_TITLES",
    "MEASURES",
    "NEEDS",
    "STAGE_TITLES",
    "Cause",
    "Measure",
    "MeasureInputs",
    "Need",
    "Stage",
    "column",
    "get",
    "lower_title",
    "title",
]

_NOT_MEASURES = {"declaration"}


def _declared() -> dict[str, Measure]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_MEASURES]
    measures = [importlib.import_module(f"{__name__}.{name}").MEASURE for name in modules]
    return {measure.name: measure for measure in sorted(measures, key=lambda measure: measure.order)}


MEASURES: dict[str, Measure] = _declared()


def get(name: str) -> Measure:
    """The measure of that name."""
    if name not in MEASURES:
        raise UnknownName("measure", name, MEASURES)
    return MEASURES[name]


def title(name: str) -> str:
    """A measure's title; the name with spaces for a number that came in a file."""
    return MEASURES[name].title if name in MEASURES else name.replace("_", " ")


def lower_title(name: str) -> str:
    """The same inside a sentence or along an axis."""
    return MEASURES[name].lower_title if name in MEASURES else title(name)


def column(name: str) -> Column:
    """The column of a table that holds a measure, a row per task."""
    return Column(name, title(name), kind="number", help=MEASURES[name].description if name in MEASURES else "")
