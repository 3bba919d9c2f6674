"""Datasets that torchvision can download, by name; a failed download is one sentence.

torchvision fetches and unpacks the files into the workspace; from then on they are read like any other folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fsviz import workspace
from fsviz.datasets import catalog, image_folders
from fsviz.datasets.duplicates import merge_groups
from fsviz.datasets.preview import Preview, check_images, raw_table
from fsviz.errors import Missing, UnknownName
from fsviz.records import Progress
from fsviz.shipped import DATA


def names() -> list[str]:
    return list(SETS)


def fetch(name: str, progress: Progress | None = None) -> Preview:
    """Downloads a dataset (once) and previews it."""
    key = name.strip().lower().replace("-", "").replace("_", "").replace("fgvc", "")
    aliases = {"flowers": "flowers102", "cifar": "cifar100", "food": "food101", "oxfordiiitpet": "pets"}
    key = aliases.get(key, key)
    if key not in SETS:
        raise UnknownName("torchvision dataset", name, SETS)
    folder = workspace.folder("datasets", create=True) / ".torchvision"
    if progress:
        progress(0, 1, f"downloading {key} with torchvision")
    download, read = SETS[key]
    try:
        halves = download(folder)
    except Exception as error:  # torchvision passes on whatever the network, the disk or the archive raised
        _drop_empty(folder)
        reason = str(getattr(error, "reason", error)).split("\n")[0][:160]
        raise Missing(
            f"{key} could not be downloaded ({reason or type(error).__name__}). Check the internet connection, or "
            "download it elsewhere and add its folder with 'fsviz add NAME PATH'."
        ) from None
    preview = with_senses(read(folder, halves, progress), key)
    return _with_known_splits(preview, _ENTRY[key]) if key in _ENTRY else preview


def _drop_empty(folder: Path) -> None:
    """Takes back the folders that a failed download left without a file in them."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _with_known_splits(preview: Preview, entry: str) -> Preview:
    """The class splits of the same benchmark in the catalog, where every class is found there."""
    classes = catalog.load_entry(entry).classes
    split = {_letters(name): split for name, split in zip(classes["class_name"], classes["split"], strict=True)}
    names = preview.images["class_name"].replace(preview.class_titles).map(_letters)
    if not names.isin(list(split)).all():
        return preview
    return replace(preview, images=preview.images.assign(split=names.map(split)))


def with_senses(preview: Preview, key: str) -> Preview:
    """The preview with hand-checked senses of its classes: those of the same benchmark in the catalog, or a table.

    Textures are adjectives and no nouns of WordNet: DTD has no senses.
    """
    names = preview.images["class_name"].unique()
    if key == "dtd":
        return replace(preview, senses=dict.fromkeys(names, ""))
    if (table := DATA / "senses" / f"{key}.csv").is_file():
        rows = pd.read_csv(table, dtype=str, keep_default_na=False)
        synset = {_letters(name): synset for name, synset in zip(rows["class"], rows["synset"], strict=True)}
    else:
        from fsviz.user.images import class_senses  # which imports this module

        entry = catalog.load_entry(_ENTRY[key])
        senses = class_senses(entry)["synset"]
        synset = {_letters(name): sense for name, sense in zip(entry.classes["class_name"], senses, strict=True)}
    titles = {name: _letters(preview.class_titles.get(name, name)) for name in names}
    if not any(synset.values()) or not set(titles.values()) <= set(synset):
        return preview
    return replace(preview, senses={name: synset[title] for name, title in titles.items()})


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", re.sub(r"^\d+\.", "", str(name))).casefold()


def _constructor(name: str, **options: Any) -> Callable[[Path], list[Any]]:
    """Makes the torchvision datasets of both halves, which downloads what is not there yet."""

    def download(folder: Path) -> list[Any]:
        from fsviz.features import torchvision_guard

        torchvision_guard.install()
        from torchvision import datasets as theirs

        folder.mkdir(parents=True, exist_ok=True)
        halves = options.get("halves", ({},))
        return [getattr(theirs, name)(str(folder), download=True, **half) for half in halves]

    return download


def read_cifar100(folder: Path, halves: list[Any], progress: Progress | None = None) -> Preview:
    """CIFAR-100 comes as arrays: its 60,000 pictures are written as PNG files, once."""
    target = folder / "cifar-100-png"
    if not target.is_dir():
        with workspace.atomic_folder(target) as temporary:
            _write_pngs(temporary, halves, progress)
    return _read_folder(target, progress)


def _write_pngs(folder: Path, halves: list[Any], progress: Progress | None) -> None:
    from PIL import Image

    total = sum(len(half.data) for half in halves)
    for class_name in halves[0].classes:
        (folder / class_name).mkdir()
    images = ((pixels, half.classes[label]) for half in halves for pixels, label in zip(half.data, half.targets))
    for done, (pixels, class_name) in enumerate(images):
        Image.fromarray(pixels).save(folder / class_name / f"{done:05d}.png")
        if progress and (done + 1) % 1000 == 0:
            progress(done + 1, total, "writing CIFAR-100 as PNG files")


def read_omniglot(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    """Alphabets and characters; the background half is train, the evaluation half test."""
    preview = image_folders.inspect(folder / "omniglot-py", first_level="split", progress=progress)
    splits = {"images_background": "train", "images_evaluation": "test"}
    return replace(preview, images=preview.images.assign(split=preview.images["split"].replace(splits)))


def read_flowers102(folder: Path, halves: list[Any], progress: Progress | None = None) -> Preview:
    """One file of labels counts the flowers from 1; the names come with torchvision."""
    from scipy.io import loadmat

    root = folder / "flowers-102"
    labels = loadmat(root / "imagelabels.mat", squeeze_me=True)["labels"]
    titles = list(halves[0].classes)
    rows = [{"path": f"jpg/image_{i + 1:05d}.jpg", "class_name": titles[k - 1]} for i, k in enumerate(labels)]
    return check_images("torchvision download", root, raw_table(rows), progress=progress)


def read_dtd(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    return _read_folder(folder / "dtd" / "dtd" / "images", progress)


def read_pets(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    """Two lists of "Abyssinian_100 1 1 1" lines; the class is the name before the number."""
    root = folder / "oxford-iiit-pet"
    rows = []
    for part in ("trainval", "test"):
        for line in (root / "annotations" / f"{part}.txt").read_text(encoding="utf-8").splitlines():
            if words := line.split():
                name = words[0].rpartition("_")[0].replace("_", " ").title()
                rows.append({"path": f"images/{words[0]}.jpg", "class_name": name, "image_split": part})
    return check_images("torchvision download", root, raw_table(rows), progress=progress)


def read_food101(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    """Two lists of images per class, as JSON."""
    root = folder / "food-101"
    rows = [
        {"path": f"images/{path}.jpg", "class_name": name.replace("_", " "), "image_split": part}
        for part in ("train", "test")
        for name, paths in json.loads((root / "meta" / f"{part}.json").read_text(encoding="utf-8")).items()
        for path in paths
    ]
    return check_images("torchvision download", root, raw_table(rows), progress=progress)


def read_aircraft(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    """Two lists of "1234567 variant name" lines."""
    root = folder / "fgvc-aircraft-2013b" / "data"
    rows = []
    for part in ("trainval", "test"):
        for line in (root / f"images_variant_{part}.txt").read_text(encoding="utf-8").splitlines():
            number, _, variant = line.strip().partition(" ")
            if variant:
                rows.append({"path": f"images/{number}.jpg", "class_name": variant})
    return check_images("torchvision download", root, raw_table(rows), progress=progress)


def read_gtsrb(folder: Path, halves: list[Any] | None = None, progress: Progress | None = None) -> Preview:
    """Folders are numbered 00000 to 00042; the catalog knows what the signs mean. All classes are for testing.

    Each sign was filmed while driving past: the frames of a track are a group.
    """
    preview = _read_folder(folder / "gtsrb" / "GTSRB" / "Training", progress)
    names = pd.Series(catalog.load_entry("traffic_sign").classes["class_name"])
    by_number = {int(text.split(".")[0]): text for text in names if text.split(".")[0].isdecimal()}
    titles = {c: by_number.get(int(c), c) for c in preview.images["class_name"].unique() if c.isdecimal()}
    tracks = preview.images["path"].str.extract(r"(.*/\d+)_\d+\.")[0]  # 00001/00003_00012.ppm: a frame of track 3
    return replace(
        preview, images=preview.images.assign(group=merge_groups(pd.factorize(tracks)[0])), class_titles=titles
    )


def _read_folder(root: Path, progress: Progress | None) -> Preview:
    return replace(image_folders.inspect(root, first_level="class", progress=progress), source="torchvision download")


_ENTRY = {
    "cifar100": "cifar100",
    "omniglot": "omniglot",
    "flowers102": "vgg_flower",
    "dtd": "dtd",
    "aircraft": "aircraft",
    "gtsrb": "traffic_sign",
}
_TWO = ({"train": True}, {"train": False})
SETS: dict[str, tuple[Callable[[Path], list[Any]], Callable[..., Preview]]] = {
    "cifar100": (_constructor("CIFAR100", halves=_TWO), read_cifar100),
    "omniglot": (_constructor("Omniglot", halves=({"background": True}, {"background": False})), read_omniglot),
    "flowers102": (_constructor("Flowers102"), read_flowers102),
    "pets": (_constructor("OxfordIIITPet", halves=({"split": "trainval"}, {"split": "test"})), read_pets),
    "food101": (_constructor("Food101", halves=({"split": "train"}, {"split": "test"})), read_food101),
    "dtd": (_constructor("DTD"), read_dtd),
    "aircraft": (_constructor("FGVCAircraft"), read_aircraft),
    "gtsrb": (_constructor("GTSRB"), read_gtsrb),
}
