"""Image lists that users already have: CSV tables of paths and classes, and easyfsl's JSON specs.

A CSV needs a column of paths and one of classes; split and context are understood, every other column is kept as an
attribute. mini-ImageNet's train.csv, val.csv and test.csv (filename,label) next to images/ are the same thing thrice,
and so are the metadata.csv or metadata.jsonl (file_name, label) of Hugging Face's image folders.

Paths are absolute, or start at the list's folder. The dataset's folder is the list's, or the smallest one that holds
all files where they lie elsewhere; with an images folder, or confined, nothing outside of it is read.
"""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from fsviz.datasets.images import is_image, path_below
from fsviz.datasets.preview import Preview, Problem, check_images, pluralize, raw_table
from fsviz.errors import BadInput
from fsviz.records import Progress

COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "path": ("path", "filename", "file", "file_name", "filepath", "image_path", "image", "img", "impath"),
    "class": ("class", "label", "class_name", "category", "concept", "classname", "target", "species"),
    "split": ("split", "set", "subset", "partition", "phase"),
    "context": ("context", "domain", "background", "environment", "location"),
    "group": ("group", "group_id"),
}
METADATA = ("metadata.csv", "metadata.jsonl")  # of Hugging Face's image folders
MAX_COLUMNS = 1_000
_LONGEST_LINE = 1_000_000  # letters of the first two lines of a CSV
_OWN = ("path", "class_name", "split", "context", "group", "class_id", "image_id", "image_split", "row", "n_bytes")


def list_files(folder: Path) -> dict[str, Path]:
    """The lists that lie in a folder: train, val and test (CSV or JSON) by split, or a single CSV under ""."""
    files: dict[str, Path] = {}
    for split, stems in {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}.items():
        for stem in stems:
            for suffix in (".csv", ".json"):
                if split not in files and (folder / f"{stem}{suffix}").is_file():
                    files[split] = folder / f"{stem}{suffix}"
    lone = [] if files else sorted(folder.glob("*.csv"))
    return {"": lone[0]} if len(lone) == 1 else files


def lists_images(path: Path) -> bool:
    """Whether a CSV says paths and classes, and half of the paths or more are there."""
    try:
        table = _with_standard_columns(_read_csv(path), path, {})[0]
    except BadInput:
        return False
    paths = table["path"].map(lambda p: _with_slashes(p, path.parent))
    prefix = _prefix(path.parent, paths) if len(paths) else ""
    return len(paths) > 0 and 2 * sum(_is_file(path.parent / prefix / p) for p in paths) >= len(paths)


def inspect_files(
    files: Mapping[str, Path],
    images: Path | None,
    columns: Mapping[str, str] | None,
    check: bool,
    progress: Progress | None,
    groups: str = "auto",
    confined: bool = False,
) -> Preview:
    """Reads one list per split ("" when the list itself names the splits) and checks the images they name.

    confined  only files below the list's folder, or below `images`, are read
    """
    if all(path.suffix.lower() == ".json" for path in files.values()):
        return _inspect_specs(files, images, check, progress, groups)
    files = {split: path for split, path in files.items() if path.suffix.lower() != ".json"}
    table, problems = _joined(list(files.items()), columns or {})
    root = images or next(iter(files.values())).parent
    table["path"] = [_with_slashes(p, root) for p in table["path"]]
    prefix = _prefix(root, table["path"])
    table["path"] = [os.path.join(prefix, p) if prefix else p for p in table["path"]]
    source = "CSV table" if len(files) == 1 else f"set of {len(files)} CSV tables"
    bound = images is not None or confined
    return _inspect_rows(table, source, root, bound, problems, check, progress, groups)


def inspect_metadata(
    root: Path,
    files: list[tuple[str, Path]],
    columns: Mapping[str, str] | None,
    check: bool,
    progress: Progress | None,
    groups: str = "auto",
    split_names: Collection[str] = (),
) -> Preview:
    """Reads the metadata of a Hugging Face image folder: a split ("" for none) and a file for each part of it.

    Paths start at the folder of their file, and nothing outside of root is read. Where neither a file nor a column says
    the split, it is the folder that a path begins with, if all of these are `split_names`.
    """
    table, problems = _joined(files, columns or {})
    first = table["path"].str.split("/").str[0]
    if "split" not in table and first.str.lower().isin(list(split_names)).all():
        table["split"] = first
    return _inspect_rows(table, "Hugging Face image folder", root, True, problems, check, progress, groups, root)


def names_classes(path: Path) -> bool:
    """Whether a list has a column of paths and one of classes."""
    try:
        _with_standard_columns(_read_list(path), path, {})
    except BadInput:
        return False
    return True


def _joined(files: list[tuple[str, Path]], columns: Mapping[str, str]) -> tuple[pd.DataFrame, list[Problem]]:
    """All rows of the lists of each split, with `row`, where each stands, and `folder`, that of its list."""
    parts, problems = [], []
    for split, path in files:
        table, new_problems = _with_standard_columns(_read_list(path), path, columns)
        if split and "split" not in table:
            table["split"] = split
        first = 1 if path.suffix.lower() == ".jsonl" else 2  # a CSV's header is row 1
        table["row"] = [f"{path.name} row {i + first}" for i in table.index]
        table["folder"] = str(path.parent)
        parts.append(table)
        problems += new_problems
    table = pd.concat(parts, ignore_index=True).fillna("")
    if table.empty:
        raise BadInput(f"{files[0][1].name} has no rows with a path and a class. Add one row per image.")
    return table, problems


def _inspect_rows(
    table: pd.DataFrame,
    source: str,
    root: Path,
    bound: bool,
    problems: list[Problem],
    check: bool,
    progress: Progress | None,
    groups: str,
    below: Path | None = None,
) -> Preview:
    """Checks the images that rows name.

    bound  nothing outside of root is read; else root becomes the folder that holds all files
    below  paths start at the folder of their list, which lies below this one; else at root
    """
    if below is not None:
        table["path"] = [os.path.relpath(os.path.join(f, p), below) for f, p in zip(table["folder"], table["path"])]
    table, root, path_problems = _rooted(table.drop(columns="folder"), root, bound)
    table, file_problems = _present(table, root)
    problems = [*problems, *path_problems, *file_problems]
    attributes = [c for c in table.columns if c not in _OWN]
    for name in attributes:
        table[name] = _typed(table[name])
    raw = raw_table(table.drop(columns="row"))
    if groups == "folder" and "group" not in raw:
        raw["group"] = raw["path"].map(os.path.dirname)
    return check_images(source, root, raw, problems, attributes, check, progress, groups)


def _rooted(table: pd.DataFrame, root: Path, bound: bool) -> tuple[pd.DataFrame, Path, list[Problem]]:
    """The rows with their paths below a folder, and that folder: root, or the one that holds all of them.

    bound  rows that lead out of root are excluded instead, whether their files are there or not
    """
    paths = table["path"].tolist()
    if not any(os.path.isabs(p) or ".." in Path(p).parts for p in paths):
        return table, root, []
    folders = {folder: os.path.realpath(os.path.join(root, folder)) for folder in set(map(os.path.dirname, paths))}
    full = [os.path.join(folders[os.path.dirname(p)], os.path.basename(p)) for p in paths]
    real = Path(os.path.realpath(root))
    outside = np.array([not Path(p).is_relative_to(real) for p in full])
    problems = []
    if outside.any() and bound:
        items = tuple(f"{row}: {p}" for row, p, out in zip(table["row"], paths, outside) if out)
        if outside.all():
            raise BadInput(
                f"The paths of this list lead out of {root}, and nothing outside of it is read; the first is "
                f"{items[0]}. Write them relative to that folder, or give another one that holds the files (--images)."
            )
        message = f"Skipped {pluralize(len(items), 'row')}: the path leads out of {root}."
        problems.append(Problem("leaves_root", message, items))
    elif outside.any():
        root = real = _common_root([Path(os.path.dirname(p)) for p in full])
    table = table.assign(path=[os.path.relpath(p, real) for p in full])
    return table[~outside] if bound else table, root, problems


def read_edges(path: str | os.PathLike[str]) -> pd.DataFrame:
    """A taxonomy as a CSV with the columns child and parent (a header is needed; further columns are ignored)."""
    table = _read_csv(Path(path))
    table.columns = [str(c).strip().lower() for c in table.columns]
    if not {"child", "parent"} <= set(table.columns):
        raise BadInput(
            f"A taxonomy is a CSV with the columns child and parent. {Path(path).name} has "
            f"{', '.join(map(str, table.columns)) or 'none'}. Name them in the first line."
        )
    edges = table[["child", "parent"]].apply(lambda column: column.str.strip())
    edges = edges[(edges["child"] != "") & (edges["parent"] != "")].drop_duplicates().reset_index(drop=True)
    if edges.empty:
        raise BadInput(f"{Path(path).name} has no rows with both a child and a parent. Add one row per is-a link.")
    return edges


def read_senses(path: str | os.PathLike[str]) -> dict[str, str]:
    """A CSV with the columns class and synset (a WordNet 3.0 id such as n02084071, or empty for none)."""
    table = _read_csv(Path(path))
    table.columns = [str(c).strip().lower() for c in table.columns]
    key = next((c for c in COLUMN_NAMES["class"] if c in table), None)
    value = next((c for c in ("synset", "sense", "synset_id", "wordnet", "wnid", "node") if c in table), None)
    if key is None or value is None:
        raise BadInput(
            f"A table of senses needs the columns class and synset. {Path(path).name} has {', '.join(table.columns)}."
        )
    return dict(zip(table[key], table[value].str.strip(), strict=True))


def _inspect_specs(
    files: Mapping[str, Path], images: Path | None, check: bool, progress: Progress | None, groups: str
) -> Preview:
    """easyfsl's JSON: class_names and class_roots, two lists of the same length."""
    folders: list[tuple[str, str, Path]] = []
    problems: list[Problem] = []
    absent: list[str] = []
    for split, path in files.items():
        names, roots = _read_spec(path)
        for name, class_root in zip(names, roots, strict=True):
            folder = _class_folder(class_root, path, images)
            if folder is None:
                absent.append(f"{path.name}: {class_root} (class {name})")
            else:
                folders.append((split or _split_from(path), name, folder))
    if absent:
        where = "" if images is None else f" in {images}"
        message = f"Skipped {pluralize(len(absent), 'class folder')} not found{where}."
        problems.append(Problem("missing_file", message, tuple(absent)))
    if not folders:
        where = "" if images is None else f" in {images}"
        raise BadInput(
            f"None of the class folders in {next(iter(files.values())).name} is there{where}, the first being "
            f"{absent[0] if absent else 'none at all'}. Give the folder that they start from, or that holds them all "
            "(--images)."
        )
    root = images or _common_root([f.parent if len(folders) == 1 else f for _, _, f in folders])
    rows, outside = [], []
    for split, name, folder in folders:
        for file in sorted(os.scandir(folder), key=lambda e: e.name):
            if not file.name.startswith(".") and is_image(file.path):
                try:
                    path_below(file.path, root)
                    rows.append({"path": os.path.relpath(file.path, root), "class_name": name, "split": split})
                except BadInput as error:
                    outside.append(str(error))
    if outside:
        problems.append(
            Problem("leaves_root", f"Skipped {pluralize(len(outside), 'file')} outside {root}.", tuple(outside))
        )
    if not rows:
        raise BadInput(f"The class folders of {next(iter(files.values())).name} hold no images. Check the class_roots.")
    return check_images(
        "set of easyfsl JSON specs", root, raw_table(rows), problems, check=check, progress=progress, groups=groups
    )


def _read_spec(path: Path) -> tuple[list[str], list[str]]:
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
        names, roots = spec["class_names"], spec["class_roots"]
        sound = isinstance(names, list) and isinstance(roots, list) and len(names) == len(roots)
        sound = sound and all(isinstance(v, str) and v.strip() for v in [*names, *roots])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise BadInput(
            f"{path.name} is not an easyfsl spec: a JSON object with class_names and class_roots, two lists of texts "
            "of the same length. Fix it or give a folder or CSV instead."
        )
    return names, roots


def _class_folder(class_root: str, spec: Path, images: Path | None) -> Path | None:
    """easyfsl takes class_roots from wherever it is started: look below the spec's folder and its parents."""
    for base in [images] if images is not None else [spec.parent, *spec.parent.parents]:
        try:
            folder = (base / class_root).resolve()
            if folder.is_dir() and (images is None or folder.is_relative_to(images)):
                return folder
        except (OSError, ValueError, RuntimeError):
            return None
    return None


def _common_root(folders: list[Path]) -> Path:
    """The smallest folder that holds all of these."""
    root = Path(os.path.commonpath(folders))
    if root == Path(root.anchor):
        raise BadInput(
            f"The files of this list have no folder in common but {root}. Move them into one folder, or take that one "
            f"all the same (--images {root})."
        )
    return root


def _split_from(path: Path) -> str:
    stem = path.stem.lower()
    return (
        {"valid": "val", "validation": "val"}.get(stem, stem)
        if stem in ("train", "val", "valid", "validation", "test")
        else "all"
    )


def _read_list(path: Path) -> pd.DataFrame:
    """A CSV, or one JSON object a line (.jsonl), with every cell as text."""
    return _read_jsonl(path) if path.suffix.lower() == ".jsonl" else _read_csv(path)


def _read_jsonl(path: Path) -> pd.DataFrame:
    """Columns are what the objects have; one that holds lists or tables is excluded."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            rows = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())[:120]
        raise BadInput(f"{path.name} cannot be read as JSON, an object a line ({why}). Fix that line.") from None
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{path.name} must hold a JSON object a line, one for each image. Fix the other lines.")
    names = dict.fromkeys(name for row in rows for name in row)
    _check_header(list(names), path)
    plain = [name for name in names if not any(isinstance(row.get(name), list | dict) for row in rows)]
    return pd.DataFrame({name: [_cell(row.get(name)) for row in rows] for name in plain})


def _cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _read_csv(path: Path) -> pd.DataFrame:
    """Every cell as text: a class called "NA" or "007" stays what it is."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header = _short_line(file, path)
            separator = max(",;\t", key=header.count)
            names = next(csv.reader([header], delimiter=separator), [])
            _check_header(names, path)
            _check_width(next(csv.reader([_short_line(file, path)], delimiter=separator), []), names, path)
            file.seek(0)
            table = pd.read_csv(file, sep=separator, dtype=str, keep_default_na=False, skipinitialspace=True)
    except UnicodeDecodeError:
        raise BadInput(f"{path.name} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except pd.errors.EmptyDataError:
        raise BadInput(f"{path.name} is empty. It needs a header line and one row per image.") from None
    except (pd.errors.ParserError, csv.Error) as error:
        reason = str(error).replace("\n", " ").removeprefix("Error tokenizing data. C error: ")
        raise BadInput(f"{path.name} cannot be read as CSV ({reason}). Fix that line.") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path.name} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what is too much on the left as row names
        raise _too_wide(path, len(table.columns))
    nameless = [c for c in table.columns if not str(c).strip() or str(c).startswith("Unnamed: ")]
    return table.drop(columns=nameless)


def _short_line(file: TextIO, path: Path) -> str:
    line = file.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise BadInput(f"A line of {path.name} has more than {_LONGEST_LINE:,} letters. Put one image on each line.")
    return line


def _check_width(first: list[str], names: list[str], path: Path) -> None:
    """Of a row with more cells than the header, pandas would make an index of many levels, which takes minutes."""
    if len(first) > len(names) and len(names) > 0 and any(cell.strip() for cell in first[len(names) :]):
        raise _too_wide(path, len(names))


def _too_wide(path: Path, n_names: int) -> BadInput:
    return BadInput(
        f"The rows of {path.name} have more cells than its header has names ({n_names}). "
        "Name every column, or put quotes around cells with commas in them."
    )


def _check_header(header: list[str], path: Path) -> None:
    """Two columns of one name: nobody could tell which one is meant."""
    if len(header) > MAX_COLUMNS:
        raise BadInput(
            f"{path.name} has {len(header):,} columns; at most {MAX_COLUMNS:,} are read. Keep those of paths, classes "
            "and attributes."
        )
    counts = Counter(name.strip().lower() for name in header)
    repeated = next((name for name, n in counts.items() if name and n > 1), None)
    if repeated is not None:
        raise BadInput(f"{path.name} has more than one column named {repeated!r}. Rename or remove all but one.")


def _with_standard_columns(
    table: pd.DataFrame, path: Path, columns: Mapping[str, str]
) -> tuple[pd.DataFrame, list[Problem]]:
    """The table with its columns called path, class_name, split, context; rows without path or class are excluded."""
    lower = {str(c).strip().lower(): c for c in table.columns}
    rename: dict[str, str] = {}
    for part, spellings in COLUMN_NAMES.items():
        column = columns.get(part)
        if column:
            if column not in table.columns:
                raise BadInput(f"{path.name} has no column {column!r}. It has {', '.join(map(str, table.columns))}.")
            rename[column] = part
        else:
            column = next((lower[k] for k in spellings if k in lower and lower[k] not in rename), None)
            if column is not None:
                rename[column] = part
    for part in ("path", "class"):
        if part not in rename.values():
            raise BadInput(
                f"{path.name} has no {part} column. Columns: {', '.join(map(str, table.columns))}. "
                f"Name the right one with --{part}-column."
            )
    clash = [c for c in table.columns if c not in rename and c in _OWN]
    table = table.drop(columns=clash).rename(
        columns={**rename, **{c: "class_name" for c, p in rename.items() if p == "class"}}
    )
    table["path"] = table["path"].str.strip()
    table["class_name"] = table["class_name"].str.strip()
    empty = (table["path"] == "") | (table["class_name"] == "")
    problems = []
    if empty.any():
        rows = tuple(f"{path.name} row {i + 2}" for i in table.index[empty])
        problems.append(Problem("left_out", f"Skipped {pluralize(len(rows), 'row')} without a path or a class.", rows))
    return table[~empty].copy(), problems


def _prefix(root: Path, paths: pd.Series) -> str:
    """The start of the paths: root or a usual image folder in it, whichever finds more of a sample."""
    sample = paths.iloc[:: max(1, len(paths) // 50)]

    def hits(prefix: str) -> int:
        return sum(_is_file(root / prefix / p) for p in sample)

    return max(("", "images", "imgs", "data"), key=hits)


def _with_slashes(path: str, root: Path) -> str:
    """A path written on Windows as it is spelt here."""
    return path if "\\" not in path or _is_file(root / path) else path.replace("\\", "/")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _present(table: pd.DataFrame, root: Path) -> tuple[pd.DataFrame, list[Problem]]:
    """The rows whose file is there, each file once."""
    problems = []
    is_present = table["path"].map(lambda p: _is_file(root / p))
    if not is_present.all():
        absent = table[~is_present]
        problems.append(
            Problem(
                "missing_file",
                f"Skipped {pluralize(len(absent), 'row')}: file not found.",
                tuple(f"{row}: {path}" for row, path in zip(absent["row"], absent["path"])),
            )
        )
    table = table[is_present]
    again = table["path"].duplicated()
    if again.any():
        first = table.drop_duplicates("path").set_index("path")["class_name"]
        items = [
            f"{row}: {path}" + ("" if first[path] == name else f" (class {name}, before {first[path]})")
            for row, path, name in zip(table["row"][again], table["path"][again], table["class_name"][again])
        ]
        message = f"Skipped {pluralize(len(items), 'row')}: the file is in an earlier row."
        problems.append(Problem("listed_twice", message, tuple(items)))
    table = table[~again].copy()
    if table.empty:
        raise BadInput(
            f"No file in the table exists (first: {problems[0].items[0]}). Paths start at {root}; "
            "give another images folder with --images."
        )
    return table, problems


def _typed(values: pd.Series) -> pd.Series:
    """Text as numbers or yes/no where every filled cell is one; empty cells become missing."""
    filled = values[values != ""]
    lowered = filled.str.lower()
    if len(filled) and lowered.isin(("true", "false", "yes", "no")).all():
        truth = values.str.lower().map({"true": True, "yes": True, "false": False, "no": False})
        return truth.astype("boolean")
    numbers = pd.to_numeric(filled, errors="coerce")
    if len(filled) and np.isfinite(numbers).all():
        return numbers.reindex(values.index)
    return values.where(values != "", None)
