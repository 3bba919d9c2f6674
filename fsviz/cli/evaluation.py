"""evaluate: evaluate few-shot methods on the same tasks, recorded as a run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from fsviz.cli import add_command, engine, names, progress, sampler_flags
from fsviz.errors import BadInput, BrokenCode, FsvizError, UnknownName
from fsviz.studies.evaluate import (
    DEFAULTS,
    TASK_SETTINGS,
    EntryResult,
    EvaluationSpec,
    MethodChoice,
)
from fsviz.tables import to_text
from fsviz.tasks import draw

KINDS = ("pearson", "spearman")
_METHODS = (
    "Comma-separated methods, or all (default: protonet). Add a preset as tim:easyfsl or tim:paper. Your "
    "own: ./mine.py with predict(support, support_mask, query, query_mask, ...), ./mine.py:NAME or "
    "package.module:NAME."
)


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
        "evaluate",
        run_evaluate,
        show_results,
        "Evaluate few-shot methods on the same tasks.",
        study="evaluate",
        result_of=result_of,
    )
    sampler_flags.add_dataset(parser, "Dataset with features.")
    parser.add_argument(
        "--backbone",
        default=None,
        metavar="B[,B]",
        help="Comma-separated backbones (default: all with features).",
    )
    parser.add_argument("--methods", default="protonet", metavar="M[,M]", help=_METHODS)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="METHOD.PARAMETER=VALUE",
        help="Parameter of a method; may be repeated.",
    )
    parser.add_argument(
        "--testbed", default=None, metavar="FILE", help="Name of a saved testbed, or a .parquet, .csv or .json file."
    )
    sampler_flags.add_flags(parser, TASK_SETTINGS, **DEFAULTS)
    parser.add_argument(
        "--side-by-side",
        nargs="?",
        const="",
        default=None,
        metavar="SHOTS",
        help="Evaluate semantic and uniform tasks in one run; SHOTS such as 1,5 repeats both for each number of "
        "support images (tables 1 and 2 of Bennequin et al. 2022).",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:0, ... (default: auto).")
    parser.add_argument("--background", action="store_true", help="Queue the run and return.")
    engine.add_engine(parser)


def run_evaluate(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs
    from fsviz.user import code as user_code

    user_code.allow()
    spec = _spec(args)
    if args.background:
        run_id = jobs.submit(spec, engine.from_flags(args))
        progress(f"Run {run_id} queued. Progress: fsviz runs show {run_id}")
        return result_of(jobs.status(run_id))
    run = jobs.run_in_foreground(
        spec,
        bar(),
        started=lambda run: progress(f"Run {run.id}. If interrupted: fsviz runs resume {run.id}"),
        engine=engine.from_flags(args),
    )
    return result_of(run)


def _spec(args: argparse.Namespace) -> EvaluationSpec:
    from fsviz import datasets, features
    from fsviz.studies import evaluate

    dataset = datasets.load(args.dataset)
    backbones = names(args.backbone) or features.required(dataset)
    spec: EvaluationSpec = {
        "study": "evaluate",
        "dataset": dataset.name,
        "backbones": backbones,
        "methods": _methods(args.methods, args.set),
        "seed": args.seed or 0,
        "device": args.device,
    }
    settings = {name: value for name, value in sampler_flags.requested(args, TASK_SETTINGS).items() if name != "seed"}
    if args.testbed is not None:
        if settings or args.side_by_side is not None:
            first = draw.SETTINGS["sampler" if "sampler" in settings else next(iter(settings))].flag if settings else ""
            flag = first or "--side-by-side"
            raise BadInput(f"--testbed has its own tasks, so {flag} has no effect. Use one of them.")
        return {**spec, "testbed": args.testbed}
    sampler = cast(draw.TaskSpec, {"sampler": draw.default_sampler(dataset), **settings})
    shots = _shots(args.side_by_side) if args.side_by_side is not None else []
    fitted = {**sampler, **({"n_shot": max(shots)} if shots else {})}
    changes = sampler_flags.say_fit(evaluate.fit(dataset, backbones, fitted))
    sampler |= cast(draw.TaskSpec, {name: n for name, n in changes.items() if name not in fitted})
    if args.side_by_side is not None:
        if "sampler" in settings:
            raise BadInput("--side-by-side samples semantic and uniform tasks itself. Omit --sampler.")
        return {**spec, "samplers": evaluate.both_samplers(sampler, shots)}
    sampler_flags.name_unused(settings, draw.recipe_for(dataset, **{**DEFAULTS, **sampler}))
    return {**spec, "sampler": sampler}


def _shots(text: str) -> list[int]:
    if not all(part.isdigit() for part in names(text)):
        raise BadInput(f"--side-by-side takes numbers of support images such as 1,5. Got {text!r}.")
    return [int(part) for part in names(text)]


def _methods(text: str, settings: list[str]) -> list[MethodChoice]:
    """The methods of --methods (NAME or NAME:PRESET), with what --set changes of them."""
    from fsviz.methods import METHODS, Method, get
    from fsviz.user import methods as user_methods

    every = [*METHODS, *user_methods.packaged()]
    requested = [name for item in names(text) for name in (every if item == "all" else [item])]
    choices: list[tuple[Method, str]] = []
    own: dict[str, str] = {}  # by name, how it was given
    broken: list[MethodChoice] = []
    for item in requested:
        if not user_methods.is_user_method(item):
            name, _, preset = item.partition(":")
            choices.append((get(name), preset))
            continue
        try:
            method = user_methods.load_method(user_methods.code_of(item))
            choices.append((method, ""))
            own[method.name] = item
        except BrokenCode:  # the run says so, and goes on with the others
            broken.append({"name": item})
    methods = {method.name: method for method, _ in choices}
    changed: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for setting in settings:
        where, equals, value = setting.partition("=")
        name, dot, parameter = where.rpartition(".")
        if not (equals and dot):
            raise BadInput(f"--set takes METHOD.PARAMETER=VALUE, such as tim.steps=50. Got {setting!r}.")
        if name not in changed:
            raise BadInput(f"--set {setting} names a method that is not evaluated. Add {name} to --methods.")
        parameters = {item.name: item for item in methods[name].settings}
        if parameter not in parameters:
            raise UnknownName(f"parameter of {methods[name].title}", parameter, parameters)
        changed[name][parameter] = parameters[parameter].parse(value, methods[name].title)
    fine: list[MethodChoice] = [
        {"name": own.get(m.name, m.name), "parameters": m.checked(changed[m.name], preset)} for m, preset in choices
    ]
    return [*fine, *broken]


def bar() -> Callable[[int, int, str], None]:
    """Progress on standard error: rewritten in place on a terminal, a line now and then elsewhere."""
    last = [0.0]

    def report(done: int, total: int, message: str) -> None:
        if sys.stderr.isatty():
            progress(f"\r\x1b[K{100 * done / total:3.0f}%  {message}", end="\n" if done == total else "")
        elif time.monotonic() - last[0] > 5 or done == total:
            last[0] = time.monotonic()
            progress(f"{100 * done / total:3.0f}%  {message}")

    return report


def add_over(parser: argparse.ArgumentParser) -> None:
    from fsviz.evaluation.intervals import CI_UNITS

    parser.add_argument(
        "--over",
        choices=list(CI_UNITS),
        default=None,
        help="Unit of intervals and p values (default: the widest available).",
    )


def result_of(run: Any) -> dict[str, Any]:
    from fsviz.analyses import run_comparison
    from fsviz.reports.tables import to_records

    summary: Any = _so_far(run)
    comparison = run_comparison.side_by_side(run_comparison.summary_table(summary))
    return {
        "run": run.id,
        "state": run.state,
        "results": summary.pop("results", []),
        "compared": _compared(run),
        **(
            {"side_by_side": {", ".join(key): to_records(pairs) for key, pairs in comparison.items()}}
            if comparison
            else {}
        ),
        **{k: v for k, v in summary.items() if k not in ("run", "state")},
        "notes": list((run.spec.get("recipe") or {}).get("notes", ())),
        "seconds": round(run.seconds, 3),
    }


def _so_far(run: Any) -> dict[str, Any]:
    """The summary of a run; of a stopped one, of all its chunks, because its last summary may be older."""
    from fsviz import jobs
    from fsviz.studies import evaluate

    if run.state in ("cancelled", "interrupted", "failed") and run.n_done and evaluate.is_complete(run.spec):
        with suppress(FsvizError):
            return dict(evaluate.partial(jobs.spec(run.id), jobs.chunks(run.id)))
    return dict(run.summary or {})


def _compared(run: Any) -> list[dict[str, Any]]:
    """Methods of a run compared with its best, for each of its testbeds; none for one method or damaged files."""
    from fsviz import jobs
    from fsviz.analyses import run_comparison
    from fsviz.studies import evaluate

    if not run.n_done or not evaluate.is_complete(run.spec):
        return []
    try:
        summary = run.summary if run.state == "finished" else None
        lines = run_comparison.method_runs(run.id, jobs.spec(run.id), jobs.chunks(run.id), summary)
        groups = run_comparison.groups(lines)
        over = run_comparison.widest(
            [line for group in run_comparison.group_by_tasks(lines)[0].values() for line in group]
        )
        return [differences_of(group, None, over) for group in groups.values() if len(group) > 1]
    except FsvizError:  # its results can be read, what they were made from cannot
        return []


def differences_of(lines: list[Any], reference: str | None, over: str | None) -> dict[str, Any]:
    """Every method compared with the reference, by default the most accurate one; printed by `show_differences`."""
    from fsviz.analyses import run_comparison
    from fsviz.reports.tables import to_records

    table = run_comparison.differences(lines, reference, over)
    compared = run_comparison.on_common_tasks(lines)
    over = str(table["over"].iloc[0])
    return {
        "tasks_of": run_comparison.testbed_title(compared[0]),
        "differences": to_records(table),
        "accuracy": {
            n: float(100 * line.accuracy[line.done].mean()) for n, line in run_comparison.by_name(compared).items()
        },
        "over": over,
        "words": run_comparison.describe_p(over),
        "notes": run_comparison.group_by_tasks(lines)[1],
    }


def show_differences(result: dict[str, Any], tasks_of: str = "") -> str:
    """The differences as a table; `tasks_of` names the tasks if there are several kinds."""
    from fsviz.reports.tables import DIFFERENCES

    rows = result["differences"]
    reference = rows[0]["reference"]
    table = [{**row, "reference": "", "accuracy": result["accuracy"][row["name"]]} for row in rows]
    first = f"Compared with {reference} ({result['accuracy'][reference]:.2f}%), {rows[0]['n_tasks']:,} tasks"
    first += f", {tasks_of}:" if tasks_of else ":"
    note = f"Differences in points, 95% CI over {result['over']}. {result['words']}"
    return "\n".join([*result["notes"], first, to_text(DIFFERENCES, table), note])


def show_results(result: dict[str, Any]) -> str:
    from fsviz.reports.tables import RESULTS
    from fsviz.studies.evaluate import scale_notes

    lines = [f"Run {result['run']}: {result['state']}"]
    lines += [f"No results of {entry['label']}: {entry['error']}" for entry in result.get("failed", [])]
    if result["results"]:
        rows = _rows(result["results"])
        lines.append(to_text(RESULTS, rows))
        lines.append(
            "Q1 = finest tasks, Q4 = coarsest. ± is a 95% CI over tasks; over images: other images of these classes; "
            "over classes:\nother classes."
        )
        several = len(result["compared"]) > 1
        for entry in result["compared"]:
            lines += ["", show_differences(entry, entry["tasks_of"] if several else "")]
        lines += _correlations(result["results"])
        lines += _side_by_side(result.get("side_by_side", {}))
        lines += scale_notes({"name": r["method"], "parameters": r["parameters"]} for r in result["results"])
        lines += result["notes"]
    return "\n".join(lines)


def _correlations(results: list[EntryResult]) -> list[str]:
    from fsviz.analyses import run_comparison
    from fsviz.reports.tables import CORRELATIONS

    rows = []
    for result, row in zip(results, _rows(results), strict=True):
        for measure, correlation in (result.get("correlations") or {}).items():
            ends = {
                f"{kind}_{end}": correlation[kind]["ci95"][i] for kind in KINDS for i, end in enumerate(("low", "high"))
            }
            values = {kind: correlation[kind]["value"] for kind in KINDS}
            name = {"name": row["method"], "measure": measure.replace("_", " "), "over": correlation["over"]}
            rows.append({**row, **name, **values, **ends})
    if not rows:
        return []
    table = [
        "",
        "Correlation of measures with accuracy, 95% CI:",
        to_text(CORRELATIONS, rows),
    ]
    by_name = {row["label"]: row for row in results if "coarsity" in (row.get("correlations") or {})}
    note = run_comparison.no_coarsity_effect(
        {name: result["correlations"]["coarsity"]["spearman"] for name, result in by_name.items()},
        {name: result.get("quartiles") or [] for name, result in by_name.items()},
    )
    return [*table, *([note] if note else [])]


def _side_by_side(pairs: dict[str, list[dict[str, Any]]]) -> list[str]:
    from fsviz.reports.tables import PAIRS

    lines = []
    for title, rows in pairs.items():
        lines += ["", f"Semantic vs uniform tasks: {title}"]
        lines.append(to_text(PAIRS, rows))
    return lines


def _rows(results: list[EntryResult]) -> list[dict[str, Any]]:
    """Rows of RESULTS; the sampler only if a run has several, top-5 only for more than five ways."""
    from fsviz.reports.tables import QUARTILES, TOP5_FROM

    several = len({(result.get("sampler"), result.get("setting")) for result in results}) > 1
    rows = []
    for result in results:
        row: dict[str, Any] = {**result, "method": result.get("label", result.get("method"))}
        row |= dict(zip(QUARTILES, result.get("quartiles") or [], strict=False))
        row |= {} if several else {"sampler": None, "setting": None}
        row |= {} if result.get("n_way", 0) >= TOP5_FROM else {"top5": None}
        rows.append(row)
    return rows
