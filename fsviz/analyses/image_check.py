"""First check of a dataset: classes of the same name, copies, very small classes, images far from their class.

Each finding has the images that show it and says where to see them all. Nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fsviz import features
from fsviz.datasets.duplicates import largest_groups
from fsviz.datasets.preview import pluralize
from fsviz.features import neighbours
from fsviz.features.backbones import title_of
from fsviz.records import Dataset, Features
from fsviz.text import percent

N_ROWS = 5  # of a finding, as images
N_IMAGES = 8  # of a row
SHOTS, QUERIES = 5, 15  # images per class of the usual task in papers
NAMES, COPIES, SMALL, STRANGERS = "names", "copies", "small", "strangers"


@dataclass(frozen=True)
class FindingRow:
    """A line of a finding: a title, a note, and images; `captions` are empty or one per image."""

    title: str
    note: str
    image_ids: tuple[int, ...]
    captions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """The result of one of the checks.

    n          how many classes, images or groups it is about; 0 if nothing stands out
    sentence   the result
    help       the rule
    rows       the most striking ones, at most N_ROWS
    class_ids, image_ids  all of them, to be opened on the page Images; one of both is empty
    """

    kind: str
    n: int
    sentence: str
    help: str
    rows: tuple[FindingRow, ...] = ()
    class_ids: tuple[int, ...] = ()
    image_ids: tuple[int, ...] = ()


def check(dataset: Dataset, backbone: str = "") -> list[Finding]:
    """The findings of every check; that of neighbours only with the features of a backbone."""
    stored = features.load(dataset, backbone) if backbone else None
    findings = [_same_names(dataset, stored), _copies(dataset), _small_classes(dataset)]
    return [*findings, _strangers(dataset, backbone)] if backbone else findings


def headline(findings: list[Finding]) -> str:
    """One sentence over all checks."""
    n_open = sum(finding.n > 0 for finding in findings)
    if not n_open:
        return f"Nothing stands out in {len(findings)} checks."
    return f"{n_open} of {pluralize(len(findings), 'check')} found something to look at."


def summary(dataset: Dataset, backbone: str, findings: list[Finding]) -> dict[str, Any]:
    """Findings for the command line."""
    return {
        "dataset": dataset.name,
        "backbone": backbone or None,
        "headline": headline(findings),
        "findings": [
            {
                "kind": finding.kind,
                "n": finding.n,
                "sentence": finding.sentence,
                "rows": [{"title": row.title, "note": row.note, "images": list(row.image_ids)} for row in finding.rows],
                "classes": [str(dataset.classes["class_name"].iat[i]) for i in finding.class_ids],
                "images": list(finding.image_ids),
            }
            for finding in findings
        ],
    }


def _last_folder(name: str) -> str:
    return name.rpartition("/")[2] or name


def _same_names(dataset: Dataset, stored: Features | None) -> Finding:
    """Classes whose last folder has the same name."""
    names = dataset.classes["class_name"].astype(str)
    last = names.map(_last_folder).str.casefold()
    repeated = last[last.duplicated(keep=False)]
    by_name = repeated.groupby(repeated, sort=False)
    rule = "Folders of the same name in different folders are classes of their own. If they show the same, merge them."
    if repeated.empty:
        return Finding(NAMES, 0, "No two classes have the same last name.", rule)
    rows = []
    for _, part in list(by_name)[:N_ROWS]:
        class_ids = part.index.to_numpy()
        apart = None if stored is None else told_apart(stored, class_ids)
        note = "" if apart is None else f"{percent(apart)} nearer to their own class centre"
        images = [ids for c in class_ids[:2] for ids in _first_images(dataset, int(c), N_IMAGES // 2)]
        folders = [str(names[c]).rpartition("/")[0] or str(names[c]) for c in dataset.image_class_ids()[images]]
        rows.append(FindingRow(_last_folder(str(names[class_ids[0]])), note, tuple(images), tuple(folders)))
    n_names = by_name.ngroups
    sentence = f"{pluralize(n_names, 'name')} in several folders: {len(repeated):,} classes."
    if stored is not None:
        rule += " The note compares each image with the centres of both classes, its own computed without it."
    return Finding(NAMES, len(repeated), sentence, rule, tuple(rows), tuple(map(int, repeated.index)))


def told_apart(stored: Features, class_ids: np.ndarray) -> float | None:
    """Share of the images of these classes that lie nearer to the centre of their own class than to any other's.

    The centre of its own class is computed without the image. None if a class has fewer than two images.
    """
    rows = np.flatnonzero(np.isin(stored.class_ids, class_ids))
    code = np.searchsorted(np.sort(class_ids), stored.class_ids[rows])
    sizes = np.bincount(code, minlength=len(class_ids))
    if sizes.min() < 2:
        return None
    values = neighbours.unit_rows(stored.values[rows])
    sums = np.zeros((len(class_ids), values.shape[1]))
    np.add.at(sums, code, values)
    centres = sums / sizes[:, None]
    squares = (values**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * values @ centres.T
    at = np.arange(len(rows))
    own = ((values - (sums[code] - values) / (sizes[code] - 1)[:, None]) ** 2).sum(axis=1)
    squares[at, code] = own
    return float((squares.argmin(axis=1) == code).mean())


def _copies(dataset: Dataset) -> Finding:
    """Groups of copies or frames, as they were recorded when the images were added."""
    groups = dataset.image_groups()
    rule = "Recorded when the images were added. Images of a group never stand on both sides of a task."
    if groups is None:
        return Finding(COPIES, 0, "No copies or frames are recorded.", rule)
    sizes = np.bincount(groups)
    pairs = np.unique(np.stack([groups, dataset.image_class_ids()]), axis=1)
    n_across = int((np.bincount(pairs[0]) > 1).sum())
    names = dataset.short_names()
    class_ids = dataset.image_class_ids()
    across = largest_groups(dataset, N_ROWS, across=True)
    first = {int(ids[0]) for ids in across}
    listed = [*across, *(ids for ids in largest_groups(dataset, N_ROWS) if int(ids[0]) not in first)][:N_ROWS]
    rows = [
        FindingRow(
            pluralize(len(ids), "image"),
            "in several classes" if len(set(class_ids[ids])) > 1 else "",
            tuple(map(int, ids[:N_IMAGES])),
            tuple(names[c] for c in class_ids[ids[:N_IMAGES]]),
        )
        for ids in listed
    ]
    members = np.flatnonzero(sizes[groups] > 1)
    order = members[np.argsort(groups[members], kind="stable")]
    torn = f"; {pluralize(n_across, 'group')} in more than one class" if n_across else ""
    sentence = f"{pluralize(int((sizes > 1).sum()), 'group')} of copies or frames: {len(members):,} images{torn}."
    return Finding(COPIES, len(members), sentence, rule, tuple(rows), image_ids=tuple(map(int, order)))


def _small_classes(dataset: Dataset) -> Finding:
    """Classes with too few images for the usual task."""
    counts = np.bincount(dataset.image_class_ids(), minlength=dataset.n_classes)
    small = np.flatnonzero((counts < SHOTS + QUERIES) & (counts > 0))
    rule = f"A task of {SHOTS} shots and {QUERIES} queries, usual in papers, takes {SHOTS + QUERIES} images per class."
    if not len(small):
        return Finding(SMALL, 0, f"Every class has at least {SHOTS + QUERIES} images.", rule)
    small = small[np.argsort(counts[small], kind="stable")]
    names = dataset.short_names()
    rows = [
        FindingRow(names[c], pluralize(int(counts[c]), "image"), tuple(_first_images(dataset, int(c), N_IMAGES)))
        for c in small[:N_ROWS]
    ]
    sentence = (
        f"{pluralize(len(small), 'class', 'classes')} with fewer than {SHOTS + QUERIES} images, the smallest with "
        f"{counts[small[0]]:,}."
    )
    return Finding(SMALL, len(small), sentence, rule, tuple(rows), tuple(map(int, small)))


def _strangers(dataset: Dataset, backbone: str) -> Finding:
    """Images with no image of their class among their nearest ones."""
    near = neighbours.own_class_neighbours(dataset, backbone)
    strangers = near.strangers
    k = near.near.shape[1]
    compared = f"{len(near.image_ids):,} images" + (f" sampled from {near.n_images:,}" if near.is_sample else "")
    rule = (
        f"Cosine of {title_of(backbone)} features; copies and images alone in their class do not count. A wrong label, "
        "another object or an unusual view."
    )
    if not len(strangers):
        return Finding(STRANGERS, 0, f"Each of {compared} has its own class among its {k} nearest.", rule)
    names = dataset.short_names()
    class_ids = dataset.image_class_ids()
    at = {int(image_id): place for place, image_id in enumerate(near.image_ids)}
    rows = []
    for image_id in _spread(strangers, class_ids)[:N_ROWS]:
        tiles = (int(image_id), *map(int, near.near[at[int(image_id)]][: N_IMAGES - 1]))
        captions = tuple(names[c] for c in class_ids[list(tiles)])
        rows.append(FindingRow(captions[0], f"image {image_id:,}, then its nearest", tiles, captions))
    verb = "has" if len(strangers) == 1 else "have"
    sentence = f"{len(strangers):,} of {compared} {verb} no image of their class among the {k} nearest."
    return Finding(STRANGERS, len(strangers), sentence, rule, tuple(rows), image_ids=tuple(map(int, strangers)))


def _spread(image_ids: np.ndarray, class_ids: np.ndarray) -> np.ndarray:
    """The images in turns over the classes, the class with most of them first."""
    codes = class_ids[image_ids]
    counts = np.bincount(codes)
    by_class = np.lexsort((codes, -counts[codes]))
    start = np.flatnonzero(np.r_[True, codes[by_class][1:] != codes[by_class][:-1]])
    turn = np.arange(len(codes)) - np.repeat(start, np.diff(np.r_[start, len(codes)]))
    return image_ids[by_class][np.argsort(turn, kind="stable")]


def _first_images(dataset: Dataset, class_id: int, n: int) -> list[int]:
    return [int(i) for i in np.flatnonzero(dataset.image_class_ids() == class_id)[:n]]
