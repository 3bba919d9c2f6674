"""sweep: the headline numbers of a study at several values of one of its settings."""

from __future__ import annotations

import argparse
from typing import Any

from fsviz.cli import TOLD, Told, add_command, engine, report_progress, sampler_flags, summary_of
from fsviz.settings import add_flags, from_args
from fsviz.studies import sweep
from fsviz.tables import Column, Table, to_text


def register(commands: argparse._SubParsersAction) -> None:
    what = "vary one setting of a study and list its headline numbers"
    parser = commands.add_parser("sweep", help=what, description=what)
    swept = parser.add_subparsers(dest="swept", required=True, metavar="STUDY")
    for name, study in sweep.swept_studies().items():
        own = add_command(swept, name, run_sweep, show_sweep, study.question)
        sampler_flags.add_dataset(own)
        if "backbone" in study.settings.required:
            sampler_flags.add_backbone(own, "used")
        choices = ", ".join(sweep.swept_settings(study))
        own.add_argument(sweep.VARY.flag, required=True, metavar="SETTING", help=f"the setting that varies: {choices}")
        sweep.VALUES.add_flag(own)
        add_flags(own, study.settings.settings.values())
        engine.add_engine(own)
    TOLD[sweep.STUDY.name] = Told(summary_of, show_sweep)


def run_sweep(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import jobs, studies

    study = studies.get(args.swept)
    spec = {"dataset": args.dataset, **from_args(args, study.settings.settings.values())}
    if "backbone" in study.settings.required:
        spec["backbone"] = sampler_flags.backbone(args)
    asked = sweep.sweep(study, spec, args.vary, args.values or ())
    run = jobs.run_in_foreground({"study": sweep.STUDY.name, **asked}, report_progress, engine=engine.chosen(args))
    return jobs.results(run.id) | {"run": run.id}


def show_sweep(result: dict[str, Any]) -> str:
    rows: dict[Any, dict[str, Any]] = {}
    columns = {"value": Column("value", result["title"])}
    for point in result["points"]:
        name = point["name"]
        ends = (f"{name}_low", f"{name}_high")
        columns[name] = Column(name, point["title"], point["unit"], interval=ends, kind="number")
        row = rows.setdefault(point["value"], {"value": point["value"]})
        row |= {name: point["number"], ends[0]: point["low"], ends[1]: point["high"]}
    units = sorted({point["ci_unit"] for point in result["points"] if point["low"] is not None})
    note = f"\n\n95% intervals over {' or '.join(units)}." if units else ""
    return to_text(Table("Headline numbers", *columns.values()), list(rows.values())) + note
