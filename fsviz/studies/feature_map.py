"""The feature map of a dataset: the full map as a run, and the attributes that can colour its points.

A chunk is a stage of the layout and continues from the last state in the run's folder. If that state is missing, the
layout is computed again from the beginning, so a chunk depends only on its spec and stage. `finish` stores the map with
its features.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import numpy as np
import pandas as pd

from fsviz import datasets, features, text, workspace
from fsviz.errors import BadInput, Missing
from fsviz.features import maps, store
from fsviz.records import PAD, Colouring, Dataset, Features, NeighbourAgreement, Progress, TaskId, Tasks
from fsviz.sampling import testbeds
from fsviz.settings import RawSettings, Schema
from fsviz.studies import evaluate
from fsviz.studies.study import Arrays, Part, Study
from fsviz.tasks import draw
from fsviz.taxonomy.everyday import even_groups

SETTINGS = Schema({"backbone": draw.BACKBONE}, required=("dataset",), of="a map")
MAX_NAMES = 10  # categories with a colour of their own
BY_CLASS, BY_SUPERCLASS, BY_SPLIT, BY_CONTEXT, BY_RUN = "class", "superclass", "split", "context", "run"
ATTRIBUTE = "attribute:"
LITTLE = 0.05  # clusters follow no attribute that neighbours share less than this above chance


class MapSpec(TypedDict, total=False):
    """The request for a map. `prepare` adds the identity of the features; the executor adds the run's folder."""

    study: str
    dataset: str
    backbone: str
    digest: str
    folder: str


class MapSummary(TypedDict, total=False):
    """Facts about a map; its quality is measured at the end of the run."""

    dataset: str
    backbone: str
    kind: str
    n_images: int
    left_out: int
    neighbours_kept: float
    chance: float


def fast_map(spec: RawSettings, progress: Progress | None = None) -> maps.FeatureMap:
    """The stored map of {"dataset": ..., "backbone": ...}, or a fast one, which is saved unless "keep" is False."""
    dataset = datasets.load(_text(spec, "dataset"))
    return maps.make(dataset, _text(spec, "backbone"), maps.FAST, progress, bool(spec.get("keep", True)))


# --- the full map as a run ------------------------------------------------------------------------------------------


def prepare(spec: MapSpec, folder: Path) -> MapSpec:
    """Checks that the features exist and can be mapped, and that the full map does not exist yet."""
    dataset = datasets.load(spec["dataset"])
    stored = features.load(dataset, spec["backbone"] or features.required(dataset)[0])
    if maps.find(dataset, stored.backbone, maps.BETTER) is not None:
        raise BadInput(
            f"The full map of {dataset.title} with {stored.backbone} features exists already. Open the page Image map."
        )
    maps.check(stored)
    return {"dataset": dataset.name, "backbone": stored.backbone, "digest": store.key_digest(stored.key)}


def parts(spec: MapSpec) -> list[Part]:
    """One part for every image's neighbours, then one per stage of the layout."""
    stages = [Part(f"stage {n}", 1, 1, "layouts", sequential=True) for n in range(1, 1 + maps.n_steps(maps.BETTER))]
    return [Part("neighbours", 1, 1, "tables"), *stages]


def run_chunk(spec: MapSpec, part: int, start: int, stop: int) -> dict[str, np.ndarray]:
    """The positions of the images after `part` stages of the layout."""
    layout = _layout(spec["dataset"], spec["backbone"], spec["digest"], spec["folder"])
    if layout.step > part:  # an earlier chunk is requested again
        layout = maps.begin(_stored(spec), maps.BETTER)
    elif (
        layout.step < part and (stored := _stored_state(spec)) is not None and layout.step < int(stored["step"]) <= part
    ):
        layout.restore(stored)
    while layout.step < part:
        layout.advance()
    with workspace.atomic_file(_state_file(spec)) as temporary, open(temporary, "wb") as file:
        np.savez(file, **layout.arrays())  # type: ignore[arg-type]
    return {"xy": layout.places()}


def message(spec: MapSpec, part: int, start: int, stop: int) -> str:
    return "neighbours computed" if part == 0 else f"laid out, stage {part} of {maps.n_steps(maps.BETTER)}"


@dataclass(frozen=True)
class MapLayout:
    """The positions (n, 2) of the images of a run so far."""

    spec: MapSpec
    xy: np.ndarray


def collect(spec: MapSpec, chunks: Sequence[Arrays]) -> MapLayout:
    return MapLayout(spec, chunks[-1]["xy"])


def summarise(result: MapLayout) -> MapSummary:
    return {"dataset": result.spec["dataset"], "backbone": result.spec["backbone"], "kind": maps.BETTER}


def finish(spec: MapSpec, result: MapLayout) -> MapSummary:
    """Stores the map; returns facts about it."""
    feature_map = maps.with_quality(_stored(spec), maps.BETTER, result.xy)
    maps.save(_stored(spec), feature_map)
    return facts(feature_map)


def facts(feature_map: maps.FeatureMap) -> MapSummary:
    """Facts about a map."""
    return {
        "dataset": feature_map.dataset,
        "backbone": feature_map.backbone,
        "kind": feature_map.kind,
        "n_images": len(feature_map.image_ids),
        "left_out": feature_map.left_out,
        "neighbours_kept": feature_map.preserved,
        "chance": feature_map.chance,
    }


def write_csv(dataset: Dataset, feature_map: maps.FeatureMap, path: str | Path) -> None:
    """Writes the positions of all images as a table."""
    names = dataset.classes["class_name"].astype(str).to_numpy()[dataset.image_class_ids()[feature_map.image_ids]]
    table = pd.DataFrame(
        {"image_id": feature_map.image_ids, "class": names, "x": feature_map.xy[:, 0], "y": feature_map.xy[:, 1]}
    )
    with workspace.atomic_file(Path(path)) as temporary:
        temporary.write_text(text.csv(table), encoding="utf-8")


def _stored(spec: MapSpec) -> Features:
    stored = features.load(datasets.load(spec["dataset"]), spec["backbone"])
    if store.key_digest(stored.key) != spec["digest"]:
        raise BadInput(f"The {spec['backbone']} features of {spec['dataset']} changed. Start a new run.")
    return stored


@lru_cache(maxsize=1)
def _layout(dataset: str, backbone: str, digest: str, folder: str) -> maps.IncrementalLayout:
    """The layout of a run, kept from chunk to chunk."""
    return maps.begin(_stored({"dataset": dataset, "backbone": backbone, "digest": digest}), maps.BETTER)


def _state_file(spec: MapSpec) -> Path:
    return Path(spec["folder"]) / "layout.npz"


def _stored_state(spec: MapSpec) -> dict[str, np.ndarray] | None:
    try:
        with np.load(_state_file(spec), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in ("step", "xy", "gains", "update")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _text(spec: RawSettings, name: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        raise BadInput(f"A map's spec needs {name!r}, a name. Got {value!r}.")
    return value


STUDY = Study(
    name="feature_map",
    title="map of features",
    settings=SETTINGS,
    check=SETTINGS.check,
    prepare=prepare,
    parts=parts,
    run_chunk=run_chunk,
    collect=collect,
    summarise=summarise,
    finish=finish,
    message=message,
    is_transient=True,
)


# --- colours --------------------------------------------------------------------------------------------------------


def colours(dataset: Dataset) -> dict[str, str]:
    """Titles of the attributes of a dataset that can colour the points; a run is one more."""
    titles = {BY_CLASS: "Class"}
    if dataset.taxonomy is not None:
        titles[BY_SUPERCLASS] = "Class group"
    if len(dataset.splits) > 1:
        titles[BY_SPLIT] = "Split"
    if dataset.images is not None and "context" in dataset.images:
        titles[BY_CONTEXT] = "Context"
    if dataset.images is not None:
        titles |= {f"{ATTRIBUTE}{name}": name.replace("_", " ") for name in dataset.attributes if name != "context"}
    return titles


def default_colour(dataset: Dataset, agreements: Sequence[NeighbourAgreement] = ()) -> str:
    """The attribute that clusters follow, if one is given; class groups in place of more classes than colours."""
    first = _first(agreements)
    if first is not None and first.by != BY_CLASS:
        return first.by
    few = dataset.n_classes <= MAX_NAMES
    return BY_CLASS if few or dataset.taxonomy is None else BY_SUPERCLASS


def colouring(dataset: Dataset, image_ids: np.ndarray, by: str, class_ids: Sequence[int] = ()) -> Colouring:
    """The colours of these images (n,).

    class_ids  if coloured by class: the classes to highlight; by default the largest
    """
    of_image = dataset.image_class_ids()[image_ids]
    if by == BY_CLASS:
        return _by_class(dataset, of_image, class_ids)
    if by == BY_SUPERCLASS:
        groups = _class_groups(dataset)
        return _coloured_by("class group", pd.Series(groups).reindex(of_image).to_numpy(dtype=object))
    if by == BY_SPLIT:
        return _coloured_by("split", dataset.classes["split"].astype(str).to_numpy(dtype=object)[of_image])
    if by == BY_CONTEXT and dataset.images is not None and "context" in dataset.images:
        contexts = dataset.image_contexts()[image_ids]
        return _coloured_by("context", np.array([context or None for context in contexts], dtype=object))
    name = by.removeprefix(ATTRIBUTE)
    if by == name or name not in dataset.attributes or dataset.images is None:
        raise BadInput(f"{dataset.title} has no attribute {by!r} to colour images by. Choose another one.")
    column = dataset.images[name].iloc[image_ids]
    if _is_number(column):
        return Colouring(name.replace("_", " "), numbers=column.to_numpy(dtype=float, na_value=np.nan))
    return _coloured_by(name.replace("_", " "), column.astype(object).where(column.notna(), None).to_numpy())


def map_colouring(dataset: Dataset, feature_map: maps.FeatureMap, by: str, class_ids: Sequence[int] = ()) -> Colouring:
    """The colours of the images on a map."""
    return colouring(dataset, feature_map.image_ids, by, class_ids)


def _by_class(dataset: Dataset, of_image: np.ndarray, class_ids: Sequence[int]) -> Colouring:
    class_list = list(dict.fromkeys(int(c) for c in class_ids))
    if not class_list:
        sizes = np.bincount(of_image, minlength=dataset.n_classes)
        class_list = np.sort(np.argsort(-sizes, kind="stable")[:MAX_NAMES]).tolist()
    class_list = class_list[:MAX_NAMES]
    code = np.full(dataset.n_classes, PAD, dtype=np.int64)
    code[class_list] = np.arange(len(class_list))
    return Colouring(
        "class", codes=code[of_image], names=tuple(dataset.distinct_names(np.array(class_list, dtype=int)))
    )


def _class_groups(dataset: Dataset) -> dict[int, str]:
    """The group of every class in the taxonomy."""
    placed = np.flatnonzero(dataset.classes["node"].astype(str).to_numpy() != "")
    if not len(placed):
        raise Missing(f"No class of {dataset.title} is in a taxonomy. Colour by class instead.")
    return dict(zip(placed.tolist(), even_groups(dataset, placed, MAX_NAMES), strict=True))


def _coloured_by(title: str, values: np.ndarray) -> Colouring:
    """A colour for each of the most frequent values; all other values share one."""
    counts = pd.Series(values, dtype=object).dropna().value_counts(sort=False)
    order = sorted(counts.index, key=lambda value: (-counts[value], str(value)))[:MAX_NAMES]
    codes = pd.Index(order, dtype=object).get_indexer(pd.Index(values, dtype=object))
    return Colouring(title, codes=np.where(codes < 0, PAD, codes), names=tuple(str(v) for v in order))


def _is_number(column: pd.Series) -> bool:
    """Whether an attribute is a quantity, not a category."""
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return bool(numeric and column.nunique() > 2)


def accuracy_of_images(
    spec: evaluate.ResolvedSpec, chunks: Sequence[Mapping[str, np.ndarray]], which: int, n_images: int
) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy (N,) of entry number `which` on every image, NaN if it never was a query; and the number of queries."""
    predictions = evaluate.predictions(spec, chunks, which)
    query = evaluate.entry_tasks(spec, evaluate.entries(spec)[which], stop=len(predictions)).query
    answered = (predictions.predicted != PAD) & (query != PAD)
    times = np.bincount(query[answered], minlength=n_images)[:n_images]
    correct = np.bincount(query[answered], weights=(predictions.rank == 0)[answered], minlength=n_images)[:n_images]
    with np.errstate(invalid="ignore"):
        return np.where(times > 0, correct / np.maximum(times, 1), np.nan), times


def outcomes(accuracy: np.ndarray) -> dict[str, np.ndarray]:
    """Image_ids by how a run classified them as queries, from the accuracy (N,) of each image."""
    with np.errstate(invalid="ignore"):
        groups = {
            "always correct": accuracy == 1,
            "sometimes correct": (accuracy > 0) & (accuracy < 1),
            "never correct": accuracy == 0,
        }
    return {title: np.flatnonzero(group) for title, group in groups.items()}


# --- what neighbours share ------------------------------------------------------------------------------------------


def shared(dataset: Dataset, feature_map: maps.FeatureMap) -> list[NeighbourAgreement]:
    """The agreement of neighbours on the map in each attribute, farthest above chance first.

    Attributes that are the same for all images are skipped.
    """
    near = maps.nearest_on_map(feature_map.xy)
    agreements = []
    for by, title in colours(dataset).items():
        try:
            share, chance = maps.agreement(near, _codes(dataset, feature_map.image_ids, by))
        except Missing:  # no class is in the taxonomy
            continue
        if chance < 1:
            within = _within_groups(dataset, feature_map, near) if by == BY_CLASS else None
            title = title[:1].lower() + title[1:]
            agreements.append(NeighbourAgreement(by, title, share, chance, _in_thirds(dataset, by), within))
    return sorted(agreements, key=lambda item: -item.beyond)


def _within_groups(dataset: Dataset, feature_map: maps.FeatureMap, near: np.ndarray) -> NeighbourAgreement | None:
    """The agreement in class of neighbours of the same class group; None without groups of several classes."""
    if dataset.taxonomy is None or not (dataset.classes["node"].astype(str) != "").any():
        return None
    codes = [_codes(dataset, feature_map.image_ids, by) for by in (BY_CLASS, BY_SUPERCLASS)]
    share, chance = maps.agreement_within(near, *codes)
    return NeighbourAgreement(BY_CLASS, "class", share, chance) if chance < 1 else None


def _codes(dataset: Dataset, image_ids: np.ndarray, by: str) -> np.ndarray:
    """A code (n,) for the value of an attribute in each of these images; PAD if it has none."""
    of_image = dataset.image_class_ids()[image_ids]
    if by == BY_CLASS:
        return of_image
    if by == BY_SUPERCLASS:
        groups = pd.Series(_class_groups(dataset))
        return pd.factorize(groups.reindex(of_image))[0]
    if by == BY_SPLIT:
        return pd.factorize(dataset.classes["split"].astype(str).to_numpy()[of_image])[0]
    assert dataset.images is not None
    if by == BY_CONTEXT:
        return pd.factorize(pd.Series(dataset.image_contexts()[image_ids]).replace("", None))[0]
    column = dataset.images[by.removeprefix(ATTRIBUTE)].iloc[image_ids]
    if _in_thirds(dataset, by):
        return pd.qcut(column.astype(float), 3, labels=False, duplicates="drop").fillna(PAD).to_numpy(dtype=np.int64)
    return pd.factorize(column)[0]


def _in_thirds(dataset: Dataset, by: str) -> bool:
    name = by.removeprefix(ATTRIBUTE)
    return by != name and dataset.images is not None and _is_number(dataset.images[name])


def _first(agreements: Sequence[NeighbourAgreement]) -> NeighbourAgreement | None:
    """The attribute that neighbours share most; None if it is close to what is expected by chance."""
    if not agreements or not agreements[0].beyond >= LITTLE:
        return None
    first, by_class = agreements[0], _by_class_of(agreements)
    within = None if by_class is None else by_class.within
    if first.by == BY_SUPERCLASS and within is not None and within.beyond > 0.5:
        return by_class  # images of the same class are in the same group too: classes are apart inside groups
    return first


def _by_class_of(agreements: Sequence[NeighbourAgreement]) -> NeighbourAgreement | None:
    return next((item for item in agreements if item.by == BY_CLASS), None)


def cluster_headline(agreements: Sequence[NeighbourAgreement]) -> str:
    """One sentence about the attribute that neighbours on the map share most, compared with their class."""
    first, by_class = _first(agreements), _by_class_of(agreements)
    if first is None:
        return "Neighbours on the map share no attribute much more often than expected by chance."
    expected = f"({percent(first.chance)} expected by chance)"
    share = f"{first.share:.0%} of neighbours {_agree_in(first)}"
    within = None if by_class is None else by_class.within
    if within is not None and first.by in (BY_CLASS, BY_SUPERCLASS):
        inside = f"{within.share:.0%} of those in the same group share the class ({percent(within.chance)} by chance)"
        return f"Clusters follow {first.title}: {share} {expected}; {inside}."
    if by_class is None or first is by_class:
        return f"Clusters follow {first.title}: {share} {expected}."
    return f"Clusters follow {first.title} more than class: {share} {expected}, {by_class.share:.0%} share the class."


def quality(feature_map: maps.FeatureMap, n_classes: int) -> str:
    """The size of a map and how far to trust it, for the line after the headline."""
    excluded = f" {feature_map.left_out:,} without finite features are excluded." if feature_map.left_out else ""
    return (
        f"{len(feature_map.image_ids):,} images of {n_classes:,} classes; the map preserves "
        f"{feature_map.preserved:.0%} of each image's {maps.NEIGHBOURS} nearest neighbours "
        f"({percent(feature_map.chance)} expected by chance).{excluded}"
    )


def _agree_in(agreement: NeighbourAgreement) -> str:
    return f"are in the same third of {agreement.title}" if agreement.thirds else f"share the {agreement.title}"


def percent(share: float) -> str:
    """A share in percent, with a decimal if it is small."""
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


# --- a task on the map ----------------------------------------------------------------------------------------------


def task_at(dataset: Dataset, name: str) -> Tasks:
    """A task of a saved testbed, named TESTBED:POSITION."""
    task = TaskId.parse(name)
    tasks = testbeds.load_testbed(task.testbed, dataset).tasks
    return single_task(tasks, task.position)


def single_task(tasks: Tasks, position: int) -> Tasks:
    """The task at a position, alone."""
    if not 0 <= position < len(tasks):
        raise BadInput(f"The task number must be 0 to {len(tasks) - 1:,}. Got {position:,}.")
    if not tasks.has_images:
        raise Missing("These tasks have classes only, no images. Sample them with support and query images.")
    return tasks.take(slice(position, position + 1))


# --- a selected region of the map ----------------------------------------------------------------------------------

MAX_CORNERS = 40  # of an outline in a link


def outline_text(x: Sequence[float], y: Sequence[float]) -> str:
    """An outline for a link: two opposite corners of a box, or at most MAX_CORNERS corners of a lasso; "" for none."""
    if len(x) < 2 or len(x) != len(y):
        return ""
    corners = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_CORNERS)).round().astype(int))
    return "_".join(f"{x[i]:.4g},{y[i]:.4g}" for i in corners)


def outline_in(text: str) -> np.ndarray | None:
    """The corners (n, 2) of an outline as `outline_text` writes it; None if the text is not an outline."""
    try:
        corners = np.array([[float(part) for part in corner.split(",")] for corner in text.split("_")])
    except ValueError:
        return None
    if corners.ndim != 2 or corners.shape[1] != 2 or not 2 <= len(corners) <= MAX_CORNERS:
        return None
    if not np.isfinite(corners).all():
        return None
    if len(corners) > 2:
        return corners
    (left, low), (right, high) = corners
    return np.array([[left, low], [right, low], [right, high], [left, high]])


def images_inside(feature_map: maps.FeatureMap, corners: np.ndarray) -> np.ndarray:
    """image_ids inside an outline: a ray to the right crosses its edges an odd number of times."""
    x, y = feature_map.xy[:, 0], feature_map.xy[:, 1]
    inside = np.zeros(len(x), dtype=bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            inside ^= crosses & (x < x0 + (y - y0) / (y1 - y0) * (x1 - x0))
    return feature_map.image_ids[inside]
