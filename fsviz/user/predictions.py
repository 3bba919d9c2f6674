"""Predictions that were made elsewhere, for the queries of a testbed: a CSV or Parquet file becomes part of a run.

    task,image_id,predicted[,confidence]

task counts the tasks of the testbed from 0, image_id is that of a query image in it, predicted the name or class_id of
a class of the task, confidence its probability from 0 to 1. Every query is answered once. `queries` gives the first
two columns, with what each image is, to be filled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz.errors import BadInput
from fsviz.records import PAD, Dataset, Predictions, Tasks, Testbed

ELSEWHERE = "elsewhere"  # what a backbone and a device are called that are not known
COLUMNS = ("task", "image_id", "predicted")
_FILE = "predictions.npz"


def read(path: Path, testbed: Testbed, dataset: Dataset) -> Predictions:
    """The predictions in a file; all that does not fit the testbed is refused in one sentence, with counts."""
    table, tasks = _table(path), testbed.tasks
    n_tasks, _, n_query = tasks.query.shape
    class_ids = _class_ids(table["predicted"], dataset)
    task, image_id = (_whole(table[name]) for name in ("task", "image_id"))
    problems = _Problems()
    in_range = problems.without((task >= 0) & (task < n_tasks), "{} of a task that it does not have", table)
    place = _places(tasks)
    at = np.array([place.get(pair, PAD) for pair in zip(task[in_range], image_id[in_range])], np.int64)
    rows = in_range[problems.without(at != PAD, "{} of an image that is no query of its task", table, in_range)]
    at = at[at != PAD]
    of_task = tasks.class_ids[task[rows]]
    is_predicted = of_task == class_ids[rows][:, None]
    fine = (is_predicted & (of_task != PAD)).any(1)
    problems.without(fine, "{} with a class that its task does not have", table, rows)
    counts = np.bincount(at, minlength=tasks.query.size)
    is_query = (tasks.query != PAD).ravel()
    for wrong, words in (
        (counts > 1, "{} predicted more than once"),
        (is_query & (counts == 0), "{} without a prediction"),
    ):
        problems.add(int(wrong.sum()), words, "queries", _first(tasks, wrong))
    confidence = _confidence(table, problems)
    if problems.messages:
        raise BadInput(
            f"{path.name} does not match testbed {testbed.name!r} ({n_tasks:,} tasks, {is_query.sum():,} queries): "
            f"{'; '.join(problems.messages)}. Expected one row per query: task, image_id, predicted."
        )
    answer = Predictions.blank(tasks.query.shape)
    label = is_predicted.argmax(1)
    correct = label == at // n_query % tasks.n_way
    answer.predicted.reshape(-1)[at] = label
    answer.rank.reshape(-1)[at] = np.where(
        correct, 0, 1
    )  # which place the true class has in a wrong answer is not known
    answer.confidence.reshape(-1)[at] = confidence[rows]
    answer.likelihood.reshape(-1)[at] = np.where(correct, confidence[rows], np.nan)
    return answer


def only_available(numbers: np.ndarray, answer: Predictions) -> np.ndarray:
    """Of accuracy, top-5, loss and confidence (4, T) what a file of predictions tells: no loss, and top-5 only where a
    task has no more classes than that."""
    available = numbers.copy()
    available[2] = np.nan
    if answer.predicted.shape[1] > 5:
        available[1] = np.nan
    return available


def save_snapshot(folder: Path, answer: Predictions) -> None:
    """Keeps predictions in the folder of a run."""
    np.savez(folder / "inputs" / _FILE, **answer.arrays())  # type: ignore[arg-type]


def load_snapshot(folder: str, start: int, stop: int) -> Predictions:
    """Those of some tasks."""
    with np.load(Path(folder) / "inputs" / _FILE, allow_pickle=False) as arrays:
        return Predictions.from_arrays(arrays).take(slice(start, stop))


def queries(testbed: Testbed, dataset: Dataset) -> pd.DataFrame:
    """Every query of a testbed: task, image_id, path ("" where images have none), and the classes of the task."""
    tasks = testbed.tasks
    task, way, place = np.nonzero(tasks.query != PAD)
    image_id = tasks.query[task, way, place]
    names = dataset.classes["class_name"].astype(str).to_numpy()
    classes = ["|".join(names[ids[ids != PAD]]) for ids in tasks.class_ids]
    paths = np.full(len(image_id), "", object)
    if dataset.images is not None and "path" in dataset.images:
        paths = dataset.images["path"].astype(str).to_numpy()[image_id]
    return pd.DataFrame(
        {"task": task, "image_id": image_id, "path": paths, "classes": [classes[t] for t in task], "predicted": ""}
    )


# --- steps -------------------------------------------------------------------------------------------------------


class _Problems:
    """Problems of a file, each kind counted and with its first example."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def add(self, n: int, words: str, unit: str, example: str) -> None:
        if n:
            unit_text = unit if n > 1 else {"rows": "row", "queries": "query"}[unit]
            self.messages.append(f"{words.format(f'{n:,} {unit_text}')} ({example})")

    def without(self, fine: np.ndarray, words: str, table: pd.DataFrame, rows: Any = None) -> np.ndarray:
        """Positions without problems; reports the others."""
        bad = np.flatnonzero(~fine)
        if len(bad):
            row = int(bad[0] if rows is None else rows[bad[0]])
            first = ", ".join(f"{name} {str(table[name].iloc[row])[:40]}" for name in COLUMNS)
            self.add(len(bad), words, "rows", f"the first is row {row + 1}: {first}")
        return np.flatnonzero(fine)


def _table(path: Path) -> pd.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            table = pd.read_parquet(path)
        else:
            columns = {*COLUMNS, "confidence"}
            table = pd.read_csv(path, dtype={"predicted": str}, keep_default_na=False, usecols=columns.__contains__)
    except OSError as error:
        raise BadInput(f"The file {path} cannot be read ({error.strerror or error}). Check the path.") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise BadInput(f"{path.name} is no CSV or Parquet table ({error}).") from error
    lacking = [name for name in COLUMNS if name not in table]
    if lacking or table.empty:
        raise BadInput(
            f"A file of predictions has the columns task, image_id, predicted and, where wished, confidence. "
            f"{path.name} has {'no rows' if not lacking else f'no {lacking[0]}'}."
        )
    return table


def _whole(column: pd.Series) -> np.ndarray:
    """Whole numbers, PAD if a cell holds none."""
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    fine = np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)
    return np.where(fine, values, PAD).astype(np.int64)


def _class_ids(column: pd.Series, dataset: Dataset) -> np.ndarray:
    """The class_id of what was predicted, PAD if it is no class: names where all of them are, else class_ids."""
    names = dataset.classes["class_name"].astype(str)
    labels = column.astype(str)
    by_name = {name: i for i, name in enumerate(names) if not (names == name).sum() > 1}
    if labels.isin(by_name).any():
        return labels.map(by_name).fillna(PAD).to_numpy(dtype=np.int64)
    class_ids = _whole(column)
    return np.where(class_ids < len(names), class_ids, PAD)


def _places(tasks: Tasks) -> dict[tuple[int, int], int]:
    """Position of each (task, image_id) among all queries."""
    flat = tasks.query.reshape(len(tasks), -1)
    task, column = np.nonzero(flat != PAD)
    return dict(zip(zip(task.tolist(), flat[task, column].tolist()), (task * flat.shape[1] + column).tolist()))


def _first(tasks: Tasks, mask: np.ndarray) -> str:
    if not mask.any():
        return ""
    at = int(np.argmax(mask))
    return f"the first is image {tasks.query.ravel()[at]} of task {at // (tasks.query[0].size)}"


def _confidence(table: pd.DataFrame, problems: _Problems) -> np.ndarray:
    if "confidence" not in table:
        return np.full(len(table), np.nan)
    values = pd.to_numeric(table["confidence"], errors="coerce").to_numpy(dtype=float)
    problems.without((values >= 0) & (values <= 1), "{} with a confidence that is not from 0 to 1", table)
    return values
