"""Testbeds that other programs read and write: the CSV of Bennequin et al. (2022) and JSON of image paths.

CSV   one row per image, columns task,variance,labels,image_id,support: variance is the coarsity, labels the position
      of the class in its split, image_id the image's row in the dataset. A file whose image_ids count through the
      split's images instead is recognised if only that reading puts every image in its class. The authors' own files
      hold support rows only: queries are sampled from the other images of the classes. An image_id of another class in
      this copy of the dataset is excluded, because the labels decide, and another image is sampled. The recipe's
      "notes" say both.
JSON  [{"Support": [[path, ...], ...], "Query": [[path, ...], ...]}, ...], one inner list per class.
Both are read into the same table, one row per image, which is checked once; what is wrong is named by its place in the
file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import fsviz
from fsviz.errors import BadInput, Missing
from fsviz.records import PAD, Dataset, Tasks, Testbed
from fsviz.settings import N_QUERY
from fsviz.text import csv

CSV_COLUMNS = ("task", "variance", "labels", "image_id", "support")
QUERY_SEED = 0  # of the queries that are sampled for a file without any


@dataclass(frozen=True)
class _Rows:
    """The images of a file, one row each, all (n,).

    task       number of the task; any, tasks are put in their order
    way        orders the classes inside a task
    class_id   the class that the file says the image is of
    image_id   beyond the dataset's if there is no such image; None if the file names classes only
    support    True in the support set, False in the query set
    where      row -> its place in the file, for messages ("Row 7")
    image_name       row -> the image as the file names it
    """

    task: np.ndarray
    way: np.ndarray
    class_id: np.ndarray
    image_id: np.ndarray | None
    support: np.ndarray
    where: Callable[[int], str]
    image_name: Callable[[int], str]


# CSV -------------------------------------------------------------------------------------------------------------


def to_csv(testbed: Testbed, dataset: Dataset, split_image_ids: bool = False) -> str:
    """The CSV of the module's docstring; tasks of classes only have one row per class and no image_id.

    split_image_ids  count image_ids through the images of the split, as a program that loads only that split does
    """
    split = str(testbed.recipe.get("split", "all"))
    order = _labelled(dataset, split)
    place = np.full(dataset.n_classes, PAD, dtype=np.int64)
    place[order] = np.arange(len(order))
    tasks = testbed.tasks
    coarsity = np.asarray(tasks.measures.get("coarsity", np.full(len(tasks), np.nan)), dtype=float)
    if tasks.has_images:
        images = np.concatenate([tasks.support, tasks.query], axis=2)
        is_support = np.arange(images.shape[2]) < tasks.support.shape[2]
    else:
        images = np.full((*tasks.class_ids.shape, 1), PAD)
        is_support = np.array([True])
    shape = images.shape
    task = np.broadcast_to(np.arange(len(tasks))[:, None, None], shape)
    class_ids = np.broadcast_to(tasks.class_ids[:, :, None], shape)
    there = (class_ids != PAD) & ((images != PAD) if tasks.has_images else True)
    image_ids = images[there]
    if split_image_ids and tasks.has_images:
        image_ids = _rank_in_split(dataset, order)[image_ids]
    frame = pd.DataFrame(
        {
            "task": task[there],
            "variance": coarsity[task[there]],
            "labels": place[class_ids[there]],
            "image_id": image_ids if tasks.has_images else pd.array([pd.NA] * int(there.sum()), dtype="Int64"),
            "support": np.broadcast_to(is_support, shape)[there],
        }
    )
    return csv(frame)


def from_csv(
    content: bytes | str, dataset: Dataset, split: str | None = None, uneven: bool = False, name: str = "imported"
) -> Testbed:
    """Reads and checks the CSV of the module's docstring. Rows are named as in a spreadsheet: the header is row 1."""
    split = _default_split(dataset, split)
    order = _labelled(dataset, split)
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        frame = pd.read_csv(
            io.StringIO(text),
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            usecols=set(CSV_COLUMNS).__contains__,
        )
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise BadInput(
            f"The testbed is not a readable CSV file ({str(error).strip()}). Save it as CSV in UTF-8."
        ) from error
    absent = [column for column in CSV_COLUMNS if column not in frame.columns and column != "variance"]
    if absent:
        raise BadInput(
            f"A testbed CSV has the columns {', '.join(CSV_COLUMNS)}. Missing: {', '.join(absent)}. Add them."
        )
    if frame.empty:
        raise BadInput("The testbed CSV has no rows below its header. Export it again.")
    task, label = _whole_column(frame, "task"), _whole_column(frame, "labels")
    outside = np.flatnonzero((label < 0) | (label >= len(order)))
    if len(outside):
        raise BadInput(
            f"Row {outside[0] + 2}: unknown class. labels must be 0 to {len(order) - 1}, the place of the class in "
            f"split {split!r} of {dataset.title}. Got {label[outside[0]]}. Pick the dataset and split the testbed was "
            "made from."
        )
    class_id, image = order[label], None
    notes: list[str] = []
    support = _truth_column(frame, "support")
    if (frame["image_id"] != "").any():
        image, fits = _dataset_images(dataset, order, _whole_column(frame, "image_id"), class_id)
        if support.all():
            there, dropped = _with_images(dataset, task, class_id)
            frame = frame[there]
            task, label, class_id, image, support, notes = _with_queries(
                dataset, task[there], label[there], class_id[there], image[there], fits[there]
            )
            notes += dropped
    n_given = len(frame)
    rows = _Rows(
        task,
        label,
        class_id,
        image,
        support,
        lambda i: f"Row {i + 2}",
        lambda i: f"image {frame['image_id'].iloc[i] if i < n_given or image is None else image[i]}",
    )
    tasks = _tasks_of(rows, dataset, uneven)
    if "variance" in frame.columns and (frame["variance"] != "").any():
        tasks = tasks.with_measure("coarsity", _variance(frame, task[:n_given]))
    recipe = _imported_recipe(dataset, split, tasks, "csv")
    return Testbed(name, tasks, recipe | ({"query_seed": QUERY_SEED, "notes": notes} if notes else {}))


# JSON ------------------------------------------------------------------------------------------------------------


def to_json(testbed: Testbed, dataset: Dataset) -> str:
    """The JSON of the module's docstring. Needs tasks with images."""
    tasks = testbed.tasks
    if not tasks.has_images:
        raise Missing(
            "The JSON format lists image paths, and this testbed holds classes only. "
            "Sample it with n_shot and n_query of at least 1, or export it as CSV or Parquet."
        )
    names_of = _image_names(dataset)

    def side(images: np.ndarray, classes: np.ndarray) -> list[list[str]]:
        return [names_of(row[row != PAD]) for row, class_id in zip(images, classes, strict=True) if class_id != PAD]

    return json.dumps(
        [
            {"Support": side(tasks.support[t], tasks.class_ids[t]), "Query": side(tasks.query[t], tasks.class_ids[t])}
            for t in range(len(tasks))
        ]
    )


def from_json(
    content: bytes | str, dataset: Dataset, split: str | None = None, uneven: bool = False, name: str = "imported"
) -> Testbed:
    """Reads and checks the JSON of the module's docstring; a class is known by its images. Tasks count from 0."""
    split = _default_split(dataset, split)
    try:
        entries = json.loads(content)
    except (ValueError, UnicodeDecodeError) as error:
        raise BadInput(f"The testbed is not readable JSON ({error}). Save it again.") from error
    if not isinstance(entries, list) or not entries:
        raise BadInput('A testbed JSON is a list of {"Support": [[...]], "Query": [[...]]}. Got something else.')
    image_names: list[str] = []
    spans: list[tuple[int, int, bool, int]] = []  # task, row, is support, number of images
    for t, entry in enumerate(entries):
        if not isinstance(entry, dict) or not {"Support", "Query"} <= set(entry):
            raise BadInput(f'Task {t}: needs the keys "Support" and "Query". Got {_brief(entry)}.')
        if not (isinstance(entry["Support"], list) and isinstance(entry["Query"], list)):
            raise BadInput(f'Task {t}: "Support" and "Query" are lists with one list of paths per class.')
        if len(entry["Support"]) != len(entry["Query"]) or not entry["Support"]:
            raise BadInput(
                f"Task {t}: Support and Query need one list per class, the same number of both. "
                f"Got {len(entry['Support'])} and {len(entry['Query'])}."
            )
        for key in ("Support", "Query"):
            for w, paths in enumerate(entry[key]):
                if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
                    raise BadInput(f"Task {t}, {key} row {w}: must be a list of image paths. Got {_brief(paths)}.")
                image_names.extend(paths)
                spans.append((t, w, key == "Support", len(paths)))
    task, way, support, sizes = (np.array(column) for column in zip(*spans, strict=True))
    task, way, support = (np.repeat(column, sizes) for column in (task, way, support))
    image, of_image = _image_ids(dataset, image_names), dataset.image_class_ids()
    image = np.where(image == PAD, len(of_image), image)
    class_id = np.append(of_image, 0)[image]
    first = np.unique(task * (way.max() + 1) + way, return_index=True, return_inverse=True)
    rows = _Rows(
        task,
        way,
        class_id[first[1]][first[2]],  # a class is that of the first image of its support
        image,
        support,
        lambda i: f"Task {task[i]}, {'Support' if support[i] else 'Query'} row {way[i]}",
        lambda i: repr(image_names[i]),
    )
    tasks = _tasks_of(rows, dataset, uneven)
    if not np.isin(tasks.class_ids, np.append(dataset.split_class_ids(split), PAD)).all():
        split = "all"
    return Testbed(name, tasks, _imported_recipe(dataset, split, tasks, "json"))


# Checks ----------------------------------------------------------------------------------------------------------


def _tasks_of(rows: _Rows, dataset: Dataset, uneven: bool) -> Tasks:
    """The table as checked tasks: classes in the order of their ways, images in the order of the file."""
    lines = np.lexsort((~rows.support, rows.way, rows.task))
    _, task = np.unique(rows.task[lines], return_inverse=True)
    new = np.ones(len(lines), dtype=bool)
    new[1:] = (task[1:] != task[:-1]) | (rows.way[lines][1:] != rows.way[lines][:-1])
    member = np.cumsum(new) - 1  # running number of the (task, class) a line belongs to
    at_task, first_line = task[new], lines[new]
    begins = np.searchsorted(at_task, np.arange(at_task[-1] + 1))
    at_way = np.arange(len(at_task)) - begins[at_task]
    ways = np.bincount(at_task)
    usual = int(np.bincount(ways).argmax())
    odd = np.flatnonzero(ways != usual)
    if len(odd) and not uneven:
        raise BadInput(
            f"{rows.where(first_line[begins[odd[0]]])}: task {odd[0]} has {ways[odd[0]]} classes where others have "
            f"{usual}. Every task needs the same number, unless uneven tasks are allowed."
        )
    class_ids = np.full((len(ways), int(ways.max())), PAD, dtype=np.int64)
    class_ids[at_task, at_way] = rows.class_id[first_line]
    if rows.image_id is None:
        repeated = lines[~new]
        if len(repeated):
            name = dataset.classes["class_name"][rows.class_id[repeated[0]]]
            raise BadInput(f"{rows.where(repeated[0])}: class {name!r} comes twice in its task. Remove one.")
        tasks, sides = Tasks(class_ids), [np.full((*class_ids.shape, 1), PAD)]
    else:
        sides = []  # the rows that the images of each half come from
        for word, mask in (("support", rows.support[lines]), ("query", ~rows.support[lines])):
            counts = np.bincount(member[mask], minlength=len(at_task))
            _refuse_uneven(counts, word, first_line, rows, dataset, uneven)
            side = np.full((*class_ids.shape, int(counts.max())), PAD, dtype=np.int64)
            place = np.arange(int(mask.sum())) - (np.cumsum(counts) - counts)[member[mask]]
            side[at_task[member[mask]], at_way[member[mask]], place] = lines[mask]
            sides.append(side)
        support, query = (np.where(side == PAD, PAD, rows.image_id[side]) for side in sides)
        tasks = Tasks(class_ids, support, query)
    check_tasks(tasks, dataset, rows, np.concatenate(sides, axis=2))
    return tasks


def _refuse_uneven(
    counts: np.ndarray, word: str, first_line: np.ndarray, rows: _Rows, dataset: Dataset, uneven: bool
) -> None:
    """Classes without an image in one half or, unless that is allowed, with another number than most."""
    usual = int(np.bincount(counts).argmax())
    odd = np.flatnonzero((counts == 0) | ((counts != usual) & (not uneven)))
    if len(odd):
        line = first_line[odd[0]]
        raise BadInput(
            f"{rows.where(line)}: uneven shots; class {dataset.classes['class_name'][rows.class_id[line]]!r} of its "
            f"task has {counts[odd[0]]} {word} images where others have {usual}. Every class needs the same number"
            f"{', at least one.' if uneven else ', unless uneven shots are allowed.'}"
        )


def check_tasks(tasks: Tasks, dataset: Dataset, rows: _Rows | None = None, lines: np.ndarray | None = None) -> None:
    """Refuses unknown classes, repeated classes, images of another class, and images that come twice in a task.

    Messages name the task, counted from 0, or the row of the file that an image comes from (lines (T, W, S + Q)).
    """

    def at(t: int, w: int, k: int = 0) -> str:
        return f"Task {t}" if rows is None or lines is None else rows.where(int(lines[t, w, k]))

    def image_name(t: int, w: int, k: int) -> str:
        return f"image {images[t, w, k]}" if rows is None or lines is None else rows.image_name(int(lines[t, w, k]))

    class_ids = np.asarray(tasks.class_ids)
    names, advice = dataset.classes["class_name"], "Pick the dataset and split the testbed was made from."
    if class_ids.ndim != 2 or not len(class_ids):
        raise BadInput("A testbed needs at least one task. Got none.")
    wrong = (class_ids < PAD) | (class_ids >= dataset.n_classes)
    if wrong.any():
        t, w = np.argwhere(wrong)[0]
        raise BadInput(
            f"{at(t, w)}: unknown class {class_ids[t, w]}; {dataset.title} has classes 0 to {dataset.n_classes - 1}."
        )
    ordered = np.sort(class_ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != PAD)
    if twice.any():
        t, w = np.argwhere(twice)[0]
        second = np.flatnonzero(class_ids[t] == ordered[t, w])[1]
        raise BadInput(f"{at(t, second)}: class {names[ordered[t, w]]!r} comes twice in task {t}. Remove one.")
    if not tasks.has_images:
        return
    of_image = dataset.image_class_ids()
    images = np.concatenate([tasks.support, tasks.query], axis=2)
    beyond = (images < PAD) | (images >= len(of_image))
    if beyond.any():
        t, w, k = np.argwhere(beyond)[0]
        raise BadInput(
            f"{at(t, w, k)}: unknown {image_name(t, w, k)}; {dataset.title} has {len(of_image):,} images. {advice}"
        )
    mismatch = (images != PAD) & (of_image[images] != class_ids[:, :, None])
    if mismatch.any():
        t, w, k = np.argwhere(mismatch)[0]
        raise BadInput(
            f"{at(t, w, k)}: {image_name(t, w, k)} is of class {names[of_image[images[t, w, k]]]!r}, not "
            f"{names[class_ids[t, w]]!r}. {advice}"
        )
    ordered = np.sort(images, axis=2)
    twice = (ordered[:, :, 1:] == ordered[:, :, :-1]) & (ordered[:, :, 1:] != PAD)
    if twice.any():
        t, w, k = np.argwhere(twice)[0]
        first, second = np.flatnonzero(images[t, w] == ordered[t, w, k])[:2]
        overlap = first < tasks.support.shape[2] <= second
        before = "" if rows is None else f" (the other one: {at(t, w, first)})"
        raise BadInput(
            f"{at(t, w, second)}: {image_name(t, w, second)} is in "
            f"{'both support and query' if overlap else 'the same set twice'}{before}. An image may come once per task."
        )


def _dataset_images(
    dataset: Dataset, order: np.ndarray, image: np.ndarray, class_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """image_ids of the dataset, whether the file counts through the dataset or through the split, and which are of the
    class that their row names. Where neither reading fits all rows, the first one stands: what is wrong can be named
    in the file's own numbers. The reading through the split stands where it fits more rows."""
    of_image = dataset.image_class_ids()
    in_split = np.argsort(_rank_in_split(dataset, order), kind="stable")[-int(np.isin(of_image, order).sum()) :]
    readings = []
    for ids in (np.arange(len(of_image)), in_split):
        is_known = (image >= 0) & (image < len(ids))
        image_ids = ids[np.where(is_known, image, 0)]
        readings.append((image_ids, is_known & (of_image[image_ids] == class_ids)))
    (image_ids, fits), through_split = readings
    if fits.all():
        return image_ids, fits
    if through_split[1].sum() > fits.sum():
        image_ids, fits = through_split
    return np.where(fits, image_ids, np.where(image < 0, len(of_image), image)), fits


def _labelled(dataset: Dataset, split: str) -> np.ndarray:
    """The classes that labels count through: those of the split, and in a user's copy of a benchmark also the ones
    that have no images there and are in no split."""
    order = dataset.split_class_ids(split)
    listed = np.flatnonzero(dataset.classes["split"].astype(str).to_numpy() == split)
    absent = np.setdiff1d(listed, order)
    is_copy = (
        np.isin(order, listed).all() and bool(len(absent)) and (dataset.classes["n_images"].iloc[absent] == 0).all()
    )
    return listed if is_copy else order


def _with_images(dataset: Dataset, task: np.ndarray, class_id: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Mask of the rows whose task has images of all its classes here, and a sentence about the other rows."""
    counts = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)
    gone = np.unique(task[counts[class_id] == 0])
    if not len(gone):
        return np.ones(len(task), dtype=bool), []
    total = len(np.unique(task))
    if len(gone) == total:
        raise BadInput(
            f"Every task of the testbed holds a class without images in {dataset.title}. Add the images of the "
            "missing classes."
        )
    message = f"{len(gone):,} of {total:,} tasks hold a class without images in {dataset.title} and were excluded."
    return ~np.isin(task, gone), [message]


def _with_queries(
    dataset: Dataset, task: np.ndarray, label: np.ndarray, class_id: np.ndarray, image: np.ndarray, fits: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """The rows of a file of supports with rows of queries after them, and what was done in sentences.

    Queries, and supports in place of those that do not fit, are other images of the row's class; a group of images
    (copies of a picture) stays on one side.
    """
    of_image, groups = dataset.image_class_ids(), dataset.image_groups()
    groups = np.arange(len(of_image)) if groups is None else groups
    images_of = {int(c): np.flatnonzero(of_image == c) for c in np.unique(class_id)}
    image = image.copy()
    order = np.lexsort((label, task))
    ends = np.flatnonzero(np.append((np.diff(task[order]) != 0) | (np.diff(label[order]) != 0), True)) + 1
    members = np.split(order, ends[:-1])
    shots: dict[int, int] = {}
    for rows in members:
        shots[int(class_id[rows[0]])] = max(len(rows), shots.get(int(class_id[rows[0]]), 0))
    n_left = {c: len(np.unique(groups[images_of[c]])) - n for c, n in shots.items()}
    n_query = min(int(N_QUERY.default), *n_left.values())
    if n_query < 1:
        smallest = min(n_left, key=n_left.__getitem__)
        raise BadInput(
            f"The file holds support images only, and class {dataset.classes['class_name'][smallest]!r} of "
            f"{dataset.title} has no image left for a query. Add images of it, or give a file with queries."
        )
    rng = np.random.default_rng(QUERY_SEED)
    queries = np.empty((len(members), n_query), dtype=np.int64)
    for at, rows in enumerate(members):
        shuffled = rng.permutation(images_of[int(class_id[rows[0]])])
        support_groups = set(groups[image[rows[fits[rows]]]].tolist())
        sampled: list[int] = []
        for candidate in shuffled:
            if len(sampled) == n_query + int((~fits[rows]).sum()):
                break
            if groups[candidate] not in support_groups:
                support_groups.add(groups[candidate])
                sampled.append(candidate)
        image[rows[~fits[rows]]] = sampled[n_query:]
        queries[at] = sampled[:n_query]
    first = np.repeat([rows[0] for rows in members], n_query)
    notes = [
        f"The file holds support images only: {n_query} queries per class were drawn from its other images, with seed "
        f"{QUERY_SEED}."
    ]
    if not fits.all():
        notes.append(
            f"{int((~fits).sum()):,} of its {len(fits):,} image ids are of another class in this copy of "
            f"{dataset.title} and were set aside: the class labels decide, and other images of the class stand there."
        )
    task, label, class_id = (np.concatenate([column, column[first]]) for column in (task, label, class_id))
    support = np.arange(len(image) + len(first)) < len(image)
    return task, label, class_id, np.concatenate([image, queries.ravel()]), support, notes


def _rank_in_split(dataset: Dataset, order: np.ndarray) -> np.ndarray:
    """Place of every image among the images of a split (class after class, in split order), PAD outside it."""
    of_image = dataset.image_class_ids()
    place = np.full(dataset.n_classes, len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ranked = np.argsort(place[of_image], kind="stable")
    rank = np.full(len(of_image), PAD, dtype=np.int64)
    inside = ranked[: int(np.isin(of_image, order).sum())]
    rank[inside] = np.arange(len(inside))
    return rank


def _whole_column(frame: pd.DataFrame, column: str) -> np.ndarray:
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: {column} must be a whole number. Got {frame[column].iloc[bad[0]]!r}. Fix the row."
        )
    return values.astype(np.int64)


def _truth_column(frame: pd.DataFrame, column: str) -> np.ndarray:
    words = frame[column].str.strip().str.lower()
    true, false = words.isin(["true", "1", "1.0"]), words.isin(["false", "0", "0.0"])
    bad = np.flatnonzero(~(true | false))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: {column} must be True or False. Got {frame[column].iloc[bad[0]]!r}. Fix the row."
        )
    return true.to_numpy(dtype=bool)


def _variance(frame: pd.DataFrame, task: np.ndarray) -> np.ndarray:
    """The coarsity of every task, in the order of their numbers."""
    values = pd.to_numeric(frame["variance"], errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: variance must be a number of at least 0. Got {frame['variance'].iloc[bad[0]]!r}. "
            "Fix the row, or leave the whole column empty."
        )
    _, first, task = np.unique(task, return_index=True, return_inverse=True)
    differs = np.flatnonzero(~np.isclose(values, values[first][task]))
    if len(differs):
        raise BadInput(
            f"Row {differs[0] + 2}: variance {values[differs[0]]:g} differs from the "
            f"{values[first][task[differs[0]]]:g} of the same task. A task has one."
        )
    return values[first]


def _default_split(dataset: Dataset, split: str | None) -> str:
    if split is not None:
        dataset.split_class_ids(split)
        return split
    return "test" if "test" in dataset.splits else "all"


def _imported_recipe(dataset: Dataset, split: str, tasks: Tasks, kind: str) -> dict[str, Any]:
    recipe: dict[str, Any] = {
        "dataset": dataset.name,
        "split": split,
        "sampler": "imported",
        "n_way": tasks.n_way,
        "n_tasks": len(tasks),
        "file": kind,
        "version": fsviz.__version__,
    }
    if tasks.has_images:
        recipe |= {"n_shot": tasks.support.shape[2], "n_query": tasks.query.shape[2]}
    return recipe


# Names of images -------------------------------------------------------------------------------------------------


def _image_names(dataset: Dataset) -> Callable[[np.ndarray], list[str]]:
    """image_ids -> names. Without an image table, "CLASS/K" is the K-th image of a class, counted from 0."""
    if dataset.images is not None:
        paths = dataset.images["path"].astype(str).to_numpy()
        return lambda ids: paths[ids].tolist()
    of_image = dataset.image_class_ids()
    folders = _class_folders(dataset)
    starts = np.searchsorted(of_image, np.arange(dataset.n_classes))
    return lambda ids: [f"{folders[c]}/{i}" for c, i in zip(of_image[ids], ids - starts[of_image[ids]], strict=True)]


def _image_ids(dataset: Dataset, names: list[str]) -> np.ndarray:
    """The image_id of every name, PAD if there is none."""
    if dataset.images is not None:
        paths = pd.Index(dataset.images["path"].astype(str))
        if paths.is_unique:
            return paths.get_indexer(names).astype(np.int64)
        paths = {path: i for i, path in reversed(list(enumerate(paths)))}
        return np.array([paths.get(name, PAD) for name in names], dtype=np.int64)
    of_image = dataset.image_class_ids()
    starts = np.searchsorted(of_image, np.arange(dataset.n_classes))
    sizes = np.bincount(of_image, minlength=dataset.n_classes)
    class_of = {folder: c for c, folder in enumerate(_class_folders(dataset))}
    image_ids = np.full(len(names), PAD, dtype=np.int64)
    for i, name in enumerate(names):
        folder, _, number = name.rpartition("/")
        c = class_of.get(folder)
        if c is not None and number.isdecimal() and int(number) < sizes[c]:
            image_ids[i] = starts[c] + int(number)
    return image_ids


def _class_folders(dataset: Dataset) -> list[str]:
    """A name for every class that no other class has: its name, else its node, else its class_id."""
    for column in ("class_name", "node"):
        names = dataset.classes[column].astype(str).tolist()
        if len(set(names)) == len(names):
            return names
    return [f"class_{i}" for i in range(dataset.n_classes)]


def _brief(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) < 60 else text[:57] + "..."
