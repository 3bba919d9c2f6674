from fsviz.ui.pages import contexts
from fsviz.ui.parts import shell

shell.run(contexts.PAGE)
