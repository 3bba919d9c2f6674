"""One file per study: a paper, or a question, walking through the rooms from top to bottom.

A study that can run as a job declares itself (see fsviz.studies.study). Your own study joins by the environment
variable FSVIZ_STUDIES="name=package.module,...": the module must be importable by the workers too.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from fsviz.errors import UnknownName
from fsviz.studies.study import Study


class Runnable(NamedTuple):
    """A study that can run as a job: its module, and what people call a run of it."""

    module: str
    title: str


RUNNABLE: dict[str, Runnable] = {
    "causes": Runnable("fsviz.studies.causes", "causes of difficulty"),
    "confusion": Runnable("fsviz.studies.confusion", "confusion of classes"),
    "evaluate": Runnable("fsviz.studies.evaluate", "evaluation"),
    "extraction": Runnable("fsviz.studies.extraction", "features"),
    "feature_map": Runnable("fsviz.studies.feature_map", "map of features"),
    "support_sets": Runnable("fsviz.studies.support_sets", "hard tasks"),
    "stress": Runnable("fsviz.studies.stress", "stress test"),
    "searches": Runnable("fsviz.studies.searches", "searches for hard tasks"),
    "prediction": Runnable("fsviz.studies.prediction", "prediction of accuracy"),
    "context_shift": Runnable("fsviz.studies.context_shift", "context shift"),
    "training": Runnable("fsviz.studies.training", "training"),
}

RUNNABLE.update(
    (name.strip(), Runnable(module.strip(), name.strip().replace("_", " ")))
    for name, equals, module in (part.partition("=") for part in os.environ.get("FSVIZ_STUDIES", "").split(","))
    if equals
)


def get(name: object) -> Study[Any]:
    """The study of this name."""
    if not isinstance(name, str) or name not in RUNNABLE:
        raise UnknownName("study", name, sorted(RUNNABLE), 'A run\'s spec needs "study".')
    module = importlib.import_module(RUNNABLE[name].module)
    if hasattr(module, "STUDY"):
        return module.STUDY
    from fsviz.studies.undeclared import wrap

    return wrap(name, RUNNABLE[name].title, module)


def of(spec: Mapping[str, Any]) -> Study[Any]:
    """The study that a spec names."""
    return get(spec.get("study"))


def title_of(study: str) -> str:
    """What people call a run of a study, also of one that is no longer known."""
    return RUNNABLE[study].title if study in RUNNABLE else study.replace("_", " ")
