"""Learn: five causes of difficulty to try out, one at a time, and all together."""

from fsviz.ui.pages import learn
from fsviz.ui.parts import shell

with shell.page(
    "What makes a few-shot task hard, one cause at a time?",
    "Six lessons of about two minutes: one control, one question each. Every number is measured here, on the demo.",
    icon="🎓",
) as dataset:
    learn.show(dataset)
