"""queries, import-predictions, compare, plot, export: to and from the tools and models that people already have."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, evaluation, names, progress, report_progress, sampler_flags
from fsviz.errors import BadInput

FORMATS = ("fiftyone", "atlas")


def register(commands: argparse._SubParsersAction) -> None:
    queries = add_command(
        commands,
        "queries",
        run_queries,
        show_queries,
        "Export the queries of a testbed for another model.",
    )
    sampler_flags.add_dataset(queries)
    queries.add_argument("--testbed", required=True, metavar="FILE", help="Name or file of a saved testbed.")
    queries.add_argument("--out", required=True, metavar="FILE", help="CSV file to write.")

    imported = add_command(
        commands,
        "import-predictions",
        run_import,
        show_import,
        "Import predictions of another model as a run.",
    )
    sampler_flags.add_dataset(imported)
    imported.add_argument(
        "file", metavar="FILE", help="CSV or Parquet file with columns task,image_id,predicted[,confidence]."
    )
    imported.add_argument("--testbed", required=True, metavar="FILE", help="Testbed that was classified.")
    imported.add_argument("--name", metavar="NAME", help="Name of the method (default: the name of the file).")
    imported.add_argument("--backbone", metavar="NAME", help="Name of its backbone (default: elsewhere).")

    compared = add_command(
        commands, "compare", run_compare, show_compare, "Compare methods of runs with the same tasks."
    )
    compared.add_argument("ids", nargs="+", metavar="ID", help="Ids of runs (see: runs).")
    evaluation.add_over(compared)
    compared.add_argument("--reference", metavar="NAME", help="Method to compare with (default: the most accurate).")

    plotted = add_command(commands, "plot", run_plot, show_written, "Save a figure as Plotly JSON or HTML.")
    plotted.add_argument("what", metavar="ID|DATASET", help="Run of evaluate or hard, or a dataset (its feature map).")
    plotted.add_argument("--out", required=True, metavar="FILE", help=".json or .html file to write.")

    exported = add_command(
        commands,
        "export",
        run_export,
        show_export,
        "Export a dataset for FiftyOne or Embedding Atlas.",
    )
    sampler_flags.add_dataset(exported)
    exported.add_argument(
        "--to", choices=FORMATS, required=True, help="Format: fiftyone (a folder) or atlas (a Parquet file)."
    )
    exported.add_argument("--out", required=True, metavar="PATH", help="Folder or file to write.")
    sampler_flags.add_backbone(exported)
    exported.add_argument("--runs", metavar="ID[,ID]", help="Runs whose predictions and accuracies to include.")
    exported.add_argument(
        "--no-pictures", action="store_true", help="Leave thumbnails out of the Parquet file (atlas)."
    )


# --- predictions -------------------------------------------------------------------------------------------------


def run_queries(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, text
    from fsviz.sampling.testbeds import load_testbed
    from fsviz.user import predictions as user_predictions
    from fsviz.workspace import atomic_file

    dataset = datasets.load(args.dataset)
    table = user_predictions.queries(load_testbed(args.testbed, dataset), dataset)
    with atomic_file(Path(args.out)) as temporary:
        temporary.write_text(text.csv(table), encoding="utf-8")
    return {"file": args.out, "queries": len(table), "tasks": int(table["task"].nunique())}


def show_queries(result: dict[str, Any]) -> str:
    return (
        f"{result['queries']:,} queries of {result['tasks']:,} tasks in {result['file']}. Fill the column predicted "
        "with one of the row's classes,\nthen: fsviz import-predictions DATASET FILE --testbed TESTBED"
    )


def run_import(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs

    name = args.name or Path(args.file).stem
    spec: dict[str, Any] = {"study": "evaluate", "dataset": args.dataset, "testbed": args.testbed}
    spec |= {"predictions": args.file, "name": name, "backbones": [args.backbone] if args.backbone else []}
    run = jobs.run_in_foreground(spec)
    digest = run.spec["tasks"]["digest"]
    same_tasks = [
        other_run.id
        for other_run in jobs.list_runs("evaluate")
        if other_run.id != run.id
        and other_run.state == "finished"
        and (other_run.spec.get("tasks") or {}).get("digest") == digest
    ]
    result = {"run": run.id, "results": (run.summary or {}).get("results", []), "compared_with": same_tasks}
    if same_tasks:
        label = result["results"][0]["label"]
        result |= _compared([run.id, *same_tasks], None, None)
        result["name"] = label
    return result


def show_import(result: dict[str, Any]) -> str:
    own = result["results"][0]
    sentence = (
        f"Run {result['run']}: {own['label']} is right on {own['accuracy']:.2f}% of the queries, ± {own['ci95']:.2f} "
        f"over {own['n_tasks']:,} tasks."
    )
    if not result["compared_with"]:
        return f"{sentence}\nNo other run has these tasks yet. 'fsviz evaluate DATASET --testbed FILE' makes one."
    return f"{sentence}\n\n{show_compare(result)}"


def run_compare(args: argparse.Namespace) -> dict[str, Any]:
    return _compared(args.ids, args.over, args.reference)


def _compared(run_ids: Sequence[str], over: str | None, reference: str | None) -> dict[str, Any]:
    from fsviz.analyses import run_comparison

    lines = [line for run_id in dict.fromkeys(run_ids) for line in _lines(run_id)]
    if len(lines) < 2:
        raise BadInput("A comparison needs at least two methods. Name another run of the same tasks.")
    by_name = run_comparison.by_name(lines)
    if reference is not None and reference not in by_name:
        raise BadInput(f"--reference must be one of: {', '.join(by_name)}. Got {reference!r}.")
    return evaluation.differences_of(lines, reference, over)


def _lines(run_id: str) -> list[Any]:
    from fsviz import jobs
    from fsviz.analyses import run_comparison

    run = jobs.status(run_id)
    if run.study != "evaluate":
        raise BadInput(f"Run {run_id} is a {run.study} run, not an evaluation. Choose another.")
    summary = run.summary if run.state == "finished" else None
    return run_comparison.method_runs(run_id, jobs.spec(run_id), jobs.chunks(run_id), summary)


def show_compare(result: dict[str, Any]) -> str:
    return evaluation.show_differences(result)


# --- figures and datasets ----------------------------------------------------------------------------------------


def run_plot(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import api, datasets, jobs
    from fsviz.workspace import atomic_file

    out = Path(args.out)
    if out.suffix not in (".json", ".html"):
        raise BadInput(f"--out ends in .json (Plotly JSON) or .html. Got {args.out}.")
    if args.what in datasets.names():
        figure = api.plot(args.what)
    elif (run := jobs.status(args.what)).study == "evaluate":
        figure = api.plot(api.evaluation(run.id))
    elif run.study == "support_sets":
        figure = api.plot(jobs.result(run.id))
    else:
        raise BadInput(f"There are figures of runs of evaluate and hard, and of datasets. Run {run.id} is {run.study}.")
    with atomic_file(out) as temporary:
        page = figure.to_json() if out.suffix == ".json" else figure.to_html(include_plotlyjs=True)
        temporary.write_text(page, encoding="utf-8")
    return {"file": str(out), "traces": len(figure.data)}


def show_written(result: dict[str, Any]) -> str:
    return f"Wrote {result['file']}."


def run_export(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.exports import dataset_tools

    dataset, out = datasets.load(args.dataset), Path(args.out).expanduser()
    runs = [(run_id, jobs.spec(run_id), jobs.chunks(run_id)) for run_id in names(args.runs)]
    progress(f"Writing {dataset.title} for {'FiftyOne' if args.to == 'fiftyone' else 'Embedding Atlas'}.")
    if args.to == "fiftyone":
        written = dataset_tools.write_fiftyone(dataset, out, args.backbone or "", runs, report_progress)
    else:
        written = dataset_tools.write_atlas(dataset, out, args.backbone or "", runs, not args.no_pictures)
    return {"to": args.to, "path": str(out), **written}


def show_export(result: dict[str, Any]) -> str:
    if result["to"] == "fiftyone":
        return (
            f"{result['samples']:,} samples in {result['path']}. In Python:\n"
            f"fiftyone.Dataset.from_dir({result['path']!r}, dataset_type=fiftyone.types.FiftyOneDataset)"
        )
    inside = "".join(f" --{name} {name}" for name in ("neighbors", "image") if name in result["columns"])
    left_out = f" {result['left_out']:,} images without features are excluded." if result["left_out"] else ""
    return (
        f"{result['rows']:,} images.{left_out} Open them: "
        f"embedding-atlas {shlex.quote(result['path'])} --x x --y y{inside}"
    )
