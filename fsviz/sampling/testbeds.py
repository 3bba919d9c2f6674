"""Testbeds on disk: Parquet with the recipe inside (native), the CSV of Bennequin et al. (2022), JSON of image paths.

Native   one row per task; the recipe and the array shapes are in the file's metadata. The tasks a run froze at its
         start are such files too.
CSV, JSON  see fsviz.sampling.testbed_tables.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fsviz
from fsviz import workspace
from fsviz.errors import BadInput, UnknownName, WorkspaceError
from fsviz.records import Dataset, Tasks, Testbed
from fsviz.sampling.testbed_tables import check_tasks, from_csv, from_json, to_csv, to_json

FORMATS = ("parquet", "csv", "json")
_FORMAT_VERSION = 1
_MOST_BYTES = 1_000_000_000
_GROUP = 4096  # tasks that are stored, and can be read, together
_ARRAYS = ("class_ids", "support", "query")


def save_testbed(testbed: Testbed, number: bool = False) -> Path:
    """Saves in the workspace under the testbed's name and returns the file. What is there is never replaced.

    The same tasks of the same recipe under that name are left as they are. Where other ones have the name, it is
    refused, or with `number` the first of name-2, name-3, ... that is free is taken.
    """
    folder = workspace.folder("testbeds", create=True)
    name = workspace.check_name(testbed.name, "testbed name")
    path, n = folder / f"{name}.parquet", 1
    while path.exists():
        if _holds(path, testbed):
            return path
        if not number:
            raise BadInput(f"Testbed {name!r} already exists with other tasks. Choose another name, or remove {path}.")
        n += 1
        path = folder / f"{name[:95]}-{n}.parquet"
    write_testbed(path, replace(testbed, name=path.stem))
    return path


def _holds(path: Path, testbed: Testbed) -> bool:
    """Whether a file has these tasks of this recipe; the version that drew them does not matter."""
    try:
        saved = read_testbed(path)
    except BadInput:  # damaged: what it held is not known
        return False
    recipes = [{**json.loads(json.dumps(dict(t.recipe), default=_plain)), "version": ""} for t in (saved, testbed)]
    arrays = [[getattr(t.tasks, name) for name in _ARRAYS] for t in (saved, testbed)]
    return recipes[0] == recipes[1] and all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))


def list_testbeds() -> list[str]:
    """Names of the testbeds in the workspace."""
    return [path.stem for path in workspace.entries("testbeds", "*.parquet")]


def delete_testbed(name: str) -> None:
    """Removes a testbed from the workspace."""
    path = workspace.folder("testbeds") / f"{workspace.check_name(name, 'testbed name')}.parquet"
    if not path.exists():
        raise UnknownName("testbed", name, list_testbeds())
    workspace.remove([path])


def rename_testbed(name: str, new: str) -> str:
    """Gives a testbed of the workspace another name, which it returns; runs hold their own copy of the tasks."""
    old = workspace.folder("testbeds") / f"{workspace.check_name(name, 'testbed name')}.parquet"
    if not old.exists():
        raise UnknownName("testbed", name, list_testbeds())
    new = workspace.check_name(new.strip(), "testbed name")
    if new == name:
        return name
    if new in list_testbeds():
        raise BadInput(f"Every testbed needs a name of its own. Got {new!r}, which another one has. Choose another.")
    write_testbed(old.with_name(f"{new}.parquet"), replace(read_testbed(old), name=new))
    old.unlink()
    return new


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
            raise UnknownName("testbed", text, names, "Save one on the Tasks page or with 'fsviz sample'.")
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

    path = workspace.folder("testbeds") / f"{workspace.check_name(name, 'testbed name')}.parquet"
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
    sink = io.BytesIO()
    _write(sink, testbed)
    return sink.getvalue()


def from_parquet(content: bytes, dataset: Dataset) -> Testbed:
    """A testbed of this dataset, checked."""
    testbed = read_testbed(io.BytesIO(content))
    if testbed.recipe.get("dataset") != dataset.name:
        raise BadInput(
            f"This testbed belongs to dataset {testbed.recipe.get('dataset')!r}, not to {dataset.name!r}. "
            "Choose that dataset or another testbed."
        )
    check_tasks(testbed.tasks, dataset)
    return testbed


def write_testbed(path: Path, testbed: Testbed) -> None:
    """A testbed as a file of its own, wherever it is."""
    with workspace.atomic_file(path) as temporary:
        _write(temporary, testbed)


def read_testbed(file: Path | io.BytesIO, start: int = 0, stop: int | None = None) -> Testbed:
    """Tasks `start` to `stop` of a native file, all by default, as they were written: not checked against a dataset."""
    columns, meta = _columns(file, None, start, stop)
    try:
        shapes = meta["shapes"]
        arrays: dict[str, Any] = {name: columns[name].reshape(-1, *shapes[name]) for name in _ARRAYS if name in shapes}
        measures = {name.removeprefix("measure:"): values for name, values in columns.items() if ":" in name}
        tasks = Tasks(**arrays, measures=measures)
        if any(array.shape[:2] != tasks.class_ids.shape for array in arrays.values()):
            raise ValueError(f"its arrays are of different tasks: {shapes}")
        return Testbed(str(meta["name"]), tasks, dict(meta["recipe"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _no_testbed(error) from error


def read_measures(path: Path) -> dict[str, np.ndarray]:
    """Measures of every task of a native file, by name, without reading the tasks."""
    columns, _ = _columns(path, "measure:")
    return {name.removeprefix("measure:"): values for name, values in columns.items()}


def _write(file: Path | io.BytesIO, testbed: Testbed) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tasks = testbed.tasks
    n = len(tasks)
    columns: dict[str, Any] = {"task": pa.array(np.arange(n, dtype=np.int32))}
    shapes: dict[str, list[int]] = {}
    for name in _ARRAYS:
        values = getattr(tasks, name)
        if name != "class_ids" and not tasks.has_images:
            continue
        shapes[name] = [int(size) for size in values.shape[1:]]
        offsets = pa.array(np.arange(n + 1, dtype=np.int64) * int(np.prod(shapes[name])))
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
    pq.write_table(table, file, compression="zstd", row_group_size=_GROUP)


def _columns(
    file: Path | io.BytesIO, only: str | None, start: int = 0, stop: int | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Columns (those whose name begins with `only`) of some rows as flat arrays, and what the metadata say."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            meta = _meta(opened.schema_arrow.metadata)
            names = [name for name in opened.schema_arrow.names if name.startswith(only or "")]
            stop = opened.metadata.num_rows if stop is None else min(stop, opened.metadata.num_rows)
            groups, first = _groups_of(opened.metadata, start, stop)
            table = opened.read_row_groups(groups, names).slice(start - first, max(0, stop - start))
            flat = {name: table[name].combine_chunks() for name in names}
            return {name: _numbers(column) for name, column in flat.items()}, meta
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise _no_testbed(error) from error


def _groups_of(metadata: Any, start: int, stop: int) -> tuple[list[int], int]:
    """The row groups that hold rows `start` to `stop`, and the first row of the first of them."""
    ends = np.cumsum([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], dtype=np.int64)
    begins = np.concatenate([[0], ends[:-1]])
    groups = np.flatnonzero((ends > start) & (begins < stop)).tolist()
    return groups, int(begins[groups[0]]) if groups else start


def _numbers(column: Any) -> np.ndarray:
    import pyarrow as pa

    return (column.flatten() if pa.types.is_large_list(column.type) else column).to_numpy(zero_copy_only=False)


def _no_testbed(error: Exception) -> BadInput:
    return BadInput(
        f"This Parquet file is not a testbed of fsviz ({type(error).__name__}: {error}). "
        "Export it again from the Tasks page or with 'fsviz sample'."
    )


def _meta(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    if not metadata or b"fsviz" not in metadata:
        raise ValueError("it carries no recipe")
    meta = json.loads(metadata[b"fsviz"])
    if not isinstance(meta, dict):
        raise ValueError("its recipe is none")
    if meta.get("format") != _FORMAT_VERSION:
        raise ValueError(f"its format is {meta.get('format')}, this version reads {_FORMAT_VERSION}")
    return meta


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
