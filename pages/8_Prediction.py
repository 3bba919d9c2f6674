"""Prediction: what can be known of a task's accuracy before its queries have labels."""

from fsviz.ui.pages import predict_accuracy
from fsviz.ui.parts import shell

with shell.page(
    "Can the accuracy be known without labels?",
    "In practice nobody has labelled queries to test a few-shot classifier with. For tasks of {dataset}, fsviz sets "
    "numbers that need no such labels against what a classifier then gets right.",
    icon="🔮",
    paper="Bontonou et al. (2020)",
) as dataset:
    predict_accuracy.show(dataset)
