from fsviz.ui.pages import images
from fsviz.ui.parts import shell

shell.run(images.PAGE)
