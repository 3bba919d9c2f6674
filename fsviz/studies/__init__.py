"""One file per study: a paper, or a question, walking through the rooms from top to bottom.

RUNNABLE names the studies that can run as jobs (see fsviz.jobs for what such a module has). Your own study joins by
the environment variable FSVIZ_STUDIES="name=package.module,...": the module must be importable by the workers too.
"""

from __future__ import annotations

import os

RUNNABLE: dict[str, str] = {
    "causes": "fsviz.studies.causes",
    "confusion": "fsviz.studies.confusion",
    "evaluate": "fsviz.studies.evaluate",
    "extraction": "fsviz.studies.extraction",
    "feature_map": "fsviz.studies.feature_map",
    "support_sets": "fsviz.studies.support_sets",
    "hard_sets": "fsviz.studies.support_sets",  # its earlier name, in the specs of recorded runs
    "stress": "fsviz.studies.stress",
    "searches": "fsviz.studies.searches",
    "prediction": "fsviz.studies.prediction",
    "contexts": "fsviz.studies.context_shift",
    "training": "fsviz.studies.training",
}

RUNNABLE.update(
    (name.strip(), module.strip())
    for name, equals, module in (part.partition("=") for part in os.environ.get("FSVIZ_STUDIES", "").split(","))
    if equals
)
