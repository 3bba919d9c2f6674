"""Settings and schemas: everything a user can set, declared once.

A declaration gives a setting its name, title, limits and default. The check of a value, the command-line flag, the
text in a link, the command to copy and the widget on a page follow from it. A schema holds the settings of one thing,
such as a study. Settings shared by several things are at the end.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fsviz.errors import BadInput, UnknownName

RawSettings: TypeAlias = Mapping[str, Any]  # settings by name, as requested: not checked yet
Value: TypeAlias = Any  # int, float, str, bool or list of str, by the kind of the setting
Settings: TypeAlias = Mapping[str, Value]  # checked settings by name


@dataclass(frozen=True)
class Setting:
    """One thing that can be set.

    low, high  limits of a number, both allowed
    step       what one push of a button or key changes
    usual      where a slider ends; a value beyond, up to high, stretches it
    stops      numbers that a slider offers instead of all; others can still be typed into a link or a command
    choices    of kind "choice" and "names": identifier -> title. Links and commands take either, and write the
               identifier; a value of kind "names" is a list of identifiers, with commas between in links and commands
    brief      how the value stands in a name ("{}way"); settings without it stand there only when not at their default
    advanced   out of sight on pages that are shown to a class, as long as it is at its default
    """

    name: str
    title: str
    help: str
    kind: Literal["int", "float", "choice", "flag", "text", "names"]
    default: Value
    low: float = 0
    high: float = math.inf
    step: float | None = None
    typical: float | None = None
    stops: tuple[float, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    brief: str = ""
    advanced: bool = False

    def with_(self, **changes: Any) -> Setting:
        """The same setting with another default, title or narrower limits."""
        return replace(self, **changes)

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def check(self, value: Any, of: str = "") -> Value:
        """The value in its own type; refuses an impossible one with the rule. `of` names the owner of the setting."""
        label = f"{self.name} of {of}" if of else self.name
        if self.kind == "choice":
            if not isinstance(value, str) or value not in self.choices:
                raise UnknownName(label, value, self.choices)
            return str(value)
        if self.kind == "names":
            return self._check_names(value, label)
        if self.kind in ("flag", "text"):
            if not isinstance(value, bool if self.kind == "flag" else str):
                raise BadInput(f"{label} must be {'true or false' if self.kind == 'flag' else 'text'}. {_got(value)}")
            return value
        is_int = self.kind == "int"
        value = value.item() if hasattr(value, "item") else value  # NumPy scalars
        fine = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        if not (fine and self.low <= value <= self.high and (not is_int or value == int(value))):
            raise BadInput(f"{label} must be {'a whole' if is_int else 'a'} number {self.limits}. {_got(value)}")
        return int(value) if is_int else float(value)

    def _check_names(self, value: Any, label: str) -> list[str]:
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise BadInput(f"{label} must be a list of names. {_got(value)}")
        for name in value:
            if self.choices and name not in self.choices:
                raise UnknownName(label, name, self.choices)
        return list(dict.fromkeys(value))

    @property
    def limits(self) -> str:
        """The limits in words: "from 0 to 10,000", or "of at least 1"."""
        low = f"{self.low:,}" if self.kind == "int" else f"{self.low:,g}"
        if math.isinf(self.high):
            return f"of at least {low}"
        return f"from {low} to {self.high:,}" if self.kind == "int" else f"from {low} to {self.high:,g}"

    def parse(self, text: str, of: str = "") -> Value:
        """The value that a link or a command line gives as text."""
        text = text.strip()
        if self.kind == "choice":
            return self.check(self._identifier(text), of)
        if self.kind == "names":
            names = (part.strip() for part in text.split(","))
            return self.check([self._identifier(name) for name in names if name], of)
        if self.kind == "flag":
            return self.check({"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text), of)
        if self.kind == "text":
            return text
        try:
            return self.check(int(text), of)
        except ValueError:
            pass
        try:
            return self.check(float(text), of)
        except ValueError:
            return self.check(text, of)  # refused, with the rule

    def _identifier(self, text: str) -> str:
        titles = {title.lower(): name for name, title in self.choices.items()}
        return text if text in self.choices else titles.get(text.lower(), text)

    def text(self, value: Value) -> str:
        """The value as text for a link or a command; `parse` reads exactly this value back."""
        if self.kind == "names":
            return ",".join(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        return str(value)

    def to_args(self, value: Value) -> list[str]:
        """The flag and the value as arguments of a command."""
        if self.kind == "flag":
            return [self.flag if value else f"--no-{self.flag.removeprefix('--')}"]
        text = self.text(value)
        return [f"{self.flag}={text}"] if self.kind == "text" and text.startswith("-") else [self.flag, text]

    def add_flag(self, parser: argparse.ArgumentParser) -> None:
        """Adds the flag; the parsed value is None if the flag is absent."""
        default = "" if self.default in ("", []) else f" (default: {self.text(self.default)})"
        help_text = f"{(self.help or self.title).rstrip('.')}{default}.".replace("%", "%%")
        if self.kind == "flag":
            parser.add_argument(
                self.flag, dest=self.name, action=argparse.BooleanOptionalAction, default=None, help=help_text
            )
            return
        metavar = "{" + ",".join(self.choices) + "}" if self.choices else self.name.rpartition("_")[2].upper()
        parser.add_argument(self.flag, dest=self.name, type=self.parse, metavar=metavar, default=None, help=help_text)


@dataclass(frozen=True)
class Schema:
    """The settings of one thing.

    required  names that also need a text, such as "dataset"
    of        owner of the settings, for error messages: "the study of causes"
    nested    names of values that are no single setting, such as methods with parameters; their owner checks them
    """

    settings: Mapping[str, Setting]
    required: tuple[str, ...] = ()
    of: str = ""
    nested: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.nested, *self.settings)

    def requested(self, spec: RawSettings) -> dict[str, Value]:
        """The values requested in a spec, checked. None and "" are no values; an empty list is one."""
        for name in spec:
            if name not in self.names and name != "study":
                raise UnknownName(f"setting of {self.of}", name, sorted(self.names))
        for name in self.required:
            if not spec.get(name) or not isinstance(spec[name], str):
                raise BadInput(f'{self.of[:1].upper()}{self.of[1:]} needs "{name}", a name. {_got(spec.get(name))}')
        present = {name: spec[name] for name in self.settings if name in spec and spec[name] not in (None, "")}
        checked = {name: self.settings[name].check(value) for name, value in present.items()}
        unchecked = {name: spec[name] for name in self.nested if spec.get(name) is not None}
        return {**{name: spec[name] for name in self.required}, **unchecked, **checked}

    def check(self, spec: RawSettings, **defaults: Value) -> dict[str, Value]:
        """Every setting of a spec, checked; a missing one gets its default.

        defaults  values that fit the dataset better than the declared defaults
        """
        requested = self.requested(spec)
        values = {
            name: requested[name] if name in requested else setting.check(defaults.get(name, setting.default))
            for name, setting in self.settings.items()
        }
        return {**{name: requested[name] for name in (*self.required, *self.nested) if name in requested}, **values}

    def pick(self, spec: RawSettings) -> dict[str, Any]:
        """The settings of a recorded spec, without what was added when it was prepared."""
        return {name: spec[name] for name in self.names if name in spec}


def add_flags(parser: argparse.ArgumentParser, settings: Iterable[Setting]) -> None:
    for setting in settings:
        setting.add_flag(parser)


def from_args(args: argparse.Namespace, settings: Iterable[Setting]) -> dict[str, Value]:
    """The settings given on the command line, by name."""
    values = {setting.name: getattr(args, setting.name) for setting in settings}
    return {name: value for name, value in values.items() if value is not None}


def to_args(values: Mapping[str, Value], settings: Mapping[str, Setting]) -> list[str]:
    """The arguments of a command that sets these values."""
    return [word for name, value in values.items() for word in settings[name].to_args(value)]


def name_parts(values: Mapping[str, Value], settings: Mapping[str, Setting]) -> list[str]:
    """Settings as parts of a name: those with a short form always, the others if they differ from their default."""
    parts = []
    for name, value in values.items():
        setting = settings[name]
        if setting.brief:
            parts.append(setting.brief.format(setting.text(value)))
        elif setting.kind == "flag":
            parts += [word.lstrip("-") for word in setting.to_args(value)] if value != setting.default else []
        elif value != setting.default:
            plain = setting.kind in ("choice", "text", "names")
            parts.append(setting.text(value) if plain else f"{name}{setting.text(value)}")
    return parts


def _got(value: object) -> str:
    text = repr(value)
    return f"Got {text if len(text) <= 40 else text[:37] + '...'}."


# Shared settings -------------------------------------------------------------------------------------------------

N_WAY = Setting("n_way", "Classes per task", "Number of classes (ways).", "int", 5, 2, 1000, typical=100, brief="{}way")
TOO_EASY = 0.85  # accuracy of ProtoNet with the usual shots from which 1 shot is the default
N_SHOT = Setting(
    "n_shot",
    "Support images",
    f"Labelled images per class (shots). By default 1 if ProtoNet is above {TOO_EASY:.0%} with 5.",
    "int",
    5,
    1,
    1000,
    brief="{}shot",
)
N_QUERY = Setting(
    "n_query",
    "Query images",
    "Images to classify per class.",
    "int",
    10,
    1,
    1000,
    brief="{}query",
)
SHAPE = (N_WAY.name, N_SHOT.name, N_QUERY.name)
MIN_QUERY = 5  # queries per class below which shots are lowered first
N_TASKS = Setting(
    "n_tasks",
    "Tasks",
    "Number of tasks to sample.",
    "int",
    1000,
    1,
    1_000_000,
    stops=(20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000),
    brief="{}tasks",
    advanced=True,
)
SEED = Setting(
    "seed", "Seed", "The same seed gives the same tasks.", "int", 0, 0, 2**31 - 1, brief="seed{}", advanced=True
)


def largest_images(
    n_shot: int, n_query: int, fits: Callable[[int, int], bool], lower: Sequence[str] = (N_SHOT.name, N_QUERY.name)
) -> tuple[int, int] | None:
    """The largest (shots, queries) per class that fit, at most these; None if even the smallest do not fit.

    Queries are lowered to LEAST_QUERY, then shots to 1, each with as many queries as fit, then queries to 1. `lower`
    names what may be lowered.
    """
    shots = range(n_shot, 0, -1) if N_SHOT.name in lower else (n_shot,)
    queries = range(n_query, 0, -1) if N_QUERY.name in lower else (n_query,)
    min_queries = min(MIN_QUERY, n_query) if len(lower) == 2 else 1
    candidates = [(s, q) for s in shots for q in queries if q >= min_queries]
    candidates += [(s, q) for s in shots[-1:] for q in queries if q < min_queries]
    return next((sizes for sizes in candidates if fits(*sizes)), None)


def images_advice(n_shot: int, n_query: int, n_images: int) -> str:
    """Advice for a class of n_images that is too small for n_shot and n_query: the end of an error message."""
    largest = largest_images(n_shot, n_query, lambda shots, queries: shots + queries <= n_images)
    if largest is None:
        return "Remove the class from the split, or add images."
    return f"The largest that fits all classes is n_shot {largest[0]} with n_query {largest[1]}."
