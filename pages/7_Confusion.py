"""Confusion: the graph of classes that a backbone mixes up."""

from fsviz.ui.pages import confusion
from fsviz.ui.parts import shell

with shell.page(
    "Which classes does the backbone mix up?",
    "For every two classes of {dataset}, images that look alike to the backbone gather in communities. Where "
    "communities mix the two classes, a few labelled images will not tell them apart: they are joined below.",
    icon="🔀",
    paper="Bontonou et al. (2020), section IV-B and figures 1 to 3",
) as dataset:
    confusion.show(dataset)
