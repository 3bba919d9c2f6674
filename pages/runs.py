from fsviz.ui.pages import runs
from fsviz.ui.parts import shell

shell.run(runs.PAGE)
