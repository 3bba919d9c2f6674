"""What comes from the user: images, methods, predictions, code. The only door for what is not part of fsviz."""
