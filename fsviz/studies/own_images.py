"""From a folder of images to a dataset: look, guess what the classes mean, let the user correct, save."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.datasets import folders
from fsviz.datasets.attaching import attached
from fsviz.datasets.preview import Preview
from fsviz.datasets.saved import check_new_name, save_dataset
from fsviz.datasets.sizes import split_by_size
from fsviz.errors import BadInput
from fsviz.records import Dataset, Progress
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.senses import (
    FOLDERS,
    Taxonomy,
    class_titles,
    describe,
    guess_senses,
    taxonomy_from_edges,
    taxonomy_from_folders,
    taxonomy_from_senses,
)


def save(
    name: str,
    preview: Preview,
    senses: Mapping[str, str] | None = None,
    edges: pd.DataFrame | str | None = None,
    title: str = "",
    licence: str = "",
    overwrite: bool = False,
    upload: Path | None = None,
) -> Dataset:
    """Writes the dataset into the workspace.

    senses  class_name -> WordNet id; edges  a taxonomy of the user's own instead, or FOLDERS
    upload  the workspace folder that an uploaded archive was unpacked to; its images move into the dataset
    """
    class_names = preview.classes["class_name"].tolist()
    taxonomy: Taxonomy | None
    if isinstance(edges, str):
        taxonomy = taxonomy_from_folders(class_names)
    elif edges is not None:
        taxonomy = taxonomy_from_edges(edges, class_names)
    else:
        taxonomy = taxonomy_from_senses({c: (senses or {}).get(c, "") for c in class_names})
    preview = replace(preview, class_titles={**class_titles(class_names), **preview.class_titles})
    dataset = folders.register(
        name,
        preview,
        nodes=taxonomy.nodes if taxonomy else None,
        taxonomy=taxonomy.edges if taxonomy else None,
        node_names=taxonomy.names if taxonomy else None,
        title=title,
        licence=licence,
        notes=taxonomy.notes if taxonomy else (),
        overwrite=overwrite,
        move_images=preview.root if upload is not None else None,
    )
    if upload is not None:
        shutil.rmtree(upload, ignore_errors=True)  # what is left of it: wrapper folders and tables
    return dataset


def add(
    name: str,
    path: str,
    taxonomy_file: str | None = None,
    senses_file: str | None = None,
    overwrite: bool = False,
    title: str = "",
    progress: Progress | None = None,
    by_size: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """All of it in one go, for the command line; `options` are those of datasets.folders.inspect.

    by_size  splits follow the number of images of a class, as in MetaCoCo, whatever the folders say
    """
    from fsviz.datasets import tables

    check_new_name(name, overwrite)  # before minutes are spent on looking
    preview = find(path, progress=progress, **options)
    if by_size:
        preview = with_splits_by_size(preview)
    class_names = preview.classes["class_name"].tolist()
    edges: pd.DataFrame | str | None = None
    if taxonomy_file:
        edges = FOLDERS if taxonomy_file == FOLDERS else tables.read_edges(taxonomy_file)
    guesses = [] if edges is not None else guess_senses(class_names, progress)
    chosen = {guess.class_name: guess.synset_id for guess in guesses}
    if senses_file and edges is None:
        chosen |= _checked_senses(tables.read_senses(senses_file), class_names)
    dataset = save(name, preview, chosen, edges, title=title, overwrite=overwrite)
    return {
        "name": dataset.name,
        "source": preview.source,
        "root": str(preview.root),
        "n_classes": dataset.n_classes,
        "n_images": dataset.n_images,
        "splits": preview.split_counts,
        "contexts": 0 if dataset.contexts is None else int(dataset.contexts["context"].nunique()),
        "attributes": list(dataset.attributes),
        "groups": _groups(dataset),
        "classes": [
            {"class_name": row.class_name, "split": row.split, "n_images": int(row.n_images), "node": row.node or None}
            for row in dataset.classes.itertuples()
        ],
        "problems": [{"kind": p.kind, "message": p.message, "items": list(p.items)} for p in preview.problems],
        "guesses": [describe(guess, chosen[guess.class_name]) for guess in guesses],
        "notes": list(dataset.notes),
    }


def attach(
    name: str,
    benchmark: str,
    path: str,
    overwrite: bool = False,
    title: str = "",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Images on disk for a benchmark of the catalog; `options` are those of datasets.folders.inspect."""
    check_new_name(name, overwrite)
    return attach_found(name, benchmark, find(path, progress=progress, **options), overwrite, title)


def attach_found(
    name: str, benchmark: str, preview: Preview, overwrite: bool = False, title: str = ""
) -> dict[str, Any]:
    """Saves the images of a preview as a copy of a benchmark; what is missing is told."""
    parent = datasets.load(benchmark)
    dataset, found = attached(name, parent, preview, title)
    saved = save_dataset(dataset, overwrite)
    names = parent.classes["class_name"].astype(str)
    problems = [{"kind": p.kind, "message": p.message, "items": list(p.items)} for p in preview.problems]
    if found.unknown:
        told = f"{len(found.unknown):,} folders are no class of {parent.title} and are left out."
        problems.insert(0, {"kind": "unknown", "message": told, "items": list(found.unknown)})
    if found.missing:
        told = f"{len(found.missing):,} of {parent.n_classes:,} classes of {parent.title} have no images there."
        problems.insert(0, {"kind": "missing", "message": told, "items": names.iloc[list(found.missing)].tolist()})
    counts = saved.classes["n_images"].astype(int).to_numpy()
    return {
        "name": saved.name,
        "benchmark": benchmark,
        "source": preview.source,
        "root": str(preview.root),
        "n_classes": len(set(found.class_ids.values())),
        "n_images": saved.n_images,
        "splits": {s: {"n_classes": len(i), "n_images": int(counts[i].sum())} for s, i in saved.splits.items()},
        "missing": names.iloc[list(found.missing)].tolist(),
        "unknown": list(found.unknown),
        "problems": problems,
        "guesses": [],
        "notes": list(saved.notes),
    }


def with_splits_by_size(preview: Preview) -> Preview:
    """The preview with splits that follow the number of images of a class, as in MetaCoCo."""
    found = preview.classes
    split = dict(zip(found["class_name"], split_by_size(found["n_images"].to_numpy()), strict=True))
    return replace(preview, images=preview.images.assign(split=preview.images["class_name"].map(split)))


def _groups(dataset: Dataset) -> dict[str, int]:
    """How many groups of images there are, how many images they hold, and the size of the largest."""
    groups = dataset.image_groups()
    sizes = np.array([], int) if groups is None else np.bincount(groups)
    sizes = sizes[sizes > 1]
    return {"n_groups": len(sizes), "n_images": int(sizes.sum()), "largest": int(sizes.max(initial=0))}


def find(path: str, progress: Progress | None = None, **options: Any) -> Preview:
    """A preview of a path, or of a torchvision dataset named as torchvision:NAME."""
    from fsviz.studies import torchvision_sets

    if str(path).lower().startswith("torchvision:"):
        return torchvision_sets.fetch(str(path).split(":", 1)[1], progress)
    return folders.inspect(path, progress=progress, **options)


def _checked_senses(given: Mapping[str, str], class_names: list[str]) -> dict[str, str]:
    unknown = [name for name in given if name not in set(class_names)]
    if unknown:
        raise BadInput(
            f"The table of senses names {unknown[0]!r}, which is no class of these images. "
            f"Classes are {', '.join(class_names[:5])}{', ...' if len(class_names) > 5 else ''}."
        )
    for synset in given.values():
        if synset:
            wordnet.sense(synset)
    return dict(given)


def import_features(name: str, path: str, **options: Any) -> dict[str, Any]:
    """Features that were made elsewhere, as a dataset; `options` are those of features.import_features."""
    from fsviz import features
    from fsviz.features import importing

    return importing.describe(features.import_features(name, path, **options))
