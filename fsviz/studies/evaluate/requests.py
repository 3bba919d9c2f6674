"""Checks of what a spec asks for: methods, backbones, seed and chunk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fsviz.errors import BadInput, BrokenCode, FsvizError
from fsviz.methods import METHODS
from fsviz.records import Features, Testbed
from fsviz.settings import SEED, RawSettings, Schema, Setting
from fsviz.studies.evaluate.spec import FailedMethod, MethodChoice
from fsviz.user import methods as user_methods

SETTINGS = Schema(
    {
        setting.name: setting
        for setting in (
            Setting("backbones", "Backbones", "Backbones whose features the methods get.", "names", []),
            Setting("testbed", "Testbed", "A saved testbed or a file; otherwise tasks are sampled.", "text", ""),
            SEED,
            Setting("device", "Device", "auto, cpu, cuda, cuda:0, ...", "text", "auto"),
            Setting("chunk", "Tasks per chunk", "0: as many as take about a second.", "int", 0, advanced=True),
            Setting("threads", "Threads", "Threads of a chunk; 0: half of the cores.", "int", 0, advanced=True),
            Setting(
                "predictions", "Predictions", "A file of predictions made elsewhere, in place of methods.", "text", ""
            ),
            Setting("name", "Name", "The method of these predictions.", "text", ""),
        )
    },
    required=("dataset",),
    of="an evaluation",
    nested=("methods", "sampler", "samplers"),
)


def requires_local(spec: RawSettings) -> str:
    """Why a run must not be left to a worker process, "" where it may be: it has code of the user."""
    requested = spec.get("methods")
    for choice in requested if isinstance(requested, list | tuple) else ():
        own = choice.get("own") if isinstance(choice, Mapping) else None
        name = str(choice.get("name")) if isinstance(choice, Mapping) else str(choice)
        if (own and "code" in own) or (not own and user_methods.is_user_method(name)):
            return f"{name} is your own code, which runs only where you start it, from the command line or a notebook"
    return ""


def scale_notes(choices: Iterable[MethodChoice]) -> list[str]:
    """Notes on methods whose predictions change with the scale of the features."""
    titles: dict[str, list[str]] = {}  # by reason
    for choice in choices:
        method = METHODS.get(choice["name"])
        if method is not None and "scale" not in method.invariant_to(choice["parameters"]):
            titles.setdefault(method.units, []).append(method.title)
    return [
        f"{', '.join(dict.fromkeys(names))}: predictions depend on the scale of the features, because {reason}."
        for reason, names in titles.items()
    ]


def check_text(spec: RawSettings, name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f'An evaluation\'s spec needs "{name}", a name. Got {value!r}.')
    return value


def check_seed(spec: RawSettings) -> int:
    return SEED.check(spec.get("seed", SEED.default))


def check_methods(requested: Any) -> tuple[list[MethodChoice], list[FailedMethod]]:
    """The methods with all their parameters, and those of the user that cannot be loaded while others can."""
    if not isinstance(requested, list | tuple) or not requested:
        raise BadInput('An evaluation needs at least one method: "methods": [{"name": "protonet"}].')
    checked_methods: list[MethodChoice] = []
    failed: list[FailedMethod] = []
    for choice in requested:
        choice = {"name": choice} if isinstance(choice, str) else choice
        if not isinstance(choice, Mapping):
            raise BadInput(f'A method is {{"name": ..., "parameters": {{...}}}}. Got {choice!r}.')
        name = str(choice.get("name"))
        code = None if name in METHODS else user_methods.code_of(name)
        try:
            method = METHODS[name] if code is None else user_methods.load_method(code)
        except BrokenCode as error:
            assert code is not None
            failed.append({"method": code.name, "label": code.name, "backbone": "", "error": str(error)})
            continue
        parameters = method.checked(choice.get("parameters"), str(choice.get("preset") or ""))
        checked: MethodChoice = {"name": method.name, "parameters": parameters}
        if code is not None:
            checked["own"] = user_methods.method_record(code, method)
            if any(choice["name"] == method.name and choice.get("own") != checked["own"] for choice in checked_methods):
                raise BadInput(
                    f"Two methods are named {method.name}, and a table could not tell them apart. Rename one."
                )
        if checked in checked_methods:
            raise BadInput(
                f"{method.title} is listed twice with the same parameters. Remove one or change its parameters."
            )
        checked_methods.append(checked)
    if not checked_methods:
        raise BrokenCode(" ".join(choice["error"] for choice in failed))
    return checked_methods, failed


def check_backbones(requested: Any) -> list[str]:
    if not isinstance(requested, list | tuple) or not requested:
        raise BadInput('An evaluation needs at least one backbone with features: "backbones": ["efficientnet_lite0"].')
    return list(dict.fromkeys(str(name) for name in requested))


def check_features(table: Features, testbed: Testbed) -> None:
    from fsviz.evaluation import check_tasks

    try:
        check_tasks(table, testbed.tasks)
    except FsvizError as error:
        raise type(error)(f"Testbed {testbed.name!r} cannot be evaluated. {error}") from error
