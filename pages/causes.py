from fsviz.ui.pages import causes
from fsviz.ui.parts import shell

shell.run(causes.PAGE)
