from fsviz.ui.pages import add_images
from fsviz.ui.parts import shell

shell.run(add_images.PAGE)
