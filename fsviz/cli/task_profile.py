"""passport: the profile of a task."""

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
    parser = add_command(
        commands, "passport", run_task_profile, show_task_profile, "Show measures and predictions of one task."
    )
    parser.add_argument(
        "task",
        metavar="TASK",
        help="Task as TESTBED:POSITION, from a link to the page One task, or NAME:17 of a saved testbed.",
    )
    sampler_flags.add_backbone(parser)


def run_task_profile(args: argparse.Namespace) -> dict[str, Any]:
    from fsviz.analyses import task_profile as study

    profile, among, sets = open_profile(args.task, args.backbone or "")
    return study.profile_dict(study.with_values_among_tasks(profile, among), among, sets)


def open_profile(name: str, backbone: str = "") -> tuple[TaskProfile, ValuesAmongTasks, SupportSets | None]:
    """The profile of a task, the values of its testbed, and its hard and easy support sets if available."""
    from fsviz import jobs
    from fsviz.analyses import task_profile as study
    from fsviz.errors import FsvizError
    from fsviz.tasks import task_ids

    task = task_ids.parse_task_id(name)
    testbed = task_ids.find(task.testbed, run_folder=jobs.folder)
    digest, recorded = study.digest(testbed), []
    for run in jobs.list_runs("evaluate"):
        if study.is_of_testbed(run.spec, digest) and run.n_done:
            recorded += study.results_of_run(
                run.id, jobs.spec(run.id), partial(jobs.chunks, run.id), digest, task.position
            )
    profile = study.open_task(testbed, task.position, backbone, study.newest_of_each(recorded))
    computed = [result.method for result in profile.results if not result.source]
    among = study.values_among_tasks(testbed, profile.backbone, methods=computed, progress=report_progress)
    sets = None
    with suppress(FsvizError):  # no features, or no image to choose from
        sets = study.support_sets_of(profile)
    return profile, among, sets


def show_task_profile(result: dict[str, Any]) -> str:
    from fsviz.analyses import task_profile as study

    is_complete = result["n_measured"] == result["n_tasks"]
    tasks = (
        f"{result['n_tasks']:,} tasks" if is_complete else f"{result['n_measured']:,} of {result['n_tasks']:,} tasks"
    )
    lines = [f"Task {result['position']:,} of {result['testbed']}, dataset {result['dataset']}"]
    lines += [", ".join(result["classes"])]
    measured = [measure for measure in result["measures"] if measure["value"] is not None]
    lines += ["", f"Percentiles among {tasks} of the testbed:", to_text(study.MEASURE_VALUES, measured)]
    lines += ["", to_text(study.ANSWERS, result["methods"])] if result["methods"] else []
    if sets := result["support_sets"]:
        lines += ["", "Same queries, other support sets (ProtoNet accuracy): "]
        lines[-1] += f"hard {sets['hard']:.0f}%, this support {sets['random']:.0f}%, easy {sets['easy']:.0f}%"
    if result["support"] is None:
        lines += ["", "The dataset has no images here: only classes are available."]
    return "\n".join(lines)
