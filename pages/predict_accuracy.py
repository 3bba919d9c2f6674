from fsviz.ui.pages import predict_accuracy
from fsviz.ui.parts import shell

shell.run(predict_accuracy.PAGE)
