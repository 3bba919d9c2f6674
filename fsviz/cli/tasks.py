"""Commands about tasks: distances between classes, coarsity of tasks, testbeds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, progress, table
from fsviz.taxonomy import DAG_MODES, DISTANCES

SAMPLERS = ("uniform", "semantic")
N_SHOWN = 10


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "distances", measure_distances, show_distances, "distances between the classes of a split"
    )
    _dataset_arguments(parser)
    parser.add_argument("--out", type=Path, help="write the whole matrix to this CSV file")

    parser = add_command(
        commands, "coarsity", measure_coarsity, show_coarsity, "how far apart in meaning the classes of tasks are"
    )
    _dataset_arguments(parser)
    _sampler_arguments(parser, "uniform")
    parser.add_argument("--testbed", help="measure this testbed (a name or a .parquet, .csv or .json file) instead")

    parser = add_command(commands, "sample", sample, show_sample, "draw a testbed and save it")
    _dataset_arguments(parser)
    _sampler_arguments(parser, "semantic")
    parser.add_argument("--n-shot", type=int, default=1, help="support images a class; 0 draws classes only (1)")
    parser.add_argument("--n-query", type=int, default=10, help="query images a class (10)")
    parser.add_argument(
        "--out", type=Path, help="a .parquet, .csv or .json file; without it the testbed goes to the workspace"
    )
    parser.add_argument("--name", help="name of the testbed; made from its settings when left out")
    parser.add_argument(
        "--split-image-ids", action="store_true", help="CSV only: count image_ids through the images of the split"
    )


def _dataset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", help="a name from 'datasets'")
    parser.add_argument("--split", help="test where the dataset has it, else all")
    parser.add_argument(
        "--distance", choices=list(DISTANCES), default="jiang_conrath", help="between classes (jiang_conrath)"
    )
    parser.add_argument(
        "--dag", choices=list(DAG_MODES), default="shortest_path", help="paths of the taxonomy kept (shortest_path)"
    )
    parser.add_argument("--backbone", help="whose features the distance 'features' compares")


def _sampler_arguments(parser: argparse.ArgumentParser, sampler: str) -> None:
    parser.add_argument("--sampler", choices=SAMPLERS, default=sampler, help=f"({sampler})")
    parser.add_argument("--alpha", type=float, default=0.383, help="weight of closeness, semantic only (0.383)")
    parser.add_argument("--beta", type=float, default=100.0, help="strength of class balance, semantic only (100)")
    parser.add_argument("--n-way", type=int, default=5, help="classes a task (5)")
    parser.add_argument("--n-tasks", type=int, default=5000, help="number of tasks (5000)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same tasks (0)")


def _load(args: argparse.Namespace) -> tuple[Any, str]:
    from fsviz import datasets

    dataset = datasets.load(args.dataset)
    split = args.split or ("test" if "test" in dataset.splits else "all")
    dataset.split_class_ids(split)
    return dataset, split


def measure_distances(args: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from fsviz.studies import semantic_sampling as study

    dataset, split = _load(args)
    distances = study.class_distances(dataset, split, args.distance, args.dag, args.backbone)
    names = dataset.classes["class_name"].to_numpy()[dataset.split_class_ids(split)]
    first, second = np.triu_indices(len(names), 1)
    values = distances[first, second]
    order = np.argsort(values, kind="stable")

    def pairs(which: Any) -> list[dict[str, Any]]:
        return [{"a": str(names[first[i]]), "b": str(names[second[i]]), "distance": float(values[i])} for i in which]

    result = {
        "dataset": dataset.name,
        "split": split,
        "distance": args.distance,
        "dag": None if args.distance == "features" else args.dag,
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
    if result["median"] is None:
        return f"{result['dataset']}, split {result['split']}: one class, no distances."
    lines = [
        f"{result['dataset']}, split {result['split']}: {result['distance']} between {result['n_classes']:,} classes, "
        f"{result['min']:.2f} to {result['max']:.2f}, median {result['median']:.2f}",
        "",
        "closest",
        table(result["closest"], ["a", "b", "distance"]),
        "",
        "farthest",
        table(result["farthest"], ["a", "b", "distance"]),
    ]
    return "\n".join([*lines, *([f"\nwritten to {result['out']}"] if "out" in result else [])])


def measure_coarsity(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.studies import semantic_sampling as study

    dataset, split = _load(args)
    if args.testbed:
        testbed = study.load_testbed(args.testbed, dataset, args.split)
        testbed = study.testbed_coarsity(testbed, dataset, args.distance, args.dag, args.backbone)
    else:
        distances = study.class_distances(dataset, split, args.distance, args.dag, args.backbone)
        testbed = study.sample_testbed(
            dataset,
            split,
            args.sampler,
            args.alpha,
            args.beta,
            args.n_way,
            n_tasks=args.n_tasks,
            seed=args.seed,
            distance=args.distance,
            dag=args.dag,
            backbone=args.backbone,
            distances=distances,
        )
    return study.summarise(testbed, dataset)


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
        ]
    )


def sample(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import workspace
    from fsviz.errors import BadInput
    from fsviz.sampling import testbeds
    from fsviz.studies import semantic_sampling as study

    kind = args.out.suffix.lower().lstrip(".") if args.out else "parquet"
    if kind not in testbeds.FORMATS:
        raise BadInput(f"--out must end in .parquet, .csv or .json. Got {args.out.name!r}.")
    if args.split_image_ids and kind != "csv":
        raise BadInput("--split-image-ids is for CSV files. Leave it out, or end --out in .csv.")
    dataset, split = _load(args)
    if args.name:
        workspace.checked_name(args.name, "testbed name")
    progress(f"drawing {args.n_tasks:,} tasks from {dataset.title}, split {split}")
    testbed = study.sample_testbed(
        dataset,
        split,
        args.sampler,
        args.alpha,
        args.beta,
        args.n_way,
        args.n_shot,
        args.n_query,
        args.n_tasks,
        args.seed,
        args.distance,
        args.dag,
        args.backbone,
        args.name,
    )
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
        path = testbeds.save_testbed(testbed)
    result = {"name": testbed.name, "out": str(path), "recipe": dict(testbed.recipe)}
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
    return "\n".join(lines)
