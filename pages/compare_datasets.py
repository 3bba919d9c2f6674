from fsviz.ui.pages import compare_datasets
from fsviz.ui.parts import shell

shell.run(compare_datasets.PAGE)
