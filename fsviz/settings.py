"""Setting and Schema: what a user can set, declared once.

A declaration names the thing for people and for code, says its limits and its default, and from it follow the check of
a value, the command-line flag, the text in a link and the words of the command to copy. The widget of a page is drawn
from it too, by one function of the ui room. A schema is the settings of one thing, such as a study. Settings that mean
the same everywhere stand at the end.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fsviz.errors import BadInput, UnknownName

RawSettings: TypeAlias = Mapping[str, Any]  # settings by name, as somebody asked for them: nothing is checked yet
Value: TypeAlias = Any  # int, float, str, bool or list of str: the kind of a setting says which, at run time
Settings: TypeAlias = Mapping[str, Value]  # checked settings by name, of whatever declares them: a method, a sampler


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
        """The same setting with another default, title or narrower limits: what a page or command says of it."""
        return replace(self, **changes)

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def check(self, value: Any, of: str = "") -> Value:
        """The value in its own type; an impossible one is refused with the rule. `of` names whose setting it is."""
        what = f"{self.name} of {of}" if of else self.name
        if self.kind == "choice":
            if not isinstance(value, str) or value not in self.choices:
                raise UnknownName(what, value, self.choices)
            return str(value)
        if self.kind == "names":
            return self._check_names(value, what)
        if self.kind in ("flag", "text"):
            if not isinstance(value, bool if self.kind == "flag" else str):
                raise BadInput(f"{what} must be {'true or false' if self.kind == 'flag' else 'text'}. {_got(value)}")
            return value
        whole = self.kind == "int"
        value = value.item() if hasattr(value, "item") else value  # numbers of numpy
        fine = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        if not (fine and self.low <= value <= self.high and (not whole or value == int(value))):
            raise BadInput(f"{what} must be {'a whole' if whole else 'a'} number {self.limits}. {_got(value)}")
        return int(value) if whole else float(value)

    def _check_names(self, value: Any, what: str) -> list[str]:
        if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
            raise BadInput(f"{what} must be a list of names. {_got(value)}")
        for name in value:
            if self.choices and name not in self.choices:
                raise UnknownName(what, name, self.choices)
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
        """The value as a link or a command has it; `parse` reads exactly this value back."""
        if self.kind == "names":
            return ",".join(value)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        return str(value)

    def to_args(self, value: Value) -> list[str]:
        """The flag and the value, as a command has them."""
        if self.kind == "flag":
            return [self.flag if value else f"--no-{self.flag.removeprefix('--')}"]
        text = self.text(value)
        return [f"{self.flag}={text}"] if self.kind == "text" and text.startswith("-") else [self.flag, text]

    def add_flag(self, parser: argparse.ArgumentParser) -> None:
        """Adds the flag; the parsed value is None where it is not given, so that a command knows."""
        told = f"{self.help[:1].lower()}{self.help[1:]}".rstrip(".").replace("%", "%%")
        if self.default not in ("", []):
            told += f" ({self.text(self.default)})"
        if self.kind == "flag":
            parser.add_argument(
                self.flag, dest=self.name, action=argparse.BooleanOptionalAction, default=None, help=told
            )
            return
        shown = "{" + ",".join(self.choices) + "}" if self.choices else self.name.rpartition("_")[2].upper()
        parser.add_argument(self.flag, dest=self.name, type=self.parse, metavar=shown, default=None, help=told)


@dataclass(frozen=True)
class Schema:
    """The settings of one thing.

    required  names that must be given as text besides, such as "dataset"
    of        whose settings they are, for error messages: "the study of causes"
    """

    settings: Mapping[str, Setting]
    required: tuple[str, ...] = ()
    of: str = ""

    def check(self, spec: RawSettings, **defaults: Value) -> dict[str, Value]:
        """Every setting of a spec, checked; one that is missing or None has its default.

        defaults  values that fit the dataset better than those of the declarations
        """
        for name in spec:
            if name not in self.settings and name not in self.required and name != "study":
                raise UnknownName(f"setting of {self.of}", name, sorted((*self.required, *self.settings)))
        for name in self.required:
            if not spec.get(name) or not isinstance(spec[name], str):
                raise BadInput(f'{self.of[:1].upper()}{self.of[1:]} needs "{name}", a name. {_got(spec.get(name))}')
        given = {**defaults, **{name: value for name, value in spec.items() if value is not None}}
        values = {name: setting.check(given.get(name, setting.default)) for name, setting in self.settings.items()}
        return {**{name: spec[name] for name in self.required}, **values}

    def pick(self, spec: RawSettings) -> dict[str, Any]:
        """The settings of a recorded spec, without what was added when it was prepared."""
        return {name: spec[name] for name in (*self.required, *self.settings) if name in spec}


def add_flags(parser: argparse.ArgumentParser, settings: Iterable[Setting]) -> None:
    for setting in settings:
        setting.add_flag(parser)


def from_args(args: argparse.Namespace, settings: Iterable[Setting]) -> dict[str, Value]:
    """The settings that the command line gave, by name."""
    values = {setting.name: getattr(args, setting.name) for setting in settings}
    return {name: value for name, value in values.items() if value is not None}


def to_args(values: Mapping[str, Value], settings: Mapping[str, Setting]) -> list[str]:
    """The flags of these values, as a command has them."""
    return [word for name, value in values.items() for word in settings[name].to_args(value)]


def name_parts(values: Mapping[str, Value], settings: Mapping[str, Setting]) -> list[str]:
    """Settings as parts of a name: those with a short form always, the others where they differ from their default."""
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
    shown = repr(value)
    return f"Got {shown if len(shown) <= 40 else shown[:37] + '...'}."


# The same everywhere ---------------------------------------------------------------------------------------------

N_WAY = Setting(
    "n_way", "Classes per task", "Classes per task: its ways.", "int", 5, 2, 1000, typical=100, brief="{}way"
)
N_SHOT = Setting(
    "n_shot",
    "Support images",
    "Support images per class, the shots: labelled images that a method learns a task from.",
    "int",
    5,
    1,
    1000,
    brief="{}shot",
)
N_QUERY = Setting(
    "n_query",
    "Query images",
    "Query images per class: those that a method has to name.",
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
    "Number of tasks",
    "How many tasks are drawn.",
    "int",
    1000,
    1,
    1_000_000,
    stops=(20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000),
    brief="{}tasks",
    advanced=True,
)
SEED = Setting(
    "seed", "Seed", "The same seed draws the same tasks.", "int", 0, 0, 2**31 - 1, brief="seed{}", advanced=True
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
    least = min(MIN_QUERY, n_query) if len(lower) == 2 else 1
    tried = [(s, q) for s in shots for q in queries if q >= least]
    tried += [(s, q) for s in shots[-1:] for q in queries if q < least]
    return next((sizes for sizes in tried if fits(*sizes)), None)


def images_advice(n_shot: int, n_query: int, n_images: int) -> str:
    """What to do if a class of so many images cannot give n_shot and n_query: a sentence that ends an error."""
    largest = largest_images(n_shot, n_query, lambda shots, queries: shots + queries <= n_images)
    if largest is None:
        return "Leave the class out of the split, or add images of it."
    return f"The largest that fits all classes is n_shot {largest[0]} with n_query {largest[1]}."
