from fsviz.ui.pages import image_map
from fsviz.ui.parts import shell

shell.run(image_map.PAGE)
