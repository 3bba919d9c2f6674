"""The user's own images: `inspect` looks and reports, `register` writes what was found into the workspace.

Understood are a folder root/class/image, root/split/class/image or root/concept/context/image, a CSV table, easyfsl's
JSON specs, a folder of mini-ImageNet style CSV files, and Hugging Face's image folders with metadata; which one a path
is follows from what lies there. Folders that name no class (images, train2017) are refused.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from fsviz.datasets import tables
from fsviz.datasets.catalog import splits_of
from fsviz.datasets.images import is_image, path_below
from fsviz.datasets.labels import count_contexts
from fsviz.datasets.preview import Preview, Problem, check_images, excluded_by_suffix, pluralize, raw_table
from fsviz.datasets.saved import load_workspace_dataset, remove_dataset, save_dataset, workspace_dataset_names
from fsviz.errors import BadInput
from fsviz.records import PAD, Dataset, Progress

__all__ = [
    "Preview",
    "Problem",
    "inspect",
    "load_workspace_dataset",
    "preview_dataset",
    "register",
    "remove_dataset",
    "workspace_dataset_names",
]

FIRST_LEVELS = ("auto", "split", "class", "concept")  # what the first folders can be
SPLIT_NAMES = frozenset(
    (
        *("train", "training", "val", "valid", "validation", "test", "testing", "base", "novel"),
        *("meta_train", "meta_val", "meta_test", "images_background", "images_evaluation", "background", "evaluation"),
    )
)
_TRAIN = frozenset(("train", "training"))
_HELD_OUT = frozenset(("val", "valid", "validation", "test", "testing"))
# Folders whose names say where images are kept, or for what, and not what they show: images, train2017, test_2.
_STORE = re.compile(
    rf"({'|'.join(sorted(SPLIT_NAMES))}|unlabell?ed|imgs?|images?|jpegimages|pictures|data|dataset|default)[\W_]*\d*"
)
_LARGEST_JSON = 200_000_000  # bytes that are read to say what annotations hold


def inspect(
    path: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    columns: Mapping[str, str] | None = None,
    first_level: str = "auto",
    check: bool = True,
    progress: Progress | None = None,
    groups: str = "auto",
    confined: bool = False,
    class_level: int = 0,
) -> Preview:
    """Looks at a folder, a CSV table or a JSON spec and reports what it holds; writes nothing.

    images       the folder that paths in a table or spec start from (default: the file's own folder, or images/ in it)
    columns      which column of a CSV plays which part: keys path, class, split, context, group
    first_level  what the first folders below the root are: "split", "class", or "concept" with folders of contexts
                 inside (concept/context/image, as MetaCoCo and NICO have them); "auto" goes by their names
    class_level  how many folders down, below the root or split, a class is: 1 is the first, and the images of folders
                 inside belong to it; 0 is the folder that an image lies in
    check        look into every file (else broken ones show up later)
    groups       which images stay on one side of a task: "auto" (a table's column group, else copies of a picture),
                 "folder" (also the images of one folder: root/class/video/frame) or "none"
    confined     a list may only name what lies below its own folder, or below `images`; else its paths may lead
                 anywhere
    """
    path = _existing(path)
    images = None if images is None else _existing(images)
    if images is not None and not images.is_dir():
        raise BadInput(f"The images folder must be a folder. Got the file {images}.")
    if path.is_dir():
        path = _only_folder_inside(path)
        images = path if confined and images is None else images
        metadata = _metadata_files(path) if first_level == "auto" and not class_level else []
        if metadata and ((columns or {}).get("class") or all(tables.names_classes(file) for _, file in metadata)):
            return tables.inspect_metadata(path, metadata, columns, check, progress, groups, SPLIT_NAMES)
        lists = tables.list_files(path)
        if lists and not _has_class_folders(path):
            return tables.inspect_files(lists, images, columns, check, progress, groups, confined)
        return _inspect_folder(path, first_level, check, progress, groups, class_level)
    images = path.parent if confined and images is None else images
    if class_level:
        raise BadInput(f"class_level says which folders are classes, and {path.name} is a file. Leave it out.")
    if path.suffix.lower() in (".csv", ".tsv", ".txt", ".json", ".jsonl"):
        return tables.inspect_files({"": path}, images, columns, check, progress, groups, confined)
    raise BadInput(
        f"Expected a folder of class folders, a CSV table or an easyfsl JSON spec. Got {path.name}. "
        "Give the path of one of those."
    )


def register(
    name: str,
    preview: Preview,
    nodes: Mapping[str, str] | None = None,
    taxonomy: pd.DataFrame | None = None,
    node_names: Mapping[str, str] | None = None,
    title: str = "",
    licence: str = "",
    notes: tuple[str, ...] = (),
    overwrite: bool = False,
    move_images: Path | None = None,
    senses: pd.DataFrame | None = None,
) -> Dataset:
    """Saves a preview as a dataset of the workspace, whole or not at all.

    nodes       class_name -> its node in the taxonomy; taxonomy holds the is-a edges (child, parent)
    move_images the preview's root is a temporary folder of the workspace: keep its images with the dataset
    senses      the table of senses behind the taxonomy (see fsviz.datasets.saved)
    """
    dataset = preview_dataset(name, preview, nodes, taxonomy, node_names, title, licence, notes)
    return save_dataset(dataset, overwrite, move_images, senses)


def preview_dataset(
    name: str,
    preview: Preview,
    nodes: Mapping[str, str] | None = None,
    taxonomy: pd.DataFrame | None = None,
    node_names: Mapping[str, str] | None = None,
    title: str = "",
    licence: str = "",
    notes: tuple[str, ...] = (),
) -> Dataset:
    """The dataset that a preview would become; nothing is written. Image ids run through the classes in table order."""
    table = preview.classes
    nodes = nodes or {}
    classes = pd.DataFrame(
        {
            "class_name": [preview.class_titles.get(c, c) for c in table["class_name"]],
            "split": table["split"].to_numpy(),
            "n_images": table["n_images"].astype("Int64"),
            "node": [str(nodes.get(c, "")) for c in table["class_name"]],
        }
    )
    classes.index = pd.RangeIndex(len(classes), name="class_id")
    class_ids = preview.images["class_name"].map(pd.Series(classes.index, index=table["class_name"])).to_numpy()
    order = np.argsort(class_ids, kind="stable")
    images = preview.images.drop(columns=["class_name", "split"]).iloc[order].reset_index(drop=True)
    images.insert(0, "class_id", class_ids[order])
    images.index.name = "image_id"
    if "group" in images and (images["group"] != PAD).any():
        n_together, n_groups = int((images["group"] != PAD).sum()), int(images["group"].max()) + 1
        together = (
            f"{pluralize(n_together, 'image')} in {pluralize(n_groups, 'group')} (copies of a "
            "picture, frames of a video)"
        )
        notes = (*notes, f"{together}: sampling keeps a group on one side of a task.")
    contexts = count_contexts(images) if "context" in images else None
    return Dataset(
        name=name,
        title=title or name,
        classes=classes,
        splits=splits_of(classes),
        summary=f"Your own images: {len(classes):,} classes, {len(images):,} images, read from a {preview.source}.",
        source=str(preview.root),
        licence=licence,
        taxonomy=taxonomy,
        node_names=dict(node_names or {}),
        contexts=contexts,
        images=images,
        attributes=preview.attributes,
        origin="folder",
        root=preview.root,
        notes=notes,
    )


def _existing(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path).strip()
    if not text:
        raise BadInput("Give the path of a folder, a CSV table or a JSON spec. Got nothing.")
    try:
        resolved = Path(text).expanduser().resolve(strict=True)
        os.stat(resolved)
    except (OSError, RuntimeError, ValueError) as error:
        problem = "No read permission" if isinstance(error, PermissionError) else "Not found"
        text = text if len(text) <= 160 else f"{text[:100]}...{text[-40:]}"
        raise BadInput(f"{problem}: {text!r}. Relative paths start at {Path.cwd()}.") from None
    return resolved


def _metadata_files(root: Path) -> list[tuple[str, Path]]:
    """The metadata of a Hugging Face image folder with the split that the folder of each names, "" for none.

    It lies in root, or in the folders of root or of root/data.
    """
    folders = [root]
    for parent in (root, root / "data"):
        if parent.is_dir():
            folders += sorted(p for p in parent.iterdir() if p.is_dir() and not p.is_symlink())
    files = [folder / name for folder in folders for name in tables.METADATA if (folder / name).is_file()]
    return [(file.parent.name if file.parent.name.lower() in SPLIT_NAMES else "", file) for file in files]


def _has_class_folders(root: Path) -> bool:
    """Whether some folder below root that is not just images/ holds images."""
    try:
        folders = [e for e in os.scandir(root) if e.is_dir(follow_symlinks=False) and e.name.lower() != "images"]
    except OSError:
        return False
    return any(is_image(f.path) for folder in folders for _, f in _walk(folder.path))


def _walk(
    root: str | os.PathLike[str], closed: list[str] | None = None
) -> Iterator[tuple[tuple[str, ...], os.DirEntry[str]]]:
    """Yields (folders below root, entry) of every file below root, links included, in name order.

    Folders without read permission are added to `closed`.
    """
    waiting: list[tuple[str, tuple[str, ...]]] = [(os.fspath(root), ())]
    while waiting:
        folder, parts = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda e: e.name)
        except OSError as error:
            if closed is not None:
                closed.append(f"{folder} ({error.strerror or error})")
            continue
        below = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, (*parts, entry.name)))
            else:
                yield parts, entry
        waiting += reversed(below)


@dataclass
class _FolderListing:
    """Files below a folder, sorted by their use.

    images      (folders below the root, name) of every image
    others      names of files that are no images
    links       linked folders, which are not followed
    unreadable  files whose name is not valid UTF-8
    loose       images outside any class folder
    closed      folders without read permission
    """

    images: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    other_files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, root: Path) -> _FolderListing:
        listing = cls()
        for parts, entry in _walk(root, listing.closed):
            listing._add(root, parts, entry)
        return listing

    def _add(self, root: Path, parts: tuple[str, ...], entry: os.DirEntry[str]) -> None:
        if not _is_text(entry.path):
            readable = entry.path.encode("utf-8", "replace").decode()
            self.unreadable.append(f"{readable}: its name is not valid UTF-8")
        elif entry.is_symlink() and _is_folder(entry):
            self.links.append(_about_link(entry.path, root))
        elif not is_image(entry.path):
            self.other_files.append(entry.name)
        elif not parts:
            self.loose.append(entry.name)
        else:
            self.images.append((parts, entry.name))

    def leave_splits(self) -> list[str]:
        """Leaves out the images outside folders of splits; returns their paths."""
        outside = ["/".join((*parts, name)) for parts, name in self.images if parts[0].lower() not in SPLIT_NAMES]
        self.images = [(parts, name) for parts, name in self.images if parts[0].lower() in SPLIT_NAMES]
        return outside

    @property
    def top_folders(self) -> set[str]:
        return {parts[0] for parts, _ in self.images}

    @property
    def min_depth(self) -> int:
        return min((len(parts) for parts, _ in self.images), default=0)


def _inspect_folder(
    root: Path, first_level: str, check: bool, progress: Progress | None, groups: str, class_level: int
) -> Preview:
    if first_level not in FIRST_LEVELS:
        raise BadInput(f"first_level must be one of {', '.join(FIRST_LEVELS)}. Got {first_level!r}.")
    if class_level < 0:
        raise BadInput(
            f"class_level must be 0 (the folder an image lies in) or 1, 2, ... for the first, second, ... folder. "
            f"Got {class_level}."
        )
    root = _folder_of_splits(root) if first_level in ("auto", "split") and not class_level else root
    listing = _FolderListing.of(root)
    outside = listing.leave_splits() if first_level == "auto" and _has_splits(root) else []
    top_folders = listing.top_folders
    by_split = first_level == "split"
    if first_level == "auto":
        by_split = bool(top_folders) and listing.min_depth > 1 and all(f.lower() in SPLIT_NAMES for f in top_folders)
    if by_split:
        listing.loose += [f"{'/'.join(parts)}/{name}" for parts, name in listing.images if len(parts) < 2]
        listing.images = [(parts, name) for parts, name in listing.images if len(parts) > 1]
    n_images = Counter(parts[1:] if by_split else parts for parts, _ in listing.images)
    _check_depth(root, n_images, first_level, class_level)
    in_contexts = first_level == "concept" or (
        first_level != "class" and groups == "auto" and not class_level and _are_contexts(n_images)
    )
    rows = [_row(parts, name, by_split, in_contexts, groups, class_level) for parts, name in listing.images]
    if groups == "folder" and not any(row["group"] for row in rows):
        raise BadInput(
            f"There are no folders inside the class folders of {root}, so they cannot be groups. Expected "
            "root/class/video/frame. Omit --groups folder."
        )
    if first_level == "auto" and not class_level:
        _refuse_stores(root, {row["class_name"] for row in rows}, top_folders)
    problems = _folder_problems(root, listing)
    if outside:
        message = f"Skipped {pluralize(len(outside), 'image')} outside the folders {', '.join(sorted(top_folders))}."
        problems.append(Problem("left_out", message, tuple(outside)))
    if in_contexts and first_level != "concept":
        contexts = sorted({row["context"] for row in rows})
        message = (
            f"The folders inside the class folders have the same names again and again, so they were read as "
            f"{pluralize(len(contexts), 'context')} (concept/context/image). If they are classes of their own, choose "
            "--first-level class."
        )
        problems.append(Problem("contexts", message, tuple(contexts)))
    if not rows:
        first_problem = f" {problems[0].message}" if problems else ""
        raise BadInput(
            f"No images found in {root}.{first_problem} Expected root/class/image or root/split/class/image."
        )
    source = "folder of splits" if by_split else "folder of classes"
    return check_images(source, root, raw_table(rows), problems, check=check, progress=progress, groups=groups)


def _check_depth(root: Path, folders: Collection[tuple[str, ...]], first_level: str, class_level: int) -> None:
    """Refuses levels that the folders below the root or split do not have."""
    max_depth = max((len(folder) for folder in folders), default=0)
    if first_level == "concept" and max_depth < 2:
        raise BadInput(
            f"There are no folders inside the class folders of {root}, so they cannot be contexts. Expected "
            "root/concept/context/image. Choose first_level class."
        )
    if folders and class_level > max_depth:
        raise BadInput(
            f"class_level must be at most {max_depth}, the depth of the folders in {root}. Got {class_level}."
        )


def _row(
    parts: tuple[str, ...], name: str, by_split: bool, in_contexts: bool, groups: str, class_level: int
) -> dict[str, str]:
    """The path, split and class of an image from its folders; its context or group if folders stand for them."""
    row = {"path": "/".join((*parts, name)), "split": parts[0] if by_split else "all"}
    folders = parts[1:] if by_split else parts
    if in_contexts:
        row["context"] = "/".join(folders[1:])
        folders = folders[:1]
    elif groups == "folder":
        level = class_level or max(1, len(folders) - 1)
        row["group"] = "/".join(parts) if len(folders) > level else ""
        folders = folders[:level]
    folders = folders[:class_level] if class_level else folders
    return row | {"class_name": "/".join(folders)}


def _refuse_stores(root: Path, class_names: set[str], firsts: set[str]) -> None:
    """Refuses images whose folders name no class: train2017 of COCO, images of YOLO, JPEGImages of Pascal VOC."""
    parts = [part for name in class_names for part in name.split("/")]
    if not parts or not all(_STORE.fullmatch(part.casefold()) for part in parts):
        return
    metadata = _metadata_files(root)
    if metadata:
        tables.inspect_metadata(root, metadata, None, False, None)  # says which column it lacks
    folders = sorted({*firsts, *class_names})
    contents = f"images in {', '.join(folders[:4])}{', ...' if len(folders) > 4 else ''}"
    annotations = _annotations(root)
    raise BadInput(
        f"{root} holds {contents}{f' and {annotations}' if annotations else ''}, and these folders name no class. "
        "Put the images into a folder per class (root/class/image or root/split/class/image), or write a CSV with the "
        "columns path and class. If these folders are the classes, choose --first-level class."
    )


def _annotations(root: Path) -> str:
    """A description of the annotations next to the images; "" for none."""
    for path in [*sorted(root.glob("*.json")), *sorted(root.glob("*/*.json"))][:20]:
        try:
            if path.stat().st_size > _LARGEST_JSON:
                continue
            content = json.loads(path.read_text(encoding="utf-8"))
            n_objects, n_categories, n_images = (len(content[k]) for k in ("annotations", "categories", "images"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        return (
            f"COCO annotations ({path.relative_to(root)}: {pluralize(n_objects, 'object')} of "
            f"{pluralize(n_categories, 'category', 'categories')} in {pluralize(n_images, 'image')}; an "
            "image may show several)"
        )
    for kind, pattern in (("YOLO's labels", "labels/**/*.txt"), ("Pascal VOC's", "Annotations/*.xml")):
        if (file := next(root.glob(pattern), None)) or (file := next(root.glob(f"*/{pattern}"), None)):
            return f"annotations such as {kind} ({file.relative_to(root)})"
    return ""


def _are_contexts(folders: Mapping[tuple[str, ...], int]) -> bool:
    """Whether folders (as parts below the root or split, with their numbers of images) are concept/context.

    There are three concepts or more, all folders are two deep, and half of the images or more lie in folders whose name
    is found inside several concepts. Names with a digit (video1, session 2) are no contexts.
    """
    if len({folder[0] for folder in folders}) < 3 or {len(folder) for folder in folders} != {2}:
        return False
    homes = Counter(context for _, context in folders)
    shared = sum(n for (_, context), n in folders.items() if homes[context] > 1)
    return 2 * shared >= sum(folders.values()) and not any(c.isdigit() for context in homes for c in context)


def _folder_problems(root: Path, listing: _FolderListing) -> list[Problem]:
    problems = []
    if listing.closed:
        message = f"Skipped {pluralize(len(listing.closed), 'folder')} without read permission. Change the permissions."
        problems.append(Problem("broken", message, tuple(listing.closed)))
    if listing.links:
        message = f"Skipped {pluralize(len(listing.links), 'linked folder')}: only what lies in {root} itself is read."
        problems.append(Problem("leaves_root", message, tuple(listing.links)))
    if listing.unreadable:
        message = f"Skipped {pluralize(len(listing.unreadable), 'file')}: the name is not valid UTF-8."
        problems.append(Problem("broken", message, tuple(listing.unreadable)))
    if listing.loose:
        message = f"Skipped {pluralize(len(listing.loose), 'image')} outside any class folder."
        problems.append(Problem("left_out", message, tuple(listing.loose)))
    suffix_problem = excluded_by_suffix(listing.other_files)
    return [*problems, suffix_problem] if suffix_problem else problems


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry leads to a folder; links that lead nowhere or in a circle do not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _about_link(path: str, root: Path) -> str:
    try:
        path_below(path, root)
        return f"{path} is a link to another folder below {root}."
    except BadInput as error:
        return str(error)


def _only_folder_inside(root: Path) -> Path:
    """Skips wrappers such as the folder inside an unpacked archive: a single folder that is itself no class."""
    while True:
        try:
            entries = [e for e in os.scandir(root) if not e.name.startswith(".") and e.name != "__MACOSX"]
        except OSError:
            raise BadInput(f"No read permission: {root}. Change its permissions.") from None
        if len(entries) != 1 or not entries[0].is_dir(follow_symlinks=False) or entries[0].name.lower() in SPLIT_NAMES:
            return root
        try:
            inner = [e for e in os.scandir(entries[0].path) if not e.name.startswith(".")]
        except OSError:
            return root
        if not inner or any(is_image(e.path) for e in inner if not e.is_dir(follow_symlinks=False)):
            return root
        root = Path(entries[0].path)


def _folder_of_splits(root: Path) -> Path:
    """The one folder inside root with train and test folders, such as dataset/ in a clone; root if there is none."""
    if _has_splits(root):
        return root
    inner = [entry for entry in _folders(root) if _has_splits(Path(entry.path))]
    return Path(inner[0].path) if len(inner) == 1 else root


def _has_splits(root: Path) -> bool:
    """Whether root has a folder train and one of val and test, each with folders of images and no images by itself."""
    splits = [entry for entry in _folders(root) if entry.name.lower() in (*_TRAIN, *_HELD_OUT)]
    names = {entry.name.lower() for entry in splits}
    if not (names & _TRAIN and names & _HELD_OUT):
        return False
    return all(_folders(entry.path) and not _has_images(entry.path) for entry in splits)


def _has_images(folder: str) -> bool:
    """Whether images lie in a folder itself."""
    with os.scandir(folder) as listing:
        return any(is_image(entry.path) and entry.is_file(follow_symlinks=False) for entry in listing)


def _folders(root: str | Path) -> list[os.DirEntry[str]]:
    """The folders in root, links and hidden ones excluded."""
    try:
        with os.scandir(root) as listing:
            return [e for e in listing if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False
