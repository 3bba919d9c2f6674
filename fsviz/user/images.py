"""From a folder of images to a dataset: read it, guess WordNet senses, let the user correct them, save."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from fsviz import datasets
from fsviz.datasets import archives, image_folders
from fsviz.datasets.preview import Preview
from fsviz.datasets.published_images import attach_images
from fsviz.datasets.saved import (
    check_new_name,
    load_workspace_dataset,
    read_senses,
    save_dataset,
    save_senses,
    workspace_dataset_names,
)
from fsviz.datasets.sizes import split_by_size
from fsviz.datasets.uploads import delete_if_unusable
from fsviz.errors import BadInput
from fsviz.records import Dataset, Progress
from fsviz.taxonomy import wordnet
from fsviz.taxonomy.senses import (
    FOLDERS,
    NONE,
    ROOT,
    WORDNET,
    SenseGuess,
    Taxonomy,
    class_titles,
    describe,
    guess_senses,
    taxonomy_from_edges,
    taxonomy_from_folders,
    taxonomy_from_senses,
    with_sense,
)
from fsviz.text import from_csv


def save(
    name: str,
    preview: Preview,
    senses: Mapping[str, str] | None = None,
    edges: pd.DataFrame | str | None = None,
    title: str = "",
    licence: str = "",
    overwrite: bool = False,
    upload: Path | None = None,
    corrected: Collection[str] = (),
) -> Dataset:
    """Writes the dataset into the workspace.

    senses     class_name -> WordNet id; edges  a taxonomy of the user's own instead, or FOLDERS
    corrected  classes whose sense a person chose. What was chosen for a dataset that this one replaces stays, unless
               it is chosen anew
    upload  the workspace folder that an uploaded archive was unpacked to; its images move into the dataset
    """
    class_names = preview.classes["class_name"].tolist()
    taxonomy: Taxonomy | None
    table: pd.DataFrame | None = None
    if isinstance(edges, str):
        taxonomy = taxonomy_from_folders(class_names)
    elif edges is not None:
        taxonomy = taxonomy_from_edges(edges, class_names)
    else:
        senses = senses or {}
        if senses or corrected:
            previous_senses = chosen_senses(name, class_names) if overwrite else {}
            senses = {**senses, **{c: s for c, s in previous_senses.items() if c not in corrected}}
            table = _table(class_names, senses, {*previous_senses, *corrected})
        taxonomy = taxonomy_from_senses({c: senses.get(c, "") for c in class_names})
    preview = replace(preview, class_titles={**_titles(preview), **preview.class_titles})
    dataset = image_folders.register(
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
        senses=table,
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
    """All of it in one go, for the command line; `options` are those of datasets.image_folders.inspect.

    taxonomy_file  a CSV child,parent, or one of the words FOLDERS, WORDNET and NONE; if nothing is said, nested
                   folders are their own taxonomy, as on the page
    by_size  splits follow the number of images of a class, as in MetaCoCo, whatever the folders say
    """
    from fsviz.datasets import tables

    check_new_name(name, overwrite)  # before minutes are spent on looking
    preview, upload = preview_path(path, progress=progress, **options)
    if by_size:
        preview = with_splits_by_size(preview)
    class_names = preview.classes["class_name"].tolist()
    source = taxonomy_file or (FOLDERS if is_nested(preview) and not senses_file else WORDNET)
    edges: pd.DataFrame | str | None = None
    if source not in (WORDNET, NONE):
        edges = FOLDERS if source == FOLDERS else tables.read_edges(source)
    guesses = senses_of(preview, progress) if source == WORDNET else []
    previous = chosen_senses(name, class_names) if overwrite and guesses else {}
    corrected = (
        _checked_senses(tables.read_senses(senses_file), class_names) if senses_file and source == WORDNET else {}
    )
    synset_of = {guess.class_name: guess.synset_id for guess in guesses} | previous | corrected
    dataset = save(name, preview, synset_of, edges, title, overwrite=overwrite, upload=upload, corrected=corrected)
    return {
        "name": dataset.name,
        "source": preview.source,
        "root": str(dataset.root),
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
        "taxonomy": source if source in (WORDNET, FOLDERS, NONE) else "file",
        "kept": len(set(previous) - set(corrected)),
        "guesses": [describe(guess, synset_of[guess.class_name]) for guess in guesses],
        "notes": list(dataset.notes),
    }


def senses_of(preview: Preview, progress: Progress | None = None) -> list[SenseGuess]:
    """A sense per class: the hand-checked one of a well-known dataset, else a guess from its name."""
    return senses_of_classes(preview.classes["class_name"], tuple(preview.senses.items()), progress)


def senses_of_classes(
    class_names: Iterable[str], checked_senses: tuple[tuple[str, str], ...] = (), progress: Progress | None = None
) -> list[SenseGuess]:
    """A guess per class, except for those whose sense (class, WordNet id) a person has checked."""
    guesses, senses = guess_senses(class_names, progress), dict(checked_senses)
    checked = [senses.get(guess.class_name) for guess in guesses]
    return [
        guess if synset is None else with_sense(guess, synset) for guess, synset in zip(guesses, checked, strict=True)
    ]


def _titles(preview: Preview) -> dict[str, str]:
    """Titles of classes: the innermost folder, if that name is unique."""
    names = preview.classes["class_name"].tolist()
    inner = [name.rstrip("/").rsplit("/", 1)[-1] for name in names]
    if not preview.source.startswith("folder") or len({name.casefold() for name in inner}) < len(names):
        inner = names
    titles = class_titles(inner)
    return {name: titles.get(own, own) for name, own in zip(names, inner, strict=True) if titles.get(own, own) != name}


def is_nested(preview: Preview) -> bool:
    """Whether every class is a folder in a folder, so that the folders above can be the taxonomy."""
    return preview.source.startswith("folder") and bool(preview.classes["class_name"].str.contains("/").all())


# Next step -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextStep:
    """The recommended next step for a dataset, in one sentence.

    action  "add", "attach", "extract", "senses" or "explore"
    state   the state of the dataset, in one sentence; "" for a dataset that the user did not add
    """

    action: Literal["add", "attach", "extract", "senses", "explore"]
    sentence: str
    state: str = ""


def next_step(dataset: Dataset) -> NextStep:
    """Features first, then doubtful senses; for other datasets, images."""
    if dataset.name not in workspace_dataset_names():
        if dataset.images is None:
            return NextStep("attach", f"Next: add your copy of the images of {dataset.title}.")
        return NextStep("add", "Next: give a folder of images, one folder per class.")
    contents = [f"{dataset.n_classes:,} classes", f"{dataset.n_images or 0:,} images"]
    contents += ["features"] if dataset.has_features else []
    contents += ["a taxonomy"] if dataset.taxonomy is not None else []
    state = f"It has {', '.join(contents[:-1])} and {contents[-1]}."
    if dataset.has_pixels and not dataset.has_features:
        return NextStep("extract", f"Next: extract features of {dataset.title}.", state)
    doubts = sum(map(bool, sense_doubts(class_senses(dataset))))
    if doubts:
        senses = f"{doubts:,} of {dataset.n_classes:,} WordNet senses"
        return NextStep("senses", f"Next: check {senses} of {dataset.title}.", state)
    return NextStep("explore", f"Next: see what makes tasks of {dataset.title} hard.", state)


# WordNet senses of a dataset -------------------------------------------------------------------------------------


def class_senses(dataset: Dataset) -> pd.DataFrame:
    """The sense of every class, by class_id: class (as in its folder), synset, by ("you", "guess" or "")."""
    table = read_senses(dataset.name) if dataset.name in workspace_dataset_names() else None
    if table is not None and len(table) == dataset.n_classes:
        return table
    edges = [] if dataset.taxonomy is None else zip(dataset.taxonomy["child"], dataset.taxonomy["parent"])
    parents = {child: parent for child, parent in edges if str(child).startswith("class: ")}
    nodes = [str(parents.get(node, node)) for node in dataset.classes["node"]]
    synsets = [node if re.fullmatch(r"n\d{8}", node) and node != ROOT else "" for node in nodes]
    pairs = zip(dataset.classes["node"].astype(str), dataset.classes["class_name"].astype(str))
    folder = [node.removeprefix("class: ") if node.startswith("class: ") else name for node, name in pairs]
    return pd.DataFrame({"class": folder, "synset": synsets, "by": ""})


def sense_doubts(table: pd.DataFrame) -> list[str]:
    """The reason to check each row of `class_senses`; "" if there is none or a person chose the sense."""
    if not (table["by"] == "guess").any():
        return [""] * len(table)
    rows = zip(guess_senses(table["class"]), table["synset"], table["by"], strict=True)
    return [guess.doubt if by == "guess" and guess.synset_id == synset else "" for guess, synset, by in rows]


def correct_senses(name: str, corrected: Mapping[str, str]) -> Dataset:
    """Gives classes of a dataset in the workspace another sense (class -> WordNet id, "" for none).

    A dataset that has no senses yet gets a guess for all other classes; a taxonomy of folders or from a file makes way.
    """
    dataset = load_workspace_dataset(name)
    table = class_senses(dataset)
    titles = dict(zip(dataset.classes["class_name"].astype(str), table["class"], strict=True))
    corrected = {c if c in set(table["class"]) else titles.get(c, c): s for c, s in corrected.items()}
    corrected = _checked_senses(corrected, table["class"].tolist())
    if not (table["synset"] != "").any():
        guesses = guess_senses(table["class"])
        table = table.assign(synset=[guess.synset_id for guess in guesses], by="guess")
    synset_of = dict(zip(table["class"], table["synset"], strict=True)) | corrected
    by_you = {*corrected, *table["class"][table["by"] == "you"]}
    return _with_senses(dataset, synset_of, by_you)


def chosen_senses(name: str, class_names: Collection[str] | None = None) -> dict[str, str]:
    """The senses that a person chose for classes of a dataset in the workspace, of all or those that are named."""
    table = read_senses(name) if name in workspace_dataset_names() else None
    if table is None:
        return {}
    mine = table[table["by"] == "you"]
    mine = mine if class_names is None else mine[mine["class"].isin(list(class_names))]
    return dict(zip(mine["class"], mine["synset"], strict=True))


def _with_senses(dataset: Dataset, synset_of: Mapping[str, str], by_you: Collection[str]) -> Dataset:
    """The dataset in the workspace with the taxonomy of these senses (one per class, in their order)."""
    taxonomy = taxonomy_from_senses(synset_of)
    notes = tuple(note for note in dataset.notes if "WordNet sense" not in note)
    changed = replace(
        dataset,
        classes=dataset.classes.assign(node=[taxonomy.nodes[c] if taxonomy else "" for c in synset_of]),
        taxonomy=taxonomy.edges if taxonomy else None,
        node_names=dict(taxonomy.names) if taxonomy else {},
        notes=(*notes, *(taxonomy.notes if taxonomy else ())),
    )
    return save_senses(changed, _table(list(synset_of), synset_of, by_you))


def _table(class_names: Collection[str], senses: Mapping[str, str], by_you: Collection[str]) -> pd.DataFrame:
    """The table of senses.csv."""
    by = ["you" if c in by_you else "guess" for c in class_names]
    return pd.DataFrame({"class": list(class_names), "synset": [senses.get(c, "") for c in class_names], "by": by})


# A benchmark's images --------------------------------------------------------------------------------------------


def attach(
    name: str,
    benchmark: str,
    path: str,
    overwrite: bool = False,
    title: str = "",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Images on disk for a benchmark of the catalog; `options` are those of datasets.image_folders.inspect."""
    check_new_name(name, overwrite)
    preview, upload = preview_path(path, progress=progress, **options)
    return attach_preview(name, benchmark, preview, overwrite, title, upload)


def attach_preview(
    name: str,
    benchmark: str,
    preview: Preview,
    overwrite: bool = False,
    title: str = "",
    upload: Path | None = None,
) -> dict[str, Any]:
    """Saves the images of a preview as a copy of a benchmark; reports what is missing.

    upload  the workspace folder that images were written to; they move into the dataset
    """
    parent = datasets.load(benchmark)
    dataset, matched = attach_images(name, parent, preview, title)
    saved = save_dataset(dataset, overwrite, preview.root if upload is not None else None)
    if upload is not None:
        shutil.rmtree(upload, ignore_errors=True)
    names = parent.classes["class_name"].astype(str)
    problems = [{"kind": p.kind, "message": p.message, "items": list(p.items)} for p in preview.problems]
    if matched.unknown:
        message = f"{len(matched.unknown):,} folders match no class of {parent.title}: skipped."
        problems.insert(0, {"kind": "unknown", "message": message, "items": list(matched.unknown)})
    if matched.missing:
        message = f"{len(matched.missing):,} of {parent.n_classes:,} classes of {parent.title} have no images there."
        problems.insert(0, {"kind": "missing", "message": message, "items": names.iloc[list(matched.missing)].tolist()})
    counts = saved.classes["n_images"].astype(int).to_numpy()
    return {
        "name": saved.name,
        "benchmark": benchmark,
        "source": preview.source,
        "root": str(saved.root),
        "n_classes": len(set(matched.class_ids.values())),
        "n_images": saved.n_images,
        "splits": {s: {"n_classes": len(i), "n_images": int(counts[i].sum())} for s, i in saved.splits.items()},
        "missing": names.iloc[list(matched.missing)].tolist(),
        "unknown": list(matched.unknown),
        "problems": problems,
        "guesses": [],
        "notes": list(saved.notes),
    }


def with_splits_by_size(preview: Preview) -> Preview:
    """The preview with splits that follow the number of images of a class, as in MetaCoCo."""
    classes = preview.classes
    split = dict(zip(classes["class_name"], split_by_size(classes["n_images"].to_numpy()), strict=True))
    return replace(preview, images=preview.images.assign(split=preview.images["class_name"].map(split)))


def _groups(dataset: Dataset) -> dict[str, int]:
    """Number of image groups, number of images in them, and the size of the largest."""
    groups = dataset.image_groups()
    sizes = np.array([], int) if groups is None else np.bincount(groups)
    sizes = sizes[sizes > 1]
    return {"n_groups": len(sizes), "n_images": int(sizes.sum()), "largest": int(sizes.max(initial=0))}


def preview_path(path: str, progress: Progress | None = None, **options: Any) -> tuple[Preview, Path | None]:
    """A preview of a path and, where images lie in pickles or TFRecords, the workspace folder they were written to."""
    if not archives.is_packed(path):
        return find(path, progress, **options), None
    folder = archives.unpack(path, progress)
    with delete_if_unusable(folder):
        return image_folders.inspect(folder, progress=progress, **options), folder


def find(path: str, progress: Progress | None = None, **options: Any) -> Preview:
    """A preview of a path, or of a torchvision dataset named as torchvision:NAME."""
    from fsviz.user import torchvision_sets

    if str(path).lower().startswith("torchvision:"):
        return torchvision_sets.fetch(str(path).split(":", 1)[1], progress)
    return image_folders.inspect(path, progress=progress, **options)


def _checked_senses(senses: Mapping[str, str], class_names: list[str]) -> dict[str, str]:
    names = set(class_names)
    senses = {name if name in names else from_csv(name): synset for name, synset in senses.items()}
    unknown = [name for name in senses if name not in names]
    if unknown:
        raise BadInput(
            f"The table of senses names {unknown[0]!r}, which is no class of these images. "
            f"Classes are {', '.join(class_names[:5])}{', ...' if len(class_names) > 5 else ''}."
        )
    for synset in senses.values():
        if synset:
            wordnet.sense(synset)
    return dict(senses)


def import_features(name: str, path: str, **options: Any) -> dict[str, Any]:
    """Features that were made elsewhere, as a dataset; `options` are those of features.import_features.

    The class names of a new dataset are guessed as those of images are; with `like` they mean what they mean there.
    """
    from fsviz import features
    from fsviz.features import importing

    before = chosen_senses(name)
    imported = features.import_features(name, path, **options)
    result = importing.describe(imported)
    guesses = []
    if imported.joined is None and options.get("like") is None:
        guesses = guess_senses(imported.dataset.classes["class_name"])
    if any(guess.synset_id for guess in guesses):
        previous = {guess.class_name: before[guess.class_name] for guess in guesses if guess.class_name in before}
        synset_of = {guess.class_name: guess.synset_id for guess in guesses} | previous
        _with_senses(imported.dataset, synset_of, previous)
        return result | {"guesses": [describe(guess, synset_of[guess.class_name]) for guess in guesses]}
    return result | {"guesses": []}


def command(path: str, options: Mapping[str, Any], name: str = "NAME") -> str:
    """The command that adds the images of a path found with these options (see `find`); meanings are guessed."""
    arguments = [f"--{part}-column={column}" for part, column in (options.get("columns") or {}).items()]
    for option, default in (("images", None), ("first_level", "auto"), ("groups", "auto"), ("class_level", 0)):
        if options.get(option, default) != default:
            arguments.append(f"--{option.replace('_', '-')}={options[option]}")
    return shlex.join(["fsviz", "add", name, path, *arguments])
