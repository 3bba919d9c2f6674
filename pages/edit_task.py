from fsviz.ui.pages import edit_task
from fsviz.ui.parts import shell

shell.run(edit_task.PAGE)
