"""extract, features, map, attributes."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from fsviz.cli import add_command, engine, progress, report_progress, sampler_flags
from fsviz.errors import BadInput
from fsviz.features import backbones
from fsviz.tables import Column, Table, to_text

FEATURES = Table(
    "Features",
    Column("dataset", "Dataset"),
    Column("backbone", "Backbone"),
    Column("n_images", "Images", kind="count"),
    Column("dims", "Dimensions", kind="count"),
    Column("skipped", "Skipped", kind="count"),
    Column("dtype", "Type"),
    Column("origin", "Origin"),
    Column("note", "Note"),
)
RANGES = Table(
    "Attributes",
    Column("attribute", "Attribute"),
    Column("low", "Lowest", kind="number"),
    Column("high", "Highest", kind="number"),
)


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Extract features with a frozen backbone."
    extract = add_command(
        commands, "extract", run_extract, show_extract, help_line, study="extraction", result_of=extraction_of
    )
    sampler_flags.add_dataset(extract, "Dataset with images (see: datasets).")
    extract.add_argument(
        "--backbone",
        default=backbones.DEFAULT,
        help=f"Backbone: {', '.join(backbones.names())}, timm:NAME, open_clip:ARCH[/WEIGHTS] or your ./net.py:build "
        f"(default: {backbones.DEFAULT}).",
    )
    extract.add_argument("--checkpoint", metavar="FILE", help="Weights from a .safetensors, .pt or .pth file.")
    extract.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto).")
    extract.add_argument("--batch", type=int, metavar="N", help="Batch size (default: 8 on a CPU, 128 on a GPU).")
    extract.add_argument(
        "--workers", type=int, metavar="N", help="Processes that decode images (default: by the number of cores)."
    )
    extract.add_argument("--again", action="store_true", help="Extract again even if the features are stored.")
    engine.add_engine(extract)

    features = add_command(
        commands,
        "features",
        run_features,
        show_features,
        "List extracted and imported features; import, rename or remove.",
    )
    features.add_argument(
        "action",
        nargs="?",
        choices=("list", "import", "rename", "remove"),
        default="list",
        help="Action (default: list).",
    )
    features.add_argument(
        "name",
        nargs="?",
        help="With rename or remove: the dataset. With import: a new dataset, or one with these images. Rows are "
        "matched by a column or array path, paths, image, image_ids or image_id, or else by position.",
    )
    features.add_argument(
        "file", nargs="?", help="With import: an npz, npy, Parquet or HDF5 file. Otherwise: the backbone."
    )
    features.add_argument("new", nargs="?", help="New name of imported features.")
    _import_options(features)

    help_line = "Compute a two-dimensional map of the features."
    laid_out = add_command(commands, "map", run_map, show_map, help_line, study="feature_map", result_of=map_of)
    sampler_flags.add_dataset(laid_out, "Dataset with features (see: features).")
    sampler_flags.add_backbone(laid_out)
    laid_out.add_argument(
        "--better", action="store_true", help="Use all images and more steps: minutes instead of seconds."
    )
    engine.add_engine(laid_out)
    laid_out.add_argument("--out", metavar="FILE", help="Also write image_id, class, x and y to this CSV file.")

    attributes = add_command(
        commands,
        "attributes",
        run_attributes,
        show_attributes,
        "Measure brightness, sharpness and other image attributes.",
    )
    sampler_flags.add_dataset(attributes, "Dataset with images (see: datasets).")


def _import_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="One label per row, if the features file has none; a CSV may also name the images (path,label).",
    )
    parser.add_argument("--like", metavar="DATASET", help="Dataset to take class names, splits and taxonomy from.")
    parser.add_argument("--split", help="With --like: numeric labels index the classes of this split.")
    parser.add_argument("--backbone", default="imported", help="Name of the features (default: imported).")
    parser.add_argument("--replace", action="store_true", help="Replace a dataset of the same name.")


def run_extract(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.studies.extraction import extract_now
    from fsviz.user import code as user_code

    user_code.allow()
    if args.workers is not None and not 0 <= args.workers <= 64:
        raise BadInput(f"workers must be between 0 and 64. Got {args.workers}.")
    dataset = datasets.load(args.dataset)
    how = {name: getattr(args, name) for name in ("checkpoint", "device", "batch", "workers")}
    if on := engine.from_flags(args):
        if args.again:
            raise BadInput("--again and --engine do not go together. Remove the features first: 'features remove'.")
        spec = {"study": "extraction", "dataset": dataset.name, "backbone": args.backbone, **how}
        result = extraction_of(jobs.run_in_foreground(spec, report_progress, engine=on))
    else:
        result = extract_now(dataset, args.backbone, **how, again=args.again, progress=_Told())
    if result["warning"]:
        progress(f"Careful: {args.backbone} has {result['warning']}.")
    return result


def extraction_of(run: Any) -> dict[str, Any]:
    """Output of the command for a finished run of the page."""
    from fsviz import jobs

    unknown: dict[str, Any] = {
        "dims": 0,
        "images_per_second": None,
        "precision": "",
        "path": str(jobs.folder(run.id)),
        "skipped": [],
    }
    return {**unknown, **jobs.results(run.id), "run": run.id}


def map_of(run: Any) -> dict[str, Any]:
    """Output of the command map for a finished run."""
    from fsviz import jobs
    from fsviz.features import maps

    return {**jobs.results(run.id), "neighbours": maps.NEIGHBOURS, "out": None, "run": run.id}


def show_extract(result: dict[str, Any]) -> str:
    from fsviz.studies.extraction import SKIPPED

    rate = result["images_per_second"]
    how = f"{rate:.1f} images/s on {result['device']}" if rate else "stored before"
    lines = [
        f"{result['n_images']:,} images of {result['dataset']} under {result['backbone']}: "
        f"{result['dims']} dimensions, {how}",
        *([f"The features are {result['precision']}."] if result["precision"] else []),
        result["path"],
    ]
    lines += [f"{SKIPPED.title}:", to_text(SKIPPED, result["skipped"][:20])] if result["skipped"] else []
    if len(result["skipped"]) > 20:
        lines.append(f"... and {len(result['skipped']) - 20} more; all are listed in about.json there")
    return "\n".join(lines)


def run_features(args: argparse.Namespace) -> dict[str, Any]:
    if args.action == "import":
        if not args.name or not args.file:
            raise BadInput("An import needs a dataset name and a file: 'fsviz features import NAME FILE'.")
        return run_import(args)
    if args.action == "rename":
        from fsviz.features import store

        if not args.name or not args.file or not args.new:
            raise BadInput("Renaming needs three names: 'fsviz features rename DATASET BACKBONE NEW'.")
        new = store.rename_features(args.name, args.file, args.new)
        return {"renamed": new, "dataset": args.name, "backbone": args.file}
    if args.action == "remove":
        from fsviz.features import store

        if not args.name or not args.file:
            raise BadInput("Removing needs a dataset and a backbone: 'fsviz features remove NAME BACKBONE'.")
        return {"removed": store.remove_features(args.name, args.file), "dataset": args.name, "backbone": args.file}
    if args.name or args.file:
        raise BadInput("'features' lists what there is; to import, write 'fsviz features import NAME FILE'.")
    from fsviz import features

    return {"features": features.list_features()}


def show_features(result: dict[str, Any]) -> str:
    if "renamed" in result:
        return f"The features of {result['dataset']} under {result['backbone']} are called {result['renamed']} now."
    if "removed" in result:
        return f"Removed the features of {result['dataset']} under {result['backbone']}."
    if "features" not in result:
        return show_import(result)
    rows = [
        {**row, "note": "damaged" if row["damaged"] else "random weights" if row["warning"] else row["precision"]}
        for row in result["features"]
    ]
    return to_text(FEATURES, rows)


def run_import(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.user import images as user_images

    like = datasets.load(args.like) if args.like else None
    if args.split and like is None:
        raise BadInput("--split says which classes numeric labels mean, so it needs --like DATASET.")
    return user_images.import_features(
        args.name,
        args.file,
        labels=args.labels,
        like=like,
        split=args.split,
        backbone=args.backbone,
        replace=args.replace,
    )


def show_import(result: dict[str, Any]) -> str:
    change = "joined the dataset" if result["attached"] else f"in {result['n_classes']} classes are the new dataset"
    lines = [
        f"{result['n_images']:,} features of {result['dims']} dimensions {change} {result['dataset']} as "
        f"{result['backbone']!r}.",
        result["joined"],
        *result["notes"],
        result["path"],
    ]
    if result["guesses"]:
        n_known = sum(bool(guess["synset"]) for guess in result["guesses"])
        lines.append(
            f"{n_known:,} of {result['n_classes']:,} class names were found in WordNet: 'fsviz senses "
            f"--dataset {result['dataset']}' lists what they are taken to mean, and --correct FILE changes it."
        )
    return "\n".join(line for line in lines if line)


def run_map(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.features import maps
    from fsviz.studies import feature_map as study

    dataset, backbone = datasets.load(args.dataset), sampler_flags.backbone(args)
    feature_map = maps.find(dataset, backbone, maps.BETTER if args.better else maps.FAST)
    if feature_map is None and args.better:
        spec = {"study": "feature_map", "dataset": dataset.name, "backbone": backbone}
        jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
        feature_map = maps.find(dataset, backbone, maps.BETTER)
    if feature_map is None:
        feature_map = study.fast_map({"dataset": dataset.name, "backbone": backbone}, report_progress)
    if args.out:
        study.write_csv(dataset, feature_map, args.out)
    return {
        **study.facts(feature_map),
        "neighbours": maps.NEIGHBOURS,
        "measured_on": feature_map.measured,
        "out": args.out,
    }


def show_map(result: dict[str, Any]) -> str:
    excluded = f", {result['left_out']:,} excluded (features not finite)" if result["left_out"] else ""
    kind = "Full" if result["kind"] == "better" else "Fast"
    lines = [
        f"{kind} map of {result['dataset']}, {result['backbone']} features: {result['n_images']:,} images{excluded}",
        f"{result['neighbours_kept']:.1%} of each image's {result['neighbours']} nearest neighbours are preserved "
        f"({result['chance']:.1%} expected by chance)",
        *([f"written to {result['out']}"] if result["out"] else []),
    ]
    return "\n".join(lines)


def run_attributes(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.datasets import pixel_attributes

    dataset = datasets.load(args.dataset)
    if dataset.origin in ("demo", "fruit"):
        raise BadInput(f"{dataset.title} comes with its attributes. Choose another dataset.")
    table = pixel_attributes.compute(dataset, _Told())
    pixel_attributes.save(dataset, table)
    there = datasets.load(dataset.name).attributes
    unread = int(table["brightness"].isna().sum())
    computed = {name: [float(table[name].min()), float(table[name].max())] for name in table if name in there}
    return {"dataset": dataset.name, "n_images": len(table) - unread, "unreadable": unread, "attributes": computed}


def show_attributes(result: dict[str, Any]) -> str:
    lost = f", {result['unreadable']:,} could not be read" if result["unreadable"] else ""
    rows = [{"attribute": name, "low": low, "high": high} for name, (low, high) in result["attributes"].items()]
    return f"{result['n_images']:,} images of {result['dataset']}{lost}\n" + to_text(RANGES, rows)


class _Told:
    """Progress on one line that a terminal overwrites every second; elsewhere a line every ten seconds."""

    def __init__(self) -> None:
        self.next = 0.0

    def __call__(self, done: int, total: int, message: str) -> None:
        live = sys.stderr.isatty()
        if time.monotonic() >= self.next or done == total:
            self.next = time.monotonic() + (1 if live else 10)
            text = f"{done:,} of {total:,} images, {message}"
            progress(f"\r{text:<70}" if live else text, end="\n" if done == total or not live else "")
