"""Commands about the user's own images: add, check, label."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, progress, sampler_flags
from fsviz.cli.datasets import SENSES
from fsviz.datasets.image_folders import FIRST_LEVELS
from fsviz.datasets.preview import GROUPS
from fsviz.errors import BadInput, UnknownName
from fsviz.features.backbones import DEFAULT
from fsviz.tables import Column, Table, to_text

LABELS = Table(
    "Labels",
    Column("number", "Number", kind="count"),
    Column("column", "Column"),
    Column("value", "Value"),
    Column("n_images", "Images", kind="count"),
)
PARTS = ("path", "class", "split", "context", "group")  # what columns of a CSV may be


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "add", add_images, show_added, "Add images from a folder, table, zip or archive.")
    parser.add_argument("name", help="Name of the new dataset.")
    parser.add_argument(
        "path",
        help="Images: a folder root/class/image, root/split/class/image or root/concept/context/image (MetaCoCo, "
        "NICO); a CSV (path, class, optionally split, context and attributes); an easyfsl JSON spec; a folder with "
        "train.csv/val.csv/test.csv and images/; a Hugging Face image folder with metadata.csv or metadata.jsonl "
        "(file_name, label); the pickles of miniImageNet or tieredImageNet; Meta-Dataset's TFRecords of a source; or "
        "torchvision:NAME (cifar100, omniglot, flowers102, pets, food101, dtd, aircraft, gtsrb).",
    )
    parser.add_argument(
        "--taxonomy",
        metavar="FILE",
        help="Taxonomy: a CSV child,parent, or folders (the folders above the classes), wordnet or none (default: "
        "folders if every class is a folder in a folder, else wordnet).",
    )
    parser.add_argument(
        "--senses",
        metavar="FILE",
        help="CSV class,synset with corrected WordNet senses; corrections stay if the dataset is replaced.",
    )
    parser.add_argument(
        "--class-level",
        type=int,
        default=0,
        metavar="N",
        help="Depth of the class folders below the root or split: 1 reads root/alphabet/character as the class "
        "alphabet (default: the folder of the image).",
    )
    parser.add_argument("--images", metavar="FOLDER", help="Folder where the paths of a CSV or spec start.")
    for part in PARTS:
        parser.add_argument(f"--{part}-column", metavar="NAME", help=f"Column of a CSV that holds the {part}.")
    parser.add_argument(
        "--first-level",
        choices=FIRST_LEVELS,
        default="auto",
        help="Kind of the first folders (default: auto, by their names); folders inside concepts are contexts.",
    )
    parser.add_argument(
        "--groups",
        choices=GROUPS,
        default="auto",
        help="Images to keep on one side of a task: auto (the column group of a CSV, else exact and near "
        "duplicates), folder (also images of one folder: root/class/video/frame) or none (default: auto).",
    )
    parser.add_argument(
        "--splits-by-size",
        action="store_true",
        help="Split as MetaCoCo does: the 64%% of classes with most images are train, the next 20%% test, the rest "
        "val.",
    )
    parser.add_argument(
        "--like",
        metavar="BENCHMARK",
        help="Benchmark without images (see: datasets) that these images belong to; its classes, splits and "
        "taxonomy are kept. 'add tiered_imagenet PATH' does the same and names the dataset "
        "my_tiered_imagenet.",
    )
    parser.add_argument("--title", default="", help="Title shown on pages.")
    parser.add_argument("--no-check", action="store_true", help="Do not check every file for damage.")
    parser.add_argument("--replace", action="store_true", help="Replace a dataset of the same name.")
    _register_check(commands)
    _register_label(commands)


def _register_check(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "check", check_images, show_check, "Check names, copies, class sizes and neighbours of a dataset."
    )
    sampler_flags.add_dataset(parser, "Dataset with images (see: datasets).")
    parser.add_argument("--backbone", help="Backbone whose features are compared (default: the first that is there).")


def _register_label(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "label", label_images, show_labels, "Give images a context or an attribute; list or undo it."
    )
    sampler_flags.add_dataset(parser, "Dataset with images (see: datasets).")
    parser.add_argument("--context", metavar="VALUE", help="Context of the images, such as hand.")
    parser.add_argument("--attribute", metavar="NAME=VALUE", help="Attribute of the images, such as light=dim.")
    parser.add_argument(
        "--images",
        metavar="IDS|FILE",
        help="Images: numbers with commas or dots between, or a file with a number or path per line.",
    )
    parser.add_argument(
        "--propose",
        metavar="FILE",
        help="Write groups of similar images within each class to a CSV, to fill in its column context.",
    )
    parser.add_argument(
        "--groups", type=int, default=3, metavar="N", help="With --propose: 2 or 3 per class (default: 3)."
    )
    parser.add_argument("--backbone", help="With --propose: backbone whose features are grouped.")
    parser.add_argument("--from", dest="source", metavar="FILE", help="Read such a CSV and save its contexts.")
    parser.add_argument(
        "--undo",
        nargs="?",
        type=int,
        const=0,
        metavar="NUMBER",
        help="Remove a label by its number, the last one without a number.",
    )


def add_images(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.datasets.catalog import ENTRIES
    from fsviz.user import images as user_images

    like = args.like or (args.name if args.name in ENTRIES else None)
    if like is not None:
        if like not in ENTRIES:
            raise UnknownName("benchmark", like, ENTRIES)
        return user_images.attach(
            f"my_{like}" if args.name == like else args.name,
            like,
            args.path,
            overwrite=args.replace,
            title=args.title,
            images=args.images,
            first_level=args.first_level,
            check=not args.no_check,
            groups=args.groups,
            class_level=args.class_level,
            progress=_Progress(),
        )
    columns = {part: getattr(args, f"{part}_column") for part in PARTS}
    return user_images.add(
        args.name,
        args.path,
        taxonomy_file=args.taxonomy,
        senses_file=args.senses,
        overwrite=args.replace,
        title=args.title,
        by_size=args.splits_by_size,
        images=args.images,
        columns={part: name for part, name in columns.items() if name},
        first_level=args.first_level,
        check=not args.no_check,
        groups=args.groups,
        class_level=args.class_level,
        progress=_Progress(),
    )


def show_added(result: dict[str, Any]) -> str:
    from fsviz.datasets.preview import pluralize

    splits = ", ".join(
        f"{s} {pluralize(c['n_classes'], 'class', 'classes')} / {pluralize(c['n_images'], 'image')}"
        for s, c in result["splits"].items()
    )
    lines = [
        f"Added {result['name']}: {pluralize(result['n_classes'], 'class', 'classes')}, "
        f"{pluralize(result['n_images'], 'image')} ({splits}).",
        f"Images stay in {result['root']}.",
    ]
    for problem in result["problems"]:
        lines += ["", problem["message"], *(f"  {item}" for item in problem["items"][:5])]
        if len(problem["items"]) > 5:
            lines.append(f"  ... and {len(problem['items']) - 5:,} more (--json lists all)")
    if result["guesses"]:
        rows = [
            {**guess, "class": guess["class_name"], "path": " > ".join(guess["path"][-3:])}
            for guess in sorted(result["guesses"], key=lambda guess: not guess["doubt"])
        ]
        n_kept = result.get("kept")
        note = f" ({n_kept:,} kept from before)" if n_kept else ""
        lines += ["", f"Class senses{note}:"]
        lines += [to_text(SENSES.without("by"), rows[:40])]
        if len(rows) > 40:
            lines.append(f"... and {len(rows) - 40:,} more (--json lists all)")
        lines.append(
            f"To correct them: fsviz senses --dataset {result['name']} --out senses.csv, edit the file, then run "
            f"fsviz senses --dataset {result['name']} --correct senses.csv"
        )
    elif result.get("taxonomy") == "folders":
        lines += ["", "The folders above the classes are the taxonomy (--taxonomy wordnet goes by the names instead)."]
    lines += ["", f"Next: fsviz extract {result['name']} --backbone {DEFAULT}, then fsviz check {result['name']}"]
    return "\n".join(lines)


def check_images(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, features
    from fsviz.analyses import image_check

    dataset = datasets.load(args.dataset)
    backbone = args.backbone or next(iter(features.available(dataset)), "")
    return image_check.summary(dataset, backbone, image_check.check(dataset, backbone))


def show_check(result: dict[str, Any]) -> str:
    lines = [result["headline"]]
    for finding in result["findings"]:
        lines += ["", f"{'!' if finding['n'] else 'ok'}  {finding['sentence']}"]
        lines += [f"    {row['title']}{': ' * bool(row['note'])}{row['note']}" for row in finding["rows"]]
        names, images = finding["classes"], finding["images"]
        lines += [f"    classes: {', '.join(names[:10])}{', ...' * (len(names) > 10)}"] if names else []
        lines += [f"    images: {', '.join(map(str, images[:20]))}{', ...' * (len(images) > 20)}"] if images else []
    if result["backbone"] is None:
        lines += ["", f"Neighbours need features: fsviz extract {result['dataset']} --backbone {DEFAULT}"]
    return "\n".join([*lines, "", "--json lists all classes and images."])


def label_images(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.datasets import labels

    dataset = datasets.load(args.dataset)
    result: dict[str, Any] = {"dataset": dataset.name}
    if args.undo is not None:
        result["removed"] = labels.remove_label(dataset, args.undo or None)
    elif args.propose:
        result |= _propose(dataset, args)
    elif args.source:
        from fsviz.analyses import image_groups

        result["added"] = labels.add_labels(dataset, image_groups.read_groups(Path(args.source)))
    elif args.context or args.attribute or args.images:
        column, value = _column_and_value(args)
        image_ids = labels.read_images(dataset, args.images or "")
        result["added"] = [labels.add_label(dataset, image_ids, value, column)]
    dataset = datasets.load(args.dataset)
    for part in ("added", "removed"):
        if part in result:
            result[part] = [vars(item) for item in (result[part] if part == "added" else [result[part]])]
    contexts = {} if dataset.contexts is None else dataset.contexts.groupby("context")["n_images"].sum()
    result["labels"] = [vars(label) for label in labels.list_labels(dataset)]
    return result | {"contexts": {str(name): int(n) for name, n in contexts.items()}}


def _propose(dataset: Any, args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import features
    from fsviz.analyses import image_groups

    groups = image_groups.propose(dataset, args.backbone or features.required(dataset)[0], args.groups)
    image_groups.write_groups(dataset, groups, Path(args.propose))
    return {"groups": len(groups), "out": args.propose}


def _column_and_value(args: argparse.Namespace) -> tuple[str, str]:
    if bool(args.context) == bool(args.attribute) or not args.images:
        raise BadInput("Give --images and either --context VALUE or --attribute NAME=VALUE.")
    if args.context:
        return "context", args.context
    column, equals, value = args.attribute.partition("=")
    if not equals:
        raise BadInput(f"--attribute is NAME=VALUE, such as light=dim. Got {args.attribute!r}.")
    return column, value


def show_labels(result: dict[str, Any]) -> str:
    from fsviz.datasets.preview import pluralize

    lines = []
    for part, verb in (("added", "have"), ("removed", "lost")):
        for label in result.get(part, ()):
            value = f"{label['column']} {label['value']}"
            lines.append(f"{pluralize(label['n_images'], 'image')} {verb} the {value} (label {label['number']}).")
    if "out" in result:
        lines.append(
            f"{pluralize(result['groups'], 'group')} written to {result['out']}: fill in the column context, then"
        )
        lines.append(f"  fsviz label {result['dataset']} --from {result['out']}")
    if result["labels"]:
        lines += [to_text(LABELS, result["labels"])]
    elif not lines:
        lines.append(f"No labels. Propose contexts: fsviz label {result['dataset']} --propose contexts.csv")
    contexts = ", ".join(f"{name} {n:,}" for name, n in result["contexts"].items())
    return "\n".join([*lines, *([f"contexts: {contexts}"] if contexts else [])])


class _Progress:
    """At most one line of progress a tenth of the way."""

    def __init__(self) -> None:
        self._last_step: tuple[str, int] = ("", -1)

    def __call__(self, done: int, total: int, message: str) -> None:
        step = (message, done * 10 // max(total, 1))
        if step != self._last_step and total > 500:
            self._last_step = step
            progress(f"{message}: {done:,} of {total:,}")
