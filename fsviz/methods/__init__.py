"""Few-shot methods: one file and one pure function each, batched over tasks.

    predict(support, support_mask, query, query_mask, **parameters) -> probabilities

support (T, W, S, D) and query (T, M, D) are float32 torch tensors on any device, M = all queries of a task in one row;
support_mask (T, W, S) and query_mask (T, M) are True where an image is, so shots, queries and ways may vary inside
a batch. The answer (T, M, W) has rows that sum to 1; a way without support gets 0, a padded query a row of zeros.
What stands at padded places never matters. Listing METHODS does not import torch: `load()` does.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fsviz.errors import BadInput, UnknownName


@dataclass(frozen=True)
class Parameter:
    """One setting of a method: what the UI needs to draw its control, what `checked` needs to test a value."""

    name: str
    default: int | float | str
    what: str
    low: int | float | None = None
    high: int | float | None = None
    kind: Literal["int", "float", "choice"] = "float"
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A few-shot classifier.

    kind          "inductive" (each query alone) or "transductive" (all queries of a task together).
    wants_centre  predict also takes `centre` (D,), the mean features of a wider set of images than the task.
    pairwise      its work space grows with the square of the images of a task (the chunk size follows from that).
    """

    name: str
    title: str
    paper: str
    kind: Literal["inductive", "transductive"]
    what: str
    parameters: tuple[Parameter, ...] = ()
    wants_centre: bool = False
    pairwise: bool = False

    def load(self) -> Callable[..., Any]:
        """The predict function; imports torch."""
        return importlib.import_module(f"fsviz.methods.{self.name}").predict

    def checked(self, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Every parameter with its value: the given ones, tested, over the defaults."""
        known = {p.name: p for p in self.parameters}
        values: dict[str, Any] = {p.name: p.default for p in self.parameters}
        for name, value in (parameters or {}).items():
            if name not in known:
                raise UnknownName(f"parameter of {self.title}", name, known)
            values[name] = _checked_value(self, known[name], value)
        return values


def get(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UnknownName("method", name, METHODS)
    return METHODS[name]


def _checked_value(method: Method, parameter: Parameter, value: Any) -> Any:
    what = f"{parameter.name} of {method.title}"
    if parameter.kind == "choice":
        if value not in parameter.choices:
            raise BadInput(f"{what} must be one of {', '.join(parameter.choices)}. Got {value!r}.")
        return value
    rule = f"{what} must be {'a whole' if parameter.kind == 'int' else 'a'} number"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"{rule}. Got {value!r}.")
    if parameter.kind == "int" and value != int(value):
        raise BadInput(f"{rule}. Got {value!r}.")
    if not parameter.low <= value <= parameter.high:
        raise BadInput(f"{rule} from {parameter.low:g} to {parameter.high:g}. Got {value!r}.")
    return int(value) if parameter.kind == "int" else float(value)


def _scale(default: float) -> Parameter:
    return Parameter("scale", default, "Multiplies the scores before softmax: larger is more confident.", 0.01, 100.0)


def _steps(default: int, high: int = 1000) -> Parameter:
    return Parameter("steps", default, "Optimisation steps per task.", 0, high, "int")


def _lr(default: float) -> Parameter:
    return Parameter("lr", default, "Learning rate: the size of an optimisation step.", 1e-6, 1.0)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "protonet",
            "ProtoNet",
            "Snell et al. 2017",
            "inductive",
            "Averages the support features of each class into a prototype and picks the nearest prototype.",
            (
                Parameter(
                    "distance",
                    "euclidean",
                    "How nearness is measured: squared Euclidean distance, or the angle alone.",
                    kind="choice",
                    choices=("euclidean", "cosine"),
                ),
                _scale(1.0),
            ),
        ),
    )
}
