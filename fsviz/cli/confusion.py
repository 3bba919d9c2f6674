"""Command confusion: the overlap of every pair of classes, or another similarity."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, engine, progress, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.tables import to_text


def register(commands: argparse._SubParsersAction) -> None:
    from fsviz.studies import confusion as study

    help_line = "Measure the overlap and the errors of every pair of classes."
    parser = add_command(commands, "confusion", measure, show, help_line, study="confusion", result_of=result_of)
    sampler_flags.add_dataset(parser)
    add_flags(parser, [*study.SETTINGS.values(), study.SIMILARITY, study.N_SHOT, study.PAIR_ORDER])
    parser.add_argument("--versus", metavar="LIKENESS", help="Similarity to compare with, pair by pair.")
    parser.add_argument("--versus-backbone", metavar="BACKBONE", help="Backbone to compare with.")
    parser.add_argument("--out", type=Path, help="Write all pairs to this .graphml or .csv file.")
    parser.add_argument("--most", type=int, default=10, metavar="N", help="Number of pairs to list (default: 10).")
    engine.add_engine(parser)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import workspace
    from fsviz.errors import BadInput
    from fsviz.reports import graphs
    from fsviz.studies import confusion as study

    kind = args.out.suffix.lower().lstrip(".") if args.out else "csv"
    if kind not in graphs.FORMATS:
        raise BadInput(f"--out must end in .graphml or .csv. Got {args.out.name!r}.")
    if args.most < 1:
        raise BadInput(f"--most must be at least 1. Got {args.most}.")
    spec = {"dataset": args.dataset, **from_args(args, [*study.SETTINGS.values(), study.SIMILARITY, study.N_SHOT])}
    order = str(study.PAIR_ORDER.check(args.pairs_by or study.PAIR_ORDER.default))
    graph = _graph(spec, engine.from_flags(args))
    errors = _errors(spec)
    pairs = study.ranked_pairs(graph, errors, order)
    result = {"dataset": args.dataset, "likeness": graph.kind, "unit": graph.unit, "backbone": graph.source or None}
    result |= study.summary(graph, args.most) | _listed(graph, pairs[: args.most], errors, order)
    if graph.kind == "confusion":
        result["edges_per_image"] = list(study.edges_per_image(spec))
    if args.versus or args.versus_backbone:
        versus_spec = {"likeness": args.versus or graph.kind}
        versus_spec |= {"backbone": args.versus_backbone} if args.versus_backbone else {}
        compared = study.compare(graph, study.class_graph({**spec, **versus_spec}, _report_sometimes))
        result["versus"] = {"likeness": compared.second.kind, "backbone": compared.second.source or None}
        for name in ("pearson", "spearman"):
            correlation = getattr(compared, name)
            result["versus"][name] = {"value": correlation.value, "low": correlation.low, "high": correlation.high}
    if args.out:
        communities = None if graph.is_bipartite else study.communities(graph)
        with workspace.atomic_file(args.out) as temporary:
            temporary.write_bytes(graphs.export(graph, kind, communities, pairs))
        result["out"] = str(args.out)
    return result


def _errors(spec: dict[str, Any]) -> Any:
    """Measured errors on every pair; None, with the reason on the terminal, if the dataset cannot give them."""
    from fsviz.errors import BadInput, Missing
    from fsviz.studies import confusion as study

    try:
        return study.pair_errors(spec)
    except (BadInput, Missing) as error:
        progress(f"No errors on pairs: {error}")
        return None


def _listed(graph: Any, pairs: Any, errors: Any, order: str) -> dict[str, Any]:
    """The first pairs with their numbers, and the tasks that measured the errors."""
    rows = [
        {
            "a": graph.row_names[row["i"]],
            "b": graph.column_names[row["j"]],
            **{name: row[name] if row[name] == row[name] else None for name in ("value", "error", "error_ci95")},
        }
        for row in pairs.to_dict("records")
    ]
    tasks = errors and {"n_shot": errors.n_shot, "n_query": errors.n_query, "n_tasks": errors.n_tasks}
    return {"listed": rows, "pairs_by": order, "error_tasks": tasks, "error_setting": errors and errors.setting}


def _graph(spec: dict[str, Any], requested_engine: Any) -> Any:
    """The graph of a spec, computed in this process or as a run on an engine."""
    from fsviz import jobs
    from fsviz.errors import BadInput
    from fsviz.studies import confusion as study

    if requested_engine is None:
        return study.class_graph(spec, _report_sometimes)
    settings = study.run_spec(spec)
    if spec.get("likeness", "confusion") != "confusion":
        raise BadInput("Only likeness 'confusion' can be a run. Omit --engine.")
    run = jobs.run_in_foreground({"study": "confusion", **settings}, report_progress, engine=requested_engine)
    return study.collect(jobs.spec(run.id), jobs.chunks(run.id))


def result_of(run: Any) -> dict[str, Any]:
    """The result of the command for a finished run of the page."""
    from fsviz import jobs

    return {"likeness": "confusion", "unit": "bits", **jobs.results(run.id), "run": run.id}


def _report_sometimes(done: int, total: int, message: str) -> None:
    if done % 1024 == 0:
        progress(f"{message}: {done:,} of {total:,}")


def show(result: dict[str, Any]) -> str:
    from fsviz.studies import confusion as study

    recorded = [{"a": a, "b": b, "value": value} for a, b, value in result["most_similar"]]
    interval = f" ± {result['ci95']:.3f} (95% CI over classes)" if result["ci95"] is not None else ""
    lines = [
        f"{result['pairs']:,} pairs, mean {result['mean']:.3f}{interval}",
        "",
        to_text(study.pair_table(result["likeness"]), result.get("listed", recorded)),
    ]
    if result.get("error_setting"):
        lines.append(f"\nErrors: {result['error_setting']}.")
    if "edges_per_image" in result:
        low, high = result["edges_per_image"]
        edges = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        lines.append(f"Graphs keep {edges} edges per image: k, at most a fifth of the pair's images.")
    if "versus" in result:
        versus = result["versus"]
        correlations = [
            f"{name} {correlation['value']:.2f} ({correlation['low']:.2f} to {correlation['high']:.2f})"
            for name, correlation in ((n, versus[n]) for n in ("pearson", "spearman"))
            if correlation["low"] is not None and correlation["low"] == correlation["low"]
        ]
        lines.append(f"\nCompared with {versus['likeness']}: {', '.join(correlations) or 'correlation not available'}.")
    return "\n".join([*lines, *([f"\nWritten to {result['out']}."] if "out" in result else [])])
