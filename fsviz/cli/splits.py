"""split: train, val and test classes a target divergence apart; trees: class trees from features and taxonomy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, names, progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.tables import to_text
from fsviz.text import percent

SWEEPS = ("dims", "divergence")


def register(commands: argparse._SubParsersAction) -> None:
    from fsviz.analyses import class_splits as study

    split = add_command(commands, "split", find, show, "Split classes at a target train-test divergence (ATG).")
    sampler_flags.add_dataset(split)
    add_flags(split, [*study.SETTINGS.values(), study.SEEDS])
    split.add_argument("--compare", action="store_true", help="Compare it with random, superclass-wise and own splits.")
    split.add_argument("--over", choices=SWEEPS, help="Vary the number of dimensions, or the divergence.")
    split.add_argument("--from", dest="file", type=Path, metavar="FILE", help="Read a split from a JSON or CSV file.")
    split.add_argument("--published", type=float, metavar="R", help="Use the split that the paper prints for R.")
    split.add_argument("--save", metavar="NAME", help="Save it as NAME_train, NAME_val and NAME_test of the dataset.")
    split.add_argument("--replace", action="store_true", help="Replace a saved split of this name.")
    split.add_argument("--delete", metavar="NAME", help="Delete a saved split of the dataset, and do nothing else.")
    split.add_argument("--out", type=Path, help="Write the split to this .json or .csv file.")
    trees = add_command(commands, "trees", compare_trees, show_trees, "Compare class trees from features and taxonomy.")
    sampler_flags.add_dataset(trees)
    trees.add_argument("--backbones", metavar="A,B", help="Comma-separated backbones (default: all with features).")


def find(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, workspace
    from fsviz.analyses import class_splits as study
    from fsviz.datasets import saved_splits
    from fsviz.errors import BadInput
    from fsviz.features.backbones import title_of
    from fsviz.records import SIDES

    dataset = datasets.load(args.dataset)
    if args.delete:
        saved_splits.remove_split(dataset.name, args.delete)
        return {"dataset": dataset.name, "deleted": args.delete}
    kind = args.out.suffix.lower() if args.out else ".json"
    if kind not in (".json", ".csv"):
        raise BadInput(f"--out must end in .json or .csv. Got {args.out.name!r}.")
    spec = from_args(args, study.SETTINGS.values())
    if args.file is not None or args.published is not None:
        split, recipe = _split_without_search(dataset, args)
        result: dict[str, Any] = {"dataset": dataset.name, **recipe, "asked": split.requested, "reached": None}
        result["agreement"] = None
    else:
        classes = study.class_features(dataset, str(spec.get("backbone", "")))
        spec["backbone"] = classes.backbone
        result_split = study.find_split(dataset, classes, **spec)
        split, recipe = result_split.split, study.recipe(result_split)
        n_seeds = study.SEEDS.default if args.seeds is None else args.seeds
        progress(f"agreement over {n_seeds} seeds")
        alike = study.agreement(dataset, classes, n_seeds, **spec)
        result = {"dataset": dataset.name, "backbone": classes.backbone, "mode": result_split.settings["mode"]}
        result |= {
            "asked": split.requested,
            "reached": split.reached,
            "objective": result_split.objective,
            "floor": result_split.floor,
        }
        result |= {
            "agreement": alike.value,
            "chance": alike.chance,
            "seeds": alike.n_seeds,
            "note": study.describe_split(result_split),
        }
        result |= {"agreement_on_test": alike.on_test, "chance_on_test": alike.chance_on_test}
        result |= {"different_splits": alike.n_splits, "nearest": result_split.nearest}
        result |= {"nearest_at_random": list(study.nearest_at_random(classes, split))}
        result |= {"without_features": list(classes.without)}
        side, side_at_random = (
            measure(dataset, classes, split) for measure in (study.held_out_side, study.held_out_at_random)
        )
        result |= {"test_side": vars(side), "test_side_at_random": vars(side_at_random)}
        result["in_words"] = study.describe_test_side(side, side_at_random, title_of(classes.backbone))
        if args.compare:
            result["compared"] = study.comparison_table(dataset, classes, result_split).to_dict("records")
        if args.over == "dims":
            n_swept = study.SWEEP_SEEDS if args.seeds is None else args.seeds
            swept = study.agreement_over_dims(dataset, classes, n_swept, _report_progress, **spec)
            result["over"] = swept.to_dict("records")
        elif args.over == "divergence":
            swept_splits = study.over_targets(dataset, classes, **spec)
            sides = study.held_out_sides(dataset, classes, [each.split for each in swept_splits])
            result["over"] = study.target_table(swept_splits, sides, side_at_random)
            result["swaps"] = study.swaps(swept_splits)
    result["mix"] = [vars(mix) for mix in study.superclass_shares(dataset, split)]
    name_of = dict(zip(split.class_ids.tolist(), split.names, strict=True))
    result |= {side: [name_of[int(c)] for c in split.on(side)] for side in SIDES}
    if args.save:
        result["saved"] = study.save(dataset, split, args.save, recipe, args.replace)
    if args.out:
        text = study.as_csv(split) if kind == ".csv" else study.as_json(dataset, split, recipe)
        with workspace.atomic_file(args.out) as temporary:
            temporary.write_text(text, encoding="utf-8")
        result["out"] = str(args.out)
    return result


def _split_without_search(dataset: Any, args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """A split that needs no search: from a file, or as the paper prints it."""
    from fsviz.analyses import class_splits as study
    from fsviz.datasets.saved_splits import read_split
    from fsviz.errors import BadInput

    if args.file is not None and args.published is not None:
        raise BadInput("A split comes from a file or from the paper. Give --from FILE or --published R, not both.")
    if args.published is not None:
        return study.published_split(dataset, args.published), {"mode": "published", "divergence": args.published}
    try:
        content = args.file.read_bytes()
    except OSError as error:
        raise BadInput(f"{args.file} cannot be read ({error.strerror or error}). Give the path of a file.") from error
    parts = read_split(dataset, content, str(args.file))
    return study.split_of(dataset, parts), {"mode": "file", "file": args.file.name}


def _report_progress(done: int, total: int, message: str) -> None:
    progress(f"{message} ({done + 1} of {total})")


def show(result: dict[str, Any]) -> str:
    from fsviz.analyses import class_splits as study

    if "deleted" in result:
        return f"deleted the split {result['deleted']} of {result['dataset']}"
    lines = []
    if result["reached"] is not None:
        lines.append(f"divergence {result['reached']:.2f}, target {result['asked']:g}")
        lines += [result["note"]] * bool(result["note"])
    if result["agreement"] is not None:
        lines.append(
            f"{result['seeds']} seeds put {percent(result['agreement'])} of the classes on the same side and share "
            f"{percent(result['agreement_on_test'])} of the test classes (random splits: {percent(result['chance'])} "
            f"and {percent(result['chance_on_test'])})"
        )
        low, high = result["nearest_at_random"]
        lines.append(
            f"a test class is {result['nearest']:.2f} from its nearest training class (95% of random splits: {low:.2f} "
            f"to {high:.2f})"
        )
        lines.append(result["in_words"])
    lines += [
        f"{m['side']}: {m['n']} of {m['of']} classes are {m['concept']} (others: {m['n_rest']} of {m['of_rest']})"
        for m in result["mix"]
    ]
    for side in ("train", "val", "test"):
        lines += ["", f"{side} ({len(result[side])}): {', '.join(result[side])}"]
    if "compared" in result:
        lines += ["", to_text(study.COMPARISONS, result["compared"])]
    if "over" in result:
        table = study.AGREEMENT if "dims" in result["over"][0] else study.BY_TARGET
        lines += ["", to_text(table, result["over"])]
    if result.get("without_features"):
        lines.append(f"\nexcluded, without features: {', '.join(result['without_features'])}")
    if "saved" in result:
        lines.append(f"\nsaved as {', '.join(result['saved'])}")
    return "\n".join([*lines, *([f"\nwritten to {result['out']}"] if "out" in result else [])])


def compare_trees(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.analyses import class_splits as study
    from fsviz.errors import UnknownName

    dataset = datasets.load(args.dataset)
    available = study.known_trees(dataset)
    which = available if args.backbones is None else names(args.backbones)
    for name in which:
        if name not in available:
            raise UnknownName("tree", name, available)
    if args.backbones is not None and study.TAXONOMY in available and study.TAXONOMY not in which:
        which = [*which, study.TAXONOMY]
    class_ids = study.all_with_features(dataset, which)
    table = study.hop_table(dataset, which, class_ids)
    return {"dataset": dataset.name, "classes": len(class_ids), "trees": table.to_dict("records")}


def show_trees(result: dict[str, Any]) -> str:
    from fsviz.analyses.class_splits import HOPS

    return (
        f"{result['classes']:,} classes; hops: mean difference in edges between two classes; normalised: after "
        "dividing by each tree's mean; expected by chance: normalised, classes shuffled\n\n"
        + to_text(HOPS, result["trees"])
    )
