"""What does this dataset look like?"""

from fsviz.ui import browse, shell

with shell.page(
    "What does this dataset look like?",
    "Images of {dataset}, filtered in the sidebar. Click one for what is known of it, its neighbours in feature "
    "space and its class's place among meanings.",
    icon="🖼️",
) as dataset:
    browse.show(dataset)
