"""report, worksheet: runs, one task or lessons as one HTML file that opens without a network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fsviz.cli import add_command, evaluation, names, sampler_flags, task_profile
from fsviz.errors import BadInput


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(
        commands,
        "report",
        run_report,
        show_report,
        "Write an HTML report of runs or of one task.",
    )
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument(
        "ids", nargs="*", default=[], metavar="ID", help="Runs of evaluate, or one run of hard (see: runs)."
    )
    either.add_argument("--task", metavar="TASK", help="Task as TESTBED:POSITION (see: passport).")
    parser.add_argument("--out", metavar="FILE", help="File to write (default: fsviz-ID.html or fsviz-task.html).")
    evaluation.add_over(parser)
    sampler_flags.add_backbone(parser, "With --task: backbone to use (default: first available).")
    sheet = add_command(
        commands, "worksheet", run_worksheet, show_report, "Write lessons to print, with answers on the last pages."
    )
    sampler_flags.add_dataset(sheet)
    sheet.add_argument("--lesson", metavar="N", help="Lessons, with commas between (default: all).")
    sheet.add_argument("--out", metavar="FILE", help="File to write (default: fsviz-worksheet-DATASET.html).")


def run_report(args: argparse.Namespace) -> dict[str, Any]:
    out = _html_file(args.out or ("fsviz-task.html" if args.task else f"fsviz-{args.ids[0]}.html"))
    return _write(out, _of_task(args) if args.task else _of_runs(list(dict.fromkeys(args.ids)), args.over))


def run_worksheet(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets
    from fsviz.reports import worksheets

    out = _html_file(args.out or f"fsviz-worksheet-{args.dataset}.html")
    numbers = names(args.lesson)
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise BadInput(f"--lesson is one or more numbers, with commas between. Got {args.lesson!r}.")
    return _write(out, worksheets.worksheet(datasets.load(args.dataset), [int(number) for number in numbers]))


def _html_file(text: str) -> Path:
    out = Path(text)
    if out.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"--out is a file that ends in .html. Got {text}.")
    return out


def _write(out: Path, page: str) -> dict[str, Any]:
    from fsviz.workspace import atomic_file

    with atomic_file(out) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return {"file": str(out), "bytes": len(page.encode())}


def _of_task(args: argparse.Namespace) -> str:
    from fsviz.reports import task_profiles

    if args.over:
        raise BadInput("--over is about runs: the passport of a task has intervals over tasks. Leave it out.")
    return task_profiles.profile_report(*task_profile.open_profile(args.task, args.backbone or ""))


def _of_runs(run_ids: list[str], over: str | None) -> str:
    from fsviz import jobs
    from fsviz.analyses import run_comparison
    from fsviz.reports import html, runs

    run_list = [jobs.status(run_id) for run_id in run_ids]
    studies = {run.study for run in run_list}
    if over and studies != {"evaluate"}:
        raise BadInput("--over is about runs of evaluate: other reports have intervals over tasks. Leave it out.")
    if studies == {"support_sets"} and len(run_list) == 1:
        return runs.of_support_sets(jobs.result(run_ids[0]), run_ids[0])
    if studies != {"evaluate"}:
        raise BadInput(
            f"There are reports of runs of evaluate, or of one run of hard. Got {', '.join(sorted(studies))}."
        )
    lines, recipes = [], []
    for run in run_list:
        summary = run.summary if run.state == "finished" else None
        lines += run_comparison.method_runs(run.id, jobs.spec(run.id), jobs.chunks(run.id), summary)
        words = [*run_comparison.describe(run.spec), ("Took", f"{run.seconds:.0f} s")]
        recipes.append(html.RunRecipe(run.id, words, run_comparison.command(run.spec)))
    if not lines:
        raise BadInput("No task of these runs is finished yet. Wait for the first ones.")
    return runs.of_method_runs(lines, recipes, over)


def show_report(result: dict[str, Any]) -> str:
    return f"Wrote {result['file']} ({result['bytes'] / 1e6:.1f} MB). It opens in any browser, without a network."
