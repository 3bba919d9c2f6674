"""The recipe for running an evaluation again: its description and its command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from fsviz import datasets
from fsviz.errors import FsvizError
from fsviz.features.backbones import title_of
from fsviz.sampling import SAMPLERS
from fsviz.settings import SEED
from fsviz.settings import to_args as flags
from fsviz.studies import evaluate
from fsviz.tasks import draw
from fsviz.taxonomy import DAG, DISTANCE
from fsviz.user.code import HERE

if TYPE_CHECKING:
    pass


_IN_SETTING = ("n_way", "n_shot", "n_query")  # of a recipe, by what a setting such as "5-way 1-shot" says


def describe(spec: evaluate.ResolvedSpec) -> list[tuple[str, str]]:
    """The description of a run: pairs of a title and text."""
    rows = [("Dataset", _dataset_title(spec["dataset"]))]
    rows.append(
        ("Backbones" if len(spec["backbones"]) > 1 else "Backbone", ", ".join(map(title_of, spec["backbones"])))
    )
    labels = dict.fromkeys(entry.label for entry in evaluate.entries(spec))
    rows.append(("Methods" if len(labels) > 1 else "Method", ", ".join(labels)))
    for testbed in evaluate.run_testbeds(spec):
        rows.append(("Tasks", _describe_tasks(testbed)))
    rows.append(("Device", spec["device"]))
    return rows


def _describe_tasks(testbed: evaluate.RunTestbed) -> str:
    shape, recipe = testbed["tasks"], testbed["recipe"]
    words = [f"{shape['n_tasks']:,} of {shape['setting']}, {shape['n_query']} query images per class"]
    sampler = SAMPLERS.get(str(recipe.get("sampler")))
    if sampler is None:
        words.append(f"of the testbed {testbed['testbed_name']}")
    else:
        words.append(f"drawn by the sampler {sampler.title}")
    if recipe.get("split"):
        words.append(f"from split {recipe['split']}")
    settings = [s for s in (sampler.settings if sampler else ()) if s.name in recipe and s.name not in _IN_SETTING]
    settings += [s for s in (DISTANCE, DAG, SEED) if s.name in recipe]
    words += [
        f"{s.title[:1].lower()}{s.title[1:]} {s.choices.get(recipe[s.name], s.text(recipe[s.name]))}" for s in settings
    ]
    return ", ".join(words)


def _dataset_title(name: str) -> str:
    try:
        return datasets.title(name)
    except FsvizError:  # it is gone since
        return name


def command(spec: evaluate.ResolvedSpec) -> str:
    """The command that runs the same evaluation; "" where there is none: its dataset or testbed is gone, its method
    was a function of a notebook, or its predictions were made elsewhere."""
    if "predictions" in spec:
        return ""
    words = ["fsviz", "evaluate", spec["dataset"], "--backbone", ",".join(spec["backbones"])]
    method_names = [str((choice.get("own") or {}).get("code") or choice["name"]) for choice in spec["methods"]]
    if any(name.startswith(HERE) for name in method_names):
        return ""
    words += ["--methods", ",".join(dict.fromkeys(method_names))]
    for entry in evaluate.entries({"backbones": spec["backbones"][:1], "methods": spec["methods"]}):
        for name, value in entry.changed.items():
            words += ["--set", f"{entry.method}.{name}={SEED.text(value)}"]
    every = evaluate.run_testbeds(spec)
    try:
        dataset = datasets.load(spec["dataset"])
        if spec.get("testbed"):
            words += ["--testbed", str(spec["testbed"])]
        else:
            first = {name: value for name, value in every[0]["recipe"].items() if name in draw.SETTINGS}
            arguments = draw.recipe_for(dataset, **first).arguments
            implied = ("sampler", "n_shot") if len(every) > 1 else ()  # what --side-by-side says
            words += flags({name: value for name, value in arguments.items() if name not in implied}, draw.SETTINGS)
            shots = dict.fromkeys(str(part["tasks"]["n_shot"]) for part in every if implied)
            words += ["--side-by-side", ",".join(shots)] if implied else []
    except FsvizError:
        return ""
    return shlex.join([*words, "--device", spec["device"]])
