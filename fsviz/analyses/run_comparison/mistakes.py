"""Misclassified queries: confused pairs, accuracy of every class, and reliability of the confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fsviz.records import PAD, Dataset, Predictions, Tasks
from fsviz.tables import Column, Table

if TYPE_CHECKING:
    pass


def pairs_table(answer: Predictions, tasks: Tasks, dataset: Dataset, n: int = 20) -> pd.DataFrame:
    """Pairs of classes by how often the first is predicted as the second, among pairs with enough queries."""
    from fsviz.evaluation import pair_confusion

    confusion = pair_confusion(answer, tasks)
    met = confusion.n_queries[~np.eye(len(confusion.class_ids), dtype=bool)]
    least = max(1, int(np.median(met[met > 0]) // 2)) if (met > 0).any() else 1
    worst = confusion.worst(n, least)
    names = dataset.classes["class_name"].astype(str)
    worst.insert(1, "class_name", names.reindex(worst["class_id"]).fillna("?").to_numpy())
    worst.insert(3, "taken_for_name", names.reindex(worst["taken_for"]).fillna("?").to_numpy())
    worst["rate"] *= 100
    return worst


CLASS_ACCURACIES = Table(
    "Accuracy of every class",
    Column("images", "Images", kind="image", width=210),
    Column("class", "Class"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column("instead", "Most common error", help="The class that most of its misclassified queries are predicted as."),
    Column("instead_share", "Of its errors", kind="percent", digits=0),
    Column("queries", "Queries", kind="count"),
    Column("tasks", "Tasks", kind="count"),
)
MISCLASSIFIED = Table(
    "Query images predicted as another class",
    Column("image_id", "Image", kind="count"),
    Column("task", "Task", kind="count"),
    Column("confidence", "Confidence", kind="percent"),
    Column("times", "Times", kind="count"),
)


def class_table(answer: Predictions, tasks: Tasks, dataset: Dataset) -> pd.DataFrame:
    """Accuracy on the queries of every class, lowest first, in percent, with its interval over the class's tasks.

    Columns class_id, class, accuracy, ci95, instead (the class that most of its errors are predicted as, "" without
    errors), instead_share (percent of its errors), queries, tasks.
    """
    from fsviz.evaluation import class_accuracy, pair_confusion

    table = class_accuracy(answer, tasks)
    names = dataset.classes["class_name"].astype(str)
    confusion = pair_confusion(answer, tasks)
    errors = confusion.confused.copy()
    np.fill_diagonal(errors, 0)
    errors = errors[np.searchsorted(confusion.class_ids, table["class_id"])]
    n_errors = errors.sum(axis=1)
    instead = names.reindex(confusion.class_ids[errors.argmax(axis=1)]).fillna("?").to_numpy()
    return pd.DataFrame(
        {
            "class_id": table["class_id"],
            "class": names.reindex(table["class_id"]).fillna("?").to_numpy(),
            "accuracy": 100 * table["accuracy"],
            "ci95": 100 * table["ci95"],
            "instead": np.where(n_errors > 0, instead, ""),
            "instead_share": 100 * np.where(n_errors > 0, errors.max(axis=1) / np.maximum(n_errors, 1), np.nan),
            "queries": table["n_queries"],
            "tasks": table["n_tasks"],
        }
    )


@dataclass(frozen=True)
class Confidence:
    """Reliability of a method's confidence on some tasks.

    low, high  between which 90% of its values lie
    auroc      how often a correct prediction has a higher confidence than an incorrect one, ties half: 0.5 is chance;
               NaN if all are correct or all incorrect
    """

    low: float
    high: float
    auroc: float

    @property
    def is_told(self) -> bool:
        """Whether its values differ enough to be shown as percentages."""
        return self.high - self.low >= 0.05

    @property
    def orders(self) -> bool:
        """Whether it separates correct from incorrect predictions clearly better than chance."""
        return bool(self.auroc >= 0.6)


def confidence_of(answer: Predictions) -> Confidence:
    """Spread of the confidence, and how well it separates correct from incorrect predictions."""
    from scipy.stats import rankdata

    there = answer.predicted != PAD
    values, right = answer.confidence[there].astype(float), answer.rank[there] == 0
    if not len(values):
        return Confidence(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(values, [0.05, 0.95])
    n_right, n_wrong = int(right.sum()), int((~right).sum())
    auroc = float("nan")
    if n_right and n_wrong:
        auroc = float((rankdata(values)[right].sum() - n_right * (n_right + 1) / 2) / (n_right * n_wrong))
    return Confidence(float(low), float(high), auroc)


def misclassified(answer: Predictions, tasks: Tasks, class_id: int, taken_for: int, n: int = 60) -> pd.DataFrame:
    """Queries of one class that were predicted as another, the most confident errors first.

    Columns image_id, task, confidence (percent), times: an image with errors in several tasks is listed once.
    """
    t, w, q = np.nonzero((tasks.class_ids[:, :, None] == class_id) & (answer.predicted >= 0))
    predicted = tasks.class_ids[t, answer.predicted[t, w, q]]
    t, w, q = (index[predicted == taken_for] for index in (t, w, q))
    frame = pd.DataFrame(
        {"image_id": tasks.query[t, w, q], "task": t, "confidence": 100.0 * answer.confidence[t, w, q]}
    )
    if frame.empty:
        return frame.assign(times=pd.Series(dtype=int))
    frame = frame.sort_values("confidence", ascending=False, kind="stable")
    frame["times"] = frame.groupby("image_id")["image_id"].transform("size")
    return frame.drop_duplicates("image_id").head(n).reset_index(drop=True)
