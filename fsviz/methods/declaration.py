"""The declaration of a few-shot method, and settings that several methods share. Imports no torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fsviz.errors import BadInput, UnknownName
from fsviz.settings import RawSettings, Setting, Settings


@dataclass(frozen=True)
class Method:
    """A few-shot classifier, declared next to its `predict`.

    order         position in lists, and its colour in every figure; no two methods share one.
    kind          "inductive" (each query alone) or "transductive" (all queries of a task together).
    presets       values by whose they are: "paper" (Bennequin et al. 2022 where they used the method) and "easyfsl";
                  none where easyfsl does not have the method.
    wants_centre  predict also takes `centre` (D,), the mean features of a wider set of images than the task.
    pairwise      its work space grows with the square of the images of a task (the chunk size follows from that).
    batch         support images of one step, where a step is not on all images; None if it is.
    scale_free    predictions stay when all features are multiplied by a number, under these choices of its settings
                  (none needed: {}); None if they never do.
    shift_free    the same for a vector that is added to all features.
    units         where the scale matters, why.
    family        as MetaCoCo (Zhang et al. 2024) groups methods; one that it does not have stands with what it does.
    function      the predict function of a method that is no file of this folder.
    """

    name: str
    title: str
    paper: str
    order: int
    kind: Literal["inductive", "transductive"]
    description: str
    own_settings: tuple[Setting, ...] = ()
    presets: Mapping[str, Settings] = field(default_factory=dict)
    wants_centre: bool = False
    pairwise: bool = False
    batch: int | None = None
    scale_free: Mapping[str, tuple[str, ...]] | None = field(default_factory=dict)
    shift_free: Mapping[str, tuple[str, ...]] | None = None
    units: str = ""
    family: Literal["Fine-tuning", "Metric", "Meta"] = "Metric"
    function: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Everything that can be set: what its predict takes, and what is done to the features before."""
        return (*self.own_settings, UNIT_LENGTH)

    @property
    def without_presets(self) -> str:
        """Why nobody's values are offered, after its name; "" if some are."""
        if self.presets:
            return ""
        why = "it is your own" if self.function is not None else "easyfsl does not have this method"
        return f"has no presets: {why}"

    def load(self) -> Callable[..., Any]:
        """The predict function; its first call imports torch."""
        if self.function is not None:
            return self.function
        return importlib.import_module(f"fsviz.methods.{self.name}").predict

    def checked(self, values: RawSettings | None = None, preset: str = "") -> dict[str, Any]:
        """Every setting with its value: the given ones, tested, over those of the preset, over the defaults."""
        if preset and not self.presets:
            raise BadInput(f"{self.title} {self.without_presets}. Got {preset!r}. Leave the preset out.")
        if preset and preset not in self.presets:
            raise UnknownName(f"preset of {self.title}", preset, self.presets)
        settings = {setting.name: setting for setting in self.settings}
        parameters: dict[str, Any] = {name: setting.default for name, setting in settings.items()}
        for name, value in {**self.presets.get(preset, {}), **(values or {})}.items():
            if name not in settings:
                raise UnknownName(f"parameter of {self.title}", name, settings)
            parameters[name] = settings[name].check(value, self.title)
        return parameters

    def invariant_to(self, values: Settings | None = None) -> frozenset[str]:
        """The changes of the features ("scale", "shift") that leave every prediction as it is, with these settings."""
        parameters = {setting.name: setting.default for setting in self.settings} | dict(values or {})
        if parameters[UNIT_LENGTH.name]:  # the length is taken off first, and with it the place of the origin matters
            return frozenset({"scale"})
        rules = {"scale": self.scale_free, "shift": self.shift_free}
        return frozenset(
            change
            for change, rule in rules.items()
            if rule is not None and all(parameters[name] in choices for name, choices in rule.items())
        )

    def invariance(self, values: Settings | None = None) -> str:
        """The same in words for whoever brings features of another scale or origin."""
        free = self.invariant_to(values)
        if free == {"scale", "shift"}:
            return "Invariant to feature scale and shift."
        if free == {"scale"}:
            return "Invariant to feature scale."
        if free == {"shift"}:
            return f"Invariant to feature shift, not scale: {self.units}."
        return f"Depends on feature scale and shift: {self.units}."


# Settings that several methods share -----------------------------------------------------------------------------

UNIT_LENGTH = Setting(
    "unit_length",
    "Unit-length features",
    "Scale features to length 1.",
    "flag",
    False,
)
DISTANCE = Setting(
    "distance",
    "Distance",
    "Euclidean or cosine.",
    "choice",
    "euclidean",
    choices={"euclidean": "Euclidean", "cosine": "Cosine"},
)
EUCLIDEAN = {"distance": ("euclidean",)}  # distances do not see the origin, angles do
STEPS_IN_UNITS = "the learning rate is in units of the features"


def integer(name: str, title: str, default: int, help: str, low: int, high: int) -> Setting:
    return Setting(name, title, help, "int", default, low, high)


def number(name: str, title: str, default: float, help: str, low: float, high: float) -> Setting:
    return Setting(name, title, help, "float", default, low, high)


def choice(name: str, title: str, help: str, choices: Mapping[str, str]) -> Setting:
    """A choice whose first entry is the default: identifier -> title."""
    return Setting(name, title, help, "choice", next(iter(choices)), choices=choices)


def scale(default: float) -> Setting:
    help = "Larger is more confident."
    return number("scale", "Logit scale", default, help, 0.01, 100.0)


def steps(default: int) -> Setting:
    return integer("steps", "Steps", default, "Optimisation steps per task.", 0, 1000)


def lr(default: float) -> Setting:
    return number("lr", "Learning rate", default, "The size of an optimisation step.", 1e-6, 1.0)


def weight_decay(default: float, name: str = "weight_decay", low: float = 0.0, high: float = 1.0) -> Setting:
    help = "Pulls the weights towards zero: larger keeps them smaller."
    return number(name, "Weight decay", default, help, low, high)
