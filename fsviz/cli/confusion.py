"""confusion: which classes a backbone mixes up, pair by pair; or how alike classes are by another likeness."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, engine, progress, report_progress, sampler_flags
from fsviz.settings import add_flags, from_args
from fsviz.tables import to_text


def register(commands: argparse._SubParsersAction) -> None:
    from fsviz.studies import confusion as study

    help_line = "Measure the overlap of every pair of classes."
    parser = add_command(commands, "confusion", measure, show, help_line, study="confusion", result_of=result_of)
    sampler_flags.add_dataset(parser)
    add_flags(parser, [*study.SETTINGS.values(), study.SIMILARITY])
    parser.add_argument("--versus", metavar="LIKENESS", help="Also compare, edge by edge, with this class similarity.")
    parser.add_argument("--versus-backbone", metavar="BACKBONE", help="Also compare with another backbone.")
    parser.add_argument("--out", type=Path, help="Write every pair to this .graphml or .csv file.")
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
    spec = {"dataset": args.dataset, **from_args(args, [*study.SETTINGS.values(), study.SIMILARITY])}
    if "k" not in spec and spec.get("likeness", "confusion") == "confusion":
        spec["k"] = study.fitting_k(spec)
        if spec["k"] < study.SETTINGS["k"].default:
            progress(f"the smallest classes have room for k = {spec['k']} edges per image; the paper takes 20")
    graph = _graph(spec, engine.from_flags(args))
    result = {"dataset": args.dataset, "likeness": graph.kind, "unit": graph.unit, "backbone": graph.source or None}
    result |= study.summary(graph, args.most)
    if args.versus or args.versus_backbone:
        versus_spec = {"likeness": args.versus or graph.kind}
        versus_spec |= {"backbone": args.versus_backbone} if args.versus_backbone else {}
        compared = study.compare(graph, study.class_graph({**spec, **versus_spec}, _report_pairs))
        result["versus"] = {"likeness": compared.second.kind, "backbone": compared.second.source or None}
        for name in ("pearson", "spearman"):
            correlation = getattr(compared, name)
            result["versus"][name] = {"value": correlation.value, "low": correlation.low, "high": correlation.high}
    if args.out:
        communities = None if graph.is_bipartite else study.communities(graph)
        with workspace.atomic_file(args.out) as temporary:
            temporary.write_bytes(graphs.export(graph, kind, communities))
        result["out"] = str(args.out)
    return result


def _graph(spec: dict[str, Any], on: Any) -> Any:
    """Computes here, or as a run on the requested engine."""
    from fsviz import jobs
    from fsviz.errors import BadInput
    from fsviz.studies import confusion as study

    if on is None:
        return study.class_graph(spec, _report_pairs)
    settings = {name: value for name, value in spec.items() if name != "likeness"}
    if spec.get("likeness", "confusion") != "confusion":
        raise BadInput("Only the similarity 'confusion' runs on a cluster. Omit --engine.")
    run = jobs.run_in_foreground({"study": "confusion", **settings}, report_progress, engine=on)
    return study.collect(jobs.spec(run.id), jobs.chunks(run.id))


def result_of(run: Any) -> dict[str, Any]:
    """The result of the command for a finished run of the page, which measures confusion in bits."""
    from fsviz import jobs

    return {"likeness": "confusion", "unit": "bits", **jobs.results(run.id), "run": run.id}


def _report_pairs(done: int, total: int, message: str) -> None:
    if done % 1024 == 0:
        progress(f"{message}: {done:,} of {total:,}")


def show(result: dict[str, Any]) -> str:
    from fsviz.studies import confusion as study

    unit = result["unit"] or result["likeness"]
    rows = [{"a": a, "b": b, "value": value} for a, b, value in result["most_confused"]]
    half = f" ± {result['ci95']:.3f} over classes" if result["ci95"] is not None else ""
    lines = [
        f"{result['pairs']:,} pairs, mean {result['mean']:.3f}{half}",
        "",
        to_text(study.pair_table(unit), rows),
    ]
    if "versus" in result:
        versus = result["versus"]
        correlations = [
            f"{name} {correlation['value']:.2f} ({correlation['low']:.2f} to {correlation['high']:.2f})"
            for name, correlation in ((n, versus[n]) for n in ("pearson", "spearman"))
            if correlation["low"] is not None and correlation["low"] == correlation["low"]
        ]
        lines.append(f"\nagainst {versus['likeness']}: {', '.join(correlations) or 'too few pairs for a correlation'}")
    return "\n".join([*lines, *([f"\nwritten to {result['out']}"] if "out" in result else [])])
