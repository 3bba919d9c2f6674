"""Hard tasks: support sets on which a classifier fails, and what makes them hard."""

from fsviz.ui.pages import hard_supports
from fsviz.ui.parts import shell

with shell.page(
    "Which support images make a classifier fail?",
    "A task's support images teach the classes, its queries test them. For the same queries of {dataset}, fsviz picks "
    "the support images that hurt a classifier most (hard), those that help it most (easy), and random ones.",
    icon="🧗",
    paper="Basu et al. (2023), FastDiffSel",
) as dataset:
    hard_supports.show(dataset)
