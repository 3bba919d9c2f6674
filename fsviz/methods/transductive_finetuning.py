"""Transductive finetuning (Dhillon et al. 2020), of the prototypes only, transductive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsviz.methods.declaration import STEPS_IN_UNITS, Method, lr, scale, steps

if TYPE_CHECKING:
    from torch import Tensor

METHOD = Method(
    "transductive_finetuning",
    "Transductive finetuning",
    "Dhillon et al. 2020",
    7,
    "transductive",
    "Fits prototypes to the support and makes query predictions confident.",
    (steps(25), lr(5e-5), scale(1.0)),
    presets={"paper": {}, "easyfsl": {}},
    scale_free=None,
    shift_free={},
    units=STEPS_IN_UNITS,
    family="Fine-tuning",
)


def predict(
    support: Tensor,
    support_mask: Tensor,
    query: Tensor,
    query_mask: Tensor,
    steps: int = 25,
    lr: float = 5e-5,
    scale: float = 1.0,
) -> Tensor:
    """Moves the prototypes by Adam on CE(support) + mean entropy of the queries' predictions.

    Scores are minus the Euclidean distances: TIM without its care for balance. The backbone stays as it is (the paper
    trains it too).
    """
    from fsviz.methods import tim

    return tim.predict(
        support,
        support_mask,
        query,
        query_mask,
        steps=steps,
        lr=lr,
        scale=scale,
        marginal_weight=0.0,
        conditional_weight=1.0,
    )
