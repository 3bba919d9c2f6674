"""Testbed files: Parquet with the recipe inside (native), the CSV of Bennequin et al. (2022), JSON of image paths.

Native   one row a task; the recipe and the array shapes are in the file's metadata.
CSV      one row an image, columns task,variance,labels,image_id,support: variance is the coarsity, labels the place
         of the class in its split, image_id the image's row in the dataset. A file whose image_ids count through the
         split's images instead is recognised when only that reading puts every image in its class.
JSON     [{"Support": [[path, ...], ...], "Query": [[path, ...], ...]}, ...], one inner list a class.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fsviz
from fsviz import workspace
from fsviz.errors import BadInput, Missing, UnknownName, WorkspaceError
from fsviz.records import PAD, Dataset, Tasks, Testbed
from fsviz.text import csv

CSV_COLUMNS = ("task", "variance", "labels", "image_id", "support")
FORMATS = ("parquet", "csv", "json")
_FORMAT_VERSION = 1
_MOST_BYTES = 1_000_000_000


def save_testbed(testbed: Testbed) -> Path:
    """Saves in the workspace under the testbed's name, in place of an older one; returns the file."""
    path = workspace.folder("testbeds", create=True) / f"{workspace.checked_name(testbed.name, 'testbed name')}.parquet"
    with workspace.atomic_file(path) as temporary:
        temporary.write_bytes(to_parquet(testbed))
    return path


def list_testbeds() -> list[str]:
    """Names of the testbeds in the workspace."""
    return [path.stem for path in workspace.entries("testbeds", "*.parquet")]


def delete_testbed(name: str) -> None:
    """Removes a testbed from the workspace."""
    path = workspace.folder("testbeds") / f"{workspace.checked_name(name, 'testbed name')}.parquet"
    if not path.exists():
        raise UnknownName("testbed", name, list_testbeds())
    path.unlink()


def load_testbed(name_or_path: str | Path, dataset: Dataset, split: str | None = None, uneven: bool = False) -> Testbed:
    """A testbed of this dataset: a name in the workspace, or a .parquet, .csv or .json file. Checked row by row.

    split   for CSV and JSON files, which do not name it: "test" where the dataset has it, else "all"
    uneven  lets a CSV or JSON file have classes with different numbers of images
    """
    text = str(name_or_path)
    path = Path(text).expanduser()
    if not path.exists():
        names = list_testbeds()
        saved = text if text in names else text.removesuffix(".parquet")
        if saved in names:  # a name may have dots in it, such as alpha's
            path = workspace.folder("testbeds") / f"{saved}.parquet"
        elif path.suffix.lower().lstrip(".") not in FORMATS and path.parent == Path("."):
            raise UnknownName("testbed", text, names, "Save one on the Tasks page or with 'python -m fsviz sample'.")
    return parse_testbed(_read_bytes(path), path.name, dataset, split, uneven)


def parse_testbed(
    content: bytes, file_name: str, dataset: Dataset, split: str | None = None, uneven: bool = False
) -> Testbed:
    """A testbed from the bytes of a file (an upload, say); the name's ending tells the format."""
    name, _, kind = file_name.rpartition(".")
    kind = kind.lower()
    if kind == "parquet":
        return from_parquet(content, dataset)
    if kind == "csv":
        return from_csv(content, dataset, split, uneven, name=name)
    if kind == "json":
        return from_json(content, dataset, split, uneven, name=name)
    raise BadInput(f"A testbed file ends in .parquet, .csv or .json. Got {file_name!r}. Rename or convert it.")


def read_recipe(name: str) -> dict[str, Any]:
    """The recipe of a testbed in the workspace, without reading its tasks."""
    import pyarrow.parquet as pq

    path = workspace.folder("testbeds") / f"{workspace.checked_name(name, 'testbed name')}.parquet"
    if not path.exists():
        raise UnknownName("testbed", name, list_testbeds())
    try:
        return _meta(pq.read_schema(path).metadata)["recipe"]
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} is not a testbed ({error}). Delete it and make it again.") from error


def export(testbed: Testbed, dataset: Dataset, kind: str) -> bytes:
    """The testbed as the bytes of a file: parquet, csv or json."""
    if kind == "parquet":
        return to_parquet(testbed)
    if kind == "csv":
        return to_csv(testbed, dataset).encode()
    if kind == "json":
        return to_json(testbed, dataset).encode()
    raise UnknownName("testbed format", kind, FORMATS)


# Native ----------------------------------------------------------------------------------------------------------


def to_parquet(testbed: Testbed) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tasks = testbed.tasks
    n = len(tasks)
    columns: dict[str, Any] = {"task": pa.array(np.arange(n, dtype=np.int32))}
    shapes: dict[str, list[int]] = {}
    for name in ("class_ids", "support", "query"):
        values = getattr(tasks, name)
        if values is None:
            continue
        values = np.asarray(values)
        shapes[name] = [int(size) for size in values.shape[1:]]
        width = int(np.prod(shapes[name]))
        offsets = pa.array(np.arange(n + 1, dtype=np.int64) * width)
        columns[name] = pa.LargeListArray.from_arrays(offsets, pa.array(values.reshape(-1).astype(np.int64)))
    for name, values in tasks.measures.items():
        columns[f"measure:{name}"] = pa.array(np.asarray(values, dtype=float))
    meta = {
        "format": _FORMAT_VERSION,
        "name": testbed.name,
        "recipe": {"version": fsviz.__version__, **testbed.recipe},
        "shapes": shapes,
    }
    table = pa.table(columns).replace_schema_metadata({"fsviz": json.dumps(meta, default=_plain)})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def from_parquet(content: bytes, dataset: Dataset) -> Testbed:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
        meta = _meta(table.schema.metadata)
        recipe, shapes = dict(meta["recipe"]), meta["shapes"]
        arrays = {}
        for name in ("class_ids", "support", "query"):
            if name in shapes:
                flat = table[name].combine_chunks().flatten().to_numpy()
                arrays[name] = flat.reshape(len(table), *shapes[name])
        measures = {
            name.removeprefix("measure:"): table[name].to_numpy()
            for name in table.column_names
            if name.startswith("measure:")
        }
        tasks = Tasks(arrays["class_ids"], arrays.get("support"), arrays.get("query"), measures)
        name = str(meta["name"])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"This Parquet file is not a testbed of fsviz ({type(error).__name__}: {error}). "
            "Export it again from the Tasks page or with 'python -m fsviz sample'."
        ) from error
    if recipe.get("dataset") != dataset.name:
        raise BadInput(
            f"This testbed was drawn from dataset {recipe.get('dataset')!r}, not from {dataset.name!r}. "
            f"Choose that dataset, or draw a testbed of {dataset.name!r}."
        )
    check_tasks(tasks, dataset)
    return Testbed(name, tasks, recipe)


def _meta(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or b"fsviz" not in metadata:
        raise ValueError("it carries no recipe")
    meta = json.loads(metadata[b"fsviz"])
    if meta.get("format") != _FORMAT_VERSION:
        raise ValueError(f"its format is {meta.get('format')}, this version reads {_FORMAT_VERSION}")
    return meta


# CSV -------------------------------------------------------------------------------------------------------------


def to_csv(testbed: Testbed, dataset: Dataset, split_image_ids: bool = False) -> str:
    """The CSV of the module's docstring; tasks of classes only have one row a class and no image_id.

    split_image_ids  count image_ids through the images of the split, as a program that loads only that split does
    """
    split = str(testbed.recipe.get("split", "all"))
    order = dataset.split_class_ids(split)
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
    order = dataset.split_class_ids(split)
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        frame = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, skipinitialspace=True)
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
    classes_only = bool((frame["image_id"] == "").all())
    image = np.full(len(frame), PAD) if classes_only else _whole_column(frame, "image_id")
    support = _truth_column(frame, "support")

    outside = np.flatnonzero((label < 0) | (label >= len(order)))
    if len(outside):
        row = outside[0]
        raise BadInput(
            f"Row {row + 2}: unknown class. labels must be 0 to {len(order) - 1}, the place of the class in split "
            f"{split!r} of {dataset.title}. Got {label[row]}. Pick the dataset and split the testbed was made from."
        )
    class_ids = order[label]
    if not classes_only:
        image = _dataset_images(dataset, order, image, class_ids)

    lines = np.lexsort((~support, label, task))
    task, class_ids, image, support = task[lines], class_ids[lines], image[lines], support[lines]
    _, task = np.unique(task, return_inverse=True)
    new_way = np.ones(len(lines), dtype=bool)
    new_way[1:] = (task[1:] != task[:-1]) | (class_ids[1:] != class_ids[:-1])
    way = np.cumsum(new_way) - 1  # running number of the (task, class) a line belongs to
    way_task, way_class = task[new_way], class_ids[new_way]
    first_way = np.searchsorted(way_task, np.arange(way_task[-1] + 1))
    column = np.arange(len(way_task)) - first_way[way_task]
    n_tasks, n_way = int(way_task[-1]) + 1, int(column.max()) + 1
    rows = lines + 2

    if classes_only:
        repeated = np.flatnonzero(~new_way)
        if len(repeated):
            raise BadInput(
                f"Row {rows[repeated[0]]}: class {dataset.classes['class_name'][class_ids[repeated[0]]]!r} "
                "comes twice in its task. Remove one."
            )
    grid = np.full((n_tasks, n_way), PAD, dtype=np.int64)
    grid[way_task, column] = way_class
    if not uneven:
        _refuse_uneven_ways(grid, rows[new_way][first_way])
    sides: list[np.ndarray | None] = [None, None]
    if not classes_only:
        _refuse_repeated_images(task, image, support, rows)
        for side, mask in enumerate((support, ~support)):
            sides[side] = _side(
                mask, way, image, rows, (way_task, column), grid.shape, uneven, side, dataset, way_class
            )
    tasks = Tasks(grid, sides[0], sides[1])
    if "variance" in frame.columns and (frame["variance"] != "").any():
        tasks = tasks.with_measure("coarsity", _variance(frame, lines, task))
    check_tasks(tasks, dataset)
    return Testbed(name, tasks, _imported_recipe(dataset, split, tasks, "csv"))


# JSON ------------------------------------------------------------------------------------------------------------


def to_json(testbed: Testbed, dataset: Dataset) -> str:
    """The JSON of the module's docstring. Needs tasks with images."""
    tasks = testbed.tasks
    if not tasks.has_images:
        raise Missing(
            "The JSON format lists image paths, and this testbed holds classes only. "
            "Sample it with n_shot and n_query of at least 1, or export it as CSV or Parquet."
        )
    named = _image_names(dataset)

    def side(images: np.ndarray, classes: np.ndarray) -> list[list[str]]:
        return [named(row[row != PAD]) for row, class_id in zip(images, classes, strict=True) if class_id != PAD]

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
    names: list[str] = []
    spans: list[tuple[int, int, bool, int]] = []  # task, row, is support, number of images
    for t, entry in enumerate(entries):
        if not isinstance(entry, dict) or not {"Support", "Query"} <= set(entry):
            raise BadInput(f'Task {t}: needs the keys "Support" and "Query". Got {_brief(entry)}.')
        if not (isinstance(entry["Support"], list) and isinstance(entry["Query"], list)):
            raise BadInput(f'Task {t}: "Support" and "Query" are lists with one list of paths a class.')
        if len(entry["Support"]) != len(entry["Query"]) or not entry["Support"]:
            raise BadInput(
                f"Task {t}: Support and Query need one list a class, the same number of both. "
                f"Got {len(entry['Support'])} and {len(entry['Query'])}."
            )
        for key in ("Support", "Query"):
            for w, paths in enumerate(entry[key]):
                if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
                    raise BadInput(f"Task {t}, {key} row {w}: must be a list of image paths. Got {_brief(paths)}.")
                names.extend(paths)
                spans.append((t, w, key == "Support", len(paths)))
    images = _image_ids(dataset, names)
    lost = np.flatnonzero(images == PAD)
    sizes = np.array([span[3] for span in spans])
    owner = np.repeat(np.arange(len(spans)), sizes)

    def where(i: int) -> str:
        t, w, is_support, _ = spans[owner[i]]
        return f"Task {t}, {'Support' if is_support else 'Query'} row {w}"

    if len(lost):
        raise BadInput(
            f"{where(lost[0])}: {names[lost[0]]!r} is no image of {dataset.title}. "
            "Pick the dataset the testbed was made from."
        )
    classes = dataset.image_class_ids()[images]
    n_way = max(span[1] for span in spans) + 1
    grid = np.full((len(entries), n_way), PAD, dtype=np.int64)
    shots = {key: max(span[3] for span in spans if span[2] == key) for key in (True, False)}
    sides = {key: np.full((len(entries), n_way, shots[key]), PAD, dtype=np.int64) for key in (True, False)}
    start = 0
    class_name = dataset.classes["class_name"]
    for t, w, is_support, size in spans:
        block = classes[start : start + size]
        if grid[t, w] == PAD:
            grid[t, w] = block[0]
        wrong = np.flatnonzero(block != grid[t, w])
        if len(wrong):
            raise BadInput(
                f"{where(start + wrong[0])}: {names[start + wrong[0]]!r} is an image of another class, "
                f"{class_name[block[wrong[0]]]!r}; the row is of class {class_name[grid[t, w]]!r}."
            )
        if not uneven and size != shots[is_support]:
            raise BadInput(
                f"{where(start)}: has {size} images where others have {shots[is_support]}. "
                "Every class needs the same number, unless uneven shots are allowed."
            )
        sides[is_support][t, w, :size] = images[start : start + size]
        start += size
    if not uneven:
        ways = (grid != PAD).sum(axis=1)
        if (ways != ways[0]).any():
            t = int(np.flatnonzero(ways != ways[0])[0])
            raise BadInput(f"Task {t}: has {ways[t]} classes where task 0 has {ways[0]}.")
    tasks = Tasks(grid, sides[True], sides[False])
    outside = ~np.isin(grid, np.append(dataset.split_class_ids(split), PAD))
    if outside.any():
        split = "all"
    check_tasks(tasks, dataset)
    return Testbed(name, tasks, _imported_recipe(dataset, split, tasks, "json"))


# Checks ----------------------------------------------------------------------------------------------------------


def check_tasks(tasks: Tasks, dataset: Dataset) -> None:
    """Refuses unknown classes, repeated classes, images of another class, and images that come twice in a task.

    Messages name the task, counted from 0.
    """
    class_ids = np.asarray(tasks.class_ids)
    if class_ids.ndim != 2 or not len(class_ids):
        raise BadInput("A testbed needs at least one task. Got none.")
    wrong = (class_ids < PAD) | (class_ids >= dataset.n_classes)
    if wrong.any():
        t, w = np.argwhere(wrong)[0]
        raise BadInput(
            f"Task {t}: unknown class {class_ids[t, w]}; {dataset.title} has classes 0 to {dataset.n_classes - 1}."
        )
    ordered = np.sort(class_ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != PAD)
    if twice.any():
        t, w = np.argwhere(twice)[0]
        raise BadInput(f"Task {t}: class {dataset.classes['class_name'][ordered[t, w]]!r} comes twice. Remove one.")
    if not tasks.has_images:
        return
    of_image = dataset.image_class_ids()
    images = np.concatenate([tasks.support, tasks.query], axis=2)
    beyond = (images < PAD) | (images >= len(of_image))
    if beyond.any():
        t, w, k = np.argwhere(beyond)[0]
        raise BadInput(f"Task {t}: unknown image {images[t, w, k]}; {dataset.title} has {len(of_image):,} images.")
    other = (images != PAD) & (of_image[images] != class_ids[:, :, None])
    if other.any():
        t, w, k = np.argwhere(other)[0]
        names = dataset.classes["class_name"]
        raise BadInput(
            f"Task {t}: image {images[t, w, k]} is of another class, {names[of_image[images[t, w, k]]]!r} "
            f"instead of {names[class_ids[t, w]]!r}."
        )
    ordered = np.sort(images, axis=2)
    twice = (ordered[:, :, 1:] == ordered[:, :, :-1]) & (ordered[:, :, 1:] != PAD)
    if twice.any():
        t, w, k = np.argwhere(twice)[0]
        image = ordered[t, w, k]
        overlap = (tasks.support[t, w] == image).any() and (tasks.query[t, w] == image).any()
        raise BadInput(
            f"Task {t}: image {image} is in "
            f"{'both support and query' if overlap else 'the same set twice'}. An image may come once a task."
        )


def _refuse_repeated_images(task: np.ndarray, image: np.ndarray, support: np.ndarray, rows: np.ndarray) -> None:
    order = np.lexsort((rows, image, task))
    same = (task[order][1:] == task[order][:-1]) & (image[order][1:] == image[order][:-1])
    if same.any():
        at = int(np.flatnonzero(same)[0])
        first, second = order[at], order[at + 1]
        kind = "support and query overlap" if support[first] != support[second] else "the same image comes twice"
        raise BadInput(
            f"Row {rows[second]}: {kind}; image {image[second]} of this task is already in row {rows[first]}. "
            "An image may come once a task."
        )


def _refuse_uneven_ways(grid: np.ndarray, first_rows: np.ndarray) -> None:
    ways = (grid != PAD).sum(axis=1)
    usual = int(np.bincount(ways).argmax())
    odd = np.flatnonzero(ways != usual)
    if len(odd):
        raise BadInput(
            f"Row {first_rows[odd[0]]}: task {odd[0]} has {ways[odd[0]]} classes where others have {usual}. "
            "Every task needs the same number, unless uneven tasks are allowed."
        )


def _side(
    mask: np.ndarray,
    way: np.ndarray,
    image: np.ndarray,
    rows: np.ndarray,
    at: tuple[np.ndarray, np.ndarray],
    shape: tuple[int, int],
    uneven: bool,
    side: int,
    dataset: Dataset,
    way_class: np.ndarray,
) -> np.ndarray:
    """(T, W, shots) image_ids of the support or query lines; refuses classes without any, or with an odd number."""
    word = ("support", "query")[side]
    n_ways = len(way_class)
    counts = np.bincount(way[mask], minlength=n_ways)
    first_row = np.zeros(n_ways, dtype=np.int64)
    first_row[way[::-1]] = rows[::-1]
    usual = int(np.bincount(counts).argmax())
    odd = np.flatnonzero(counts == 0) if uneven else np.flatnonzero((counts != usual) | (counts == 0))
    if len(odd):
        n = odd[0]
        raise BadInput(
            f"Row {first_row[n]}: uneven shots; class {dataset.classes['class_name'][way_class[n]]!r} of its task has "
            f"{counts[n]} {word} images where others have {usual}. Every class needs the same number"
            f"{', at least one.' if uneven else ', unless uneven shots are allowed.'}"
        )
    images = np.full((*shape, int(counts.max())), PAD, dtype=np.int64)
    start = np.cumsum(counts) - counts
    place = np.arange(int(mask.sum())) - start[way[mask]]
    images[at[0][way[mask]], at[1][way[mask]], place] = image[mask]
    return images


def _dataset_images(dataset: Dataset, order: np.ndarray, image: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    """image_ids of the dataset, whether the file counts through the dataset or through the split."""
    of_image = dataset.image_class_ids()
    names = dataset.classes["class_name"]
    known = (image >= 0) & (image < len(of_image))
    right = known & (of_image[np.where(known, image, 0)] == class_ids)
    if right.all():
        return image
    in_split = np.argsort(_rank_in_split(dataset, order), kind="stable")[-_split_size(of_image, order) :]
    inside = (image >= 0) & (image < len(in_split))
    by_split = in_split[np.where(inside, image, 0)]
    if (inside & (of_image[by_split] == class_ids)).all():
        return by_split
    row = int(np.flatnonzero(~right)[0])
    if not known[row]:
        raise BadInput(f"Row {row + 2}: unknown image {image[row]}; {dataset.title} has {len(of_image):,} images.")
    raise BadInput(
        f"Row {row + 2}: image {image[row]} is an image of another class, {names[of_image[image[row]]]!r} instead of "
        f"{names[class_ids[row]]!r}. Pick the dataset and split the testbed was made from, or mend the row."
    )


def _rank_in_split(dataset: Dataset, order: np.ndarray) -> np.ndarray:
    """Place of every image among the images of a split (class after class, in split order), PAD outside it."""
    of_image = dataset.image_class_ids()
    place = np.full(dataset.n_classes, len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ranked = np.argsort(place[of_image], kind="stable")
    rank = np.full(len(of_image), PAD, dtype=np.int64)
    inside = ranked[: _split_size(of_image, order)]
    rank[inside] = np.arange(len(inside))
    return rank


def _split_size(of_image: np.ndarray, order: np.ndarray) -> int:
    return int(np.isin(of_image, order).sum())


def _whole_column(frame: pd.DataFrame, column: str) -> np.ndarray:
    values = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)) | (np.abs(values) > 2**53))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: {column} must be a whole number. Got {frame[column].iloc[bad[0]]!r}. Mend the row."
        )
    return values.astype(np.int64)


def _truth_column(frame: pd.DataFrame, column: str) -> np.ndarray:
    words = frame[column].str.strip().str.lower()
    true, false = words.isin(["true", "1", "1.0"]), words.isin(["false", "0", "0.0"])
    bad = np.flatnonzero(~(true | false))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: {column} must be True or False. Got {frame[column].iloc[bad[0]]!r}. Mend the row."
        )
    return true.to_numpy(dtype=bool)


def _variance(frame: pd.DataFrame, lines: np.ndarray, task: np.ndarray) -> np.ndarray:
    values = pd.to_numeric(frame["variance"], errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero(~(values >= 0))
    if len(bad):
        raise BadInput(
            f"Row {bad[0] + 2}: variance must be a number of at least 0. Got {frame['variance'].iloc[bad[0]]!r}. "
            "Mend the row, or leave the whole column empty."
        )
    values, starts = values[lines], np.searchsorted(task, np.arange(task[-1] + 1))
    differs = np.flatnonzero(~np.isclose(values, values[starts][task]))
    if len(differs):
        raise BadInput(
            f"Row {lines[differs[0]] + 2}: variance {values[differs[0]]:g} differs from the "
            f"{values[starts][task[differs[0]]]:g} of the same task. A task has one."
        )
    return values[starts]


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


def _image_names(dataset: Dataset):
    """image_ids -> names. Without an image table, "CLASS/K" is the K-th image of a class, counted from 0."""
    if dataset.images is not None:
        paths = dataset.images["path"].astype(str).to_numpy()
        return lambda ids: paths[ids].tolist()
    of_image = dataset.image_class_ids()
    folders = _class_folders(dataset)
    starts = np.searchsorted(of_image, np.arange(dataset.n_classes))
    return lambda ids: [f"{folders[c]}/{i}" for c, i in zip(of_image[ids], ids - starts[of_image[ids]], strict=True)]


def _image_ids(dataset: Dataset, names: list[str]) -> np.ndarray:
    """The image_id of every name, PAD where there is none."""
    if dataset.images is not None:
        known = pd.Index(dataset.images["path"].astype(str))
        if known.is_unique:
            return known.get_indexer(names).astype(np.int64)
        known = {path: i for i, path in reversed(list(enumerate(known)))}
        return np.array([known.get(name, PAD) for name in names], dtype=np.int64)
    of_image = dataset.image_class_ids()
    starts = np.searchsorted(of_image, np.arange(dataset.n_classes))
    sizes = np.bincount(of_image, minlength=dataset.n_classes)
    class_of = {folder: c for c, folder in enumerate(_class_folders(dataset))}
    found = np.full(len(names), PAD, dtype=np.int64)
    for i, name in enumerate(names):
        folder, _, number = name.rpartition("/")
        c = class_of.get(folder)
        if c is not None and number.isdecimal() and int(number) < sizes[c]:
            found[i] = starts[c] + int(number)
    return found


def _class_folders(dataset: Dataset) -> list[str]:
    """A name for every class that no other class has: its name, else its node, else its class_id."""
    for column in ("class_name", "node"):
        names = dataset.classes[column].astype(str).tolist()
        if len(set(names)) == len(names):
            return names
    return [f"class_{i}" for i in range(dataset.n_classes)]


def _read_bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadInput(f"A testbed file may have at most {_MOST_BYTES / 1e9:.0f} GB. {path.name} is larger.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"The testbed file {path} cannot be read ({error.strerror or error}). Check the path."
        ) from error


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _brief(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) < 60 else text[:57] + "..."
