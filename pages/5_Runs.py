"""Runs: everything that was run, compared task by task and set beside the published numbers."""

from fsviz.ui.pages import runs
from fsviz.ui.parts import shell

with shell.page(
    "What came out, and is the difference real?",
    "Evaluations of {dataset}. Methods that saw the same tasks are compared task by task, and set beside what papers "
    "printed.",
    icon="📈",
    paper="Bennequin et al. (2022), figure 5 and tables 1 to 3",
) as dataset:
    runs.show(dataset)
