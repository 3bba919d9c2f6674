"""Tasks + features + method -> predictions -> accuracies, intervals, quartiles, confusion.

Accuracies are fractions from 0 to 1 throughout this room; whoever prints them multiplies by 100.
"""

from __future__ import annotations

from fsviz.evaluation.predicting import check_class_sizes, chunk_size, evaluate, features_mean

__all__ = ["check_class_sizes", "chunk_size", "evaluate", "features_mean"]
