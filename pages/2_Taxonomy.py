"""Taxonomy: the graph of meanings behind the classes of a split."""

from fsviz.ui.pages import classes
from fsviz.ui.parts import shell

with shell.page(
    "Which classes mean nearly the same?",
    "Every class of {dataset} hangs below more and more general concepts. Two classes are close in meaning when the "
    "smallest concept above both is small.",
    icon="🌳",
    paper="Bennequin et al. (2022), figures 2 and 4",
) as dataset:
    classes.show(dataset)
