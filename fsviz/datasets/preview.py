"""Preview of an import: the usable images and every problem, before anything is written."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz.datasets import duplicates
from fsviz.datasets.images import READ, find_problem, read_thumbnail
from fsviz.errors import BadInput
from fsviz.records import PAD, Progress
from fsviz.tables import Column, Table

GROUPS = ("auto", "folder", "none")
_BLOCK = 256  # files between two reports of progress
SHOTS, QUERIES = 5, 10  # images of a class in the usual task
FIRST_SPLITS = ("train", "val", "test")
CLASSES = Table(
    "Classes",
    Column("class_name", "Class", kind="class", width=150),
    Column("split", "Split", width=60),
    Column("n_images", "Images", digits=0, kind="bar", width=110),
)
ITEMS = Table("Listed by a warning", Column("item", "Name"))


@dataclass(frozen=True)
class Problem:
    """Something the user may want to fix. `items` names the files, rows or classes, one text each.

    kind  broken, missing_file, leaves_root, too_few, duplicate_name, listed_twice, two_splits, left_out,
          copies, two_classes, not_compared, frames or contexts
    """

    kind: str
    message: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preview:
    """The usable images of a folder or table and what is wrong with the rest.

    images      columns path (below root), class_name, split, optionally context, group (a number, PAD for none) and
                one column per attribute
    attributes  names of the attribute columns
    senses      hand-checked WordNet id of each class, "" for none, of a well-known dataset; {} for others
    """

    source: str
    root: Path
    images: pd.DataFrame
    problems: tuple[Problem, ...] = ()
    attributes: tuple[str, ...] = ()
    class_titles: dict[str, str] = field(default_factory=dict)
    senses: dict[str, str] = field(default_factory=dict)

    @cached_property
    def classes(self) -> pd.DataFrame:
        """One row per class, in reading order of the splits, then of the names: class_name, split, n_images."""
        table = self.images.groupby("class_name", sort=False).agg(split=("split", "first"), n_images=("path", "size"))
        table = table.reset_index()
        order = {name: i for i, name in enumerate(FIRST_SPLITS)}
        key = [
            (order.get(split, len(order)), split, _natural(name))
            for name, split in zip(table["class_name"], table["split"])
        ]
        return table.iloc[sorted(range(len(key)), key=key.__getitem__)].reset_index(drop=True)

    @property
    def split_counts(self) -> dict[str, dict[str, int]]:
        """Per split: how many classes and images it has."""
        classes = self.classes
        return {
            str(split): {"n_classes": len(part), "n_images": int(part["n_images"].sum())}
            for split, part in classes.groupby("split", sort=False)
        }


def check_images(
    source: str,
    root: Path,
    images: pd.DataFrame,
    problems: Iterable[Problem] = (),
    attributes: Iterable[str] = (),
    check: bool = True,
    progress: Progress | None = None,
    groups: str = "auto",
) -> Preview:
    """A preview of a raw table (path, class_name, split, ...): looks at every file and every class.

    groups  what stays on one side of a task. "auto": the table's column group if it has one, else copies of a
            picture; "folder": the images of one folder, and copies; "none": nothing
    """
    problems = list(problems)
    blank = images["class_name"].astype(str).str.strip() == ""
    if blank.any():
        message = f"Skipped {pluralize(int(blank.sum()), 'image')} without a class name. Rename the folder."
        problems.append(Problem("left_out", message, tuple(images["path"][blank])))
        images = images[~blank]
    if groups not in GROUPS:
        raise BadInput(f"groups must be one of {', '.join(GROUPS)}. Got {groups!r}.")
    look = check and (groups == "folder" or (groups == "auto" and "group" not in images))
    glimpses = None
    if check:
        images, split_problems, glimpses = _check_files(root, images, look, progress)
        problems += split_problems
    images, split_problems = _one_split_per_class(images)
    problems += split_problems
    if images.empty:
        first_problem = f" {problems[0].message}" if problems else ""
        raise BadInput(
            f"No readable images in {root}.{first_problem} Expected folders of image files, one per class ({READ})."
        )
    images, split_problems = _grouped(root, images.reset_index(drop=True), glimpses, groups)
    problems += [*split_problems, *_about_classes(images)]
    if "image_split" in images:
        attributes = [*attributes, "image_split"]
    return Preview(source, root, images, tuple(problems), tuple(attributes))


def _check_files(
    root: Path, images: pd.DataFrame, look: bool, progress: Progress | None
) -> tuple[pd.DataFrame, list[Problem], list[np.ndarray | None] | None]:
    """The usable images, what is wrong with the others, and a glimpse of each image (with `look`)."""
    reasons: dict[str, list[str]] = {"broken": [], "leaves_root": []}
    good = np.ones(len(images), dtype=bool)
    glimpses: list[np.ndarray | None] = []
    paths = images["path"].tolist()
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # threads: decoders leave Python's lock
        for start in range(0, len(paths), _BLOCK):
            block = paths[start : start + _BLOCK]
            results = pool.map(
                lambda path: read_thumbnail(path, root, duplicates.SIDE) if look else (find_problem(path, root), None),
                block,
            )
            for i, (problem, pixels) in enumerate(results, start):
                if problem:
                    good[i] = False
                    reasons["leaves_root" if "leads out of" in problem else "broken"].append(problem)
                else:
                    glimpses.append(pixels)
            if progress:
                progress(start + len(block), len(paths), "looking at the image files")
    problems = []
    if reasons["broken"]:
        n = len(reasons["broken"])
        problems.append(Problem("broken", f"Skipped {pluralize(n, 'unreadable file')}.", tuple(reasons["broken"])))
    if reasons["leaves_root"]:
        n = len(reasons["leaves_root"])
        problems.append(
            Problem(
                "leaves_root",
                f"{pluralize(n, 'file')} left out: {'it leads' if n == 1 else 'they lead'} out of {root}.",
                tuple(reasons["leaves_root"]),
            )
        )
    return images[good], problems, glimpses if look else None


def _grouped(
    root: Path, images: pd.DataFrame, glimpses: list[np.ndarray | None] | None, groups: str
) -> tuple[pd.DataFrame, list[Problem]]:
    """The images with the group of each as a number, PAD for those alone; without the column if none has one."""
    labels: list[np.ndarray] = []
    if "group" in images and groups != "none":
        names = images["group"].astype(str)
        labels.append(pd.factorize(names.where(names != ""))[0])
    problems: list[Problem] = []
    if glimpses is not None:
        copies, problems = _copies(root, images, glimpses)
        labels.append(copies)
        if groups == "auto":
            problems += _frames(images, glimpses)
    images = images.drop(columns="group", errors="ignore")
    group = duplicates.merge_groups(*labels) if labels else np.full(len(images), PAD)
    return (images.assign(group=group) if (group != PAD).any() else images), problems


def _copies(root: Path, images: pd.DataFrame, glimpses: list[np.ndarray | None]) -> tuple[np.ndarray, list[Problem]]:
    """Groups of images that show the same picture, and what the user should know of them."""
    has_pixels = np.array([pixels is not None for pixels in glimpses])
    near = np.full(len(images), PAD)
    if has_pixels.any():
        near[has_pixels] = duplicates.find_copies(np.stack([pixels for pixels in glimpses if pixels is not None]))
    exact = duplicates.same_bytes(root, images["path"].tolist())
    group = duplicates.merge_groups(near, exact)
    problems = []
    if (group != PAD).any():
        members = images.assign(at=group)[group != PAD].groupby("at")
        sizes, classes = members.size(), members["class_name"].nunique()
        exactly = f", {int((exact != PAD).sum()):,} byte by byte" if (exact != PAD).any() else ""
        message = (
            f"{pluralize(len(sizes), 'group')} of duplicates ({pluralize(int(sizes.sum()), 'image')}{exactly}, at most "
            f"{int(sizes.max()):,} together). Each group stays on one side of a task."
        )
        largest = sizes.sort_values(ascending=False, kind="stable").index
        problems.append(Problem("copies", message, tuple(_describe(members.get_group(g)) for g in largest)))
        torn = classes.index[classes > 1]
        if len(torn):
            message = (
                f"{pluralize(len(torn), 'group')} of copies in more than one class: a label is wrong, or the "
                "picture shows "
                "both. Remove the wrong ones."
            )
            problems.append(Problem("two_classes", message, tuple(_describe(members.get_group(g)) for g in torn)))
    if not has_pixels.all():
        message = (
            f"{pluralize(int((~has_pixels).sum()), 'very large image')} compared by bytes only: copies in another size "
            "or quality are not found."
        )
        problems.append(Problem("not_compared", message, tuple(images["path"][~has_pixels])))
    return group, problems


def _describe(group: pd.DataFrame) -> str:
    """The images of a group as a text: dog/1.jpg = dog/7.jpg"""
    more = f" and {len(group) - 6:,} more" if len(group) > 6 else ""
    return " = ".join(group["path"].head(6)) + more


def _frames(images: pd.DataFrame, glimpses: list[np.ndarray | None]) -> list[Problem]:
    """A hint where classes are folders in folders and their images look like frames of videos."""
    nested = images["class_name"].str.contains("/", regex=False).to_numpy()
    has_pixels = np.array([pixels is not None for pixels in glimpses]) & nested
    if not nested.all() or not has_pixels.any():
        return []
    folders = pd.factorize(images["path"].map(os.path.dirname))[0][has_pixels]
    if not duplicates.look_like_frames(np.stack([glimpse for glimpse in glimpses if glimpse is not None]), folders):
        return []
    names = images["class_name"].unique()
    message = (
        f"The images of these {pluralize(len(names), 'folder')} look like frames of videos. If they are, use "
        "--groups folder: the images of one folder then stay on one side of a task."
    )
    return [Problem("frames", message, tuple(names))]


def _one_split_per_class(images: pd.DataFrame) -> tuple[pd.DataFrame, list[Problem]]:
    """Few-shot splits share no class: a class in several goes to the one with most of its images.

    If half of the classes or more are in several, the splits are of images and not of classes: no class has one.
    """
    counts = images.groupby(["class_name", "split"], sort=False).size()
    n_splits = counts.groupby("class_name").size()
    shared = n_splits.index[n_splits > 1]
    if not len(shared):
        return images, []
    if 2 * len(shared) >= len(n_splits):
        message = (
            f"{pluralize(len(shared), 'class', 'classes')} in several splits: these split the images, not the classes, "
            "and became the attribute image_split. Make class splits with 'fsviz split' or on Train–test distance."
        )
        listed = tuple(f"{name}: {', '.join(counts[name].index)}" for name in shared)
        return images.assign(image_split=images["split"], split="all"), [Problem("two_splits", message, listed)]
    home = counts.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates("class_name")
    home = home.set_index("class_name")["split"]
    images = images.assign(image_split=images["split"], split=images["class_name"].map(home))
    n = len(shared)
    return images, [
        Problem(
            "two_splits",
            f"{pluralize(n, 'class', 'classes')} in several splits; each was assigned to the split with most "
            "of its images. The attribute image_split keeps the original.",
            tuple(f"{name}: {', '.join(counts[name].index)}" for name in shared),
        )
    ]


def _about_classes(images: pd.DataFrame) -> list[Problem]:
    problems = []
    counts = images["class_name"].value_counts(sort=False)
    few = counts[counts < SHOTS + QUERIES].sort_values(kind="stable")
    if len(few):
        lonely = int((few < 2).sum())
        message = (
            f"{pluralize(len(few), 'class', 'classes')} with fewer than {SHOTS + QUERIES} images. "
            "Use fewer shots or queries, or add images."
        )
        if lonely:
            message += (
                f" {pluralize(lonely, 'class', 'classes')} with a single image cannot give both support and query."
            )
        problems.append(
            Problem("too_few", message, tuple(f"{name}: {pluralize(n, 'image')}" for name, n in few.items()))
        )
    twins = look_alikes(counts.index)
    if twins:
        problems.append(
            Problem(
                "duplicate_name",
                f"{pluralize(len(twins), 'group')} of class names {SPELLING_RULE}. "
                "They are kept apart; rename the folders if they are the same class.",
                twins,
            )
        )
    if "group" in images:
        several = images[(images["group"] == PAD) | ~images.duplicated(["class_name", "group"])]["class_name"]
        single_group = [name for name, n in several.value_counts(sort=False).items() if n == 1 and counts[name] > 1]
        if single_group:
            message = (
                f"{pluralize(len(single_group), 'class', 'classes')} with a single group: its images cannot stand "
                "on both sides of "
                "a task. Add other images, or draw tasks without keeping groups together."
            )
            problems.append(
                Problem("too_few", message, tuple(f"{n}: {pluralize(counts[n], 'image')}" for n in single_group))
            )
    if counts.size == 1:
        problems.append(Problem("too_few", "Only one class found; a task needs at least two. Add a folder per class."))
    return problems


SPELLING_RULE = "differ only in case, blanks, signs or how accents are written"


def look_alikes(names: Iterable[object]) -> tuple[str, ...]:
    """Groups of names that a person could take for the same class, as texts: 'Pug' / 'pug'. Of names that look the
    same the letters are written out: 'caf\\xe9' / 'cafe\\u0301'."""
    alike: dict[str, list[str]] = {}
    for name in map(str, names):
        alike.setdefault(_plain_letters(name) or name, []).append(name)
    texts = []
    for group in (group for group in alike.values() if len(group) > 1):
        looks = [" ".join(unicodedata.normalize("NFC", name).split()) for name in group]
        texts.append(" / ".join(ascii(n) if looks.count(look) > 1 else repr(n) for n, look in zip(group, looks)))
    return tuple(texts)


def _plain_letters(name: str) -> str:
    """A name without case, signs and invisible letters, its accents composed."""
    name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    kinds = map(unicodedata.category, name)
    letters = ("" if kind == "Cf" else " " if kind[0] in "ZPSC" else letter for letter, kind in zip(name, kinds))
    return " ".join("".join(letters).split())


def raw_table(rows: list[dict[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Rows as the raw table that `checked` takes; a missing split becomes "all"."""
    table = pd.DataFrame(rows)
    if "split" not in table:
        table["split"] = "all"
    table["split"] = [_split_name(s) for s in table["split"]]
    return table


def excluded_by_suffix(names: Iterable[str]) -> Problem | None:
    """One line about files that are no images by their name."""
    kinds = Counter(os.path.splitext(name)[1].lower() or "no ending" for name in names)
    if not kinds:
        return None
    total = sum(kinds.values())
    return Problem(
        "left_out",
        f"{pluralize(total, 'file')} {_is(total)} no image by name and {_is(total)} left out.",
        tuple(f"{kind}: {pluralize(n, 'file')}" for kind, n in kinds.most_common()),
    )


def _split_name(name: object) -> str:
    text = str(name).strip()
    return {"valid": "val", "validation": "val", "training": "train", "testing": "test", "": "all"}.get(
        text.lower(), text
    )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts class 2 before class 10."""
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in re.split(r"(\d+)", str(name)) if p]


def pluralize(n: int, singular: str, plural: str = "") -> str:
    """A count with its noun: 1 file, 1,200 files."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
