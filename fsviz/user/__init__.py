"""User images, methods, predictions and code: the only door for what is not part of fsviz."""
