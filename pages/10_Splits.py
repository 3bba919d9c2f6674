"""Splits: train and test classes a wanted divergence apart."""

from fsviz.ui.pages import train_test_distance
from fsviz.ui.parts import shell

with shell.page(
    "How far are the test classes from the training classes?",
    "Classes of {dataset} are parted so that train and test classes are as far apart as you ask for, by what a "
    "backbone sees in their images alone: near makes what was learned easy to reuse, far makes it hard.",
    icon="✂️",
    paper="Arnold & Sha (2021), sections 4 and 5, figures 1 and 3",
) as dataset:
    train_test_distance.show(dataset)
