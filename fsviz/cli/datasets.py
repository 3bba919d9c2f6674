"""Commands about datasets: datasets, show, look, senses."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import add_command, sampler_flags
from fsviz.records import Dataset
from fsviz.tables import Column, Table, to_text

DATASETS = Table(
    "Datasets",
    Column("name", "Name"),
    Column("title", "Title"),
    Column("n_classes", "Classes", kind="count"),
    Column("n_images", "Images", kind="count"),
    Column("splits", "Splits (classes)"),
    Column("offers", "Offers"),
)
SENSES = Table(
    "WordNet senses of the classes",
    Column("class", "Class", kind="class"),
    Column("synset", "Synset"),
    Column("path", "Path"),
    Column("by", "Chosen by"),
    Column("doubt", "Check"),
)


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "datasets", list_datasets, show_list, "List datasets and what each offers; remove or rename yours."
    )
    parser.add_argument(
        "action", nargs="?", choices=("list", "remove", "rename"), default="list", help="Action (default: list)."
    )
    parser.add_argument("name", nargs="?", help="Dataset to remove or rename; one that you added.")
    parser.add_argument("title", nargs="?", help="New title; the name in commands stays.")
    parser = add_command(commands, "show", show_dataset, show_one, "Show splits, contexts and attributes of a dataset.")
    sampler_flags.add_dataset(parser)
    parser = add_command(commands, "look", look, show_look, "Compare a hard and an easy task of a dataset.")
    sampler_flags.add_dataset(parser)
    parser = add_command(
        commands, "senses", find_senses, show_senses, "Look up or correct the WordNet senses of classes."
    )
    parser.add_argument("name", nargs="?", help="Name such as 'dog' or 'canna lily', or an id such as n04530566.")
    parser.add_argument("--dataset", metavar="DATASET", help="Dataset whose class senses to list.")
    parser.add_argument(
        "--out", metavar="FILE", help="With --dataset: write the senses to a CSV class,synset for editing."
    )
    parser.add_argument("--correct", metavar="FILE", help="With --dataset: read corrected senses from such a CSV.")


def describe(dataset: Dataset) -> dict[str, Any]:
    """The one-line description that `datasets` prints of each."""
    return {
        "name": dataset.name,
        "title": dataset.title,
        "n_classes": dataset.n_classes,
        "splits": {name: len(ids) for name, ids in dataset.splits.items()},
        "n_images": dataset.n_images,
        "offers": list(dataset.capabilities),
    }


def list_datasets(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.cli import progress
    from fsviz.datasets import saved
    from fsviz.errors import BadInput, FsvizError

    if args.action == "rename":
        if not args.name or not args.title:
            raise BadInput("Renaming needs a dataset and its new title: 'fsviz datasets rename NAME TITLE'.")
        saved.rename_dataset(args.name, args.title)
        return {"renamed": args.name, "title": datasets.title(args.name)}
    if args.action == "remove":
        if not args.name:
            raise BadInput("Say which dataset to remove: 'fsviz datasets remove NAME'.")
        saved.remove_dataset(args.name)
        return {"removed": args.name}
    listed = []
    for name in datasets.names():
        try:
            listed.append(describe(datasets.load(name)))
        except FsvizError as error:  # one broken dataset in the workspace must not hide the others
            progress(f"fsviz: {name} is left out: {error}")
    return {"datasets": listed}


def show_list(result: dict[str, Any]) -> str:
    if "renamed" in result:
        return f"{result['renamed']} is now called {result['title']}."
    if "removed" in result:
        return f"Removed {result['removed']} and its features and splits; your own images and finished runs stay."
    rows = [{**d, "splits": " / ".join(f"{name} {n:,}" for name, n in d["splits"].items())} for d in result["datasets"]]
    return to_text(DATASETS, rows)


def show_dataset(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets

    dataset = datasets.load(args.dataset)
    counts = dataset.classes["n_images"].dropna()
    contexts = dataset.contexts
    return {
        **describe(dataset),
        "summary": dataset.summary,
        "source": dataset.source,
        "licence": dataset.licence,
        "notes": list(dataset.notes),
        "images_per_class": None if counts.empty else {"min": int(counts.min()), "max": int(counts.max())},
        "contexts": None
        if contexts is None
        else {k: int(v) for k, v in contexts.groupby("context")["n_images"].sum().sort_values(ascending=False).items()},
        "attributes": {name: _values(dataset, name) for name in dataset.attributes},
        "classes": [
            {"class_id": int(i), "class_name": row.class_name, "split": row.split, "node": row.node or None}
            | {"n_images": None if row.n_images is None or row.n_images != row.n_images else int(row.n_images)}
            for i, row in dataset.classes.astype({"n_images": object}).where(dataset.classes.notna(), None).iterrows()
        ],
    }


def _values(dataset: Dataset, attribute: str) -> dict[str, Any]:
    """Range of a numeric attribute, or the counts of a categorical one."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    assert dataset.images is not None
    column = dataset.images[attribute].dropna()
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return {"min": float(column.min()), "mean": float(column.mean()), "max": float(column.max())}
    return {str(k): int(v) for k, v in column.value_counts().head(20).items()}


def show_one(result: dict[str, Any]) -> str:
    n_images = "image counts unknown" if result["n_images"] is None else f"{result['n_images']:,} images"
    lines = [
        f"{result['title']} ({result['name']}): {result['n_classes']:,} classes, {n_images}",
        result["summary"],
        "splits: " + ", ".join(f"{name} {n:,}" for name, n in result["splits"].items()),
        "offers: " + (", ".join(result["offers"]) or "the class table only"),
    ]
    if result["contexts"]:
        lines.append("contexts: " + ", ".join(f"{k} {v:,}" for k, v in list(result["contexts"].items())[:20]))
    for name, values in result["attributes"].items():
        listed = ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k} {v:,}" for k, v in values.items())
        lines.append(f"attribute {name}: {listed}")
    lines += [*result["notes"], *(f"{part}: {result[part]}" for part in ("source", "licence") if result[part])]
    return "\n".join(lines)


def look(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.analyses import headline

    return headline.summary(headline.contrast(datasets.load(args.dataset)))


def show_look(result: dict[str, Any]) -> str:
    lines = [result["answer"], result["setting"], result["rule"]]
    for name in ("hard", "easy"):
        task = result[name]
        number = f"{100 * task['accuracy']:.0f}% correct" if "accuracy" in task else f"coarsity {task['coarsity']:.1f}"
        lines.append(f"{name}: {number}: {', '.join(task['classes'])}")
    if "mean" not in result:
        return "\n".join(lines)
    lines.append(f"mean accuracy: {100 * result['mean']:.1f} ± {100 * result['ci95']:.1f}%")
    gap = 100 * (result["easy"]["accuracy"] - result["hard"]["accuracy"])
    for cause in (cause for cause in result["causes"] if cause["is_main"]):
        lines.append(f"about {cause['points']:.0f} of {gap:.0f} points: {cause['description']}")
    return "\n".join(lines)


def find_senses(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.errors import BadInput
    from fsviz.taxonomy import wordnet

    if args.dataset:
        if args.name:
            raise BadInput(f"Give either a name or --dataset. Got {args.name!r} and {args.dataset!r}.")
        return _senses_of(args)
    if not args.name or args.out or args.correct:
        raise BadInput("Say what to look up: 'fsviz senses NAME', or 'senses --dataset DATASET'.")
    return {
        "name": args.name,
        "senses": [
            {"synset": s.synset_id, "lemmas": list(s.lemmas), "gloss": s.gloss, "path": list(s.path)}
            for s in wordnet.senses(args.name)
        ],
    }


def _senses_of(args: argparse.Namespace) -> dict[str, Any]:
    """WordNet senses of the classes, after the requested corrections; writes them to a file on request."""
    from pathlib import Path

    from fsviz import datasets, text, workspace
    from fsviz.datasets import tables
    from fsviz.taxonomy import wordnet
    from fsviz.user import images as user_images

    changed = None
    if args.correct:
        dataset = datasets.load(args.dataset)
        before = user_images.class_senses(dataset)
        corrected = tables.read_senses(args.correct)
        was = dict(zip(before["class"], before["synset"], strict=True))
        changed = {name: synset for name, synset in corrected.items() if was.get(name) != synset}
        user_images.correct_senses(args.dataset, changed)
    dataset = datasets.load(args.dataset)
    table = user_images.class_senses(dataset)
    senses = {synset: wordnet.sense(synset) for synset in set(table["synset"]) if synset}
    rows = [
        {
            "class": row["class"],
            "synset": row["synset"] or None,
            "by": row["by"],
            "doubt": doubt,
            "path": list(senses[row["synset"]].path) if row["synset"] else [],
            "gloss": senses[row["synset"]].gloss if row["synset"] else "",
        }
        for row, doubt in zip(table.to_dict("records"), user_images.sense_doubts(table), strict=True)
    ]
    if args.out:
        gloss = [row["gloss"] for row in rows]
        with workspace.atomic_file(Path(args.out)) as temporary:
            temporary.write_text(text.csv(table.assign(meaning=gloss)), encoding="utf-8", newline="")
    return {"dataset": dataset.name, "classes": rows, "out": args.out, "changed": changed and len(changed)}


def show_senses(result: dict[str, Any]) -> str:
    if "classes" in result:
        from fsviz.datasets.preview import pluralize

        rows = [{**row, "path": " > ".join(row["path"][-3:])} for row in result["classes"]]
        lines = [to_text(SENSES, rows)]
        lines += [f"{pluralize(result['changed'], 'meaning')} changed."] if result["changed"] is not None else []
        return "\n".join([*lines, *([f"written to {result['out']}"] if result["out"] else [])])
    if not result["senses"]:
        return f"WordNet does not know {result['name']!r}. Try a more general word, or an id such as n02084071 (dog)."
    return "\n".join(
        f"{s['synset']}  {', '.join(s['lemmas'])}: {s['gloss']}\n           {' > '.join(s['path'])}"
        for s in result["senses"]
    )
