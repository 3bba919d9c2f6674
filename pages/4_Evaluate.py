"""Evaluate: few-shot methods on the same tasks, at once on a few and in the background on many."""

from fsviz.ui.pages import evaluate
from fsviz.ui.parts import shell

with shell.page(
    "Which method suits these images?",
    "Every method sees the same tasks of {dataset}: a few labelled images per class (support), then it names new ones "
    "(query). Accuracy is the share of queries it names rightly.",
    icon="⚖️",
    paper="Bennequin et al. (2022), tables 1 to 3",
) as dataset:
    evaluate.show(dataset)
