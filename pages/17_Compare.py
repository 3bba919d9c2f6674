"""Compare: the same measures for two or more datasets or splits side by side."""

from fsviz.ui.pages import compare_datasets
from fsviz.ui.parts import shell

with shell.page(
    "Is my data harder than other data, and why?",
    "Tasks of the same settings are drawn from {dataset} and from what it is compared with, and every measure that "
    "both allow is held against its noise.",
    icon="🪞",
) as dataset:
    compare_datasets.show(dataset)
