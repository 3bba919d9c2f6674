"""Tasks + features + method -> predictions -> accuracies, intervals, quartiles, confusion.

Accuracies are fractions from 0 to 1 throughout this room; whoever prints them multiplies by 100.
"""

from __future__ import annotations

from fsviz.evaluation.accuracy import (
    PairConfusion,
    accuracy_by_quantile,
    class_accuracy,
    correct_queries,
    mean_loss,
    pair_confusion,
    quantile_groups,
    rolling_accuracy,
    summary,
    task_accuracy,
    task_confidence,
    task_top_k,
    varies,
    window_starts,
)
from fsviz.evaluation.intervals import CI_UNITS, Correlation, Estimate, correlation, estimate, of_influence
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
from fsviz.evaluation.regression import VarianceExplained, VarianceShare, explain, sampling_noise
from fsviz.evaluation.two_way import two_way_errors

__all__ = [
    "CI_UNITS",
    "Correlation",
    "Estimate",
    "PairConfusion",
    "PairedDifference",
    "VarianceExplained",
    "VarianceShare",
    "accuracy_by_quantile",
    "check_class_sizes",
    "check_tasks",
    "chunk_size",
    "class_accuracy",
    "correct_queries",
    "correlation",
    "estimate",
    "evaluate",
    "explain",
    "features_mean",
    "mean_loss",
    "method_ranks",
    "of_influence",
    "pair_confusion",
    "paired_difference",
    "predictions_from",
    "quantile_groups",
    "resolved_device",
    "rolling_accuracy",
    "sampling_noise",
    "summary",
    "task_accuracy",
    "task_confidence",
    "task_top_k",
    "two_way_errors",
    "varies",
    "window_starts",
]
