"""Command sweep: the headline numbers of a study at several values of one of its settings."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import RUN_FORMATTERS, RunFormatter, add_command, engine, report_progress, sampler_flags, summary_of
from fsviz.settings import add_flags, from_args
from fsviz.studies import sweep
from fsviz.tables import Column, Table, to_text


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Vary one setting of a study and list its headline numbers."
    parser = commands.add_parser("sweep", help=help_line, description=help_line)
    swept = parser.add_subparsers(dest="swept", required=True, metavar="STUDY")
    for name, study in sweep.swept_studies().items():
        own = add_command(swept, name, run_sweep, show_sweep, f"Vary a setting of: {study.title}.")
        sampler_flags.add_dataset(own)
        if "backbone" in study.settings.required:
            sampler_flags.add_backbone(own)
        choices = ", ".join(sweep.swept_settings(study))
        own.add_argument(sweep.VARY.flag, required=True, metavar="SETTING", help=f"Setting to vary: {choices}.")
        sweep.VALUES.add_flag(own)
        add_flags(own, study.settings.settings.values())
        engine.add_engine(own)
    RUN_FORMATTERS[sweep.STUDY.name] = RunFormatter(summary_of, show_sweep)


def run_sweep(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs, studies

    study = studies.get(args.swept)
    spec = {"dataset": args.dataset, **from_args(args, study.settings.settings.values())}
    if "backbone" in study.settings.required:
        spec["backbone"] = sampler_flags.backbone(args)
    spec_of_sweep = sweep.sweep(study, spec, args.vary, args.values or ())
    run = jobs.run_in_foreground(
        {"study": sweep.STUDY.name, **spec_of_sweep}, report_progress, engine=engine.from_flags(args)
    )
    return jobs.results(run.id) | {"run": run.id}


def show_sweep(result: dict[str, Any]) -> str:
    rows: dict[Any, dict[str, Any]] = {}
    for point in result["points"]:
        row = rows.setdefault(point["value"], {"value": point["value"]})
        row |= {point["name"]: point["number"], f"{point['name']} low": point["low"]}
        row |= {f"{point['name']} high": point["high"]}
    numbers = {point["name"]: point for point in result["points"]}
    columns = [
        Column(name, point["title"], point["unit"], interval=(f"{name} low", f"{name} high"), kind="number")
        for name, point in numbers.items()
    ]
    units = sorted({point["ci_unit"] for point in result["points"] if point["low"] is not None})
    note = f"\n\n95% CI over {' or '.join(units)}." if units else ""
    table = Table(result["title"], Column("value", result["title"]), *columns)
    return to_text(table, list(rows.values())) + note
