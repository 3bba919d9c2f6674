"""The declaration of a training method, and the settings that all share. Imports no torch."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from fsviz.errors import UnknownName
from fsviz.settings import N_QUERY, N_SHOT, N_TASKS, N_WAY, SEED, RawSettings, Setting


@dataclass(frozen=True)
class Trainer:
    """A way to train a network on the train classes of a split, declared next to its `step` and `scores`.

    order         position in lists
    learns_from   "images": an epoch shows every train image once; "tasks": it shows tasks of the train classes
    adapts        what a test task changes: nothing, the head, or all weights
    own_settings  settings in addition to the shared ones
    """

    name: str
    title: str
    paper: str
    order: int
    learns_from: Literal["images", "tasks"]
    adapts: Literal["nothing", "head", "all"]
    description: str
    own_settings: tuple[Setting, ...] = ()

    @property
    def settings(self) -> dict[str, Setting]:
        """Everything that can be set, by name."""
        every = (*SHARED, *(FROM_IMAGES if self.learns_from == "images" else FROM_TASKS), *self.own_settings)
        return {setting.name: setting for setting in every}

    def load(self) -> ModuleType:
        """Its module, with step and scores; importing it imports torch."""
        return importlib.import_module(f"fsviz.training.{self.name}")

    def checked(self, values: RawSettings | None = None) -> dict[str, Any]:
        """Every setting with its value: the given ones (None is not given), tested, over the defaults."""
        provided = {name: value for name, value in (values or {}).items() if value is not None}
        for name in provided:
            if name not in self.settings:
                raise UnknownName(f"setting of {self.title}", name, self.settings)
        return {name: s.check(provided.get(name, s.default)) for name, s in self.settings.items()}


NETWORK = Setting(
    "network",
    "Network",
    "Network to train: four convolutions (CNN4) or a residual network of twelve (ResNet12).",
    "choice",
    "cnn4",
    choices={"cnn4": "CNN4", "resnet12": "ResNet12"},
)
WIDTH = Setting("width", "Filters", "Filters of the first layer. Papers: 64; fewer train faster.", "int", 32, 2, 256)
SIDE = Setting("side", "Pixels per side", "Width and height of the images in pixels.", "int", 32, 16, 224)
EPOCHS = Setting("epochs", "Epochs", "Largest number of epochs.", "int", 30, 1, 2000)
PATIENCE = Setting(
    "patience",
    "Patience",
    "Epochs without better accuracy on validation tasks before training stops.",
    "int",
    10,
    1,
    2000,
)
LR = Setting("lr", "Learning rate", "Learning rate of Adam.", "float", 1e-3, 1e-7, 1.0)
VAL_TASKS = Setting(
    "val_tasks",
    "Validation tasks",
    "Tasks of validation classes to evaluate after every epoch.",
    "int",
    60,
    1,
    10_000,
)
TEST_TASKS = N_TASKS.with_(default=600, help="Tasks of test classes to evaluate the trained network on.", high=100_000)
SHOTS = N_SHOT.with_(help="Labelled images per class (shots).")  # fixed, so that splits are comparable
SHARED = (
    *(NETWORK, WIDTH, SIDE, EPOCHS, PATIENCE, LR, N_WAY, SHOTS, N_QUERY, VAL_TASKS, TEST_TASKS),
    SEED.with_(help="The same seed gives the same first weights, the same batches and the same tasks."),
)
BATCH = Setting("batch", "Batch size", "Images per training step.", "int", 64, 2, 4096)
FINETUNE_STEPS = Setting(
    "finetune_steps",
    "Finetune steps",
    "Gradient steps through the backbone on the support of a test task; 0 skips Finetune. Paper: 5.",
    "int",
    5,
    0,
    100,
)
FINETUNE_LR = Setting(
    "finetune_lr",
    "Finetune learning rate",
    "Learning rate of these steps; 0 picks the best of 0.00001, 0.0001, 0.001 and 0.01 on validation tasks.",
    "float",
    0.0,
    0.0,
    10.0,
)
FROM_IMAGES = (BATCH, FINETUNE_STEPS, FINETUNE_LR)
TASKS_PER_EPOCH = Setting(
    "tasks_per_epoch", "Tasks per epoch", "Tasks of train classes per epoch.", "int", 100, 1, 100_000
)
TASKS_PER_STEP = Setting("tasks_per_step", "Tasks per batch", "Tasks per training step.", "int", 4, 1, 256)
FROM_TASKS = (TASKS_PER_EPOCH, TASKS_PER_STEP)
INNER_LR = Setting(
    "inner_lr",
    "Inner learning rate",
    "Learning rate on the support of a task.",
    "float",
    0.1,
    1e-6,
    10.0,
)
INNER_STEPS = Setting(
    "inner_steps", "Inner steps", "Gradient steps on the support of a task. Paper: 5.", "int", 5, 1, 100
)
ORDER = Setting(
    "order",
    "Order of derivatives",
    "Second: differentiate through the inner steps, as published. First: ignore how the adapted weights "
    "depend on the initial ones, which is faster.",
    "choice",
    "second",
    choices={"second": "Second order", "first": "First order"},
)
STATISTICS = Setting(
    "statistics",
    "Batch-norm statistics",
    "Support images: normalise a task's activations by its support, so each query is classified alone. "
    "Each batch: normalise queries by their own mean and variance, as most published code does; a query "
    "then depends on the others.",
    "choice",
    "support",
    choices={"support": "Support images", "together": "Each batch"},
)
INNER_LOOP = (INNER_LR, INNER_STEPS, ORDER, STATISTICS)
