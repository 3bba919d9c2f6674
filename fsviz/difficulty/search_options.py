"""SearchOptions: the settings that the searches for hard support sets share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fsviz.errors import BadInput

LOSSES = ("euclidean", "cosine")
STARTS = ("ones", "random")
PAPER_STEP = 200.0


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search for support sets; every search reads those that concern it.

    loss      "euclidean" (minus the squared distance, as the paper) or "cosine" (similarity times 10)
    scale     what distances or similarities are multiplied with; None is 10 for cosine, and `natural_scale`, task by
              task, for euclidean. 1 gives the plain squared distance.
    device    where the search computes: cpu, cuda, ...

    Of the gradient steps of FastDiffSel:

    step      size of a step. From equal weights, one step of any size selects the same images.
    n_steps   more than one step starts the next from the projected, now sparse weights.
    start     weights before the first step: "ones" (deterministic) or "random" (uniform in [0, 1), as the paper).
    seed      of random weights, together with the queries of the task: its support is the same in any batch.
    literal   follows algorithm 1 as printed: the gradient of the sum of the losses, weights that may become negative,
              and the heaviest images after the last projection. Large steps leave fewer weights other than zero than
              there are shots; the images of weight zero that fill the set up are random.

    n_sweeps  sweeps of greedy search over all support images
    """

    loss: str = "euclidean"
    scale: float | None = None
    device: str = "cpu"
    step: float = PAPER_STEP
    n_steps: int = 1
    start: str = "ones"
    seed: int = 0
    literal: bool = False
    n_sweeps: int = 1

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise BadInput(f"The loss must be one of {', '.join(LOSSES)}. Got {self.loss!r}.")
        if self.start not in STARTS:
            raise BadInput(f"The weights must start from one of {', '.join(STARTS)}. Got {self.start!r}.")
        if not (math.isfinite(self.step) and self.step > 0):
            raise BadInput(f"The step must be a positive number (the paper uses {PAPER_STEP:g}). Got {self.step}.")
        if self.n_steps < 1:
            raise BadInput(f"There must be at least one gradient step. Got {self.n_steps}.")
        if self.n_sweeps < 1:
            raise BadInput(f"Greedy search needs at least one sweep. Got {self.n_sweeps}.")
