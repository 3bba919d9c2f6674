"""Is my data harder than other data, and why? The same measures for two or more datasets or splits.

    names -> datasets and splits -> tasks with the same settings -> measures and accuracy -> differences

A measure is compared only if it means the same for both:
- Semantic distances of two taxonomies, or of two splits of one, are on different scales: with C classes of equal size,
  Jiang-Conrath has the maximum 2 log C. Here all classes are in one graph, each counting once; taxonomies that share no
  root cannot be joined and are not compared.
- Measures on features, accuracy included, need features of the same backbone for both.
- Attributes and training classes belong to a dataset: they are compared between its own splits only.

A difference is tested twice: over tasks (on these classes and images only) and over classes (for other classes of the
same kind).
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
    example_images,
    fit,
    joint_distances,
)
from fsviz.analyses.compare_datasets.sentences import describe_setting, details, headline, notes, verdict
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
    "describe_setting",
    "details",
    "differences",
    "direction",
    "example_images",
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
    "verdict",
]
