from fsviz.ui.pages import evaluate
from fsviz.ui.parts import shell

shell.run(evaluate.PAGE)
