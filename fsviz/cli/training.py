"""train: a network on the train classes of a split, tested on its test classes; transfer: accuracy vs divergence."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

from fsviz.cli import add_command, engine, progress, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.studies import training as study
from fsviz.tables import to_text


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Train a network on a split and save its backbone."
    parser = add_command(commands, "train", run_train, show_train, help_line, study="training")
    sampler_flags.add_dataset(parser, "Dataset with images (see: datasets).")
    parser.add_argument(
        "--method",
        default=study.METHOD.default,
        metavar="M",
        help=f"Method: {', '.join(study.METHOD.choices)} (default: multiclass).",
    )
    parser.add_argument(
        "--split",
        default=study.OWN,
        metavar="FILE|NAME",
        help="Name of a saved split, a .json or .csv file (see: split), or own: the dataset's split (default: own).",
    )
    add_flags(parser, study.SETTINGS.values())
    parser.add_argument(
        "--name", default="", help="Name of the backbone, trained:NAME (default: made from the settings)."
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto).")
    parser.add_argument("--background", action="store_true", help="Queue the run and return.")
    engine.add_engine(parser)

    parser = add_command(
        commands, "transfer", run_transfer, show_transfer, "Relate test accuracy of trained networks to divergence."
    )
    sampler_flags.add_dataset(parser)
    parser.add_argument(
        "--by", default="reached", choices=("reached", "asked"), help="Divergence: reached or asked (default: reached)."
    )
    parser.add_argument(
        "--recorded", nargs="?", const="", metavar="NAME", help="Use a grid that comes with fsviz instead of your runs."
    )
    parser.add_argument(
        "--tasks-of",
        metavar="RUN",
        help="Also correlate the divergence of single tasks with their accuracy in this run.",
    )
    parser.add_argument("--backbone", default="", help="Backbone of the frozen reference (default: first available).")


def run_train(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs, training

    training.get(args.method)
    dataset = datasets.load(args.dataset)
    split: Any = args.split
    if Path(args.split).suffix.lower() in (".json", ".csv") or Path(args.split).is_file():
        split = study.read_split(dataset, Path(args.split))
    spec = {"study": "training", "dataset": dataset.name, "method": args.method, "split": split}
    spec |= {"name": args.name, "device": args.device, **from_args(args, study.SETTINGS.values())}
    sampler_flags.say_fit(study.fit(dataset, spec))
    if args.background:
        run_id = jobs.submit(spec, engine.from_flags(args))
        progress(f"Run {run_id} queued. Progress: fsviz runs show {run_id}")
        return {"run": run_id, "state": jobs.status(run_id).state}
    run = jobs.run_in_foreground(spec, report_progress, lambda run: progress(f"Run {run.id}"), engine.from_flags(args))
    return {"run": run.id, "seconds": run.seconds, **jobs.results(run.id)}


def show_train(result: dict[str, Any]) -> str:
    if "results" not in result:
        return f"run {result['run']} is {result['state']}"
    summary = cast(study.TrainingSummary, result)
    n = summary["n_classes"]
    lines = [
        f"{summary['n_epochs']} epochs on {n['train']} train classes, best on validation tasks: epoch "
        f"{summary['best_epoch']} ({summary['val_accuracy']:.1f}%); {result['seconds']:.0f} s",
        "",
        to_text(study.ACCURACIES, [dict(row) for row in summary["results"]]),
        "",
        f"{summary['results'][0]['n_tasks']:,} test tasks of {n['test']} classes; chance level "
        f"{summary['chance']:.0f}%.",
        f"The backbone is {summary['backbone']}: fsviz extract {summary['dataset']} --backbone {summary['backbone']}",
    ]
    if summary["skipped"]:
        lines.append(f"{len(summary['skipped'])} images could not be read: {summary['skipped'][0]['reason']}")
    return "\n".join(lines)


def run_transfer(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.analyses import class_splits, frozen_reference, transfer
    from fsviz.errors import Missing, UnknownName

    dataset = datasets.load(args.dataset)
    facts: dict[str, Any] = {}
    if args.recorded is not None:
        grids = {grid.name: grid for grid in transfer.training_grid(dataset.name)}
        if not grids:
            raise Missing(
                f"No grid of training runs comes with fsviz for {dataset.title}. Compute one: "
                f"python scripts/train_grid.py {dataset.name} --home FOLDER"
            )
        name = args.recorded or next(iter(grids))
        if name not in grids:
            raise UnknownName("recorded grid", name, grids)
        rows, facts = grids[name].rows, dict(grids[name].facts)
        frozen = _frozen_of_grid(dataset, args.backbone, grids[name])
    else:
        runs = [run for run in jobs.list_runs("training") if run.state == "finished"]
        runs = [run for run in runs if run.spec["dataset"] == dataset.name]
        rows = transfer.run_table((r.id, r.spec, r.summary) for r in runs)
        frozen = _frozen_of_runs(dataset, args.backbone, rows, {run.id: run.spec for run in runs})
    result = {
        "dataset": dataset.name,
        "by": args.by,
        **facts,
        "accuracy": transfer.by_divergence(rows).to_dict("records"),
        "splits": transfer.by_split(rows).to_dict("records"),
        "slopes": [vars(slope) for slope in transfer.slopes(rows, args.by)],
        "cost": " ".join(frozen_reference.cost_answer(rows, *frozen)),
        "matched": [vars(pair) for pair in transfer.matched_differences(rows)],
    }
    if args.tasks_of:
        classes = class_splits.class_features(dataset, args.backbone)
        correlations = transfer.divergence_correlations(classes, jobs.spec(args.tasks_of), jobs.chunks(args.tasks_of))
        result["correlations"] = correlations.to_dict("records")
    return result


def _frozen_of_grid(dataset: Any, backbone: str, grid: Any) -> tuple[Any, str]:
    """The rows of the frozen backbone for a recorded grid, and its title; its test classes follow from the recipe."""
    from fsviz.analyses import class_splits, frozen_reference
    from fsviz.features.backbones import title_of
    from fsviz.tasks import draw

    name = backbone or draw.default_backbone(dataset)
    classes = class_splits.class_features(dataset, str(grid.facts["recipe"]["backbone"]))
    return frozen_reference.of_grid(dataset, classes, grid, name), title_of(name)


def _frozen_of_runs(dataset: Any, backbone: str, rows: Any, specs: dict[str, Any]) -> tuple[Any, str]:
    """The rows of the frozen backbone for runs, and its title; no rows for a dataset without features."""
    from fsviz.analyses import frozen_reference
    from fsviz.features.backbones import title_of
    from fsviz.tasks import draw

    if not dataset.has_features:
        return rows[:0], ""
    name = backbone or draw.default_backbone(dataset)
    held_out = frozen_reference.held_out_of_runs(dataset, specs)
    return frozen_reference.frozen_rows(dataset, name, rows, held_out), title_of(name)


def show_transfer(result: dict[str, Any]) -> str:
    from fsviz.analyses import transfer

    parts = ["Accuracy by half of the split, and mean of both", to_text(transfer.BY_DIVERGENCE, result["accuracy"])]
    if result["slopes"]:
        parts += [f"Points per unit of divergence {result['by']}", to_text(transfer.SLOPES, result["slopes"])]
        parts.append(result["cost"])
    if result["matched"]:
        title = "Same test classes, near vs far training classes"
        parts += [title, to_text(transfer.MATCHED_PAIRS, result["matched"])]
    compared = [row for row in result["splits"] if row["asked"] is None or row["asked"] != row["asked"]]
    if compared:
        parts += ["Other splits", to_text(transfer.BY_SPLIT, compared)]
    means = transfer.mean_correlations(result.get("correlations") or [])
    if len(means):
        title = "Correlation of a task's divergence with its accuracy, mean over runs"
        parts += [title, to_text(transfer.TASK_CORRELATIONS, means)]
    return "\n\n".join(parts)
