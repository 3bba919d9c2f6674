"""Is my data harder than other data, and why? The same measures for two or more datasets or splits side by side.

    names -> sides (each a split of a dataset) -> tasks of the same settings -> measures and accuracy -> differences

A measure is compared where it says the same of both sides:
- Distances in meaning count what lies below a concept, so those of two taxonomies, or of two splits of one, are on
  different scales: with C classes alike in size, Jiang-Conrath ends at 2 log C. Here all classes that are compared
  stand in one graph, each counting once; taxonomies that share no root cannot be joined, and are not compared.
- What is measured on features, accuracies included, is compared under one backbone that has features of both sides.
- Attributes, and the classes to train on, are those of a dataset: compared between its own splits only.

Every difference is held against two kinds of noise. Beyond the interval over tasks, it holds for these very classes and
images; beyond the wider one over classes, also for others of the same kind.
"""

from __future__ import annotations

from fsviz.analyses.compare_datasets.measuring import (
    ACCURACY,
    MAX_SPLITS,
    SAMPLED,
    SETTINGS,
    WORDNET,
    ComparisonSpec,
    DatasetComparison,
    DatasetSplit,
    MeasureEstimate,
    check,
    common_backbone,
    compare,
    dataset_splits,
    fit,
    joint_distances,
)
from fsviz.analyses.compare_datasets.sentences import headline, notes
from fsviz.analyses.compare_datasets.significance import differences, direction, title
from fsviz.analyses.compare_datasets.tables import (
    FACTS,
    NUMBERS,
    PUBLISHED_SUITE,
    SUITE,
    command,
    comparison_dict,
    facts,
    measure_table,
    number_rows,
    published_suite,
    suite_row,
    suite_specs,
)

__all__ = [
    "ACCURACY",
    "FACTS",
    "MAX_SPLITS",
    "NUMBERS",
    "PUBLISHED_SUITE",
    "SAMPLED",
    "SETTINGS",
    "SUITE",
    "WORDNET",
    "ComparisonSpec",
    "DatasetComparison",
    "DatasetSplit",
    "MeasureEstimate",
    "check",
    "command",
    "common_backbone",
    "compare",
    "comparison_dict",
    "dataset_splits",
    "differences",
    "direction",
    "facts",
    "fit",
    "headline",
    "joint_distances",
    "measure_table",
    "notes",
    "number_rows",
    "published_suite",
    "suite_row",
    "suite_specs",
    "title",
]
