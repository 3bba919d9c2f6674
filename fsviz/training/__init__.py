"""Networks trained on the train classes of a split, from pixels: one file per way, with its declaration TRAINER.

    step(learner, images, batch, settings) -> loss, accuracy     one step of Adam
    scores(learner, images, support, query, settings) -> scores  of the queries of test tasks, the network as it is

`images` gives pixels by row (see networks.Images). A batch is rows (B,) and labels (B,) where a trainer learns from
images, and support (T, W, S) and query (T, W, Q) rows where it learns from tasks. Scores are (T, W, W Q): label said,
then queries in a row, the order of Predictions. Reads and writes nothing. Listing imports no torch.

networks     a network with its head and optimiser, as arrays and back
adapting     gradient steps on the support of a task, many tasks at once
prototypes   nearest prototype on features
finetuning   Finetune: a trained backbone adapted on a test task
"""

from __future__ import annotations

import importlib
import pkgutil

from fsviz.errors import UnknownName
from fsviz.training.declaration import Trainer

_PIECES = {"declaration", "networks", "inner_loop", "prototypes", "finetuning"}
FINETUNE = "finetune"  # the name of finetuning, next to those of trainers


def _declared() -> dict[str, Trainer]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name not in _PIECES]
    declared = [importlib.import_module(f"{__name__}.{name}").TRAINER for name in modules]
    return {trainer.name: trainer for trainer in sorted(declared, key=lambda trainer: trainer.order)}


TRAINERS: dict[str, Trainer] = _declared()
TITLES = {**{name: trainer.title for name, trainer in TRAINERS.items()}, FINETUNE: "Finetune"}


def get(name: str) -> Trainer:
    """The trainer of that name."""
    if name not in TRAINERS:
        hint = "Finetune is what Multiclass gives too: train multiclass." if name == FINETUNE else ""
        raise UnknownName("method of training", name, TRAINERS, hint)
    return TRAINERS[name]
