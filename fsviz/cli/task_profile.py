"""passport: everything that is known of one task."""

from __future__ import annotations

import argparse
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from fsviz.cli import add_command, report_progress, sampler_flags
from fsviz.tables import to_text

if TYPE_CHECKING:
    from fsviz.analyses.task_profile import TaskProfile, ValuesAmongTasks
    from fsviz.studies.support_sets import SupportSets


def register(commands: argparse._SubParsersAction) -> None:
    parser = add_command(commands, "passport", run_passport, show_passport, "everything that is known of one task")
    parser.add_argument(
        "task", metavar="TASK", help="TESTBED:POSITION, as a link to the page One task has it, or NAME:17 of a testbed"
    )
    sampler_flags.add_backbone(parser, "compared")


def run_passport(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.analyses import task_profile as study

    passport, among, sets = opened(args.task, args.backbone or "")
    return study.profile_dict(study.with_values_among_tasks(passport, among), among, sets)


def opened(name: str, backbone: str = "") -> tuple[TaskProfile, ValuesAmongTasks, SupportSets | None]:
    """The passport of a task that is named, its testbed measured, and its hard and easy supports where there are."""
    from fsviz import jobs
    from fsviz.analyses import task_profile as study
    from fsviz.errors import FsvizError
    from fsviz.tasks import task_ids

    task = task_ids.parse_task_id(name)
    testbed = task_ids.find(task.testbed, run_folder=jobs.folder)
    wanted, of_runs = study.digest(testbed), []
    for run in jobs.list_runs("evaluate"):
        if study.is_of_testbed(run.spec, wanted) and run.n_done:
            of_runs += study.results_of_run(
                run.id, jobs.spec(run.id), partial(jobs.chunks, run.id), wanted, task.position
            )
    passport = study.open_task(testbed, task.position, backbone, study.newest_of_each(of_runs))
    here = [answer.method for answer in passport.answers if not answer.source]
    among = study.values_among_tasks(testbed, passport.backbone, methods=here, progress=report_progress)
    sets = None
    with suppress(FsvizError):  # no features, or no image to choose from
        sets = study.support_sets_of(passport)
    return passport, among, sets


def show_passport(result: dict[str, Any]) -> str:
    from fsviz.analyses import task_profile as study

    is_complete = result["n_measured"] == result["n_tasks"]
    of = f"{result['n_tasks']:,} tasks" if is_complete else f"{result['n_measured']:,} of {result['n_tasks']:,} tasks"
    lines = [f"Task {result['position']:,} of {result['testbed']}, dataset {result['dataset']}"]
    lines += [", ".join(result["classes"])]
    measured = [measure for measure in result["measures"] if measure["value"] is not None]
    lines += ["", f"Among {of} of its testbed:", to_text(study.MEASURE_VALUES, measured)]
    lines += ["", to_text(study.ANSWERS, result["methods"])] if result["methods"] else []
    if sets := result["support_sets"]:
        lines += ["", "The same queries with other support images (ProtoNet): "]
        lines[-1] += f"hard {sets['hard']:.0f}%, its own {sets['random']:.0f}%, easy {sets['easy']:.0f}%"
    if result["support"] is None:
        lines += ["", "The dataset has no images here: only its classes are known."]
    return "\n".join(lines)
