"""Few-shot methods: one file and one pure function each, batched over tasks.

    predict(support, support_mask, query, query_mask, **parameters) -> scores

support (T, W, S, D) and query (T, M, D) are float32 or float64 torch tensors on any device, M = all queries of a task
in one row; support_mask (T, W, S) and query_mask (T, M) are True where an image is, so shots, queries and ways may vary
inside a batch. Scores (T, W, M) order the ways of every query, and their softmax over ways is the probability of each;
a way without support gets minus infinity. (Probabilities alone would not do: they are equal where features are tiny,
and zero where they are large.) What stands at padded places never matters, and a padded query may get any score.
Listing METHODS does not import torch: `load()` does.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    scale_free    predictions stay when all features are multiplied by a number, under these choices of its parameters
                  (none needed: {}); None where they never do.
    shift_free    the same for a vector that is added to all features.
    units         where the scale matters, why.
    """

    name: str
    title: str
    paper: str
    kind: Literal["inductive", "transductive"]
    what: str
    parameters: tuple[Parameter, ...] = ()
    wants_centre: bool = False
    pairwise: bool = False
    scale_free: Mapping[str, tuple[str, ...]] | None = field(default_factory=dict)
    shift_free: Mapping[str, tuple[str, ...]] | None = None
    units: str = ""

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

    def invariant_to(self, parameters: Mapping[str, Any] | None = None) -> frozenset[str]:
        """Which of "scale" and "shift" of the features change no prediction, with these parameters."""
        values = {p.name: p.default for p in self.parameters} | dict(parameters or {})
        rules = {"scale": self.scale_free, "shift": self.shift_free}
        return frozenset(
            change
            for change, rule in rules.items()
            if rule is not None and all(values[name] in choices for name, choices in rule.items())
        )

    def invariance(self, parameters: Mapping[str, Any] | None = None) -> str:
        """The same in words for whoever brings features of another scale or origin."""
        free = self.invariant_to(parameters)
        if free == {"scale", "shift"}:
            return "Multiplying all features by a number, or adding a vector to them, changes no prediction."
        if free == {"scale"}:
            return "Multiplying all features by a number changes no prediction; adding a vector to them does."
        if free == {"shift"}:
            return f"Adding a vector to all features changes no prediction; multiplying them does: {self.units}."
        return f"Multiplying all features by a number, or adding a vector to them, changes predictions: {self.units}."


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


def _steps(default: int) -> Parameter:
    return Parameter("steps", default, "Optimisation steps per task.", 0, 1000, "int")


def _lr(default: float) -> Parameter:
    return Parameter("lr", default, "Learning rate: the size of an optimisation step.", 1e-6, 1.0)


def _weight(name: str, default: float, what: str) -> Parameter:
    return Parameter(name, default, what, 0.0, 10.0)


def _choice(name: str, choices: tuple[str, ...], what: str) -> Parameter:
    return Parameter(name, choices[0], what, kind="choice", choices=choices)


_DISTANCE = _choice("distance", ("euclidean", "cosine"), "How nearness is measured: by distance, or by angle alone.")
_EUCLIDEAN = {"distance": ("euclidean",)}  # distances do not see the origin, angles do
_STEPS_IN_UNITS = "the learning rate is in units of the features"
_DECAY = "Pulls the weights towards zero: larger keeps them smaller."

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "protonet",
            "ProtoNet",
            "Snell et al. 2017",
            "inductive",
            "Averages the support features of each class into a prototype and picks the nearest prototype.",
            (_DISTANCE, _scale(1.0)),
            shift_free=_EUCLIDEAN,
        ),
        Method(
            "simpleshot",
            "SimpleShot",
            "Wang et al. 2019",
            "inductive",
            "Picks the nearest prototype after taking the mean off all features and scaling them to length one.",
            (
                _choice(
                    "centring",
                    ("dataset", "support", "none"),
                    "Whose mean features are taken off first. Dataset: split train where the tasks use none of its "
                    "classes, else all images.",
                ),
                _DISTANCE,
                _scale(1.0),
            ),
            wants_centre=True,
            shift_free={"centring": ("dataset", "support")},
        ),
        Method(
            "knn",
            "Nearest neighbours",
            "Cover & Hart 1967",
            "inductive",
            "Lets the k support images nearest to a query vote for their classes.",
            (Parameter("k", 1, "How many support images vote.", 1, 100, "int"), _DISTANCE),
            pairwise=True,
            shift_free=_EUCLIDEAN,
        ),
        Method(
            "matching",
            "MatchingNet",
            "Vinyals et al. 2016",
            "inductive",
            "Lets every support image vote for its class, the more the smaller its angle to the query.",
            (_scale(1.0),),
            pairwise=True,
        ),
        Method(
            "finetune",
            "Finetune",
            "Chen et al. 2019",
            "inductive",
            "Trains a small classifier on the support features for a few steps, the backbone staying as it is.",
            (
                _choice("head", ("cosine", "linear"), "Cosines with trained prototypes, or a linear layer from zero."),
                _steps(10),
                _lr(1e-3),
                _scale(1.0),
            ),
            scale_free=None,
            units=_STEPS_IN_UNITS,
        ),
        Method(
            "baseline_pp",
            "Baseline++",
            "Chen et al. 2019",
            "inductive",
            "Trains one direction per class on the support and scores a query by its cosine with each.",
            (_steps(100), _lr(0.01), Parameter("weight_decay", 1e-3, _DECAY, 0.0, 1.0), _scale(10.0)),
        ),
        Method(
            "logistic",
            "Logistic regression",
            "Bontonou et al. 2020",
            "inductive",
            "Trains a linear classifier on support features of length one, on one image of each class at a time.",
            (
                Parameter("epochs", 50, "Passes over the support.", 1, 500, "int"),
                Parameter("max_steps", 500, "At most so many steps, however large the support.", 1, 10000, "int"),
                _lr(0.01),
                Parameter("weight_decay", 5e-6, _DECAY, 0.0, 1.0),
            ),
        ),
        Method(
            "ridge",
            "Ridge regression (R2D2)",
            "Bertinetto et al. 2019",
            "inductive",
            "Fits the support labels by least squares with small weights, solved exactly in one go.",
            (Parameter("penalty", 1.0, _DECAY, 1e-3, 1000.0), _scale(10.0)),
            pairwise=True,
        ),
        Method(
            "bd_cspn",
            "BD-CSPN",
            "Liu et al. 2020",
            "transductive",
            "Moves the prototypes towards the queries that look like them, then picks the prototype of smallest angle.",
            (_scale(1.0),),
        ),
        Method(
            "tim",
            "TIM",
            "Boudiaf et al. 2020",
            "transductive",
            "Trains prototypes to fit the support while being sure of each query and using all classes equally.",
            (
                _steps(100),
                _lr(1e-3),
                _scale(10.0),
                _weight("cross_entropy_weight", 1.0, "How much fitting the support counts."),
                _weight("marginal_weight", 1.0, "How much using all classes equally counts."),
                _weight("conditional_weight", 0.1, "How much being sure of every query counts."),
            ),
            scale_free=None,
            units=_STEPS_IN_UNITS,
        ),
        Method(
            "transductive_finetuning",
            "Transductive finetuning",
            "Dhillon et al. 2020",
            "transductive",
            "Trains prototypes to fit the support while being sure of each query.",
            (_steps(25), _lr(5e-5), _scale(1.0)),
            scale_free=None,
            shift_free={},
            units=_STEPS_IN_UNITS,
        ),
        Method(
            "pt_map",
            "PT-MAP",
            "Hu et al. 2021",
            "transductive",
            "Shares the queries out among the classes at the least total distance and moves the prototypes, in turns.",
            (
                _steps(10),
                _lr(0.2),
                Parameter("sharpness", 10.0, "Larger assigns each query to fewer classes.", 0.1, 100.0),
                Parameter("power", 0.5, "Exponent that evens out the features before use.", 0.1, 1.0),
                _choice("normalise", ("after", "before", "none"), "When features are scaled to length one."),
            ),
            pairwise=True,
            scale_free={"normalise": ("before",)},
            units="a millionth is added before the power is taken",
        ),
        Method(
            "laplacian_shot",
            "LaplacianShot",
            "Ziko et al. 2020",
            "transductive",
            "Picks a near prototype for each query while nudging queries that look alike towards the same class.",
            (
                Parameter("neighbours", 3, "How many alike queries each query listens to.", 1, 50, "int"),
                _steps(20),
                Parameter("smoothness", 0.7, "How much a query listens to them.", 0.0, 10.0),
                _choice("normalise", ("l2", "none"), "Whether features are scaled to length one."),
            ),
            pairwise=True,
            scale_free={"normalise": ("l2",)},
            units="squared distances are weighed against the agreement of queries",
        ),
    )
}
