"""Passport: everything that is known of one task, by a link that names it."""

from fsviz.ui.pages import task
from fsviz.ui.parts import shell

with shell.page(
    "What is known of this one task?",
    "One task of {dataset} from every side: its images and what methods said of them, its classes, every measure "
    "beside the other tasks of its testbed. The link names the task, on any machine.",
    icon="🪪",
) as dataset:
    task.show(dataset)
