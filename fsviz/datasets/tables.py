"""Image lists that users already have: CSV tables of paths and classes, and easyfsl's JSON specs.

A CSV needs a column of paths and one of classes; split and context are understood, every other column is kept as an
attribute. mini-ImageNet's train.csv, val.csv and test.csv (filename,label) beside images/ are the same thing thrice.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz.datasets.images import inside, is_image
from fsviz.datasets.preview import Preview, Problem, checked, many, raw_table
from fsviz.errors import BadInput
from fsviz.records import Progress

NAMES: dict[str, tuple[str, ...]] = {
    "path": ("path", "filename", "file", "file_name", "filepath", "image_path", "image", "img", "impath"),
    "class": ("class", "label", "class_name", "category", "concept", "classname", "target", "species"),
    "split": ("split", "set", "subset", "partition", "phase"),
    "context": ("context", "domain", "background", "environment", "location"),
    "group": ("group", "group_id"),
}
_OWN = ("path", "class_name", "split", "context", "group", "class_id", "image_id", "image_split", "row", "n_bytes")


def list_files(folder: Path) -> dict[str, Path]:
    """The lists that lie in a folder: train, val and test (CSV or JSON) by split, or a single CSV under ""."""
    found: dict[str, Path] = {}
    for split, stems in {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}.items():
        for stem in stems:
            for suffix in (".csv", ".json"):
                if split not in found and (folder / f"{stem}{suffix}").is_file():
                    found[split] = folder / f"{stem}{suffix}"
    lone = [] if found else sorted(folder.glob("*.csv"))
    return {"": lone[0]} if len(lone) == 1 else found


def lists_images(path: Path) -> bool:
    """Whether a CSV says paths and classes, and half of the paths or more are there."""
    try:
        table = _named(_read_csv(path), path, {})[0]
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
) -> Preview:
    """Reads one list per split ("" when the list itself names the splits) and checks the images they name."""
    if all(path.suffix.lower() == ".json" for path in files.values()):
        return _inspect_specs(files, images, check, progress, groups)
    files = {split: path for split, path in files.items() if path.suffix.lower() != ".json"}
    root = images or next(iter(files.values())).parent
    parts, problems = [], []
    for split, path in files.items():
        table = _read_csv(path)
        table, found = _named(table, path, columns or {})
        if split and "split" not in table:
            table["split"] = split
        table["row"] = [f"{path.name} row {i + 2}" for i in table.index]
        parts.append(table)
        problems += found
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise BadInput(f"{next(iter(files.values())).name} has a header but no rows. Add one row per image.")
    table["path"] = [_with_slashes(p, root) for p in table["path"]]
    prefix = _prefix(root, table["path"])
    table["path"] = [os.path.join(prefix, p) if prefix else p for p in table["path"]]
    table, found = _present(table, root)
    problems += found
    attributes = [c for c in table.columns if c not in _OWN]
    for name in attributes:
        table[name] = _typed(table[name])
    source = "CSV table" if len(files) == 1 else f"set of {len(files)} CSV tables"
    raw = raw_table(table.drop(columns="row"))
    if groups == "folder" and "group" not in raw:
        raw["group"] = raw["path"].map(os.path.dirname)
    return checked(source, root, raw, problems, attributes, check, progress, groups)


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
    key = next((c for c in NAMES["class"] if c in table), None)
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
        message = f"{many(len(absent), 'class folder')} listed but not there."
        problems.append(Problem("missing_file", message, tuple(absent)))
    if not folders:
        raise BadInput(
            f"None of the class folders in {next(iter(files.values())).name} is there, the first being "
            f"{absent[0] if absent else 'none at all'}. Give the folder they start from (--images)."
        )
    root = images or _common_root([folder for _, _, folder in folders])
    rows, outside = [], []
    for split, name, folder in folders:
        for file in sorted(os.scandir(folder), key=lambda e: e.name):
            if not file.name.startswith(".") and is_image(file.path):
                try:
                    inside(file.path, root)
                    rows.append({"path": os.path.relpath(file.path, root), "class_name": name, "split": split})
                except BadInput as error:
                    outside.append(str(error))
    if outside:
        problems.append(
            Problem("leaves_root", f"{many(len(outside), 'file')} left out: outside {root}.", tuple(outside))
        )
    if not rows:
        raise BadInput(f"The class folders of {next(iter(files.values())).name} hold no images. Check the class_roots.")
    return checked(
        "set of easyfsl JSON specs", root, raw_table(rows), problems, check=check, progress=progress, groups=groups
    )


def _read_spec(path: Path) -> tuple[list[str], list[str]]:
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
        names, roots = spec["class_names"], spec["class_roots"]
        sound = isinstance(names, list) and isinstance(roots, list) and len(names) == len(roots)
        sound = sound and all(isinstance(v, str) for v in [*names, *roots])
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
    root = Path(os.path.commonpath(folders)) if len(set(folders)) > 1 else folders[0].parent
    if root == Path(root.anchor):
        raise BadInput(
            "The class_roots of this spec have no folder in common. Give the folder that holds them all (--images)."
        )
    return root


def _split_from(path: Path) -> str:
    stem = path.stem.lower()
    return (
        {"valid": "val", "validation": "val"}.get(stem, stem)
        if stem in ("train", "val", "valid", "validation", "test")
        else "all"
    )


def _read_csv(path: Path) -> pd.DataFrame:
    """Every cell as text: a class called "NA" or "007" stays what it is."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            separator = max(",;\t", key=header.count)
            _check_header(next(csv.reader([header], delimiter=separator), []), path)
            file.seek(0)
            table = pd.read_csv(file, sep=separator, dtype=str, keep_default_na=False, skipinitialspace=True)
    except UnicodeDecodeError:
        raise BadInput(f"{path.name} is not UTF-8 text. Save it as CSV in UTF-8.") from None
    except pd.errors.EmptyDataError:
        raise BadInput(f"{path.name} is empty. It needs a header line and one row per image.") from None
    except pd.errors.ParserError as error:
        told = str(error).replace("\n", " ").removeprefix("Error tokenizing data. C error: ")
        raise BadInput(f"{path.name} cannot be read as CSV ({told}). Fix that line.") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path.name} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what is too much on the left as row names
        raise BadInput(
            f"The rows of {path.name} have more cells than its header has names ({len(table.columns)}). "
            "Name every column, or put quotes around cells with commas in them."
        )
    nameless = [c for c in table.columns if not str(c).strip() or str(c).startswith("Unnamed: ")]
    return table.drop(columns=nameless)


def _check_header(header: list[str], path: Path) -> None:
    """Two columns of one name: nobody could tell which one is meant."""
    names = [name.strip().lower() for name in header]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{path.name} has more than one column named {twice!r}. Rename or remove all but one.")


def _named(table: pd.DataFrame, path: Path, columns: Mapping[str, str]) -> tuple[pd.DataFrame, list[Problem]]:
    """The table with its columns called path, class_name, split, context; rows without path or class are left out."""
    lower = {str(c).strip().lower(): c for c in table.columns}
    rename: dict[str, str] = {}
    for part, known in NAMES.items():
        asked = columns.get(part)
        if asked:
            if asked not in table.columns:
                raise BadInput(f"{path.name} has no column {asked!r}. It has {', '.join(map(str, table.columns))}.")
            rename[asked] = part
        else:
            found = next((lower[k] for k in known if k in lower and lower[k] not in rename), None)
            if found is not None:
                rename[found] = part
    for part in ("path", "class"):
        if part not in rename.values():
            raise BadInput(
                f"{path.name} needs a column of {'image paths' if part == 'path' else 'classes'} (called {part} or "
                f"{' or '.join(NAMES[part][1:3])}). It has {', '.join(map(str, table.columns))}. "
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
        problems.append(Problem("left_out", f"{many(len(rows), 'row')} without a path or a class left out.", rows))
    return table[~empty].copy(), problems


def _prefix(root: Path, paths: pd.Series) -> str:
    """Where the paths start: at root, or in one of the usual image folders in it, whichever finds more of a sample."""
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
    there = table["path"].map(lambda p: _is_file(root / p))
    if not there.all():
        gone = table[~there]
        problems.append(
            Problem(
                "missing_file",
                f"{many(len(gone), 'row')} left out: the file is not there.",
                tuple(f"{row}: {path}" for row, path in zip(gone["row"], gone["path"])),
            )
        )
    table = table[there]
    again = table["path"].duplicated()
    if again.any():
        first = table.drop_duplicates("path").set_index("path")["class_name"]
        items = [
            f"{row}: {path}" + ("" if first[path] == name else f" (class {name}, before {first[path]})")
            for row, path, name in zip(table["row"][again], table["path"][again], table["class_name"][again])
        ]
        message = f"{many(len(items), 'row')} left out: the file is listed before, and its first row counts."
        problems.append(Problem("listed_twice", message, tuple(items)))
    table = table[~again].copy()
    if table.empty:
        raise BadInput(
            f"None of the files in the table is there; the first is {problems[0].items[0]}. Paths are taken from "
            f"{root}: give the folder they start from as the images folder (--images)."
        )
    table["path"] = [os.path.relpath(root / p, root) if os.path.isabs(p) else p for p in table["path"]]
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
