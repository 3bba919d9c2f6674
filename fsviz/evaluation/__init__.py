"""Tasks + features + method -> predictions -> accuracies, intervals, quartiles, confusion.

Accuracies are fractions from 0 to 1 throughout this room; whoever prints them multiplies by 100.
"""

from __future__ import annotations

from fsviz.evaluation.accuracy import (
    PairConfusion,
    accuracy_by_quantile,
    class_accuracy,
    mean_loss,
    pair_confusion,
    quantile_groups,
    query_right,
    rolling_accuracy,
    summary,
    task_accuracy,
    task_confidence,
    task_top_k,
    varies,
    window_starts,
)
from fsviz.evaluation.intervals import OVER, Correlation, Estimate, correlation, estimate, of_influence
from fsviz.evaluation.paired import PairedDifference, method_ranks, paired_difference
from fsviz.evaluation.prediction import (
    check_class_sizes,
    check_tasks,
    chunk_size,
    evaluate,
    features_mean,
    predictions_from,
    resolved_device,
)
from fsviz.evaluation.regression import Explained, Share, explain, luck

__all__ = [
    "OVER",
    "Correlation",
    "Estimate",
    "Explained",
    "PairConfusion",
    "PairedDifference",
    "Share",
    "accuracy_by_quantile",
    "check_class_sizes",
    "check_tasks",
    "chunk_size",
    "class_accuracy",
    "correlation",
    "estimate",
    "evaluate",
    "explain",
    "features_mean",
    "luck",
    "mean_loss",
    "method_ranks",
    "of_influence",
    "pair_confusion",
    "paired_difference",
    "predictions_from",
    "quantile_groups",
    "query_right",
    "resolved_device",
    "rolling_accuracy",
    "summary",
    "task_accuracy",
    "task_confidence",
    "task_top_k",
    "varies",
    "window_starts",
]
