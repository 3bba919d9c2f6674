"""Hard, random and easy support sets as testbeds, and the command that searches for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fsviz import datasets
from fsviz.difficulty.objectives import OBJECTIVES
from fsviz.records import Testbed
from fsviz.settings import Settings, Value, name_parts, to_args
from fsviz.studies.support_sets.search_settings import OBJECTIVE, SEARCH_SETTINGS, TASK_SETTINGS
from fsviz.tasks import draw

if TYPE_CHECKING:
    from fsviz.studies.support_sets import SupportSets, SupportSpec


def to_testbed(sets: SupportSets, which: str = "hard", name: str | None = None) -> Testbed:
    """One of the sets as a testbed, with its recipe and a name that follows from the recipe."""
    OBJECTIVE.check(which)
    spec = sets.spec
    recipe = recipe_of({**spec, "n_tasks": len(sets)}, which)
    if name is None:
        sampling = _recipe({**spec, "n_tasks": len(sets)})
        searched = {name: value for name, value in recipe.items() if name in SEARCH_SETTINGS}
        classes = [] if spec["sampler"] == "uniform" else [str(spec["sampler"])]
        parts = [spec["dataset"], spec["split"], which, spec["backbone"], *classes, *sampling.parts]
        name = draw.safe_name([*parts, *name_parts(searched, SEARCH_SETTINGS)], recipe, "-")
    return Testbed(name, sets.tasks[which].with_measure("query_loss", sets.loss(which)), recipe)


def recipe_of(spec: SupportSpec, which: str) -> dict[str, Any]:
    """The recipe of one of the sets, as a testbed keeps it; random sets have no settings of the search."""
    searched = {} if which not in OBJECTIVES else {k: v for k, v in _search_of(spec).items() if k != "device"}
    recipe = {"dataset": spec["dataset"], **_recipe(spec).values, "backbone": spec["backbone"], **searched}
    return recipe | {"sampler": f"{which}_sets" if which in OBJECTIVES else spec["sampler"], "classes": spec["sampler"]}


def save_sets(sets: SupportSets, which: str = "hard", name: str | None = None) -> tuple[str, str]:
    """Saves one of the sets as a new testbed; returns its name and a sentence."""
    return draw.save(to_testbed(sets, which, name), number=name is None)


def command(spec: Settings, name: str = "hard", more: Sequence[str] = ()) -> str:
    """The command that searches for the same sets, or another command with the same tasks.

    more  arguments of that command alone. A spec without "search" is one of all searches.
    """
    searched = {name: value for name, value in _search_of(spec).items() if value != SEARCH_SETTINGS[name].default}
    tasks = _recipe(spec).arguments | {"backbone": spec["backbone"]}
    flags = to_args(tasks, draw.SETTINGS) + to_args(searched, SEARCH_SETTINGS)
    return shlex.join(["fsviz", name, spec["dataset"], *flags, *more])


def _recipe(spec: Settings) -> draw.Recipe:
    settings = {name: spec.get(name) for name in (*TASK_SETTINGS, "backbone")}
    return draw.recipe_for(datasets.load(spec["dataset"]), **settings)


def _search_of(spec: Settings) -> dict[str, Value]:
    """The settings that affect the search: only FastDiffSel has steps, only greedy search has sweeps."""
    search = spec.get("search")
    steps = ("start", "step", "n_steps")
    unused: tuple[str, ...] = {None: (), "accuracy": (*steps, "n_sweeps"), "greedy": steps}.get(search, ("n_sweeps",))
    if search == "fastdiffsel" and spec["start"] == "ones" and spec["n_steps"] == 1:
        unused += ("step",)
    if not spec.get("skip_small"):
        unused += ("skip_small",)  # absent from names and recipes unless set
    return {name: spec[name] for name in SEARCH_SETTINGS if name in spec and name not in (*unused, "objective")}


def export_sets(sets: SupportSets, which: str, kind: str) -> bytes:
    """One of the sets as the bytes of a testbed file: parquet, csv or json."""
    from fsviz.sampling.testbeds import export

    return export(to_testbed(sets, which), datasets.load(sets.spec["dataset"]), kind)
