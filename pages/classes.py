from fsviz.ui.pages import classes
from fsviz.ui.parts import shell

shell.run(classes.PAGE)
