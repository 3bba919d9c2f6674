"""Commands about tasks: distances between classes, coarsity of tasks, testbeds, one task made by hand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, progress, sampler_flags
from fsviz.settings import Setting
from fsviz.tables import Column, Table, to_text
from fsviz.tasks import draw, fitting
from fsviz.tasks.repeats import count_repeats

DISTANCE_FLAGS = {name: draw.SETTINGS[name] for name in ("split", "distance", "dag", "backbone")}
CLASS_FLAGS = {name: setting for name, setting in draw.SETTINGS.items() if name not in draw.IMAGE_SETTINGS}
COARSITY: dict[str, Any] = {"sampler": "uniform", "n_tasks": 5000}
SAMPLE: dict[str, Any] = {"sampler": "semantic", **draw.IMAGE_DEFAULTS, "n_tasks": 5000}
N_SHOWN = 10

TESTBEDS = Table(
    "Testbeds",
    Column("name", "Name"),
    Column("dataset", "Dataset"),
    Column("split", "Split"),
    Column("sampler", "Sampler"),
    Column("n_way", "Classes per task"),
    Column("n_shot", "Support images per class"),
    Column("n_query", "Queries per class"),
    Column("n_tasks", "Tasks", kind="count"),
)


def register(commands: argparse._SubParsersAction) -> None:
    testbeds = add_command(
        commands, "testbeds", manage_testbeds, show_testbeds, "List, show, rename or remove testbeds."
    )
    testbeds.add_argument(
        "action",
        nargs="?",
        choices=("list", "show", "rename", "remove"),
        default="list",
        help="Action (default: list).",
    )
    testbeds.add_argument("name", nargs="?", help="Testbed to show, rename or remove.")
    testbeds.add_argument("new", nargs="?", help="New name.")
    parser = add_command(
        commands, "distances", measure_distances, show_distances, "Compute distances between the classes of a split."
    )
    sampler_flags.add_dataset(parser)
    sampler_flags.add_flags(parser, DISTANCE_FLAGS)
    parser.add_argument("--out", type=Path, help="Write the whole matrix to this CSV file.")

    parser = add_command(commands, "coarsity", measure_coarsity, show_coarsity, "Measure the coarsity of tasks.")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_flags(parser, CLASS_FLAGS, **COARSITY)
    parser.add_argument("--testbed", help="Testbed to measure instead: a name or a .parquet, .csv or .json file.")

    add_command(
        commands, "measures", list_measures, show_measures, "List difficulty measures with their labels and paper."
    )

    parser = add_command(commands, "sample", sample, show_sample, "Sample tasks and save them as a testbed.")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_flags(parser, **SAMPLE)
    parser.add_argument("--out", type=Path, help=".parquet, .csv or .json file to write (default: the workspace).")
    parser.add_argument("--name", help="Name of the testbed (default: made from its settings).")
    parser.add_argument("--split-image-ids", action="store_true", help="CSV only: number the images within the split.")

    parser = add_command(commands, "task", build_task, show_task, "Build one task by hand and measure a swap.")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_backbone(parser)
    for setting in _one_task_settings().values():
        setting.add_flag(parser)
    parser.add_argument("--out", type=Path, help="Write it as a testbed of one task to a .parquet, .csv or .json file.")


def measure_distances(args: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from fsviz import datasets

    dataset = datasets.load(args.dataset)
    recipe = draw.recipe_for(dataset, sampler="uniform", n_way=2, **sampler_flags.requested(args, DISTANCE_FLAGS))
    split, by_features = recipe.split, draw.DISTANCES[recipe.distance].needs == "features"
    distances = draw.class_distances(dataset, split, recipe.distance, recipe.dag, recipe.backbone)
    names = dataset.classes["class_name"].to_numpy()[dataset.split_class_ids(split)]
    first, second = np.triu_indices(len(names), 1)
    values = distances[first, second]
    order = np.argsort(values, kind="stable")

    def pairs(which: Any) -> list[dict[str, Any]]:
        return [{"a": str(names[first[i]]), "b": str(names[second[i]]), "distance": float(values[i])} for i in which]

    result = {
        "dataset": dataset.name,
        "split": split,
        "distance": recipe.distance,
        "dag": None if by_features else recipe.dag,
        "n_classes": len(names),
        "min": float(values.min()) if len(values) else None,
        "median": float(np.median(values)) if len(values) else None,
        "max": float(values.max()) if len(values) else None,
        "closest": pairs(order[:N_SHOWN]),
        "farthest": pairs(order[::-1][:N_SHOWN]),
    }
    if args.out:
        import pandas as pd

        from fsviz import text, workspace

        with workspace.atomic_file(args.out) as temporary:
            matrix = pd.DataFrame(distances, index=names, columns=names)
            temporary.write_text(text.csv(matrix, index_label="class_name"), encoding="utf-8", newline="")
        result["out"] = str(args.out)
    return result


def show_distances(result: dict[str, Any]) -> str:
    from fsviz.analyses.semantic_sampling import CLASS_PAIRS

    if result["median"] is None:
        return f"{result['dataset']}, split {result['split']}: one class, no distances."
    lines = [
        f"{result['dataset']}, split {result['split']}: {result['distance']} between {result['n_classes']:,} classes, "
        f"{result['min']:.2f} to {result['max']:.2f}, median {result['median']:.2f}",
        "",
        "closest",
        to_text(CLASS_PAIRS, result["closest"]),
        "",
        "farthest",
        to_text(CLASS_PAIRS, result["farthest"]),
    ]
    return "\n".join([*lines, *([f"\nwritten to {result['out']}"] if "out" in result else [])])


def measure_coarsity(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.analyses import semantic_sampling as study
    from fsviz.sampling import testbeds

    dataset = datasets.load(args.dataset)
    settings = sampler_flags.requested(args, CLASS_FLAGS)
    if args.testbed:
        testbed = testbeds.load_testbed(args.testbed, dataset, args.split)
        for note in testbed.recipe.get("notes", ()):
            progress(note)
        how = {name: settings[name] for name in ("distance", "dag", "backbone") if name in settings}
        return study.summarise(study.testbed_coarsity(testbed, dataset, **how), dataset)
    fits = sampler_flags.say_fit(fitting.fit(dataset, settings, COARSITY, varied=True))
    recipe = draw.recipe_for(dataset, **{**COARSITY, **fits, **settings})
    sampler_flags.name_unused(settings, recipe)
    distances = draw.class_distances(dataset, recipe.split, recipe.distance, recipe.dag, recipe.backbone)
    testbed = draw.sample_testbed(dataset, recipe, distances=distances)
    return study.summarise(testbed, dataset) | _repeats(dataset, testbed, distances)


def _repeats(dataset: Any, testbed: Any, distances: Any = None) -> dict[str, Any]:
    """Effect of dropping repeated class sets, in numbers and words; empty if none were dropped."""
    from dataclasses import asdict

    repeats = count_repeats(dataset, testbed, distances)
    return {} if repeats is None else {"repeats": {**asdict(repeats), "in_words": repeats.describe()}}


def list_measures(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.difficulty.measures import MEASURES, NEEDS

    fields = ("name", "title", "direction", "formula", "symbols", "description", "paper", "paper_name")
    rows = [
        {name: getattr(m, name) for name in fields} | {"needs": list(m.needs), "settings": [s.name for s in m.settings]}
        for m in MEASURES.values()
    ]
    return {"measures": rows, "needs": dict(NEEDS)}


def show_measures(result: dict[str, Any]) -> str:
    blocks = [
        f"{m['name']}: {m['title']} ({m['paper']}). Higher is {m['direction']}.\n"
        f"  {m['description']}\n  {m['formula']}\n  {m['symbols']}\n"
        f"  needs {'; '.join(result['needs'][need] for need in m['needs'])}"
        for m in result["measures"]
    ]
    return "\n\n".join(blocks)


def show_coarsity(result: dict[str, Any]) -> str:
    quantiles = result["quantiles"]
    counts = result["class_counts"]
    return "\n".join(
        [
            f"{result['n_tasks']:,} tasks",
            "coarsity: "
            + ", ".join(
                f"{word} {quantiles[q]:.1f}"
                for word, q in (("min", "0"), ("25%", "25"), ("median", "50"), ("75%", "75"), ("max", "100"))
            ),
            f"a class is in {counts['min']:,} to {counts['max']:,} tasks",
            *([result["repeats"]["in_words"]] if result.get("repeats", {}).get("n_repeated") else []),
        ]
    )


def sample(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, workspace
    from fsviz.analyses import semantic_sampling as study
    from fsviz.errors import BadInput
    from fsviz.sampling import testbeds

    kind = args.out.suffix.lower().lstrip(".") if args.out else "parquet"
    if kind not in testbeds.FORMATS:
        raise BadInput(f"--out must end in .parquet, .csv or .json. Got {args.out.name!r}.")
    if args.split_image_ids and kind != "csv":
        raise BadInput("--split-image-ids is for CSV files. Leave it out, or end --out in .csv.")
    dataset = datasets.load(args.dataset)
    if args.name:
        workspace.check_name(args.name, "testbed name")
    settings = sampler_flags.requested(args)
    fits = sampler_flags.say_fit(fitting.fit(dataset, settings, SAMPLE, varied=True))
    recipe = draw.recipe_for(dataset, **{**SAMPLE, **fits, **settings})
    sampler_flags.name_unused(settings, recipe)
    progress(f"drawing {recipe.n_tasks:,} tasks from {dataset.title}, split {recipe.split}")
    testbed = draw.sample_testbed(dataset, recipe, name=args.name or "")
    if args.out:
        content = (
            testbeds.to_csv(testbed, dataset, split_image_ids=True).encode()
            if args.split_image_ids
            else testbeds.export(testbed, dataset, kind)
        )
        with workspace.atomic_file(args.out) as temporary:
            temporary.write_bytes(content)
        path = args.out
    else:
        path = testbeds.save_testbed(testbed, number=not args.name)
    result = {"name": path.stem, "out": str(path), "recipe": dict(testbed.recipe)}
    result["left_out"] = list(draw.excluded_classes(dataset, recipe).values())
    result |= _repeats(dataset, testbed)
    if "coarsity" in testbed.tasks.measures:
        return result | study.summarise(testbed, dataset)
    counts = study.class_counts(testbed, dataset)
    class_counts = {"min": int(counts.min()), "max": int(counts.max())}
    return result | {"n_tasks": len(testbed.tasks), "quantiles": None, "class_counts": class_counts}


def show_sample(result: dict[str, Any]) -> str:
    lines = [f"testbed {result['name']} written to {result['out']}"]
    if result["quantiles"]:
        lines.append(show_coarsity(result))
    else:
        lines.append(f"{result['n_tasks']:,} tasks (no taxonomy, so no coarsity)")
    distinct = result["recipe"]["n_distinct"]
    if distinct < result["n_tasks"]:
        lines.append(f"only {distinct:,} different sets of classes were found; the others repeat with other images")
    if result["left_out"]:
        more = len(result["left_out"]) - 5
        lines += ["excluded:", *result["left_out"][:5], *([f"and {more:,} more"] if more > 0 else [])]
    return "\n".join(lines)


def manage_testbeds(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.errors import BadInput
    from fsviz.sampling import testbeds

    if args.action == "list":
        return {"testbeds": [{"name": name, **_kept_recipe(name)} for name in testbeds.list_testbeds()]}
    if not args.name:
        raise BadInput(f"Say which testbed: 'fsviz testbeds {args.action} NAME'.")
    if args.action == "remove":
        testbeds.delete_testbed(args.name)
        return {"removed": args.name}
    if args.action == "rename":
        if not args.new:
            raise BadInput("Renaming needs a new name: 'fsviz testbeds rename NAME NEW'.")
        return {"renamed": args.name, "name": testbeds.rename_testbed(args.name, args.new)}
    return {"name": args.name, "recipe": testbeds.read_recipe(args.name)}


def _kept_recipe(name: str) -> dict[str, Any]:
    """The recipe of a testbed; empty where its file is damaged, which must not hide the others."""
    from fsviz.errors import FsvizError
    from fsviz.sampling import testbeds

    try:
        return {k: v for k, v in testbeds.read_recipe(name).items() if k != "name"}
    except FsvizError:
        return {"dataset": "(damaged)"}


def show_testbeds(result: dict[str, Any]) -> str:
    if "removed" in result:
        return f"Removed the testbed {result['removed']}; finished runs on it stay."
    if "renamed" in result:
        return f"The testbed {result['renamed']} is now called {result['name']}."
    if "recipe" in result:
        return "\n".join([result["name"], *(f"  {key}: {value}" for key, value in result["recipe"].items())])
    return to_text(TESTBEDS, result["testbeds"])


def _one_task_settings() -> dict[str, Setting]:
    from fsviz.analyses import custom_task as study

    return study.SETTINGS


def build_task(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, features, workspace
    from fsviz.analyses import custom_task as study
    from fsviz.errors import BadInput
    from fsviz.sampling import testbeds

    kind = args.out.suffix.lower().lstrip(".") if args.out else "parquet"
    if kind not in testbeds.FORMATS:
        raise BadInput(f"--out must end in .parquet, .csv or .json. Got {args.out.name!r}.")
    settings = {name: s.default if (v := getattr(args, name)) is None else v for name, s in study.SETTINGS.items()}
    dataset, backbone = datasets.load(args.dataset), sampler_flags.backbone(args)
    table = features.load(dataset, backbone)
    settings |= sampler_flags.say_fit(study.fit(dataset, backbone, vars(args)))
    class_ids = (
        study.classes_in(dataset, settings["classes"]) if settings["classes"] else study.suggest_classes(dataset)
    )
    images = [study.images_in(settings[name]) for name in ("support", "query")]
    tasks = study.build(dataset, table, class_ids, settings["n_shot"], settings["n_query"], settings["seed"], *images)
    task_result = study.evaluate_task(dataset, backbone, tasks, settings["method"])
    result: dict[str, Any] = {"dataset": dataset.name, "backbone": backbone, "method": settings["method"]}
    if swap := study.swap_in(settings["swap"]):
        before, tasks = task_result, study.swap_image(tasks, *swap)
        study.check(dataset, table, tasks)
        task_result = study.evaluate_task(dataset, backbone, tasks, settings["method"])
        change = study.compare_results(before, task_result)
        result |= {"swap": list(swap), "before": study.result_dict(dataset, before)}
        result |= {
            name: [int(tasks.query[0, w, q]) for w, q in getattr(change, name)] for name in ("gained", "lost", "moved")
        }
    result |= study.result_dict(dataset, task_result)
    if args.out:
        content = testbeds.export(study.testbed(dataset, tasks, args.out.stem), dataset, kind)
        with workspace.atomic_file(args.out) as temporary:
            temporary.write_bytes(content)
        result["out"] = str(args.out)
    return result


def show_task(result: dict[str, Any]) -> str:
    from fsviz.analyses import custom_task as study

    def count(result: dict[str, Any]) -> str:
        return f"{result['correct']} of {result['n_queries']} queries correct ({100 * result['accuracy']:.0f}%)"

    lines = [f"{', '.join(result['classes'])}: {count(result)}"]
    before = result.get("before")
    if before:
        lines += [
            f"before image {result['swap'][1]} replaced image {result['swap'][0]}: {count(before)}",
            f"now correct: {', '.join(map(str, result['gained'])) or 'none'}",
            f"now incorrect: {', '.join(map(str, result['lost'])) or 'none'}",
        ]
    for table, kind, title, value in (
        (study.MEASURE_CHANGES, "measures", "measure", "now"),
        (study.GAPS, "gaps", "attribute", "gap"),
    ):
        rows = [
            {title: name, value: number, "before": before[kind][name] if before else None}
            for name, number in result[kind].items()
        ]
        lines += ["", to_text(table, rows)] if rows else []
    return "\n".join([*lines, *([f"\nwritten to {result['out']}"] if "out" in result else [])])
