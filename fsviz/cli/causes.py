"""causes: measure how much each cause explains accuracy."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

from fsviz import text
from fsviz.cli import add_command, engine, report_progress, sampler_flags
from fsviz.studies import causes as study
from fsviz.tables import to_text
from fsviz.tasks import draw


def register(commands: argparse._SubParsersAction) -> None:
    help_line = "Measure how much each cause explains accuracy."
    parser = add_command(commands, "causes", run_causes, show_causes, help_line, study="causes")
    sampler_flags.add_dataset(parser)
    sampler_flags.add_backbone(parser)
    sampler_flags.add_flags(parser, study.TASK_SETTINGS, **study.TASK_DEFAULTS)
    study.TESTBED.add_flag(parser)
    parser.add_argument("--run", dest="run_id", metavar="ID", help=study.RUN.help)
    study.METHODS_EXPLAINED.add_flag(parser)
    parser.add_argument("--out", metavar="FILE.csv", help="Also write every measure and accuracy, one row per task.")
    engine.add_engine(parser)


def run_causes(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz import datasets, jobs
    from fsviz.analyses import run_comparison

    settings = sampler_flags.requested(args, study.TASK_SETTINGS)
    spec: dict[str, Any] = {"study": "causes", "dataset": args.dataset, **settings}
    if args.testbed or args.run_id:
        spec |= {"testbed": args.testbed or "", "run": args.run_id or ""}
    else:
        dataset, backbone = datasets.load(args.dataset), sampler_flags.backbone(args)
        fits = sampler_flags.say_fit(study.fit(dataset, backbone, settings))
        sampler_flags.name_unused(settings, draw.recipe_for(dataset, **{**study.TASK_DEFAULTS, **fits, **settings}))
    spec["methods"] = args.methods or ([] if args.run_id else study.METHODS_EXPLAINED.default)
    spec["backbone"] = args.backbone or sampler_flags.backbone(args)
    lines = []
    if args.run_id:
        evaluated = jobs.spec(args.run_id)
        lines = run_comparison.method_runs(
            args.run_id, evaluated, jobs.chunks(args.run_id), jobs.status(args.run_id).summary
        )
        spec["backbone"] = args.backbone or lines[0].backbone
    run = jobs.run_in_foreground(spec, report_progress, engine=engine.from_flags(args))
    tasks = jobs.result(run.id)
    own = [line for line in lines if line.backbone == spec["backbone"]]
    tasks = study.with_predictions(tasks, {name: line.accuracy for name, line in run_comparison.by_name(own).items()})
    if args.out:
        Path(args.out).write_text(text.csv(study.as_table(tasks), "task"), encoding="utf-8")
    summary: study.CausesSummary = study.summary(tasks) if own else jobs.results(run.id)
    return dict(summary) | {"run": run.id} | ({"written": args.out} if args.out else {})


def show_causes(result: dict[str, Any]) -> str:
    """Print correlations, shares and the answer of every method."""
    from fsviz.difficulty.measures import CAUSE_TITLES, title

    summary = cast(study.CausesSummary, result)
    methods = summary["methods"]
    measures = list(dict.fromkeys(name for of_method in methods.values() for name in of_method["correlations"]))
    rows = [
        {
            "title": title(name),
            **{method: of_method["correlations"][name]["value"] for method, of_method in methods.items()},
        }
        for name in measures
    ]
    lines = [
        f"Correlation with accuracy ({summary['n_tasks']:,} tasks)",
        to_text(study.correlation_table(methods), rows),
    ]
    for method, of_method in methods.items():
        lines += [
            "",
            f"{method}: {100 * of_method['accuracy']:.1f} ± {100 * of_method['ci95']:.1f}%",
            of_method["sentence"],
        ]
        if "explained" in of_method:
            shares = [
                {"title": CAUSE_TITLES[cause], **row, "alone": of_method["alone"][cause]["share"]}
                for cause, row in of_method["shares"].items()
            ]
            lines += [to_text(study.EXPLAINED, shares)]
            by_stage = ", ".join(
                f"{study.STAGE_TITLES[stage]} {100 * row['share']:.0f}% "
                f"({100 * row['low']:.0f} to {100 * row['high']:.0f})"
                for stage, row in of_method["explained"].items()
            )
            lines += [f"Variation explained {by_stage}."]
            if of_method["sampling_noise"] is not None:
                lines += [f"Query sampling noise: at most {100 * of_method['sampling_noise']:.0f}% of the variation."]
    for name, reason in summary["unknown"].items():
        lines += ["", f"{title(name)}: not available. {reason}"]
    return "\n".join(lines)
