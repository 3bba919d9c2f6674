"""One file per study: a paper, or a question, walking through the rooms from top to bottom.

A module here that holds a STUDY can run as a job under its name (see fsviz.studies.study); nothing else lists it. Your
own study joins by the environment variable FSVIZ_STUDIES="name=package.module,...": the module must be importable by
the workers too.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from fsviz.errors import UnknownName
from fsviz.studies.study import Study

OWN: dict[str, str] = {  # modules of the user's studies by name
    name.strip(): module.strip()
    for name, equals, module in (part.partition("=") for part in os.environ.get("FSVIZ_STUDIES", "").split(","))
    if equals
}
_MODULES = frozenset(module.name for module in pkgutil.iter_modules(__path__))


def get(name: object) -> Study[Any]:
    """The study of this name."""
    module = _module_of(name) if isinstance(name, str) else None
    if module is None or not hasattr(module, "STUDY"):
        raise UnknownName("study", name, names(), 'A run\'s spec needs "study".')
    return module.STUDY


def of(spec: Mapping[str, Any]) -> Study[Any]:
    """The study that a spec names."""
    return get(spec.get("study"))


def names() -> list[str]:
    """The names of all studies that can run as jobs."""
    return sorted({name for name in _MODULES if hasattr(_module_of(name), "STUDY")} | set(OWN))


def title_of(study: str) -> str:
    """The title of a study's runs for people; its name if there is no such study any more."""
    try:
        return get(study).title
    except UnknownName:
        return study.replace("_", " ")


def _module_of(name: str) -> ModuleType | None:
    if name in OWN:
        return importlib.import_module(OWN[name])
    return importlib.import_module(f"{__name__}.{name}") if name in _MODULES else None
