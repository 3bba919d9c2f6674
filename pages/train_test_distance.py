from fsviz.ui.pages import train_test_distance
from fsviz.ui.parts import shell

shell.run(train_test_distance.PAGE)
