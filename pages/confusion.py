from fsviz.ui.pages import confusion
from fsviz.ui.parts import shell

shell.run(confusion.PAGE)
