"""Which images look alike to the backbone?"""

from fsviz.ui.pages import feature_map
from fsviz.ui.parts import shell

with shell.page(
    "Which images look alike to the backbone?",
    "Images of {dataset} on a map: the nearer two of them lie, the more alike are their features. Draw around some to "
    "see them.",
    icon="🗺️",
) as dataset:
    feature_map.show(dataset)
