"""How do I bring my own images?"""

from fsviz.ui.pages import add_images
from fsviz.ui.parts import shell

with shell.page(
    "How do I bring my own images?",
    "Point at a folder, a table or a zip; say what the classes mean; let a backbone look at the images. "
    "Nothing leaves this computer.",
    icon="➕",
) as dataset:
    add_images.show(dataset)
