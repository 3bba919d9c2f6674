"""One file per study: a paper, or a question, walking through the rooms from top to bottom.

RUNNABLE names the studies that can run as jobs (see fsviz.jobs for what such a module has). Your own study joins by
the environment variable FSVIZ_STUDIES="name=package.module,...": the module must be importable by the workers too.
"""

from __future__ import annotations

import os
from typing import NamedTuple


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
    "contexts": Runnable("fsviz.studies.context_shift", "context shift"),
    "training": Runnable("fsviz.studies.training", "training"),
}
RUNNABLE["hard_sets"] = RUNNABLE["support_sets"]  # its earlier name, in the specs of recorded runs

RUNNABLE.update(
    (name.strip(), Runnable(module.strip(), name.strip().replace("_", " ")))
    for name, equals, module in (part.partition("=") for part in os.environ.get("FSVIZ_STUDIES", "").split(","))
    if equals
)


def title_of(study: str) -> str:
    """What people call a run of a study, also of one that is no longer known."""
    return RUNNABLE[study].title if study in RUNNABLE else study.replace("_", " ")
