"""Contexts: how much a dataset leans on its backgrounds, and what that costs."""

from fsviz.ui.pages import contexts
from fsviz.ui.parts import shell

with shell.page(
    "Does it know the thing or its background?",
    "Camels stand in deserts, fish swim in water: a classifier may learn the context instead of the concept. For "
    "{dataset}, fsviz counts which concept is seen in which context, and what it costs when the context changes.",
    icon="🏜️",
    paper="Zhang et al. (2024), MetaCoCo",
) as dataset:
    contexts.show(dataset)
