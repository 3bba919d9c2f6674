"""The command that brings the user's own images in: add."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, progress
from fsviz.cli.datasets import SENSES
from fsviz.datasets.image_folders import FIRST_LEVELS
from fsviz.datasets.preview import GROUPS
from fsviz.errors import UnknownName
from fsviz.features.backbones import DEFAULT
from fsviz.tables import to_text

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
        "torchvision:NAME (cifar100, omniglot, flowers102, dtd, aircraft, gtsrb).",
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
    lines += ["", f"Next: fsviz extract {result['name']} --backbone {DEFAULT}"]
    return "\n".join(lines)


class _Progress:
    """At most one line of progress a tenth of the way."""

    def __init__(self) -> None:
        self._last_step: tuple[str, int] = ("", -1)

    def __call__(self, done: int, total: int, message: str) -> None:
        step = (message, done * 10 // max(total, 1))
        if step != self._last_step and total > 500:
            self._last_step = step
            progress(f"{message}: {done:,} of {total:,}")
