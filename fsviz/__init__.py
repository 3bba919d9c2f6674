"""fsviz shows why a few-shot image-classification task is hard.

Importing this package does no work: rooms (sub-packages) are imported where they are used.
"""

__version__ = "0.1.0"
