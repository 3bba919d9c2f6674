"""Build a task: choose its classes and support images, and see what each of them does."""

from fsviz.ui.pages import edit_task
from fsviz.ui.parts import shell

with shell.page(
    "What does one support image change?",
    "Put a task of {dataset} together yourself: choose its classes, swap a support image for another, and see which "
    "queries turn right or wrong and what of the task's causes moves with it.",
    icon="🧪",
) as dataset:
    edit_task.show(dataset)
