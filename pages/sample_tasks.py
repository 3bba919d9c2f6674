from fsviz.ui.pages import sample_tasks
from fsviz.ui.parts import shell

shell.run(sample_tasks.PAGE)
