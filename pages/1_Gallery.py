"""What does this dataset look like?"""

from fsviz.ui.pages import images
from fsviz.ui.parts import shell

with shell.page(
    "What does this dataset look like?",
    "Images of {dataset}, filtered in the sidebar. Click one for what is known of it, its neighbours in feature "
    "space and its class's place among meanings.",
    icon="🖼️",
) as dataset:
    images.show(dataset)
