"""Exports of a dataset: a FiftyOne dataset on disk, and a Parquet table for Embedding Atlas.

Both hold one row per image: class, split, context, attributes, position on the feature map and features. For every
requested run they add how often the image was classified correctly as a query, its most frequent wrong prediction,
and the mean measures of its tasks.

FiftyOne  a folder with samples.json, metadata.json and the images, in the JSON form of its samples that needs no
          version of its database: fiftyone.Dataset.from_dir(FOLDER, dataset_type=fiftyone.types.FiftyOneDataset)
Atlas     embedding-atlas FILE --x x --y y --neighbors neighbors (and --image image where pictures are inside)
"""

from __future__ import annotations

import base64
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fsviz import datasets, features, workspace
from fsviz.errors import BadInput
from fsviz.features import maps
from fsviz.features.neighbours import nearest_images
from fsviz.records import PAD, Dataset, Progress
from fsviz.studies import evaluate, feature_map
from fsviz.tasks import draw

THUMBNAIL = 96  # pixels of the longer side of a picture inside a Parquet file
NEIGHBOURS, MAX_COMPARED = 15, 20_000  # nearest images in a Parquet file, and of how many images they are sought
_OWN = (
    "x",
    "y",
    "image",
    "neighbors",
    "features",
    "ground_truth",
    "id",
    "filepath",
    "tags",
    "metadata",
    "media_type",
)  # of both tools
LoadedRun = tuple[str, evaluate.ResolvedSpec, Sequence[Mapping[str, np.ndarray]]]  # a run's id, its spec and its chunks


def images_table(dataset: Dataset, backbone: str = "", runs: Iterable[LoadedRun] = ()) -> pd.DataFrame:
    """One row per image: image_id, class, split, context, attributes, x, y, and what runs say of it.

    Of line n of a run: right_LABEL (share of its queries, 0 to 1), asked_LABEL, taken_for_LABEL, and MEASURE_LABEL.
    """
    if dataset.images is None:
        datasets.open_image(dataset, 0)  # says what is missing
    class_ids = dataset.image_class_ids()
    names = dataset.classes["class_name"].astype(str).to_numpy()
    table = pd.DataFrame({"image_id": np.arange(len(class_ids)), "class": names[class_ids]})
    table["split"] = dataset.classes["split"].astype(str).to_numpy()[class_ids]
    assert dataset.images is not None
    if "context" in dataset.images:
        table["context"] = dataset.image_contexts()
    for name in dataset.attributes:
        is_used = name in table or name in _OWN
        table[f"attribute {name}" if is_used else name] = dataset.images[name].to_numpy()
    if backbone:
        layout = maps.find(dataset, backbone) or feature_map.fast_map({"dataset": dataset.name, "backbone": backbone})
        places = np.full((len(table), 2), np.nan)
        places[layout.image_ids] = layout.xy
        table["x"], table["y"] = places.T
    for run_id, spec, chunks in runs:
        _add_run(table, dataset, run_id, spec, chunks)
    return table


def _add_run(
    table: pd.DataFrame,
    dataset: Dataset,
    run_id: str,
    spec: evaluate.ResolvedSpec,
    chunks: Sequence[Mapping[str, np.ndarray]],
) -> None:
    if spec["dataset"] != dataset.name:
        raise BadInput(f"Run {run_id} is of dataset {spec['dataset']!r}, not of {dataset.name!r}. Leave it out.")
    names, failed = dataset.classes["class_name"].astype(str).to_numpy(), evaluate.failures(spec, chunks)
    for number, entry in enumerate(evaluate.entries(spec)):
        if number in failed:
            continue
        label = f"{entry.label} {run_id[-4:]}" if f"right {entry.label}" in table else entry.label
        right, times = feature_map.accuracy_of_images(spec, chunks, number, len(table))
        answer = evaluate.predictions(spec, chunks, number)
        tasks = evaluate.entry_tasks(spec, entry, stop=len(answer))
        task, way, place = np.nonzero((answer.predicted != PAD) & (tasks.query != PAD))
        image_id = tasks.query[task, way, place]
        predicted = tasks.class_ids[task, answer.predicted[task, way, place]]
        counts = pd.DataFrame({"image_id": image_id, "said": predicted}).value_counts().reset_index()
        counts = counts.sort_values(["count", "said"], ascending=[False, True]).drop_duplicates("image_id")
        predicted_class = np.full(len(table), None, object)
        predicted_class[counts["image_id"]] = names[counts["said"]]
        table[f"right {label}"], table[f"asked {label}"], table[f"taken for {label}"] = right, times, predicted_class
        for name, values in tasks.measures.items():
            total = np.bincount(image_id, weights=np.asarray(values, float)[task], minlength=len(table))
            with np.errstate(invalid="ignore", divide="ignore"):
                table[f"{name} {label}"] = np.where(times > 0, total / times, np.nan)


def write_atlas(
    dataset: Dataset, path: Path, backbone: str = "", runs: Iterable[LoadedRun] = (), pictures: bool = True
) -> dict[str, Any]:
    """A Parquet file that Embedding Atlas opens: 2-D coordinates of the map of features, the nearest images by the
    features themselves (of at most MAX_COMPARED images), and small pictures."""
    backbone = backbone or draw.default_backbone(dataset)
    table = images_table(dataset, backbone, runs)
    left_out = int(table["x"].isna().sum())
    table = table[table["x"].notna()].reset_index(drop=True)
    if 1 < len(table) <= MAX_COMPARED:
        table["neighbors"] = _neighbours(dataset, backbone, table["image_id"].to_numpy())
    if pictures and dataset.has_pixels:
        table["image"] = [{"bytes": _thumbnail(dataset, i), "path": f"{i}.jpg"} for i in table["image_id"]]
    with workspace.atomic_file(path) as temporary:
        table.to_parquet(temporary, index=False)
    return {"rows": len(table), "columns": list(table.columns), "left_out": left_out, "backbone": backbone}


def _neighbours(dataset: Dataset, backbone: str, image_ids: np.ndarray) -> list[dict[str, list[float]]]:
    """The nearest images of every row as the tool reads them: row numbers, nearest first, and cosine distances."""
    stored, rows = features.load(dataset, backbone), []
    for part in np.array_split(image_ids, -(-len(image_ids) // 1024)):
        near, cosines = nearest_images(stored, part, NEIGHBOURS)
        places, is_row = np.searchsorted(image_ids, near), np.isin(near, image_ids)  # a map may leave images out
        rows += [
            {"ids": ids[keep].tolist(), "distances": (1 - cosine[keep]).tolist()}
            for ids, cosine, keep in zip(places, cosines, is_row, strict=True)
        ]
    return rows


def write_fiftyone(
    dataset: Dataset,
    folder: Path,
    backbone: str = "",
    runs: Iterable[LoadedRun] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """A folder that FiftyOne imports. Images that are files stay where they are; others are written next to it."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty, and nothing in it is replaced. Choose another folder.")
    backbone = backbone or next(iter(features.available(dataset)), "")
    table = images_table(dataset, backbone, runs)
    if not dataset.has_pixels:
        datasets.open_image(dataset, 0)  # says what is missing
    vectors: dict[int, np.ndarray] = {}
    if backbone:
        stored = features.load(dataset, backbone)
        vectors = dict(zip(stored.image_ids.tolist(), stored.values, strict=True))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    samples = []
    for done, row in enumerate(table.to_dict("records"), 1):
        samples.append(_sample(dataset, folder, row, vectors.get(int(row["image_id"]))))
        if progress is not None and (done % 500 == 0 or done == len(table)):
            progress(done, len(table), "images for FiftyOne")
    classes = dataset.classes["class_name"].astype(str).tolist()
    info = {"title": dataset.title, "classes": classes, "backbone": backbone, "licence": dataset.licence}
    files = {"metadata.json": {"media_type": "image", "info": info}, "samples.json": {"samples": samples}}
    for name, body in files.items():
        with workspace.atomic_file(folder / name) as temporary:
            temporary.write_text(json.dumps(body, allow_nan=False), encoding="utf-8")
    return {"samples": len(samples), "fields": [name for name in samples[0] if name != "_media_type"]}


def _sample(dataset: Dataset, folder: Path, row: Mapping[str, Any], vector: np.ndarray | None) -> dict[str, Any]:
    """One image as FiftyOne writes a sample: labels are classifications, numbers are numbers, features a vector."""
    image_id = int(row["image_id"])
    sample: dict[str, Any] = {
        "filepath": _file(dataset, folder, image_id),
        "tags": [str(row["split"])] if row["split"] else [],
        "_media_type": "image",
        "image_id": image_id,
        "ground_truth": _classification(row["class"]),
    }
    for name, value in row.items():
        if name in ("image_id", "class", "split"):
            continue
        plain = value.item() if hasattr(value, "item") else value
        if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
            continue
        field = _field(name)
        while field in sample:  # two names that differ in signs only
            field += "_"
        sample[field] = _classification(plain) if name.startswith("taken for ") else plain
    if vector is not None:
        sample["features"] = _vector(vector)
    return sample


def _field(name: str) -> str:
    """A name that FiftyOne takes for a field: letters, digits and underscores, not beginning with one."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_").lower()
    return plain if plain[:1].isalpha() else f"attribute_{plain}"


def _classification(label: Any) -> dict[str, Any]:
    return {"_cls": "Classification", "label": str(label)}


def _vector(values: np.ndarray) -> dict[str, Any]:
    """An array as FiftyOne keeps it: what numpy saves, compressed, in base64."""
    sink = io.BytesIO()
    np.save(sink, np.asarray(values, np.float32), allow_pickle=False)
    packed = base64.b64encode(zlib.compress(sink.getvalue())).decode("ascii")
    return {"$binary": {"base64": packed, "subType": "00"}}


def _file(dataset: Dataset, folder: Path, image_id: int) -> str:
    """The path of an image: that of the user's file, or of a picture that is written into the folder."""
    assert dataset.images is not None
    if dataset.origin == "folder":
        path = Path(str(dataset.images["path"].iloc[image_id]))
        return str(path if path.is_absolute() or dataset.root is None else Path(dataset.root) / path)
    name = f"data/{image_id:06d}.png"
    datasets.open_image(dataset, image_id).save(folder / name)
    return name


def _thumbnail(dataset: Dataset, image_id: int) -> bytes:
    image, sink = datasets.open_image(dataset, image_id), io.BytesIO()
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    image.save(sink, "JPEG", quality=85)
    return sink.getvalue()
