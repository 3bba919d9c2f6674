from fsviz.ui.pages import overview
from fsviz.ui.parts import shell

shell.run(overview.PAGE)
