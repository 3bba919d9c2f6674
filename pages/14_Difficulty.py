"""Difficulty: which causes make the tasks at hand hard, weighed against each other."""

from fsviz.ui.pages import causes
from fsviz.ui.parts import shell

with shell.page(
    "What makes these tasks hard?",
    "Each paper measures one cause. Here every measure of every task of {dataset} is set against what methods got "
    "right, and a regression that has not seen a task says how much each cause explains of its accuracy.",
    icon="🧭",
) as dataset:
    causes.show(dataset)
