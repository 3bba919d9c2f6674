"""ANIL (Raghu et al. 2020): MAML that adapts the last layer alone; the features are shared by all tasks."""

from __future__ import annotations

from functools import partial

from fsviz.training import maml
from fsviz.training.declaration import INNER_LOOP, Trainer

TRAINER = Trainer(
    "anil",
    "ANIL",
    "Raghu et al. 2020",
    3,
    "tasks",
    "head",
    "As MAML, but a task adapts the last layer alone: the features stay as they are.",
    INNER_LOOP,
)
ONLY = "head."  # the weights that a task changes, by how their names start
build = maml.build
step, scores = partial(maml.step, only=ONLY), partial(maml.scores, only=ONLY)
