"""The task that the image map shows: of a testbed, sampled by settings, or named by the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from fsviz import features
from fsviz.analyses import custom_task
from fsviz.errors import FsvizError
from fsviz.features import maps
from fsviz.records import Dataset, TaskId, Tasks
from fsviz.settings import N_TASKS, SEED, Setting
from fsviz.studies import evaluate
from fsviz.studies import feature_map as study
from fsviz.tasks import draw, fitting, task_ids
from fsviz.ui.parts import caching, controls, links, shell
from fsviz.ui.parts.shell import escape

SAMPLED = "drawn"  # in links
TESTBED = Setting("testbed", "Show a task", "Colours its images by class and crosses out the errors.", "choice", "")
POSITION = Setting("position", "Task number", "Position in the testbed, from 0.", "int", 0)


@dataclass(frozen=True)
class PickedTask:
    """A single task and its id in links, if it has one."""

    tasks: Tasks
    task_id: TaskId | None


def pick(dataset: Dataset, feature_map: maps.FeatureMap) -> PickedTask | None:
    """The task to show, of a testbed or sampled by settings; None for none."""
    task_name = st.query_params.get(task_ids.TASK_NAME.name)
    if task_name:  # TESTBED:POSITION
        del st.query_params[task_ids.TASK_NAME.name]
        testbed, _, number = task_name.rpartition(":")
        st.query_params["testbed"], st.query_params["position"] = testbed or task_name, number or "0"
        st.rerun()
    images = [str(links.value_of(s, s.name, dataset.name)) for s in (custom_task.SUPPORT, custom_task.QUERY)]
    choices = {"": "none", SAMPLED: "sampled here", **{name: name for name in evaluate.testbeds(dataset)}}
    choices |= {custom_task.LINKED: "from the link"} if all(images) else {}
    source = str(controls.pick(TESTBED.with_(choices=choices), about=dataset.name))
    if source != custom_task.LINKED:
        links.drop_from_link(custom_task.SUPPORT.name, custom_task.QUERY.name)
    if not source:
        links.drop_from_link(POSITION.name, *draw.SETTINGS)
        return None
    try:
        if source == custom_task.LINKED:
            links.drop_from_link(POSITION.name, *draw.SETTINGS)
            support, query = map(custom_task.images_in, images)
            table = features.load(dataset, feature_map.backbone)
            return PickedTask(custom_task.of_images(dataset, table, support, query), None)
        if source != SAMPLED:
            links.drop_from_link(*draw.SETTINGS)
            position = int(controls.pick(POSITION, about=source))
            task = study.task_at(dataset, f"{source}:{position}")
            return PickedTask(task, task_ids.parse_task_id(f"{source}:{position}"))
        return _sampled(dataset, feature_map)
    except FsvizError as error:
        st.warning(escape(shell.with_setting_titles(error)), icon="⚠️")
        return None


def _sampled(dataset: Dataset, feature_map: maps.FeatureMap) -> PickedTask:
    split = shell.pick_split(dataset)
    n_classes = len(dataset.split_class_ids(split))
    sampler = controls.pick_sampler(dataset, "uniform")
    requested = {"split": split, "sampler": sampler}
    fits = fitting.fit(dataset, requested, draw.IMAGE_DEFAULTS, [feature_map.backbone], varied=True)
    settings: dict[str, Any] = controls.pick_sampler_settings(sampler, n_classes, of=(dataset, split), **fits.values)
    settings |= controls.pick_images(sampler, controls.pairs(), fits)
    controls.say_fit(fits, settings)
    settings |= controls.pick_groups(dataset)
    settings |= {"n_tasks": controls.pick(N_TASKS.with_(default=100)), "seed": controls.pick(SEED)}
    position = int(controls.pick(POSITION.with_(high=int(settings["n_tasks"]) - 1), about=SAMPLED))
    recipe = draw.recipe_for(dataset, split=split, sampler=sampler, **settings)
    tasks = _sample(dataset, recipe, feature_map.backbone)
    task = study.single_task(tasks, position)
    return PickedTask(task, task_ids.name_task(dataset, tasks, position, recipe.values, (feature_map.backbone,)))


@caching.cache_data("Sampling tasks", 16, hashes={draw.Recipe: repr})
def _sample(dataset: Dataset, recipe: draw.Recipe, backbone: str) -> Tasks:
    return draw.sample_testbed(dataset, recipe, usable=features.load(dataset, backbone).image_ids).tasks
