"""runs: recorded runs, listed with methods, sampler and accuracy; shown, named, resumed, cancelled or deleted."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from typing import Any

from fsviz.cli import add_command, engine, evaluation, formatter_for, summary_of
from fsviz.errors import BadInput
from fsviz.settings import RawSettings
from fsviz.tables import to_text

ACTIONS = ("list", "show", "label", "resume", "cancel", "delete")


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands, "runs", run_runs, show_runs, "List, show, label, resume, cancel or delete recorded runs."
    )
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="Action (default: list).")
    parser.add_argument("ids", nargs="*", default=[], metavar="ID", help="Ids of runs, as in the list.")
    parser.add_argument("--name", default=None, help="With label: name of the run.")
    parser.add_argument("--note", default=None, help="With label: note about the run.")
    parser.add_argument("--background", action="store_true", help="With resume: queue the run and return.")
    engine.add_engine(parser)
    parser.add_argument("--workers", type=int, default=None, help="Largest number of runs at the same time.")


def run_runs(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs

    if args.workers is not None:
        jobs.set_workers(args.workers)
    if args.action == "list":
        if args.ids:
            raise BadInput(f"'runs list' takes no id. 'fsviz runs show {args.ids[0]}' shows one run.")
        return {"runs": [listed(run) for run in jobs.list_runs()], "workers": jobs.n_workers()}
    if not args.ids:
        raise BadInput(f"'runs {args.action}' needs the ID of a run. 'fsviz runs' lists them.")
    if (args.action == "label") != (args.name is not None or args.note is not None):
        raise BadInput("'runs label ID' takes --name or --note, or both; other actions take neither.")
    ids = list(dict.fromkeys(args.ids))
    for run_id in ids:
        jobs.status(run_id)  # a wrong id is named before anything is done
    done = [_act(args, run_id) for run_id in ids]
    return done[0] if len(done) == 1 else {"several": done}


def _act(args: argparse.Namespace, run_id: str) -> dict[str, Any]:
    from fsviz import jobs
    from fsviz.user import code as user_code

    if args.action == "delete":
        jobs.delete(run_id)
        return {"run": run_id, "state": "deleted"}
    if args.action == "label":
        return listed(jobs.label(run_id, args.name, args.note)) | {"is_labelled": True}
    if args.action == "cancel":
        run = jobs.cancel(run_id)
    elif args.action == "resume":
        user_code.allow()
        on = engine.from_flags(args)
        run = jobs.resume(run_id, on) if args.background else jobs.resume_here(run_id, evaluation.bar(), on)
    else:
        run = jobs.status(run_id)
    formatter = formatter_for(run.study) if run.study == "evaluate" or run.state == "finished" else None
    result = formatter.result(run) if formatter else summary_of(run)
    spec = {"spec": dict(run.spec), "message": run.message, "error": run.error}
    return {**listed(run), **result, **spec, "seconds": round(run.seconds, 3)}


def listed(run: Any) -> dict[str, Any]:
    """One run as in the list."""
    return {
        "run": run.id,
        "name": run.name,
        "note": run.note,
        "study": run.study,
        "state": run.state,
        "dataset": run.spec.get("dataset"),
        **_headline(run.spec, run.summary or {}),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(run.created)),
        "n_done": run.n_done,
        "n_chunks": run.n_chunks,
        "seconds": round(run.seconds, 3),
        "engine": run.engine.get("name") or "local",
        "error": run.error,
    }


def _headline(spec: RawSettings, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Methods, backbones, sampler and accuracies (name -> percent) of a run, if its study has them."""
    methods = spec.get("methods") or spec.get("adaptations") or [spec.get("method") or spec.get("classifier")]
    methods = [m.get("name") if isinstance(m, Mapping) else m for m in methods]
    recipe, sampler = spec.get("recipe"), spec.get("sampler")
    sampler = recipe.get("sampler") if isinstance(recipe, Mapping) else sampler
    return {
        "methods": _texts(methods),
        "backbones": _texts(spec.get("backbones") or [summary.get("backbone") or spec.get("backbone")]),
        "sampler": sampler if isinstance(sampler, str) else None,
        "accuracy": _accuracies(summary),
    }


def _texts(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))


def _accuracies(summary: Mapping[str, Any]) -> dict[str, float]:
    accuracies = summary.get("accuracy")
    if isinstance(accuracies, Mapping):  # hard, random and easy support sets
        return {name: value for name, value in accuracies.items() if isinstance(value, int | float)}
    rows = summary.get("results") or []
    labelled = [(str(row.get("label") or row.get("method")), row.get("accuracy")) for row in rows]
    cells = [
        (f"{row['adaptation']} {kind}", row[kind]) for row in summary.get("matrix") or [] for kind in ("random", "hard")
    ]
    return {name: value for name, value in (*labelled, *cells) if isinstance(value, int | float)}


def _in_short(accuracies: Mapping[str, float]) -> str:
    """One accuracy, a few with their names, or the range of many."""
    if len(accuracies) > 3:
        return f"{min(accuracies.values()):.1f} to {max(accuracies.values()):.1f}"
    if len(accuracies) == 1:
        return f"{next(iter(accuracies.values())):.1f}"
    return ", ".join(f"{name} {value:.1f}" for name, value in accuracies.items()) or "-"


def show_runs(result: dict[str, Any]) -> str:
    if "runs" in result:
        if not result["runs"]:
            return "No runs yet. Start one with 'fsviz evaluate demo'."
        from fsviz.reports.tables import RUNS

        rows = [
            {
                **run,
                "accuracy": _in_short(run["accuracy"]),
                "note": "",
                "chunks": f"{run['n_done']}/{run['n_chunks']}",
                "engine": "",
                "created": "",
            }
            for run in result["runs"]
        ]
        return to_text(RUNS, rows)
    if "several" in result:
        return "\n\n".join(show_runs(run_result) for run_result in result["several"])
    if result.get("is_labelled"):
        return f"Run {result['run']}: {result['name'] or 'no name'}" + (
            f" ({result['note']})" if result["note"] else ""
        )
    if "n_chunks" not in result:
        return f"Run {result['run']}: {result['state']}"
    lines = [f"{result['name']}: {result['note']}".strip(": ")] if result["name"] or result["note"] else []
    lines += [f"{result['study']} on {result.get('dataset')}, {result['n_done']} of {result['n_chunks']} chunks done"]
    if result["error"]:
        lines.append(result["error"])
    if result["study"] != "evaluate":
        lines.append(f"Run {result['run']}: {result['state']}")
    study = formatter_for(result["study"])
    if study and (result["study"] == "evaluate" or result["state"] == "finished"):
        lines.append(study.show(result))
    return "\n".join(lines)
