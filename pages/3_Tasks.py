"""Tasks: draw tasks uniformly or by closeness in meaning, and see what they are like."""

from fsviz.ui.pages import sample_tasks
from fsviz.ui.parts import shell

with shell.page(
    "Are the tasks fine-grained or easy to tell apart?",
    "A task draws a few classes of {dataset}. Its coarsity is the mean squared distance in meaning between them: "
    "small when the classes are much alike, large when they have nothing to do with each other.",
    icon="🎚️",
    paper="Bennequin et al. (2022), figures 1 and 3",
) as dataset:
    sample_tasks.show(dataset)
