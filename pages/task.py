from fsviz.ui.pages import task
from fsviz.ui.parts import shell

shell.run(task.PAGE)
