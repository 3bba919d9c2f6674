from fsviz.ui.pages import learn
from fsviz.ui.parts import shell

shell.run(learn.PAGE)
