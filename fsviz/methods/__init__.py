"""Few-shot methods: one file each, with its declaration METHOD and one pure function, batched over tasks.

    predict(support, support_mask, query, query_mask, **settings) -> scores

support (T, W, S, D) and query (T, M, D) are float32 or float64 torch tensors on any device; M counts all queries of a
task. support_mask (T, W, S) and query_mask (T, M) are True where there is an image, so shots, queries and ways may vary
inside a batch. Scores (T, W, M) order the ways of every query, and their softmax over ways is the probability of each;
a way without support gets minus infinity. (Probabilities alone do not suffice: they are equal if features are tiny,
and zero if features are large.) Padding never matters, and a padded query may get any score.
A file in this folder that holds a METHOD is a method: nothing else lists it. Listing imports no torch: methods import
it, and what is built on it, inside their functions.
"""

from __future__ import annotations

import importlib
import pkgutil

from fsviz.errors import UnknownName
from fsviz.methods.declaration import Method
from fsviz.settings import Setting

_PIECES = {"declaration", "geometry", "descent", "transport"}  # what methods are built from


def _declared() -> dict[str, Method]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _PIECES]
    declared = [importlib.import_module(f"{__name__}.{name}").METHOD for name in modules]
    return {method.name: method for method in sorted(declared, key=lambda method: (method.kind, method.order))}


METHODS: dict[str, Method] = _declared()


METHOD_NAMES = Setting(
    "methods",
    "Methods",
    "Few-shot methods that classify the queries.",
    "names",
    ["protonet"],
    choices={name: method.title for name, method in METHODS.items()},
)


def get(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name]
