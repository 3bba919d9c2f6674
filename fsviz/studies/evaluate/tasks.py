"""The tasks of an evaluation: a saved testbed, or drawn from the images that have features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from fsviz.errors import BadInput, FsvizError
from fsviz.records import Dataset, Features, Testbed
from fsviz.settings import N_SHOT, RawSettings
from fsviz.studies.evaluate.requests import check_seed
from fsviz.studies.evaluate.spec import EvaluationSpec
from fsviz.tasks import draw, fitting

# How tasks are drawn; those of classes only cannot be evaluated, and "backbones" says whose features are.
TASK_SETTINGS = {**{name: s for name, s in draw.SETTINGS.items() if name != "backbone"}, "n_shot": N_SHOT}
DEFAULTS: dict[str, Any] = {**draw.IMAGE_DEFAULTS, "n_tasks": 1000}


def resolve_testbed(spec: EvaluationSpec, dataset: Dataset, tables: Mapping[str, Features]) -> Testbed:
    """The tasks a spec names: a saved testbed, or drawn here from the images that have features everywhere."""
    name, sampler = spec.get("testbed"), spec.get("sampler")
    if (name is None) == (sampler is None):
        raise BadInput(
            'An evaluation needs either "testbed" (a name or a file) or "sampler" (how to draw tasks), not both.'
        )
    if name is not None:
        from fsviz.sampling.testbeds import load_testbed

        testbed = load_testbed(str(name), dataset)
        if testbed.dataset != dataset.name:
            raise BadInput(
                f"Testbed {testbed.name!r} was drawn from dataset {testbed.dataset!r}, and its image ids mean nothing "
                f"in {dataset.name!r}. Evaluate it on {testbed.dataset!r}, or draw a testbed from {dataset.name!r}."
            )
    else:
        assert sampler is not None
        testbed = sample_testbed(dataset, sampler, check_seed(spec), tables)
    return Testbed(testbed.name, draw.with_coarsity(testbed.tasks, dataset), testbed.recipe)


def resolve_testbeds(spec: EvaluationSpec, dataset: Dataset, tables: Mapping[str, Features]) -> list[Testbed]:
    """The testbeds a spec names: one, or one for each of its samplers."""
    samplers = spec.get("samplers")
    if samplers is None:
        return [resolve_testbed(spec, dataset, tables)]
    if not isinstance(samplers, list | tuple) or not samplers or spec.get("testbed") or spec.get("sampler"):
        raise BadInput('"samplers" is a list of samplers, and stands alone: leave out "testbed" and "sampler".')
    resolved = [resolve_testbed({**spec, "sampler": sampler}, dataset, tables) for sampler in samplers]
    shapes = {(len(t.tasks), t.tasks.n_way, t.tasks.query.shape[2]) for t in resolved}
    if len(shapes) > 1:
        raise BadInput(
            "The testbeds of one run must have as many tasks, classes per task and queries per class. "
            f"Got {', '.join(f'{a:,} tasks of {b} classes and {c} queries' for a, b, c in sorted(shapes))}."
        )
    return resolved


def both_samplers(sampler: draw.TaskSpec, shots: Sequence[int] = ()) -> list[draw.TaskSpec]:
    """Semantic and uniform tasks for every number of shots (the sampler's own where none is given), all else as in
    `sampler`: what tables 1 and 2 of Bennequin et al. 2022 stand on."""
    each: list[draw.TaskSpec] = [{"n_shot": n} for n in dict.fromkeys(shots)] or [{}]
    return [{**sampler, **n_shot, "sampler": name} for n_shot in each for name in ("semantic", "uniform")]


def sample_testbed(
    dataset: Dataset, sampler: RawSettings, seed: int, tables: Mapping[str, Features] | None = None
) -> Testbed:
    """Draws tasks as `sampler` says (settings of fsviz.tasks.draw), from the images that all these features have."""
    from fsviz.evaluation import check_class_sizes

    recipe = recipe_of(dataset, sampler, seed)
    names = dict(enumerate(dataset.classes["class_name"].astype(str)))
    usable = None
    for table in (tables or {}).values():
        if "n_shot" in recipe.settings:
            n_shot, n_query = recipe.settings["n_shot"], recipe.settings["n_query"]
            check_class_sizes(table, dataset.split_class_ids(recipe.split), n_shot, n_query, names)
        usable = table.image_ids if usable is None else np.intersect1d(usable, table.image_ids)
    return draw.sample_testbed(dataset, recipe, usable=usable)


def recipe_of(dataset: Dataset, sampler: Any, seed: int = 0) -> draw.Recipe:
    if not isinstance(sampler, Mapping):
        raise BadInput(f'"sampler" is a dictionary such as {{"sampler": "uniform", "n_tasks": 100}}. Got {sampler!r}.')
    settings = {**DEFAULTS, **sampler}
    N_SHOT.check(settings["n_shot"])
    return draw.recipe_for(dataset, **settings, seed=seed)


def testbeds(dataset: Dataset) -> list[str]:
    """Saved testbeds of a dataset that have images."""
    from fsviz.sampling.testbeds import list_testbeds, read_recipe

    names = []
    for name in list_testbeds():
        try:
            recipe = read_recipe(name)
        except FsvizError:
            continue
        if recipe.get("dataset") == dataset.name and recipe.get("n_shot", 1):
            names.append(name)
    return names


def testbed_titles(names: Iterable[str]) -> dict[str, str]:
    """Readable titles of saved testbeds: what their recipe says where the name was made from it, else the name."""
    from fsviz.sampling.testbeds import read_recipe

    titles: dict[str, str] = {}
    for name in names:
        try:
            titles[name] = draw.title_of(name, read_recipe(name))
        except FsvizError:
            titles[name] = name
    shared = [title for title in titles.values() if list(titles.values()).count(title) > 1]
    return {name: name if title in shared else title for name, title in titles.items()}


def fit(dataset: Dataset, backbones: Sequence[str], requested: RawSettings) -> fitting.Fit:
    """Ways, shots and queries of an evaluation: those requested, else the defaults of the dataset."""
    return fitting.fit(dataset, requested, DEFAULTS, backbones)


def feasible_sampler(dataset: Dataset, backbone: str, split: str | None = None, **usual: int) -> draw.TaskSpec:
    """Settings of the sampler that this dataset can give, as near to the defaults (and to `usual`) as possible."""
    candidates = [split or "test", "test", *dataset.splits, "all"]
    split = next(s for s in candidates if s == "all" or (s in dataset.splits and len(dataset.splits[s]) >= 2))
    settings = {"split": split, "sampler": draw.default_sampler(dataset)}
    defaults = {**DEFAULTS, **usual}
    fits = fitting.fit(dataset, settings, defaults, [backbone], probed=N_SHOT.name not in usual)
    return cast(draw.TaskSpec, {**settings, **fits.values, "n_tasks": defaults["n_tasks"]})
