"""The stages of a training run: images, epochs, the rate of Finetune, test tasks."""

from __future__ import annotations

from typing import Any

from fsviz.settings import Settings
from fsviz.studies.study import Part
from fsviz.training import FINETUNE, TITLES

TEST_AT_ONCE = 50  # test tasks of a chunk

TrainingSpec = dict[str, Any]


def entries(spec: Settings) -> list[str]:
    """Methods measured on the test tasks: the trained one and, with the backbone of Multiclass, Finetune."""
    return [spec["method"], *([FINETUNE] if spec.get("finetune_steps") else [])]


def parts(spec: TrainingSpec) -> list[Part]:
    """Images in any order, epochs one after another, the rate of Finetune, then the tests of everything measured."""
    epochs = [Part("epoch", 1, 1, "epochs", sequential=True)] * spec["epochs"]
    rate = [Part("rate", 1, 1, "rates", sequential=True)] if _seeks_rate(spec) else []
    first, *rest = entries(spec)
    tests = [Part(TITLES[first], spec["n_tasks"], TEST_AT_ONCE, "test tasks", sequential=True)]
    tests += [Part(TITLES[which], spec["n_tasks"], TEST_AT_ONCE, "test tasks") for which in rest]
    return [Part("images read", spec["n_parts"], 1, "parts"), *epochs, *rate, *tests]


def _seeks_rate(spec: TrainingSpec) -> bool:
    return FINETUNE in entries(spec) and not spec["finetune_lr"]


def stage_of(spec: TrainingSpec, part: int) -> tuple[str, int]:
    """The stage of a part ("read", "epoch", "rate" or "test") and its place there."""
    for stage, n in (("read", 1), ("epoch", spec["epochs"]), ("rate", int(_seeks_rate(spec)))):
        if part < n:
            return stage, part
        part -= n
    return "test", part
