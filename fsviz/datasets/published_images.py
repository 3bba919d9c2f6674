"""Images on disk for a benchmark that ships as a class table: found classes take the benchmark's ids and splits.

Class folders may be named by WordNet id (n01440764, as in ILSVRC's train folder), by class name however it is spelt, as
Meta-Dataset's converted folders are, or by the number in front of a class name (00014 for "14.Stop").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fsviz.datasets.catalog import ENTRIES
from fsviz.datasets.preview import Preview
from fsviz.errors import BadInput
from fsviz.records import Dataset

_FOLDERS = dict.fromkeys(("tiered_imagenet", "mini_imagenet", "imagenet1k", "ilsvrc_2012"), "~/imagenet/train")


@dataclass(frozen=True)
class ClassMatch:
    """The match between class folders and the classes of a benchmark.

    class_ids  folder's class name -> class_id of the benchmark
    missing    class_ids without a folder
    unknown    folders that are no class of the benchmark
    """

    class_ids: dict[str, int]
    missing: tuple[int, ...]
    unknown: tuple[str, ...]


def command(benchmark: str) -> str:
    """The command that attaches a user's images to a benchmark; any other dataset is added anew, under another name."""
    if benchmark not in ENTRIES:
        return f"fsviz add my_{shlex.quote(benchmark)} PATH"
    return f"fsviz add {shlex.quote(benchmark)} {_FOLDERS.get(benchmark, f'~/{benchmark}')}"


def match_folders(benchmark: Dataset, folders: Iterable[str]) -> ClassMatch:
    """Match class folders with the classes of the benchmark."""
    keys = _keys(benchmark)
    class_ids: dict[str, int] = {}
    unknown = []
    for folder in folders:
        class_id = next((keys[key] for key in _spellings(folder) if key in keys), None)
        if class_id is None:
            unknown.append(folder)
        else:
            class_ids[folder] = class_id
    matched = set(class_ids.values())
    missing = tuple(i for i in range(benchmark.n_classes) if i not in matched)
    return ClassMatch(class_ids, missing, tuple(unknown))


def attach_images(name: str, benchmark: Dataset, preview: Preview, title: str = "") -> tuple[Dataset, ClassMatch]:
    """The benchmark with the images of a preview: its ids, splits and taxonomy; only classes with images are drawn.

    Classes without images stay in the table, so that ids keep their meaning, but are in no split.
    """
    matches = match_folders(benchmark, preview.classes["class_name"])
    if not matches.class_ids:
        raise BadInput(
            f"No folder in {preview.root} is a class of {benchmark.title}. Expected are class folders such as "
            f"{_example(benchmark)}. Got {', '.join(matches.unknown[:3])}."
        )
    images = preview.images[preview.images["class_name"].isin(list(matches.class_ids))]
    class_ids = images["class_name"].map(matches.class_ids).to_numpy(dtype=np.int64)
    order = np.argsort(class_ids, kind="stable")
    images = images.drop(columns=["class_name", "split"]).iloc[order].reset_index(drop=True)
    images.insert(0, "class_id", class_ids[order])
    images.index.name = "image_id"
    counts = np.bincount(class_ids, minlength=benchmark.n_classes)
    has_images = counts > 0
    splits = {s: np.asarray(ids)[has_images[np.asarray(ids)]] for s, ids in benchmark.splits.items()}
    if matches.missing and set(splits) == {"all"}:  # "all" is every class of the table, with or without images
        splits = {"present": splits["all"]}
    notes = [f"Images for {benchmark.title}; classes, splits and taxonomy are the benchmark's."]
    if matches.missing:
        notes.append(
            f"{len(matches.missing):,} of {benchmark.n_classes:,} classes have no images here and are in no split."
        )
    return (
        Dataset(
            name=name,
            title=title or f"{benchmark.title} (your images)",
            classes=benchmark.classes.assign(n_images=pd.array(counts, dtype="Int64")),
            splits={s: ids for s, ids in splits.items() if len(ids)},
            summary=benchmark.summary,
            source=str(preview.root),
            licence=benchmark.licence,
            homepage=benchmark.homepage,
            taxonomy=benchmark.taxonomy,
            node_names=benchmark.node_names,
            images=images,
            attributes=preview.attributes,
            origin="folder",
            root=preview.root,
            notes=tuple(notes),
        ),
        matches,
    )


def _example(benchmark: Dataset) -> str:
    node, class_name = str(benchmark.classes["node"].iat[0]), str(benchmark.classes["class_name"].iat[0])
    return f"{node} or {class_name!r}" if re.fullmatch(r"n\d{8}", node) else repr(class_name)


def _keys(benchmark: Dataset) -> dict[str, int]:
    """Every spelling by which one class and no other is known."""
    keys: dict[str, set[int]] = {}
    for class_id, (class_name, node) in enumerate(zip(benchmark.classes["class_name"], benchmark.classes["node"])):
        number = re.match(r"(\d+)\.", str(class_name))
        own = {_plain(class_name), _plain(re.sub(r"^\d+\.", "", str(class_name)))}
        own |= {str(node)} if re.fullmatch(r"n\d{8}", str(node)) else set()
        own |= {f"number {int(number[1])}"} if number else set()
        for key in own - {""}:
            keys.setdefault(key, set()).add(class_id)
    return {key: next(iter(ids)) for key, ids in keys.items() if len(ids) == 1}


def _spellings(folder: str) -> list[str]:
    """Possible spellings of a folder's name, the most certain first."""
    last = folder.rstrip("/").split("/")[-1]
    ids = [node.lower() for node in re.findall(r"(?<![A-Za-z0-9])[nN]\d{8}(?!\d)", last)]
    number = [f"number {int(last)}"] if last.isdecimal() else []
    return [*ids, _plain(folder), _plain(last), _plain(re.sub(r"^\d+\.", "", last)), *number]


def _plain(text: object) -> str:
    return re.sub(r"[\W_]+", " ", str(text)).strip().casefold()
