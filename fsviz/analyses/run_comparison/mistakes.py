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
    """Pairs of classes by how often the first is surely predicted as the second: the lower end of the interval.

    Columns class_id, class_name, taken_for, taken_for_name, confused and queries (predictions in tasks with both
    classes), confused_images and query_images (different images among them), tasks, rate and ci95 (percent; ci95 is NaN
    for a pair that fewer than three tasks hold: these come last).
    """
    from fsviz.evaluation import pair_confusion

    worst = pair_confusion(answer, tasks).worst(n)
    pairs = zip(worst["class_id"], worst["taken_for"], strict=True)
    images = [_different_images(answer, tasks, int(a), int(b)) for a, b in pairs]
    worst["confused_images"] = [confused for confused, _ in images]
    worst["query_images"] = [all_images for _, all_images in images]
    names = dataset.classes["class_name"].astype(str)
    worst.insert(1, "class_name", names.reindex(worst["class_id"]).fillna("?").to_numpy())
    worst.insert(3, "taken_for_name", names.reindex(worst["taken_for"]).fillna("?").to_numpy())
    worst[["rate", "ci95"]] *= 100
    return worst


def _different_images(answer: Predictions, tasks: Tasks, class_id: int, taken_for: int) -> tuple[int, int]:
    """Different images of a class that were predicted as another, and that were queries in tasks with both."""
    has_both = (tasks.class_ids == taken_for).any(axis=1)
    t, w, q = np.nonzero(
        (tasks.class_ids == class_id)[:, :, None] & (answer.predicted != PAD) & has_both[:, None, None]
    )
    image_ids = tasks.query[t, w, q]
    is_confused = tasks.class_ids[t, answer.predicted[t, w, q]] == taken_for
    return len(np.unique(image_ids[is_confused])), len(np.unique(image_ids))


CLASS_ACCURACIES = Table(
    "Accuracy of every class",
    Column("images", "Images", kind="image", width=210),
    Column("class", "Class", kind="class"),
    Column("accuracy", "Accuracy", kind="percent", interval="ci95"),
    Column(
        "instead",
        "Most common error",
        kind="class",
        help="The class that most of its misclassified queries are predicted as.",
    ),
    Column("instead_share", "Of its errors", kind="percent", digits=0),
    Column("queries", "Predictions", kind="count", help="Queries over all tasks; an image is a query of many tasks."),
    Column("query_images", "Different images", kind="count"),
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
    errors), instead_share (percent of its errors), queries (predictions), query_images (different images), tasks.
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
            "query_images": table["n_images"],
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
