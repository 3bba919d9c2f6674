from fsviz.ui.pages import hard_supports
from fsviz.ui.parts import shell

shell.run(hard_supports.PAGE)
