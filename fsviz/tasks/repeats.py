"""The effect of dropping repeated class sets on a testbed: how many samples were repeats, and the coarsity they had."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fsviz.records import Dataset, Testbed
from fsviz.sampling import SAMPLERS
from fsviz.sampling.draw import REPEATS
from fsviz.tasks import draw


@dataclass(frozen=True)
class RepeatCounts:
    """Number of sampled tasks whose classes came before.

    n_drawn     tasks that were sampled to choose from
    n_repeated  of them, those whose classes had come before
    n_distinct  different sets of classes in the testbed
    coarsity    median coarsity of all sampled tasks, repeats included; NaN if it is not available
    distinct    median coarsity of the testbed; NaN if it is not available
    stray       95% margin by which the medians of two testbeds of this size differ by chance
    """

    n_drawn: int
    n_repeated: int
    n_distinct: int
    coarsity: float
    distinct: float
    stray: float

    def describe(self) -> str:
        """Sentences for a caption."""
        if not self.n_repeated:
            return f"{self.n_drawn:,} tasks were sampled to choose from, no two of the same classes."
        share = self.n_repeated / self.n_drawn
        text = (
            f"{self.n_drawn:,} tasks were sampled to choose from; {self.n_repeated:,} of them "
            f"({'less than 1%' if share < 0.01 else f'{share:.0%}'}) repeat the classes of an earlier one. Repeats are "
            "dropped as long as different tasks are left, as published."
        )
        medians = f"median coarsity {self.distinct:.1f}, and {self.coarsity:.1f} with all repeats."
        if abs(self.distinct - self.coarsity) > self.stray:
            text += f" This changes how hard the tasks are, and more so with more tasks: {medians}"
        elif np.isfinite(self.coarsity):
            text += f" The effect on difficulty is not significant here: {medians}"
        return text


def count_repeats(dataset: Dataset, testbed: Testbed, distances: np.ndarray | None = None) -> RepeatCounts | None:
    """The repeats among the tasks sampled for a testbed; None if none were dropped (another sampler, or kept).

    The tasks are sampled again: those that `repeats` keeps are the first of the same sequence.
    """
    if testbed.recipe.get("sampler") not in SAMPLERS:
        return None
    recipe = draw.recipe_of(testbed, dataset)
    drops = any(s.name == REPEATS.name for s in SAMPLERS[recipe.sampler].settings)
    if not drops or recipe.settings.get(REPEATS.name):
        return None
    image_settings = {*draw.IMAGE_SETTINGS, draw.KEEP_GROUPS.name}
    class_settings = {name: value for name, value in recipe.settings.items() if name not in image_settings}
    all_recipe = replace(recipe, settings={**class_settings, REPEATS.name: True}, n_tasks=2 * recipe.n_tasks)
    sampled = draw.sample_testbed(dataset, all_recipe, distances=distances)
    coarsity, kept_coarsity = (
        float(np.median(bed.tasks.measures.get("coarsity", np.nan))) for bed in (sampled, testbed)
    )
    spread = float(np.std(testbed.tasks.measures.get("coarsity", np.nan)))
    stray = 1.96 * 1.2533 * spread / len(testbed.tasks) ** 0.5  # the standard error of a median, about
    n_drawn, n_distinct = len(sampled.tasks), int(sampled.recipe["n_distinct"])
    return RepeatCounts(
        n_drawn,
        n_drawn - n_distinct,
        int(testbed.recipe["n_distinct"]),
        coarsity,
        kept_coarsity,
        stray,
    )
