"""Which images look alike to the backbone?"""

from fsviz.ui.pages import image_map
from fsviz.ui.parts import shell

with shell.page(
    "Which images look alike to the backbone?",
    "Images of {dataset} on a map: the nearer two of them lie, the more alike are their features. Draw around some to "
    "see them.",
    icon="🗺️",
) as dataset:
    image_map.show(dataset)
